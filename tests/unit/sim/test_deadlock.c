/* S1: two gangs of four on six devices. */
#include "fixture.h"

static struct cluster *six_devices(struct sim_options options)
{
    struct cluster *cluster = cluster_new(options);
    given(cluster, GPU_CLASS QUEUE_RESEARCH);
    given_nodes(cluster, 3, "8");
    for (int node = 1; node <= 3; node++) {
        given_devices(cluster, node, 2);
    }
    const char *queue = "tallyman.dev/queue: research";
    given_job(cluster, (struct job_args){.name = "train-a",
                                         .pods = 4,
                                         .labels = queue,
                                         .annotations = "example.com/run-for: 10m",
                                         .has_gpu = true});
    given_job(cluster, (struct job_args){.name = "train-b",
                                         .pods = 4,
                                         .labels = queue,
                                         .annotations = "example.com/run-for: 10m",
                                         .has_gpu = true});
    given_job(cluster, (struct job_args){.name = "small",
                                         .pods = 2,
                                         .labels = queue,
                                         .annotations = "example.com/submit-after: 1m, "
                                                        "example.com/run-for: 5m",
                                         .has_gpu = true});
    return cluster;
}

static void plain_kubernetes_places_three_of_each_and_both_are_stuck(void **state)
{
    (void)state;
    struct cluster *cluster = six_devices((struct sim_options){.has_tallyman = false});
    (void)sim_run_until(cluster->sim, 3600000);
    check_i64(job_state(cluster, "train-a").bound, 3);
    check_i64(job_state(cluster, "train-b").bound, 3);
    check_i64(job_state(cluster, "small").bound, 0);
    assert_false(job_state(cluster, "train-a").is_whole);
    check_i64(sim_devices(cluster->sim).held, 6);
    check_i64(sim_devices(cluster->sim).held_for_nothing, 6);
    assert_true(sim_wasted_device_ms(cluster->sim) > INT64_C(6) * 3590000);
    assert_true(sim_wasted_device_ms(cluster->sim) <= INT64_C(6) * 3600000);
    assert_true(trace_has(cluster, "unschedulable 0/3 nodes are available: 3 cannot allocate all "
                                   "claims."));
    check_holds(cluster);
    cluster_free(cluster);
}

static void with_tallyman_one_runs_whole_and_the_other_waits_whole(void **state)
{
    (void)state;
    struct cluster *cluster = six_devices((struct sim_options){.has_tallyman = true});
    (void)sim_run_until(cluster->sim, 30000);
    check_i64(job_state(cluster, "train-a").bound, 4);
    assert_true(job_state(cluster, "train-a").is_whole);
    check_i64(job_state(cluster, "train-b").pods, 0);
    assert_true(job_state(cluster, "train-b").is_suspended);
    check_i64(sim_devices(cluster->sim).held, 4);
    const struct admission *waiting =
        sim_find(cluster->sim, KIND_ADMISSION, STR("ml"), STR("train-b"));
    assert_non_null(waiting);
    check_str(waiting->status.state, "Pending");
    check_str(waiting->status.reason, "DevicesExhausted");
    cluster_free(cluster);
}

static void the_rest_starts_by_itself_as_room_appears(void **state)
{
    (void)state;
    struct cluster *cluster = six_devices((struct sim_options){.has_tallyman = true});
    (void)sim_run_until(cluster->sim, 65000);
    assert_true(job_state(cluster, "small").is_whole); /* two were free: it starts at once */
    (void)sim_run_until(cluster->sim, 610000);
    assert_true(job_state(cluster, "train-a").is_finished);
    assert_true(job_state(cluster, "train-b").is_whole);
    (void)sim_run_until(cluster->sim, 3600000);
    assert_true(job_state(cluster, "train-b").is_finished);
    assert_true(job_state(cluster, "small").is_finished);
    check_i64(sim_devices(cluster->sim).held, 0);
    cluster_free(cluster);
}

static void no_gang_is_partial_for_longer_than_binding_takes(void **state)
{
    (void)state;
    struct cluster *cluster = six_devices((struct sim_options){.has_tallyman = true});
    for (int64_t ms = 10; ms < 1300000; ms += 10 + ms / 50) {
        (void)sim_run_until(cluster->sim, ms);
        check_holds(cluster);
        core_assert_consistent(sim_core(cluster->sim));
    }
    assert_true(job_state(cluster, "train-a").partial_max_ms < 200);
    assert_true(job_state(cluster, "train-b").partial_max_ms < 200);
    assert_true(job_state(cluster, "train-a").partial_max_ms > 0); /* binding takes its time */
    cluster_free(cluster);

    cluster = six_devices((struct sim_options){.has_tallyman = false});
    (void)sim_run_until(cluster->sim, 1300000);
    assert_true(job_state(cluster, "train-a").partial_max_ms > 1200000);
    cluster_free(cluster);
}

static void the_same_options_give_the_same_run(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct sim_options options = {.has_tallyman = true, .seed = seed};
        struct cluster *first = six_devices(options);
        struct cluster *second = six_devices(options);
        (void)sim_run_until(first->sim, 3600000);
        for (int64_t ms = 1000; ms <= 3600000; ms += 1000) {
            (void)sim_run_until(second->sim, ms); /* in steps or at once: no matter */
        }
        struct str trace = text_str(&first->trace);
        assert_true(trace.len > 500);
        assert_true(str_eq(trace, text_str(&second->trace)));
        cluster_free(first);
        cluster_free(second);
    }
}

static void a_seed_changes_the_order_but_not_what_holds(void **state)
{
    (void)state;
    struct cluster *plain = six_devices((struct sim_options){.has_tallyman = true});
    (void)sim_run_until(plain->sim, 3600000);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct cluster *cluster =
            six_devices((struct sim_options){.has_tallyman = true, .seed = seed});
        (void)sim_run_until(cluster->sim, 3600000);
        assert_false(str_eq(text_str(&plain->trace), text_str(&cluster->trace)));
        assert_true(job_state(cluster, "train-a").is_finished);
        assert_true(job_state(cluster, "train-b").is_finished);
        assert_true(job_state(cluster, "train-b").partial_max_ms < 500);
        check_holds(cluster);
        cluster_free(cluster);
    }
    cluster_free(plain);
}

static void the_controller_may_die_at_any_moment(void **state)
{
    (void)state;
    for (int64_t at_ms = 0; at_ms < 120; at_ms += 3) {
        for (int applies = 0; applies < 2; applies++) {
            struct cluster *cluster = six_devices((struct sim_options){.has_tallyman = true});
            (void)sim_run_until(cluster->sim, at_ms);
            sim_restart_controller(cluster->sim,
                                   applies == 1 ? SIM_WRITES_APPLIED : SIM_WRITES_LOST);
            (void)sim_run_until(cluster->sim, 30000);
            check_i64(job_state(cluster, "train-a").bound + job_state(cluster, "train-b").bound, 4);
            (void)sim_run_until(cluster->sim, 602000);
            sim_restart_controller(cluster->sim,
                                   applies == 0 ? SIM_WRITES_APPLIED : SIM_WRITES_LOST);
            (void)sim_run_until(cluster->sim, 3600000);
            assert_true(job_state(cluster, "train-a").is_finished);
            assert_true(job_state(cluster, "train-b").is_finished);
            assert_true(job_state(cluster, "small").is_finished);
            check_holds(cluster);
            cluster_free(cluster);
        }
    }
}

static void lost_writes_and_answers_change_nothing(void **state)
{
    (void)state;
    for (uint32_t mask = 0; mask < 64; mask++) {
        struct cluster *cluster = six_devices((struct sim_options){.has_tallyman = true});
        for (uint32_t i = 0; i < 6; i++) {
            cluster->faults[i] = (mask >> i & 1) == 0 ? SIM_FAULT_NONE
                                 : i % 2 == 0         ? SIM_FAULT_LOST
                                                      : SIM_FAULT_ANSWER_LOST;
        }
        cluster->fault_count = 6;
        (void)sim_run_until(cluster->sim, 3600000);
        assert_true(job_state(cluster, "train-a").is_finished);
        assert_true(job_state(cluster, "train-b").is_finished);
        assert_true(job_state(cluster, "train-a").partial_max_ms < 200);
        cluster_free(cluster);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_kubernetes_places_three_of_each_and_both_are_stuck),
        cmocka_unit_test(with_tallyman_one_runs_whole_and_the_other_waits_whole),
        cmocka_unit_test(the_rest_starts_by_itself_as_room_appears),
        cmocka_unit_test(no_gang_is_partial_for_longer_than_binding_takes),
        cmocka_unit_test(the_same_options_give_the_same_run),
        cmocka_unit_test(a_seed_changes_the_order_but_not_what_holds),
        cmocka_unit_test(the_controller_may_die_at_any_moment),
        cmocka_unit_test(lost_writes_and_answers_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
