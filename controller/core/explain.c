/* explain.c - the evidence behind a wait, as data in the Admission.
 *
 * A researcher reads it in their own namespace, so it names no object of another one: of those only
 * sizes and queues. Everything is bounded, and the decider itself has seen what is told. */
#include "internal.h"

#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"

#define BLOCKERS_MAX 8

/* In the Admission, and in a sentence. */
static const struct {
    const char *code;
    const char *text;
} exclusions[EXCLUDED_COUNT + 1] = {
    [EXCLUDED_NOT_READY] = {"NotReady", "not ready"},
    [EXCLUDED_UNHEALTHY] = {"Unhealthy", "unhealthy"},
    [EXCLUDED_QUARANTINE] = {"Quarantine", "in quarantine"},
    [EXCLUDED_CORDONED] = {"Cordoned", "cordoned"},
    [EXCLUDED_FLAVOR] = {"OtherFlavor", "of another flavor"},
    [EXCLUDED_SELECTOR] = {"NotSelected", "not selected by the pods"},
    [EXCLUDED_TAINT] = {"Tainted", "tainted"},
    [EXCLUDED_CLAIM] = {"ClaimElsewhere", "out of reach of the claim's devices"},
    [EXCLUDED_FULL] = {"Full", "with too little room"},
    [EXCLUDED_COUNT] = {"", ""},
};

struct str exclusion_sentence(struct arena *arena, enum exclusion exclusion, struct str why)
{
    const char *text = exclusions[exclusion].text;
    return str_is_empty(why) ? str_from_c(text)
                             : arena_format(arena, "%s (" STR_FMT ")", text, STR_ARG(why));
}

void evidence_drop(struct evidence *evidence)
{
    for (uint32_t i = 0; i < evidence->flavor_count; i++) {
        str_drop(&evidence->flavors[i].flavor);
        str_drop(&evidence->flavors[i].message);
    }
    for (int i = 0; i < EXCLUDED_COUNT; i++) {
        str_drop(&evidence->excluded_why[i]);
    }
    str_drop(&evidence->resource);
    str_drop(&evidence->topology.level);
    *evidence = (struct evidence){.flavor_count = 0};
}

void evidence_renew_numbers(struct evidence *kept, const struct evidence *seen)
{
    kept->nodes_total = seen->nodes_total;
    for (int i = 0; i < EXCLUDED_COUNT; i++) {
        kept->excluded[i] = seen->excluded[i];
        str_drop(&kept->excluded_why[i]);
        kept->excluded_why[i] = str_own(seen->excluded_why[i]);
    }
    str_drop(&kept->resource);
    kept->resource = str_own(seen->resource);
    kept->asked = seen->asked;
    kept->free = seen->free;
    kept->at_ms = seen->at_ms;
    str_drop(&kept->topology.level);
    kept->topology = seen->topology;
    kept->topology.level = str_own(seen->topology.level);
}

void evidence_keep(struct evidence *kept, const struct evidence *seen)
{
    evidence_drop(kept);
    *kept = *seen;
    for (uint32_t i = 0; i < kept->flavor_count; i++) {
        kept->flavors[i].flavor = str_own(seen->flavors[i].flavor);
        kept->flavors[i].message = str_own(seen->flavors[i].message);
    }
    for (int i = 0; i < EXCLUDED_COUNT; i++) {
        kept->excluded_why[i] = str_own(seen->excluded_why[i]);
    }
    kept->resource = str_own(seen->resource);
    kept->topology.level = str_own(seen->topology.level);
}

/* Where no node may be used at all, nothing that ends helps: what would. */
static struct str advice_without_nodes(const struct evidence *evidence, struct arena *arena)
{
    const uint32_t *out = evidence->excluded;
    struct text text;
    text_init(&text, arena, 300);
    text_add(&text, STR("It starts when"));
    const char *separator = " ";
    if (out[EXCLUDED_NOT_READY] + out[EXCLUDED_UNHEALTHY] + out[EXCLUDED_QUARANTINE] > 0) {
        text_addf(&text, "%sa node is ready and healthy again", separator);
        separator = ", or ";
    }
    if (out[EXCLUDED_CORDONED] > 0) {
        text_addf(&text, "%sa node is uncordoned", separator);
        separator = ", or ";
    }
    if (out[EXCLUDED_TAINT] > 0) {
        text_addf(&text, "%sa node's taint is removed or its pods tolerate it", separator);
    }
    text_add(&text, STR("; that others end doesn't help it."));
    return text_str(&text);
}

static struct str advice_of(const struct gang *gang, const struct verdict *verdict,
                            struct arena *arena)
{
    if (verdict->reason == REASON_HELD && !gang->is_hold_wanted && gang->size.pods == 0) {
        return STR("Raise spec.parallelism to 1 or more to let it start.");
    }
    const struct evidence *evidence = gang->shape == NULL ? NULL : &gang->shape->evidence;
    bool has_no_node =
        evidence != NULL && evidence->nodes_total > 0 && evidence->excluded[EXCLUDED_FULL] == 0;
    return verdict->reason == REASON_NODES_FULL && has_no_node
               ? advice_without_nodes(evidence, arena)
               : str_from_c(reason_info(verdict->reason)->advice);
}

/* What to do whatever the numbers are, and the exact command where there is one. */
static void add_actions(const struct gang *gang, const struct verdict *verdict,
                        const struct advice *advice, struct arena *arena,
                        struct explanation *explanation)
{
    const struct reason_info *info = reason_info(verdict->reason);
    struct explanation_action_list *list = &explanation->actions;
    list->items = ARENA_ARRAY(arena, struct explanation_action, 1 + ADVICE_ITEMS_MAX);
    struct str command = STR_NONE;
    if (verdict->reason == REASON_HELD && gang->is_hold_wanted) {
        command = arena_format(arena,
                               "kubectl annotate job " STR_FMT " -n " STR_FMT " tallyman.dev/hold-",
                               STR_ARG(gang->name), STR_ARG(gang->namespace_name));
    }
    list->items[list->count++] =
        (struct explanation_action){.kind = str_from_c(reason_action_name(info->action)),
                                    .message = advice_of(gang, verdict, arena),
                                    .command = command};
    if (advice != NULL) {
        advice_fill(gang, advice, arena, list);
    }
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

/* When a gang will have ended; not set: nobody says. */
static struct opt_time until_of(const struct core *core, const struct gang *gang)
{
    int64_t end_ms = runtime_end_ms(core, gang);
    bool is_known = end_ms != INT64_MAX && end_ms > core->now_ms;
    return (struct opt_time){is_known, is_known ? (end_ms + 999) / 1000 * 1000 : 0};
}

/* Whether it could hold what the gang lacks: quota of the same queue or tree, or anything. */
static bool is_in_reach(const struct gang *gang, const struct gang *other, enum reason reason)
{
    const struct quota_node *node = &other->reservation->queue->node;
    switch ((int)reason) {
    case REASON_QUOTA_EXHAUSTED:
    case REASON_BORROWING_LIMIT:
        return other->reservation->queue == gang->queue;
    case REASON_COHORT_EXHAUSTED:
        return quota_root(node) == quota_root(&gang->queue->node);
    default:
        return true;
    }
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
    GANG_LINE_FOREACH (other, &core->holders) {
        bool is_out_of_reach = !is_in_reach(gang, other, verdict->reason);
        int64_t amount =
            i128_clamp(reservation_amount(other->reservation, STR_NONE, verdict->resource));
        if (is_out_of_reach || amount == 0) {
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
    int64_t position = gang_position(gang);
    if (position == 0 || position > POSITION_EXACT_MAX) {
        return;
    }
    int64_t pods = 0;
    int64_t devices = 0;
    const struct gang *other = gang_line_first(&gang->queue->pending);
    for (; other != gang; other = gang_line_next(&gang->queue->pending, other)) {
        pods = sat_add(pods, other->size.pods);
        devices = sat_add(devices, shape_devices(other->shape));
    }
    explanation->ahead = ARENA_NEW(arena, struct explanation_ahead);
    explanation->ahead->gangs = (struct opt_int){true, position - 1};
    explanation->ahead->devices = (struct opt_int){true, devices};
    explanation->ahead->pods = (struct opt_int){true, pods};
}

static void add_places(const struct advice *advice, struct explanation_nodes *nodes,
                       struct arena *arena)
{
    if (advice == NULL || advice->place_count == 0) {
        return;
    }
    int64_t fitting = 0;
    nodes->places.items = ARENA_ARRAY(arena, struct explanation_places, advice->place_count);
    for (uint32_t i = 0; i < advice->place_count; i++) {
        const struct node_places *places = &advice->places[i];
        nodes->places.items[nodes->places.count++] =
            (struct explanation_places){{true, places->pods}, {true, places->nodes}};
        fitting += places->pods > 0 ? places->nodes : 0;
    }
    nodes->fitting = (struct opt_int){true, fitting};
}

static void add_nodes(const struct evidence *evidence, const struct advice *advice,
                      struct explanation *explanation, struct arena *arena)
{
    if (evidence->nodes_total == 0) {
        return;
    }
    struct explanation_nodes *nodes = ARENA_NEW(arena, struct explanation_nodes);
    add_places(advice, nodes, arena);
    nodes->total = (struct opt_int){true, evidence->nodes_total};
    nodes->excluded.items = ARENA_ARRAY(arena, struct explanation_exclusion, EXCLUDED_COUNT);
    for (int i = 0; i < EXCLUDED_COUNT; i++) {
        if (evidence->excluded[i] > 0) {
            nodes->excluded.items[nodes->excluded.count++] = (struct explanation_exclusion){
                .reason = str_from_c(exclusions[i].code),
                .count = {true, evidence->excluded[i]},
                .message = arena_copy_str(arena, exclusion_sentence(arena, (enum exclusion)i,
                                                                    evidence->excluded_why[i]))};
        }
    }
    explanation->nodes = nodes;
}

static void add_exclusion(struct explanation_exclusion_list *list, const char *reason,
                          uint32_t count, const char *message)
{
    if (count > 0) {
        list->items[list->count++] = (struct explanation_exclusion){
            .reason = str_from_c(reason), .count = {true, count}, .message = str_from_c(message)};
    }
}

static void add_topology(const struct topology_note *note, struct explanation *explanation,
                         struct arena *arena)
{
    if (!str_is_set(note->level)) {
        return;
    }
    struct explanation_topology *topology = ARENA_NEW(arena, struct explanation_topology);
    topology->level = arena_copy_str(arena, note->level);
    topology->total = (struct opt_int){true, note->total};
    topology->excluded.items = ARENA_ARRAY(arena, struct explanation_exclusion, 3);
    add_exclusion(&topology->excluded, "NoUsableNode", note->unusable,
                  "without a node that the pods may use");
    add_exclusion(&topology->excluded, "TooSmall", note->too_small, "too small even when empty");
    add_exclusion(&topology->excluded, "Full", note->full, "with too little room now");
    explanation->topology = topology;
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
            .message = arena_copy_str(arena, text_quote(arena, note->message, 512))};
    }
}

/* Where several flavors were tried, the verdict names no resource; the evidence still does. */
static struct verdict with_resource(const struct gang *gang, const struct verdict *verdict)
{
    struct verdict told = *verdict;
    const struct evidence *evidence = &gang->shape->evidence;
    bool is_the_shapes = verdict->reason == gang->shape->verdict.reason;
    if (is_the_shapes && str_is_set(evidence->resource)) {
        told.resource = evidence->resource;
        told.asked = evidence->asked;
        told.free = evidence->free;
    }
    return told;
}

static void add_evidence(struct core *core, const struct gang *gang, const struct advice *advice,
                         const struct verdict *verdict, struct arena *arena,
                         struct explanation *explanation)
{
    const struct evidence *evidence = &gang->shape->evidence;
    struct verdict told = with_resource(gang, verdict);
    add_resource(explanation, &told, arena);
    add_blockers(core, gang, explanation, &told, arena);
    explain_quota(gang, explanation, arena);
    add_nodes(evidence, advice, explanation, arena);
    add_topology(&evidence->topology, explanation, arena);
    add_flavors(evidence, explanation, arena);
    explanation->as_of = (struct opt_time){evidence->at_ms > 0, evidence->at_ms / 1000 * 1000};
    explanation->changes_tried =
        (struct opt_bool){advice_is_possible(verdict->reason), advice != NULL};
    if (advice != NULL && advice->other_reason != REASON_NONE) {
        explanation->other_reasons.items = ARENA_NEW(arena, struct explanation_reason);
        explanation->other_reasons.count = 1;
        explanation->other_reasons.items[0] = (struct explanation_reason){
            .reason = str_from_c(reason_info(advice->other_reason)->code),
            .message = arena_copy_str(arena, text_quote(arena, advice->other_message, 512))};
    }
}

struct explanation *explain_gang(struct core *core, struct gang *gang, struct verdict *verdict,
                                 struct arena *arena)
{
    struct explanation *explanation = ARENA_NEW(arena, struct explanation);
    explanation->since = (struct opt_time){true, gang->reason_since_ms / 1000 * 1000};
    if (gang->likely_start_ms == INT64_MAX) {
        explanation->likely_start_unknown = (struct opt_bool){true, true};
    }
    explanation->likely_start = (struct opt_time){
        gang->likely_start_ms > 0 && gang->likely_start_ms != INT64_MAX, gang->likely_start_ms};
    past_explain(gang, arena, explanation);
    if (verdict->reason == REASON_NONE) {
        return explanation;
    }
    const struct advice *advice = NULL;
    bool is_judged = gang->state == GANG_PENDING && gang->is_in_queue;
    if (is_judged) {
        advice = advise(core, gang, verdict->reason);
        verdict->message = advice == NULL ? verdict->message : advice->message;
    }
    add_actions(gang, verdict, advice, arena, explanation);
    add_ahead(gang, explanation, arena);
    if (is_judged) {
        add_evidence(core, gang, advice, verdict, arena, explanation);
    } else {
        add_resource(explanation, verdict, arena);
    }
    if (gang->state == GANG_RESERVED && gang->room->reserved_why != NULL) {
        add_flavors(gang->room->reserved_why, explanation, arena); /* why not one without victims */
    }
    return explanation;
}
