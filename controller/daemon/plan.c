/* plan.c - one pass over manifests or a live cluster: what would be admitted, and why each other
 * gang waits. */
#include "commands.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "hints.h"
#include "plan.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/time_text.h"

#define ASKED_MAX  64
#define EXIT_WAITS 3
#define EXIT_NEVER 4

static const char usage[] =
    "usage: tallyman plan [-f FILE|DIR ...] [--live] [--kubeconfig FILE] [options]\n"
    "\n"
    "Prints what Tallyman would decide now: which gangs are admitted, which are kept, and why\n"
    "each other one waits. Changes nothing, and only reads.\n"
    "\n"
    "With -f alone only what the manifests hold is there, Nodes and devices included. Without -f,\n"
    "and with --live, --kubeconfig or --context, a cluster is read; manifests given beside it "
    "join\n"
    "what is there: what if I submitted this Job now? A Job without a uid counts as created now.\n"
    "\n"
    "  -f, --filename FILE  manifests: a file, a directory, or - for standard input\n"
    "      --live           read the cluster, too\n"
    "      --kubeconfig FILE  default: $KUBECONFIG, the pod's service account, ~/.kube/config\n"
    "      --context NAME   a context of it (default: the current one)\n"
    "  -n, --namespace NAME  of manifests that name none, and of --ask (default: the context's)\n"
    "      --admitted JOB=FLAVOR  the Job counts as admitted there (NAME or NAMESPACE/NAME)\n"
    "      --ask[=JOB]      answer for that Job by the exit status, and print nothing of others;\n"
    "                       without a name for all Jobs of the manifests\n"
    "      --now TIME       the time of the decision, RFC 3339 (default: the clock)\n"
    "  -o, --output FORMAT  table (default), json or yaml\n"
    "\n"
    "Exit status: 0 a plan was printed, and what --ask is about starts now or runs; 3 it waits;\n"
    "4 it never starts as things are; 1 there is no plan; 2 the command line or a manifest is\n"
    "wrong.\n";

struct plan_options {
    struct source_options source;
    const char *asked[ASKED_MAX];
    uint32_t asked_count;
    bool asks_all;
    bool is_live_wanted;
    enum print_format format;
};

static PRINTF_LIKE(1, 2) int say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "tallyman plan: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    return 2;
}

static int take_list_option(int option, struct plan_options *options)
{
    struct source_options *source = &options->source;
    if (option == 'f') {
        if (source->file_count == SOURCE_FILES_MAX) {
            return say("-f %s is one file too many; 64 are taken, a directory counts as one",
                       optarg);
        }
        source->files[source->file_count++] = optarg;
        return 0;
    }
    if (option == 'a') {
        if (source->admitted_count == SOURCE_ADMITTED_MAX) {
            return say("--admitted %s is one too many; 256 are taken", optarg);
        }
        source->admitted[source->admitted_count++] = optarg;
        return 0;
    }
    if (optarg == NULL) {
        options->asks_all = true;
        return 0;
    }
    if (options->asked_count == ASKED_MAX) {
        return say("--ask=%s is one too many; 64 are taken", optarg);
    }
    options->asked[options->asked_count++] = optarg;
    return 0;
}

static int take_option(int option, struct plan_options *options)
{
    switch (option) {
    case 'f':
    case 'a':
    case 'q':
        return take_list_option(option, options);
    case 'l':
        options->is_live_wanted = true;
        return 0;
    case 'k':
        options->source.session.kubeconfig = str_from_c(optarg);
        options->is_live_wanted = true;
        return 0;
    case 'c':
        options->source.session.context = str_from_c(optarg);
        options->is_live_wanted = true;
        return 0;
    case 'n':
        options->source.namespace_name = str_from_c(optarg);
        return 0;
    case 't':
        return time_parse_rfc3339(str_from_c(optarg), &options->source.now_ms)
                   ? 0
                   : say("--now %s is not a time; write 2026-11-29T12:00:00Z", optarg);
    case 'o':
        return print_format_parse(optarg, &options->format)
                   ? 0
                   : say("-o %s is unknown; use table, json or yaml", optarg);
    case 'h':
        fputs(usage, stdout);
        return -1;
    default:
        fputs("see `tallyman plan --help`\n", stderr);
        return 2;
    }
}

static int parse_options(int argc, char **argv, struct plan_options *options)
{
    static const struct option longs[] = {{"filename", required_argument, NULL, 'f'},
                                          {"live", no_argument, NULL, 'l'},
                                          {"kubeconfig", required_argument, NULL, 'k'},
                                          {"context", required_argument, NULL, 'c'},
                                          {"namespace", required_argument, NULL, 'n'},
                                          {"admitted", required_argument, NULL, 'a'},
                                          {"ask", optional_argument, NULL, 'q'},
                                          {"now", required_argument, NULL, 't'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    static char name[] = "tallyman plan"; /* in front of what getopt says */
    argv[0] = name;
    optind = 1;
    int option;
    while ((option = getopt_long(argc, argv, "f:n:o:h", longs, NULL)) != -1) {
        int status = take_option(option, options);
        if (status != 0) {
            return status;
        }
    }
    if (optind < argc) {
        return say("\"%s\" isn't an option; files are given with -f", argv[optind]);
    }
    options->source.is_live = options->is_live_wanted || options->source.file_count == 0;
    if (options->asks_all && options->source.file_count == 0) {
        return say("--ask asks about the Jobs of the manifests, and none are given; name the "
                   "Job: --ask=NAMESPACE/NAME");
    }
    return 0;
}

/* -- the question ----------------------------------------------------------------------------- */

static bool is_named(const struct plan_options *options, const struct source *source,
                     const struct decided_gang *gang, const char *asked)
{
    struct str name = str_from_c(asked);
    size_t slash = str_find_char(name, '/');
    if (slash < name.len) {
        return str_eq(gang->namespace_name, str_take(name, slash)) &&
               str_eq(gang->name, str_skip(name, slash + 1));
    }
    /* A bare name is of any namespace of the manifests, as there is no other way to tell. */
    bool is_anywhere = !options->source.is_live && !str_is_set(options->source.namespace_name);
    return str_eq(gang->name, name) &&
           (is_anywhere || str_eq(gang->namespace_name, source->live.namespace_name));
}

static bool is_given(const struct source *source, struct arena *arena,
                     const struct decided_gang *gang)
{
    struct str key = arena_format(arena, STR_FMT "/" STR_FMT, STR_ARG(gang->namespace_name),
                                  STR_ARG(gang->name));
    for (uint32_t i = 0; i < source->given.count; i++) {
        if (str_eq(source->given.items[i], key)) {
            return true;
        }
    }
    return false;
}

/* Whether that decision can turn into a start without anybody changing the Job or the queue. */
static bool is_never(const struct decided_gang *gang)
{
    return gang->decision == DECISION_INVALID ||
           (gang->decision == DECISION_WAIT && reason_info(gang->reason)->is_passed_over &&
            gang->reason != REASON_BACKOFF && gang->reason != REASON_HELD);
}

static int status_of(const struct decided_gang *gang)
{
    if (gang->decision == DECISION_ADMIT || gang->decision == DECISION_KEEP) {
        return 0;
    }
    return is_never(gang) ? EXIT_NEVER : EXIT_WAITS;
}

/* Whether the entry is asked about; notes which of the names it has. */
static bool is_asked(const struct plan_options *options, const struct source *source,
                     struct arena *arena, const struct decided_gang *gang, bool *is_found)
{
    bool is_wanted = options->asks_all && is_given(source, arena, gang);
    for (uint32_t i = 0; i < options->asked_count; i++) {
        bool is_this = is_named(options, source, gang, options->asked[i]);
        is_found[i] = is_found[i] || is_this;
        is_wanted = is_wanted || is_this;
    }
    return is_wanted;
}

/* Keeps the entries that are asked about; gives the worst of their answers, 2 if one is missing. */
static int ask(const struct plan_options *options, const struct source *source, struct arena *arena,
               struct decided_list *list)
{
    if (options->asked_count == 0 && !options->asks_all) {
        return 0;
    }
    bool is_found[ASKED_MAX] = {false};
    uint32_t kept = 0;
    int status = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (is_asked(options, source, arena, &list->items[i], is_found)) {
            int own = status_of(&list->items[i]);
            status = own > status ? own : status;
            list->items[kept++] = list->items[i];
        }
    }
    list->count = kept;
    for (uint32_t i = 0; i < options->asked_count; i++) {
        if (!is_found[i]) {
            return say("--ask=%s: no such Job names a queue; write NAMESPACE/NAME, and give it "
                       "label tallyman.dev/queue",
                       options->asked[i]);
        }
    }
    if (kept == 0) {
        return say("--ask: no Job of the manifests names a queue; give it label "
                   "tallyman.dev/queue");
    }
    return status;
}

static int plan_decide(const struct plan_options *options, struct source *source,
                       struct arena *arena)
{
    struct outlook outlook;
    struct err err;
    int status;
    if (rc_failed(outlook_open(&outlook, source, options->source.now_ms, &err))) {
        fprintf(stderr, "tallyman plan: %s\n", err.text);
        status = 2;
    } else {
        struct decided_list list = core_decisions(outlook.core, arena);
        hints_print("plan", &source->manifests, &list, list.count == 0);
        status = ask(options, source, arena, &list);
        if (status != 2) {
            source_print_gaps(source, "plan");
            plan_print(source, arena, &list, options->format);
        }
    }
    outlook_close(&outlook);
    return status;
}

static int plan_run(const struct plan_options *options)
{
    struct source source;
    struct err err;
    struct rc rc = source_read(&options->source, &source, &err);
    int status;
    if (rc_failed(rc)) {
        fprintf(stderr, "tallyman plan: %s\n", err.text);
        bool is_input = rc.code == RC_INVALID || rc.code == RC_LIMIT;
        status = is_input || !options->source.is_live ? 2 : 1;
    } else {
        struct arena arena;
        arena_init(&arena);
        status = plan_decide(options, &source, &arena);
        arena_deinit(&arena);
    }
    source_free(&source);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "tallyman plan: the plan could not be written: %s\n", strerror(errno));
        status = 1;
    }
    return status;
}

int command_plan(int argc, char **argv)
{
    struct plan_options options = {.source = {.now_ms = (int64_t)time(NULL) * 1000},
                                   .format = PRINT_TABLE};
    int status = parse_options(argc, argv, &options);
    return status < 0 ? 0 : status != 0 ? status : plan_run(&options);
}
