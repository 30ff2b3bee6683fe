/* schedule_device.c - picks the devices for a pod's claims at one node, as kube-scheduler's
 * allocator does (k8s.io/dynamic-resource-allocation/structured): depth first over all requests,
 * devices in order of their keys. What it can't judge it doesn't allocate. */
#include "sim_internal.h"

#include "tallyman/base/limits.h"

#define ALLOCATION_STEPS_MAX 100000

struct pick {
    struct pod_claim *claim;
    const struct device_request *request;
    const struct sim_device *device;
};

struct allocation {
    struct sim *sim;
    const struct node *node;
    struct pick *picks;
    const struct sim_device **chosen;
    uint32_t count;
    uint32_t steps;
};

static bool selectors_match(struct sim *sim, const struct device_selector_list *selectors,
                            const struct sim_device *device)
{
    struct cel_device view = {.driver = device->slice->spec.driver, .device = device->device};
    for (uint32_t i = 0; i < selectors->count; i++) {
        if (selectors->items[i].cel == NULL) {
            return false;
        }
        const struct cel_program *program =
            devices_program(sim, selectors->items[i].cel->expression);
        bool is_match = false;
        if (program == NULL ||
            rc_failed(cel_matches(program, &view, &sim->scratch, &is_match, NULL)) || !is_match) {
            return false;
        }
    }
    return true;
}

/* By its slice, or by a DeviceTaintRule. */
static bool is_tainted(const struct sim *sim, const struct sim_device *device,
                       const struct toleration_list *tolerations)
{
    if (taints_find_untolerated(&device->device->taints, tolerations) != NULL) {
        return true;
    }
    for (struct sim_object *object = api_first(sim, KIND_DEVICE_TAINT_RULE); object != NULL;
         object = api_next(object)) {
        const struct device_taint_rule *rule = object->value;
        struct taint taint = rule->spec.taint;
        struct taint_list one = {.items = &taint, .count = 1};
        if (device_taint_rule_selects(rule, &device->slice->spec, device->device->name) &&
            taints_find_untolerated(&one, tolerations) != NULL) {
            return true;
        }
    }
    return false;
}

static bool device_suits(struct allocation *allocation, const struct device_request_exact *exact,
                         const struct sim_device *device, uint32_t chosen_count)
{
    struct sim *sim = allocation->sim;
    if (device_use_count(sim, device->key) > 0 || !device_is_at_node(device, allocation->node) ||
        is_tainted(sim, device, &exact->tolerations)) {
        return false;
    }
    for (uint32_t i = 0; i < chosen_count; i++) {
        if (allocation->chosen[i] == device) {
            return false;
        }
    }
    const struct sim_object *class = api_find(sim, KIND_DEVICE_CLASS, exact->device_class_name);
    return class != NULL &&
           selectors_match(sim, &((const struct device_class *)class->value)->spec.selectors,
                           device) &&
           selectors_match(sim, &exact->selectors, device) &&
           device_counters_allow(sim, device, allocation->chosen, chosen_count);
}

/* Equal picks in a row only look behind the one before: the order within a request says nothing. */
static uint32_t first_candidate(const struct allocation *allocation, uint32_t at,
                                const struct device_list_cache *list)
{
    if (at == 0 || allocation->picks[at - 1].request != allocation->picks[at].request ||
        allocation->picks[at - 1].claim != allocation->picks[at].claim) {
        return 0;
    }
    return (uint32_t)(allocation->chosen[at - 1] - list->items) + 1;
}

/* Fills the picks one after the other; goes back to the last where no device is left. */
static bool choose(struct allocation *allocation)
{
    const struct device_list_cache *list = devices_list(allocation->sim);
    uint32_t *next = ARENA_ARRAY(&allocation->sim->scratch, uint32_t, allocation->count + 1);
    uint32_t at = 0;
    bool is_fresh = true;
    while (at < allocation->count) {
        if (is_fresh) {
            next[at] = first_candidate(allocation, at, list);
        }
        const struct device_request_exact *exact = allocation->picks[at].request->exactly;
        while (next[at] < list->count &&
               !device_suits(allocation, exact, &list->items[next[at]], at)) {
            next[at]++;
        }
        if (++allocation->steps > ALLOCATION_STEPS_MAX) {
            return false;
        }
        is_fresh = next[at] < list->count;
        if (is_fresh) {
            allocation->chosen[at] = &list->items[next[at]++];
            at++;
        } else if (at-- == 0) {
            return false;
        }
    }
    return true;
}

static int64_t request_count(const struct device_request_exact *exact)
{
    return exact->count.is_set ? exact->count.value : 1;
}

/* Whether the simulator knows what is asked. */
static bool request_is_known(const struct device_request *request)
{
    const struct device_request_exact *exact = request->exactly;
    bool is_counted = exact != NULL && (!str_is_set(exact->allocation_mode) ||
                                        str_eq_c(exact->allocation_mode, "ExactCount"));
    return is_counted && !(exact->admin_access.is_set && exact->admin_access.value) &&
           (exact->capacity == NULL || exact->capacity->requests.count == 0) &&
           request_count(exact) > 0 && request_count(exact) <= CLAIM_DEVICES_MAX;
}

static bool collect_picks(struct allocation *allocation, struct pod_claim *claim)
{
    const struct device_claim *devices = &claim->object->spec.devices;
    if (devices->constraints.count > 0) {
        return false;
    }
    for (uint32_t i = 0; i < devices->requests.count; i++) {
        const struct device_request *request = &devices->requests.items[i];
        if (!request_is_known(request)) {
            return false;
        }
        for (int64_t n = 0; n < request_count(request->exactly); n++) {
            allocation->picks[allocation->count++] =
                (struct pick){.claim = claim, .request = request};
        }
    }
    return true;
}

static uint32_t count_room(const struct placement *placement)
{
    uint32_t room = 1;
    for (uint32_t i = 0; i < placement->claim_count; i++) {
        room += placement->claims[i].object->spec.devices.requests.count * CLAIM_DEVICES_MAX;
    }
    return room;
}

static void write_results(struct allocation *allocation)
{
    for (uint32_t i = 0; i < allocation->count; i++) {
        const struct pick *pick = &allocation->picks[i];
        const struct sim_device *device = allocation->chosen[i];
        pick->claim->results[pick->claim->result_count++] =
            (struct allocation_result){.request = pick->request->name,
                                       .driver = device->slice->spec.driver,
                                       .pool = device->slice->spec.pool.name,
                                       .device = device->device->name};
    }
}

bool devices_allocate(struct sim *sim, struct placement *placement, const struct node *node)
{
    placement->claim_count = placement->own_claim_count;
    if (extended_claim_for(sim, placement, node, &placement->claims[placement->claim_count])) {
        placement->claim_count++;
    }
    struct allocation allocation = {.sim = sim, .node = node};
    uint32_t room = count_room(placement);
    allocation.picks = ARENA_ARRAY(&sim->scratch, struct pick, room);
    allocation.chosen = ARENA_ARRAY(&sim->scratch, const struct sim_device *, room);
    for (uint32_t i = 0; i < placement->claim_count; i++) {
        struct pod_claim *claim = &placement->claims[i];
        claim->result_count = 0;
        claim->results = ARENA_ARRAY(&sim->scratch, struct allocation_result, room);
        const struct resource_claim *object = claim->object;
        if (claim->is_allocated) {
            if (!node_selector_matches(object->status.allocation->node_selector, &node->meta.labels,
                                       node->meta.name)) {
                return false;
            }
        } else if (!collect_picks(&allocation, claim)) {
            return false;
        }
    }
    if (!choose(&allocation)) {
        return false;
    }
    write_results(&allocation);
    return true;
}
