/* explain.c - why one Job waits and what can be done, or how far it is.
 *
 * Live it needs no more than `get admissions` in the Job's namespace: the controller has put all
 * evidence there. The Job's pods are listed beside it where the reader may. */
#include "explain.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "hints.h"
#include "input.h"
#include "tallyman/base/time_text.h"
#include "tallyman/kube/path.h"

#define PATH_MAX_BYTES 2048

static const char usage[] =
    "usage: tallyman explain JOB [-n NAMESPACE] [--kubeconfig FILE] [--context NAME]\n"
    "       tallyman explain JOB -f FILE|DIR [-f ...] [--admitted JOB=FLAVOR] [--now TIME]\n"
    "\n"
    "Says why a Job waits, what would start it, who is in the way, and what it waited for before;\n"
    "after its admission how far it is. Live it reads the Job's Admission (and its pods, where "
    "you\n"
    "may), so the rights of a namespace's viewer are enough. With -f it decides over the "
    "manifests,\n"
    "as `tallyman plan` does.\n"
    "\n"
    "  -n, --namespace NAME   of the Job (default: the context's)\n"
    "      --kubeconfig FILE  default: $KUBECONFIG, the pod's service account, ~/.kube/config\n"
    "      --context NAME     a context of it (default: the current one)\n"
    "  -f, --filename FILE    manifests: a file, a directory, or - for standard input\n"
    "      --admitted JOB=FLAVOR  with -f: the Job counts as admitted there, as for `tallyman "
    "plan`\n"
    "      --now TIME         the time that is counted from, RFC 3339 (default: the clock)\n"
    "  -o, --output FORMAT    text (default), json or yaml\n"
    "\n"
    "Exit status: 0 it was explained, 1 it can't be (no such Job, no right to read it), 2 the\n"
    "command line or a manifest is wrong.\n";

struct explain_options {
    struct source_options source;
    struct str name;
    enum print_format format;
};

static PRINTF_LIKE(2, 3) int say(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "tallyman explain: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    return status;
}

static int take_option(int option, struct explain_options *options)
{
    struct source_options *source = &options->source;
    switch (option) {
    case 'f':
        if (source->file_count == SOURCE_FILES_MAX) {
            return say(2, "-f %s is one file too many; %d are taken, a directory counts as one",
                       optarg, SOURCE_FILES_MAX);
        }
        source->files[source->file_count++] = optarg;
        return 0;
    case 'a':
        if (source->admitted_count == SOURCE_ADMITTED_MAX) {
            return say(2, "--admitted %s is one too many; %d are taken", optarg,
                       SOURCE_ADMITTED_MAX);
        }
        source->admitted[source->admitted_count++] = optarg;
        return 0;
    case 'k':
        source->session.kubeconfig = str_from_c(optarg);
        return 0;
    case 'c':
        source->session.context = str_from_c(optarg);
        return 0;
    case 'n':
        source->namespace_name = str_from_c(optarg);
        return 0;
    case 't':
        return time_parse_rfc3339(str_from_c(optarg), &source->now_ms)
                   ? 0
                   : say(2, "--now %s is not a time; write 2026-11-29T12:00:00Z", optarg);
    case 'o':
        return print_format_parse(optarg, &options->format)
                   ? 0
                   : say(2, "-o %s is unknown; use text, json or yaml", optarg);
    case 'h':
        fputs(usage, stdout);
        return -1;
    default:
        fputs("see `tallyman explain --help`\n", stderr);
        return 2;
    }
}

/* "train", "job/train", "jobs/train", "job.batch/train", or "NAMESPACE/train". */
static int take_name(struct explain_options *options, const char *text)
{
    static const char *const kinds[] = {"job", "jobs", "job.batch", "jobs.batch", "Job"};
    struct str name = str_from_c(text);
    size_t slash = str_find_char(name, '/');
    if (slash < name.len) {
        struct str first = str_take(name, slash);
        bool is_kind = false;
        for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
            is_kind = is_kind || str_eq_c(first, kinds[i]);
        }
        struct str given = options->source.namespace_name;
        if (!is_kind && str_is_set(given) && !str_eq(given, first)) {
            return say(2, "\"%s\" is in one namespace and -n " STR_FMT " in another", text,
                       STR_ARG(given));
        }
        if (!is_kind) {
            options->source.namespace_name = first;
        }
        name = str_skip(name, slash + 1);
    }
    options->name = name;
    if (str_is_set(options->source.namespace_name) &&
        !input_is_namespace(options->source.namespace_name)) {
        return say(2, "\"" STR_FMT "\" is no namespace's name",
                   STR_ARG(options->source.namespace_name));
    }
    return str_is_empty(name) || str_find_char(name, '/') < name.len
               ? say(2, "\"%s\" is no name of a Job", text)
               : 0;
}

static int parse_options(int argc, char **argv, struct explain_options *options)
{
    static const struct option longs[] = {{"filename", required_argument, NULL, 'f'},
                                          {"kubeconfig", required_argument, NULL, 'k'},
                                          {"context", required_argument, NULL, 'c'},
                                          {"namespace", required_argument, NULL, 'n'},
                                          {"now", required_argument, NULL, 't'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"admitted", required_argument, NULL, 'a'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    static char name[] = "tallyman explain"; /* in front of what getopt says */
    argv[0] = name;
    optind = 1;
    int option;
    while ((option = getopt_long(argc, argv, "f:n:o:h", longs, NULL)) != -1) {
        int status = take_option(option, options);
        if (status != 0) {
            return status;
        }
    }
    if (optind == argc) {
        return say(2, "which Job? Give its name: tallyman explain JOB -n NAMESPACE");
    }
    if (options->source.admitted_count > 0 && options->source.file_count == 0) {
        return say(2, "--admitted is about Jobs of manifests; give them with -f");
    }
    int status = take_name(options, argv[optind]);
    if (status == 0 && optind + 1 < argc) {
        return say(2, "one Job at a time; \"%s\" is a second one", argv[optind + 1]);
    }
    return status;
}

static void print(struct arena *arena, const struct explain_options *options,
                  const struct explained *explained)
{
    if (options->format == PRINT_TABLE) {
        explain_print_text(arena, explained);
    } else {
        explain_print_data(explained, options->format);
    }
}

/* -- live ------------------------------------------------------------------------------------- */

static struct str object_path(struct arena *arena, enum object_kind kind, struct str space,
                              struct str name)
{
    struct text path;
    text_init(&path, arena, PATH_MAX_BYTES);
    path_add_object(&path, kind_info(kind), space, name, NULL);
    return text_str(&path);
}

/* There is no Admission. The Job itself, if it may be read, tells why. */
static int say_no_admission(struct session *session, struct arena *arena, struct str space,
                            struct str name)
{
    struct session_answer answer;
    session_get(session, object_path(arena, KIND_JOB, space, name), STR_NONE, &answer);
    int status;
    if (answer.outcome == KUBE_NOT_FOUND) {
        status = say(1, "there is no Job " STR_FMT " in namespace " STR_FMT, STR_ARG(name),
                     STR_ARG(space));
    } else if (answer.outcome == KUBE_DONE) {
        void *value = NULL;
        struct err err;
        struct rc rc = decode_json(arena, kind_info(KIND_JOB)->schema, answer.body, &value, &err);
        bool has_queue = !rc_failed(rc) &&
                         !str_is_empty(string_map_get(&((const struct object_meta *)value)->labels,
                                                      "tallyman.dev/queue"));
        status = has_queue ? say(1,
                                 "Job " STR_FMT "/" STR_FMT " names a queue, but there is no "
                                 "Admission of it yet; the controller hasn't seen it, or isn't "
                                 "running",
                                 STR_ARG(space), STR_ARG(name))
                           : say(1,
                                 "Job " STR_FMT "/" STR_FMT " names no queue, so Tallyman leaves "
                                 "it alone; queue it with label tallyman.dev/queue",
                                 STR_ARG(space), STR_ARG(name));
    } else {
        status = say(1,
                     "there is no Admission " STR_FMT " in namespace " STR_FMT
                     ": no such Job, or it names no queue (label tallyman.dev/queue)",
                     STR_ARG(name), STR_ARG(space));
    }
    session_answer_drop(&answer);
    return status;
}

static int explain_live(struct session *session, struct arena *arena,
                        const struct explain_options *options)
{
    struct str space = str_is_empty(options->source.namespace_name)
                           ? session_namespace(session)
                           : options->source.namespace_name;
    struct session_answer answer;
    session_get(session, object_path(arena, KIND_ADMISSION, space, options->name), STR_NONE,
                &answer);
    int status = 0;
    void *value = NULL;
    struct err err;
    if (answer.outcome == KUBE_NOT_FOUND) {
        status = say_no_admission(session, arena, space, options->name);
    } else if (answer.outcome == KUBE_FORBIDDEN) {
        status = say(1,
                     STR_FMT "; the role `view` of the namespace is enough, where ClusterRole "
                             "tallyman-view is installed",
                     STR_ARG(answer.message));
    } else if (answer.outcome != KUBE_DONE) {
        status = say(1, STR_FMT, STR_ARG(answer.message));
    } else if (rc_failed(decode_json(arena, kind_info(KIND_ADMISSION)->schema, answer.body, &value,
                                     &err))) {
        status = say(1, "the Admission can't be understood: %s", err.text);
    } else {
        struct explained explained = {.admission = value, .now_ms = options->source.now_ms};
        explain_read_pods(session, arena, &explained);
        print(arena, options, &explained);
    }
    session_answer_drop(&answer);
    return status;
}

/* -- from manifests --------------------------------------------------------------------------- */

static const struct decided_gang *find_gang(const struct explain_options *options,
                                            const struct decided_list *list, int *ret_status)
{
    const struct decided_gang *found = NULL;
    struct str space = options->source.namespace_name;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct decided_gang *gang = &list->items[i];
        bool is_it = str_eq(gang->name, options->name) &&
                     (str_is_empty(space) || str_eq(gang->namespace_name, space));
        if (is_it && found != NULL) {
            *ret_status = say(2,
                              "there are Jobs " STR_FMT " in namespaces " STR_FMT " and " STR_FMT
                              "; choose with -n",
                              STR_ARG(options->name), STR_ARG(found->namespace_name),
                              STR_ARG(gang->namespace_name));
            return NULL;
        }
        found = is_it ? gang : found;
    }
    if (found == NULL) {
        bool is_within = str_is_set(options->source.namespace_name);
        *ret_status = say(1,
                          "no Job " STR_FMT "%s" STR_FMT " of the manifests waits or runs in a "
                          "queue; a Job is queued by label tallyman.dev/queue",
                          STR_ARG(options->name), is_within ? " in namespace " : "",
                          STR_ARG(options->source.namespace_name));
    }
    return found;
}

static int explain_manifests(struct arena *arena, const struct explain_options *options)
{
    struct source source;
    struct outlook outlook = {.core = NULL};
    struct err err;
    int status = 0;
    bool is_read = !rc_failed(source_read(&options->source, &source, &err)) &&
                   !rc_failed(outlook_open(&outlook, &source, options->source.now_ms, &err));
    if (!is_read) {
        status = say(2, "%s", err.text);
    } else {
        struct decided_list list = core_decisions(outlook.core, arena);
        hints_print("explain", &source.manifests, &list, false);
        const struct decided_gang *gang = find_gang(options, &list, &status);
        struct admission admission;
        if (gang != NULL && core_admission_now(outlook.core, gang->uid, arena, &admission)) {
            struct explained explained = {.admission = &admission,
                                          .decision = gang->decision,
                                          .victims = gang->victims,
                                          .now_ms = options->source.now_ms};
            print(arena, options, &explained);
        } else if (gang != NULL) {
            status = say(1, "nothing is known of Job " STR_FMT, STR_ARG(options->name));
        }
    }
    outlook_close(&outlook);
    source_free(&source);
    return status;
}

int command_explain(int argc, char **argv)
{
    struct explain_options options = {.source = {.now_ms = (int64_t)time(NULL) * 1000},
                                      .format = PRINT_TABLE};
    int status = parse_options(argc, argv, &options);
    if (status != 0) {
        return status < 0 ? 0 : status;
    }
    struct arena arena;
    arena_init(&arena);
    struct session *session = NULL;
    struct err err;
    if (options.source.file_count > 0) {
        status = explain_manifests(&arena, &options);
    } else if (rc_failed(session_open(&options.source.session, &session, &err))) {
        status = say(1, "%s", err.text);
    } else {
        status = explain_live(session, &arena, &options);
    }
    session_close(session);
    arena_deinit(&arena);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        status = say(1, "the answer could not be written: %s", strerror(errno));
    }
    return status;
}
