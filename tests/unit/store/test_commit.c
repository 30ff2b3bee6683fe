/* What is committed is there afterwards, in order, and answered once. */
#include "fixture.h"

static void what_was_committed_is_there_after_a_restart(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = store_batch_new();

    open_store(f);
    assert_true(store_stats(f->store).is_new);
    assert_false(store_stats(f->store).was_set_aside);
    check_str(store_open_sentence(f->store), "");
    put_gang(f, batch, "uid-a", "backoff=3");
    put_gang(f, batch, "uid-b", "backoff=1");
    add_ledger(f, batch, 500, STR("admitted"));
    add_journal(f, batch, 501, STR("event"));
    add_journal(f, batch, 502, STR("effect"));
    assert_int_equal(store_batch_count(batch), 5);
    commit(f, batch);
    assert_int_equal(f->ok, 0);
    run_until_answered(f, 1);
    assert_int_equal(f->ok, 1);
    assert_int_equal(store_stats(f->store).gang_records, 2);

    reopen_store(f);
    assert_false(store_stats(f->store).is_new);
    assert_int_equal(store_stats(f->store).gang_records, 2);
    expect_gangs(f, "uid-a=backoff=3 uid-b=backoff=1");
    expect_journal(f, 0, "1@501:event 2@502:effect");
    assert_int_equal(store_stats(f->store).journal_next_seq, 3);
    assert_int_equal(store_stats(f->store).ledger_next_seq, 2);
}

static void the_last_put_or_delete_wins(void **state)
{
    struct fixture *f = *state;
    struct store_batch *first = store_batch_new();
    struct store_batch *second = store_batch_new();

    open_store(f);
    put_gang(f, first, "a", "1");
    put_gang(f, first, "b", "1");
    put_gang(f, first, "b", "2");
    check_ok(f, store_batch_delete_gang(first, STR("c"), &f->err));
    put_gang(f, first, "c", "");
    check_ok(f, store_batch_delete_gang(second, STR("a"), &f->err));
    check_ok(f, store_batch_delete_gang(second, STR("never-there"), &f->err));
    put_gang(f, second, "b", "3");
    commit(f, first);
    commit(f, second);
    run_until_answered(f, 2);
    assert_int_equal(f->failed, 0);
    expect_gangs(f, "b=3 c=");
}

struct order {
    uint32_t next;
    bool is_inside_commit;
    struct fixture *f;
};

struct order_entry {
    struct order *order;
    uint32_t number;
};

static void on_ordered(void *ctx, struct rc rc, struct str sentence)
{
    struct order_entry *entry = ctx;

    (void)sentence;
    assert_int_equal(rc.code, RC_OK);
    assert_false(entry->order->is_inside_commit);
    assert_int_equal(entry->number, entry->order->next);
    entry->order->next++;
    entry->order->f->ok++;
}

static void callbacks_come_in_order_once_and_never_inside_commit(void **state)
{
    struct fixture *f = *state;
    static struct order_entry entries[500];
    struct order order = {.f = f};

    open_store(f);
    for (uint32_t i = 0; i < 500; i++) {
        struct store_batch *batch = store_batch_new();
        char text[16];

        (void)snprintf(text, sizeof(text), "%u", i);
        put_gang(f, batch, "last", text);
        add_journal(f, batch, i, str_from_c(text));
        entries[i] = (struct order_entry){&order, i};
        order.is_inside_commit = true;
        check_ok(f, store_commit(f->store, batch, on_ordered, &entries[i], &f->err));
        order.is_inside_commit = false;
        if (i % 100 == 50) {
            (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        }
    }
    run_until_answered(f, 500);
    assert_int_equal(order.next, 500);
    /* They shared transactions: one fsync for many. */
    assert_in_range(store_stats(f->store).commits, 1, 20);
    assert_int_equal(store_stats(f->store).batches, 500);
    expect_gangs(f, "last=499");
    expect_journal(f, 499, "499@498:498 500@499:499");
}

static void an_empty_batch_and_no_callback_are_fine(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    check_ok(f, store_commit(f->store, store_batch_new(), NULL, NULL, &f->err));
    commit(f, store_batch_new());
    run_until_answered(f, 1);
    assert_int_equal(f->ok, 1);
}

struct chain {
    struct fixture *f;
    uint32_t left;
};

static void on_chain(void *ctx, struct rc rc, struct str sentence)
{
    struct chain *chain = ctx;

    on_commit(chain->f, rc, sentence);
    if (chain->left > 0) {
        struct store_batch *batch = store_batch_new();

        chain->left--;
        put_gang(chain->f, batch, "chain", "x");
        check_ok(chain->f, store_commit(chain->f->store, batch, on_chain, chain, &chain->f->err));
    }
}

static void a_callback_may_commit_again(void **state)
{
    struct fixture *f = *state;
    struct chain chain = {f, 5};

    open_store(f);
    check_ok(f, store_commit(f->store, store_batch_new(), on_chain, &chain, &f->err));
    run_until_answered(f, 6);
    assert_int_equal(f->ok, 6);
}

static void closing_writes_what_is_queued(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    for (int i = 0; i < 20; i++) {
        struct store_batch *batch = store_batch_new();

        add_journal(f, batch, i, STR("x"));
        commit(f, batch);
    }
    close_store(f);
    assert_int_equal(f->ok, 20);
    open_store(f);
    assert_int_equal(journal_count(f), 20);
}

static void the_ledger_is_read_by_time(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = store_batch_new();
    char text[4096] = "";

    open_store(f);
    add_ledger(f, batch, 300, STR("c"));
    add_ledger(f, batch, 100, STR("a"));
    add_ledger(f, batch, 200, STR("b1"));
    add_ledger(f, batch, 200, STR("b2"));
    add_ledger(f, batch, 400, STR("d"));
    commit(f, batch);
    run_until_answered(f, 1);
    check_ok(f, store_read_ledger(f->store, 200, 400, append_record, text, &f->err));
    assert_string_equal(text, "3@200:b1 4@200:b2 1@300:c");
    text[0] = '\0';
    check_ok(f, store_read_ledger(f->store, -5, 101, append_record, text, &f->err));
    assert_string_equal(text, "2@100:a");
}

static bool stop_at_once(void *ctx, uint64_t seq, const struct store_record *record)
{
    (void)append_record(ctx, seq, record);
    return false;
}

static void a_reader_stops_and_goes_on(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = store_batch_new();
    char text[4096] = "";

    open_store(f);
    add_journal(f, batch, 1, STR("one"));
    add_journal(f, batch, 2, STR("two"));
    commit(f, batch);
    run_until_answered(f, 1);
    check_ok(f, store_read_journal(f->store, 0, stop_at_once, text, &f->err));
    check_ok(f, store_read_journal(f->store, 2, stop_at_once, text, &f->err));
    check_ok(f, store_read_journal(f->store, 3, stop_at_once, text, &f->err));
    assert_string_equal(text, "1@1:one 2@2:two");
}

static void bytes_are_opaque(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = store_batch_new();
    static char large[3 * 1024 * 1024];
    static const char key[] = {'\0', '\xff', 'k'};
    char text[4096] = "";

    memset(large, '\0', sizeof(large));
    large[sizeof(large) - 1] = 'z';
    open_store(f);
    check_ok(f, store_batch_put_gang(batch, (struct str){key, sizeof(key)},
                                     (struct str){large, sizeof(large)}, &f->err));
    add_journal(f, batch, INT64_MAX, (struct str){large, sizeof(large)});
    commit(f, batch);
    run_until_answered(f, 1);
    assert_int_equal(f->ok, 1);
    reopen_store(f);
    check_str(store_open_sentence(f->store), "");
    assert_int_equal(store_stats(f->store).gang_records, 1);
    check_ok(f, store_read_journal(f->store, 0, append_record, text, &f->err));
    assert_int_equal(strncmp(text, "1@9223372036854775807:", 22), 0);
}

static void what_is_too_large_is_refused_with_a_sentence(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = store_batch_new();
    static char large[STORE_RECORD_MAX_BYTES + 1];
    struct rc rc;

    rc = store_batch_put_gang(batch, STR("k"), (struct str){large, sizeof(large)}, &f->err);
    assert_int_equal(rc.code, RC_LIMIT);
    assert_string_equal(f->err.text, "a record for the store's gangs has 8388609 bytes, at most "
                                     "8388608 are taken");
    rc = store_batch_put_gang(batch, (struct str){large, 401}, STR("v"), &f->err);
    assert_int_equal(rc.code, RC_LIMIT);
    assert_string_equal(f->err.text,
                        "a key for the store's gangs has 401 bytes, 1 to 400 are taken");
    rc = store_batch_delete_gang(batch, STR(""), &f->err);
    assert_int_equal(rc.code, RC_LIMIT);
    for (int i = 0; i < 3; i++) {
        check_ok(f, store_batch_put_gang(batch, STR("k"), (struct str){large, sizeof(large) - 1},
                                         &f->err));
    }
    rc = store_batch_put_gang(batch, STR("k"), (struct str){large, sizeof(large) - 1}, &f->err);
    assert_int_equal(rc.code, RC_LIMIT);
    assert_int_equal(store_batch_count(batch), 3);
    store_batch_free(batch);
    store_batch_free(NULL);
    store_close(NULL, NULL, NULL);
}

static void a_full_queue_refuses_and_leaves_the_batch(void **state)
{
    struct fixture *f = *state;
    struct rc rc = RC_SUCCESS;
    struct store_batch *batch = NULL;
    uint32_t accepted = 0;

    open_store(f);
    while (accepted <= STORE_QUEUE_MAX_BATCHES) {
        batch = store_batch_new();
        put_gang(f, batch, "k", "v");
        rc = store_commit(f->store, batch, on_commit, f, &f->err);
        if (rc_failed(rc)) {
            break;
        }
        accepted++;
    }
    assert_int_equal(rc.code, RC_LIMIT);
    assert_int_equal(accepted, STORE_QUEUE_MAX_BATCHES);
    assert_non_null(strstr(f->err.text, "can't keep up: 8192 batches"));
    run_until_answered(f, accepted);
    commit(f, batch);
    run_until_answered(f, accepted + 1);
    assert_int_equal(f->ok, accepted + 1);
}

static void on_idle(uv_idle_t *idle)
{
    ++*(uint64_t *)idle->data;
}

static void the_loop_turns_while_a_large_transaction_is_written(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = store_batch_new();
    static char large[STORE_RECORD_MAX_BYTES];
    uint64_t turns = 0;
    uv_idle_t idle;

    open_store(f);
    for (int i = 0; i < 3; i++) {
        add_journal(f, batch, i, (struct str){large, sizeof(large)});
    }
    (void)uv_idle_init(&f->loop, &idle);
    idle.data = &turns;
    (void)uv_idle_start(&idle, on_idle);
    commit(f, batch);
    run_until_answered(f, 1);
    assert_true(turns > 10);
    assert_true(store_stats(f->store).last_commit_us > 0);
    uv_close((uv_handle_t *)&idle, NULL);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT); /* the handle lives on this stack */
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_was_committed_is_there_after_a_restart),
        T(the_last_put_or_delete_wins),
        T(callbacks_come_in_order_once_and_never_inside_commit),
        T(an_empty_batch_and_no_callback_are_fine),
        T(a_callback_may_commit_again),
        T(closing_writes_what_is_queued),
        T(the_ledger_is_read_by_time),
        T(a_reader_stops_and_goes_on),
        T(bytes_are_opaque),
        T(what_is_too_large_is_refused_with_a_sentence),
        T(a_full_queue_refuses_and_leaves_the_batch),
        T(the_loop_turns_while_a_large_transaction_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
