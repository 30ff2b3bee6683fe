/* source.h - what a look-and-exit command looks at: manifests, a live cluster, or both.
 *
 * Manifests beside a live cluster join its objects: one of the same kind, namespace and name takes
 * the live one's place, with its identity and status, as if it had been applied. */
#pragma once

#include "input.h"
#include "live.h"
#include "tallyman/driver/driver.h"

#define SOURCE_FILES_MAX    64
#define SOURCE_ADMITTED_MAX 256

struct source_options {

    const char *files[SOURCE_FILES_MAX];
    uint32_t file_count;
    const char *admitted[SOURCE_ADMITTED_MAX]; /* "NAME=FLAVOR" or "NAMESPACE/NAME=FLAVOR" */
    uint32_t admitted_count;
    bool is_live;
    struct session_options session;
    struct str namespace_name; /* absent: the context's, or "default" */
    int64_t now_ms;
};

struct source {
    struct live live; /* without a cluster: the manifests' objects, no gaps */
    bool is_live;
    uint32_t manifest_count;
    struct manifest_list manifests;
    struct str_list given; /* "namespace/name" of the Jobs in the manifests */
    uint32_t given_capacity;
};

/* RC_INVALID: a manifest or --admitted is wrong; everything else: there is no answer. `source` is
 * to be freed by source_free() in either case. */
NODISCARD struct rc source_read(const struct source_options *options, struct source *ret_source,
                                struct err *err);
void source_free(struct source *source);
/* What couldn't be read and what that means, a line each, on standard error. */
void source_print_gaps(const struct source *source, const char *command);

/* A core that has had its first pass over the source, with nothing carried out. */
struct outlook {
    struct core *core;     /* owned */
    struct driver *driver; /* owned */
    int64_t now_ms;
    struct source *source; /* borrowed until it is open */
    struct err refused;
    bool is_refused;
};

/* RC_INVALID: a manifest's object is malformed. One of the cluster's is left out and counted.
 * `outlook` is to be freed by outlook_close() in either case.
 */
NODISCARD struct rc outlook_open(struct outlook *outlook, struct source *source, int64_t now_ms,
                                 struct err *err);
void outlook_close(struct outlook *outlook);
