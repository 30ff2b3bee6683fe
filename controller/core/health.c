/* health.c - which nodes count as healthy, by the rules of a ResourceFlavor.
 *
 * A node is out for the gangs of a flavor while it has a condition that the flavor lists, and for
 * the flavor's quarantine after each of those (and Ready) has come to say something else. When that
 * was, the condition itself tells (lastTransitionTime), so that a restart changes nothing; one that
 * is dated in the future, by a clock that is wrong, counts from when it is first seen. What a Node
 * says of itself in its first minutes is no recovery: it comes up. */
#include "fit.h"
#include "incident.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/time_text.h"

/* -- what a node says ---------------------------------------------------------------------------
 */

/* A kubelet's own, which stand at False on every healthy node: absent means the same. */
static bool is_false_by_default(struct str type)
{
    return str_eq_c(type, "MemoryPressure") || str_eq_c(type, "DiskPressure") ||
           str_eq_c(type, "PIDPressure") || str_eq_c(type, "NetworkUnavailable");
}

static bool is_of_note(const struct condition *condition)
{
    return !(is_false_by_default(condition->type) && str_eq_c(condition->status, "False"));
}

static int64_t since_of(const struct condition *condition)
{
    return condition->last_transition_time.is_set ? condition->last_transition_time.ms : 0;
}

static bool says_the_same(const struct node_state *node, const struct condition_list *list)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (!is_of_note(&list->items[i])) {
            continue;
        }
        const struct node_condition *kept =
            at < node->condition_count ? &node->conditions[at] : NULL;
        if (kept == NULL || !str_eq(kept->type, list->items[i].type) ||
            !str_eq(kept->status, list->items[i].status) ||
            kept->stated_ms != since_of(&list->items[i])) {
            return false;
        }
        at++;
    }
    return at == node->condition_count;
}

void node_drop_conditions(struct node_state *node)
{
    for (uint32_t i = 0; i < node->condition_count; i++) {
        str_drop(&node->conditions[i].type);
        str_drop(&node->conditions[i].status);
    }
    mem_free(node->conditions);
    node->conditions = NULL;
    node->condition_count = 0;
}

/* When it began: a time to come is a wrong clock's, so it is when that was first seen. */
static int64_t honest_since_ms(const struct node_condition *before, uint32_t count,
                               const struct condition *condition, int64_t now_ms)
{
    int64_t stated_ms = since_of(condition);
    for (uint32_t i = 0; i < count; i++) {
        if (before[i].stated_ms == stated_ms && str_eq(before[i].type, condition->type) &&
            str_eq(before[i].status, condition->status)) {
            return before[i].since_ms;
        }
    }
    return stated_ms < now_ms ? stated_ms : now_ms;
}

bool node_read_conditions(struct node_state *node, const struct node *object, int64_t now_ms)
{
    const struct condition_list *list = &object->status.conditions;
    if (says_the_same(node, list)) {
        return false;
    }
    struct node_state before = {.conditions = node->conditions,
                                .condition_count = node->condition_count};
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        count += is_of_note(&list->items[i]) ? 1 : 0;
    }
    node->conditions = count == 0 ? NULL : mem_zalloc(count * sizeof(*node->conditions));
    node->condition_count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct condition *condition = &list->items[i];
        if (is_of_note(condition)) {
            node->conditions[node->condition_count++] = (struct node_condition){
                .type = str_own(condition->type),
                .status = str_own(condition->status),
                .stated_ms = since_of(condition),
                .since_ms =
                    honest_since_ms(before.conditions, before.condition_count, condition, now_ms)};
        }
    }
    node_drop_conditions(&before);
    return true;
}

static const struct node_condition *condition_of(const struct node_state *node, struct str type)
{
    for (uint32_t i = 0; i < node->condition_count; i++) {
        if (str_eq(node->conditions[i].type, type)) {
            return &node->conditions[i];
        }
    }
    return NULL;
}

/* -- what a flavor makes of it ------------------------------------------------------------------
 */

const struct node_condition *node_illness(const struct resource_flavor *flavor,
                                          const struct node_state *node)
{
    static const struct node_condition unwritten = {.type = STR_INIT("a pressure condition"),
                                                    .status = STR_INIT("False")};
    const struct flavor_health *health = flavor->spec.health;
    for (uint32_t i = 0; health != NULL && i < health->conditions.count; i++) {
        const struct health_condition *listed = &health->conditions.items[i];
        const struct node_condition *condition = condition_of(node, listed->type);
        if (condition == NULL && is_false_by_default(listed->type)) {
            condition = &unwritten;
        }
        if (condition != NULL && str_eq(condition->status, listed->status)) {
            return condition;
        }
    }
    return NULL;
}

static int64_t quarantine_ms(const struct resource_flavor *flavor)
{
    const struct flavor_health *health = flavor->spec.health;
    return health == NULL || !health->quarantine.is_set ? 0 : health->quarantine.ms;
}

/* When that condition has been good for long enough. */
static int64_t good_from_ms(const struct node_state *node, struct str type, int64_t rest_ms)
{
    const struct node_condition *condition = condition_of(node, type);
    if (condition == NULL || node->object == NULL) {
        return 0;
    }
    const struct opt_time *created = &node->object->meta.creation_timestamp;
    bool comes_up =
        created->is_set && condition->since_ms - created->ms < NODE_SETTLING_MS && !node->was_ill;
    return condition->since_ms == 0 || comes_up ? 0 : sat_add(condition->since_ms, rest_ms);
}

int64_t node_rest_end_ms(const struct core *core, const struct resource_flavor *flavor,
                         const struct node_state *node)
{
    int64_t rest_ms = quarantine_ms(flavor);
    if (rest_ms == 0) {
        return 0;
    }
    int64_t end_ms = good_from_ms(node, STR("Ready"), rest_ms);
    const struct flavor_health *health = flavor->spec.health;
    for (uint32_t i = 0; i < health->conditions.count; i++) {
        int64_t from_ms = good_from_ms(node, health->conditions.items[i].type, rest_ms);
        end_ms = from_ms > end_ms ? from_ms : end_ms;
    }
    return end_ms > core->now_ms ? end_ms : 0;
}

enum exclusion node_health_exclusion(const struct core *core, const struct pod_demand *demand,
                                     const struct node_state *node)
{
    enum exclusion found = EXCLUDED_COUNT;
    for (uint32_t f = 0; f < demand->flavor_count; f++) {
        if (demand->flavors[f]->spec.health == NULL) {
            continue;
        }
        if (node_illness(demand->flavors[f], node) != NULL) {
            return EXCLUDED_UNHEALTHY;
        }
        if (node_rest_end_ms(core, demand->flavors[f], node) != 0) {
            found = EXCLUDED_QUARANTINE;
        }
    }
    return found;
}

struct str node_health_text(struct core *core, const struct pod_demand *demand,
                            const struct node_state *node)
{
    int64_t end_ms = 0;
    for (uint32_t f = 0; f < demand->flavor_count; f++) {
        const struct node_condition *illness = node_illness(demand->flavors[f], node);
        if (illness != NULL) {
            return arena_format(&core->scratch, STR_FMT " is " STR_FMT, STR_ARG(illness->type),
                                STR_ARG(illness->status));
        }
        int64_t rest_ms = node_rest_end_ms(core, demand->flavors[f], node);
        end_ms = rest_ms > end_ms ? rest_ms : end_ms;
    }
    char buffer[TIME_TEXT_BYTES];
    return end_ms == 0 ? STR_NONE
                       : arena_format(&core->scratch, "until " STR_FMT,
                                      STR_ARG(time_format_rfc3339(end_ms, buffer)));
}

/* -- the end of a quarantine --------------------------------------------------------------------
 */

void node_plan_rest(struct core *core, struct node_state *node)
{
    node->rests_until_ms = 0;
    if (node->object == NULL) {
        return;
    }
    struct flavor_state *flavor;
    struct flavor_state *next;
    HASH_ITER (hh, core->flavors, flavor, next) {
        const struct resource_flavor *object = flavor->object;
        if (quarantine_ms(object) == 0 || !node->is_usable || node_illness(object, node) != NULL ||
            !node_labels_contain(&object->spec.node_labels, &node->object->meta.labels)) {
            continue;
        }
        int64_t end_ms = node_rest_end_ms(core, object, node);
        bool is_first = node->rests_until_ms == 0 || end_ms < node->rests_until_ms;
        node->rests_until_ms = end_ms != 0 && is_first ? end_ms : node->rests_until_ms;
    }
    bool is_next = core->next_rest_end_ms == 0 || node->rests_until_ms < core->next_rest_end_ms;
    if (node->rests_until_ms != 0 && is_next) {
        core->next_rest_end_ms = node->rests_until_ms;
    }
}

void nodes_plan_rest(struct core *core)
{
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        node_plan_rest(core, node);
        node_read_harm(core, node);
    }
}

void health_tick(struct core *core)
{
    if (core->next_rest_end_ms == 0 || core->now_ms < core->next_rest_end_ms) {
        return;
    }
    core->next_rest_end_ms = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        bool is_over = node->rests_until_ms != 0 && node->rests_until_ms <= core->now_ms;
        if (node->rests_until_ms != 0) {
            node_plan_rest(core, node);
        }
        if (is_over) {
            node_touch_object(core, node);
            flavors_touch(core);
            wake_reserved(core);
            wake_for_node(core, node);
        }
    }
}
