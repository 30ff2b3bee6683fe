/* simulate_timeline.c - condenses what the simulator tells into lines that fit on a screen. */
#include "simulate.h"

#include <string.h>

#include "tallyman/base/limits.h"

#define BURST_MS     1000 /* what happens to a Job within that time is one line */
#define PLACES_SHOWN 6    /* nodes of one line that are named */
#define NAME_COLUMNS 24
#define TIME_COLUMNS 12 /* "  00:00:00  " */

struct timeline_job {
    struct str key;
    int64_t wanted;
    bool is_suspended;
    struct str told; /* why it waits, as it was said last */
};

static struct timeline_job *job_get(struct timeline *timeline, struct str key)
{
    for (uint32_t i = 0; i < timeline->job_count; i++) {
        if (str_eq(timeline->jobs[i].key, key)) {
            return &timeline->jobs[i];
        }
    }
    timeline->jobs = arena_grow(timeline->arena, timeline->jobs, timeline->job_count,
                                &timeline->job_capacity, sizeof(struct timeline_job));
    struct timeline_job *job = &timeline->jobs[timeline->job_count++];
    *job = (struct timeline_job){.key = arena_copy_str(timeline->arena, key)};
    return job;
}

static struct line *line_add(struct timeline *timeline, const struct sim_note *note,
                             enum line_kind kind, const struct timeline_job *job)
{
    timeline->lines = arena_grow(timeline->arena, timeline->lines, timeline->count,
                                 &timeline->capacity, sizeof(struct line));
    struct line *line = &timeline->lines[timeline->count++];
    *line = (struct line){.at_ms = note->at_ms,
                          .last_ms = note->at_ms,
                          .kind = kind,
                          .job = job->key,
                          .text = arena_copy_str(timeline->arena, note->text),
                          .wanted = job->wanted};
    return line;
}

/* The Job's line of that kind that is still being written, or NULL. */
static struct line *line_open(struct timeline *timeline, enum line_kind kind, struct str job,
                              int64_t at_ms)
{
    for (uint32_t i = timeline->count; i > 0; i--) {
        struct line *line = &timeline->lines[i - 1];
        if (line->last_ms + BURST_MS < at_ms) {
            return NULL;
        }
        if (line->kind == kind && str_eq(line->job, job)) {
            return line;
        }
    }
    return NULL;
}

static void line_drop(struct timeline *timeline, const struct line *line)
{
    uint32_t at = (uint32_t)(line - timeline->lines);
    memmove(&timeline->lines[at], &timeline->lines[at + 1],
            (timeline->count - at - 1) * sizeof(struct line));
    timeline->count--;
}

static void add_place(struct timeline *timeline, struct line *line, const struct sim_note *note)
{
    struct place *place = NULL;
    for (uint32_t i = 0; i < line->place_count && place == NULL; i++) {
        place = str_eq(line->places[i].node, note->node) ? &line->places[i] : NULL;
    }
    if (place == NULL) {
        line->places = arena_grow(timeline->arena, line->places, line->place_count,
                                  &line->place_capacity, sizeof(struct place));
        place = &line->places[line->place_count++];
        *place = (struct place){.node = arena_copy_str(timeline->arena, note->node)};
    }
    place->pods++;
    if (str_is_empty(place->devices)) {
        place->devices = arena_copy_str(timeline->arena, note->text);
    } else if (!str_is_empty(note->text)) {
        place->devices = arena_format(timeline->arena, STR_FMT " " STR_FMT, STR_ARG(place->devices),
                                      STR_ARG(note->text));
    }
}

static void note_bound(struct timeline *timeline, const struct sim_note *note,
                       struct timeline_job *job)
{
    size_t slash = str_find_char(note->job, '/');
    int64_t bound =
        sim_job_bound(timeline->sim, str_take(note->job, slash), str_skip(note->job, slash + 1));
    job->wanted = bound > job->wanted ? bound : job->wanted; /* its parallelism was raised */
    struct line *line = line_open(timeline, LINE_BOUND, job->key, note->at_ms);
    if (line == NULL) {
        line = line_add(timeline, note, LINE_BOUND, job);
    }
    add_place(timeline, line, note);
    line->last_ms = note->at_ms;
    line->pods++;
    line->bound = bound;
    line->wanted = job->wanted;
}

static void note_unschedulable(struct timeline *timeline, const struct sim_note *note,
                               struct timeline_job *job)
{
    struct line *line = line_open(timeline, LINE_UNSCHEDULABLE, job->key, note->at_ms);
    if (line == NULL || !str_eq(line->text, note->text)) {
        line = line_add(timeline, note, LINE_UNSCHEDULABLE, job);
    }
    line->last_ms = note->at_ms;
    line->pods++;
}

static void note_waits(struct timeline *timeline, const struct sim_note *note,
                       struct timeline_job *job)
{
    struct line *line = line_open(timeline, LINE_WAITS, job->key, note->at_ms);
    if (line != NULL) {
        job->told = line->said_before; /* it was only on its way to this one */
        line_drop(timeline, line);
    }
    if (!str_eq(job->told, note->text) && str_is_set(note->text)) {
        line_add(timeline, note, LINE_WAITS, job)->said_before = job->told;
    }
    job->told = arena_copy_str(timeline->arena, note->text);
}

static void note_admitted(struct timeline *timeline, const struct sim_note *note,
                          struct timeline_job *job)
{
    struct line *line = line_open(timeline, LINE_WAITS, job->key, note->at_ms);
    if (line != NULL) {
        line_drop(timeline, line);
    }
    job->is_suspended = false;
    (void)line_add(timeline, note, LINE_ADMITTED, job);
}

static void note_pod_ended(struct timeline *timeline, const struct sim_note *note,
                           struct timeline_job *job)
{
    if (!str_eq_c(note->text, "Failed")) {
        return;
    }
    struct line *line = line_open(timeline, LINE_POD_FAILED, job->key, note->at_ms);
    if (line == NULL) {
        line = line_add(timeline, note, LINE_POD_FAILED, job);
    }
    line->pods++;
}

static void note_submitted(struct timeline *timeline, const struct sim_note *note,
                           struct timeline_job *job)
{
    size_t slash = str_find_char(note->job, '/');
    struct sim_job_state state;
    if (sim_job_state(timeline->sim, str_take(note->job, slash), str_skip(note->job, slash + 1),
                      &state)) {
        job->wanted = state.wanted;
        job->is_suspended = state.is_suspended;
    }
    timeline->submitted++;
    (void)line_add(timeline, note, LINE_SUBMITTED, job);
}

void timeline_note(void *ctx, const struct sim_note *note)
{
    struct timeline *timeline = ctx;
    if (!str_is_set(note->job)) {
        return; /* of a pod without a Job */
    }
    struct timeline_job *job = job_get(timeline, note->job);
    switch (note->kind) {
    case SIM_JOB_SUBMITTED:
        note_submitted(timeline, note, job);
        break;
    case SIM_JOB_ADMITTED:
        note_admitted(timeline, note, job);
        break;
    case SIM_JOB_SUSPENDED:
        job->is_suspended = true;
        (void)line_add(timeline, note, LINE_SUSPENDED, job);
        break;
    case SIM_JOB_WAITS:
        note_waits(timeline, note, job);
        break;
    case SIM_JOB_WHOLE:
        (void)line_add(timeline, note, LINE_WORKS, job);
        break;
    case SIM_JOB_BROKEN:
        if (!job->is_suspended) {
            (void)line_add(timeline, note, LINE_BROKEN, job);
        }
        break;
    case SIM_JOB_FINISHED:
        timeline->finished++;
        (void)line_add(timeline, note, LINE_FINISHED, job);
        break;
    case SIM_JOB_DELETED:
        (void)line_add(timeline, note, LINE_DELETED, job);
        break;
    case SIM_POD_BOUND:
        note_bound(timeline, note, job);
        break;
    case SIM_POD_UNSCHEDULABLE:
        note_unschedulable(timeline, note, job);
        break;
    case SIM_POD_ENDED:
        note_pod_ended(timeline, note, job);
        break;
    case SIM_EVENT:
        break;
    }
}

/* -- printing ------------------------------------------------------------------------------------
 */

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* "4 of 4 pods bound: worker-1 (gpu-0 gpu-1), worker-2 (gpu-0), worker-3 (gpu-0)" */
static struct str bound_text(struct arena *arena, const struct line *line)
{
    struct text text;
    text_init(&text, arena, 1024);
    text_addf(&text, "%lld of %lld pods bound", (long long)line->bound, (long long)line->wanted);
    if (line->place_count > PLACES_SHOWN) {
        text_addf(&text, " to %u nodes", line->place_count);
        return text_str(&text);
    }
    for (uint32_t i = 0; i < line->place_count; i++) {
        const struct place *place = &line->places[i];
        text_addf(&text, "%s" STR_FMT, i == 0 ? ": " : ", ", STR_ARG(place->node));
        if (!str_is_empty(place->devices)) {
            text_addf(&text, " (" STR_FMT ")", STR_ARG(place->devices));
        } else if (place->pods > 1) {
            text_addf(&text, " (%lld pods)", (long long)place->pods);
        }
    }
    return text_str(&text);
}

/* An Admission's summary is "Reason: sentence"; the code is for machines. */
static struct str sentence_of(struct str summary)
{
    size_t colon = str_find(summary, STR(": "));
    bool has_code = colon < summary.len && str_find_char(str_take(summary, colon), ' ') == colon;
    return has_code ? str_skip(summary, colon + 2) : summary;
}

static struct str line_text(struct arena *arena, const struct line *line)
{
    long long pods = (long long)line->pods;
    switch (line->kind) {
    case LINE_SUBMITTED:
        return arena_format(arena, "submitted: %lld pod%s", (long long)line->wanted,
                            plural(line->wanted));
    case LINE_ADMITTED:
        return str_is_empty(line->text)
                   ? STR("admitted")
                   : arena_format(arena, "admitted on flavor " STR_FMT, STR_ARG(line->text));
    case LINE_WAITS:
        return arena_format(arena, "waits: " STR_FMT, STR_ARG(sentence_of(line->text)));
    case LINE_BOUND:
        return bound_text(arena, line);
    case LINE_UNSCHEDULABLE:
        return arena_format(arena, "%lld pod%s unschedulable: " STR_FMT, pods, plural(pods),
                            STR_ARG(line->text));
    case LINE_WORKS:
        return STR("works: its pods are ready together");
    case LINE_BROKEN:
        return STR("stands still: some of its pods are missing");
    case LINE_SUSPENDED:
        return arena_format(arena, "suspended as a whole: " STR_FMT, STR_ARG(line->text));
    case LINE_POD_FAILED:
        return arena_format(arena, "%lld pod%s failed", pods, plural(pods));
    case LINE_FINISHED:
        return str_eq_c(line->text, "Complete") ? STR("finished") : line->text;
    case LINE_DELETED:
        return STR("deleted");
    }
    return STR("");
}

static enum ink line_ink(const struct line *line)
{
    switch (line->kind) {
    case LINE_WORKS:
        return INK_GREEN;
    case LINE_FINISHED:
        return str_eq_c(line->text, "Complete") ? INK_GREEN : INK_RED;
    case LINE_WAITS:
        return INK_YELLOW;
    case LINE_UNSCHEDULABLE:
    case LINE_BROKEN:
    case LINE_POD_FAILED:
        return INK_RED;
    case LINE_SUBMITTED:
    case LINE_ADMITTED:
    case LINE_BOUND:
    case LINE_SUSPENDED:
    case LINE_DELETED:
        break;
    }
    return INK_PLAIN;
}

/* Whether all Jobs are of one namespace: then it isn't shown. */
static size_t common_prefix(const struct timeline *timeline)
{
    size_t length = 0;
    for (uint32_t i = 0; i < timeline->job_count; i++) {
        struct str key = timeline->jobs[i].key;
        size_t slash = str_find_char(key, '/') + 1;
        if (i > 0 && (slash != length ||
                      !str_eq(str_take(key, slash), str_take(timeline->jobs[0].key, slash)))) {
            return 0;
        }
        length = slash;
    }
    return length;
}

static int name_columns(const struct timeline *timeline, size_t prefix)
{
    size_t width = 8;
    for (uint32_t i = 0; i < timeline->job_count; i++) {
        size_t length = timeline->jobs[i].key.len - prefix;
        width = length > width ? length : width;
    }
    return width > NAME_COLUMNS ? NAME_COLUMNS : (int)width;
}

static void line_print(FILE *out, struct arena *arena, const struct line *line, size_t prefix,
                       int columns)
{
    fputs("  ", out);
    print_ink(out, INK_DIM);
    print_clock(out, line->at_ms);
    print_ink(out, INK_PLAIN);
    print_ink(out, INK_BOLD);
    fputs("  ", out);
    print_name(out, str_skip(line->job, prefix), columns);
    fputs("  ", out);
    print_ink(out, INK_PLAIN);
    print_ink(out, line_ink(line));
    print_wrapped(out, TIME_COLUMNS + columns + 2, line_text(arena, line));
    print_ink(out, INK_PLAIN);
}

void timeline_print(FILE *out, struct timeline *timeline, uint32_t lines_max)
{
    size_t prefix = common_prefix(timeline);
    int columns = name_columns(timeline, prefix);
    uint32_t head = timeline->count;
    uint32_t tail_from = timeline->count;
    if (lines_max > 0 && timeline->count > lines_max) {
        head = lines_max * 2 / 3;
        tail_from = timeline->count - (lines_max - head);
    }
    for (uint32_t i = 0; i < head; i++) {
        line_print(out, timeline->arena, &timeline->lines[i], prefix, columns);
    }
    if (tail_from > head) {
        fprintf(out, "  %8s  (%u lines left out; --all shows them)\n", "...", tail_from - head);
    }
    for (uint32_t i = tail_from; i < timeline->count; i++) {
        line_print(out, timeline->arena, &timeline->lines[i], prefix, columns);
    }
}
