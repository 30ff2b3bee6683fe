/* Every kind: a sample with every field that any schema names is decoded, encoded, and decoded
 * again to the same. */
#include "support/check.h"
#include "support/file.h"

#include <stdio.h>
#include <string.h>

#include "tallyman/api/admission.h"
#include "tallyman/api/codec.h"
#include "tallyman/api/dra.h"
#include "tallyman/api/job.h"
#include "tallyman/api/queue.h"

#define FIELDS_MAX 2048

static const struct {
    const char *name;
    enum object_kind kind; /* KIND_NONE: the schema below */
    const struct schema *schema;
} samples[] = {
    {"Job", KIND_JOB, NULL},
    {"Pod", KIND_POD, NULL},
    {"Node", KIND_NODE, NULL},
    {"Namespace", KIND_NAMESPACE, NULL},
    {"LimitRange", KIND_LIMIT_RANGE, NULL},
    {"RuntimeClass", KIND_RUNTIME_CLASS, NULL},
    {"PriorityClass", KIND_PRIORITY_CLASS, NULL},
    {"DeviceClass", KIND_DEVICE_CLASS, NULL},
    {"ResourceSlice", KIND_RESOURCE_SLICE, NULL},
    {"ResourceClaim", KIND_RESOURCE_CLAIM, NULL},
    {"ResourceClaimTemplate", KIND_RESOURCE_CLAIM_TEMPLATE, NULL},
    {"Queue", KIND_QUEUE, NULL},
    {"Cohort", KIND_COHORT, NULL},
    {"ResourceFlavor", KIND_RESOURCE_FLAVOR, NULL},
    {"Admission", KIND_ADMISSION, NULL},
    {"DeviceTaintRule", KIND_DEVICE_TAINT_RULE, NULL},
    {"ProvisioningRequest", KIND_PROVISIONING_REQUEST, NULL},
    {"Status", KIND_NONE, &api_status_schema},
    {"AdmissionRecord", KIND_NONE, &admission_record_schema},
    {"SuspendedRecord", KIND_NONE, &suspended_record_schema},
    {"RequestRecord", KIND_NONE, &request_record_schema},
};

static const struct schema *sample_schema(size_t i)
{
    return samples[i].kind == KIND_NONE ? samples[i].schema : kind_info(samples[i].kind)->schema;
}

static struct str sample_text(struct arena *arena, size_t i)
{
    char path[128];

    snprintf(path, sizeof(path), "tests/unit/api/samples/%s.json", samples[i].name);
    return file_read(arena, path);
}

static void *decode(struct arena *arena, const struct schema *schema, struct str text)
{
    struct err err;
    void *value = NULL;
    struct rc rc = decode_json(arena, schema, text, &value, &err);

    if (rc_failed(rc)) {
        fail_msg("%s: %s", schema->name, err.text);
    }
    return value;
}

static int setup(void **state)
{
    static struct arena arena;

    arena_init(&arena);
    *state = &arena;
    return 0;
}

static int teardown(void **state)
{
    arena_deinit(*state);
    return 0;
}

static void every_sample_survives_encoding(void **state)
{
    struct arena *arena = *state;
    struct json_writer *writer = json_writer_new();

    for (size_t i = 0; i < ARRAY_COUNT(samples); i++) {
        const struct schema *schema = sample_schema(i);
        void *value = decode(arena, schema, sample_text(arena, i));

        json_writer_reset(writer);
        encode_object(writer, schema, value);
        struct str once = arena_copy_str(arena, json_writer_text(writer));
        void *again = decode(arena, schema, once);

        if (!object_equal(schema, value, again)) {
            fail_msg("%s isn't what it was:\n" STR_FMT, samples[i].name, STR_ARG(once));
        }
        json_writer_reset(writer);
        encode_object(writer, schema, again);
        check_str(json_writer_text(writer), once.ptr);
    }
    json_writer_free(writer);
}

/* -- coverage: which fields has any sample filled? --------------------------------------------- */

struct any_list {
    char *items;
    uint32_t count;
};

struct coverage {
    const struct field *seen[FIELDS_MAX];
    uint32_t count;
};

static bool is_seen(const struct coverage *coverage, const struct field *field)
{
    for (uint32_t i = 0; i < coverage->count; i++) {
        if (coverage->seen[i] == field) {
            return true;
        }
    }
    return false;
}

static void see(struct coverage *coverage, const struct field *field)
{
    if (!is_seen(coverage, field)) {
        assert_true(coverage->count < FIELDS_MAX);
        coverage->seen[coverage->count++] = field;
    }
}

static void see_object(struct coverage *coverage, const struct schema *schema, const char *object);

static void see_list(struct coverage *coverage, const struct field *field, const char *at)
{
    struct any_list list;

    memcpy(&list, at, sizeof(list));
    if (list.items != NULL) {
        see(coverage, field);
    }
    for (uint32_t i = 0; field->schema != NULL && i < list.count; i++) {
        see_object(coverage, field->schema, list.items + i * field->schema->bytes);
    }
}

static void see_pointer(struct coverage *coverage, const struct field *field, const char *at)
{
    const char *object;

    memcpy(&object, at, sizeof(object));
    if (object != NULL) {
        see(coverage, field);
        see_object(coverage, field->schema, object);
    }
}

/* Of the scalars, the struct begins with the pointer or the is_set flag that says "present". */
static void see_field(struct coverage *coverage, const struct field *field, const char *at)
{
    static const char zeros[64] = {0};

    if (field->kind == FIELD_OBJECT) {
        see(coverage, field);
        see_object(coverage, field->schema, at);
    } else if (field->kind == FIELD_OBJECT_PTR) {
        see_pointer(coverage, field, at);
    } else if (field->kind == FIELD_STRING) {
        if (memcmp(at, zeros, sizeof(char *)) != 0) {
            see(coverage, field);
        }
    } else if (field->kind >= FIELD_STRING_LIST) {
        see_list(coverage, field, at);
    } else if (at[0] != 0) {
        see(coverage, field);
    }
}

static void see_object(struct coverage *coverage, const struct schema *schema, const char *object)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        see_field(coverage, &schema->fields[i], object + schema->fields[i].offset);
    }
}

static void check_schema(const struct coverage *coverage, const struct schema *schema)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *field = &schema->fields[i];

        if (!is_seen(coverage, field)) {
            fail_msg("no sample has %s.%s", schema->name, field->name);
        }
        assert_true(field->offset < schema->bytes);
        if (field->schema != NULL) {
            check_schema(coverage, field->schema);
        }
    }
}

static void the_samples_fill_every_field_of_every_schema(void **state)
{
    static struct coverage coverage;
    struct arena *arena = *state;

    for (size_t i = 0; i < ARRAY_COUNT(samples); i++) {
        see_object(&coverage, sample_schema(i),
                   decode(arena, sample_schema(i), sample_text(arena, i)));
    }
    for (size_t i = 0; i < ARRAY_COUNT(samples); i++) {
        check_schema(&coverage, sample_schema(i));
    }
}

/* -- values land in the member they belong to ---------------------------------------------------
 */

static void a_job_is_read_into_its_members(void **state)
{
    struct arena *arena = *state;
    const struct job *job = decode(arena, kind_info(KIND_JOB)->schema, sample_text(arena, 0));
    const struct pod_spec *spec = &job->spec.pod_template.spec;

    check_str(job->meta.name, "train-a");
    check_i64(job->meta.creation_timestamp.ms, INT64_C(1795953510000));
    check_i64(job->meta.deletion_timestamp.ms % 1000, 250);
    check_str(string_map_get(&job->meta.annotations, "note"), "line\n\"two\"\t\\");
    assert_true(job->meta.owner_references.items[0].controller.value);
    check_i64(job->spec.parallelism.value, 4);
    assert_true(job->spec.suspend.is_set);
    assert_false(job->spec.suspend.value);
    check_i64(job->spec.scheduling->scheduling_policy->gang->min_count.value, 4);
    check_i64(spec->containers.count, 1);
    check_str(spec->containers.items[0].resources.requests.items[0].text, "1500m");
    assert_true(spec->containers.items[0].resources.requests.items[0].value.nano == 1500000000);
    check_str(spec->affinity->node_affinity->required->node_selector_terms.items[0]
                  .match_expressions.items[1]
                  .op,
              "Gt");
    check_str(spec->affinity->pod_anti_affinity->required.items[0].topology_key,
              "topology.kubernetes.io/zone");
    assert_non_null(spec->affinity->pod_affinity->required.items[0].namespace_selector);
    check_i64(spec->tolerations.items[1].toleration_seconds.value, 300);
    check_i64(job->status.failed.value, 1);
    check_i64(job->status.uncounted_terminated_pods->succeeded.count, 1);
    assert_non_null(job->status.uncounted_terminated_pods->failed.items);
    check_i64(job->status.uncounted_terminated_pods->failed.count, 0);
}

static void a_slice_and_a_queue_are_read_into_their_members(void **state)
{
    struct arena *arena = *state;
    const struct resource_slice *slice =
        decode(arena, kind_info(KIND_RESOURCE_SLICE)->schema, sample_text(arena, 8));
    const struct device *device = &slice->spec.devices.items[0];
    const struct queue *queue =
        decode(arena, kind_info(KIND_QUEUE)->schema, sample_text(arena, 11));
    const struct quota_flavor *flavor = &queue->spec.resource_groups.items[0].flavors.items[0];

    check_str(device->attributes.items[2].key, "example.com/model");
    check_str(device->attributes.items[2].string_value, "h100");
    check_i64(device->attributes.items[0].int_value.value, 0);
    assert_true(device->attributes.items[0].int_value.is_set);
    check_str(slice->spec.shared_counters.items[0].counters.items[1].key, "slices");
    check_str(slice->spec.shared_counters.items[0].counters.items[1].value.text, "7");
    check_str(flavor->resources.items[1].nominal_quota.text, "6");
    check_i64(queue->spec.requeue->base.ms, 60000);
    check_i64(queue->spec.min_runtime_protection.ms, 0);
    assert_true(queue->spec.min_runtime_protection.is_set);
    check_i64(queue->spec.fair_sharing->half_life.ms, INT64_C(604800000));
}

/* -- the table of kinds -------------------------------------------------------------------------
 */

static void kinds_are_found_by_group_version_and_kind(void **state)
{
    (void)state;
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        const struct kind_info *info = kind_info((enum object_kind)kind);
        char api_version[64];

        snprintf(api_version, sizeof(api_version), "%s%s%s", info->group,
                 info->group[0] == '\0' ? "" : "/", info->version);
        assert_ptr_equal(kind_find(str_from_c(api_version), str_from_c(info->name)), info);
        /* Every kind's struct begins with its meta. */
        check_str(str_from_c(info->schema->fields[0].name), "metadata");
        check_i64(info->schema->fields[0].offset, 0);
    }
    assert_null(kind_info(KIND_NONE));
    assert_null(kind_info(KIND_COUNT));
    assert_null(kind_find(STR("v1"), STR("Job")));
    assert_null(kind_find(STR("/v1"), STR("Pod")));
    assert_null(kind_find(STR("batch/v1beta1"), STR("Job")));
    assert_null(kind_find(STR("batch/v1"), STR("job")));
    assert_null(kind_find(STR_NONE, STR_NONE));
}

/* What a request's path is made of; a slip here would show only on a real server. */
static void kinds_have_the_server_s_plurals_and_scopes(void **state)
{
    static const char *const expected[] = {
        [KIND_JOB] = "batch/v1 jobs namespaced",
        [KIND_POD] = "/v1 pods namespaced",
        [KIND_NODE] = "/v1 nodes cluster",
        [KIND_NAMESPACE] = "/v1 namespaces cluster",
        [KIND_LIMIT_RANGE] = "/v1 limitranges namespaced",
        [KIND_RUNTIME_CLASS] = "node.k8s.io/v1 runtimeclasses cluster",
        [KIND_PRIORITY_CLASS] = "scheduling.k8s.io/v1 priorityclasses cluster",
        [KIND_DEVICE_CLASS] = "resource.k8s.io/v1 deviceclasses cluster",
        [KIND_RESOURCE_SLICE] = "resource.k8s.io/v1 resourceslices cluster",
        [KIND_RESOURCE_CLAIM] = "resource.k8s.io/v1 resourceclaims namespaced",
        [KIND_RESOURCE_CLAIM_TEMPLATE] = "resource.k8s.io/v1 resourceclaimtemplates namespaced",
        [KIND_QUEUE] = "tallyman.dev/v1beta1 queues cluster",
        [KIND_COHORT] = "tallyman.dev/v1beta1 cohorts cluster",
        [KIND_RESOURCE_FLAVOR] = "tallyman.dev/v1beta1 resourceflavors cluster",
        [KIND_ADMISSION] = "tallyman.dev/v1beta1 admissions namespaced",
        [KIND_DEVICE_TAINT_RULE] = "resource.k8s.io/v1 devicetaintrules cluster",
        [KIND_PROVISIONING_REQUEST] = "autoscaling.x-k8s.io/v1 provisioningrequests namespaced",
    };

    (void)state;
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        const struct kind_info *info = kind_info((enum object_kind)kind);
        char text[128];

        snprintf(text, sizeof(text), "%s/%s %s %s", info->group, info->version, info->plural,
                 info->is_namespaced ? "namespaced" : "cluster");
        assert_string_equal(text, expected[kind]);
        check_i64(info->is_optional, kind >= KIND_DEVICE_CLASS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_sample_survives_encoding, setup, teardown),
        cmocka_unit_test_setup_teardown(the_samples_fill_every_field_of_every_schema, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_job_is_read_into_its_members, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slice_and_a_queue_are_read_into_their_members, setup,
                                        teardown),
        cmocka_unit_test(kinds_are_found_by_group_version_and_kind),
        cmocka_unit_test(kinds_have_the_server_s_plurals_and_scopes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
