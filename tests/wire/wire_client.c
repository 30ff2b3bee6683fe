/* wire_client - the kube layer, driven by hand: one line per callback on standard output.
 *
 *     wire_client [--kubeconfig FILE] [--context NAME] [--account DIR HOST PORT] [--NUMBER VALUE]…
 *                 [--watch KIND]…
 *
 * Then one command per line on standard input:
 *
 *     watch KIND [SELECTOR]     unwatch KIND         metrics          version      group KIND
 *     get KIND NAMESPACE NAME   patch KIND NAMESPACE NAME BODY        apply KIND NAMESPACE NAME
 * BODY delete KIND NAMESPACE NAME UID    event NAMESPACE NAME JOB UID   repeat NAMESPACE NAME COUNT
 *     flood COUNT KIND NAMESPACE NAME   cancel (the last request)      quit
 *
 * NAMESPACE is - for a cluster-wide kind. It ends by itself when told to quit or when its input
 * ends; its exit status is 0 then. Numbers: idle-ms, initial-ms, watch-ms, retry-base-ms,
 * retry-max-ms, absent-retry-ms, absent-grace-ms, page-items, connect-ms, request-ms, exec-ms,
 * quiet (1: objects are counted, not printed). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tallyman/base/alloc.h"
#include "tallyman/kube/discovery.h"
#include "tallyman/kube/informer.h"
#include "tallyman/kube/writer.h"

#define INPUT_MAX_BYTES (4u * 1024 * 1024)
#define WORDS_MAX       5

struct wire {
    uv_loop_t loop;
    struct kube_config *config;
    struct kube_client *client;
    struct kube_informer *informers[KIND_COUNT];
    uint64_t objects[KIND_COUNT];
    struct kube_informer_options numbers;
    struct kube_client_options client_options;
    struct kube_config_options config_options;
    bool is_quiet;
    uv_pipe_t input;
    char *text; /* what of the input hasn't been carried out */
    size_t text_bytes;
    struct kube_call *last_call;
    uint32_t open_informers;
    bool is_quitting;
    const char *first_kinds[KIND_COUNT];
    uint32_t first_kind_count;
};

static struct wire wire;

static const char *kind_name(enum object_kind kind)
{
    return kind_info(kind)->name;
}

static enum object_kind kind_by_name(const char *name)
{
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        if (strcmp(kind_name((enum object_kind)kind), name) == 0) {
            return (enum object_kind)kind;
        }
    }
    fprintf(stderr, "wire_client: no kind \"%s\"\n", name);
    exit(2);
}

/* -- what the informers say -------------------------------------------------------------------- */

static void on_sync_start(void *ctx, enum object_kind kind)
{
    (void)ctx;
    printf("sync_start %s\n", kind_name(kind));
}

static void on_object(void *ctx, enum watch_event_type type, const struct object *object,
                      bool is_bare)
{
    static const char *const names[] = {
        [WATCH_ADDED] = "ADDED", [WATCH_MODIFIED] = "MODIFIED", [WATCH_DELETED] = "DELETED"};
    const struct object_meta *meta = object->value;
    struct str note = string_map_get(&meta->annotations, "note");
    (void)ctx;
    wire.objects[object->kind]++;
    if (!wire.is_quiet) {
        printf("%s %s " STR_FMT "/" STR_FMT " uid=" STR_FMT " rv=" STR_FMT "%s%s" STR_FMT "\n",
               names[type], kind_name(object->kind), STR_ARG(meta->namespace_name),
               STR_ARG(meta->name), STR_ARG(meta->uid), STR_ARG(meta->resource_version),
               is_bare ? " bare" : "", str_is_set(note) ? " note=" : "",
               STR_ARG(str_take(note, 200)));
    }
}

static void on_synced(void *ctx, enum object_kind kind)
{
    struct rusage usage;
    (void)ctx;
    getrusage(RUSAGE_SELF, &usage);
    if (wire.is_quiet) {
        printf("synced %s objects=%" PRIu64 " user_ms=%ld system_ms=%ld max_rss_kb=%ld\n",
               kind_name(kind), wire.objects[kind],
               usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000,
               usage.ru_stime.tv_sec * 1000 + usage.ru_stime.tv_usec / 1000, usage.ru_maxrss);
    } else {
        printf("synced %s\n", kind_name(kind));
    }
}

static void on_absent(void *ctx, enum object_kind kind)
{
    (void)ctx;
    printf("absent %s\n", kind_name(kind));
}

static void on_malformed(void *ctx, enum object_kind kind, const struct object_meta *meta,
                         const struct err *why)
{
    (void)ctx;
    printf("malformed %s " STR_FMT "/" STR_FMT ": %s\n", kind_name(kind),
           STR_ARG(meta->namespace_name), STR_ARG(meta->name), why->text);
}

static void on_trouble(void *ctx, enum object_kind kind, struct str message, int64_t wait_ms)
{
    (void)ctx;
    printf("trouble %s wait=%" PRId64 ": " STR_FMT "\n", kind_name(kind), wait_ms,
           STR_ARG(message));
}

static void watch(const char *name, const char *selector)
{
    enum object_kind kind = kind_by_name(name);
    struct kube_informer_options options = wire.numbers;
    options.client = wire.client;
    options.kind = kind;
    options.label_selector = str_from_c(selector);
    options.handler = (struct kube_informer_handler){
        .on_sync_start = on_sync_start,
        .on_object = on_object,
        .on_synced = on_synced,
        .on_absent = on_absent,
        .on_malformed = on_malformed,
        .on_trouble = on_trouble,
    };
    wire.informers[kind] = kube_informer_open(&options);
    wire.open_informers++;
}

/* -- what the requests say --------------------------------------------------------------------- */

static void on_done(void *ctx, const struct kube_response *response)
{
    const char *name = ctx;
    printf("%s %s code=%u maybe=%d retry_after=%" PRId64, name,
           kube_outcome_name(response->outcome), response->code, response->may_have_happened,
           response->retry_after_ms);
    if (response->meta != NULL) {
        printf(" uid=" STR_FMT " rv=" STR_FMT, STR_ARG(response->meta->uid),
               STR_ARG(response->meta->resource_version));
    }
    if (response->status != NULL) {
        printf(" reason=" STR_FMT " uid_cause=%d", STR_ARG(response->status->reason),
               kube_status_names_field(response->status, "metadata.uid"));
    }
    printf(" body_bytes=%zu: " STR_FMT "\n", response->body.len, STR_ARG(response->message));
    wire.last_call = NULL;
}

static void on_version(void *ctx, const struct kube_server_version *version, struct str message)
{
    (void)ctx;
    if (version == NULL) {
        printf("version unknown: " STR_FMT "\n", STR_ARG(message));
    } else {
        printf("version " STR_FMT "\n", STR_ARG(version->git_version));
    }
}

static void on_group(void *ctx, const struct kube_group_versions *versions, struct str message)
{
    (void)ctx;
    if (versions == NULL) {
        printf("group unknown: " STR_FMT "\n", STR_ARG(message));
    } else {
        printf("group served=%d wanted=%d versions=%u advice=" STR_FMT "\n", versions->is_served,
               versions->has_wanted, versions->versions.count, STR_ARG(versions->advice));
    }
}

static void print_metrics(void)
{
    const struct kube_metrics *metrics = kube_client_metrics(wire.client);
    for (uint32_t i = 0; i < metrics->request_count; i++) {
        const struct kube_request_count *series = &metrics->requests[i];
        printf("metric requests verb=%s resource=%s code=%u count=%" PRIu64 "\n", series->verb,
               series->resource, series->code, series->count);
    }
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        const struct kube_kind_metrics *m = &metrics->kinds[kind];
        if (wire.informers[kind] != NULL) {
            printf("metric %s starts=%" PRIu64 " syncs=%" PRIu64 " events=%" PRIu64
                   " bookmarks=%" PRIu64 " malformed=%" PRIu64 " vanished=%" PRIu64
                   " reversals=%" PRIu64 " known=%" PRIu64 "\n",
                   kind_name((enum object_kind)kind), m->watch_starts, m->full_syncs, m->events,
                   m->bookmarks, m->malformed_objects, m->vanished_objects, m->version_reversals,
                   m->known_objects);
        }
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("metric client received=%" PRIu64 " credentials=%" PRIu64 " in_flight=%u queued=%u "
           "user_ms=%ld max_rss_kb=%ld\n",
           metrics->received_bytes, metrics->credential_reads, metrics->in_flight, metrics->queued,
           usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000, usage.ru_maxrss);
}

/* -- commands ---------------------------------------------------------------------------------- */

static void on_client_closed(void *ctx)
{
    (void)ctx;
    printf("closed\n");
}

static void close_client_when_alone(void)
{
    if (wire.is_quitting && wire.open_informers == 0) {
        kube_client_close(wire.client, on_client_closed, NULL);
    }
}

static void on_informer_closed(void *ctx)
{
    (void)ctx;
    wire.open_informers--;
    close_client_when_alone();
}

static void unwatch(const char *name)
{
    enum object_kind kind = kind_by_name(name);
    kube_informer_close(wire.informers[kind], on_informer_closed, NULL);
    wire.informers[kind] = NULL;
}

static void quit(void)
{
    if (wire.is_quitting) {
        return;
    }
    wire.is_quitting = true;
    uv_close((uv_handle_t *)&wire.input, NULL);
    uint32_t open_informers = wire.open_informers;
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        if (wire.informers[kind] != NULL) {
            unwatch(kind_name((enum object_kind)kind));
        }
    }
    if (open_informers == 0) {
        close_client_when_alone();
    }
}

static struct str word_str(const char *word)
{
    return strcmp(word, "-") == 0 ? STR_NONE : str_from_c(word);
}

static struct kube_target target_of(char *const *words)
{
    return (struct kube_target){.kind = kind_by_name(words[1]),
                                .namespace_name = word_str(words[2]),
                                .name = word_str(words[3])};
}

static bool run_write(char *const *words, uint32_t count)
{
    static char patch[] = "patch";
    static char apply[] = "apply";
    static char delete[] = "delete";
    static char get[] = "get";
    if (count == 5 && strcmp(words[0], patch) == 0) {
        struct kube_target target = target_of(words);
        wire.last_call = kube_patch_merge(wire.client, &target, str_from_c(words[4]),
                                          (struct kube_done){on_done, patch});
    } else if (count == 5 && strcmp(words[0], apply) == 0) {
        struct kube_target target = target_of(words);
        wire.last_call = kube_apply(wire.client, &target, str_from_c(words[4]),
                                    (struct kube_done){on_done, apply});
    } else if (count == 5 && strcmp(words[0], delete) == 0) {
        struct kube_target target = target_of(words);
        wire.last_call = kube_delete(wire.client, &target, str_from_c(words[4]),
                                     (struct kube_done){on_done, delete});
    } else if (count == 4 && strcmp(words[0], get) == 0) {
        struct kube_target target = target_of(words);
        wire.last_call = kube_get(wire.client, &target, (struct kube_done){on_done, get});
    } else {
        return false;
    }
    return true;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool run_event(char *const *words, uint32_t count)
{
    static char event_name[] = "event";
    static char repeat[] = "repeat";
    if (count == 5 && strcmp(words[0], event_name) == 0) {
        struct kube_event event = {
            .name = str_from_c(words[2]),
            .namespace_name = str_from_c(words[1]),
            .type = STR("Normal"),
            .reason = STR("Tried"),
            .action = STR("Try"),
            .note = STR("an event of the wire client"),
            .instance = STR("wire-client"),
            .at_ms = now_ms(),
            .regarding_kind = KIND_JOB,
            .regarding_namespace = str_from_c(words[1]),
            .regarding_name = str_from_c(words[3]),
            .regarding_uid = str_from_c(words[4]),
        };
        kube_create_event(wire.client, &event, (struct kube_done){on_done, event_name});
    } else if (count == 4 && strcmp(words[0], repeat) == 0) {
        kube_repeat_event(wire.client, str_from_c(words[1]), str_from_c(words[2]),
                          (uint32_t)strtoul(words[3], NULL, 10), now_ms(),
                          (struct kube_done){on_done, repeat});
    } else {
        return false;
    }
    return true;
}

static void flood(char *const *words)
{
    static char name[] = "flood";
    struct kube_target target = target_of(words + 1);
    for (unsigned long i = strtoul(words[1], NULL, 10); i > 0; i--) {
        kube_get(wire.client, &target, (struct kube_done){on_done, name});
    }
}

static bool run_simple(char *const *words, uint32_t count)
{
    if (strcmp(words[0], "watch") == 0 && (count == 2 || count == 3)) {
        watch(words[1], count == 3 ? words[2] : NULL);
    } else if (strcmp(words[0], "unwatch") == 0 && count == 2) {
        unwatch(words[1]);
    } else if (strcmp(words[0], "metrics") == 0) {
        print_metrics();
    } else if (strcmp(words[0], "version") == 0) {
        kube_read_server_version(wire.client, on_version, NULL);
    } else if (strcmp(words[0], "group") == 0 && count == 2) {
        kube_read_group(wire.client, kind_by_name(words[1]), on_group, NULL);
    } else if (strcmp(words[0], "flood") == 0 && count == 5) {
        flood(words);
    } else if (strcmp(words[0], "cancel") == 0 && wire.last_call != NULL) {
        kube_call_cancel(wire.last_call);
    } else if (strcmp(words[0], "quit") == 0) {
        quit();
    } else {
        return false;
    }
    return true;
}

static void run_line(char *line)
{
    char *words[WORDS_MAX];
    uint32_t count = 0;
    char *rest = line;
    /* The last word keeps its blanks: it may be a body. */
    while (count < WORDS_MAX && rest != NULL && *rest != '\0') {
        words[count] = count == WORDS_MAX - 1 ? rest : strsep(&rest, " ");
        count++;
    }
    if (count == 0) {
        return;
    }
    if (!run_write(words, count) && !run_event(words, count) && !run_simple(words, count)) {
        fprintf(stderr, "wire_client: can't do \"%s\"\n", words[0]);
        exit(2);
    }
}

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *ret_buf)
{
    (void)handle;
    (void)wanted;
    *ret_buf =
        uv_buf_init(wire.text + wire.text_bytes, (unsigned)(INPUT_MAX_BYTES - wire.text_bytes));
}

static void on_input(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    (void)stream;
    (void)buf;
    if (count < 0) {
        quit();
        return;
    }
    wire.text_bytes += (size_t)count;
    char *end = NULL;
    while ((end = memchr(wire.text, '\n', wire.text_bytes)) != NULL) {
        size_t line_bytes = (size_t)(end - wire.text) + 1;
        *end = '\0';
        run_line(wire.text);
        wire.text_bytes -= line_bytes;
        memmove(wire.text, end + 1, wire.text_bytes);
    }
}

/* -- the program ------------------------------------------------------------------------------- */

static bool set_number(const char *name, int64_t value)
{
    struct {
        const char *name;
        int64_t *place;
    } const places[] = {
        {"idle-ms", &wire.numbers.idle_timeout_ms},
        {"initial-ms", &wire.numbers.initial_timeout_ms},
        {"watch-ms", &wire.numbers.watch_ms},
        {"retry-base-ms", &wire.numbers.retry_base_ms},
        {"retry-max-ms", &wire.numbers.retry_max_ms},
        {"absent-retry-ms", &wire.numbers.absent_retry_ms},
        {"absent-grace-ms", &wire.numbers.absent_grace_ms},
        {"connect-ms", &wire.client_options.connect_timeout_ms},
        {"request-ms", &wire.client_options.request_timeout_ms},
        {"exec-ms", &wire.client_options.credential_timeout_ms},
    };
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        if (strcmp(places[i].name, name) == 0) {
            *places[i].place = value;
            return true;
        }
    }
    return false;
}

static bool take_option(const char *name, char **values)
{
    if (strcmp(name, "kubeconfig") == 0) {
        wire.config_options.kubeconfig = str_from_c(values[0]);
    } else if (strcmp(name, "context") == 0) {
        wire.config_options.context = str_from_c(values[0]);
    } else if (strcmp(name, "watch") == 0) {
        wire.first_kinds[wire.first_kind_count++] = values[0];
    } else if (strcmp(name, "page-items") == 0) {
        wire.numbers.page_items = (uint32_t)strtoul(values[0], NULL, 10);
    } else if (strcmp(name, "quiet") == 0) {
        wire.is_quiet = strtoul(values[0], NULL, 10) != 0;
    } else {
        return set_number(name, strtoll(values[0], NULL, 10));
    }
    return true;
}

static void read_options(int argc, char **argv)
{
    kube_config_options_from_env(&wire.config_options);
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--account") == 0 && i + 3 < argc) {
            wire.config_options.kubeconfig_env = STR_NONE;
            wire.config_options.account_directory = str_from_c(argv[i + 1]);
            wire.config_options.service_host = str_from_c(argv[i + 2]);
            wire.config_options.service_port = str_from_c(argv[i + 3]);
            i += 3;
        } else if (strncmp(name, "--", 2) == 0 && i + 1 < argc &&
                   take_option(name + 2, argv + i + 1)) {
            i++;
        } else {
            fprintf(stderr, "wire_client: bad option %s\n", name);
            exit(2);
        }
    }
}

static int start(void)
{
    struct err err;
    struct rc rc = kube_config_load(&wire.config_options, &wire.config, &err);
    if (!rc_failed(rc)) {
        wire.client_options.loop = &wire.loop;
        wire.client_options.config = wire.config;
        wire.client_options.version = TALLYMAN_VERSION;
        uv_random(NULL, NULL, &wire.client_options.seed, sizeof(uint64_t), 0, NULL);
        rc = kube_client_open(&wire.client_options, &wire.client, &err);
    }
    if (rc_failed(rc)) {
        printf("error %s: %s\n", rc_name(rc), err.text);
        return 1;
    }
    for (uint32_t i = 0; i < wire.first_kind_count; i++) {
        watch(wire.first_kinds[i], NULL);
    }
    uv_pipe_init(&wire.loop, &wire.input, 0);
    uv_pipe_open(&wire.input, 0);
    uv_read_start((uv_stream_t *)&wire.input, on_alloc, on_input);
    uv_run(&wire.loop, UV_RUN_DEFAULT);
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    read_options(argc, argv);
    wire.text = mem_alloc(INPUT_MAX_BYTES);
    uv_loop_init(&wire.loop);
    int status = start();
    int left = uv_loop_close(&wire.loop);
    if (left != 0) {
        fprintf(stderr, "wire_client: handles are left open: %s\n", uv_strerror(left));
        status = 3;
    }
    kube_config_free(wire.config);
    mem_free(wire.text);
    return status;
}
