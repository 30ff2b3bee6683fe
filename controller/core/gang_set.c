/* gang_set.c - the pod sets of a gang: what its object says of each, and which pods are whose. */
#include "gang_input.h"
#include "internal.h"

#include <assert.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

void gang_size_add(struct gang_size *sum, const struct gang_size *size)
{
    sum->pods = sat_add(sum->pods, size->pods);
    sum->min_count = sat_add(sum->min_count, size->min_count);
    sum->is_partial_allowed = sum->is_partial_allowed || size->is_partial_allowed;
    sum->source = sum->source == 0 ? size->source : sum->source;
}

static bool is_elastic_index(const struct job *job)
{
    return str_eq_c(job->spec.completion_mode, "Indexed") && job->spec.parallelism.is_set &&
           job->spec.completions.is_set &&
           job->spec.parallelism.value == job->spec.completions.value;
}

struct rc gang_input_of_job(struct arena *arena, const struct job *job,
                            struct gang_input *ret_input, struct err *err)
{
    struct gang_input_set *set = ARENA_NEW(arena, struct gang_input_set);
    *set = (struct gang_input_set){.name = STR(POD_SET_MAIN),
                                   .pod_template = &job->spec.pod_template,
                                   .is_elastic_index = is_elastic_index(job)};
    *ret_input = (struct gang_input){.sets = set, .set_count = 1};
    struct rc rc = job_gang_size(arena, job, &set->size, err);
    if (rc_failed(rc)) {
        /* How many pods it would be is still told; should it run already, it runs with all. */
        int64_t parallelism = job->spec.parallelism.is_set ? job->spec.parallelism.value : 1;
        int64_t left = job_completions_left(job);
        set->size.pods = parallelism < left ? parallelism : left;
        set->size.min_count = set->size.pods;
    }
    return rc;
}

void core_set_gang_reader(struct core *core, gang_reader reader)
{
    core->read_gang = reader;
}

/* -- sets by name ----------------------------------------------------------------------------- */

struct gang_set *gang_set_find(const struct gang *gang, struct str name)
{
    for (uint32_t s = 0; s < gang->set_count; s++) {
        if (str_eq(gang->sets[s].name, name)) {
            return &gang->sets[s];
        }
    }
    return NULL;
}

const struct pod_set *pod_set_find(const struct shape *shape, struct str name)
{
    for (uint32_t s = 0; s < shape->set_count; s++) {
        if (str_eq(shape->sets[s].name, name)) {
            return &shape->sets[s];
        }
    }
    return NULL;
}

bool pod_set_names_claim(const struct pod_set *set, struct str claim_key)
{
    for (uint32_t c = 0; c < set->claim_count; c++) {
        if (str_eq(set->claims[c].claim->key, claim_key)) {
            return true;
        }
    }
    return false;
}

bool shape_names_first(const struct shape *shape, uint32_t s, uint32_t claim)
{
    for (uint32_t o = 0; o < s; o++) {
        if (pod_set_names_claim(&shape->sets[o], shape->sets[s].claims[claim].claim->key)) {
            return false;
        }
    }
    return true;
}

const struct record_pod_set *record_set(const struct admission_record *record, struct str name)
{
    for (uint32_t s = 0; record != NULL && s < record->pod_sets.count; s++) {
        if (str_eq(record->pod_sets.items[s].name, name)) {
            return &record->pod_sets.items[s];
        }
    }
    return NULL;
}

const struct record_restore *record_restore(const struct admission_record *record, struct str name)
{
    const struct record_pod_set *set = record_set(record, name);
    if (set != NULL && set->restore != NULL) {
        return set->restore;
    }
    bool is_only = record != NULL && record->pod_sets.count == 1;
    return is_only ? record->restore : NULL;
}

/* Nearly all sets are a Job's only one: its name isn't copied for each. */
static const struct str main_name = STR_INIT(POD_SET_MAIN);

static struct str set_name_own(struct str name)
{
    return str_eq(name, main_name) ? main_name : str_own(name);
}

/* -- the object ------------------------------------------------------------------------------- */

static void gang_set_drop(struct gang_set *set)
{
    if (set->name.ptr != main_name.ptr) {
        str_drop(&set->name);
    }
    string_map_drop(&set->admit_selector);
    string_map_drop(&set->template_selector);
}

void gang_sets_free(struct gang *gang)
{
    for (uint32_t s = 0; s < gang->set_count; s++) {
        gang_set_drop(&gang->sets[s]);
    }
    mem_free(gang->sets);
    gang->sets = NULL;
    gang->set_count = 0;
}

void gang_sets_forget_patch(struct gang *gang)
{
    for (uint32_t s = 0; s < gang->set_count; s++) {
        string_map_drop(&gang->sets[s].admit_selector);
    }
}

void gang_sets_read(struct gang *gang, const struct gang_input *input)
{
    assert(input->set_count >= 1 && input->set_count <= POD_SETS_MAX);
    struct gang_set *sets = mem_zalloc(input->set_count * sizeof(struct gang_set));
    struct gang_size size = {.pods = 0};
    for (uint32_t s = 0; s < input->set_count; s++) {
        const struct gang_input_set *from = &input->sets[s];
        const struct pod_spec *spec = &from->pod_template->spec;
        sets[s] = (struct gang_set){.name = set_name_own(from->name),
                                    .size = from->size,
                                    .is_elastic_index = from->is_elastic_index,
                                    .template_selector = string_map_own(&spec->node_selector),
                                    .template_tolerations = spec->tolerations.count};
        struct gang_set *before = gang_set_find(gang, from->name);
        if (before != NULL) { /* what our PATCH adds stays until the watch has shown it */
            sets[s].admit_selector = before->admit_selector;
            before->admit_selector = (struct string_map){.items = NULL};
        }
        gang_size_add(&size, &from->size);
    }
    gang_sets_free(gang);
    gang->sets = sets;
    gang->set_count = input->set_count;
    gang->size = size;
}

/* -- its pods --------------------------------------------------------------------------------- */

static struct gang_set *set_of_pod(const struct gang *gang, const struct pod_state *pod)
{
    struct gang_set *set = str_is_set(pod->pod_set) ? gang_set_find(gang, pod->pod_set) : NULL;
    return set != NULL || gang->set_count == 0 ? set : &gang->sets[0];
}

struct pod_state *gang_first_pod(const struct gang *gang)
{
    return gang->pods == NULL ? NULL : gang->pods->pods;
}

/* It runs, and the Job, which has lost it, makes another in its place. */
static bool is_replaced(const struct pod_state *pod, const struct gang *gang)
{
    return pod->is_orphan && !gang->is_job_gone && !gang->is_job_deleting;
}

static struct pod_count count_now(const struct core *core, struct gang *gang,
                                  const struct pod_state *pod)
{
    struct pod_count count = {.is_live = false};
    if (pod->is_terminal) {
        return count;
    }
    /* What dies on a dead node holds its devices, but no quota any more. */
    if (pod->is_terminating && pod->node != NULL && node_is_stuck(core, pod->node)) {
        count.is_lost = true;
        return count;
    }
    count.is_live = true;
    /* Then its Admission was left behind as its pods were, whatever owner it names. */
    bool is_left = pod->is_orphan && gang->is_job_gone;
    gang->is_admission_ownerless = gang->is_admission_ownerless || is_left;
    const struct gang_set *set = set_of_pod(gang, pod);
    count.has_set = set != NULL;
    count.set = set == NULL ? 0 : (uint8_t)(set - gang->sets);
    count.is_settled = pod->is_settled && !is_replaced(pod, gang);
    count.is_ready = pod->is_ready && !is_replaced(pod, gang);
    return count;
}

/* Unsigned, so that taking away is adding all but once around. */
static void add_count(struct gang *gang, const struct pod_count *count, uint32_t times)
{
    GANG_PUT(gang, run, lost_pods, gang->run->lost_pods + (count->is_lost ? times : 0));
    gang->live_pods += count->is_live ? times : 0;
    gang->settled_pods += count->is_settled ? times : 0;
    gang->ready_pods += count->is_ready ? times : 0;
    if (count->has_set) {
        struct gang_set *set = &gang->sets[count->set];
        set->live_pods += count->is_live ? times : 0;
        set->settled_pods += count->is_settled ? times : 0;
        set->ready_pods += count->is_ready ? times : 0;
    }
}

void gang_count_pods(const struct core *core, struct gang *gang)
{
    gang->live_pods = gang->settled_pods = gang->ready_pods = 0;
    GANG_PUT(gang, run, lost_pods, 0);
    for (uint32_t s = 0; s < gang->set_count; s++) {
        gang->sets[s].live_pods = gang->sets[s].settled_pods = gang->sets[s].ready_pods = 0;
    }
    for (struct pod_state *pod = gang_first_pod(gang); pod != NULL; pod = pod->next_in_group) {
        pod->counted = count_now(core, gang, pod);
        add_count(gang, &pod->counted, 1);
    }
}

void gang_count_pod(const struct core *core, struct gang *gang, struct pod_state *pod)
{
    if (core->options.is_plain) {
        gang_count_pods(core, gang);
        return;
    }
    add_count(gang, &pod->counted, UINT32_MAX);
    pod->counted = pod->group != NULL && pod->group == gang->pods ? count_now(core, gang, pod)
                                                                  : (struct pod_count){.set = 0};
    add_count(gang, &pod->counted, 1);
}

/* Its Job does so until it is suspended, whatever is on its way to it. */
static bool makes_pods(const struct gang *gang)
{
    return !gang->is_suspended && !gang->is_job_gone && !gang->is_job_deleting &&
           !gang->is_job_finished;
}

int64_t gang_set_promised_pods(const struct gang *gang, const struct reserved_set *reserved)
{
    /* Room is made for a gang that is checked; there may be none yet. */
    bool is_starting = gang->state == GANG_ADMITTED || gang->state == GANG_RUNNING ||
                       (gang->state == GANG_RESERVED && gang->room->check == NULL);
    if (gang->is_out || (!is_starting && gang->state != GANG_SUSPENDING)) {
        return 0;
    }
    const struct gang_set *set = gang_set_find(gang, reserved->name);
    int64_t live = set == NULL ? 0 : (int64_t)set->live_pods;
    int64_t settled = set == NULL ? 0 : (int64_t)set->settled_pods;
    /* Of a gang that stops, those that are there may still be bound before they are deleted. */
    bool may_make_more = is_starting || makes_pods(gang);
    int64_t left = (may_make_more ? reserved->count : live) - settled;
    return left > 0 ? left : 0;
}

int64_t gang_promised_pods(const struct gang *gang)
{
    int64_t promised = 0;
    for (uint32_t s = 0; gang->reservation != NULL && s < gang->reservation->set_count; s++) {
        promised = sat_add(promised, gang_set_promised_pods(gang, &gang->reservation->sets[s]));
    }
    return promised;
}

bool gang_is_whole(const struct gang *gang)
{
    /* Manifests may hold a Job without its pods; its own status is what is known of them then. */
    if (gang_first_pod(gang) == NULL) {
        return gang->run->ready >= gang->size.min_count;
    }
    for (uint32_t s = 0; s < gang->set_count; s++) {
        if ((int64_t)gang->sets[s].ready_pods < gang->sets[s].size.min_count) {
            return false;
        }
    }
    return true;
}
