/* ledger_assert.c - what must hold of the ledger after every step. */
#include "internal.h"

#include <assert.h>

static i128 gang_use_of_cell(const struct core *core, const struct gang *gang,
                             const struct quota_cell *cell)
{
    const struct reservation *reservation = gang->reservation;
    i128 sum = reservation_amount(reservation, cell->flavor, cell->resource);
    for (uint32_t c = 0; c < reservation->claim_count; c++) {
        const struct claim_hold *hold = &reservation->claims[c];
        if (ledger_claim_payer(core, hold->key) != gang) {
            continue;
        }
        for (uint32_t i = 0; i < hold->charges.count; i++) {
            const struct charge *charge = &hold->charges.items[i];
            if (str_eq(charge->flavor, cell->flavor) && str_eq(charge->resource, cell->resource)) {
                sum += charge->amount;
            }
        }
    }
    for (const struct pod_state *pod = gang_first_pod(gang); pod != NULL;
         pod = pod->next_in_group) {
        for (uint32_t i = 0; i < pod->surplus.count; i++) {
            const struct charge *charge = &pod->surplus.items[i];
            bool is_of =
                str_eq(charge->flavor, cell->flavor) && str_eq(charge->resource, cell->resource);
            sum += is_of ? charge->amount : 0;
        }
    }
    return sum;
}

static void queue_assert(const struct core *core, const struct queue_state *queue)
{
    uint32_t admitted = 0;
    for (uint32_t i = 0; i < queue->node.cell_count; i++) {
        i128 sum = 0;
        admitted = 0;
        uint32_t at = 0;
        for (const struct gang *gang; (gang = table_next(&core->gangs, &at)) != NULL;) {
            if (gang->reservation != NULL && gang->reservation->queue == queue) {
                sum += gang_use_of_cell(core, gang, &queue->node.cells[i]);
                admitted++;
            }
        }
        assert(sum == queue->node.cells[i].used && "sum of the reservations = used");
    }
    assert(queue->node.cell_count == 0 || admitted == queue->admitted_count);
}

static void node_assert(const struct node_state *node)
{
    struct vector sum = {.items = NULL};
    for (struct pod_state *pod = node->pods; pod != NULL; pod = pod->next_on_node) {
        vector_add_all(&sum, &pod->amounts, 1);
    }
    for (uint32_t i = 0; i < sum.count; i++) {
        assert(vector_get(&node->used, sum.items[i].resource) == sum.items[i].value);
    }
    for (uint32_t i = 0; i < node->used.count; i++) {
        assert(vector_get(&sum, node->used.items[i].resource) == node->used.items[i].value);
    }
    vector_deinit(&sum);
}

void ledger_assert(const struct core *core)
{
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, (struct queue_tree *)(uintptr_t)&core->queue_order) {
        queue_assert(core, queue);
    }
    struct node_state *node;
    RB_FOREACH (node, node_tree, (struct node_tree *)(uintptr_t)&core->node_order) {
        node_assert(node);
    }
    whatif_assert_kept(core);
    for (uint32_t slot = 0; slot < core->device_slots; slot++) {
        const struct device_state *device = core->devices[slot];
        if (device != NULL) {
            struct used_device *used = table_find(&core->used_devices, device->key);
            assert(device->is_used == (used != NULL) && device->used == used);
        }
    }
}
