/* Who comes first, who blocks whom, and who is passed over. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

static void best_effort_lets_a_smaller_gang_overtake_a_blocked_head(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
    given_job(s, "holds", "q", "pods=2 cpu=1");
    given_job(s, "head", "q", "pods=3 cpu=1");
    given_job(s, "small", "q", "pods=1 cpu=1");
    expect_state(s, "head", "Pending QuotaExhausted");
    expect_state(s, "small", "Admitted");
}

static void strict_lets_nobody_overtake_a_blocked_head(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 strategy=StrictFIFO");
    given_job(s, "holds", "q", "pods=2 cpu=1");
    given_job(s, "head", "q", "pods=3 cpu=1");
    given_job(s, "small", "q", "pods=1 cpu=1");
    expect_state(s, "holds", "Admitted");
    expect_state(s, "head", "Pending QuotaExhausted");
    expect_state(s, "small", "Pending BehindInQueue");
    gang_starts(s, "holds", "n1 n1");
    job_finishes(s, "holds");
    expect_state(s, "head", "Admitted");
    expect_state(s, "small", "Admitted");
}

/* An impossible head is passed over under every strategy, and tried again when the quota changes.
 */
static void strict_passes_over_an_impossible_head(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "nvidia.com/gpu=8");
    given_queue(s, "q", "nvidia.com/gpu=4 strategy=StrictFIFO");
    given_job(s, "impossible", "q", "pods=5 nvidia.com/gpu=1");
    given_job(s, "a", "q", "pods=1 nvidia.com/gpu=1");
    given_job(s, "b", "q", "pods=1 nvidia.com/gpu=1");
    expect_state(s, "impossible", "Pending NeverFits");
    expect_state(s, "a", "Admitted");
    expect_state(s, "b", "Admitted");
    gang_starts(s, "a", "n1");
    gang_starts(s, "b", "n1");
    quota_becomes(s, "q", "nvidia.com/gpu=7 strategy=StrictFIFO");
    expect_state(s, "impossible", "Admitted");
}

/* More pods than all nodes together could hold, were they empty: as long as no node comes, nothing
 * that ends lets it start, so it keeps nobody. */
static void strict_passes_over_what_all_nodes_cannot_hold(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "nvidia.com/gpu=2");
    given_node(s, "n2", "nvidia.com/gpu=3");
    given_queue(s, "q", "nvidia.com/gpu=16 strategy=StrictFIFO");
    given_job(s, "impossible", "q", "pods=3 nvidia.com/gpu=2");
    given_job(s, "a", "q", "pods=1 nvidia.com/gpu=2");
    expect_state(s, "impossible", "Pending NeverFits");
    expect_state(s, "a", "Admitted");
    gang_starts(s, "a", "n1");
    given_node(s, "n3", "nvidia.com/gpu=2");
    given_job(s, "b", "q", "pods=1 nvidia.com/gpu=1");
    expect_state(s, "b", "Pending BehindInQueue");
    job_finishes(s, "a");
    expect_state(s, "impossible", "Admitted");
    gang_starts(s, "impossible", "n1 n2 n3");
    expect_state(s, "b", "Admitted");
}

/* Who stands behind the head and could never start hears it when he comes, and no longer when an
 * edit makes it possible. */
static void strict_tells_the_impossible_behind_the_head(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 strategy=StrictFIFO");
    given_job(s, "holds", "q", "pods=2 cpu=1");
    given_job(s, "head", "q", "pods=3 cpu=1");
    given_job(s, "large", "q", "pods=5 cpu=1");
    given_job(s, "larger", "q", "pods=7 cpu=1");
    given_job(s, "small", "q", "pods=1 cpu=1");
    expect_state(s, "head", "Pending QuotaExhausted");
    expect_state(s, "large", "Pending NeverFits");
    expect_state(s, "larger", "Pending NeverFits");
    expect_state(s, "small", "Pending BehindInQueue");

    gang_starts(s, "holds", "n1 n1");
    quota_becomes(s, "q", "cpu=5 strategy=StrictFIFO");
    expect_state(s, "head", "Admitted");
    expect_state(s, "large", "Pending QuotaExhausted");
    expect_state(s, "larger", "Pending NeverFits");
    expect_state(s, "small", "Pending BehindInQueue");

    quota_becomes(s, "q", "cpu=7 strategy=StrictFIFO");
    expect_state(s, "larger", "Pending BehindInQueue");
    quota_becomes(s, "q", "cpu=6 strategy=StrictFIFO");
    expect_state(s, "larger", "Pending NeverFits");
    gang_starts(s, "head", "n1 n1 n1");
    job_finishes(s, "head");
    job_finishes(s, "holds");
    expect_state(s, "large", "Admitted");
    expect_state(s, "small", "Admitted");
}

/* A node that is only away comes back, and so the head keeps its place. */
static void strict_waits_for_a_node_that_is_away(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "nvidia.com/gpu=2");
    given_node(s, "n2", "nvidia.com/gpu=2 cordoned=true");
    given_queue(s, "q", "nvidia.com/gpu=16 strategy=StrictFIFO");
    given_job(s, "head", "q", "pods=2 nvidia.com/gpu=2");
    given_job(s, "small", "q", "pods=1 nvidia.com/gpu=1");
    expect_state(s, "small", "Pending BehindInQueue");
}

static void strict_blocker_that_is_deleted_frees_the_line(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 strategy=StrictFIFO");
    given_job(s, "holds", "q", "pods=2 cpu=1");
    given_job(s, "head", "q", "pods=3 cpu=1");
    given_job(s, "small", "q", "pods=1 cpu=1");
    expect_state(s, "small", "Pending BehindInQueue");
    job_deleted_now(s, "head");
    expect_state(s, "small", "Admitted");
}

static void priority_comes_before_time(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_priority_class(s, "low", 10);
    given_priority_class(s, "high", 100);
    given_queue(s, "q", "cpu=1");
    given_job(s, "holds", "q", "pods=1 cpu=1");
    scenario_start(s);
    gang_starts(s, "holds", "n1");
    given_job(s, "old", "q", "pods=1 cpu=1 priority=low");
    at(s, 5000);
    given_job(s, "urgent", "q", "pods=1 cpu=1 priority=high");
    job_finishes(s, "holds");
    expect_state(s, "urgent", "Admitted");
    expect_state(s, "old", "Pending QuotaExhausted");
}

/* The label's change and the class object's change both count, for a parked gang too. */
static void priority_edits_move_a_parked_gang(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_priority_class(s, "low", 10);
    given_priority_class(s, "later", 5);
    given_queue(s, "q", "cpu=1");
    given_job(s, "holds", "q", "pods=1 cpu=1");
    scenario_start(s);
    gang_starts(s, "holds", "n1");
    given_job(s, "a", "q", "pods=1 cpu=1 priority=low");
    given_job(s, "b", "q", "pods=1 cpu=1 priority=later");
    at(s, 20000);
    given_priority_class(s, "later", 50);
    job_finishes(s, "holds");
    expect_state(s, "b", "Admitted");
    gang_starts(s, "b", "n1");
    given_job(s, "c", "q", "pods=1 cpu=1 priority=low");
    given_priority_class(s, "top", 1000);
    struct job *c = scenario_job(s, "c");
    for (uint32_t i = 0; i < c->meta.labels.count; i++) {
        if (str_eq_c(c->meta.labels.items[i].key, "tallyman.dev/priority-class")) {
            c->meta.labels.items[i].value = STR("top");
        }
    }
    object_changed(s, KIND_JOB, "c");
    job_finishes(s, "b");
    expect_state(s, "c", "Admitted");
    expect_state(s, "a", "Pending QuotaExhausted");
}

static void held_gang_is_not_considered_until_it_is_let_go(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=1");
    given_job(s, "held", "q", "pods=1 cpu=1 hold=true");
    given_job(s, "other", "q", "pods=1 cpu=1");
    expect_state(s, "held", "Held Held");
    expect_state(s, "other", "Admitted");
    gang_starts(s, "other", "n1");
    job_annotated(s, "held", "tallyman.dev/hold", NULL);
    expect_state(s, "held", "Pending QuotaExhausted");
    job_finishes(s, "other");
    expect_state(s, "held", "Admitted");
    /* Held again while it waits. */
    given_job(s, "third", "q", "pods=1 cpu=1");
    expect_state(s, "third", "Pending QuotaExhausted");
    job_annotated(s, "third", "tallyman.dev/hold", "true");
    expect_state(s, "third", "Held Held");
}

/* A held gang's Job may change as often as it likes: nothing is written. */
static void touching_a_held_job_writes_nothing(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=1");
    given_job(s, "held", "q", "pods=1 cpu=1 hold=true");
    expect_state(s, "held", "Held Held");
    at(s, 20000);
    (void)counts_take(s);
    object_changed(s, KIND_JOB, "held");
    assert_int_equal(counts_take(s).effects, 0);
}

/* Bursts of gangs of every size: nothing is held by who waits, and all of them run in the end. */
static void bursts_drain_without_half_held_gangs(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "nvidia.com/gpu=8");
    given_node(s, "n2", "nvidia.com/gpu=8");
    given_queue(s, "q", "nvidia.com/gpu=16");
    char name[16];
    char options[64];
    for (int i = 0; i < 24; i++) {
        snprintf(name, sizeof(name), "j%02d", i);
        snprintf(options, sizeof(options), "pods=%d nvidia.com/gpu=1", i * 5 % 8 + 1);
        given_job(s, name, "q", options);
    }
    scenario_start(s);
    int finished = 0;
    for (int round = 0; round < 60 && finished < 24; round++) {
        for (int i = 0; i < 24; i++) {
            snprintf(name, sizeof(name), "j%02d", i);
            struct job *job = scenario_job(s, name);
            if (!job->spec.suspend.value && job->status.conditions.count == 0) {
                job_finishes(s, name);
                finished++;
            }
        }
    }
    assert_int_equal(finished, 24);
    expect_used(s, "q", "nvidia.com/gpu=0");
}

static void linked_pairs_that_arrive_crosswise_do_not_deadlock(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "nvidia.com/gpu=4");
    given_queue(s, "q", "nvidia.com/gpu=4");
    given_job(s, "a", "q", "pods=3 nvidia.com/gpu=1");
    given_job(s, "c", "q", "pods=3 nvidia.com/gpu=1");
    given_job(s, "b", "q", "pods=1 nvidia.com/gpu=1");
    given_job(s, "d", "q", "pods=1 nvidia.com/gpu=1");
    expect_state(s, "a", "Admitted");
    expect_state(s, "b", "Admitted");
    expect_state(s, "c", "Pending QuotaExhausted");
    expect_used(s, "q", "nvidia.com/gpu=4");
    gang_starts(s, "a", "n1 n1 n1");
    gang_starts(s, "b", "n1");
    job_finishes(s, "a");
    expect_state(s, "c", "Admitted");
    job_finishes(s, "b");
    expect_state(s, "d", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(best_effort_lets_a_smaller_gang_overtake_a_blocked_head),
        scenario_test(strict_lets_nobody_overtake_a_blocked_head),
        scenario_test(strict_passes_over_an_impossible_head),
        scenario_test(strict_passes_over_what_all_nodes_cannot_hold),
        scenario_test(strict_tells_the_impossible_behind_the_head),
        scenario_test(strict_waits_for_a_node_that_is_away),
        scenario_test(strict_blocker_that_is_deleted_frees_the_line),
        scenario_test(priority_comes_before_time),
        scenario_test(priority_edits_move_a_parked_gang),
        scenario_test(held_gang_is_not_considered_until_it_is_let_go),
        scenario_test(touching_a_held_job_writes_nothing),
        scenario_test(bursts_drain_without_half_held_gangs),
        scenario_test(linked_pairs_that_arrive_crosswise_do_not_deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
