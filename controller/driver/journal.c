/* journal.c - events and decisions as lines. */
#include "tallyman/driver/journal.h"

#include "tallyman/api/codec.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"

static const char *const event_names[] = {
    [EVENT_OBJECT] = "object", [EVENT_DELETED] = "deleted",  [EVENT_SYNCED] = "synced",
    [EVENT_TICK] = "tick",     [EVENT_EFFECT_DONE] = "done",
};

static const char *const outcome_names[] = {[EFFECT_OK] = "ok",
                                            [EFFECT_CONFLICT] = "conflict",
                                            [EFFECT_GONE] = "gone",
                                            [EFFECT_REFUSED] = "refused"};

static void put(struct json_writer *writer, const char *key, struct str value)
{
    if (str_is_set(value)) {
        json_key(writer, key);
        json_string(writer, value);
    }
}

static void put_int(struct json_writer *writer, const char *key, int64_t value)
{
    json_key(writer, key);
    json_int(writer, value);
}

struct str journal_event_line(struct arena *arena, const struct event *event)
{
    struct json_writer *writer = json_writer_new();
    json_object_start(writer);
    put_int(writer, "now", event->now_ms);
    put(writer, "event", str_from_c(event_names[event->kind]));
    if (event->more_follow) {
        json_key(writer, "more");
        json_bool(writer, true);
    }
    if (event->kind == EVENT_OBJECT || event->kind == EVENT_DELETED) {
        const struct kind_info *info = kind_info(event->object.kind);
        put(writer, "kind", str_from_c(info->name));
        json_key(writer, "object");
        encode_object(writer, info->schema, event->object.value);
    } else if (event->kind == EVENT_SYNCED) {
        put(writer, "kind", str_from_c(kind_info(event->synced_kind)->name));
        if (event->is_absent) {
            json_key(writer, "absent");
            json_bool(writer, true);
        }
    } else if (event->kind == EVENT_EFFECT_DONE) {
        put_int(writer, "effect", (int64_t)event->done.effect_id);
        put(writer, "outcome", str_from_c(outcome_names[event->done.outcome]));
        put(writer, "version", event->done.resource_version);
        put(writer, "message", event->done.message);
    }
    json_object_end(writer);
    struct str line = arena_copy_str(arena, json_writer_text(writer));
    json_writer_free(writer);
    return line;
}

struct str journal_start_line(struct arena *arena, int64_t now_ms, struct str version,
                              struct str build)
{
    struct json_writer *writer = json_writer_new();
    json_object_start(writer);
    put_int(writer, "now", now_ms);
    put(writer, "start", version);
    put(writer, "build", build);
    json_object_end(writer);
    struct str line = arena_copy_str(arena, json_writer_text(writer));
    json_writer_free(writer);
    return line;
}

struct str journal_lost_line(struct arena *arena, uint64_t count)
{
    return arena_format(arena, "{\"lost\":%llu}", (unsigned long long)count);
}

/* -- decisions -------------------------------------------------------------------------------- */

static void describe_patch(struct text *text, const struct effect *effect)
{
    const struct job_patch *patch = &effect->patch;
    static const char *const purposes[] = {[PATCH_ADMIT] = "admit",
                                           [PATCH_SUSPEND] = "suspend",
                                           [PATCH_RESTORE] = "restore",
                                           [PATCH_CHECKPOINT] = "checkpoint",
                                           [PATCH_FINISH] = "let end"};
    text_addf(text, "%s " STR_FMT "/" STR_FMT " uid=" STR_FMT, purposes[patch->purpose],
              STR_ARG(effect->namespace_name), STR_ARG(effect->name), STR_ARG(effect->uid));
    if (str_is_set(patch->queue_label)) {
        text_addf(text, " queue=" STR_FMT, STR_ARG(patch->queue_label));
    }
    if (str_is_set(patch->record)) {
        text_addf(text, " record=" STR_FMT, STR_ARG(patch->record));
    }
    if (str_is_set(patch->suspended)) {
        text_addf(text, " suspended=" STR_FMT, STR_ARG(patch->suspended));
    }
    if (str_is_set(patch->checkpoint_request)) {
        text_addf(text, " since=" STR_FMT " for=" STR_FMT, STR_ARG(patch->checkpoint_request),
                  STR_ARG(patch->checkpoint_for));
    }
    for (uint32_t t = 0; t < patch->template_count; t++) {
        const struct string_map *selector = &patch->templates[t].node_selector;
        for (uint32_t i = 0; i < selector->count; i++) {
            text_addf(text, " " STR_FMT "=" STR_FMT, STR_ARG(selector->items[i].key),
                      STR_ARG(selector->items[i].value));
        }
    }
    if (str_is_set(patch->provisioning_attempt)) {
        text_addf(text, " attempt=" STR_FMT, STR_ARG(patch->provisioning_attempt));
    }
    if (patch->sets_hold) {
        text_add(text, STR(" hold"));
    }
    text_add(text, STR("\n"));
}

struct str journal_decision_text(struct arena *arena, const struct effects *effects)
{
    struct text text;
    text_init(&text, arena, DECODE_OBJECT_MAX_BYTES);
    for (uint32_t i = 0; i < effects->count; i++) {
        const struct effect *effect = &effects->items[i];
        if (effect->kind == EFFECT_PATCH_JOB) {
            describe_patch(&text, effect);
        } else if (effect->kind == EFFECT_RECORD_EVENT) {
            text_addf(&text, "event " STR_FMT "/" STR_FMT " %s: " STR_FMT "\n",
                      STR_ARG(effect->namespace_name), STR_ARG(effect->name), effect->note.reason,
                      STR_ARG(effect->note.text));
        }
    }
    return text_str(&text);
}

struct str journal_decision_line(struct arena *arena, const struct effects *effects)
{
    struct str text = journal_decision_text(arena, effects);
    if (text.len == 0) {
        return STR_NONE;
    }
    struct json_writer *writer = json_writer_new();
    json_object_start(writer);
    put(writer, "decisions", text);
    json_object_end(writer);
    struct str line = arena_copy_str(arena, json_writer_text(writer));
    json_writer_free(writer);
    return line;
}

/* -- reading ---------------------------------------------------------------------------------- */

/* The head of a line; the object itself is decoded by its kind's schema in a second pass. */
struct line_head {
    struct opt_int now;
    struct str event;
    struct opt_bool more;
    struct opt_bool absent;
    struct str kind;
    struct opt_int effect;
    struct str outcome;
    struct str version;
    struct str message;
    struct str decisions;
    struct str start;
    struct str build;
    struct opt_int lost;
};

static const struct field line_fields[] = {
    {"now", FIELD_INT, offsetof(struct line_head, now), NULL},
    {"event", FIELD_STRING, offsetof(struct line_head, event), NULL},
    {"more", FIELD_BOOL, offsetof(struct line_head, more), NULL},
    {"absent", FIELD_BOOL, offsetof(struct line_head, absent), NULL},
    {"kind", FIELD_STRING, offsetof(struct line_head, kind), NULL},
    {"effect", FIELD_INT, offsetof(struct line_head, effect), NULL},
    {"outcome", FIELD_STRING, offsetof(struct line_head, outcome), NULL},
    {"version", FIELD_STRING, offsetof(struct line_head, version), NULL},
    {"message", FIELD_STRING, offsetof(struct line_head, message), NULL},
    {"decisions", FIELD_STRING, offsetof(struct line_head, decisions), NULL},
    {"start", FIELD_STRING, offsetof(struct line_head, start), NULL},
    {"build", FIELD_STRING, offsetof(struct line_head, build), NULL},
    {"lost", FIELD_INT, offsetof(struct line_head, lost), NULL},
};

static const struct schema line_schema = {"journal line", sizeof(struct line_head), line_fields,
                                          ARRAY_COUNT(line_fields)};

static enum object_kind kind_named(struct str name)
{
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        if (str_eq_c(name, kind_info((enum object_kind)kind)->name)) {
            return (enum object_kind)kind;
        }
    }
    return KIND_NONE;
}

static struct rc parse_object(struct arena *arena, struct str line, enum object_kind kind,
                              struct object *ret_object, struct err *err)
{
    struct field field = {"object", FIELD_OBJECT_PTR, 0, kind_info(kind)->schema};
    struct schema wrapper = {"journal line", sizeof(void *), &field, 1};
    void *value = NULL;
    TRY(decode_json(arena, &wrapper, line, &value, err));
    const struct object_meta *const *holder = value;
    if (*holder == NULL) {
        return err_set(err, RC_INVALID, "a journal line without its object");
    }
    *ret_object = (struct object){.kind = kind, .value = *holder};
    return RC_SUCCESS;
}

static int index_of(const char *const *names, size_t count, struct str name)
{
    for (size_t i = 0; i < count; i++) {
        if (names[i] != NULL && str_eq_c(name, names[i])) {
            return (int)i;
        }
    }
    return 0;
}

/* False: it is an event, if it is a line at all. */
static bool parse_other(const struct line_head *head, struct journal_line *ret_line)
{
    if (str_is_set(head->decisions)) {
        *ret_line =
            (struct journal_line){.kind = JOURNAL_DECISION, .decision_text = head->decisions};
    } else if (str_is_set(head->start) && head->now.is_set) {
        *ret_line = (struct journal_line){.kind = JOURNAL_START,
                                          .started_ms = head->now.value,
                                          .version = head->start,
                                          .build = head->build};
    } else if (head->lost.is_set && head->lost.value > 0) {
        *ret_line = (struct journal_line){.kind = JOURNAL_LOST, .lost_lines = head->lost.value};
    } else {
        return false;
    }
    return true;
}

struct rc journal_parse_line(struct arena *arena, struct str line, struct journal_line *ret_line,
                             struct err *err)
{
    void *value = NULL;
    TRY(decode_json(arena, &line_schema, line, &value, err));
    const struct line_head *head = value;
    if (parse_other(head, ret_line)) {
        return RC_SUCCESS;
    }
    struct journal_line parsed = {.kind = JOURNAL_EVENT};
    parsed.event.now_ms = head->now.value;
    int event = index_of(event_names, ARRAY_COUNT(event_names), head->event);
    enum object_kind kind = kind_named(head->kind);
    if (event == 0 || !head->now.is_set) {
        return err_set(err, RC_INVALID, "a line that is neither an event nor a decision");
    }
    parsed.event.kind = (enum event_kind)event;
    parsed.event.more_follow = head->more.value;
    bool has_object = event == EVENT_OBJECT || event == EVENT_DELETED;
    if ((has_object || event == EVENT_SYNCED) && kind == KIND_NONE) {
        return err_set(err, RC_INVALID, "an event of the unknown kind \"" STR_FMT "\"",
                       STR_ARG(head->kind));
    }
    parsed.event.synced_kind = kind;
    parsed.event.is_absent = head->absent.value;
    if (has_object) {
        TRY(parse_object(arena, line, kind, &parsed.event.object, err));
    }
    if (event == EVENT_EFFECT_DONE) {
        parsed.event.done.effect_id = (uint64_t)head->effect.value;
        parsed.event.done.outcome =
            (enum effect_outcome)index_of(outcome_names, ARRAY_COUNT(outcome_names), head->outcome);
        parsed.event.done.resource_version = head->version;
        parsed.event.done.message = head->message;
        if (parsed.event.done.outcome == 0) {
            return err_set(err, RC_INVALID, "an answer with the unknown outcome \"" STR_FMT "\"",
                           STR_ARG(head->outcome));
        }
    }
    *ret_line = parsed;
    return RC_SUCCESS;
}
