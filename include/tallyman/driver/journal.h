/* journal.h - events and decisions as lines of JSON, so that a run can be played again.
 *
 * An event line: {"now":…,"event":"object","kind":"Job","object":{…}}. A decision line has the
 * effects of one event in short: {"decisions":"…"}. Objects are written by their schema, so only
 * what Tallyman looks at is in the journal, and the same event always gives the same bytes.
 *
 * Each controller begins its part with a start line, {"now":…,"start":"0.1.0","build":"…"}, because
 * it begins with a core that knows nothing. A line {"lost":N} stands for N lines that couldn't be
 * written. */
#pragma once

#include "tallyman/core/core.h"

/* One line without its newline, borrowed from the arena. */
struct str journal_event_line(struct arena *arena, const struct event *event);
/* What a step decided, one readable line per effect that changes something outside; empty if there
 * is none. Borrowed from the arena. */
struct str journal_decision_text(struct arena *arena, const struct effects *effects);
/* As a line of the journal; absent if there is nothing to say. */
struct str journal_decision_line(struct arena *arena, const struct effects *effects);

/* A controller of that version and build has begun. */
struct str journal_start_line(struct arena *arena, int64_t now_ms, struct str version,
                              struct str build);
/* `count` lines aren't there. */
struct str journal_lost_line(struct arena *arena, uint64_t count);

enum journal_line_kind { JOURNAL_EVENT = 1, JOURNAL_DECISION, JOURNAL_START, JOURNAL_LOST };

struct journal_line {
    enum journal_line_kind kind;
    struct event event;       /* JOURNAL_EVENT; borrowed from the arena */
    struct str decision_text; /* JOURNAL_DECISION */
    int64_t started_ms;       /* JOURNAL_START */
    struct str version;
    struct str build;
    int64_t lost_lines; /* JOURNAL_LOST */
};

/* RC_INVALID: the line isn't one of a journal. */
NODISCARD struct rc journal_parse_line(struct arena *arena, struct str line,
                                       struct journal_line *ret_line, struct err *err);
