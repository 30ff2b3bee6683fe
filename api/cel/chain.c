/* Fields and indexes. What stands between two '?' and after one is optional, and so is the result.
 * Source: cel-go interpreter/attributes.go, applyQualifiers() and refQualify(). */
#include "eval.h"

static struct cel_value no_such_key(struct cel_eval *ev, struct cel_value key)
{
    return cel_fault(ev,
                     "no such key:", key.kind == CEL_STRING ? key.text : cel_kind_name(key.kind));
}

/* One step. *ret_found is false where there is nothing and `is_test` asks for no error. */
static struct cel_value qualify(struct cel_eval *ev, struct cel_value object, struct cel_value key,
                                bool is_test, bool *ret_found)
{
    struct cel_value value = {.kind = CEL_NULL};
    int64_t index = 0;
    *ret_found = true;
    switch ((int)object.kind) {
    case CEL_MAP:
        if (cel_map_find(ev, object.map, key, &value)) {
            return value;
        }
        break;
    case CEL_LIST:
        if (!cel_list_index(ev, key, &index, &value)) {
            return value;
        }
        if (index >= 0 && index < object.list->count) {
            return object.list->items[index];
        }
        if (!is_test) {
            return cel_fault(ev, "index out of bounds", STR_NONE);
        }
        break;
    case CEL_ERROR:
        return object;
    default:
        break;
    }
    *ret_found = false;
    return is_test ? value : no_such_key(ev, key);
}

static bool is_key(enum cel_kind kind)
{
    return kind == CEL_STRING || kind == CEL_INT || kind == CEL_UINT || kind == CEL_BOOL ||
           kind == CEL_DOUBLE;
}

static struct cel_value qualifier_key(struct cel_eval *ev, const struct cel_qualifier *qualifier)
{
    if (qualifier->index == NULL) {
        return qualifier->key;
    }
    struct cel_value key = cel_eval_node(ev, qualifier->index);
    if (cel_is_error(key) || is_key(key.kind)) {
        return key;
    }
    return cel_fault(ev, "no index can be a", cel_kind_name(key.kind));
}

static struct cel_value none(void)
{
    return (struct cel_value){.kind = CEL_OPTIONAL, .optional = NULL};
}

static struct cel_value wrap(struct cel_eval *ev, struct cel_value value)
{
    return (struct cel_value){.kind = CEL_OPTIONAL, .optional = cel_box(ev, value)};
}

/* What has() gives; as a ternary's branch, behind a '?', the value itself, as in cel-go. */
static struct cel_value test_result(struct cel_eval *ev, const struct cel_node *node,
                                    const struct cel_value *found, bool is_optional)
{
    if (is_optional && node->is_branch) {
        return found != NULL ? wrap(ev, *found) : none();
    }
    return cel_bool(found != NULL);
}

/* Evaluates the key, then takes the step. */
static struct cel_value take_step(struct cel_eval *ev, struct cel_value object,
                                  const struct cel_qualifier *qualifier, bool is_test,
                                  bool *ret_found)
{
    struct cel_value key = qualifier_key(ev, qualifier);
    return cel_is_error(key) ? key : qualify(ev, object, key, is_test, ret_found);
}

/* The steps of the chain, from `value` on. */
static struct cel_value apply(struct cel_eval *ev, const struct cel_node *node,
                              struct cel_value value, bool is_optional)
{
    for (uint32_t i = 0; i < node->qualifier_count; i++) {
        bool is_test = node->is_test && i + 1 == node->qualifier_count;
        bool found = true;
        is_optional = is_optional || node->qualifiers[i].is_optional;
        value = take_step(ev, value, &node->qualifiers[i], is_optional || is_test, &found);
        if (cel_is_error(value) || ev->stop != RC_OK) {
            return value;
        }
        if (is_test || !found) {
            return node->is_test ? test_result(ev, node, found ? &value : NULL, is_optional)
                                 : none();
        }
    }
    return is_optional ? wrap(ev, value) : value;
}

struct cel_value cel_eval_chain(struct cel_eval *ev, const struct cel_node *node)
{
    const struct cel_node *root = node->args[0];
    struct cel_value value = cel_eval_node(ev, root);
    bool is_optional = value.kind == CEL_OPTIONAL;
    if (cel_is_error(value)) {
        return value;
    }
    if (!cel_charge(ev, node->qualifier_count + (root->kind == CEL_IDENT ? 0u : 1u))) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    if (is_optional) {
        if (value.optional == NULL) {
            return node->is_test ? test_result(ev, node, NULL, true) : value;
        }
        value = *value.optional;
    }
    value = apply(ev, node, value, is_optional);
    return ev->stop == RC_OK ? value : cel_stop(ev, RC_LIMIT, NULL);
}
