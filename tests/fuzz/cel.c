/* CEL of any bytes: what compiles is evaluated on three devices, gives the same answer twice, and
 * never does more than its limits allow. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "tallyman/api/cel.h"
#include "tallyman/base/limits.h"

#define DEVICES 3

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static struct device_attribute gpu_attributes[] = {
    {.key = STR_INIT("type"), .string_value = STR_INIT("gpu")},
    {.key = STR_INIT("productName"), .string_value = STR_INIT("NVIDIA A100-SXM4-40GB")},
    {.key = STR_INIT("index"), .int_value = {true, 3}},
    {.key = STR_INIT("driverVersion"), .version_value = STR_INIT("550.54.15-rc.1+b")},
    {.key = STR_INIT("resource.kubernetes.io/pcieRoot"), .string_value = STR_INIT("pci0000:00")},
    {.key = STR_INIT("dra.net/rdma"), .bool_value = {true, true}},
};
static struct device_capacity gpu_capacity[] = {
    {.key = STR_INIT("memory"), .value = {true, {(i128)40 << 30}, STR_INIT("40Gi")}},
    {.key = STR_INIT("dra.net/half"), .value = {true, {500000000}, STR_INIT("500m")}},
};
static struct device_attribute odd_attributes[] = {
    {.key = STR_INIT("big"), .int_value = {true, INT64_MAX}},
    {.key = STR_INIT("text"),
     .string_value = STR_INIT("gr\xc3\xb6\xc3\x9f"
                              "e")},
    {.key = STR_INIT("a/b/c"), .string_value = STR_INIT("")},
};
static struct device_attribute bad_attributes[] = {
    {.key = STR_INIT("version"), .version_value = STR_INIT("not a version")},
};

static struct device devices[DEVICES] = {
    {.name = STR_INIT("gpu"),
     .attributes = {gpu_attributes, ARRAY_COUNT(gpu_attributes)},
     .capacity = {gpu_capacity, ARRAY_COUNT(gpu_capacity)},
     .allow_multiple_allocations = {true, true}},
    {.name = STR_INIT("odd"), .attributes = {odd_attributes, ARRAY_COUNT(odd_attributes)}},
    {.name = STR_INIT("bad"), .attributes = {bad_attributes, ARRAY_COUNT(bad_attributes)}},
};

static void evaluate(const struct cel_program *program, const struct device *device)
{
    struct cel_device input = {.driver = STR("gpu.nvidia.com"), .device = device};
    struct arena scratch;
    bool first = false;
    bool second = false;
    struct err err = {""};

    arena_init(&scratch);
    struct rc rc = cel_matches(program, &input, &scratch, &first, &err);
    /* The bound counts values; blocks of a regular expression may come on top. */
    assert(scratch.used_bytes <= 4 * (size_t)CEL_MEMORY_MAX_BYTES);
    assert(rc.code == RC_OK || rc.code == RC_INVALID || rc.code == RC_LIMIT);
    assert(rc.code == RC_OK || err.text[0] != '\0');
    arena_reset(&scratch);
    struct rc again = cel_matches(program, &input, &scratch, &second, NULL);
    assert(again.code == rc.code && first == second);
    arena_deinit(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct cel_program *program = NULL;
    struct err err = {""};

    struct rc rc = cel_compile((struct str){(const char *)bytes, size}, &program, &err);
    if (rc_failed(rc)) {
        assert(rc.code == RC_INVALID || rc.code == RC_LIMIT);
        assert(err.text[0] != '\0');
        assert(size <= CEL_EXPRESSION_MAX_BYTES || rc.code == RC_LIMIT);
        return 0;
    }
    for (size_t i = 0; i < DEVICES; i++) {
        evaluate(program, &devices[i]);
    }
    cel_program_free(program);
    return 0;
}
