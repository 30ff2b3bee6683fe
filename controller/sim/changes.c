/* changes.c - what a manifest says will happen to its object: it goes, or a Node's conditions
 * change. */
#include "sim_internal.h"

#include "tallyman/base/time_text.h"

#define CHANGES_MAX 64 /* of one Node */

/* "Ready=False"; false: it isn't one. */
static bool split_condition(struct str text, struct condition *ret_condition)
{
    size_t at = str_find_char(text, '=');
    if (at == 0 || at + 1 >= text.len) {
        return false;
    }
    struct str status = str_skip(text, at + 1);
    *ret_condition = (struct condition){.type = str_take(text, at), .status = status};
    return str_eq_c(status, "True") || str_eq_c(status, "False") || str_eq_c(status, "Unknown");
}

static void change_condition(struct sim *sim, struct task *task)
{
    const struct node *from = task->value;
    struct sim_object *object = api_find(sim, KIND_NODE, from->meta.name);
    if (object != NULL) {
        struct node next = *(const struct node *)object->value;
        next.status.conditions =
            api_condition_with(sim, &next.status.conditions, &from->status.conditions.items[0]);
        api_update(sim, object, &next, false);
    }
}

/* The task keeps a Node that has nothing but its name and that condition. */
static void plan_condition(struct sim *sim, const struct object_meta *meta, int64_t at_ms,
                           struct condition *condition)
{
    struct node keeps = {.meta.name = meta->name,
                         .status.conditions = {.items = condition, .count = 1}};
    struct task *task =
        agenda_add(sim, at_ms > sim->now_ms ? at_ms : sim->now_ms, change_condition, STR_NONE);
    task->kind = KIND_NODE;
    task->value = object_clone(kind_info(KIND_NODE)->schema, &keeps);
}

static struct str strip(struct str text)
{
    while (text.len > 0 && text.ptr[0] == ' ') {
        text = str_skip(text, 1);
    }
    while (text.len > 0 && text.ptr[text.len - 1] == ' ') {
        text = str_take(text, text.len - 1);
    }
    return text;
}

/* "10m Ready=False" */
static struct rc plan_one(struct sim *sim, const struct object_meta *meta, struct str text,
                          struct err *err)
{
    size_t space = str_find_char(text, ' ');
    int64_t at_ms = 0;
    struct condition condition;
    if (space >= text.len || !duration_parse(str_take(text, space), &at_ms) || at_ms < 0 ||
        !split_condition(strip(str_skip(text, space)), &condition)) {
        return err_set(err, RC_INVALID,
                       "Node " STR_FMT ": metadata.annotations[" SIM_ANNOTATION_CONDITIONS
                       "]: \"" STR_FMT "\" says no time and condition; write it like "
                       "\"10m Ready=False, 30m Ready=True\"",
                       STR_ARG(meta->name), STR_ARG(text));
    }
    plan_condition(sim, meta, at_ms, &condition);
    return RC_SUCCESS;
}

static struct rc plan_conditions(struct sim *sim, const struct object_meta *meta, struct err *err)
{
    struct str rest = string_map_get(&meta->annotations, SIM_ANNOTATION_CONDITIONS);
    for (uint32_t count = 0; str_is_set(rest) && !str_is_empty(strip(rest)); count++) {
        if (count == CHANGES_MAX) {
            return err_set(err, RC_INVALID,
                           "Node " STR_FMT ": metadata.annotations[" SIM_ANNOTATION_CONDITIONS
                           "] has more than %d changes",
                           STR_ARG(meta->name), CHANGES_MAX);
        }
        size_t end = str_find_char(rest, ',');
        TRY(plan_one(sim, meta, strip(str_take(rest, end)), err));
        rest = end < rest.len ? str_skip(rest, end + 1) : STR_NONE;
    }
    return RC_SUCCESS;
}

static void delete_later(struct sim *sim, struct task *task)
{
    const struct object_meta *meta = task->value;
    (void)sim_delete(sim, task->kind, meta->namespace_name, meta->name);
}

struct rc changes_plan(struct sim *sim, const struct object *object, struct err *err)
{
    int64_t delete_ms;
    const char *kind = kind_info(object->kind)->name;
    TRY(apply_duration(object->value, kind, SIM_ANNOTATION_DELETE_AFTER, &delete_ms, err));
    if (object->kind == KIND_NODE) {
        TRY(plan_conditions(sim, object->value, err));
    }
    if (delete_ms >= 0) {
        int64_t at_ms = delete_ms > sim->now_ms ? delete_ms : sim->now_ms;
        struct task *task = agenda_add(sim, at_ms, delete_later, STR_NONE);
        task->kind = object->kind;
        task->value = object_clone(kind_info(object->kind)->schema, object->value);
    }
    return RC_SUCCESS;
}
