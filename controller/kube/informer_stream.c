/* The requests of an informer, and what follows from the way each ends. */
#include "informer_internal.h"

#include <assert.h>
#include <string.h>

#include "tallyman/base/limits.h"
#include "tallyman/kube/outcome.h"
#include "tallyman/kube/path.h"

#define QUERY_MAX_BYTES   16384
#define FILL_FAILURES_MAX 3 /* then a list is tried */

static void informer_on_end(void *ctx, const struct transfer_end *end);

/* -- starting ---------------------------------------------------------------------------------- */

static struct str informer_path(struct kube_informer *informer)
{
    struct text path;
    text_init(&path, &informer->scratch, QUERY_MAX_BYTES);
    path_add_collection_as(&path, informer->kind,
                           kind_version(informer->kind, informer->version_index),
                           informer->options.namespace_name);
    return text_str(&path);
}

static void informer_add_selector(struct kube_informer *informer, struct text *query)
{
    if (!str_is_empty(informer->options.label_selector)) {
        text_add(query, STR("&labelSelector="));
        path_add_encoded(query, informer->options.label_selector);
    }
}

static void informer_start(struct kube_informer *informer, const char *verb, struct str query,
                           int64_t idle_ms, bool (*on_data)(void *, const char *, size_t))
{
    struct transfer_spec spec = {
        .lane = LANE_STREAM,
        .method = "GET",
        .verb = verb,
        .resource = str_from_c(informer->kind->plural),
        .path = informer_path(informer),
        .query = query,
        .idle_ms = idle_ms,
        .handler = {.on_data = on_data, .on_end = informer_on_end, .ctx = informer},
    };
    informer->fault = FAULT_NONE;
    informer->fault_retry_after_ms = 0;
    informer->started_ms = informer_now_ms(informer);
    informer->transfer = kube_transfer_start(informer->transport, &spec);
    arena_reset(&informer->scratch);
}

/* False: the stream is given up; `fault` says why. */
static bool informer_took(struct kube_informer *informer, struct rc rc)
{
    if (informer->state == INFORMER_CLOSING) {
        return false;
    }
    if (rc_failed(rc) && informer->fault == FAULT_NONE) {
        informer->fault = FAULT_UNREADABLE;
    }
    return !rc_failed(rc);
}

static bool informer_on_watch_data(void *ctx, const char *bytes, size_t count)
{
    struct kube_informer *informer = ctx;
    if (informer->state == INFORMER_FILLING) {
        informer_begin_sync(informer);
    }
    struct rc rc = watch_decoder_feed(informer->watch_decoder, bytes, count, &informer->fault_text);
    return informer_took(informer, rc);
}

static bool informer_on_list_data(void *ctx, const char *bytes, size_t count)
{
    struct kube_informer *informer = ctx;
    informer_begin_sync(informer);
    struct rc rc = list_decoder_feed(informer->list_decoder, bytes, count, &informer->fault_text);
    return informer_took(informer, rc);
}

/* Lasts between half of watch_ms and all of it, so that the watches of a restart spread out. */
static void informer_start_stream(struct kube_informer *informer, const char *parameters,
                                  int64_t idle_ms)
{
    int64_t half_ms = informer->options.watch_ms / 2;
    int64_t drawn_ms = (int64_t)(informer_draw(informer) % (uint64_t)(half_ms + 1));
    int64_t seconds = (half_ms + drawn_ms) / 1000;
    informer->stream_ms = (seconds > 0 ? seconds : 1) * 1000;
    informer->metrics->watch_starts++;
    watch_decoder_free(informer->watch_decoder);
    informer->watch_decoder = watch_decoder_new(informer->kind, informer_watch_handler(informer));
    struct text query;
    text_init(&query, &informer->scratch, QUERY_MAX_BYTES);
    text_addf(&query, "watch=1&allowWatchBookmarks=true&timeoutSeconds=%lld%s",
              (long long)informer->stream_ms / 1000, parameters);
    informer_add_selector(informer, &query);
    informer_start(informer, "watch", text_str(&query), idle_ms, informer_on_watch_data);
}

void informer_start_fill(struct kube_informer *informer)
{
    informer->is_sync_told = false;
    informer_start_stream(informer, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
                          informer->options.initial_timeout_ms);
    informer_enter(informer, INFORMER_FILLING);
}

void informer_start_watch(struct kube_informer *informer)
{
    char parameters[INFORMER_VERSION_MAX_BYTES + 32];
    struct str version = arena_format(&informer->scratch, "&resourceVersion=%s", informer->version);
    assert(version.len < sizeof(parameters));
    memcpy(parameters, version.ptr, version.len + 1);
    informer->can_resume = false;
    informer_start_stream(informer, parameters, informer->options.idle_timeout_ms);
    informer_enter(informer, INFORMER_WATCHING);
}

void informer_start_list(struct kube_informer *informer)
{
    struct text query;
    text_init(&query, &informer->scratch, QUERY_MAX_BYTES);
    text_addf(&query, "limit=%u", informer->options.page_items);
    if (informer->continue_token[0] != '\0') {
        text_add(&query, STR("&continue="));
        path_add_encoded(&query, str_from_c(informer->continue_token));
    } else {
        informer->is_sync_told = false;
    }
    informer_add_selector(informer, &query);
    list_decoder_free(informer->list_decoder);
    informer->list_decoder = list_decoder_new(informer->kind, informer_watch_handler(informer));
    informer_start(informer, "list", text_str(&query), informer->options.initial_timeout_ms,
                   informer_on_list_data);
    informer_enter(informer, INFORMER_LISTING);
}

/* -- ending ------------------------------------------------------------------------------------ */

/* Everything is listed afresh after a pause that grows with each failure. A stream that was
 * complete and went on for a moment was none: an overloaded API server ends the watches of readers
 * that it takes for slow, again and again, and the pauses in between are time without eyes. */
static void informer_retry(struct kube_informer *informer, int64_t at_least_ms, struct str message)
{
    uint64_t lasted_ms = informer_now_ms(informer) - informer->started_ms;
    bool was_watching = informer->state == INFORMER_WATCHING && lasted_ms >= KUBE_STREAM_STEADY_MS;
    if (was_watching || lasted_ms >= (uint64_t)informer->options.retry_max_ms) {
        kube_backoff_reset(&informer->backoff);
    }
    informer->version_index = 0; /* the server may be a newer one by now */
    informer_wait(informer, kube_backoff_next_ms(&informer->backoff, at_least_ms), message);
}

/* 404 in one version of the API: the next older one is tried at once; false: there is none. */
static bool informer_try_older(struct kube_informer *informer)
{
    informer->version_index++;
    if (kind_version(informer->kind, informer->version_index) == NULL) {
        informer->version_index = 0;
        return false;
    }
    informer_wait(informer, 0, STR_NONE);
    return true;
}

static void informer_avoid_watch_list(struct kube_informer *informer)
{
    informer->list_until_ms = informer_now_ms(informer) + KUBE_WATCH_LIST_RETRY_MS;
    informer->fill_failures = 0;
}

/* 404. A kind that was served must stay away for a while before its objects are taken for gone: an
 * API server that is starting may not know a custom resource yet. */
static void informer_on_not_served(struct kube_informer *informer, struct str message)
{
    const struct kube_informer_handler *handler = &informer->options.handler;
    uint64_t now_ms = informer_now_ms(informer);
    if (informer->absent_since_ms == 0) {
        informer->absent_since_ms = now_ms;
    }
    uint64_t away_ms = now_ms - informer->absent_since_ms;
    uint64_t grace_ms = (uint64_t)informer->options.absent_grace_ms;
    if (informer->is_synced && away_ms < grace_ms) {
        int64_t wait_ms = kube_backoff_next_ms(&informer->backoff, 0);
        int64_t left_ms = (int64_t)(grace_ms - away_ms);
        informer_wait(informer, wait_ms < left_ms ? wait_ms : left_ms, message);
        return;
    }
    kube_backoff_reset(&informer->backoff);
    bool is_new = !informer->is_absent;
    informer->is_absent = true;
    informer_forget_all(informer);
    if (is_new && informer->state != INFORMER_CLOSING && handler->on_absent != NULL) {
        handler->on_absent(handler->ctx, informer->kind->kind);
    }
    if (informer->state != INFORMER_CLOSING) {
        informer_wait(informer, kube_backoff_next_ms(&informer->absent_backoff, 0), STR_NONE);
    }
}

/* The answer wasn't 2xx, or wasn't whole. */
static void informer_on_failure(struct kube_informer *informer, const struct transfer_end *end)
{
    struct kube_response response;
    struct outcome_request request = {"GET", informer_path(informer)};
    outcome_classify(&informer->scratch, &request, end, &response);
    if (response.outcome == KUBE_NOT_FOUND) {
        if (!informer_try_older(informer)) {
            informer_on_not_served(informer, response.message);
        }
        return;
    }
    bool is_filling = informer->state == INFORMER_FILLING;
    if (is_filling && response.outcome == KUBE_INVALID) {
        informer_avoid_watch_list(informer);
        informer_wait(informer, 0, response.message);
        return;
    }
    if (is_filling && end->ending == ENDED_SILENT) {
        informer_avoid_watch_list(informer);
    }
    informer_retry(informer, response.retry_after_ms, response.message);
}

static void informer_on_fault(struct kube_informer *informer)
{
    struct str message = err_text(&informer->fault_text);
    if (informer->fault == FAULT_UNREADABLE) {
        message = arena_format(&informer->scratch, "GET " STR_FMT ": unreadable answer: " STR_FMT,
                               STR_ARG(informer_path(informer)), STR_ARG(message));
    }
    informer_retry(informer, informer->fault_retry_after_ms, message);
}

/* The server ended the stream in good order. */
static void informer_on_stream_over(struct kube_informer *informer)
{
    int64_t lasted_ms = (int64_t)(informer_now_ms(informer) - informer->started_ms);
    int64_t slack_ms = informer->stream_ms / 4 < KUBE_DEADLINE_SLACK_MS ? informer->stream_ms / 4
                                                                        : KUBE_DEADLINE_SLACK_MS;
    struct err err;
    struct rc rc = watch_decoder_finish(informer->watch_decoder, &err);
    if (informer->state == INFORMER_WATCHING && !rc_failed(rc) &&
        lasted_ms >= informer->stream_ms - slack_ms) {
        informer->can_resume = true;
        kube_backoff_reset(&informer->backoff);
        informer_wait(informer, 0, STR_NONE);
        return;
    }
    const char *when = "";
    if (informer->state == INFORMER_FILLING) {
        when = " before all objects had come";
        informer->fill_failures++;
        if (informer->fill_failures >= FILL_FAILURES_MAX) {
            informer_avoid_watch_list(informer);
        }
    }
    informer_retry(informer, 0,
                   arena_format(&informer->scratch,
                                "watch of %s: the server ended it after %lld ms%s",
                                informer->kind->plural, (long long)lasted_ms, when));
}

static void informer_on_page_over(struct kube_informer *informer)
{
    struct list_meta meta;
    struct rc rc = list_decoder_finish(informer->list_decoder, &meta, &informer->fault_text);
    if (rc_failed(rc) || meta.continue_token.len >= sizeof(informer->continue_token)) {
        informer->fault = FAULT_UNREADABLE;
        informer_on_fault(informer);
        return;
    }
    if (!str_is_empty(meta.continue_token)) {
        memcpy(informer->continue_token, meta.continue_token.ptr, meta.continue_token.len);
        informer->continue_token[meta.continue_token.len] = '\0';
        informer_start_list(informer);
        return;
    }
    informer_finish_sync(informer, meta.resource_version);
    if (informer->state != INFORMER_CLOSING) {
        informer_start_watch(informer);
    }
}

static void informer_on_end(void *ctx, const struct transfer_end *end)
{
    struct kube_informer *informer = ctx;
    informer->transfer = NULL;
    if (informer->state == INFORMER_CLOSING) {
        informer_part_closed(informer);
        return;
    }
    if (informer->fault != FAULT_NONE) {
        informer_on_fault(informer);
    } else if (end->ending != ENDED_WHOLE || end->code < 200 || end->code >= 300) {
        informer_on_failure(informer, end);
    } else if (informer->state == INFORMER_LISTING) {
        informer_on_page_over(informer);
    } else {
        informer_on_stream_over(informer);
    }
    arena_reset(&informer->scratch);
}
