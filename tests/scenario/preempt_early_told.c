/* When a gang that is Reserved is tried once more while its victims stop: whenever something comes
 * free, or what it asks for is another thing, whatever else happens in the same moment. */
#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"

static void given_priorities(struct scenario *s)
{
    given_priority_class(s, "lower", 1);
    given_priority_class(s, "low", 2);
    given_priority_class(s, "high", 9);
}

/* Of two accounts that come free it draws on one, whichever comes first, and can't use the node. */
static void expect_one_account_will_do(struct scenario *s, const char *stops, const char *boss)
{
    given_priorities(s);
    given_node(s, "n1", "cpu=8 memory=8Gi label=zone:east");
    given_node(s, "n2", "cpu=4 memory=8Gi label=zone:west");
    given_queue(s, "q", "cpu=4 memory=4Gi within=LowerPriority");
    given_job(s, "stops", "q", stops);
    given_job(s, "keeps", "q", "pods=2 cpu=1 memory=1Gi selector=zone:west priority=low created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1");
    gang_starts(s, "keeps", "n2 n2");
    given_job(s, "boss", "q", boss);
    expect_state(s, "boss", "Reserved WaitingForVictims");
    job_suspended_by_user(s, "keeps", true);
    gang_stops(s, "keeps");
    expect_state(s, "boss", "Admitted");
}

static void the_first_account_of_two(void **state)
{
    expect_one_account_will_do(*state, "pods=2 cpu=1 priority=lower selector=zone:east created=0",
                               "pods=2 cpu=1 priority=high selector=zone:east created=1000");
}

static void the_second_account_of_two(void **state)
{
    expect_one_account_will_do(*state,
                               "pods=2 memory=1Gi priority=lower selector=zone:east created=0",
                               "pods=2 memory=1Gi priority=high selector=zone:east created=1000");
}

static void room_that_other_room_follows(void **state)
{
    struct scenario *s = *state;
    given_priorities(s);
    given_node(s, "n1", "cpu=2 label=zone:east");
    given_node(s, "n2", "cpu=2 label=zone:east");
    given_node(s, "n3", "cpu=2 label=zone:west");
    given_queue(s, "q", "cpu=9 within=LowerPriority");
    given_pod(s, "foreign-2", "n2", "cpu=2");
    given_pod(s, "foreign-3", "n3", "cpu=2");
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1");
    given_job(s, "boss", "q", "pods=2 cpu=1 priority=high selector=zone:east created=1000");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    events_gather(s);
    pod_gone(s, "foreign-2");
    pod_gone(s, "foreign-3");
    events_arrive(s, 0);
    expect_state(s, "boss", "Admitted");
}

/* Pods on their way might stand where it would, though it goes before them; now they are bound
 * elsewhere, and nothing has come free. */
static void pods_on_their_way_that_are_bound_elsewhere(void **state)
{
    struct scenario *s = *state;
    given_priorities(s);
    given_node(s, "n1", "cpu=2 label=zone:east");
    given_node(s, "n2", "cpu=1 label=zone:west");
    given_queue(s, "q", "cpu=9 within=LowerPriority");
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=low selector=zone:east created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1");
    given_job(s, "other", "q", "pods=1 cpu=1 priority=high selector=zone:west created=1500");
    expect_state(s, "other", "Admitted");
    pods_appear(s, "other", 1);
    given_job(s, "boss", "q", "pods=1 cpu=2 priority=high created=1000");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    given_node(s, "n3", "cpu=2 label=zone:west");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    pod_binds(s, "other-0", "n2");
    expect_state(s, "boss", "Admitted");
    expect_state(s, "stops", "Suspending WaitingForTermination");
}

/* -- after it has started -------------------------------------------------------------------------
 */

/* What stops for it still goes on doing so: it gets that room when it has lost the other. */
static void what_still_stops_is_for_it(void **state)
{
    struct scenario *s = *state;
    given_priorities(s);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=lower created=0");
    given_job(s, "keeps", "q", "pods=2 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1");
    gang_starts(s, "keeps", "n1 n1");
    at(s, 1000);
    given_job(s, "boss", "q", "pods=2 cpu=1 priority=high created=1000");
    job_finishes(s, "keeps");
    expect_state(s, "boss", "Admitted");
    gang_starts(s, "boss", "n1 n1");
    job_suspended_by_user(s, "boss", true);
    gang_stops(s, "boss");
    given_job(s, "other", "q", "pods=2 cpu=1 priority=high created=500");
    expect_state(s, "other", "Admitted");
    job_annotated(s, "boss", "tallyman.dev/hold", "false");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    gang_stops(s, "stops");
    expect_state(s, "boss", "Admitted");
}

/* -- what it asks for ---------------------------------------------------------------------------
 */

/* `boss` asks for two devices, of which n2 has one. `stuck` has the room of its victim, whose node
 * is away. */
static void given_template_of_two(struct scenario *s, const char *cel)
{
    given_priorities(s);
    given_class(s, CLASS, cel);
    given_template(s, "gpus", CLASS, 2);
    given_node(s, "n1", "cpu=1 label=zone:east");
    given_node(s, "n2", "cpu=1 label=zone:east");
    given_node(s, "n3", "cpu=8 label=zone:west");
    given_devices(s, "n1", "g0 g1");
    given_devices(s, "n2", "g2");
    given_queue(s, "q", "cpu=99 " CLASS "=99 within=LowerPriority");
    given_job(s, "stops", "q", "pods=1 template=gpus priority=low created=0");
    given_job(s, "makes-room", "q", "pods=1 cpu=8 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1");
    pod_claims(s, "stops-0", "gpus", "n1/g0 n1/g1");
    gang_starts(s, "makes-room", "n3");
    given_job(s, "boss", "q", "pods=1 template=gpus priority=high selector=zone:east created=1000");
    expect_state(s, "boss", "Reserved WaitingForVictims");
}

static void given_stuck(struct scenario *s)
{
    given_job(s, "stuck", "q", "pods=1 cpu=8 priority=high selector=zone:west created=2000");
    expect_state(s, "stuck", "Reserved WaitingForVictims");
    given_node(s, "n3", "cpu=8 label=zone:west cordoned=true");
    gang_stops(s, "makes-room");
    expect_state(s, "stuck", "Reserved WaitingForVictims");
    expect_state(s, "boss", "Reserved WaitingForVictims");
}

static void it_asks_for_less(void **state)
{
    struct scenario *s = *state;
    given_template_of_two(s, "device.driver == 'gpu.example.com'");
    given_template(s, "gpus", CLASS, 1);
    expect_state(s, "boss", "Admitted");
    expect_state(s, "stops", "Suspending WaitingForTermination");
}

/* Another one that is Reserved is judged first, beside what this one asks for by now. */
static void it_asks_for_less_and_another_is_judged_first(void **state)
{
    struct scenario *s = *state;
    given_template_of_two(s, "device.driver == 'gpu.example.com'");
    given_stuck(s);
    given_template(s, "gpus", CLASS, 1);
    expect_state(s, "boss", "Admitted");
    expect_state(s, "stuck", "Reserved WaitingForVictims");
}

/* Its Job counts a pod that no watch has shown yet: it has the only room, and isn't gone. */
static void a_victims_pod_that_is_not_seen_yet_holds_its_room(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=2");
    given_queue(s, "q", "cpu=8 within=LowerPriority");
    given_job(s, "stops", "q", "pods=1 cpu=2 priority=low created=0");
    expect_state(s, "stops", "Admitted");
    scenario_job(s, "stops")->status.active = (struct opt_int){true, 1};
    object_changed(s, KIND_JOB, "stops");
    given_job(s, "boss", "q", "pods=1 cpu=2 priority=high created=1000");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    at(s, 5000);
    expect_state(s, "boss", "Reserved WaitingForVictims");
    gang_starts(s, "stops", "n1");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    gang_stops(s, "stops");
    expect_state(s, "boss", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(the_first_account_of_two),
        scenario_test(the_second_account_of_two),
        scenario_test(room_that_other_room_follows),
        scenario_test(pods_on_their_way_that_are_bound_elsewhere),
        scenario_test(what_still_stops_is_for_it),
        scenario_test(it_asks_for_less),
        scenario_test(it_asks_for_less_and_another_is_judged_first),
        scenario_test(a_victims_pod_that_is_not_seen_yet_holds_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
