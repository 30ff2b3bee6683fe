/* scenario_internal.h - what the files of the scenario share. */
#pragma once

#include "support/scenario.h"

#include "tallyman/base/arena.h"
#include "tallyman/base/map.h"
#include "tallyman/base/text.h"

#define SCENARIO_START_MS INT64_C(1796040000000) /* 2026-11-30T12:00:00Z */
#define NAMESPACE_DEFAULT "ml"

struct entry {
    enum object_kind kind;
    struct str key;       /* "namespace/name", or "name"; in the arena */
    struct str table_key; /* the kind in front */
    UT_hash_handle hh;
    struct object_meta *value; /* in the arena */
    struct entry *next;
    struct entry *prev;
    uint64_t pending_effect; /* a Job's write that waits for its answer */
    struct effect effect;
};

struct queued_effect {
    struct effect effect;
    struct queued_effect *next;
};

/* A pod set behind the Job's own; its template and sizes are those of a Job that nobody sees. */
struct extra_set {
    struct str job;  /* the name of the one that it belongs to */
    struct str name; /* of the set */
    struct job *object;
    struct extra_set *next;
};

struct gathered;

struct scenario {
    struct extra_set *extra_sets;
    struct arena arena;
    struct core *core;
    int64_t now_ms; /* absolute */
    int64_t wake_ms;
    bool is_started;
    bool is_manual;
    bool are_admissions_refused;
    bool are_statuses_refused;
    bool are_requests_manual;     /* a request is made by request_is_made() */
    bool drops_request_deletions; /* the next restart comes before they arrive */
    struct effect request_effect; /* that waits for it */
    bool is_cheap;
    bool is_draining;
    uint32_t next_uid;
    uint64_t next_version;
    uint64_t listing_seed;
    bool is_gathering;
    struct gathered *gathered; /* in the order in which it happened */
    struct gathered **gathered_last;
    struct entry *entries; /* hash */
    struct entry *first;
    struct entry *last;
    struct queued_effect *queue_first;
    struct queued_effect **queue_last;
    struct text trace;
    struct scenario_counts counts;
};

struct str make(struct scenario *s, const char *format, ...) PRINTF_LIKE(2, 3);
/* A KEY=VALUE word of the options; false: no more. `*options` moves on. */
bool next_option(const char **options, struct str *ret_key, struct str *ret_value);
bool next_word(const char **words, struct str *ret_word);
/* "a:b" */
void split_pair(struct str text, struct str *ret_left, struct str *ret_right);
bool is_resource(struct str key);

struct entry *entry_find(const struct scenario *s, enum object_kind kind, const char *name);
struct entry *entry_find_key(const struct scenario *s, enum object_kind kind, struct str key);
struct entry *entry_need(struct scenario *s, enum object_kind kind, const char *name);
struct entry *entry_put(struct scenario *s, enum object_kind kind, struct object_meta *value);
void entry_drop(struct scenario *s, struct entry *entry);
void entry_touch(struct scenario *s, struct entry *entry); /* a new resourceVersion */
void tell(struct scenario *s, struct entry *entry);
void tell_gone(struct scenario *s, struct entry *entry);
void step(struct scenario *s, struct event *event);
void gather(struct scenario *s, const struct event *event); /* for events_arrive() */
uint32_t scenarios_cut_at(void);                            /* see scenarios_are_cut() */

void set_queue_label(struct scenario *s, struct job *job, const struct job_patch *patch);
void map_set(struct scenario *s, struct string_map *map, struct str key, struct str value);
void map_remove(struct string_map *map, struct str key);

/* Not in the cluster yet. */
struct job *job_of_options(struct scenario *s, const char *name, const char *queue,
                           const char *options);
/* The pod sets that a core reads from now on are those of this scenario; before each step. */
void read_sets_of(struct scenario *s);
struct extra_set *extra_set_find(const struct scenario *s, struct str job, struct str name);
/* A pod of the Job, from that template. */
struct entry *pod_make(struct scenario *s, const struct entry *job, struct str name,
                       const struct pod_spec *spec, struct str set);
void apply_template(struct scenario *s, struct job *job, const struct template_patch *patch);
/* The Job as the API server keeps it after that PATCH. */
void apply_patch(struct scenario *s, struct job *job, const struct job_patch *patch);
/* The checkpoint request on a pod. */
void set_mark(struct scenario *s, struct object_meta *meta, const struct job_patch *patch);
void answer(struct scenario *s, const struct effect *effect, enum effect_outcome outcome,
            struct str version, struct str message);
struct entry *target_of(const struct scenario *s, const struct effect *effect);
void request_make(struct scenario *s, const struct effect *effect);
void request_delete(struct scenario *s, const struct effect *effect);
void trace_effect(struct scenario *s, const struct effect *effect);
void trace_admission(struct scenario *s, const struct admission *admission);
void check_admission(struct scenario *s, const struct effect *effect);

/* A growing piece of JSON, and what is put between its items. */
struct text list_text(struct scenario *s);
const char *comma(const struct text *text);
void add_member(struct text *text, struct str key, struct str value);
void add_pair(struct text *text, struct str pair); /* "key:value" */
void add_toleration(struct text *text, struct str key);
