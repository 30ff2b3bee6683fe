/* scenario_sets.c - gangs of several pod sets, though only Jobs are watched: the Job's template is
 * the first set, the others are beside it. */
#include "support/scenario_internal.h"

#include "support/check.h"

#include "../../controller/core/gang_input.h"

static const struct scenario *reads_from;

struct extra_set *extra_set_find(const struct scenario *s, struct str job, struct str name)
{
    struct extra_set *set = s->extra_sets;
    while (set != NULL && !(str_eq(set->job, job) && str_eq(set->name, name))) {
        set = set->next;
    }
    return set;
}

static struct rc read_sets(struct arena *arena, const struct job *job, struct gang_input *ret_input,
                           struct err *err)
{
    TRY(gang_input_of_job(arena, job, ret_input, err));
    uint32_t count = 1;
    for (const struct extra_set *set = reads_from->extra_sets; set != NULL; set = set->next) {
        count += str_eq(set->job, job->meta.name) ? 1 : 0;
    }
    struct gang_input_set *sets = ARENA_ARRAY(arena, struct gang_input_set, count);
    sets[0] = ret_input->sets[0];
    *ret_input = (struct gang_input){.sets = sets, .set_count = 1};
    for (const struct extra_set *set = reads_from->extra_sets; set != NULL; set = set->next) {
        if (!str_eq(set->job, job->meta.name)) {
            continue;
        }
        struct gang_input_set *more = &sets[ret_input->set_count++];
        *more = (struct gang_input_set){.name = set->name,
                                        .pod_template = &set->object->spec.pod_template};
        TRY(job_gang_size(arena, set->object, &more->size, err));
    }
    return RC_SUCCESS;
}

void read_sets_of(struct scenario *s)
{
    reads_from = s;
    core_set_gang_reader(s->core, read_sets);
}

void given_pod_set(struct scenario *s, const char *job, const char *name, const char *options)
{
    struct extra_set *set = ARENA_NEW(&s->arena, struct extra_set);
    *set = (struct extra_set){.job = arena_copy_str(&s->arena, str_from_c(job)),
                              .name = arena_copy_str(&s->arena, str_from_c(name)),
                              .object = job_of_options(s, name, "", options)};
    struct extra_set **link = &s->extra_sets;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = set;
}

struct job *scenario_pod_set(struct scenario *s, const char *job, const char *name)
{
    struct extra_set *set = extra_set_find(s, str_from_c(job), str_from_c(name));
    assert_non_null(set);
    return set->object;
}

void pod_set_starts(struct scenario *s, const char *job, const char *name, const char *nodes)
{
    struct entry *owner = entry_need(s, KIND_JOB, job);
    const struct pod_spec *spec = &scenario_pod_set(s, job, name)->spec.pod_template.spec;
    struct str node;
    for (int i = 0; next_word(&nodes, &node); i++) {
        struct str pod = make(s, "%s-%s-%d", job, name, i);
        (void)pod_make(s, owner, pod, spec, str_from_c(name));
        pod_binds(s, pod.ptr, make(s, STR_FMT, STR_ARG(node)).ptr);
        pod_is_ready_now(s, pod.ptr, true);
    }
}
