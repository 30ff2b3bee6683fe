/* replay.h - the parts of `tallyman replay`: where the lines come from, and what is told of them.
 */
#pragma once

#include <stdio.h>

#include "tallyman/driver/journal.h"
#include "tallyman/store/store.h"

/* The lines of a journal, from a file or from the store's directory. */
struct replay_source {
    const char *path;
    FILE *file;           /* NULL: the store */
    struct store *store;  /* read-only, a controller may write it meanwhile */
    char *line;           /* owned; the file's current one */
    size_t line_bytes;    /* its capacity */
    struct arena portion; /* the store's lines that are read already */
    struct replay_line *ready;
    uint32_t ready_count;
    uint32_t ready_next;
    uint32_t ready_capacity;
    size_t ready_bytes;
    uint64_t next_number;
};

struct replay_line {
    uint64_t number; /* of a file's line, or of the store's record; from 1 */
    struct str text;
};

NODISCARD struct rc replay_source_open(struct replay_source *source, const char *path,
                                       struct err *err);
/* RC_NOT_FOUND: the end. The text is borrowed until the next call. */
NODISCARD struct rc replay_source_next(struct replay_source *source, struct replay_line *ret_line,
                                       struct err *err);
void replay_source_close(struct replay_source *source);

/* What `--trace` prints. `job` is "namespace/name" of the only gang of interest, or absent. */
struct replay_trace {
    struct str job;
    bool has_shown; /* something of it */
    struct arena arena;
};

/* An event that was repeated: who was looked at, and what was decided (may be empty). */
void replay_trace_event(struct replay_trace *trace, uint64_t number, const struct event *event,
                        struct look_list looks, struct str decided);
/* A decision as it is in the journal, where nothing can be repeated. */
void replay_trace_recorded(struct replay_trace *trace, uint64_t number, struct str decided);
/* "2026-11-29T12:00:00.120Z" */
struct str replay_time(struct arena *arena, int64_t ms);
