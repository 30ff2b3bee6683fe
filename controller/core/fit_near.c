/* fit_near.c - which pods on their way could meet a gang's pods at all.
 *
 * Most gangs that are starting are on other nodes: of another flavor, another rack. Those that
 * share no node with the candidate, nor with anybody that does, can neither take a place of its nor
 * lose one to it, so the worst case needn't be worked out for them. */
#include "reach.h"
#include "topology.h"

#include <string.h>

struct node_bits {
    uint64_t *bits; /* one per node, in the order of names */
};

static struct node_bits bits_of(struct core *core, const struct pod_demand *demand, size_t words)
{
    struct node_bits reach = {.bits = ARENA_ARRAY(&core->scratch, uint64_t, words)};
    const struct reach *known = reach_of(core, demand);
    if (known != NULL && demand->domain != NULL) {
        struct node_indexes nodes = topology_nodes(core, demand->domain);
        for (uint32_t i = 0; i < nodes.count; i++) {
            uint32_t at = nodes.items[i];
            reach.bits[at / 64] |= known->bits[at / 64] & (UINT64_C(1) << (at % 64));
        }
        return reach;
    }
    if (known != NULL) {
        memcpy(reach.bits, known->bits, words * sizeof(uint64_t));
        return reach;
    }
    size_t index = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (node_exclusion(core, demand, node) == EXCLUDED_COUNT) {
            reach.bits[index / 64] |= UINT64_C(1) << (index % 64);
        }
        index++;
    }
    return reach;
}

static bool bits_meet(const struct node_bits *a, const struct node_bits *b, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        if ((a->bits[i] & b->bits[i]) != 0) {
            return true;
        }
    }
    return false;
}

static void bits_join(struct node_bits *a, const struct node_bits *b, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        a->bits[i] |= b->bits[i];
    }
}

struct crowd_list fit_near(struct core *core, const struct crowd_list *list,
                           const struct fit_wants *wants)
{
    /* A device that isn't bound to a node can be asked for from anywhere. */
    if (list->count == 0 || core->roaming_devices > 0) {
        return *list;
    }
    size_t words = HASH_COUNT(core->nodes) / 64 + 1;
    struct node_bits met = {.bits = ARENA_ARRAY(&core->scratch, uint64_t, words)};
    for (uint32_t w = 0; w < wants->count; w++) {
        struct node_bits own = bits_of(core, &wants->items[w].demand, words);
        bits_join(&met, &own, words);
    }
    struct node_bits *reaches = ARENA_ARRAY(&core->scratch, struct node_bits, list->count);
    bool *is_near = ARENA_ARRAY(&core->scratch, bool, list->count);
    for (uint32_t i = 0; i < list->count; i++) {
        reaches[i] = bits_of(core, &list->items[i].demand, words);
    }
    bool is_growing = true;
    while (is_growing) {
        is_growing = false;
        for (uint32_t i = 0; i < list->count; i++) {
            if (!is_near[i] && bits_meet(&met, &reaches[i], words)) {
                is_near[i] = true;
                is_growing = true;
                bits_join(&met, &reaches[i], words);
            }
        }
    }
    struct crowd_list near = {.is_incomplete = list->is_incomplete};
    near.items = ARENA_ARRAY(&core->scratch, struct crowd, list->count);
    for (uint32_t i = 0; i < list->count; i++) {
        if (is_near[i]) {
            near.items[near.count++] = list->items[i];
        }
    }
    return near;
}
