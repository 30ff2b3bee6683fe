/* replay.c - plays a journal's events again and compares the decisions, byte for byte. */
#include "replay.h"

#include <getopt.h>
#include <string.h>

#include "commands.h"
#include "plan.h"
#include "terminal.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/time_text.h"

static const char usage[] =
    "usage: tallyman replay [options] JOURNAL\n"
    "\n"
    "Feeds the events of a journal to the core again and compares what it decides with what was\n"
    "decided then. JOURNAL is the directory of a store (tallyman run --store DIR; the controller\n"
    "may go on running) or a file (tallyman run --journal FILE).\n"
    "\n"
    "      --until TIME|N     stops at that time (RFC 3339) or behind that line, and prints where\n"
    "                         every gang stood\n"
    "      --trace            prints for each event who was looked at, in which order, and what\n"
    "                         came of it\n"
    "      --job NAMESPACE/NAME  the trace of that Job alone\n"
    "\n"
    "Exit status: 0 the same decisions, 1 another decision, 2 the journal can't be read or\n"
    "repeated, or has nothing of the Job of --job. What is left out, because its beginning isn't "
    "in the journal any more, is said.\n";

enum { GOES_ON = -1 };

struct replay {
    struct core *core; /* NULL: nothing can be repeated here */
    bool traces;
    struct replay_trace trace;
    int64_t until_ms;      /* INT64_MAX: to the end */
    uint64_t until_number; /* UINT64_MAX: to the end */
    struct arena line_arena;
    struct arena effects_arena;
    struct arena text_arena;
    struct arena note_arena;
    struct str expected; /* what the last event decided now, and the journal has still to say */
    uint64_t expected_of;
    uint64_t line;
    uint64_t events;
    uint64_t decisions;
    uint64_t skipped;  /* lines that couldn't be repeated */
    uint64_t cut_line; /* that couldn't be read; 0: none. Only a start may follow it */
    struct err cut_why;
    int64_t now_ms;       /* of the last event */
    bool is_told_cut_off; /* that the beginning is missing */
    bool asks_state;      /* `until` was given */
};

static int mismatch(const struct replay *replay, struct str now, struct str then)
{
    printf("line %llu: another decision\n  then: ", (unsigned long long)replay->line);
    terminal_print_json(stdout, then, false);
    printf("\n  now:  ");
    terminal_print_json(stdout, now, false);
    printf("\n");
    return 1;
}

static void forget(struct replay *replay)
{
    core_free(replay->core);
    replay->core = NULL;
    replay->expected = STR_NONE;
}

static void note(const struct replay *replay, const char *what)
{
    fprintf(stderr, "tallyman replay: line %llu: %s\n", (unsigned long long)replay->line, what);
}

/* What was decided is written behind its event, so the last one's may be missing. */
static void end_of_part(struct replay *replay)
{
    if (replay->expected.len > 0) {
        fprintf(stderr,
                "tallyman replay: what was decided at line %llu isn't in the journal: the "
                "controller was stopped before it was written, or is about to write it\n",
                (unsigned long long)replay->expected_of);
    }
    replay->expected = STR_NONE;
}

static void take_start(struct replay *replay, const struct journal_line *line)
{
    end_of_part(replay);
    forget(replay);
    replay->cut_line = 0;
    struct core_options options = {.traces = replay->traces,
                                   .admissions_per_step = ADMISSIONS_PER_STEP,
                                   .selector_cost_per_step = SELECTOR_COST_PER_STEP};
    replay->core = core_new(&options);
    replay->now_ms = line->started_ms;
    if (replay->traces) {
        printf("#%llu  " STR_FMT "  a controller of version " STR_FMT " starts\n",
               (unsigned long long)replay->line,
               STR_ARG(replay_time(&replay->note_arena, line->started_ms)), STR_ARG(line->version));
    }
    if (!str_eq_c(line->build, tallyman_build())) {
        fprintf(stderr,
                "tallyman replay: line %llu: recorded by another build (" STR_FMT " " STR_FMT
                "; this is %s %s), which may have decided otherwise\n",
                (unsigned long long)replay->line, STR_ARG(line->version), STR_ARG(line->build),
                tallyman_version(), tallyman_build());
    }
}

static void take_lost(struct replay *replay, uint64_t lines)
{
    end_of_part(replay);
    if (replay->core != NULL) {
        fprintf(stderr,
                "tallyman replay: line %llu: %llu lines in front of it were lost (the disk was "
                "full or too slow); nothing can be repeated until a controller starts\n",
                (unsigned long long)replay->line, (unsigned long long)lines);
    }
    replay->is_told_cut_off = true;
    forget(replay);
}

static void skip(struct replay *replay)
{
    if (!replay->is_told_cut_off && replay->skipped == 0) {
        note(replay, "the journal's beginning is cut off (the oldest lines are given up for "
                     "room); nothing can be repeated until a controller starts");
    }
    replay->is_told_cut_off = true;
    replay->skipped++;
}

static int take_event(struct replay *replay, const struct journal_line *line)
{
    if (line->event.now_ms > replay->until_ms) {
        return 0;
    }
    if (replay->expected.len > 0) {
        return mismatch(replay, replay->expected, STR("(none)"));
    }
    replay->now_ms = line->event.now_ms;
    if (replay->core == NULL) {
        skip(replay);
        return GOES_ON;
    }
    arena_reset(&replay->effects_arena);
    arena_reset(&replay->text_arena);
    struct effects effects = {.arena = &replay->effects_arena};
    struct err err;
    (void)!rc_failed(core_step(replay->core, &line->event, &effects, &err));
    /* The driver asks for the content of what it sends; the core remembers that it did. */
    replay->expected = journal_decision_text(&replay->text_arena, &effects);
    replay->expected_of = replay->line;
    replay->events++;
    if (replay->traces) {
        replay_trace_event(&replay->trace, replay->line, &line->event,
                           core_last_looks(replay->core), replay->expected);
    }
    return GOES_ON;
}

static int take_decision(struct replay *replay, struct str text)
{
    if (replay->core == NULL) {
        skip(replay);
        if (replay->traces) {
            replay_trace_recorded(&replay->trace, replay->line, text);
        }
        return GOES_ON;
    }
    replay->decisions++;
    if (!str_eq(text, replay->expected)) {
        return mismatch(replay, replay->expected, text);
    }
    replay->expected = STR_NONE;
    return GOES_ON;
}

static int tell_unreadable(const struct replay *replay)
{
    fprintf(stderr, "tallyman replay: line %llu isn't whole, or none of a journal: %s\n",
            (unsigned long long)replay->cut_line, replay->cut_why.text);
    return 2;
}

/* A controller that is killed may leave half a line; the next one begins behind it. */
static int take_unreadable(struct replay *replay)
{
    end_of_part(replay);
    forget(replay);
    replay->cut_line = replay->line;
    return GOES_ON;
}

static int take_line(struct replay *replay, const struct replay_line *read)
{
    if (read->number > replay->line + 1 && replay->line > 0) {
        uint64_t lost = read->number - replay->line - 1;
        replay->line = read->number;
        take_lost(replay, lost);
    }
    replay->line = read->number;
    if (replay->line > replay->until_number) {
        return 0;
    }
    arena_reset(&replay->line_arena);
    struct journal_line line;
    struct err err;
    bool is_read = !rc_failed(journal_parse_line(&replay->line_arena, read->text, &line, &err));
    if (replay->cut_line > 0 && (!is_read || line.kind != JOURNAL_START)) {
        return tell_unreadable(replay);
    }
    if (!is_read) {
        replay->cut_why = err;
        return take_unreadable(replay);
    }
    switch (line.kind) {
    case JOURNAL_START:
        if (replay->cut_line > 0) {
            note(replay, "the line before it isn't whole: the controller was stopped hard");
        }
        take_start(replay, &line);
        return GOES_ON;
    case JOURNAL_LOST:
        take_lost(replay, (uint64_t)line.lost_lines);
        return GOES_ON;
    case JOURNAL_EVENT:
        return take_event(replay, &line);
    case JOURNAL_DECISION:
        return take_decision(replay, line.decision_text);
    }
    return GOES_ON;
}

static int take_lines(struct replay *replay, struct replay_source *source)
{
    for (;;) {
        struct replay_line line;
        struct err err;
        struct rc rc = replay_source_next(source, &line, &err);
        if (rc.code == RC_NOT_FOUND) {
            if (replay->cut_line > 0) {
                return tell_unreadable(replay);
            }
            end_of_part(replay);
            return 0;
        }
        if (rc_failed(rc)) {
            fprintf(stderr, "tallyman replay: %s\n", err.text);
            return 2;
        }
        int status = take_line(replay, &line);
        if (status != GOES_ON) {
            return status;
        }
    }
}

static void print_standing(struct replay *replay)
{
    printf("Where every gang stood at " STR_FMT ":\n",
           STR_ARG(replay_time(&replay->note_arena, replay->now_ms)));
    struct source none = {.live = {.gap_count = 0}};
    arena_reset(&replay->text_arena);
    struct decided_list list = core_decisions(replay->core, &replay->text_arena);
    plan_print(&none, &replay->text_arena, &list, PRINT_TABLE);
}

static int tell_end(struct replay *replay, const char *path)
{
    if (replay->events == 0) {
        fprintf(stderr,
                replay->skipped > 0
                    ? "tallyman replay: nothing in %s can be repeated: no controller starts in it. "
                      "--trace shows what was decided\n"
                    : "tallyman replay: %s has no events; it is not a journal of `run --store` or "
                      "`run --journal`\n",
                path);
        return 2;
    }
    if (str_is_set(replay->trace.job) && !replay->trace.has_shown) {
        fprintf(stderr, "tallyman replay: %s has nothing of Job " STR_FMT "\n", path,
                STR_ARG(terminal_safe(&replay->note_arena, replay->trace.job)));
        return 2;
    }
    if (replay->asks_state && replay->core != NULL) {
        print_standing(replay);
    }
    printf("%llu events, %llu with decisions: all as they were\n",
           (unsigned long long)replay->events, (unsigned long long)replay->decisions);
    return 0;
}

static int replay_run(struct replay *replay, const char *path)
{
    struct replay_source source;
    struct err err;
    int status = 2;
    if (rc_failed(replay_source_open(&source, path, &err))) {
        fprintf(stderr, "tallyman replay: %s\n", err.text);
    } else {
        status = take_lines(replay, &source);
        status = status == 0 ? tell_end(replay, path) : status;
    }
    replay_source_close(&source);
    return status;
}

/* -- the command line -------------------------------------------------------------------------- */

static int take_until(struct replay *replay, struct str text)
{
    int64_t number;
    if (str_to_i64(text, &number) && number > 0) {
        replay->until_number = (uint64_t)number;
        return 0;
    }
    if (time_parse_rfc3339(text, &replay->until_ms)) {
        return 0;
    }
    fprintf(stderr,
            "tallyman replay: --until " STR_FMT " is neither a time like 2026-11-29T03:00:00Z nor "
            "the number of a line\n",
            STR_ARG(text));
    return 2;
}

static int take_job(struct replay *replay, struct str text)
{
    size_t slash = str_find_char(text, '/');
    if (slash == 0 || slash + 1 >= text.len) {
        fprintf(stderr, "tallyman replay: --job " STR_FMT " isn't NAMESPACE/NAME\n", STR_ARG(text));
        return 2;
    }
    replay->trace.job = text;
    replay->traces = true;
    return 0;
}

static int take_option(struct replay *replay, int option)
{
    switch (option) {
    case 'u':
        replay->asks_state = true;
        return take_until(replay, str_from_c(optarg));
    case 't':
        replay->traces = true;
        return 0;
    case 'j':
        return take_job(replay, str_from_c(optarg));
    default:
        fputs(usage, stderr);
        return 2;
    }
}

int command_replay(int argc, char **argv)
{
    static const struct option longs[] = {{"until", required_argument, NULL, 'u'},
                                          {"trace", no_argument, NULL, 't'},
                                          {"job", required_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct replay replay = {.until_ms = INT64_MAX, .until_number = UINT64_MAX};
    int option;
    int status = 0;
    optind = 1;
    while (status == 0 && (option = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return 0;
        }
        status = take_option(&replay, option);
    }
    if (status == 0 && optind + 1 != argc) {
        fputs(usage, stderr);
        status = 2;
    }
    if (status != 0) {
        return status;
    }
    arena_init(&replay.line_arena);
    arena_init(&replay.effects_arena);
    arena_init(&replay.text_arena);
    arena_init(&replay.note_arena);
    arena_init(&replay.trace.arena);
    status = replay_run(&replay, argv[optind]);
    arena_deinit(&replay.line_arena);
    arena_deinit(&replay.effects_arena);
    arena_deinit(&replay.text_arena);
    arena_deinit(&replay.note_arena);
    arena_deinit(&replay.trace.arena);
    core_free(replay.core);
    return status;
}
