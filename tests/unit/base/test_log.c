#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/log.h"

#define HEAD "{\"time\":\"2026-11-29T12:00:00.042000Z\",\"level\":\"info\",\"msg\":"

struct capture {
    char text[LOG_LINE_MAX_BYTES + 1];
    size_t len;
    int lines;
};

static void on_line(void *ctx, enum log_level level, struct str line)
{
    struct capture *capture = ctx;

    (void)level;
    assert_true(line.len < sizeof(capture->text));
    memcpy(capture->text, line.ptr, line.len);
    capture->text[line.len] = '\0';
    capture->len = line.len;
    capture->lines++;
}

static int64_t fixed_now(void *ctx)
{
    (void)ctx;
    return INT64_C(1795953600042);
}

static struct log_sink sink_of(struct capture *capture)
{
    return (struct log_sink){
        .write_line = on_line, .now_ms = fixed_now, .ctx = capture, .min_level = LOG_INFO};
}

/* What one field with that text looks like in the line. */
static void expect_field(struct str text, const char *written)
{
    struct capture capture = {.lines = 0};
    struct log_sink sink = sink_of(&capture);
    struct log_field fields[] = {LOG_STR("f", text), {.key = NULL}};
    char expected[512];

    log_line(&sink, LOG_INFO, "m", fields);
    (void)snprintf(expected, sizeof(expected), HEAD "\"m\",\"f\":\"%s\"}", written);
    assert_string_equal(capture.text, expected);
}

static void a_line_is_one_object(void **state)
{
    struct capture capture = {.lines = 0};
    struct log_sink sink = sink_of(&capture);
    struct log_field fields[] = {
        LOG_STR("job", STR("ml/train-a")),
        LOG_INT("pods", INT64_MIN),
        LOG_INT("free", INT64_MAX),
        {.key = NULL},
    };

    (void)state;
    log_line(&sink, LOG_INFO, "admitted", fields);
    assert_string_equal(capture.text, HEAD "\"admitted\",\"job\":\"ml/train-a\","
                                           "\"pods\":-9223372036854775808,"
                                           "\"free\":9223372036854775807}");
    log_line(&sink, LOG_INFO, "plain", NULL);
    assert_string_equal(capture.text, HEAD "\"plain\"}");
}

static void below_the_level_nothing_is_written(void **state)
{
    struct capture capture = {.lines = 0};
    struct log_sink sink = sink_of(&capture);

    (void)state;
    log_line(&sink, LOG_DEBUG, "no", NULL);
    check_i64(capture.lines, 0);
    log_line(&sink, LOG_WARN, "yes", NULL);
    log_line(&sink, LOG_ERROR, "yes", NULL);
    check_i64(capture.lines, 2);
    assert_non_null(strstr(capture.text, "\"level\":\"error\""));
}

/* Nothing in a name may end the line, forge a field, move a cursor or turn the text around. */
static void hostile_text_is_escaped(void **state)
{
    (void)state;
    expect_field(STR("a\"b\\c"), "a\\\"b\\\\c");
    expect_field(STR("a\nb\tc\r"), "a\\nb\\tc\\u000d");
    expect_field(STR("\x1b[31m\x7f"), "\\u001b[31m\\u007f");
    expect_field(STR("a\0b"), "a\\u0000b");
    expect_field(STR("\xc2\x9b"), "\\u009b");
    expect_field(STR("\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6"), "\\u2028\\u202e\\u2066");
    expect_field(STR("é€\xf0\x9f\x9a\xa2"), "é€\xf0\x9f\x9a\xa2");
    expect_field(STR_NONE, "");
}

static void invalid_utf8_becomes_replacement_characters(void **state)
{
    (void)state;
    expect_field(STR("a\xff"), "a\xef\xbf\xbd");
    expect_field(STR("\x80z"), "\xef\xbf\xbdz");
    expect_field(STR("\xc3"), "\xef\xbf\xbd");
    expect_field(STR("\xc3("), "\xef\xbf\xbd(");
    expect_field(STR("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd");
    expect_field(STR("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    expect_field(STR("\xe0\x80\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    expect_field(STR("\xf4\x90\x80\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    expect_field(STR("\xf5"), "\xef\xbf\xbd");
}

static void long_field_is_cut_between_characters(void **state)
{
    struct capture capture = {.lines = 0};
    struct log_sink sink = sink_of(&capture);
    char text[LOG_FIELD_MAX_BYTES + 8];

    (void)state;
    memset(text, 'x', sizeof(text));
    memcpy(text + LOG_FIELD_MAX_BYTES - 1, "\xc3\xa9", 2);
    struct log_field fields[] = {LOG_STR("f", ((struct str){text, sizeof(text)})), {.key = NULL}};

    log_line(&sink, LOG_INFO, "m", fields);
    assert_true(str_ends_with((struct str){capture.text, capture.len}, STR("xx…\"}")));
    check_i64(capture.len, strlen(HEAD "\"m\",\"f\":\"…\"}") + LOG_FIELD_MAX_BYTES - 1);

    fields[0].text.len = LOG_FIELD_MAX_BYTES - 1;
    log_line(&sink, LOG_INFO, "m", fields);
    assert_true(str_ends_with((struct str){capture.text, capture.len}, STR("xxx\"}")));
}

/* A field that doesn't fit is left out whole, a later small one still gets in. */
static void overlong_line_stays_an_object(void **state)
{
    struct capture capture = {.lines = 0};
    struct log_sink sink = sink_of(&capture);
    char controls[LOG_FIELD_MAX_BYTES];

    (void)state;
    memset(controls, 1, sizeof(controls)); /* six bytes each when escaped */
    struct str large = {controls, sizeof(controls)};
    struct log_field fields[] = {
        LOG_STR("a", large), LOG_STR("b", large), LOG_INT("c", 7), {.key = NULL}};

    log_line(&sink, LOG_INFO, "m", fields);
    assert_non_null(strstr(capture.text, "\"a\":\"\\u0001"));
    assert_null(strstr(capture.text, "\"b\":"));
    assert_true(str_ends_with((struct str){capture.text, capture.len},
                              STR("\\u0001\",\"c\":7,\"truncated\":true}")));
    assert_true(capture.len <= LOG_LINE_MAX_BYTES);
}

static void levels_are_read(void **state)
{
    enum log_level level = LOG_DEBUG;

    (void)state;
    assert_true(log_level_parse(STR("warn"), &level));
    check_i64(level, LOG_WARN);
    assert_true(log_level_parse(STR("debug"), &level));
    assert_true(log_level_parse(STR("error"), &level));
    assert_false(log_level_parse(STR("Info"), &level));
    assert_false(log_level_parse(STR(""), &level));
    assert_false(log_level_parse(STR_NONE, &level));
    check_i64(level, LOG_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_one_object),
        cmocka_unit_test(below_the_level_nothing_is_written),
        cmocka_unit_test(hostile_text_is_escaped),
        cmocka_unit_test(invalid_utf8_becomes_replacement_characters),
        cmocka_unit_test(long_field_is_cut_between_characters),
        cmocka_unit_test(overlong_line_stays_an_object),
        cmocka_unit_test(levels_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
