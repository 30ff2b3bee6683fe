/* input_check.c - manifests that an API server would refuse are refused here too: what is planned
 * or simulated from them could never happen. */
#include "input.h"

#include <stdlib.h>

#include "tallyman/api/job.h"
#include "tallyman/api/queue.h"

struct number_rule {
    const char *field;
    struct opt_int value;
};

static struct rc check_containers(const struct pod_spec *spec, const char *path, struct err *err)
{
    if (spec->containers.count == 0) {
        return err_set(err, RC_INVALID, "%s.containers is missing or empty; it needs a container",
                       path);
    }
    return RC_SUCCESS;
}

static struct rc check_job(const struct job *job, struct err *err)
{
    TRY(check_containers(&job->spec.pod_template.spec, "spec.template.spec", err));
    const struct number_rule rules[] = {
        {"spec.parallelism", job->spec.parallelism},
        {"spec.completions", job->spec.completions},
        {"spec.backoffLimit", job->spec.backoff_limit},
        {"spec.activeDeadlineSeconds", job->spec.active_deadline_seconds},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rules); i++) {
        if (rules[i].value.is_set && rules[i].value.value < 0) {
            return err_set(err, RC_INVALID, "%s is %lld; it has to be 0 or more", rules[i].field,
                           (long long)rules[i].value.value);
        }
    }
    return RC_SUCCESS;
}

struct rc input_check(const struct manifest *manifest, struct err *err)
{
    const void *value = manifest->object.value;
    switch ((int)manifest->object.kind) {
    case KIND_JOB:
        return check_job(value, err);
    case KIND_POD:
        return check_containers(&((const struct pod *)value)->spec, "spec", err);
    case KIND_QUEUE:
        if (((const struct queue *)value)->spec.namespace_selector == NULL) {
            return err_set(err, RC_INVALID,
                           "spec.namespaceSelector is missing; {} lets every namespace use the "
                           "queue");
        }
        return RC_SUCCESS;
    default:
        return RC_SUCCESS;
    }
}

static int compare_identity(const void *a, const void *b)
{
    const struct manifest *left = *(const struct manifest *const *)a;
    const struct manifest *right = *(const struct manifest *const *)b;
    const struct object_meta *left_meta = left->object.value;
    const struct object_meta *right_meta = right->object.value;
    int order = (left->object.kind > right->object.kind) - (left->object.kind < right->object.kind);
    order = order != 0 ? order : str_compare(left_meta->namespace_name, right_meta->namespace_name);
    return order != 0 ? order : str_compare(left_meta->name, right_meta->name);
}

/* Of one identity, the earlier of the text first: `list` is one array in that order. */
static int compare_manifests(const void *a, const void *b)
{
    int order = compare_identity(a, b);
    const struct manifest *left = *(const struct manifest *const *)a;
    const struct manifest *right = *(const struct manifest *const *)b;
    return order != 0 ? order : (left > right) - (left < right);
}

struct rc input_check_once(struct arena *arena, const struct manifest_list *list, struct err *err)
{
    const struct manifest **sorted = ARENA_ARRAY(arena, const struct manifest *, list->count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].object.kind != KIND_NONE) {
            sorted[count++] = &list->items[i];
        }
    }
    if (count > 1) {
        qsort(sorted, count, sizeof(sorted[0]), compare_manifests);
    }
    for (uint32_t i = 1; i < count; i++) {
        if (compare_identity(&sorted[i - 1], &sorted[i]) == 0) {
            const struct manifest *first = sorted[i - 1];
            const struct manifest *again = sorted[i];
            const struct object_meta *meta = again->object.value;
            bool is_in_namespace = !str_is_empty(meta->namespace_name);
            return err_set(err, RC_INVALID,
                           STR_FMT ":%u: " STR_FMT " " STR_FMT "%s" STR_FMT
                                   " is given twice, first in " STR_FMT ":%u; leave one out",
                           STR_ARG(again->file_name), again->line, STR_ARG(again->kind),
                           STR_ARG(is_in_namespace ? meta->namespace_name : STR("")),
                           is_in_namespace ? "/" : "", STR_ARG(meta->name),
                           STR_ARG(first->file_name), first->line);
        }
    }
    return RC_SUCCESS;
}
