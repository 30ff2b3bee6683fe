/* taint.c - devices that are tainted, by their ResourceSlice or by a DeviceTaintRule, and which
 * requests may have them all the same. An effect None says nothing to anybody. */
#include "ailment.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/time_text.h"

/* -- what a device has ------------------------------------------------------------------------ */

static struct str device_name(const struct device_state *device)
{
    return device->device->name;
}

static bool rule_taints(const struct taint_rule *rule, const struct device_state *device)
{
    return device_taint_keeps_off(&rule->object->spec.taint) &&
           device_taint_rule_selects(rule->object, &device->slice->spec, device_name(device));
}

static bool evicts(const struct taint *taint)
{
    return str_eq_c(taint->effect, "NoExecute");
}

static void find_taints(const struct core *core, const struct device_state *device,
                        bool *ret_is_tainted, bool *ret_is_evicting)
{
    const struct taint_list *taints = &device->device->taints;
    *ret_is_tainted = false;
    *ret_is_evicting = false;
    for (uint32_t i = 0; i < taints->count; i++) {
        *ret_is_tainted = *ret_is_tainted || device_taint_keeps_off(&taints->items[i]);
        *ret_is_evicting = *ret_is_evicting || evicts(&taints->items[i]);
    }
    struct taint_rule *rule;
    struct taint_rule *next;
    HASH_ITER (hh, core->taint_rules, rule, next) {
        bool is_hit = rule_taints(rule, device);
        *ret_is_tainted = *ret_is_tainted || is_hit;
        *ret_is_evicting = *ret_is_evicting || (is_hit && evicts(&rule->object->spec.taint));
    }
}

void device_set_ailing(struct core *core, struct device_state *device, bool is_ailing)
{
    if (device->is_ailing == is_ailing) {
        return;
    }
    device->is_ailing = is_ailing;
    if (is_ailing) {
        RB_INSERT(ailing_tree, &core->ailing_devices, device);
    } else {
        RB_REMOVE(ailing_tree, &core->ailing_devices, device);
    }
}

void device_set_evicting(struct core *core, struct device_state *device, bool is_evicting)
{
    core->evicting_devices -= device->is_evicting ? 1 : 0;
    core->evicting_devices += is_evicting ? 1 : 0;
    core->has_new_harm = core->has_new_harm || is_evicting;
    device->is_evicting = is_evicting;
}

void device_read_taints(struct core *core, struct device_state *device)
{
    bool is_evicting = false;
    find_taints(core, device, &device->is_tainted, &is_evicting);
    device_set_evicting(core, device, is_evicting);
    device_set_ailing(core, device, device->is_tainted || device->is_resting);
    ailment_judge_device(core, device);
    profiles_slot_changed(core, device->slot);
    if (device->node != NULL) {
        node_touch(core, device->node);
    }
}

/* -- who may have it all the same ------------------------------------------------------------- */

static bool is_covered(const struct taint *taint, const struct taint_query *query)
{
    if (!device_taint_keeps_off(taint) || (query->only_evicting && !evicts(taint))) {
        return true;
    }
    int64_t until_ms = device_taint_tolerated_until_ms(taint, query->tolerations);
    if (until_ms <= query->at_ms) {
        return false;
    }
    if (query->due_ms != NULL && until_ms < *query->due_ms) {
        *query->due_ms = until_ms;
    }
    return true;
}

const struct taint *device_untolerated(const struct core *core, const struct device_state *device,
                                       const struct taint_query *query)
{
    if (!device->is_tainted) {
        return NULL;
    }
    const struct taint_list *taints = &device->device->taints;
    for (uint32_t i = 0; i < taints->count; i++) {
        if (!is_covered(&taints->items[i], query)) {
            return &taints->items[i];
        }
    }
    const struct taint_rule *first = NULL; /* by its name: a table has no order */
    struct taint_rule *rule;
    struct taint_rule *next;
    HASH_ITER (hh, core->taint_rules, rule, next) {
        if (rule_taints(rule, device) && !is_covered(&rule->object->spec.taint, query) &&
            (first == NULL || str_compare(rule->name, first->name) < 0)) {
            first = rule;
        }
    }
    return first == NULL ? NULL : &first->object->spec.taint;
}

/* Who tolerates a taint only for a time would be stopped again. */
static const struct taint *untolerated_for_good(const struct core *core,
                                                const struct device_profile *profile,
                                                const struct device_state *device)
{
    struct taint_query query = {.tolerations = &profile->tolerations, .at_ms = INT64_MAX - 1};
    return device_untolerated(core, device, &query);
}

bool device_is_out(const struct core *core, const struct device_profile *profile,
                   const struct device_state *device)
{
    return device->is_resting || untolerated_for_good(core, profile, device) != NULL;
}

bool device_is_held_back(const struct core *core, const struct device_profile *profile,
                         const struct device_state *device)
{
    return device->is_resting && untolerated_for_good(core, profile, device) == NULL;
}

struct str device_out_text(struct core *core, const struct device_profile *profile,
                           const struct device_state *device)
{
    const struct taint *taint = untolerated_for_good(core, profile, device);
    if (taint != NULL) {
        return arena_format(&core->scratch, "taint " STR_FMT, STR_ARG(taint->key));
    }
    int64_t end_ms = ailment_end_ms(core, device);
    char buffer[TIME_TEXT_BYTES];
    return end_ms == 0 ? STR("reported Unhealthy")
                       : arena_format(&core->scratch, "in quarantine until " STR_FMT,
                                      STR_ARG(time_format_rfc3339(end_ms, buffer)));
}

/* -- rules ------------------------------------------------------------------------------------ */

/* Devices that the one or the other is about; either may be NULL. */
static void taints_changed(struct core *core, const struct device_taint_rule *before,
                           const struct device_taint_rule *after)
{
    bool is_any = false;
    for (uint32_t slot = 0; slot < core->device_slots; slot++) {
        struct device_state *device = core->devices[slot];
        if (device == NULL) {
            continue;
        }
        const struct resource_slice_spec *spec = &device->slice->spec;
        struct str name = device_name(device);
        if ((before != NULL && device_taint_rule_selects(before, spec, name)) ||
            (after != NULL && device_taint_rule_selects(after, spec, name))) {
            device_read_taints(core, device);
            is_any = true;
        }
    }
    if (is_any) {
        wake_for_devices(core);
    }
}

static struct taint_rule *rule_find(const struct core *core, struct str name)
{
    struct taint_rule *rule = NULL;
    HASH_FIND(hh, core->taint_rules, name.ptr, (unsigned)name.len, rule);
    return rule;
}

void taint_rule_apply(struct core *core, const struct device_taint_rule *object)
{
    const struct schema *schema = kind_info(KIND_DEVICE_TAINT_RULE)->schema;
    struct taint_rule *rule = rule_find(core, object->meta.name);
    struct device_taint_rule *before = rule == NULL ? NULL : rule->object;
    if (before != NULL) {
        struct device_taint_rule same = *object;
        same.meta = before->meta;
        if (object_equal(schema, &same, before)) {
            return; /* its status tells how far the eviction has come */
        }
    } else {
        rule = MEM_NEW(struct taint_rule);
        rule->name = str_own(object->meta.name);
        HASH_ADD_KEYPTR(hh, core->taint_rules, rule->name.ptr, (unsigned)rule->name.len, rule);
    }
    rule->object = object_clone(schema, object);
    taints_changed(core, before, rule->object);
    mem_free(before);
}

static void rule_free(struct core *core, struct taint_rule *rule)
{
    HASH_DEL(core->taint_rules, rule);
    mem_free(rule->object);
    str_drop(&rule->name);
    mem_free(rule);
}

void taint_rule_deleted(struct core *core, const struct device_taint_rule *object)
{
    struct taint_rule *rule = rule_find(core, object->meta.name);
    if (rule == NULL) {
        return;
    }
    struct device_taint_rule *gone = rule->object;
    rule->object = NULL;
    rule_free(core, rule);
    taints_changed(core, gone, NULL);
    mem_free(gone);
}

void taint_rules_free(struct core *core)
{
    struct taint_rule *rule;
    struct taint_rule *next;
    HASH_ITER (hh, core->taint_rules, rule, next) {
        rule_free(core, rule);
    }
}
