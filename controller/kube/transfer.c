/* One curl handle: its options, its answer as it arrives, and what its end means. */
#include "transport_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/kube/outcome.h"

void transfer_set_ending(struct kube_transfer *transfer, enum transfer_ending ending,
                         const char *format, ...)
{
    if (transfer->ending != 0) {
        return; /* what was first is the cause */
    }
    transfer->ending = ending;
    va_list args;
    va_start(args, format);
    vsnprintf(transfer->error, sizeof(transfer->error), format, args);
    va_end(args);
}

void transfer_count(struct kube_transfer *transfer)
{
    struct kube_transport *transport = transfer->transport;
    struct kube_metrics *metrics = &transport->metrics;
    if (transfer->is_counted) {
        return;
    }
    transfer->is_counted = true;
    for (uint32_t i = 0; i < metrics->request_count; i++) {
        struct kube_request_count *series = &metrics->requests[i];
        if (series->code == transfer->code && strcmp(series->verb, transfer->verb) == 0 &&
            strcmp(series->resource, transfer->resource) == 0) {
            series->count++;
            return;
        }
    }
    if (metrics->request_count >= KUBE_METRIC_SERIES_MAX) {
        metrics->other_requests++;
        return;
    }
    metrics->requests = mem_grow(metrics->requests, metrics->request_count,
                                 &transport->request_capacity, sizeof(*metrics->requests));
    struct kube_request_count *series = &metrics->requests[metrics->request_count++];
    *series =
        (struct kube_request_count){.verb = transfer->verb, .code = transfer->code, .count = 1};
    memcpy(series->resource, transfer->resource, sizeof(series->resource));
}

/* -- the answer -------------------------------------------------------------------------------- */

static void transfer_note_code(struct kube_transfer *transfer)
{
    long code = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &code);
    transfer->code = code > 0 ? (uint32_t)code : 0;
}

static bool header_value(struct str line, const char *name, struct str *ret_value)
{
    size_t name_len = strlen(name);
    if (line.len <= name_len || strncasecmp(line.ptr, name, name_len) != 0 ||
        line.ptr[name_len] != ':') {
        return false;
    }
    struct str value = str_skip(line, name_len + 1);
    while (value.len > 0 && (value.ptr[0] == ' ' || value.ptr[0] == '\t')) {
        value = str_skip(value, 1);
    }
    while (value.len > 0 && strchr(" \t\r\n", value.ptr[value.len - 1]) != NULL) {
        value.len--;
    }
    *ret_value = value;
    return true;
}

static size_t transfer_on_header(char *bytes, size_t size, size_t items, void *ctx)
{
    struct kube_transfer *transfer = ctx;
    struct str line = {bytes, size * items};
    struct str value = STR_NONE;
    transfer->last_byte_ms = uv_now(transfer->transport->loop);
    transfer->header_bytes += line.len;
    transfer->transport->metrics.received_bytes += line.len;
    if (transfer->header_bytes > KUBE_HEADERS_MAX_BYTES) {
        transfer_set_ending(transfer, ENDED_BROKEN, "the answer's headers are larger than %u bytes",
                            KUBE_HEADERS_MAX_BYTES);
        return 0;
    }
    if (str_starts_with(line, STR("HTTP/"))) { /* a new answer, maybe after a 1xx */
        transfer->retry_after_ms = 0;
        kube_inflate_free(transfer->inflate);
        transfer->inflate = NULL;
    } else if (header_value(line, "retry-after", &value)) {
        transfer->retry_after_ms = outcome_parse_retry_after_ms(value);
    } else if (header_value(line, "content-encoding", &value) && str_eq_c(value, "gzip") &&
               transfer->lane == LANE_STREAM && transfer->inflate == NULL) {
        transfer->inflate = kube_inflate_new();
    }
    return line.len;
}

static bool transfer_give(void *ctx, const char *bytes, size_t count)
{
    struct kube_transfer *transfer = ctx;
    if (transfer->ending != 0) {
        return false; /* cancelled meanwhile */
    }
    if (transfer->code < 200 || transfer->code >= 300) {
        size_t room = KUBE_REFUSAL_MAX_BYTES - transfer->refusal_bytes;
        size_t kept = count < room ? count : room;
        if (transfer->refusal == NULL) {
            transfer->refusal = mem_alloc(KUBE_REFUSAL_MAX_BYTES);
        }
        memcpy(transfer->refusal + transfer->refusal_bytes, bytes, kept);
        transfer->refusal_bytes += kept;
        if (kept < count) {
            transfer_set_ending(transfer, ENDED_WHOLE, "%s", ""); /* more says nothing more */
        }
        return kept == count;
    }
    if (!transfer->handler.on_data(transfer->handler.ctx, bytes, count)) {
        transfer_set_ending(transfer, ENDED_BY_HANDLER, "the answer was not read to its end");
        return false;
    }
    return transfer->ending == 0;
}

static size_t transfer_on_body(char *bytes, size_t size, size_t items, void *ctx)
{
    struct kube_transfer *transfer = ctx;
    size_t count = size * items;
    transfer->last_byte_ms = uv_now(transfer->transport->loop);
    transfer->transport->metrics.received_bytes += count;
    transfer_note_code(transfer);
    if (transfer->lane == LANE_STREAM) {
        transfer_count(transfer); /* it may last for half an hour */
    }
    if (transfer->inflate == NULL) {
        return transfer_give(transfer, bytes, count) ? count : 0;
    }
    struct err err;
    struct kube_inflate_sink sink = {.on_bytes = transfer_give, .ctx = transfer};
    struct rc rc = kube_inflate_feed(transfer->inflate, bytes, count, sink, &err);
    if (rc_failed(rc)) {
        transfer_set_ending(transfer, ENDED_BROKEN, "%s", err.text);
        return 0;
    }
    return count;
}

/* -- the request ------------------------------------------------------------------------------- */

static void transfer_add_header(struct kube_transfer *transfer, const char *line)
{
    struct curl_slist *headers = curl_slist_append(transfer->headers, line);
    if (headers == NULL) {
        mem_die("out of memory for a request's headers");
    }
    transfer->headers = headers;
}

static void transfer_add_header_value(struct kube_transfer *transfer, const char *name,
                                      const char *value)
{
    char line[256];
    snprintf(line, sizeof(line), "%s: %s", name, value == NULL ? "application/json" : value);
    transfer_add_header(transfer, line);
}

/* An option that isn't set (for want of memory) would send something else: a POST for a PATCH. */
#define SET(transfer, option, value)                                                               \
    transfer_note_option((transfer), curl_easy_setopt((transfer)->easy, (option), (value)))

static void transfer_note_option(struct kube_transfer *transfer, CURLcode result)
{
    if (result != CURLE_OK) {
        transfer_set_ending(transfer, ENDED_UNSENT, "libcurl: %s", curl_easy_strerror(result));
    }
}

static void transfer_set_headers(struct kube_transfer *transfer,
                                 const struct kube_credentials *credentials)
{
    transfer_add_header_value(transfer, "Accept", transfer->accept);
    if (transfer->body != NULL) {
        transfer_add_header_value(transfer, "Content-Type", transfer->content_type);
        transfer_add_header(transfer, "Expect:"); /* no 100-continue */
    }
    if (transfer->lane == LANE_STREAM) {
        transfer_add_header(transfer, "Accept-Encoding: gzip");
    }
    if (str_is_set(credentials->authorization)) {
        transfer_add_header(transfer, credentials->authorization.ptr);
    }
    SET(transfer, CURLOPT_HTTPHEADER, transfer->headers);
}

static struct curl_blob blob_of(struct str bytes)
{
    /* libcurl copies it; the cast only sheds a const that it doesn't have in its interface. */
    return (struct curl_blob){
        .data = (void *)(uintptr_t)bytes.ptr, .len = bytes.len, .flags = CURL_BLOB_COPY};
}

static void transfer_set_tls(struct kube_transfer *transfer,
                             const struct kube_credentials *credentials)
{
    const struct kube_config *config = transfer->transport->config;
    if (config->is_insecure) {
        SET(transfer, CURLOPT_SSL_VERIFYPEER, 0L);
        SET(transfer, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    struct str ca_pem = authority_pem(&transfer->transport->authority, config);
    if (str_is_set(ca_pem)) {
        /* That authority alone: the system's are left out. */
        struct curl_blob ca = blob_of(ca_pem);
        SET(transfer, CURLOPT_CAPATH, NULL);
        SET(transfer, CURLOPT_CAINFO, NULL);
        SET(transfer, CURLOPT_CAINFO_BLOB, &ca);
    }
    if (str_is_set(credentials->certificate_pem)) {
        struct curl_blob certificate = blob_of(credentials->certificate_pem);
        struct curl_blob key = blob_of(credentials->key_pem);
        SET(transfer, CURLOPT_SSLCERT_BLOB, &certificate);
        SET(transfer, CURLOPT_SSLKEY_BLOB, &key);
    }
}

static void transfer_set_connection(struct kube_transfer *transfer)
{
    const struct kube_transport *transport = transfer->transport;
    SET(transfer, CURLOPT_URL, transfer->url);
    SET(transfer, CURLOPT_CONNECT_TO, transport->connect_to);
    SET(transfer, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(transfer, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(transfer, CURLOPT_PIPEWAIT, transfer->lane == LANE_REQUEST ? 1L : 0L);
    SET(transfer, CURLOPT_NOSIGNAL, 1L);
    SET(transfer, CURLOPT_TCP_KEEPALIVE, 1L);
    SET(transfer, CURLOPT_TCP_KEEPIDLE, 30L);
    SET(transfer, CURLOPT_TCP_KEEPINTVL, 10L);
    SET(transfer, CURLOPT_CONNECTTIMEOUT_MS, (long)transport->connect_timeout_ms);
    SET(transfer, CURLOPT_TIMEOUT_MS, (long)transfer->timeout_ms);
    if (str_is_set(transport->config->proxy_url)) {
        SET(transfer, CURLOPT_PROXY, transport->config->proxy_url.ptr);
        SET(transfer, CURLOPT_NOPROXY, "");
    } else if (transport->is_loopback) {
        SET(transfer, CURLOPT_NOPROXY, "*"); /* as Go does, whatever HTTPS_PROXY says */
    }
}

static void transfer_set_body(struct kube_transfer *transfer)
{
    if (transfer->body != NULL) {
        SET(transfer, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)transfer->body_bytes);
        SET(transfer, CURLOPT_POSTFIELDS, transfer->body);
    } else {
        SET(transfer, CURLOPT_HTTPGET, 1L);
    }
    SET(transfer, CURLOPT_CUSTOMREQUEST, transfer->method);
}

bool transfer_launch(struct kube_transfer *transfer)
{
    struct kube_transport *transport = transfer->transport;
    const struct kube_credentials *credentials = kube_auth_credentials(transport->auth);
    if (transport->spare_count > 0) {
        transfer->easy = transport->spare[--transport->spare_count];
    } else {
        transfer->easy = curl_easy_init();
    }
    if (transfer->easy == NULL) {
        mem_die("out of memory for a curl handle");
    }
    transfer->credential_generation = credentials->generation;
    transfer->last_byte_ms = uv_now(transport->loop);
    transfer_set_connection(transfer);
    transfer_set_tls(transfer, credentials);
    transfer_set_body(transfer);
    transfer_set_headers(transfer, credentials);
    SET(transfer, CURLOPT_USERAGENT, transport->user_agent);
    SET(transfer, CURLOPT_PRIVATE, transfer);
    SET(transfer, CURLOPT_ERRORBUFFER, transfer->curl_error);
    SET(transfer, CURLOPT_HEADERFUNCTION, transfer_on_header);
    SET(transfer, CURLOPT_HEADERDATA, transfer);
    SET(transfer, CURLOPT_WRITEFUNCTION, transfer_on_body);
    SET(transfer, CURLOPT_WRITEDATA, transfer);

    struct curl_loop *lane =
        transfer->lane == LANE_REQUEST ? &transport->request_lane : &transport->stream_lane;
    if (transfer->ending != 0) {
        return false;
    }
    CURLMcode result = curl_multi_add_handle(lane->multi, transfer->easy);
    if (result != CURLM_OK) {
        transfer_set_ending(transfer, ENDED_UNSENT, "libcurl: %s", curl_multi_strerror(result));
        return false;
    }
    return true;
}

void transfer_withdraw(struct kube_transfer *transfer)
{
    struct kube_transport *transport = transfer->transport;
    if (transfer->easy == NULL) {
        return;
    }
    struct curl_loop *lane =
        transfer->lane == LANE_REQUEST ? &transport->request_lane : &transport->stream_lane;
    curl_multi_remove_handle(lane->multi, transfer->easy);
    curl_easy_reset(transfer->easy);
    if (transport->spare_count < ARRAY_COUNT(transport->spare)) {
        transport->spare[transport->spare_count++] = transfer->easy;
    } else {
        curl_easy_cleanup(transfer->easy);
    }
    transfer->easy = NULL;
    curl_slist_free_all(transfer->headers);
    transfer->headers = NULL;
}

/* -- the end ----------------------------------------------------------------------------------- */

void transfer_conclude(struct kube_transfer *transfer, CURLcode result)
{
    transfer_note_code(transfer);
    if (result == CURLE_OK) {
        if (transfer->inflate != NULL && !kube_inflate_is_complete(transfer->inflate)) {
            transfer_set_ending(transfer, ENDED_BROKEN, "the compressed answer broke off");
        }
        transfer_set_ending(transfer, ENDED_WHOLE, "%s", "");
        return;
    }
    curl_off_t ready_us = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &ready_us);
    const char *cause =
        transfer->curl_error[0] != '\0' ? transfer->curl_error : curl_easy_strerror(result);
    const struct kube_config *config = transfer->transport->config;
    if (ready_us == 0) {
        long os_error = 0;
        curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &os_error);
        if (result == CURLE_COULDNT_CONNECT && os_error != 0) {
            cause = strerror((int)os_error);
        }
        transfer_set_ending(transfer, ENDED_UNSENT, "can't reach " STR_FMT " (" STR_FMT "): %s",
                            STR_ARG(config->server), STR_ARG(config->source), cause);
    } else if (result == CURLE_OPERATION_TIMEDOUT) {
        transfer_set_ending(transfer, ENDED_SILENT, "no whole answer within %lld ms",
                            (long long)transfer->timeout_ms);
    } else {
        transfer_set_ending(transfer, ENDED_BROKEN, "the connection broke off: %s", cause);
    }
}

void transfer_rewind(struct kube_transfer *transfer)
{
    kube_inflate_free(transfer->inflate);
    transfer->inflate = NULL;
    transfer->refusal_bytes = 0;
    transfer->header_bytes = 0;
    transfer->retry_after_ms = 0;
    transfer->code = 0;
    transfer->ending = 0;
    transfer->is_counted = false;
    transfer->error[0] = '\0';
    transfer->curl_error[0] = '\0';
}

void transfer_free(struct kube_transfer *transfer)
{
    transfer_withdraw(transfer);
    kube_inflate_free(transfer->inflate);
    mem_free(transfer->refusal);
    mem_free(transfer->url);
    mem_free(transfer->body);
    mem_free(transfer);
}
