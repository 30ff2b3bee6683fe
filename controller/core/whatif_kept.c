/* whatif_kept.c - see whatif.h. Gangs that stop make room for others for seconds or minutes; each
 * decision meanwhile is taken as if they were gone already. */
#include "internal.h"

#include <assert.h>

#include "tallyman/base/alloc.h"

static struct kept_what_if *kept_get(struct core *core)
{
    if (core->kept_what_if == NULL) {
        core->kept_what_if = MEM_NEW(struct kept_what_if);
    }
    return core->kept_what_if;
}

/* What is free there looks otherwise with what is noted, and without. */
static void touch_nodes(struct core *core, const struct kept_what_if *kept)
{
    for (uint32_t i = 0; i < kept->node_count; i++) {
        node_touch(core, kept->nodes[i]);
    }
}

static void keep(struct core *core, struct kept_what_if *kept, struct gang *gang)
{
    gang->is_kept_out = true;
    kept->gangs = mem_grow(kept->gangs, kept->count, &kept->capacity, sizeof(struct gang *));
    kept->gangs[kept->count++] = gang;
    whatif_set_pods(core, gang, true);
}

/* Those that are to be out are marked so. */
static void put_others_back(struct core *core, struct kept_what_if *kept)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < kept->count; i++) {
        struct gang *gang = kept->gangs[i];
        if (gang->is_out) {
            kept->gangs[count++] = gang;
        } else {
            gang->is_kept_out = false;
            whatif_set_pods(core, gang, false);
        }
    }
    kept->count = count;
}

void whatif_begin_without(struct core *core, struct gang *const *gangs, uint32_t count)
{
    struct kept_what_if *kept = kept_get(core);
    whatif_begin(core);
    if (kept->epoch == 0) {
        kept->epoch = core->what_if_epoch;
    }
    core->what_if_epoch = kept->epoch;
    touch_nodes(core, kept);
    for (uint32_t i = 0; i < count; i++) {
        assert(!gangs[i]->is_out);
        gangs[i]->is_out = true;
        whatif_set_quota(core, gangs[i], true);
    }
    put_others_back(core, kept);
    for (uint32_t i = 0; i < count; i++) {
        if (!gangs[i]->is_kept_out) {
            keep(core, kept, gangs[i]);
        }
    }
}

void whatif_end_without(struct core *core, struct gang *const *gangs, uint32_t count)
{
    struct kept_what_if *kept = kept_get(core);
    for (uint32_t i = 0; i < count; i++) {
        gangs[i]->is_out = false;
        whatif_set_quota(core, gangs[i], false);
    }
    touch_nodes(core, kept);
    whatif_end(core);
    if (core->options.is_plain) {
        whatif_forget(core);
    }
}

void whatif_forget(struct core *core)
{
    struct kept_what_if *kept = core->kept_what_if;
    if (kept == NULL) {
        return;
    }
    for (uint32_t i = 0; i < kept->count; i++) {
        kept->gangs[i]->is_kept_out = false;
    }
    kept->epoch = 0;
    kept->count = kept->node_count = 0;
}

bool whatif_is_kept(const struct core *core, uint64_t epoch)
{
    return core->kept_what_if != NULL && epoch != 0 && epoch == core->kept_what_if->epoch;
}

void whatif_free(struct core *core)
{
    if (core->kept_what_if != NULL) {
        mem_free(core->kept_what_if->gangs);
        mem_free(core->kept_what_if->nodes);
        mem_free(core->kept_what_if);
        core->kept_what_if = NULL;
    }
}

void whatif_forget_gang(struct core *core, struct gang *gang)
{
    struct kept_what_if *kept = core->kept_what_if;
    if (gang == NULL || !gang->is_kept_out) {
        return;
    }
    uint32_t at = 0;
    while (kept->gangs[at] != gang) {
        at++;
    }
    kept->gangs[at] = kept->gangs[--kept->count];
    gang->is_kept_out = false;
    core->is_what_if = true;
    core->what_if_epoch = kept->epoch;
    whatif_set_pods(core, gang, false);
    core->is_what_if = false;
}

void whatif_forget_claim(struct core *core, const struct resource_claim *object)
{
    if (object == NULL || core->kept_what_if == NULL || core->kept_what_if->count == 0) {
        return;
    }
    const struct claim_consumer_list *consumers = &object->status.reserved_for;
    for (uint32_t i = 0; i < consumers->count; i++) {
        struct str uid = consumers->items[i].uid;
        struct pod_state *pod = table_find(&core->pods, uid);
        if (pod != NULL && pod->group != NULL) {
            whatif_forget_gang(core, pod->group->gang);
        }
    }
}

/* -- what must hold ---------------------------------------------------------------------------- */

static bool is_kept(const struct pod_state *pod)
{
    return !pod->is_terminal && pod->group != NULL && pod->group->gang != NULL &&
           pod->group->gang->is_kept_out;
}

static void node_assert(const struct core *core, const struct node_state *node)
{
    bool is_noted = whatif_is_kept(core, node->freed_epoch);
    struct vector sum = {.items = NULL};
    for (struct pod_state *pod = node->pods; pod != NULL; pod = pod->next_on_node) {
        if (is_kept(pod)) {
            vector_add_all(&sum, &pod->amounts, 1);
        }
    }
    for (uint32_t i = 0; i < sum.count; i++) {
        assert(is_noted && vector_get(&node->freed, sum.items[i].resource) == sum.items[i].value);
    }
    for (uint32_t i = 0; is_noted && i < node->freed.count; i++) {
        assert(vector_get(&sum, node->freed.items[i].resource) == node->freed.items[i].value);
    }
    vector_deinit(&sum);
}

static void claim_assert(const struct core *core, const struct claim_state *claim)
{
    bool is_noted = whatif_is_kept(core, claim->freed_epoch);
    const struct gang *gang = whatif_claim_user(core, claim);
    bool is_freed = false;
    for (const struct pod_state *pod = gang == NULL || !gang->is_kept_out ? NULL
                                                                          : gang_first_pod(gang);
         pod != NULL; pod = pod->next_in_group) {
        for (uint32_t i = 0; pod->node != NULL && !pod->is_terminal && i < pod->claim_count; i++) {
            is_freed = is_freed || str_eq(pod->claims[i], claim->key);
        }
    }
    assert(is_noted == is_freed && "a claim that is noted as freed is of a gang that is out");
}

void whatif_assert_kept(const struct core *core)
{
    struct node_state *node;
    RB_FOREACH (node, node_tree, (struct node_tree *)(uintptr_t)&core->node_order) {
        node_assert(core, node);
    }
    uint32_t at = 0;
    for (const struct claim_state *claim; (claim = table_next(&core->claims, &at)) != NULL;) {
        claim_assert(core, claim);
    }
}
