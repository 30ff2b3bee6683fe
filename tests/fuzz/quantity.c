/* Quantities of any bytes: nothing is taken that is out of range, a sign only changes the sign, and
 * what is taken can be written down and read again. The first byte names a resource. */
#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "tallyman/api/quantity.h"
#include "tallyman/base/limits.h"

#define NANO_PER_UNIT  INT64_C(1000000000)
#define NANO_PER_MILLI INT64_C(1000000)
#define NANO_MAX       ((i128)INT64_MAX * NANO_PER_UNIT)
#define ERROR_MAX      400

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_rounding(struct quantity value)
{
    i128 up = quantity_units_up(value);
    i128 down = quantity_units_down(value);

    assert(value.nano <= NANO_MAX && value.nano >= -NANO_MAX);
    assert(down * NANO_PER_UNIT == value.nano - value.nano % NANO_PER_UNIT);
    assert(up - down == (value.nano % NANO_PER_UNIT == 0 ? 0 : value.nano > 0 ? 1 : -1));
    if (value.nano / NANO_PER_MILLI < INT64_MAX && value.nano / NANO_PER_MILLI > INT64_MIN) {
        i128 milli = quantity_milli_up(value);
        i128 rest = milli * NANO_PER_MILLI - value.nano;
        assert(value.nano >= 0 ? rest >= 0 && rest < NANO_PER_MILLI
                               : rest <= 0 && rest > -NANO_PER_MILLI);
    }
}

/* Two digits groups and a suffix hold any amount. */
static void check_round_trip(struct arena *arena, struct quantity value)
{
    i128 magnitude = value.nano < 0 ? -value.nano : value.nano;
    struct str text =
        arena_format(arena, "%s%" PRId64 ".%09" PRId64, value.nano < 0 ? "-" : "",
                     (int64_t)(magnitude / NANO_PER_UNIT), (int64_t)(magnitude % NANO_PER_UNIT));
    struct quantity again = {0};

    assert(!rc_failed(quantity_parse(text, &again, NULL)));
    assert(quantity_compare(value, again) == 0);
}

static void check_sign(struct arena *arena, struct str s, struct quantity value)
{
    struct quantity negative = {0};

    if (s.ptr[0] == '-' || s.ptr[0] == '+') {
        return;
    }
    struct str text = arena_format(arena, "-" STR_FMT, STR_ARG(s));
    assert(!rc_failed(quantity_parse(text, &negative, NULL)));
    assert(value.nano >= 0 && negative.nano == -value.nano);
}

static void check_amount(struct arena *arena, struct str resource, struct quantity value)
{
    int64_t amount = resource_amount_from_quantity(resource, value, true);
    struct str text = resource_amount_format(arena, resource, amount);
    struct quantity again = {0};

    assert(!rc_failed(quantity_parse(text, &again, NULL)));
    assert(amount == INT64_MIN || resource_amount_from_quantity(resource, again, false) == amount);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct str resources[] = {STR_INIT("cpu"), STR_INIT("memory"), STR_INIT("pods"),
                                           STR_INIT("hugepages-2Mi")};
    if (size == 0) {
        return 0;
    }
    struct str s = {(const char *)bytes + 1, size - 1};
    struct quantity value = {42};
    struct err err;
    struct arena arena;

    if (rc_failed(quantity_parse(s, &value, &err))) {
        assert(value.nano == 42);
        assert(strlen(err.text) < ERROR_MAX && strchr(err.text, '\n') == NULL);
        return 0;
    }
    arena_init(&arena);
    check_rounding(value);
    check_round_trip(&arena, value);
    check_sign(&arena, s, value);
    check_amount(&arena, resources[bytes[0] % ARRAY_COUNT(resources)], value);
    arena_deinit(&arena);
    return 0;
}
