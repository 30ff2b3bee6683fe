/* simulate_load.h - a load file as it is written: docs/reference/load.md. */
#pragma once

#include "simulate_workload.h"

struct load_class {
    struct str name;
    struct opt_int jobs;
    struct opt_duration first;
    struct opt_duration every;
    struct opt_duration run_for;
    struct opt_int spread_percent;
    struct opt_int pods;
    struct opt_int devices_per_pod;
    struct opt_int priority;
    struct opt_duration max_runtime;
    struct opt_duration checkpoint_every;
    struct opt_duration fail_after;
    struct opt_int failures;
    struct str namespace_name;
};

struct load_class_list {
    struct load_class *items;
    uint32_t count;
};

struct load_preemption {
    struct str within_queue;
    struct str reclaim_within_cohort;
};

struct load_queue {
    struct str name;
    struct opt_int count;
    struct str cohort;
    struct opt_int cohorts;
    struct opt_int nominal;
    struct opt_int borrowing;
    struct opt_int lending;
    struct str strategy;
    struct str fit;
    struct opt_duration starvation_bound;
    struct opt_int weight;
    struct load_preemption preemption;
    struct load_class_list classes;
};

struct load_queue_list {
    struct load_queue *items;
    uint32_t count;
};

struct load_event {
    struct opt_duration at;
    struct str node;
    struct opt_bool ready;
    struct opt_int devices;
};

struct load_event_list {
    struct load_event *items;
    uint32_t count;
};

struct load_cluster {
    struct opt_int nodes;
    struct opt_int devices_per_node;
};

struct load {
    struct load_cluster cluster;
    struct load_queue_list queues;
    struct load_event_list events;
};

/* Borrowed from the arena. RC_INVALID names file, line, field, and what would be right; a field
 * that isn't known is one, because a mistyped one would silently change what is simulated. */
NODISCARD struct rc load_decode(struct arena *arena, const char *path, struct str text,
                                const struct load **ret_load, struct err *err);
