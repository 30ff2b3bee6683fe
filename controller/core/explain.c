/* explain.c - the evidence behind a wait, as data in the Admission.
 *
 * A researcher reads it in their own namespace, so it names no object of another one: of those only
 * sizes and queues. Everything is bounded, and the decider itself has seen what is told. */
#include "internal.h"

#include "tallyman/base/limits.h"

#define BLOCKERS_MAX 8

const char *exclusion_text(enum exclusion exclusion)
{
    switch (exclusion) {
    case EXCLUDED_NOT_READY:
        return "not ready";
    case EXCLUDED_CORDONED:
        return "cordoned";
    case EXCLUDED_FLAVOR:
        return "of another flavor";
    case EXCLUDED_SELECTOR:
        return "not selected by the pods";
    case EXCLUDED_TAINT:
        return "tainted";
    case EXCLUDED_CLAIM:
        return "out of reach of the claim's devices";
    case EXCLUDED_FULL:
        return "with too little room";
    case EXCLUDED_COUNT:
        break;
    }
    return "";
}

static const char *exclusion_code(enum exclusion exclusion)
{
    static const char *const codes[EXCLUDED_COUNT] = {
        [EXCLUDED_NOT_READY] = "NotReady", [EXCLUDED_CORDONED] = "Cordoned",
        [EXCLUDED_FLAVOR] = "OtherFlavor", [EXCLUDED_SELECTOR] = "NotSelected",
        [EXCLUDED_TAINT] = "Tainted",      [EXCLUDED_CLAIM] = "ClaimElsewhere",
        [EXCLUDED_FULL] = "Full"};
    return codes[exclusion];
}

void evidence_drop(struct evidence *evidence)
{
    for (uint32_t i = 0; i < evidence->flavor_count; i++) {
        str_drop(&evidence->flavors[i].flavor);
        str_drop(&evidence->flavors[i].message);
    }
    *evidence = (struct evidence){.flavor_count = 0};
}

void evidence_keep(struct evidence *kept, const struct evidence *seen)
{
    evidence_drop(kept);
    *kept = *seen;
    for (uint32_t i = 0; i < kept->flavor_count; i++) {
        kept->flavors[i].flavor = str_own(seen->flavors[i].flavor);
        kept->flavors[i].message = str_own(seen->flavors[i].message);
    }
}

static void add_action(struct explanation *explanation, const struct verdict *verdict,
                       struct arena *arena)
{
    const struct reason_info *info = reason_info(verdict->reason);
    explanation->actions.items = ARENA_NEW(arena, struct explanation_action);
    explanation->actions.count = 1;
    explanation->actions.items[0] = (struct explanation_action){
        .kind = str_from_c(reason_action_name(info->action)), .message = str_from_c(info->advice)};
}

static void add_resource(struct explanation *explanation, const struct verdict *verdict,
                         struct arena *arena)
{
    if (!str_is_set(verdict->resource)) {
        return;
    }
    explanation->resources.items = ARENA_NEW(arena, struct explanation_resource);
    explanation->resources.count = 1;
    explanation->resources.items[0] = (struct explanation_resource){
        .name = arena_copy_str(arena, verdict->resource),
        .asked = resource_amount_format(arena, verdict->resource, verdict->asked),
        .free = resource_amount_format(arena, verdict->resource, verdict->free)};
}

static int64_t held_amount(const struct gang *gang, struct str resource)
{
    const struct charge_list *charges = &gang->reservation->per_pod;
    int64_t sum = 0;
    for (uint32_t i = 0; i < charges->count; i++) {
        if (str_eq(charges->items[i].resource, resource)) {
            sum = sat_add(sum, sat_mul(charges->items[i].amount, gang->reservation->count));
        }
    }
    return sum;
}

/* When a gang will have ended; not set: nobody says. */
static struct opt_time until_of(const struct core *core, const struct gang *gang)
{
    int64_t end_ms = runtime_end_ms(core, gang);
    bool is_known = end_ms != INT64_MAX && end_ms > core->now_ms;
    return (struct opt_time){is_known, is_known ? (end_ms + 999) / 1000 * 1000 : 0};
}

/* Gangs that hold what ran short, the oldest first. */
static void add_blockers(const struct core *core, const struct gang *gang,
                         struct explanation *explanation, const struct verdict *verdict,
                         struct arena *arena)
{
    if (!str_is_set(verdict->resource)) {
        return;
    }
    struct explanation_blocker_list *list = &explanation->in_the_way;
    list->items = ARENA_ARRAY(arena, struct explanation_blocker, BLOCKERS_MAX);
    struct gang *other;
    RB_FOREACH (other, gang_holder_tree, (struct gang_holder_tree *)(uintptr_t)&core->holders) {
        bool is_quota = verdict->reason == REASON_QUOTA_EXHAUSTED;
        bool is_other_queue = is_quota && other->reservation->queue != gang->queue;
        int64_t amount = held_amount(other, verdict->resource);
        if (is_other_queue || amount == 0) {
            continue;
        }
        bool is_own_namespace = str_eq(other->namespace_name, gang->namespace_name);
        list->items[list->count++] = (struct explanation_blocker){
            .name = is_own_namespace ? arena_copy_str(arena, other->name) : STR_NONE,
            .queue = arena_copy_str(arena, other->reservation->queue->name),
            .size = arena_format(arena, STR_FMT " " STR_FMT,
                                 STR_ARG(resource_amount_format(arena, verdict->resource, amount)),
                                 STR_ARG(verdict->resource)),
            .since = {true, other->admitted_ms / 1000 * 1000},
            .until = until_of(core, other)};
        if (list->count == BLOCKERS_MAX) {
            break;
        }
    }
    if (list->count == 0) {
        list->items = NULL;
    }
}

static void add_ahead(const struct gang *gang, struct explanation *explanation, struct arena *arena)
{
    int64_t position = gang_position(gang, POSITION_EXACT_MAX);
    if (position == 0 || position > POSITION_EXACT_MAX) {
        return;
    }
    int64_t pods = 0;
    struct gang *other = (struct gang *)(uintptr_t)gang;
    while ((other = RB_PREV(gang_tree, NULL, other)) != NULL) {
        pods = sat_add(pods, other->size.pods);
    }
    explanation->ahead = ARENA_NEW(arena, struct explanation_ahead);
    explanation->ahead->gangs = (struct opt_int){true, position - 1};
    explanation->ahead->pods = (struct opt_int){true, pods};
}

static int64_t asked_of(const struct pod_set *set, struct str resource)
{
    i128 asked = vector_get(&set->per_pod, resource) * set->size.pods;
    for (uint32_t i = 0; i < set->device_count; i++) {
        if (str_eq(set->devices[i].profile->class_name, resource)) {
            asked += (i128)set->devices[i].count * set->size.pods;
        }
    }
    return i128_clamp(asked);
}

static void add_quota(const struct gang *gang, struct explanation *explanation, struct arena *arena)
{
    const struct queue_state *queue = gang->queue;
    const struct pod_set *set = &gang->shape->sets[0];
    struct explanation_quota_list *list = &explanation->quota;
    list->items = ARENA_ARRAY(arena, struct explanation_quota, queue->node.cell_count + 1);
    for (uint32_t i = 0; i < queue->node.cell_count && list->count < 32; i++) {
        const struct quota_cell *cell = &queue->node.cells[i];
        int64_t asked = asked_of(set, cell->resource);
        if (asked == 0 || !cell->is_listed) {
            continue;
        }
        list->items[list->count++] = (struct explanation_quota){
            .kind = STR("Queue"),
            .name = arena_copy_str(arena, queue->name),
            .flavor = arena_copy_str(arena, cell->flavor),
            .resource = arena_copy_str(arena, cell->resource),
            .asked = resource_amount_format(arena, cell->resource, asked),
            .used = resource_amount_format(arena, cell->resource, i128_clamp(cell->used)),
            .limit = resource_amount_format(arena, cell->resource, cell->nominal),
            .limiting = {true, cell->used + asked > cell->nominal}};
    }
    if (list->count == 0) {
        list->items = NULL;
    }
}

static void add_nodes(const struct evidence *evidence, struct explanation *explanation,
                      struct arena *arena)
{
    if (evidence->nodes_total == 0) {
        return;
    }
    struct explanation_nodes *nodes = ARENA_NEW(arena, struct explanation_nodes);
    nodes->total = (struct opt_int){true, evidence->nodes_total};
    nodes->excluded.items = ARENA_ARRAY(arena, struct explanation_exclusion, EXCLUDED_COUNT);
    for (int i = 0; i < EXCLUDED_COUNT; i++) {
        if (evidence->excluded[i] > 0) {
            nodes->excluded.items[nodes->excluded.count++] = (struct explanation_exclusion){
                .reason = str_from_c(exclusion_code((enum exclusion)i)),
                .count = {true, evidence->excluded[i]},
                .message = str_from_c(exclusion_text((enum exclusion)i))};
        }
    }
    explanation->nodes = nodes;
}

static void add_flavors(const struct evidence *evidence, struct explanation *explanation,
                        struct arena *arena)
{
    if (evidence->flavor_count == 0) {
        return;
    }
    struct explanation_flavor_list *list = &explanation->flavors;
    list->items = ARENA_ARRAY(arena, struct explanation_flavor, evidence->flavor_count);
    for (uint32_t i = 0; i < evidence->flavor_count; i++) {
        const struct flavor_note *note = &evidence->flavors[i];
        list->items[list->count++] = (struct explanation_flavor){
            .name = arena_copy_str(arena, note->flavor),
            .reason = str_from_c(reason_info(note->reason)->code),
            .message = arena_copy_str(arena, str_cut_utf8(note->message, 512))};
    }
}

struct explanation *explain_gang(const struct core *core, const struct gang *gang,
                                 const struct verdict *verdict, struct arena *arena)
{
    struct explanation *explanation = ARENA_NEW(arena, struct explanation);
    explanation->since = (struct opt_time){true, gang->reason_since_ms / 1000 * 1000};
    if (gang->likely_start_ms == INT64_MAX) {
        explanation->likely_start_unknown = (struct opt_bool){true, true};
    }
    explanation->likely_start = (struct opt_time){
        gang->likely_start_ms > 0 && gang->likely_start_ms != INT64_MAX, gang->likely_start_ms};
    add_action(explanation, verdict, arena);
    add_resource(explanation, verdict, arena);
    add_ahead(gang, explanation, arena);
    if (gang->state == GANG_PENDING && gang->is_in_queue) {
        add_blockers(core, gang, explanation, verdict, arena);
        add_quota(gang, explanation, arena);
        add_nodes(&gang->shape->evidence, explanation, arena);
        add_flavors(&gang->shape->evidence, explanation, arena);
    } else if (gang->state == GANG_RESERVED && gang->reserved_why != NULL) {
        add_flavors(gang->reserved_why, explanation, arena); /* why not one without victims */
    }
    return explanation;
}
