/* A volume that is really full: a small tmpfs. Mounting takes root; without it these are skipped,
 * and test_full.c plays the same with a limit on the file's size. */
#include <errno.h>
#include <sys/mount.h>

#include "fixture.h"

static int setup_volume(void **state)
{
    (void)fixture_setup(state);
    struct fixture *f = *state;

    f->is_mounted = mount("tmpfs", f->dir, "tmpfs", 0, "size=2m") == 0;
    if (!f->is_mounted) {
        print_message("no volume can be mounted: %s\n", strerror(errno));
    }
    return 0;
}

static int teardown_volume(void **state)
{
    struct fixture *f = *state;

    close_store(f);
    if (f->is_mounted) {
        assert_int_equal(umount(f->dir), 0);
    }
    return fixture_teardown(state);
}

static void needs_volume(const struct fixture *f)
{
    if (!f->is_mounted) {
        skip();
    }
}

static void a_full_volume_costs_old_journal_first(void **state)
{
    struct fixture *f = *state;

    needs_volume(f);
    open_store(f);
    for (int i = 1; i <= 500; i++) {
        assert_int_equal(commit_journal_bytes(f, i, 20000), RC_OK);
    }
    assert_int_equal(f->health_calls, 0);
    assert_true(store_stats(f->store).shed_journal > 300);
    assert_in_range(journal_count(f), 20, 100);
    reopen_store(f);
    check_str(store_open_sentence(f->store), "");
}

static void a_full_volume_degrades_and_recovers(void **state)
{
    struct fixture *f = *state;
    static char value[20000];
    uint64_t written = 0;

    needs_volume(f);
    open_store(f);
    memset(value, 'g', sizeof(value));
    for (uint64_t i = 0; f->failed == 0; i++) {
        struct store_batch *batch = store_batch_new();
        char key[32];

        (void)snprintf(key, sizeof(key), "gang-%llu", (unsigned long long)i);
        check_ok(f, store_batch_put_gang(batch, str_from_c(key), (struct str){value, sizeof(value)},
                                         &f->err));
        commit(f, batch);
        run_until_answered(f, f->ok + f->failed + 1);
        written++;
    }
    assert_true(f->is_degraded);
    assert_non_null(strstr(f->last_sentence, "No space left on device; look after the volume"));
    assert_int_equal(store_stats(f->store).gang_records, written - 1);

    assert_int_equal(mount("tmpfs", f->dir, "tmpfs", MS_REMOUNT, "size=8m"), 0);
    while (f->is_degraded) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_int_equal(store_stats(f->store).gang_records, written);
    reopen_store(f);
    check_str(store_open_sentence(f->store), "");
    assert_int_equal(store_stats(f->store).gang_records, written);
}

static void a_volume_without_room_for_a_new_store_is_said(void **state)
{
    struct fixture *f = *state;
    static char filler[1024 * 1024];

    needs_volume(f);
    write_file(f, "filler", filler, sizeof(filler));
    write_file(f, "more", filler, sizeof(filler) - 8192);
    struct rc rc = store_open(&f->loop, &f->options, &f->store, &f->err);

    assert_int_equal(rc.code, RC_IO);
    assert_non_null(strstr(f->err.text, "data.mdb can't be used: "));
    f->store = NULL;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup_volume, teardown_volume)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_full_volume_costs_old_journal_first),
        T(a_full_volume_degrades_and_recovers),
        T(a_volume_without_room_for_a_new_store_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
