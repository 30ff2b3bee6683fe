/* Every call that the store makes fails once: what is on disk afterwards is what had been answered,
 * or a little more, each record once; nothing hangs, leaks or dies of it.
 *
 *     torture_store [--all] [--only STORY] [--kind KIND] [--call N] [--verbose]
 *
 * A story opens a store, commits, and closes it, in a process of its own. It is played for each
 * kind of call and each n up to as many as the story makes; without --all, some n of each. A
 * process may end for want of memory, saying so. */
#define _GNU_SOURCE
#include "store_story.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <uv.h>

#include "tallyman/base/alloc.h"

#define HANG_S        30
#define SOME_CALLS    2
#define PATH_BYTES    256
#define PAYLOAD_BYTES (40u * 1024)
#define SMALL_MAP     (256u * 1024)

static const struct story stories[] = {
    {.name = "make", .batches = 2},
    {.name = "use", .before = 2, .batches = 2, .is_short = true},
    {.name = "killed", .before = 2, .batches = 1, .is_killed = true},
    {.name = "grow",
     .is_short = true,
     .before = 1,
     .batches = 4,
     .payload_bytes = PAYLOAD_BYTES,
     .options = {.map_first_bytes = SMALL_MAP / 2}},
    {.name = "prune",
     .before = 4,
     .batches = 2,
     .payload_bytes = PAYLOAD_BYTES,
     .options = {.journal_max_bytes = 2 * PAYLOAD_BYTES}},
    {.name = "full",
     .before = 3,
     .batches = 4,
     .payload_bytes = PAYLOAD_BYTES,
     .options = {.map_first_bytes = SMALL_MAP, .map_max_bytes = SMALL_MAP}},
    {.name = "damaged", .before = 2, .batches = 1, .is_damaged = true, .is_short = true},
    {.name = "read", .before = 3, .options = {.is_read_only = true}},
};

static char top_dir[PATH_BYTES];
static bool is_verbose;

/* --- Directories --------------------------------------------------------------------------------
 */

static void path_of(char path[PATH_BYTES], const char *dir, const char *name)
{
    if (snprintf(path, PATH_BYTES, "%s/%s", dir, name) >= PATH_BYTES) {
        abort();
    }
}

static const char *const file_names[] = {"data.mdb",       "lock.mdb",       "lock",
                                         "data.mdb.bad-1", "data.mdb.bad-2", "stderr"};

static void empty_dir(const char *dir)
{
    char path[PATH_BYTES];

    for (size_t i = 0; i < sizeof(file_names) / sizeof(file_names[0]); i++) {
        path_of(path, dir, file_names[i]);
        (void)unlink(path);
    }
}

static size_t read_file(const char *dir, const char *name, char *bytes, size_t bytes_max)
{
    char path[PATH_BYTES];

    path_of(path, dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, bytes, bytes_max);

    if (fd >= 0) {
        (void)close(fd);
    }
    return got < 0 ? 0 : (size_t)got;
}

static void write_file(const char *dir, const char *name, const char *bytes, size_t count)
{
    char path[PATH_BYTES];

    path_of(path, dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, bytes, count) != (ssize_t)count) {
        abort();
    }
    (void)close(fd);
}

#define FILE_MAX_BYTES (4u * 1024 * 1024)

/* The file that a story begins with. */
struct begun {
    char *bytes; /* FILE_MAX_BYTES */
    size_t count;
};

/* --- Processes ----------------------------------------------------------------------------------
 */

static void redirect_stderr(const char *dir)
{
    char path[PATH_BYTES];

    path_of(path, dir, "stderr");
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0) {
        abort();
    }
}

/* Plays it in a child; its status. */
static int play(const struct story *story, const char *dir, enum torture_kind kind, uint64_t nth)
{
    int status = 0;

    (void)memset(report, 0, sizeof(*report));
    torture_arm(kind, nth);
    torture_disarm();
    (void)fflush(NULL);
    pid_t child = fork();

    if (child == 0) {
        (void)alarm(HANG_S);
        redirect_stderr(dir);
        story_tell(story, dir, kind, nth);
        torture_disarm();
        if (story->is_killed && nth == 0) {
            (void)raise(SIGKILL);
        }
        exit(0);
    }
    while (waitpid(child, &status, 0) < 0) {
    }
    torture_disarm();
    return status;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Looks at what is on disk, in a child: LMDB and libuv never run in this process. */
static int inspect(const struct story *story, const char *dir)
{
    const struct report before = *report;
    int status = 0;

    (void)fflush(NULL);
    pid_t child = fork();

    if (child == 0) {
        struct store_options options = story_options(story, dir);
        struct contents contents = {.payload_bytes = story->payload_bytes};
        struct store *store = NULL;
        struct err err = {{0}};
        uv_loop_t loop;

        (void)alarm(HANG_S);
        (void)uv_loop_init(&loop);
        story_must(store_open(&loop, &options, &store, &err), &err);
        story_must(story_read(store, &contents, &err), &err);
        bool was_set_aside = store_stats(store).was_set_aside;
        /* What is owed may find no room at the end of a store that is full. */
        struct expected expected = {.first = story->is_damaged ? story->before + 1 : 1,
                                    .answered = before.answered,
                                    .tried = before.tried,
                                    .is_all_due =
                                        before.is_closed && story->options.map_max_bytes == 0};

        if (!story->is_damaged) {
            expected.answered = larger(expected.answered, story->before);
            expected.tried = larger(expected.tried, story->before);
        }
        const char *fault = contents_fault(&contents, &expected);

        /* A file whose making was broken off never held anything. */
        if (was_set_aside && !story->is_damaged && expected.answered > 0) {
            fault = store_open_sentence(store).ptr;
        }
        bool is_good = fault[0] == '\0';

        (void)snprintf(report->text, sizeof(report->text), "%s", fault);
        store_close(store, NULL, NULL);
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&loop);
        exit(is_good ? 0 : 1);
    }
    while (waitpid(child, &status, 0) < 0) {
    }
    return status;
}

/* --- Verdicts -----------------------------------------------------------------------------------
 */

static uint32_t failures;
static uint32_t plays;
static uint32_t ends; /* of them ended for want of memory */

static void complain(const struct story *story, enum torture_kind kind, uint64_t nth,
                     const char *what, const char *detail)
{
    failures++;
    (void)printf("FAIL %s, call %llu of %s: %s%s%s\n     again: torture_store --only %s --kind %s "
                 "--call %llu\n",
                 story->name, (unsigned long long)nth, torture_kind_name(kind), what,
                 detail[0] == '\0' ? "" : ": ", detail, story->name, torture_kind_name(kind),
                 (unsigned long long)nth);
}

/* Ending for want of memory or of a thread is allowed where it is said. */
static bool is_allowed_end(int status, enum torture_kind kind, const char *said)
{
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) {
        return false;
    }
    bool is_ours = strstr(said, "tallyman: out of memory") != NULL;
    bool is_libuvs = strstr(said, "abort() was called by ") != NULL && strstr(said, "/libuv.so");

    return (kind == TORTURE_alloc && is_ours) || is_libuvs;
}

static bool is_kept_aside(const char *dir, const struct begun *begun)
{
    char *bytes = mem_alloc(FILE_MAX_BYTES);
    bool is_kept = false;

    for (size_t i = 0; i < sizeof(file_names) / sizeof(file_names[0]); i++) {
        size_t count = read_file(dir, file_names[i], bytes, FILE_MAX_BYTES);

        is_kept |= strncmp(file_names[i], "data.mdb", 8) == 0 && count == begun->count &&
                   memcmp(bytes, begun->bytes, count) == 0;
    }
    mem_free(bytes);
    return is_kept;
}

/* False: it ended as no process may. */
static bool judge_end(const struct story *story, enum torture_kind kind, uint64_t nth, int status,
                      const char *said)
{
    if (is_allowed_end(status, kind, said)) {
        ends++;
        return true;
    }
    if (WIFSIGNALED(status)) {
        complain(story, kind, nth, strsignal(WTERMSIG(status)), said);
        return false;
    }
    if (WEXITSTATUS(status) != 0) {
        complain(story, kind, nth, report->text[0] == '\0' ? "a bad end" : report->text, said);
        return false;
    }
    if (report->is_open && !story->options.is_read_only && !report->is_closed) {
        complain(story, kind, nth, "it wasn't closed", "");
    }
    return true;
}

static void judge(const struct story *story, const char *dir, const struct begun *begun,
                  enum torture_kind kind, uint64_t nth, int status)
{
    char said[4096] = "";
    size_t length = read_file(dir, "stderr", said, sizeof(said) - 1);

    said[length] = '\0';
    if (!judge_end(story, kind, nth, status, said)) {
        return;
    }
    if (report->is_read && report->text[0] != '\0') {
        complain(story, kind, nth, report->text, "");
    }
    if (report->was_set_aside && !story->is_damaged) {
        complain(story, kind, nth, "a whole file was set aside", "");
    }
    if (story->is_damaged && !is_kept_aside(dir, begun)) {
        complain(story, kind, nth, "the damaged file is gone", "");
    }
    if (inspect(story, dir) != 0) {
        complain(story, kind, nth, "afterwards", report->text);
    }
}

static void begin(const char *dir, const struct begun *begun)
{
    empty_dir(dir);
    if (begun->count > 0) {
        write_file(dir, "data.mdb", begun->bytes, begun->count);
    }
}

static void play_one(const struct story *story, const char *dir, const struct begun *begun,
                     enum torture_kind kind, uint64_t nth)
{
    begin(dir, begun);
    int status = play(story, dir, kind, nth);

    plays++;
    if (is_verbose) {
        (void)printf("%s %s %llu: %s\n", story->name, torture_kind_name(kind),
                     (unsigned long long)nth, report->text);
    }
    judge(story, dir, begun, kind, nth, status);
}

/* The file that the story begins with, written by the store itself. */
static void prepare(const struct story *story, const char *dir, struct begun *ret_begun)
{
    struct story first = {.name = story->name,
                          .batches = story->before,
                          .payload_bytes = story->payload_bytes,
                          .is_killed = story->is_killed};

    ret_begun->count = 0;
    if (story->before == 0) {
        return;
    }
    begin(dir, ret_begun);
    (void)play(&first, dir, TORTURE_alloc, 0);
    if (report->answered != story->before) {
        abort();
    }
    ret_begun->count = read_file(dir, "data.mdb", ret_begun->bytes, FILE_MAX_BYTES);
    if (story->is_damaged) {
        (void)memset(ret_begun->bytes + ret_begun->count / 2, 0x5a, ret_begun->count / 2);
    }
}

struct choice {
    const char *story;
    const char *kind;
    uint64_t call;
    bool is_all;
};

static void play_kind(const struct story *story, const char *dir, const struct begun *begun,
                      enum torture_kind kind, const struct choice *choice)
{
    begin(dir, begun);
    int status = play(story, dir, TORTURE_KIND_COUNT, 0);
    uint64_t calls = torture_calls(kind);

    if (status != 0 && !(story->is_killed && WIFSIGNALED(status))) {
        complain(story, kind, 0, "it fails by itself", report->text);
        return;
    }
    uint64_t step = choice->is_all || calls <= SOME_CALLS ? 1 : calls / SOME_CALLS;

    for (uint64_t nth = 1; nth <= calls; nth += step) {
        if (choice->call == 0 || choice->call == nth) {
            play_one(story, dir, begun, kind, nth);
        }
    }
    if (is_verbose || choice->is_all) {
        (void)printf("%-8s %-12s %4llu calls\n", story->name, torture_kind_name(kind),
                     (unsigned long long)calls);
    }
}

static void play_story(const struct story *story, const struct choice *choice)
{
    struct begun begun = {mem_alloc(FILE_MAX_BYTES), 0};
    char dir[PATH_BYTES];

    path_of(dir, top_dir, story->name);
    if (mkdir(dir, 0700) != 0) {
        abort();
    }
    prepare(story, dir, &begun);
    for (int kind = 0; kind < TORTURE_KIND_COUNT; kind++) {
        if (choice->kind == NULL ||
            strcmp(choice->kind, torture_kind_name((enum torture_kind)kind)) == 0) {
            play_kind(story, dir, &begun, (enum torture_kind)kind, choice);
        }
    }
    empty_dir(dir);
    (void)rmdir(dir);
    mem_free(begun.bytes);
}

static bool take_options(int argc, char **argv, struct choice *ret)
{
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;

        if (strcmp(argv[i], "--all") == 0) {
            ret->is_all = true;
        } else if (strcmp(argv[i], "--verbose") == 0) {
            is_verbose = true;
        } else if (strcmp(argv[i], "--only") == 0 && has_value) {
            ret->story = argv[++i];
        } else if (strcmp(argv[i], "--kind") == 0 && has_value) {
            ret->kind = argv[++i];
        } else if (strcmp(argv[i], "--call") == 0 && has_value) {
            ret->call = strtoull(argv[++i], NULL, 10);
            ret->is_all = true;
        } else {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct choice choice = {0};
    const char *place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

    if (!take_options(argc, argv, &choice)) {
        (void)fprintf(stderr, "usage: torture_store [--all] [--only STORY] [--kind KIND] "
                              "[--call N] [--verbose]\n");
        return 2;
    }
    report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)snprintf(top_dir, sizeof(top_dir), "%s/tallyman-torture-XXXXXX", place);
    if (report == MAP_FAILED || mkdtemp(top_dir) == NULL) {
        perror("torture_store");
        return 1;
    }
    for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++) {
        if (choice.story == NULL ? choice.is_all || stories[i].is_short
                                 : strcmp(choice.story, stories[i].name) == 0) {
            play_story(&stories[i], &choice);
        }
    }
    (void)rmdir(top_dir);
    (void)printf("%u stories played, %u ended for want of memory and said so, %u failed\n", plays,
                 ends, failures);
    return failures == 0 && plays > 0 ? 0 : 1;
}
