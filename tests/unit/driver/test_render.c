/* The bodies of the driver's writes, byte for byte: what a merge PATCH leaves alone, sets and
 * removes. */
#include <stdio.h>

#include "support/check.h"
#include "tallyman/driver/render.h"

typedef void (*render_fn)(struct json_writer *writer, const struct effect *effect);

static void expect_body(render_fn render, const struct effect *effect, const char *expected)
{
    struct json_writer *writer = json_writer_new();
    render(writer, effect);
    check_str(json_writer_text(writer), expected);
    json_writer_free(writer);
}

#define GUARDS "\"uid\":\"u1\",\"resourceVersion\":\"7\""

static struct effect job_effect(void)
{
    return (struct effect){
        .kind = EFFECT_PATCH_JOB, .uid = STR("u1"), .resource_version = STR("7")};
}

static void what_isnt_mentioned_is_left_alone(void **state)
{
    struct effect effect = job_effect();
    (void)state;
    expect_body(render_job_patch, &effect,
                "{\"metadata\":{" GUARDS ",\"annotations\":{}},\"spec\":{}}");
}

static void an_admission_sets_all_in_one_write(void **state)
{
    struct effect effect = job_effect();
    struct string_pair labels[] = {{STR("zone"), STR("z1")}, {STR("rack"), STR_NONE}};
    struct string_pair notes[] = {{STR("autoscaler.example/class"), STR("p")}};
    struct toleration tolerations[] = {
        {.key = STR("gpu"), .op = STR("Equal"), .value = STR("yes"), .effect = STR("NoSchedule")},
        {.op = STR("Exists"), .effect = STR("NoExecute"), .toleration_seconds = {true, 30}}};
    struct template_patch template = {.node_selector = {labels, 2},
                                      .sets_tolerations = true,
                                      .tolerations = {tolerations, 2},
                                      .annotations = {notes, 1},
                                      .parallelism = {true, 3},
                                      .sets_completions = true};
    (void)state;
    effect.patch = (struct job_patch){.suspend = {true, false},
                                      .queue_label = STR("q"),
                                      .record = STR("{\"a\":1}"),
                                      .removes_suspended = true,
                                      .provisioning_attempt = STR("2"),
                                      .removes_checkpoint = true,
                                      .deadline_seconds = {true, 60},
                                      .templates = &template,
                                      .template_count = 1};
    expect_body(
        render_job_patch, &effect,
        "{\"metadata\":{" GUARDS ",\"labels\":{\"tallyman.dev/queue\":\"q\"},\"annotations\":{"
        "\"tallyman.dev/admission\":\"{\\\"a\\\":1}\",\"tallyman.dev/suspended\":null,"
        "\"tallyman.dev/provisioning-attempt\":\"2\",\"tallyman.dev/checkpoint-request\":null,"
        "\"tallyman.dev/checkpoint-for\":null}},\"spec\":{\"suspend\":false,\"parallelism\":3,"
        "\"completions\":3,\"template\":{\"metadata\":{\"annotations\":{"
        "\"autoscaler.example/class\":\"p\"}},\"spec\":{\"nodeSelector\":{\"zone\":\"z1\","
        "\"rack\":null},\"tolerations\":[{\"key\":\"gpu\",\"operator\":\"Equal\",\"value\":\"yes\","
        "\"effect\":\"NoSchedule\"},{\"operator\":\"Exists\",\"effect\":\"NoExecute\","
        "\"tolerationSeconds\":30}]}},\"activeDeadlineSeconds\":60}}");
}

static void a_suspension_tells_its_cause(void **state)
{
    struct effect effect = job_effect();
    (void)state;
    effect.patch = (struct job_patch){
        .suspend = {true, true}, .suspended = STR("{\"cause\":\"Preempted\"}"), .sets_hold = true};
    expect_body(render_job_patch, &effect,
                "{\"metadata\":{" GUARDS ",\"annotations\":{\"tallyman.dev/suspended\":"
                "\"{\\\"cause\\\":\\\"Preempted\\\"}\",\"tallyman.dev/hold\":\"true\"}},"
                "\"spec\":{\"suspend\":true}}");
}

static void a_restoration_takes_away_what_an_admission_has_set(void **state)
{
    struct effect effect = job_effect();
    struct template_patch template = {.sets_tolerations = true};
    (void)state;
    effect.patch = (struct job_patch){.removes_record = true,
                                      .removes_deadline = true,
                                      .templates = &template,
                                      .template_count = 1};
    expect_body(render_job_patch, &effect,
                "{\"metadata\":{" GUARDS ",\"annotations\":{\"tallyman.dev/admission\":null}},"
                "\"spec\":{\"template\":{\"spec\":{\"tolerations\":null}},"
                "\"activeDeadlineSeconds\":null}}");
}

/* As much of the affinity goes as the admission has put there, and no more. */
static void affinity_is_dropped_at_its_depth(void **state)
{
    static const struct {
        const char *drops;
        const char *body;
    } rows[] = {
        {"affinity", "\"affinity\":null"},
        {"nodeAffinity", "\"affinity\":{\"nodeAffinity\":null}"},
        {"required", "\"affinity\":{\"nodeAffinity\":{"
                     "\"requiredDuringSchedulingIgnoredDuringExecution\":null}}"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct effect effect = job_effect();
        struct template_patch template = {.drops_affinity = rows[i].drops};
        char expected[300];
        effect.patch = (struct job_patch){.templates = &template, .template_count = 1};
        (void)snprintf(expected, sizeof(expected),
                       "{\"metadata\":{" GUARDS
                       ",\"annotations\":{}},\"spec\":{\"template\":{\"spec\":{%s}}}}",
                       rows[i].body);
        expect_body(render_job_patch, &effect, expected);
    }
}

static void affinity_is_set_by_its_required_terms(void **state)
{
    struct effect effect = job_effect();
    struct str values[] = {STR("r1"), STR("r2")};
    struct match_expression expression = {
        .key = STR("rack"), .op = STR("In"), .values = {values, 2}};
    struct node_selector_term term = {.match_expressions = {&expression, 1}};
    struct node_selector required = {.node_selector_terms = {&term, 1}};
    struct node_affinity nodes = {.required = &required};
    struct affinity affinity = {.node_affinity = &nodes};
    struct template_patch template = {.affinity = &affinity};
    (void)state;
    effect.patch = (struct job_patch){.templates = &template, .template_count = 1};
    expect_body(render_job_patch, &effect,
                "{\"metadata\":{" GUARDS ",\"annotations\":{}},\"spec\":{\"template\":{\"spec\":{"
                "\"affinity\":{\"nodeAffinity\":{"
                "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{"
                "\"matchExpressions\":[{\"key\":\"rack\",\"operator\":\"In\",\"values\":[\"r1\","
                "\"r2\"]}]}]}}}}}}}");
}

static void a_pod_is_marked_and_unmarked(void **state)
{
    struct effect effect = {.uid = STR("p1")};
    (void)state;
    effect.patch.checkpoint_request = STR("2026-11-29T12:00:00Z");
    expect_body(render_pod_mark, &effect,
                "{\"metadata\":{\"uid\":\"p1\",\"annotations\":{"
                "\"tallyman.dev/checkpoint-request\":\"2026-11-29T12:00:00Z\"}}}");
    effect.patch = (struct job_patch){.removes_checkpoint = true};
    expect_body(render_pod_mark, &effect,
                "{\"metadata\":{\"uid\":\"p1\",\"annotations\":{"
                "\"tallyman.dev/checkpoint-request\":null}}}");
}

static void finalizers_are_written_as_a_whole(void **state)
{
    struct str names[] = {STR("example.com/theirs"), STR("tallyman.dev/in-use")};
    struct effect effect = {.resource_version = STR("7"), .finalizers = {names, 2}};
    (void)state;
    expect_body(render_finalizer, &effect,
                "{\"metadata\":{\"resourceVersion\":\"7\",\"finalizers\":["
                "\"example.com/theirs\",\"tallyman.dev/in-use\"]}}");
}

static void statuses_name_their_kind(void **state)
{
    static const struct {
        enum object_kind kind;
        const char *start;
    } rows[] = {
        {KIND_QUEUE, "{\"apiVersion\":\"tallyman.dev/v1beta1\",\"kind\":\"Queue\""},
        {KIND_COHORT, "{\"apiVersion\":\"tallyman.dev/v1beta1\",\"kind\":\"Cohort\""},
        {KIND_RESOURCE_FLAVOR,
         "{\"apiVersion\":\"tallyman.dev/v1beta1\",\"kind\":\"ResourceFlavor\""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct json_writer *writer = json_writer_new();
        struct status_content content = {.kind = rows[i].kind};
        render_status(writer, &content);
        assert_true(str_starts_with(json_writer_text(writer), str_from_c(rows[i].start)));
        json_writer_free(writer);
    }
    struct json_writer *writer = json_writer_new();
    struct provisioning_request request = {.meta = {.name = STR("r")}};
    render_request(writer, &request);
    assert_true(str_starts_with(json_writer_text(writer),
                                STR("{\"apiVersion\":\"autoscaling.x-k8s.io/v1\","
                                    "\"kind\":\"ProvisioningRequest\",\"metadata\":{"
                                    "\"name\":\"r\"}")));
    json_writer_free(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_isnt_mentioned_is_left_alone),
        cmocka_unit_test(an_admission_sets_all_in_one_write),
        cmocka_unit_test(a_suspension_tells_its_cause),
        cmocka_unit_test(a_restoration_takes_away_what_an_admission_has_set),
        cmocka_unit_test(affinity_is_dropped_at_its_depth),
        cmocka_unit_test(affinity_is_set_by_its_required_terms),
        cmocka_unit_test(a_pod_is_marked_and_unmarked),
        cmocka_unit_test(finalizers_are_written_as_a_whole),
        cmocka_unit_test(statuses_name_their_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
