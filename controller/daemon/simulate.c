/* simulate.c - the command line of `simulate`: manifests, a load or a trace in virtual time. */
#include "commands.h"

#include <getopt.h>
#include <string.h>

#include "simulate.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/time_text.h"

#define UNTIL_DEFAULT_MS (2 * 3600 * INT64_C(1000))
#define UNTIL_MAX_MS     (INT64_C(1000) * 3600 * 24 * 365 * 100)

static const char usage[] =
    "usage: tallyman simulate FILE|DIR... [--until DURATION] [--plain | --with-tallyman]\n"
    "       tallyman simulate --load FILE [FILE|DIR...]\n"
    "       tallyman simulate --swf FILE[.gz] | --csv FILE[.gz] [FILE|DIR...]\n"
    "\n"
    "Plays jobs in virtual time on a virtual cluster. No cluster is needed, and nothing is "
    "changed\n"
    "anywhere. The same input always gives the same run.\n"
    "\n"
    "Manifests are played pod by pod, first as plain Kubernetes places them, then with Tallyman.\n"
    "They bring the cluster too: Nodes, and ResourceSlices for their devices. Try\n"
    "  tallyman simulate examples/deadlock\n"
    "A load (docs/reference/load.md) or a trace is played with Tallyman, to its end. Nodes, "
    "Queues\n"
    "and PriorityClasses of manifests take the place of those that would be made for it. Try\n"
    "  tallyman simulate --load examples/loads/two-teams.yaml --svg two-teams.svg\n"
    "\n"
    "      --load FILE       queues, classes of jobs and events, as YAML\n"
    "      --swf FILE        a trace in the Standard Workload Format\n"
    "      --csv FILE        a trace as comma-separated values, the first line naming its columns\n"
    "      --columns MAP     which column is what, as submit=timestamp,runtime=duration; what can\n"
    "                        be named: submit runtime devices queue namespace priority bound "
    "class\n"
    "      --queue-by FIELD  a queue for each queue (default), user, group or partition of --swf\n"
    "      --devices N       of the whole cluster (default: the trace's own, or enough for a load\n"
    "                        of 80 %)\n"
    "      --node-devices N  of one node (default 8)\n"
    "      --pod-devices N   of one pod, at most (default 1)\n"
    "      --saturation F    jobs come F times as fast as in the trace, such as 2.5\n"
    "      --jobs N          only the first N jobs of the trace\n"
    "      --strategy S      of the trace's queues: BestEffortFIFO, StrictFIFO or Backfill\n"
    "      --starvation D    their starvationBound\n"
    "      --bound F         jobs state a run-time bound: F times what they run, such as 1.5\n"
    "      --svg FILE        a chart of who ran when\n"
    "  -o, --output FORMAT   text (default), json (the summary) or csv (a line per job); of\n"
    "                        manifests, of the half with Tallyman\n"
    "      --until DURATION  how long to play, in virtual time (default 2h for manifests)\n"
    "      --at DURATION     the moment that the closing table of manifests compares (default 30s\n"
    "                        after the first Job)\n"
    "      --plain           manifests: only plain Kubernetes\n"
    "      --with-tallyman   manifests: only with Tallyman\n"
    "      --faults          manifests, with Tallyman: while writes, watches and the controller "
    "fail\n"
    "      --seed N          which faults (default 1)\n"
    "      --all             every line of a long run, not just its beginning and end\n"
    "  -h, --help            this text\n"
    "\n"
    "Annotations on a Job of the manifests (or its pod template):\n"
    "  example.com/run-for: 10m       how long a pod works; for ever without it. The pods of a\n"
    "                                 gang work only while min-count of them are ready together\n"
    "  example.com/submit-after: 1m   when the Job is made; at the start without it\n"
    "\n"
    "Exit status: 0 it was played, 1 the output can't be written or something didn't hold under\n"
    "--faults, 2 the command line or the input is wrong.\n";

static int complain(const char *what, const char *value, const char *right)
{
    fprintf(stderr, "tallyman simulate: %s %s: %s\n", what, value, right);
    return 2;
}

/* -- values -------------------------------------------------------------------------------------
 */

static int take_duration(const char *what, int64_t *ret_ms)
{
    int64_t ms;
    if (!duration_parse(str_from_c(optarg), &ms) || ms <= 0 || ms > UNTIL_MAX_MS) {
        return complain(what, optarg,
                        "not a duration between 1ms and 100 years; write 90s, 2h or 1h30m");
    }
    *ret_ms = ms;
    return 0;
}

static int take_count(const char *what, int64_t most, int64_t *ret_count)
{
    int64_t count;
    if (!str_to_i64(str_from_c(optarg), &count) || count < 1 || count > most) {
        char right[80];
        snprintf(right, sizeof(right), "not a whole number between 1 and %lld", (long long)most);
        return complain(what, optarg, right);
    }
    *ret_count = count;
    return 0;
}

/* A decimal number as thousandths, 0.001 to 1000000. */
static int take_factor(const char *what, int64_t *ret_milli)
{
    struct str text = str_from_c(optarg);
    size_t point = str_find_char(text, '.');
    int64_t whole = 0;
    int64_t milli = 0;
    int64_t weight = 100;
    bool is_good = str_to_i64(str_take(text, point), &whole) && whole >= 0 && whole <= 1000000;
    for (size_t i = point + 1; i < text.len; i++, weight /= 10) {
        is_good = is_good && text.ptr[i] >= '0' && text.ptr[i] <= '9';
        milli += (text.ptr[i] - '0') * weight;
    }
    if (!is_good || whole * 1000 + milli == 0) {
        return complain(what, optarg, "not a factor between 0.001 and 1000000; write 2 or 1.5");
    }
    *ret_milli = whole * 1000 + milli;
    return 0;
}

static int take_word(const char *what, const char *const *words, const char *right,
                     struct str *ret_word)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        if (strcmp(optarg, words[i]) == 0) {
            *ret_word = str_from_c(optarg);
            return 0;
        }
    }
    return complain(what, optarg, right);
}

static int take_format(struct simulation *simulation)
{
    static const char *const formats[] = {
        [FORMAT_TEXT] = "text", [FORMAT_JSON] = "json", [FORMAT_CSV] = "csv"};
    for (size_t i = 0; i < ARRAY_COUNT(formats); i++) {
        if (strcmp(optarg, formats[i]) == 0) {
            simulation->bulk.format = (enum simulate_format)i;
            return 0;
        }
    }
    return complain("-o", optarg, "the formats are text, json and csv");
}

/* -- options ------------------------------------------------------------------------------------
 */

enum option_name {
    OPTION_UNTIL = 256,
    OPTION_AT,
    OPTION_PLAIN,
    OPTION_WITH_TALLYMAN,
    OPTION_ALL,
    OPTION_LOAD,
    OPTION_SWF,
    OPTION_CSV,
    OPTION_COLUMNS,
    OPTION_QUEUE_BY,
    OPTION_DEVICES,
    OPTION_NODE_DEVICES,
    OPTION_POD_DEVICES,
    OPTION_SATURATION,
    OPTION_JOBS,
    OPTION_STRATEGY,
    OPTION_STARVATION,
    OPTION_BOUND,
    OPTION_SVG,
    OPTION_FAULTS,
    OPTION_SEED,
};

static const struct option longs[] = {
    {"until", required_argument, NULL, OPTION_UNTIL},
    {"at", required_argument, NULL, OPTION_AT},
    {"plain", no_argument, NULL, OPTION_PLAIN},
    {"with-tallyman", no_argument, NULL, OPTION_WITH_TALLYMAN},
    {"all", no_argument, NULL, OPTION_ALL},
    {"load", required_argument, NULL, OPTION_LOAD},
    {"swf", required_argument, NULL, OPTION_SWF},
    {"csv", required_argument, NULL, OPTION_CSV},
    {"columns", required_argument, NULL, OPTION_COLUMNS},
    {"queue-by", required_argument, NULL, OPTION_QUEUE_BY},
    {"devices", required_argument, NULL, OPTION_DEVICES},
    {"node-devices", required_argument, NULL, OPTION_NODE_DEVICES},
    {"pod-devices", required_argument, NULL, OPTION_POD_DEVICES},
    {"saturation", required_argument, NULL, OPTION_SATURATION},
    {"jobs", required_argument, NULL, OPTION_JOBS},
    {"strategy", required_argument, NULL, OPTION_STRATEGY},
    {"starvation", required_argument, NULL, OPTION_STARVATION},
    {"bound", required_argument, NULL, OPTION_BOUND},
    {"svg", required_argument, NULL, OPTION_SVG},
    {"faults", no_argument, NULL, OPTION_FAULTS},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}};

static int take_seed(struct simulation *simulation)
{
    int64_t seed = 0;
    int status = take_count("--seed", INT32_MAX, &seed);
    simulation->seed = (uint64_t)seed;
    simulation->has_seed = true;
    return status;
}

/* What shapes a trace, and some of it a load too. */
static const struct bulk_option {
    int option;
    const char *name;
    bool is_of_loads;
} bulk_options[] = {
    {OPTION_COLUMNS, "--columns", false},
    {OPTION_QUEUE_BY, "--queue-by", false},
    {OPTION_DEVICES, "--devices", false},
    {OPTION_NODE_DEVICES, "--node-devices", true},
    {OPTION_POD_DEVICES, "--pod-devices", false},
    {OPTION_SATURATION, "--saturation", false},
    {OPTION_JOBS, "--jobs", false},
    {OPTION_STRATEGY, "--strategy", false},
    {OPTION_STARVATION, "--starvation", false},
    {OPTION_BOUND, "--bound", false},
};

static void note_bulk_option(struct simulation *simulation, int option)
{
    for (uint32_t i = 0; i < ARRAY_COUNT(bulk_options); i++) {
        simulation->bulk_given |= bulk_options[i].option == option ? UINT32_C(1) << i : 0;
    }
}

static int take_trace_option(struct simulation *simulation, int option)
{
    static const char *const strategies[] = {"BestEffortFIFO", "StrictFIFO", "Backfill", NULL};
    static const char *const fields[] = {"queue", "user", "group", "partition", NULL};
    struct trace_options *trace = &simulation->bulk.trace;
    switch (option) {
    case OPTION_COLUMNS:
        trace->columns = str_from_c(optarg);
        return 0;
    case OPTION_QUEUE_BY:
        return take_word("--queue-by", fields, "one of queue, user, group, partition",
                         &trace->queue_by);
    case OPTION_DEVICES:
        return take_count("--devices", SIMULATE_DEVICES_MAX, &trace->devices);
    case OPTION_NODE_DEVICES:
        return take_count("--node-devices", SIMULATE_UNITS_MAX, &simulation->bulk.nodes_units);
    case OPTION_POD_DEVICES:
        return take_count("--pod-devices", SIMULATE_UNITS_MAX, &trace->pod_devices);
    case OPTION_SATURATION:
        return take_factor("--saturation", &trace->saturation_milli);
    case OPTION_JOBS:
        return take_count("--jobs", SIMULATE_JOBS_MAX, &trace->first_jobs);
    case OPTION_STRATEGY:
        return take_word("--strategy", strategies, "one of BestEffortFIFO, StrictFIFO, Backfill",
                         &trace->strategy);
    case OPTION_STARVATION:
        return take_duration("--starvation", &trace->starvation_ms);
    case OPTION_BOUND:
        return take_factor("--bound", &trace->bound_milli);
    case OPTION_FAULTS:
        simulation->has_faults = true;
        return 0;
    case OPTION_SEED:
        return take_seed(simulation);
    default:
        fputs("Try tallyman simulate --help.\n", stderr);
        return 2;
    }
}

static int take_option(struct simulation *simulation, int option)
{
    switch (option) {
    case OPTION_UNTIL:
        return take_duration("--until", &simulation->until_ms);
    case OPTION_AT:
        return take_duration("--at", &simulation->at_ms);
    case OPTION_PLAIN:
        simulation->is_plain_only = true;
        return 0;
    case OPTION_WITH_TALLYMAN:
        simulation->is_tallyman_only = true;
        return 0;
    case OPTION_ALL:
        simulation->shows_all = true;
        return 0;
    case OPTION_LOAD:
        simulation->bulk.load_path = optarg;
        return 0;
    case OPTION_SWF:
        simulation->bulk.swf_path = optarg;
        return 0;
    case OPTION_CSV:
        simulation->bulk.csv_path = optarg;
        return 0;
    case OPTION_SVG:
        simulation->bulk.svg_path = optarg;
        return 0;
    case 'o':
        return take_format(simulation);
    case 'h':
        fputs(usage, stdout);
        return -1;
    default:
        return take_trace_option(simulation, option);
    }
}

static bool is_bulk(const struct simulation *simulation)
{
    const struct bulk_command *bulk = &simulation->bulk;
    return bulk->load_path != NULL || bulk->swf_path != NULL || bulk->csv_path != NULL;
}

static int check_manifests_only(const struct simulation *simulation)
{
    if (simulation->path_count == 0) {
        fputs("tallyman simulate: no manifests; give a file or a directory, such as "
              "examples/deadlock, or --load, --swf or --csv\n",
              stderr);
        return 2;
    }
    return 0;
}

/* Nothing that is given is passed over in silence. */
static int check_bulk_options(const struct simulation *simulation)
{
    bool has_trace = simulation->bulk.swf_path != NULL || simulation->bulk.csv_path != NULL;
    for (uint32_t i = 0; i < ARRAY_COUNT(bulk_options) && !has_trace; i++) {
        bool is_given = (simulation->bulk_given >> i & 1) != 0;
        if (is_given && !is_bulk(simulation)) {
            return complain(bulk_options[i].name, "with manifests",
                            bulk_options[i].is_of_loads
                                ? "it shapes a load or a trace; give one by --load, --swf or --csv"
                                : "it shapes a trace; give one by --swf or --csv");
        }
        if (is_given && !bulk_options[i].is_of_loads) {
            return complain(bulk_options[i].name, "with --load",
                            "it shapes a trace; what the load is like stands in its file");
        }
    }
    return 0;
}

static int check_at(const struct simulation *simulation)
{
    if (simulation->at_ms < 0) {
        return 0;
    }
    if (is_bulk(simulation)) {
        return complain("--at", "with a load or a trace",
                        "it is of the closing table of manifests");
    }
    int64_t until_ms = simulation->until_ms > 0 ? simulation->until_ms : UNTIL_DEFAULT_MS;
    return simulation->at_ms <= until_ms
               ? 0
               : complain("--at", "behind --until",
                          simulation->until_ms > 0
                              ? "the moment has to come while it is played"
                              : "it is played for 2h unless --until says for how long");
}

static int check_faults(const struct simulation *simulation)
{
    if (simulation->has_faults && (is_bulk(simulation) || simulation->is_plain_only)) {
        return complain("--faults", is_bulk(simulation) ? "with a load or a trace" : "--plain",
                        "faults are played on manifests, with Tallyman");
    }
    if (simulation->has_seed && !simulation->has_faults) {
        return complain("--seed", "without --faults", "nothing else is drawn; give both, or none");
    }
    return 0;
}

static int check_options(const struct simulation *simulation)
{
    const struct bulk_command *bulk = &simulation->bulk;
    if (simulation->is_plain_only && simulation->is_tallyman_only) {
        return complain("--plain", "--with-tallyman",
                        "they exclude each other; give neither to see both");
    }
    if (bulk->swf_path != NULL && bulk->csv_path != NULL) {
        return complain("--swf", "--csv", "only one trace is played at a time");
    }
    if (is_bulk(simulation) && simulation->is_plain_only) {
        return complain("--plain", "with a load or a trace", "these are played with Tallyman only");
    }
    int status = check_faults(simulation);
    status = status != 0 ? status : check_bulk_options(simulation);
    status = status != 0 ? status : check_at(simulation);
    return status != 0 || is_bulk(simulation) ? status : check_manifests_only(simulation);
}

/* 0: go on, -1: all said, else the exit status. */
static int parse_options(int argc, char **argv, struct simulation *simulation)
{
    optind = 1;
    int option;
    while ((option = getopt_long(argc, argv, "o:h", longs, NULL)) != -1) {
        int status = take_option(simulation, option);
        note_bulk_option(simulation, option);
        if (status != 0) {
            return status;
        }
    }
    if (argc - optind > SIMULATE_PATHS_MAX) {
        fprintf(stderr, "tallyman simulate: more than %d files; give their directory\n",
                SIMULATE_PATHS_MAX);
        return 2;
    }
    while (optind < argc) {
        simulation->paths[simulation->path_count++] = argv[optind++];
    }
    return check_options(simulation);
}

static int read_manifests(struct simulation *simulation, struct arena *arena)
{
    for (uint32_t i = 0; i < simulation->path_count; i++) {
        struct err err;
        if (rc_failed(input_read(arena, simulation->paths[i], &simulation->manifests, &err))) {
            fprintf(stderr, "tallyman simulate: %s\n", err.text);
            return 2;
        }
    }
    return 0;
}

static int simulate(struct simulation *simulation, struct arena *arena)
{
    int status = read_manifests(simulation, arena);
    if (status != 0) {
        return status;
    }
    if (is_bulk(simulation)) {
        simulation->bulk.manifests = simulation->manifests;
        simulation->bulk.until_ms = simulation->until_ms > 0 ? simulation->until_ms : INT64_MAX;
        return simulate_bulk(&simulation->bulk, arena);
    }
    simulation->until_ms = simulation->until_ms > 0 ? simulation->until_ms : UNTIL_DEFAULT_MS;
    return simulate_manifests(simulation, arena);
}

int command_simulate(int argc, char **argv)
{
    struct simulation simulation = {
        .at_ms = -1, .seed = 1, .bulk.trace = {.pod_devices = 1, .saturation_milli = 1000}};
    int status = parse_options(argc, argv, &simulation);
    if (status != 0) {
        return status < 0 ? 0 : status;
    }
    struct arena arena;
    arena_init(&arena);
    status = simulate(&simulation, &arena);
    arena_deinit(&arena);
    return status;
}
