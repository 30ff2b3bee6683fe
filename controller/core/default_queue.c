/* default_queue.c - namespaces whose Jobs all go through a queue (label
 * tallyman.dev/default-queue), where no policy writes the label on each Job.
 *
 * A suspended Job without a queue is taken into the namespace's, whenever it is seen. One that runs
 * is taken, and so suspended, if it has come to be while the namespace had the label; one that ran
 * before is left alone. For that the Jobs that aren't ours are remembered: by their uid, and as a
 * whole while they may still be taken. The label is written with the next PATCH that is due anyhow:
 * the one that admits, or the one that suspends. */
#include "gate.h"

#include <stdlib.h>

#include "tallyman/api/job.h"
#include "tallyman/base/alloc.h"

struct bystander {
    struct str uid; /* owned; the key */
    UT_hash_handle hh;
    struct job *job; /* owned clone; NULL: it runs, and is left alone */
    bool is_new;     /* its namespace wasn't known yet when it came */
};

struct str default_queue_of(const struct core *core, struct str namespace_name)
{
    const struct namespace_object *space = named_find(core, KIND_NAMESPACE, namespace_name);
    struct str name =
        space == NULL ? STR_NONE : string_map_get(&space->meta.labels, LABEL_DEFAULT_QUEUE);
    return str_is_empty(name) ? STR_NONE : name;
}

static struct bystander *bystander_find(const struct core *core, struct str uid)
{
    struct bystander *found = NULL;
    HASH_FIND(hh, core->bystanders, uid.ptr, (unsigned)uid.len, found);
    return found;
}

static void bystander_drop(struct core *core, struct bystander *bystander)
{
    if (bystander != NULL) {
        HASH_DEL(core->bystanders, bystander);
        str_drop(&bystander->uid);
        mem_free(bystander->job);
        mem_free(bystander);
    }
}

static void bystander_keep(struct core *core, const struct job *job, bool may_be_taken, bool is_new)
{
    struct bystander *bystander = bystander_find(core, job->meta.uid);
    if (bystander == NULL) {
        bystander = MEM_NEW(struct bystander);
        bystander->uid = str_own(job->meta.uid);
        HASH_ADD_KEYPTR(hh, core->bystanders, bystander->uid.ptr, (unsigned)bystander->uid.len,
                        bystander);
    }
    mem_free(bystander->job);
    bystander->job = may_be_taken ? object_clone(kind_info(KIND_JOB)->schema, job) : NULL;
    bystander->is_new = is_new;
}

void default_queue_remember(struct core *core, const struct job *job)
{
    bystander_keep(core, job, true, false);
}

void default_queue_forget(struct core *core, struct str uid)
{
    bystander_drop(core, bystander_find(core, uid));
}

bool default_queue_takes(struct core *core, const struct job *job)
{
    struct bystander *known = bystander_find(core, job->meta.uid);
    if (job_is_finished(job) || job->meta.deletion_timestamp.is_set) {
        bystander_drop(core, known);
        return false;
    }
    bool is_suspended = opt_is_true(job->spec.suspend);
    bool is_new = core->is_ready && (known == NULL || known->is_new);
    bool is_placed = named_find(core, KIND_NAMESPACE, job->meta.namespace_name) != NULL;
    bool has_default = str_is_set(default_queue_of(core, job->meta.namespace_name));
    if (core->is_ready && has_default && (is_suspended || is_new)) {
        return true;
    }
    bool is_open = is_new && !is_placed; /* which namespace that is will be shown in a moment */
    bystander_keep(core, job, is_suspended || is_open, is_open);
    return false;
}

/* -- a namespace's label comes, changes or goes ------------------------------------------------ */

static int compare_jobs(const void *a, const void *b)
{
    const struct job *const *left = a;
    const struct job *const *right = b;
    return str_compare((*left)->meta.uid, (*right)->meta.uid);
}

/* The kept Jobs of that namespace (absent: of all) are looked at once more, in order. */
static void look_at_bystanders(struct core *core, struct str namespace_name)
{
    struct job **jobs = mem_zalloc((HASH_COUNT(core->bystanders) + 1) * sizeof(struct job *));
    uint32_t count = 0;
    struct bystander *bystander;
    struct bystander *next;
    HASH_ITER (hh, core->bystanders, bystander, next) {
        bool is_there =
            bystander->job != NULL && (!str_is_set(namespace_name) ||
                                       str_eq(bystander->job->meta.namespace_name, namespace_name));
        if (is_there) {
            jobs[count++] = bystander->job;
            bystander->job = NULL; /* job_apply() keeps another, or takes the Job in */
        }
    }
    if (count > 1) {
        qsort(jobs, count, sizeof(jobs[0]), compare_jobs);
    }
    for (uint32_t i = 0; i < count; i++) {
        job_apply(core, jobs[i]);
        mem_free(jobs[i]);
    }
    mem_free(jobs);
}

void default_queue_changed(struct core *core, struct str namespace_name)
{
    if (!core->is_ready) {
        return;
    }
    look_at_bystanders(core, namespace_name);
}

void default_queue_start(struct core *core)
{
    look_at_bystanders(core, STR_NONE);
}

void default_queue_free(struct core *core)
{
    struct bystander *bystander;
    struct bystander *next;
    HASH_ITER (hh, core->bystanders, bystander, next) {
        bystander_drop(core, bystander);
    }
}
