/* How a transport comes to be: the server's address taken apart, the two lanes, the credentials. */
#include "transport_internal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

struct url_parts {
    char *scheme;
    char *host;
    char *port;
    char *path;
};

static void url_parts_free(struct url_parts *parts)
{
    curl_free(parts->scheme);
    curl_free(parts->host);
    curl_free(parts->port);
    curl_free(parts->path);
}

static bool url_parse(struct str server, struct url_parts *parts)
{
    CURLU *url = curl_url();
    bool is_good =
        url != NULL && curl_url_set(url, CURLUPART_URL, server.ptr, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_SCHEME, &parts->scheme, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_HOST, &parts->host, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_PORT, &parts->port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_PATH, &parts->path, 0) == CURLUE_OK;
    curl_url_cleanup(url);
    return is_good;
}

static bool host_is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "[::1]") == 0;
}

/* tls-server-name: the URL carries the name that the certificate has, and the connection goes to
 * the real host all the same. */
static void transport_set_address(struct kube_transport *transport, const struct url_parts *parts)
{
    const struct kube_config *config = transport->config;
    char base[2048];
    char connect_to[1024];
    const char *prefix = strcmp(parts->path, "/") == 0 ? "" : parts->path;
    const char *host = parts->host;
    if (!str_is_empty(config->tls_server_name)) {
        host = config->tls_server_name.ptr;
        snprintf(connect_to, sizeof(connect_to), "%s:%s:%s:%s", host, parts->port, parts->host,
                 parts->port);
        transport->connect_to = curl_slist_append(NULL, connect_to);
    }
    snprintf(base, sizeof(base), "%s://%s:%s%s", parts->scheme, host, parts->port, prefix);
    transport->base_url = mem_alloc(strlen(base) + 1);
    memcpy(transport->base_url, base, strlen(base) + 1);
    transport->is_loopback = host_is_loopback(parts->host);
}

static struct rc transport_parse_server(struct kube_transport *transport, struct err *err)
{
    const struct kube_config *config = transport->config;
    struct url_parts parts = {0};
    bool is_good = url_parse(config->server, &parts) &&
                   (strcmp(parts.scheme, "https") == 0 || strcmp(parts.scheme, "http") == 0);
    if (is_good) {
        transport_set_address(transport, &parts);
    }
    url_parts_free(&parts);
    return is_good ? RC_SUCCESS
                   : err_set(err, RC_INVALID,
                             STR_FMT ": server \"" STR_FMT
                                     "\" is not an address such as https://10.0.0.1:6443",
                             STR_ARG(config->source), STR_ARG(config->server));
}

static void transport_open_lanes(struct kube_transport *transport)
{
    struct curl_loop *const lanes[] = {&transport->request_lane, &transport->stream_lane};
    for (size_t i = 0; i < ARRAY_COUNT(lanes); i++) {
        lanes[i]->on_done = transport_on_done;
        lanes[i]->on_closed = transport_on_part_closed;
        lanes[i]->ctx = transport;
        curl_loop_open(lanes[i], transport->loop);
    }
    CURLM *requests = transport->request_lane.multi;
    curl_multi_setopt(requests, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    curl_multi_setopt(requests, CURLMOPT_MAX_HOST_CONNECTIONS, (long)KUBE_CONNECTIONS_MAX);
    curl_multi_setopt(requests, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)KUBE_IN_FLIGHT_MAX);
    curl_multi_setopt(transport->stream_lane.multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
}

static int64_t or_default(int64_t value_ms, int64_t default_ms)
{
    return value_ms > 0 ? value_ms : default_ms;
}

static struct rc transport_init(struct kube_transport *transport,
                                const struct kube_client_options *options, struct err *err)
{
    char agent[128];
    snprintf(agent, sizeof(agent), "tallyman/%s", options->version);
    transport->user_agent = mem_alloc(strlen(agent) + 1);
    memcpy(transport->user_agent, agent, strlen(agent) + 1);
    TRY(transport_parse_server(transport, err));
    struct kube_auth_options auth = {
        .loop = transport->loop,
        .config = transport->config,
        .plugin_timeout_ms = or_default(options->credential_timeout_ms, KUBE_EXEC_TIMEOUT_MS),
        .reread_ms = or_default(options->credential_reread_ms, KUBE_TOKEN_REREAD_MS),
        .on_ready = transport_on_credentials,
        .on_closed = transport_on_part_closed,
        .ctx = transport,
    };
    return kube_auth_open(&auth, &transport->auth, err);
}

static void transport_discard(struct kube_transport *transport)
{
    authority_deinit(&transport->authority);
    curl_slist_free_all(transport->connect_to);
    mem_free(transport->base_url);
    mem_free(transport->user_agent);
    mem_free(transport);
    curl_global_cleanup();
}

struct rc kube_transport_open(const struct kube_client_options *options,
                              struct kube_transport **ret_transport, struct err *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return err_set(err, RC_IO, "libcurl can't be initialised");
    }
    /* OpenSSL writes to sockets without MSG_NOSIGNAL. */
    signal(SIGPIPE, SIG_IGN);

    struct kube_transport *transport = MEM_NEW(struct kube_transport);
    transport->loop = options->loop;
    transport->config = options->config;
    transport->random = options->seed;
    transport->connect_timeout_ms =
        or_default(options->connect_timeout_ms, KUBE_CONNECT_TIMEOUT_MS);
    authority_init(&transport->authority);
    TAILQ_INIT(&transport->queued);
    TAILQ_INIT(&transport->active);
    TAILQ_INIT(&transport->ending);
    /* All that may fail comes before the first libuv handle, which only the loop can take back. */
    struct rc rc = transport_init(transport, options, err);
    if (rc_failed(rc)) {
        transport_discard(transport);
        return rc;
    }
    transport_open_lanes(transport);
    uv_idle_init(transport->loop, &transport->work);
    uv_timer_init(transport->loop, &transport->idle_timer);
    transport->work.data = transport;
    transport->idle_timer.data = transport;
    *ret_transport = transport;
    return RC_SUCCESS;
}
