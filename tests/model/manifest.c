/* manifest.c - a state as Kubernetes objects: fed to the core, or printed as a case. */
#include "model/manifest.h"

#include "model/policy.h"

#include "tallyman/base/text.h"
#include "tallyman/base/time_text.h"

#define UID "7a110000-0000-4000-8000-%012d"

static const char *device_name(const struct model_state *state)
{
    return state->is_dra ? "gpu.example.com" : "example.com/gpu";
}

static struct str time_at(struct arena *arena, int seconds_ago)
{
    char buffer[TIME_TEXT_BYTES];
    return arena_copy_str(arena,
                          time_format_rfc3339(MODEL_NOW_MS - (int64_t)seconds_ago * 1000, buffer));
}

static void put(struct sink *sink, enum object_kind kind, struct str name, struct str metadata,
                struct str members)
{
    struct document document = {kind, name, metadata, members};
    sink->take(sink, &document);
}

static struct str none(void)
{
    return STR("");
}

/* -- queues, cohorts and flavors ----------------------------------------------------------------
 */

static void add_limit(struct text *text, const char *name, int value)
{
    if (value != NONE) {
        text_addf(text, ",\"%s\":\"%d\"", name, value);
    }
}

static void add_flavor(struct text *text, const struct model_state *state,
                       const struct member *member, int flavor)
{
    text_addf(text, "{\"name\":\"f%d\",\"resources\":[", flavor);
    for (int r = 0; r < RESOURCES; r++) {
        const struct quota *quota = &member->quota[flavor][r];
        if (quota->nominal == NONE) {
            continue;
        }
        bool is_second = r == DEVICE && member->quota[flavor][CPU].nominal != NONE;
        text_addf(text, "%s{\"name\":\"%s\",\"nominalQuota\":\"%d\"", is_second ? "," : "",
                  r == CPU ? "cpu" : device_name(state), quota->nominal);
        add_limit(text, "borrowingLimit", quota->borrowing);
        add_limit(text, "lendingLimit", quota->lending);
        text_addf(text, "}");
    }
    text_addf(text, "]}");
}

/* The group of those flavors that list it; false: none does. */
static bool add_group(struct text *text, const struct model_state *state,
                      const struct member *member, const int flavors[FLAVORS], enum resource r,
                      const char *before)
{
    bool is_any = false;
    for (int i = 0; i < FLAVORS; i++) {
        if (flavors[i] != NONE && member->quota[flavors[i]][r].nominal != NONE) {
            text_addf(text, "%s", is_any ? "," : before);
            add_flavor(text, state, member, flavors[i]);
            is_any = true;
        }
    }
    text_addf(text, "%s", is_any ? "]}" : "");
    return is_any;
}

static void add_quota(struct text *text, const struct model_state *state,
                      const struct member *member, const int flavors[FLAVORS],
                      const int cards[FLAVORS])
{
    static const char begin[] = ",\"resourceGroups\":[{\"flavors\":[";
    bool is_any = add_group(text, state, member, flavors, CPU, begin);
    if (state->has_groups) {
        is_any =
            add_group(text, state, member, cards, DEVICE, is_any ? ",{\"flavors\":[" : begin) ||
            is_any;
    }
    text_addf(text, "%s", is_any ? "]" : "");
}

static void add_fair_sharing(struct text *text, const struct member *member)
{
    bool has_weight = member->weight != NONE;
    bool has_half_life = member->half_life_s != NONE;
    if (!has_weight && !has_half_life) {
        return;
    }
    text_addf(text, ",\"fairSharing\":{");
    if (has_weight) {
        text_addf(text, "\"weight\":\"%d.%d\"%s", member->weight / 2, member->weight % 2 * 5,
                  has_half_life ? "," : "");
    }
    if (has_half_life) {
        text_addf(text, "\"halfLife\":\"%ds\"", member->half_life_s);
    }
    text_addf(text, "}");
}

static void put_cohort(struct sink *sink, const struct model_state *state, int c)
{
    const struct member *member = &state->members[c];
    static const int all[FLAVORS] = {0, 1, 2, 3};
    struct text spec;
    text_init(&spec, sink->arena, 1u << 16);
    add_quota(&spec, state, member, all, all);
    add_fair_sharing(&spec, member);
    if (member->parent != NONE) {
        text_addf(&spec, ",\"parentName\":\"c%d\"", member->parent);
    }
    struct str members = str_skip(text_str(&spec), spec.len > 0 ? 1 : 0);
    put(sink, KIND_COHORT, arena_format(sink->arena, "c%d", c), none(),
        arena_format(sink->arena, "\"spec\":{" STR_FMT "}", STR_ARG(members)));
}

static void add_policy(struct text *text, const struct model_queue *queue)
{
    static const char *const within[] = {"Never", "LowerPriority", "LowerOrNewerEqualPriority"};
    static const char *const reclaim[] = {"Never", "LowerPriority", "Any"};
    text_addf(text, ",\"preemption\":{\"withinQueue\":\"%s\",\"reclaimWithinCohort\":\"%s\"",
              within[queue->within], reclaim[queue->reclaim]);
    if (queue->borrows_within) {
        text_addf(text, ",\"borrowWithinCohort\":{\"policy\":\"LowerPriority\"");
        if (queue->threshold != NONE) {
            text_addf(text, ",\"maxPriorityThreshold\":%d", queue->threshold);
        }
        text_addf(text, "}");
    }
    text_addf(text, "}");
}

static void add_duration(struct text *text, const char *name, int seconds)
{
    if (seconds != NONE) {
        text_addf(text, ",\"%s\":\"%ds\"", name, seconds);
    }
}

static void add_classes(struct text *text, const struct model_queue *queue)
{
    const char *before = ",\"allowedPriorityClasses\":[";
    for (int p = 0; p < 4; p++) {
        if ((queue->classes >> p & 1) != 0) {
            text_addf(text, "%s\"p%d\"", before, p);
            before = ",";
        }
    }
    text_addf(text, "%s", queue->classes == 0 ? "" : "]");
}

/* What was used before, as the status has it. */
static struct str status_of(struct arena *arena, const struct model_state *state,
                            const struct model_queue *queue)
{
    if (queue->past_s == NONE) {
        return STR("");
    }
    return arena_format(arena,
                        ",\"status\":{\"fairSharing\":{\"asOf\":\"" STR_FMT
                        "\",\"decayedUsage\":[{\"name\":\"quay/cpu\",\"value\":\"%d\"},"
                        "{\"name\":\"quay/%s\",\"value\":\"%d\"}]}}",
                        STR_ARG(time_at(arena, queue->past_s)), queue->past[CPU],
                        device_name(state), queue->past[DEVICE]);
}

static void put_queue(struct sink *sink, const struct model_state *state, int q)
{
    const struct model_queue *queue = &state->queues[q];
    const struct member *member = &state->members[COHORTS + q];
    struct text spec;
    text_init(&spec, sink->arena, 1u << 16);
    text_addf(&spec, "\"namespaceSelector\":{}");
    if (member->parent != NONE) {
        text_addf(&spec, ",\"cohort\":\"c%d\"", member->parent);
    }
    add_quota(&spec, state, member, queue->flavors, queue->cards);
    add_policy(&spec, queue);
    add_fair_sharing(&spec, member);
    add_classes(&spec, queue);
    if (queue->protect_s > 0) {
        text_addf(&spec, ",\"minRuntimeProtection\":\"%ds\"", queue->protect_s);
    }
    add_duration(&spec, "starvationBound", queue->starvation_s);
    add_duration(&spec, "defaultRuntime", queue->default_runtime_s);
    add_duration(&spec, "maxRuntime", queue->max_runtime_s);
    text_addf(&spec, "%s%s%s%s%s", queue->is_backfill ? ",\"queueingStrategy\":\"Backfill\"" : "",
              queue->is_strict ? ",\"queueingStrategy\":\"StrictFIFO\"" : "",
              queue->looks_on_before_borrowing
                  ? ",\"flavorFungibility\":{\"whenCanBorrow\":\"TryNextFlavor\"}"
                  : "",
              queue->is_stopped ? ",\"stopPolicy\":\"Hold\"" : "",
              state->is_physical ? "" : ",\"fit\":\"Quota\"");
    put(sink, KIND_QUEUE, arena_format(sink->arena, "q%d", q), none(),
        arena_format(sink->arena, "\"spec\":{" STR_FMT "}" STR_FMT, STR_ARG(text_str(&spec)),
                     STR_ARG(status_of(sink->arena, state, queue))));
}

static void put_policy_objects(struct sink *sink, const struct model_state *state)
{
    put(sink, KIND_NAMESPACE, STR("quay"), none(), none());
    for (int p = 0; p < 4; p++) {
        put(sink, KIND_PRIORITY_CLASS, arena_format(sink->arena, "p%d", p), none(),
            arena_format(sink->arena, "\"value\":%d", p));
    }
    for (int f = 0; f < FLAVORS; f++) {
        struct str labels = state->has_groups && f > 1
                                ? none()
                                : arena_format(sink->arena, "\"nodeLabels\":{\"kind\":\"f%d\"}", f);
        put(sink, KIND_RESOURCE_FLAVOR, arena_format(sink->arena, "f%d", f), none(),
            arena_format(sink->arena, "\"spec\":{" STR_FMT "}", STR_ARG(labels)));
    }
    for (int c = 0; c < COHORTS; c++) {
        if (state->members[c].exists && state->members[c].is_object) {
            put_cohort(sink, state, c);
        }
    }
    for (int q = 0; q < QUEUES; q++) {
        if (state->members[COHORTS + q].exists) {
            put_queue(sink, state, q);
        }
    }
}

/* -- nodes and devices --------------------------------------------------------------------------
 */

static void put_slice(struct sink *sink, const struct model_state *state, int n)
{
    struct text devices;
    text_init(&devices, sink->arena, 1u << 12);
    for (int d = 0; d < state->nodes[n].has[DEVICE]; d++) {
        text_addf(&devices, "%s{\"name\":\"d%d\"}", d == 0 ? "" : ",", d);
    }
    put(sink, KIND_RESOURCE_SLICE, arena_format(sink->arena, "n%d", n), none(),
        arena_format(sink->arena,
                     "\"spec\":{\"driver\":\"gpu.example.com\",\"nodeName\":\"n%d\",\"pool\":{"
                     "\"name\":\"n%d\",\"generation\":1,\"resourceSliceCount\":1},\"devices\":"
                     "[" STR_FMT "]}",
                     n, n, STR_ARG(text_str(&devices))));
}

static void put_nodes(struct sink *sink, const struct model_state *state)
{
    for (int n = 0; n < NODES; n++) {
        const struct model_node *node = &state->nodes[n];
        if (!node->exists) {
            continue;
        }
        struct str devices =
            state->has_devices && !state->is_dra
                ? arena_format(sink->arena, ",\"%s\":\"%d\"", device_name(state), node->has[DEVICE])
                : none();
        put(sink, KIND_NODE, arena_format(sink->arena, "n%d", n),
            arena_format(sink->arena, ",\"labels\":{\"kind\":\"f%d\"}", node->flavor),
            arena_format(sink->arena,
                         "\"status\":{\"allocatable\":{\"cpu\":\"%d\",\"pods\":\"%d\"" STR_FMT
                         "},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}",
                         node->has[CPU], node->pods, STR_ARG(devices)));
        if (state->is_dra) {
            put_slice(sink, state, n);
        }
    }
}

static void put_claim_kinds(struct sink *sink, const struct model_state *state)
{
    if (!state->is_dra) {
        return;
    }
    put(sink, KIND_DEVICE_CLASS, STR("gpu.example.com"), none(),
        STR("\"spec\":{\"selectors\":[{\"cel\":{\"expression\":"
            "\"device.driver == 'gpu.example.com'\"}}]}"));
    for (int k = 1; k <= 2; k++) {
        put(sink, KIND_RESOURCE_CLAIM_TEMPLATE, arena_format(sink->arena, "t%d", k),
            STR(",\"namespace\":\"quay\""),
            arena_format(sink->arena,
                         "\"spec\":{\"spec\":{\"devices\":{\"requests\":[{\"name\":\"dev\","
                         "\"exactly\":{\"deviceClassName\":\"gpu.example.com\","
                         "\"allocationMode\":\"ExactCount\",\"count\":%d}}]}}}",
                         k));
    }
}

/* -- gangs --------------------------------------------------------------------------------------
 */

static struct str pod_spec(struct arena *arena, const struct model_state *state,
                           const struct model_gang *gang)
{
    struct text spec;
    text_init(&spec, arena, 1u << 12);
    int flavor = gang->is_running ? nodes_of(gang->flavor) : gang->selector;
    bool has_labels = !state->has_groups || !gang->is_running || gang->ask[CPU] > 0;
    if (flavor != NONE && has_labels) {
        text_addf(&spec, "\"nodeSelector\":{\"kind\":\"f%d\"},", flavor);
    }
    bool has_claim = state->is_dra && gang->ask[DEVICE] > 0;
    if (has_claim) {
        text_addf(&spec,
                  "\"resourceClaims\":[{\"name\":\"dev\",\"resourceClaimTemplateName\":\"t%d\"}],",
                  gang->ask[DEVICE]);
    }
    text_addf(&spec, "\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"main\","
                     "\"resources\":{\"requests\":{");
    const char *comma = "";
    if (gang->ask[CPU] > 0) {
        text_addf(&spec, "\"cpu\":\"%d\"", gang->ask[CPU]);
        comma = ",";
    }
    if (gang->ask[DEVICE] > 0 && !state->is_dra) {
        text_addf(&spec, "%s\"example.com/gpu\":\"%d\"},\"limits\":{\"example.com/gpu\":\"%d\"",
                  comma, gang->ask[DEVICE], gang->ask[DEVICE]);
    }
    text_addf(&spec, "}%s}}]", has_claim ? ",\"claims\":[{\"name\":\"dev\"}]" : "");
    return text_str(&spec);
}

static void add_annotations(struct text *text, struct arena *arena, const struct model_state *state,
                            const struct model_gang *gang)
{
    text_addf(text, ",\"annotations\":{\"example.com/of\":\"the model\"");
    if (gang->min != NONE) {
        text_addf(text, ",\"tallyman.dev/min-count\":\"%d\"%s", gang->min,
                  gang->is_partial ? ",\"tallyman.dev/partial\":\"true\"" : "");
    }
    if (gang->bound_s != NONE) {
        text_addf(text, ",\"tallyman.dev/max-runtime\":\"%ds\"", gang->bound_s);
    }
    if (gang->is_held) {
        text_addf(text, ",\"tallyman.dev/hold\":\"true\"");
    }
    if (gang->is_running && gang->saved_s != NONE) {
        text_addf(text, ",\"tallyman.dev/last-checkpoint\":\"" STR_FMT "\"",
                  STR_ARG(time_at(arena, gang->saved_s)));
    }
    if (gang->is_running) {
        text_addf(text,
                  ",\"tallyman.dev/admission\":\"{\\\"queue\\\":\\\"q%d\\\",\\\"at\\\":"
                  "\\\"" STR_FMT "\\\",\\\"priority\\\":%d,\\\"podSets\\\":[{\\\"name\\\":"
                  "\\\"main\\\",\\\"count\\\":%d,\\\"flavors\\\":{",
                  gang->queue, STR_ARG(time_at(arena, gang->runs_s)), gang->priority, gang->count);
        const char *comma = "";
        for (int r = 0; r < RESOURCES; r++) {
            if (gang->ask[r] > 0) {
                text_addf(text, "%s\\\"%s\\\":\\\"f%d\\\"", comma,
                          r == CPU ? "cpu" : device_name(state),
                          flavor_of(gang->flavor, (enum resource)r));
                comma = ",";
            }
        }
        text_addf(text,
                  "}}],\\\"restore\\\":{\\\"nodeSelector\\\":null,\\\"tolerations\\\":null,"
                  "\\\"parallelism\\\":%d}}\"",
                  gang->count);
    }
    text_addf(text, "}");
}

static void put_job(struct sink *sink, const struct model_state *state, int g)
{
    const struct model_gang *gang = &state->gangs[g];
    struct text meta;
    text_init(&meta, sink->arena, 1u << 12);
    text_addf(&meta,
              ",\"namespace\":\"quay\",\"uid\":\"" UID "\",\"creationTimestamp\":\"" STR_FMT
              "\",\"labels\":{\"tallyman.dev/queue\":\"q%d\","
              "\"tallyman.dev/priority-class\":\"p%d\"}",
              gang->uid, STR_ARG(time_at(sink->arena, gang->age_s)), gang->queue, gang->priority);
    add_annotations(&meta, sink->arena, state, gang);
    struct str status =
        gang->is_running
            ? arena_format(sink->arena,
                           ",\"status\":{\"active\":%d,\"ready\":%d,\"startTime\":\"" STR_FMT "\"}",
                           gang->count, gang->count, STR_ARG(time_at(sink->arena, gang->runs_s)))
            : none();
    put(sink, KIND_JOB, arena_format(sink->arena, "g%d", g), text_str(&meta),
        arena_format(sink->arena,
                     "\"spec\":{\"suspend\":%s,\"parallelism\":%d,\"completions\":%d,\"template\":{"
                     "\"spec\":{" STR_FMT "}}}" STR_FMT,
                     gang->is_running ? "false" : "true", gang->count, gang->count,
                     STR_ARG(pod_spec(sink->arena, state, gang)), STR_ARG(status)));
}

static void put_claim(struct sink *sink, const struct model_gang *gang, struct str pod, int node,
                      int *next_device)
{
    struct text results;
    text_init(&results, sink->arena, 1u << 12);
    for (int d = 0; d < gang->ask[DEVICE]; d++) {
        text_addf(&results,
                  "%s{\"request\":\"dev\",\"driver\":\"gpu.example.com\",\"pool\":\"n%d\","
                  "\"device\":\"d%d\"}",
                  d == 0 ? "" : ",", node, (*next_device)++);
    }
    put(sink, KIND_RESOURCE_CLAIM, pod, STR(",\"namespace\":\"quay\""),
        arena_format(
            sink->arena,
            "\"spec\":{\"devices\":{\"requests\":[{\"name\":\"dev\",\"exactly\":{"
            "\"deviceClassName\":\"gpu.example.com\",\"allocationMode\":\"ExactCount\","
            "\"count\":%d}}]}},\"status\":{\"allocation\":{\"devices\":{\"results\":[" STR_FMT
            "]}},\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"" STR_FMT
            "\",\"uid\":\"" STR_FMT "\"}]}",
            gang->ask[DEVICE], STR_ARG(text_str(&results)), STR_ARG(pod), STR_ARG(pod)));
}

static void put_pod(struct sink *sink, const struct model_state *state, int g, int p,
                    int *next_device)
{
    const struct model_gang *gang = &state->gangs[g];
    struct str name = arena_format(sink->arena, "g%d-%d", g, p);
    bool has_claim = state->is_dra && gang->ask[DEVICE] > 0;
    struct str claims = has_claim ? arena_format(sink->arena,
                                                 ",\"resourceClaimStatuses\":[{\"name\":\"dev\","
                                                 "\"resourceClaimName\":\"" STR_FMT "\"}]",
                                                 STR_ARG(name))
                                  : none();
    put(sink, KIND_POD, name,
        arena_format(sink->arena,
                     ",\"namespace\":\"quay\",\"uid\":\"" STR_FMT "\",\"ownerReferences\":[{"
                     "\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"g%d\",\"uid\":\"" UID
                     "\",\"controller\":true}]",
                     STR_ARG(name), g, gang->uid),
        arena_format(sink->arena,
                     "\"spec\":{\"nodeName\":\"n%d\"," STR_FMT "},\"status\":{\"phase\":"
                     "\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]" STR_FMT
                     "}",
                     gang->nodes[p], STR_ARG(pod_spec(sink->arena, state, gang)), STR_ARG(claims)));
    if (has_claim) {
        put_claim(sink, gang, name, gang->nodes[p], next_device);
    }
}

void state_objects(const struct model_state *state, struct sink *sink)
{
    int next_device[NODES] = {0};
    put_policy_objects(sink, state);
    put_nodes(sink, state);
    put_claim_kinds(sink, state);
    for (int g = 0; g < GANGS; g++) {
        const struct model_gang *gang = &state->gangs[g];
        if (!gang->exists) {
            continue;
        }
        put_job(sink, state, g);
        for (int p = 0; gang->is_running && state->is_physical && p < gang->count; p++) {
            if (gang->nodes[p] != NONE) {
                put_pod(sink, state, g, p, &next_device[gang->nodes[p]]);
            }
        }
    }
}

struct str document_json(struct arena *arena, const struct document *document)
{
    return arena_format(arena, "{\"metadata\":{\"name\":\"" STR_FMT "\"" STR_FMT "}%s" STR_FMT "}",
                        STR_ARG(document->name), STR_ARG(document->metadata),
                        document->members.len > 0 ? "," : "", STR_ARG(document->members));
}
