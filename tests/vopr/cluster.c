/* cluster.c - the objects of a run. */
#include "vopr.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "tallyman/api/codec.h"

#define OBJECT_BYTES 4096

static const char *const queue_names[VOPR_QUEUES] = {"a", "b", "c"};
static const int64_t quotas[VOPR_QUEUES][RESOURCE_COUNT] = {{4000, 3}, {4000, 3}, {4000, 6}};

static void PRINTF_LIKE(3, 4) load(struct vopr *v, enum object_kind kind, const char *format, ...)
{
    char text[OBJECT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    assert_true(length > 0 && length < OBJECT_BYTES);
    struct arena arena;
    arena_init(&arena);
    void *value = NULL;
    struct err err;
    if (rc_failed(decode_json(&arena, kind_info(kind)->schema, str_from_c(text), &value, &err)) ||
        rc_failed(sim_load(v->sim, &(struct object){.kind = kind, .value = value}, &err))) {
        fail_msg("%s\n%s", err.text, text);
    }
    arena_deinit(&arena);
}

void cluster_queue(struct vopr *v, uint32_t queue, const char *stop_policy)
{
    static const char *const strategies[VOPR_QUEUES] = {"BestEffortFIFO", "StrictFIFO", "Backfill"};
    const int64_t *quota = v->quota[queue];
    load(v, KIND_QUEUE,
         "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"namespaceSelector\":{},%s"
         "\"queueingStrategy\":\"%s\",\"stopPolicy\":\"%s\",\"starvationBound\":\"5m\","
         "\"podsReadyTimeout\":\"2m\",\"requeue\":{\"base\":\"10s\",\"max\":\"60s\"},"
         "\"preemption\":{\"withinQueue\":\"LowerPriority\"%s},"
         "\"resourceGroups\":[{\"flavors\":[{\"name\":\"default\",\"resources\":["
         "{\"name\":\"cpu\",\"nominalQuota\":\"%lldm\"},"
         "{\"name\":\"gpu.example.com\",\"nominalQuota\":\"%lld\"}]}]}]}}",
         queue_names[queue], queue < 2 ? "\"cohort\":\"lab\"," : "", strategies[queue], stop_policy,
         queue < 2 ? ",\"reclaimWithinCohort\":\"Any\"" : "", (long long)quota[CPU_MILLI],
         (long long)quota[DEVICES]);
}

struct str queue_name(uint32_t queue)
{
    return str_from_c(queue_names[queue]);
}

static void node_name(uint32_t node, char name[16])
{
    (void)snprintf(name, 16, "n%u", node + 1);
}

void cluster_node(struct vopr *v, uint32_t node)
{
    char name[16];
    node_name(node, name);
    load(v, KIND_NODE,
         "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"kubernetes.io/hostname\":\"%s\"}},"
         "\"status\":{\"allocatable\":{\"cpu\":\"%dm\",\"memory\":\"8Gi\",\"pods\":\"%d\"},"
         "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
         name, name, NODE_CPU_MILLI, NODE_PODS);
}

void cluster_slice(struct vopr *v, uint32_t node, uint32_t devices, uint32_t generation)
{
    char name[16];
    char items[256] = "";
    v->devices[node] = devices;
    node_name(node, name);
    for (uint32_t i = 0; i < devices; i++) {
        size_t used = strlen(items);
        (void)snprintf(items + used, sizeof(items) - used, "%s{\"name\":\"gpu-%u\"}",
                       i == 0 ? "" : ",", i);
    }
    load(v, KIND_RESOURCE_SLICE,
         "{\"metadata\":{\"name\":\"slice-%s\"},\"spec\":{\"driver\":\"gpu.example.com\","
         "\"nodeName\":\"%s\",\"pool\":{\"name\":\"%s\",\"generation\":%u,"
         "\"resourceSliceCount\":1},\"devices\":[%s]}}",
         name, name, name, generation, items);
}

void cluster_priority_class(struct vopr *v)
{
    load(v, KIND_PRIORITY_CLASS, "{\"metadata\":{\"name\":\"high\"},\"value\":%lld}",
         (long long)v->high_value);
}

const struct vopr_shape *cluster_shape(const struct vopr *v, struct str job_uid)
{
    for (uint32_t i = 0; i < v->made_count; i++) {
        if (str_eq_c(job_uid, v->made[i].uid)) {
            return &v->made[i].shape;
        }
    }
    return NULL;
}

void cluster_given(struct vopr *v)
{
    load(v, KIND_NAMESPACE, "{\"metadata\":{\"name\":\"default\"}}");
    v->high_value = 100;
    cluster_priority_class(v);
    load(v, KIND_DEVICE_CLASS,
         "{\"metadata\":{\"name\":\"gpu.example.com\"},\"spec\":{\"selectors\":[{\"cel\":"
         "{\"expression\":\"device.driver == 'gpu.example.com'\"}}]}}");
    load(v, KIND_RESOURCE_CLAIM_TEMPLATE,
         "{\"metadata\":{\"name\":\"one-gpu\",\"namespace\":\"default\"},\"spec\":{\"spec\":"
         "{\"devices\":{\"requests\":[{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":"
         "\"gpu.example.com\",\"allocationMode\":\"ExactCount\",\"count\":1}}]}}}}");
    memcpy(v->quota, quotas, sizeof(quotas));
    memcpy(v->quota_seen, quotas, sizeof(quotas));
    for (uint32_t i = 0; i < VOPR_NODES; i++) {
        cluster_node(v, i);
        cluster_slice(v, i, NODE_DEVICES, 1);
    }
    for (uint32_t i = 0; i < VOPR_QUEUES; i++) {
        cluster_queue(v, i, "None");
    }
}

struct str job_name(uint32_t number)
{
    static const char *const names[VOPR_JOBS] = {"j0", "j1", "j2", "j3", "j4", "j5", "j6", "j7"};
    return str_from_c(names[number]);
}

/* How it asks for that. */
static void draw_ways(struct vopr_shape *shape, uint8_t draw)
{
    bool is_plain = shape->per_pod[DEVICES] == 0;
    shape->is_by_limits = draw % 13 == 1;
    shape->has_zero = draw % 9 == 4;
    shape->has_sidecar = is_plain && draw % 17 == 2;
    shape->is_shared = is_plain && !shape->has_sidecar && shape->min_count == 0 && draw % 10 == 6;
    if (shape->has_sidecar) { /* 500m beside a sidecar of 500m, after an init container of 1000m */
        shape->per_pod[CPU_MILLI] = 1500;
        shape->pods = shape->pods > 2 ? 2 : shape->pods;
        shape->min_count = 0;
        shape->is_partial = shape->is_by_limits = false;
    } else if (is_plain && draw % 19 == 3) { /* one to a node */
        shape->per_pod[CPU_MILLI] = 2500;
        shape->pods = 1;
        shape->min_count = 0;
        shape->is_partial = false;
    }
}

/* Every shape fits the cluster and its queue when they are whole. */
static struct vopr_shape draw_shape(uint8_t draw)
{
    static const int64_t runs_s[] = {5, 60, 600, 3000};
    struct vopr_shape shape = {.queue = draw % VOPR_QUEUES,
                               .pods = 1 + draw / 3 % 4,
                               .per_pod = {draw % 5 == 0 ? 1000 : 500, draw % 2},
                               .is_high = draw % 7 == 0,
                               .run_s = runs_s[draw / 12 % 4]};
    if (shape.per_pod[DEVICES] > 0 && shape.pods > 3) {
        shape.pods = 3;
    }
    shape.is_partial = draw % 11 == 0;
    shape.min_count = draw % 11 < 3 && shape.pods > 1 ? shape.pods - 1 : 0;
    draw_ways(&shape, draw);
    return shape;
}

/* What the pods' containers ask for, and the claims. */
static void write_containers(const struct vopr_shape *shape, uint32_t number, char text[1024])
{
    static const char *const sidecars =
        "\"initContainers\":[{\"name\":\"beside\",\"image\":\"x\",\"restartPolicy\":\"Always\","
        "\"resources\":{\"requests\":{\"cpu\":\"500m\"}}},{\"name\":\"before\",\"image\":\"x\","
        "\"resources\":{\"requests\":{\"cpu\":\"1\"}}}],";
    char claims[192] = "";
    bool has_claim = shape->is_shared || shape->per_pod[DEVICES] > 0;
    if (shape->is_shared) {
        (void)snprintf(claims, sizeof(claims),
                       ",\"resourceClaims\":[{\"name\":\"gpu\",\"resourceClaimName\":"
                       "\"shared-%u\"}]",
                       number);
    } else if (has_claim) {
        (void)snprintf(claims, sizeof(claims),
                       ",\"resourceClaims\":[{\"name\":\"gpu\",\"resourceClaimTemplateName\":"
                       "\"one-gpu\"}]");
    }
    (void)snprintf(text, 1024,
                   "%s\"containers\":[{\"name\":\"main\",\"image\":\"x\",\"resources\":{\"%s\":{"
                   "\"cpu\":\"%lldm\",\"memory\":\"32Mi\"%s}%s}}]%s",
                   shape->has_sidecar ? sidecars : "", shape->is_by_limits ? "limits" : "requests",
                   shape->has_sidecar ? 500LL : (long long)shape->per_pod[CPU_MILLI],
                   shape->has_zero ? ",\"example.com/none\":\"0\"" : "",
                   has_claim ? ",\"claims\":[{\"name\":\"gpu\"}]" : "", claims);
}

static void load_shared_claim(struct vopr *v, uint32_t number)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "shared-%u", number);
    if (sim_find(v->sim, KIND_RESOURCE_CLAIM, STR("default"), str_from_c(name)) == NULL) {
        load(v, KIND_RESOURCE_CLAIM,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\"},\"spec\":{"
             "\"devices\":{\"requests\":[{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":"
             "\"gpu.example.com\",\"allocationMode\":\"ExactCount\",\"count\":1}}]}}}",
             name);
    }
}

bool cluster_job(struct vopr *v, uint32_t number, uint8_t draw)
{
    if (sim_find(v->sim, KIND_JOB, STR("default"), job_name(number)) != NULL ||
        v->made_count == VOPR_MADE) {
        return false;
    }
    struct vopr_shape shape = draw_shape(draw);
    char min_count[96] = "";
    char containers[1024];
    if (shape.min_count > 0) {
        (void)snprintf(min_count, sizeof(min_count), ",\"tallyman.dev/min-count\":\"%lld\"",
                       (long long)shape.min_count);
    }
    if (shape.is_shared) {
        load_shared_claim(v, number);
    }
    write_containers(&shape, number, containers);
    load(
        v, KIND_JOB,
        "{\"metadata\":{\"name\":\"" STR_FMT "\",\"namespace\":\"default\",\"labels\":{"
        "\"tallyman.dev/queue\":\"%s\"%s},\"annotations\":{\"example.com/run-for\":\"%llds\"%s%s}},"
        "\"spec\":{\"parallelism\":%lld,\"completions\":%lld,\"backoffLimit\":3,\"template\":{"
        "\"spec\":{\"restartPolicy\":\"Never\",%s}}}}",
        STR_ARG(job_name(number)), queue_names[shape.queue],
        shape.is_high ? ",\"tallyman.dev/priority-class\":\"high\"" : "", (long long)shape.run_s,
        min_count, shape.is_partial ? ",\"tallyman.dev/partial\":\"true\"" : "",
        (long long)shape.pods, (long long)shape.pods, containers);
    const struct job *job = sim_find(v->sim, KIND_JOB, STR("default"), job_name(number));
    struct vopr_made *made = &v->made[v->made_count++];
    (void)snprintf(made->uid, sizeof(made->uid), STR_FMT, STR_ARG(job->meta.uid));
    made->shape = shape;
    made->made_ms = sim_now_ms(v->sim);
    v->is_admitted[number] = v->is_scaled[number] = v->is_restarted[number] = false;
    return true;
}

void cluster_foreign_pod(struct vopr *v, uint32_t number, uint32_t node, int64_t cpu_milli)
{
    char name[16];
    node_name(node, name);
    load(v, KIND_POD,
         "{\"metadata\":{\"name\":\"foreign-%u\",\"namespace\":\"default\",\"annotations\":{"
         "\"example.com/run-for\":\"300s\"}},\"spec\":{\"nodeSelector\":{\"kubernetes.io/"
         "hostname\":\"%s\"},\"containers\":[{"
         "\"name\":\"main\",\"image\":\"x\",\"resources\":{\"requests\":{\"cpu\":\"%lldm\"}}}]}}",
         number, name, (long long)cpu_milli);
}
