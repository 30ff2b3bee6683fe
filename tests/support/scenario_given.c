/* scenario_given.c - the objects of a scenario, from options to JSON to structs. */
#include "support/scenario_internal.h"

#include <stdio.h>

#include "support/check.h"
#include "tallyman/base/time_text.h"

bool next_word(const char **words, struct str *ret_word)
{
    const char *p = *words;
    while (*p == ' ') {
        p++;
    }
    const char *start = p;
    while (*p != '\0' && *p != ' ') {
        p++;
    }
    *words = p;
    *ret_word = (struct str){start, (size_t)(p - start)};
    return p > start;
}

bool next_option(const char **options, struct str *ret_key, struct str *ret_value)
{
    struct str word;
    if (!next_word(options, &word)) {
        return false;
    }
    size_t equals = str_find_char(word, '=');
    if (equals == word.len) {
        fail_msg("\"" STR_FMT "\" isn't KEY=VALUE", STR_ARG(word));
    }
    *ret_key = str_take(word, equals);
    *ret_value = str_skip(word, equals + 1);
    return true;
}

void split_pair(struct str text, struct str *ret_left, struct str *ret_right)
{
    size_t colon = str_find_char(text, ':');
    *ret_left = str_take(text, colon);
    *ret_right = str_skip(text, colon + 1);
}

bool is_resource(struct str key)
{
    return str_eq_c(key, "cpu") || str_eq_c(key, "memory") || str_eq_c(key, "pods") ||
           str_find_char(key, '.') < key.len || str_find_char(key, '/') < key.len;
}

void given_json(struct scenario *s, enum object_kind kind, const char *json)
{
    void *value = NULL;
    struct err err;
    if (rc_failed(
            decode_json(&s->arena, kind_info(kind)->schema, str_from_c(json), &value, &err))) {
        fail_msg("%s: %s\n%s", kind_info(kind)->name, err.text, json);
    }
    tell(s, entry_put(s, kind, value));
}

/* -- lists in JSON ------------------------------------------------------------------------------
 */

/* A growing piece of JSON with commas between its items. */
struct text list_text(struct scenario *s)
{
    struct text text;
    text_init(&text, &s->arena, 1u << 20);
    return text;
}

const char *comma(const struct text *text)
{
    return text->len == 0 ? "" : ",";
}

void add_member(struct text *text, struct str key, struct str value)
{
    text_addf(text, "%s\"" STR_FMT "\":\"" STR_FMT "\"", comma(text), STR_ARG(key), STR_ARG(value));
}

void add_pair(struct text *text, struct str pair)
{
    struct str left;
    struct str right;
    split_pair(pair, &left, &right);
    add_member(text, left, right);
}

static void add_taint(struct text *text, struct str pair)
{
    struct str left;
    struct str right;
    split_pair(pair, &left, &right);
    text_addf(text, "%s{\"key\":\"" STR_FMT "\",\"effect\":\"" STR_FMT "\"}", comma(text),
              STR_ARG(left), STR_ARG(right));
}

void add_toleration(struct text *text, struct str key)
{
    text_addf(text, "%s{\"key\":\"" STR_FMT "\",\"operator\":\"Exists\"}", comma(text),
              STR_ARG(key));
}

/* -- queues and flavors -------------------------------------------------------------------------
 */

struct queue_text {
    struct text groups;
    struct text flavors;
    struct text resources;
    struct text spec;
    struct text requeue;
    struct text preemption;
    struct text provisioning;
    struct str flavor;
    struct str selector;
};

static void close_flavor(struct queue_text *text)
{
    if (text->resources.len > 0) {
        text_addf(&text->flavors, "%s{\"name\":\"" STR_FMT "\",\"resources\":[" STR_FMT "]}",
                  comma(&text->flavors), STR_ARG(text->flavor),
                  STR_ARG(text_str(&text->resources)));
        text->resources.len = 0;
    }
}

static void close_group(struct queue_text *text)
{
    close_flavor(text);
    if (text->flavors.len > 0) {
        text_addf(&text->groups, "%s{\"flavors\":[" STR_FMT "]}", comma(&text->groups),
                  STR_ARG(text_str(&text->flavors)));
        text->flavors.len = 0;
    }
}

/* Of the admission check `provisioning`. */
static bool check_setting(struct queue_text *text, struct str key, struct str value)
{
    if (str_eq_c(key, "check")) {
        text_addf(&text->spec, ",\"admissionChecks\":[\"provisioning\"]");
        add_member(&text->provisioning, STR("className"), value);
    } else if (str_eq_c(key, "check-timeout")) {
        add_member(&text->provisioning, STR("timeout"), value);
    } else if (str_eq_c(key, "managed")) {
        text_addf(&text->provisioning, ",\"managedResources\":[\"" STR_FMT "\"]", STR_ARG(value));
    } else if (str_eq_c(key, "detail")) {
        text_addf(&text->provisioning, ",\"nodeSelectorFromDetails\":{");
        struct str left;
        struct str right;
        split_pair(value, &left, &right);
        text_addf(&text->provisioning, "\"" STR_FMT "\":\"" STR_FMT "\"}", STR_ARG(left),
                  STR_ARG(right));
    } else {
        return false;
    }
    return true;
}

static void queue_setting(struct queue_text *text, struct str key, struct str value)
{
    static const char *const names[][2] = {
        {"strategy", "queueingStrategy"},
        {"stop", "stopPolicy"},
        {"timeout", "podsReadyTimeout"},
        {"undeclared", "undeclaredResources"},
        {"fit", "fit"},
        {"cohort", "cohort"},
        {"protect", "minRuntimeProtection"},
        {"starvation", "starvationBound"},
        {"default-runtime", "defaultRuntime"},
        {"max-runtime", "maxRuntime"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (str_eq_c(key, names[i][0])) {
            text_addf(&text->spec, ",\"%s\":\"" STR_FMT "\"", names[i][1], STR_ARG(value));
            return;
        }
    }
    if (str_eq_c(key, "limit")) {
        text_addf(&text->requeue, "%s\"limit\":" STR_FMT, comma(&text->requeue), STR_ARG(value));
    } else if (str_eq_c(key, "base") || str_eq_c(key, "max")) {
        add_member(&text->requeue, key, value);
    } else if (str_eq_c(key, "within")) {
        add_member(&text->preemption, STR("withinQueue"), value);
    } else if (str_eq_c(key, "reclaim")) {
        add_member(&text->preemption, STR("reclaimWithinCohort"), value);
    } else if (str_eq_c(key, "weight")) {
        text_addf(&text->spec, ",\"fairSharing\":{\"weight\":\"" STR_FMT "\"}", STR_ARG(value));
    } else if (!check_setting(text, key, value)) {
        fail_msg("a queue has no option " STR_FMT, STR_ARG(key));
    }
}

static void queue_option(struct queue_text *text, struct str key, struct str value)
{
    if (is_resource(key)) {
        text_addf(&text->resources, "%s{\"name\":\"" STR_FMT "\",\"nominalQuota\":\"" STR_FMT "\"}",
                  comma(&text->resources), STR_ARG(key), STR_ARG(value));
    } else if (str_eq_c(key, "flavor")) {
        close_flavor(text);
        text->flavor = value;
    } else if (str_eq_c(key, "group")) {
        close_group(text);
    } else if (str_eq_c(key, "select")) {
        text->selector = value;
    } else {
        queue_setting(text, key, value);
    }
}

void given_queue(struct scenario *s, const char *name, const char *options)
{
    struct queue_text text = {.groups = list_text(s),
                              .flavors = list_text(s),
                              .resources = list_text(s),
                              .spec = list_text(s),
                              .requeue = list_text(s),
                              .preemption = list_text(s),
                              .provisioning = list_text(s),
                              .flavor = STR("default")};
    struct str key;
    struct str value;
    while (next_option(&options, &key, &value)) {
        queue_option(&text, key, value);
    }
    close_group(&text);
    struct text labels = list_text(s);
    if (str_is_set(text.selector)) {
        add_pair(&labels, text.selector);
    }
    struct entry *before = entry_find(s, KIND_QUEUE, name);
    int64_t generation = before == NULL ? 1 : before->value->generation.value + 1;
    struct str_list finalizers =
        before == NULL ? (struct str_list){.count = 0} : before->value->finalizers;
    struct str json = make(
        s,
        "{\"metadata\":{\"name\":\"%s\",\"generation\":%lld},\"spec\":{\"namespaceSelector\":{"
        "\"matchLabels\":{" STR_FMT "}},\"resourceGroups\":[" STR_FMT "]" STR_FMT
        ",\"requeue\":{" STR_FMT "},\"preemption\":{" STR_FMT "}%s" STR_FMT "%s}}",
        name, (long long)generation, STR_ARG(text_str(&labels)), STR_ARG(text_str(&text.groups)),
        STR_ARG(text_str(&text.spec)), STR_ARG(text_str(&text.requeue)),
        STR_ARG(text_str(&text.preemption)), text.provisioning.len > 0 ? ",\"provisioning\":{" : "",
        STR_ARG(text_str(&text.provisioning)), text.provisioning.len > 0 ? "}" : "");
    void *object = NULL;
    struct err err;
    if (rc_failed(decode_json(&s->arena, kind_info(KIND_QUEUE)->schema, json, &object, &err))) {
        fail_msg("Queue %s: %s", name, err.text);
    }
    ((struct queue *)object)->meta.finalizers = finalizers;
    tell(s, entry_put(s, KIND_QUEUE, object));
}

void quota_becomes(struct scenario *s, const char *name, const char *options)
{
    scenario_start(s);
    given_queue(s, name, options);
}

void given_flavor(struct scenario *s, const char *name, const char *options)
{
    struct text labels = list_text(s);
    struct text taints = list_text(s);
    struct text tolerations = list_text(s);
    struct text levels = list_text(s);
    struct str key;
    struct str value;
    while (next_option(&options, &key, &value)) {
        if (str_eq_c(key, "label")) {
            add_pair(&labels, value);
        } else if (str_eq_c(key, "level")) {
            text_addf(&levels, "%s\"" STR_FMT "\"", levels.len == 0 ? "" : ",", STR_ARG(value));
        } else if (str_eq_c(key, "taint")) {
            add_taint(&taints, value);
        } else if (str_eq_c(key, "toleration")) {
            add_toleration(&tolerations, value);
        } else {
            fail_msg("a flavor has no option " STR_FMT, STR_ARG(key));
        }
    }
    given_json(s, KIND_RESOURCE_FLAVOR,
               make(s,
                    "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"nodeLabels\":{" STR_FMT
                    "},\"nodeTaints\":[" STR_FMT "],\"tolerations\":[" STR_FMT "]%s" STR_FMT "%s}}",
                    name, STR_ARG(text_str(&labels)), STR_ARG(text_str(&taints)),
                    STR_ARG(text_str(&tolerations)),
                    levels.len == 0 ? "" : ",\"topology\":{\"levels\":[",
                    STR_ARG(text_str(&levels)), levels.len == 0 ? "" : "]}")
                   .ptr);
}

/* -- nodes and devices --------------------------------------------------------------------------
 */

void given_node(struct scenario *s, const char *name, const char *options)
{
    struct text labels = list_text(s);
    struct text taints = list_text(s);
    struct text amounts = list_text(s);
    struct str ready = STR("True");
    struct str cordoned = STR("false");
    bool has_pods = false;
    add_member(&labels, STR("kubernetes.io/hostname"), str_from_c(name));
    struct str key;
    struct str value;
    while (next_option(&options, &key, &value)) {
        if (is_resource(key)) {
            has_pods = has_pods || str_eq_c(key, "pods");
            add_member(&amounts, key, value);
        } else if (str_eq_c(key, "label")) {
            add_pair(&labels, value);
        } else if (str_eq_c(key, "taint")) {
            add_taint(&taints, value);
        } else if (str_eq_c(key, "ready")) {
            ready = value;
        } else if (str_eq_c(key, "cordoned")) {
            cordoned = value;
        } else {
            fail_msg("a node has no option " STR_FMT, STR_ARG(key));
        }
    }
    if (!has_pods) {
        add_member(&amounts, STR("pods"), STR("110"));
    }
    char buffer[TIME_TEXT_BYTES];
    struct str since = make(s, ",\"lastTransitionTime\":\"" STR_FMT "\"",
                            STR_ARG(time_format_rfc3339(s->now_ms, buffer)));
    since = str_eq_c(ready, "True") ? STR("") : since;
    given_json(s, KIND_NODE,
               make(s,
                    "{\"metadata\":{\"name\":\"%s\",\"labels\":{" STR_FMT
                    "}},\"spec\":{\"unschedulable\":" STR_FMT ",\"taints\":[" STR_FMT
                    "]},\"status\":{\"allocatable\":{" STR_FMT
                    "},\"conditions\":[{\"type\":\"Ready\",\"status\":\"" STR_FMT "\"" STR_FMT
                    "}]}}",
                    name, STR_ARG(text_str(&labels)), STR_ARG(cordoned), STR_ARG(text_str(&taints)),
                    STR_ARG(text_str(&amounts)), STR_ARG(ready), STR_ARG(since))
                   .ptr);
}

void given_devices(struct scenario *s, const char *node, const char *devices)
{
    struct text list = list_text(s);
    struct str device;
    while (next_word(&devices, &device)) {
        text_addf(&list, "%s{\"name\":\"" STR_FMT "\"}", comma(&list), STR_ARG(device));
    }
    given_json(s, KIND_RESOURCE_SLICE,
               make(s,
                    "{\"metadata\":{\"name\":\"%s-slice\"},\"spec\":{\"driver\":"
                    "\"gpu.example.com\",\"nodeName\":\"%s\",\"pool\":{\"name\":\"%s\","
                    "\"generation\":1,\"resourceSliceCount\":1},\"devices\":[" STR_FMT "]}}",
                    node, node, node, STR_ARG(text_str(&list)))
                   .ptr);
}

void given_class(struct scenario *s, const char *name, const char *cel)
{
    given_json(s, KIND_DEVICE_CLASS,
               make(s,
                    "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"selectors\":[{\"cel\":"
                    "{\"expression\":\"%s\"}}]}}",
                    name, cel)
                   .ptr);
}

void given_pair(struct scenario *s, const char *node, const char *second)
{
    char json[512];
    (void)snprintf(
        json, sizeof(json),
        "{\"metadata\":{\"name\":\"%s-slice\"},\"spec\":{\"driver\":\"gpu.example.com\","
        "\"nodeName\":\"%s\",\"pool\":{\"name\":\"%s\",\"generation\":1,"
        "\"resourceSliceCount\":1},\"devices\":[{\"name\":\"g0\"},{\"name\":\"g1\"%s}]}}",
        node, node, node, second);
    given_json(s, KIND_RESOURCE_SLICE, json);
}

static struct str claim_spec(struct scenario *s, const char *class_name, int count)
{
    return make(s,
                "{\"devices\":{\"requests\":[{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":"
                "\"%s\",\"allocationMode\":\"ExactCount\",\"count\":%d}}]}}",
                class_name, count);
}

void given_template(struct scenario *s, const char *name, const char *class_name, int count)
{
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               make(s, "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"spec\":" STR_FMT "}}", name,
                    STR_ARG(claim_spec(s, class_name, count)))
                   .ptr);
}

void given_claim(struct scenario *s, const char *name, const char *class_name, int count)
{
    given_json(s, KIND_RESOURCE_CLAIM,
               make(s, "{\"metadata\":{\"name\":\"%s\"},\"spec\":" STR_FMT "}", name,
                    STR_ARG(claim_spec(s, class_name, count)))
                   .ptr);
}

void given_priority_class(struct scenario *s, const char *name, int value)
{
    given_json(s, KIND_PRIORITY_CLASS,
               make(s, "{\"metadata\":{\"name\":\"%s\"},\"value\":%d}", name, value).ptr);
}

void given_namespace(struct scenario *s, const char *name, const char *labels)
{
    struct text text = list_text(s);
    struct str pair;
    while (next_word(&labels, &pair)) {
        add_pair(&text, pair);
    }
    given_json(s, KIND_NAMESPACE,
               make(s, "{\"metadata\":{\"name\":\"%s\",\"labels\":{" STR_FMT "}}}", name,
                    STR_ARG(text_str(&text)))
                   .ptr);
}

void given_a_long_one(struct scenario *s, const char *options)
{
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", options);
    given_job(s, "long", "q", "pods=6 cpu=1 max-runtime=60m");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1 n1 n1 n1 n1");
    at(s, 60000);
}

void given_node_in(struct scenario *s, const char *name, const char *zone, const char *rack,
                   int cpu)
{
    given_node(s, name, make(s, "cpu=%d label=zone:%s label=rack:%s", cpu, zone, rack).ptr);
}
