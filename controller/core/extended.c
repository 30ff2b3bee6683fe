/* extended.c - see extended.h. */
#include "bound.h"
#include "internal.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

/* -- which class serves a name ------------------------------------------------------------------
 */

static const struct extended_name *extended_find(const struct core *core, struct str name)
{
    struct extended_name *found = NULL;
    HASH_FIND(hh, core->extended, name.ptr, (unsigned)name.len, found);
    return found;
}

struct str account_of(const struct core *core, struct str resource)
{
    bool may_be = core->extended != NULL && str_find_char(resource, '/') < resource.len;
    const struct extended_name *found = may_be ? extended_find(core, resource) : NULL;
    return found == NULL ? resource : found->class_name;
}

static void offers_free(struct extended_name *table)
{
    struct extended_name *entry;
    struct extended_name *next;
    HASH_ITER (hh, table, entry, next) {
        HASH_DEL(table, entry);
        str_drop(&entry->class_name);
        mem_free(entry);
    }
}

/* Of classes with one name the newer one serves it, then the one whose own name comes first. */
static bool is_served_by(const struct extended_name *entry, const struct device_class *class)
{
    int64_t created_ms = class->meta.creation_timestamp.ms;
    return entry->created_ms > created_ms || (entry->created_ms == created_ms &&
                                              str_compare(entry->class_name, class->meta.name) < 0);
}

static void offers_add(struct core *core, struct extended_name **table, struct str text,
                       const struct device_class *class)
{
    struct str name = str_is_empty(text) ? STR_NONE : resource_intern(core, text);
    struct extended_name *entry = NULL;
    if (str_is_empty(name)) {
        return; /* none, or there are too many */
    }
    HASH_FIND(hh, *table, name.ptr, (unsigned)name.len, entry);
    if (entry != NULL && is_served_by(entry, class)) {
        return;
    }
    if (entry == NULL) {
        entry = MEM_NEW(struct extended_name);
        entry->name = name;
        HASH_ADD_KEYPTR(hh, *table, entry->name.ptr, (unsigned)entry->name.len, entry);
    }
    str_drop(&entry->class_name);
    entry->class_name = str_own(class->meta.name);
    entry->created_ms = class->meta.creation_timestamp.ms;
}

static struct extended_name *offers_new(struct core *core)
{
    struct extended_name *table = NULL;
    struct named_object *entry;
    struct named_object *next;
    HASH_ITER (hh, core->named[KIND_DEVICE_CLASS], entry, next) {
        const struct device_class *class = entry->value;
        offers_add(core, &table, class->spec.extended_resource_name, class);
        offers_add(core, &table,
                   arena_format(&core->scratch, EXTENDED_IMPLICIT_PREFIX STR_FMT,
                                STR_ARG(class->meta.name)),
                   class);
    }
    return table;
}

static bool tables_equal(struct extended_name *a, struct extended_name *b)
{
    struct extended_name *entry;
    struct extended_name *next;
    HASH_ITER (hh, a, entry, next) {
        struct extended_name *other = NULL;
        HASH_FIND(hh, b, entry->name.ptr, (unsigned)entry->name.len, other);
        if (other == NULL || !str_eq(other->class_name, entry->class_name)) {
            return false;
        }
    }
    return HASH_COUNT(a) == HASH_COUNT(b);
}

/* -- the classes have changed ------------------------------------------------------------------ */

static bool rations_by_other_names(const struct core *core, const struct quota_node *node)
{
    for (uint32_t i = 0; i < node->cell_count; i++) {
        const struct quota_cell *cell = &node->cells[i];
        if (cell->is_listed && !str_eq(account_of(core, cell->listed), cell->resource)) {
            return true;
        }
    }
    return str_is_set(node->doubled);
}

static void read_quotas(struct core *core)
{
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        if (rations_by_other_names(core, &queue->node)) {
            quota_node_read(core, &queue->node, &queue->object->spec.resource_groups);
            queue_touch(core, queue);
            wake_queue(core, queue, WAIT_ANY);
        }
    }
    struct cohort_state *cohort;
    struct cohort_state *next;
    HASH_ITER (hh, core->cohorts, cohort, next) {
        if (rations_by_other_names(core, &cohort->node)) {
            quota_node_read(core, &cohort->node, &cohort->object->spec.resource_groups);
            cohort->status.is_dirty = true;
        }
    }
}

/* Judged with names that classes serve, or waiting for a class to. */
static bool shape_is_affected(const struct core *core, const struct shape *shape)
{
    if (shape->broken.reason == REASON_MISSING_REFERENCE ||
        shape->broken.reason == REASON_NO_MATCHING_FLAVOR) {
        return true;
    }
    for (uint32_t s = 0; s < shape->set_count; s++) {
        const struct pod_set *set = &shape->sets[s];
        for (uint32_t i = 0; i < set->device_count; i++) {
            if (str_is_set(set->devices[i].resource)) {
                return true;
            }
        }
        for (uint32_t i = 0; i < set->per_pod.count; i++) {
            if (extended_find(core, set->per_pod.items[i].resource) != NULL) {
                return true;
            }
        }
    }
    return false;
}

void extended_class_changed(struct core *core)
{
    struct extended_name *now = offers_new(core);
    bool is_same = tables_equal(now, core->extended);
    offers_free(is_same ? now : core->extended);
    if (is_same) {
        return;
    }
    core->extended = now;
    read_quotas(core);
    ledger_rename(core);
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        for (struct shape *shape = queue->shapes; shape != NULL; shape = shape->next_in_queue) {
            if (shape_is_affected(core, shape)) {
                shape_unresolve(core, shape);
            }
        }
    }
}

void extended_free(struct core *core)
{
    offers_free(core->extended);
    core->extended = NULL;
}

/* -- what a pod asks for ------------------------------------------------------------------------
 */

static uint32_t count_extended(const struct pod_set *set)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->device_count; i++) {
        count += str_is_set(set->devices[i].resource) ? 1 : 0;
    }
    return count;
}

bool pod_set_take_extended(struct core *core, struct pod_set *set, const struct amount *amount)
{
    const struct extended_name *served = extended_find(core, amount->resource);
    struct str prefix = STR(EXTENDED_IMPLICIT_PREFIX);
    if (served == NULL && str_starts_with(amount->resource, prefix)) {
        shape_break(set->shape, REASON_MISSING_REFERENCE,
                    arena_format(&core->scratch,
                                 "asks for " STR_FMT ", and DeviceClass " STR_FMT " doesn't exist",
                                 STR_ARG(amount->resource),
                                 STR_ARG(str_skip(amount->resource, prefix.len))));
        return true;
    }
    if (served == NULL) {
        return false;
    }
    if (count_extended(set) == EXTENDED_PER_POD_MAX) {
        shape_break(set->shape, REASON_NEVER_FITS,
                    arena_format(&core->scratch,
                                 "asks for more than %d extended resources that DeviceClasses "
                                 "serve; it would start with claims instead",
                                 EXTENDED_PER_POD_MAX));
        return true;
    }
    struct device_request_exact request = {.device_class_name = served->class_name};
    struct device_profile *profile = profile_use(core, &request);
    set->devices =
        mem_realloc(set->devices, (set->device_count + 1) * sizeof(struct device_demand));
    set->devices[set->device_count++] = (struct device_demand){.profile = profile,
                                                               .count = amount->value,
                                                               .charged = amount->value,
                                                               .resource = served->name};
    set->has_extended = true;
    if (str_is_set(profile->problem)) {
        shape_break(set->shape, profile->problem_reason,
                    arena_format(&core->scratch, "asks for " STR_FMT ": " STR_FMT,
                                 STR_ARG(amount->resource), STR_ARG(profile->problem)));
    }
    return true;
}

/* -- the same pod on different nodes ------------------------------------------------------------
 */

/* The n-th extended resource of the set is the plugin's where bit n is set. */
static void variant_init(struct core *core, struct pod_set *variant, const struct pod_set *set,
                         uint32_t by_plugin)
{
    *variant = (struct pod_set){.shape = set->shape, .ask = set->ask};
    variant->has_extended = by_plugin + 1 < 1u << count_extended(set);
    vector_add_all(&variant->per_pod, &set->per_pod, 1);
    variant->devices = mem_zalloc((set->device_count + 1) * sizeof(struct device_demand));
    uint32_t bit = 1;
    for (uint32_t i = 0; i < set->device_count; i++) {
        const struct device_demand *device = &set->devices[i];
        bool is_extended = str_is_set(device->resource);
        if (is_extended && (by_plugin & bit) != 0) {
            vector_add(&variant->per_pod, resource_find(core, device->resource), device->count);
        } else {
            variant->devices[variant->device_count++] = *device;
        }
        bit <<= is_extended ? 1 : 0;
    }
}

void pod_set_make_variants(struct core *core, struct pod_set *set)
{
    uint32_t variants = 1u << count_extended(set);
    if (variants == 1) {
        return;
    }
    set->variants = mem_zalloc(variants * sizeof(struct pod_set));
    for (uint32_t by_plugin = 1; by_plugin < variants; by_plugin++) {
        variant_init(core, &set->variants[by_plugin], set, by_plugin);
    }
}

void pod_set_drop_variants(struct pod_set *set)
{
    uint32_t variants = set->variants == NULL ? 0 : 1u << count_extended(set);
    for (uint32_t i = 1; i < variants; i++) {
        vector_deinit(&set->variants[i].per_pod);
        mem_free(set->variants[i].devices);
    }
    mem_free(set->variants);
    set->variants = NULL;
}

bool node_offers(const struct node_state *node, struct str resource)
{
    return str_is_set(resource) && vector_get(&node->capacity, resource) > 0;
}

const struct pod_set *pod_set_on(const struct pod_set *set, const struct node_state *node)
{
    if (set->variants == NULL) {
        return set;
    }
    uint32_t by_plugin = 0;
    uint32_t bit = 1;
    for (uint32_t i = 0; i < set->device_count; i++) {
        if (str_is_set(set->devices[i].resource)) {
            by_plugin |= node_offers(node, set->devices[i].resource) ? bit : 0;
            bit <<= 1;
        }
    }
    return by_plugin == 0 ? set : &set->variants[by_plugin];
}

bool extended_node_misleads(const struct pod_set *set, const struct node_state *node)
{
    if (set->variants == NULL || pod_set_is_bound(set)) {
        return false; /* no extended resource that a class serves, or not kube-scheduler's pods */
    }
    const struct pod_set *there = pod_set_on(set, node);
    bool has_claims = there->device_count > 0 || set->claim_count > 0;
    bool has_delegated = false;
    for (uint32_t i = 0; i < there->device_count; i++) {
        has_delegated = has_delegated || str_is_set(there->devices[i].resource);
    }
    return there != set && !has_delegated && has_claims;
}

bool extended_is_refused(const struct pod_set *set, const struct node_state *node)
{
    if (set->variants == NULL) {
        return false; /* it asks for no extended resource that a class serves */
    }
    const struct pod_set *there = pod_set_on(set, node);
    int64_t devices = 0;
    for (uint32_t i = 0; i < there->device_count; i++) {
        devices =
            sat_add(devices, str_is_set(there->devices[i].resource) ? there->devices[i].count : 0);
    }
    return devices > CLAIM_DEVICES_MAX || extended_node_misleads(set, node);
}

/* -- the scheduler's way -----------------------------------------------------------------------
 */

/* An admission can keep pods off it by its hostname. */
static bool has_hostname(const struct node_state *node)
{
    return !str_is_empty(string_map_get(&node->object->meta.labels, LABEL_HOSTNAME));
}

bool fit_would_be_misled(struct core *core, const struct pod_demand *demand,
                         struct fit_result *result)
{
    const struct node_state *trap = NULL;
    uint32_t avoidable = 0;
    struct node_state *node;
    if (demand->set->variants == NULL) {
        return false;
    }
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (node_exclusion(core, demand, node) == EXCLUDED_COUNT &&
            extended_node_misleads(demand->set, node)) {
            avoidable += has_hostname(node) ? 1 : 0;
            bool is_trap = !has_hostname(node) || avoidable > AVOIDED_HOSTS_MAX;
            trap = is_trap && trap == NULL ? node : trap;
        }
    }
    if (trap == NULL) {
        return false;
    }
    result->is_misled = true;
    result->claim_trouble = arena_format(
        &core->scratch,
        "its pods have a claim, and a device plugin of node " STR_FMT " serves the extended "
        "resource that they ask for besides: kube-scheduler may choose that node and can't bind "
        "them there; keep them off it by a flavor, a nodeSelector or a taint, or give the node the "
        "label " LABEL_HOSTNAME,
        STR_ARG(trap->name));
    return true;
}

/* -- texts ------------------------------------------------------------------------------------- */

struct str demand_asked(const struct device_demand *demand)
{
    return str_is_set(demand->resource) ? demand->resource : demand->profile->class_name;
}

struct str pod_set_asked_text(struct core *core, const struct pod_set *set, struct str account)
{
    for (uint32_t i = 0; i < set->device_count; i++) {
        const struct device_demand *device = &set->devices[i];
        if (str_is_set(device->resource) && str_eq(device->profile->class_name, account)) {
            return arena_format(&core->scratch, STR_FMT " (of DeviceClass " STR_FMT ")",
                                STR_ARG(device->resource), STR_ARG(account));
        }
    }
    return account;
}

struct str doubled_text(struct arena *arena, const struct quota_node *node)
{
    if (str_eq(node->doubled, node->doubled_by)) {
        return arena_format(arena,
                            "spec.resourceGroups lists " STR_FMT
                            " twice for one flavor; list each flavor once, and each resource once "
                            "in it",
                            STR_ARG(node->doubled));
    }
    return arena_format(arena,
                        "spec.resourceGroups lists both " STR_FMT " and " STR_FMT
                        ", which are names of one DeviceClass and so one account; list one of them",
                        STR_ARG(node->doubled), STR_ARG(node->doubled_by));
}

struct str cell_name(const struct quota_cell *cell)
{
    return str_is_set(cell->listed) ? cell->listed : cell->resource;
}
