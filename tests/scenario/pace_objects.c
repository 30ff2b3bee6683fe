/* What one Job makes the controller write, whatever its user does to it: so many at once, then
 * three a minute, besides one PATCH for each time that it is started by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"
#include "tallyman/base/limits.h"

#define FROM_MS   120000
#define FOR_MS    600000
#define MINUTE_MS 60000
#define A_MINUTE  3

static int paced_setup(void **state)
{
    scenarios_are_paced(ADMISSION_INTERVAL_MS);
    return scenario_setup(state);
}

/* `first` holds all of q and `blocks` all of other; `bad` waits in q, and was told so long ago. */
static void given_a_waiting_gang(struct scenario *s)
{
    given_queue(s, "q", "cpu=4");
    given_queue(s, "other", "cpu=4");
    given_queue(s, "roomy", "cpu=4");
    given_node(s, "n1", "cpu=16");
    given_job(s, "first", "q", "pods=4 cpu=1");
    given_job(s, "blocks", "other", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "first", "n1 n1 n1 n1");
    gang_starts(s, "blocks", "n1 n1 n1 n1");
    at(s, MINUTE_MS);
    given_job(s, "bad", "q", "pods=2 cpu=1");
    at(s, FROM_MS);
    trace_forget(s);
}

/* -- what was written of it -------------------------------------------------------------------- */

struct tally {
    int64_t at_ms[4096]; /* Admissions, Events and deletions, since FROM_MS */
    int count;
    int started, decided; /* PATCHes that undo what its user started; others */
};

static void add_line(struct tally *tally, int64_t at_ms, const char *what)
{
    if (strncmp(what, ": suspend, NotAdmitted", strlen(": suspend, NotAdmitted")) == 0) {
        tally->started++;
    } else if (*what == ':' && strncmp(what, ": delete", strlen(": delete")) != 0 &&
               strcmp(what, ": make it") != 0) {
        tally->decided++;
    } else {
        assert_true(tally->count < 4096);
        tally->at_ms[tally->count++] = at_ms - FROM_MS;
    }
}

/* Of the objects whose names begin so. */
static struct tally tally_of(struct scenario *s, const char *name)
{
    struct tally tally = {.count = 0};
    size_t len = strlen(name);
    const char *line = trace_text(s);
    while (*line != '\0') {
        char text[512];
        size_t bytes = strcspn(line, "\n");
        (void)snprintf(text, sizeof(text), "%.*s", (int)bytes, line);
        char *what = strstr(text, "] ");
        assert_non_null(what);
        if (strncmp(what + 2, name, len) == 0) {
            add_line(&tally, strtoll(text + 1, NULL, 10), what + 2 + strcspn(what + 2, ": "));
        }
        line += bytes + 1;
    }
    return tally;
}

static int most_in_a_minute(const struct tally *tally, int64_t from_ms)
{
    int most = 0;
    for (int i = 0; i < tally->count; i++) {
        int count = 0;
        for (int j = i; j < tally->count && tally->at_ms[j] < tally->at_ms[i] + MINUTE_MS; j++) {
            count++;
        }
        most = tally->at_ms[i] >= from_ms && count > most ? count : most;
    }
    return most;
}

/* No minute has more than three of them and a handful, and none after the first two more than
 * three and the one that its beginning may cut off from those before. Returns them. */
static struct tally expect_few_writes(struct scenario *s, const char *name)
{
    struct tally tally = tally_of(s, name);
    int most = most_in_a_minute(&tally, 0);
    int later = most_in_a_minute(&tally, 2 * (int64_t)MINUTE_MS);
    if (most > PACE_NEWS_MAX + A_MINUTE || later > A_MINUTE + 1) {
        fail_msg("%s: %d writes in one minute, %d in one later on", name, most, later);
    }
    return tally;
}

/* -- what is done to it ------------------------------------------------------------------------ */

typedef void (*deed_fn)(struct scenario *s, int turn);

/* Twice a second, for ten minutes. */
static void again_and_again(struct scenario *s, deed_fn deed)
{
    for (int turn = 0; turn < FOR_MS / 500; turn++) {
        at(s, FROM_MS + (turn + 1) * 500);
        deed(s, turn);
    }
}

static void starts_it(struct scenario *s, int turn)
{
    if (turn % 2 == 0) {
        job_suspended_by_user(s, "bad", false);
        pods_appear(s, "bad", 1);
    } else {
        gang_stops(s, "bad");
    }
}

static void starts_it_by_a_forged_record(struct scenario *s, int turn)
{
    if (turn % 2 == 0) {
        job_has_record(s, "bad", "{\"queue\":\"q\"}");
        job_suspended_by_user(s, "bad", false);
    } else {
        gang_stops(s, "bad");
    }
}

static void holds_it(struct scenario *s, int turn)
{
    job_annotated(s, "bad", "tallyman.dev/hold", turn % 2 == 0 ? "true" : "false");
}

static void breaks_it(struct scenario *s, int turn)
{
    job_annotated(s, "bad", "tallyman.dev/hold", turn % 2 == 0 ? "maybe" : "false");
}

static void moves_it(struct scenario *s, int turn)
{
    job_relabelled(s, "bad", turn % 2 == 0 ? "other" : "q");
}

static void resizes_it(struct scenario *s, int turn)
{
    job_resized(s, "bad", 2 + turn % 2, 2 + turn % 2);
}

static void forges_its_status(struct scenario *s, int turn)
{
    scenario_job(s, "bad")->status.active = (struct opt_int){true, turn % 2};
    object_changed(s, KIND_JOB, "bad");
}

static void deletes_its_admission(struct scenario *s, int turn)
{
    (void)turn;
    if (scenario_has(s, KIND_ADMISSION, "bad")) {
        object_gone(s, KIND_ADMISSION, "bad");
    }
}

static void lets_others_come_and_go(struct scenario *s, int turn)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "x-%d", turn / 26);
    if (turn % 26 == 0) {
        given_job(s, name, "q", "pods=2 cpu=1 created=1");
    } else if (turn % 26 == 13) {
        job_deleted_now(s, name);
    }
}

/* On until a write of it is paid for and made, so that the next one isn't for a while. */
static void until_it_is_told(struct scenario *s, deed_fn deed)
{
    trace_forget(s);
    for (int turn = 0; turn < 2 * PACE_PAID_MS / 500 && tally_of(s, "bad").count == 0; turn++) {
        at(s, scenario_now_ms(s) + 500);
        deed(s, turn);
    }
    check_i64(tally_of(s, "bad").count, 1);
    trace_forget(s);
}

/* Its user's edits are 120 a minute, and the writes are few. */
static void edits_are_told_now_and_then(void **state)
{
    static const deed_fn deeds[] = {holds_it,
                                    breaks_it,
                                    moves_it,
                                    resizes_it,
                                    forges_its_status,
                                    deletes_its_admission,
                                    lets_others_come_and_go};
    scenario_free(*state);
    *state = NULL;
    for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++) {
        struct scenario *s = scenario_new();
        given_a_waiting_gang(s);
        again_and_again(s, deeds[i]);
        struct tally tally = expect_few_writes(s, "bad");
        check_i64(tally.started + tally.decided, 0);
        assert_true(tally.count > 0);
        scenario_free(s);
    }
}

/* It never runs for longer, however often that was tried: each start is undone at once. */
static void each_start_by_hand_is_undone_at_once(void **state)
{
    static const deed_fn deeds[] = {starts_it, starts_it_by_a_forged_record};
    scenario_free(*state);
    *state = NULL;
    for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++) {
        struct scenario *s = scenario_new();
        given_a_waiting_gang(s);
        for (int turn = 0; turn < FOR_MS / 500; turn++) {
            at(s, FROM_MS + turn * 500);
            deeds[i](s, turn);
            assert_true(scenario_job(s, "bad")->spec.suspend.value);
        }
        struct tally tally = expect_few_writes(s, "bad");
        check_i64(tally.started, FOR_MS / 1000);
        scenario_free(s);
    }
}

/* Made running where no policy suspends it, and left alone in a queue where others come and go. */
static void job_that_is_left_alone_costs_three_writes_and_three_a_minute(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    given_job(s, "new", "q", "pods=2 cpu=1 running=true");
    pods_appear(s, "new", 1);
    at(s, FROM_MS + 300);
    gang_stops(s, "new");
    again_and_again(s, lets_others_come_and_go);
    struct tally tally = expect_few_writes(s, "new");
    check_i64(tally.started, 1);
    assert_in_range(most_in_a_minute(&tally, 0), 2, 3 + A_MINUTE);
}

/* After some minutes of quiet its news are told at once, and Events with them. */
static void quiet_is_rewarded(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    again_and_again(s, starts_it);
    int64_t quiet_ms = FROM_MS + FOR_MS + 6 * (int64_t)MINUTE_MS;
    at(s, quiet_ms);
    expect_state(s, "bad", "Pending QuotaExhausted");
    trace_forget(s);
    quota_becomes(s, "q", "cpu=6");
    expect_state(s, "bad", "Admitted");
    assert_non_null(strstr(trace_text(s), "bad ! Admitted"));
}

/* What is written at the end of the line is what is true then, and it comes. */
static void last_word_is_told_in_the_end(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    again_and_again(s, holds_it);
    until_it_is_told(s, holds_it);
    int64_t told_ms = scenario_now_ms(s);
    at(s, told_ms + 100);
    breaks_it(s, 0);
    at(s, told_ms + 3 * ADMISSION_INTERVAL_MS);
    check_i64(tally_of(s, "bad").count, 0);
    at(s, told_ms + 2 * PACE_PAID_MS);
    expect_state(s, "bad", "Pending Invalid");
}

/* Others aren't kept waiting by it. */
static void gang_beside_it_is_told_at_once(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    again_and_again(s, holds_it);
    given_job(s, "good", "roomy", "pods=2 cpu=1");
    expect_state(s, "good", "Admitted");
    job_annotated(s, "bad", "tallyman.dev/hold", "true");
    given_job(s, "better", "roomy", "pods=2 cpu=1");
    expect_state(s, "better", "Admitted");
}

/* What it owes doesn't hold back its start, its run and its end. */
static void start_and_end_of_who_owes_much_are_told_at_once(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    again_and_again(s, holds_it);
    job_annotated(s, "bad", "tallyman.dev/hold", "false");
    quota_becomes(s, "q", "cpu=6");
    expect_state(s, "bad", "Admitted");
    gang_starts(s, "bad", "n1 n1");
    expect_state(s, "bad", "Running");
    job_finishes(s, "bad");
    expect_state(s, "bad", "Finished");
}

/* Many numbers of it were told lately: the next ones are told when a write is paid for, but what it
 * waits for within an interval. */
static void reason_does_not_wait_behind_numbers(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    for (int turn = 0; turn < 60; turn++) {
        at(s, FROM_MS + (turn + 1) * 1000);
        resizes_it(s, turn);
    }
    until_it_is_told(s, resizes_it);
    int64_t told_ms = scenario_now_ms(s);
    resizes_it(s, 0);
    resizes_it(s, 1);
    at(s, told_ms + 3 * ADMISSION_INTERVAL_MS);
    check_i64(tally_of(s, "bad").count, 0);
    quota_becomes(s, "q", "cpu=1");
    at(s, told_ms + 4 * ADMISSION_INTERVAL_MS);
    expect_state(s, "bad", "Pending NeverFits");
}

/* What the API server refuses isn't owed for, and is told when it takes writes again. */
static void refused_writes_are_not_owed_for(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    admissions_are_refused(s, true);
    again_and_again(s, holds_it);
    admissions_are_refused(s, false);
    at(s, FROM_MS + FOR_MS + TELL_RETRY_MS + 1);
    trace_forget(s);
    for (int turn = 0; turn < PACE_NEWS_MAX - 2; turn++) {
        holds_it(s, turn);
    }
    check_i64(tally_of(s, "bad").count, PACE_NEWS_MAX - 2);
}

/* An end that the API server refused isn't taken for a number when it is told once more. */
static void refused_end_is_told_as_soon_as_it_can_be(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    again_and_again(s, holds_it);
    until_it_is_told(s, holds_it);
    job_annotated(s, "bad", "tallyman.dev/hold", "false");
    quota_becomes(s, "q", "cpu=6");
    gang_starts(s, "bad", "n1 n1");
    admissions_are_refused(s, true);
    job_finishes(s, "bad");
    admissions_are_refused(s, false);
    at(s, scenario_now_ms(s) + TELL_RETRY_MS + 1);
    expect_state(s, "bad", "Finished");
}

#define paced_test(fn) cmocka_unit_test_setup_teardown(fn, paced_setup, scenario_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        paced_test(edits_are_told_now_and_then),
        paced_test(each_start_by_hand_is_undone_at_once),
        paced_test(job_that_is_left_alone_costs_three_writes_and_three_a_minute),
        paced_test(quiet_is_rewarded),
        paced_test(last_word_is_told_in_the_end),
        paced_test(gang_beside_it_is_told_at_once),
        paced_test(start_and_end_of_who_owes_much_are_told_at_once),
        paced_test(reason_does_not_wait_behind_numbers),
        paced_test(refused_writes_are_not_owed_for),
        paced_test(refused_end_is_told_as_soon_as_it_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
