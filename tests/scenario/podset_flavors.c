/* Gangs of two pod sets in a queue with two groups of two flavors: each set finds the first flavors
 * that hold it together with the other, and what was tried is told by set and group. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define GPU "example.com/gpu"

static void given_world(struct scenario *s)
{
    given_node(s, "n1", "cpu=64 " GPU "=64 label=cpu:old label=gpu:small");
    given_node(s, "n2", "cpu=64 " GPU "=64 label=cpu:new label=gpu:large");
    given_node(s, "n3", "cpu=64 " GPU "=64 label=cpu:old label=gpu:large");
    given_flavor(s, "old", "label=cpu:old");
    given_flavor(s, "new", "label=cpu:new");
    given_flavor(s, "small", "label=gpu:small");
    given_flavor(s, "large", "label=gpu:large");
}

/* The record says so of the set, of which there are so many pods. */
static void expect_flavors(struct scenario *s, const char *job, const char *set, const char *cpu,
                           const char *gpu)
{
    struct str record =
        string_map_get(&scenario_job(s, job)->meta.annotations, "tallyman.dev/admission");
    char copy[4096];
    (void)snprintf(copy, sizeof(copy), STR_FMT, STR_ARG(record));
    char text[200];
    (void)snprintf(text, sizeof(text), "\"flavors\":{\"cpu\":\"%s\",\"" GPU "\":\"%s\"}", cpu, gpu);
    char name[60];
    (void)snprintf(name, sizeof(name), "\"name\":\"%s\"", set);
    const char *at = strstr(copy, name);
    assert_non_null(at);
    const char *flavors = strstr(at, "\"flavors\"");
    assert_non_null(flavors);
    assert_memory_equal(flavors, text, strlen(text));
}

static void each_set_finds_its_flavors(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_queue(s, "q",
                "flavor=old cpu=3 flavor=new cpu=20 group=new flavor=small " GPU
                "=2 flavor=large " GPU "=20");
    /* Both sets of `a` together have room on old alone, its workers' devices only on large. */
    given_pod_set(s, "a", "worker", "pods=4 cpu=1 " GPU "=1");
    given_job(s, "a", "q", "pods=1 cpu=1 " GPU "=1");
    expect_state(s, "a", "Admitted");
    expect_flavors(s, "a", "main", "old", "small");
    expect_flavors(s, "a", "worker", "new", "large");
    expect_used(s, "q", "cpu=5 " GPU "=5");

    /* The launcher of `b` is the one that is short: whatever its workers choose is no help. */
    given_pod_set(s, "b", "worker", "pods=1 cpu=1 " GPU "=1");
    given_job(s, "b", "q", "pods=30 cpu=1 " GPU "=1");
    expect_state(s, "b", "Pending NeverFits");

    given_pod_set(s, "c", "worker", "pods=1 cpu=1 " GPU "=1");
    given_job(s, "c", "q", "pods=4 cpu=1 " GPU "=1");
    expect_state(s, "c", "Admitted");
    expect_flavors(s, "c", "main", "new", "large");
    expect_flavors(s, "c", "worker", "old", "small");
}

/* What was tried is one line for each combination, groups joined by +, sets by /. */
static void combinations_are_told_by_set_and_group(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_queue(s, "q",
                "flavor=old cpu=3 flavor=new cpu=9 group=new flavor=small " GPU
                "=2 flavor=large " GPU "=9");
    given_job(s, "first", "q", "pods=8 cpu=1 " GPU "=1");
    expect_state(s, "first", "Admitted");
    expect_flavors(s, "first", "main", "new", "large");
    given_pod_set(s, "a", "worker", "pods=3 cpu=1 " GPU "=1");
    given_job(s, "a", "q", "pods=1 cpu=1 " GPU "=1");
    expect_state(s, "a", "Pending QuotaExhausted");
    const struct explanation *told =
        ((const struct admission *)scenario_object(s, KIND_ADMISSION, "a"))->status.explanation;
    assert_non_null(told);
    bool is_found = false;
    for (uint32_t i = 0; i < told->flavors.count; i++) {
        is_found = is_found || str_eq_c(told->flavors.items[i].name, "old+small/old+small");
    }
    assert_true(is_found);
}

/* A gang that may preempt finds the combination in which others have to go, of both sets. */
static void victims_are_sought_on_the_flavors_of_both_sets(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_priority_class(s, "high", 10);
    given_queue(s, "q",
                "flavor=old cpu=4 flavor=new cpu=4 group=new flavor=small " GPU
                "=4 flavor=large " GPU "=4 within=LowerPriority");
    given_job(s, "low1", "q", "pods=4 cpu=1 " GPU "=1");
    given_job(s, "low2", "q", "pods=4 cpu=1 " GPU "=1");
    gang_starts(s, "low1", "n1 n1 n1 n1");
    gang_starts(s, "low2", "n2 n2 n2 n2");
    expect_used(s, "q", "cpu=8 " GPU "=8");
    given_pod_set(s, "urgent", "worker", "pods=4 cpu=1 " GPU "=1 priority=high");
    given_job(s, "urgent", "q", "pods=4 cpu=1 " GPU "=1 priority=high");
    expect_state(s, "urgent", "Reserved WaitingForVictims");
    expect_state(s, "low1", "Suspending WaitingForTermination");
    expect_state(s, "low2", "Suspending WaitingForTermination");
    gang_stops(s, "low1");
    gang_stops(s, "low2");
    expect_state(s, "urgent", "Admitted");
    expect_used(s, "q", "cpu=8 " GPU "=8");
    quota_becomes(s, "q", "flavor=old cpu=8 group=new flavor=small " GPU "=8");
    expect_state(s, "low1", "Admitted");
}

/* Seventeen flavors for each of two sets are more combinations than are tried. Where one has no
 * room even alone, nothing is tried for the other: it comes to its last flavor. */
static void a_set_that_is_short_alone_is_tried_on_its_own_flavors(void **state)
{
    enum { FLAVORS = 17 };
    struct scenario *s = *state;
    char quota[1024] = "";
    for (int i = 0, length = 0; i < FLAVORS; i++) {
        char name[16];
        char label[32];
        char node[64];
        (void)snprintf(name, sizeof(name), "f%02d", i);
        (void)snprintf(label, sizeof(label), "label=kind:%s", name);
        (void)snprintf(node, sizeof(node), "cpu=%d %s", i == FLAVORS - 1 ? 64 : 8, label);
        given_flavor(s, name, label);
        given_node(s, name, node);
        length +=
            snprintf(quota + length, sizeof(quota) - (size_t)length, "flavor=%s cpu=100 ", name);
    }
    given_queue(s, "q", quota);
    given_pod_set(s, "a", "worker", "pods=1 cpu=1");
    given_job(s, "a", "q", "pods=1 cpu=32");
    expect_state(s, "a", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(each_set_finds_its_flavors),
        scenario_test(combinations_are_told_by_set_and_group),
        scenario_test(victims_are_sought_on_the_flavors_of_both_sets),
        scenario_test(a_set_that_is_short_alone_is_tried_on_its_own_flavors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
