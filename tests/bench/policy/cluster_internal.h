/* cluster_internal.h - between cluster.c and objects.c. */
#pragma once

#include "policy/cluster.h"

enum job_state { JOB_WAITS = 1, JOB_RUNS, JOB_ENDED };

struct bench_job {
    uint32_t pods;
    uint32_t devices; /* per pod */
    uint32_t queue;
    uint32_t kind;
    int priority;
    enum job_state state;
    bool is_suspended;
    uint32_t version;
    int64_t created_ms;
    uint32_t *nodes;  /* owned; of each pod, while it runs */
    uint32_t *device; /* owned; the first of each pod */
};

struct answer {
    uint64_t id;
    uint32_t job; /* of a PATCH */
    enum effect_kind kind;
    bool is_admission; /* the PATCH admits */
    bool is_suspension;
};

struct cluster {
    struct cluster_options options;
    struct core *core;
    struct arena objects; /* of one event */
    struct arena effects;
    struct arena content;
    int64_t now_ms;
    int64_t wake_at_ms; /* the core's wish */
    bool is_synced;
    bool *device_used; /* by node and index */
    uint32_t *device_free;
    uint32_t node_hint;
    struct bench_job *jobs;
    uint32_t job_count;
    uint32_t job_capacity;
    uint32_t *running; /* ring of jobs, the oldest at first_running */
    uint32_t running_count;
    uint32_t running_capacity;
    uint32_t first_running;
    struct answer *answers;
    uint32_t answer_count;
    uint32_t answer_capacity;
    uint32_t next_answer;
    uint32_t next_queue;
    uint32_t admitted;
    uint32_t suspended;
    struct series series[TIMED_COUNT];
};

#define BENCH_UID_BYTES 40

/* The Job's uid, which says nothing about when it came. */
const char *bench_uid(uint32_t job, char buffer[BENCH_UID_BYTES]);

/* Gives the object to the core. */
void tell(struct cluster *cluster, enum timed timed, enum object_kind kind, bool is_deleted,
          const char *format, ...) __attribute__((format(printf, 5, 6)));

void tell_job(struct cluster *cluster, enum timed timed, uint32_t index, const char *status,
              bool has_record);
void tell_claim(struct cluster *cluster, enum timed timed, uint32_t index, uint32_t pod);
void tell_pod(struct cluster *cluster, enum timed timed, uint32_t index, uint32_t pod,
              const char *phase, bool is_bound);
void tell_node(struct cluster *cluster, enum timed timed, uint32_t node);
void tell_slice(struct cluster *cluster, uint32_t node);
void tell_queue(struct cluster *cluster, uint32_t queue, uint32_t quota);
void tell_templates(struct cluster *cluster);
