/* What the virtual API server makes of Tallyman's writes: the answers of a real one. */
#include "fixture.h"

#include "../../../controller/sim/sim_internal.h"

static struct cluster *one_suspended_job(void)
{
    struct cluster *cluster = cluster_new((struct sim_options){.has_tallyman = false});
    given_nodes(cluster, 1, "8");
    given_job(cluster, (struct job_args){.name = "j", .pods = 2, .spec = "suspend: true,"});
    (void)sim_run_until(cluster->sim, 1000);
    return cluster;
}

static struct effect patch_of(const struct cluster *cluster)
{
    const struct job *job = job_of(cluster, "j");
    return (struct effect){.kind = EFFECT_PATCH_JOB,
                           .namespace_name = STR("ml"),
                           .name = STR("j"),
                           .uid = job->meta.uid,
                           .resource_version = job->meta.resource_version};
}

static struct driver_answer send(struct cluster *cluster, const struct effect *effect)
{
    struct driver_write write = {.id = 1, .effect = effect};
    return write_carry_out(cluster->sim, &write);
}

static void an_old_version_is_a_conflict(void **state)
{
    (void)state;
    struct cluster *cluster = one_suspended_job();
    struct effect effect = patch_of(cluster);
    effect.resource_version = STR("1");
    effect.patch.suspend = (struct opt_bool){true, false};
    check_i64(send(cluster, &effect).outcome, WRITE_CONFLICT);
    assert_true(job_of(cluster, "j")->spec.suspend.value);
    cluster_free(cluster);
}

static void another_uid_or_no_job_is_gone(void **state)
{
    (void)state;
    struct cluster *cluster = one_suspended_job();
    struct effect effect = patch_of(cluster);
    effect.uid = STR("other");
    check_i64(send(cluster, &effect).outcome, WRITE_GONE);
    effect = patch_of(cluster);
    effect.name = STR("nobody");
    check_i64(send(cluster, &effect).outcome, WRITE_GONE);
    cluster_free(cluster);
}

static void one_patch_admits(void **state)
{
    (void)state;
    struct cluster *cluster = one_suspended_job();
    struct string_pair pair = {STR("kubernetes.io/hostname"), STR("n1")};
    struct template_patch template = {.node_selector = {&pair, 1}};
    struct effect effect = patch_of(cluster);
    int64_t generation = job_of(cluster, "j")->meta.generation.value;
    effect.patch.suspend = (struct opt_bool){true, false};
    effect.patch.record = STR("{\"queue\":\"research\"}");
    effect.patch.templates = &template;
    effect.patch.template_count = 1;
    struct driver_answer answer = send(cluster, &effect);
    check_i64(answer.outcome, WRITE_OK);
    const struct job *job = job_of(cluster, "j");
    assert_true(str_eq(answer.resource_version, job->meta.resource_version));
    assert_false(job->spec.suspend.value);
    check_i64(job->meta.generation.value, generation + 1);
    check_str(string_map_get(&job->meta.annotations, "tallyman.dev/admission"),
              "{\"queue\":\"research\"}");
    check_str(string_map_get(&job->spec.pod_template.spec.node_selector, "kubernetes.io/hostname"),
              "n1");
    cluster_free(cluster);
}

static void a_template_changes_only_while_suspended_and_settled(void **state)
{
    (void)state;
    struct cluster *cluster = one_suspended_job();
    struct string_pair pair = {STR("kubernetes.io/hostname"), STR("n1")};
    struct template_patch template = {.node_selector = {&pair, 1}};
    assert_true(sim_job_suspend(cluster->sim, STR("ml"), STR("j"), false));
    (void)sim_run_until(cluster->sim, 5000);
    struct effect effect = patch_of(cluster);
    effect.patch.templates = &template;
    effect.patch.template_count = 1;
    struct driver_answer answer = send(cluster, &effect);
    check_i64(answer.outcome, WRITE_REFUSED);
    assert_true(str_find(answer.message, STR("spec.template")) < answer.message.len);

    effect.patch.suspend = (struct opt_bool){true, true}; /* the old object counts */
    check_i64(send(cluster, &effect).outcome, WRITE_REFUSED);

    effect = patch_of(cluster);
    effect.patch.suspend = (struct opt_bool){true, true};
    check_i64(send(cluster, &effect).outcome, WRITE_OK);
    effect = patch_of(cluster); /* suspended, but the status doesn't say so yet */
    effect.patch.templates = &template;
    effect.patch.template_count = 1;
    check_i64(send(cluster, &effect).outcome, WRITE_REFUSED);
    (void)sim_run_until(cluster->sim, 6000);
    effect = patch_of(cluster);
    effect.patch.templates = &template;
    effect.patch.template_count = 1;
    check_i64(send(cluster, &effect).outcome, WRITE_OK);
    cluster_free(cluster);
}

static void what_changes_nothing_is_no_new_version(void **state)
{
    (void)state;
    struct cluster *cluster = one_suspended_job();
    struct str version =
        arena_copy_str(&cluster->arena, job_of(cluster, "j")->meta.resource_version);
    struct effect effect = patch_of(cluster);
    effect.patch.suspend = (struct opt_bool){true, true};
    check_i64(send(cluster, &effect).outcome, WRITE_OK);
    assert_true(str_eq(version, job_of(cluster, "j")->meta.resource_version));
    cluster_free(cluster);
}

static void an_admission_is_deleted_by_its_uid_alone(void **state)
{
    (void)state;
    struct cluster *cluster = one_suspended_job();
    struct admission admission = {.meta = {.name = STR("j"), .namespace_name = STR("ml")},
                                  .spec = {.queue = STR("research")}};
    struct effect effect = {.kind = EFFECT_WRITE_ADMISSION};
    struct driver_write write = {.id = 1, .effect = &effect, .admission = &admission};
    check_i64(write_carry_out(cluster->sim, &write).outcome, WRITE_OK);
    effect = (struct effect){.kind = EFFECT_DELETE_ADMISSION,
                             .namespace_name = STR("ml"),
                             .name = STR("j"),
                             .uid = STR("other")};
    check_i64(send(cluster, &effect).outcome, WRITE_CONFLICT);
    const struct admission *found = sim_find(cluster->sim, KIND_ADMISSION, STR("ml"), STR("j"));
    assert_non_null(found);
    effect.uid = found->meta.uid;
    check_i64(send(cluster, &effect).outcome, WRITE_OK);
    assert_null(sim_find(cluster->sim, KIND_ADMISSION, STR("ml"), STR("j")));
    check_i64(send(cluster, &effect).outcome, WRITE_GONE);
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_version_is_a_conflict),
        cmocka_unit_test(another_uid_or_no_job_is_gone),
        cmocka_unit_test(one_patch_admits),
        cmocka_unit_test(a_template_changes_only_while_suspended_and_settled),
        cmocka_unit_test(what_changes_nothing_is_no_new_version),
        cmocka_unit_test(an_admission_is_deleted_by_its_uid_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
