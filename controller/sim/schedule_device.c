/* schedule_device.c - picks the devices for a pod's claims at one node, as kube-scheduler's
 * allocator does (k8s.io/dynamic-resource-allocation/structured): depth first over all requests,
 * devices in order of their keys. What it can't judge it doesn't allocate. */
#include "sim_internal.h"

#include "tallyman/base/limits.h"

#define ALLOCATION_STEPS_MAX 100000

struct pick {
    struct pod_claim *claim;
    const struct device_request *request;
    const struct device_request_exact *exact; /* the request, or the alternative that is tried */
    const struct sim_device *only;            /* of a request for all: this one; NULL: any */
};

/* A request with alternatives. */
struct choice {
    uint32_t at;    /* the alternative that is tried */
    uint32_t count; /* of them */
};

struct allocation {
    struct sim *sim;
    const struct node *node;
    struct pick *picks;
    const struct sim_device **chosen;
    struct resource_list *taken; /* by pick: of the capacities of a device that is shared */
    uint32_t count;
    uint32_t steps;
    struct choice *choices; /* of the requests that have some, in their order */
    uint32_t choice_count;
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

static bool is_admin(const struct device_request_exact *exact)
{
    return exact->admin_access.is_set && exact->admin_access.value;
}

static bool is_all(const struct device_request_exact *exact)
{
    return str_eq_c(exact->allocation_mode, "All");
}

/* By class and selectors, whoever has it. */
static bool device_matches(struct sim *sim, const struct device_request_exact *exact,
                           const struct sim_device *device, const struct node *node)
{
    const struct sim_object *class = api_find(sim, KIND_DEVICE_CLASS, exact->device_class_name);
    return device_is_at_node(device, node) && class != NULL &&
           selectors_match(sim, &((const struct device_class *)class->value)->spec.selectors,
                           device) &&
           selectors_match(sim, &exact->selectors, device);
}

/* By its full name "domain/name"; one that a driver lists without a domain is of its own. */
static const struct device_attribute *attribute_of(struct arena *arena,
                                                   const struct sim_device *device, struct str name)
{
    const struct device_attribute_map *map = &device->device->attributes;
    for (uint32_t i = 0; i < map->count; i++) {
        struct str key = map->items[i].key;
        if (str_find_char(key, '/') >= key.len) {
            key = arena_format(arena, STR_FMT "/" STR_FMT, STR_ARG(device->slice->spec.driver),
                               STR_ARG(key));
        }
        if (str_eq(key, name)) {
            return &map->items[i];
        }
    }
    return NULL;
}

static bool attributes_equal(const struct device_attribute *a, const struct device_attribute *b)
{
    bool is_same_int = a->int_value.is_set == b->int_value.is_set &&
                       (!a->int_value.is_set || a->int_value.value == b->int_value.value);
    bool is_same_bool = a->bool_value.is_set == b->bool_value.is_set &&
                        (!a->bool_value.is_set || a->bool_value.value == b->bool_value.value);
    return is_same_int && is_same_bool && str_eq(a->string_value, b->string_value) &&
           str_eq(a->version_value, b->version_value);
}

/* A constraint names requests, or of one with alternatives a single one. */
static bool is_constrained(const struct device_constraint *constraint, const struct pick *pick)
{
    bool is_named = constraint->requests.count == 0;
    for (uint32_t i = 0; i < constraint->requests.count; i++) {
        struct str name = constraint->requests.items[i];
        struct str owner = pick->request->name;
        bool is_alternative =
            pick->request->exactly == NULL && name.len == owner.len + 1 + pick->exact->name.len &&
            str_eq(str_take(name, owner.len), owner) && str_ends_with(name, pick->exact->name);
        is_named = is_named || str_eq(name, owner) || is_alternative;
    }
    return is_named;
}

static bool constraint_allows(const struct allocation *allocation, uint32_t at,
                              const struct device_constraint *constraint,
                              const struct sim_device *device)
{
    bool is_match = str_is_set(constraint->match_attribute);
    struct str name = is_match ? constraint->match_attribute : constraint->distinct_attribute;
    const struct pick *pick = &allocation->picks[at];
    if (!is_constrained(constraint, pick)) {
        return true;
    }
    const struct device_attribute *own = attribute_of(&allocation->sim->scratch, device, name);
    for (uint32_t i = 0; i < at && own != NULL; i++) {
        const struct pick *other = &allocation->picks[i];
        if (other->claim != pick->claim || !is_constrained(constraint, other)) {
            continue;
        }
        const struct device_attribute *its =
            attribute_of(&allocation->sim->scratch, allocation->chosen[i], name);
        if (its == NULL || attributes_equal(own, its) != is_match) {
            return false;
        }
    }
    return own != NULL;
}

static bool constraints_allow(const struct allocation *allocation, uint32_t at,
                              const struct sim_device *device)
{
    const struct device_constraint_list *list =
        &allocation->picks[at].claim->object->spec.devices.constraints;
    for (uint32_t i = 0; i < list->count; i++) {
        if (!constraint_allows(allocation, at, &list->items[i], device)) {
            return false;
        }
    }
    return true;
}

/* What those in use and the shares that are chosen so far leave is enough; ret_taken: what it takes
 * of a device that is shared. A device that isn't serves whoever asks for no more than it has. */
static bool capacity_suffices(const struct allocation *allocation, uint32_t at,
                              const struct sim_device *device, struct resource_list *ret_taken)
{
    struct sim *sim = allocation->sim;
    *ret_taken = (struct resource_list){.count = 0};
    struct resource_list taken;
    if (!capacity_share(sim, device->device, allocation->picks[at].exact->capacity, &taken)) {
        return false;
    }
    for (uint32_t c = 0; c < taken.count && device_is_shareable(device->device); c++) {
        const struct device_capacity *capacity = &device->device->capacity.items[c];
        i128 used = device_capacity_used(sim, device->key, capacity->key);
        for (uint32_t i = 0; i < at; i++) {
            used += allocation->chosen[i] == device ? allocation->taken[i].items[c].value.nano : 0;
        }
        if (used + taken.items[c].value.nano > capacity->value.value.nano) {
            return false;
        }
    }
    *ret_taken = device_is_shareable(device->device) ? taken : *ret_taken;
    return true;
}

/* Who looks on takes nothing, and may look at what somebody else uses. */
static bool is_taken(const struct allocation *allocation, uint32_t at,
                     const struct sim_device *device)
{
    bool only_looks = is_admin(allocation->picks[at].exact);
    if (device_is_shareable(device->device)) { /* its capacities tell the rest */
        return !only_looks && device_is_used_whole(allocation->sim, device->key);
    }
    for (uint32_t i = 0; i < at; i++) {
        const struct pick *other = &allocation->picks[i];
        bool is_same_request = other->request == allocation->picks[at].request &&
                               other->claim == allocation->picks[at].claim;
        if (allocation->chosen[i] == device &&
            (is_same_request || (!only_looks && !is_admin(other->exact)))) {
            return true;
        }
    }
    return !only_looks && device_use_count(allocation->sim, device->key) > 0;
}

static bool device_suits(struct allocation *allocation, uint32_t at,
                         const struct sim_device *device)
{
    const struct pick *pick = &allocation->picks[at];
    if ((pick->only != NULL && pick->only != device) || is_taken(allocation, at, device) ||
        is_tainted(allocation->sim, device, &pick->exact->tolerations) ||
        !device_matches(allocation->sim, pick->exact, device, allocation->node) ||
        !capacity_suffices(allocation, at, device, &allocation->taken[at])) {
        return false;
    }
    return (is_admin(pick->exact) ||
            device_counters_allow(allocation->sim, device, allocation->chosen, at)) &&
           constraints_allow(allocation, at, device);
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
        while (next[at] < list->count && !device_suits(allocation, at, &list->items[next[at]])) {
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
static bool request_is_known(const struct device_request_exact *exact)
{
    bool has_mode = !str_is_set(exact->allocation_mode) ||
                    str_eq_c(exact->allocation_mode, "ExactCount") || is_all(exact);
    return has_mode && (is_all(exact) ||
                        (request_count(exact) > 0 && request_count(exact) <= CLAIM_DEVICES_MAX));
}

/* All devices of that kind that the node has; none is too few. */
static bool collect_all(struct allocation *allocation, struct pick pick)
{
    const struct device_list_cache *list = devices_list(allocation->sim);
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (!device_matches(allocation->sim, pick.exact, &list->items[i], allocation->node)) {
            continue;
        }
        if (count++ == CLAIM_DEVICES_MAX) {
            return false;
        }
        pick.only = &list->items[i];
        allocation->picks[allocation->count++] = pick;
    }
    return count > 0;
}

/* The request itself, or the alternative of it whose turn it is. */
static const struct device_request_exact *
exact_of(struct allocation *allocation, const struct device_request *request, uint32_t *choice)
{
    if (request->exactly != NULL) {
        return request->exactly;
    }
    struct choice *mine = &allocation->choices[(*choice)++];
    mine->count = request->first_available.count;
    return mine->at < mine->count ? &request->first_available.items[mine->at] : NULL;
}

static bool collect_picks(struct allocation *allocation, struct pod_claim *claim, uint32_t *choice)
{
    const struct device_claim *devices = &claim->object->spec.devices;
    bool is_known = true;
    for (uint32_t i = 0; i < devices->requests.count; i++) {
        const struct device_request *request = &devices->requests.items[i];
        struct pick pick = {.claim = claim, .request = request};
        pick.exact = exact_of(allocation, request, choice);
        if (pick.exact == NULL || !request_is_known(pick.exact)) {
            is_known = false; /* an alternative behind it may be known */
        } else if (is_all(pick.exact)) {
            is_known = collect_all(allocation, pick) && is_known;
        } else {
            for (int64_t n = 0; n < request_count(pick.exact); n++) {
                allocation->picks[allocation->count++] = pick;
            }
        }
    }
    return is_known;
}

/* The next combination of alternatives, the last request's first; false: there is none. */
static bool next_combination(struct allocation *allocation)
{
    for (uint32_t i = allocation->choice_count; i > 0; i--) {
        struct choice *choice = &allocation->choices[i - 1];
        if (++choice->at < choice->count) {
            return true;
        }
        choice->at = 0;
    }
    return false;
}

static uint32_t count_room(const struct placement *placement)
{
    uint32_t room = 1;
    for (uint32_t i = 0; i < placement->claim_count; i++) {
        room += placement->claims[i].object->spec.devices.requests.count * CLAIM_DEVICES_MAX;
    }
    return room;
}

/* Absent: nobody shares the device. */
static struct str share_id(struct sim *sim, const struct sim_device *device)
{
    return !device_is_shareable(device->device)
               ? STR_NONE
               : arena_format(&sim->scratch, "00000000-0000-4000-9000-%012llx",
                              (unsigned long long)++sim->next_share);
}

static void write_results(struct allocation *allocation)
{
    for (uint32_t i = 0; i < allocation->count; i++) {
        const struct pick *pick = &allocation->picks[i];
        const struct sim_device *device = allocation->chosen[i];
        struct str name = pick->request->name;
        if (pick->request->exactly == NULL) {
            name = arena_format(&allocation->sim->scratch, STR_FMT "/" STR_FMT, STR_ARG(name),
                                STR_ARG(pick->exact->name));
        }
        pick->claim->results[pick->claim->result_count++] =
            (struct allocation_result){.request = name,
                                       .driver = device->slice->spec.driver,
                                       .pool = device->slice->spec.pool.name,
                                       .device = device->device->name,
                                       .admin_access = pick->exact->admin_access,
                                       .share_id = share_id(allocation->sim, device),
                                       .tolerations = pick->exact->tolerations,
                                       .consumed_capacity = allocation->taken[i]};
    }
}

/* With the alternatives whose turn it is. */
static bool allocate_combination(struct allocation *allocation, struct placement *placement)
{
    uint32_t choice = 0;
    bool is_known = true;
    allocation->count = 0;
    for (uint32_t i = 0; i < placement->claim_count; i++) {
        if (!placement->claims[i].is_allocated) {
            is_known = collect_picks(allocation, &placement->claims[i], &choice) && is_known;
        }
    }
    return is_known && choose(allocation);
}

static bool is_reachable(const struct pod_claim *claim, const struct node *node)
{
    return !claim->is_allocated ||
           node_selector_matches(claim->object->status.allocation->node_selector,
                                 &node->meta.labels, node->meta.name);
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
    allocation.taken = ARENA_ARRAY(&sim->scratch, struct resource_list, room);
    allocation.choices = ARENA_ARRAY(&sim->scratch, struct choice, room);
    for (uint32_t i = 0; i < placement->claim_count; i++) {
        struct pod_claim *claim = &placement->claims[i];
        claim->result_count = 0;
        claim->results = ARENA_ARRAY(&sim->scratch, struct allocation_result, room);
        if (!is_reachable(claim, node)) {
            return false;
        }
        const struct device_request_list *requests = &claim->object->spec.devices.requests;
        for (uint32_t n = 0; n < requests->count && !claim->is_allocated; n++) {
            allocation.choice_count += requests->items[n].exactly == NULL ? 1 : 0;
        }
    }
    do {
        if (allocate_combination(&allocation, placement)) {
            write_results(&allocation);
            return true;
        }
    } while (allocation.steps <= ALLOCATION_STEPS_MAX && next_combination(&allocation));
    return false;
}
