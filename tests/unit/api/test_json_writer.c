/* Tokens to JSON text. */
#include "support/check.h"

#include <string.h>

#include "tallyman/api/admission.h"
#include "tallyman/api/codec.h"
#include "tallyman/api/pod.h"
#include "tallyman/api/queue.h"

static int setup(void **state)
{
    *state = json_writer_new();
    return 0;
}

static int teardown(void **state)
{
    json_writer_free(*state);
    return 0;
}

static void what_is_written_is_compact(void **state)
{
    struct json_writer *writer = *state;

    json_object_start(writer);
    json_key(writer, "spec");
    json_object_start(writer);
    json_key_str(writer, STR("suspend"));
    json_bool(writer, false);
    json_key(writer, "nodeSelector");
    json_null(writer);
    json_object_end(writer);
    json_key(writer, "n");
    json_array_start(writer);
    json_int(writer, INT64_MIN);
    json_number(writer, STR("1.50"));
    json_string(writer, STR("a/b\"\\\n\x01"));
    json_array_end(writer);
    json_object_end(writer);
    check_str(json_writer_text(writer),
              "{\"spec\":{\"suspend\":false,\"nodeSelector\":null},"
              "\"n\":[-9223372036854775808,1.50,\"a/b\\\"\\\\\\n\\u0001\"]}");
}

static void a_writer_starts_afresh_after_reset(void **state)
{
    struct json_writer *writer = *state;

    json_array_start(writer);
    json_int(writer, 1);
    json_writer_reset(writer);
    json_object_start(writer);
    json_object_end(writer);
    check_str(json_writer_text(writer), "{}");
    json_writer_reset(writer);
    check_str(json_writer_text(writer), "");
    json_writer_free(NULL);
}

static void bad_utf8_becomes_replacement_characters(void **state)
{
    static const struct {
        const char *text;
        const char *json;
    } cases[] = {
        {"ok \xe2\x98\x83", "\"ok \xe2\x98\x83\""},
        {"a\xff"
         "b",
         "\"a\xef\xbf\xbd"
         "b\""},
        {"\xe2\x98", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xed\xa0\x80x", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx\""},
        {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    struct json_writer *writer = *state;

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        json_writer_reset(writer);
        json_string(writer, str_from_c(cases[i].text));
        check_str(json_writer_text(writer), cases[i].json);
    }
}

static void nothing_is_written_of_what_is_absent(void **state)
{
    struct json_writer *writer = *state;
    struct admission_record record = {.queue = STR("q")};

    encode_object(writer, &admission_record_schema, &record);
    check_str(json_writer_text(writer), "{\"queue\":\"q\"}");
}

static void what_is_present_but_empty_is_written(void **state)
{
    struct json_writer *writer = *state;
    struct string_pair no_pairs[1];
    struct toleration no_tolerations[1];
    struct record_restore restore = {
        .node_selector = {no_pairs, 0},
        .tolerations = {no_tolerations, 0},
        .parallelism = {true, 0},
    };
    struct admission_record record = {.queue = STR(""), .restore = &restore};

    encode_object(writer, &admission_record_schema, &record);
    check_str(json_writer_text(writer),
              "{\"queue\":\"\",\"restore\":{\"nodeSelector\":{},\"tolerations\":[],"
              "\"parallelism\":0}}");
}

/* An inline struct has no presence of its own: it is there when one of its members is. */
static void an_inline_struct_without_members_is_left_out(void **state)
{
    struct json_writer *writer = *state;
    struct container containers[] = {{.name = STR("main")}};
    struct pod_spec spec = {.containers = {containers, 1}};
    struct resource_requirements nothing = {.claims = {NULL, 0}};

    encode_object(writer, &pod_spec_schema, &spec);
    check_str(json_writer_text(writer), "{\"containers\":[{\"name\":\"main\"}]}");
    json_writer_reset(writer);
    spec.resources = &nothing;
    encode_object(writer, &pod_spec_schema, &spec);
    check_str(json_writer_text(writer), "{\"containers\":[{\"name\":\"main\"}],\"resources\":{}}");
}

static void times_have_a_fraction_only_where_there_is_one(void **state)
{
    struct json_writer *writer = *state;
    struct suspended_record record = {.at = {true, INT64_C(1795953600000)}};

    encode_object(writer, &suspended_record_schema, &record);
    check_str(json_writer_text(writer), "{\"at\":\"2026-11-29T12:00:00Z\"}");
    json_writer_reset(writer);
    record.at.ms += 7;
    encode_object(writer, &suspended_record_schema, &record);
    check_str(json_writer_text(writer), "{\"at\":\"2026-11-29T12:00:00.007Z\"}");
}

static void durations_are_written_as_the_crds_take_them(void **state)
{
    static const struct {
        int64_t ms;
        const char *json;
    } cases[] = {
        {0, "{\"base\":\"0s\"}"},          {90000, "{\"base\":\"1m30s\"}"},
        {3600000, "{\"base\":\"1h\"}"},    {172800000, "{\"base\":\"48h\"}"},
        {5400000, "{\"base\":\"1h30m\"}"}, {1250, "{\"base\":\"1s250ms\"}"},
    };
    struct json_writer *writer = *state;
    const struct schema *queue = kind_info(KIND_QUEUE)->schema;
    const struct schema *requeue = NULL;

    for (uint32_t i = 0; i < queue->fields[1].schema->field_count; i++) {
        if (strcmp(queue->fields[1].schema->fields[i].name, "requeue") == 0) {
            requeue = queue->fields[1].schema->fields[i].schema;
        }
    }
    assert_non_null(requeue);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct requeue_policy policy = {.base = {true, cases[i].ms}};

        json_writer_reset(writer);
        encode_object(writer, requeue, &policy);
        check_str(json_writer_text(writer), cases[i].json);
    }
}

static void members_can_be_put_behind_others(void **state)
{
    struct json_writer *writer = *state;
    struct admission admission = {.meta = {.name = STR("train-a")}, .spec = {.queue = STR("q")}};

    json_object_start(writer);
    json_key(writer, "kind");
    json_string(writer, STR("Admission"));
    encode_fields(writer, kind_info(KIND_ADMISSION)->schema, &admission);
    json_object_end(writer);
    check_str(json_writer_text(writer), "{\"kind\":\"Admission\",\"metadata\":{\"name\":"
                                        "\"train-a\"},\"spec\":{\"queue\":\"q\"}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_compact, setup, teardown),
        cmocka_unit_test_setup_teardown(a_writer_starts_afresh_after_reset, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_utf8_becomes_replacement_characters, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_written_of_what_is_absent, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_present_but_empty_is_written, setup, teardown),
        cmocka_unit_test_setup_teardown(an_inline_struct_without_members_is_left_out, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(times_have_a_fraction_only_where_there_is_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(durations_are_written_as_the_crds_take_them, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(members_can_be_put_behind_others, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
