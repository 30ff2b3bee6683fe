/* fit_health.c - of what a gang lacks, how much is only out because it isn't healthy.
 *
 * A gang that would start if everything were healthy is told so, and by what; one that wouldn't is
 * told what it lacks anyway. */
#include "ask.h"
#include "extended.h"
#include "reach.h"

#define NAMES_MAX       3
#define NAMES_MAX_BYTES 300
#define WHY_MAX_BYTES   120

static bool is_for_health(enum exclusion exclusion)
{
    return exclusion == EXCLUDED_NOT_READY || exclusion == EXCLUDED_UNHEALTHY ||
           exclusion == EXCLUDED_QUARANTINE;
}

/* -- which nodes are out ---------------------------------------------------------------------- */

/* Each once, in the order in which they are met. */
static void add_once(struct str *names, uint32_t *count, struct str name)
{
    for (uint32_t i = 0; i < *count && i < NAMES_MAX; i++) {
        if (str_eq(names[i], name)) {
            return;
        }
    }
    if (*count < NAMES_MAX) {
        names[*count] = name;
    }
    (*count)++;
}

static struct str join_names(struct arena *arena, const struct str *names, uint32_t count)
{
    struct text text;
    text_init(&text, arena, WHY_MAX_BYTES);
    for (uint32_t i = 0; i < count && i < NAMES_MAX; i++) {
        text_addf(&text, "%s" STR_FMT, i == 0 ? "" : ", ", STR_ARG(names[i]));
    }
    text_addf(&text, "%s", count > NAMES_MAX ? ", …" : "");
    return text_str(&text);
}

static struct str why_out(struct core *core, const struct pod_demand *demand,
                          const struct node_state *node, enum exclusion exclusion)
{
    switch ((int)exclusion) {
    case EXCLUDED_TAINT:
        return node_untolerated(demand, node)->key;
    case EXCLUDED_UNHEALTHY:
    case EXCLUDED_QUARANTINE:
        return node_health_text(core, demand, node);
    default:
        return STR_NONE;
    }
}

void fit_list_sick(struct core *core, const struct pod_demand *demand, struct fit_result *result)
{
    uint32_t sick = result->excluded[EXCLUDED_NOT_READY] + result->excluded[EXCLUDED_UNHEALTHY] +
                    result->excluded[EXCLUDED_QUARANTINE];
    if (sick + result->excluded[EXCLUDED_TAINT] == 0) {
        return;
    }
    struct str names[EXCLUDED_COUNT + 1][NAMES_MAX];
    uint32_t counts[EXCLUDED_COUNT + 1] = {0};
    result->sick_nodes = ARENA_ARRAY(&core->scratch, struct node_state *, sick + 1);
    result->sick_count = 0;
    const struct reach *reach = reach_of(core, demand);
    struct node_state *node;
    uint32_t index = 0;
    RB_FOREACH (node, node_tree, &core->node_order) {
        uint8_t known = reach == NULL ? EXCLUDED_COUNT : reach->exclusions[index];
        index++;
        if (node->object == NULL) {
            continue;
        }
        enum exclusion exclusion =
            reach == NULL ? node_exclusion(core, demand, node) : (enum exclusion)known;
        if (is_for_health(exclusion) && result->sick_count < sick &&
            node_is_only_sick(demand, node)) {
            result->sick_nodes[result->sick_count++] = node;
        }
        struct str why = why_out(core, demand, node, exclusion);
        if (str_is_set(why)) {
            add_once(names[exclusion], &counts[exclusion], why);
        }
    }
    for (int i = 0; i < EXCLUDED_COUNT; i++) {
        if (counts[i] > 0) {
            result->excluded_why[i] = join_names(&core->scratch, names[i], counts[i]);
        }
    }
}

/* -- what would be free -------------------------------------------------------------------------
 */

struct ailing {
    i128 count;
    i128 unreached;  /* free, and seen from a node that is out; none of its own */
    int64_t largest; /* on one node, with what is free there */
    struct text names;
    uint32_t named;
    uint32_t unnamed;
};

static void add_name(struct ailing *ailing, struct str name)
{
    if (ailing->named == NAMES_MAX) {
        ailing->unnamed++;
        return;
    }
    text_addf(&ailing->names, "%s" STR_FMT, ailing->named++ == 0 ? "" : ", ", STR_ARG(name));
}

static void add_unnamed(struct ailing *ailing)
{
    if (ailing->unnamed > 0) {
        text_addf(&ailing->names, " and %u more", ailing->unnamed);
    }
}

static struct str node_out_text(struct core *core, const struct pod_demand *demand,
                                const struct node_state *node, enum exclusion exclusion)
{
    struct str why = why_out(core, demand, node, exclusion);
    return arena_format(&core->scratch, "node " STR_FMT " (" STR_FMT ")", STR_ARG(node->name),
                        STR_ARG(exclusion_sentence(&core->scratch, exclusion, why)));
}

static bool is_of_plugin(const struct fit_shortage *shortage, const struct node_state *node)
{
    return str_is_set(shortage->extended) && node_offers(node, shortage->extended);
}

/* Of the devices that the node owns: free ones, whether the request may have them now or not. */
static int64_t free_if_healthy(struct core *core, const struct fit_shortage *shortage,
                               const struct node_state *node)
{
    struct device_profile *profile = shortage->profile;
    int64_t free = 0;
    if (profile == NULL) {
        return i128_clamp(node_room(core, node, shortage->resource));
    }
    if (is_of_plugin(shortage, node)) {
        return i128_clamp(node_room(core, node, shortage->extended));
    }
    for (struct device_state *device = node->devices; device != NULL;
         device = device->next_on_node) {
        free += device_is_free(core, device) && profile_selects(core, profile, device) ? 1 : 0;
    }
    return free;
}

/* Of those that no node owns: free ones that it sees. */
static int64_t seen_if_healthy(struct core *core, const struct fit_shortage *shortage,
                               const struct node_state *node)
{
    if (shortage->profile == NULL || core->roaming_devices == 0 || is_of_plugin(shortage, node)) {
        return 0;
    }
    int64_t seen = 0;
    for (uint32_t slot = 0; slot < core->device_slots; slot++) {
        const struct device_state *device = core->devices[slot];
        bool is_roaming = device != NULL && device->node == NULL;
        seen += is_roaming && device_is_free(core, device) &&
                        profile_selects(core, shortage->profile, device) &&
                        device_is_visible(device, node)
                    ? 1
                    : 0;
    }
    return seen;
}

static void add_devices(struct core *core, const struct pod_demand *demand,
                        const struct fit_shortage *shortage, struct ailing *ailing)
{
    struct device_profile *profile = shortage->profile;
    struct device_state *device;
    RB_FOREACH (device, ailing_tree, &core->ailing_devices) {
        bool is_elsewhere = device->node != NULL &&
                            (device->node->object == NULL || is_of_plugin(shortage, device->node) ||
                             node_exclusion(core, demand, device->node) != EXCLUDED_COUNT);
        if (is_elsewhere || profile_match(core, profile, device) != MATCH_OUT ||
            !device_is_free(core, device)) {
            continue;
        }
        ailing->count++;
        add_name(ailing, arena_format(&core->scratch, "device " STR_FMT " (" STR_FMT ")",
                                      STR_ARG(device->key),
                                      STR_ARG(device_out_text(core, profile, device))));
        int64_t here = device->node == NULL ? i128_clamp(ailing->count)
                                            : free_if_healthy(core, shortage, device->node);
        ailing->largest = here > ailing->largest ? here : ailing->largest;
    }
}

static void add_nodes(struct core *core, const struct pod_demand *demand,
                      const struct fit_shortage *shortage, const struct fit_result *fit,
                      struct ailing *ailing)
{
    for (uint32_t i = 0; i < fit->sick_count; i++) {
        struct node_state *node = fit->sick_nodes[i];
        int64_t own = free_if_healthy(core, shortage, node);
        int64_t seen = seen_if_healthy(core, shortage, node);
        int64_t here = sat_add(own, seen);
        if (here == 0) {
            continue;
        }
        enum exclusion exclusion = node_exclusion(core, demand, node);
        ailing->count += own;
        ailing->unreached = seen > ailing->unreached ? seen : ailing->unreached;
        ailing->largest = here > ailing->largest ? here : ailing->largest;
        add_name(ailing, node_out_text(core, demand, node, exclusion));
    }
}

/* -- what a search would find -------------------------------------------------------------------
 */

/* The devices that only their health keeps from the requests, and that nobody has. */
static void add_wanted(struct core *core, const struct pod_demand *demand, struct ailing *ailing)
{
    const struct device_ask *ask = demand->set->ask;
    struct device_state *device;
    RB_FOREACH (device, ailing_tree, &core->ailing_devices) {
        bool is_elsewhere =
            device->node != NULL && (device->node->object == NULL ||
                                     node_exclusion(core, demand, device->node) != EXCLUDED_COUNT);
        struct device_profile *wanted_by = NULL;
        for (uint32_t o = 0; o < ask->option_count && !is_elsewhere; o++) {
            struct device_profile *profile = ask->options[o].profile;
            wanted_by = wanted_by == NULL && profile_match(core, profile, device) == MATCH_OUT
                            ? profile
                            : wanted_by;
        }
        if (wanted_by != NULL && device_is_unheld(core, device)) {
            add_name(ailing, arena_format(&core->scratch, "device " STR_FMT " (" STR_FMT ")",
                                          STR_ARG(device->key),
                                          STR_ARG(device_out_text(core, wanted_by, device))));
        }
    }
}

/* How many more pods there would be devices for, beside what is in the plan, at most `want`. */
static int64_t place_healed(struct core *core, const struct pod_demand *demand, int64_t want,
                            struct ailing *ailing)
{
    int64_t placed = 0;
    core->plan_is_healed = true;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (node->object == NULL || placed == want) {
            continue;
        }
        enum exclusion exclusion = node_exclusion(core, demand, node);
        bool is_sick = is_for_health(exclusion) && node_is_only_sick(demand, node);
        if (exclusion != EXCLUDED_COUNT && !is_sick) {
            continue;
        }
        int64_t here = node_place(core, demand, node, want - placed);
        placed += here;
        if (is_sick && here > 0) {
            add_name(ailing, node_out_text(core, demand, node, exclusion));
        }
    }
    core->plan_is_healed = false;
    return placed;
}

void fit_search_healthy(struct core *core, const struct pod_demand *demand, int64_t count,
                        struct fit_result *result)
{
    const struct pod_set *set = demand->set;
    bool is_told = str_is_set(result->health.resource) || result->health.is_short_anyway;
    if (!ask_is_special(set->ask) || demand_has_new_claims(demand) || is_told ||
        result->asked_placed >= count) {
        return;
    }
    struct ailing ailing = {.count = 0};
    text_init(&ailing.names, &core->scratch, NAMES_MAX_BYTES);
    add_wanted(core, demand, &ailing);
    if (place_healed(core, demand, count - result->asked_placed, &ailing) <
        count - result->asked_placed) {
        return;
    }
    add_unnamed(&ailing);
    result->health = (struct fit_health){.resource = set->ask->options[0].profile->class_name,
                                         .names = text_str(&ailing.names),
                                         .is_by_search = true};
}

/* -- what a count tells -------------------------------------------------------------------------
 */

bool fit_note_health(struct core *core, const struct pod_demand *demand,
                     const struct fit_shortage *shortage, struct fit_result *result)
{
    bool is_short = shortage->free < shortage->asked || shortage->largest_free < shortage->per_pod;
    if (!is_short) {
        return false;
    }
    struct ailing ailing = {.largest = shortage->largest_free};
    text_init(&ailing.names, &core->scratch, NAMES_MAX_BYTES);
    if (shortage->profile != NULL) {
        add_devices(core, demand, shortage, &ailing);
    }
    add_nodes(core, demand, shortage, result, &ailing);
    bool is_curable =
        shortage->free + ailing.count >= shortage->asked && ailing.largest >= shortage->per_pod;
    if (!is_curable) {
        result->health.is_short_anyway = true;
        return false;
    }
    if (shortage->profile == NULL && !resource_is_device(shortage->resource)) {
        return true; /* other words have to tell of it */
    }
    add_unnamed(&ailing);
    result->health = (struct fit_health){.resource = shortage->resource,
                                         .asked = shortage->asked,
                                         .free = shortage->free,
                                         .capacity = shortage->capacity,
                                         .ailing = i128_clamp(ailing.count + ailing.unreached),
                                         .names = text_str(&ailing.names),
                                         .is_short_anyway = result->health.is_short_anyway};
    return true;
}
