/* fit_node.c - what one node can take of a gang, in the plan of the current epoch.
 *
 * A plan is a what-if: what is planned on a node or of a device counts only while its epoch is
 * core.plan_epoch, so that a new plan costs one increment. */
#include "ask.h"
#include "bound.h"
#include "fit_plan.h"
#include "shadow.h"
#include "topology.h"

#include "tallyman/base/alloc.h"

static bool has_flavor_labels(const struct pod_demand *demand, const struct node_state *node)
{
    for (uint32_t i = 0; i < demand->flavor_count && !demand->is_written; i++) {
        if (!node_labels_contain(&demand->flavors[i]->spec.node_labels,
                                 &node->object->meta.labels)) {
            return false;
        }
    }
    return true;
}

static bool is_tolerated(const struct pod_demand *demand, const struct taint *taint)
{
    const struct toleration_list *own = &demand->set->tolerations;
    for (uint32_t i = 0; i < own->count; i++) {
        if (toleration_tolerates(&own->items[i], taint)) {
            return true;
        }
    }
    for (uint32_t f = 0; f < demand->flavor_count; f++) {
        const struct toleration_list *added = &demand->flavors[f]->spec.tolerations;
        for (uint32_t i = 0; i < added->count; i++) {
            if (toleration_tolerates(&added->items[i], taint)) {
                return true;
            }
        }
    }
    return false;
}

const struct taint *node_untolerated(const struct pod_demand *demand, const struct node_state *node)
{
    const struct taint_list *taints = &node->object->spec.taints;
    for (uint32_t i = 0; i < taints->count; i++) {
        const struct taint *taint = &taints->items[i];
        if (taint_keeps_off(demand->set, taint) && !is_tolerated(demand, taint)) {
            return taint;
        }
    }
    return NULL;
}

static bool is_selected(const struct pod_demand *demand, const struct node_state *node)
{
    const struct string_map *labels = &node->object->meta.labels;
    const struct affinity *affinity = demand->set->spec->affinity;
    const struct node_affinity *node_affinity = affinity == NULL ? NULL : affinity->node_affinity;
    return pod_set_may_be_on(demand->set, node) &&
           node_labels_contain(&demand->set->node_selector, labels) &&
           node_labels_contain(demand->node_selector, labels) &&
           (demand->domain == NULL || node_labels_contain(&demand->domain->path, labels)) &&
           (node_affinity == NULL ||
            node_selector_matches(node_affinity->required, labels, node->name));
}

bool node_reaches_claims(const struct pod_demand *demand, const struct node_state *node)
{
    for (uint32_t i = 0; i < demand->set->claim_count; i++) {
        const struct claim_state *claim = demand->set->claims[i].claim;
        if (claim_is_allocated(claim) &&
            !node_selector_matches(claim->object->status.allocation->node_selector,
                                   &node->object->meta.labels, node->name)) {
            return false;
        }
    }
    return true;
}

/* Of one that is away: what would keep such pods off it anyhow goes before that. */
static enum exclusion exclusion_away(const struct pod_demand *demand, const struct node_state *node)
{
    if (node_is_eligible(demand, node)) {
        return node->not_ready_since_ms != 0 ? EXCLUDED_NOT_READY : EXCLUDED_CORDONED;
    }
    return !has_flavor_labels(demand, node) ? EXCLUDED_FLAVOR
           : !is_selected(demand, node)     ? EXCLUDED_SELECTOR
                                            : EXCLUDED_TAINT;
}

enum exclusion node_exclusion(const struct core *core, const struct pod_demand *demand,
                              const struct node_state *node)
{
    if (!pod_set_may_be_on(demand->set, node)) {
        return EXCLUDED_SELECTOR;
    }
    if (!node_is_up_for(demand->set, node)) {
        return node->object == NULL ? EXCLUDED_NOT_READY : exclusion_away(demand, node);
    }
    if (!has_flavor_labels(demand, node)) {
        return EXCLUDED_FLAVOR;
    }
    if (!is_selected(demand, node)) {
        return EXCLUDED_SELECTOR;
    }
    if (node_untolerated(demand, node) != NULL) {
        return EXCLUDED_TAINT;
    }
    enum exclusion health = node_health_exclusion(core, demand, node);
    if (health != EXCLUDED_COUNT) {
        return health;
    }
    return node_reaches_claims(demand, node) ? EXCLUDED_COUNT : EXCLUDED_CLAIM;
}

bool node_is_eligible(const struct pod_demand *demand, const struct node_state *node)
{
    const struct taint *taint = node_untolerated(demand, node);
    bool is_kept_off = taint != NULL && !str_starts_with(taint->key, STR("node.kubernetes.io/"));
    return !is_kept_off && has_flavor_labels(demand, node) && is_selected(demand, node);
}

bool node_is_only_away(const struct pod_demand *demand, const struct node_state *node)
{
    return node_is_eligible(demand, node) && node_reaches_claims(demand, node);
}

bool node_is_only_sick(const struct pod_demand *demand, const struct node_state *node)
{
    bool is_cordoned =
        opt_is_true(node->object->spec.unschedulable) && !pod_set_is_bound(demand->set);
    return !is_cordoned && node_is_only_away(demand, node);
}

void node_open_plan(struct core *core, struct node_state *node)
{
    if (node->plan_epoch != core->plan_epoch) {
        node->next_planned = core->planned_nodes;
        core->planned_nodes = node;
        node->plan_epoch = core->plan_epoch;
        vector_clear(&node->planned);
    }
}

i128 node_room(const struct core *core, const struct node_state *node, struct str resource)
{
    i128 planned = node->plan_epoch == core->plan_epoch ? vector_get(&node->planned, resource) : 0;
    i128 freed = core->is_what_if && node->freed_epoch == core->what_if_epoch
                     ? vector_get(&node->freed, resource)
                     : 0;
    i128 free =
        vector_get(&node->capacity, resource) + freed - vector_get(&node->used, resource) - planned;
    return free > 0 ? free : 0;
}

bool device_is_visible(const struct device_state *device, const struct node_state *node)
{
    const struct resource_slice_spec *spec = &device->slice->spec;
    bool is_per_device = opt_is_true(spec->per_device_node_selection);
    const struct opt_bool *all = is_per_device ? &device->device->all_nodes : &spec->all_nodes;
    if (opt_is_true(*all)) {
        return true;
    }
    const struct node_selector *selector =
        is_per_device ? device->device->node_selector : spec->node_selector;
    return selector != NULL &&
           node_selector_matches(selector, &node->object->meta.labels, node->name);
}

/* Those that no node owns, in the order of all. */
static void list_roaming(struct core *core)
{
    core->is_roaming_stale = false;
    core->roaming_count = 0;
    struct device_state *device;
    RB_FOREACH (device, device_tree, &core->device_order) {
        if (device->node == NULL) {
            core->roaming = mem_grow(core->roaming, core->roaming_count, &core->roaming_capacity,
                                     sizeof(struct device_state *));
            core->roaming[core->roaming_count++] = device;
        }
    }
}

struct device_walk device_walk_start(struct core *core, const struct node_state *node)
{
    if (core->is_roaming_stale) {
        list_roaming(core);
    }
    return (struct device_walk){.core = core,
                                .node = node,
                                .own = node->devices,
                                .roaming_end = core->plan_stays_local ? 0 : core->roaming_count};
}

/* All devices of a slice are seen from the same nodes, unless each says for itself. */
static bool walk_sees(struct device_walk *walk, const struct device_state *device)
{
    const struct opt_bool *each = &device->slice->spec.per_device_node_selection;
    if (opt_is_true(*each)) {
        return device_is_visible(device, walk->node);
    }
    if (walk->slice != device->slice) {
        walk->slice = device->slice;
        walk->is_slice_seen = device_is_visible(device, walk->node);
    }
    return walk->is_slice_seen;
}

struct device_state *device_walk_next(struct device_walk *walk)
{
    if (walk->own != NULL) {
        struct device_state *device = walk->own;
        walk->own = device->next_on_node;
        return device;
    }
    while (walk->roaming < walk->roaming_end) {
        struct device_state *device = walk->core->roaming[walk->roaming++];
        if (walk_sees(walk, device)) {
            return device;
        }
    }
    return NULL;
}

int64_t node_free_devices(struct core *core, struct device_profile *profile,
                          struct node_state *node)
{
    int64_t free = 0;
    struct device_walk walk = device_walk_start(core, node);
    struct device_state *device;
    while ((device = device_walk_next(&walk)) != NULL) {
        enum match match = profile_match(core, profile, device);
        if (match == MATCH_FAILED) {
            return INT64_MIN;
        }
        free += match == MATCH_YES && device_is_open(core, device) ? 1 : 0;
    }
    return free;
}

int64_t node_count_devices(struct core *core, struct device_profile *profile,
                           struct node_state *node)
{
    int64_t count = 0;
    struct device_walk walk = device_walk_start(core, node);
    struct device_state *device;
    while ((device = device_walk_next(&walk)) != NULL) {
        count += profile_selects(core, profile, device) ? 1 : 0;
    }
    return count;
}

/* Takes `count` free devices into the plan; remembers them in `taken`. */
static bool take_devices(struct core *core, const struct device_demand *demand,
                         struct node_state *node, struct device_state **taken,
                         uint32_t *taken_count)
{
    int64_t left = demand->count;
    struct device_walk walk = device_walk_start(core, node);
    struct device_state *device;
    while (left > 0 && (device = device_walk_next(&walk)) != NULL) {
        if (!device_is_free(core, device)) {
            continue;
        }
        if (profile_match(core, demand->profile, device) == MATCH_YES) {
            device_plan(core, device);
            taken[(*taken_count)++] = device;
            left--;
        }
    }
    return left == 0;
}

/* All of these requests or none. */
static bool take_all(struct core *core, const struct device_demand *demands, uint32_t count,
                     struct node_state *node)
{
    int64_t devices = 0;
    for (uint32_t i = 0; i < count; i++) {
        devices = sat_add(devices, demands[i].count);
    }
    if (devices > core->device_slots) {
        return false;
    }
    struct device_state **taken =
        ARENA_ARRAY(&core->scratch, struct device_state *, (size_t)devices + 1);
    uint32_t taken_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!take_devices(core, &demands[i], node, taken, &taken_count)) {
            while (taken_count > 0) {
                device_unplan(core, taken[--taken_count]);
            }
            return false;
        }
    }
    return true;
}

bool node_place_claim(struct core *core, const struct shared_claim_demand *claim,
                      struct node_state *node)
{
    node_open_plan(core, node);
    node_touch(core, node);
    return claim->ask == NULL || node_place_asked_once(core, claim->ask, node);
}

bool node_place_claims(struct core *core, const struct pod_demand *demand, struct node_state *node)
{
    for (uint32_t i = 0; i < demand->set->claim_count; i++) {
        const struct shared_claim_demand *claim = &demand->set->claims[i];
        if (!claim_is_allocated(claim->claim) && !node_place_claim(core, claim, node)) {
            return false;
        }
    }
    return true;
}

bool demand_has_new_claims(const struct pod_demand *demand)
{
    for (uint32_t i = 0; i < demand->set->claim_count; i++) {
        if (!claim_is_allocated(demand->set->claims[i].claim)) {
            return true;
        }
    }
    return false;
}

/* Pods that could go there by cpu, memory, pods and the like. */
int64_t node_plain_slots(const struct core *core, const struct pod_demand *demand,
                         const struct node_state *node, int64_t want)
{
    i128 slots = node_room(core, node, STR(RESOURCE_PODS));
    const struct vector *per_pod = &pod_set_on(demand->set, node)->per_pod;
    for (uint32_t i = 0; i < per_pod->count; i++) {
        i128 room = node_room(core, node, per_pod->items[i].resource) / per_pod->items[i].value;
        slots = room < slots ? room : slots;
    }
    int64_t beside = node_slots_beside_others(core, demand->set, node);
    slots = beside < slots ? beside : slots;
    return slots < want ? i128_clamp(slots) : want;
}

static bool has_failing_selector(struct core *core, const struct pod_set *set,
                                 struct node_state *node)
{
    for (uint32_t i = 0; i < set->device_count; i++) {
        if (node_free_devices(core, set->devices[i].profile, node) == INT64_MIN) {
            return true;
        }
    }
    return false;
}

void node_plan_pods(struct core *core, struct node_state *node, const struct pod_set *set,
                    int64_t count)
{
    node_open_plan(core, node);
    node_touch(core, node);
    vector_add_all(&node->planned, &set->per_pod, count);
    vector_add(&node->planned, resource_find(core, STR(RESOURCE_PODS)), count);
    plan_note_pods(core, node, set, count);
}

/* The set, as its pods are on that node, asks for nothing but so many devices. */
static int64_t node_place_counted(struct core *core, const struct pod_set *set,
                                  struct node_state *node, int64_t want, bool is_untouched)
{
    bool is_exact;
    int64_t slots = node_safe_device_slots(core, set, node, &is_exact);
    core->plan->is_inexact = core->plan->is_inexact || !is_exact;
    bool is_alone = set->ask != NULL && !core->plan_is_contested && !set->has_extended;
    if (slots < want && !is_exact && is_alone) {
        return node_place_asked(core, set->ask, node, want);
    }
    if (slots == 0 && is_untouched) {
        slots = 1; /* for one pod kube-scheduler finds any way that there is */
    }
    slots = slots < want ? slots : want;
    int64_t taken = 0;
    while (taken < slots && take_all(core, set->devices, set->device_count, node)) {
        taken++;
    }
    return taken;
}

/* A device in quarantine is one that kube-scheduler may give out. Where a pod takes one kind of
 * device that leaves the more for the others; where it takes several, or some that exclude each
 * other, it could use up what these need. */
static bool may_be_given_resting(struct core *core, const struct pod_set *set,
                                 struct node_state *node)
{
    if (RB_EMPTY(&core->ailing_devices) || set->ask == NULL ||
        (set->device_count <= 1 && !ask_is_special(set->ask))) {
        return false;
    }
    struct device_walk walk = device_walk_start(core, node);
    struct device_state *device;
    while ((device = device_walk_next(&walk)) != NULL) {
        for (uint32_t o = 0; o < set->ask->option_count && device->is_resting; o++) {
            struct device_profile *profile = set->ask->options[o].profile;
            if (profile_match(core, profile, device) == MATCH_OUT && device_is_open(core, device) &&
                device_is_held_back(core, profile, device)) {
                core->asked_held_back = device;
                return true;
            }
        }
    }
    return false;
}

static int64_t node_place_devices(struct core *core, const struct pod_set *set,
                                  struct node_state *node, int64_t want, bool is_untouched)
{
    if (has_failing_selector(core, set, node)) {
        return 0; /* kube-scheduler gives up on it, too */
    }
    if (!core->plan_is_healed && may_be_given_resting(core, set, node)) {
        want = is_untouched ? 1 : 0; /* for one pod kube-scheduler finds any way that there is */
    }
    if (!ask_is_special(set->ask)) {
        return node_place_counted(core, set, node, want, is_untouched);
    }
    return core->plan_is_contested ? 0 : node_place_asked(core, set->ask, node, want);
}

int64_t node_place(struct core *core, const struct pod_demand *demand, struct node_state *node,
                   int64_t want)
{
    const struct pod_set *set = pod_set_on(demand->set, node);
    core->cost.nodes_visited++;
    node_open_plan(core, node);
    bool is_untouched = node->planned.count == 0;
    int64_t slots = node_plain_slots(core, demand, node, want);
    if (extended_is_refused(demand->set, node)) {
        return 0;
    }
    if ((set->device_count > 0 || set->ask != NULL) && slots > 0) {
        slots = node_place_devices(core, set, node, slots, is_untouched);
    }
    if (slots > 0) {
        node_plan_pods(core, node, set, slots);
    }
    return slots;
}

void node_crowd(struct core *core, const struct pod_demand *demand, struct node_state *node,
                int64_t pods)
{
    const struct vector *per_pod = &pod_set_on(demand->set, node)->per_pod;
    struct str pods_name = resource_find(core, STR(RESOURCE_PODS));
    node_open_plan(core, node);
    plan_note_other(core);
    struct vector planned = node->planned;
    node->planned = (struct vector){.items = NULL};
    int64_t slots = node_plain_slots(core, demand, node, pods);
    node->planned = planned;
    if (slots > 0) {
        vector_add_all(&node->planned, per_pod, slots);
        vector_add(&node->planned, pods_name, slots);
        node_touch(core, node);
    }
}
