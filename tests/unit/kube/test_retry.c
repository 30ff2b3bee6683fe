#include "support/check.h"
#include "tallyman/base/limits.h"
#include "tallyman/kube/retry.h"

static void waits_double_up_to_their_bound(void **state)
{
    struct kube_backoff backoff;
    int64_t expected_ms = 100;
    (void)state;
    kube_backoff_init(&backoff, 100, 3000, 7);
    for (int i = 0; i < 40; i++) {
        int64_t wait_ms = kube_backoff_next_ms(&backoff, 0);
        assert_true(wait_ms >= expected_ms / 2 && wait_ms <= expected_ms);
        expected_ms = expected_ms * 2 > 3000 ? 3000 : expected_ms * 2;
    }
}

static void a_success_begins_anew(void **state)
{
    struct kube_backoff backoff;
    (void)state;
    kube_backoff_init(&backoff, 100, 3000, 7);
    for (int i = 0; i < 10; i++) {
        assert_true(kube_backoff_next_ms(&backoff, 0) > 0);
    }
    kube_backoff_reset(&backoff);
    assert_true(kube_backoff_next_ms(&backoff, 0) <= 100);
}

static void the_seed_decides_and_seeds_differ(void **state)
{
    struct kube_backoff one;
    struct kube_backoff same;
    struct kube_backoff other;
    int differences = 0;
    (void)state;
    kube_backoff_init(&one, 1000, 60000, 1);
    kube_backoff_init(&same, 1000, 60000, 1);
    kube_backoff_init(&other, 1000, 60000, 2);
    for (int i = 0; i < 20; i++) {
        int64_t wait_ms = kube_backoff_next_ms(&one, 0);
        check_i64(kube_backoff_next_ms(&same, 0), wait_ms);
        differences += kube_backoff_next_ms(&other, 0) != wait_ms;
    }
    assert_true(differences > 10);
}

static void what_the_server_asks_for_is_kept(void **state)
{
    struct kube_backoff backoff;
    (void)state;
    kube_backoff_init(&backoff, 10, 100, 7);
    for (int i = 0; i < 20; i++) {
        int64_t wait_ms = kube_backoff_next_ms(&backoff, 5000);
        assert_true(wait_ms >= 5000 && wait_ms <= 5100);
    }
    assert_true(kube_backoff_next_ms(&backoff, INT64_MAX) <= KUBE_RETRY_AFTER_MAX_MS + 100);
}

static void large_bounds_do_not_overflow(void **state)
{
    struct kube_backoff backoff;
    (void)state;
    kube_backoff_init(&backoff, 1, INT64_MAX, 7);
    for (int i = 0; i < 200; i++) {
        assert_true(kube_backoff_next_ms(&backoff, 0) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_double_up_to_their_bound),
        cmocka_unit_test(a_success_begins_anew),
        cmocka_unit_test(the_seed_decides_and_seeds_differ),
        cmocka_unit_test(what_the_server_asks_for_is_kept),
        cmocka_unit_test(large_bounds_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
