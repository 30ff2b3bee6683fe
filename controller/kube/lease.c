#include "tallyman/kube/lease.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"
#include "tallyman/base/time_text.h"

#define NAME_BYTES 254
#define PATH_BYTES 1024

/* Of the lease's duration, as 2, 10 and 15 s are to each other; a follower looks more often, so
 * that a lease that is given back is taken within a second. */
#define RETRY_MS(lease_ms)  ((lease_ms)*2 / 15)
#define RENEW_MS(lease_ms)  ((lease_ms)*10 / 15)
#define FOLLOW_MS(lease_ms) ((lease_ms) / 25)

struct lease_spec {
    struct str holder_identity;
    struct opt_int lease_transitions;
    struct str acquire_time;
};

struct lease {
    struct object_meta meta;
    struct lease_spec spec;
};

static const struct field meta_fields[] = {
    {"resourceVersion", FIELD_STRING, offsetof(struct object_meta, resource_version), NULL},
};
static const struct schema meta_schema = {"ObjectMeta", sizeof(struct object_meta), meta_fields,
                                          ARRAY_COUNT(meta_fields)};
static const struct field spec_fields[] = {
    {"holderIdentity", FIELD_STRING, offsetof(struct lease_spec, holder_identity), NULL},
    {"leaseTransitions", FIELD_INT, offsetof(struct lease_spec, lease_transitions), NULL},
    {"acquireTime", FIELD_STRING, offsetof(struct lease_spec, acquire_time), NULL},
};
static const struct schema spec_schema = {"LeaseSpec", sizeof(struct lease_spec), spec_fields,
                                          ARRAY_COUNT(spec_fields)};
static const struct field lease_fields[] = {
    {"metadata", FIELD_OBJECT, offsetof(struct lease, meta), &meta_schema},
    {"spec", FIELD_OBJECT, offsetof(struct lease, spec), &spec_schema},
};
static const struct schema lease_schema = {"Lease", sizeof(struct lease), lease_fields,
                                           ARRAY_COUNT(lease_fields)};

/* What was last seen of the record. Empty texts: it isn't there. */
struct seen_record {
    char version[64];
    char holder[NAME_BYTES];
    char acquire_time[TIME_TEXT_BYTES];
    int64_t transitions;
    uint64_t changed_ms; /* on our own clock */
};

struct kube_lease {
    struct kube_lease_options options;
    char namespace_name[NAME_BYTES];
    char name[NAME_BYTES];
    char identity[NAME_BYTES];
    uint64_t random;
    uv_timer_t timer;          /* the next look or renewal */
    uv_timer_t deadline_timer; /* leading: by then it must have been renewed */
    struct kube_call *call;    /* NULL: none is on its way */
    uint64_t sent_ms;          /* of the last call */
    uint64_t renewed_ms;       /* when the last write that succeeded was sent */
    bool is_leading;
    bool must_look; /* read it before the next write */
    bool is_over;   /* it was lost: nothing more is done */
    bool is_closing;
    char told_holder[NAME_BYTES];
    struct seen_record seen;
    int open_handles;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

static void lease_act(struct kube_lease *lease);
static void give_back(struct kube_lease *lease);
static void close_handles(struct kube_lease *lease);

static uint64_t clock_ms(void)
{
    return uv_hrtime() / 1000000;
}

static void copy_text(char *to, size_t bytes, struct str text)
{
    snprintf(to, bytes, "%.*s", (int)(text.len < bytes ? text.len : bytes - 1), text.ptr);
}

/* Up to a fifth more, so that replicas don't step on each other. */
static uint64_t with_jitter(struct kube_lease *lease, int64_t wait_ms)
{
    lease->random = lease->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint64_t)wait_ms + (lease->random >> 33) % ((uint64_t)wait_ms / 5 + 1);
}

/* -- the record ---------------------------------------------------------------------------------
 */

static struct str lease_path(const struct kube_lease *lease, struct arena *arena, bool has_name)
{
    struct text text;
    text_init(&text, arena, PATH_BYTES);
    text_add(&text, STR("/apis/coordination.k8s.io/v1/namespaces/"));
    text_add(&text, str_from_c(lease->namespace_name));
    text_add(&text, STR("/leases"));
    if (has_name) {
        text_add(&text, STR("/"));
        text_add(&text, str_from_c(lease->name));
    }
    return text_str(&text);
}

static void write_spec(struct json_writer *json, const struct kube_lease *lease, bool is_given_back)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    char now_text[TIME_TEXT_BYTES];
    struct str at = time_format_micro((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, now_text);
    bool is_same_holder = strcmp(lease->seen.holder, lease->identity) == 0;
    json_key(json, "spec");
    json_object_start(json);
    json_key(json, "holderIdentity");
    json_string(json, is_given_back ? STR("") : str_from_c(lease->identity));
    json_key(json, "leaseDurationSeconds");
    json_int(json, is_given_back ? 1 : (lease->options.lease_ms + 999) / 1000);
    json_key(json, "acquireTime");
    json_string(json, is_same_holder && lease->seen.acquire_time[0] != '\0'
                          ? str_from_c(lease->seen.acquire_time)
                          : at);
    json_key(json, "renewTime");
    json_string(json, at);
    json_key(json, "leaseTransitions");
    json_int(json, is_same_holder ? lease->seen.transitions : lease->seen.transitions + 1);
    json_object_end(json);
}

static void write_lease(struct json_writer *json, const struct kube_lease *lease,
                        bool is_given_back)
{
    json_object_start(json);
    json_key(json, "apiVersion");
    json_string(json, STR("coordination.k8s.io/v1"));
    json_key(json, "kind");
    json_string(json, STR("Lease"));
    json_key(json, "metadata");
    json_object_start(json);
    json_key(json, "name");
    json_string(json, str_from_c(lease->name));
    json_key(json, "namespace");
    json_string(json, str_from_c(lease->namespace_name));
    if (lease->seen.version[0] != '\0') {
        json_key(json, "resourceVersion");
        json_string(json, str_from_c(lease->seen.version));
    }
    json_object_end(json);
    write_spec(json, lease, is_given_back);
    json_object_end(json);
}

static void lease_send(struct kube_lease *lease, struct kube_request *request)
{
    request->resource = STR("leases");
    request->is_urgent = true;
    request->timeout_ms = RENEW_MS(lease->options.lease_ms) / 3;
    request->ctx = lease;
    lease->sent_ms = clock_ms();
    lease->call = kube_client_send(lease->options.client, request);
}

static void send_write(struct kube_lease *lease, bool is_given_back,
                       void (*on_done)(void *ctx, const struct kube_response *response))
{
    bool is_new = lease->seen.version[0] == '\0';
    struct arena arena;
    arena_init(&arena);
    struct json_writer *json = json_writer_new();
    write_lease(json, lease, is_given_back);
    struct kube_request request = {.method = is_new ? "POST" : "PUT",
                                   .verb = is_new ? "create" : "update",
                                   .path = lease_path(lease, &arena, !is_new),
                                   .body = json_writer_text(json),
                                   .on_done = on_done};
    lease_send(lease, &request);
    json_writer_free(json);
    arena_deinit(&arena);
}

/* False: the answer can't be read. */
static bool see(struct kube_lease *lease, struct str body)
{
    struct arena arena;
    arena_init(&arena);
    void *value = NULL;
    struct err err;
    struct rc rc = decode_json(&arena, &lease_schema, body, &value, &err);
    if (!rc_failed(rc)) {
        const struct lease *object = value;
        struct seen_record *seen = &lease->seen;
        if (!str_eq(object->meta.resource_version, str_from_c(seen->version))) {
            seen->changed_ms = clock_ms();
        }
        copy_text(seen->version, sizeof(seen->version), object->meta.resource_version);
        copy_text(seen->holder, sizeof(seen->holder), object->spec.holder_identity);
        copy_text(seen->acquire_time, sizeof(seen->acquire_time), object->spec.acquire_time);
        const struct opt_int *transitions = &object->spec.lease_transitions;
        seen->transitions = transitions->is_set && transitions->value > 0 ? transitions->value : 0;
    }
    arena_deinit(&arena);
    return !rc_failed(rc);
}

/* -- leading and following ----------------------------------------------------------------------
 */

static void on_timer(uv_timer_t *timer)
{
    lease_act(timer->data);
}

static void act_later(struct kube_lease *lease, int64_t wait_ms)
{
    if (!lease->is_over && !lease->is_closing) {
        uv_update_time(lease->options.loop);
        uv_timer_start(&lease->timer, on_timer, with_jitter(lease, wait_ms), 0);
    }
}

static void lose(struct kube_lease *lease, struct str why)
{
    lease->is_leading = false;
    lease->is_over = true;
    uv_timer_stop(&lease->timer);
    uv_timer_stop(&lease->deadline_timer);
    lease->options.handler.on_lost(lease->options.handler.ctx, why);
}

static void on_deadline(uv_timer_t *timer)
{
    lose(timer->data, STR("the lease couldn't be renewed in time"));
}

static void tell_trouble(struct kube_lease *lease, struct str why)
{
    if (!lease->is_closing) {
        lease->options.handler.on_trouble(lease->options.handler.ctx, why);
    }
}

/* The call that was on its way when the lease was lost or closed. */
static bool is_last(struct kube_lease *lease, const struct kube_response *response)
{
    if (!lease->is_closing) {
        return lease->is_over || response->outcome == KUBE_CANCELLED;
    }
    if (response->outcome == KUBE_CANCELLED) {
        close_handles(lease);
    } else {
        if (response->outcome == KUBE_DONE) {
            (void)see(lease, response->body);
        }
        give_back(lease);
    }
    return true;
}

/* The deadline counts from when the write was sent: the server's clock for the lease began later.
 */
static void renewed(struct kube_lease *lease)
{
    int64_t left_ms = RENEW_MS(lease->options.lease_ms) - (int64_t)(clock_ms() - lease->sent_ms);
    uv_update_time(lease->options.loop);
    uv_timer_start(&lease->deadline_timer, on_deadline, left_ms > 1 ? (uint64_t)left_ms : 1, 0);
    act_later(lease, RETRY_MS(lease->options.lease_ms));
}

static void on_written(void *ctx, const struct kube_response *response)
{
    struct kube_lease *lease = ctx;
    lease->call = NULL;
    if (is_last(lease, response)) {
        return;
    }
    if (response->outcome == KUBE_DONE && see(lease, response->body)) {
        bool is_new = !lease->is_leading;
        lease->is_leading = true;
        lease->renewed_ms = lease->sent_ms;
        renewed(lease);
        if (is_new) {
            lease->options.handler.on_leading(lease->options.handler.ctx);
        }
        return;
    }
    /* Somebody else wrote it, or nobody knows whether we did: look. */
    lease->must_look = true;
    if (response->outcome != KUBE_CONFLICT && response->outcome != KUBE_NOT_FOUND) {
        tell_trouble(lease, response->message);
    } else if (response->outcome == KUBE_NOT_FOUND && lease->seen.version[0] == '\0') {
        tell_trouble(lease, response->message); /* its namespace isn't there */
    }
    act_later(lease, FOLLOW_MS(lease->options.lease_ms));
}

static void follow(struct kube_lease *lease)
{
    if (lease->is_leading) {
        lose(lease, STR("another replica has taken the lease"));
        return;
    }
    if (strcmp(lease->told_holder, lease->seen.holder) != 0) {
        copy_text(lease->told_holder, sizeof(lease->told_holder), str_from_c(lease->seen.holder));
        lease->options.handler.on_following(lease->options.handler.ctx,
                                            str_from_c(lease->seen.holder));
    }
    act_later(lease, FOLLOW_MS(lease->options.lease_ms));
}

static void decide(struct kube_lease *lease)
{
    const struct seen_record *seen = &lease->seen;
    bool is_free = seen->version[0] == '\0' || seen->holder[0] == '\0' ||
                   strcmp(seen->holder, lease->identity) == 0 ||
                   clock_ms() - seen->changed_ms >= (uint64_t)lease->options.lease_ms;
    if (is_free) {
        lease->must_look = false;
        send_write(lease, false, on_written);
    } else {
        follow(lease);
    }
}

static void on_read(void *ctx, const struct kube_response *response)
{
    struct kube_lease *lease = ctx;
    lease->call = NULL;
    if (is_last(lease, response)) {
        return;
    }
    if (response->outcome == KUBE_NOT_FOUND) {
        lease->seen = (struct seen_record){.changed_ms = clock_ms()};
    } else if (response->outcome != KUBE_DONE || !see(lease, response->body)) {
        tell_trouble(lease, str_is_empty(response->message) ? STR("the Lease can't be read")
                                                            : response->message);
        act_later(lease, RETRY_MS(lease->options.lease_ms));
        return;
    }
    decide(lease);
}

static void lease_act(struct kube_lease *lease)
{
    if (lease->is_leading && !lease->must_look) {
        send_write(lease, false, on_written);
        return;
    }
    struct arena arena;
    arena_init(&arena);
    struct kube_request request = {.method = "GET",
                                   .verb = "get",
                                   .path = lease_path(lease, &arena, true),
                                   .on_done = on_read};
    lease_send(lease, &request);
    arena_deinit(&arena);
}

bool kube_lease_is_held(const struct kube_lease *lease)
{
    return lease->is_leading && !lease->is_closing &&
           clock_ms() - lease->renewed_ms < (uint64_t)RENEW_MS(lease->options.lease_ms);
}

/* -- open and close -----------------------------------------------------------------------------
 */

struct kube_lease *kube_lease_open(const struct kube_lease_options *options)
{
    struct kube_lease *lease = MEM_NEW(struct kube_lease);
    *lease = (struct kube_lease){
        .options = *options, .random = options->seed, .must_look = true, .open_handles = 2};
    if (lease->options.lease_ms <= 0) {
        lease->options.lease_ms = KUBE_LEASE_MS;
    }
    copy_text(lease->namespace_name, sizeof(lease->namespace_name), options->namespace_name);
    copy_text(lease->name, sizeof(lease->name), options->name);
    copy_text(lease->identity, sizeof(lease->identity), options->identity);
    uv_timer_init(options->loop, &lease->timer);
    uv_timer_init(options->loop, &lease->deadline_timer);
    lease->timer.data = lease->deadline_timer.data = lease;
    uv_timer_start(&lease->timer, on_timer, 0, 0);
    return lease;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct kube_lease *lease = handle->data;
    if (--lease->open_handles > 0) {
        return;
    }
    void (*on_closed)(void *ctx) = lease->on_closed;
    void *ctx = lease->closed_ctx;
    mem_free(lease);
    on_closed(ctx);
}

static void close_handles(struct kube_lease *lease)
{
    uv_close((uv_handle_t *)&lease->timer, on_handle_closed);
    uv_close((uv_handle_t *)&lease->deadline_timer, on_handle_closed);
}

static void on_given_back(void *ctx, const struct kube_response *response)
{
    (void)response; /* it expires by itself, if the server couldn't be told */
    struct kube_lease *lease = ctx;
    lease->call = NULL;
    close_handles(lease);
}

static void give_back(struct kube_lease *lease)
{
    if (lease->is_leading) {
        lease->is_leading = false;
        send_write(lease, true, on_given_back);
    } else {
        close_handles(lease);
    }
}

static void on_release_limit(uv_timer_t *timer)
{
    struct kube_lease *lease = timer->data;
    if (lease->call != NULL) {
        kube_call_cancel(lease->call);
    }
}

void kube_lease_close(struct kube_lease *lease, void (*on_closed)(void *ctx), void *ctx)
{
    lease->is_closing = true;
    lease->on_closed = on_closed;
    lease->closed_ctx = ctx;
    uv_timer_stop(&lease->timer);
    uv_update_time(lease->options.loop);
    uv_timer_start(&lease->deadline_timer, on_release_limit, KUBE_LEASE_RELEASE_MS, 0);
    if (lease->call == NULL) {
        give_back(lease);
    }
}
