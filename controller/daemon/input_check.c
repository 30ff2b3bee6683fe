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
        int64_t value = rules[i].value.is_set ? rules[i].value.value : 0;
        if (value < 0) {
            return err_set(err, RC_INVALID, "%s is %lld; it has to be 0 or more", rules[i].field,
                           (long long)value);
        }
        if (value > INT32_MAX && i < ARRAY_COUNT(rules) - 1) { /* the deadline has 64 bits */
            return err_set(err, RC_INVALID, "%s is %lld; it can be at most %d", rules[i].field,
                           (long long)value, INT32_MAX);
        }
    }
    return RC_SUCCESS;
}

/* What the schemas of Queue and Cohort allow. */
#define GROUPS_MAX    8
#define FLAVORS_MAX   32
#define RESOURCES_MAX 16

static struct rc check_count(const char *field, uint32_t count, uint32_t max, struct err *err)
{
    if (count > max) {
        return err_set(err, RC_INVALID, "%s has %u items; there can be at most %u", field, count,
                       max);
    }
    return RC_SUCCESS;
}

static struct rc check_quotas(const struct resource_group_list *groups,
                              const struct fair_sharing *fair, struct err *err)
{
    TRY(check_count("spec.resourceGroups", groups->count, GROUPS_MAX, err));
    for (uint32_t g = 0; g < groups->count; g++) {
        const struct quota_flavor_list *flavors = &groups->items[g].flavors;
        TRY(check_count("spec.resourceGroups.flavors", flavors->count, FLAVORS_MAX, err));
        for (uint32_t f = 0; f < flavors->count; f++) {
            TRY(check_count("spec.resourceGroups.flavors.resources",
                            flavors->items[f].resources.count, RESOURCES_MAX, err));
        }
    }
    struct quantity zero = {0};
    if (fair != NULL && fair->weight.is_set && quantity_compare(fair->weight.value, zero) < 0) {
        return err_set(err, RC_INVALID,
                       "spec.fairSharing.weight is negative; it has to be 0 or more");
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
        return check_quotas(&((const struct queue *)value)->spec.resource_groups,
                            ((const struct queue *)value)->spec.fair_sharing, err);
    case KIND_COHORT:
        return check_quotas(&((const struct cohort *)value)->spec.resource_groups,
                            ((const struct cohort *)value)->spec.fair_sharing, err);
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
