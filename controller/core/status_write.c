#include "internal.h"

#include "tallyman/api/codec.h"
#include "tallyman/base/limits.h"

uint64_t status_content_hash(enum object_kind kind, const void *content)
{
    struct json_writer *writer = json_writer_new();
    encode_object(writer, kind_info(kind)->schema, content);
    uint64_t hash = str_hash(json_writer_text(writer), 1);
    json_writer_free(writer);
    return hash;
}

int64_t status_write_due_ms(const struct status_write *status)
{
    return status->is_dirty && status->effect_id == 0 ? status->next_ms : INT64_MAX;
}

bool status_write_is_news(enum object_kind kind, const void *content, struct status_write *status)
{
    status->said_hash = status_content_hash(kind, content);
    return status->said_hash != status->shown_hash;
}

void status_write_shown(enum object_kind kind, const void *content, struct status_write *status)
{
    status->shown_hash = status_content_hash(kind, content);
    status->is_shown_since = true;
    status->is_dirty = status->is_dirty || status->shown_hash != status->said_hash;
}

void status_write_emit(struct core *core, enum object_kind kind, struct str name,
                       struct status_write *status)
{
    struct effect *effect = effect_new(core, EFFECT_WRITE_STATUS);
    effect->id = STATUS_ID_BIT | ++core->next_status_id;
    effect->object_kind = kind;
    effect->name = arena_copy_str(core->out->arena, name);
    status->effect_id = effect->id;
    status->is_shown_since = false;
    status->is_dirty = false;
    status->next_ms = core->now_ms + STATUS_INTERVAL_MS;
}

static struct status_write *find(const struct core *core, enum object_kind kind, struct str name)
{
    if (kind == KIND_QUEUE) {
        struct queue_state *queue = queue_find(core, name);
        return queue == NULL ? NULL : &queue->status;
    }
    if (kind == KIND_RESOURCE_FLAVOR) {
        struct flavor_state *flavor = flavor_find(core, name);
        return flavor == NULL ? NULL : &flavor->status;
    }
    struct cohort_state *cohort = cohort_find(core, name);
    return cohort == NULL ? NULL : &cohort->status;
}

void status_write_done(struct core *core, const struct pending_effect *effect,
                       const struct effect_done *done)
{
    struct status_write *status = find(core, effect->object_kind, effect->name);
    if (status == NULL || status->effect_id != effect->id) {
        return; /* of one that has gone since */
    }
    status->effect_id = 0;
    if (done->outcome != EFFECT_OK) {
        status->is_dirty = true;
        status->next_ms = core->now_ms + TELL_RETRY_MS;
    } else if (!status->is_shown_since) {
        status->shown_hash = status->said_hash;
    }
    if (effect->object_kind == KIND_QUEUE) {
        queue_set_due(core, queue_find(core, effect->name));
    }
}
