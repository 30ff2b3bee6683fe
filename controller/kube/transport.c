/* The queues of transfers, the credentials they wait for, and an orderly shutdown.
 *
 * Whatever must not happen inside a caller's call or a libcurl callback (starting, telling an end,
 * closing) is done by transport_work(), which the loop runs next. */
#include "transport_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

static void transport_work(uv_idle_t *idle);

static void transport_kick(struct kube_transport *transport)
{
    uv_idle_start(&transport->work, transport_work);
}

static struct transfer_list *transport_list(struct kube_transport *transport,
                                            enum transfer_state state)
{
    switch (state) {
    case TRANSFER_QUEUED:
        return &transport->queued;
    case TRANSFER_ACTIVE:
        return &transport->active;
    case TRANSFER_ENDING:
        return &transport->ending;
    }
    assert(false);
    return NULL;
}

static void transport_count_state(struct kube_transport *transport,
                                  const struct kube_transfer *transfer, int step)
{
    if (transfer->lane != LANE_REQUEST) {
        return;
    }
    if (transfer->state == TRANSFER_QUEUED) {
        transport->metrics.queued += (uint32_t)step;
    } else if (transfer->state == TRANSFER_ACTIVE) {
        transport->metrics.in_flight += (uint32_t)step;
    }
}

static void transport_unlink(struct kube_transfer *transfer)
{
    struct kube_transport *transport = transfer->transport;
    TAILQ_REMOVE(transport_list(transport, transfer->state), transfer, link);
    transport_count_state(transport, transfer, -1);
}

static void transport_link(struct kube_transfer *transfer, enum transfer_state state)
{
    struct kube_transport *transport = transfer->transport;
    struct transfer_list *list = transport_list(transport, state);
    transfer->state = state;
    if (transfer->lane != LANE_REQUEST) {
        TAILQ_INSERT_HEAD(list, transfer, link); /* the others never wait for requests */
    } else {
        TAILQ_INSERT_TAIL(list, transfer, link);
    }
    transport_count_state(transport, transfer, 1);
}

static void transport_move(struct kube_transfer *transfer, enum transfer_state state)
{
    transport_unlink(transfer);
    transport_link(transfer, state);
}

/* The transfer is in no list and out of libcurl; its end is told and it is gone. */
static void transport_deliver(struct kube_transfer *transfer)
{
    assert(transfer->ending != 0);
    struct transfer_end end = {
        .ending = transfer->ending,
        .code = transfer->code,
        .retry_after_ms = transfer->retry_after_ms,
        .refusal = {transfer->refusal, transfer->refusal_bytes},
        .error = str_from_c(transfer->error),
    };
    if (end.ending != ENDED_CANCELLED) {
        transfer_count(transfer);
    }
    transfer->handler.on_end(transfer->handler.ctx, &end);
    transfer_free(transfer);
}

/* A 401 to credentials that can be read anew: once more, as if it had not been sent. */
static bool transport_tries_again(struct kube_transfer *transfer)
{
    struct kube_transport *transport = transfer->transport;
    if (transfer->code != 401 || transfer->ending != ENDED_WHOLE || transfer->has_auth_retry ||
        transport->is_closing ||
        !kube_auth_reject(transport->auth, transfer->credential_generation)) {
        return false;
    }
    transfer_count(transfer);
    transfer_withdraw(transfer);
    transfer_rewind(transfer);
    transfer->has_auth_retry = true;
    transport_move(transfer, TRANSFER_QUEUED);
    return true;
}

void transport_on_done(void *ctx, CURL *easy, CURLcode result)
{
    struct kube_transport *transport = ctx;
    char *private_ptr = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private_ptr);
    struct kube_transfer *transfer = (struct kube_transfer *)(void *)private_ptr;
    if (transfer->state != TRANSFER_ACTIVE) {
        return; /* cancelled, and transport_work() hasn't come by yet */
    }
    transfer_conclude(transfer, result);
    transport_kick(transport);
    if (transport_tries_again(transfer)) {
        return;
    }
    transport_unlink(transfer);
    transfer_withdraw(transfer);
    transport_deliver(transfer);
}

/* -- silence ----------------------------------------------------------------------------------- */

static void transport_on_idle_timer(uv_timer_t *timer)
{
    struct kube_transport *transport = timer->data;
    uint64_t now_ms = uv_now(transport->loop);
    struct kube_transfer *transfer = TAILQ_FIRST(&transport->active);
    while (transfer != NULL) {
        struct kube_transfer *next = TAILQ_NEXT(transfer, link);
        if (transfer->idle_ms > 0 &&
            now_ms >= transfer->last_byte_ms + (uint64_t)transfer->idle_ms) {
            transfer_set_ending(transfer, ENDED_SILENT, "no byte came for %lld ms",
                                (long long)transfer->idle_ms);
            transport_move(transfer, TRANSFER_ENDING);
            transport_kick(transport);
        }
        transfer = next;
    }
    transport_arm_idle_timer(transport);
}

void transport_arm_idle_timer(struct kube_transport *transport)
{
    uint64_t first_ms = UINT64_MAX;
    struct kube_transfer *transfer = NULL;
    TAILQ_FOREACH(transfer, &transport->active, link)
    {
        if (transfer->idle_ms > 0) {
            uint64_t end_ms = transfer->last_byte_ms + (uint64_t)transfer->idle_ms;
            first_ms = end_ms < first_ms ? end_ms : first_ms;
        }
    }
    if (transport->is_closing || first_ms == UINT64_MAX) {
        uv_timer_stop(&transport->idle_timer);
        return;
    }
    uint64_t now_ms = uv_now(transport->loop);
    uv_timer_start(&transport->idle_timer, transport_on_idle_timer,
                   first_ms > now_ms ? first_ms - now_ms : 0, 0);
}

/* -- work -------------------------------------------------------------------------------------- */

static void transport_fail_queued(struct kube_transport *transport, const struct err *why)
{
    struct kube_transfer *transfer = NULL;
    while ((transfer = TAILQ_FIRST(&transport->queued)) != NULL) {
        transfer_set_ending(transfer, ENDED_UNSENT, "%s", why->text);
        transport_move(transfer, TRANSFER_ENDING);
    }
}

void transport_on_credentials(void *ctx, struct rc rc, const struct err *why)
{
    struct kube_transport *transport = ctx;
    if (rc_failed(rc)) {
        transport_fail_queued(transport, why);
    }
    transport_kick(transport);
}

static void transport_tell_endings(struct kube_transport *transport)
{
    struct kube_transfer *transfer = NULL;
    while ((transfer = TAILQ_FIRST(&transport->ending)) != NULL) {
        transport_unlink(transfer);
        transfer_withdraw(transfer);
        transport_deliver(transfer);
    }
}

/* Requests wait for a free place, the others don't. */
static void transport_start_queued(struct kube_transport *transport)
{
    struct kube_transfer *transfer = TAILQ_FIRST(&transport->queued);
    if (transfer == NULL || !kube_auth_is_ready(transport->auth)) {
        return;
    }
    while (transfer != NULL) {
        struct kube_transfer *next = TAILQ_NEXT(transfer, link);
        bool has_place =
            transfer->lane != LANE_REQUEST || transport->metrics.in_flight < KUBE_IN_FLIGHT_MAX;
        if (has_place) {
            transport_move(transfer, TRANSFER_ACTIVE);
            if (!transfer_launch(transfer)) {
                transport_move(transfer, TRANSFER_ENDING);
                transport_kick(transport);
            }
        }
        transfer = next;
    }
    transport_arm_idle_timer(transport);
}

static void transport_cancel_all(struct kube_transport *transport)
{
    struct transfer_list *const lists[] = {&transport->active, &transport->queued};
    for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
        struct kube_transfer *transfer = NULL;
        while ((transfer = TAILQ_FIRST(lists[i])) != NULL) {
            kube_transfer_cancel(transfer);
        }
    }
}

static void transport_free(struct kube_transport *transport)
{
    void (*on_closed)(void *ctx) = transport->on_closed;
    void *ctx = transport->closed_ctx;
    curl_slist_free_all(transport->connect_to);
    mem_free(transport->metrics.requests);
    authority_deinit(&transport->authority);
    mem_free(transport->base_url);
    mem_free(transport->user_agent);
    mem_free(transport);
    curl_global_cleanup();
    if (on_closed != NULL) {
        on_closed(ctx);
    }
}

void transport_on_part_closed(void *ctx)
{
    struct kube_transport *transport = ctx;
    transport->open_parts--;
    if (transport->open_parts == 0) {
        transport_free(transport);
    }
}

static void transport_on_handle_closed(uv_handle_t *handle)
{
    transport_on_part_closed(handle->data);
}

static void transport_close_parts(struct kube_transport *transport)
{
    transport->open_parts = 5;
    while (transport->spare_count > 0) {
        curl_easy_cleanup(transport->spare[--transport->spare_count]);
    }
    curl_loop_close(&transport->request_lane);
    curl_loop_close(&transport->stream_lane);
    kube_auth_close(transport->auth);
    uv_close((uv_handle_t *)&transport->idle_timer, transport_on_handle_closed);
    uv_close((uv_handle_t *)&transport->work, transport_on_handle_closed);
}

static void transport_work(uv_idle_t *idle)
{
    struct kube_transport *transport = idle->data;
    uv_idle_stop(idle); /* before the callbacks, which may kick again */
    if (transport->is_closing) {
        transport_cancel_all(transport);
        transport_tell_endings(transport);
        if (TAILQ_EMPTY(&transport->queued) && TAILQ_EMPTY(&transport->active)) {
            transport_close_parts(transport);
        }
        return;
    }
    transport_tell_endings(transport);
    transport_start_queued(transport);
}

/* -- the interface ----------------------------------------------------------------------------- */

static char *text_copy(struct str text)
{
    char *copy = mem_alloc(text.len + 1);
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    copy[text.len] = '\0';
    return copy;
}

static char *transport_make_url(const struct kube_transport *transport,
                                const struct transfer_spec *spec)
{
    size_t bytes = strlen(transport->base_url) + spec->path.len + spec->query.len + 2;
    char *url = mem_alloc(bytes);
    snprintf(url, bytes, "%s" STR_FMT "%s" STR_FMT, transport->base_url, STR_ARG(spec->path),
             str_is_empty(spec->query) ? "" : "?", STR_ARG(spec->query));
    return url;
}

struct kube_transfer *kube_transfer_start(struct kube_transport *transport,
                                          const struct transfer_spec *spec)
{
    struct kube_transfer *transfer = MEM_NEW(struct kube_transfer);
    *transfer = (struct kube_transfer){
        .transport = transport,
        .lane = spec->lane,
        .method = spec->method,
        .verb = spec->verb,
        .content_type = spec->content_type,
        .accept = spec->accept,
        .url = transport_make_url(transport, spec),
        .body_bytes = spec->body.len,
        .timeout_ms = spec->timeout_ms,
        .idle_ms = spec->idle_ms,
        .handler = spec->handler,
    };
    /* libcurl may lose sight of a transfer that waits for another one's connection, when memory is
     * short: then nothing of its own ends it. */
    if (transfer->idle_ms == 0 && transfer->timeout_ms > 0) {
        transfer->idle_ms = transfer->timeout_ms + KUBE_TIMEOUT_GRACE_MS;
    }
    snprintf(transfer->resource, sizeof(transfer->resource), STR_FMT, STR_ARG(spec->resource));
    if (str_is_set(spec->body)) {
        transfer->body = text_copy(spec->body);
        transport->metrics.sent_body_bytes += spec->body.len;
    }
    if (transfer->lane == LANE_REQUEST && transport->metrics.queued >= KUBE_QUEUE_MAX) {
        transfer_set_ending(transfer, ENDED_UNSENT,
                            "%u requests wait already; the server takes them too slowly",
                            transport->metrics.queued);
        transport_link(transfer, TRANSFER_ENDING);
    } else {
        transport_link(transfer, TRANSFER_QUEUED);
    }
    transport_kick(transport);
    return transfer;
}

void kube_transfer_cancel(struct kube_transfer *transfer)
{
    if (transfer->state == TRANSFER_ENDING) {
        return;
    }
    transfer_set_ending(transfer, ENDED_CANCELLED, "cancelled");
    transport_move(transfer, TRANSFER_ENDING);
    transport_kick(transfer->transport);
}

void kube_transfer_set_idle(struct kube_transfer *transfer, int64_t idle_ms)
{
    transfer->idle_ms = idle_ms;
    transport_arm_idle_timer(transfer->transport);
}

struct kube_metrics *kube_transport_metrics(struct kube_transport *transport)
{
    transport->metrics.credential_reads = kube_auth_reads(transport->auth);
    return &transport->metrics;
}

struct str kube_transport_server(const struct kube_transport *transport)
{
    return transport->config->server;
}

uv_loop_t *kube_transport_loop(const struct kube_transport *transport)
{
    return transport->loop;
}

uint64_t kube_transport_next_seed(struct kube_transport *transport)
{
    transport->random += UINT64_C(0x9e3779b97f4a7c15);
    return transport->random;
}

void kube_transport_close(struct kube_transport *transport, void (*on_closed)(void *ctx), void *ctx)
{
    assert(!transport->is_closing);
    transport->is_closing = true;
    transport->on_closed = on_closed;
    transport->closed_ctx = ctx;
    transport_kick(transport);
}
