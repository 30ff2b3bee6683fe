/* cluster.h - a cluster for the core alone, made to be large: it takes the core's writes, starts
 * and ends gangs as kube-scheduler and the Job controller would, and times each event. */
#pragma once

#include "policy/measure.h"

#include "tallyman/core/core.h"

/* Of what a step is the answer to; TIMED_DECODE: an object is read before it. */
enum timed {
    TIMED_ARRIVAL,
    TIMED_RELEASE,
    TIMED_START,
    TIMED_HEARTBEAT,
    TIMED_REST,
    TIMED_RELEASE_WHOLE,
    TIMED_TICK,
    TIMED_OTHER,
    TIMED_DECODE,
    TIMED_COUNT
};

struct cluster_options {
    uint32_t nodes;
    uint32_t devices_per_node;
    uint32_t cohorts;
    uint32_t queues;      /* in all */
    uint32_t quota;       /* devices per queue */
    uint32_t kinds;       /* how many different cpu requests there are: unlike gangs */
    uint32_t racks;       /* of the nodes, next to each other; 0: there are none */
    const char *required; /* topology of all gangs; NULL: none */
    bool is_fair;
    bool is_quota_only;
    bool preempts;
    bool comes_among_others;      /* who comes was created before many that wait already */
    uint32_t admissions_per_step; /* of the core; 0: no limit */
};

struct cluster;

struct cluster *cluster_new(const struct cluster_options *options);
void cluster_free(struct cluster *cluster);
/* All kinds have been listed; the first pass is run. */
void cluster_sync(struct cluster *cluster);
/* A gang that waits: pods pods, each of so many devices. */
void cluster_add_job(struct cluster *cluster, uint32_t pods, uint32_t devices, int priority);
/* Gangs that run already, until no node has a free device. Before cluster_sync(). */
void cluster_fill(struct cluster *cluster, uint32_t pods, uint32_t devices);
/* The gang that was started first ends; whatever the core starts then is started whole. */
void cluster_end_oldest(struct cluster *cluster);
void cluster_heartbeat(struct cluster *cluster, uint32_t node);
void cluster_set_quota(struct cluster *cluster, uint32_t queue, uint32_t devices);
void cluster_advance(struct cluster *cluster, int64_t ms);

struct series *cluster_series(struct cluster *cluster, enum timed timed);
void cluster_clear_series(struct cluster *cluster);
/* Of the bench's own books, which aren't the core's. */
size_t cluster_own_bytes(struct cluster *cluster);
uint32_t cluster_admitted(const struct cluster *cluster);
/* Let go by the core, and not answered yet. */
uint32_t cluster_let_go(const struct cluster *cluster);
uint32_t cluster_suspended(const struct cluster *cluster);
