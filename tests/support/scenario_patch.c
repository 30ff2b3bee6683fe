/* scenario_patch.c - what the API server makes of a PATCH of a Job. */
#include "support/scenario_internal.h"

#include "support/check.h"

static void set_annotation(struct scenario *s, struct object_meta *meta, const char *key,
                           struct str value, bool removes)
{
    if (str_is_set(value)) {
        map_set(s, &meta->annotations, str_from_c(key), value);
    } else if (removes) {
        map_remove(&meta->annotations, str_from_c(key));
    }
}

void set_mark(struct scenario *s, struct object_meta *meta, const struct job_patch *patch)
{
    set_annotation(s, meta, "tallyman.dev/checkpoint-request", patch->checkpoint_request,
                   patch->removes_checkpoint);
}

/* The patch's own is gone after the step. */
static struct affinity *affinity_kept(struct scenario *s, struct affinity *affinity)
{
    struct pod_spec only = {.affinity = affinity};
    struct json_writer *writer = json_writer_new();
    encode_object(writer, &pod_spec_schema, &only);
    void *copy = NULL;
    struct err err;
    struct str text = arena_copy_str(&s->arena, json_writer_text(writer));
    assert_false(rc_failed(decode_json(&s->arena, &pod_spec_schema, text, &copy, &err)));
    json_writer_free(writer);
    return ((struct pod_spec *)copy)->affinity;
}

static bool changes_template(const struct template_patch *patch)
{
    return patch->node_selector.count > 0 || patch->sets_tolerations || patch->affinity != NULL ||
           patch->drops_affinity != NULL;
}

static void apply_affinity(struct scenario *s, struct pod_spec *spec,
                           const struct template_patch *patch)
{
    if (patch->affinity != NULL || patch->drops_affinity != NULL) {
        struct affinity *sets = patch->affinity == NULL ? NULL : affinity_kept(s, patch->affinity);
        spec->affinity =
            affinity_merge(&s->arena, spec->affinity, sets, str_from_c(patch->drops_affinity));
    }
}

void apply_template(struct scenario *s, struct job *job, const struct template_patch *patch)
{
    struct pod_spec *spec = &job->spec.pod_template.spec;
    bool is_template_fixed = job->status.start_time.is_set;
    assert_false(is_template_fixed && changes_template(patch)); /* the server would say 422 */
    for (uint32_t i = 0; i < patch->annotations.count; i++) {
        const struct string_pair *pair = &patch->annotations.items[i];
        struct string_map *annotations = &job->spec.pod_template.meta.annotations;
        str_is_set(pair->value) ? map_set(s, annotations, pair->key, pair->value)
                                : map_remove(annotations, pair->key);
    }
    for (uint32_t i = 0; i < patch->node_selector.count; i++) {
        const struct string_pair *pair = &patch->node_selector.items[i];
        if (str_is_set(pair->value)) {
            map_set(s, &spec->node_selector, pair->key, pair->value);
        } else {
            map_remove(&spec->node_selector, pair->key);
        }
    }
    if (patch->sets_tolerations) {
        spec->tolerations = patch->tolerations;
        if (spec->tolerations.count == 0) {
            spec->tolerations.items = NULL;
        }
    }
    apply_affinity(s, spec, patch);
    if (patch->parallelism.is_set) {
        job->spec.parallelism = patch->parallelism;
    }
}

void apply_patch(struct scenario *s, struct job *job, const struct job_patch *patch)
{
    set_queue_label(s, job, patch);
    set_annotation(s, &job->meta, "tallyman.dev/admission", patch->record, patch->removes_record);
    set_annotation(s, &job->meta, "tallyman.dev/suspended", patch->suspended,
                   patch->removes_suspended);
    set_annotation(s, &job->meta, "tallyman.dev/provisioning-attempt", patch->provisioning_attempt,
                   false);
    set_annotation(s, &job->meta, "tallyman.dev/checkpoint-request", patch->checkpoint_request,
                   patch->removes_checkpoint);
    set_annotation(s, &job->meta, "tallyman.dev/checkpoint-for", patch->checkpoint_for,
                   patch->removes_checkpoint);
    set_annotation(s, &job->meta, "tallyman.dev/hold", patch->sets_hold ? STR("true") : STR_NONE,
                   false);
    if (patch->suspend.is_set) {
        job->spec.suspend = patch->suspend;
    }
    for (uint32_t t = 0; t < patch->template_count; t++) {
        struct extra_set *extra = extra_set_find(s, job->meta.name, patch->templates[t].pod_set);
        apply_template(s, extra == NULL ? job : extra->object, &patch->templates[t]);
    }
    if (patch->deadline_seconds.is_set || patch->removes_deadline) {
        job->spec.active_deadline_seconds = patch->deadline_seconds;
    }
    job->meta.generation.value++;
}
