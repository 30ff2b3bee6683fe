/* answer.c - what the core decides about a state, and the state as a case. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/manifest.h"
#include "tallyman/api/codec.h"
#include "tallyman/base/text.h"

struct feed {
    struct core *core;
    struct effects effects;
};

static void feed_event(struct feed *feed, struct event event)
{
    struct err err = {.text = ""};
    event.now_ms = MODEL_NOW_MS;
    if (rc_failed(core_step(feed->core, &event, &feed->effects, &err))) {
        fprintf(stderr, "the core refuses an object: %s\n", err.text);
        abort();
    }
}

static void feed_object(struct sink *sink, const struct document *document)
{
    struct str json = document_json(sink->arena, document);
    void *value = NULL;
    struct err err = {.text = ""};
    if (rc_failed(
            decode_json(sink->arena, kind_info(document->kind)->schema, json, &value, &err))) {
        fprintf(stderr, "%s\n" STR_FMT "\n", err.text, STR_ARG(json));
        abort();
    }
    struct object_meta *meta = value;
    if (!str_is_set(meta->uid)) {
        meta->uid = arena_format(sink->arena, "%s/" STR_FMT, kind_info(document->kind)->name,
                                 STR_ARG(document->name));
    }
    feed_event(sink->ctx, (struct event){.kind = EVENT_OBJECT, .object = {document->kind, value}});
}

static int number_behind(struct str text, char before)
{
    size_t at = str_find_char(text, before);
    int64_t number = NONE;
    bool is_number = str_to_i64(str_skip(text, at + 1), &number);
    assert(is_number);
    return is_number ? (int)number : NONE;
}

static struct answer read_decision(const struct decided_gang *gang)
{
    struct answer answer = {.decision = gang->decision, .reason = gang->reason, .flavor = NONE};
    answer.count = (int)gang->pod_sets[0].count;
    const struct string_map *flavors = &gang->pod_sets[0].flavors;
    int choice[RESOURCES] = {NONE, NONE};
    for (uint32_t i = 0; i < flavors->count; i++) {
        enum resource r = str_eq_c(flavors->items[i].key, "cpu") ? CPU : DEVICE;
        choice[r] = number_behind(flavors->items[i].value, 'f');
    }
    if (flavors->count > 0) {
        answer.flavor = choice_of(choice[CPU], choice[DEVICE]);
    }
    for (uint32_t v = 0; v < gang->victims.count; v++) {
        answer.victims |= 1u << number_behind(gang->victims.items[v], 'g');
    }
    return answer;
}

void core_read_answers(const struct core *core, struct answer answers[GANGS])
{
    struct arena arena;
    arena_init(&arena);
    memset(answers, 0, GANGS * sizeof(*answers));
    struct decided_list list = core_decisions(core, &arena);
    for (uint32_t i = 0; i < list.count; i++) {
        answers[number_behind(list.items[i].name, 'g')] = read_decision(&list.items[i]);
    }
    arena_deinit(&arena);
}

void core_answer(const struct model_state *state, struct answer answers[GANGS])
{
    static struct arena objects;
    static struct arena steps;
    const struct core_options options = {.stuck_node_ms = 0};
    struct feed feed = {.core = core_new(&options), .effects = {.arena = &steps}};
    struct sink sink = {.arena = &objects, .take = feed_object, .ctx = &feed};
    state_objects(state, &sink);
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        feed_event(&feed,
                   (struct event){.kind = EVENT_SYNCED, .synced_kind = (enum object_kind)kind});
    }
    core_read_answers(feed.core, answers);
    core_free(feed.core);
    arena_reset(&objects);
    arena_reset(&steps);
}

/* -- a case -------------------------------------------------------------------------------------
 */

/* Where the value ends that begins there: JSON, which is YAML too. */
static size_t value_end(struct str text, size_t at)
{
    int depth = 0;
    bool is_quoted = false;
    for (; at < text.len; at++) {
        char c = text.ptr[at];
        bool is_quote = c == '"' && (at == 0 || text.ptr[at - 1] != '\\');
        is_quoted = is_quote ? !is_quoted : is_quoted;
        if (is_quoted) {
            continue;
        }
        if (depth == 0 && c == ',') {
            break;
        }
        depth += c == '{' || c == '[' ? 1 : 0;
        depth -= c == '}' || c == ']' ? 1 : 0;
    }
    return at;
}

static void print_object(struct sink *sink, const struct document *document)
{
    FILE *out = sink->ctx;
    const struct kind_info *kind = kind_info(document->kind);
    fprintf(out,
            "---\napiVersion: %s%s%s\nkind: %s\nmetadata: {\"name\":\"" STR_FMT "\"" STR_FMT "}\n",
            kind->group, *kind->group == '\0' ? "" : "/", kind->version, kind->name,
            STR_ARG(document->name), STR_ARG(document->metadata));
    struct str rest = document->members;
    while (rest.len > 0) {
        size_t colon = str_find_char(rest, ':');
        size_t end = value_end(rest, colon + 1);
        struct str name = str_take(rest, colon);
        fprintf(out, STR_FMT ": " STR_FMT "\n", STR_ARG(name),
                STR_ARG(str_skip(str_take(rest, end), colon + 1)));
        rest = str_skip(rest, end < rest.len ? end + 1 : end);
    }
}

static void print_victims(uint32_t victims, FILE *out)
{
    const char *before = " victims=";
    for (int v = 0; v < GANGS; v++) {
        if ((victims >> v & 1) != 0) {
            fprintf(out, "%squay/g%d", before, v);
            before = ",";
        }
    }
}

static const char *resource_name(const struct model_state *state, int r)
{
    return r == CPU ? "cpu" : state->is_dra ? "gpu.example.com" : "example.com/gpu";
}

void answer_print(const struct model_state *state, int g, const struct answer *answer, FILE *out)
{
    fprintf(out, "quay/g%d %s", g, decision_name(answer->decision));
    if (answer->decision == DECISION_ADMIT || answer->decision == DECISION_PREEMPT) {
        fprintf(out, " count=%d", answer->count);
        for (int r = 0; r < RESOURCES && answer->flavor != NONE; r++) {
            int flavor = flavor_of(answer->flavor, (enum resource)r);
            if (flavor != FLAVORS) {
                fprintf(out, " flavor:%s=f%d", resource_name(state, r), flavor);
            }
        }
        print_victims(answer->victims, out);
    }
    if (answer->decision == DECISION_WAIT) {
        fprintf(out, " reason=%s", reason_info(answer->reason)->code);
    }
    fputs("\n", out);
}

void state_print(const struct model_state *state, const struct answer answers[GANGS], FILE *out)
{
    struct arena arena;
    arena_init(&arena);
    fputs("# rule: (what the model says; write the rule that settles it)\n"
          "# now: 2026-11-29T12:00:00Z\n",
          out);
    for (int g = 0; g < GANGS; g++) {
        if (state->gangs[g].exists) {
            fputs("# expect ", out);
            answer_print(state, g, &answers[g], out);
        }
    }
    struct sink sink = {.arena = &arena, .take = print_object, .ctx = out};
    state_objects(state, &sink);
    arena_deinit(&arena);
}
