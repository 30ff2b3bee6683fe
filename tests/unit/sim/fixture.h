/* fixture.h - a virtual cluster from YAML, and short questions to it. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "tallyman/api/codec.h"
#include "tallyman/base/text.h"
#include "tallyman/sim/sim.h"

struct cluster {
    struct sim *sim;
    struct arena arena;
    struct text trace; /* "[ms] job what\n" of every note */
    bool checks;       /* sim_check() at every note */
    enum sim_fault faults[64];
    uint32_t fault_count;
    uint32_t writes;
};

static inline const char *note_word(enum sim_note_kind kind)
{
    static const char *const words[] = {
        [SIM_JOB_SUBMITTED] = "submitted", [SIM_JOB_ADMITTED] = "admitted",
        [SIM_JOB_SUSPENDED] = "suspended", [SIM_JOB_WAITS] = "waits",
        [SIM_JOB_WHOLE] = "whole",         [SIM_JOB_BROKEN] = "broken",
        [SIM_JOB_FINISHED] = "finished",   [SIM_JOB_DELETED] = "deleted",
        [SIM_POD_BOUND] = "bound",         [SIM_POD_UNSCHEDULABLE] = "unschedulable",
        [SIM_POD_ENDED] = "ended",         [SIM_EVENT] = "event",
    };
    return words[kind];
}

static inline void cluster_note(void *ctx, const struct sim_note *note)
{
    struct cluster *cluster = ctx;
    text_addf(&cluster->trace, "[%lld] " STR_FMT " %s", (long long)note->at_ms, STR_ARG(note->job),
              note_word(note->kind));
    if (!str_is_empty(note->node)) {
        text_addf(&cluster->trace, " " STR_FMT, STR_ARG(note->node));
    }
    if (!str_is_empty(note->text)) {
        text_addf(&cluster->trace, " " STR_FMT, STR_ARG(note->text));
    }
    text_addf(&cluster->trace, "\n");
}

static inline enum sim_fault cluster_fault(void *ctx, const struct driver_write *write)
{
    (void)write;
    struct cluster *cluster = ctx;
    uint32_t at = cluster->writes++;
    return at < cluster->fault_count ? cluster->faults[at] : SIM_FAULT_NONE;
}

static inline struct cluster *cluster_new(struct sim_options options)
{
    struct cluster *cluster = calloc(1, sizeof(*cluster));
    assert_non_null(cluster);
    arena_init(&cluster->arena);
    text_init(&cluster->trace, &cluster->arena, 16u * 1024 * 1024);
    options.ctx = cluster;
    options.on_note = cluster_note;
    options.fault = cluster_fault;
    cluster->sim = sim_new(&options);
    return cluster;
}

static inline void cluster_free(struct cluster *cluster)
{
    sim_free(cluster->sim);
    arena_deinit(&cluster->arena);
    free(cluster);
}

static inline struct rc cluster_take(void *ctx, const struct manifest *manifest, struct err *err)
{
    struct cluster *cluster = ctx;
    return sim_load(cluster->sim, &manifest->object, err);
}

static inline struct rc cluster_try(struct cluster *cluster, const char *yaml, struct err *err)
{
    return manifests_read(&cluster->arena, STR("test.yaml"), str_from_c(yaml), cluster_take,
                          cluster, err);
}

static inline void given(struct cluster *cluster, const char *yaml)
{
    struct err err;
    if (rc_failed(cluster_try(cluster, yaml, &err))) {
        fail_msg("%s", err.text);
    }
}

static inline void given_nodes(struct cluster *cluster, int count, const char *cpu)
{
    for (int i = 1; i <= count; i++) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml),
                 "apiVersion: v1\nkind: Node\nmetadata: {name: n%d, labels: "
                 "{kubernetes.io/hostname: n%d}}\n"
                 "status: {allocatable: {cpu: '%s', memory: 16Gi, pods: '110'}, "
                 "conditions: [{type: Ready, status: 'True'}]}\n",
                 i, i, cpu);
        given(cluster, yaml);
    }
}

/* Devices gpu-0… of driver and class gpu.example.com on node n<node>. */
static inline void given_devices(struct cluster *cluster, int node, int count)
{
    char yaml[1024];
    int at = snprintf(yaml, sizeof(yaml),
                      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\n"
                      "metadata: {name: s%d}\n"
                      "spec:\n  driver: gpu.example.com\n  nodeName: n%d\n"
                      "  pool: {name: n%d, generation: 1, resourceSliceCount: 1}\n  devices:\n",
                      node, node, node);
    for (int i = 0; i < count; i++) {
        at += snprintf(yaml + at, sizeof(yaml) - (size_t)at, "  - name: gpu-%d\n", i);
    }
    given(cluster, yaml);
}

#define GPU_CLASS                                                                                  \
    "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu.example.com}\n"       \
    "spec: {selectors: [{cel: {expression: 'device.driver == \"gpu.example.com\"'}}]}\n---\n"      \
    "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\n"                                \
    "metadata: {name: one-gpu, namespace: ml}\n"                                                   \
    "spec: {spec: {devices: {requests: [{name: gpu, exactly: "                                     \
    "{deviceClassName: gpu.example.com}}]}}}\n---\n"

#define QUEUE_RESEARCH                                                                             \
    "apiVersion: tallyman.dev/v1beta1\nkind: Queue\nmetadata: {name: research}\n"                  \
    "spec: {namespaceSelector: {}, resourceGroups: [{flavors: [{name: default, resources: "        \
    "[{name: gpu.example.com, nominalQuota: '100'}]}]}]}\n---\n"                                   \
    "apiVersion: v1\nkind: Namespace\nmetadata: {name: ml}\n---\n"

struct job_args {
    const char *name;
    int pods;
    const char *labels;      /* "tallyman.dev/queue: research" */
    const char *annotations; /* "example.com/run-for: 10m" */
    const char *spec;        /* further lines of spec: "suspend: true, " */
    const char *pod_spec;    /* further members of the pod's spec: "priorityClassName: high, " */
    bool has_gpu;
};

/* An Indexed Job in namespace ml whose pods ask for 1 cpu. */
static inline void given_job(struct cluster *cluster, struct job_args args)
{
    char yaml[2048];
    snprintf(yaml, sizeof(yaml),
             "apiVersion: batch/v1\nkind: Job\n"
             "metadata: {name: %s, namespace: ml, labels: {%s}, annotations: {%s}}\n"
             "spec: {%s completionMode: Indexed, completions: %d, parallelism: %d, template: "
             "{spec: {%s containers: [{name: c, resources: {requests: {cpu: '1'}}}]%s}}}\n",
             args.name, args.labels == NULL ? "" : args.labels,
             args.annotations == NULL ? "" : args.annotations, args.spec == NULL ? "" : args.spec,
             args.pods, args.pods, args.pod_spec == NULL ? "" : args.pod_spec,
             args.has_gpu ? ", resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]"
                          : "");
    given(cluster, yaml);
}

static inline struct sim_job_state job_state(const struct cluster *cluster, const char *name)
{
    struct sim_job_state state;
    assert_true(sim_job_state(cluster->sim, STR("ml"), str_from_c(name), &state));
    return state;
}

static inline const struct job *job_of(const struct cluster *cluster, const char *name)
{
    const struct job *job = sim_find(cluster->sim, KIND_JOB, STR("ml"), str_from_c(name));
    assert_non_null(job);
    return job;
}

static inline void check_holds(const struct cluster *cluster)
{
    struct err err;
    if (rc_failed(sim_check(cluster->sim, &err))) {
        fail_msg("%s", err.text);
    }
}

static inline bool trace_has(const struct cluster *cluster, const char *part)
{
    struct str trace = text_str(&cluster->trace);
    return str_find(trace, str_from_c(part)) < trace.len;
}
