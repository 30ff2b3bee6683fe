/* The clock that decisions go by, where the wall clock jumps. */
#include "support/check.h"
#include "tallyman/base/steady_time.h"

#define NOON_MS INT64_C(1795953600000)

static void goes_with_the_wall_clock(void **state)
{
    struct steady_time time = {0};
    (void)state;
    check_i64(steady_time_ms(&time, NOON_MS, 5000), NOON_MS);
    check_i64(steady_time_ms(&time, NOON_MS + 7, 5007), NOON_MS + 7);
}

static void step_forwards_is_taken_at_once(void **state)
{
    struct steady_time time = {0};
    (void)state;
    check_i64(steady_time_ms(&time, NOON_MS, 5000), NOON_MS);
    check_i64(steady_time_ms(&time, NOON_MS + 3600000, 5001), NOON_MS + 3600000);
    check_i64(steady_time_ms(&time, NOON_MS + 3600010, 5011), NOON_MS + 3600010);
}

/* Ten minutes back: timers of a minute still take a minute (a tenth more at most). */
static void step_backwards_slows_it_down(void **state)
{
    struct steady_time time = {0};
    (void)state;
    check_i64(steady_time_ms(&time, NOON_MS, 0), NOON_MS);
    check_i64(steady_time_ms(&time, NOON_MS - 600000, 0), NOON_MS);
    check_i64(steady_time_ms(&time, NOON_MS - 540000, 60000), NOON_MS + 54000);
    check_i64(steady_time_ms(&time, NOON_MS + 5400000, 6000000), NOON_MS + 5400000);
    check_i64(steady_time_ms(&time, NOON_MS + 5400100, 6000100), NOON_MS + 5400100);
}

static void never_goes_backwards_however_often_it_is_asked(void **state)
{
    struct steady_time time = {0};
    int64_t last_ms = steady_time_ms(&time, NOON_MS, 0);
    (void)state;
    for (int64_t at_ms = 1; at_ms < 20000; at_ms++) {
        int64_t wall_ms = NOON_MS + at_ms - (at_ms > 100 ? 1500 : 0) - (at_ms > 9000 ? 700 : 0);
        int64_t now_ms = steady_time_ms(&time, wall_ms, at_ms);
        assert_true(now_ms >= last_ms && now_ms - last_ms <= 1);
        last_ms = now_ms;
    }
    check_i64(last_ms, NOON_MS + 19999 - 2200 + (2200 - 1989));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_with_the_wall_clock),
        cmocka_unit_test(step_forwards_is_taken_at_once),
        cmocka_unit_test(step_backwards_slows_it_down),
        cmocka_unit_test(never_goes_backwards_however_often_it_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
