/* replay.c - plays a journal's events again and compares the decisions, byte for byte. */
#include "commands.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tallyman/core/core.h"
#include "tallyman/driver/journal.h"

static const char usage[] =
    "usage: tallyman replay FILE\n"
    "\n"
    "Feeds the events of a journal (tallyman run --journal FILE) to the core again and compares\n"
    "what it decides with what was decided then.\n"
    "\n"
    "Exit status: 0 the same decisions, 1 another decision, 2 the journal can't be read.\n";

struct replay {
    struct core *core;
    struct arena line_arena;
    struct arena effects_arena;
    struct arena text_arena;
    struct str expected; /* what the last event decided now, and the journal has still to say */
    uint64_t events;
    uint64_t decisions;
    uint64_t line;
};

static int mismatch(const struct replay *replay, struct str now, struct str then)
{
    printf("line %llu: another decision\n  then: " STR_FMT "\n  now:  " STR_FMT "\n",
           (unsigned long long)replay->line, STR_ARG(then), STR_ARG(now));
    return 1;
}

static int replay_event(struct replay *replay, const struct journal_line *line)
{
    if (replay->expected.len > 0) {
        return mismatch(replay, replay->expected, STR("(none)"));
    }
    arena_reset(&replay->effects_arena);
    arena_reset(&replay->text_arena);
    struct effects effects = {.arena = &replay->effects_arena};
    struct err err;
    (void)!rc_failed(core_step(replay->core, &line->event, &effects, &err));
    /* The driver asks for the content of what it sends; the core remembers that it did. */
    replay->expected = journal_decision_text(&replay->text_arena, &effects);
    replay->events++;
    return 0;
}

static int replay_line(struct replay *replay, struct str text)
{
    arena_reset(&replay->line_arena);
    struct journal_line line;
    struct err err;
    if (rc_failed(journal_parse_line(&replay->line_arena, text, &line, &err))) {
        fprintf(stderr, "tallyman replay: line %llu: %s\n", (unsigned long long)replay->line,
                err.text);
        return 2;
    }
    if (line.kind == JOURNAL_EVENT) {
        return replay_event(replay, &line);
    }
    replay->decisions++;
    if (!str_eq(line.decision_text, replay->expected)) {
        return mismatch(replay, replay->expected, line.decision_text);
    }
    replay->expected = STR_NONE;
    return 0;
}

static int replay_file(struct replay *replay, FILE *file)
{
    char *text = NULL;
    size_t capacity = 0;
    int status = 0;
    ssize_t length;
    while (status == 0 && (length = getline(&text, &capacity, file)) > 0) {
        replay->line++;
        while (length > 0 && text[length - 1] == '\n') {
            length--;
        }
        status = replay_line(replay, (struct str){text, (size_t)length});
    }
    if (status == 0 && replay->expected.len > 0) {
        status = mismatch(replay, replay->expected, STR("(the journal ends)"));
    }
    free(text);
    return status;
}

int command_replay(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc != 2) {
        fputs(usage, stderr);
        return 2;
    }
    FILE *file = fopen(argv[1], "r");
    if (file == NULL) {
        fprintf(stderr, "tallyman replay: %s can't be opened: %s\n", argv[1], strerror(errno));
        return 2;
    }
    struct core_options options = {.stuck_node_ms = 0};
    struct replay replay = {.core = core_new(&options)};
    arena_init(&replay.line_arena);
    arena_init(&replay.effects_arena);
    arena_init(&replay.text_arena);
    int status = replay_file(&replay, file);
    fclose(file);
    if (status == 0 && replay.events == 0) {
        fprintf(stderr,
                "tallyman replay: %s has no events; it is not a journal of `run --journal`\n",
                argv[1]);
        status = 2;
    }
    if (status == 0) {
        printf("%llu events, %llu with decisions: all as they were\n",
               (unsigned long long)replay.events, (unsigned long long)replay.decisions);
    }
    arena_deinit(&replay.line_arena);
    arena_deinit(&replay.effects_arena);
    arena_deinit(&replay.text_arena);
    core_free(replay.core);
    return status;
}
