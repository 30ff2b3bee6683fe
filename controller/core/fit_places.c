/* fit_places.c - how many of a gang's pods each node has room for, as people are told. */
#include "fit.h"

/* Into its place, the most pods first; what is less than all of a full list goes to the last. */
static void add_node(struct fit_result *result, int64_t pods)
{
    struct node_places *list = result->places;
    uint32_t at = 0;
    while (at < result->place_count && list[at].pods > pods) {
        at++;
    }
    if (at < result->place_count && list[at].pods == pods) {
        list[at].nodes++;
        return;
    }
    if (result->place_count == NODE_PLACES_MAX) {
        struct node_places last = list[NODE_PLACES_MAX - 1];
        list[NODE_PLACES_MAX - 2].nodes += last.nodes;
        list[NODE_PLACES_MAX - 2].pods = last.pods;
        result->place_count--;
        add_node(result, pods);
        return;
    }
    for (uint32_t i = result->place_count++; i > at; i--) {
        list[i] = list[i - 1];
    }
    list[at] = (struct node_places){pods, 1};
}

void fit_list_places(struct core *core, const struct pod_demand *demand, int64_t count,
                     struct fit_result *result)
{
    result->places = ARENA_ARRAY(&core->scratch, struct node_places, NODE_PLACES_MAX);
    result->place_count = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        bool is_in_question = node_exclusion(core, demand, node) == EXCLUDED_COUNT;
        if (is_in_question) {
            add_node(result, node_place(core, demand, node, count));
        }
    }
}
