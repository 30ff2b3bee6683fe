#include "tallyman/kube/outcome.h"

#include <string.h>

#include "tallyman/base/limits.h"

static bool outcome_is_write(const char *method)
{
    return strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0;
}

static enum kube_outcome outcome_from_code(uint32_t code)
{
    switch (code) {
    case 401:
    case 403:
        return KUBE_FORBIDDEN;
    case 404:
        return KUBE_NOT_FOUND;
    case 408: /* the server gave up waiting for us */
    case 425:
    case 429:
        return KUBE_RETRY;
    case 409:
        return KUBE_CONFLICT;
    case 410:
        return KUBE_GONE;
    default:
        if (code >= 200 && code < 300) {
            return KUBE_DONE;
        }
        return code >= 400 && code < 500 ? KUBE_INVALID : KUBE_RETRY;
    }
}

/* What a server that failed may have done all the same. 429 and 503 are said before the work is
 * begun; 500, 502 and 504 may come out of the middle of it. */
static bool outcome_code_leaves_doubt(uint32_t code)
{
    return code >= 500 && code != 501 && code != 503;
}

int64_t outcome_parse_retry_after_ms(struct str value)
{
    int64_t seconds = 0;
    if (!str_to_i64(value, &seconds) || seconds <= 0) {
        return 0;
    }
    return seconds > KUBE_RETRY_AFTER_MAX_MS / 1000 ? KUBE_RETRY_AFTER_MAX_MS : seconds * 1000;
}

static const struct api_status *outcome_decode_status(struct arena *arena, struct str body)
{
    if (str_is_empty(body) || body.ptr[0] != '{') {
        return NULL; /* a proxy's page, or nothing */
    }
    void *value = NULL;
    struct rc rc = decode_json(arena, &api_status_schema, body, &value, NULL);
    if (rc_failed(rc)) {
        return NULL;
    }
    const struct api_status *status = value;
    return str_is_empty(status->reason) && str_is_empty(status->message) ? NULL : status;
}

static void outcome_write_refusal(struct text *text, const struct transfer_end *end,
                                  const struct api_status *status)
{
    text_addf(text, "the server answers %u", end->code);
    if (status == NULL) {
        struct str body = str_take(end->refusal, str_find_char(end->refusal, '\n'));
        body = str_cut_utf8(body, 200);
        if (body.len > 0) {
            text_addf(text, ": " STR_FMT, STR_ARG(body));
        }
        return;
    }
    if (!str_is_empty(status->reason)) {
        text_addf(text, " " STR_FMT, STR_ARG(status->reason));
    }
    /* The message of an immutable field is a dump of two kilobytes; the causes say which it is. */
    const struct api_status_details *details = status->details;
    if (details != NULL && details->causes.count > 0) {
        for (uint32_t i = 0; i < details->causes.count && i < 4; i++) {
            const struct api_status_cause *cause = &details->causes.items[i];
            struct str message = str_cut_utf8(cause->message, 300);
            text_addf(text, "%s " STR_FMT ": " STR_FMT, i == 0 ? ":" : ";", STR_ARG(cause->field),
                      STR_ARG(message));
        }
        return;
    }
    struct str message = str_cut_utf8(status->message, 600);
    text_addf(text, ": " STR_FMT, STR_ARG(message));
}

static struct str outcome_message(struct arena *arena, const struct outcome_request *request,
                                  const struct transfer_end *end, const struct api_status *status)
{
    struct text text;
    text_init(&text, arena, ERR_TEXT_MAX_BYTES);
    text_addf(&text, "%s " STR_FMT ": ", request->method, STR_ARG(request->path));
    if (end->ending == ENDED_WHOLE) {
        outcome_write_refusal(&text, end, status);
    } else {
        text_add(&text, end->error);
    }
    return text_str(&text);
}

static int64_t outcome_retry_after_ms(const struct transfer_end *end,
                                      const struct api_status *status)
{
    if (end->retry_after_ms > 0 || status == NULL || status->details == NULL ||
        !status->details->retry_after_seconds.is_set) {
        return end->retry_after_ms;
    }
    int64_t seconds = status->details->retry_after_seconds.value;
    if (seconds <= 0) {
        return 0;
    }
    return seconds > KUBE_RETRY_AFTER_MAX_MS / 1000 ? KUBE_RETRY_AFTER_MAX_MS : seconds * 1000;
}

void outcome_classify(struct arena *arena, const struct outcome_request *request,
                      const struct transfer_end *end, struct kube_response *ret_response)
{
    struct kube_response response = {.code = end->code, .outcome = KUBE_RETRY};
    bool is_write = outcome_is_write(request->method);
    switch (end->ending) {
    case ENDED_WHOLE:
        response.outcome = outcome_from_code(end->code);
        response.may_have_happened =
            is_write && response.outcome == KUBE_RETRY && outcome_code_leaves_doubt(end->code);
        break;
    case ENDED_UNSENT:
        break;
    case ENDED_BROKEN:
    case ENDED_SILENT:
    case ENDED_BY_HANDLER:
        response.may_have_happened = is_write;
        break;
    case ENDED_CANCELLED:
        response.outcome = KUBE_CANCELLED;
        response.may_have_happened = is_write;
        break;
    }
    if (response.outcome != KUBE_DONE) {
        response.status = outcome_decode_status(arena, end->refusal);
        response.retry_after_ms = outcome_retry_after_ms(end, response.status);
        response.message = outcome_message(arena, request, end, response.status);
    }
    *ret_response = response;
}
