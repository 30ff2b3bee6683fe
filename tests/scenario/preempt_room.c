/* The room that is freed for a gang is its own as a whole: what was free already as well as what
 * its victims still hold. */
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

static void given_classes(struct scenario *s)
{
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mid", 5);
    given_priority_class(s, "high", 9);
}

/* `high` gets the node whole once `low` has stopped; `third` would fit on what is free now. */
static void given_third_beside_reserved_room(struct scenario *s)
{
    given_classes(s);
    given_node(s, "n1", "cpu=2");
    given_queue(s, "q", "cpu=9 within=LowerPriority");
    given_job(s, "low", "q", "pods=1 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "low", "n1");
    given_job(s, "high", "q", "pods=1 cpu=2 priority=high created=1000");
    expect_state(s, "high", "Reserved WaitingForVictims");
    given_job(s, "third", "q", "pods=1 cpu=1 priority=mid created=2000");
    expect_state(s, "third", "Pending ReservedForOther");
}

/* One cpu of two is free, `low` has the other, and `high` needs both: the free one isn't anybody's
 * while `low` stops. */
static void free_room_that_it_needs_is_nobody_elses(void **state)
{
    struct scenario *s = *state;
    given_third_beside_reserved_room(s);
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    expect_state(s, "third", "Pending NodesFull");
    gang_starts(s, "high", "n1");
    job_finishes(s, "high");
    expect_state(s, "third", "Admitted");
    expect_state(s, "low", "Admitted");
}

/* It doesn't want it any more: whoever waited for that goes on. */
static void given_up_room_is_anybodys(void **state)
{
    struct scenario *s = *state;
    given_third_beside_reserved_room(s);
    job_deleted_now(s, "high");
    expect_state(s, "third", "Admitted");
}

/* On another node there is room for both. */
static void room_elsewhere_is_free(void **state)
{
    struct scenario *s = *state;
    given_third_beside_reserved_room(s);
    given_node(s, "n2", "cpu=3");
    expect_state(s, "third", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(free_room_that_it_needs_is_nobody_elses),
        scenario_test(given_up_room_is_anybodys),
        scenario_test(room_elsewhere_is_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
