/* explain_quota.c - asked, used and limit, from the queue up the tree. */
#include "internal.h"

#define QUOTA_ROWS_MAX 32

static int64_t asked_of(const struct shape *shape, struct str resource)
{
    i128 asked = 0;
    for (uint32_t s = 0; s < shape->set_count; s++) {
        const struct pod_set *set = &shape->sets[s];
        asked += vector_get(&set->per_pod, resource) * set->size.pods;
        asked += str_eq_c(resource, RESOURCE_PODS) ? set->size.pods : 0;
        for (uint32_t i = 0; i < set->device_count; i++) {
            if (str_eq(set->devices[i].profile->class_name, resource)) {
                asked += (i128)set->devices[i].charged * set->size.pods;
            }
        }
        for (uint32_t c = 0; c < set->claim_count; c++) {
            bool is_first = shape_names_first(shape, s, c); /* it is charged once */
            for (uint32_t i = 0; is_first && i < set->claims[c].request_count; i++) {
                bool is_it = str_eq(set->claims[c].requests[i].profile->class_name, resource);
                asked += is_it ? set->claims[c].requests[i].charged : 0;
            }
        }
    }
    return i128_clamp(asked);
}

int64_t shape_devices(const struct shape *shape)
{
    i128 sum = 0;
    for (uint32_t s = 0; s < shape->set_count; s++) {
        const struct pod_set *set = &shape->sets[s];
        for (uint32_t i = 0; i < set->device_count; i++) {
            sum += (i128)set->devices[i].charged * set->size.pods;
        }
        for (uint32_t i = 0; i < set->per_pod.count; i++) {
            bool is_device = resource_is_device(set->per_pod.items[i].resource);
            sum += is_device ? set->per_pod.items[i].value * set->size.pods : 0;
        }
    }
    return i128_clamp(sum);
}

/* What the node can take of it at most, and whether `asked` more is too much there. */
static bool is_limit(const struct quota_node *node, const struct quota_cell *cell, i128 asked)
{
    i128 limit = cell->subtree;
    if (node->parent != NULL) {
        if (cell->borrowing_limit == QUOTA_UNLIMITED) {
            return false; /* it borrows: the tree above decides */
        }
        limit += cell->borrowing_limit;
    }
    return asked > 0 && cell->used + asked > limit;
}

/* What a node can't cover from what is kept for it alone goes up. */
static i128 asked_above(const struct quota_cell *cell, i128 asked)
{
    bool lends_all = cell->lending_limit == QUOTA_UNLIMITED || cell->subtree < cell->lending_limit;
    i128 kept = lends_all ? 0 : cell->subtree - cell->lending_limit;
    i128 local = kept > cell->used ? kept - cell->used : 0;
    return asked > local ? asked - local : 0;
}

static void add_chain(const struct gang *gang, const struct quota_cell *own, i128 asked,
                      struct explanation_quota_list *list, struct arena *arena)
{
    struct str resource = arena_copy_str(arena, own->resource);
    struct str flavor = arena_copy_str(arena, own->flavor);
    struct str asked_text = resource_amount_format(arena, own->resource, i128_clamp(asked));
    const struct quota_node *node = &gang->queue->node;
    for (; node != NULL && list->count < QUOTA_ROWS_MAX; node = node->parent) {
        const struct quota_cell *cell = quota_cell_find(node, own->flavor, own->resource);
        if (cell == NULL) {
            continue;
        }
        list->items[list->count++] = (struct explanation_quota){
            .kind = node->is_cohort ? STR("Cohort") : STR("Queue"),
            .name = arena_copy_str(arena, node->name),
            .flavor = flavor,
            .resource = resource,
            .asked = asked_text,
            .used = resource_amount_format(arena, own->resource, i128_clamp(cell->used)),
            .limit = resource_amount_format(arena, own->resource, i128_clamp(cell->subtree)),
            .limiting = {true, is_limit(node, cell, asked)}};
        asked = asked_above(cell, asked);
    }
}

void explain_quota(const struct gang *gang, struct explanation *explanation, struct arena *arena)
{
    const struct quota_node *node = &gang->queue->node;
    struct explanation_quota_list *list = &explanation->quota;
    list->items = ARENA_ARRAY(arena, struct explanation_quota, QUOTA_ROWS_MAX);
    for (uint32_t i = 0; i < node->cell_count; i++) {
        const struct quota_cell *cell = &node->cells[i];
        int64_t asked = asked_of(gang->shape, cell->resource);
        if (asked > 0 && cell->is_listed) {
            add_chain(gang, cell, asked, list, arena);
        }
    }
    if (list->count == 0) {
        list->items = NULL;
    }
}
