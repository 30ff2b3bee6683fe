/* http_port.c - the controller's own HTTP server: what it says, and to whom. */
#include "daemon.h"

#include "tallyman/kube/access.h"

static bool is_ready(void *ctx, struct str *ret_sentence)
{
    struct daemon *daemon = ctx;
    *ret_sentence = daemon->is_ready ? STR("ok") : STR("not all kinds are listed yet");
    return daemon->is_ready;
}

static void on_verdict(void *ctx, enum kube_access_verdict verdict)
{
    static const enum http_verdict verdicts[] = {
        [KUBE_ACCESS_ALLOWED] = HTTP_ALLOWED,
        [KUBE_ACCESS_UNKNOWN_USER] = HTTP_UNKNOWN_USER,
        [KUBE_ACCESS_FORBIDDEN] = HTTP_FORBIDDEN,
        [KUBE_ACCESS_UNAVAILABLE] = HTTP_UNAVAILABLE,
    };
    http_review_answer(ctx, verdicts[verdict]);
}

static void authorize(void *ctx, struct str token, struct str path, struct http_review *review)
{
    struct daemon *daemon = ctx;
    if (daemon->is_stopping) {
        http_review_answer(review, HTTP_UNAVAILABLE); /* the client is closing */
        return;
    }
    kube_access_review(daemon->access, token, path, on_verdict, review);
}

struct rc http_port_open(struct daemon *daemon, struct err *err)
{
    const struct daemon_options *from = &daemon->options;
    if ((from->tls_certificate_file == NULL) != (from->tls_key_file == NULL)) {
        return err_set(err, RC_INVALID,
                       "--tls-cert-file and --tls-private-key-file go together: give both, or "
                       "neither for a certificate that is made at the start");
    }
    if (!str_is_set(from->http_listen)) {
        return RC_SUCCESS;
    }
    struct http_options options = {.listen = from->http_listen,
                                   .metrics = daemon->telemetry.metrics,
                                   .is_ready = is_ready,
                                   .certificate_file = from->tls_certificate_file,
                                   .key_file = from->tls_key_file,
                                   .authorize = authorize,
                                   .ctx = daemon};
    daemon->access = kube_access_new(daemon->client);
    TRY(http_server_open(&daemon->loop, &options, &daemon->http, err));
    struct log_field fields[] = {
        LOG_STR("address", http_server_address(daemon->http)),
        LOG_STR("scheme", http_server_is_tls(daemon->http) ? STR("https") : STR("http")),
        {.key = NULL}};
    log_line(&daemon->log, LOG_INFO, "serving /healthz, /readyz and /metrics", fields);
    return RC_SUCCESS;
}

void http_port_free(struct daemon *daemon)
{
    kube_access_free(daemon->access);
    daemon->access = NULL;
}
