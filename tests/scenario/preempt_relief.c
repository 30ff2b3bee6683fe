/* What the gang that somebody stops for leaves of his room may be enough for another, together with
 * what he would stop: that is decided when the first one begins to stop, and not only by a
 * controller that starts anew meanwhile. */
#include "support/check.h"
#include "support/scenario.h"

static void given_tight_queues(struct scenario *s)
{
    given_priority_class(s, "mid", 5);
    given_priority_class(s, "high", 9);
    given_queue(s, "a", "cpu=100 gpu.example.com=100 within=LowerPriority");
    given_queue(s, "b", "cpu=100 gpu.example.com=100 within=LowerPriority");
}

/* Of 6 places of two nodes `four` and `two` hold all. `wide` wants 4 and may stop `two` alone. */
static void given_tight_nodes(struct scenario *s)
{
    given_tight_queues(s);
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=2");
    given_job(s, "four", "a", "pods=4 cpu=1 created=0");
    given_job(s, "two", "b", "pods=2 cpu=1 created=0");
    scenario_start(s);
    gang_starts(s, "four", "n1 n1 n1 n1");
    gang_starts(s, "two", "n2 n2");
    at(s, 1000);
    given_job(s, "wide", "b", "pods=4 cpu=1 priority=mid created=1000");
    expect_state(s, "wide", "Pending NodesFull");
    expect_state(s, "two", "Running");
}

/* `high` needs half of what `four` leaves. */
static void room_that_is_left_over_is_found_at_once(void **state)
{
    struct scenario *s = *state;
    given_tight_nodes(s);
    at(s, 2000);
    given_job(s, "high", "a", "pods=2 cpu=1 priority=high created=2000");
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "four", "Suspending WaitingForTermination");
    expect_state(s, "wide", "Reserved WaitingForVictims");
    expect_state(s, "two", "Suspending WaitingForTermination");
}

static void a_restart_decides_the_same(void **state)
{
    struct scenario *s = *state;
    given_tight_nodes(s);
    at(s, 2000);
    given_job(s, "high", "a", "pods=2 cpu=1 priority=high created=2000");
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "wide", "Reserved WaitingForVictims");
    expect_state(s, "two", "Suspending WaitingForTermination");
}

/* The same with devices that are of no node: `four` has two on a node where `wide` may not
 * go. */
static void devices_that_are_left_over_are_found_at_once(void **state)
{
    struct scenario *s = *state;
    given_tight_queues(s);
    given_node(s, "n1", "cpu=64 label=disk:ssd");
    given_node(s, "n2", "cpu=64 label=disk:hdd");
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"far\"},\"spec\":{\"driver\":\"gpu.example.com\","
               "\"pool\":{\"name\":\"far\",\"generation\":1,\"resourceSliceCount\":1},"
               "\"allNodes\":true,\"devices\":[{\"name\":\"g0\"},{\"name\":\"g1\"},"
               "{\"name\":\"g2\"}]}}");
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_template(s, "one", "gpu.example.com", 1);
    given_job(s, "four", "a", "pods=2 template=one selector=disk:ssd created=0");
    given_job(s, "two", "b", "pods=1 template=one selector=disk:hdd created=0");
    scenario_start(s);
    gang_starts(s, "four", "n1 n1");
    gang_starts(s, "two", "n2");
    pod_claims(s, "four-0", "one", "far/g0");
    pod_claims(s, "four-1", "one", "far/g1");
    pod_claims(s, "two-0", "one", "far/g2");
    at(s, 1000);
    given_job(s, "wide", "b", "pods=2 template=one selector=disk:hdd priority=mid created=1000");
    expect_state(s, "wide", "Pending DevicesExhausted");
    at(s, 2000);
    given_job(s, "high", "a", "pods=1 template=one selector=disk:ssd priority=high created=2000");
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "wide", "Reserved WaitingForVictims");
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "wide", "Reserved WaitingForVictims");
    expect_state(s, "two", "Suspending WaitingForTermination");
}

/* Not in the next one, when `high` has been told of. */
static void who_is_relieved_decides_in_the_same_step(void **state)
{
    struct scenario *s = *state;
    given_tight_nodes(s);
    at(s, 2000);
    writes_are_manual(s, true);
    trace_forget(s);
    given_job(s, "high", "a", "pods=2 cpu=1 priority=high created=2000");
    expect_trace(s, "[2000] four: suspend, PreemptedWithinQueue\n"
                    "[2000] two: suspend, PreemptedWithinQueue\n"
                    "[2000] high > Reserved 0/2 on default WaitingForVictims: …\n"
                    "[2000] four > Suspending 4/4 on default WaitingForTermination: …\n"
                    "[2000] four ! Warning PreemptedWithinQueue: …\n"
                    "[2000] wide > Reserved 0/4 on default WaitingForVictims: …\n"
                    "[2000] two > Suspending 2/2 on default WaitingForTermination: …\n"
                    "[2000] two ! Warning PreemptedWithinQueue: …\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(room_that_is_left_over_is_found_at_once),
        scenario_test(a_restart_decides_the_same),
        scenario_test(devices_that_are_left_over_are_found_at_once),
        scenario_test(who_is_relieved_decides_in_the_same_step),
    };
    return cmocka_run_group_tests_name("preempt_relief", tests, NULL, NULL);
}
