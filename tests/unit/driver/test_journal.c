/* Lines of the journal: what a decision says, and which lines aren't any. */
#include <string.h>

#include "support/check.h"

#include "tallyman/base/arena.h"
#include "tallyman/driver/journal.h"

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static void expect_refused(const char *line, const char *why)
{
    struct journal_line parsed;
    struct err err;
    struct rc rc = journal_parse_line(&arena, str_from_c(line), &parsed, &err);
    assert_int_equal(rc.code, RC_INVALID);
    if (strstr(err.text, why) == NULL) {
        fail_msg("%s: %s, expected %s", line, err.text, why);
    }
}

static struct journal_line expect_read(struct str line)
{
    struct journal_line parsed = {0};
    struct err err;
    if (rc_failed(journal_parse_line(&arena, line, &parsed, &err))) {
        fail_msg("%s", err.text);
    }
    return parsed;
}

static void lines_that_are_none_are_refused(void **state)
{
    (void)state;
    expect_refused("{}", "neither an event nor a decision");
    expect_refused("{\"event\":\"tick\"}", "neither an event nor a decision");
    expect_refused("{\"now\":1,\"event\":\"nonsense\"}", "neither an event nor a decision");
    expect_refused("{\"lost\":0}", "neither an event nor a decision");
    expect_refused("{\"now\":1,\"event\":\"object\",\"kind\":\"Ship\",\"object\":{}}",
                   "unknown kind \"Ship\"");
    expect_refused("{\"now\":1,\"event\":\"synced\",\"kind\":\"Ship\"}", "unknown kind \"Ship\"");
    expect_refused("{\"now\":1,\"event\":\"object\",\"kind\":\"Job\"}", "without its object");
    expect_refused("not JSON", "");
}

static void lost_lines_are_counted(void **state)
{
    (void)state;
    struct str line = journal_lost_line(&arena, 12);
    check_str(line, "{\"lost\":12}");
    struct journal_line parsed = expect_read(line);
    assert_int_equal(parsed.kind, JOURNAL_LOST);
    check_i64(parsed.lost_lines, 12);
}

static void a_start_names_the_program(void **state)
{
    (void)state;
    struct journal_line parsed =
        expect_read(journal_start_line(&arena, 77, STR("0.1.0"), STR("abc")));
    assert_int_equal(parsed.kind, JOURNAL_START);
    check_i64(parsed.started_ms, 77);
    check_str(parsed.version, "0.1.0");
    check_str(parsed.build, "abc");
}

static void an_answer_comes_back_as_it_was(void **state)
{
    (void)state;
    struct event event = {.now_ms = 5,
                          .kind = EVENT_EFFECT_DONE,
                          .done = {.effect_id = 9,
                                   .outcome = EFFECT_REFUSED,
                                   .message = STR("no"),
                                   .resource_version = STR("8")}};
    struct str line = journal_event_line(&arena, &event);
    struct journal_line parsed = expect_read(line);
    assert_int_equal(parsed.event.done.outcome, EFFECT_REFUSED);
    check_i64((int64_t)parsed.event.done.effect_id, 9);
    check_str(parsed.event.done.message, "no");
    assert_true(str_eq(journal_event_line(&arena, &parsed.event), line));
    expect_refused("{\"now\":5,\"event\":\"done\",\"effect\":9,\"outcome\":\"perhaps\"}",
                   "unknown outcome \"perhaps\"");
}

/* All that is written of a decision, in its order. */
static void a_decision_says_what_is_written(void **state)
{
    (void)state;
    struct string_pair pair = {STR("rack"), STR("r1")};
    struct template_patch template = {.node_selector = {&pair, 1}};
    struct effect items[] = {
        {.kind = EFFECT_PATCH_JOB,
         .namespace_name = STR("ml"),
         .name = STR("train"),
         .uid = STR("u1"),
         .patch = {.purpose = PATCH_CHECKPOINT,
                   .queue_label = STR("q"),
                   .record = STR("{}"),
                   .suspended = STR("{s}"),
                   .checkpoint_request = STR("t"),
                   .checkpoint_for = STR("u2"),
                   .provisioning_attempt = STR("3"),
                   .sets_hold = true,
                   .templates = &template,
                   .template_count = 1}},
        {.kind = EFFECT_WRITE_ADMISSION, .name = STR("train")},
        {.kind = EFFECT_RECORD_EVENT,
         .namespace_name = STR("ml"),
         .name = STR("train"),
         .note = {.reason = "Held", .text = STR("by its user")}},
    };
    struct effects effects = {.arena = &arena, .items = items, .count = ARRAY_COUNT(items)};
    check_str(journal_decision_text(&arena, &effects),
              "checkpoint ml/train uid=u1 queue=q record={} suspended={s} since=t for=u2 rack=r1 "
              "attempt=3 hold\nevent ml/train Held: by its user\n");
    struct journal_line parsed = expect_read(journal_decision_line(&arena, &effects));
    assert_int_equal(parsed.kind, JOURNAL_DECISION);
    effects.count = 0;
    assert_false(str_is_set(journal_decision_line(&arena, &effects)));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(lines_that_are_none_are_refused), T(lost_lines_are_counted),
        T(a_start_names_the_program),       T(an_answer_comes_back_as_it_was),
        T(a_decision_says_what_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
