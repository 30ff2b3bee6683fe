#include <string.h>

#include "support/check.h"
#include "tallyman/kube/outcome.h"

struct fixture {
    struct arena arena;
    struct kube_response response;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    arena_init(&fixture.arena);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    arena_deinit(&fixture->arena);
    return 0;
}

static const struct kube_response *classify(struct fixture *fixture, const char *method,
                                            struct transfer_end end)
{
    struct outcome_request request = {method, STR("/x")};
    outcome_classify(&fixture->arena, &request, &end, &fixture->response);
    return &fixture->response;
}

static void every_code_has_its_outcome(void **state)
{
    static const struct {
        uint32_t code;
        enum kube_outcome outcome;
        bool may_have_happened;
    } rows[] = {
        {200, KUBE_DONE, false},      {201, KUBE_DONE, false},      {202, KUBE_DONE, false},
        {302, KUBE_RETRY, false},     {400, KUBE_INVALID, false},   {401, KUBE_FORBIDDEN, false},
        {403, KUBE_FORBIDDEN, false}, {404, KUBE_NOT_FOUND, false}, {405, KUBE_INVALID, false},
        {408, KUBE_RETRY, false},     {409, KUBE_CONFLICT, false},  {410, KUBE_GONE, false},
        {413, KUBE_INVALID, false},   {415, KUBE_INVALID, false},   {422, KUBE_INVALID, false},
        {429, KUBE_RETRY, false},     {500, KUBE_RETRY, true},      {501, KUBE_RETRY, false},
        {502, KUBE_RETRY, true},      {503, KUBE_RETRY, false},     {504, KUBE_RETRY, true},
        {599, KUBE_RETRY, true},      {0, KUBE_RETRY, false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct transfer_end end = {.ending = ENDED_WHOLE, .code = rows[i].code};
        const struct kube_response *response = classify(*state, "PATCH", end);
        if (response->outcome != rows[i].outcome ||
            response->may_have_happened != rows[i].may_have_happened) {
            fail_msg("%u: %s, %d", rows[i].code, kube_outcome_name(response->outcome),
                     response->may_have_happened);
        }
        assert_false(classify(*state, "GET", end)->may_have_happened);
    }
}

static void every_ending_has_its_outcome(void **state)
{
    static const struct {
        enum transfer_ending ending;
        enum kube_outcome outcome;
        bool may_have_happened;
    } rows[] = {
        {ENDED_UNSENT, KUBE_RETRY, false},       {ENDED_BROKEN, KUBE_RETRY, true},
        {ENDED_SILENT, KUBE_RETRY, true},        {ENDED_BY_HANDLER, KUBE_RETRY, true},
        {ENDED_CANCELLED, KUBE_CANCELLED, true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        /* Even if the answer began with a 200: it isn't whole. */
        struct transfer_end end = {
            .ending = rows[i].ending, .code = 200, .error = STR("it broke off")};
        const struct kube_response *response = classify(*state, "POST", end);
        check_i64(response->outcome, rows[i].outcome);
        check_i64(response->may_have_happened, rows[i].may_have_happened);
        check_str(response->message, "POST /x: it broke off");
    }
}

static void a_status_is_told_by_its_causes(void **state)
{
    struct transfer_end end = {
        .ending = ENDED_WHOLE,
        .code = 422,
        .refusal = STR("{\"kind\":\"Status\",\"reason\":\"Invalid\",\"message\":\"a dump\","
                       "\"details\":{\"causes\":[{\"field\":\"spec.a\",\"message\":\"is bad\"},"
                       "{\"field\":\"metadata.uid\",\"message\":\"field is immutable\"}]}}")};
    const struct kube_response *response = classify(*state, "PATCH", end);
    check_str(response->message, "PATCH /x: the server answers 422 Invalid: spec.a: is bad; "
                                 "metadata.uid: field is immutable");
    assert_true(kube_status_names_field(response->status, "metadata.uid"));
    assert_false(kube_status_names_field(response->status, "metadata"));
    assert_false(kube_status_names_field(NULL, "metadata"));
}

static void without_a_status_the_body_is_quoted_and_cut(void **state)
{
    static char page[3000];
    memset(page, 'p', sizeof(page));
    struct transfer_end end = {.ending = ENDED_WHOLE, .code = 502, .refusal = {page, sizeof(page)}};
    const struct kube_response *response = classify(*state, "GET", end);
    assert_null(response->status);
    assert_true(response->message.len < 300);
    assert_true(str_starts_with(response->message, STR("GET /x: the server answers 502: pppp")));

    end.refusal = STR("404 page not found\nand more\n");
    check_str(classify(*state, "GET", end)->message,
              "GET /x: the server answers 502: 404 page not found");
    end.refusal = STR("{\"kind\":\"Status\",");
    assert_null(classify(*state, "GET", end)->status);
    end.refusal = STR("{}");
    assert_null(classify(*state, "GET", end)->status);
}

static void the_pause_comes_from_header_or_body(void **state)
{
    struct transfer_end end = {
        .ending = ENDED_WHOLE,
        .code = 429,
        .refusal = STR("{\"reason\":\"TooManyRequests\",\"details\":{\"retryAfterSeconds\":7}}")};
    check_i64(classify(*state, "GET", end)->retry_after_ms, 7000);
    end.retry_after_ms = 2000;
    check_i64(classify(*state, "GET", end)->retry_after_ms, 2000);
    end.retry_after_ms = 0;
    end.refusal = STR("{\"reason\":\"x\",\"details\":{\"retryAfterSeconds\":-7}}");
    check_i64(classify(*state, "GET", end)->retry_after_ms, 0);
    end.refusal = STR("{\"reason\":\"x\",\"details\":{\"retryAfterSeconds\":9000000000000000000}}");
    check_i64(classify(*state, "GET", end)->retry_after_ms, 120000);
}

static void retry_after_is_read_as_seconds(void **state)
{
    (void)state;
    check_i64(outcome_parse_retry_after_ms(STR("1")), 1000);
    check_i64(outcome_parse_retry_after_ms(STR("0")), 0);
    check_i64(outcome_parse_retry_after_ms(STR("-5")), 0);
    check_i64(outcome_parse_retry_after_ms(STR("")), 0);
    check_i64(outcome_parse_retry_after_ms(STR("Fri, 31 Dec 1999 23:59:59 GMT")), 0);
    check_i64(outcome_parse_retry_after_ms(STR("99999999999999999999")), 0);
    check_i64(outcome_parse_retry_after_ms(STR("9223372036854775807")), 120000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_code_has_its_outcome, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_ending_has_its_outcome, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_status_is_told_by_its_causes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_status_the_body_is_quoted_and_cut, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_pause_comes_from_header_or_body, set_up, tear_down),
        cmocka_unit_test(retry_after_is_read_as_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
