/* simulate_workload.h - the jobs that a load or a trace brings, and the cluster they run on. */
#pragma once

#include "input.h"
#include "tallyman/sim/bulk.h"

#define WORKLOAD_NO_LIMIT (-1)

struct workload_queue {
    struct str name;
    struct str cohort;     /* absent: none */
    int64_t nominal;       /* WORKLOAD_NO_LIMIT: its even share of the cluster */
    int64_t borrowing;     /* WORKLOAD_NO_LIMIT: none */
    int64_t lending;       /* the same */
    struct str strategy;   /* absent: the default */
    struct str fit;        /* absent: the default */
    int64_t starvation_ms; /* 0: none */
    struct str within;     /* preemption.withinQueue; absent: the default */
    struct str reclaim;    /* preemption.reclaimWithinCohort; absent: the default */
    int64_t weight;        /* WORKLOAD_NO_LIMIT: no fair sharing */
};

struct workload_class {
    struct str name;
};

struct workload_event {
    int64_t at_ms;
    struct str node;
    enum bulk_node_change change;
    int64_t units;
    uint32_t line; /* of the load file */
};

/* A job beside what the simulator is told of it. */
struct workload_tag {
    uint32_t queue;
    uint32_t class_index;
    uint32_t order; /* in which it was read */
};

struct workload {
    struct arena *arena; /* borrowed; texts live there */
    struct str resource;
    int64_t nodes;          /* to be made; 0: as many as the jobs need */
    int64_t units_per_node; /* 0: 8 */
    bool has_nodes;         /* the manifests bring them */
    struct workload_queue *queues;
    uint32_t queue_count;
    uint32_t queue_capacity;
    struct workload_class *classes;
    uint32_t class_count;
    uint32_t class_capacity;
    struct workload_event *events;
    uint32_t event_count;
    uint32_t event_capacity;
    struct bulk_gang *gangs;   /* owned */
    struct workload_tag *tags; /* owned; beside gangs */
    uint32_t gang_count;
    uint32_t gang_capacity;
    uint32_t tag_capacity;
    uint32_t left_out;              /* jobs that no cluster could run: no run time, no devices */
    uint32_t too_large;             /* jobs that need more than the cluster has */
    struct str load_name;           /* of the load file; for errors about events */
    struct queue_slot *queue_slots; /* names to queues */
};

/* How a trace is turned into jobs. */
struct trace_options {
    int64_t devices;     /* of the whole cluster; 0: the trace's own, or enough for 80 % load */
    int64_t pod_devices; /* at most, of one pod */
    int64_t saturation_milli; /* arrivals come so many thousandths times as fast */
    int64_t first_jobs;       /* 0: all */
    int64_t bound_milli;      /* a run-time bound of so many thousandths of the run time; 0: none */
    struct str strategy;      /* of every queue */
    int64_t starvation_ms;
    struct str queue_by; /* SWF: queue, user, group, partition */
    struct str columns;  /* CSV: "submit=timestamp,…" */
};

/* -- simulate_workload.c --------------------------------------------------------------------------
 */

void workload_deinit(struct workload *workload);
/* By name; made where there is none. */
uint32_t workload_queue_get(struct workload *workload, struct str name);
uint32_t workload_class_get(struct workload *workload, struct str name);
/* Texts are borrowed from the arena. RC_LIMIT: too many. */
NODISCARD struct rc workload_add(struct workload *workload, const struct bulk_gang *gang,
                                 uint32_t queue, uint32_t class_index, struct err *err);
/* A gang of so many devices: as many pods, or larger ones where they come out even. */
void workload_shape(struct bulk_gang *gang, int64_t devices, int64_t pod_devices);
/* Compresses, cuts and sorts what a trace has brought; finds the size of its cluster. */
void workload_finish_trace(struct workload *workload, const struct trace_options *options);
/* In order of submission; what the cluster can't ever hold is left out. To be called last. */
void workload_sort(struct workload *workload);
/* Of all nodes together, those of the manifests left out. */
int64_t workload_devices(const struct workload *workload);
int64_t workload_work(const struct workload *workload); /* device-milliseconds */

/* -- simulate_load.c, simulate_swf.c, simulate_csv.c ----------------------------------------------
 */

NODISCARD struct rc workload_read_load(struct workload *workload, const char *path,
                                       struct err *err);
NODISCARD struct rc workload_read_swf(struct workload *workload, const char *path,
                                      struct trace_options *options, struct err *err);
NODISCARD struct rc workload_read_csv(struct workload *workload, const char *path,
                                      const struct trace_options *options, struct err *err);

/* -- simulate_objects.c ---------------------------------------------------------------------------
 */

/* Gives the simulator the manifests, and the Nodes, Queues and others that they don't bring. */
NODISCARD struct rc workload_load_objects(struct workload *workload,
                                          const struct manifest_list *manifests, struct bulk *bulk,
                                          struct err *err);

/* -- simulate_lines.c: a text file, gzipped or not, line by line
 * -----------------------------------
 */

struct lines;

NODISCARD struct rc lines_open(const char *path, struct lines **ret_lines, struct err *err);
void lines_close(struct lines *lines); /* NULL is fine */
/* The next line without its end, borrowed until the next call; absent at the end of the file. */
NODISCARD struct rc lines_next(struct lines *lines, struct str *ret_line, struct err *err);
/* An error of the last line; column 0: of the whole line. */
NODISCARD struct rc lines_error(const struct lines *lines, uint32_t column, struct err *err,
                                const char *format, ...) PRINTF_LIKE(4, 5);
