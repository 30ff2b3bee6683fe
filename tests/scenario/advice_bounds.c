/* What is never suggested: commands that a shell could misread, changes that nobody needs, more
 * than can be read. */
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

static uint32_t commands_of(struct scenario *s, const char *job)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < explanation_of(s, job)->actions.count; i++) {
        count += str_is_set(explanation_of(s, job)->actions.items[i].command) ? 1 : 0;
    }
    return count;
}

static bool suggests(struct scenario *s, const char *job, const char *part)
{
    for (uint32_t i = 0; i < explanation_of(s, job)->actions.count; i++) {
        struct str command = explanation_of(s, job)->actions.items[i].command;
        if (str_is_set(command) && strstr(arena_copy_str(&s->arena, command).ptr, part) != NULL) {
            return true;
        }
    }
    return false;
}

/* Two kinds of nodes: `a`, which is full, and `b` by that label. */
static void given_kinds(struct scenario *s, const char *key, const char *value)
{
    char options[200];
    given_node(s, "n1", "cpu=1 label=zone:a");
    snprintf(options, sizeof(options), "cpu=8 label=%s:%s label=disk:ssd", key, value);
    given_node(s, "n2", options);
    given_flavor(s, "fa", "label=zone:a");
    snprintf(options, sizeof(options), "label=%s:%s label=disk:ssd", key, value);
    given_flavor(s, "fb", options);
    given_queue(s, "q", "flavor=fa cpu=8 flavor=fb cpu=8");
}

/* Only the keys that the gang asks for are turned to the other flavor. */
static void only_what_is_asked_for_is_changed(void **state)
{
    struct scenario *s = *state;
    given_kinds(s, "zone", "b");
    given_job(s, "gang", "q", "pods=1 cpu=4 selector=zone:a");
    scenario_start(s);
    assert_true(suggests(s, "gang", "\"zone\":\"b\""));
    assert_false(suggests(s, "gang", "disk"));
}

/* A label with a character that a shell may read as its own is in no command. */
static void labels_that_a_shell_could_read_are_in_no_command(void **state)
{
    (void)state;
    const char *values[] = {"$(id)", "b;id", "`id`", "b'c", "b|c", "{b}", "[b]", "b@c"};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct scenario *s = scenario_new();
        given_kinds(s, "zone", values[i]);
        given_job(s, "gang", "q", "pods=1 cpu=4 selector=zone:a");
        scenario_start(s);
        assert_false(suggests(s, "gang", "\"zone\":\""));
        scenario_free(s);
    }
    const char *plain[] = {"Zz9", "a-b", "a_b", "a.b", "0", "AZ"};
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        struct scenario *s = scenario_new();
        given_kinds(s, "zone", plain[i]);
        given_job(s, "gang", "q", "pods=1 cpu=4 selector=zone:a");
        scenario_start(s);
        assert_true(suggests(s, "gang", plain[i]));
        scenario_free(s);
    }
}

/* Nor is a pair of the gang's own selector, which would be dropped. */
static void own_selector_that_a_shell_could_read_is_in_no_command(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=8");
    given_job(s, "odd", "q", "pods=1 cpu=4 selector=a;b:c");
    given_job(s, "odd-value", "q", "pods=1 cpu=4 selector=a:b;c");
    given_job(s, "plain", "q", "pods=1 cpu=4 selector=a/b:c");
    scenario_start(s);
    assert_int_equal(commands_of(s, "odd"), 0);
    assert_int_equal(commands_of(s, "odd-value"), 0);
    assert_true(suggests(s, "plain", "\"a/b\":null"));
}

/* What is tried for those that wait costs a part of the time that passed and no more: of many that
 * come at once in a large cluster only the first are looked into; the others when time has passed.
 */
static void changes_are_tried_as_time_allows(void **state)
{
    struct scenario *s = *state;
    checks_are_cheap(s);
    for (int i = 0; i < 2000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%d", i);
        given_node(s, name, "cpu=1");
    }
    given_queue(s, "q", "cpu=4000");
    for (int i = 0; i < 90; i++) {
        char name[16];
        char options[64];
        snprintf(name, sizeof(name), "j%d", i);
        snprintf(options, sizeof(options), "pods=1 cpu=1 selector=k:v%d", i);
        given_job(s, name, "q", options);
    }
    at(s, 1000);
    uint32_t tried = 0;
    for (int i = 0; i < 90; i++) {
        char name[16];
        snprintf(name, sizeof(name), "j%d", i);
        tried += explanation_of(s, name)->changes_tried.value ? 1 : 0;
    }
    assert_true(tried > 0 && tried < 90);
}

/* Each of four labels keeps the gang from one more node: as many changes are told as there is room
 * for, with fewer pods before them. */
static void more_changes_than_are_told(void **state)
{
    struct scenario *s = *state;
    given_node(s, "all", "cpu=1 label=a:x label=b:x label=c:x label=d:x");
    given_node(s, "n1", "cpu=1 label=b:x label=c:x label=d:x");
    given_node(s, "n2", "cpu=1 label=a:x label=c:x label=d:x");
    given_node(s, "n3", "cpu=1 label=a:x label=b:x label=d:x");
    given_node(s, "n4", "cpu=1 label=a:x label=b:x label=c:x");
    given_queue(s, "q", "cpu=8");
    given_job(s, "gang", "q", "pods=2 cpu=1 selector=a:x selector=b:x selector=c:x selector=d:x");
    scenario_start(s);
    assert_int_equal(commands_of(s, "gang"), 4);
    assert_true(suggests(s, "gang", "min-count=1"));
    assert_true(suggests(s, "gang", "\"c\":null"));
    assert_false(suggests(s, "gang", "\"d\":null"));
}

/* So many labels are tried, however many there are. */
static void fifth_label_is_not_tried(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8 label=a:x label=b:x label=c:x label=d:x");
    given_queue(s, "q", "cpu=8");
    given_job(s, "five", "q",
              "pods=1 cpu=1 selector=a:x selector=b:x selector=c:x selector=d:x selector=e:x");
    given_job(s, "four", "q", "pods=1 cpu=1 selector=a:x selector=b:x selector=c:x selector=e:x");
    scenario_start(s);
    assert_int_equal(commands_of(s, "five"), 0);
    assert_true(suggests(s, "four", "\"e\":null"));
}

/* What its RuntimeClass asks for, no change of the Job's own selector lifts. */
static void selector_of_its_runtime_class_is_not_its_own(void **state)
{
    struct scenario *s = *state;
    given_kinds(s, "zone", "b");
    given_json(s, KIND_RUNTIME_CLASS,
               "{\"metadata\":{\"name\":\"r\"},\"handler\":\"h\",\"scheduling\":{\"nodeSelector\":"
               "{\"zone\":\"a\"}}}");
    given_job_spec(s, "gang", "q", "pods=1",
                   "{\"runtimeClassName\":\"r\",\"containers\":[{\"name\":\"main\",\"resources\":{"
                   "\"requests\":{\"cpu\":\"4\"}}}]}");
    scenario_start(s);
    expect_used(s, "q", "");
    assert_int_equal(commands_of(s, "gang"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(only_what_is_asked_for_is_changed),
        cmocka_unit_test(labels_that_a_shell_could_read_are_in_no_command),
        scenario_test(own_selector_that_a_shell_could_read_is_in_no_command),
        scenario_test(changes_are_tried_as_time_allows),
        scenario_test(more_changes_than_are_told),
        scenario_test(fifth_label_is_not_tried),
        scenario_test(selector_of_its_runtime_class_is_not_its_own),
    };
    return cmocka_run_group_tests_name("advice_bounds", tests, NULL, NULL);
}
