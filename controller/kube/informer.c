/* The states of an informer:
 *
 *        +--------------------- any failure, after a pause ----------------------+
 *        v                                                                       |
 *     WAITING --fresh, WatchList served--> FILLING --end mark--> WATCHING -------+
 *      |   |                                                       ^ |
 *      |   +--fresh, no WatchList--> LISTING --last page-----------+ |
 *      |                             ^     |                         |
 *      |                             +page-+                         |
 *      +--resume at the last resourceVersion <-- its own deadline ---+
 *
 *     any --kube_informer_close()--> CLOSING
 *
 * Invariant: a transfer is under way in FILLING, LISTING and WATCHING, and in no other state but
 * CLOSING, where its end is awaited. */
#include "informer_internal.h"

#include <assert.h>
#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

static const bool informer_moves[INFORMER_STATE_COUNT][INFORMER_STATE_COUNT] = {
    [INFORMER_WAITING] = {[INFORMER_FILLING] = true,
                          [INFORMER_LISTING] = true,
                          [INFORMER_WATCHING] = true,
                          [INFORMER_CLOSING] = true},
    [INFORMER_FILLING] =
        {[INFORMER_WATCHING] = true, [INFORMER_WAITING] = true, [INFORMER_CLOSING] = true},
    [INFORMER_LISTING] = {[INFORMER_LISTING] = true,
                          [INFORMER_WATCHING] = true,
                          [INFORMER_WAITING] = true,
                          [INFORMER_CLOSING] = true},
    [INFORMER_WATCHING] = {[INFORMER_WAITING] = true, [INFORMER_CLOSING] = true},
};

void informer_enter(struct kube_informer *informer, enum informer_state state)
{
    assert(informer_moves[informer->state][state]);
    bool is_streaming =
        state == INFORMER_FILLING || state == INFORMER_LISTING || state == INFORMER_WATCHING;
    assert(state == INFORMER_CLOSING || is_streaming == (informer->transfer != NULL));
    informer->state = state;
}

uint64_t informer_now_ms(const struct kube_informer *informer)
{
    return uv_now(kube_transport_loop(informer->transport));
}

uint64_t informer_draw(struct kube_informer *informer)
{
    uint64_t z = (informer->random += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    return z ^ (z >> 27);
}

static void informer_on_timer(uv_timer_t *timer)
{
    struct kube_informer *informer = timer->data;
    if (informer->can_resume && informer->version[0] != '\0') {
        informer_start_watch(informer);
    } else if (informer_now_ms(informer) < informer->list_until_ms) {
        informer->continue_token[0] = '\0';
        informer_start_list(informer);
    } else {
        informer_start_fill(informer);
    }
}

void informer_wait(struct kube_informer *informer, int64_t wait_ms, struct str message)
{
    informer_enter(informer, INFORMER_WAITING);
    uv_timer_start(&informer->timer, informer_on_timer, (uint64_t)wait_ms, 0);
    const struct kube_informer_handler *handler = &informer->options.handler;
    if (!str_is_empty(message) && handler->on_trouble != NULL) {
        handler->on_trouble(handler->ctx, informer->kind->kind, message, wait_ms);
    }
}

static char *informer_copy(struct str text)
{
    if (str_is_empty(text)) {
        return NULL;
    }
    char *copy = mem_alloc(text.len + 1);
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

static void informer_default_ms(int64_t *value_ms, int64_t default_ms)
{
    if (*value_ms <= 0) {
        *value_ms = default_ms;
    }
}

static void informer_fill_options(struct kube_informer *informer)
{
    struct kube_informer_options *options = &informer->options;
    informer->label_selector = informer_copy(options->label_selector);
    informer->namespace_name = informer_copy(options->namespace_name);
    options->label_selector = str_from_c(informer->label_selector);
    options->namespace_name = str_from_c(informer->namespace_name);
    informer_default_ms(&options->idle_timeout_ms, KUBE_WATCH_IDLE_MS);
    informer_default_ms(&options->initial_timeout_ms, KUBE_INITIAL_IDLE_MS);
    informer_default_ms(&options->watch_ms, KUBE_WATCH_MS);
    informer_default_ms(&options->retry_base_ms, KUBE_RETRY_BASE_MS);
    informer_default_ms(&options->retry_max_ms, KUBE_RETRY_MAX_MS);
    informer_default_ms(&options->absent_retry_ms, KUBE_ABSENT_RETRY_MS);
    informer_default_ms(&options->absent_grace_ms, KUBE_ABSENT_GRACE_MS);
    if (options->page_items == 0) {
        options->page_items = KUBE_LIST_PAGE_ITEMS;
    }
}

struct kube_informer *kube_informer_open(const struct kube_informer_options *options)
{
    struct kube_informer *informer = MEM_NEW(struct kube_informer);
    informer->options = *options;
    informer->kind = kind_info(options->kind);
    assert(informer->kind != NULL);
    assert(options->handler.on_object != NULL);
    informer->transport = kube_client_transport(options->client);
    informer->metrics = &kube_transport_metrics(informer->transport)->kinds[options->kind];
    informer->random = kube_transport_next_seed(informer->transport);
    informer->known = known_new();
    informer->bare = mem_zalloc(informer->kind->schema->bytes);
    arena_init(&informer->scratch);
    informer_fill_options(informer);
    options = &informer->options;
    kube_backoff_init(&informer->backoff, options->retry_base_ms, options->retry_max_ms,
                      informer_draw(informer));
    int64_t absent_max_ms = options->absent_retry_ms > KUBE_ABSENT_RETRY_MAX_MS
                                ? options->absent_retry_ms
                                : KUBE_ABSENT_RETRY_MAX_MS;
    kube_backoff_init(&informer->absent_backoff, options->absent_retry_ms, absent_max_ms,
                      informer_draw(informer));
    uv_timer_init(kube_transport_loop(informer->transport), &informer->timer);
    informer->timer.data = informer;
    informer->state = INFORMER_WAITING;
    uv_timer_start(&informer->timer, informer_on_timer, 0, 0);
    return informer;
}

/* -- closing ----------------------------------------------------------------------------------- */

void informer_part_closed(struct kube_informer *informer)
{
    informer->open_parts--;
    if (informer->open_parts > 0) {
        return;
    }
    void (*on_closed)(void *ctx) = informer->on_closed;
    void *ctx = informer->closed_ctx;
    watch_decoder_free(informer->watch_decoder);
    list_decoder_free(informer->list_decoder);
    known_free(informer->known);
    arena_deinit(&informer->scratch);
    mem_free(informer->bare);
    mem_free(informer->label_selector);
    mem_free(informer->namespace_name);
    mem_free(informer);
    if (on_closed != NULL) {
        on_closed(ctx);
    }
}

static void informer_on_timer_closed(uv_handle_t *handle)
{
    informer_part_closed(handle->data);
}

void kube_informer_close(struct kube_informer *informer, void (*on_closed)(void *ctx), void *ctx)
{
    informer_enter(informer, INFORMER_CLOSING);
    informer->on_closed = on_closed;
    informer->closed_ctx = ctx;
    informer->open_parts = 1;
    if (informer->transfer != NULL) {
        informer->open_parts++;
        kube_transfer_cancel(informer->transfer);
    }
    uv_close((uv_handle_t *)&informer->timer, informer_on_timer_closed);
}

bool kube_informer_is_synced(const struct kube_informer *informer)
{
    return informer->is_synced;
}

bool kube_informer_is_absent(const struct kube_informer *informer)
{
    return informer->is_absent;
}
