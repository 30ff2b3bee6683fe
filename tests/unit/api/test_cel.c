/* CEL on one GPU: what drivers' DeviceClasses write, and the rules of the language around it. The
 * wide comparison with the scheduler's own CEL is tests/compare-cel. */
#include "support/check.h"
#include "tallyman/api/cel.h"
#include "tallyman/base/limits.h"

static struct device_attribute attributes[] = {
    {.key = STR_INIT("type"), .string_value = STR_INIT("gpu")},
    {.key = STR_INIT("productName"), .string_value = STR_INIT("NVIDIA A100-SXM4-40GB")},
    {.key = STR_INIT("index"), .int_value = {true, 3}},
    {.key = STR_INIT("shared"), .bool_value = {true, false}},
    {.key = STR_INIT("driverVersion"), .version_value = STR_INIT("550.54.15")},
    {.key = STR_INIT("gpu.nvidia.com/uuid"), .string_value = STR_INIT("GPU-1")},
    {.key = STR_INIT("resource.kubernetes.io/pcieRoot"), .string_value = STR_INIT("pci0000:00")},
};
static struct device_capacity capacity[] = {
    {.key = STR_INIT("memory"), .value = {true, {((i128)40 << 30) * 1000000000}, STR_INIT("40Gi")}},
    {.key = STR_INIT("share"), .value = {true, {500000000}, STR_INIT("500m")}},
};

static struct device gpu(void)
{
    return (struct device){.name = STR("gpu-0"),
                           .attributes = {attributes, ARRAY_COUNT(attributes)},
                           .capacity = {capacity, ARRAY_COUNT(capacity)}};
}

/* 'T', 'F', 'X' an error, 'L' a limit, 'E' doesn't compile, 'D' too deep or long to compile. */
static char answer_for(const char *expression, const struct device *device, struct err *err)
{
    struct cel_program *program = NULL;
    struct cel_device input = {.driver = STR("gpu.nvidia.com"), .device = device};
    struct arena scratch;
    bool matches = false;
    struct rc rc = cel_compile(str_from_c(expression), &program, err);
    if (rc_failed(rc)) {
        assert_null(program);
        return rc.code == RC_LIMIT ? 'D' : 'E';
    }
    arena_init(&scratch);
    rc = cel_matches(program, &input, &scratch, &matches, err);
    arena_deinit(&scratch);
    cel_program_free(program);
    return rc.code == RC_OK ? (matches ? 'T' : 'F') : rc.code == RC_LIMIT ? 'L' : 'X';
}

struct row {
    char answer;
    const char *expression;
};

static void check_rows(const struct row *rows, size_t count)
{
    struct device device = gpu();
    for (size_t i = 0; i < count; i++) {
        struct err err = {""};
        char answer = answer_for(rows[i].expression, &device, &err);
        if (answer != rows[i].answer) {
            fail_msg("%s: wanted %c, got %c %s", rows[i].expression, rows[i].answer, answer,
                     err.text);
        }
    }
}

static void device_classes_select_their_devices(void **state)
{
    static const struct row rows[] = {
        {'T', "device.driver == 'gpu.nvidia.com'"},
        {'F', "device.driver == 'gpu.amd.com'"},
        {'T', "device.driver == 'gpu.nvidia.com' && "
              "device.attributes['gpu.nvidia.com'].type == 'gpu'"},
        {'F', "device.attributes['gpu.nvidia.com'].type == 'mig'"},
        {'T', "device.attributes['gpu.nvidia.com'].productName.lowerAscii().matches('a100')"},
        {'T', "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) == 0"},
        {'T', "device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('42G'))"},
        {'F', "device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('40Gi'))"},
        {'T', "device.attributes['gpu.nvidia.com'].driverVersion.compareTo(semver('550.9.0')) > 0"},
        {'T', "device.attributes['gpu.nvidia.com'].driverVersion.major() == 550"},
        {'T', "device.attributes['gpu.nvidia.com'].index in [1, 3]"},
        {'F', "device.attributes['gpu.nvidia.com'].shared"},
        {'F', "device.allowMultipleAllocations"},
        {'T', "cel.bind(a, device.attributes['gpu.nvidia.com'], a.type == 'gpu' && a.index == 3)"},
        {'T', "device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0000:00'"},
    };
    (void)state;
    check_rows(rows, ARRAY_COUNT(rows));
}

static void unqualified_names_belong_to_the_drivers_domain(void **state)
{
    static const struct row rows[] = {
        {'T', "device.attributes['gpu.nvidia.com'].uuid == 'GPU-1'"},
        {'T', "has(device.attributes['gpu.nvidia.com'].type)"},
        {'F', "has(device.attributes['resource.kubernetes.io'].type)"},
        {'F', "has(device.capacity['gpu.nvidia.com'].pcieRoot)"},
        {'T', "'type' in device.attributes['gpu.nvidia.com']"},
        {'T', "device.attributes.size() == 2 && device.capacity.size() == 1"},
    };
    (void)state;
    check_rows(rows, ARRAY_COUNT(rows));
}

static void an_unknown_domain_is_an_empty_map_and_an_unknown_name_an_error(void **state)
{
    static const struct row rows[] = {
        {'T', "device.attributes['nowhere'] == {}"},
        {'F', "'nowhere' in device.attributes"},
        {'X', "device.attributes['nowhere'].x == 1"},
        {'X', "device.attributes['gpu.nvidia.com'].missing == 1"},
        {'X', "device.capacity['gpu.nvidia.com'].missing == quantity('1')"},
        {'F', "device.attributes['nowhere'].?x.hasValue()"},
        {'T', "device.attributes['nowhere'].?x.orValue(7) == 7"},
    };
    (void)state;
    check_rows(rows, ARRAY_COUNT(rows));
}

static void and_and_or_absorb_errors_on_either_side(void **state)
{
    static const struct row rows[] = {
        {'T', "1 / 0 == 1 || true"},
        {'T', "true || 1 / 0 == 1"},
        {'F', "1 / 0 == 1 && false"},
        {'F', "false && 1 / 0 == 1"},
        {'X', "1 / 0 == 1 || false"},
        {'X', "1 / 0 == 1 && true"},
        {'X', "dyn(1) && true"},
        {'F', "dyn(1) && false"},
        {'T', "[1, 2, 0].exists(x, 2 / x == 2)"},
        {'X', "[0, 2].all(x, 2 / x == 1)"},
    };
    (void)state;
    check_rows(rows, ARRAY_COUNT(rows));
}

static void what_doesnt_fit_in_64_bits_is_an_error(void **state)
{
    static const struct row rows[] = {
        {'X', "9223372036854775807 + 1 == 0"},
        {'X', "-9223372036854775808 - 1 == 0"},
        {'X', "-9223372036854775808 / -1 == 0"},
        {'X', "-9223372036854775808 % -1 == 0"},
        {'X', "1u - 2u == 0u"},
        {'X', "1 % 0 == 0"},
        {'E', "9223372036854775808 == 0"},
        {'T', "-9223372036854775808 < 0"},
    };
    (void)state;
    check_rows(rows, ARRAY_COUNT(rows));
}

static void types_are_checked_before_anything_is_evaluated(void **state)
{
    static const struct row rows[] = {
        {'E', "1 + 'a' == 2"},        {'E', "device.driver == 1"},
        {'E', "device.nothing == 1"}, {'E', "nothing == 1"},
        {'E', "nothing(1)"},          {'E', "1"},
        {'E', "device.driver"},       {'E', "[1, 'a'] == []"},
        {'E', "true ? 1 : 'a'"},      {'E', "int('a') == 1"},
        {'E', "'a'.matches('(')"},    {'E', "ip('1.2.3.4').family() == 4"},
        {'T', "dyn(1) != 'a'"},       {'X', "device.attributes['gpu.nvidia.com'].index"},
        {'T', "dyn(true)"},
    };
    (void)state;
    check_rows(rows, ARRAY_COUNT(rows));
}

static void quantities_and_versions_compare_as_in_kubernetes(void **state)
{
    static const struct row rows[] = {
        {'T', "quantity('1Gi') == quantity('1024Mi')"},
        {'F', "quantity('1000m').isInteger()"},
        {'T', "quantity('1').add(quantity('2')) == quantity('3')"},
        {'X', "quantity('3') == quantity('1').add(quantity('2'))"},
        {'X', "dyn(quantity('1')) == 1"},
        {'T', "dyn(quantity('1')) != 1"},
        {'X', "device.attributes['gpu.nvidia.com'].driverVersion == '550.54.15'"},
        {'X', "device.attributes['gpu.nvidia.com'].driverVersion in ['550.54.15'] || true"},
        {'T', "semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))"},
        {'X', "semver('1.0') == semver('1.0.0')"},
        {'T', "semver('v1', true) == semver('1.0.0+b')"},
    };
    (void)state;
    check_rows(rows, ARRAY_COUNT(rows));
}

static void a_bad_version_fails_even_where_it_isnt_read(void **state)
{
    struct device device = gpu();
    struct device_attribute bad = {.key = STR("firmware"), .version_value = STR("v2")};
    struct err err;
    (void)state;
    device.attributes = (struct device_attribute_map){&bad, 1};
    assert_int_equal(answer_for("true", &device, &err), 'X');
    check_str(err_text(&err), "attribute firmware of device gpu-0 isn't a semantic version such as "
                              "1.2.3, nor any other value");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_classes_select_their_devices),
        cmocka_unit_test(unqualified_names_belong_to_the_drivers_domain),
        cmocka_unit_test(an_unknown_domain_is_an_empty_map_and_an_unknown_name_an_error),
        cmocka_unit_test(and_and_or_absorb_errors_on_either_side),
        cmocka_unit_test(what_doesnt_fit_in_64_bits_is_an_error),
        cmocka_unit_test(types_are_checked_before_anything_is_evaluated),
        cmocka_unit_test(quantities_and_versions_compare_as_in_kubernetes),
        cmocka_unit_test(a_bad_version_fails_even_where_it_isnt_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
