/* Which Job is which: made again under its name, orphaned, deleted; and a Queue that is deleted. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

static void given_small_cluster(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
}

static void job_made_again_under_its_name_is_another_job(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=3 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1 n1");
    job_recreated(s, "a", "q", "pods=2 cpu=1"); /* one watch burst, no DELETED seen */
    expect_used(s, "q", "cpu=3");               /* the old one's pods still run */
    object_gone(s, KIND_POD, "a-0");
    object_gone(s, KIND_POD, "a-1");
    object_gone(s, KIND_POD, "a-2");
    expect_state(s, "a", "Admitted");
    expect_used(s, "q", "cpu=2");
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, "a");
    assert_true(str_eq(admission->spec.job_uid, scenario_job(s, "a")->meta.uid));
}

static void job_made_again_while_the_controller_was_away(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=3 cpu=1");
    expect_state(s, "a", "Admitted");
    listing_order(s, 7);
    job_recreated(s, "a", "q", "pods=2 cpu=1");
    for (uint64_t seed = 0; seed < 6; seed++) {
        listing_order(s, seed);
        restart(s, WITH_ADMISSIONS);
        expect_used(s, "q", "cpu=2");
        expect_state(s, "a", "Admitted");
    }
}

/* --cascade=orphan: the owner references are taken off, and then the Job goes. */
static void job_is_orphan_deleted(struct scenario *s, const char *name, int pods)
{
    for (int i = 0; i < pods; i++) {
        char pod_name[32];
        snprintf(pod_name, sizeof(pod_name), "%s-%d", name, i);
        struct pod *pod = scenario_object(s, KIND_POD, pod_name);
        static struct string_pair label[1];
        label[0] = (struct string_pair){STR("batch.kubernetes.io/controller-uid"),
                                        scenario_job(s, name)->meta.uid};
        pod->meta.labels = (struct string_map){label, 1};
        pod->meta.owner_references.count = 0;
        object_changed(s, KIND_POD, pod_name);
    }
    ((struct admission *)scenario_object(s, KIND_ADMISSION, name))->meta.owner_references.count = 0;
    object_changed(s, KIND_ADMISSION, name);
    job_deleted_now(s, name);
}

static void given_orphans(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
    given_job(s, "a", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1 n1 n1");
    job_is_orphan_deleted(s, "a", 4);
}

/* The room is free when the last pod is gone, whether or not the Job still is there. */
static void orphaned_pods_hold_their_quota_until_the_last_is_gone(void **state)
{
    struct scenario *s = *state;
    given_orphans(s);
    given_job(s, "b", "q", "pods=1 cpu=1");
    expect_used(s, "q", "cpu=4");
    expect_state(s, "b", "Pending QuotaExhausted");
    expect_state(s, "a", "Running"); /* the Admission stays while it explains the charge */
    object_gone(s, KIND_POD, "a-0");
    object_gone(s, KIND_POD, "a-1");
    object_gone(s, KIND_POD, "a-2");
    expect_used(s, "q", "cpu=4");
    object_gone(s, KIND_POD, "a-3");
    expect_used(s, "q", "cpu=1");
    expect_state(s, "b", "Admitted");
    expect_state(s, "a", "no Admission");
}

/* The Job is no more, so the charge is made anew from its Admission and its pods. */
static void orphaned_pods_hold_their_quota_over_a_restart(void **state)
{
    struct scenario *s = *state;
    given_orphans(s);
    for (uint64_t seed = 0; seed < 6; seed++) {
        listing_order(s, seed);
        restart(s, WITH_ADMISSIONS);
        expect_used(s, "q", "cpu=4");
    }
    given_job(s, "b", "q", "pods=1 cpu=1");
    expect_state(s, "b", "Pending QuotaExhausted");
    object_gone(s, KIND_POD, "a-0");
    restart(s, WITH_ADMISSIONS);
    expect_used(s, "q", "cpu=4"); /* three are left, and b has come in beside them */
    for (int i = 1; i < 4; i++) {
        char pod[8 + 16];
        snprintf(pod, sizeof(pod), "a-%d", i);
        object_gone(s, KIND_POD, pod);
    }
    expect_used(s, "q", "cpu=1");
    expect_state(s, "a", "no Admission");
}

/* A garbage collector that has only just met Admissions takes the owner off the pods alone. */
static void orphaned_pods_hold_their_quota_under_an_owned_admission(void **state)
{
    struct scenario *s = *state;
    given_orphans(s);
    struct admission *admission = scenario_object(s, KIND_ADMISSION, "a");
    static struct owner_reference owner = {
        .kind = STR_INIT("Job"), .name = STR_INIT("a"), .controller = {true, true}};
    owner.uid = admission->spec.job_uid;
    admission->meta.owner_references = (struct owner_reference_list){&owner, 1};
    restart(s, WITH_ADMISSIONS);
    expect_used(s, "q", "cpu=4");
    for (int i = 0; i < 4; i++) {
        char pod[8 + 16];
        snprintf(pod, sizeof(pod), "a-%d", i);
        object_gone(s, KIND_POD, pod);
    }
    expect_used(s, "q", "cpu=0");
    expect_state(s, "a", "no Admission");
}

/* Pods whose Job isn't known any more, for it has left its queue, are nobody's orphans. */
static void pods_with_an_owner_are_no_orphans(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    struct job *job = scenario_job(s, "a");
    job->meta.labels = (struct string_map){.items = NULL};
    job->meta.annotations = (struct string_map){.items = NULL};
    restart(s, WITH_ADMISSIONS);
    expect_used(s, "q", "cpu=0");
}

/* Devices are charged as the Admission shows them. */
static void orphaned_devices_are_charged_over_a_restart(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "d0 d1 d2 d3");
    given_class(s, "gpu.example.com", "true");
    given_template(s, "one", "gpu.example.com", 1);
    given_queue(s, "q", "gpu.example.com=4 cpu=4");
    given_job(s, "a", "q", "pods=2 cpu=1 template=one");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    pod_claims(s, "a-0", "one", "n1/d0");
    pod_claims(s, "a-1", "one", "n1/d1");
    job_is_orphan_deleted(s, "a", 2);
    restart(s, WITH_ADMISSIONS);
    expect_used(s, "q", "gpu.example.com=2 cpu=2");
    object_gone(s, KIND_POD, "a-0");
    object_gone(s, KIND_POD, "a-1");
    expect_used(s, "q", "gpu.example.com=0 cpu=0");
}

/* Its Admission is put back by hand, with another uid, while its pods are left: it goes with them.
 */
static void admission_of_orphans_that_is_made_anew(void **state)
{
    struct scenario *s = *state;
    given_orphans(s);
    struct admission *admission = scenario_object(s, KIND_ADMISSION, "a");
    admission->meta.uid = STR("made-anew");
    object_changed(s, KIND_ADMISSION, "a");
    restart(s, WITH_ADMISSIONS);
    admission = scenario_object(s, KIND_ADMISSION, "a");
    admission->meta.uid = STR("once-more");
    object_changed(s, KIND_ADMISSION, "a");
    expect_used(s, "q", "cpu=4");
    for (int i = 0; i < 4; i++) {
        char pod[8 + 16];
        snprintf(pod, sizeof(pod), "a-%d", i);
        object_gone(s, KIND_POD, pod);
    }
    expect_used(s, "q", "cpu=0");
    expect_state(s, "a", "no Admission");
}

/* An Admission of several flavors, one of which rations each: a resource is charged once, what is
 * unreadable in its columns isn't, and what rounds to a part of a device is a whole one. */
static void orphans_are_charged_by_the_columns_of_their_admission(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "big", "");
    given_flavor(s, "cards", "");
    given_node(s, "n1", "cpu=16 example.com/card=8");
    given_queue(s, "q", "flavor=big cpu=8 group=new flavor=cards example.com/card=8");
    given_job(s, "a", "q", "pods=2 cpu=1 example.com/card=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    expect_used(s, "q", "cpu=2 example.com/card=2");
    job_is_orphan_deleted(s, "a", 2);
    restart(s, WITH_ADMISSIONS);
    expect_used(s, "q", "cpu=2 example.com/card=2");
    struct admission *admission = scenario_object(s, KIND_ADMISSION, "a");
    admission->status.devices = STR("example.com/card=9 gone=3 gpu.example.com cpu=x =");
    restart(s, WITH_ADMISSIONS);
    expect_used(s, "q", "cpu=2 example.com/card=2"); /* by the pods, not by the column */
    object_gone(s, KIND_POD, "a-0");
    object_gone(s, KIND_POD, "a-1");
    expect_used(s, "q", "cpu=0 example.com/card=0");
}

/* Nor is it needed that the Admission says how many pods there were, or since when: each may then
 * have had all the devices. */
static void orphans_of_an_admission_that_says_little_are_charged_more(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "d0 d1 d2 d3");
    given_class(s, "gpu.example.com", "true");
    given_template(s, "one", "gpu.example.com", 1);
    given_queue(s, "q", "gpu.example.com=4 cpu=4");
    given_job(s, "a", "q", "pods=2 cpu=1 template=one");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    job_is_orphan_deleted(s, "a", 2);
    struct admission *admission = scenario_object(s, KIND_ADMISSION, "a");
    admission->spec.pod_sets.count = 0;
    admission->status.since.is_set = false;
    admission->status.devices = STR("gpu.example.com=2 gpu.example.com=-9");
    restart(s, WITH_ADMISSIONS);
    expect_used(s, "q", "gpu.example.com=4 cpu=2");
    object_gone(s, KIND_POD, "a-0");
    object_gone(s, KIND_POD, "a-1");
    expect_used(s, "q", "gpu.example.com=0 cpu=0");
}

/* Without the Admission nobody knows the queue; the nodes are taken all the same. */
static void orphaned_pods_without_an_admission_hold_their_nodes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=4");
    given_job(s, "a", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1 n1 n1");
    job_is_orphan_deleted(s, "a", 4);
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q", "cpu=0");
    given_job(s, "b", "q", "pods=1 cpu=1");
    expect_state(s, "b", "Pending NodesFull");
    object_gone(s, KIND_POD, "a-0");
    expect_state(s, "b", "Admitted");
}

/* A pod that carries another gang's label can only add to what that gang still holds: neither does
 * it count as one of its pods, nor does one of another namespace count at all. */
static void forged_label_of_a_pod_gains_nothing(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=4");
    given_job(s, "a", "q", "pods=1 cpu=1");
    scenario_start(s);
    char json[600];
    struct str uid = scenario_job(s, "a")->meta.uid;
    for (int i = 0; i < 2; i++) {
        snprintf(json, sizeof(json),
                 "{\"metadata\":{\"name\":\"fake\",\"namespace\":\"%s\",\"labels\":{\"batch."
                 "kubernetes.io/controller-uid\":\"%.*s\"}},\"spec\":{\"nodeName\":\"n1\","
                 "\"containers\":[{\"name\":\"m\"}]},\"status\":{\"phase\":\"Running\","
                 "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                 i == 0 ? "ml" : "other", (int)uid.len, uid.ptr);
        given_json(s, KIND_POD, json);
    }
    expect_state(s, "a", "Admitted"); /* not one of its pods is ready */
    gang_starts(s, "a", "n1");
    expect_state(s, "a", "Running");
    job_suspended_by_user(s, "a", true);
    gang_stops(s, "a");
    expect_used(s, "q", "cpu=1"); /* the one of its own namespace still runs */
    object_gone(s, KIND_POD, "fake");
    expect_used(s, "q", "cpu=0");
}

/* A Job that is deleted in the usual way leaves its Admission to the garbage collector, for a
 * while. */
static void admission_that_nobody_collects_is_deleted(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=5 cpu=1");
    expect_state(s, "a", "Pending NeverFits");
    job_deleted_now(s, "a");
    at(s, 59000);
    expect_state(s, "a", "Pending NeverFits");
    at(s, 61000);
    expect_state(s, "a", "no Admission");
    trace_forget(s);
    at(s, 600000);
    expect_trace(s, "");
}

/* The Admission of an orphaned Job belongs to nobody: it is deleted. */
static void admission_without_an_owner_is_deleted(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=5 cpu=1");
    expect_state(s, "a", "Pending NeverFits");
    job_deleted_now(s, "a");
    ((struct admission *)scenario_object(s, KIND_ADMISSION, "a"))->meta.owner_references.count = 0;
    object_changed(s, KIND_ADMISSION, "a");
    expect_state(s, "a", "no Admission");
}

/* The owner is taken off before the Job goes: the ghost is deleted at once, not at a restart. */
static void admission_of_an_orphan_deleted_job_is_deleted_at_once(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=5 cpu=1");
    expect_state(s, "a", "Pending NeverFits");
    job_is_orphan_deleted(s, "a", 0);
    expect_state(s, "a", "no Admission");
}

static void job_that_is_being_deleted_is_not_started(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "holds", "q", "pods=4 cpu=1");
    given_job(s, "a", "q", "pods=2 cpu=1");
    given_job(s, "b", "q", "pods=3 cpu=1");
    scenario_start(s);
    gang_starts(s, "holds", "n1 n1 n1 n1");
    scenario_job(s, "a")->meta.deletion_timestamp = (struct opt_time){true, 1};
    object_changed(s, KIND_JOB, "a");
    job_finishes(s, "holds");
    assert_true(scenario_job(s, "a")->spec.suspend.value);
    expect_state(s, "b", "Admitted");
}

static void queue_that_is_deleted_stays_until_its_last_gang_ends(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    struct queue *queue = scenario_object(s, KIND_QUEUE, "q");
    assert_int_equal(queue->meta.finalizers.count, 1);
    queue->meta.deletion_timestamp = (struct opt_time){true, 1};
    object_changed(s, KIND_QUEUE, "q");
    given_job(s, "b", "q", "pods=1 cpu=1");
    expect_state(s, "a", "Running");
    expect_state(s, "b", "Pending QueueStopped");
    trace_forget(s);
    job_finishes(s, "a");
    expect_state(s, "b", "Pending QueueNotFound");
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "b", "Pending QueueNotFound");
}

/* Another API group has Jobs, too, and a pod of one is no pod of ours, whatever uid it names. */
static void pod_of_another_kind_of_job(void **state)
{
    struct scenario *s = *state;
    char json[600];
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=1 cpu=1");
    expect_state(s, "a", "Admitted");
    for (int is_ours = 0; is_ours <= 1; is_ours++) {
        snprintf(json, sizeof(json),
                 "{\"metadata\":{\"name\":\"pod-%d\",\"namespace\":\"ml\",\"ownerReferences\":[{"
                 "\"apiVersion\":\"%s/v1\",\"kind\":\"Job\",\"name\":\"a\",\"uid\":\"%s\","
                 "\"controller\":true}]},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":"
                 "\"main\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]},\"status\":{\"phase\":"
                 "\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                 is_ours, is_ours ? "batch" : "batch.volcano.sh",
                 scenario_job(s, "a")->meta.uid.ptr);
        given_json(s, KIND_POD, json);
        expect_state(s, "a", is_ours ? "Running" : "Admitted");
    }
}

/* One that a restart finds, too. */
static void admission_that_a_restart_finds_is_left_for_a_while(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=5 cpu=1");
    expect_state(s, "a", "Pending NeverFits");
    job_deleted_now(s, "a");
    restart(s, WITH_ADMISSIONS);
    at(s, 59000);
    expect_state(s, "a", "Pending NeverFits");
    at(s, 61000);
    expect_state(s, "a", "no Admission");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(job_made_again_under_its_name_is_another_job),
        scenario_test(job_made_again_while_the_controller_was_away),
        scenario_test(orphaned_pods_hold_their_quota_until_the_last_is_gone),
        scenario_test(orphaned_pods_hold_their_quota_over_a_restart),
        scenario_test(orphaned_pods_hold_their_quota_under_an_owned_admission),
        scenario_test(pods_with_an_owner_are_no_orphans),
        scenario_test(orphaned_devices_are_charged_over_a_restart),
        scenario_test(admission_of_orphans_that_is_made_anew),
        scenario_test(orphans_are_charged_by_the_columns_of_their_admission),
        scenario_test(orphans_of_an_admission_that_says_little_are_charged_more),
        scenario_test(orphaned_pods_without_an_admission_hold_their_nodes),
        scenario_test(forged_label_of_a_pod_gains_nothing),
        scenario_test(admission_that_nobody_collects_is_deleted),
        scenario_test(admission_without_an_owner_is_deleted),
        scenario_test(admission_of_an_orphan_deleted_job_is_deleted_at_once),
        scenario_test(job_that_is_being_deleted_is_not_started),
        scenario_test(queue_that_is_deleted_stays_until_its_last_gang_ends),
        scenario_test(pod_of_another_kind_of_job),
        scenario_test(admission_that_a_restart_finds_is_left_for_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
