/* render.c - bodies of writes. A member that isn't mentioned is left alone by a merge PATCH; null
 * removes it. */
#include "tallyman/driver/render.h"

#include <stdio.h>

static void put_text(struct json_writer *writer, const char *key, struct str value)
{
    json_key(writer, key);
    json_string(writer, value);
}

static void render_labels(struct json_writer *writer, const struct job_patch *patch)
{
    if (!str_is_set(patch->queue_label)) {
        return;
    }
    json_key(writer, "labels");
    json_object_start(writer);
    put_text(writer, "tallyman.dev/queue", patch->queue_label);
    json_object_end(writer);
}

static void put_or_remove(struct json_writer *writer, const char *key, struct str value,
                          bool removes)
{
    if (removes || str_is_set(value)) {
        json_key(writer, key);
        removes ? json_null(writer) : json_string(writer, value);
    }
}

static void render_annotations(struct json_writer *writer, const struct job_patch *patch)
{
    json_key(writer, "annotations");
    json_object_start(writer);
    put_or_remove(writer, "tallyman.dev/admission", patch->record, patch->removes_record);
    put_or_remove(writer, "tallyman.dev/suspended", patch->suspended, patch->removes_suspended);
    put_or_remove(writer, "tallyman.dev/provisioning-attempt", patch->provisioning_attempt, false);
    put_or_remove(writer, "tallyman.dev/checkpoint-request", patch->checkpoint_request,
                  patch->removes_checkpoint);
    put_or_remove(writer, "tallyman.dev/checkpoint-for", patch->checkpoint_for,
                  patch->removes_checkpoint);
    if (patch->sets_hold) {
        put_text(writer, "tallyman.dev/hold", STR("true"));
    }
    json_object_end(writer);
}

void render_tolerations(struct json_writer *writer, const struct toleration_list *list)
{
    json_key(writer, "tolerations");
    if (list->count == 0) {
        json_null(writer);
        return;
    }
    json_array_start(writer);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct toleration *toleration = &list->items[i];
        json_object_start(writer);
        if (!str_is_empty(toleration->key)) {
            put_text(writer, "key", toleration->key);
        }
        if (!str_is_empty(toleration->op)) {
            put_text(writer, "operator", toleration->op);
        }
        if (!str_is_empty(toleration->value)) {
            put_text(writer, "value", toleration->value);
        }
        if (!str_is_empty(toleration->effect)) {
            put_text(writer, "effect", toleration->effect);
        }
        if (toleration->toleration_seconds.is_set) {
            json_key(writer, "tolerationSeconds");
            json_int(writer, toleration->toleration_seconds.value);
        }
        json_object_end(writer);
    }
    json_array_end(writer);
}

static void render_map(struct json_writer *writer, const char *key, const struct string_map *map)
{
    if (map->count == 0) {
        return;
    }
    json_key(writer, key);
    json_object_start(writer);
    for (uint32_t i = 0; i < map->count; i++) {
        const struct string_pair *pair = &map->items[i];
        json_key_str(writer, pair->key);
        str_is_set(pair->value) ? json_string(writer, pair->value) : json_null(writer);
    }
    json_object_end(writer);
}

static void render_affinity(struct json_writer *writer, const struct template_patch *patch)
{
    if (patch->affinity != NULL) {
        struct pod_spec only = {.affinity = patch->affinity};
        encode_fields(writer, &pod_spec_schema, &only);
        return;
    }
    if (patch->drops_affinity == NULL) {
        return;
    }
    static const char *const path[] = {"affinity", "nodeAffinity", "required"};
    int depth = 0;
    json_key(writer, path[0]);
    while (!str_eq_c(str_from_c(patch->drops_affinity), path[depth])) {
        depth++;
        json_object_start(writer);
        json_key(writer,
                 depth == 2 ? "requiredDuringSchedulingIgnoredDuringExecution" : path[depth]);
    }
    json_null(writer);
    for (; depth > 0; depth--) {
        json_object_end(writer);
    }
}

static void render_template(struct json_writer *writer, const struct template_patch *patch)
{
    bool changes_spec = patch->node_selector.count > 0 || patch->sets_tolerations ||
                        patch->affinity != NULL || patch->drops_affinity != NULL;
    if (!changes_spec && patch->annotations.count == 0) {
        return;
    }
    json_key(writer, "template");
    json_object_start(writer);
    if (patch->annotations.count > 0) {
        json_key(writer, "metadata");
        json_object_start(writer);
        render_map(writer, "annotations", &patch->annotations);
        json_object_end(writer);
    }
    if (changes_spec) {
        json_key(writer, "spec");
        json_object_start(writer);
        render_map(writer, "nodeSelector", &patch->node_selector);
        if (patch->sets_tolerations) {
            render_tolerations(writer, &patch->tolerations);
        }
        render_affinity(writer, patch);
        json_object_end(writer);
    }
    json_object_end(writer);
}

static void render_pod_set(struct json_writer *writer, const struct template_patch *patch)
{
    if (patch->parallelism.is_set) {
        json_key(writer, "parallelism");
        json_int(writer, patch->parallelism.value);
        if (patch->sets_completions) {
            json_key(writer, "completions");
            json_int(writer, patch->parallelism.value);
        }
    }
    render_template(writer, patch);
}

void render_job_patch(struct json_writer *writer, const struct effect *effect)
{
    const struct job_patch *patch = &effect->patch;
    json_object_start(writer);
    json_key(writer, "metadata");
    json_object_start(writer);
    put_text(writer, "uid", effect->uid);
    put_text(writer, "resourceVersion", effect->resource_version);
    render_labels(writer, patch);
    render_annotations(writer, patch);
    json_object_end(writer);
    json_key(writer, "spec");
    json_object_start(writer);
    if (patch->suspend.is_set) {
        json_key(writer, "suspend");
        json_bool(writer, patch->suspend.value);
    }
    if (patch->template_count > 0) {
        render_pod_set(writer, &patch->templates[0]);
    }
    if (patch->deadline_seconds.is_set || patch->removes_deadline) {
        json_key(writer, "activeDeadlineSeconds");
        patch->removes_deadline ? json_null(writer)
                                : json_int(writer, patch->deadline_seconds.value);
    }
    json_object_end(writer);
    json_object_end(writer);
}

void render_pod_mark(struct json_writer *writer, const struct effect *effect)
{
    json_object_start(writer);
    json_key(writer, "metadata");
    json_object_start(writer);
    put_text(writer, "uid", effect->uid);
    json_key(writer, "annotations");
    json_object_start(writer);
    json_key(writer, "tallyman.dev/checkpoint-request");
    effect->patch.removes_checkpoint ? json_null(writer)
                                     : json_string(writer, effect->patch.checkpoint_request);
    json_object_end(writer);
    json_object_end(writer);
    json_object_end(writer);
}

static void render_whole(struct json_writer *writer, enum object_kind kind, const void *object)
{
    const struct kind_info *info = kind_info(kind);
    json_object_start(writer);
    char version[128];
    int len = snprintf(version, sizeof(version), "%s/%s", info->group, info->version);
    put_text(writer, "apiVersion", (struct str){version, (size_t)len});
    put_text(writer, "kind", str_from_c(info->name));
    encode_fields(writer, info->schema, object);
    json_object_end(writer);
}

void render_admission(struct json_writer *writer, const struct admission *admission)
{
    render_whole(writer, KIND_ADMISSION, admission);
}

void render_request(struct json_writer *writer, const struct provisioning_request *request)
{
    render_whole(writer, KIND_PROVISIONING_REQUEST, request);
}

void render_status(struct json_writer *writer, const struct status_content *content)
{
    switch ((int)content->kind) {
    case KIND_QUEUE:
        render_whole(writer, KIND_QUEUE, &content->queue);
        break;
    case KIND_COHORT:
        render_whole(writer, KIND_COHORT, &content->cohort);
        break;
    default:
        render_whole(writer, KIND_RESOURCE_FLAVOR, &content->flavor);
        break;
    }
}

void render_finalizer(struct json_writer *writer, const struct effect *effect)
{
    json_object_start(writer);
    json_key(writer, "metadata");
    json_object_start(writer);
    put_text(writer, "resourceVersion", effect->resource_version);
    json_key(writer, "finalizers");
    json_array_start(writer);
    for (uint32_t i = 0; i < effect->finalizers.count; i++) {
        json_string(writer, effect->finalizers.items[i]);
    }
    json_array_end(writer);
    json_object_end(writer);
    json_object_end(writer);
}
