/* A PodTemplate out of a Job's text: everything that stands in its template, and what the patch
 * puts in. */
#include "support/check.h"
#include "tallyman/driver/render.h"

#define HEAD                                                                                       \
    "{\"apiVersion\":\"v1\",\"kind\":\"PodTemplate\",\"metadata\":{\"name\":\"t\",\"namespace\":"  \
    "\"ml\",\"ownerReferences\":[{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"j\","    \
    "\"uid\":\"u1\",\"controller\":true}]},\"template\":"

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

/* Absent: it fails. */
static struct str copied(const char *job, const struct template_patch *patch)
{
    struct template_target target = {
        .namespace_name = STR("ml"), .name = STR("t"), .job_name = STR("j"), .job_uid = STR("u1")};
    struct json_writer *writer = json_writer_new();
    struct err err;
    struct rc rc = render_pod_template(writer, str_from_c(job), &target, patch, &err);
    struct str text = rc_failed(rc) ? STR_NONE : arena_copy_str(&arena, json_writer_text(writer));
    json_writer_free(writer);
    return text;
}

static void expect_copy(const char *job, const struct template_patch *patch, const char *template)
{
    struct str text = copied(job, patch);
    assert_true(str_is_set(text));
    check_str(text, arena_format(&arena, HEAD "%s}", template).ptr);
}

static void everything_in_the_template_is_copied(void **state)
{
    (void)state;
    struct template_patch none = {.pod_set = STR("main")};
    expect_copy("{\"metadata\":{\"uid\":\"u1\",\"labels\":{\"template\":\"x\"}},\"spec\":{"
                "\"parallelism\":2,\"selector\":{\"template\":{\"spec\":{}}},\"template\":{"
                "\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"volumes\":[{\"name\":\"v\","
                "\"emptyDir\":{}}],\"hostNetwork\":true,\"nodeSelector\":{\"k\":\"v\"},"
                "\"priority\":5,\"x\":null}},\"suspend\":true},\"status\":{\"template\":{}}}",
                &none,
                "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"volumes\":[{\"name\":\"v\","
                "\"emptyDir\":{}}],\"hostNetwork\":true,\"nodeSelector\":{\"k\":\"v\"},"
                "\"priority\":5,\"x\":null}}");
}

static void the_patch_is_put_in(void **state)
{
    (void)state;
    struct string_pair selector[] = {{STR("pool"), STR("grown")}, {STR("old"), STR_NONE}};
    struct toleration toleration = {.key = STR("grown"), .op = STR("Exists")};
    struct template_patch patch = {
        .node_selector = {selector, 2}, .sets_tolerations = true, .tolerations = {&toleration, 1}};
    expect_copy("{\"metadata\":{\"uid\":\"u1\"},\"spec\":{\"template\":{\"spec\":{"
                "\"tolerations\":[{\"key\":\"a\"},{\"key\":\"b\"}],\"nodeSelector\":{\"pool\":"
                "\"other\",\"k\":\"v\",\"old\":\"1\"},\"containers\":[{\"name\":\"c\"}]}}}}",
                &patch,
                "{\"spec\":{\"nodeSelector\":{\"k\":\"v\",\"pool\":\"grown\"},\"containers\":[{"
                "\"name\":\"c\"}],\"tolerations\":[{\"key\":\"grown\",\"operator\":\"Exists\"}]}}");
}

static void a_selector_is_made_where_there_is_none(void **state)
{
    (void)state;
    struct string_pair selector = {STR("pool"), STR("grown")};
    struct template_patch patch = {.node_selector = {&selector, 1}};
    expect_copy("{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"nodeSelector\":{\"a\":1}}]"
                "}}},\"metadata\":{\"uid\":\"u1\"}}",
                &patch,
                "{\"spec\":{\"containers\":[{\"nodeSelector\":{\"a\":1}}],\"nodeSelector\":{"
                "\"pool\":\"grown\"}}}");
}

static void another_job_and_broken_text_are_refused(void **state)
{
    (void)state;
    struct template_patch none = {.pod_set = STR("main")};
    assert_false(
        str_is_set(copied("{\"metadata\":{\"uid\":\"u2\"},\"spec\":{\"template\":{}}}", &none)));
    assert_false(str_is_set(copied("{\"metadata\":{\"uid\":\"u1\"},\"spec\":{}}", &none)));
    assert_false(
        str_is_set(copied("{\"metadata\":{\"uid\":\"u1\"},\"spec\":{\"template\":{", &none)));
    assert_false(str_is_set(copied("", &none)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everything_in_the_template_is_copied, setup, teardown),
        cmocka_unit_test_setup_teardown(the_patch_is_put_in, setup, teardown),
        cmocka_unit_test_setup_teardown(a_selector_is_made_where_there_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(another_job_and_broken_text_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
