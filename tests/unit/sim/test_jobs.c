/* The Job controller and the kubelets: what a Job's status says, and when. */
#include "fixture.h"

static struct cluster *plain(void)
{
    struct cluster *cluster = cluster_new((struct sim_options){.has_tallyman = false});
    given_nodes(cluster, 2, "8");
    return cluster;
}

static void a_running_job_has_no_suspended_condition(void **state)
{
    (void)state;
    struct cluster *cluster = plain();
    given_job(cluster, (struct job_args){.name = "j", .pods = 3});
    (void)sim_run_until(cluster->sim, 500);
    const struct job *job = job_of(cluster, "j");
    check_i64(job->status.active.value, 3);
    check_i64(job->status.ready.value, 0);
    assert_true(job->status.start_time.is_set);
    assert_null(condition_find(&job->status.conditions, "Suspended"));
    (void)sim_run_until(cluster->sim, 4000);
    check_i64(job_of(cluster, "j")->status.ready.value, 3);
    cluster_free(cluster);
}

static void a_suspended_job_settles_resumes_and_stops(void **state)
{
    (void)state;
    struct cluster *cluster = plain();
    given_job(cluster, (struct job_args){.name = "j", .pods = 2, .spec = "suspend: true,"});
    (void)sim_run_until(cluster->sim, 500);
    const struct job *job = job_of(cluster, "j");
    assert_true(condition_is_true(&job->status.conditions, "Suspended"));
    assert_false(job->status.start_time.is_set);
    assert_false(job->status.active.is_set);

    assert_true(sim_job_suspend(cluster->sim, STR("ml"), STR("j"), false));
    (void)sim_run_until(cluster->sim, 5000);
    job = job_of(cluster, "j");
    check_str(condition_find(&job->status.conditions, "Suspended")->status, "False");
    assert_true(job->status.start_time.is_set);
    check_i64(job->status.ready.value, 2);

    assert_true(sim_job_suspend(cluster->sim, STR("ml"), STR("j"), true));
    (void)sim_run_until(cluster->sim, 5100); /* "deletes issued", not "pods gone" */
    job = job_of(cluster, "j");
    assert_true(condition_is_true(&job->status.conditions, "Suspended"));
    assert_false(job->status.start_time.is_set);
    assert_false(job->status.active.is_set);
    check_i64(job->status.terminating.value, 2);
    check_i64(job_state(cluster, "j").bound, 2);
    (void)sim_run_until(cluster->sim, 8000);
    check_i64(job_of(cluster, "j")->status.terminating.value, 0);
    check_i64(job_state(cluster, "j").pods, 0);
    check_i64(job_of(cluster, "j")->status.failed.value, 0);
    cluster_free(cluster);
}

static void indexes_that_are_done_stay_done_over_a_suspension(void **state)
{
    (void)state;
    struct cluster *cluster = plain();
    given_job(cluster,
              (struct job_args){.name = "j", .pods = 5, .annotations = "example.com/run-for: 10s"});
    given_job(cluster, (struct job_args){.name = "other", .pods = 1});
    (void)sim_run_until(cluster->sim, 1000);
    assert_true(sim_job_scale(cluster->sim, STR("ml"), STR("j"), 2)); /* three go, two stay */
    (void)sim_run_until(cluster->sim, 13500); /* the status comes a second later */
    check_str(job_of(cluster, "j")->status.completed_indexes, "0-1");
    assert_true(sim_job_suspend(cluster->sim, STR("ml"), STR("j"), true));
    (void)sim_run_until(cluster->sim, 16000);
    check_i64(job_of(cluster, "j")->status.succeeded.value, 2);
    assert_true(sim_job_suspend(cluster->sim, STR("ml"), STR("j"), false));
    (void)sim_run_until(cluster->sim, 60000);
    const struct job *job = job_of(cluster, "j");
    assert_true(condition_is_true(&job->status.conditions, "Complete"));
    check_str(job->status.completed_indexes, "0-4");
    assert_false(job_is_finished(job_of(cluster, "other"))); /* it runs for ever */
    cluster_free(cluster);
}

/* The name of a pod that isn't over yet. */
static void keep_live_pod(void *ctx, const void *value)
{
    const struct pod *pod = value;
    if (!pod_is_terminal(pod) && !pod->meta.deletion_timestamp.is_set) {
        *(struct str *)ctx = pod->meta.name;
    }
}

static void fail_a_pod(struct cluster *cluster)
{
    struct str name = STR_NONE;
    sim_each(cluster->sim, KIND_POD, keep_live_pod, &name);
    assert_true(str_is_set(name));
    assert_true(sim_pod_fail(cluster->sim, STR("ml"), arena_copy_str(&cluster->arena, name)));
}

static void failures_are_tried_again_until_the_limit(void **state)
{
    (void)state;
    struct cluster *cluster = plain();
    given_job(cluster, (struct job_args){.name = "j", .pods = 1, .spec = "backoffLimit: 1,"});
    (void)sim_run_until(cluster->sim, 5000);
    fail_a_pod(cluster);
    (void)sim_run_until(cluster->sim, 14000); /* it waits ten seconds */
    check_i64(job_state(cluster, "j").pods, 0);
    (void)sim_run_until(cluster->sim, 20000);
    check_i64(job_state(cluster, "j").ready, 1);
    fail_a_pod(cluster);
    (void)sim_run_until(cluster->sim, 200000);
    const struct job *job = job_of(cluster, "j");
    assert_true(condition_is_true(&job->status.conditions, "Failed"));
    check_str(condition_find(&job->status.conditions, "Failed")->reason, "BackoffLimitExceeded");
    check_i64(job_state(cluster, "j").pods, 0);
    cluster_free(cluster);
}

static void a_pod_that_a_user_deletes_counts_as_a_failure(void **state)
{
    (void)state;
    struct cluster *cluster = plain();
    given_job(cluster, (struct job_args){.name = "j", .pods = 2});
    (void)sim_run_until(cluster->sim, 5000);
    struct str name = STR_NONE;
    sim_each(cluster->sim, KIND_POD, keep_live_pod, &name);
    assert_true(
        sim_delete(cluster->sim, KIND_POD, STR("ml"), arena_copy_str(&cluster->arena, name)));
    (void)sim_run_until(cluster->sim, 60000);
    check_i64(job_of(cluster, "j")->status.failed.value, 1);
    check_i64(job_state(cluster, "j").ready, 2); /* and is replaced */
    cluster_free(cluster);
}

static void a_deadline_ends_the_job(void **state)
{
    (void)state;
    struct cluster *cluster = plain();
    given_job(cluster,
              (struct job_args){.name = "j", .pods = 2, .spec = "activeDeadlineSeconds: 60,"});
    (void)sim_run_until(cluster->sim, 59000);
    check_i64(job_state(cluster, "j").ready, 2);
    (void)sim_run_until(cluster->sim, 70000);
    const struct job *job = job_of(cluster, "j");
    check_str(condition_find(&job->status.conditions, "Failed")->reason, "DeadlineExceeded");
    check_i64(job_state(cluster, "j").pods, 0);
    cluster_free(cluster);
}

static void what_a_deleted_job_owned_goes_after_it(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_new((struct sim_options){.has_tallyman = true});
    given(cluster, GPU_CLASS QUEUE_RESEARCH);
    given_nodes(cluster, 1, "8");
    given_devices(cluster, 1, 2);
    given_job(cluster, (struct job_args){.name = "j",
                                         .pods = 2,
                                         .labels = "tallyman.dev/queue: research",
                                         .has_gpu = true});
    (void)sim_run_until(cluster->sim, 5000);
    check_i64(job_state(cluster, "j").devices, 2);
    assert_non_null(sim_find(cluster->sim, KIND_ADMISSION, STR("ml"), STR("j")));
    assert_true(sim_delete(cluster->sim, KIND_JOB, STR("ml"), STR("j")));
    (void)sim_run_until(cluster->sim, 10000);
    check_i64(sim_devices(cluster->sim).held, 0);
    assert_null(sim_find(cluster->sim, KIND_ADMISSION, STR("ml"), STR("j")));
    struct str left = STR_NONE;
    sim_each(cluster->sim, KIND_POD, keep_live_pod, &left);
    assert_false(str_is_set(left));
    cluster_free(cluster);
}

/* A gang works only while it is whole: also without Tallyman, where the label means nothing else.
 */
static void a_gangs_clock_stops_while_a_pod_is_missing(void **state)
{
    (void)state;
    struct cluster *cluster = plain();
    given_job(cluster, (struct job_args){.name = "gang",
                                         .pods = 2,
                                         .labels = "tallyman.dev/queue: research",
                                         .annotations = "example.com/run-for: 60s"});
    (void)sim_run_until(cluster->sim, 30000);
    assert_true(job_state(cluster, "gang").is_whole);
    assert_true(sim_node_set_ready(cluster->sim, STR("n1"), false));
    (void)sim_run_until(cluster->sim, 100000);
    assert_false(job_state(cluster, "gang").is_whole);
    check_i64(job_state(cluster, "gang").succeeded, 0); /* the other pod stands still too */
    assert_true(sim_node_set_ready(cluster->sim, STR("n1"), true));
    (void)sim_run_until(cluster->sim, 170000);
    assert_true(job_state(cluster, "gang").is_finished);
    cluster_free(cluster);
}

static void succeeded_pods_count_towards_the_whole(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_new((struct sim_options){.has_tallyman = false});
    given_nodes(cluster, 1, "3"); /* the fourth pod has no place */
    given_job(cluster, (struct job_args){.name = "gang",
                                         .pods = 4,
                                         .labels = "tallyman.dev/queue: research",
                                         .annotations = "example.com/run-for: 60s, "
                                                        "tallyman.dev/min-count: '3'"});
    (void)sim_run_until(cluster->sim, 64000);
    check_i64(job_state(cluster, "gang").succeeded, 3); /* all three, though the first to end */
    assert_false(trace_has(cluster, "broken"));         /* left two behind */
    (void)sim_run_until(cluster->sim, 140000);
    assert_true(job_state(cluster, "gang").is_finished);
    cluster_free(cluster);
}

static void a_labelled_job_is_made_suspended_with_tallyman_alone(void **state)
{
    (void)state;
    for (int has_tallyman = 0; has_tallyman < 2; has_tallyman++) {
        struct cluster *cluster =
            cluster_new((struct sim_options){.has_tallyman = has_tallyman == 1});
        given(cluster, QUEUE_RESEARCH);
        given(cluster, "apiVersion: v1\nkind: Namespace\nmetadata: {name: ml, labels: "
                       "{tallyman.dev/default-queue: research}}\n");
        given_job(cluster, (struct job_args){.name = "labelled",
                                             .pods = 1,
                                             .labels = "tallyman.dev/queue: research",
                                             .spec = "suspend: true,"});
        given_job(cluster, (struct job_args){.name = "by-namespace", .pods = 1});
        check_i64(job_state(cluster, "labelled").is_suspended, has_tallyman);
        check_i64(job_state(cluster, "by-namespace").is_suspended, has_tallyman);
        assert_true(job_state(cluster, "by-namespace").is_gang);
        cluster_free(cluster);
    }
}

static void the_field_that_disappears_leaves_its_size(void **state)
{
    (void)state;
    struct cluster *cluster = plain();
    const char *field = "scheduling: {schedulingPolicy: {gang: {minCount: 2}}},";
    given_job(cluster, (struct job_args){.name = "j", .pods = 3, .spec = field});
    assert_null(job_of(cluster, "j")->spec.scheduling);
    check_str(string_map_get(&job_of(cluster, "j")->meta.annotations, "tallyman.dev/min-count"),
              "2");
    check_i64(job_state(cluster, "j").min_count, 2);
    cluster_free(cluster);
}

static void bad_input_is_named(void **state)
{
    (void)state;
    struct cluster *cluster = plain();
    struct err err;
    struct rc rc = cluster_try(cluster,
                               "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, "
                               "annotations: {example.com/run-for: soon}}\n",
                               &err);
    assert_true(rc_failed(rc));
    assert_non_null(strstr(err.text, "metadata.annotations[example.com/run-for]: \"soon\""));
    given_job(cluster, (struct job_args){.name = "j", .pods = 1});
    rc = cluster_try(cluster,
                     "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, namespace: ml}\n"
                     "spec: {template: {spec: {containers: [{name: d}]}}}\n",
                     &err);
    assert_true(rc_failed(rc));
    assert_non_null(strstr(err.text, "spec.template: field is immutable"));
    cluster_free(cluster);
}

/* `low` holds the two devices that the queue has, and can save its work. */
static struct cluster *low_before_high(const char *low_annotations)
{
    struct cluster *cluster = cluster_new((struct sim_options){.has_tallyman = true});
    given(cluster,
          GPU_CLASS "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"
                    "metadata: {name: high}\nvalue: 9\n---\n"
                    "apiVersion: v1\nkind: Namespace\nmetadata: {name: ml}\n---\n"
                    "apiVersion: tallyman.dev/v1beta1\nkind: Queue\nmetadata: {name: research}\n"
                    "spec: {namespaceSelector: {}, preemption: {withinQueue: LowerPriority}, "
                    "resourceGroups: [{flavors: [{name: default, resources: "
                    "[{name: gpu.example.com, nominalQuota: '2'}]}]}]}\n");
    given_nodes(cluster, 1, "8");
    given_devices(cluster, 1, 2);
    given_job(cluster, (struct job_args){.name = "low",
                                         .pods = 2,
                                         .labels = "tallyman.dev/queue: research",
                                         .annotations = low_annotations,
                                         .has_gpu = true});
    given_job(cluster, (struct job_args){.name = "high",
                                         .pods = 2,
                                         .labels = "tallyman.dev/queue: research",
                                         .annotations = "example.com/submit-after: 60s",
                                         .pod_spec = "priorityClassName: high, ",
                                         .has_gpu = true});
    return cluster;
}

static void count_asked(void *ctx, const void *value)
{
    const struct object_meta *pod = value;
    bool is_asked =
        str_is_set(string_map_get(&pod->annotations, "tallyman.dev/checkpoint-request"));
    *(int *)ctx += is_asked ? 1 : 0;
}

static int pods_asked(const struct cluster *cluster)
{
    int count = 0;
    sim_each(cluster->sim, KIND_POD, count_asked, &count);
    return count;
}

/* Each pod is asked to save, and goes when the grace is over. */
static void who_can_save_its_work_is_asked_before_it_stops(void **state)
{
    (void)state;
    struct cluster *cluster = low_before_high("tallyman.dev/checkpoint-grace: 30s");
    (void)sim_run_until(cluster->sim, 55000);
    assert_true(job_state(cluster, "low").is_whole);
    check_i64(pods_asked(cluster), 0);
    (void)sim_run_until(cluster->sim, 80000);
    check_i64(pods_asked(cluster), 2);
    assert_false(job_state(cluster, "low").is_suspended);
    assert_true(job_state(cluster, "high").is_suspended);
    (void)sim_run_until(cluster->sim, 110000);
    assert_true(job_state(cluster, "low").is_suspended);
    assert_true(job_state(cluster, "high").is_whole);
    check_i64(pods_asked(cluster), 0);
    cluster_free(cluster);
}

static void who_cant_save_its_work_stops_unasked(void **state)
{
    (void)state;
    struct cluster *cluster = low_before_high(NULL);
    (void)sim_run_until(cluster->sim, 62000);
    check_i64(pods_asked(cluster), 0);
    assert_true(job_state(cluster, "low").is_suspended);
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_running_job_has_no_suspended_condition),
        cmocka_unit_test(a_suspended_job_settles_resumes_and_stops),
        cmocka_unit_test(indexes_that_are_done_stay_done_over_a_suspension),
        cmocka_unit_test(failures_are_tried_again_until_the_limit),
        cmocka_unit_test(a_pod_that_a_user_deletes_counts_as_a_failure),
        cmocka_unit_test(a_deadline_ends_the_job),
        cmocka_unit_test(what_a_deleted_job_owned_goes_after_it),
        cmocka_unit_test(a_gangs_clock_stops_while_a_pod_is_missing),
        cmocka_unit_test(succeeded_pods_count_towards_the_whole),
        cmocka_unit_test(a_labelled_job_is_made_suspended_with_tallyman_alone),
        cmocka_unit_test(the_field_that_disappears_leaves_its_size),
        cmocka_unit_test(bad_input_is_named),
        cmocka_unit_test(who_can_save_its_work_is_asked_before_it_stops),
        cmocka_unit_test(who_cant_save_its_work_stops_unasked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
