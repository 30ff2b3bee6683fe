#include <string.h>

#include "support/check.h"
#include "tallyman/base/err.h"

static struct rc read_port(const char *text, int64_t *ret_port, struct err *err)
{
    int64_t port;

    if (!str_to_i64(str_from_c(text), &port)) {
        return err_set(err, RC_INVALID, "port is \"%s\": not a whole number", text);
    }
    *ret_port = port;
    return RC_SUCCESS;
}

static struct rc read_config(const char *text, int64_t *ret_port, struct err *err)
{
    struct rc rc = read_port(text, ret_port, err);

    TRY(err_prefix(err, rc, "config %s", "a.yaml"));
    return RC_SUCCESS;
}

static void failure_carries_its_sentence_and_context(void **state)
{
    struct err err = {""};
    int64_t port = 42;

    (void)state;
    struct rc rc = read_config("x", &port, &err);

    assert_true(rc_failed(rc));
    check_i64(rc.code, RC_INVALID);
    check_str(err_text(&err), "config a.yaml: port is \"x\": not a whole number");
    check_i64(port, 42);
}

static void success_leaves_the_sentence_alone(void **state)
{
    struct err err = {"before"};
    int64_t port = 0;

    (void)state;
    assert_false(rc_failed(read_config("8080", &port, &err)));
    check_i64(port, 8080);
    check_str(err_text(&err), "before");
}

static void nobody_has_to_want_the_sentence(void **state)
{
    int64_t port = 0;

    (void)state;
    check_i64(read_config("x", &port, NULL).code, RC_INVALID);
}

static void long_sentence_is_cut_between_characters(void **state)
{
    char text[ERR_TEXT_MAX_BYTES + 10];
    struct err err = {""};

    (void)state;
    /* 1022 letters and a two-byte character: one byte too many. */
    memset(text, 'x', ERR_TEXT_MAX_BYTES - 2);
    memcpy(text + ERR_TEXT_MAX_BYTES - 2, "\xc3\xa9", 3);
    check_i64(err_set(&err, RC_LIMIT, "%s", text).code, RC_LIMIT);
    check_i64(err_text(&err).len, ERR_TEXT_MAX_BYTES - 2);

    check_i64(err_prefix(&err, (struct rc){RC_LIMIT}, "%s", "\xc3\xa9").code, RC_LIMIT);
    check_i64(err_text(&err).len, ERR_TEXT_MAX_BYTES - 1);
    assert_true(str_starts_with(err_text(&err), STR("\xc3\xa9: xxx")));
}

static void endless_context_is_cut_too(void **state)
{
    char text[2 * ERR_TEXT_MAX_BYTES];
    struct err err = {"the cause"};

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    check_i64(err_prefix(&err, (struct rc){RC_IO}, "%s", text).code, RC_IO);
    check_i64(err_text(&err).len, ERR_TEXT_MAX_BYTES - 1);
}

static void arguments_may_point_into_the_sentence(void **state)
{
    struct err err = {"no such node"};

    (void)state;
    check_i64(err_set(&err, RC_RETRY, "again: %s", err.text).code, RC_RETRY);
    check_str(err_text(&err), "again: no such node");
    check_i64(err_prefix(&err, (struct rc){RC_RETRY}, "(%s)", err.text).code, RC_RETRY);
    check_str(err_text(&err), "(again: no such node): again: no such node");
}

static void every_code_has_a_name(void **state)
{
    (void)state;
    for (int code = RC_OK; code <= RC_CORRUPT; code++) {
        assert_string_not_equal(rc_name((struct rc){(enum rc_code)code}), "unknown");
    }
    assert_string_equal(rc_name((struct rc){(enum rc_code)99}), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failure_carries_its_sentence_and_context),
        cmocka_unit_test(success_leaves_the_sentence_alone),
        cmocka_unit_test(nobody_has_to_want_the_sentence),
        cmocka_unit_test(long_sentence_is_cut_between_characters),
        cmocka_unit_test(endless_context_is_cut_too),
        cmocka_unit_test(arguments_may_point_into_the_sentence),
        cmocka_unit_test(every_code_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
