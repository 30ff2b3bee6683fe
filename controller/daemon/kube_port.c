/* kube_port.c - between the driver and the API server. */
#include "daemon.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "tallyman/base/alloc.h"
#include "tallyman/driver/render.h"
#include "tallyman/kube/writer.h"

/* One write on its way. */
struct flight {
    struct daemon *daemon;
    uint64_t id;
    struct effect effect; /* for log and metrics; texts are the driver's until the answer */
    int64_t sent_ms;
};

static enum write_outcome outcome_of(const struct kube_response *response)
{
    switch (response->outcome) {
    case KUBE_DONE:
        return WRITE_OK;
    case KUBE_CONFLICT:
        return WRITE_CONFLICT;
    case KUBE_NOT_FOUND:
    case KUBE_GONE:
        return WRITE_GONE;
    case KUBE_INVALID:
        return response->status != NULL && kube_status_names_field(response->status, "metadata.uid")
                   ? WRITE_GONE
                   : WRITE_REFUSED;
    case KUBE_FORBIDDEN:
        /* A policy's refusal is about the object; the authorizer's is about us, and a server that
         * has just been started doesn't know our rights yet. */
        return str_find(response->message, STR("\" cannot ")) < response->message.len
                   ? WRITE_DENIED
                   : WRITE_REFUSED;
    case KUBE_RETRY:
    case KUBE_CANCELLED:
        return WRITE_RETRY;
    }
    return WRITE_REFUSED;
}

static void on_written(void *ctx, const struct kube_response *response)
{
    struct flight *flight = ctx;
    struct daemon *daemon = flight->daemon;
    struct driver_answer answer = {.outcome = outcome_of(response),
                                   .message = response->message,
                                   .retry_after_ms = response->retry_after_ms,
                                   .is_overloaded = response->code == 429};
    if (response->meta != NULL) {
        answer.resource_version = response->meta->resource_version;
    }
    if (response->outcome != KUBE_CANCELLED) {
        telemetry_wrote(daemon, &flight->effect, &answer, daemon_now_ms(daemon) - flight->sent_ms);
        driver_write_done(daemon->driver, flight->id, &answer);
    }
    mem_free(flight);
}

static void write_event(struct daemon *daemon, const struct effect *effect, struct kube_done done)
{
    char host[128] = "tallyman";
    (void)gethostname(host, sizeof(host) - 1);
    char name[320];
    int64_t now_ms = daemon_now_ms(daemon);
    snprintf(name, sizeof(name), "%.*s.%" PRIx64 "%04" PRIx64, (int)str_take(effect->name, 230).len,
             effect->name.ptr, (uint64_t)now_ms, ++daemon->event_serial & 0xffff);
    struct kube_event event = {
        .name = str_from_c(name),
        .namespace_name = effect->namespace_name,
        .type = str_from_c(effect->note.is_warning ? "Warning" : "Normal"),
        .reason = str_from_c(effect->note.reason),
        .action = str_from_c(effect->note.action),
        .note = effect->note.text,
        .instance = str_from_c(host),
        .at_ms = now_ms,
        .regarding_kind = effect->object_kind,
        .regarding_namespace = effect->namespace_name,
        .regarding_name = effect->name,
        .regarding_uid = effect->uid,
    };
    (void)kube_create_event(daemon->client, &event, done);
}

void kube_port_write(void *ctx, const struct driver_write *write)
{
    struct daemon *daemon = ctx;
    if (!leader_may_write(daemon)) {
        return; /* the process is about to end */
    }
    const struct effect *effect = write->effect;
    struct flight *flight = MEM_NEW(struct flight);
    *flight = (struct flight){
        .daemon = daemon, .id = write->id, .effect = *effect, .sent_ms = daemon_now_ms(daemon)};
    struct kube_done done = {on_written, flight};
    struct kube_target target = {.kind = effect->object_kind,
                                 .namespace_name = effect->namespace_name,
                                 .name = effect->name};
    struct json_writer *writer = json_writer_new();
    switch (effect->kind) {
    case EFFECT_PATCH_JOB:
        render_job_patch(writer, effect);
        (void)kube_patch_merge(daemon->client, &target, json_writer_text(writer), done);
        break;
    case EFFECT_WRITE_ADMISSION:
        render_admission(writer, write->admission);
        (void)kube_apply(daemon->client, &target, json_writer_text(writer), done);
        break;
    case EFFECT_DELETE_ADMISSION:
        (void)kube_delete(daemon->client, &target, effect->uid, done);
        break;
    case EFFECT_RECORD_EVENT:
        write_event(daemon, effect, done);
        break;
    case EFFECT_WRITE_STATUS:
        target.subresource = "status";
        render_status(writer, write->status);
        (void)kube_apply(daemon->client, &target, json_writer_text(writer), done);
        break;
    case EFFECT_SET_FINALIZER:
        render_finalizer(writer, effect);
        (void)kube_patch_merge(daemon->client, &target, json_writer_text(writer), done);
        break;
    case EFFECT_MARK_POD:
        render_pod_mark(writer, effect);
        (void)kube_patch_merge(daemon->client, &target, json_writer_text(writer), done);
        break;
    case EFFECT_MAKE_REQUEST:
        request_port_make(daemon, write, done);
        break;
    case EFFECT_DELETE_REQUEST:
        (void)kube_delete(daemon->client, &target, effect->uid, done);
        break;
    case EFFECT_PERSIST:
    case EFFECT_LEDGER:
        mem_free(flight); /* never a write to the API server */
        break;
    }
    json_writer_free(writer);
}

/* -- events from the API server -----------------------------------------------------------------
 */

static void on_object(void *ctx, enum watch_event_type type, const struct object *object,
                      bool is_bare)
{
    (void)is_bare;
    struct daemon *daemon = ctx;
    if (type == WATCH_DELETED) {
        driver_deleted(daemon->driver, object);
    } else {
        driver_object(daemon->driver, object);
    }
}

static void tell_ready(struct daemon *daemon)
{
    log_line(&daemon->log, LOG_INFO,
             daemon->is_leading ? "all kinds are listed; deciding"
                                : "all kinds are listed; standing by",
             NULL);
}

static bool is_absent(const struct daemon *daemon, enum object_kind kind)
{
    return (daemon->absent_kinds & (1u << kind)) != 0;
}

/* The kind has come or gone since it was first complete. */
static void tell_kind(struct daemon *daemon, enum object_kind kind, bool was_absent)
{
    if (daemon->is_leading && was_absent != is_absent(daemon, kind)) {
        driver_synced(daemon->driver, kind, is_absent(daemon, kind));
    }
}

static void on_complete(struct daemon *daemon, enum object_kind kind, const char *how, bool is_gone)
{
    uint32_t bit = 1u << kind;
    bool was_absent = is_absent(daemon, kind);
    daemon->absent_kinds = is_gone ? daemon->absent_kinds | bit : daemon->absent_kinds & ~bit;
    if ((daemon->synced_kinds & bit) != 0) {
        tell_kind(daemon, kind, was_absent);
        return;
    }
    daemon->synced_kinds |= 1u << kind;
    struct log_field fields[] = {LOG_STR("kind", str_from_c(kind_info(kind)->name)), {.key = NULL}};
    log_line(&daemon->log, LOG_DEBUG, how, fields);
    if (daemon->is_leading) {
        driver_synced(daemon->driver, kind, is_absent(daemon, kind));
    }
    bool is_all = true;
    for (int k = KIND_NONE + 1; k < KIND_COUNT; k++) {
        is_all = is_all && (daemon->synced_kinds & (1u << k)) != 0;
    }
    if (is_all && !daemon->is_ready) {
        daemon->is_ready = true;
        tell_ready(daemon);
    }
}

void kube_port_lead(struct daemon *daemon)
{
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        if ((daemon->synced_kinds & (1u << kind)) != 0) {
            driver_synced(daemon->driver, (enum object_kind)kind,
                          is_absent(daemon, (enum object_kind)kind));
        }
    }
    if (daemon->is_ready) {
        tell_ready(daemon);
    }
}

static void on_synced(void *ctx, enum object_kind kind)
{
    on_complete(ctx, kind, "listed", false);
}

static void on_absent(void *ctx, enum object_kind kind)
{
    struct daemon *daemon = ctx;
    struct log_field fields[] = {LOG_STR("kind", str_from_c(kind_info(kind)->name)), {.key = NULL}};
    /* Before Kubernetes 1.37 nobody has DeviceTaintRules, and most clusters have no autoscaler that
     * takes requests: nobody misses them. */
    bool is_rare = kind == KIND_DEVICE_TAINT_RULE || kind == KIND_PROVISIONING_REQUEST;
    log_line(&daemon->log, is_rare ? LOG_DEBUG : LOG_WARN,
             "the API server doesn't serve this kind; looked for again later", fields);
    on_complete(daemon, kind, "absent", true);
}

static void on_malformed(void *ctx, enum object_kind kind, const struct object_meta *meta,
                         const struct err *why)
{
    struct daemon *daemon = ctx;
    struct str name = str_from_c(kind_info(kind)->name);
    metric_add(daemon->telemetry.malformed, &name, 1);
    struct log_field fields[] = {LOG_STR("kind", name),
                                 LOG_STR("namespace", meta->namespace_name),
                                 LOG_STR("name", meta->name),
                                 LOG_STR("error", err_text(why)),
                                 {.key = NULL}};
    log_line(&daemon->log, LOG_WARN, "an object can't be read and is left out", fields);
}

static void on_trouble(void *ctx, enum object_kind kind, struct str message, int64_t wait_ms)
{
    struct daemon *daemon = ctx;
    struct log_field fields[] = {LOG_STR("kind", str_from_c(kind_info(kind)->name)),
                                 LOG_STR("error", message),
                                 LOG_INT("retryInMs", wait_ms),
                                 {.key = NULL}};
    log_line(&daemon->log, LOG_WARN, "watching is interrupted", fields);
}

void kube_port_open_informers(struct daemon *daemon)
{
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        struct kube_informer_options options = {.client = daemon->client,
                                                .kind = (enum object_kind)kind,
                                                .handler = {.on_object = on_object,
                                                            .on_synced = on_synced,
                                                            .on_absent = on_absent,
                                                            .on_malformed = on_malformed,
                                                            .on_trouble = on_trouble,
                                                            .ctx = daemon}};
        daemon->informers[kind] = kube_informer_open(&options);
    }
}
