/* scheduler.c - kube-scheduler: one pod after the other, each for itself. It knows of no gang,
 * which is the very thing that is to be shown. Sources: k8s.io/kubernetes/pkg/scheduler (queue,
 * backoff, DynamicResources, default preemption is left out). */
#include "sim_internal.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"

#define BACKOFF_BASE_MS          1000 /* podInitialBackoffSeconds */
#define BACKOFF_MAX_MS           10000
#define UNSCHEDULABLE_TEXT_BYTES 512
#define SCORED_NODES_MIN         100u /* minFeasibleNodesToFind */

static int64_t pod_priority(const struct sim_object *pod)
{
    return object_pod(pod)->spec.priority.value;
}

/* Priority desc, then the order of making. */
static int compare_queued(const struct sim_object *a, const struct sim_object *b)
{
    int64_t pa = pod_priority(a);
    int64_t pb = pod_priority(b);
    if (pa != pb) {
        return pa > pb ? -1 : 1;
    }
    return a->serial < b->serial ? -1 : a->serial > b->serial;
}

RB_GENERATE_STATIC(pod_queue_tree, sim_object, pod.in_queue, compare_queued)

static void run_scheduler(struct sim *sim, struct task *task);

static void scheduler_run_at(struct sim *sim, int64_t at_ms)
{
    if (!sim->is_scheduler_busy) {
        sim->is_scheduler_busy = true;
        (void)agenda_add(sim, at_ms, run_scheduler, STR_NONE);
    }
}

static void retry_later(struct sim *sim, struct task *task)
{
    if (sim->scheduler_retry_ms == task->at_ms) {
        sim->scheduler_retry_ms = INT64_MAX;
    }
    scheduler_run_at(sim, sim->now_ms);
}

/* Pods that back off are looked at again when the first of them may. */
static void arm_retry(struct sim *sim)
{
    int64_t soonest_ms = INT64_MAX;
    struct sim_object *pod;
    RB_FOREACH (pod, pod_queue_tree, &sim->pod_queue) {
        if (!pod->pod.is_waiting && pod->pod.retry_ms > sim->now_ms &&
            pod->pod.retry_ms < soonest_ms) {
            soonest_ms = pod->pod.retry_ms;
        }
    }
    if (soonest_ms < sim->scheduler_retry_ms) {
        sim->scheduler_retry_ms = soonest_ms;
        (void)agenda_add(sim, soonest_ms, retry_later, STR_NONE);
    }
}

static void leave_queue(struct sim *sim, struct sim_object *pod)
{
    if (pod->pod.is_queued) {
        RB_REMOVE(pod_queue_tree, &sim->pod_queue, pod);
        pod->pod.is_queued = false;
    }
}

static bool is_for_us(const struct pod *pod)
{
    return str_is_empty(pod->spec.scheduler_name) ||
           str_eq_c(pod->spec.scheduler_name, "default-scheduler");
}

void scheduler_pod_changed(struct sim *sim, struct sim_object *pod, const struct pod *old)
{
    const struct pod *object = object_pod(pod);
    bool is_bound = !str_is_empty(object->spec.node_name);
    if (pod_is_terminal(object)) {
        leave_queue(sim, pod);
        if (pod->pod.load != NULL) {
            load_remove(sim, pod);
            scheduler_wake(sim);
        }
        return;
    }
    if (is_bound) {
        leave_queue(sim, pod);
        load_add(sim, pod, object->spec.node_name);
    } else if (old == NULL && is_for_us(object)) {
        RB_INSERT(pod_queue_tree, &sim->pod_queue, pod);
        pod->pod.is_queued = true;
    }
    if (pod->pod.is_queued) {
        scheduler_run_at(sim, sim_later(sim, sim->options.delays.schedule_ms));
    }
}

void scheduler_pod_gone(struct sim *sim, struct sim_object *pod)
{
    leave_queue(sim, pod);
    load_remove(sim, pod);
    scheduler_wake(sim);
}

void scheduler_wake(struct sim *sim)
{
    bool is_any = false;
    struct sim_object *pod;
    RB_FOREACH (pod, pod_queue_tree, &sim->pod_queue) {
        is_any = true;
        pod->pod.is_waiting = false;
    }
    if (is_any) {
        scheduler_run_at(sim, sim_later(sim, sim->options.delays.schedule_ms));
    }
}

/* -- one pod --------------------------------------------------------------------------------------
 */

static struct str claim_name(const struct pod *pod, const struct pod_resource_claim *entry)
{
    if (!str_is_empty(entry->resource_claim_name)) {
        return entry->resource_claim_name;
    }
    const struct pod_claim_status_list *made = &pod->status.resource_claim_statuses;
    for (uint32_t i = 0; i < made->count; i++) {
        if (str_eq(made->items[i].name, entry->name)) {
            return made->items[i].resource_claim_name;
        }
    }
    return STR_NONE;
}

/* False: a claim of the pod isn't there yet, so it isn't even tried. */
static bool find_claims(struct sim *sim, struct placement *placement)
{
    const struct pod *pod = object_pod(placement->pod);
    uint32_t count = pod->spec.resource_claims.count;
    placement->claims = ARENA_ARRAY(&sim->scratch, struct pod_claim, count + 1);
    placement->claim_count = placement->own_claim_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct str name = claim_name(pod, &pod->spec.resource_claims.items[i]);
        struct sim_object *claim =
            str_is_empty(name)
                ? NULL
                : api_find(sim, KIND_RESOURCE_CLAIM, api_key(sim, pod->meta.namespace_name, name));
        if (claim == NULL || object_meta(claim)->deletion_timestamp.is_set) {
            return false;
        }
        placement->claims[placement->claim_count++] =
            (struct pod_claim){.claim = claim,
                               .object = object_claim(claim),
                               .is_allocated = object_claim(claim)->status.allocation != NULL};
    }
    placement->own_claim_count = placement->claim_count;
    return true;
}

bool claims_are_allocated(struct sim *sim, struct sim_object *pod)
{
    struct placement placement = {.pod = pod};
    bool are_there = find_claims(sim, &placement);
    for (uint32_t i = 0; are_there && i < placement.claim_count; i++) {
        are_there = placement.claims[i].is_allocated;
    }
    return are_there;
}

static bool claims_have_room(const struct placement *placement)
{
    for (uint32_t i = 0; i < placement->own_claim_count; i++) {
        if (placement->claims[i].object->status.reserved_for.count >= CLAIM_SHARERS_MAX) {
            return false;
        }
    }
    return true;
}

struct verdict_count {
    int64_t nodes;
    int64_t rejected[REJECT_COUNT];
    struct str resources[REJECT_COUNT]; /* one that was short */
};

/* "0/3 nodes are available: 3 cannot allocate all claims." */
static struct str unschedulable_text(struct sim *sim, const struct verdict_count *count)
{
    static const char *const words[REJECT_COUNT] = {
        [REJECT_NOT_READY] = "node(s) were not ready",
        [REJECT_UNSCHEDULABLE] = "node(s) were unschedulable",
        [REJECT_TAINT] = "node(s) had untolerated taint(s)",
        [REJECT_AFFINITY] = "node(s) didn't match Pod's node affinity/selector",
        [REJECT_RESOURCE] = "Insufficient",
        [REJECT_CLAIMS] = "cannot allocate all claims",
    };
    struct text text;
    text_init(&text, &sim->scratch, UNSCHEDULABLE_TEXT_BYTES);
    text_addf(&text, "0/%lld nodes are available", (long long)count->nodes);
    const char *separator = ": ";
    for (int i = REJECT_NONE + 1; i < REJECT_COUNT; i++) {
        if (count->rejected[i] > 0) {
            text_addf(&text, "%s%lld %s%s" STR_FMT, separator, (long long)count->rejected[i],
                      words[i], i == REJECT_RESOURCE ? " " : "", STR_ARG(count->resources[i]));
            separator = ", ";
        }
    }
    text_addf(&text, ".");
    return text_str(&text);
}

static void mark_unschedulable(struct sim *sim, struct sim_object *pod,
                               const struct verdict_count *count)
{
    int64_t delay_ms = BACKOFF_BASE_MS;
    for (uint32_t i = 0; i < pod->pod.tries && delay_ms < BACKOFF_MAX_MS; i++) {
        delay_ms *= 2;
    }
    pod->pod.tries++;
    pod->pod.retry_ms = sim->now_ms + (delay_ms < BACKOFF_MAX_MS ? delay_ms : BACKOFF_MAX_MS);
    pod->pod.is_waiting = true;
    struct str text = unschedulable_text(sim, count);
    struct pod next = *object_pod(pod);
    const struct condition *known = condition_find(&next.status.conditions, "PodScheduled");
    if (known == NULL || !str_eq(known->message, text)) {
        sim_tell(sim, SIM_POD_UNSCHEDULABLE, pod->pod.job, pod, STR_NONE, text);
    }
    struct condition scheduled = {.type = STR("PodScheduled"),
                                  .status = STR("False"),
                                  .reason = STR("Unschedulable"),
                                  .message = text};
    next.status.conditions = api_condition_with(sim, &next.status.conditions, &scheduled);
    api_update(sim, pod, &next, false);
}

/* The node-local devices tie the claim to their node. */
static struct node_selector *claim_selector(struct sim *sim, const struct node *node)
{
    struct str *name = ARENA_NEW(&sim->scratch, struct str);
    *name = node->meta.name;
    struct match_expression *field = ARENA_NEW(&sim->scratch, struct match_expression);
    *field = (struct match_expression){STR("metadata.name"), STR("In"), {name, 1}};
    struct node_selector_term *term = ARENA_NEW(&sim->scratch, struct node_selector_term);
    term->match_fields = (struct match_expression_list){field, 1};
    struct node_selector *selector = ARENA_NEW(&sim->scratch, struct node_selector);
    selector->node_selector_terms = (struct node_selector_term_list){term, 1};
    return selector;
}

static struct claim_allocation *allocation_of(struct sim *sim, const struct pod_claim *chosen,
                                              const struct node *node)
{
    struct claim_allocation *allocation = ARENA_NEW(&sim->scratch, struct claim_allocation);
    allocation->devices.results =
        (struct allocation_result_list){chosen->results, chosen->result_count};
    allocation->node_selector = claim_selector(sim, node);
    return allocation;
}

static void reserve_claim(struct sim *sim, const struct pod_claim *chosen,
                          const struct sim_object *pod, const struct node *node)
{
    const struct resource_claim *claim = object_claim(chosen->claim);
    struct resource_claim next = *claim;
    struct claim_consumer_list *consumers = &next.status.reserved_for;
    uint32_t count = claim->status.reserved_for.count;
    consumers->items = ARENA_ARRAY(&sim->scratch, struct claim_consumer, count + 1);
    struct claim_consumer holder = podgroup_holder(claim, pod);
    bool is_held = false;
    for (uint32_t i = 0; i < count; i++) {
        consumers->items[i] = claim->status.reserved_for.items[i];
        is_held = is_held || str_eq(consumers->items[i].uid, holder.uid);
    }
    consumers->items[count] = holder;
    consumers->count = is_held ? count : count + 1;
    if (!chosen->is_allocated) {
        next.status.allocation = allocation_of(sim, chosen, node);
    }
    api_update(sim, chosen->claim, &next, false);
}

static struct str devices_text(struct sim *sim, const struct pod *pod)
{
    struct text text;
    text_init(&text, &sim->scratch, UNSCHEDULABLE_TEXT_BYTES);
    for (uint32_t i = 0; i < pod->spec.resource_claims.count; i++) {
        struct str name = claim_name(pod, &pod->spec.resource_claims.items[i]);
        struct sim_object *claim =
            api_find(sim, KIND_RESOURCE_CLAIM, api_key(sim, pod->meta.namespace_name, name));
        if (claim == NULL || object_claim(claim)->status.allocation == NULL) {
            continue;
        }
        const struct allocation_result_list *results =
            &object_claim(claim)->status.allocation->devices.results;
        for (uint32_t j = 0; j < results->count; j++) {
            text_addf(&text, "%s" STR_FMT, text.len > 0 ? " " : "",
                      STR_ARG(results->items[j].device));
        }
    }
    return text_str(&text);
}

static void bind_pod(struct sim *sim, struct task *task)
{
    struct sim_object *pod = api_find_uid(sim, task->uid);
    if (pod == NULL || pod->pod.load == NULL || !str_is_empty(object_pod(pod)->spec.node_name)) {
        return;
    }
    struct pod next = *object_pod(pod);
    next.spec.node_name = arena_copy_str(&sim->scratch, pod->pod.load->name);
    struct condition scheduled = {.type = STR("PodScheduled"), .status = STR("True")};
    next.status.conditions = api_condition_with(sim, &next.status.conditions, &scheduled);
    struct str devices = devices_text(sim, object_pod(pod));
    api_update(sim, pod, &next, false);
    sim_tell(sim, SIM_POD_BOUND, pod->pod.job, pod, next.spec.node_name, devices);
}

static void list_nodes(struct sim *sim)
{
    if (!sim->is_node_list_stale) {
        return;
    }
    sim->is_node_list_stale = false;
    sim->node_count = 0;
    for (struct sim_object *node = api_first(sim, KIND_NODE); node != NULL; node = api_next(node)) {
        sim->nodes =
            mem_grow(sim->nodes, sim->node_count, &sim->node_capacity, sizeof(*sim->nodes));
        sim->nodes[sim->node_count++] = node;
    }
}

/* How many nodes that take the pod are enough: numFeasibleNodesToFind(), with no percentage set. */
static uint32_t enough_nodes(uint32_t nodes)
{
    if (nodes < SCORED_NODES_MIN) {
        return nodes;
    }
    uint32_t percent = nodes / 125 < 45 ? 50 - nodes / 125 : 5;
    uint32_t enough = nodes * percent / 100;
    return enough < SCORED_NODES_MIN ? SCORED_NODES_MIN : enough;
}

/* The best node that takes the pod, NULL if none does. Equal ones are taken in turns. */
static const struct node *pick_node(struct sim *sim, struct placement *placement,
                                    struct verdict_count *count)
{
    list_nodes(sim);
    int64_t enough = enough_nodes(sim->node_count);
    const struct node *best = NULL;
    int64_t best_score = -1;
    count->nodes = sim->node_count;
    uint32_t looked_at = 0;
    while (looked_at < sim->node_count && count->rejected[REJECT_NONE] < enough) {
        uint32_t index = (sim->scheduler_rotation + looked_at++) % sim->node_count;
        const struct node *node = sim->nodes[index]->value;
        struct str resource = STR_NONE;
        enum rejection why = node_filter(sim, placement->pod, node, &resource);
        if (why == REJECT_NONE &&
            (!claims_have_room(placement) || !devices_allocate(sim, placement, node))) {
            why = REJECT_CLAIMS;
        }
        count->rejected[why]++;
        count->resources[why] = resource;
        int64_t score = why == REJECT_NONE ? node_score(sim, placement->pod, node) : -1;
        if (score > best_score) {
            best_score = score;
            best = node;
        }
    }
    bool is_part = looked_at < sim->node_count;
    sim->scheduler_rotation += is_part ? looked_at : best != NULL ? 1 : 0;
    return best;
}

static void schedule_pod(struct sim *sim, struct placement *placement)
{
    struct sim_object *pod = placement->pod;
    struct verdict_count count = {.nodes = 0};
    const struct node *node = pick_node(sim, placement, &count);
    if (node == NULL || !devices_allocate(sim, placement, node)) {
        mark_unschedulable(sim, pod, &count);
        return;
    }
    leave_queue(sim, pod);
    load_add(sim, pod, node->meta.name);
    for (uint32_t i = 0; i < placement->own_claim_count; i++) {
        reserve_claim(sim, &placement->claims[i], pod, node);
    }
    if (placement->claim_count > placement->own_claim_count) {
        extended_bind(sim, placement,
                      allocation_of(sim, &placement->claims[placement->own_claim_count], node));
    }
    (void)agenda_add(sim, sim_later(sim, sim->options.delays.bind_ms), bind_pod, pod->uid);
}

/* The first pod in the queue that may be tried; false: none. */
static bool next_pod(struct sim *sim, struct placement *ret_placement)
{
    struct sim_object *pod;
    RB_FOREACH (pod, pod_queue_tree, &sim->pod_queue) {
        const struct pod *object = object_pod(pod);
        bool may_try = !pod->pod.is_waiting && pod->pod.retry_ms <= sim->now_ms &&
                       object->spec.scheduling_gates.count == 0;
        ret_placement->pod = pod;
        if (may_try && find_claims(sim, ret_placement)) {
            return true;
        }
    }
    return false;
}

static void run_scheduler(struct sim *sim, struct task *task)
{
    (void)task;
    sim->is_scheduler_busy = false;
    struct placement placement;
    if (next_pod(sim, &placement)) {
        schedule_pod(sim, &placement);
        scheduler_run_at(sim, sim_later(sim, sim->options.delays.schedule_ms));
    } else {
        arm_retry(sim);
    }
}
