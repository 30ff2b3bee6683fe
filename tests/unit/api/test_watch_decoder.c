/* What an API server sends: watches and lists, cut anywhere, with objects that don't decode. */
#include "support/check.h"

#include <stdio.h>
#include <string.h>

#include "tallyman/api/codec.h"
#include "tallyman/api/job.h"

/* A trace of what the handler was told, one line a call. */
struct trace {
    char text[4096];
    size_t len;
    bool is_refusing;
};

static void add(struct trace *trace, const char *word, struct str a, struct str b)
{
    size_t room = sizeof(trace->text) - trace->len;

    trace->len += (size_t)snprintf(trace->text + trace->len, room, "%s " STR_FMT " " STR_FMT "\n",
                                   word, STR_ARG(a), STR_ARG(b));
    assert_true(trace->len < sizeof(trace->text));
}

static struct rc on_event(void *ctx, const struct watch_event *event, struct err *err)
{
    static const char *const names[] = {
        [WATCH_ADDED] = "added",       [WATCH_MODIFIED] = "modified", [WATCH_DELETED] = "deleted",
        [WATCH_BOOKMARK] = "bookmark", [WATCH_ERROR] = "error",
    };
    struct trace *trace = ctx;

    if (trace->is_refusing) {
        return err_set(err, RC_RETRY, "not now");
    }
    if (event->type == WATCH_ERROR) {
        assert_null(event->object.value);
        add(trace, "error", event->status->reason, event->status->message);
        return RC_SUCCESS;
    }
    assert_null(event->status);
    check_i64(event->object.kind, KIND_JOB);
    add(trace, names[event->type], event->object.value->name,
        event->object.value->resource_version);
    return RC_SUCCESS;
}

static void on_malformed(void *ctx, const struct object_meta *meta, const struct err *why)
{
    add(ctx, "malformed", meta->name, err_text(why));
}

static struct rc watch_chunks(struct trace *trace, bool is_strict, struct str text,
                              size_t chunk_bytes, struct err *err)
{
    struct watch_handler handler = {on_event, is_strict ? NULL : on_malformed, trace};
    struct watch_decoder *decoder = watch_decoder_new(kind_info(KIND_JOB), handler);
    struct rc rc = RC_SUCCESS;

    trace->len = 0;
    trace->text[0] = '\0';
    for (size_t at = 0; at < text.len && !rc_failed(rc); at += chunk_bytes) {
        struct str chunk = str_take(str_skip(text, at), chunk_bytes);

        rc = watch_decoder_feed(decoder, chunk.ptr, chunk.len, err);
    }
    if (!rc_failed(rc)) {
        rc = watch_decoder_finish(decoder, err);
    }
    watch_decoder_free(decoder);
    return rc;
}

static struct rc list_chunks(struct trace *trace, struct str text, size_t chunk_bytes,
                             char *ret_meta, size_t meta_bytes, struct err *err)
{
    struct watch_handler handler = {on_event, on_malformed, trace};
    struct list_decoder *decoder = list_decoder_new(kind_info(KIND_JOB), handler);
    struct list_meta meta = {0};
    struct rc rc = RC_SUCCESS;

    trace->len = 0;
    trace->text[0] = '\0';
    for (size_t at = 0; at < text.len && !rc_failed(rc); at += chunk_bytes) {
        struct str chunk = str_take(str_skip(text, at), chunk_bytes);

        rc = list_decoder_feed(decoder, chunk.ptr, chunk.len, err);
    }
    if (!rc_failed(rc)) {
        rc = list_decoder_finish(decoder, &meta, err);
    }
    snprintf(ret_meta, meta_bytes, STR_FMT " " STR_FMT " %d", STR_ARG(meta.resource_version),
             STR_ARG(meta.continue_token),
             meta.remaining_item_count.is_set ? (int)meta.remaining_item_count.value : -1);
    list_decoder_free(decoder);
    return rc;
}

#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}"
#define JOB(name, version)                                                                         \
    "{\"kind\":\"Job\",\"apiVersion\":\"batch/v1\",\"metadata\":{\"name\":\"" name                 \
    "\",\"namespace\":\"ml\",\"resourceVersion\":\"" version "\"},\"spec\":{\"parallelism\":2}}"

static void check_watch(const char *text, const char *expected)
{
    static struct trace trace;
    struct err err = {{0}};

    for (size_t chunk_bytes = 1; chunk_bytes <= strlen(text); chunk_bytes++) {
        struct rc rc = watch_chunks(&trace, false, str_from_c(text), chunk_bytes, &err);

        if (rc_failed(rc)) {
            fail_msg("chunks of %zu: %s", chunk_bytes, err.text);
        }
        assert_string_equal(trace.text, expected);
    }
}

static void check_watch_refused(const char *text, const char *sentence)
{
    static struct trace trace;
    struct err err = {{0}};

    for (size_t chunk_bytes = 1; chunk_bytes <= strlen(text); chunk_bytes++) {
        check_i64(watch_chunks(&trace, true, str_from_c(text), chunk_bytes, &err).code, RC_INVALID);
        assert_string_equal(err.text, sentence);
    }
}

static void a_watch_is_read_event_by_event(void **state)
{
    (void)state;
    check_watch(EVENT("ADDED", JOB("gr\xc3\xb6\xc3\x9f\x65", "1")) "\n" EVENT(
                    "MODIFIED", JOB("b", "2")) EVENT("DELETED", JOB("b", "3")) "\n",
                "added gr\xc3\xb6\xc3\x9f\x65 1\nmodified b 2\ndeleted b 3\n");
    check_watch(" \n ", "");
}

/* Its spec is garbage on a real server: {"template":{"spec":{"containers":null}}}. */
static void of_a_bookmark_only_the_meta_is_read(void **state)
{
    (void)state;
    check_watch(EVENT("BOOKMARK",
                      "{\"kind\":\"Job\",\"apiVersion\":\"batch/v1\",\"metadata\":{"
                      "\"resourceVersion\":\"8856\",\"annotations\":{\"k8s.io/initial-events-end\":"
                      "\"true\"}},\"spec\":{\"parallelism\":\"x\"},\"status\":{}}"),
                "bookmark  8856\n");
}

static void an_error_event_brings_its_status(void **state)
{
    (void)state;
    check_watch(EVENT("ERROR", "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                               "\"status\":\"Failure\",\"message\":\"too old resource version: 1 "
                               "(751)\",\"reason\":\"Expired\",\"code\":410}"),
                "error Expired too old resource version: 1 (751)\n");
}

static void a_malformed_object_does_not_end_the_stream(void **state)
{
    (void)state;
    check_watch(EVENT("ADDED", "{\"metadata\":{\"name\":\"bad\",\"namespace\":\"ml\"},\"spec\":{"
                               "\"parallelism\":\"four\",\"suspend\":[{}]}}")
                    EVENT("ADDED", "{\"spec\":{\"suspend\":1}}") EVENT("ADDED", "null")
                        EVENT("ADDED", "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}}")
                            EVENT("ADDED", JOB("good", "5")),
                "malformed bad Job ml/bad: spec.parallelism: \"four\" is not a whole number\n"
                "malformed  Job without a name: spec.suspend: 1 is not true or false\n"
                "malformed  Job without a name: null is not an object\n"
                "malformed  Job without a name: kind: \"Pod\" is not Job\n"
                "added good 5\n");
}

static void nobody_listening_to_malformed_objects_ends_the_stream(void **state)
{
    (void)state;
    check_watch_refused(EVENT("ADDED", "{\"metadata\":{\"name\":\"bad\"},\"spec\":7}"),
                        "Job bad: spec: 7 is not an object");
}

static void what_is_no_watch_is_refused(void **state)
{
    (void)state;
    check_watch_refused("[]", "the watch of jobs has something that is no event");
    check_watch_refused("{\"object\":{}}",
                        "the watch of jobs has an event whose type isn't in front");
    check_watch_refused("{\"type\":\"ADDED\"}", "the watch of jobs has an event without an object");
    check_watch_refused("{\"kind\":\"Status\",\"code\":[401]}",
                        "the watch of jobs has an event without a type");
    check_watch_refused("{\"type\":\"ADDED\",\"object\":{},\"object\":{}}",
                        "the watch of jobs has an event with two objects");
    check_watch_refused(EVENT("CHANGED", "{}"),
                        "the watch of jobs has an event of type \"CHANGED\"; right is ADDED, "
                        "MODIFIED, DELETED, BOOKMARK or ERROR");
    check_watch_refused(EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":5}}"),
                        "the watch of jobs has a malformed bookmark: metadata.resourceVersion: 5 "
                        "is not a text; put it in quotes");
    check_watch_refused(EVENT("ERROR", "{\"code\":\"x\"}"),
                        "the watch of jobs has a malformed error: code: \"x\" is not a whole "
                        "number");
    check_watch_refused(EVENT("ADDED", JOB("a", "1")) "{\"type\":\"ADDED\",\"obj",
                        "the watch of jobs: not JSON at byte 172: the text ends in the middle of "
                        "a value");
}

static void a_handler_s_failure_passes_through(void **state)
{
    struct trace trace = {.is_refusing = true};
    struct err err;
    struct str text = STR(EVENT("ADDED", JOB("a", "1")));

    (void)state;
    check_i64(watch_chunks(&trace, false, text, text.len, &err).code, RC_RETRY);
    assert_string_equal(err.text, "not now");
    watch_decoder_free(NULL);
    list_decoder_free(NULL);
}

/* -- lists --------------------------------------------------------------------------------------
 */

static void check_list(const char *text, const char *expected, const char *expected_meta)
{
    static struct trace trace;
    struct err err = {{0}};
    char meta[128];

    for (size_t chunk_bytes = 1; chunk_bytes <= strlen(text); chunk_bytes++) {
        struct rc rc = list_chunks(&trace, str_from_c(text), chunk_bytes, meta, sizeof(meta), &err);

        if (rc_failed(rc)) {
            fail_msg("chunks of %zu: %s", chunk_bytes, err.text);
        }
        assert_string_equal(trace.text, expected);
        assert_string_equal(meta, expected_meta);
    }
}

static void check_list_refused(const char *text, const char *sentence)
{
    static struct trace trace;
    struct err err = {{0}};
    char meta[128];

    check_i64(list_chunks(&trace, str_from_c(text), 3, meta, sizeof(meta), &err).code, RC_INVALID);
    assert_string_equal(err.text, sentence);
}

static void a_list_is_read_item_by_item(void **state)
{
    (void)state;
    check_list("{\"kind\":\"JobList\",\"apiVersion\":\"batch/v1\",\"metadata\":{"
               "\"resourceVersion\":\"8897\",\"continue\":\"eyJ2\",\"remainingItemCount\":6},"
               "\"items\":[{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":\"bad\"},"
               "\"spec\":{\"suspend\":{\"a\":[]}}}," JOB("c", "9") "]}\n",
               "added a \nmalformed bad Job bad: spec.suspend: an object is not true or false\n"
               "added c 9\n",
               "8897 eyJ2 6");
    check_list("{\"items\":[null],\"x\":{\"items\":[1]},\"metadata\":{\"resourceVersion\":\"1\"}}",
               "malformed  Job without a name: null is not an object\n", "1  -1");
    check_list("{\"kind\":\"JobList\",\"metadata\":null,\"items\":null}", "", "  -1");
}

static void what_is_no_list_is_refused(void **state)
{
    (void)state;
    check_list_refused("", "the list of jobs has no items: that is no list");
    check_list_refused("{\"metadata\":{}}", "the list of jobs has no items: that is no list");
    check_list_refused("{\"kind\":\"Status\",\"code\":403}",
                       "the list of jobs: kind: \"Status\" is not JobList");
    check_list_refused("{\"items\":{}}", "the list of jobs: items: that is not a list");
    check_list_refused("{\"items\":[]} {}", "the list of jobs: that is not one object");
    check_list_refused("[]", "the list of jobs: that is not one object");
    check_list_refused("{\"items\":[],\"metadata\":{\"continue\":7}}",
                       "the list of jobs: metadata: continue: 7 is not a text; put it in quotes");
    check_list_refused("{\"items\":[{}",
                       "the list of jobs: not JSON at byte 12: the text ends in the middle of a "
                       "value");
}

/* A page may be longer than one object may be. */
static void only_one_item_has_the_object_s_limit(void **state)
{
    static struct trace trace;
    struct watch_handler handler = {on_event, NULL, &trace};
    struct list_decoder *decoder = list_decoder_new(kind_info(KIND_JOB), handler);
    static char text[200000];
    struct list_meta meta;
    struct err err;

    (void)state;
    snprintf(text, sizeof(text), "{\"metadata\":{\"annotations\":{\"a\":\"%0*d\"}}},", 190000, 0);
    check_i64(list_decoder_feed(decoder, "{\"items\":[", 10, &err).code, RC_OK);
    for (int i = 0; i < 60; i++) {
        trace.len = 0;
        check_i64(list_decoder_feed(decoder, text, strlen(text), &err).code, RC_OK);
    }
    check_i64(list_decoder_feed(decoder, "{}]}", 4, &err).code, RC_OK);
    check_i64(list_decoder_finish(decoder, &meta, &err).code, RC_OK);
    /* The next page, by the same decoder. */
    check_i64(list_decoder_feed(decoder, "{\"items\":[{\"spec\":{\"x\":[", 24, &err).code, RC_OK);
    struct rc rc = RC_SUCCESS;

    for (int i = 0; i < 60 && !rc_failed(rc); i++) {
        rc = list_decoder_feed(decoder, text, strlen(text), &err);
    }
    check_i64(rc.code, RC_LIMIT);
    list_decoder_free(decoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_watch_is_read_event_by_event),
        cmocka_unit_test(of_a_bookmark_only_the_meta_is_read),
        cmocka_unit_test(an_error_event_brings_its_status),
        cmocka_unit_test(a_malformed_object_does_not_end_the_stream),
        cmocka_unit_test(nobody_listening_to_malformed_objects_ends_the_stream),
        cmocka_unit_test(what_is_no_watch_is_refused),
        cmocka_unit_test(a_handler_s_failure_passes_through),
        cmocka_unit_test(a_list_is_read_item_by_item),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(only_one_item_has_the_object_s_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
