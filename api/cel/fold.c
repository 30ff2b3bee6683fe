/* Comprehensions. Source: cel-go interpreter/interpretable.go, evalFold and folder. */
#include "eval.h"

struct cel_value cel_eval_ident(struct cel_eval *ev, const struct cel_node *node)
{
    if (!cel_charge(ev, 1)) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    if (node->slot == CEL_SLOT_DEVICE) {
        return cel_device_value(ev);
    }
    if (node->slot == CEL_SLOT_SELF) {
        return ev->self;
    }
    struct cel_slot *slot = &ev->slots[node->slot];
    if (slot->state == CEL_SLOT_PENDING) {
        slot->value = cel_eval_node(ev, slot->init);
        slot->state = CEL_SLOT_SET;
    }
    if (slot->state == CEL_SLOT_EMPTY) {
        return cel_fault(ev, "no such attribute:", node->name);
    }
    return slot->value;
}

static void set_slot(struct cel_slot *slot, struct cel_value value)
{
    slot->state = CEL_SLOT_SET;
    slot->value = value;
}

/* One round; false: the condition says that it was the last. */
static bool step(struct cel_eval *ev, const struct cel_fold *fold)
{
    struct cel_value condition = cel_eval_node(ev, fold->condition);
    if (condition.kind == CEL_BOOL && !condition.boolean) {
        return false;
    }
    struct cel_value value = cel_eval_node(ev, fold->step);
    set_slot(&ev->slots[fold->slot], value);
    return cel_work(ev, 1);
}

static void fold_list(struct cel_eval *ev, const struct cel_fold *fold, const struct cel_list *list)
{
    struct cel_slot *slots = &ev->slots[fold->slot];
    bool is_pair = str_is_set(fold->iter_var2);
    for (uint32_t i = 0; i < list->count && ev->stop == RC_OK; i++) {
        if (is_pair) {
            set_slot(&slots[1], cel_int(i));
            set_slot(&slots[2], list->items[i]);
        } else {
            set_slot(&slots[1], list->items[i]);
        }
        if (!step(ev, fold)) {
            return;
        }
    }
}

static void fold_map(struct cel_eval *ev, const struct cel_fold *fold, const struct cel_map *map)
{
    struct cel_slot *slots = &ev->slots[fold->slot];
    const struct cel_map *entries = cel_map_entries(ev, map);
    for (uint32_t i = 0; entries != NULL && i < entries->count && ev->stop == RC_OK; i++) {
        set_slot(&slots[1], entries->buffer->entries[i].key);
        set_slot(&slots[2], entries->buffer->entries[i].value);
        if (!step(ev, fold)) {
            return;
        }
    }
}

struct cel_value cel_eval_fold(struct cel_eval *ev, const struct cel_node *node)
{
    const struct cel_fold *fold = node->fold;
    struct cel_slot *slots = &ev->slots[fold->slot];
    struct cel_value range = cel_eval_node(ev, fold->range);
    if (cel_is_error(range)) {
        return range;
    }
    slots[0] = (struct cel_slot){.state = CEL_SLOT_PENDING, .init = fold->init};
    slots[1].state = CEL_SLOT_EMPTY;
    slots[2].state = CEL_SLOT_EMPTY;
    if (range.kind == CEL_LIST) {
        fold_list(ev, fold, range.list);
    } else if (range.kind == CEL_MAP) {
        fold_map(ev, fold, range.map);
    } else {
        return cel_fault(ev, "a macro walks over a list or a map, this is a",
                         cel_kind_name(range.kind));
    }
    slots[1].state = CEL_SLOT_EMPTY;
    slots[2].state = CEL_SLOT_EMPTY;
    return ev->stop == RC_OK ? cel_eval_node(ev, fold->result) : cel_stop(ev, RC_LIMIT, NULL);
}
