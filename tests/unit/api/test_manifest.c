/* Files of manifests to objects. */
#include "support/check.h"
#include "support/file.h"

#include <stdio.h>
#include <string.h>

#include "tallyman/api/codec.h"
#include "tallyman/api/job.h"

struct trace {
    char text[4096];
    size_t len;
    const char *refused; /* name of the object that the handler doesn't take */
};

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

/* "12 Job ml/train", or "3 none v1/ConfigMap". */
static struct rc on_manifest(void *ctx, const struct manifest *manifest, struct err *err)
{
    struct trace *trace = ctx;
    const struct object_meta *meta = manifest->object.value;
    size_t room = sizeof(trace->text) - trace->len;

    assert_true(room > 200);
    if (manifest->object.kind == KIND_NONE) {
        assert_null(meta);
        trace->len += (size_t)snprintf(trace->text + trace->len, room,
                                       "%u none " STR_FMT "/" STR_FMT "\n", manifest->line,
                                       STR_ARG(manifest->api_version), STR_ARG(manifest->kind));
        return RC_SUCCESS;
    }
    check_str(manifest->kind, kind_info(manifest->object.kind)->name);
    if (trace->refused != NULL && str_eq_c(meta->name, trace->refused)) {
        return err_set(err, RC_CONFLICT, "it is there twice");
    }
    trace->len += (size_t)snprintf(
        trace->text + trace->len, room, "%u " STR_FMT " " STR_FMT "/" STR_FMT "\n", manifest->line,
        STR_ARG(manifest->kind), STR_ARG(meta->namespace_name), STR_ARG(meta->name));
    return RC_SUCCESS;
}

static void check_manifests(const char *text, const char *expected)
{
    struct trace trace = {.text = ""};
    struct err err;
    struct rc rc =
        manifests_read(&arena, STR("jobs.yaml"), str_from_c(text), on_manifest, &trace, &err);

    if (rc_failed(rc)) {
        fail_msg("%s", err.text);
    }
    assert_string_equal(trace.text, expected);
}

static void check_refused(const char *text, const char *sentence)
{
    struct trace trace = {.refused = "twice"};
    struct err err;

    assert_true(rc_failed(
        manifests_read(&arena, STR("jobs.yaml"), str_from_c(text), on_manifest, &trace, &err)));
    assert_string_equal(err.text, sentence);
}

#define HEAD "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train, namespace: ml}\n"

static void documents_are_given_in_their_order(void **state)
{
    (void)state;
    check_manifests("# a comment\n" HEAD "spec: {parallelism: 4}\n---\n---\n"
                    "metadata:\n  name: lab\nspec: {}\nkind: Cohort\n"
                    "apiVersion: tallyman.dev/v1beta1\n---\n"
                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: \"1\"}\n",
                    "2 Job ml/train\n8 Cohort /lab\n14 none v1/ConfigMap\n");
    check_manifests("", "");
    check_manifests("# only this\n---\n", "");
}

static void a_namespaced_object_without_namespace_is_in_default(void **state)
{
    (void)state;
    check_manifests("apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n---\n"
                    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: b, namespace: \"\"}\n---\n"
                    "apiVersion: v1\nkind: Node\nmetadata: {name: node}\n",
                    "1 Job default/a\n5 Job default/b\n9 Node /node\n");
}

static void lists_are_taken_apart(void **state)
{
    (void)state;
    check_manifests("apiVersion: v1\nitems:\n- apiVersion: batch/v1\n  kind: Job\n"
                    "  metadata: {name: a}\n- apiVersion: v1\n  kind: List\n  items:\n"
                    "  - {apiVersion: v1, kind: Namespace, metadata: {name: b}}\nkind: List\n"
                    "metadata: {resourceVersion: \"\"}\n",
                    "3 Job default/a\n9 Namespace /b\n");
    /* As a server answers: the items' kind is the list's. */
    check_manifests("{\"kind\":\"JobList\",\"apiVersion\":\"batch/v1\",\"items\":[\n"
                    "{\"metadata\":{\"name\":\"a\"}},\n{\"metadata\":{\"name\":\"b\"}}]}",
                    "2 Job default/a\n3 Job default/b\n");
    check_manifests("{kind: JobList, apiVersion: batch/v1, items: null}", "");
    check_manifests("{kind: AllowList, apiVersion: x.example/v1, spec: {}}",
                    "1 none x.example/v1/AllowList\n");
}

static void json_is_taken_with_all_that_yaml_would_refuse(void **state)
{
    (void)state;
    check_manifests(
        "\n{\"kind\":\"Job\",\n\"apiVersion\":\"batch/v1\",\"metadata\":{\"name\":\"a\","
        "\"annotations\":{\"t\":\"\\ud83d\\ude00\",\"yes\":\"no\"}}}\n"
        "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\"}}",
        "2 Job default/a\n4 Node /n\n");
    /* Begins like JSON and is YAML. */
    check_manifests("{apiVersion: v1, kind: Node, metadata: {name: node}}\n---\n" HEAD,
                    "1 Node /node\n3 Job ml/train\n");
}

/* Its key may still be a label's. */
static void managed_fields_are_passed_over(void **state)
{
    (void)state;
    check_manifests("apiVersion: batch/v1\nkind: Job\nmetadata:\n  managedFields:\n"
                    "  - fieldsV1: {f:metadata: [{}]}\n  - x: [[]]\n  labels:\n"
                    "    managedFields: \"1\"\n  name: a\n",
                    "1 Job default/a\n");
    check_refused("apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: a\n  labels:\n"
                  "    managedFields: 1\n",
                  "jobs.yaml:6: Job default/a: metadata.labels.managedFields: 1 is not a text; put "
                  "it in quotes");
}

static void errors_name_file_line_object_and_path(void **state)
{
    (void)state;
    check_refused(HEAD "spec:\n  completions: 1\n  parallelism: four\n",
                  "jobs.yaml:6: Job ml/train: spec.parallelism: \"four\" is not a whole number");
    check_refused("kind: Job\napiVersion: batch/v1\nspec:\n  suspend: \"yes\"\nmetadata: {}\n",
                  "jobs.yaml:4: Job without a name: spec.suspend: \"yes\" is not true or false");
    check_refused("{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\"},\n"
                  "\"spec\":\n7}",
                  "jobs.yaml:3: Node n: spec: 7 is not an object");
    check_refused("apiVersion: v1\nkind: Node\nmetadata: {name: n}\n",
                  "jobs.yaml:3: Node without a name: metadata.name: n, which YAML reads as false, "
                  "is not a text; put it in quotes");
    check_refused("a: b\n", "jobs.yaml:1: the manifest has no kind; it needs both, such as "
                            "apiVersion: batch/v1 and kind: Job");
    check_refused("\nkind: Job\n", "jobs.yaml:2: the manifest has no apiVersion; it needs both, "
                                   "such as apiVersion: batch/v1 and kind: Job");
    check_refused("- a\n", "jobs.yaml:1: a manifest is an object with apiVersion, kind and "
                           "metadata; that is a list");
    check_refused("---\nhello\n", "jobs.yaml:2: a manifest is an object with apiVersion, kind and "
                                  "metadata; that is a single value");
    check_refused("kind: List\napiVersion: v1\nitems:\n  a: b\n",
                  "jobs.yaml:4: List: items: that is not a list");
    check_refused(
        "kind: List\napiVersion: v1\nitems:\n- 5\n",
        "jobs.yaml:4: a manifest is an object with apiVersion, kind and metadata; that is "
        "a single value");
    check_refused(HEAD "spec: {a: &x 1}\n", "jobs.yaml:4: &x: anchors and aliases aren't taken; "
                                            "write the value out");
    check_refused(HEAD "  bad\n", "jobs.yaml:4: not YAML: did not find expected key, while parsing "
                                  "a block mapping");
    check_refused("apiVersion: v1\nkind: Node\nmetadata: {name: twice}\n",
                  "jobs.yaml:1: Node twice: it is there twice");
}

/* What real files hold: numbers where quantities belong, quoted numbers where texts do. */
static void quantities_may_be_numbers(void **state)
{
    struct trace trace = {.text = ""};
    struct err err;
    struct str text = STR("apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {a: \"1\"}}\n"
                          "spec:\n  containers:\n  - name: m\n    resources:\n"
                          "      requests: {cpu: 0.5, memory: 1e9, example.com/nic: 2}\n");

    (void)state;
    check_i64(manifests_read(&arena, STR("p.yaml"), text, on_manifest, &trace, &err).code, RC_OK);
    check_refused("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  overhead:\n"
                  "    cpu: true\n",
                  "jobs.yaml:6: Pod default/p: spec.overhead.cpu: true is not a quantity, such as "
                  "4, \"500m\" or \"2Gi\"");
}

static void every_sample_is_a_manifest(void **state)
{
    static const char *const names[] = {"Job", "Pod", "ResourceSlice", "Queue", "Admission"};
    char path[128];
    char expected[128];

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        struct trace trace = {.text = ""};
        struct err err;

        snprintf(path, sizeof(path), "tests/unit/api/samples/%s.json", names[i]);
        struct rc rc = manifests_read(&arena, str_from_c(path), file_read(&arena, path),
                                      on_manifest, &trace, &err);

        if (rc_failed(rc)) {
            fail_msg("%s", err.text);
        }
        snprintf(expected, sizeof(expected), "1 %s ", names[i]);
        assert_true(str_starts_with(str_from_c(trace.text), str_from_c(expected)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(documents_are_given_in_their_order, setup, teardown),
        cmocka_unit_test_setup_teardown(a_namespaced_object_without_namespace_is_in_default, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(lists_are_taken_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(json_is_taken_with_all_that_yaml_would_refuse, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(managed_fields_are_passed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(errors_name_file_line_object_and_path, setup, teardown),
        cmocka_unit_test_setup_teardown(quantities_may_be_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(every_sample_is_a_manifest, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
