/* ask.c - the claims of a pod, or a named claim, as they are asked of the allocator and of the
 * quota. */
#include "ask.h"

#include "selectors.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

/* Where in the shape a sentence points. */
struct ask_place {
    struct shape *shape;
    struct str where;
    const struct device_request *request;
};

static void ask_break(struct core *core, const struct ask_place *place, enum reason reason,
                      struct str problem)
{
    shape_break(place->shape, reason,
                arena_format(&core->scratch, STR_FMT ": request " STR_FMT ": " STR_FMT,
                             STR_ARG(place->where), STR_ARG(place->request->name),
                             STR_ARG(problem)));
}

/* -- constraints ------------------------------------------------------------------------------- */

/* Whether the constraint names "request" or, of an alternative, "request/alternative". */
static bool names_option(const struct str_list *names, struct str request, struct str option)
{
    for (uint32_t i = 0; i < names->count; i++) {
        struct str name = names->items[i];
        size_t slash = str_find_char(name, '/');
        struct str first = str_take(name, slash);
        bool is_whole = slash == name.len;
        if (str_eq(first, request) && (is_whole || str_eq(str_skip(name, slash + 1), option))) {
            return true;
        }
    }
    return names->count == 0;
}

static uint32_t constraints_of(const struct device_claim *claim, struct str request,
                               struct str option)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < claim->constraints.count; i++) {
        if (names_option(&claim->constraints.items[i].requests, request, option)) {
            bits |= UINT32_C(1) << i;
        }
    }
    return bits;
}

static bool constraints_are_known(struct core *core, const struct ask_place *place,
                                  const struct device_claim *claim)
{
    for (uint32_t i = 0; i < claim->constraints.count; i++) {
        const struct device_constraint *constraint = &claim->constraints.items[i];
        bool is_known =
            str_is_set(constraint->match_attribute) || str_is_set(constraint->distinct_attribute);
        if (!is_known || i == CLAIM_CONSTRAINTS_MAX) {
            shape_break(place->shape, REASON_NEVER_FITS,
                        arena_format(&core->scratch,
                                     STR_FMT ": constraints[%u] %s, so kube-scheduler couldn't "
                                             "allocate it; it would start without it",
                                     STR_ARG(place->where), i,
                                     is_known ? "is one more than the 32 that a claim may have"
                                              : "has neither matchAttribute nor "
                                                "distinctAttribute"));
            return false;
        }
    }
    return true;
}

/* -- what the quota is charged ----------------------------------------------------------------- */

/* The most devices that match and that one node can see. */
static int64_t most_on_a_node(struct core *core, struct device_profile *profile)
{
    int64_t most = 0;
    int64_t roaming = 0;
    for (uint32_t slot = 0; slot < core->device_slots; slot++) {
        const struct device_state *device = core->devices[slot];
        roaming += device != NULL && device->node == NULL && profile_selects(core, profile, device);
    }
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        int64_t here = 0;
        for (struct device_state *device = node->devices; device != NULL;
             device = device->next_on_node) {
            here += profile_selects(core, profile, device) ? 1 : 0;
        }
        most = here > most ? here : most;
    }
    most = sat_add(most, roaming);
    return most < CLAIM_DEVICES_MAX ? most : CLAIM_DEVICES_MAX;
}

/* Of the ways to meet one request the quota is charged the most per class. */
static void charge_most(struct device_demand *demands, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i < last; i++) {
        struct str class_name = demands[last].profile->class_name;
        if (!str_eq(demands[i].profile->class_name, class_name)) {
            continue;
        }
        bool is_less = demands[i].charged < demands[last].charged;
        demands[is_less ? i : last].charged = 0;
    }
}

/* -- options ----------------------------------------------------------------------------------- */

/* What is wrong with it, or absent. */
static struct str option_problem(struct core *core, const struct device_request_exact *exact)
{
    struct str mode = exact->allocation_mode;
    if (!str_is_empty(mode) && !str_eq_c(mode, "ExactCount") && !str_eq_c(mode, "All")) {
        return arena_format(&core->scratch,
                            "allocationMode is " STR_FMT
                            ", which Tallyman doesn't know; it knows ExactCount and All",
                            STR_ARG(mode));
    }
    if (exact->count.is_set && exact->count.value <= 0 && !str_eq_c(mode, "All")) {
        return arena_format(&core->scratch, "count is %lld; it must be 1 or more",
                            (long long)exact->count.value);
    }
    return STR_NONE;
}

static struct ask_option option_read(struct core *core, const struct device_claim *claim,
                                     const struct device_request *request,
                                     const struct device_request_exact *exact)
{
    bool is_all = str_eq_c(exact->allocation_mode, "All");
    int64_t count = exact->count.is_set && !is_all ? exact->count.value : 1;
    return (struct ask_option){.profile = profile_use(core, exact),
                               .object = exact,
                               .count = count,
                               .is_all = is_all,
                               .is_admin = opt_is_true(exact->admin_access),
                               .constraints = constraints_of(claim, request->name, exact->name)};
}

static bool option_is_special(const struct ask_option *option)
{
    const struct capacity_requirements *capacity = option->object->capacity;
    return option->is_all || option->is_admin || option->constraints != 0 ||
           (capacity != NULL && capacity->requests.count > 0);
}

/* False: the shape is broken, and nothing was added. */
static bool ask_add_option(struct core *core, const struct ask_place *place, struct device_ask *ask,
                           const struct device_claim *claim,
                           const struct device_request_exact *exact)
{
    struct str problem = option_problem(core, exact);
    if (str_is_set(problem)) {
        ask_break(core, place, REASON_INVALID, problem);
        return false;
    }
    if (ask->option_count == ASK_OPTIONS_MAX) {
        ask_break(core, place, REASON_NEVER_FITS,
                  STR("its pod has more than 64 requests and alternatives, which Tallyman doesn't "
                      "judge; it would start with fewer"));
        return false;
    }
    ask->options = mem_realloc(ask->options, (ask->option_count + 1) * sizeof(*ask->options));
    struct ask_option *option = &ask->options[ask->option_count++];
    *option = option_read(core, claim, place->request, exact);
    option->claim = ask->claim_count - 1;
    ask->is_special = ask->is_special || option_is_special(option);
    ask->has_all = ask->has_all || option->is_all;
    if (str_is_set(option->profile->problem)) {
        ask_break(core, place, option->profile->problem_reason, option->profile->problem);
    }
    return true;
}

static void demand_add(struct core *core, struct shape *shape, const struct ask_option *option,
                       bool is_alternative, struct device_demand **demands, uint32_t *count)
{
    bool is_countable = option->is_all && !str_is_set(option->profile->problem);
    if (is_countable && !profile_is_tried(core, option->profile)) {
        shape->is_provisional = true;
        is_countable = false;
    }
    option->profile->users++;
    *demands = mem_realloc(*demands, (*count + 1) * sizeof(**demands));
    (*demands)[(*count)++] = (struct device_demand){
        .profile = option->profile,
        .count = option->count,
        .charged = is_countable ? most_on_a_node(core, option->profile) : option->count,
        .is_alternative = is_alternative,
        .is_special = option_is_special(option),
        .is_all = option->is_all};
}

static void ask_add_request(struct core *core, const struct ask_place *place,
                            struct device_ask *ask, struct ask_claim *claim,
                            struct device_demand **demands, uint32_t *count)
{
    const struct device_request *object = place->request;
    const struct device_request_exact_list *list = &object->first_available;
    bool is_exact = object->exactly != NULL;
    uint32_t first = *count;
    struct ask_request *request = &claim->requests[claim->request_count++];
    *request = (struct ask_request){.object = object, .first_option = ask->option_count};
    if (!is_exact && list->count == 0) {
        ask_break(core, place, REASON_NEVER_FITS,
                  STR("it has neither `exactly` nor `firstAvailable`, so kube-scheduler couldn't "
                      "allocate it"));
        return;
    }
    if (is_exact && list->count > 0) {
        ask_break(core, place, REASON_INVALID,
                  STR("it has both `exactly` and `firstAvailable`; only one of them may be there"));
        return;
    }
    for (uint32_t i = 0; i < (is_exact ? 1 : list->count); i++) {
        const struct device_request_exact *exact = is_exact ? object->exactly : &list->items[i];
        if (!ask_add_option(core, place, ask, claim->spec, exact)) {
            return;
        }
        request->option_count++;
        const struct ask_option *option = &ask->options[ask->option_count - 1];
        if (!option->is_admin) {
            demand_add(core, place->shape, option, !is_exact, demands, count);
            charge_most(*demands, first, *count - 1);
        }
    }
    ask->is_special = ask->is_special || !is_exact;
}

void ask_add_claim(struct core *core, struct shape *shape, const struct device_claim *claim,
                   struct str where, struct device_ask **ask, struct device_demand **demands,
                   uint32_t *demand_count)
{
    struct ask_place place = {.shape = shape, .where = where};
    if (*ask == NULL) {
        *ask = MEM_NEW(struct device_ask);
    }
    if ((*ask)->claim_count == ASK_CLAIMS_MAX) {
        shape_break(shape, REASON_NEVER_FITS,
                    arena_format(&core->scratch,
                                 STR_FMT " is one more than the %d claims of a pod that Tallyman "
                                         "judges; it would start with fewer",
                                 STR_ARG(where), ASK_CLAIMS_MAX));
        return;
    }
    if (!constraints_are_known(core, &place, claim)) {
        return;
    }
    (*ask)->claims =
        mem_realloc((*ask)->claims, ((*ask)->claim_count + 1) * sizeof(*(*ask)->claims));
    struct ask_claim *added = &(*ask)->claims[(*ask)->claim_count++];
    *added = (struct ask_claim){.where = str_own(where),
                                .spec = object_clone(&device_claim_schema, claim)};
    added->requests = mem_zalloc((claim->requests.count + 1) * sizeof(*added->requests));
    for (uint32_t i = 0; i < added->spec->requests.count; i++) {
        place.request = &added->spec->requests.items[i];
        ask_add_request(core, &place, *ask, added, demands, demand_count);
    }
}

void ask_free(struct core *core, struct device_ask *ask)
{
    if (ask == NULL) {
        return;
    }
    for (uint32_t i = 0; i < ask->option_count; i++) {
        profile_drop(core, ask->options[i].profile);
    }
    for (uint32_t c = 0; c < ask->claim_count; c++) {
        str_drop(&ask->claims[c].where);
        mem_free(ask->claims[c].spec);
        mem_free(ask->claims[c].requests);
    }
    mem_free(ask->claims);
    mem_free(ask->options);
    mem_free(ask);
}

bool ask_equal(const struct device_ask *a, const struct device_ask *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    bool is_equal = a->claim_count == b->claim_count;
    for (uint32_t c = 0; c < a->claim_count && is_equal; c++) {
        is_equal = object_equal(&device_claim_schema, a->claims[c].spec, b->claims[c].spec);
    }
    return is_equal;
}

bool ask_is_special(const struct device_ask *ask)
{
    return ask != NULL && ask->is_special;
}

bool ask_uses_class(const struct device_ask *ask, struct str class_name)
{
    for (uint32_t i = 0; ask != NULL && i < ask->option_count; i++) {
        if (str_eq(ask->options[i].profile->class_name, class_name)) {
            return true;
        }
    }
    return false;
}

static bool set_has_all(const struct pod_set *set)
{
    bool has_all = set->ask != NULL && set->ask->has_all;
    for (uint32_t c = 0; c < set->claim_count && !has_all; c++) {
        has_all = set->claims[c].ask != NULL && set->claims[c].ask->has_all;
    }
    return has_all;
}

void asks_for_all_changed(struct core *core)
{
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        for (struct shape *shape = queue->shapes; shape != NULL; shape = shape->next_in_queue) {
            bool has_all = false;
            for (uint32_t s = 0; s < shape->set_count; s++) {
                has_all = has_all || set_has_all(&shape->sets[s]);
            }
            if (has_all && shape->is_resolved) {
                shape_unresolve(core, shape);
            }
        }
    }
}
