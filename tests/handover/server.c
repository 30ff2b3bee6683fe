/* server.c - timers, requests and one Lease. */
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/property.h"
#include "tallyman/api/codec.h"
#include "tallyman/base/alloc.h"

#define TIMERS_MAX 8 /* two of each replica, and of those that are closing */
#define CALLS_MAX  16
#define BODY_BYTES 1024

struct fake_timer {
    uv_timer_t *timer;
    uv_timer_cb on_timer;
    int64_t at_ms;
    struct replica *replica;
};

struct kube_call {
    bool is_used, is_at_server;
    struct replica *replica;
    uint32_t incarnation;
    int64_t at_ms; /* when it reaches the server, or its answer the replica */
    int64_t timeout_at_ms;
    const char *method;
    char body[BODY_BYTES];
    enum kube_outcome outcome;
    void (*on_done)(void *ctx, const struct kube_response *response);
    void *ctx;
};

struct replica replicas[REPLICAS] = {{.number = 0}, {.number = 1}};

static struct {
    int64_t now_ms;
    struct fake_timer timers[TIMERS_MAX];
    struct kube_call calls[CALLS_MAX];
    uint64_t random;
    char record[BODY_BYTES]; /* the Lease; empty: there is none */
    uint64_t version;
} server;

int64_t server_now_ms(void)
{
    return server.now_ms;
}

void server_set_seed(uint64_t seed)
{
    server.random = seed * 2 + 1;
}

static uint32_t draw(uint32_t below)
{
    return random_next(&server.random) % below;
}

int server_holder(void)
{
    const char *at = strstr(server.record, "\"holderIdentity\":\"replica-");
    return at == NULL ? -1 : atoi(at + strlen("\"holderIdentity\":\"replica-"));
}

/* -- the clock and the timers ---------------------------------------------------------------------
 */

uint64_t fake_hrtime(void)
{
    return (uint64_t)(server.now_ms + 1000) * 1000000;
}

int fake_clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    (void)clock;
    *ret_now = (struct timespec){.tv_sec = 1767225600 + server.now_ms / 1000,
                                 .tv_nsec = server.now_ms % 1000 * 1000000};
    return 0;
}

static struct fake_timer *find_timer(const uv_timer_t *timer)
{
    for (uint32_t i = 0; i < TIMERS_MAX; i++) {
        if (server.timers[i].timer == timer) {
            return &server.timers[i];
        }
    }
    return NULL;
}

int fake_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
    struct fake_timer *slot = find_timer(NULL);
    assert_non_null(slot);
    *slot = (struct fake_timer){
        .timer = timer, .at_ms = INT64_MAX, .replica = (struct replica *)(void *)loop};
    return 0;
}

int fake_timer_start(uv_timer_t *timer, uv_timer_cb on_timer, uint64_t after_ms, uint64_t repeat)
{
    struct fake_timer *slot = find_timer(timer);
    (void)repeat;
    slot->on_timer = on_timer;
    slot->at_ms = server.now_ms + (int64_t)after_ms;
    return 0;
}

int fake_timer_stop(uv_timer_t *timer)
{
    find_timer(timer)->at_ms = INT64_MAX;
    return 0;
}

void fake_close(uv_handle_t *handle, uv_close_cb on_closed)
{
    find_timer((uv_timer_t *)handle)->timer = NULL;
    on_closed(handle);
}

/* -- requests -------------------------------------------------------------------------------------
 */

struct kube_call *fake_client_send(struct kube_client *client, const struct kube_request *request)
{
    struct kube_call *call = server.calls;
    while (call->is_used) {
        call++;
        assert_true(call < server.calls + CALLS_MAX);
    }
    struct replica *replica = (struct replica *)(void *)client;
    *call = (struct kube_call){.is_used = true,
                               .replica = replica,
                               .incarnation = replica->incarnation,
                               .at_ms = server.now_ms + 1 + draw(20),
                               .timeout_at_ms = server.now_ms + request->timeout_ms,
                               .method = request->method,
                               .on_done = request->on_done,
                               .ctx = request->ctx};
    if (str_is_set(request->body)) {
        (void)snprintf(call->body, BODY_BYTES, STR_FMT, STR_ARG(request->body));
    }
    return call;
}

void fake_call_cancel(struct kube_call *call)
{
    call->outcome = KUBE_CANCELLED;
    call->is_at_server = true;
    call->at_ms = server.now_ms;
}

/* The Lease is kept as it was written, with a version of its own in front. */
static void store(struct kube_call *call)
{
    char *at = strstr(call->body, "\"resourceVersion\":\"");
    bool is_new = server.record[0] == '\0';
    unsigned long long base = at == NULL ? 0 : strtoull(at + 19, NULL, 10);
    if (is_new != (at == NULL) || (!is_new && base != server.version)) {
        call->outcome = KUBE_CONFLICT;
        return;
    }
    const char *spec = strstr(call->body, "\"spec\"");
    assert_non_null(spec);
    (void)snprintf(server.record, BODY_BYTES, "{\"metadata\":{\"resourceVersion\":\"%llu\"},%s",
                   (unsigned long long)++server.version, spec);
    call->outcome = KUBE_DONE;
}

static void carry_out(struct kube_call *call)
{
    if (strcmp(call->method, "GET") == 0) {
        call->outcome = server.record[0] == '\0' ? KUBE_NOT_FOUND : KUBE_DONE;
    } else {
        store(call);
    }
    (void)snprintf(call->body, BODY_BYTES, "%s", server.record);
}

static void give_answer(struct kube_call *call)
{
    struct kube_call copy = *call;
    call->is_used = false;
    if (copy.incarnation != copy.replica->incarnation) {
        return; /* whoever asked is dead */
    }
    struct kube_response response = {.outcome = copy.outcome, .message = STR("no answer")};
    if (copy.outcome == KUBE_DONE) {
        response.body = str_from_c(copy.body);
    }
    copy.on_done(copy.ctx, &response);
}

static void run_call(struct kube_call *call)
{
    if (call->is_at_server) {
        give_answer(call);
        return;
    }
    call->is_at_server = true;
    if (call->replica->is_cut_off) {
        call->outcome = KUBE_RETRY;
        call->at_ms = call->timeout_at_ms;
    } else {
        carry_out(call);
        call->at_ms = server.now_ms + 1 + draw(20);
    }
}

/* -- time -----------------------------------------------------------------------------------------
 */

/* Whoever sleeps sees neither time nor answers; the server does its part all the same. */
static int64_t timer_due_ms(const struct fake_timer *timer)
{
    return timer->timer == NULL || timer->replica->is_asleep ? INT64_MAX : timer->at_ms;
}

static int64_t call_due_ms(const struct kube_call *call)
{
    bool waits = call->is_at_server && call->replica->is_asleep &&
                 call->incarnation == call->replica->incarnation;
    return !call->is_used || waits ? INT64_MAX : call->at_ms;
}

int64_t server_next_ms(void)
{
    int64_t next_ms = INT64_MAX;
    for (uint32_t i = 0; i < TIMERS_MAX; i++) {
        int64_t due_ms = timer_due_ms(&server.timers[i]);
        next_ms = due_ms < next_ms ? due_ms : next_ms;
    }
    for (uint32_t i = 0; i < CALLS_MAX; i++) {
        int64_t due_ms = call_due_ms(&server.calls[i]);
        next_ms = due_ms < next_ms ? due_ms : next_ms;
    }
    return next_ms;
}

/* Those that are due; false: none. A sleeper that wakes has some of long ago. */
static bool run_one(void)
{
    for (uint32_t i = 0; i < CALLS_MAX; i++) {
        if (call_due_ms(&server.calls[i]) <= server.now_ms) {
            run_call(&server.calls[i]);
            return true;
        }
    }
    for (uint32_t i = 0; i < TIMERS_MAX; i++) {
        struct fake_timer *timer = &server.timers[i];
        if (timer_due_ms(timer) <= server.now_ms) {
            timer->at_ms = INT64_MAX;
            timer->on_timer(timer->timer);
            return true;
        }
    }
    return false;
}

void server_run_until(int64_t until_ms)
{
    int64_t next_ms;
    while ((next_ms = server_next_ms()) <= until_ms) {
        server.now_ms = next_ms > server.now_ms ? next_ms : server.now_ms;
        while (run_one()) {
        }
    }
    server.now_ms = until_ms;
}

void server_kill(struct replica *replica)
{
    replica->incarnation++;
    for (uint32_t i = 0; i < TIMERS_MAX; i++) {
        if (server.timers[i].replica == replica) {
            server.timers[i].timer = NULL;
        }
    }
    mem_free(replica->lease);
    replica->lease = NULL;
    replica->is_leading = replica->is_asleep = replica->is_cut_off = replica->is_closing = false;
}
