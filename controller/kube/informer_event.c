/* What a stream says, and what of it the handler is told. */
#include "informer_internal.h"

#include <assert.h>
#include <string.h>

#include "tallyman/base/limits.h"

#define END_MARK "k8s.io/initial-events-end"

static void informer_tell(struct kube_informer *informer, enum watch_event_type type,
                          const struct object *object, bool is_bare)
{
    const struct kube_informer_handler *handler = &informer->options.handler;
    if (informer->state == INFORMER_CLOSING) {
        return;
    }
    informer->metrics->events++;
    handler->on_object(handler->ctx, type, object, is_bare);
}

static void informer_tell_bare_deletion(struct kube_informer *informer,
                                        const struct known_item *item)
{
    struct object_meta *meta = informer->bare;
    *meta = (struct object_meta){
        .name = item->name,
        .namespace_name = item->namespace_name,
        .uid = item->uid,
        .resource_version = item->resource_version,
    };
    struct object object = {.kind = informer->kind->kind, .value = meta};
    informer_tell(informer, WATCH_DELETED, &object, true);
    *meta = (struct object_meta){0};
}

/* -- versions ---------------------------------------------------------------------------------- */

/* A resourceVersion is a number that only grows, as clients may rely on since 1.35 (KEP-5504). 0:
 * it isn't one, and then nothing can be compared. */
static uint64_t version_number(struct str version)
{
    uint64_t number = 0;
    for (size_t i = 0; i < version.len; i++) {
        if (version.ptr[i] < '0' || version.ptr[i] > '9' || number > UINT64_MAX / 10 - 1) {
            return 0;
        }
        number = number * 10 + (uint64_t)(version.ptr[i] - '0');
    }
    return number;
}

static void informer_take_version(struct kube_informer *informer, struct str version)
{
    if (version.len == 0 || version.len >= sizeof(informer->version)) {
        return;
    }
    memcpy(informer->version, version.ptr, version.len);
    informer->version[version.len] = '\0';
    informer->version_number = version_number(version);
}

/* The initial objects come in the order of their names; behind them versions only grow. */
static struct rc informer_advance_version(struct kube_informer *informer, struct str version,
                                          struct err *err)
{
    uint64_t number = version_number(version);
    if (number != 0 && number < informer->version_number) {
        informer->fault = FAULT_REVERSED;
        informer->metrics->version_reversals++;
        return err_set(err, RC_CORRUPT,
                       "%s: resourceVersion went back from %s to " STR_FMT
                       "; everything is listed afresh",
                       informer->kind->plural, informer->version, STR_ARG(version));
    }
    informer_take_version(informer, version);
    return RC_SUCCESS;
}

/* -- a sync ------------------------------------------------------------------------------------ */

void informer_begin_sync(struct kube_informer *informer)
{
    const struct kube_informer_handler *handler = &informer->options.handler;
    if (informer->is_sync_told) {
        return;
    }
    informer->is_sync_told = true;
    known_start_round(informer->known);
    if (handler->on_sync_start != NULL) {
        handler->on_sync_start(handler->ctx, informer->kind->kind);
    }
}

static void informer_on_unseen(void *ctx, const struct known_item *item)
{
    struct kube_informer *informer = ctx;
    informer->metrics->vanished_objects++;
    informer_tell_bare_deletion(informer, item);
}

void informer_finish_sync(struct kube_informer *informer, struct str version)
{
    const struct kube_informer_handler *handler = &informer->options.handler;
    known_take_unseen(informer->known, informer_on_unseen, informer);
    informer_take_version(informer, version);
    informer->is_sync_told = false;
    informer->is_synced = true;
    informer->is_absent = false;
    informer->absent_since_ms = 0;
    informer->fill_failures = 0;
    informer->metrics->full_syncs++;
    informer->metrics->known_objects = known_count(informer->known);
    kube_backoff_reset(&informer->absent_backoff);
    if (informer->state != INFORMER_CLOSING && handler->on_synced != NULL) {
        handler->on_synced(handler->ctx, informer->kind->kind);
    }
}

void informer_forget_all(struct kube_informer *informer)
{
    known_start_round(informer->known);
    known_take_unseen(informer->known, informer_on_unseen, informer);
    informer->metrics->known_objects = 0;
    informer->version[0] = '\0';
    informer->version_number = 0;
    informer->is_synced = false;
}

/* -- events ------------------------------------------------------------------------------------ */

/* True if something of that name but with another uid was known; it is told to be gone. */
static bool informer_part_with_predecessor(struct kube_informer *informer,
                                           const struct object_meta *meta,
                                           const struct known_entry *entry)
{
    struct known_item item = known_entry_item(entry);
    if (str_eq(item.uid, meta->uid)) {
        return false;
    }
    informer_tell_bare_deletion(informer, &item);
    known_remove(informer->known, meta);
    return true;
}

static void informer_on_live_object(struct kube_informer *informer, const struct object *object)
{
    const struct object_meta *meta = object->value;
    const struct known_entry *entry = known_find(informer->known, meta);
    bool is_known = entry != NULL && !informer_part_with_predecessor(informer, meta, entry);
    known_put(informer->known, meta);
    informer_tell(informer, is_known ? WATCH_MODIFIED : WATCH_ADDED, object, false);
}

static void informer_on_deleted_object(struct kube_informer *informer, const struct object *object)
{
    const struct object_meta *meta = object->value;
    const struct known_entry *entry = known_find(informer->known, meta);
    if (entry == NULL || informer_part_with_predecessor(informer, meta, entry)) {
        return; /* one that the handler never heard of */
    }
    known_remove(informer->known, meta);
    informer_tell(informer, WATCH_DELETED, object, false);
}

static struct rc informer_on_bookmark(struct kube_informer *informer,
                                      const struct object_meta *meta, struct err *err)
{
    informer->metrics->bookmarks++;
    if (informer->state == INFORMER_WATCHING) {
        return informer_advance_version(informer, meta->resource_version, err);
    }
    if (informer->state == INFORMER_FILLING &&
        str_eq_c(string_map_get(&meta->annotations, END_MARK), "true")) {
        informer_enter(informer, INFORMER_WATCHING);
        kube_transfer_set_idle(informer->transfer, informer->options.idle_timeout_ms);
        informer_finish_sync(informer, meta->resource_version);
    }
    return RC_SUCCESS;
}

static struct rc informer_on_error(struct kube_informer *informer, const struct api_status *status,
                                   struct err *err)
{
    informer->fault = FAULT_SERVER;
    if (status->details != NULL && status->details->retry_after_seconds.is_set &&
        status->details->retry_after_seconds.value > 0 &&
        status->details->retry_after_seconds.value <= KUBE_RETRY_AFTER_MAX_MS / 1000) {
        informer->fault_retry_after_ms = status->details->retry_after_seconds.value * 1000;
    }
    struct str message = str_cut_utf8(status->message, 400);
    return err_set(err, RC_RETRY,
                   "watch of %s: the server says %lld " STR_FMT ": " STR_FMT
                   "; everything is listed afresh",
                   informer->kind->plural, (long long)status->code.value, STR_ARG(status->reason),
                   STR_ARG(message));
}

static struct rc informer_on_event(void *ctx, const struct watch_event *event, struct err *err)
{
    struct kube_informer *informer = ctx;
    if (informer->state == INFORMER_CLOSING) {
        return err_set(err, RC_REFUSED, "the informer is closed");
    }
    if (event->type == WATCH_ERROR) {
        return informer_on_error(informer, event->status, err);
    }
    const struct object_meta *meta = event->object.value;
    if (event->type == WATCH_BOOKMARK) {
        return informer_on_bookmark(informer, meta, err);
    }
    if (informer->state == INFORMER_WATCHING) {
        TRY(informer_advance_version(informer, meta->resource_version, err));
    }
    if (event->type == WATCH_DELETED) {
        informer_on_deleted_object(informer, &event->object);
    } else {
        informer_on_live_object(informer, &event->object);
    }
    informer->metrics->known_objects = known_count(informer->known);
    return RC_SUCCESS;
}

static void informer_on_malformed(void *ctx, const struct object_meta *meta, const struct err *why)
{
    struct kube_informer *informer = ctx;
    const struct kube_informer_handler *handler = &informer->options.handler;
    if (informer->state == INFORMER_CLOSING) {
        return;
    }
    informer->metrics->malformed_objects++;
    const struct known_entry *entry = known_find(informer->known, meta);
    if (entry != NULL && !str_is_empty(meta->uid)) {
        informer_part_with_predecessor(informer, meta, entry);
    }
    known_touch(informer->known, meta); /* it hasn't vanished */
    if (informer->state == INFORMER_WATCHING &&
        version_number(meta->resource_version) > informer->version_number) {
        informer_take_version(informer, meta->resource_version);
    }
    if (handler->on_malformed != NULL) {
        handler->on_malformed(handler->ctx, informer->kind->kind, meta, why);
    }
}

struct watch_handler informer_watch_handler(struct kube_informer *informer)
{
    return (struct watch_handler){
        .on_event = informer_on_event,
        .on_malformed = informer_on_malformed,
        .ctx = informer,
    };
}
