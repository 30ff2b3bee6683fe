/* Objects of resource.k8s.io in the versions before v1, as an API server 1.37 has written one and
 * the same object in each of them. */
#include "support/check.h"
#include "support/file.h"

#include <stdio.h>

#include "tallyman/api/codec.h"
#include "tallyman/api/dra.h"

static void *read_as(struct arena *arena, enum object_kind kind, const char *name,
                     const char *version)
{
    char path[128];
    snprintf(path, sizeof(path), "tests/unit/api/samples/older/%s.%s.json", name, version);
    void *value = NULL;
    struct err err;
    if (rc_failed(
            decode_json(arena, kind_info(kind)->schema, file_read(arena, path), &value, &err))) {
        fail_msg("%s: %s", path, err.text);
    }
    return value;
}

static void *decode_text(struct arena *arena, enum object_kind kind, const char *text)
{
    void *value = NULL;
    struct err err;
    if (rc_failed(decode_json(arena, kind_info(kind)->schema, str_from_c(text), &value, &err))) {
        fail_msg("%s", err.text);
    }
    return value;
}

static void every_version_says_the_same(void **state)
{
    (void)state;
    static const struct {
        enum object_kind kind;
        const char *name;
    } samples[] = {{KIND_RESOURCE_SLICE, "ResourceSlice"},
                   {KIND_RESOURCE_SLICE, "ResourceSlice-counters"},
                   {KIND_RESOURCE_CLAIM, "ResourceClaim"},
                   {KIND_RESOURCE_CLAIM_TEMPLATE, "ResourceClaimTemplate"},
                   {KIND_DEVICE_CLASS, "DeviceClass"}};
    struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < ARRAY_COUNT(samples); i++) {
        const struct kind_info *kind = kind_info(samples[i].kind);
        void *now = read_as(&arena, samples[i].kind, samples[i].name, kind->version);
        for (uint32_t v = 1; kind_version(kind, v) != NULL; v++) {
            void *then = read_as(&arena, samples[i].kind, samples[i].name, kind_version(kind, v));
            if (!object_equal(kind->schema, now, then)) {
                fail_msg("%s isn't the same in %s", samples[i].name, kind_version(kind, v));
            }
        }
    }
    arena_deinit(&arena);
}

static void basic_devices_have_all_that_others_have(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    const struct resource_slice *slice =
        read_as(&arena, KIND_RESOURCE_SLICE, "ResourceSlice", "v1beta1");
    const struct device *device = &slice->spec.devices.items[0];
    check_str(device->name, "whole");
    assert_int_equal(device->attributes.count, 4);
    assert_int_equal(device->capacity.count, 1);
    check_str(device->consumes_counters.items[0].counter_set, "card-0");
    check_str(device->taints.items[0].key, "gpu.example.com/unhealthy");
    arena_deinit(&arena);
}

/* What stands in the request itself is `exactly`, unless it says nothing: beside firstAvailable an
 * API server writes an empty deviceClassName. */
static void inline_requests_are_exact_ones(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    const struct resource_claim *claim =
        read_as(&arena, KIND_RESOURCE_CLAIM, "ResourceClaim", "v1beta1");
    const struct device_request *requests = claim->spec.devices.requests.items;
    check_str(requests[0].name, "gpus");
    assert_non_null(requests[0].exactly);
    check_str(requests[0].exactly->device_class_name, "gpu.example.com");
    check_i64(requests[0].exactly->count.value, 2);
    check_str(requests[0].exactly->selectors.items[0].cel->expression, "device.driver != 'x'");
    assert_null(requests[1].exactly);
    assert_int_equal(requests[1].first_available.count, 2);
    arena_deinit(&arena);
}

static void odd_older_shapes_are_borne(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    const struct resource_slice *slice =
        decode_text(&arena, KIND_RESOURCE_SLICE,
                    "{\"spec\":{\"devices\":[{\"basic\":null,\"name\":\"a\"},"
                    "{\"basic\":{\"allNodes\":true,\"other\":[{\"basic\":1}]},\"name\":\"b\"}]}}");
    check_str(slice->spec.devices.items[0].name, "a");
    check_str(slice->spec.devices.items[1].name, "b");
    assert_true(slice->spec.devices.items[1].all_nodes.value);
    void *value = NULL;
    struct err err;
    static const char wrong[] = "{\"spec\":{\"devices\":[{\"basic\":[1]}]}}";
    assert_true(rc_failed(decode_json(&arena, kind_info(KIND_RESOURCE_SLICE)->schema,
                                      str_from_c(wrong), &value, &err)));
    static const char wrong_count[] =
        "{\"spec\":{\"devices\":{\"requests\":[{\"name\":\"a\",\"count\":\"two\"}]}}}";
    assert_true(rc_failed(decode_json(&arena, kind_info(KIND_RESOURCE_CLAIM)->schema,
                                      str_from_c(wrong_count), &value, &err)));
    arena_deinit(&arena);
}

static void older_versions_are_known_by_their_names(void **state)
{
    (void)state;
    assert_ptr_equal(kind_find(STR("resource.k8s.io/v1beta1"), STR("ResourceClaim")),
                     kind_info(KIND_RESOURCE_CLAIM));
    assert_ptr_equal(kind_find(STR("resource.k8s.io/v1beta2"), STR("DeviceClass")),
                     kind_info(KIND_DEVICE_CLASS));
    assert_null(kind_find(STR("resource.k8s.io/v1alpha3"), STR("ResourceClaim")));
    assert_null(kind_find(STR("batch/v1beta1"), STR("Job")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_says_the_same),
        cmocka_unit_test(basic_devices_have_all_that_others_have),
        cmocka_unit_test(inline_requests_are_exact_ones),
        cmocka_unit_test(odd_older_shapes_are_borne),
        cmocka_unit_test(older_versions_are_known_by_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
