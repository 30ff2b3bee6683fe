/* whatif.c - see whatif.h. What a gang shares with another (a named claim) counts as not freed. */
#include "internal.h"

#include <assert.h>

#include "tallyman/base/alloc.h"

void whatif_begin(struct core *core)
{
    assert(!core->is_what_if);
    core->is_what_if = true;
    core->what_if_epoch = ++core->what_if_count;
}

void whatif_set_quota(struct core *core, struct gang *gang, bool is_out)
{
    int64_t sign = is_out ? -1 : 1;
    const struct reservation *reservation = gang->reservation;
    for (uint32_t s = 0; s < reservation->set_count; s++) {
        const struct reserved_set *set = &reservation->sets[s];
        for (uint32_t i = 0; i < set->per_pod.count; i++) {
            const struct charge *charge = &set->per_pod.items[i];
            (void)quota_use(&reservation->queue->node, charge->flavor, charge->resource,
                            (i128)charge->amount * set->count * sign);
        }
    }
    for (const struct pod_state *pod = gang->run->surplus_pods == 0 ? NULL : gang_first_pod(gang);
         pod != NULL; pod = pod->next_in_group) {
        for (uint32_t i = 0; i < pod->surplus.count; i++) {
            const struct charge *charge = &pod->surplus.items[i];
            (void)quota_use(&reservation->queue->node, charge->flavor, charge->resource,
                            (i128)charge->amount * sign);
        }
    }
    for (uint32_t c = 0; c < reservation->claim_count; c++) {
        const struct claim_hold *hold = &reservation->claims[c];
        bool is_alone = ledger_claim_payer(core, hold->key) == gang && hold->next_holder == NULL;
        for (uint32_t i = 0; is_alone && i < hold->charges.count; i++) {
            (void)quota_use(&reservation->queue->node, hold->charges.items[i].flavor,
                            hold->charges.items[i].resource,
                            (i128)hold->charges.items[i].amount * sign);
        }
    }
}

/* In a what-if that is kept. */
static void note_node(struct core *core, struct node_state *node)
{
    struct kept_what_if *kept = core->kept_what_if;
    if (kept != NULL && kept->epoch == core->what_if_epoch) {
        kept->nodes = mem_grow(kept->nodes, kept->node_count, &kept->node_capacity,
                               sizeof(struct node_state *));
        kept->nodes[kept->node_count++] = node;
    }
}

static void node_without(struct core *core, const struct pod_state *pod, int64_t sign)
{
    struct node_state *node = pod->node;
    if (node->freed_epoch != core->what_if_epoch) {
        node->freed_epoch = core->what_if_epoch;
        vector_clear(&node->freed);
        note_node(core, node);
    }
    vector_add_all(&node->freed, &pod->amounts, sign);
    node_touch(core, node);
}

/* The gang whose pods are all the consumers of the claim; NULL: there is none. */
const struct gang *whatif_claim_user(const struct core *core, const struct claim_state *claim)
{
    const struct gang *gang = NULL;
    if (!claim_is_allocated(claim)) {
        return NULL;
    }
    const struct claim_consumer_list *consumers = &claim->object->status.reserved_for;
    for (uint32_t i = 0; i < consumers->count; i++) {
        struct str uid = consumers->items[i].uid;
        struct pod_state *pod = table_find(&core->pods, uid);
        if (pod == NULL || pod->group == NULL || (i > 0 && pod->group->gang != gang)) {
            return NULL;
        }
        gang = pod->group->gang;
    }
    return gang;
}

/* The same, asked by one of its pods: which is most often the only one. */
static bool is_only_of(const struct core *core, const struct claim_state *claim,
                       const struct pod_state *pod)
{
    const struct claim_consumer_list *consumers = &claim->object->status.reserved_for;
    bool is_lone = consumers->count == 1 && str_eq(consumers->items[0].uid, pod->uid);
    return is_lone || whatif_claim_user(core, claim) == pod->group->gang;
}

/* Several pods may have one claim. */
static void claim_without(struct core *core, const struct pod_state *pod, struct str key,
                          bool is_out)
{
    struct claim_state *claim = table_find(&core->claims, key);
    bool was_out = claim != NULL && claim->freed_epoch == core->what_if_epoch;
    if (claim == NULL || was_out == is_out || !claim_is_allocated(claim) ||
        !is_only_of(core, claim, pod)) {
        return;
    }
    claim->freed_epoch = is_out ? core->what_if_epoch : 0;
    const struct allocation_result_list *results =
        &claim->object->status.allocation->devices.results;
    for (uint32_t i = 0; i < results->count; i++) {
        if (allocation_is_use(&results->items[i])) {
            device_set_freed(core, &results->items[i], is_out);
        }
    }
}

void whatif_set_pods(struct core *core, struct gang *gang, bool is_out)
{
    const struct kept_what_if *kept = core->kept_what_if;
    bool is_other = kept != NULL && kept->epoch != core->what_if_epoch;
    if (is_other && gang_first_pod(gang) != NULL) {
        whatif_forget(core); /* one thing is noted at a time */
    }
    for (struct pod_state *pod = gang_first_pod(gang); pod != NULL; pod = pod->next_in_group) {
        if (pod->node == NULL || pod->is_terminal) {
            continue;
        }
        node_without(core, pod, is_out ? 1 : -1);
        for (uint32_t i = 0; i < pod->claim_count; i++) {
            claim_without(core, pod, pod->claims[i], is_out);
        }
    }
}

void whatif_take_out(struct core *core, struct gang *gang)
{
    assert(core->is_what_if && !gang->is_out && gang->reservation != NULL);
    gang->is_out = true;
    whatif_set_quota(core, gang, true);
    whatif_set_pods(core, gang, true);
}

void whatif_put_back(struct core *core, struct gang *gang)
{
    assert(core->is_what_if && gang->is_out);
    gang->is_out = false;
    whatif_set_quota(core, gang, false);
    whatif_set_pods(core, gang, false);
}

void whatif_end(struct core *core)
{
    core->is_what_if = false;
}
