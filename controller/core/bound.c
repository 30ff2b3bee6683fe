/* bound.c - see bound.h. */
#include "bound.h"

#include "extended.h"
#include "internal.h"

#define FIELD "spec.template.spec.nodeName"

/* Under these the kubelet takes no pods, or none that may not be put out soon. */
static const char *const pressures[] = {"node.kubernetes.io/memory-pressure",
                                        "node.kubernetes.io/disk-pressure",
                                        "node.kubernetes.io/pid-pressure"};

bool pod_set_is_bound(const struct pod_set *set)
{
    return !str_is_empty(set->spec->node_name);
}

bool pod_set_may_be_on(const struct pod_set *set, const struct node_state *node)
{
    return !pod_set_is_bound(set) || str_eq(set->spec->node_name, node->name);
}

struct node_state *bound_node(const struct core *core, const struct pod_set *set)
{
    struct str name = set->spec->node_name;
    struct node_state *node = NULL;
    HASH_FIND(hh, core->nodes, name.ptr, (unsigned)name.len, node);
    return node != NULL && node->object != NULL ? node : NULL;
}

bool node_is_up_for(const struct pod_set *set, const struct node_state *node)
{
    bool is_there = node->object != NULL && node->not_ready_since_ms == 0;
    return pod_set_is_bound(set) ? is_there : node->is_usable;
}

bool taint_keeps_off(const struct pod_set *set, const struct taint *taint)
{
    if (str_eq_c(taint->effect, "NoExecute")) {
        return true;
    }
    bool keeps_off = str_eq_c(taint->effect, "NoSchedule") && !pod_set_is_bound(set);
    for (size_t i = 0; i < ARRAY_COUNT(pressures) && !keeps_off; i++) {
        keeps_off = str_eq_c(taint->key, pressures[i]);
    }
    return keeps_off;
}

/* -- claims ------------------------------------------------------------------------------------ */

static void break_for_claim(struct core *core, const struct pod_set *set, const char *what,
                            struct str name)
{
    shape_break(set->shape, REASON_NEVER_FITS,
                arena_format(&core->scratch,
                             FIELD ": its pods would wait for ever for the devices of %s " STR_FMT
                                   ", since kube-scheduler, which allocates them, passes over pods "
                                   "that name their node; it could start with nodeSelector "
                                   "kubernetes.io/hostname: " STR_FMT " instead",
                             what, STR_ARG(name), STR_ARG(set->spec->node_name)));
}

void pod_set_check_bound(struct core *core, struct pod_set *set)
{
    if (!pod_set_is_bound(set)) {
        return;
    }
    const struct pod_resource_claim_list *claims = &set->spec->resource_claims;
    for (uint32_t i = 0; i < claims->count; i++) {
        bool is_of_group = i < 64 && (set->group_claims >> i & 1) != 0;
        struct str name = claims->items[i].resource_claim_template_name;
        if (!str_is_empty(name) && !is_of_group) {
            break_for_claim(core, set, "ResourceClaimTemplate", name);
        }
    }
    for (uint32_t i = 0; i < set->claim_count; i++) {
        const struct claim_state *claim = set->claims[i].claim;
        if (!claim_is_allocated(claim)) {
            break_for_claim(core, set, "ResourceClaim", claim->key);
        }
    }
}

/* -- the node ---------------------------------------------------------------------------------- */

static struct verdict say(enum reason reason, struct str message)
{
    return (struct verdict){
        .reason = reason, .waits_for = WAIT_CONFIG | WAIT_CLUSTER, .message = message};
}

/* What a DeviceClass serves, kube-scheduler hands out: the kubelet would start the pods without. */
static struct verdict check_extended(struct core *core, const struct pod_set *set,
                                     const struct node_state *node)
{
    const struct pod_set *there = pod_set_on(set, node);
    for (uint32_t i = 0; i < there->device_count; i++) {
        if (str_is_set(there->devices[i].resource)) {
            return say(
                REASON_NEVER_FITS,
                arena_format(&core->scratch,
                             FIELD ": node " STR_FMT " has no device plugin that offers " STR_FMT
                                   ", and kube-scheduler, which hands out the "
                                   "devices of DeviceClass " STR_FMT
                                   ", passes over pods that name their node; it could start "
                                   "with nodeSelector kubernetes.io/hostname: " STR_FMT " instead",
                             STR_ARG(node->name), STR_ARG(there->devices[i].resource),
                             STR_ARG(there->devices[i].profile->class_name), STR_ARG(node->name)));
        }
    }
    return (struct verdict){.reason = REASON_NONE};
}

struct verdict bound_check_node(struct core *core, const struct pod_set *set)
{
    if (!pod_set_is_bound(set)) {
        return (struct verdict){.reason = REASON_NONE};
    }
    const struct node_state *node = bound_node(core, set);
    if (node == NULL) {
        return say(REASON_MISSING_REFERENCE,
                   arena_format(&core->scratch, FIELD ": there is no node " STR_FMT,
                                STR_ARG(set->spec->node_name)));
    }
    return check_extended(core, set, node);
}

struct verdict bound_check_flavor(struct core *core, const struct pod_set *set,
                                  const struct resource_flavor *flavor)
{
    const struct node_state *node = pod_set_is_bound(set) ? bound_node(core, set) : NULL;
    const struct string_map *labels = &flavor->spec.node_labels;
    for (uint32_t i = 0; node != NULL && i < labels->count; i++) {
        const struct string_pair *wanted = &labels->items[i];
        struct str has = string_map_find(&node->object->meta.labels, wanted->key);
        if (!str_is_set(has) || !str_eq(has, wanted->value)) {
            return say(REASON_NO_MATCHING_FLAVOR,
                       arena_format(&core->scratch,
                                    FIELD ": node " STR_FMT " isn't of flavor " STR_FMT
                                          ", whose nodes have label " STR_FMT "=" STR_FMT,
                                    STR_ARG(node->name), STR_ARG(flavor->meta.name),
                                    STR_ARG(wanted->key), STR_ARG(wanted->value)));
        }
    }
    return (struct verdict){.reason = REASON_NONE};
}
