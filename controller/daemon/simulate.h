/* simulate.h - what the files of the `simulate` command offer each other. */
#pragma once

#include <stdio.h>

#include "input.h"
#include "simulate_history.h"
#include "tallyman/base/text.h"
#include "tallyman/sim/sim.h"

#define SIMULATE_COLUMNS 100

/* -- simulate_print.c: text on a terminal ------------------------------------------------------ */

enum ink { INK_PLAIN = 0, INK_BOLD, INK_DIM, INK_GREEN, INK_YELLOW, INK_RED };

/* Colour only on a terminal, and not where NO_COLOR is set (https://no-color.org). */
void print_choose_ink(FILE *out);
void print_ink(FILE *out, enum ink ink);
/* Text of others: whatever could steer a terminal is shown as '?'. */
void print_safe(FILE *out, struct str text);
/* The same, cut or filled up to so many characters. */
void print_name(FILE *out, struct str text, int columns);
/* "01:02:03". */
void print_clock(FILE *out, int64_t ms);
/* Text from column `indent` on, broken at spaces; what follows a break is indented as well. The
 * cursor stands at column `indent`. Ends the line. */
void print_wrapped(FILE *out, int indent, struct str text);

/* -- simulate_bulk.c: a load or a trace ---------------------------------------------------------
 */

enum simulate_format { FORMAT_TEXT = 0, FORMAT_JSON, FORMAT_CSV };

struct bulk_command {
    const char *load_path; /* NULL: none; all borrowed from the command line */
    const char *swf_path;
    const char *csv_path;
    const char *svg_path;
    struct trace_options trace;
    int64_t nodes_units; /* devices of a node; 0: not given */
    int64_t until_ms;    /* INT64_MAX: until all have finished */
    enum simulate_format format;
    struct manifest_list manifests;
};

/* The exit status. */
int simulate_bulk(const struct bulk_command *command, struct arena *arena);
void simulate_print_summary(enum simulate_format format, const struct summary *summary);
NODISCARD struct rc simulate_write_svg(const char *path, const struct summary *summary,
                                       struct str title, struct err *err);

/* -- simulate_manifests.c: manifests, pod by pod -------------------------------------------------
 */

#define SIMULATE_PATHS_MAX 64

struct simulation {
    const char *paths[SIMULATE_PATHS_MAX];
    uint32_t path_count;
    int64_t until_ms; /* 0: not given */
    int64_t at_ms;    /* -1: not given */
    bool is_plain_only;
    bool is_tallyman_only;
    bool shows_all;
    bool has_faults, has_seed;
    uint32_t bulk_given; /* bits of options that shape a load or a trace */
    uint64_t seed;
    struct manifest_list manifests;
    int64_t jobs;     /* among them */
    int64_t start_ms; /* of the clock; 0: the simulator's own */
    struct bulk_command bulk;
};

/* The exit status. */
int simulate_manifests(struct simulation *simulation, struct arena *arena);

/* -- simulate_faults.c: while things go wrong ----------------------------------------------------
 */

/* Faults strike for three quarters of the time. Owned; faults_free(). */
struct faults *faults_new(uint64_t seed, int64_t until_ms);
void faults_free(struct faults *faults);
bool faults_are_on(const struct faults *faults, int64_t now_ms);
enum sim_fault faults_of_write(struct faults *faults, const struct driver_write *write, bool is_on);
void faults_of_watch(struct faults *faults, struct sim_watch_fault *ret_fault, bool is_on);
void faults_note(struct faults *faults, const struct sim *sim, const struct sim_note *note);
/* Plays to the next moment at which something happens, at most to `until_ms`, and looks whether
 * what must hold does. */
void faults_step(struct faults *faults, struct sim *sim, int64_t until_ms);
/* False: something didn't hold. */
bool faults_print(FILE *out, const struct faults *faults, uint64_t seed);

/* -- simulate_record.c: what happens to the Jobs of manifests, as a history -----------------------
 */

struct record {
    struct workload workload;
    struct history history;
    struct sim *sim; /* borrowed */
    struct record_slot *slots;
    bool has_capacity; /* told once */
    uint64_t supply_version;
    int64_t capacity; /* as it was told last */
};

/* Borrowed from the arena; record_deinit(). */
struct record *record_new(struct arena *arena);
void record_deinit(struct record *record);
void record_note(struct record *record, const struct sim_note *note);
/* The devices that there are from now on, if Nodes or slices have changed. */
void record_capacity(struct record *record, struct sim *sim);

/* -- simulate_timeline.c: what happened, one line per Job and burst -----------------------------
 */

enum line_kind {
    LINE_SUBMITTED = 1,
    LINE_ADMITTED,
    LINE_WAITS,
    LINE_BOUND,
    LINE_UNSCHEDULABLE,
    LINE_WORKS,
    LINE_BROKEN,
    LINE_SUSPENDED,
    LINE_POD_FAILED,
    LINE_FINISHED,
    LINE_DELETED,
};

/* Where pods of one line went. */
struct place {
    struct str node;
    struct str devices; /* "gpu-0 gpu-1" */
    int64_t pods;
};

struct line {
    int64_t at_ms;
    int64_t last_ms; /* of what was added to it last */
    enum line_kind kind;
    struct str job;
    struct str text; /* borrowed from the timeline's arena */
    int64_t pods;    /* that the line is about */
    int64_t bound;   /* of the Job, all in all */
    int64_t wanted;
    struct place *places; /* LINE_BOUND */
    uint32_t place_count;
    uint32_t place_capacity;
    struct str said_before; /* LINE_WAITS: the sentence that it replaced */
};

struct timeline {
    struct arena *arena; /* borrowed */
    struct sim *sim;     /* borrowed */
    struct line *lines;
    uint32_t count;
    uint32_t capacity;
    struct timeline_job *jobs;
    uint32_t job_count;
    uint32_t job_capacity;
    int64_t submitted; /* Jobs */
    int64_t finished;  /* of them, those that are deleted since included */
};

/* For sim_options.on_note, with the timeline as ctx. */
void timeline_note(void *ctx, const struct sim_note *note);
/* At most `lines_max` lines (the middle is left out); 0: all. */
void timeline_print(FILE *out, struct timeline *timeline, uint32_t lines_max);

/* -- simulate_table.c: both halves side by side -------------------------------------------------
 */

struct waiting_job {
    struct str name;    /* "namespace/name" */
    struct str summary; /* "Reason: sentence" */
};

/* How a half stood at one moment. */
struct snapshot {
    int64_t at_ms;
    struct sim_devices devices;
    int64_t jobs; /* submitted so far, finished ones included */
    int64_t working;
    int64_t finished;
    struct waiting_job *waiting; /* in the arena */
    uint32_t waiting_count;
};

struct half {
    const char *name;
    bool has_tallyman;
    int64_t unmade;        /* Jobs that were to be made later than it was played */
    struct snapshot early; /* while they compete */
    struct snapshot end;
    int64_t wasted_device_ms;
    struct timeline timeline;
};

void snapshot_take(struct snapshot *snapshot, struct sim *sim, struct arena *arena);
void table_print(FILE *out, const struct half *halves, uint32_t count);
/* The sentences of those that wait in the snapshot. */
void waiting_print(FILE *out, const struct snapshot *snapshot);
