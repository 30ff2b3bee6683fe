#include "eval.h"

#include "tallyman/base/limits.h"

struct cel_value cel_fault(struct cel_eval *ev, const char *what, struct str detail)
{
    struct cel_fault *fault = cel_alloc(ev, 1, sizeof(*fault));
    if (fault == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    *fault = (struct cel_fault){.what = what, .detail = detail, .position = CEL_NO_POSITION};
    return (struct cel_value){.kind = CEL_ERROR, .fault = fault};
}

struct cel_value cel_no_overload(struct cel_eval *ev)
{
    return cel_fault(ev, "no such overload: the values are of the wrong types", STR_NONE);
}

struct cel_value cel_stop(struct cel_eval *ev, enum rc_code code, const char *text)
{
    if (ev->stop == RC_OK) {
        ev->stopped = (struct cel_fault){.what = "stopped"};
        ev->stop = code;
        ev->stop_text = text == NULL ? "it takes too much memory" : text;
    }
    return (struct cel_value){.kind = CEL_ERROR, .fault = &ev->stopped};
}

bool cel_charge(struct cel_eval *ev, uint64_t cost)
{
    if (__builtin_add_overflow(ev->cost, cost, &ev->cost) || ev->cost > CEL_COST_MAX) {
        (void)cel_stop(ev, RC_LIMIT, "it costs more than the limit allows");
        return false;
    }
    return ev->stop == RC_OK;
}

bool cel_work(struct cel_eval *ev, uint64_t elements)
{
    ev->work += elements;
    if (ev->work > CEL_WORK_MAX) {
        (void)cel_stop(ev, RC_LIMIT, "it compares or copies too much");
        return false;
    }
    return ev->stop == RC_OK;
}

void *cel_alloc(struct cel_eval *ev, size_t count, size_t item_bytes)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, item_bytes, &bytes) ||
        __builtin_add_overflow(ev->bytes, bytes, &ev->bytes) || ev->bytes > CEL_MEMORY_MAX_BYTES) {
        (void)cel_stop(ev, RC_LIMIT, NULL);
        ev->bytes = CEL_MEMORY_MAX_BYTES + 1;
        return NULL;
    }
    return arena_alloc(ev->scratch, bytes == 0 ? 1 : bytes);
}

const struct cel_value *cel_box(struct cel_eval *ev, struct cel_value value)
{
    struct cel_value *box = cel_alloc(ev, 1, sizeof(*box));
    if (box != NULL) {
        *box = value;
    }
    return box;
}

/* && and ||: the first value that decides wins, wherever errors stand. */
static struct cel_value eval_row(struct cel_eval *ev, const struct cel_node *node)
{
    bool decisive = node->kind == CEL_OR;
    struct cel_value error = {.kind = CEL_NULL};
    for (uint32_t i = 0; i < node->arg_count; i++) {
        struct cel_value value = cel_eval_node(ev, node->args[i]);
        if (ev->stop != RC_OK) {
            return value;
        }
        if (value.kind == CEL_BOOL) {
            if (value.boolean == decisive) {
                return value;
            }
        } else if (error.kind != CEL_ERROR) {
            error = cel_is_error(value) ? value : cel_no_overload(ev);
        }
    }
    return error.kind == CEL_ERROR ? error : cel_bool(!decisive);
}

static struct cel_value eval_ternary(struct cel_eval *ev, const struct cel_node *node)
{
    struct cel_value condition = cel_eval_node(ev, node->args[0]);
    if (condition.kind != CEL_BOOL) {
        return cel_is_error(condition) ? condition : cel_no_overload(ev);
    }
    return cel_eval_node(ev, node->args[condition.boolean ? 1 : 2]);
}

/* Unwraps the value behind a '?'; false: there is none, or *ret_error is set. */
static bool take_optional(struct cel_eval *ev, struct cel_value *value, struct cel_value *ret_error)
{
    *ret_error = (struct cel_value){.kind = CEL_NULL};
    if (value->kind != CEL_OPTIONAL) {
        *ret_error = cel_fault(ev, "behind '?' an optional is expected, this is a",
                               cel_kind_name(value->kind));
        return false;
    }
    if (value->optional == NULL) {
        return false;
    }
    *value = *value->optional;
    return true;
}

static struct cel_value eval_list(struct cel_eval *ev, const struct cel_node *node)
{
    struct cel_value *items = cel_list_items(ev, node->arg_count);
    uint32_t count = 0;
    if (items == NULL || !cel_charge(ev, 10)) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    for (uint32_t i = 0; i < node->arg_count; i++) {
        struct cel_value error;
        struct cel_value value = cel_eval_node(ev, node->args[i]);
        if (cel_is_error(value)) {
            return value;
        }
        if (node->optionals != NULL && node->optionals[i] && !take_optional(ev, &value, &error)) {
            if (cel_is_error(error)) {
                return error;
            }
            continue;
        }
        items[count++] = value;
    }
    return cel_list_value(ev, items, count);
}

static struct cel_value eval_map(struct cel_eval *ev, const struct cel_node *node)
{
    struct cel_value map = cel_map_new(ev, node->arg_count / 2);
    if (!cel_charge(ev, 30)) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    for (uint32_t i = 0; i < node->arg_count && !cel_is_error(map); i += 2) {
        struct cel_value error;
        struct cel_value key = cel_eval_node(ev, node->args[i]);
        if (cel_is_error(key)) {
            return key;
        }
        struct cel_value value = cel_eval_node(ev, node->args[i + 1]);
        if (cel_is_error(value)) {
            return value;
        }
        if (key.kind == CEL_BYTES || key.kind == CEL_SEMVER) {
            return cel_stop(ev, RC_INVALID, "bytes and versions can't be a map's key");
        }
        if (node->optionals != NULL && node->optionals[i] && !take_optional(ev, &value, &error)) {
            if (cel_is_error(error)) {
                return error;
            }
            map = cel_map_drop(ev, map.map, key);
            continue;
        }
        map = cel_map_put(ev, map.map, key, value);
    }
    return map;
}

/* Not inlined it writes its value where the caller wants it: a copy of what has just been written
 * in parts takes a third of the time of a loop. */
NOINLINE static struct cel_value eval_kind(struct cel_eval *ev, const struct cel_node *node)
{
    switch (node->kind) {
    case CEL_LITERAL:
        return node->value;
    case CEL_IDENT:
        return cel_eval_ident(ev, node);
    case CEL_CHAIN:
        return cel_eval_chain(ev, node);
    case CEL_AND:
    case CEL_OR:
        return eval_row(ev, node);
    case CEL_TERNARY:
        return eval_ternary(ev, node);
    case CEL_LIST_OF:
        return eval_list(ev, node);
    case CEL_MAP_OF:
        return eval_map(ev, node);
    case CEL_FOLD:
        return cel_eval_fold(ev, node);
    case CEL_CALL:
        return cel_eval_call(ev, node);
    case CEL_SELECT:
    case CEL_INDEX:
        break;
    }
    return cel_stop(ev, RC_INVALID, "it was not planned");
}

struct cel_value cel_eval_node(struct cel_eval *ev, const struct cel_node *node)
{
    struct cel_value value = eval_kind(ev, node);
    if (value.kind == CEL_ERROR && value.fault->position == CEL_NO_POSITION) {
        value.fault->position = node->position;
    }
    return value;
}
