#include "http_internal.h"

#include <string.h>

#include "tallyman/base/metrics.h"

#define PLAIN_TYPE   "text/plain; charset=utf-8"
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct answer {
    unsigned status;
    struct str body; /* borrowed until it is queued, which copies it */
    bool ends_line;  /* a sentence gets its newline */
    const char *type;
    const char *allow; /* for 405 */
    bool asks_token;   /* for 401 */
};

static struct answer say(unsigned status, struct str sentence)
{
    return (struct answer){
        .status = status, .body = sentence, .ends_line = true, .type = PLAIN_TYPE};
}

static struct answer answer_state(const struct http_server *server, http_state_fn ask)
{
    struct str sentence = STR("ok");
    bool is_so = ask == NULL || ask(server->options.ctx, &sentence);

    return say(is_so ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, sentence);
}

static struct answer answer_path(const struct http_server *server, const char *path)
{
    if (strcmp(path, "/healthz") == 0) {
        return answer_state(server, server->options.is_healthy);
    }
    if (strcmp(path, "/readyz") == 0) {
        return answer_state(server, server->options.is_ready);
    }
    if (strcmp(path, "/metrics") == 0 && server->options.metrics != NULL) {
        return (struct answer){
            .status = MHD_HTTP_OK,
            .body = metrics_render(server->options.metrics),
            .type = METRICS_TYPE,
        };
    }
    return say(
        MHD_HTTP_NOT_FOUND,
        STR("there is nothing at this path; this server has /healthz, /readyz and /metrics"));
}

static bool is_reading(const char *method)
{
    return strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
}

/* A kubelet asks the health paths without a token. */
static bool needs_review(const struct http_server *server, const char *path)
{
    return server->tls != NULL && strcmp(path, "/metrics") == 0;
}

static struct answer answer_refused(enum http_verdict verdict)
{
    struct answer answer;

    switch (verdict) {
    case HTTP_FORBIDDEN:
        return say(
            MHD_HTTP_FORBIDDEN,
            STR("your account may not get this path; the ClusterRole tallyman-metrics-reader "
                "lets it"));
    case HTTP_UNAVAILABLE:
        return say(MHD_HTTP_SERVICE_UNAVAILABLE,
                   STR("the API server can't be asked now whether you may get this path"));
    case HTTP_NOT_ASKED:
    case HTTP_ALLOWED:
    case HTTP_UNKNOWN_USER:
        break;
    }
    answer =
        say(MHD_HTTP_UNAUTHORIZED,
            STR("this path needs \"Authorization: Bearer TOKEN\" with a token of this cluster"));
    answer.asks_token = true;
    return answer;
}

static struct answer answer_request(const struct http_server *server,
                                    const struct http_client *client, const char *path,
                                    const char *method)
{
    if (http_is_foreign(server, client->connection)) {
        return say(
            MHD_HTTP_FORBIDDEN,
            STR("the request comes from another site (its Host or Origin isn't this server)"));
    }
    if (!is_reading(method)) {
        struct answer answer =
            say(MHD_HTTP_METHOD_NOT_ALLOWED, STR("this server takes GET and HEAD only"));

        answer.allow = "GET, HEAD";
        return answer;
    }
    if (needs_review(server, path) && client->verdict != HTTP_ALLOWED) {
        return answer_refused(client->verdict);
    }
    return answer_path(server, path);
}

/* MHD frees the copy. A sentence is followed by a newline, so that a terminal shows it well. */
static struct MHD_Response *response_of(const struct answer *answer)
{
    char line[2048];
    struct str body = answer->body;

    if (answer->ends_line) {
        body = str_cut_utf8(body, sizeof(line) - 1);
        if (body.len > 0) {
            memcpy(line, body.ptr, body.len);
        }
        line[body.len] = '\n';
        body = (struct str){line, body.len + 1};
    }
    union {
        const void *constant;
        void *plain;
    } bytes = {.constant = body.ptr};

    return MHD_create_response_from_buffer(body.len, bytes.plain, MHD_RESPMEM_MUST_COPY);
}

static bool add_headers(struct MHD_Response *response, const struct answer *answer)
{
    bool is_done = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type) &&
                   MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") &&
                   MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");

    if (answer->allow != NULL) {
        is_done =
            is_done && MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, answer->allow);
    }
    if (answer->asks_token) {
        is_done = is_done &&
                  MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    }
    return is_done;
}

enum MHD_Result http_answer(struct http_server *server, struct http_client *client,
                            const char *path, const char *method)
{
    if (is_reading(method) && needs_review(server, path) &&
        !http_ask(server, client, str_from_c(path))) {
        return MHD_YES;
    }
    struct answer answer = answer_request(server, client, path, method);
    struct MHD_Response *response = response_of(&answer);
    enum MHD_Result result = MHD_NO; /* ends the connection */

    if (response == NULL) {
        return MHD_NO;
    }
    if (add_headers(response, &answer)) {
        result = MHD_queue_response(client->connection, answer.status, response);
    }
    MHD_destroy_response(response);
    return result;
}
