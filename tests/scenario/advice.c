/* The change that would start a gang now, its past, and the numbers behind a wait. Each suggestion
 * is carried out as its command says, and has to start the gang. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

static const struct explanation *explanation_of(struct scenario *s, const char *job)
{
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, job);
    assert_non_null(admission->status.explanation);
    return admission->status.explanation;
}

/* The n-th command of the explanation, NULL: there is none. */
static const char *command_of(struct scenario *s, const char *job, uint32_t n)
{
    const struct explanation *explanation = explanation_of(s, job);
    for (uint32_t i = 0; i < explanation->actions.count; i++) {
        const struct explanation_action *action = &explanation->actions.items[i];
        if (str_is_set(action->command) && n-- == 0) {
            return arena_copy_str(&s->arena, action->command).ptr;
        }
    }
    return NULL;
}

static void annotate(struct scenario *s, const char *job, char *words)
{
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        if (equals == NULL) {
            assert_int_equal(word[strlen(word) - 1], '-');
            word[strlen(word) - 1] = '\0';
            map_remove(&scenario_job(s, job)->meta.annotations, str_from_c(word));
            continue;
        }
        *equals = '\0';
        map_set(s, &scenario_job(s, job)->meta.annotations,
                arena_copy_str(&s->arena, str_from_c(word)),
                arena_copy_str(&s->arena, str_from_c(equals + 1)));
    }
}

/* Of a merge patch only the members of nodeSelector. */
static void patch_selector(struct scenario *s, const char *job, const char *members)
{
    struct string_map *selector = &scenario_job(s, job)->spec.pod_template.spec.node_selector;
    char key[64];
    char value[64];
    int taken = 0;
    while (*members != '}') {
        bool is_null = sscanf(members, "\"%63[^\"]\":null%n", key, &taken) == 1 && taken > 0;
        if (is_null) {
            map_remove(selector, str_from_c(key));
        } else {
            assert_int_equal(sscanf(members, "\"%63[^\"]\":\"%63[^\"]\"%n", key, value, &taken), 2);
            map_set(s, selector, arena_copy_str(&s->arena, str_from_c(key)),
                    arena_copy_str(&s->arena, str_from_c(value)));
        }
        members += taken;
        members += *members == ',' ? 1 : 0;
        taken = 0;
    }
}

/* Does what the command would do. */
static void carry_out(struct scenario *s, const char *job, const char *command)
{
    assert_non_null(command);
    char text[600];
    char prefix[128];
    snprintf(text, sizeof(text), "%s", command);
    snprintf(prefix, sizeof(prefix), "kubectl annotate --overwrite job %s -n ml ", job);
    if (strncmp(text, prefix, strlen(prefix)) == 0) {
        annotate(s, job, text + strlen(prefix));
    } else {
        snprintf(prefix, sizeof(prefix), "kubectl patch job %s -n ml --type=merge -p '", job);
        assert_int_equal(strncmp(text, prefix, strlen(prefix)), 0);
        const char *members = strstr(text, "\"nodeSelector\":{");
        assert_non_null(members);
        patch_selector(s, job, members + strlen("\"nodeSelector\":{"));
    }
    object_changed(s, KIND_JOB, job);
}

/* Quota for two of four pods: it would start with these two, and does. */
static void fewer_pods_by_quota(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "team-a", "cpu=6");
    given_job(s, "first", "team-a", "pods=4 cpu=1");
    given_job(s, "second", "team-a", "pods=4 cpu=1");
    expect_state(s, "second", "Pending QuotaExhausted");
    const char *command = command_of(s, "second", 0);
    check_str(str_from_c(command), "kubectl annotate --overwrite job second -n ml "
                                   "tallyman.dev/partial=true tallyman.dev/min-count=2");
    assert_null(command_of(s, "second", 1));
    assert_true(explanation_of(s, "second")->changes_tried.value);
    carry_out(s, "second", command);
    expect_state(s, "second", "Admitted");
    expect_used(s, "team-a", "cpu=6");
}

/* Three of eight fit on the nodes beside what runs there. */
static void fewer_pods_by_room(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=4");
    given_pod(s, "foreign", "n1", "cpu=3");
    given_queue(s, "team-a", "cpu=64");
    given_job(s, "wide", "team-a", "pods=4 cpu=2");
    expect_state(s, "wide", "Pending NodesFull");
    const char *command = command_of(s, "wide", 0);
    assert_non_null(strstr(command, "min-count=2"));
    carry_out(s, "wide", command);
    expect_state(s, "wide", "Admitted");
    expect_used(s, "team-a", "cpu=4");
}

/* "pods:nodes ", as the explanation has them. */
static const char *places_of(struct scenario *s, const char *job)
{
    static char text[200];
    const struct explanation_places_list *list = &explanation_of(s, job)->nodes->places;
    size_t len = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < list->count; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%lld:%lld ",
                                (long long)list->items[i].pods.value,
                                (long long)list->items[i].nodes.value);
    }
    return text;
}

/* Beside pods that are there, and those on their way; nodes that are out aren't counted. */
static void the_room_of_each_node_is_told(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=5");
    given_node(s, "n2", "cpu=4");
    given_node(s, "n3", "cpu=4");
    given_node(s, "n4", "cpu=64 ready=false");
    given_pod(s, "foreign", "n3", "cpu=3");
    given_queue(s, "team-a", "cpu=64");
    given_job(s, "wide", "team-a", "pods=6 cpu=2");
    expect_state(s, "wide", "Pending NodesFull");
    assert_string_equal(places_of(s, "wide"), "2:2 0:1 ");
    assert_int_equal(explanation_of(s, "wide")->nodes->fitting.value, 2);
}

/* Nodes of eleven sizes, and none is told by its own. */
static void the_room_of_many_nodes_is_bounded(void **state)
{
    struct scenario *s = *state;
    for (int i = 0; i <= 10; i++) {
        char name[16];
        char size[16];
        (void)snprintf(name, sizeof(name), "n%02d", i);
        (void)snprintf(size, sizeof(size), "cpu=%d", i);
        given_node(s, name, size);
    }
    given_queue(s, "team-a", "cpu=640");
    given_job(s, "wide", "team-a", "pods=60 cpu=1");
    expect_state(s, "wide", "Pending NeverFits");
    assert_string_equal(places_of(s, "wide"), "10:1 9:1 8:1 7:1 6:1 5:1 4:1 0:4 ");
}

static void fewer_pods_by_devices(void **state)
{
    struct scenario *s = *state;
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_template(s, "one", "gpu.example.com", 1);
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "d0 d1 d2");
    given_queue(s, "team-a", "gpu.example.com=8");
    given_job(s, "train", "team-a", "pods=4 template=one");
    expect_state(s, "train", "Pending NeverFits");
    const char *command = command_of(s, "train", 0);
    assert_non_null(strstr(command, "min-count=3"));
    carry_out(s, "train", command);
    expect_state(s, "train", "Admitted");
    expect_used(s, "team-a", "gpu.example.com=3");
}

/* Nothing is free at all: nothing is suggested, and that it was looked for is said. */
static void nothing_helps_where_nothing_is_free(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "team-a", "cpu=4");
    given_job(s, "first", "team-a", "pods=4 cpu=1");
    given_job(s, "second", "team-a", "pods=4 cpu=1");
    expect_state(s, "second", "Pending QuotaExhausted");
    assert_null(command_of(s, "second", 0));
    assert_true(explanation_of(s, "second")->changes_tried.value);
}

/* Where no node may be used, waiting for room is no advice. */
static void what_has_to_change_on_the_nodes_is_told(void **state)
{
    struct scenario *s = *state;
    given_queue(s, "team-a", "cpu=8");
    given_node(s, "oak", "cpu=8 taint=rot:NoSchedule");
    given_node(s, "elm", "cpu=8 ready=False");
    given_job(s, "train", "team-a", "pods=2 cpu=1");
    expect_state(s, "train", "Pending NodesFull");
    check_str(explanation_of(s, "train")->actions.items[0].message,
              "It starts when a node is ready and healthy again, or a node's taint is removed or "
              "its pods tolerate it; that others end doesn't help it.");
}

/* A size that the Job's own field fixes can't be changed by an annotation. */
static void a_gang_of_one_has_no_fewer_pods(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "team-a", "cpu=64");
    given_job(s, "one", "team-a", "pods=1 cpu=5");
    expect_state(s, "one", "Pending NeverFits");
    assert_null(command_of(s, "one", 0));
}

static void given_two_kinds(struct scenario *s)
{
    given_node(s, "old", "cpu=8 label=kind:old");
    given_node(s, "new", "cpu=8 label=kind:new");
    given_flavor(s, "old", "label=kind:old");
    given_flavor(s, "new", "label=kind:new");
    given_queue(s, "team-a", "flavor=new cpu=4 flavor=old cpu=4");
}

/* The other flavor has quota and room: the nodeSelector is all that keeps the gang from it. */
static void another_flavor_by_its_selector(void **state)
{
    struct scenario *s = *state;
    given_two_kinds(s);
    given_job(s, "first", "team-a", "pods=3 cpu=1 selector=kind:new");
    given_job(s, "second", "team-a", "pods=3 cpu=1 selector=kind:new");
    expect_state(s, "second", "Pending QuotaExhausted");
    const char *fewer = command_of(s, "second", 0);
    assert_non_null(strstr(fewer, "min-count=1"));
    const char *command = command_of(s, "second", 1);
    check_str(str_from_c(command),
              "kubectl patch job second -n ml --type=merge -p '{\"spec\":{\"template\":{\"spec\":"
              "{\"nodeSelector\":{\"kind\":\"old\"}}}}}'");
    check_str(explanation_of(s, "second")->actions.items[2].message,
              "would start now on flavor old");
    carry_out(s, "second", command);
    expect_state(s, "second", "Admitted");
}

/* Every flavor that the pods may have is too small; the one that they shut out isn't. */
static void a_selector_that_matches_no_flavor(void **state)
{
    struct scenario *s = *state;
    given_two_kinds(s);
    given_job(s, "odd", "team-a", "pods=2 cpu=1 selector=kind:future");
    expect_state(s, "odd", "Pending NoMatchingFlavor");
    const char *command = command_of(s, "odd", 0);
    assert_non_null(strstr(command, "\"kind\":\"new\""));
    carry_out(s, "odd", command);
    expect_state(s, "odd", "Admitted");
}

/* Room is there, but not in the zone that the pods ask for. */
static void a_wider_selector(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=2 label=zone:a");
    given_node(s, "n2", "cpu=8 label=zone:b");
    given_queue(s, "team-a", "cpu=64");
    given_pod(s, "foreign", "n1", "cpu=2");
    given_job(s, "zoned", "team-a", "pods=2 cpu=1 selector=zone:a");
    expect_state(s, "zoned", "Pending NodesFull");
    const char *command = command_of(s, "zoned", 0);
    assert_non_null(strstr(command, "{\"zone\":null}"));
    carry_out(s, "zoned", command);
    expect_state(s, "zoned", "Admitted");
}

/* Room is kept for the head until the long gang ends: who ends before may use it. */
static void a_run_time_that_fits_the_hole(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "team-a", "cpu=4 strategy=Backfill");
    given_job(s, "long", "team-a", "pods=3 cpu=1 max-runtime=1h");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1 n1");
    given_job(s, "head", "team-a", "pods=4 cpu=1");
    given_job(s, "small", "team-a", "pods=1 cpu=1");
    expect_state(s, "head", "Pending QuotaExhausted");
    expect_state(s, "small", "Pending ReservedForOther");
    const char *command = command_of(s, "small", 0);
    assert_non_null(strstr(command, "tallyman.dev/max-runtime="));
    check_str(explanation_of(s, "small")->actions.items[1].message,
              "would start now if it ran for 60m at most");
    carry_out(s, "small", command);
    expect_state(s, "small", "Admitted");
}

/* With quota it would still have to wait for room: that is another reason. */
static void what_else_stands_in_the_way(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "team-a", "cpu=6");
    given_job(s, "first", "team-a", "pods=3 cpu=1");
    given_job(s, "second", "team-a", "pods=4 cpu=1");
    expect_state(s, "second", "Pending QuotaExhausted");
    const struct explanation *explanation = explanation_of(s, "second");
    check_i64(explanation->other_reasons.count, 1);
    check_str(explanation->other_reasons.items[0].reason, "NodesFull");
}

/* The tree is told level by level, and who limits. */
static void quota_is_told_up_the_tree(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=64");
    given_queue(s, "team-a", "cohort=lab cpu=4");
    given_queue(s, "team-b", "cohort=lab cpu=4");
    given_job(s, "b", "team-b", "pods=6 cpu=1");
    scenario_start(s);
    given_job(s, "a", "team-a", "pods=4 cpu=1");
    expect_state(s, "a", "Pending CohortExhausted");
    const struct explanation_quota_list *quota = &explanation_of(s, "a")->quota;
    check_i64(quota->count, 2);
    check_str(quota->items[0].kind, "Queue");
    check_str(quota->items[0].used, "0");
    check_str(quota->items[0].limit, "4");
    assert_false(quota->items[0].limiting.value);
    check_str(quota->items[1].kind, "Cohort");
    check_str(quota->items[1].name, "lab");
    check_str(quota->items[1].used, "6");
    check_str(quota->items[1].limit, "8");
    assert_true(quota->items[1].limiting.value);
}

/* Each reason stays in the history with its time, over a restart too. */
static void reasons_that_have_passed_are_kept(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "team-a", "cpu=3");
    given_job(s, "second", "team-a", "pods=4 cpu=1");
    expect_state(s, "second", "Pending NeverFits");
    at(s, 60000);
    quota_becomes(s, "team-a", "cpu=16");
    expect_state(s, "second", "Admitted");
    gang_starts(s, "second", "n1 n1 n1 n1");
    at(s, 120000);
    job_annotated(s, "second", "tallyman.dev/hold", "true");
    restart(s, WITH_ADMISSIONS);
    job_suspended_by_user(s, "second", true);
    gang_stops(s, "second");
    expect_state(s, "second", "Held Held");
    const struct explanation_past_list *history = &explanation_of(s, "second")->history;
    assert_true(history->count >= 2);
    check_str(history->items[0].reason, "NeverFits");
    check_i64(history->items[0].until.ms - history->items[0].since.ms, 60000);
    check_str(history->items[1].reason, "Admitted");
    check_i64(history->items[1].until.ms - history->items[1].since.ms, 60000);
}

/* A victim is told by which rule it was stopped, for whom, and what that cost. */
static void a_victim_is_told_what_it_lost(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "high", 100);
    given_node(s, "n1", "cpu=4");
    given_queue(s, "team-a", "cpu=4 within=LowerPriority");
    given_job(s, "low", "team-a", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "low", "n1 n1 n1 n1");
    at(s, 3600000);
    given_job(s, "urgent", "team-a", "pods=2 cpu=1 priority=high");
    expect_state(s, "urgent", "Reserved WaitingForVictims");
    for (int restarted = 0; restarted < 2; restarted++) {
        const struct explanation_eviction *eviction = explanation_of(s, "low")->eviction;
        assert_non_null(eviction);
        check_str(eviction->rule, "PreemptedWithinQueue");
        check_str(eviction->by, "urgent");
        check_str(eviction->queue, "team-a");
        check_str(eviction->lost, "60m of 4 pods");
        restart(s, WITH_ADMISSIONS);
        gang_stops(s, "low");
    }
}

/* The numbers of a wait are of the moment when it is written, and are written for no other sake. */
static void the_time_of_the_numbers_is_told_and_costs_no_write(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "team-a", "cpu=4");
    given_job(s, "first", "team-a", "pods=3 cpu=1");
    given_job(s, "second", "team-a", "pods=3 cpu=1");
    expect_state(s, "second", "Pending QuotaExhausted");
    int64_t told_ms = explanation_of(s, "second")->as_of.ms;
    assert_true(explanation_of(s, "second")->as_of.is_set);
    (void)counts_take(s);
    at(s, 300000);
    object_again(s, KIND_JOB, "second");
    check_i64(counts_take(s).admission_writes, 0);
    check_i64(explanation_of(s, "second")->as_of.ms, told_ms);
}

/* Room for four in no rack, and in the zone. */
static void given_half_full_racks(struct scenario *s)
{
    given_flavor(s, "default", "level=zone level=rack");
    given_node(s, "n1", "cpu=4 label=zone:a label=rack:r1");
    given_node(s, "n2", "cpu=4 label=zone:a label=rack:r2");
    given_pod(s, "f1", "n1", "cpu=2");
    given_pod(s, "f2", "n2", "cpu=1");
    given_queue(s, "team-a", "cpu=64");
}

static void topology_that_is_preferred_instead(void **state)
{
    struct scenario *s = *state;
    given_half_full_racks(s);
    given_job(s, "four", "team-a", "pods=4 cpu=1 required=rack");
    expect_state(s, "four", "Pending TopologyUnsatisfied");
    assert_non_null(strstr(command_of(s, "four", 0), "min-count=3")); /* those that r2 holds */
    const char *command = command_of(s, "four", 1);
    check_str(str_from_c(command), "kubectl annotate --overwrite job four -n ml "
                                   "tallyman.dev/required-topology- "
                                   "tallyman.dev/preferred-topology=rack");
    carry_out(s, "four", command);
    expect_state(s, "four", "Admitted");
}

/* The label is no level at all: without it the gang starts. */
static void topology_that_is_none(void **state)
{
    struct scenario *s = *state;
    given_half_full_racks(s);
    given_job(s, "two", "team-a", "pods=2 cpu=1 preferred=rak");
    expect_state(s, "two", "Pending NoMatchingFlavor");
    const char *command = command_of(s, "two", 0);
    check_str(str_from_c(command),
              "kubectl annotate --overwrite job two -n ml tallyman.dev/preferred-topology-");
    carry_out(s, "two", command);
    expect_state(s, "two", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(fewer_pods_by_quota),
        scenario_test(fewer_pods_by_room),
        scenario_test(the_room_of_each_node_is_told),
        scenario_test(the_room_of_many_nodes_is_bounded),
        scenario_test(fewer_pods_by_devices),
        scenario_test(nothing_helps_where_nothing_is_free),
        scenario_test(what_has_to_change_on_the_nodes_is_told),
        scenario_test(a_gang_of_one_has_no_fewer_pods),
        scenario_test(another_flavor_by_its_selector),
        scenario_test(a_selector_that_matches_no_flavor),
        scenario_test(a_wider_selector),
        scenario_test(a_run_time_that_fits_the_hole),
        scenario_test(what_else_stands_in_the_way),
        scenario_test(quota_is_told_up_the_tree),
        scenario_test(reasons_that_have_passed_are_kept),
        scenario_test(a_victim_is_told_what_it_lost),
        scenario_test(the_time_of_the_numbers_is_told_and_costs_no_write),
        scenario_test(topology_that_is_preferred_instead),
        scenario_test(topology_that_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
