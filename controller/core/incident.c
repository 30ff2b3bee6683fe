/* incident.c - a gang of which a node or a device isn't healthy any more stops as a whole.
 *
 * Incidents are: a node taint NoExecute that its pods don't tolerate (NotReady and unreachable
 * apart: of those podsReadyTimeout takes care, a node often comes back); a node condition that its
 * flavor lists; a device taint NoExecute that its claim doesn't tolerate; a device that a pod's
 * status reports Unhealthy; a pod that kube itself has evicted for such a taint, which may be all
 * that is left of it when the controller comes back. Each stops it once: it isn't placed there
 * again while that lasts. */
#include "incident.h"

#include "ailment.h"
#include "check.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

/* -- what pods report ---------------------------------------------------------------------------
 */

static void drop_devices(struct core *core, struct str *devices, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ailment_report(core, devices[i], false);
        str_drop(&devices[i]);
    }
    mem_free(devices);
}

static void drop_reports(struct ill_report *reports, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        str_drop(&reports[i].claim);
        str_drop(&reports[i].request);
        str_drop(&reports[i].id);
    }
    mem_free(reports);
}

void pod_drop_reports(struct core *core, struct pod_state *pod)
{
    core->ill_pods -= pod->ill_count > 0 ? 1 : 0;
    drop_devices(core, pod->ill_devices, pod->ill_device_count);
    drop_reports(pod->ill, pod->ill_count);
    pod->ill = NULL;
    pod->ill_count = 0;
    pod->ill_devices = NULL;
    pod->ill_device_count = 0;
}

/* The object behind a name in spec.resourceClaims, or absent. */
static struct str claim_name_of(const struct pod *object, struct str name)
{
    for (uint32_t i = 0; i < object->spec.resource_claims.count; i++) {
        const struct pod_resource_claim *wanted = &object->spec.resource_claims.items[i];
        if (str_eq(wanted->name, name) && !str_is_empty(wanted->resource_claim_name)) {
            return wanted->resource_claim_name;
        }
    }
    for (uint32_t i = 0; i < object->status.resource_claim_statuses.count; i++) {
        const struct pod_claim_status *made = &object->status.resource_claim_statuses.items[i];
        if (str_eq(made->name, name)) {
            return made->resource_claim_name;
        }
    }
    const struct extended_claim_status *extended = object->status.extended_resource_claim_status;
    return extended == NULL ? STR_NONE : extended->resource_claim_name;
}

static void add_report(struct core *core, struct pod_state *pod, const struct pod *object,
                       struct str name, struct str id)
{
    struct ill_report report = {.id = str_own(id)};
    if (str_starts_with(name, STR("claim:"))) {
        struct str claim = str_skip(name, 6);
        size_t slash = str_find_char(claim, '/');
        if (slash < claim.len) {
            report.request = str_own(str_skip(claim, slash + 1));
            claim = str_take(claim, slash);
        }
        struct str object_name = claim_name_of(object, claim);
        if (!str_is_empty(object_name)) {
            report.claim =
                str_own(key_join(&core->scratch, object->meta.namespace_name, object_name));
        }
    }
    pod->ill = mem_realloc(pod->ill, (pod->ill_count + 1) * sizeof(*pod->ill));
    pod->ill[pod->ill_count++] = report;
}

static void add_reports(struct core *core, struct pod_state *pod, const struct pod *object,
                        const struct container_status_list *statuses)
{
    for (uint32_t c = 0; c < statuses->count; c++) {
        const struct resource_status_list *list = &statuses->items[c].allocated_resources_status;
        for (uint32_t r = 0; r < list->count; r++) {
            const struct resource_health_list *devices = &list->items[r].resources;
            for (uint32_t d = 0; d < devices->count; d++) {
                if (str_eq_c(devices->items[d].health, "Unhealthy")) {
                    add_report(core, pod, object, list->items[r].name,
                               devices->items[d].resource_id);
                }
            }
        }
    }
}

static void add_device(struct pod_state *pod, struct str key)
{
    size_t bytes = (pod->ill_device_count + 1) * sizeof(struct str);
    pod->ill_devices = mem_realloc(pod->ill_devices, bytes);
    pod->ill_devices[pod->ill_device_count++] = str_own(key);
}

/* Whose report it is: the device of that id, or (a reporter may have names of its own) each that
 * the claim's request was given. */
static void find_devices(struct core *core, struct pod_state *pod, const struct ill_report *report)
{
    struct device_state *device = table_find(&core->devices_by_key, report->id);
    if (device != NULL) {
        add_device(pod, report->id);
        return;
    }
    const struct claim_state *claim = NULL;
    if (str_is_set(report->claim)) {
        claim = table_find(&core->claims, report->claim);
    }
    if (claim == NULL || !claim_is_allocated(claim)) {
        return;
    }
    const struct allocation_result_list *results =
        &claim->object->status.allocation->devices.results;
    for (uint32_t i = 0; i < results->count; i++) {
        const struct allocation_result *result = &results->items[i];
        if (!str_is_set(report->request) || str_eq(report->request, result->request)) {
            struct str pool = key_join(&core->scratch, result->driver, result->pool);
            add_device(pod, key_join(&core->scratch, pool, result->device));
        }
    }
}

static void find_all_devices(struct core *core, struct pod_state *pod)
{
    for (uint32_t i = 0; i < pod->ill_count; i++) {
        find_devices(core, pod, &pod->ill[i]);
    }
    for (uint32_t i = 0; i < pod->ill_device_count; i++) {
        ailment_report(core, pod->ill_devices[i], true);
    }
}

void incidents_start(struct core *core)
{
    uint32_t at = 0;
    for (struct pod_state *pod; (pod = table_next(&core->pods, &at)) != NULL;) {
        if (pod->ill_count > 0) {
            find_all_devices(core, pod);
        }
    }
}

void pod_read_reports(struct core *core, struct pod_state *pod, const struct pod *object)
{
    /* What is reported still has never been well in between. */
    struct pod_state before = *pod;
    pod->ill = NULL;
    pod->ill_count = 0;
    pod->ill_devices = NULL;
    pod->ill_device_count = 0;
    if (!pod->is_terminal) {
        add_reports(core, pod, object, &object->status.container_statuses);
        add_reports(core, pod, object, &object->status.init_container_statuses);
    }
    if (core->is_ready) {
        find_all_devices(core, pod);
    }
    core->ill_pods += pod->ill_count > 0 ? 1 : 0;
    core->ill_pods -= before.ill_count > 0 ? 1 : 0;
    drop_devices(core, before.ill_devices, before.ill_device_count);
    drop_reports(before.ill, before.ill_count);
}

/* -- what kube has evicted -----------------------------------------------------------------------
 */

void pod_read_eviction(struct core *core, struct pod_state *pod, const struct pod *object)
{
    const struct condition *told = condition_find(&object->status.conditions, "DisruptionTarget");
    bool is_by_node = told != NULL && str_eq_c(told->reason, "DeletionByTaintManager");
    bool is_by_device = told != NULL && str_eq_c(told->reason, "DeletionByDeviceTaintManager");
    bool is_evicted = (is_by_node || is_by_device) && str_eq_c(told->status, "True");
    core->evicted_pods -= pod->evicted_ms != 0 ? 1 : 0;
    pod->evicted_ms = is_evicted ? told->last_transition_time.ms : 0;
    pod->is_evicted_by_device = is_by_device;
    core->evicted_pods += pod->evicted_ms != 0 ? 1 : 0;
}

/* -- nodes --------------------------------------------------------------------------------------
 */

/* Kubernetes' own, which every pod tolerates for five minutes. */
static bool is_of_readiness(const struct taint *taint)
{
    return str_eq_c(taint->key, "node.kubernetes.io/not-ready") ||
           str_eq_c(taint->key, "node.kubernetes.io/unreachable");
}

static bool evicts(const struct taint *taint)
{
    return str_eq_c(taint->effect, "NoExecute") && !is_of_readiness(taint);
}

static bool find_harm(const struct core *core, struct node_state *node)
{
    if (node->object == NULL) {
        return false;
    }
    struct flavor_state *flavor;
    struct flavor_state *next;
    HASH_ITER (hh, core->flavors, flavor, next) {
        if (node_illness(flavor->object, node) != NULL) {
            node->was_ill = true;
            return true;
        }
    }
    for (uint32_t i = 0; i < node->object->spec.taints.count; i++) {
        if (evicts(&node->object->spec.taints.items[i])) {
            return true;
        }
    }
    return false;
}

void node_read_harm(struct core *core, struct node_state *node)
{
    bool is_harmful = find_harm(core, node);
    core->harmful_nodes -= node->is_harmful ? 1 : 0;
    core->harmful_nodes += is_harmful ? 1 : 0;
    core->has_new_harm = core->has_new_harm || is_harmful;
    node->is_harmful = is_harmful;
}

/* -- one gang -----------------------------------------------------------------------------------
 */

struct incident {
    const char *cause; /* static; NULL: there is none */
    struct str why;    /* in the scratch arena */
    int64_t due_ms;    /* a toleration ends; INT64_MAX: none does */
};

/* The first by its text: the order of pods isn't the same after a restart. */
static void note(struct incident *incident, const char *cause, struct str why)
{
    if (incident->cause == NULL || str_compare(why, incident->why) < 0) {
        incident->cause = cause;
        incident->why = why;
    }
}

static bool is_tolerated(const struct core *core, const struct taint *taint,
                         const struct toleration_list *tolerations, struct incident *incident)
{
    for (uint32_t i = 0; i < tolerations->count; i++) {
        const struct toleration *toleration = &tolerations->items[i];
        if (!toleration_tolerates(toleration, taint)) {
            continue;
        }
        if (!toleration->toleration_seconds.is_set) {
            return true;
        }
        int64_t since_ms = taint->time_added.is_set ? taint->time_added.ms : 0;
        int64_t end_ms = sat_add(since_ms, sat_mul(toleration->toleration_seconds.value, 1000));
        if (core->now_ms < end_ms) {
            incident->due_ms = end_ms < incident->due_ms ? end_ms : incident->due_ms;
            return true;
        }
    }
    return false;
}

/* By the pods' own tolerations, or by those that their flavors have given them. */
static bool set_tolerates(const struct core *core, const struct pod_set *set,
                          const struct reserved_set *reserved, const struct taint *taint,
                          struct incident *incident)
{
    if (set != NULL && is_tolerated(core, taint, &set->tolerations, incident)) {
        return true;
    }
    for (uint32_t i = 0; reserved != NULL && i < reserved->per_pod.count; i++) {
        const struct resource_flavor *flavor =
            flavor_object(core, reserved->per_pod.items[i].flavor);
        if (flavor != NULL && is_tolerated(core, taint, &flavor->spec.tolerations, incident)) {
            return true;
        }
    }
    return false;
}

static void look_at_node(struct core *core, const struct gang *gang, const struct pod_state *pod,
                         struct incident *incident)
{
    const struct node_state *node = pod->node;
    struct str name = str_is_set(pod->pod_set) ? pod->pod_set : gang->sets[0].name;
    const struct pod_set *set = pod_set_find(gang->shape, name);
    const struct reserved_set *reserved = reservation_set(gang->reservation, name);
    const struct taint_list *taints = &node->object->spec.taints;
    for (uint32_t i = 0; i < taints->count; i++) {
        if (evicts(&taints->items[i]) &&
            !set_tolerates(core, set, reserved, &taints->items[i], incident)) {
            note(incident, "NodeUnhealthy",
                 arena_format(&core->scratch,
                              "node " STR_FMT " has taint " STR_FMT
                              " (NoExecute), which its pods don't tolerate",
                              STR_ARG(node->name), STR_ARG(taints->items[i].key)));
        }
    }
    for (uint32_t i = 0; reserved != NULL && i < reserved->per_pod.count; i++) {
        const struct resource_flavor *flavor =
            flavor_object(core, reserved->per_pod.items[i].flavor);
        const struct node_condition *illness = flavor == NULL ? NULL : node_illness(flavor, node);
        if (illness != NULL) {
            note(incident, "NodeUnhealthy",
                 arena_format(&core->scratch,
                              "node " STR_FMT " has condition " STR_FMT "=" STR_FMT
                              ", which ResourceFlavor " STR_FMT " lists as unhealthy",
                              STR_ARG(node->name), STR_ARG(illness->type), STR_ARG(illness->status),
                              STR_ARG(flavor->meta.name)));
        }
    }
}

static void look_at_claim(struct core *core, struct str claim_key, struct incident *incident)
{
    const struct claim_state *claim = table_find(&core->claims, claim_key);
    if (claim == NULL || !claim_is_allocated(claim)) {
        return;
    }
    const struct allocation_result_list *results =
        &claim->object->status.allocation->devices.results;
    for (uint32_t i = 0; i < results->count; i++) {
        const struct allocation_result *result = &results->items[i];
        struct str pool = key_join(&core->scratch, result->driver, result->pool);
        struct str key = key_join(&core->scratch, pool, result->device);
        const struct device_state *device = table_find(&core->devices_by_key, key);
        struct taint_query query = {.tolerations = &result->tolerations,
                                    .at_ms = core->now_ms,
                                    .only_evicting = true,
                                    .due_ms = &incident->due_ms};
        const struct taint *taint =
            device == NULL ? NULL : device_untolerated(core, device, &query);
        if (taint != NULL) {
            note(incident, "DeviceUnhealthy",
                 arena_format(&core->scratch,
                              "device " STR_FMT " has taint " STR_FMT
                              " (NoExecute), which the request for it doesn't tolerate",
                              STR_ARG(device->key), STR_ARG(taint->key)));
        }
    }
}

struct str claim_harm(struct core *core, struct str claim_key)
{
    struct incident incident = {.due_ms = INT64_MAX};
    if (core->evicting_devices > 0) {
        look_at_claim(core, claim_key, &incident);
    }
    return incident.why;
}

/* Not one of an earlier start, nor one that has been replaced. What was evicted because its node is
 * away is no incident, as little as that itself. */
static bool is_evicted(const struct gang *gang, const struct pod_state *pod)
{
    if (pod->evicted_ms == 0 || pod->evicted_ms < gang->admitted_ms ||
        (pod->is_terminal && gang_is_whole(gang))) {
        return false;
    }
    return pod->is_evicted_by_device || pod->node == NULL || pod->node->not_ready_since_ms == 0;
}

static void look_at_pod(struct core *core, const struct gang *gang, const struct pod_state *pod,
                        struct incident *incident)
{
    if (is_evicted(gang, pod)) {
        note(incident, pod->is_evicted_by_device ? "DeviceUnhealthy" : "NodeUnhealthy",
             arena_format(&core->scratch,
                          "kube has evicted pod " STR_FMT " for a taint (NoExecute) of its %s",
                          STR_ARG(pod->key), pod->is_evicted_by_device ? "device" : "node"));
    }
    if (pod->is_terminal || pod->node == NULL) {
        return;
    }
    if (pod->node->is_harmful) {
        look_at_node(core, gang, pod, incident);
    }
    for (uint32_t i = 0; core->evicting_devices > 0 && i < pod->claim_count; i++) {
        look_at_claim(core, pod->claims[i], incident);
    }
    for (uint32_t i = 0; i < pod->ill_count; i++) {
        note(incident, "DeviceUnhealthy",
             arena_format(&core->scratch,
                          "device " STR_FMT " is reported Unhealthy on node " STR_FMT,
                          STR_ARG(pod->ill[i].id), STR_ARG(pod->node->name)));
    }
}

/* It has stopped for such a thing not long ago: then its next start is put off, too. */
static bool is_again(const struct core *core, const struct gang *gang, const char *cause)
{
    const struct eviction *before = gang->trouble->eviction;
    return before != NULL && str_eq_c(before->rule, cause) &&
           gang->admitted_ms / 1000 >= before->at_ms / 1000 &&
           core->now_ms - before->at_ms < INCIDENT_AGAIN_MS;
}

static bool incident_stop(struct core *core, struct gang *gang)
{
    if (core->harmful_nodes + core->evicting_devices + core->ill_pods + core->evicted_pods == 0) {
        return false;
    }
    struct incident incident = {.due_ms = INT64_MAX};
    for (struct pod_state *pod = gang_first_pod(gang); pod != NULL; pod = pod->next_in_group) {
        look_at_pod(core, gang, pod, &incident);
    }
    if (incident.cause == NULL) {
        bool is_first = core->next_harm_ms == 0 || incident.due_ms < core->next_harm_ms;
        core->next_harm_ms =
            incident.due_ms != INT64_MAX && is_first ? incident.due_ms : core->next_harm_ms;
        return false;
    }
    if (gang->run->write_retry_ms == 0) { /* else it is counted, and only tried again */
        gang_count_eviction(gang);
        if (is_again(core, gang, incident.cause)) {
            gang_back_off(core, gang);
        }
    }
    patch_suspend(core, gang, incident.cause,
                  arena_format(&core->scratch,
                               STR_FMT "; the gang stops whole, keeps its place and starts again "
                                       "where everything is healthy",
                               STR_ARG(incident.why)));
    return true;
}

bool incident_or_order_stops(struct core *core, struct gang *gang)
{
    return stop_drain(core, gang) || check_revoked(core, gang) || incident_stop(core, gang);
}

void incidents_tick(struct core *core)
{
    if (core->next_harm_ms != 0 && core->next_harm_ms <= core->now_ms) {
        core->next_harm_ms = 0;
        core->has_new_harm = true;
    }
    if (!core->has_new_harm) {
        return;
    }
    core->has_new_harm = false;
    struct gang *gang = gang_line_first(&core->holders);
    while (gang != NULL) {
        struct gang *next = gang_line_next(&core->holders, gang);
        gang_review(core, gang);
        gang = next;
    }
}
