/* For whom room isn't kept: a gang that goes before the head by the order of their tree isn't
 * behind it, in whatever branches of it their queues are. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

/* `long` has three of five cpu until an hour has passed. `head` wants four of them, two of which
 * its queue would have to borrow. A second gang beside it would need a sixth. */
static void given_a_head(struct scenario *s, const char *q_cohort, const char *r_cohort)
{
    char options[100];
    given_json(s, KIND_COHORT,
               "{\"metadata\":{\"name\":\"east\"},\"spec\":{\"parentName\":\"lab\"}}");
    given_node(s, "n1", "cpu=5");
    given_queue(s, "z", "cpu=64");
    (void)snprintf(options, sizeof(options), "cpu=2 strategy=Backfill cohort=%s", q_cohort);
    given_queue(s, "q", options);
    (void)snprintf(options, sizeof(options), "cpu=2 cohort=%s", r_cohort);
    given_queue(s, "r", options);
    given_queue(s, "bank", "cpu=4 cohort=lab");
    given_job(s, "long", "z", "pods=3 cpu=1 max-runtime=60m created=0");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1 n1");
    at(s, 60000);
    given_job(s, "head", "q", "pods=4 cpu=1 created=1000");
    expect_state(s, "head", "Pending NodesFull");
    check_i64(likely_start_minute(s, "head"), 60);
}

static void expect_own_quota_goes_first(struct scenario *s)
{
    given_job(s, "own", "r", "pods=1 cpu=2 created=2000");
    expect_state(s, "own", "Admitted");
}

/* Within its own quota, a queue of a branch further down is no taker of what the head borrows. */
static void own_quota_goes_before_a_head_that_borrows(void **state)
{
    struct scenario *s = *state;
    given_a_head(s, "lab", "east");
    expect_own_quota_goes_first(s);
}

static void own_quota_goes_before_a_head_further_down_that_borrows(void **state)
{
    struct scenario *s = *state;
    given_a_head(s, "east", "lab");
    expect_own_quota_goes_first(s);
}

/* Both would borrow from the same height: the head was there first. */
static void who_borrows_as_well_is_behind(void **state)
{
    struct scenario *s = *state;
    given_a_head(s, "lab", "east");
    quota_becomes(s, "r", "cpu=1 cohort=east");
    given_job(s, "borrows", "r", "pods=1 cpu=2 created=2000");
    expect_state(s, "borrows", "Pending ReservedForOther");
    given_job(s, "first", "r", "pods=1 cpu=2 created=500");
    expect_state(s, "first", "Admitted");
}

/* With fair sharing: `sibling` is of the branch east, which uses 4 by it. */
static void given_a_shared_head(struct scenario *s, const char *q_cohort, const char *r_cohort)
{
    char options[100];
    given_json(s, KIND_COHORT,
               "{\"metadata\":{\"name\":\"east\"},\"spec\":{\"parentName\":\"lab\"}}");
    given_node(s, "n1", "cpu=5 label=zone:a");
    given_node(s, "n2", "cpu=8 label=zone:b");
    given_queue(s, "z", "cpu=64");
    (void)snprintf(options, sizeof(options), "cpu=0 strategy=Backfill weight=1 cohort=%s",
                   q_cohort);
    given_queue(s, "q", options);
    (void)snprintf(options, sizeof(options), "cpu=0 weight=1 cohort=%s", r_cohort);
    given_queue(s, "r", options);
    given_queue(s, "s", "cpu=0 weight=1 cohort=east");
    given_queue(s, "bank", "cpu=20 cohort=lab");
    given_job(s, "long", "z", "pods=3 cpu=1 max-runtime=60m selector=zone:a created=0");
    given_job(s, "sibling", "s", "pods=4 cpu=1 selector=zone:b created=0");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1 n1");
    gang_starts(s, "sibling", "n2 n2 n2 n2");
}

/* q would have 4 and r 5, but the branch of q 8. */
static void share_of_the_heads_branch_counts(void **state)
{
    struct scenario *s = *state;
    given_a_shared_head(s, "east", "lab");
    given_job(s, "mid", "r", "pods=3 cpu=1 selector=zone:b created=0");
    gang_starts(s, "mid", "n2 n2 n2");
    at(s, 60000);
    given_job(s, "head", "q", "pods=4 cpu=1 selector=zone:a created=1000");
    given_job(s, "goes", "r", "pods=1 cpu=2 selector=zone:a created=2000");
    expect_state(s, "goes", "Admitted");
    expect_state(s, "head", "Pending NodesFull");
}

/* q would have 5 and r 2, but the branch of r 6. */
static void share_of_the_others_branch_counts(void **state)
{
    struct scenario *s = *state;
    given_a_shared_head(s, "lab", "east");
    given_job(s, "mid", "q", "pods=1 cpu=1 selector=zone:b created=0");
    gang_starts(s, "mid", "n2");
    at(s, 60000);
    given_job(s, "head", "q", "pods=4 cpu=1 selector=zone:a created=1000");
    given_job(s, "stays", "r", "pods=1 cpu=2 selector=zone:a created=500");
    expect_state(s, "stays", "Pending ReservedForOther");
}

/* Two heads that wait for nodes of their own: each is kept room for as if there were no other. */
static void given_two_heads(struct scenario *s)
{
    given_node(s, "n1", "cpu=4 label=zone:east");
    given_node(s, "n2", "cpu=4 label=zone:west");
    given_queue(s, "east", "cpu=64 strategy=Backfill");
    given_queue(s, "west", "cpu=64 strategy=Backfill");
    given_job(s, "near", "east", "pods=3 cpu=1 max-runtime=60m selector=zone:east created=0");
    given_job(s, "far", "west", "pods=3 cpu=1 max-runtime=90m selector=zone:west created=0");
    scenario_start(s);
    gang_starts(s, "near", "n1 n1 n1");
    gang_starts(s, "far", "n2 n2 n2");
    at(s, 60000);
    given_job(s, "head", "east", "pods=4 cpu=1 selector=zone:east created=1000");
    given_job(s, "other", "west", "pods=4 cpu=1 selector=zone:west created=2000");
    expect_state(s, "head", "Pending NodesFull");
    expect_state(s, "other", "Pending NodesFull");
    check_i64(likely_start_minute(s, "head"), 60);
    check_i64(likely_start_minute(s, "other"), 90);
}

static void heads_that_never_meet(void **state)
{
    given_two_heads(*state);
}

/* The same where devices of no node are about, which might be taken from anywhere. */
static void heads_that_might_meet_over_devices_of_no_node(void **state)
{
    struct scenario *s = *state;
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"driver\":\"gpu.example.com\",\"pool\":{"
               "\"name\":\"p\",\"generation\":1,\"resourceSliceCount\":1},\"allNodes\":true,"
               "\"devices\":[{\"name\":\"g0\"}]}}");
    given_two_heads(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(own_quota_goes_before_a_head_that_borrows),
        scenario_test(own_quota_goes_before_a_head_further_down_that_borrows),
        scenario_test(share_of_the_heads_branch_counts),
        scenario_test(share_of_the_others_branch_counts),
        scenario_test(who_borrows_as_well_is_behind),
        scenario_test(heads_that_never_meet),
        scenario_test(heads_that_might_meet_over_devices_of_no_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
