/* check_tell.c - what people are told of an admission check, and what is written for it. */
#include "check.h"

#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"
#include "tallyman/base/time_text.h"

int64_t check_timeout_ms(const struct queue_state *queue)
{
    const struct queue_provisioning *spec =
        queue->object == NULL ? NULL : queue->object->spec.provisioning;
    return spec != NULL && spec->timeout.is_set ? spec->timeout.ms : PROVISIONING_TIMEOUT_MS;
}

static struct verdict obstacle(struct str message)
{
    return (struct verdict){
        .reason = REASON_WAITING_FOR_CHECK, .waits_for = WAIT_CONFIG, .message = message};
}

struct verdict check_obstacle(const struct core *core, const struct queue_state *queue,
                              struct arena *arena)
{
    const struct queue *object = queue->object;
    struct str name = queue->name;
    if (object == NULL || object->spec.admission_checks.count == 0) {
        return (struct verdict){.reason = REASON_NONE};
    }
    for (uint32_t i = 0; i < object->spec.admission_checks.count; i++) {
        struct str check = object->spec.admission_checks.items[i];
        if (!str_eq_c(check, CHECK_PROVISIONING)) {
            return obstacle(arena_format(
                arena,
                "queue " STR_FMT " names admission check \"" STR_FMT "\" in spec.admissionChecks, "
                "and \"" CHECK_PROVISIONING "\" is the only one that there is",
                STR_ARG(name), STR_ARG(text_quote(arena, check, 100))));
        }
    }
    if (object->spec.provisioning == NULL || str_is_empty(object->spec.provisioning->class_name)) {
        return obstacle(arena_format(arena,
                                     "queue " STR_FMT " has admission check " CHECK_PROVISIONING
                                     ", and no spec.provisioning.className to ask for",
                                     STR_ARG(name)));
    }
    if (core->lacks_requests) {
        return obstacle(arena_format(
            arena,
            "queue " STR_FMT " has admission check " CHECK_PROVISIONING
            ", and the cluster doesn't serve provisioningrequests.autoscaling.x-k8s.io/v1, which "
            "comes with the cluster autoscaler",
            STR_ARG(name)));
    }
    return (struct verdict){.reason = REASON_NONE};
}

struct str check_missing_detail(const struct queue_state *queue,
                                const struct request_state *request)
{
    const struct queue_provisioning *spec =
        queue->object == NULL ? NULL : queue->object->spec.provisioning;
    for (uint32_t i = 0; spec != NULL && i < spec->node_selector.count; i++) {
        struct str detail = spec->node_selector.items[i].value;
        if (!str_is_set(
                string_map_find(&request->object->status.provisioning_class_details, detail))) {
            return detail;
        }
    }
    return STR_NONE;
}

/* `: "what the condition says"`, bounded; empty if it says nothing. */
static struct str quoted(struct arena *arena, const struct condition *condition)
{
    if (condition == NULL) {
        return STR("");
    }
    struct str text = str_is_empty(condition->message) ? condition->reason : condition->message;
    if (str_is_empty(text)) {
        return STR("");
    }
    struct str cut = text_quote(arena, text, CHECK_QUOTE_MAX_BYTES);
    return arena_format(arena, ": \"" STR_FMT "%s\"", STR_ARG(cut), cut.len < text.len ? "…" : "");
}

struct str check_failure(struct arena *arena, const struct request_state *request)
{
    static const char *const texts[] = {[REQUEST_WAITS] = "isn't provisioned yet",
                                        [REQUEST_PROVISIONED] = "is provisioned",
                                        [REQUEST_EXPIRED] = "expired before it was used",
                                        [REQUEST_FAILED] = "failed",
                                        [REQUEST_REVOKED] = "had its capacity revoked",
                                        [REQUEST_GOING] =
                                            "is being deleted, and was not provisioned"};
    const struct condition *because;
    enum request_says says = request_says(request, &because);
    return arena_format(arena, "ProvisioningRequest " STR_FMT " %s" STR_FMT,
                        STR_ARG(request->object->meta.name), texts[says],
                        STR_ARG(quoted(arena, says == REQUEST_GOING ? NULL : because)));
}

/* How far the request is. */
static struct str progress(const struct gang *gang, struct arena *arena, struct str name,
                           struct str class_name)
{
    const struct request_state *request = request_find(gang, gang->room->check->attempt);
    if (request == NULL) {
        return arena_format(arena,
                            "ProvisioningRequest " STR_FMT " (class " STR_FMT ") is being made",
                            STR_ARG(name), STR_ARG(class_name));
    }
    const struct condition *because;
    enum request_says says = request_says(request, &because);
    struct str detail = check_missing_detail(gang->reservation->queue, request);
    if (says == REQUEST_PROVISIONED && str_is_set(detail)) {
        return arena_format(arena,
                            "ProvisioningRequest " STR_FMT " is provisioned, and its "
                            "status.provisioningClassDetails lacks \"" STR_FMT
                            "\", which the queue's spec.provisioning names",
                            STR_ARG(name), STR_ARG(text_quote(arena, detail, 100)));
    }
    if (because == NULL) {
        return arena_format(arena,
                            "ProvisioningRequest " STR_FMT " has had no answer yet; an autoscaler "
                            "that serves class " STR_FMT " has to run",
                            STR_ARG(name), STR_ARG(class_name));
    }
    return arena_format(arena, "ProvisioningRequest " STR_FMT " (class " STR_FMT ") %s" STR_FMT,
                        STR_ARG(name), STR_ARG(class_name),
                        says == REQUEST_PROVISIONED ? "is provisioned" : "isn't provisioned yet",
                        STR_ARG(quoted(arena, because)));
}

struct verdict check_verdict(const struct core *core, const struct gang *gang, struct arena *arena)
{
    (void)core;
    const struct queue_state *queue = gang->reservation->queue;
    const struct queue_provisioning *spec =
        queue->object == NULL ? NULL : queue->object->spec.provisioning;
    struct str class_name = spec == NULL ? STR("") : spec->class_name;
    struct str name = request_name(arena, gang->name, gang->uid, gang->room->check->attempt);
    int64_t timeout_ms = check_timeout_ms(queue);
    struct str end = STR("");
    if (timeout_ms != 0) {
        char buffer[TIME_TEXT_BYTES];
        struct str at =
            time_format_rfc3339(sat_add(gang->room->check->since_ms, timeout_ms), buffer);
        end = arena_format(arena, "; without room by " STR_FMT " it gives its quota back",
                           STR_ARG(at));
    }
    return (struct verdict){
        .reason = REASON_WAITING_FOR_CHECK,
        .message = arena_format(arena, "its quota is held; " STR_FMT STR_FMT,
                                STR_ARG(progress(gang, arena, name, class_name)), STR_ARG(end))};
}

/* -- what is written --------------------------------------------------------------------------- */

static void add_pair(struct arena *arena, struct string_map *map, struct str key, struct str value)
{
    map->items[map->count++] =
        (struct string_pair){arena_copy_str(arena, key), arena_copy_str(arena, value)};
}

void check_directives(struct core *core, const struct gang *gang, struct template_patch *patch)
{
    struct arena *arena = core->out->arena;
    const struct request_state *request = request_find(gang, gang->room->check->attempt);
    const struct queue_provisioning *spec = gang->queue->object->spec.provisioning;
    patch->annotations.items = ARENA_ARRAY(arena, struct string_pair, 2);
    add_pair(arena, &patch->annotations, STR(ANNOTATION_CONSUME), request->object->meta.name);
    add_pair(arena, &patch->annotations, STR(ANNOTATION_CLASS),
             request->object->spec.provisioning_class_name);
    uint32_t capacity = patch->node_selector.count;
    for (uint32_t i = 0; i < spec->node_selector.count; i++) {
        const struct string_pair *wanted = &spec->node_selector.items[i];
        patch_add_selector(
            arena, patch, wanted->key,
            string_map_find(&request->object->status.provisioning_class_details, wanted->value),
            &capacity);
    }
}

/* The pods of each set as they will look for their places: on the flavors that are reserved. */
static void fill_set(const struct core *core, const struct gang *gang, uint32_t s,
                     struct arena *arena, struct request_content *content)
{
    const struct reserved_set *reserved = &gang->reservation->sets[s];
    struct set_choice choice = {.flavor_count = 0};
    for (uint32_t i = 0; i < reserved->per_pod.count; i++) {
        const struct resource_flavor *flavor =
            flavor_object(core, reserved->per_pod.items[i].flavor);
        bool is_new = flavor != NULL && choice.flavor_count < FLAVORS_PER_GANG_MAX;
        for (uint32_t f = 0; f < choice.flavor_count && is_new; f++) {
            is_new = choice.flavors[f] != flavor;
        }
        if (is_new) {
            choice.flavors[choice.flavor_count++] = flavor;
        }
    }
    struct str job = request_name(arena, gang->name, gang->uid, 0);
    uint32_t n = content->template_count++;
    struct template_patch *patch = &content->templates[n];
    *patch = (struct template_patch){.pod_set = arena_copy_str(arena, reserved->name)};
    const struct pod_set *set = pod_set_find(gang->shape, reserved->name);
    if (set != NULL) {
        patch_add_directives(arena, set, &choice, patch);
    }
    content->request.spec.pod_sets.items[n] = (struct provisioning_pod_set){
        .pod_template_ref.name =
            arena_format(arena, STR_FMT "-" STR_FMT, STR_ARG(job), STR_ARG(reserved->name)),
        .count = {true, reserved->count}};
    content->request.spec.pod_sets.count = content->template_count;
}

static struct string_map copy_map(struct arena *arena, const struct string_map *from)
{
    struct string_map map = {.items = ARENA_ARRAY(arena, struct string_pair, from->count + 1)};
    for (uint32_t i = 0; i < from->count; i++) {
        add_pair(arena, &map, from->items[i].key, from->items[i].value);
    }
    return map;
}

static void fill_meta(const struct gang *gang, struct arena *arena, struct object_meta *meta)
{
    meta->name = request_name(arena, gang->name, gang->uid, gang->room->check->attempt);
    meta->namespace_name = arena_copy_str(arena, gang->namespace_name);
    meta->annotations.items = ARENA_ARRAY(arena, struct string_pair, 1);
    add_pair(arena, &meta->annotations, STR(ANNOTATION_RESERVATION), gang->room->check->record);
    struct owner_reference *owner = ARENA_NEW(arena, struct owner_reference);
    *owner = (struct owner_reference){.api_version = STR("batch/v1"),
                                      .kind = STR("Job"),
                                      .name = arena_copy_str(arena, gang->name),
                                      .uid = arena_copy_str(arena, gang->uid),
                                      .controller = {true, true}};
    meta->owner_references = (struct owner_reference_list){owner, 1};
}

bool core_request_content(const struct core *core, struct str job_uid, struct arena *arena,
                          struct request_content *ret_content)
{
    const struct gang *gang = gang_find(core, job_uid);
    bool is_wanted = gang != NULL && gang->room->check != NULL &&
                     gang->room->check->effect_id != 0 && gang->queue->object != NULL &&
                     gang->queue->object->spec.provisioning != NULL;
    if (!is_wanted) {
        return false;
    }
    *ret_content = (struct request_content){.template_count = 0};
    uint32_t count = gang->reservation->set_count;
    const struct queue_provisioning *spec = gang->queue->object->spec.provisioning;
    fill_meta(gang, arena, &ret_content->request.meta);
    ret_content->request.spec.provisioning_class_name = arena_copy_str(arena, spec->class_name);
    ret_content->request.spec.parameters = copy_map(arena, &spec->parameters);
    ret_content->request.spec.pod_sets.items =
        ARENA_ARRAY(arena, struct provisioning_pod_set, count);
    ret_content->templates = ARENA_ARRAY(arena, struct template_patch, count);
    for (uint32_t s = 0; s < count; s++) {
        if (gang->reservation->sets[s].count > 0) {
            fill_set(core, gang, s, arena, ret_content);
        }
    }
    return ret_content->template_count > 0;
}
