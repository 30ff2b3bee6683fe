/* scenario_trace.c - what the core did, as text, and what a test expects of it. */
#include "support/scenario_internal.h"

#include <stdio.h>
#include <string.h>

#include "support/check.h"

static void trace_start(struct scenario *s, struct str namespace_name, struct str name)
{
    bool is_default = str_eq_c(namespace_name, NAMESPACE_DEFAULT);
    text_addf(&s->trace, "[%4lld] " STR_FMT "%s" STR_FMT, (long long)scenario_now_ms(s),
              STR_ARG(is_default ? STR_NONE : namespace_name),
              is_default || str_is_empty(namespace_name) ? "" : "/", STR_ARG(name));
}

static void trace_set(struct scenario *s, const struct record_pod_set *set)
{
    for (uint32_t i = 0; i < set->flavors.count; i++) {
        const struct string_pair *pair = &set->flavors.items[i];
        text_addf(&s->trace, ", " STR_FMT, STR_ARG(pair->key));
        for (uint32_t r = 0; r < set->requests.count; r++) {
            if (str_eq(set->requests.items[r].name, pair->key)) {
                text_addf(&s->trace, " " STR_FMT "/pod", STR_ARG(set->requests.items[r].text));
            }
        }
        text_addf(&s->trace, " on " STR_FMT, STR_ARG(pair->value));
    }
}

/* "5 pods, default: cpu=5" from the record that the PATCH writes. */
static void trace_record(struct scenario *s, struct str text)
{
    void *value = NULL;
    struct err err;
    if (rc_failed(decode_json(&s->arena, &admission_record_schema, text, &value, &err))) {
        fail_msg("the record can't be read: %s", err.text);
    }
    const struct admission_record *record = value;
    for (uint32_t i = 0; i < record->pod_sets.count; i++) {
        const struct record_pod_set *set = &record->pod_sets.items[i];
        if (i == 0) {
            text_addf(&s->trace, " %lld pods of queue " STR_FMT, (long long)set->count.value,
                      STR_ARG(record->queue));
        } else {
            text_addf(&s->trace, "; %lld of set " STR_FMT, (long long)set->count.value,
                      STR_ARG(set->name));
        }
        trace_set(s, set);
    }
}

static void trace_template(struct scenario *s, const struct template_patch *patch)
{
    for (uint32_t i = 0; i < patch->node_selector.count; i++) {
        const struct string_pair *pair = &patch->node_selector.items[i];
        bool is_set = str_is_set(pair->value);
        text_addf(&s->trace, "; selector %s" STR_FMT "%s" STR_FMT, is_set ? "" : "-",
                  STR_ARG(pair->key), is_set ? "=" : "", STR_ARG(pair->value));
    }
    for (uint32_t i = 0; i < patch->annotations.count; i++) {
        const struct string_pair *pair = &patch->annotations.items[i];
        size_t slash = str_find_char(pair->key, '/');
        text_addf(&s->trace, "; " STR_FMT "=" STR_FMT, STR_ARG(str_skip(pair->key, slash + 1)),
                  STR_ARG(str_is_set(pair->value) ? pair->value : STR("-")));
    }
    for (uint32_t i = 0; i < patch->tolerations.count; i++) {
        text_addf(&s->trace, "; toleration " STR_FMT, STR_ARG(patch->tolerations.items[i].key));
    }
    if (patch->sets_tolerations && patch->tolerations.count == 0) {
        text_addf(&s->trace, "; no tolerations");
    }
}

static void trace_patch(struct scenario *s, const struct job_patch *patch)
{
    switch (patch->purpose) {
    case PATCH_ADMIT:
        text_addf(&s->trace, ": admit");
        trace_record(s, patch->record);
        break;
    case PATCH_SUSPEND: {
        void *value = NULL;
        struct err err;
        if (rc_failed(
                decode_json(&s->arena, &suspended_record_schema, patch->suspended, &value, &err))) {
            fail_msg("annotation suspended can't be read: %s", err.text);
        }
        text_addf(&s->trace, ": suspend, " STR_FMT,
                  STR_ARG(((const struct suspended_record *)value)->cause));
        break;
    }
    case PATCH_CHECKPOINT:
        text_addf(&s->trace, ": %s", patch->removes_checkpoint ? "no checkpoint" : "checkpoint");
        break;
    case PATCH_FINISH:
        text_addf(&s->trace, ": let end");
        break;
    case PATCH_RESTORE:
        text_addf(&s->trace, ": restore%s", patch->sets_hold ? ", hold" : "");
        break;
    }
    for (uint32_t t = 0; t < patch->template_count; t++) {
        trace_template(s, &patch->templates[t]);
    }
    text_addf(&s->trace, "\n");
}

void trace_effect(struct scenario *s, const struct effect *effect)
{
    trace_start(s, effect->namespace_name, effect->name);
    switch ((int)effect->kind) {
    case EFFECT_PATCH_JOB:
        trace_patch(s, &effect->patch);
        break;
    case EFFECT_DELETE_ADMISSION:
        text_addf(&s->trace, ": delete the Admission\n");
        break;
    case EFFECT_RECORD_EVENT:
        text_addf(&s->trace, " ! %s%s: " STR_FMT "\n", effect->note.is_warning ? "Warning " : "",
                  effect->note.reason, STR_ARG(effect->note.text));
        break;
    case EFFECT_MAKE_REQUEST:
        text_addf(&s->trace, ": make it\n");
        break;
    case EFFECT_DELETE_REQUEST:
        text_addf(&s->trace, ": delete it\n");
        break;
    case EFFECT_SET_FINALIZER:
        text_addf(&s->trace, ": finalizer %s\n", effect->finalizer_wanted ? "on" : "off");
        break;
    default:
        break;
    }
}

void trace_admission(struct scenario *s, const struct admission *admission)
{
    const struct admission_status *status = &admission->status;
    trace_start(s, admission->meta.namespace_name, admission->meta.name);
    text_addf(&s->trace, " > " STR_FMT, STR_ARG(status->state));
    if (str_is_set(status->pos)) {
        text_addf(&s->trace, " #" STR_FMT, STR_ARG(status->pos));
    }
    bool is_held = !str_is_empty(status->flavor);
    if (is_held) {
        text_addf(&s->trace, " " STR_FMT " on " STR_FMT, STR_ARG(status->pods),
                  STR_ARG(status->flavor));
    }
    if (!str_is_empty(status->reason)) {
        text_addf(&s->trace, " " STR_FMT ": " STR_FMT, STR_ARG(status->reason),
                  STR_ARG(status->message));
    }
    text_addf(&s->trace, "\n");
}

void trace_forget(struct scenario *s)
{
    scenario_start(s);
    s->trace.len = 0;
}

const char *trace_text(const struct scenario *s)
{
    return s->trace.len == 0 ? ""
                             : text_str(&s->trace).ptr; /* behind its end is what was forgotten */
}

/* -- what is expected ---------------------------------------------------------------------------
 */

static struct str take_line(struct str *text)
{
    size_t end = str_find_char(*text, '\n');
    struct str line = str_take(*text, end);
    *text = str_skip(*text, end + 1);
    return line;
}

static bool line_matches(struct str actual, struct str expected)
{
    struct str open = STR("…");
    if (str_ends_with(expected, open)) {
        return str_starts_with(actual, str_take(expected, expected.len - open.len));
    }
    return str_eq(actual, expected);
}

void expect_trace_at(struct scenario *s, const char *text, const char *file, int line)
{
    scenario_start(s);
    struct str actual = text_str(&s->trace);
    struct str expected = str_from_c(text);
    bool is_same = true;
    while (is_same && (actual.len > 0 || expected.len > 0)) {
        is_same = actual.len > 0 && expected.len > 0 &&
                  line_matches(take_line(&actual), take_line(&expected));
    }
    if (!is_same) {
        print_error("the trace is\n" STR_FMT "and not\n%s", STR_ARG(text_str(&s->trace)), text);
        _fail(file, line);
    }
    s->trace.len = 0;
}

static const struct admission *admission_of(struct scenario *s, const char *job)
{
    scenario_start(s);
    struct entry *entry = entry_find(s, KIND_ADMISSION, job);
    return entry == NULL ? NULL : (const struct admission *)entry->value;
}

void expect_state_at(struct scenario *s, const char *job, const char *text, const char *file,
                     int line)
{
    const struct admission *admission = admission_of(s, job);
    struct str actual = STR("no Admission");
    if (admission != NULL) {
        const struct admission_status *status = &admission->status;
        actual = make(s, STR_FMT "%s" STR_FMT, STR_ARG(status->state),
                      str_is_empty(status->reason) ? "" : " ", STR_ARG(status->reason));
    }
    if (!str_eq_c(actual, text)) {
        print_error("%s is \"" STR_FMT "\", not \"%s\" (" STR_FMT ")\n%s", job, STR_ARG(actual),
                    text, STR_ARG(admission == NULL ? STR_NONE : admission->status.message),
                    trace_text(s));
        _fail(file, line);
    }
}

void expect_message_at(struct scenario *s, const char *job, const char *part, const char *file,
                       int line)
{
    const struct admission *admission = admission_of(s, job);
    struct str message = admission == NULL ? STR_NONE : admission->status.message;
    if (str_find(message, str_from_c(part)) == message.len) {
        print_error("the message of %s is \"" STR_FMT "\", without \"%s\"\n", job, STR_ARG(message),
                    part);
        _fail(file, line);
    }
}

int64_t likely_start_ms(struct scenario *s, const char *job)
{
    const struct admission *admission = admission_of(s, job);
    const struct explanation *explanation =
        admission == NULL ? NULL : admission->status.explanation;
    if (explanation == NULL || explanation->likely_start_unknown.is_set) {
        return explanation == NULL ? LIKELY_NONE : LIKELY_UNKNOWN;
    }
    const struct opt_time *start = &explanation->likely_start;
    return start->is_set ? start->ms - SCENARIO_START_MS : LIKELY_NONE;
}

int64_t likely_start_minute(struct scenario *s, const char *job)
{
    int64_t start_ms = likely_start_ms(s, job);
    return start_ms < 0 ? start_ms : start_ms / 60000;
}

static struct queue_figures figures_of(struct scenario *s, struct str queue)
{
    struct queue_figures_list list = core_queue_figures(s->core, &s->arena);
    for (uint32_t i = 0; i < list.count; i++) {
        if (str_eq(list.items[i].queue, queue)) {
            return list.items[i];
        }
    }
    return (struct queue_figures){.pending = 0};
}

static int64_t used_of(const struct queue_figures *figures, struct str resource)
{
    int64_t used = 0;
    for (uint32_t i = 0; i < figures->cell_count; i++) {
        used += str_eq(figures->cells[i].resource, resource) ? figures->cells[i].used_milli : 0;
    }
    return used;
}

void expect_used_at(struct scenario *s, const char *queue, const char *text, const char *file,
                    int line)
{
    scenario_start(s);
    struct queue_figures figures = figures_of(s, str_from_c(queue));
    struct str key;
    struct str value;
    while (next_option(&text, &key, &value)) {
        struct quantity quantity = {.nano = 0};
        struct err err;
        assert_false(rc_failed(quantity_parse(value, &quantity, &err)));
        int64_t expected = quantity_milli_up(quantity);
        int64_t actual = used_of(&figures, key);
        if (actual != expected) {
            print_error("queue %s uses %lld " STR_FMT ", not %lld thousandths\n%s", queue,
                        (long long)actual, STR_ARG(key), (long long)expected, trace_text(s));
            _fail(file, line);
        }
    }
}

static const char *decisions(struct scenario *s, bool has_reasons)
{
    scenario_start(s);
    struct decided_list list = core_decisions(s->core, &s->arena);
    struct text text = list_text(s);
    for (uint32_t i = 0; i < list.count; i++) {
        const struct decided_gang *gang = &list.items[i];
        bool is_running = gang->decision == DECISION_ADMIT || gang->decision == DECISION_KEEP;
        text_addf(&text, STR_FMT "/" STR_FMT ": %s %s #%lld %lld\n", STR_ARG(gang->namespace_name),
                  STR_ARG(gang->name), decision_name(gang->decision),
                  has_reasons ? reason_info(gang->reason)->code : "", (long long)gang->position,
                  has_reasons || is_running ? (long long)gang->pods : 0);
    }
    return text_str(&text).ptr == NULL ? "" : text_str(&text).ptr;
}

const char *decisions_text(struct scenario *s)
{
    return decisions(s, true);
}

const char *decisions_without_reasons(struct scenario *s)
{
    return decisions(s, false);
}

/* -- after each step ----------------------------------------------------------------------------
 */

/* One that waits for its victims is charged beside them until they are gone. */
static bool preempts_in(struct scenario *s, struct str queue)
{
    struct decided_list list = core_decisions(s->core, &s->arena);
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.items[i].decision == DECISION_PREEMPT && str_eq(list.items[i].queue, queue)) {
            return true;
        }
    }
    return false;
}

static void check_cell(struct scenario *s, struct str queue, const struct cell_figures *cell)
{
    bool is_over = cell->used_milli > cell->nominal_milli && !preempts_in(s, queue);
    if (cell->used_milli < 0 || is_over) {
        fail_msg("queue " STR_FMT " uses %lld of %lld " STR_FMT "\n%s", STR_ARG(queue),
                 (long long)cell->used_milli, (long long)cell->nominal_milli,
                 STR_ARG(cell->resource), trace_text(s));
    }
}

/* What an admission is charged to isn't used beyond its quota: only a cut may leave it there, and
 * then nothing more is admitted on it. */
void check_admission(struct scenario *s, const struct effect *effect)
{
    void *value = NULL;
    struct err err;
    assert_false(rc_failed(
        decode_json(&s->arena, &admission_record_schema, effect->patch.record, &value, &err)));
    const struct admission_record *record = value;
    char name[300];
    (void)snprintf(name, sizeof(name), STR_FMT, STR_ARG(record->queue));
    const struct entry *queue = entry_find(s, KIND_QUEUE, name);
    if (queue != NULL && !str_is_empty(((const struct queue *)queue->value)->spec.cohort)) {
        return; /* it may borrow */
    }
    struct queue_figures figures = figures_of(s, record->queue);
    for (uint32_t set = 0; set < record->pod_sets.count; set++) {
        const struct string_map *flavors = &record->pod_sets.items[set].flavors;
        for (uint32_t i = 0; i < figures.cell_count; i++) {
            const struct cell_figures *cell = &figures.cells[i];
            if (str_eq(string_map_find(flavors, cell->resource), cell->flavor)) {
                check_cell(s, record->queue, cell);
            }
        }
    }
}
