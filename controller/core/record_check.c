/* record_check.c - can Tallyman have written that record? Where policies aren't installed whoever
 * may edit a Job may write one, and a record is a charge. */
#include "record_check.h"

#include "internal.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

static bool lists(const struct resource_list *list, struct str name)
{
    uint32_t i = 0;
    while (i < list->count && !str_eq(list->items[i].name, name)) {
        i++;
    }
    return i < list->count;
}

static bool states(const struct resource_requirements *resources, struct str name)
{
    return lists(&resources->requests, name) || lists(&resources->limits, name);
}

static bool all_state(const struct container_list *containers, struct str name)
{
    for (uint32_t i = 0; i < containers->count; i++) {
        if (!states(&containers->items[i].resources, name)) {
            return false;
        }
    }
    return true;
}

/* Whether a LimitRange or a RuntimeClass, as it was then, may have given the pod more of it. */
static bool may_be_given_more(struct core *core, const struct pod_spec *spec, struct str name,
                              struct str namespace_name)
{
    if (str_is_set(spec->runtime_class_name)) {
        return true;
    }
    bool is_stated =
        (spec->resources != NULL && states(spec->resources, name)) ||
        (all_state(&spec->containers, name) && all_state(&spec->init_containers, name));
    bool has_ranges = namespace_limits(core, namespace_name).limit_range_count > 0;
    return !is_stated && (!resource_is_device(name) || has_ranges);
}

/* What the pod itself asks for, in the resource's unit; its claims' devices at their most. */
static int64_t asked_at_most(const struct pod_spec *spec, const struct amount_list *asked,
                             struct str name)
{
    int64_t most = str_eq_c(name, RESOURCE_PODS) ? 1 : 0;
    if (resource_is_device(name)) {
        most = sat_mul(spec->resource_claims.count, CLAIM_DEVICES_MAX);
    }
    for (uint32_t i = 0; i < asked->count; i++) {
        most = sat_add(most, str_eq(asked->items[i].resource, name) ? asked->items[i].value : 0);
    }
    return most;
}

/* What is charged per pod has a flavor, or nobody's account is charged, and is no less than the
 * template asks, which nothing lowers. */
static bool is_undercharged(const struct record_pod_set *record, const struct amount_list *asked,
                            struct str name, int64_t amount)
{
    bool is_less = amount > 0 && !str_is_set(string_map_find(&record->flavors, name));
    for (uint32_t i = 0; i < asked->count; i++) {
        is_less =
            is_less || (str_eq(asked->items[i].resource, name) && amount < asked->items[i].value);
    }
    return is_less;
}

static bool is_set_believable(struct core *core, const struct record_pod_set *record,
                              const struct pod_spec *spec, struct str namespace_name)
{
    struct amount_list asked = {.count = 0};
    struct request_context plain = {.limit_range_count = 0};
    struct err err;
    if (rc_failed(pod_template_requests(&core->scratch, spec, &plain, &asked, &err))) {
        return true; /* the Job is invalid, which is told elsewhere */
    }
    for (uint32_t i = 0; i < record->requests.count; i++) {
        struct str name = record->requests.items[i].name;
        int64_t amount = resource_amount_from_quantity(name, record->requests.items[i].value, true);
        if (is_undercharged(record, &asked, name, amount)) {
            return false;
        }
        if (amount > asked_at_most(spec, &asked, name) &&
            !may_be_given_more(core, spec, name, namespace_name)) {
            return false;
        }
    }
    return true;
}

bool record_is_believable(struct core *core, const struct admission_record *record,
                          const struct gang_input *input, struct str namespace_name)
{
    if (record->at.ms > sat_add(core->now_ms, RECORD_AHEAD_MAX_MS)) {
        return false;
    }
    for (uint32_t r = 0; r < record->pod_sets.count; r++) {
        for (uint32_t s = 0; s < input->set_count; s++) {
            const struct record_pod_set *set = &record->pod_sets.items[r];
            if (str_eq(set->name, input->sets[s].name) &&
                !is_set_believable(core, set, &input->sets[s].pod_template->spec, namespace_name)) {
                return false;
            }
        }
    }
    return true;
}

/* -- what a record leaves out ----------------------------------------------------------------- */

static bool queue_lists_flavor(const struct queue_state *queue, struct str flavor)
{
    uint32_t i = 0;
    while (i < queue->node.cell_count &&
           !(queue->node.cells[i].is_listed && str_eq(queue->node.cells[i].flavor, flavor))) {
        i++;
    }
    return i < queue->node.cell_count;
}

static bool queue_lists_account(const struct queue_state *queue, struct str account)
{
    uint32_t i = 0;
    while (i < queue->node.cell_count &&
           !(queue->node.cells[i].is_listed && str_eq(queue->node.cells[i].resource, account))) {
        i++;
    }
    return i < queue->node.cell_count;
}

/* A flavor may have left the queue, or have been deleted, while the gang ran. Of `default` there
 * may never have been an object; that the gang was on it its Admission says, which nobody else
 * writes. */
static bool knows_flavors(const struct core *core, const struct gang *gang,
                          const struct queue_state *queue, const struct record_pod_set *record)
{
    for (uint32_t i = 0; i < record->flavors.count; i++) {
        struct str flavor = record->flavors.items[i].value;
        bool was_on_it = gang->was_on_default && str_eq_c(flavor, FLAVOR_DEFAULT);
        if (!was_on_it && flavor_find(core, flavor) == NULL && !queue_lists_flavor(queue, flavor)) {
            return false;
        }
    }
    return true;
}

static bool has_amount(const struct core *core, const struct record_pod_set *record,
                       struct str account)
{
    bool has = record->requests.count == 0; /* it is what the template asks */
    for (uint32_t i = 0; i < record->requests.count; i++) {
        const struct resource_amount *amount = &record->requests.items[i];
        has = has || (str_eq(account_of(core, amount->name), account) && amount->value.nano > 0);
    }
    return has;
}

static bool charges(const struct core *core, const struct record_pod_set *record,
                    struct str account)
{
    for (uint32_t i = 0; i < record->flavors.count; i++) {
        if (str_eq(account_of(core, record->flavors.items[i].key), account)) {
            return has_amount(core, record, account);
        }
    }
    return false;
}

/* Of what its containers ask for by name; the devices that a claim gives are counted, too, where
 * they are beyond the record, see drift.c. */
static bool leaves_out(const struct core *core, const struct queue_state *queue,
                       const struct record_pod_set *record, const struct pod_set *set)
{
    for (uint32_t i = 0; i < set->per_pod.count; i++) {
        struct str account = account_of(core, set->per_pod.items[i].resource);
        if (resource_is_device(account) && set->per_pod.items[i].value > 0 &&
            queue_lists_account(queue, account) && !charges(core, record, account)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < set->device_count; i++) {
        const struct device_demand *demand = &set->devices[i];
        struct str account = demand->profile->class_name;
        if (str_is_set(demand->resource) && demand->charged > 0 &&
            queue_lists_account(queue, account) && !charges(core, record, account)) {
            return true;
        }
    }
    return false;
}

static bool charges_enough(struct core *core, const struct gang *gang)
{
    const struct admission_record *record = gang->record;
    const struct queue_state *queue = queue_find(core, record->queue);
    if (queue == NULL || queue->object == NULL || gang->shape == NULL) {
        return true;
    }
    shape_resolve(core, gang->shape);
    bool may_be_unlisted = str_eq_c(queue->object->spec.undeclared_resources, "Allow");
    for (uint32_t s = 0; s < gang->shape->set_count; s++) {
        const struct pod_set *set = &gang->shape->sets[s];
        const struct record_pod_set *charged = record_set(record, set->name);
        if (charged != NULL && charged->count.value > 0 &&
            (!knows_flavors(core, gang, queue, charged) ||
             (!may_be_unlisted && leaves_out(core, queue, charged, set)))) {
            return false;
        }
    }
    return true;
}

void record_refuse_if_thin(struct core *core, struct gang *gang)
{
    if (gang->reservation == NULL && record_is_in_force(gang) && !charges_enough(core, gang)) {
        mem_free(gang->record);
        gang->record = NULL;
        gang->is_record_refused = true;
    }
}

bool record_is_in_force(const struct gang *gang)
{
    bool has_let_go = gang->state == GANG_SUSPENDING && gang->reservation == NULL;
    return gang->record != NULL && gang->suspended == NULL &&
           (!has_let_go || gang->is_start_unseen);
}
