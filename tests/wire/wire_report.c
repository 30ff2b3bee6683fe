#include "wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

const char *kind_name(enum object_kind kind)
{
    return kind_info(kind)->name;
}

enum object_kind kind_by_name(const char *name)
{
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        if (strcmp(kind_name((enum object_kind)kind), name) == 0) {
            return (enum object_kind)kind;
        }
    }
    fprintf(stderr, "wire_client: no kind \"%s\"\n", name);
    exit(2);
}

/* -- what the informers say -------------------------------------------------------------------- */

static void on_sync_start(void *ctx, enum object_kind kind)
{
    (void)ctx;
    printf("sync_start %s\n", kind_name(kind));
}

static void on_object(void *ctx, enum watch_event_type type, const struct object *object,
                      bool is_bare)
{
    static const char *const names[] = {
        [WATCH_ADDED] = "ADDED", [WATCH_MODIFIED] = "MODIFIED", [WATCH_DELETED] = "DELETED"};
    const struct object_meta *meta = object->value;
    struct str note = string_map_get(&meta->annotations, "note");
    (void)ctx;
    wire.objects[object->kind]++;
    if (!wire.is_quiet) {
        printf("%s %s " STR_FMT "/" STR_FMT " uid=" STR_FMT " rv=" STR_FMT "%s%s" STR_FMT "\n",
               names[type], kind_name(object->kind), STR_ARG(meta->namespace_name),
               STR_ARG(meta->name), STR_ARG(meta->uid), STR_ARG(meta->resource_version),
               is_bare ? " bare" : "", str_is_set(note) ? " note=" : "",
               STR_ARG(str_take(note, 200)));
    }
}

static void on_synced(void *ctx, enum object_kind kind)
{
    struct rusage usage;
    (void)ctx;
    getrusage(RUSAGE_SELF, &usage);
    if (wire.is_quiet) {
        printf("synced %s objects=%" PRIu64 " user_ms=%ld system_ms=%ld max_rss_kb=%ld\n",
               kind_name(kind), wire.objects[kind],
               usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000,
               usage.ru_stime.tv_sec * 1000 + usage.ru_stime.tv_usec / 1000, usage.ru_maxrss);
    } else {
        printf("synced %s\n", kind_name(kind));
    }
}

static void on_absent(void *ctx, enum object_kind kind)
{
    (void)ctx;
    printf("absent %s\n", kind_name(kind));
}

static void on_malformed(void *ctx, enum object_kind kind, const struct object_meta *meta,
                         const struct err *why)
{
    (void)ctx;
    printf("malformed %s " STR_FMT "/" STR_FMT ": %s\n", kind_name(kind),
           STR_ARG(meta->namespace_name), STR_ARG(meta->name), why->text);
}

static void on_trouble(void *ctx, enum object_kind kind, struct str message, int64_t wait_ms)
{
    (void)ctx;
    printf("trouble %s wait=%" PRId64 ": " STR_FMT "\n", kind_name(kind), wait_ms,
           STR_ARG(message));
}

struct kube_informer_handler report_informer(void)
{
    return (struct kube_informer_handler){
        .on_sync_start = on_sync_start,
        .on_object = on_object,
        .on_synced = on_synced,
        .on_absent = on_absent,
        .on_malformed = on_malformed,
        .on_trouble = on_trouble,
    };
}

/* -- what the requests say --------------------------------------------------------------------- */

void report_done(void *ctx, const struct kube_response *response)
{
    const char *name = ctx;
    printf("%s %s code=%u maybe=%d retry_after=%" PRId64, name,
           kube_outcome_name(response->outcome), response->code, response->may_have_happened,
           response->retry_after_ms);
    if (response->meta != NULL) {
        printf(" uid=" STR_FMT " rv=" STR_FMT, STR_ARG(response->meta->uid),
               STR_ARG(response->meta->resource_version));
    }
    if (response->status != NULL) {
        printf(" reason=" STR_FMT " uid_cause=%d", STR_ARG(response->status->reason),
               kube_status_names_field(response->status, "metadata.uid"));
    }
    printf(" body_bytes=%zu: " STR_FMT "\n", response->body.len, STR_ARG(response->message));
    wire.last_call = NULL;
}

void report_metrics(void)
{
    const struct kube_metrics *metrics = kube_client_metrics(wire.client);
    for (uint32_t i = 0; i < metrics->request_count; i++) {
        const struct kube_request_count *series = &metrics->requests[i];
        printf("metric requests verb=%s resource=%s code=%u count=%" PRIu64 "\n", series->verb,
               series->resource, series->code, series->count);
    }
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        const struct kube_kind_metrics *m = &metrics->kinds[kind];
        if (wire.informers[kind] != NULL) {
            printf("metric %s starts=%" PRIu64 " syncs=%" PRIu64 " events=%" PRIu64
                   " bookmarks=%" PRIu64 " malformed=%" PRIu64 " vanished=%" PRIu64
                   " reversals=%" PRIu64 " known=%" PRIu64 "\n",
                   kind_name((enum object_kind)kind), m->watch_starts, m->full_syncs, m->events,
                   m->bookmarks, m->malformed_objects, m->vanished_objects, m->version_reversals,
                   m->known_objects);
        }
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("metric client received=%" PRIu64 " credentials=%" PRIu64 " in_flight=%u queued=%u "
           "user_ms=%ld max_rss_kb=%ld\n",
           metrics->received_bytes, metrics->credential_reads, metrics->in_flight, metrics->queued,
           usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000, usage.ru_maxrss);
}
