/* input_check.c - manifests that an API server would refuse are refused here too: what is planned
 * or simulated from them could never happen. */
#include "input.h"

#include <stdlib.h>

#include "tallyman/api/job.h"
#include "tallyman/api/node.h"

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

static struct rc check_amounts(const struct resource_list *list, const char *field, struct err *err)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].value.nano < 0) {
            return err_set(err, RC_INVALID,
                           "%s." STR_FMT " is negative (" STR_FMT "); it has to be 0 or more",
                           field, STR_ARG(list->items[i].name), STR_ARG(list->items[i].text));
        }
    }
    return RC_SUCCESS;
}

/* DNS-1123: what the names of nearly all kinds are. */
#define NAME_MAX_BYTES      253
#define NAMESPACE_MAX_BYTES 63

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Labels of letters, digits and '-' with dots between them. */
static bool name_is_sound(struct str name)
{
    char before = '.';
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        char after = i + 1 < name.len ? name.ptr[i + 1] : '.';
        bool is_inside = is_letter_or_digit(before) || before == '-';
        bool is_right = is_letter_or_digit(c) || (c == '-' && is_inside && after != '.') ||
                        (c == '.' && is_inside && after != '.');
        if (!is_right) {
            return false;
        }
        before = c;
    }
    return name.len > 0 && before != '.';
}

bool input_is_namespace(struct str name)
{
    return name.len <= NAMESPACE_MAX_BYTES && name_is_sound(name) &&
           str_find_char(name, '.') == name.len;
}

static struct rc check_name(const char *field, struct str name, struct err *err)
{
    if (name.len > NAME_MAX_BYTES) {
        return err_set(err, RC_INVALID, "%s has %zu characters; there can be at most %d", field,
                       name.len, NAME_MAX_BYTES);
    }
    if (!name_is_sound(name)) {
        return err_set(err, RC_INVALID,
                       "%s is not an object name; use lower-case letters, digits, '-' and '.', and "
                       "begin and end with a letter or a digit",
                       field);
    }
    return RC_SUCCESS;
}

static struct rc check_meta(const struct object_meta *meta, struct err *err)
{
    for (uint32_t i = 0; i < meta->labels.count; i++) {
        const struct string_pair *label = &meta->labels.items[i];
        if (str_find_char(label->value, '\0') < label->value.len) {
            return err_set(err, RC_INVALID,
                           "metadata.labels." STR_FMT " has a NUL in it; use letters, digits, '-', "
                           "'_' and '.'",
                           STR_ARG(str_cut_utf8(label->key, 100)));
        }
    }
    TRY(check_name("metadata.name", meta->name, err));
    return str_is_empty(meta->namespace_name)
               ? RC_SUCCESS
               : check_name("metadata.namespace", meta->namespace_name, err);
}

struct rc input_check(const struct manifest *manifest, struct err *err)
{
    const void *value = manifest->object.value;
    if (manifest->object.kind != KIND_NONE) {
        TRY(check_meta(value, err));
    }
    switch ((int)manifest->object.kind) {
    case KIND_JOB:
        return check_job(value, err);
    case KIND_NODE: {
        const struct node *node = value;
        return check_amounts(&node->status.allocatable, "status.allocatable", err);
    }
    case KIND_POD:
        return check_containers(&((const struct pod *)value)->spec, "spec", err);
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
