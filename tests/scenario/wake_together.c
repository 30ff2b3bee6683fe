/* Events of one moment are taken in together and decided once. Who was woken by the first of them
 * and is gone by the last hands the turn on: to the next in line, or to the one behind. */
#include "support/check.h"
#include "support/scenario.h"

/* Behind `big`, which has all, `first` and then `second` wait. */
static void given_two_in_line(struct scenario *s, const char *options)
{
    given_node(s, "n1", "cpu=64");
    given_queue(s, "q", options);
    given_queue(s, "elsewhere", "cpu=0");
    scenario_start(s);
    given_job(s, "big", "q", "pods=7 cpu=1");
    given_job(s, "first", "q", "pods=2 cpu=1");
    given_job(s, "second", "q", "pods=4 cpu=1");
    expect_state(s, "first", "Pending QuotaExhausted");
}

static void first_is_moved(struct scenario *s)
{
    job_relabelled(s, "first", "elsewhere");
}

static void first_is_held(struct scenario *s)
{
    job_annotated(s, "first", "tallyman.dev/hold", "true");
}

static void first_is_deleted(struct scenario *s)
{
    job_deleted_now(s, "first");
}

static void (*const ways_to_leave[])(struct scenario *s) = {first_is_moved, first_is_held,
                                                            first_is_deleted};

static void expect_second_starts(const char *options)
{
    for (size_t i = 0; i < sizeof(ways_to_leave) / sizeof(*ways_to_leave); i++) {
        struct scenario *s = scenario_new();
        given_two_in_line(s, options);
        events_gather(s);
        job_deleted_now(s, "big");
        ways_to_leave[i](s);
        events_arrive(s, 0);
        expect_state(s, "second", "Admitted");
        scenario_free(s);
    }
}

static void the_next_in_line_starts_when_the_one_that_was_woken_leaves(void **state)
{
    (void)state;
    expect_second_starts("cpu=7");
}

static void the_next_starts_when_the_head_that_was_woken_leaves(void **state)
{
    (void)state;
    expect_second_starts("cpu=7 strategy=StrictFIFO");
}

/* Of the same shape as the head, and so awake with it; `next` stands between the two. */
static void one_like_the_head_that_left_waits_for_its_turn(void **state)
{
    (void)state;
    struct scenario *s = scenario_new();
    given_two_in_line(s, "cpu=7 strategy=StrictFIFO");
    given_job(s, "like-first", "q", "pods=2 cpu=1");
    events_gather(s);
    job_deleted_now(s, "big");
    given_node(s, "n1", "cpu=5");
    first_is_deleted(s);
    events_arrive(s, 0);
    expect_state(s, "second", "Admitted");
    expect_state(s, "like-first", "Pending NodesFull");
    scenario_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_in_line_starts_when_the_one_that_was_woken_leaves),
        cmocka_unit_test(the_next_starts_when_the_head_that_was_woken_leaves),
        cmocka_unit_test(one_like_the_head_that_left_waits_for_its_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
