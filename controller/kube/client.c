#include "tallyman/kube/client.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/kube/outcome.h"
#include "tallyman/kube/transport.h"

struct kube_client {
    struct kube_transport *transport;
    int64_t request_timeout_ms;
    struct arena scratch; /* of the answer that is being told */
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

struct kube_call {
    struct kube_client *client;     /* borrowed */
    struct kube_transfer *transfer; /* borrowed */
    const char *method;
    char *path; /* owned */
    void (*on_done)(void *ctx, const struct kube_response *response);
    void *ctx;
    char *body; /* owned */
    size_t body_bytes;
    uint32_t body_capacity;
    bool is_too_large;
};

/* -- the object's meta in an answer ------------------------------------------------------------ */

static const struct field answer_meta_fields[] = {
    {"name", FIELD_STRING, offsetof(struct kube_answer_meta, name), NULL},
    {"namespace", FIELD_STRING, offsetof(struct kube_answer_meta, namespace_name), NULL},
    {"uid", FIELD_STRING, offsetof(struct kube_answer_meta, uid), NULL},
    {"resourceVersion", FIELD_STRING, offsetof(struct kube_answer_meta, resource_version), NULL},
    {"generation", FIELD_INT, offsetof(struct kube_answer_meta, generation), NULL},
};

static const struct schema answer_meta_schema = {"ObjectMeta", sizeof(struct kube_answer_meta),
                                                 answer_meta_fields,
                                                 ARRAY_COUNT(answer_meta_fields)};

struct answer {
    struct kube_answer_meta *meta;
};

static const struct field answer_fields[] = {
    {"metadata", FIELD_OBJECT_PTR, offsetof(struct answer, meta), &answer_meta_schema},
};

static const struct schema answer_schema = {"PartialObjectMetadata", sizeof(struct answer),
                                            answer_fields, ARRAY_COUNT(answer_fields)};

static const struct kube_answer_meta *call_decode_meta(struct arena *arena, struct str body)
{
    void *value = NULL;
    if (str_is_empty(body) || body.ptr[0] != '{') {
        return NULL;
    }
    struct rc rc = decode_json(arena, &answer_schema, body, &value, NULL);
    if (rc_failed(rc)) {
        return NULL;
    }
    const struct answer *answer = value;
    return answer->meta == NULL || str_is_empty(answer->meta->uid) ? NULL : answer->meta;
}

/* -- a call ------------------------------------------------------------------------------------ */

static bool call_on_data(void *ctx, const char *bytes, size_t count)
{
    struct kube_call *call = ctx;
    if (count > KUBE_RESPONSE_MAX_BYTES - call->body_bytes) {
        call->is_too_large = true;
        return false;
    }
    if (call->body_bytes + count > call->body_capacity) {
        size_t capacity = call->body_capacity * (size_t)2;
        size_t needed = call->body_bytes + count;
        call->body_capacity = (uint32_t)(capacity > needed ? capacity : needed);
        call->body = mem_realloc(call->body, call->body_capacity);
    }
    memcpy(call->body + call->body_bytes, bytes, count);
    call->body_bytes += count;
    return true;
}

static void call_on_end(void *ctx, const struct transfer_end *end)
{
    struct kube_call *call = ctx;
    struct arena *scratch = &call->client->scratch;
    struct kube_response response;
    struct outcome_request request = {call->method, str_from_c(call->path)};
    struct transfer_end told = *end;
    if (call->is_too_large && end->ending == ENDED_BY_HANDLER) {
        told.error =
            arena_format(scratch, "the answer is larger than %u bytes", KUBE_RESPONSE_MAX_BYTES);
    }
    outcome_classify(scratch, &request, &told, &response);
    if (response.outcome == KUBE_DONE) {
        response.body = (struct str){call->body, call->body_bytes};
        if (strcmp(call->method, "GET") != 0) {
            response.meta = call_decode_meta(scratch, response.body);
        }
    }
    call->on_done(call->ctx, &response);
    arena_reset(scratch);
    mem_free(call->path);
    mem_free(call->body);
    mem_free(call);
}

struct kube_call *kube_client_send(struct kube_client *client, const struct kube_request *request)
{
    struct kube_call *call = MEM_NEW(struct kube_call);
    call->client = client;
    call->method = request->method;
    call->on_done = request->on_done;
    call->ctx = request->ctx;
    call->path = mem_alloc(request->path.len + 1);
    memcpy(call->path, request->path.ptr, request->path.len);
    call->path[request->path.len] = '\0';
    struct transfer_spec spec = {
        .lane = request->is_urgent ? LANE_URGENT : LANE_REQUEST,
        .method = request->method,
        .verb = request->verb,
        .resource = request->resource,
        .path = request->path,
        .query = request->query,
        .body = request->body,
        .content_type = request->content_type,
        .accept = request->accept,
        .timeout_ms = request->timeout_ms > 0 ? request->timeout_ms : client->request_timeout_ms,
        .handler = {.on_data = call_on_data, .on_end = call_on_end, .ctx = call},
    };
    call->transfer = kube_transfer_start(client->transport, &spec);
    return call;
}

void kube_call_cancel(struct kube_call *call)
{
    kube_transfer_cancel(call->transfer);
}

/* -- the client -------------------------------------------------------------------------------- */

struct rc kube_client_open(const struct kube_client_options *options,
                           struct kube_client **ret_client, struct err *err)
{
    struct kube_transport *transport = NULL;
    TRY(kube_transport_open(options, &transport, err));
    struct kube_client *client = MEM_NEW(struct kube_client);
    client->transport = transport;
    client->request_timeout_ms =
        options->request_timeout_ms > 0 ? options->request_timeout_ms : KUBE_REQUEST_TIMEOUT_MS;
    arena_init(&client->scratch);
    *ret_client = client;
    return RC_SUCCESS;
}

static void client_on_transport_closed(void *ctx)
{
    struct kube_client *client = ctx;
    void (*on_closed)(void *ctx) = client->on_closed;
    void *closed_ctx = client->closed_ctx;
    arena_deinit(&client->scratch);
    mem_free(client);
    if (on_closed != NULL) {
        on_closed(closed_ctx);
    }
}

void kube_client_close(struct kube_client *client, void (*on_closed)(void *ctx), void *ctx)
{
    client->on_closed = on_closed;
    client->closed_ctx = ctx;
    kube_transport_close(client->transport, client_on_transport_closed, client);
}

struct kube_transport *kube_client_transport(struct kube_client *client)
{
    return client->transport;
}

const struct kube_metrics *kube_client_metrics(const struct kube_client *client)
{
    return kube_transport_metrics(client->transport);
}

struct str kube_client_server(const struct kube_client *client)
{
    return kube_transport_server(client->transport);
}

const char *kube_outcome_name(enum kube_outcome outcome)
{
    switch (outcome) {
    case KUBE_DONE:
        return "done";
    case KUBE_CONFLICT:
        return "conflict";
    case KUBE_NOT_FOUND:
        return "not found";
    case KUBE_GONE:
        return "gone";
    case KUBE_INVALID:
        return "invalid";
    case KUBE_FORBIDDEN:
        return "forbidden";
    case KUBE_RETRY:
        return "retry";
    case KUBE_CANCELLED:
        return "cancelled";
    }
    return "?";
}

bool kube_status_names_field(const struct api_status *status, const char *field)
{
    if (status == NULL || status->details == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < status->details->causes.count; i++) {
        if (str_eq_c(status->details->causes.items[i].field, field)) {
            return true;
        }
    }
    return false;
}
