/* What one object makes the controller write, whatever is done to it: a handful at first, then
 * three writes a minute, and besides them one PATCH for each time that its user starts it. */
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
#define HANDFUL   PACE_NEWS_MAX

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
 * three. Returns them. */
static struct tally expect_few_writes(struct scenario *s, const char *name)
{
    struct tally tally = tally_of(s, name);
    int most = most_in_a_minute(&tally, 0);
    int later = most_in_a_minute(&tally, 2 * (int64_t)MINUTE_MS);
    if (most > HANDFUL + A_MINUTE || later > A_MINUTE) {
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

static void takes_its_label_off(struct scenario *s, int turn)
{
    job_relabelled(s, "bad", turn % 2 == 0 ? "" : "q");
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

static void makes_it_anew(struct scenario *s, int turn)
{
    (void)turn;
    job_recreated(s, "bad", "q", "pods=2 cpu=1");
}

static void makes_it_anew_later(struct scenario *s, int turn)
{
    if (turn % 2 == 0) {
        job_deleted_now(s, "bad");
    } else {
        given_job(s, "bad", "q", "pods=2 cpu=1");
    }
}

static void makes_it_anew_running(struct scenario *s, int turn)
{
    if (turn % 2 == 0) {
        job_deleted_now(s, "bad");
    } else {
        given_job(s, "bad", "q", "pods=2 cpu=1 running=true");
    }
}

static void makes_it_anew_where_it_fits(struct scenario *s, int turn)
{
    if (turn % 2 == 0) {
        job_deleted_now(s, "bad");
    } else {
        given_job(s, "bad", "roomy", "pods=2 cpu=1");
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

/* Its user's edits are 120 a minute, and the writes are few. */
static void edits_are_told_now_and_then(void **state)
{
    static const deed_fn deeds[] = {holds_it,
                                    breaks_it,
                                    moves_it,
                                    takes_its_label_off,
                                    resizes_it,
                                    forges_its_status,
                                    deletes_its_admission,
                                    makes_it_anew,
                                    makes_it_anew_later,
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

static void made_anew_and_running_it_is_undone_at_once(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    again_and_again(s, makes_it_anew_running);
    check_i64(expect_few_writes(s, "bad").started, FOR_MS / 1000);
}

/* What its user makes anew is admitted as ever, and each time by one PATCH. */
static void made_anew_it_is_admitted_at_once(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    again_and_again(s, makes_it_anew_where_it_fits);
    check_i64(expect_few_writes(s, "bad").decided, FOR_MS / 1000);
}

/* Made running where no policy suspends it, and left alone in a queue where others come and go. */
static void job_that_is_left_alone_costs_five_writes_and_three_a_minute(void **state)
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
    assert_in_range(most_in_a_minute(&tally, 0), 2, 4);
}

/* A suspension that the API server refuses is tried less and less often, and told of so. */
static void refused_suspension_is_tried_three_times_a_minute(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    writes_are_manual(s, true);
    job_suspended_by_user(s, "bad", false);
    int tries = 0;
    int later = 0;
    for (int64_t ms = 0; ms < 10 * (int64_t)MINUTE_MS; ms += 100) {
        at(s, FROM_MS + ms);
        if (write_is_out(s, "bad")) {
            write_refused(s, "bad", "no");
            tries++;
            later += ms >= 2 * (int64_t)MINUTE_MS ? 1 : 0;
        }
    }
    (void)expect_few_writes(s, "bad");
    assert_in_range(tries, 8, 10 * A_MINUTE + 2);
    assert_in_range(later, 8, 8 * A_MINUTE);
    writes_are_manual(s, false);
    at(s, FROM_MS + 11 * MINUTE_MS);
    assert_true(scenario_job(s, "bad")->spec.suspend.value);
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
    job_annotated(s, "bad", "tallyman.dev/hold", "true");
    at(s, FROM_MS + FOR_MS + 2 * PACE_PAID_MS);
    expect_state(s, "bad", "Held Held");
    job_deleted_now(s, "bad");
    given_job(s, "bad", "q", "pods=2 cpu=1");
    at(s, FROM_MS + FOR_MS + 4 * PACE_PAID_MS);
    expect_state(s, "bad", "Pending QuotaExhausted");
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

/* A Queue, a Cohort, a ResourceFlavor say of themselves what they have to, and no more often. */
static void statuses_of_what_is_edited_all_the_time_are_few(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    (void)counts_take(s);
    for (int turn = 0; turn < FOR_MS / 500; turn++) {
        at(s, FROM_MS + turn * 500);
        quota_becomes(s, "q", turn % 3 == 0 ? "cpu=4" : "cpu=5");
        char cohort[200];
        (void)snprintf(cohort, sizeof(cohort),
                       "{\"metadata\":{\"name\":\"c\",\"generation\":%d},\"spec\":{}}", turn + 1);
        given_json(s, KIND_COHORT, cohort);
        given_node(s, "n2", turn % 3 == 0 ? "cpu=4" : "cpu=4 cordoned=true");
    }
    int minutes = FOR_MS / MINUTE_MS;
    int kinds = 3;
    assert_in_range(counts_take(s).status_writes, kinds * minutes,
                    kinds * (STATUS_WRITES_BRISK_MAX + A_MINUTE * minutes) + kinds);
}

#define paced_test(fn) cmocka_unit_test_setup_teardown(fn, paced_setup, scenario_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        paced_test(edits_are_told_now_and_then),
        paced_test(each_start_by_hand_is_undone_at_once),
        paced_test(made_anew_and_running_it_is_undone_at_once),
        paced_test(made_anew_it_is_admitted_at_once),
        paced_test(job_that_is_left_alone_costs_five_writes_and_three_a_minute),
        paced_test(refused_suspension_is_tried_three_times_a_minute),
        paced_test(quiet_is_rewarded),
        paced_test(last_word_is_told_in_the_end),
        paced_test(gang_beside_it_is_told_at_once),
        paced_test(statuses_of_what_is_edited_all_the_time_are_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
