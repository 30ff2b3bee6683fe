/* drift.c - the ledger held against the cluster's claims.
 *
 * A gang is charged what it asked when it was let go. Its pods may get more: their claim template
 * was made anew meanwhile, or a named claim was, or somebody gave a pod a claim by hand. Such
 * devices are in use, so they are charged, too: to the pod, on top of its gang's reservation, until
 * it ends. And nobody is charged for a named claim that is gone, until it is there again. Less than
 * was asked is no drift: of firstAvailable the most that it may take is charged.
 *
 * It is worked out anew whenever a pod's claims change, so a restart finds the same. Each gang is
 * told of it once; what is counted twice is nothing that others would have to write. */
#include "internal.h"

/* Devices of one class. */
struct class_count {
    struct str class_name;
    int64_t count;
};

struct class_counts {
    struct class_count *items; /* in the scratch arena */
    uint32_t count;
};

static void count_class(struct class_counts *counts, struct str class_name)
{
    uint32_t at = 0;
    while (at < counts->count && !str_eq(counts->items[at].class_name, class_name)) {
        at++;
    }
    if (at == counts->count) {
        counts->items[counts->count++] = (struct class_count){.class_name = class_name};
    }
    counts->items[at].count++;
}

/* The class of what a result was allocated for: "request", or "request/alternative". */
static struct str class_of(const struct resource_claim *claim, struct str request)
{
    size_t slash = str_find_char(request, '/');
    struct str name = str_take(request, slash);
    struct str alternative = slash < request.len ? str_skip(request, slash + 1) : STR_NONE;
    const struct device_request_list *list = &claim->spec.devices.requests;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct device_request *asked = &list->items[i];
        if (!str_eq(asked->name, name)) {
            continue;
        }
        for (uint32_t a = 0; a < asked->first_available.count; a++) {
            if (str_eq(asked->first_available.items[a].name, alternative)) {
                return asked->first_available.items[a].device_class_name;
            }
        }
        return asked->exactly == NULL ? STR_NONE : asked->exactly->device_class_name;
    }
    return STR_NONE;
}

/* 0: how many it takes is known only when it has them, or it takes none for itself. */
static int64_t exact_count(const struct device_request_exact *exactly)
{
    bool is_admin = opt_is_true(exactly->admin_access);
    if (is_admin || str_eq_c(exactly->allocation_mode, "All")) {
        return 0;
    }
    return exactly->count.is_set ? exactly->count.value : 1;
}

static void count_claim(struct core *core, const struct resource_claim *claim,
                        struct class_counts *counts)
{
    const struct allocation_result_list *results = &claim->status.allocation->devices.results;
    struct class_count *before = counts->items;
    counts->items =
        ARENA_ARRAY(&core->scratch, struct class_count, counts->count + results->count + 1);
    for (uint32_t i = 0; i < counts->count; i++) {
        counts->items[i] = before[i];
    }
    for (uint32_t i = 0; i < results->count; i++) {
        bool is_admin = opt_is_true(results->items[i].admin_access);
        struct str class_name = class_of(claim, results->items[i].request);
        if (!is_admin && !str_is_empty(class_name)) {
            count_class(counts, class_name);
        }
    }
}

static bool is_by_scheduler(const struct resource_claim *claim)
{
    return str_eq_c(string_map_get(&claim->meta.annotations, ANNOTATION_EXTENDED_CLAIM), "true");
}

/* -- one pod ------------------------------------------------------------------------------------
 */

static bool holds_claim(const struct reservation *reservation, struct str key)
{
    for (uint32_t i = 0; i < reservation->claim_count; i++) {
        if (str_eq(reservation->claims[i].key, key)) {
            return true;
        }
    }
    return false;
}

static const struct reserved_set *set_of(const struct gang *gang, const struct pod_state *pod)
{
    const struct reserved_set *set =
        str_is_set(pod->pod_set) ? reservation_set(gang->reservation, pod->pod_set) : NULL;
    return set == NULL && gang->reservation->set_count > 0 ? &gang->reservation->sets[0] : set;
}

/* What a pod of the set is charged of the class; by extended resources only where the scheduler has
 * made a claim for them. */
static int64_t charged_for(const struct reserved_set *set, struct str class_name, bool has_extended)
{
    int64_t charged = 0;
    for (uint32_t i = 0; i < set->per_pod.count; i++) {
        const struct charge *charge = &set->per_pod.items[i];
        bool is_extended = !str_eq(charge_asked(charge), charge->resource);
        if (str_eq(charge->resource, class_name) && (has_extended || !is_extended)) {
            charged = sat_add(charged, charge->amount);
        }
    }
    return charged;
}

/* The flavor on which the queue rations the class for such pods; absent: it doesn't. */
static struct str flavor_for(const struct queue_state *queue, const struct reserved_set *set,
                             struct str class_name)
{
    struct str first = STR_NONE;
    for (uint32_t c = 0; c < queue->node.cell_count; c++) {
        const struct quota_cell *cell = &queue->node.cells[c];
        if (!cell->is_listed || !str_eq(cell->resource, class_name)) {
            continue;
        }
        for (uint32_t i = 0; i < set->per_pod.count; i++) {
            if (str_eq(set->per_pod.items[i].flavor, cell->flavor)) {
                return cell->flavor;
            }
        }
        first = str_is_set(first) ? first : cell->flavor;
    }
    return first;
}

struct str drift_flavor(const struct gang *gang, struct str class_name)
{
    const struct admission_record *record = gang->record;
    for (uint32_t s = 0; record != NULL && s < record->pod_sets.count; s++) {
        struct str flavor = string_map_find(&record->pod_sets.items[s].flavors, class_name);
        if (str_is_set(flavor)) {
            return flavor;
        }
    }
    const struct reservation *reservation = gang->reservation;
    return reservation->set_count == 0
               ? STR_NONE
               : flavor_for(reservation->queue, &reservation->sets[0], class_name);
}

/* What the pod has beyond its share; in the scratch arena. */
static struct charge_list surplus_of(struct core *core, const struct gang *gang,
                                     const struct pod_state *pod)
{
    struct charge_list surplus = {.items = NULL};
    const struct reserved_set *set = set_of(gang, pod);
    struct class_counts counts = {.count = 0};
    bool has_extended = false;
    for (uint32_t i = 0; set != NULL && i < pod->claim_count; i++) {
        struct claim_state *claim = table_find(&core->claims, pod->claims[i]);
        if (claim != NULL && claim_is_allocated(claim) &&
            !holds_claim(gang->reservation, claim->key)) {
            has_extended = has_extended || is_by_scheduler(claim->object);
            count_claim(core, claim->object, &counts);
        }
    }
    surplus.items = ARENA_ARRAY(&core->scratch, struct charge, counts.count + 1);
    for (uint32_t i = 0; i < counts.count; i++) {
        struct str class_name = counts.items[i].class_name;
        int64_t charged = charged_for(set, class_name, has_extended);
        struct str flavor = flavor_for(gang->reservation->queue, set, class_name);
        if (counts.items[i].count > charged && str_is_set(flavor)) {
            surplus.items[surplus.count++] =
                (struct charge){.flavor = flavor,
                                .resource = class_name,
                                .amount = counts.items[i].count - charged};
        }
    }
    return surplus;
}

static int64_t devices_in(const struct charge_list *charges)
{
    int64_t devices = 0;
    for (uint32_t i = 0; i < charges->count; i++) {
        devices = sat_add(devices, charges->items[i].amount);
    }
    return devices;
}

static bool is_same(const struct charge_list *a, const struct charge_list *b)
{
    bool is_equal = a->count == b->count;
    for (uint32_t i = 0; i < a->count && is_equal; i++) {
        is_equal = str_eq(a->items[i].flavor, b->items[i].flavor) &&
                   str_eq(a->items[i].resource, b->items[i].resource) &&
                   a->items[i].amount == b->items[i].amount;
    }
    return is_equal;
}

static void tell(struct core *core, struct gang *gang, struct str text)
{
    if (!gang->has_told_drift && !gang->is_job_gone) {
        gang->has_told_drift = true;
        note_event(core, gang, true, "DeviceDrift", "CountDevices", text);
    }
    gang_show(core, gang);
}

static void set_surplus(struct core *core, struct gang *gang, struct pod_state *pod,
                        const struct charge_list *now)
{
    if (!is_same(&pod->surplus, now)) {
        core->drift.devices += devices_in(now) - devices_in(&pod->surplus);
        ledger_set_surplus(core, gang, &pod->surplus, now);
    }
}

static struct gang *gang_of(const struct pod_state *pod)
{
    struct gang *gang = pod->group == NULL ? NULL : pod->group->gang;
    return gang == NULL || gang->reservation == NULL ? NULL : gang;
}

void drift_pod(struct core *core, struct pod_state *pod)
{
    struct gang *gang = gang_of(pod);
    if (gang == NULL || !core->is_ready) {
        return;
    }
    struct charge_list now = {.count = 0};
    if (pod->is_settled && pod->claim_count > 0) {
        now = surplus_of(core, gang, pod);
    }
    bool is_news = devices_in(&now) > devices_in(&pod->surplus);
    set_surplus(core, gang, pod, &now);
    if (is_news) {
        core->drift.uncharged++;
        tell(core, gang,
             arena_format(&core->scratch,
                          "pod " STR_FMT " has %lld " STR_FMT
                          " more than the gang was admitted with (its claim template, or a claim, "
                          "was changed meanwhile?); they are charged to queue " STR_FMT
                          " until it ends",
                          STR_ARG(pod->key), (long long)now.items[0].amount,
                          STR_ARG(now.items[0].resource), STR_ARG(gang->reservation->queue->name)));
    }
}

void drift_forget_pod(struct core *core, struct pod_state *pod)
{
    static const struct charge_list nothing;
    struct gang *gang = gang_of(pod);
    if (gang != NULL) {
        set_surplus(core, gang, pod, &nothing);
    }
}

/* -- all of a gang ------------------------------------------------------------------------------
 */

void drift_gang(struct core *core, struct gang *gang)
{
    for (struct pod_state *pod = gang_first_pod(gang); pod != NULL; pod = pod->next_in_group) {
        drift_pod(core, pod);
    }
}

void drift_forget_gang(struct core *core, struct gang *gang)
{
    for (struct pod_state *pod = gang->run->surplus_pods == 0 ? NULL : gang_first_pod(gang);
         pod != NULL; pod = pod->next_in_group) {
        drift_forget_pod(core, pod);
    }
}

/* -- named claims -------------------------------------------------------------------------------
 */

static void claim_vanished(struct core *core, struct str key)
{
    struct gang *payer = ledger_set_void(core, key, true);
    /* What ends lets go of its claims a moment before or behind its pods. */
    if (payer != NULL && !payer->is_job_deleting && gang_promised_pods(payer) > 0) {
        core->drift.vanished++;
        tell(core, payer,
             arena_format(&core->scratch,
                          "ResourceClaim " STR_FMT
                          " is gone that its pods name; nobody is charged for it any more. They "
                          "start once it is there again",
                          STR_ARG(key)));
    }
}

/* A claim that was made anew, or wasn't there when its gang was taken up again. */
static void raise_to_requests(struct core *core, const struct claim_state *claim)
{
    const struct device_request_list *list = &claim->object->spec.devices.requests;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct device_request_exact *exactly = list->items[i].exactly;
        int64_t asked = 0;
        for (uint32_t j = 0; exactly != NULL && j < list->count; j++) {
            const struct device_request_exact *other = list->items[j].exactly;
            bool is_same_class =
                other != NULL && str_eq(other->device_class_name, exactly->device_class_name);
            asked = sat_add(asked, is_same_class ? exact_count(other) : 0);
        }
        if (asked > 0) {
            (void)ledger_raise_claim(core, claim->key, exactly->device_class_name, asked);
        }
    }
}

void drift_claim(struct core *core, struct str key)
{
    if (!core->is_ready) {
        return;
    }
    const struct claim_state *claim = table_find(&core->claims, key);
    if (claim == NULL || claim->object == NULL) {
        claim_vanished(core, key);
        return;
    }
    (void)ledger_set_void(core, claim->key, false);
    raise_to_requests(core, claim);
    if (!claim_is_allocated(claim)) {
        return;
    }
    struct class_counts counts = {.count = 0};
    count_claim(core, claim->object, &counts);
    for (uint32_t i = 0; i < counts.count; i++) {
        struct gang *payer =
            ledger_raise_claim(core, claim->key, counts.items[i].class_name, counts.items[i].count);
        if (payer != NULL) {
            core->drift.uncharged++;
            tell(core, payer,
                 arena_format(&core->scratch,
                              "ResourceClaim " STR_FMT " has %lld " STR_FMT
                              ", more than the gang was admitted with; all are charged now",
                              STR_ARG(claim->key), (long long)counts.items[i].count,
                              STR_ARG(counts.items[i].class_name)));
        }
    }
}

void drift_start(struct core *core)
{
    struct gang *gang;
    GANG_LINE_FOREACH (gang, &core->holders) {
        gang->has_told_drift = gang->is_admission_seen; /* before the restart, as a rule */
        drift_gang(core, gang);
        for (uint32_t i = 0; i < gang->reservation->claim_count; i++) {
            drift_claim(core, gang->reservation->claims[i].key);
        }
    }
}

struct core_drift core_drift_seen(const struct core *core)
{
    return core->drift;
}
