/* fit_plan.c - see fit_plan.h. */
#include "fit_plan.h"

#include <assert.h>

#include "ask.h"
#include "shadow.h"

#include "tallyman/base/alloc.h"

void fit_plan_init(struct core *core)
{
    core->plan = MEM_NEW(struct plan);
}

void fit_plan_free(struct core *core)
{
    mem_free(core->plan->entries);
    mem_free(core->plan->layers);
    mem_free(core->plan);
}

void fit_plan_new(struct core *core)
{
    struct plan *plan = core->plan;
    plan->entry_count = plan->layer_count = plan->layers_end = 0;
    plan->is_lost = false;
    core->plan_epoch++;
    for (struct node_state *node = core->planned_nodes; node != NULL; node = node->next_planned) {
        node_touch(core, node);
    }
    core->planned_nodes = NULL;
}

/* -- what is planned -------------------------------------------------------------------------- */

static void note(struct core *core, struct plan_entry entry)
{
    struct plan *plan = core->plan;
    plan->entries = mem_grow(plan->entries, plan->entry_count, &plan->entry_capacity,
                             sizeof(struct plan_entry));
    plan->entries[plan->entry_count++] = entry;
}

void plan_note_pods(struct core *core, struct node_state *node, const struct pod_set *set,
                    int64_t pods)
{
    note(core, (struct plan_entry){.node = node, .set = set, .pods = pods});
}

void plan_note_device(struct core *core, struct device_state *device)
{
    note(core, (struct plan_entry){.device = device});
}

void plan_drop_device(struct core *core, const struct device_state *device)
{
    struct plan *plan = core->plan;
    assert(plan->entry_count > 0 && plan->entries[plan->entry_count - 1].device == device);
    plan->entry_count--;
}

void plan_note_other(struct core *core)
{
    core->plan->is_lost = true;
}

void plan_lose(struct core *core)
{
    struct plan *plan = core->plan;
    plan->is_lost = true;
    plan->layer_count = plan->lone_count = 0;
}

static void take_back_entry(struct core *core, const struct plan_entry *entry)
{
    if (entry->device != NULL) {
        device_take_back(core, entry->device);
        return;
    }
    struct node_state *node = entry->node;
    struct str pods = resource_find(core, STR(RESOURCE_PODS));
    assert(node->plan_epoch == core->plan_epoch);
    vector_add_all(&node->planned, &entry->set->per_pod, -entry->pods);
    vector_add(&node->planned, pods, -entry->pods);
    if (vector_get(&node->planned, pods) == 0) {
        vector_clear(&node->planned); /* as if nobody had been there */
    }
    node_touch(core, node);
}

/* What the candidate has, and all layers from that one on. */
static void take_back(struct core *core, struct plan *plan, uint32_t layer)
{
    uint32_t end = layer < plan->layer_count ? plan->layers[layer].first : plan->layers_end;
    while (plan->entry_count > end) {
        take_back_entry(core, &plan->entries[--plan->entry_count]);
    }
    plan->layer_count = layer < plan->layer_count ? layer : plan->layer_count;
    plan->layers_end = end;
}

/* -- the pods on their way -------------------------------------------------------------------- */

static bool is_same_demand(const struct pod_demand *a, const struct pod_demand *b)
{
    if (a->set != b->set || a->node_selector != b->node_selector || a->domain != b->domain ||
        a->flavor_count != b->flavor_count || a->is_written != b->is_written) {
        return false;
    }
    for (uint32_t i = 0; i < a->flavor_count; i++) {
        if (a->flavors[i] != b->flavors[i]) {
            return false;
        }
    }
    return true;
}

/* How many more find a place doesn't depend on how many have one, nor on where those are. */
static bool may_go_on(const struct core *core, const struct plan *plan,
                      const struct pod_demand *demand)
{
    return !plan->is_inexact && core->apart_pods == 0 && demand->set->claim_count == 0 &&
           !ask_is_special(demand->set->ask) && !pod_set_keeps_apart(demand->set);
}

static void add_layer(struct core *core, struct plan *plan, const struct crowd *crowd)
{
    plan->layers =
        mem_grow(plan->layers, plan->layer_count, &plan->layer_capacity, sizeof(struct plan_layer));
    struct plan_layer *layer = &plan->layers[plan->layer_count++];
    *layer = (struct plan_layer){
        .demand = crowd->demand, .pods = crowd->pods, .first = plan->entry_count};
    plan->is_inexact = false;
    (void)fit_place(core, &crowd->demand, crowd->pods);
    layer->may_go_on = may_go_on(core, plan, &crowd->demand);
    plan->layers_end = plan->entry_count;
}

static void extend_layer(struct core *core, struct plan *plan, struct plan_layer *layer,
                         int64_t pods)
{
    plan->is_inexact = false;
    (void)fit_place(core, &layer->demand, pods - layer->pods);
    layer->pods = pods;
    layer->may_go_on = may_go_on(core, plan, &layer->demand);
    plan->layers_end = plan->entry_count;
}

/* The layers that stand for the first crowds of the list, all pods or some of them. */
static uint32_t count_kept(const struct plan *plan, const struct crowd_list *list)
{
    uint32_t kept = 0;
    while (kept < plan->layer_count && kept < list->count) {
        const struct plan_layer *layer = &plan->layers[kept];
        const struct crowd *crowd = &list->items[kept];
        bool is_same = is_same_demand(&layer->demand, &crowd->demand);
        if (!is_same || layer->pods > crowd->pods ||
            (layer->pods < crowd->pods && !layer->may_go_on)) {
            break;
        }
        kept++;
        if (layer->pods < crowd->pods) {
            break;
        }
    }
    return kept;
}

/* Only within a pass does nothing change beneath a plan. Devices that no node owns are placed by
 * what is planned anywhere. */
static bool may_keep(const struct core *core)
{
    return core->is_passing && !core->is_what_if && !core->options.is_plain &&
           core->roaming_devices == 0 && shadow_now(core) == NULL;
}

/* What a search for devices has found is part of the judgement that it was made for. */
static bool has_found_trouble(const struct core *core)
{
    return core->asked_is_too_hard || core->asked_is_tied || core->asked_held_back != NULL;
}

void fit_plan_promised(struct core *core, const struct crowd_list *list)
{
    struct plan *plan = core->plan;
    if (!may_keep(core)) {
        fit_plan_new(core);
        fit_place_promises(core, list);
        plan_note_other(core);
        return;
    }
    if (plan->is_lost || plan->pass != core->pass) {
        fit_plan_new(core);
        plan->pass = core->pass;
    }
    uint32_t steps = core->search_steps;
    uint32_t kept = count_kept(plan, list);
    take_back(core, plan, kept);
    if (kept > 0 && plan->layers[kept - 1].pods < list->items[kept - 1].pods) {
        extend_layer(core, plan, &plan->layers[kept - 1], list->items[kept - 1].pods);
    }
    for (uint32_t i = kept; i < list->count; i++) {
        add_layer(core, plan, &list->items[i]);
    }
    if (core->search_steps != steps || has_found_trouble(core)) {
        plan_note_other(core);
    }
}

/* -- where nothing is planned ------------------------------------------------------------------ */

static struct plan_lone *lone_find(struct core *core, const struct pod_demand *demand,
                                   bool is_contested)
{
    struct plan *plan = core->plan;
    if (plan->lone_pass != core->pass) {
        plan->lone_pass = core->pass;
        plan->lone_count = 0;
    }
    for (uint32_t i = 0; i < plan->lone_count; i++) {
        struct plan_lone *lone = &plan->lone[i];
        if (lone->is_contested == is_contested &&
            fit_is_same_selector(lone->demand.node_selector, demand->node_selector) &&
            fit_is_one_crowd(core, &lone->demand, demand)) {
            return lone;
        }
    }
    return NULL;
}

static void lone_keep(struct plan *plan, struct plan_lone *known, const struct plan_lone *lone)
{
    if (known != NULL) {
        *known = *lone;
    } else if (plan->lone_count < PLAN_LONE_MAX) {
        plan->lone[plan->lone_count++] = *lone;
    }
}

int64_t fit_place_alone(struct core *core, const struct pod_demand *demand, int64_t want,
                        bool is_contested)
{
    struct plan *plan = core->plan;
    /* Another selector may be gone before the pass is over. */
    bool may_be_kept = may_keep(core) && demand->node_selector == &demand->set->node_selector;
    struct plan_lone *known = may_be_kept ? lone_find(core, demand, is_contested) : NULL;
    if (known != NULL && (want <= known->placed || known->placed < known->asked)) {
        return want < known->placed ? want : known->placed;
    }
    uint32_t steps = core->search_steps;
    fit_plan_new(core);
    plan->is_inexact = false;
    core->plan_is_contested = is_contested;
    int64_t placed = fit_place(core, demand, want);
    core->plan_is_contested = false;
    bool is_clear = may_go_on(core, plan, demand) && !has_found_trouble(core);
    if (may_be_kept && is_clear && core->search_steps == steps) {
        struct plan_lone lone = {*demand, is_contested, want, placed};
        lone_keep(plan, known, &lone);
    }
    return placed;
}
