/* simulate_history.h - what became of every job of a simulation, and what that amounts to.
 *
 * A history is written note by note, by either simulator; a summary is worked out of it at the end.
 * All times are milliseconds since the start, amounts are devices times milliseconds. */
#pragma once

#include <stdio.h>

#include "simulate_workload.h"

#define HISTORY_NONE      UINT32_MAX
#define SUMMARY_PERIODS   24
#define SLOWDOWN_FLOOR_MS 10000 /* of a bounded slowdown: what is shorter counts as so long */

/* -- simulate_history.c ---------------------------------------------------------------------------
 */

enum span_end { SPAN_OPEN = 0, SPAN_FINISHED, SPAN_STOPPED, SPAN_FAILED, SPAN_BROKEN };

/* A time in which a job worked. */
struct history_span {
    int64_t start_ms;
    int64_t end_ms; /* SPAN_OPEN: not set */
    enum span_end end;
    uint32_t next; /* of the same job; HISTORY_NONE: last */
};

struct history_job {
    bool is_submitted;
    bool is_finished;
    int64_t end_ms; /* is_finished */
    uint32_t first; /* span; HISTORY_NONE: none */
    uint32_t last;
    int64_t since_ms;   /* it has waited, not while it works */
    int64_t wait_ms;    /* all in all, until since_ms */
    int64_t lost_ms;    /* run time that was done again */
    enum reason reason; /* it waits for */
    uint32_t stops;     /* suspended as a whole */
    uint32_t failures;  /* its own, and nodes' */
};

struct history_step {
    int64_t at_ms;
    int64_t units;
};

struct history {
    const struct workload *workload; /* borrowed; its jobs have the same numbers */
    struct history_job *jobs;        /* owned */
    uint32_t job_count;
    uint32_t job_capacity;
    struct history_span *spans; /* owned */
    uint32_t span_count;
    uint32_t span_capacity;
    struct history_step *steps; /* owned; how many devices there are, from when */
    uint32_t step_count;
    uint32_t step_capacity;
    int64_t (*waits)[REASON_COUNT]; /* owned; of each queue, by reason */
    uint32_t wait_count;
    uint32_t wait_capacity;
    bool is_stuck; /* nothing could change any more, and jobs are unfinished */
};

void history_deinit(struct history *history);
void history_note(struct history *history, const struct bulk_note *note);
void history_capacity(struct history *history, int64_t at_ms, int64_t units);
/* Nothing happens any more: waits and works that aren't over are counted until then. */
void history_close(struct history *history, int64_t at_ms);

/* -- simulate_summary.c ---------------------------------------------------------------------------
 */

struct distribution {
    int64_t mean;
    int64_t p50;
    int64_t p90;
    int64_t p99;
    int64_t max;
};

/* Of all, a queue or a class. */
struct summary_group {
    struct str name;
    int64_t jobs;
    int64_t finished;
    struct distribution wait_ms;        /* from submission to the end, the work left out */
    struct distribution slowdown_milli; /* bounded; of finished jobs */
    int64_t worked;                     /* device-milliseconds, what was lost included */
    int64_t lost;
    int64_t stops;
    int64_t failures;
    int64_t waits_ms[REASON_COUNT]; /* of queues and of all */
};

enum bound_kind { BOUND_WORK = 1, BOUND_LONGEST, BOUND_AFTER_RELEASE };

/* What no schedule can beat. */
struct summary_bound {
    int64_t work_ms;          /* all work on all devices */
    int64_t longest_ms;       /* a job that comes late or runs long: submission and run time */
    int64_t after_release_ms; /* a moment, and the work that comes later on all devices */
    int64_t ms;               /* the largest of them */
    enum bound_kind kind;
};

struct summary_period {
    int64_t from_ms;
    int64_t jain_milli; /* of the queues that had work waiting; 1000: equal, or fewer than two */
    int64_t used;       /* device-milliseconds */
    int64_t there;
    int64_t *queues; /* device-milliseconds of each queue */
};

struct summary {
    const struct history *history; /* borrowed */
    int64_t first_ms;              /* the first submission */
    int64_t last_ms;               /* the last end */
    int64_t makespan_ms;
    int64_t unfinished; /* jobs, those to come included; where there are any, the makespan is only
                         * what was played, and the bound says nothing about it */
    struct summary_bound bound;
    int64_t devices; /* the most that there were */
    int64_t there;   /* device-milliseconds that there were until the end */
    struct summary_group all;
    struct summary_group *queues;
    struct summary_group *classes;
    struct summary_period periods[SUMMARY_PERIODS];
    int64_t jain_mean_milli;
    int64_t jain_least_milli;
};

/* Borrowed from the arena. */
struct summary *summary_make(struct arena *arena, const struct history *history);
/* part / whole in thousandths, rounded down; 0 where there is no whole. */
int64_t summary_milli(int64_t part, int64_t whole);
/* The time that the job waited so far, and its bounded slowdown in thousandths. */
int64_t history_slowdown_milli(const struct history *history, uint32_t job);

/* -- simulate_summary_text.c, simulate_summary_data.c, simulate_gantt.c
 * ----------------------------
 */

void summary_print(FILE *out, const struct summary *summary);
void summary_print_json(FILE *out, const struct summary *summary);
void summary_print_csv(FILE *out, const struct summary *summary);
/* A chart of who ran when: of every gang, or of the queues where there are too many gangs. */
void gantt_print(FILE *out, const struct summary *summary, struct str title);
