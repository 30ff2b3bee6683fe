/* telemetry.c - the log lines and the metrics of the controller. */
#include "daemon.h"

#include <stdio.h>
#include <time.h>

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t wall_ms(void *ctx)
{
    (void)ctx;
    return clock_ms(CLOCK_REALTIME);
}

int64_t daemon_now_ms(void *ctx)
{
    struct daemon *daemon = ctx;
    return steady_time_ms(&daemon->time, clock_ms(CLOCK_REALTIME), clock_ms(CLOCK_MONOTONIC));
}

static void write_line(void *ctx, enum log_level level, struct str line)
{
    (void)ctx;
    (void)level;
    fprintf(stderr, STR_FMT "\n", STR_ARG(line));
}

struct log_sink telemetry_log(enum log_level level)
{
    return (struct log_sink){.write_line = write_line, .now_ms = wall_ms, .min_level = level};
}

/* -- gauges, filled when somebody reads them -----------------------------------------------------
 */

static void collect_queues(struct daemon *daemon)
{
    struct telemetry *telemetry = &daemon->telemetry;
    metric_clear(telemetry->pending);
    metric_clear(telemetry->admitted);
    metric_clear(telemetry->quota_used);
    metric_clear(telemetry->quota_nominal);
    struct arena arena;
    arena_init(&arena);
    struct queue_figures_list list = core_queue_figures(daemon->core, &arena);
    for (uint32_t i = 0; i < list.count; i++) {
        const struct queue_figures *queue = &list.items[i];
        metric_set(telemetry->pending, &queue->queue, queue->pending);
        metric_set(telemetry->admitted, &queue->queue, queue->admitted);
        for (uint32_t c = 0; c < queue->cell_count; c++) {
            const struct cell_figures *cell = &queue->cells[c];
            struct str labels[] = {queue->queue, cell->flavor, cell->resource};
            metric_set(telemetry->quota_used, labels, cell->used_milli);
            metric_set(telemetry->quota_nominal, labels, cell->nominal_milli);
        }
    }
    arena_deinit(&arena);
}

static void collect_drift(struct daemon *daemon)
{
    struct telemetry *telemetry = &daemon->telemetry;
    struct core_drift drift = core_drift_seen(daemon->core);
    struct str uncharged = STR("uncharged");
    struct str vanished = STR("vanished");
    metric_clear(telemetry->drift);
    metric_add(telemetry->drift, &uncharged, (int64_t)drift.uncharged);
    metric_add(telemetry->drift, &vanished, (int64_t)drift.vanished);
    metric_set(telemetry->drift_devices, NULL, drift.devices);
}

static void collect(void *ctx)
{
    struct daemon *daemon = ctx;
    struct telemetry *telemetry = &daemon->telemetry;
    collect_queues(daemon);
    collect_drift(daemon);
    metric_clear(telemetry->api_requests);
    const struct kube_metrics *kube = kube_client_metrics(daemon->client);
    for (uint32_t i = 0; i < kube->request_count; i++) {
        const struct kube_request_count *count = &kube->requests[i];
        char code[16];
        snprintf(code, sizeof(code), "%u", count->code);
        struct str labels[] = {str_from_c(count->verb), str_from_c(count->resource),
                               str_from_c(code)};
        metric_add(telemetry->api_requests, labels, (int64_t)count->count);
    }
    metric_set(telemetry->leader, NULL, daemon->is_leading ? 1 : 0);
    const struct driver_stats *stats = driver_stats(daemon->driver);
    metric_set(telemetry->writes_waiting, NULL,
               (int64_t)stats->job_writes_waiting + stats->other_writes_waiting);
}

#define REGISTER(member, ...)                                                                      \
    telemetry->member = metrics_register(telemetry->metrics, &(struct metric_options){__VA_ARGS__})

void telemetry_open(struct daemon *daemon)
{
    static const int64_t seconds_us[] = {10,   50,    100,   250,   500,    1000,   2500,
                                         5000, 10000, 25000, 50000, 100000, 250000, 1000000};
    struct telemetry *telemetry = &daemon->telemetry;
    telemetry->metrics = metrics_new();
    REGISTER(pending, .name = "tallyman_pending_gangs", .kind = METRIC_GAUGE,
             .help = "Gangs that wait in a queue.", .label_names = {"queue"});
    REGISTER(admitted, .name = "tallyman_admitted_gangs", .kind = METRIC_GAUGE,
             .help = "Gangs that hold a reservation in a queue.", .label_names = {"queue"});
    REGISTER(quota_used, .name = "tallyman_quota_used", .kind = METRIC_GAUGE, .decimals = 3,
             .help = "What the admitted gangs are charged, in the resource's own unit.",
             .label_names = {"queue", "flavor", "resource"});
    REGISTER(quota_nominal, .name = "tallyman_quota_nominal", .kind = METRIC_GAUGE, .decimals = 3,
             .help = "The queue's nominal quota, in the resource's own unit.",
             .label_names = {"queue", "flavor", "resource"});
    REGISTER(drift, .name = "tallyman_ledger_drift_total", .kind = METRIC_COUNTER,
             .help =
                 "Times that the cluster's claims were others than the ledger had them: devices "
                 "that nobody was charged for, claims that were charged for and are gone.",
             .label_names = {"kind"});
    REGISTER(drift_devices, .name = "tallyman_ledger_drift_devices", .kind = METRIC_GAUGE,
             .help = "Devices that are charged beyond what their gangs were admitted with.");
    REGISTER(admissions, .name = "tallyman_admission_attempts_total", .kind = METRIC_COUNTER,
             .help = "PATCHes that admit a gang, by result.", .label_names = {"result"});
    REGISTER(suspensions, .name = "tallyman_suspensions_total", .kind = METRIC_COUNTER,
             .help = "PATCHes that suspend a gang, by result.", .label_names = {"result"});
    REGISTER(step_seconds, .name = "tallyman_step_seconds", .kind = METRIC_HISTOGRAM, .decimals = 6,
             .help = "Time from an event to its decisions.", .buckets = seconds_us,
             .bucket_count = ARRAY_COUNT(seconds_us));
    static const int64_t writes_ms[] = {1, 2, 5, 10, 20, 50, 100, 250, 500, 1000, 5000};
    REGISTER(write_seconds, .name = "tallyman_admission_latency_seconds", .kind = METRIC_HISTOGRAM,
             .decimals = 3, .help = "Time from sending an admission PATCH to its answer.",
             .buckets = writes_ms, .bucket_count = ARRAY_COUNT(writes_ms));
    REGISTER(api_requests, .name = "tallyman_api_requests_total", .kind = METRIC_COUNTER,
             .help = "Requests to the API server; code 0: no answer.",
             .label_names = {"verb", "resource", "code"});
    REGISTER(events, .name = "tallyman_events_total", .kind = METRIC_COUNTER,
             .help = "Events that the core has taken in.");
    REGISTER(malformed, .name = "tallyman_malformed_objects_total", .kind = METRIC_COUNTER,
             .help = "Objects that could not be read and were left out.", .label_names = {"kind"});
    REGISTER(store_degraded, .name = "tallyman_store_degraded", .kind = METRIC_GAUGE,
             .help = "1 while the store can't be written.");
    REGISTER(writes_waiting, .name = "tallyman_writes_waiting", .kind = METRIC_GAUGE,
             .help = "Writes to the API server that wait for their turn.");
    REGISTER(leader, .name = "tallyman_leader", .kind = METRIC_GAUGE,
             .help = "1 in the replica that decides, 0 in those that stand by.");
    metrics_add_collector(telemetry->metrics, collect, daemon);
}

static const char *const outcome_names[] = {
    [WRITE_OK] = "ok",           [WRITE_CONFLICT] = "conflict", [WRITE_GONE] = "gone",
    [WRITE_REFUSED] = "refused", [WRITE_DENIED] = "denied",     [WRITE_RETRY] = "retry"};

static const char *effect_name(const struct effect *effect)
{
    switch (effect->kind) {
    case EFFECT_PATCH_JOB:
        return effect->patch.purpose == PATCH_ADMIT        ? "admit"
               : effect->patch.purpose == PATCH_SUSPEND    ? "suspend"
               : effect->patch.purpose == PATCH_CHECKPOINT ? "ask for a checkpoint"
               : effect->patch.purpose == PATCH_FINISH     ? "let end"
                                                           : "restore";
    case EFFECT_WRITE_ADMISSION:
        return "write admission";
    case EFFECT_DELETE_ADMISSION:
        return "delete admission";
    case EFFECT_RECORD_EVENT:
        return "record event";
    case EFFECT_WRITE_STATUS:
        return "write status";
    case EFFECT_SET_FINALIZER:
        return "set finalizer";
    case EFFECT_MARK_POD:
        return "mark pod";
    case EFFECT_MAKE_REQUEST:
        return "make provisioning request";
    case EFFECT_DELETE_REQUEST:
        return "delete provisioning request";
    case EFFECT_PERSIST:
    case EFFECT_LEDGER:
        break;
    }
    return "";
}

void telemetry_wrote(struct daemon *daemon, const struct effect *effect,
                     const struct driver_answer *answer, int64_t took_ms)
{
    struct telemetry *telemetry = &daemon->telemetry;
    struct str result = str_from_c(outcome_names[answer->outcome]);
    if (effect->kind == EFFECT_PATCH_JOB && effect->patch.purpose == PATCH_ADMIT) {
        metric_add(telemetry->admissions, &result, 1);
        metric_observe(telemetry->write_seconds, NULL, took_ms);
    } else if (effect->kind == EFFECT_PATCH_JOB && effect->patch.purpose == PATCH_SUSPEND) {
        metric_add(telemetry->suspensions, &result, 1);
    }
    bool is_fine = answer->outcome == WRITE_OK;
    bool is_job = effect->kind == EFFECT_PATCH_JOB;
    if (is_fine && !is_job) {
        return;
    }
    struct log_field fields[] = {LOG_STR("write", str_from_c(effect_name(effect))),
                                 LOG_STR("kind", str_from_c(kind_info(effect->object_kind)->name)),
                                 LOG_STR("namespace", effect->namespace_name),
                                 LOG_STR("name", effect->name),
                                 LOG_STR("result", result),
                                 LOG_INT("tookMs", took_ms),
                                 LOG_STR("error", answer->message),
                                 {.key = NULL}};
    bool is_bad = answer->outcome == WRITE_REFUSED || answer->outcome == WRITE_DENIED ||
                  answer->outcome == WRITE_RETRY;
    log_line(&daemon->log, is_bad ? LOG_WARN : LOG_INFO, is_fine ? "wrote" : "write not done",
             fields);
}

void telemetry_effects(struct daemon *daemon, const struct effects *effects)
{
    (void)effects;
    metric_add(daemon->telemetry.events, NULL, 1);
    metric_observe(daemon->telemetry.step_seconds, NULL,
                   (int64_t)(uv_hrtime() - daemon->step_started_ns) / 1000);
}
