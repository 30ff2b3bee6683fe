#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "tallyman/api/codec.h"
#include "tallyman/api/pod_request.h"

static int setup(void **state)
{
    struct arena *arena = calloc(1, sizeof(*arena));
    arena_init(arena);
    *state = arena;
    return 0;
}

static int teardown(void **state)
{
    arena_deinit(*state);
    free(*state);
    return 0;
}

/* ' stands for ", and ` for \". */
static const struct job *job_of(struct arena *arena, const char *json)
{
    char *bytes = arena_alloc(arena, 2 * strlen(json) + 1);
    size_t len = 0;
    for (const char *c = json; *c != '\0'; c++) {
        if (*c == '`') {
            bytes[len++] = '\\';
        }
        bytes[len++] = *c == '\'' || *c == '`' ? '"' : *c;
    }
    void *value = NULL;
    struct err err;
    struct str text = {bytes, len};
    if (rc_failed(decode_json(arena, kind_info(KIND_JOB)->schema, text, &value, &err))) {
        fail_msg("%s: %s", json, err.text);
    }
    return value;
}

static struct gang_size size_of_job(struct arena *arena, const char *json)
{
    struct gang_size size = {0};
    struct err err;
    if (rc_failed(job_gang_size(arena, job_of(arena, json), &size, &err))) {
        fail_msg("%s: %s", json, err.text);
    }
    return size;
}

static void check_size(struct arena *arena, const char *json, int64_t pods, int64_t min_count,
                       enum gang_size_source source)
{
    struct gang_size size = size_of_job(arena, json);
    check_i64(size.pods, pods);
    check_i64(size.min_count, min_count);
    check_i64(size.source, source);
}

static void check_invalid(struct arena *arena, const char *json, const char *expected)
{
    struct gang_size size = {.pods = 42};
    struct err err;
    check_i64(job_gang_size(arena, job_of(arena, json), &size, &err).code, RC_INVALID);
    assert_string_equal(err.text, expected);
    check_i64(size.pods, 42);
}

/* -- completions ------------------------------------------------------------------------------- */

struct left_row {
    const char *json;
    int64_t left;
};

static void completions_left_are_those_not_done_for_good(void **state)
{
    static const struct left_row rows[] = {
        {"{'spec':{'parallelism':4,'completions':10}}", 10},
        {"{'spec':{'completions':10},'status':{'succeeded':3}}", 7},
        {"{'spec':{'completions':10},'status':{'succeeded':3,"
         "'uncountedTerminatedPods':{'succeeded':['a','b'],'failed':['c']}}}",
         5},
        /* A failed pod of a NonIndexed Job is tried again. */
        {"{'spec':{'completions':10},'status':{'succeeded':3,'failed':5}}", 7},
        {"{'spec':{'completions':2},'status':{'succeeded':3}}", 0},
        {"{'spec':{'completions':0}}", 0},
        {"{'spec':{'completions':10,'completionMode':'Indexed'},'status':{"
         "'succeeded':4,'completedIndexes':'1,3-5'}}",
         6},
        {"{'spec':{'completions':10,'completionMode':'Indexed'},'status':{"
         "'completedIndexes':'1,3-5','failedIndexes':'0,7-8'}}",
         3},
        {"{'spec':{'completions':10,'completionMode':'Indexed'},'status':{"
         "'completedIndexes':'0-9'}}",
         0},
        {"{'spec':{'completions':10,'completionMode':'Indexed'},'status':{'completedIndexes':''}}",
         10},
        /* Scaled down: an index beyond the end isn't one of those that were asked for. */
        {"{'spec':{'completions':3,'completionMode':'Indexed'},'status':{"
         "'completedIndexes':'1-7,9'}}",
         1},
        {"{'spec':{'completions':10,'completionMode':'Indexed'},'status':{"
         "'completedIndexes':'x,2,-,3,4-y,6-5,2,1-2,3'}}",
         8},
        /* A work queue. */
        {"{'spec':{'parallelism':4}}", 4},
        {"{'spec':{}}", 1},
        {"{'spec':{'parallelism':4},'status':{'active':3,'succeeded':1}}", 3},
        {"{'spec':{'parallelism':4},'status':{'active':9,'succeeded':1}}", 4},
        {"{'spec':{'parallelism':4},'status':{'uncountedTerminatedPods':{'succeeded':['a']}}}", 0},
        {"{'spec':{'parallelism':4},'status':{'active':2,'failed':7}}", 4},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        int64_t left = job_completions_left(job_of(*state, rows[i].json));
        if (left != rows[i].left) {
            fail_msg("%s: %lld", rows[i].json, (long long)left);
        }
    }
}

static void pods_are_the_smaller_of_parallelism_and_completions_left(void **state)
{
    check_size(*state, "{'spec':{'parallelism':4,'completions':10}}", 4, 4, GANG_SIZE_DEFAULT);
    check_size(*state, "{'spec':{'parallelism':4,'completions':10},'status':{'succeeded':8}}", 2, 2,
               GANG_SIZE_DEFAULT);
    check_size(*state, "{'spec':{'completions':10}}", 1, 1, GANG_SIZE_DEFAULT);
    check_size(*state, "{'spec':{}}", 1, 1, GANG_SIZE_DEFAULT);
    check_size(*state, "{'spec':{'parallelism':0,'completions':10}}", 0, 0, GANG_SIZE_DEFAULT);
    check_size(*state, "{'spec':{'parallelism':4,'completions':4},'status':{'succeeded':4}}", 0, 0,
               GANG_SIZE_DEFAULT);
}

/* -- min-count --------------------------------------------------------------------------------- */

#define FIELD(n) "'scheduling':{'schedulingPolicy':{'gang':{'minCount':" n "}}}"
#define APPLIED(n)                                                                                 \
    "'kubectl.kubernetes.io/last-applied-configuration':'{`kind`:`Job`,`spec`:{`parallelism`:4,"   \
    "`scheduling`:{`schedulingPolicy`:{`gang`:{`minCount`:" n "}}}}}'"
#define ANNOTATION(n) "'tallyman.dev/min-count':'" n "'"

static void the_field_goes_first_then_the_annotation_then_last_applied(void **state)
{
    check_size(*state,
               "{'metadata':{'annotations':{" ANNOTATION("2") "," APPLIED(
                   "3") "}},"
                        "'spec':{'parallelism':4,'completions':4," FIELD("1") "}}",
               4, 1, GANG_SIZE_FIELD);
    check_size(*state,
               "{'metadata':{'annotations':{" APPLIED("3") "," ANNOTATION(
                   "2") "}},"
                        "'spec':{'parallelism':4,'completions':4}}",
               4, 2, GANG_SIZE_ANNOTATION);
    check_size(
        *state,
        "{'metadata':{'annotations':{" APPLIED("3") "}},"
                                                    "'spec':{'parallelism':4,'completions':4}}",
        4, 3, GANG_SIZE_LAST_APPLIED);
    check_size(
        *state,
        "{'metadata':{'annotations':{" APPLIED("null") "}},"
                                                       "'spec':{'parallelism':4,'completions':4}}",
        4, 4, GANG_SIZE_DEFAULT);
}

static void an_unreadable_last_applied_says_nothing(void **state)
{
    check_size(*state,
               "{'metadata':{'annotations':{"
               "'kubectl.kubernetes.io/last-applied-configuration':'{`minCount`:'}},"
               "'spec':{'parallelism':4}}",
               4, 4, GANG_SIZE_DEFAULT);
    check_size(*state, "{'metadata':{'annotations':{" APPLIED("`2`") "}},'spec':{'parallelism':4}}",
               4, 4, GANG_SIZE_DEFAULT);
}

static void a_finished_index_does_not_break_the_gang(void **state)
{
    check_size(*state,
               "{'metadata':{'annotations':{" ANNOTATION(
                   "3") "}},'spec':{'parallelism':4,"
                        "'completions':4,'completionMode':'Indexed'},"
                        "'status':{'completedIndexes':'0,2'}}",
               2, 2, GANG_SIZE_ANNOTATION);
    check_size(*state,
               "{'metadata':{'annotations':{" ANNOTATION("4") "}},'spec':{'parallelism':4,"
                                                              "'completions':2}}",
               2, 2, GANG_SIZE_ANNOTATION);
}

/* parallelism 0 is a pause, and no min-count fits it. */
static void a_paused_job_has_no_wrong_size(void **state)
{
    check_size(*state,
               "{'metadata':{'annotations':{" ANNOTATION("4") "}},'spec':{'parallelism':0}}", 0, 0,
               GANG_SIZE_ANNOTATION);
}

static void a_wrong_min_count_is_named_with_what_would_be_right(void **state)
{
    check_invalid(*state,
                  "{'metadata':{'annotations':{" ANNOTATION("two") "}},'spec':{'parallelism':4}}",
                  "annotation tallyman.dev/min-count is \"two\"; it has to be a whole number from "
                  "1 to 4 (spec.parallelism)");
    check_invalid(
        *state, "{'metadata':{'annotations':{" ANNOTATION("") "}},'spec':{'parallelism':4}}",
        "annotation tallyman.dev/min-count is \"\"; it has to be a whole number from 1 to "
        "4 (spec.parallelism)");
    check_invalid(*state,
                  "{'metadata':{'annotations':{" ANNOTATION("0") "}},'spec':{'parallelism':4}}",
                  "annotation tallyman.dev/min-count is 0; it has to be from 1 to 4 "
                  "(spec.parallelism)");
    check_invalid(*state,
                  "{'metadata':{'annotations':{" ANNOTATION("5") "}},'spec':{'parallelism':4}}",
                  "annotation tallyman.dev/min-count is 5, but spec.parallelism is 4, so that many "
                  "pods never run at once; lower it to 4 or less, or raise spec.parallelism");
    check_invalid(*state, "{'spec':{'parallelism':4," FIELD("-1") "}}",
                  "field spec.scheduling.schedulingPolicy.gang.minCount is -1; it has to be from 1 "
                  "to 4 (spec.parallelism)");
    check_invalid(*state, "{'metadata':{'annotations':{" APPLIED("9") "}},'spec':{}}",
                  "field spec.scheduling.schedulingPolicy.gang.minCount (in annotation "
                  "kubectl.kubernetes.io/last-applied-configuration) is 9, but spec.parallelism is "
                  "1, so that many pods never run at once; lower it to 1 or less, or raise "
                  "spec.parallelism");
}

static void partial_is_allowed_by_its_annotation_alone(void **state)
{
    assert_true(size_of_job(*state, "{'metadata':{'annotations':{'tallyman.dev/partial':'true'}}}")
                    .is_partial_allowed);
    assert_false(
        size_of_job(*state, "{'metadata':{'annotations':{'tallyman.dev/partial':'false'}}}")
            .is_partial_allowed);
    assert_false(size_of_job(*state, "{'spec':{'parallelism':2}}").is_partial_allowed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(completions_left_are_those_not_done_for_good),
        TEST(pods_are_the_smaller_of_parallelism_and_completions_left),
        TEST(the_field_goes_first_then_the_annotation_then_last_applied),
        TEST(an_unreadable_last_applied_says_nothing),
        TEST(a_finished_index_does_not_break_the_gang),
        TEST(a_paused_job_has_no_wrong_size),
        TEST(a_wrong_min_count_is_named_with_what_would_be_right),
        TEST(partial_is_allowed_by_its_annotation_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
