/* Gangs of several pod sets: they start whole, wait whole and stop whole, each set on flavors and
 * nodes of its own. Set `main` is the launcher, `worker` what it launches. */
#include "support/check.h"
#include "support/scenario.h"

#define CLASS   "gpu.example.com"
#define SUSPEND "tallyman.dev/suspended"

/* Two nodes with two devices each, and a node without any. */
static void given_gpus(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_node(s, "n2", "cpu=16");
    given_node(s, "plain", "cpu=4");
    given_devices(s, "n1", "g0 g1");
    given_devices(s, "n2", "g0 g1");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
}

/* One launcher with a cpu, four workers with a device each. */
static void given_mpi(struct scenario *s, const char *name, const char *options)
{
    given_pod_set(s, name, "worker", "pods=4 cpu=1 template=one");
    given_job(s, name, "q", options);
}

static void mpi_starts(struct scenario *s, const char *name)
{
    gang_starts(s, name, "plain");
    pod_set_starts(s, name, "worker", "n1 n1 n2 n2");
}

/* -- whole or not at all ------------------------------------------------------------------------
 */

static void launcher_waits_until_all_workers_have_their_quota(void **state)
{
    struct scenario *s = *state;
    given_gpus(s);
    given_queue(s, "q", "cpu=20 gpu.example.com=3");
    given_mpi(s, "mpi", "pods=1 cpu=1");
    expect_state(s, "mpi", "Pending NeverFits");
    expect_message(s, "mpi", "pod set worker: needs 4 gpu.example.com");
    expect_used(s, "q", "");
    quota_becomes(s, "q", "cpu=20 gpu.example.com=4");
    expect_state(s, "mpi", "Admitted");
    expect_used(s, "q", "cpu=5 gpu.example.com=4");
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, "mpi");
    check_str(admission->status.pods, "0/5");
    check_str(admission->status.devices, "gpu.example.com=4");
    assert_int_equal(admission->spec.pod_sets.count, 2);
    check_i64(admission->spec.pod_sets.items[1].count.value, 4);
}

static void one_set_without_room_keeps_all_waiting_and_is_named(void **state)
{
    struct scenario *s = *state;
    given_gpus(s);
    given_queue(s, "q", "cpu=20 gpu.example.com=8");
    given_job(s, "first", "q", "pods=1 cpu=1 template=one");
    scenario_start(s);
    gang_starts(s, "first", "n1");
    pod_claims(s, "first-0", "one", "n1/g0");
    given_mpi(s, "mpi", "pods=1 cpu=1");
    expect_state(s, "mpi", "Pending DevicesExhausted");
    expect_message(s, "mpi", "pod set worker: needs 4 gpu.example.com at once, 3 of 4 are free");
    expect_used(s, "q", "cpu=1 gpu.example.com=1");
    claim_freed(s, "first-0-one");
    job_finishes(s, "first");
    expect_state(s, "mpi", "Admitted");
}

/* The second set is judged with what the first takes in the account already. */
static void sets_share_one_account(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=6");
    given_pod_set(s, "mpi", "worker", "pods=5 cpu=1");
    given_job(s, "mpi", "q", "pods=1 cpu=2");
    expect_state(s, "mpi", "Pending NeverFits");
    expect_message(s, "mpi", "pod set worker: needs 7 cpu");
    given_job(s, "small", "q", "pods=1 cpu=1");
    expect_state(s, "small", "Admitted");
    quota_becomes(s, "q", "cpu=7");
    expect_state(s, "mpi", "Pending QuotaExhausted");
    expect_message(s, "mpi", "pod set worker: needs 7 cpu at once, queue q has 6 of 7 free");
    gang_starts(s, "small", "n1");
    job_finishes(s, "small");
    expect_state(s, "mpi", "Admitted");
    expect_used(s, "q", "cpu=7");
}

static void gang_runs_when_each_set_is_whole(void **state)
{
    struct scenario *s = *state;
    given_gpus(s);
    given_queue(s, "q", "cpu=20 gpu.example.com=4");
    given_mpi(s, "mpi", "pods=1 cpu=1");
    scenario_start(s);
    pod_set_starts(s, "mpi", "worker", "n1 n1 n2 n2");
    expect_state(s, "mpi", "Admitted");
    gang_starts(s, "mpi", "plain");
    expect_state(s, "mpi", "Running");
    check_str(((struct admission *)scenario_object(s, KIND_ADMISSION, "mpi"))->status.pods, "5/5");
    pod_is_ready_now(s, "mpi-0", false); /* 4 are ready, and no launcher among them */
    at(s, 11 * 60 * 1000);
    expect_state(s, "mpi", "Suspending WaitingForTermination");
}

/* -- flavors ------------------------------------------------------------------------------------
 */

static void each_set_has_flavors_of_its_own(void **state)
{
    struct scenario *s = *state;
    given_node(s, "a1", "cpu=8 label=pool:a");
    given_node(s, "b1", "cpu=8 label=pool:b");
    given_flavor(s, "a", "label=pool:a");
    given_flavor(s, "b", "label=pool:b");
    given_queue(s, "q", "flavor=a cpu=3 flavor=b cpu=8");
    given_pod_set(s, "mpi", "worker", "pods=4 cpu=1");
    given_job(s, "mpi", "q", "pods=1 cpu=2");
    expect_state(s, "mpi", "Admitted");
    check_str(string_map_get(&scenario_job(s, "mpi")->spec.pod_template.spec.node_selector, "pool"),
              "a");
    const struct job *worker = scenario_pod_set(s, "mpi", "worker");
    check_str(string_map_get(&worker->spec.pod_template.spec.node_selector, "pool"), "b");
    expect_trace(s, "[   0] mpi: admit 1 pods of queue q, cpu 2000m/pod on a; "
                    "4 of set worker, cpu 1000m/pod on b; selector pool=a; selector pool=b\n"
                    "[   0] mpi > Admitted 0/5 on a,b\n"
                    "[   0] q: finalizer on\n"
                    "[   0] mpi ! Admitted: admitted on queue q: 5 pods, cpu=6\n");
}

/* The launcher has to make way for the workers' sake: all combinations are tried. */
static void an_earlier_set_takes_its_second_flavor_for_a_later_one(void **state)
{
    struct scenario *s = *state;
    given_node(s, "a1", "cpu=8 label=pool:a");
    given_node(s, "b1", "cpu=8 label=pool:b");
    given_flavor(s, "a", "label=pool:a");
    given_flavor(s, "b", "label=pool:b");
    given_queue(s, "q", "flavor=a cpu=4 flavor=b cpu=2");
    given_pod_set(s, "mpi", "worker", "pods=4 cpu=1 selector=pool:a");
    given_job(s, "mpi", "q", "pods=1 cpu=2");
    expect_state(s, "mpi", "Admitted");
    check_str(string_map_get(&scenario_job(s, "mpi")->spec.pod_template.spec.node_selector, "pool"),
              "b");
}

/* -- room ---------------------------------------------------------------------------------------
 */

/* Wherever the scheduler puts the launcher, the workers must find their places. */
static void sets_that_may_take_each_others_places_wait(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=2 label=pool:gpu");
    given_node(s, "n2", "cpu=2");
    given_queue(s, "q", "cpu=20");
    given_pod_set(s, "mpi", "worker", "pods=1 cpu=2 selector=pool:gpu");
    given_job(s, "mpi", "q", "pods=1 cpu=1");
    expect_state(s, "mpi", "Pending NodeShape");
    expect_message(s, "mpi", "pod set worker: its pods may take the places");
    given_node(s, "n1", "cpu=3 label=pool:gpu");
    expect_state(s, "mpi", "Admitted");
}

static void places_of_all_sets_are_promised(void **state)
{
    struct scenario *s = *state;
    given_gpus(s);
    given_queue(s, "q", "cpu=100 gpu.example.com=8");
    given_mpi(s, "mpi", "pods=1 cpu=1");
    given_job(s, "late", "q", "pods=1 cpu=1 template=one created=1");
    expect_state(s, "mpi", "Admitted");
    expect_state(s, "late", "Pending DevicesExhausted");
    expect_message(s, "late", "0 of 4 are free");
    gang_starts(s, "mpi", "plain");
    expect_state(s, "late", "Pending DevicesExhausted");
}

/* A claim that both sets name is one device, charged once; its pods go to its node. */
static void claim_of_two_sets_is_charged_once(void **state)
{
    struct scenario *s = *state;
    given_gpus(s);
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q", "cpu=20 gpu.example.com=1");
    given_pod_set(s, "mpi", "worker", "pods=3 cpu=1 claim=c");
    given_job(s, "mpi", "q", "pods=1 cpu=1 claim=c");
    expect_state(s, "mpi", "Admitted");
    expect_used(s, "q", "cpu=4 gpu.example.com=1");
    check_str(((struct admission *)scenario_object(s, KIND_ADMISSION, "mpi"))->status.devices,
              "gpu.example.com=1");
    const struct job *worker = scenario_pod_set(s, "mpi", "worker");
    check_str(
        string_map_get(&worker->spec.pod_template.spec.node_selector, "kubernetes.io/hostname"),
        "n1");
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q", "cpu=4 gpu.example.com=1");
}

/* 200 and 100 pods would share one claim: Kubernetes allows 256. */
static void sharers_of_a_claim_are_counted_over_all_sets(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=400 pods=400");
    given_devices(s, "n1", "g0");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q", "cpu=400 gpu.example.com=1");
    given_pod_set(s, "mpi", "worker", "pods=200 cpu=1 claim=c");
    given_job(s, "mpi", "q", "pods=100 cpu=1 claim=c");
    expect_state(s, "mpi", "Pending ReservedForOther");
    expect_message(s, "mpi", "of the 256 that Kubernetes allows");
}

/* -- partial ------------------------------------------------------------------------------------
 */

/* Each gives up its part of what may be given up: 2 of 4 and 4 of 8, as in Kueue. */
static void sets_shrink_in_proportion(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=32");
    given_queue(s, "q", "cpu=10");
    given_pod_set(s, "mpi", "worker", "pods=10 min=2 partial=true cpu=1");
    given_job(s, "mpi", "q", "pods=6 min=2 partial=true cpu=1");
    expect_state(s, "mpi", "Admitted");
    expect_used(s, "q", "cpu=10");
    check_i64(scenario_job(s, "mpi")->spec.parallelism.value, 4);
    check_i64(scenario_pod_set(s, "mpi", "worker")->spec.parallelism.value, 6);
    gang_starts(s, "mpi", "n1 n1 n1 n1");
    pod_set_starts(s, "mpi", "worker", "n1 n1 n1 n1 n1 n1");
    expect_state(s, "mpi", "Running");
    job_suspended_by_user(s, "mpi", true);
    gang_stops(s, "mpi");
    check_i64(scenario_job(s, "mpi")->spec.parallelism.value, 6);
    check_i64(scenario_pod_set(s, "mpi", "worker")->spec.parallelism.value, 10);
}

static void a_set_that_must_be_whole_does_not_shrink(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=32");
    given_queue(s, "q", "cpu=5");
    given_pod_set(s, "mpi", "worker", "pods=8 min=2 partial=true cpu=1");
    given_job(s, "mpi", "q", "pods=2 cpu=1");
    expect_state(s, "mpi", "Admitted");
    check_i64(scenario_job(s, "mpi")->spec.parallelism.value, 2);
    check_i64(scenario_pod_set(s, "mpi", "worker")->spec.parallelism.value, 3);
}

/* -- room for the head --------------------------------------------------------------------------
 */

/* Room is kept for all sets of the head: who would still be there when it starts has to wait. */
static void room_is_kept_for_all_sets_of_the_head(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=4 strategy=Backfill");
    given_job(s, "first", "q", "pods=3 cpu=1 deadline=3600");
    scenario_start(s);
    gang_starts(s, "first", "n1 n1 n1");
    given_pod_set(s, "mpi", "worker", "pods=3 cpu=1");
    given_job(s, "mpi", "q", "pods=1 cpu=1 created=1");
    given_job(s, "endless", "q", "pods=1 cpu=1 created=2");
    expect_state(s, "mpi", "Pending QuotaExhausted");
    expect_state(s, "endless", "Pending ReservedForOther");
    expect_message(s, "endless", "gang mpi of queue q (4 pods");
    given_job(s, "short", "q", "pods=1 cpu=1 created=3 deadline=600");
    expect_state(s, "short", "Admitted");
}

/* -- stopping and restarting --------------------------------------------------------------------
 */

static void gang_is_preempted_whole_and_put_back_set_by_set(void **state)
{
    struct scenario *s = *state;
    given_gpus(s);
    given_flavor(s, "any", "label=kubernetes.io/os:linux");
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=16 label=pool:x");
    given_flavor(s, "x", "toleration=dedicated");
    given_queue(s, "q", "flavor=x cpu=5 gpu.example.com=4 within=LowerPriority");
    given_mpi(s, "mpi", "pods=1 cpu=1 priority=low created=0");
    scenario_start(s);
    mpi_starts(s, "mpi");
    expect_state(s, "mpi", "Running");
    const struct job *worker = scenario_pod_set(s, "mpi", "worker");
    assert_int_equal(worker->spec.pod_template.spec.tolerations.count, 1);
    given_job(s, "urgent", "q", "pods=1 cpu=1 priority=high created=1000");
    expect_state(s, "urgent", "Reserved WaitingForVictims");
    expect_state(s, "mpi", "Suspending WaitingForTermination");
    pod_gone(s, "mpi-0"); /* the launcher alone frees nothing */
    expect_state(s, "urgent", "Reserved WaitingForVictims");
    gang_stops(s, "mpi");
    expect_state(s, "urgent", "Admitted");
    expect_state(s, "mpi", "Pending QuotaExhausted");
    expect_used(s, "q", "cpu=1");
    assert_int_equal(worker->spec.pod_template.spec.tolerations.count, 0);
}

static void restart_finds_what_each_set_holds(void **state)
{
    struct scenario *s = *state;
    given_gpus(s);
    given_flavor(s, "a", "");
    given_flavor(s, "b", "");
    given_queue(s, "q", "flavor=a cpu=1 gpu.example.com=0 flavor=b cpu=4 gpu.example.com=4");
    given_mpi(s, "mpi", "pods=1 cpu=1");
    given_job(s, "next", "q", "pods=1 cpu=1 created=1000");
    scenario_start(s);
    mpi_starts(s, "mpi");
    expect_used(s, "q", "cpu=5 gpu.example.com=4");
    const char *before = decisions_text(s);
    for (uint64_t seed = 0; seed < 5; seed++) {
        listing_order(s, seed);
        restart(s, seed % 2 == 0 ? WITH_ADMISSIONS : WITHOUT_ADMISSIONS);
        expect_used(s, "q", "cpu=5 gpu.example.com=4");
        expect_state(s, "mpi", "Running");
        assert_string_equal(decisions_text(s), before);
    }
}

static void room_of_finished_pods_is_released_set_by_set(void **state)
{
    struct scenario *s = *state;
    given_gpus(s);
    given_queue(s, "q", "cpu=6 gpu.example.com=4");
    given_mpi(s, "mpi", "pods=1 cpu=2");
    scenario_start(s);
    mpi_starts(s, "mpi");
    expect_used(s, "q", "cpu=6 gpu.example.com=4");
    scenario_pod_set(s, "mpi", "worker")->status.succeeded = (struct opt_int){true, 2};
    scenario_pod_set(s, "mpi", "worker")->status.completed_indexes = STR("0,1");
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "mpi-worker-0" : "mpi-worker-1";
        ((struct pod *)scenario_object(s, KIND_POD, name))->status.phase = STR("Succeeded");
        object_changed(s, KIND_POD, name);
    }
    object_changed(s, KIND_JOB, "mpi");
    expect_used(s, "q", "cpu=4 gpu.example.com=2");
    expect_state(s, "mpi", "Running");
}

/* Down: the room of the set's pods that are gone. Up: refused, as no more was admitted. */
static void a_set_that_is_resized_shrinks_its_own_part_alone(void **state)
{
    struct scenario *s = *state;
    given_gpus(s);
    given_queue(s, "q", "cpu=6 gpu.example.com=4");
    given_mpi(s, "mpi", "pods=1 cpu=2");
    scenario_start(s);
    mpi_starts(s, "mpi");
    struct job *worker = scenario_pod_set(s, "mpi", "worker");
    worker->spec.parallelism.value = worker->spec.completions.value = 3;
    object_changed(s, KIND_JOB, "mpi");
    expect_used(s, "q", "cpu=6 gpu.example.com=4"); /* its pod still runs */
    pod_gone(s, "mpi-worker-3");
    expect_used(s, "q", "cpu=5 gpu.example.com=3");
    expect_state(s, "mpi", "Running");
    worker->spec.parallelism.value = worker->spec.completions.value = 4;
    object_changed(s, KIND_JOB, "mpi");
    expect_state(s, "mpi", "Suspending WaitingForTermination");
    gang_stops(s, "mpi");
    expect_used(s, "q", "cpu=6 gpu.example.com=4"); /* and starts anew with all */
}

static void decisions_tell_each_set(void **state)
{
    struct scenario *s = *state;
    given_gpus(s);
    given_queue(s, "q", "cpu=5 gpu.example.com=4");
    given_mpi(s, "mpi", "pods=1 cpu=1");
    scenario_start(s);
    struct arena arena;
    arena_init(&arena);
    struct decided_list list = core_decisions(scenario_core(s), &arena);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].pod_set_count, 2);
    check_i64(list.items[0].pods, 5);
    check_str(list.items[0].pod_sets[0].name, "main");
    check_str(list.items[0].pod_sets[1].name, "worker");
    check_i64(list.items[0].pod_sets[1].count, 4);
    check_str(string_map_get(&list.items[0].pod_sets[1].flavors, CLASS), "default");
    assert_false(str_is_set(string_map_get(&list.items[0].pod_sets[0].flavors, CLASS)));
    arena_deinit(&arena);
}

/* The queue's bound on the run time becomes the Job's deadline while it runs, of several sets too.
 */
static void deadline_of_the_queue_is_put_back_when_it_stops(void **state)
{
    struct scenario *s = *state;
    given_gpus(s);
    given_queue(s, "q", "cpu=64 gpu.example.com=8 max-runtime=1h");
    given_mpi(s, "a", "pods=1 cpu=1 deadline=7200");
    expect_state(s, "a", "Admitted");
    check_i64(scenario_job(s, "a")->spec.active_deadline_seconds.value, 3600);
    mpi_starts(s, "a");
    job_suspended_by_user(s, "a", true);
    gang_stops(s, "a");
    expect_state(s, "a", "Held Held");
    check_i64(scenario_job(s, "a")->spec.active_deadline_seconds.value, 7200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(launcher_waits_until_all_workers_have_their_quota),
        scenario_test(one_set_without_room_keeps_all_waiting_and_is_named),
        scenario_test(sets_share_one_account),
        scenario_test(gang_runs_when_each_set_is_whole),
        scenario_test(each_set_has_flavors_of_its_own),
        scenario_test(an_earlier_set_takes_its_second_flavor_for_a_later_one),
        scenario_test(sets_that_may_take_each_others_places_wait),
        scenario_test(places_of_all_sets_are_promised),
        scenario_test(claim_of_two_sets_is_charged_once),
        scenario_test(sharers_of_a_claim_are_counted_over_all_sets),
        scenario_test(sets_shrink_in_proportion),
        scenario_test(a_set_that_must_be_whole_does_not_shrink),
        scenario_test(room_is_kept_for_all_sets_of_the_head),
        scenario_test(gang_is_preempted_whole_and_put_back_set_by_set),
        scenario_test(restart_finds_what_each_set_holds),
        scenario_test(room_of_finished_pods_is_released_set_by_set),
        scenario_test(a_set_that_is_resized_shrinks_its_own_part_alone),
        scenario_test(decisions_tell_each_set),
        scenario_test(deadline_of_the_queue_is_put_back_when_it_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
