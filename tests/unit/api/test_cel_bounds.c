/* CEL's messages, and its bounds: what is too long, too deep, too costly ends in an error. */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "tallyman/api/cel.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"

static struct rc evaluate(struct str expression, bool *ret_matches, struct err *err)
{
    static const struct device device = {.name = STR_INIT("d")};
    struct cel_program *program = NULL;
    struct cel_device input = {.driver = STR("dra.example.com"), .device = &device};
    struct arena scratch;
    TRY(cel_compile(expression, &program, err));
    arena_init(&scratch);
    struct rc rc = cel_matches(program, &input, &scratch, ret_matches, err);
    arena_deinit(&scratch);
    cel_program_free(program);
    return rc;
}

struct row {
    enum rc_code code;
    const char *expression;
    const char *text;
};

static void messages_name_the_place_and_what_is_wrong(void **state)
{
    static const struct row rows[] = {
        {RC_INVALID, "device.driver ==", "1:17: the expression ends where a value was expected"},
        {RC_INVALID, "true &&\n  foo",
         "2:3: there is no variable called 'foo'; a selector sees "
         "`device` and what its macros declare"},
        {RC_INVALID, "device.driver == 1", "1:15: == doesn't take (string, int)"},
        {RC_INVALID, "'\xc3\xa9' == foo(1)", "1:8: there is no function or method 'foo'"},
        {RC_INVALID, "'abc", "1:1: this string has no closing quote"},
        {RC_INVALID, "'\\q'",
         "1:2: unknown or broken escape in a string; \\\\ stands for a "
         "backslash"},
        {RC_INVALID, "device.foo",
         "1:8: a device has no field 'foo'; it has driver, attributes, "
         "capacity and allowMultipleAllocations"},
        {RC_INVALID, "isIP('1')", "1:1: the function 'isIP' is not supported"},
        {RC_INVALID, "'a'.matches('(')", "1:13: the pattern isn't one: '(' has no ')'"},
        {RC_INVALID, "1 + 1",
         "1:3: a selector must give true or false; the type of this one is int"},
        {RC_INVALID, "true && device.attributes['a'].b", "1:32: no such key: b"},
        {RC_INVALID, "1 / 0 == 1", "1:3: division by zero"},
        {RC_INVALID, "quantity(device.driver) == null",
         "1:1: this is no quantity: dra.example.com"},
        {RC_INVALID, "dyn(1)",
         "the expression must give true or false; the type of this one is int"},
        {RC_LIMIT, "lists.range(1000000) == []",
         "the expression can't be evaluated: it costs more than the limit allows"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        bool matches = false;
        struct err err = {""};
        struct rc rc = evaluate(str_from_c(rows[i].expression), &matches, &err);
        check_i64(rc.code, rows[i].code);
        check_str(err_text(&err), rows[i].text);
    }
}

static struct rc evaluate_repeated(const char *before, const char *after, const char *core,
                                   uint32_t count)
{
    struct arena arena;
    struct text text;
    bool matches = false;
    arena_init(&arena);
    text_init(&text, &arena, 1 << 20);
    for (uint32_t i = 0; i < count; i++) {
        text_addf(&text, "%s", before);
    }
    text_addf(&text, "%s", core);
    for (uint32_t i = 0; i < count; i++) {
        text_addf(&text, "%s", after);
    }
    struct err err = {""};
    struct rc rc = evaluate(text_str(&text), &matches, &err);
    arena_deinit(&arena);
    return rc;
}

static void what_is_nested_too_deep_is_refused(void **state)
{
    static const struct {
        const char *before;
        const char *after;
        const char *core;
    } rows[] = {
        {"(", ")", "true"},
        {"[", "]", "1"},
        {"!(", ")", "true"},
        {"[1].all(x, ", ")", "true"},
        {"true ? true : ", "", "true"},
        {"", " + 1", "1"},
        {"", ".lowerAscii()", "'a'"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        check_i64(evaluate_repeated(rows[i].before, rows[i].after, rows[i].core, 600).code,
                  RC_LIMIT);
    }
    check_i64(evaluate_repeated("(", ")", "true", 60).code, RC_OK);
    check_i64(evaluate_repeated("", " && true", "true", 900).code, RC_OK);
}

static void a_long_expression_is_refused_before_it_is_read(void **state)
{
    (void)state;
    check_i64(evaluate_repeated("", " ", "true", CEL_EXPRESSION_MAX_BYTES - 4).code, RC_OK);
    check_i64(evaluate_repeated("", " ", "true", CEL_EXPRESSION_MAX_BYTES - 3).code, RC_LIMIT);
}

/* Each doubles something as often as it says; the last is cheap in cel-go and isn't here. */
static void blowups_end_at_a_limit(void **state)
{
    static const char *const rows[] = {
        "lists.range(1000).map(x, lists.range(1000)).size() == 1",
        "lists.range(300000).map(x, x).size() == 1",
        "lists.range(10000).distinct().size() == 1",
        "lists.range(100000).transformMap(i, v, v).size() == 1 && false || lists.range(999999) == "
        "[]",
        "lists.range(100).all(a, lists.range(100).all(b, lists.range(100).all(c, a + b + c >= 0)))",
        "lists.range(1000).map(x, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'"
        ".matches('(((a{10}){10}){10})*$' + string(x))).size() == 1",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        bool matches = false;
        struct err err = {""};
        check_i64(evaluate(str_from_c(rows[i]), &matches, &err).code, RC_LIMIT);
    }
    struct arena arena;
    struct text text;
    bool matches = false;
    arena_init(&arena);
    text_init(&text, &arena, 1 << 20);
    text_addf(&text, "cel.bind(v0, [1, 2], ");
    for (int i = 1; i < 50; i++) {
        text_addf(&text, "cel.bind(v%d, v%d + v%d, ", i, i - 1, i - 1);
    }
    text_addf(&text, "v49.size() > 0");
    for (int i = 0; i < 50; i++) {
        text_addf(&text, ")");
    }
    check_i64(evaluate(text_str(&text), &matches, NULL).code, RC_LIMIT);
    arena_deinit(&arena);
}

static void a_limit_isnt_absorbed(void **state)
{
    bool matches = false;
    (void)state;
    check_i64(evaluate(STR("lists.range(1000000) == [] || true"), &matches, NULL).code, RC_LIMIT);
    check_i64(evaluate(STR("lists.range(2000000) == [] || true"), &matches, NULL).code, RC_OK);
    assert_true(matches);
}

static void the_program_keeps_nothing_of_the_text(void **state)
{
    static const struct device device = {.name = STR_INIT("d")};
    char text[] = "device.driver.startsWith('dra.') && [1, 2].exists(x, x == 2)";
    struct cel_program *program = NULL;
    struct cel_device input = {.driver = STR("dra.example.com"), .device = &device};
    struct arena scratch;
    bool matches = false;
    (void)state;
    assert_false(rc_failed(cel_compile(str_from_c(text), &program, NULL)));
    memset(text, '#', sizeof(text));
    arena_init(&scratch);
    assert_false(rc_failed(cel_matches(program, &input, &scratch, &matches, NULL)));
    assert_true(matches);
    arena_deinit(&scratch);
    cel_program_free(program);
    cel_program_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_name_the_place_and_what_is_wrong),
        cmocka_unit_test(what_is_nested_too_deep_is_refused),
        cmocka_unit_test(a_long_expression_is_refused_before_it_is_read),
        cmocka_unit_test(blowups_end_at_a_limit),
        cmocka_unit_test(a_limit_isnt_absorbed),
        cmocka_unit_test(the_program_keeps_nothing_of_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
