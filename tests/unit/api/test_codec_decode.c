/* Tokens to structs: presence, null, keys given twice, and the sentences about what doesn't fit. */
#include "support/check.h"

#include <stdio.h>
#include <string.h>

#include "tallyman/api/codec.h"
#include "tallyman/api/dra.h"
#include "tallyman/api/job.h"
#include "tallyman/api/queue.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static void *decode_kind(enum object_kind kind, const char *text)
{
    struct err err;
    void *value = NULL;
    struct rc rc = decode_json(&arena, kind_info(kind)->schema, str_from_c(text), &value, &err);

    if (rc_failed(rc)) {
        fail_msg("%s", err.text);
    }
    return value;
}

static void check_refused(enum object_kind kind, const char *text, const char *sentence)
{
    struct err err;
    void *value = &err;
    struct rc rc = decode_json(&arena, kind_info(kind)->schema, str_from_c(text), &value, &err);

    check_i64(rc.code, RC_INVALID);
    assert_ptr_equal(value, &err); /* untouched */
    assert_string_equal(err.text, sentence);
}

static void what_is_absent_null_or_empty_is_told_apart(void **state)
{
    const struct job *absent = decode_kind(KIND_JOB, "{}");
    const struct job *null = decode_kind(
        KIND_JOB, "{\"metadata\":{\"name\":null,\"labels\":null},\"spec\":{\"suspend\":null,"
                  "\"parallelism\":null,\"scheduling\":null,\"template\":null},\"status\":null}");
    const struct job *empty = decode_kind(
        KIND_JOB, "{\"metadata\":{\"name\":\"\",\"labels\":{},\"finalizers\":[]},\"spec\":{"
                  "\"suspend\":false,\"parallelism\":0,\"scheduling\":{}}}");

    (void)state;
    assert_true(object_equal(kind_info(KIND_JOB)->schema, absent, null));
    check_str(absent->meta.name, NULL);
    assert_null(absent->meta.labels.items);
    assert_false(absent->spec.suspend.is_set);
    assert_null(absent->spec.scheduling);
    check_str(empty->meta.name, "");
    assert_non_null(empty->meta.labels.items);
    assert_non_null(empty->meta.finalizers.items);
    check_i64(empty->meta.labels.count, 0);
    assert_true(empty->spec.suspend.is_set);
    assert_true(empty->spec.parallelism.is_set);
    assert_non_null(empty->spec.scheduling);
    assert_null(empty->spec.scheduling->scheduling_policy);
}

static void a_null_among_items_is_the_zero_of_its_type(void **state)
{
    const struct pod *pod = decode_kind(
        KIND_POD, "{\"metadata\":{\"finalizers\":[null],\"labels\":{\"a\":null}},\"spec\":{"
                  "\"containers\":[null],\"overhead\":{\"cpu\":null}}}");

    (void)state;
    check_str(pod->meta.finalizers.items[0], "");
    check_str(pod->meta.labels.items[0].value, "");
    check_str(pod->spec.containers.items[0].name, NULL);
    check_str(pod->spec.overhead.items[0].text, "0");
}

static void unknown_fields_of_any_shape_are_passed_over(void **state)
{
    const struct job *job = decode_kind(
        KIND_JOB, "{\"x\":1,\"metadata\":{\"managedFields\":[{\"fieldsV1\":{\"f:name\":[[{}]]}}],"
                  "\"name\":\"a\",\"y\":[{\"name\":\"b\"}]},\"z\":{\"spec\":{\"parallelism\":9}},"
                  "\"spec\":{\"parallelism\":2}}");

    (void)state;
    check_str(job->meta.name, "a");
    check_i64(job->spec.parallelism.value, 2);
}

static void the_last_of_a_key_counts(void **state)
{
    const struct job *job = decode_kind(
        KIND_JOB, "{\"metadata\":{\"name\":\"a\",\"labels\":{\"a\":\"1\",\"b\":\"2\",\"a\":\"3\"}},"
                  "\"spec\":{\"parallelism\":1,\"suspend\":true,\"template\":{\"spec\":{"
                  "\"containers\":[{}]}}},"
                  "\"spec\":{\"parallelism\":2,\"template\":{\"metadata\":{}}}}");

    (void)state;
    check_i64(job->spec.parallelism.value, 2);
    assert_false(job->spec.suspend.is_set);
    assert_null(job->spec.pod_template.spec.containers.items);
    check_i64(job->meta.labels.count, 2);
    check_str(job->meta.labels.items[0].key, "b");
    check_str(job->meta.labels.items[1].key, "a");
    check_str(job->meta.labels.items[1].value, "3");
}

/* More than are compared each with each. */
static void the_last_of_many_keys_counts(void **state)
{
    char text[8192];
    size_t len = (size_t)snprintf(text, sizeof(text), "{\"metadata\":{\"labels\":{");

    (void)state;
    for (int i = 0; i < 200; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\"k%d\":\"%d\"",
                                i == 0 ? "" : ",", i % 100, i);
    }
    snprintf(text + len, sizeof(text) - len, "}}}");
    const struct job *job = decode_kind(KIND_JOB, text);

    check_i64(job->meta.labels.count, 100);
    check_str(job->meta.labels.items[0].key, "k0");
    check_str(job->meta.labels.items[0].value, "100");
    check_str(string_map_get(&job->meta.labels, "k99"), "199");
}

static void keys_of_object_maps_are_kept(void **state)
{
    const struct resource_slice *slice =
        decode_kind(KIND_RESOURCE_SLICE,
                    "{\"spec\":{\"devices\":[{\"attributes\":{\"a\":{\"int\":1},\"b\":null,"
                    "\"a\":{\"string\":\"x\"}},\"capacity\":{\"memory\":{\"value\":1.5}}}]}}");
    const struct device *device = &slice->spec.devices.items[0];

    (void)state;
    check_i64(device->attributes.count, 2);
    check_str(device->attributes.items[0].key, "b");
    check_str(device->attributes.items[1].key, "a");
    check_str(device->attributes.items[1].string_value, "x");
    assert_false(device->attributes.items[1].int_value.is_set);
    check_str(device->capacity.items[0].value.text, "1.5");
}

static void what_does_not_fit_is_told_with_its_path(void **state)
{
    (void)state;
    check_refused(KIND_JOB, "{\"spec\":{\"parallelism\":\"four\"}}",
                  "spec.parallelism: \"four\" is not a whole number");
    check_refused(KIND_JOB, "{\"spec\":{\"parallelism\":1.5}}",
                  "spec.parallelism: 1.5 is not a whole number of at most 64 bits");
    check_refused(KIND_JOB, "{\"spec\":{\"parallelism\":9223372036854775808}}",
                  "spec.parallelism: 9223372036854775808 is not a whole number of at most 64 bits");
    check_refused(KIND_JOB, "{\"spec\":{\"suspend\":\"true\"}}",
                  "spec.suspend: \"true\" is not true or false");
    check_refused(KIND_JOB, "{\"spec\":[]}", "spec: a list is not an object");
    check_refused(KIND_JOB, "{\"metadata\":{\"labels\":{\"tallyman.dev/queue\":12}}}",
                  "metadata.labels[tallyman.dev/queue]: 12 is not a text; put it in quotes");
    check_refused(KIND_JOB, "{\"metadata\":{\"labels\":{\"a\":true}}}",
                  "metadata.labels.a: true is not a text; put it in quotes");
    check_refused(KIND_JOB, "{\"metadata\":{\"name\":{}}}",
                  "metadata.name: an object is not a text");
    check_refused(KIND_JOB, "{\"metadata\":{\"finalizers\":\"a\"}}",
                  "metadata.finalizers: \"a\" is not a list");
    check_refused(KIND_JOB, "{\"metadata\":{\"creationTimestamp\":\"today\"}}",
                  "metadata.creationTimestamp: \"today\" is not a time; right is "
                  "\"2026-11-29T12:00:00Z\"");
    check_refused(
        KIND_JOB,
        "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{},{\"ports\":[{},"
        "{\"hostPort\":\"x\\n\"}]}]}}}}",
        "spec.template.spec.containers[1].ports[1].hostPort: \"x?\" is not a whole number");
    check_refused(KIND_JOB, "[]", "a list is not an object");
    check_refused(KIND_JOB, "{}{}", "there is more text behind the object");
    check_refused(KIND_JOB, "", "the text is empty; a JSON object belongs there");
}

static void a_quantity_or_duration_that_is_none_is_told(void **state)
{
    struct err err;
    void *value;
    struct rc rc = decode_json(
        &arena, kind_info(KIND_POD)->schema,
        STR("{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1 Gi\"}}}]}}"),
        &value, &err);

    (void)state;
    check_i64(rc.code, RC_INVALID);
    assert_true(str_starts_with(
        err_text(&err), STR("spec.containers[0].resources.requests.cpu: \"1 Gi\" is not a")));
    check_refused(KIND_QUEUE, "{\"spec\":{\"fairSharing\":{\"weight\":true}}}",
                  "spec.fairSharing.weight: true is not a quantity, such as 4, \"500m\" or "
                  "\"2Gi\"");
    check_refused(KIND_QUEUE, "{\"spec\":{\"maxRuntime\":\"2 days\"}}",
                  "spec.maxRuntime: \"2 days\" is not a duration; right is \"90s\" or \"1h30m\"");
    check_refused(KIND_QUEUE, "{\"spec\":{\"maxRuntime\":3600}}",
                  "spec.maxRuntime: 3600 is not a duration; right is \"90s\" or \"1h30m\"");
}

static void a_long_value_is_cut_in_the_sentence(void **state)
{
    char text[512];
    char expected[512];
    char wide[128] = "";

    (void)state;
    for (int i = 0; i < 40; i++) {
        strcat(wide, "\xc3\xa9");
    }
    snprintf(text, sizeof(text), "{\"spec\":{\"parallelism\":\"%s\"}}", wide);
    snprintf(expected, sizeof(expected), "spec.parallelism: \"%.64s…\" is not a whole number",
             wide);
    check_refused(KIND_JOB, text, expected);
}

/* A list of more items than the limit, and lists that together need more memory than theirs. */
static struct rc decode_repeated(const char *head, const char *item, size_t count, struct err *err)
{
    struct decoder *decoder = decoder_new(&arena, kind_info(KIND_RESOURCE_SLICE)->schema);
    struct json_reader *reader = json_reader_new(decoder_sink(decoder));
    struct rc rc = json_reader_feed(reader, head, strlen(head), err);

    for (size_t i = 0; i < count && !rc_failed(rc); i++) {
        rc = json_reader_feed(reader, item, strlen(item), err);
    }
    json_reader_free(reader);
    decoder_free(decoder);
    return rc;
}

static void lists_and_memory_have_their_limits(void **state)
{
    struct err err;
    struct rc rc = decode_repeated("{\"metadata\":{\"finalizers\":[\"a\"", ",\"\"",
                                   DECODE_LIST_MAX_ITEMS - 1, &err);

    (void)state;
    check_i64(rc.code, RC_OK);
    rc = decode_repeated("{\"metadata\":{\"finalizers\":[\"a\"", ",\"\"", DECODE_LIST_MAX_ITEMS,
                         &err);
    check_i64(rc.code, RC_LIMIT);
    assert_string_equal(err.text, "metadata.finalizers[65535]: more than 65536 items");
    arena_reset(&arena);
    rc = decode_repeated("{\"spec\":{\"devices\":[{}",
                         ",{\"attributes\":{\"a\":{}},\"capacity\":{\"a\":{}}}",
                         DECODE_LIST_MAX_ITEMS, &err);
    check_i64(rc.code, RC_LIMIT);
    if (strstr(err.text, "the object needs more than 67108864 bytes of memory") == NULL) {
        fail_msg("%s", err.text);
    }
}

static void a_decoder_is_ready_for_the_next_document(void **state)
{
    struct decoder *decoder = decoder_new(&arena, kind_info(KIND_JOB)->schema);
    struct json_reader *reader = json_reader_new(decoder_sink(decoder));
    struct err err;

    (void)state;
    assert_null(decoder_result(decoder));
    check_i64(json_reader_feed(reader, "{\"spec\":{\"suspend\":1}}", 22, &err).code, RC_INVALID);
    assert_null(decoder_result(decoder));
    assert_true(rc_failed(json_reader_finish(reader, &err)));
    decoder_restart(decoder, &arena, kind_info(KIND_QUEUE)->schema);
    check_i64(json_reader_feed(reader, "{\"spec\":{\"fit\":\"Quota\"}", 23, &err).code, RC_OK);
    assert_null(decoder_result(decoder));
    check_i64(json_reader_feed(reader, "}", 1, &err).code, RC_OK);
    const struct queue *queue = decoder_result(decoder);

    check_str(queue->spec.fit, "Quota");
    json_reader_free(reader);
    decoder_free(decoder);
    decoder_free(NULL);
}

/* -- the small questions about what was decoded -------------------------------------------------
 */

static void status_questions(void **state)
{
    const struct job *job = decode_kind(
        KIND_JOB,
        "{\"metadata\":{\"ownerReferences\":[{\"name\":\"a\"},{\"name\":\"b\","
        "\"controller\":false},{\"name\":\"c\",\"controller\":true}]},\"status\":{"
        "\"conditions\":[{\"type\":\"Suspended\",\"status\":\"True\"},{\"type\":\"Failed\","
        "\"status\":\"False\"},{\"type\":\"Complete\",\"status\":\"True\"}]}}");
    const struct job *failed = decode_kind(
        KIND_JOB, "{\"status\":{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\"}]}}");
    const struct job *running = decode_kind(
        KIND_JOB, "{\"status\":{\"conditions\":[{\"type\":\"FailureTarget\",\"status\":\"True\"},"
                  "{\"type\":\"Complete\",\"status\":\"Unknown\"}]}}");
    const struct pod *pod = decode_kind(
        KIND_POD, "{\"status\":{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"Ready\","
                  "\"status\":\"True\"}]}}");
    const struct pod *other = decode_kind(KIND_POD, "{\"status\":{\"phase\":\"Running\"}}");
    const struct pod *done = decode_kind(KIND_POD, "{\"status\":{\"phase\":\"Succeeded\"}}");

    (void)state;
    assert_true(job_is_finished(job));
    assert_true(job_is_finished(failed));
    assert_false(job_is_finished(running));
    check_str(meta_controller(&job->meta)->name, "c");
    assert_null(meta_controller(&failed->meta));
    assert_true(pod_is_terminal(pod));
    assert_true(pod_is_terminal(done));
    assert_true(pod_is_ready(pod));
    assert_false(pod_is_terminal(other));
    assert_false(pod_is_ready(other));
    assert_null(condition_find(&running->status.conditions, "Failed"));
    check_str(string_map_get(&job->meta.labels, "a"), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_absent_null_or_empty_is_told_apart, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_null_among_items_is_the_zero_of_its_type, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(unknown_fields_of_any_shape_are_passed_over, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_last_of_a_key_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_of_many_keys_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_of_object_maps_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_told_with_its_path, setup, teardown),
        cmocka_unit_test_setup_teardown(a_quantity_or_duration_that_is_none_is_told, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_long_value_is_cut_in_the_sentence, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_and_memory_have_their_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(a_decoder_is_ready_for_the_next_document, setup, teardown),
        cmocka_unit_test_setup_teardown(status_questions, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
