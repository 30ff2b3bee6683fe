/* avoid.c - keeps the pods of a gang off nodes that its flavor calls unhealthy, and off those that
 * they would be stuck on.
 *
 * kube-scheduler knows taints, and nothing of a flavor's health rules: without this a gang that has
 * room elsewhere could be placed on such a node and would have to stop at once, again and again.
 * Nor does it foresee on which nodes it then can't bind a pod (extended_node_misleads()). So the
 * PATCH that admits adds to the required node affinity, to each of its alternatives, that the
 * hostname isn't one of those; and it is put back with the rest of the template. */
#include "avoid.h"

#include "extended.h"
#include "fit.h"

#include "tallyman/base/limits.h"

/* -- which nodes --------------------------------------------------------------------------------
 */

static bool has_labels(const struct pod_demand *demand, const struct node_state *node)
{
    for (uint32_t f = 0; f < demand->flavor_count; f++) {
        if (!node_labels_contain(&demand->flavors[f]->spec.node_labels,
                                 &node->object->meta.labels)) {
            return false;
        }
    }
    return true;
}

/* Nodes of one kind, of those that the demand could go to otherwise. */
typedef bool avoids_node(struct core *core, const struct pod_demand *demand,
                         const struct node_state *node);

static bool is_sick(struct core *core, const struct pod_demand *demand,
                    const struct node_state *node)
{
    bool may_be = node->is_harmful || node->rests_until_ms != 0;
    return may_be && has_labels(demand, node) &&
           node_health_exclusion(core, demand, node) != EXCLUDED_COUNT;
}

static bool is_misleading(struct core *core, const struct pod_demand *demand,
                          const struct node_state *node)
{
    return extended_node_misleads(demand->set, node) &&
           node_exclusion(core, demand, node) == EXCLUDED_COUNT;
}

static void add_hosts(struct core *core, const struct pod_demand *demand, avoids_node *avoids,
                      struct str_list *hosts, uint32_t *capacity)
{
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (!avoids(core, demand, node)) {
            continue;
        }
        struct str host = string_map_get(&node->object->meta.labels, LABEL_HOSTNAME);
        if (!str_is_empty(host) && hosts->count < AVOIDED_HOSTS_MAX) {
            hosts->items = arena_grow(&core->scratch, hosts->items, hosts->count, capacity,
                                      sizeof(struct str));
            hosts->items[hosts->count++] = host;
        }
    }
}

/* Those that a pod would be stuck on come first: for the others there may be too many. */
static struct str_list avoided_hosts(struct core *core, const struct pod_demand *demand)
{
    struct str_list hosts = {.count = 0};
    uint32_t capacity = 0;
    if (demand->set->variants != NULL) {
        add_hosts(core, demand, is_misleading, &hosts, &capacity);
    }
    if (core->harmful_nodes > 0 || core->next_rest_end_ms != 0) {
        add_hosts(core, demand, is_sick, &hosts, &capacity);
    }
    return hosts;
}

struct str_list avoid_hosts(struct core *core, const struct gang *gang,
                            const struct reserved_set *reserved)
{
    const struct pod_set *set = pod_set_find(gang->shape, reserved->name);
    struct str_list none = {.count = 0};
    if (set == NULL) {
        return none;
    }
    struct pod_demand demand = {.set = set, .node_selector = &set->node_selector};
    for (uint32_t i = 0; i < reserved->per_pod.count; i++) {
        const struct resource_flavor *flavor =
            flavor_object(core, reserved->per_pod.items[i].flavor);
        if (flavor != NULL && demand.flavor_count < FLAVORS_PER_GANG_MAX) {
            demand.flavors[demand.flavor_count++] = flavor;
        }
    }
    return avoided_hosts(core, &demand);
}

/* -- the affinity -------------------------------------------------------------------------------
 */

static struct node_selector *required_of(const struct affinity *affinity)
{
    return affinity == NULL || affinity->node_affinity == NULL ? NULL
                                                               : affinity->node_affinity->required;
}

static struct affinity *affinity_with(struct arena *arena, struct node_selector *required)
{
    struct affinity *affinity = ARENA_NEW(arena, struct affinity);
    affinity->node_affinity = ARENA_NEW(arena, struct node_affinity);
    affinity->node_affinity->required = required;
    return affinity;
}

/* The term, and that the hostname is none of those. */
static struct node_selector_term
narrowed(struct arena *arena, const struct node_selector_term *term, const struct str_list *hosts)
{
    struct node_selector_term narrow = *term;
    uint32_t count = term->match_expressions.count;
    narrow.match_expressions.items = ARENA_ARRAY(arena, struct match_expression, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        narrow.match_expressions.items[i] = term->match_expressions.items[i];
    }
    narrow.match_expressions.items[count] =
        (struct match_expression){.key = STR(LABEL_HOSTNAME), .op = STR("NotIn"), .values = *hosts};
    narrow.match_expressions.count = count + 1;
    return narrow;
}

static struct node_selector *narrowed_selector(struct arena *arena,
                                               const struct node_selector *before,
                                               const struct str_list *hosts)
{
    static const struct node_selector_term anywhere;
    struct node_selector *required = ARENA_NEW(arena, struct node_selector);
    struct node_selector_term_list *terms = &required->node_selector_terms;
    uint32_t count = before == NULL ? 1 : before->node_selector_terms.count;
    terms->items = ARENA_ARRAY(arena, struct node_selector_term, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const struct node_selector_term *term =
            before == NULL ? &anywhere : &before->node_selector_terms.items[i];
        bool matches_nothing =
            before != NULL && term->match_expressions.count == 0 && term->match_fields.count == 0;
        if (!matches_nothing) {
            terms->items[terms->count++] = narrowed(arena, term, hosts);
        }
    }
    return required;
}

struct avoidance avoid_find(struct core *core, const struct pod_set *set,
                            const struct set_choice *choice)
{
    struct avoidance avoidance = {.affinity = NULL};
    struct pod_demand demand = {
        .set = set, .node_selector = &set->node_selector, .flavor_count = choice->flavor_count};
    for (uint32_t f = 0; f < choice->flavor_count; f++) {
        demand.flavors[f] = choice->flavors[f];
    }
    struct str_list hosts = avoided_hosts(core, &demand);
    const struct affinity *affinity = set->spec->affinity;
    const struct node_selector *before = required_of(affinity);
    if (hosts.count == 0 || (before != NULL && before->node_selector_terms.count == 0)) {
        return avoidance;
    }
    avoidance.affinity =
        affinity_with(&core->scratch, narrowed_selector(&core->scratch, before, &hosts));
    avoidance.added = affinity == NULL                  ? "affinity"
                      : affinity->node_affinity == NULL ? "nodeAffinity"
                      : before == NULL                  ? "required"
                                                        : "terms";
    return avoidance;
}

/* -- writing it, and putting it back ------------------------------------------------------------
 */

/* A copy in that arena, by its own text. */
static struct affinity *copy_affinity(struct arena *arena, struct affinity *affinity)
{
    struct pod_spec only = {.affinity = affinity};
    struct json_writer *writer = json_writer_new();
    encode_object(writer, &pod_spec_schema, &only);
    struct err err;
    void *copy = NULL;
    struct rc rc = decode_json(arena, &pod_spec_schema,
                               arena_copy_str(arena, json_writer_text(writer)), &copy, &err);
    json_writer_free(writer);
    return rc_failed(rc) ? NULL : ((struct pod_spec *)copy)->affinity;
}

void avoid_patch(struct core *core, const struct avoidance *avoidance, struct template_patch *patch)
{
    if (avoidance->affinity != NULL) {
        patch->affinity = copy_affinity(core->out->arena, avoidance->affinity);
    }
}

void avoid_record(const struct pod_set *set, const struct avoidance *avoidance,
                  struct record_restore *restore)
{
    if (avoidance->affinity != NULL) {
        restore->added_affinity = str_from_c(avoidance->added);
        restore->required_affinity = required_of(set->spec->affinity);
    }
}

void avoid_restore(struct core *core, const struct record_restore *restore,
                   struct template_patch *patch)
{
    if (restore == NULL || !str_is_set(restore->added_affinity)) {
        return;
    }
    if (restore->required_affinity != NULL) {
        patch->affinity = copy_affinity(core->out->arena,
                                        affinity_with(&core->scratch, restore->required_affinity));
        return;
    }
    patch->drops_affinity = str_eq_c(restore->added_affinity, "affinity")       ? "affinity"
                            : str_eq_c(restore->added_affinity, "nodeAffinity") ? "nodeAffinity"
                                                                                : "required";
}

struct affinity *avoid_plain(struct core *core, const struct pod_spec *spec,
                             const struct record_restore *restore)
{
    bool is_ours = restore != NULL && str_is_set(restore->added_affinity);
    if (!is_ours || spec->affinity == NULL || spec->affinity->node_affinity == NULL) {
        return spec->affinity;
    }
    if (str_eq_c(restore->added_affinity, "affinity")) {
        return NULL;
    }
    struct affinity *plain = ARENA_NEW(&core->scratch, struct affinity);
    *plain = *spec->affinity;
    plain->node_affinity = NULL;
    if (!str_eq_c(restore->added_affinity, "nodeAffinity")) {
        plain->node_affinity = ARENA_NEW(&core->scratch, struct node_affinity);
        *plain->node_affinity = *spec->affinity->node_affinity;
        plain->node_affinity->required = restore->required_affinity;
    }
    return plain;
}
