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

/* -- what an admission may set beside the node selector ------------------------------------------
 */

static void one_patch_sets_and_takes_back_all_that_it_may(void **state)
{
    (void)state;
    struct cluster *cluster = one_suspended_job();
    struct toleration toleration = {.key = STR("pool"), .op = STR("Exists")};
    struct str zone = STR("b");
    struct match_expression in_zone = {.key = STR("zone"), .op = STR("In"), .values = {&zone, 1}};
    struct node_selector_term term = {.match_expressions = {&in_zone, 1}};
    struct node_selector required = {.node_selector_terms = {&term, 1}};
    struct node_affinity node_affinity = {.required = &required};
    struct affinity affinity = {.node_affinity = &node_affinity};
    struct template_patch template = {
        .sets_tolerations = true, .tolerations = {&toleration, 1}, .affinity = &affinity};
    struct effect effect = patch_of(cluster);
    effect.patch.queue_label = STR("research");
    effect.patch.deadline_seconds = (struct opt_int){true, 60};
    effect.patch.templates = &template;
    effect.patch.template_count = 1;
    int64_t generation = job_of(cluster, "j")->meta.generation.value;
    check_i64(send(cluster, &effect).outcome, WRITE_OK);
    const struct job *job = job_of(cluster, "j");
    const struct pod_spec *spec = &job->spec.pod_template.spec;
    check_str(string_map_get(&job->meta.labels, "tallyman.dev/queue"), "research");
    check_i64(job->spec.active_deadline_seconds.value, 60);
    check_i64(spec->tolerations.count, 1);
    check_str(spec->tolerations.items[0].key, "pool");
    check_i64(spec->affinity->node_affinity->required->node_selector_terms.count, 1);
    check_i64(job->meta.generation.value, generation + 1);

    template = (struct template_patch){.sets_tolerations = true, .drops_affinity = "affinity"};
    effect = patch_of(cluster);
    effect.patch.removes_deadline = true;
    effect.patch.templates = &template;
    effect.patch.template_count = 1;
    check_i64(send(cluster, &effect).outcome, WRITE_OK);
    job = job_of(cluster, "j");
    assert_false(job->spec.active_deadline_seconds.is_set);
    check_i64(job->spec.pod_template.spec.tolerations.count, 0);
    assert_null(job->spec.pod_template.spec.affinity);
    check_str(string_map_get(&job->meta.labels, "tallyman.dev/queue"), "research");
    cluster_free(cluster);
}

/* An Indexed Job's completions go with its parallelism, or not at all. */
static void completions_change_with_the_parallelism_alone(void **state)
{
    (void)state;
    struct cluster *cluster = one_suspended_job();
    struct template_patch template = {.parallelism = {true, 3}, .sets_completions = true};
    struct effect effect = patch_of(cluster);
    effect.patch.templates = &template;
    effect.patch.template_count = 1;
    check_i64(send(cluster, &effect).outcome, WRITE_OK);
    check_i64(job_of(cluster, "j")->spec.completions.value, 3);

    template = (struct template_patch){.parallelism = {true, 2}}; /* the two differ from now on */
    effect = patch_of(cluster);
    effect.patch.templates = &template;
    effect.patch.template_count = 1;
    check_i64(send(cluster, &effect).outcome, WRITE_OK);
    template = (struct template_patch){.parallelism = {true, 4}, .sets_completions = true};
    effect = patch_of(cluster);
    effect.patch.templates = &template;
    effect.patch.template_count = 1;
    struct driver_answer answer = send(cluster, &effect);
    check_i64(answer.outcome, WRITE_REFUSED);
    check_str(answer.message,
              "Job.batch \"j\" is invalid: spec.completions: Invalid value: field is immutable");
    check_i64(job_of(cluster, "j")->spec.completions.value, 3);
    check_i64(job_of(cluster, "j")->spec.parallelism.value, 2);
    cluster_free(cluster);
}

/* -- what isn't a Job ----------------------------------------------------------------------------
 */

static void a_pod_is_marked_by_its_uid_alone(void **state)
{
    (void)state;
    const char *key = "tallyman.dev/checkpoint-request";
    struct cluster *cluster = one_suspended_job();
    given(cluster, "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: ml, "
                   "annotations: {own: kept}}\nspec: {containers: [{name: c}]}\n");
    (void)sim_run_until(cluster->sim, 2000);
    const struct pod *pod = sim_find(cluster->sim, KIND_POD, STR("ml"), STR("p"));
    assert_non_null(pod);
    struct effect effect = {.kind = EFFECT_MARK_POD,
                            .namespace_name = STR("ml"),
                            .name = STR("p"),
                            .uid = STR("other"),
                            .patch = {.checkpoint_request = STR("2026-01-01T00:00:00Z")}};
    check_i64(send(cluster, &effect).outcome, WRITE_GONE);
    effect.uid = pod->meta.uid;
    effect.name = STR("nobody");
    check_i64(send(cluster, &effect).outcome, WRITE_GONE);
    effect.name = STR("p");
    check_i64(send(cluster, &effect).outcome, WRITE_OK);
    pod = sim_find(cluster->sim, KIND_POD, STR("ml"), STR("p"));
    check_str(string_map_get(&pod->meta.annotations, key), "2026-01-01T00:00:00Z");
    effect.uid = pod->meta.uid;
    effect.patch = (struct job_patch){.removes_checkpoint = true};
    check_i64(send(cluster, &effect).outcome, WRITE_OK);
    pod = sim_find(cluster->sim, KIND_POD, STR("ml"), STR("p"));
    assert_false(str_is_set(string_map_get(&pod->meta.annotations, key)));
    check_str(string_map_get(&pod->meta.annotations, "own"), "kept");
    cluster_free(cluster);
}

static enum write_outcome write_status_of(struct cluster *cluster,
                                          const struct status_content *content)
{
    struct effect effect = {.kind = EFFECT_WRITE_STATUS};
    struct driver_write write = {.id = 1, .effect = &effect, .status = content};
    return write_carry_out(cluster->sim, &write).outcome;
}

static void a_status_leaves_the_spec_and_outlives_an_apply(void **state)
{
    (void)state;
    const char *yaml = "apiVersion: tallyman.dev/v1beta1\nkind: Cohort\nmetadata: {name: all}\n"
                       "spec: {parentName: root}\n---\n"
                       "apiVersion: tallyman.dev/v1beta1\nkind: ResourceFlavor\n"
                       "metadata: {name: red}\nspec: {nodeLabels: {pool: red}}\n";
    struct cluster *cluster = one_suspended_job();
    given(cluster, yaml);
    (void)sim_run_until(cluster->sim, 2000);
    struct status_content cohort = {
        .kind = KIND_COHORT,
        .cohort = {.meta = {.name = STR("all")}, .status = {.queues = {true, 4}}}};
    struct status_content flavor = {
        .kind = KIND_RESOURCE_FLAVOR,
        .flavor = {.meta = {.name = STR("red")}, .status = {.nodes = {true, 7}}}};
    check_i64(write_status_of(cluster, &cohort), WRITE_OK);
    check_i64(write_status_of(cluster, &flavor), WRITE_OK);
    for (int i = 0; i < 2; i++) {
        const struct cohort *all = sim_find(cluster->sim, KIND_COHORT, STR_NONE, STR("all"));
        const struct resource_flavor *red =
            sim_find(cluster->sim, KIND_RESOURCE_FLAVOR, STR_NONE, STR("red"));
        check_i64(all->status.queues.value, 4);
        check_str(all->spec.parent_name, "root");
        check_i64(red->status.nodes.value, 7);
        check_str(string_map_get(&red->spec.node_labels, "pool"), "red");
        given(cluster, yaml);
        (void)sim_run_until(cluster->sim, 3000);
    }
    cohort.cohort.meta.name = STR("none");
    check_i64(write_status_of(cluster, &cohort), WRITE_GONE);
    cluster_free(cluster);
}

static void a_queue_in_deletion_goes_with_its_last_finalizer(void **state)
{
    (void)state;
    struct cluster *cluster = one_suspended_job();
    given(cluster, QUEUE_RESEARCH);
    (void)sim_run_until(cluster->sim, 2000);
    struct str ours = STR("tallyman.dev/in-use");
    struct effect effect = {
        .kind = EFFECT_SET_FINALIZER, .name = STR("research"), .finalizers = {&ours, 1}};
    check_i64(send(cluster, &effect).outcome, WRITE_OK);
    effect.finalizers.count = 0;
    check_i64(send(cluster, &effect).outcome, WRITE_OK);
    assert_non_null(sim_find(cluster->sim, KIND_QUEUE, STR_NONE, STR("research")));
    effect.finalizers.count = 1;
    check_i64(send(cluster, &effect).outcome, WRITE_OK);
    assert_true(sim_delete(cluster->sim, KIND_QUEUE, STR_NONE, STR("research")));
    assert_non_null(sim_find(cluster->sim, KIND_QUEUE, STR_NONE, STR("research")));
    effect.finalizers.count = 0;
    check_i64(send(cluster, &effect).outcome, WRITE_OK);
    assert_null(sim_find(cluster->sim, KIND_QUEUE, STR_NONE, STR("research")));
    check_i64(send(cluster, &effect).outcome, WRITE_GONE);
    cluster_free(cluster);
}

static struct driver_answer make_request(struct cluster *cluster, struct str job_uid)
{
    struct owner_reference owner = {.api_version = STR("batch/v1"),
                                    .kind = STR("Job"),
                                    .name = STR("j"),
                                    .uid = job_uid,
                                    .controller = {true, true}};
    struct request_content content = {.request = {.meta = {.name = STR("j-1"),
                                                           .namespace_name = STR("ml"),
                                                           .owner_references = {&owner, 1}}}};
    struct effect effect = {.kind = EFFECT_MAKE_REQUEST};
    struct driver_write write = {.id = 1, .effect = &effect, .request = &content};
    return write_carry_out(cluster->sim, &write);
}

static void a_request_is_deleted_by_its_uid_or_goes_with_its_job(void **state)
{
    (void)state;
    struct cluster *cluster = one_suspended_job();
    struct str job_uid = arena_copy_str(&cluster->arena, job_of(cluster, "j")->meta.uid);
    check_i64(make_request(cluster, job_uid).outcome, WRITE_OK);
    check_i64(make_request(cluster, job_uid).outcome, WRITE_OK); /* once, though it is sent twice */
    struct effect effect = {.kind = EFFECT_DELETE_REQUEST,
                            .namespace_name = STR("ml"),
                            .name = STR("j-1"),
                            .uid = STR("other")};
    check_i64(send(cluster, &effect).outcome, WRITE_GONE);
    const struct provisioning_request *request =
        sim_find(cluster->sim, KIND_PROVISIONING_REQUEST, STR("ml"), STR("j-1"));
    assert_non_null(request);
    effect.uid = request->meta.uid;
    check_i64(send(cluster, &effect).outcome, WRITE_OK);
    assert_null(sim_find(cluster->sim, KIND_PROVISIONING_REQUEST, STR("ml"), STR("j-1")));
    check_i64(send(cluster, &effect).outcome, WRITE_GONE);

    check_i64(make_request(cluster, job_uid).outcome, WRITE_OK);
    assert_true(sim_delete(cluster->sim, KIND_JOB, STR("ml"), STR("j")));
    (void)sim_run_until(cluster->sim, 600000);
    assert_null(sim_find(cluster->sim, KIND_PROVISIONING_REQUEST, STR("ml"), STR("j-1")));
    cluster_free(cluster);
}

static void what_is_kept_by_the_store_alone_is_no_write(void **state)
{
    (void)state;
    struct cluster *cluster = one_suspended_job();
    struct effect effect = {.kind = EFFECT_PERSIST};
    struct driver_answer answer = send(cluster, &effect);
    check_i64(answer.outcome, WRITE_REFUSED);
    check_str(answer.message, "this isn't a write");
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
        cmocka_unit_test(one_patch_sets_and_takes_back_all_that_it_may),
        cmocka_unit_test(completions_change_with_the_parallelism_alone),
        cmocka_unit_test(a_pod_is_marked_by_its_uid_alone),
        cmocka_unit_test(a_status_leaves_the_spec_and_outlives_an_apply),
        cmocka_unit_test(a_queue_in_deletion_goes_with_its_last_finalizer),
        cmocka_unit_test(a_request_is_deleted_by_its_uid_or_goes_with_its_job),
        cmocka_unit_test(what_is_kept_by_the_store_alone_is_no_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
