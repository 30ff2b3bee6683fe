/* live.h - all that a decision looks at, read once from a cluster.
 *
 * Lists only. All kinds are read as they were at one and the same moment (the resourceVersion of
 * the first list) as far as the server still has it; where it doesn't, a newer list is taken and
 * `is_mixed` says so. A kind that may not be read in the whole cluster is read in one namespace;
 * what can't be read at all is told, and stood in for where its absence would be taken for a fault.
 */
#pragma once

#include "session.h"
#include "tallyman/api/codec.h"

struct object_set {
    struct object *items; /* owned array; the objects are clones of its own (mem_free) */
    uint32_t count;
    uint32_t capacity;
};

enum live_extent { LIVE_ALL = 0, LIVE_NAMESPACE, LIVE_NOTHING };

/* What was left out, and what that means for the answer. */
struct live_gap {
    enum object_kind kind;
    enum live_extent extent;
    struct str message;  /* the server's refusal */
    const char *meaning; /* static; one sentence */
};

struct live {
    struct arena arena;
    struct object_set objects;
    struct str namespace_name; /* the reader's own */
    struct live_gap gaps[KIND_COUNT];
    uint32_t gap_count;
    uint32_t malformed_count;
    struct str first_malformed; /* the sentence about it */
    bool is_mixed;
};

/* `namespace_name` absent: the context's. RC_REFUSED: so little may be read that there is no
 * answer. `live` is to be freed by live_free() in either case. */
NODISCARD struct rc live_read(struct session *session, struct str namespace_name,
                              struct live *ret_live, struct err *err);
void live_free(struct live *live);
/* Stands in for what couldn't be read. After the manifests have joined. */
void live_fill_gaps(struct live *live);
void object_set_add(struct object_set *set, enum object_kind kind, const struct object_meta *value);
/* `value` may point into the old one. */
void object_set_replace(struct object *item, const struct object_meta *value);
void object_set_free(struct object_set *set);
