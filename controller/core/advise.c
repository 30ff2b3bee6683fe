/* advise.c - the smallest change that would start a waiting gang now, found by trying it.
 *
 * The decider itself is asked: a shape with the change in it is evaluated against the state as it
 * is, and thrown away. This is done when an Admission is about to be written, once for all gangs of
 * a shape, and costs credit that comes back with time: a controller that has fifty thousand gangs
 * to tell about decides first. What wasn't tried is told as not tried. */
#include "behind.h"
#include "booking.h"
#include "gang_line.h"
#include "selectors.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

#define FLAVOR_TRIALS_MAX   4
#define SELECTOR_TRIALS_MAX 4
#define RUNTIME_TRIALS_MAX  3
#define MINUTE_MS           (60 * 1000)
/* The gang as it is, without quota, with fewer pods (twice), with another topology
 * (twice), and the three above. */
#define TRIALS_MAX (6 + FLAVOR_TRIALS_MAX + SELECTOR_TRIALS_MAX + RUNTIME_TRIALS_MAX)

static bool is_for_a_smaller_gang(enum reason reason)
{
    switch ((int)reason) {
    case REASON_QUOTA_EXHAUSTED:
    case REASON_BORROWING_LIMIT:
    case REASON_COHORT_EXHAUSTED:
    case REASON_NODES_FULL:
    case REASON_NODE_SHAPE:
    case REASON_TOPOLOGY_UNSATISFIED:
    case REASON_DEVICES_EXHAUSTED:
    case REASON_DEVICES_UNHEALTHY:
    case REASON_NEVER_FITS:
    case REASON_RESERVED_FOR_OTHER:
        return true;
    default:
        return false;
    }
}

bool advice_is_possible(enum reason reason)
{
    return is_for_a_smaller_gang(reason) || reason == REASON_NO_MATCHING_FLAVOR;
}

/* -- credit ----------------------------------------------------------------------------------- */

/* What looking at every node and device once costs. */
static int64_t trial_cost(const struct core *core)
{
    return 16 + (int64_t)HASH_COUNT(core->nodes) + (int64_t)core->device_slots;
}

static bool take_credit(struct core *core)
{
    int64_t passed_ms = core->now_ms - core->advice_credit_ms;
    core->advice_credit_ms = core->now_ms;
    int64_t back = sat_mul(passed_ms, ADVICE_CREDIT_PER_MS);
    core->advice_credit = sat_add(core->advice_credit, back);
    if (core->advice_credit > ADVICE_CREDIT_MAX) {
        core->advice_credit = ADVICE_CREDIT_MAX;
    }
    int64_t cost = TRIALS_MAX * trial_cost(core);
    /* A cluster so large that one gang's trials cost more than all credit has them one at a time.
     */
    if (core->advice_credit < cost && core->advice_credit < ADVICE_CREDIT_MAX) {
        return false;
    }
    core->advice_credit -= cost;
    return true;
}

/* -- trials ----------------------------------------------------------------------------------- */

struct trial {
    struct core *core;
    struct gang *gang;
    struct shape *shape; /* the gang's own */
    struct advice *advice;
    int64_t runtime_ms;      /* that the gang states; 0: none */
    struct str topology_key; /* that it asks for, absent: none */
    bool is_topology_required;
};

/* The gang belongs to that shape now: what is judged is this gang, in its place in the queue. */
static void change_shape(struct gang *gang, struct shape *shape)
{
    shape_take_gang(gang->shape, gang);
    gang->shape = shape;
    shape_put_gang(gang->shape, gang);
}

/* With another template or size: how many pods would start now; 0: it would wait. */
static int64_t try_change(struct trial *trial, const struct pod_spec *spec,
                          const struct gang_size *size)
{
    struct core *core = trial->core;
    const struct pod_set *set = &trial->shape->sets[0];
    struct shape_input_set only = {
        .name = set->name, .spec = spec, .size = *size, .group_claims = set->group_claims};
    struct shape_input input = {.queue = trial->shape->queue,
                                .namespace_name = trial->shape->namespace_name,
                                .stated_runtime_ms = trial->runtime_ms,
                                .topology_key = trial->topology_key,
                                .is_topology_required = trial->is_topology_required,
                                .pod_group = trial->shape->pod_group,
                                .sets = &only,
                                .set_count = 1};
    struct shape *changed = shape_use(core, &input);
    if (changed->users == 1) {
        pod_set_meet_labels(&changed->sets[0], &set->labels->meta.labels);
        changed->sets[0].labels_vary = set->labels_vary;
    }
    struct evaluation evaluation;
    change_shape(trial->gang, changed);
    evaluate_shape(core, changed, &evaluation);
    change_shape(trial->gang, trial->shape);
    int64_t count = evaluation.verdict.reason == REASON_NONE ? evaluation.reserve.sets[0].count : 0;
    shape_drop(core, changed);
    return count;
}

static struct advice_item *add_item(struct trial *trial, enum advice_kind kind)
{
    struct advice *advice = trial->advice;
    if (advice->count == ADVICE_ITEMS_MAX) {
        return NULL;
    }
    advice->items[advice->count] = (struct advice_item){.kind = kind};
    return &advice->items[advice->count++];
}

/* As many pods as can start now; the answer is tried again as it will be asked for. */
static void try_fewer_pods(struct trial *trial)
{
    const struct pod_set *set = &trial->shape->sets[0];
    if (set->size.pods <= 1 || set->size.source == GANG_SIZE_FIELD) {
        return; /* the field goes before the annotation that could be changed */
    }
    struct gang_size size = set->size;
    size.is_partial_allowed = true;
    size.min_count = 1;
    int64_t count = try_change(trial, set->spec, &size);
    if (count <= 0 || count >= set->size.pods) {
        return;
    }
    size.min_count = count;
    if (try_change(trial, set->spec, &size) != count) {
        return;
    }
    struct advice_item *item = add_item(trial, ADVICE_FEWER_PODS);
    if (item != NULL) {
        item->count = count;
    }
}

/* A key or value that could mean something to a shell is nobody's label. */
static bool is_plain_text(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '/';
        if (!is_plain) {
            return false;
        }
    }
    return text.len <= 253;
}

/* The template's nodeSelector with the pair set (or, without a value, gone). Scratch arena. */
static struct string_map selector_with(struct arena *arena, const struct string_map *map,
                                       struct str key, struct str value)
{
    struct string_map result = {ARENA_ARRAY(arena, struct string_pair, map->count + 1), 0};
    for (uint32_t i = 0; i < map->count; i++) {
        if (!str_eq(map->items[i].key, key)) {
            result.items[result.count++] = map->items[i];
        }
    }
    if (str_is_set(value)) {
        result.items[result.count++] = (struct string_pair){key, value};
    }
    return result;
}

static void add_patch_pair(struct text *patch, struct str key, struct str value)
{
    text_addf(patch, "%s\"" STR_FMT "\":", patch->len == 0 ? "" : ",", STR_ARG(key));
    if (str_is_set(value)) {
        text_addf(patch, "\"" STR_FMT "\"", STR_ARG(value));
    } else {
        text_add(patch, STR("null"));
    }
}

/* The pods' nodeSelector turned to that flavor's labels, where it asks for another's now. */
static void try_flavor(struct trial *trial, struct str name)
{
    struct core *core = trial->core;
    const struct pod_set *set = &trial->shape->sets[0];
    const struct resource_flavor *flavor = flavor_object(core, name);
    const char *contradiction = flavor == NULL ? NULL : flavor_contradiction(set, flavor);
    if (contradiction == NULL || !str_eq_c(str_from_c(contradiction), "nodeSelector")) {
        return;
    }
    struct text patch;
    text_init(&patch, &core->scratch, 512);
    struct pod_spec spec = *set->spec;
    const struct string_map *labels = &flavor->spec.node_labels;
    for (uint32_t i = 0; i < labels->count; i++) {
        const struct string_pair *label = &labels->items[i];
        if (!str_is_set(string_map_find(&set->spec->node_selector, label->key))) {
            continue; /* the admission adds what isn't asked for */
        }
        if (!is_plain_text(label->key) || !is_plain_text(label->value)) {
            return;
        }
        spec.node_selector =
            selector_with(&core->scratch, &spec.node_selector, label->key, label->value);
        add_patch_pair(&patch, label->key, label->value);
    }
    if (patch.len == 0 || patch.is_cut || try_change(trial, &spec, &set->size) < set->size.pods) {
        return;
    }
    struct advice_item *item = add_item(trial, ADVICE_OTHER_FLAVOR);
    if (item != NULL) {
        item->patch = str_own(text_str(&patch));
        item->what = str_own(name);
    }
}

static void try_flavors(struct trial *trial)
{
    const struct queue *queue = trial->shape->queue->object;
    int tried = 0;
    for (uint32_t g = 0; g < queue->spec.resource_groups.count; g++) {
        const struct quota_flavor_list *flavors = &queue->spec.resource_groups.items[g].flavors;
        for (uint32_t f = 0; f < flavors->count && tried < FLAVOR_TRIALS_MAX; f++) {
            try_flavor(trial, flavors->items[f].name);
            tried++;
        }
    }
}

/* Without one pair of the nodeSelector: room that the gang has shut itself out of. */
static void try_wider_selectors(struct trial *trial)
{
    struct core *core = trial->core;
    const struct pod_set *set = &trial->shape->sets[0];
    const struct string_map *selector = &set->spec->node_selector;
    for (uint32_t i = 0; i < selector->count && i < SELECTOR_TRIALS_MAX; i++) {
        const struct string_pair *pair = &selector->items[i];
        if (!is_plain_text(pair->key) || !is_plain_text(pair->value)) {
            continue;
        }
        struct pod_spec spec = *set->spec;
        spec.node_selector = selector_with(&core->scratch, selector, pair->key, STR_NONE);
        if (try_change(trial, &spec, &set->size) < set->size.pods) {
            continue;
        }
        struct text patch;
        text_init(&patch, &core->scratch, 512);
        add_patch_pair(&patch, pair->key, STR_NONE);
        struct advice_item *item = add_item(trial, ADVICE_WIDER_SELECTOR);
        if (item != NULL) {
            item->patch = str_own(text_str(&patch));
            item->what = str_own(arena_format(&core->scratch, STR_FMT "=" STR_FMT,
                                              STR_ARG(pair->key), STR_ARG(pair->value)));
        }
    }
}

/* Room is kept for a gang ahead: who ends before it is needed may use it until then. */
static void try_shorter_run(struct trial *trial)
{
    struct core *core = trial->core;
    const struct pod_set *set = &trial->shape->sets[0];
    int64_t stated_ms = trial->runtime_ms;
    int tried = 0;
    for (uint32_t i = 0; i < core->bookings->count && tried < RUNTIME_TRIALS_MAX; i++) {
        int64_t start_ms = core->bookings->items[i].start_ms;
        int64_t minutes = start_ms < BOOKING_NEVER ? (start_ms - core->now_ms) / MINUTE_MS : 0;
        if (minutes < 1 || (stated_ms != 0 && stated_ms <= minutes * MINUTE_MS)) {
            continue;
        }
        tried++;
        trial->runtime_ms = minutes * MINUTE_MS;
        bool starts = try_change(trial, set->spec, &set->size) >= set->size.pods;
        struct advice_item *item = starts ? add_item(trial, ADVICE_SHORTER_RUN) : NULL;
        if (item != NULL) {
            item->count = minutes;
            break;
        }
    }
    trial->runtime_ms = stated_ms;
}

/* The level preferred instead of required; where that isn't enough, none at all. */
static void try_other_topology(struct trial *trial)
{
    const struct pod_set *set = &trial->shape->sets[0];
    struct str key = trial->topology_key;
    enum advice_kind kind = ADVICE_TOPOLOGY_PREFERRED;
    trial->is_topology_required = false;
    if (!trial->shape->is_topology_required ||
        try_change(trial, set->spec, &set->size) < set->size.pods) {
        kind = ADVICE_NO_TOPOLOGY;
        trial->topology_key = STR_NONE;
    }
    bool starts = kind == ADVICE_TOPOLOGY_PREFERRED ||
                  try_change(trial, set->spec, &set->size) >= set->size.pods;
    trial->topology_key = key;
    trial->is_topology_required = trial->shape->is_topology_required;
    if (starts && trial->advice->count < ADVICE_ITEMS_MAX) {
        add_item(trial, kind)->what = str_own(key);
    }
}

/* What else would stand in the way if there were quota enough. */
static void try_without_quota(struct trial *trial)
{
    struct evaluation evaluation;
    trial->core->ignores_quota = true;
    evaluate_shape(trial->core, trial->shape, &evaluation);
    trial->core->ignores_quota = false;
    const struct verdict *verdict = &evaluation.verdict;
    if (verdict->reason != REASON_NONE && verdict->reason != trial->shape->verdict.reason) {
        trial->advice->other_reason = verdict->reason;
        trial->advice->other_message = str_own(verdict->message);
    }
}

static bool is_about_quota(enum reason reason)
{
    return reason == REASON_QUOTA_EXHAUSTED || reason == REASON_BORROWING_LIMIT ||
           reason == REASON_COHORT_EXHAUSTED;
}

static void keep_places(struct advice *advice, const struct fit_result *fit)
{
    advice->place_count = fit->place_count;
    for (uint32_t i = 0; i < fit->place_count; i++) {
        advice->places[i] = fit->places[i];
    }
}

/* The numbers behind the reason as they are now; what is decided stays as it was. */
static bool refresh_evidence(struct trial *trial)
{
    struct shape *shape = trial->shape;
    struct evaluation evaluation;
    trial->core->wants_places = true;
    evaluate_shape(trial->core, shape, &evaluation);
    trial->core->wants_places = false;
    if (evaluation.verdict.reason != shape->verdict.reason) {
        return false; /* it is about to be judged anew */
    }
    keep_places(trial->advice, &evaluation.fit);
    if (shape->queue->object->spec.preemption == NULL) {
        evidence_keep(&shape->evidence, &evaluation.evidence);
    } else {
        /* What stopping others would do on each flavor, only the decider has looked into. */
        evidence_renew_numbers(&shape->evidence, &evaluation.evidence);
    }
    str_drop(&trial->advice->message);
    trial->advice->message = str_own(evaluation.verdict.message);
    return true;
}

void advice_drop(struct advice *advice)
{
    if (advice == NULL) {
        return;
    }
    for (uint32_t i = 0; i < advice->count; i++) {
        str_drop(&advice->items[i].patch);
        str_drop(&advice->items[i].what);
    }
    str_drop(&advice->other_message);
    str_drop(&advice->message);
    mem_free(advice);
}

static bool is_asked(const struct core *core, const struct gang *gang, enum reason reason)
{
    const struct shape *shape = gang->shape;
    if (!core->options.gives_advice || core->out != NULL || core->is_tree_stale) {
        return false;
    }
    if (shape->is_ready || shape->is_aside || !selectors_are_tried(core, shape)) {
        return false; /* it is about to be judged anew, and stands where its first gang stands */
    }
    bool is_waiting = gang->state == GANG_PENDING && gang->is_in_queue && shape->set_count == 1;
    return is_waiting && advice_is_possible(reason) && shape->verdict.reason == reason &&
           gang_position(gang) <= POSITION_EXACT_MAX;
}

static void try_changes(struct trial *trial, enum reason reason)
{
    if (behind_is_blocked(trial->gang)) {
        return; /* whatever it asked for, it would wait for the one in front */
    }
    if (reason == REASON_RESERVED_FOR_OTHER) {
        try_shorter_run(trial);
    }
    if (is_for_a_smaller_gang(reason)) {
        try_fewer_pods(trial);
    }
    if (str_is_set(trial->topology_key)) {
        try_other_topology(trial);
    }
    try_flavors(trial);
    try_wider_selectors(trial);
    if (is_about_quota(reason)) {
        try_without_quota(trial);
    }
}

const struct advice *advise(struct core *core, struct gang *gang, enum reason reason)
{
    struct shape *shape = gang->shape;
    if (!is_asked(core, gang, reason)) {
        return NULL;
    }
    if (shape->advice != NULL && shape->advised_in == core->pass) {
        return shape->advice;
    }
    advice_drop(shape->advice);
    shape->advice = NULL;
    if (!take_credit(core)) {
        return NULL;
    }
    struct core_cost cost = core->cost; /* of the step, which this isn't part of */
    arena_reset(&core->scratch);
    struct trial trial = {.core = core,
                          .gang = gang,
                          .shape = shape,
                          .advice = MEM_NEW(struct advice),
                          .runtime_ms = shape->stated_runtime_ms,
                          .topology_key = shape->topology_key,
                          .is_topology_required = shape->is_topology_required};
    whatif_begin(core); /* nothing that is looked at may change */
    if (refresh_evidence(&trial)) {
        try_changes(&trial, reason);
        shape->advice = trial.advice;
        shape->advised_in = core->pass;
    } else {
        advice_drop(trial.advice);
    }
    whatif_end(core);
    core->cost = cost;
    return shape->advice;
}
