#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tallyman/kube/discovery.h"
#include "tallyman/kube/writer.h"

#define WORDS_MAX 5

void watch_kind(const char *name, const char *selector)
{
    enum object_kind kind = kind_by_name(name);
    struct kube_informer_options options = wire.numbers;
    options.client = wire.client;
    options.kind = kind;
    options.label_selector = str_from_c(selector);
    options.handler = report_informer();
    wire.informers[kind] = kube_informer_open(&options);
    wire.open_informers++;
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

static void on_client_closed(void *ctx)
{
    (void)ctx;
    access_close();
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

void quit(void)
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

static struct kube_done done_as(char *name)
{
    return (struct kube_done){report_done, name};
}

static void do_patch(char *const *words, uint32_t count)
{
    static char name[] = "patch";
    struct kube_target target = target_of(words);
    (void)count;
    wire.last_call = kube_patch_merge(wire.client, &target, str_from_c(words[4]), done_as(name));
}

static void do_apply(char *const *words, uint32_t count)
{
    static char name[] = "apply";
    struct kube_target target = target_of(words);
    (void)count;
    wire.last_call = kube_apply(wire.client, &target, str_from_c(words[4]), done_as(name));
}

static void do_delete(char *const *words, uint32_t count)
{
    static char name[] = "delete";
    struct kube_target target = target_of(words);
    (void)count;
    wire.last_call = kube_delete(wire.client, &target, str_from_c(words[4]), done_as(name));
}

static void do_get(char *const *words, uint32_t count)
{
    static char name[] = "get";
    struct kube_target target = target_of(words);
    (void)count;
    wire.last_call = kube_get(wire.client, &target, done_as(name));
}

static void do_flood(char *const *words, uint32_t count)
{
    static char name[] = "flood";
    struct kube_target target = target_of(words + 1);
    (void)count;
    for (unsigned long i = strtoul(words[1], NULL, 10); i > 0; i--) {
        kube_get(wire.client, &target, done_as(name));
    }
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void do_event(char *const *words, uint32_t count)
{
    static char name[] = "event";
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
    (void)count;
    kube_create_event(wire.client, &event, done_as(name));
}

static void do_watch(char *const *words, uint32_t count)
{
    watch_kind(words[1], count > 2 ? words[2] : NULL);
}

static void do_unwatch(char *const *words, uint32_t count)
{
    (void)count;
    unwatch(words[1]);
}

static void do_metrics(char *const *words, uint32_t count)
{
    (void)words;
    (void)count;
    report_metrics();
}

static void do_version(char *const *words, uint32_t count)
{
    (void)words;
    (void)count;
    kube_read_server_version(wire.client, on_version, NULL);
}

static void do_group(char *const *words, uint32_t count)
{
    (void)count;
    kube_read_group(wire.client, kind_by_name(words[1]), on_group, NULL);
}

static void do_cancel(char *const *words, uint32_t count)
{
    (void)words;
    (void)count;
    if (wire.last_call != NULL) {
        kube_call_cancel(wire.last_call);
    }
}

static void do_lease(char *const *words, uint32_t count)
{
    (void)count;
    lease_open(words[1], words[2]);
}

static void do_held(char *const *words, uint32_t count)
{
    (void)words;
    (void)count;
    lease_report();
}

static void do_unlease(char *const *words, uint32_t count)
{
    (void)words;
    (void)count;
    lease_close();
}

static void do_review(char *const *words, uint32_t count)
{
    (void)count;
    access_review(words[1], words[2]);
}

static void do_quit(char *const *words, uint32_t count)
{
    (void)words;
    (void)count;
    quit();
}

static const struct {
    const char *name;
    uint32_t words; /* at least, the name among them */
    void (*run)(char *const *words, uint32_t count);
} commands[] = {
    {"watch", 2, do_watch},     {"unwatch", 2, do_unwatch}, {"metrics", 1, do_metrics},
    {"version", 1, do_version}, {"group", 2, do_group},     {"flood", 5, do_flood},
    {"cancel", 1, do_cancel},   {"quit", 1, do_quit},       {"patch", 5, do_patch},
    {"apply", 5, do_apply},     {"delete", 5, do_delete},   {"get", 4, do_get},
    {"event", 5, do_event},     {"lease", 3, do_lease},     {"held", 1, do_held},
    {"unlease", 1, do_unlease}, {"review", 3, do_review},
};

static bool run_command(char *const *words, uint32_t count)
{
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
        if (strcmp(commands[i].name, words[0]) == 0 && count >= commands[i].words) {
            commands[i].run(words, count);
            return true;
        }
    }
    return false;
}

void run_line(char *line)
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
    if (!run_command(words, count)) {
        fprintf(stderr, "wire_client: can't do \"%s\"\n", words[0]);
        exit(2);
    }
}
