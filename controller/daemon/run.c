/* run.c - starts the controller, keeps it going, and stops it in order. */
#include "commands.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "daemon.h"
#include "input.h"
#include "tallyman/api/node.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/driver/journal.h"
#include "tallyman/kube/writer.h"

static const char usage[] =
    "usage: tallyman run [options]\n"
    "\n"
    "The controller: watches Jobs, Queues, nodes and devices, and admits whole gangs.\n"
    "\n"
    "      --kubeconfig FILE  default: $KUBECONFIG, then the pod's service account,\n"
    "                         then ~/.kube/config\n"
    "      --context NAME     a context of it (default: the current one)\n"
    "      --store DIR        keeps history there: ledger and decision journal\n"
    "      --http ADDR        serves /healthz, /readyz and /metrics, e.g. 127.0.0.1:8080; by TLS\n"
    "                         and, but for health, to those with a token that may get the path,\n"
    "                         unless ADDR is loopback and no certificate is given\n"
    "      --tls-cert-file FILE  PEM, read again when it changes (default: a certificate that\n"
    "                         is made at the start, signed by nobody)\n"
    "      --tls-private-key-file FILE  its key\n"
    "      --identity NAME    of this replica in the Lease; unique (default: host name and a\n"
    "                         random part)\n"
    "      --lease-namespace NS  where the Lease `tallyman` is (default: tallyman-system)\n"
    "      --no-leader-election  for one process that is surely alone\n"
    "      --journal FILE     appends every event and decision, for `tallyman replay`\n"
    "      --log-level LEVEL  debug, info (default), warn or error\n"
    "\n"
    "SIGTERM or SIGINT stops it in order. Exit status: 0 stopped, 1 it could not go on,\n"
    "2 the command line is wrong.\n";

/* -- ports --------------------------------------------------------------------------------------
 */

static void on_wake(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    driver_tick(daemon->driver);
}

static void port_wake_at(void *ctx, int64_t at_ms)
{
    struct daemon *daemon = ctx;
    if (daemon->is_stopping) {
        return;
    }
    if (at_ms == INT64_MAX) {
        uv_timer_stop(&daemon->wake_timer);
        return;
    }
    int64_t wait_ms = at_ms - daemon_now_ms(daemon);
    uv_update_time(&daemon->loop);
    uv_timer_start(&daemon->wake_timer, on_wake, wait_ms > 0 ? (uint64_t)wait_ms : 1, 0);
}

static void port_on_event(void *ctx, const struct event *event)
{
    struct daemon *daemon = ctx;
    daemon->step_started_ns = uv_hrtime();
    if (daemon->store == NULL && daemon->journal == NULL) {
        return;
    }
    struct arena arena;
    arena_init(&arena);
    store_port_journal(daemon, event->now_ms, journal_event_line(&arena, event));
    arena_deinit(&arena);
}

static void port_on_effects(void *ctx, const struct event *event, const struct effects *effects)
{
    struct daemon *daemon = ctx;
    telemetry_effects(daemon, effects);
    if (daemon->store == NULL && daemon->journal == NULL) {
        return;
    }
    struct arena arena;
    arena_init(&arena);
    store_port_journal(daemon, event->now_ms, journal_decision_line(&arena, effects));
    arena_deinit(&arena);
}

static void port_on_refused(void *ctx, const struct event *event, const struct err *err)
{
    struct daemon *daemon = ctx;
    bool has_object = event->kind == EVENT_OBJECT && event->object.kind != KIND_NONE;
    struct str kind = has_object ? str_from_c(kind_info(event->object.kind)->name) : STR("event");
    metric_add(daemon->telemetry.malformed, &kind, 1);
    struct log_field fields[] = {
        LOG_STR("kind", kind), LOG_STR("error", err_text(err)), {.key = NULL}};
    log_line(&daemon->log, LOG_WARN, "an object is wrong and is left out", fields);
}

/* -- start --------------------------------------------------------------------------------------
 */

/* A journal with a hole in it can't be replayed, so it ends where it could still be written. */
static void give_up_journal(struct daemon *daemon)
{
    struct log_field fields[] = {LOG_STR("file", str_from_c(daemon->options.journal_file)),
                                 LOG_STR("error", str_from_c(strerror(errno))),
                                 {.key = NULL}};
    log_line(&daemon->log, LOG_ERROR, "the journal can't be written; going on without it", fields);
    metric_set(daemon->telemetry.store_degraded, NULL, 1);
    fclose(daemon->journal);
    daemon->journal = NULL;
}

static void on_flush(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    store_port_flush(daemon);
    if (daemon->journal != NULL && (fflush(daemon->journal) != 0 || ferror(daemon->journal))) {
        give_up_journal(daemon);
    }
}

static void begin(struct daemon *daemon)
{
    struct err err;
    struct rc rc = store_port_open(daemon, &err);
    struct log_field fields[] = {LOG_STR("error", err_text(&err)), {.key = NULL}};
    if (rc.code == RC_CONFLICT) {
        /* Another controller is at work here: two must never run. */
        log_line(&daemon->log, LOG_ERROR, "the store belongs to another process", fields);
        daemon_stop(daemon, 1);
        return;
    }
    if (rc_failed(rc)) {
        /* The store holds history, and no decision rests on it. */
        metric_set(daemon->telemetry.store_degraded, NULL, 1);
        log_line(&daemon->log, LOG_ERROR, "the store can't be opened; going on without history",
                 fields);
    }
    store_port_journal_start(daemon);
    uv_timer_start(&daemon->flush_timer, on_flush, DAEMON_FLUSH_MS, DAEMON_FLUSH_MS);
    leader_open(daemon);
    kube_port_open_informers(daemon);
}

static void ask_cluster_id(struct daemon *daemon);

static void on_ask_again(uv_timer_t *timer)
{
    ask_cluster_id(timer->data);
}

static void on_cluster_id(void *ctx, const struct kube_response *response)
{
    struct daemon *daemon = ctx;
    if (daemon->is_stopping || response->outcome == KUBE_CANCELLED) {
        return;
    }
    if (response->outcome == KUBE_DONE) {
        struct arena arena;
        arena_init(&arena);
        void *value = NULL;
        struct err err;
        struct rc rc =
            decode_json(&arena, kind_info(KIND_NAMESPACE)->schema, response->body, &value, &err);
        if (!rc_failed(rc)) {
            const struct namespace_object *space = value;
            daemon->cluster_id = arena_copy_str(&daemon->config->arena, space->meta.uid);
        }
        arena_deinit(&arena);
        if (!rc_failed(rc)) {
            begin(daemon);
            return;
        }
    }
    int64_t wait_ms = kube_backoff_next_ms(&daemon->start_backoff, response->retry_after_ms);
    struct log_field fields[] = {
        LOG_STR("error", response->message), LOG_INT("retryInMs", wait_ms), {.key = NULL}};
    log_line(&daemon->log, LOG_WARN, "the API server can't be asked yet", fields);
    uv_timer_start(&daemon->start_timer, on_ask_again, (uint64_t)wait_ms, 0);
}

/* The store belongs to one cluster; the uid of kube-system tells which. */
static void ask_cluster_id(struct daemon *daemon)
{
    struct kube_target target = {.kind = KIND_NAMESPACE, .name = STR("kube-system")};
    (void)kube_get(daemon->client, &target, (struct kube_done){on_cluster_id, daemon});
}

/* -- stop ---------------------------------------------------------------------------------------
 */

static void on_part_closed(void *ctx);

static void on_handle_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

static void close_handle(struct daemon *daemon, uv_handle_t *handle)
{
    daemon->closing++;
    uv_close(handle, on_handle_closed);
}

static void on_informer_closed(void *ctx)
{
    struct daemon *daemon = ctx;
    if (--daemon->closing > 1) {
        return;
    }
    /* Only this count of our own is left: the client goes after its last informer. */
    if (daemon->client != NULL) {
        kube_client_close(daemon->client, on_part_closed, daemon);
        daemon->client = NULL;
    }
}

static void close_rest(struct daemon *daemon)
{
    store_port_flush(daemon);
    if (daemon->store != NULL) {
        daemon->closing++;
        store_close(daemon->store, on_part_closed, daemon);
        daemon->store = NULL;
    }
    if (daemon->http != NULL) {
        daemon->closing++;
        http_server_close(daemon->http, on_part_closed, daemon);
        daemon->http = NULL;
    }
    close_handle(daemon, (uv_handle_t *)&daemon->wake_timer);
    close_handle(daemon, (uv_handle_t *)&daemon->flush_timer);
    close_handle(daemon, (uv_handle_t *)&daemon->start_timer);
    close_handle(daemon, (uv_handle_t *)&daemon->signals[0]);
    close_handle(daemon, (uv_handle_t *)&daemon->signals[1]);
}

static void on_part_closed(void *ctx)
{
    struct daemon *daemon = ctx;
    daemon->closing--;
    if (daemon->closing == 0 && !uv_is_closing((uv_handle_t *)&daemon->wake_timer)) {
        close_rest(daemon); /* the client is gone: nothing more will happen */
    }
}

static void close_parts(void *ctx)
{
    struct daemon *daemon = ctx;
    daemon->closing = 1;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        if (daemon->informers[kind] != NULL) {
            daemon->closing++;
            kube_informer_close(daemon->informers[kind], on_informer_closed, daemon);
            daemon->informers[kind] = NULL;
        }
    }
    if (daemon->closing == 1) {
        kube_client_close(daemon->client, on_part_closed, daemon);
        daemon->client = NULL;
    }
}

void daemon_stop(struct daemon *daemon, int exit_status)
{
    if (daemon->is_stopping) {
        return;
    }
    daemon->is_stopping = true;
    daemon->is_ready = false;
    daemon->exit_status = exit_status;
    uv_timer_stop(&daemon->wake_timer);
    uv_timer_stop(&daemon->start_timer);
    /* Nothing is written from now on, so that the next leader may begin while the rest closes. */
    leader_close(daemon, close_parts);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct daemon *daemon = handle->data;
    struct log_field fields[] = {LOG_INT("signal", number), {.key = NULL}};
    log_line(&daemon->log, LOG_INFO, "stopping", fields);
    daemon_stop(daemon, 0);
}

/* -- the process --------------------------------------------------------------------------------
 */

static struct rc open_client(struct daemon *daemon, struct err *err)
{
    struct kube_config_options config = {.kubeconfig = daemon->options.kubeconfig,
                                         .context = daemon->options.context};
    kube_config_options_from_env(&config);
    TRY(kube_config_load(&config, &daemon->config, err));
    uint64_t seed = 0;
    (void)uv_random(NULL, NULL, &seed, sizeof(seed), 0, NULL);
    kube_backoff_init(&daemon->start_backoff, 500, 30000, seed);
    struct kube_client_options options = {.loop = &daemon->loop,
                                          .config = daemon->config,
                                          .version = tallyman_version(),
                                          .seed = seed};
    return kube_client_open(&options, &daemon->client, err);
}

static struct rc open_journal(struct daemon *daemon, struct err *err)
{
    if (daemon->options.journal_file == NULL) {
        return RC_SUCCESS;
    }
    daemon->journal = fopen(daemon->options.journal_file, "a+");
    if (daemon->journal == NULL) {
        return err_set(err, RC_IO, "--journal %s can't be written: %s",
                       daemon->options.journal_file, strerror(errno));
    }
    /* What is appended begins a line of its own, even where a killed process left half a one. */
    if (fseek(daemon->journal, -1, SEEK_END) == 0 && fgetc(daemon->journal) != '\n') {
        (void)fputc('\n', daemon->journal);
    }
    return RC_SUCCESS;
}

static void init_handles(struct daemon *daemon)
{
    uv_timer_init(&daemon->loop, &daemon->wake_timer);
    uv_timer_init(&daemon->loop, &daemon->flush_timer);
    uv_timer_init(&daemon->loop, &daemon->start_timer);
    daemon->wake_timer.data = daemon->flush_timer.data = daemon->start_timer.data = daemon;
    static const int numbers[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        uv_signal_init(&daemon->loop, &daemon->signals[i]);
        daemon->signals[i].data = daemon;
        uv_signal_start(&daemon->signals[i], on_signal, numbers[i]);
    }
}

static struct rc open_all(struct daemon *daemon, struct err *err)
{
    TRY(open_client(daemon, err));
    TRY(open_journal(daemon, err));
    return http_port_open(daemon, err);
}

static int daemon_run(const struct daemon_options *options)
{
    struct daemon daemon = {.options = *options};
    daemon.log = telemetry_log(options->log_level);
    uv_loop_init(&daemon.loop);
    init_handles(&daemon);
    struct core_options core_options = {.gives_advice = true,
                                        .admissions_per_step = ADMISSIONS_PER_STEP,
                                        .selector_cost_per_step = SELECTOR_COST_PER_STEP,
                                        .admission_interval_ms = ADMISSION_INTERVAL_MS};
    daemon.core = core_new(&core_options);
    struct driver_ports ports = {.ctx = &daemon,
                                 .now_ms = daemon_now_ms,
                                 .wake_at = port_wake_at,
                                 .write = kube_port_write,
                                 .persist = store_port_persist,
                                 .ledger = store_port_ledger,
                                 .on_event = port_on_event,
                                 .on_effects = port_on_effects,
                                 .on_refused = port_on_refused};
    daemon.driver = driver_new(daemon.core, &ports);
    telemetry_open(&daemon);
    struct err err;
    if (rc_failed(open_all(&daemon, &err))) {
        fprintf(stderr, "tallyman run: %s\n", err.text);
        daemon.is_stopping = true;
        daemon.exit_status = 1;
        daemon.closing = 1;
        if (daemon.client != NULL) {
            kube_client_close(daemon.client, on_part_closed, &daemon);
            daemon.client = NULL;
        } else {
            on_part_closed(&daemon);
        }
    } else {
        struct log_field fields[] = {LOG_STR("version", str_from_c(tallyman_version())),
                                     LOG_STR("server", kube_client_server(daemon.client)),
                                     {.key = NULL}};
        log_line(&daemon.log, LOG_INFO, "starting", fields);
        ask_cluster_id(&daemon);
    }
    uv_run(&daemon.loop, UV_RUN_DEFAULT);
    uv_loop_close(&daemon.loop);
    http_port_free(&daemon);
    store_batch_free(daemon.batch);
    driver_free(daemon.driver);
    core_free(daemon.core);
    metrics_free(daemon.telemetry.metrics);
    kube_config_free(daemon.config);
    if (daemon.journal != NULL && fclose(daemon.journal) != 0) {
        fprintf(stderr, "tallyman run: --journal %s: its end can't be written: %s\n",
                daemon.options.journal_file, strerror(errno));
    }
    return daemon.exit_status;
}

static int take_option(int option, struct daemon_options *options)
{
    switch (option) {
    case 'k':
        options->kubeconfig = str_from_c(optarg);
        return 0;
    case 'c':
        options->context = str_from_c(optarg);
        return 0;
    case 's':
        options->store_dir = str_from_c(optarg);
        return 0;
    case 'p':
        options->http_listen = str_from_c(optarg);
        return 0;
    case 'C':
        options->tls_certificate_file = optarg;
        return 0;
    case 'K':
        options->tls_key_file = optarg;
        return 0;
    case 'i':
        options->identity = str_from_c(optarg);
        return 0;
    case 'n':
        options->lease_namespace = str_from_c(optarg);
        if (!input_is_namespace(options->lease_namespace)) {
            fprintf(stderr,
                    "tallyman run: --lease-namespace \"%s\" is no namespace's name; use lower-case "
                    "letters, digits and '-'\n",
                    optarg);
            return 2;
        }
        return 0;
    case 'a':
        options->is_alone = true;
        return 0;
    case 'j':
        options->journal_file = optarg;
        return 0;
    case 'l':
        if (!log_level_parse(str_from_c(optarg), &options->log_level)) {
            fprintf(stderr,
                    "tallyman run: --log-level %s is unknown; use debug, info, warn or error\n",
                    optarg);
            return 2;
        }
        return 0;
    case 'h':
        fputs(usage, stdout);
        return -1;
    default:
        fputs(usage, stderr);
        return 2;
    }
}

int command_run(int argc, char **argv)
{
    static const struct option longs[] = {{"kubeconfig", required_argument, NULL, 'k'},
                                          {"context", required_argument, NULL, 'c'},
                                          {"store", required_argument, NULL, 's'},
                                          {"http", required_argument, NULL, 'p'},
                                          {"tls-cert-file", required_argument, NULL, 'C'},
                                          {"tls-private-key-file", required_argument, NULL, 'K'},
                                          {"identity", required_argument, NULL, 'i'},
                                          {"lease-namespace", required_argument, NULL, 'n'},
                                          {"no-leader-election", no_argument, NULL, 'a'},
                                          {"journal", required_argument, NULL, 'j'},
                                          {"log-level", required_argument, NULL, 'l'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct daemon_options options = {.log_level = LOG_INFO};
    optind = 1;
    int option;
    while ((option = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        int status = take_option(option, &options);
        if (status != 0) {
            return status < 0 ? 0 : status;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "tallyman run: \"%s\" isn't an option of it; see --help\n", argv[optind]);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    return daemon_run(&options);
}
