/* Killed at any moment, the file holds the first n batches, and n covers all that were answered.
 *
 * SIGKILL keeps what the kernel has taken, so this shows that a transaction is whole or absent and
 * that nothing is answered too early; that fsync reaches the disk is LMDB's and the kernel's word.
 */
#include <signal.h>
#include <sys/wait.h>

#include "fixture.h"

#define ROUNDS 60

struct writer {
    struct fixture f;
    uint64_t next;
    uint64_t answered;
    int fd;
};

#define UNANSWERED_MAX 256

static void on_answer(void *ctx, struct rc rc, struct str sentence)
{
    struct writer *writer = ctx;

    (void)sentence;
    if (rc.code == RC_OK) {
        writer->answered++;
        /* The parent keeps the last one that it could read. */
        if (write(writer->fd, &writer->answered, sizeof(writer->answered)) < 0) {
            _exit(2);
        }
    }
}

static void commit_one(struct writer *writer)
{
    struct store_batch *batch = store_batch_new();
    char text[32];
    static char filler[3000];
    uint64_t i = writer->next++;

    memset(filler, 'f', sizeof(filler));
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)i);
    put_gang(&writer->f, batch, "last", text);
    add_ledger(&writer->f, batch, (int64_t)i, str_from_c(text));
    put_gang(&writer->f, batch, text, "one of its own");
    add_journal(&writer->f, batch, (int64_t)i,
                (struct str){filler, (size_t)(i * 7919 % sizeof(filler))});
    check_ok(&writer->f, store_commit(writer->f.store, batch, on_answer, writer, &writer->f.err));
}

/* Commits in bursts until it is killed. */
static NORETURN void child_main(const struct fixture *parent, int fd)
{
    struct writer *writer = MEM_NEW(struct writer);

    writer->fd = fd;
    writer->f.options = parent->options;
    writer->f.options.on_health = NULL;
    (void)uv_loop_init(&writer->f.loop);
    if (rc_failed(
            store_open(&writer->f.loop, &writer->f.options, &writer->f.store, &writer->f.err))) {
        _exit(3);
    }
    writer->next = store_stats(writer->f.store).journal_next_seq;
    writer->answered = writer->next - 1;
    for (;;) {
        for (uint64_t i = 0; i < 1 + writer->next % 5; i++) {
            commit_one(writer);
        }
        (void)uv_run(&writer->f.loop, writer->next % 3 == 0 ? UV_RUN_NOWAIT : UV_RUN_ONCE);
        /* On a slow disk the store would say that it can't keep up, which isn't the matter here. */
        while (writer->next - 1 - writer->answered > UNANSWERED_MAX) {
            (void)uv_run(&writer->f.loop, UV_RUN_ONCE);
        }
    }
}

/* Kills the writer after `wait_us`; the last number that it said was on disk. */
static uint64_t run_and_kill(struct fixture *f, useconds_t wait_us)
{
    int fds[2];
    int status = 0;
    uint64_t answered = 0;
    uint64_t number = 0;

    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();

    if (child == 0) {
        (void)close(fds[0]);
        child_main(f, fds[1]);
    }
    (void)close(fds[1]);
    /* It lives: the wait counts from here. A pipe holds more than is said in this time. */
    if (read(fds[0], &number, sizeof(number)) == sizeof(number)) {
        answered = number;
    }
    (void)usleep(wait_us);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    while (read(fds[0], &number, sizeof(number)) == sizeof(number)) {
        answered = number;
    }
    (void)close(fds[0]);
    return answered;
}

struct seen {
    uint64_t count;
    uint64_t last;
    bool is_gapless;
};

static bool see_record(void *ctx, uint64_t seq, const struct store_record *record)
{
    struct seen *seen = ctx;

    seen->is_gapless = seen->is_gapless && seq == seen->last + 1 && record->time_ms == (int64_t)seq;
    seen->last = seq;
    seen->count++;
    return true;
}

static bool find_last(void *ctx, struct str key, struct str value)
{
    int64_t number = 0;

    if (str_eq_c(key, "last")) {
        assert_true(str_to_i64(value, &number));
        *(uint64_t *)ctx = (uint64_t)number;
    }
    return true;
}

static void expect_prefix(struct fixture *f, uint64_t answered)
{
    struct seen journal = {.is_gapless = true};
    struct seen ledger = {.is_gapless = true};
    uint64_t last = 0;

    open_store(f);
    check_str(store_open_sentence(f->store), "");
    check_ok(f, store_read_journal(f->store, 0, see_record, &journal, &f->err));
    check_ok(f, store_read_ledger(f->store, 0, INT64_MAX, see_record, &ledger, &f->err));
    check_ok(f, store_read_gangs(f->store, find_last, &last, &f->err));
    assert_true(journal.is_gapless);
    assert_true(ledger.is_gapless);
    assert_int_equal(journal.count, ledger.count);
    assert_int_equal(journal.count, last);
    assert_int_equal(store_stats(f->store).gang_records, last == 0 ? 0 : last + 1);
    assert_true(last >= answered);
    close_store(f);
}

static void killed_at_any_moment_it_holds_a_prefix(void **state)
{
    struct fixture *f = *state;
    uint64_t random = 2463534242u;
    uint64_t answered = 0;

    f->options.map_first_bytes = 256 * 1024; /* it grows under way, too */
    /* A fast disk must not bring it to the point where the oldest go. */
    f->options.journal_max_bytes = 512 * 1024 * 1024;
    f->options.map_max_bytes = 2048ul * 1024 * 1024;
    for (int round = 0; round < ROUNDS; round++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        answered = run_and_kill(f, (useconds_t)(random % 25000));
        expect_prefix(f, answered);
    }
    assert_true(answered > ROUNDS);
}

static void killed_while_it_is_made_it_opens(void **state)
{
    struct fixture *f = *state;

    for (int round = 0; round < 30; round++) {
        char path[512];
        pid_t child = fork();

        if (child == 0) {
            child_main(f, open("/dev/null", O_WRONLY));
        }
        (void)usleep((useconds_t)(round * 400));
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        open_store(f);
        check_str(store_open_sentence(f->store), "");
        close_store(f);
        file_path(f, "data.mdb", path);
        assert_int_equal(unlink(path), 0);
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(killed_at_any_moment_it_holds_a_prefix),
        T(killed_while_it_is_made_it_opens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
