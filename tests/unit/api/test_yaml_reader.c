/* YAML to tokens, as kubectl reads it. */
#include "support/check.h"
#include "support/tokens.h"

#include <stdio.h>
#include <string.h>

#include "tallyman/api/codec.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

static struct tokens tokens;

static struct rc on_document(void *ctx, uint32_t line, struct err *err)
{
    struct tokens *seen = ctx;

    (void)err;
    seen->len +=
        (size_t)snprintf(seen->text + seen->len, sizeof(seen->text) - seen->len, "| %u ", line);
    return RC_SUCCESS;
}

static struct rc read_yaml(struct str text, struct err *err)
{
    tokens = (struct tokens){.len = 0};
    return yaml_read(text, tokens_sink(&tokens), on_document, err);
}

static void check_yaml(const char *text, const char *expected)
{
    struct err err;
    struct rc rc = read_yaml(str_from_c(text), &err);

    if (rc_failed(rc)) {
        fail_msg("%s: %s", text, err.text);
    }
    assert_string_equal(tokens.text, expected);
}

static void check_refused(const char *text, const char *sentence)
{
    struct err err;

    check_i64(read_yaml(str_from_c(text), &err).code, RC_INVALID);
    assert_string_equal(err.text, sentence);
}

static void documents_and_their_lines(void **state)
{
    (void)state;
    check_yaml("# head\na: 1\nb: [x, {c: d}]\n---\n\n- 2\n...\n",
               "{ a: 1 b: [ \"x\" { c: \"d\" } ] } | 2 [ 2 ] | 6 ");
    check_yaml("", "");
    check_yaml("# nothing\n", "");
    check_yaml("---\n---\na: b\n", "null | 2 { a: \"b\" } | 3 ");
    check_yaml("{\"a\": \"\\u00e9\", \"b\": [null]}", "{ a: \"\xc3\xa9\" b: [ null ] } | 1 ");
    check_yaml("a: |\n  one\n  two\nb: >-\n  three\n  four\n",
               "{ a: \"one\ntwo\n\" b: \"three four\" } | 1 ");
}

/* Each pair was compared with sigs.k8s.io/yaml v1.6.0. */
static void unquoted_words_are_what_kubectl_takes_them_for(void **state)
{
    static const struct {
        const char *word;
        const char *token;
    } cases[] = {
        {"yes", "true"},
        {"On", "true"},
        {"y", "true"},
        {"TRUE", "true"},
        {"no", "false"},
        {"OFF", "false"},
        {"n", "false"},
        {"tRue", "\"tRue\""},
        {"~", "null"},
        {"Null", "null"},
        {"", "null"},
        {"nULL", "\"nULL\""},
        {"\"yes\"", "\"yes\""},
        {"'1'", "\"1\""},
        {"0x1F", "31"},
        {"-0x1f", "-31"},
        {"010", "8"},
        {"0o17", "15"},
        {"0b101", "5"},
        {"-0b11", "-3"},
        {"08", "8"},
        {"+5", "5"},
        {"1_000", "1000"},
        {"-0", "0"},
        {"1.0", "1"},
        {"1.10", "1.1"},
        {"0.1", "0.1"},
        {"1e3", "1000"},
        {".5", "0.5"},
        {"1.", "1"},
        {"1e21", "1e+21"},
        {"1E-7", "1e-7"},
        {"1e-6", "0.000001"},
        {"1.5e20", "150000000000000000000"},
        {"-0.0", "-0"},
        {"123456.789e3", "123456789"},
        {"5e-324", "5e-324"},
        {"9223372036854775807", "9223372036854775807"},
        {"18446744073709551615", "18446744073709551615"},
        {"18446744073709551616", "18446744073709552000"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"1e400", "\"1e400\""},
        {"500m", "\"500m\""},
        {"2Gi", "\"2Gi\""},
        {"1:30", "\"1:30\""},
        {"2026-11-29", "\"2026-11-29\""},
        {"2026-11-29T12:00:00Z", "\"2026-11-29T12:00:00Z\""},
        {"0x", "\"0x\""},
        {"0b2", "\"0b2\""},
        {"0xg", "\"0xg\""},
        {"e5", "\"e5\""},
        {"-", "[ null ]"},
        {".e5", "\".e5\""},
        {"1e", "\"1e\""},
        {"..", "\"..\""},
        {"!!str 5", "\"5\""},
        {"!!int 5", "5"},
        {"!!float 5", "5"},
        {"! 5", "\"5\""},
        {"!!bool yes", "true"},
        {"!!int '7'", "7"},
        {"!!binary aGk=", "\"aGk=\""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char text[64];
        char expected[64];

        snprintf(text, sizeof(text), "v:\n %s\n", cases[i].word);
        snprintf(expected, sizeof(expected), "{ v: %s } | 1 ", cases[i].token);
        check_yaml(text, expected);
    }
}

static void keys_become_texts(void **state)
{
    (void)state;
    check_yaml("1: a\nyes: b\n0x10: c\n\"2\": d\n? e\n: f\n",
               "{ 1: \"a\" true: \"b\" 16: \"c\" 2: \"d\" e: \"f\" } | 1 ");
}

static void anchors_aliases_and_merges_are_refused(void **state)
{
    (void)state;
    check_refused("a: &x 1\nb: *x\n",
                  "line 1: &x: anchors and aliases aren't taken; write the value out");
    check_refused("a:\n- &y {b: c}\n",
                  "line 2: &y: anchors and aliases aren't taken; write the value out");
    check_refused("a:\n- &y [b]\n",
                  "line 2: &y: anchors and aliases aren't taken; write the value out");
    check_refused("a: 1\n\nb: *x\n",
                  "line 3: *x: anchors and aliases aren't taken; write the value out");
    check_refused("<<: {a: b}\n", "line 1: <<: merge keys aren't taken; write the values out");
    check_yaml("'<<': '&x *y'\n", "{ <<: \"&x *y\" } | 1 ");
}

static void faults_are_told_with_their_line(void **state)
{
    (void)state;
    check_refused("a: b\n\tc: d\n", "line 2: not YAML: found a tab character that violates "
                                    "indentation, while scanning a plain scalar");
    check_refused("a: b: c\n", "line 1: not YAML: mapping values are not allowed in this context");
    check_refused("a: [1, 2\nb: c\n",
                  "line 2: not YAML: did not find expected ',' or ']', while parsing a flow "
                  "sequence");
    check_refused("a: b\nc: \"\xff\"\n", "line 2: not YAML: invalid leading UTF-8 octet");
    check_refused("a: .inf\n", "line 1: .inf is a number that JSON can't hold; put it in quotes if "
                               "a text is meant");
    check_refused("a: !thing b\n", "line 1: the tag !thing isn't known; leave it out");
    check_refused("a: !!int b\n", "line 1: \"b\" doesn't fit its tag tag:yaml.org,2002:int");
    check_refused("? [a]\n: b\n", "line 1: a key has to be one word, not a list");
    check_refused("? {a: c}\n: b\n", "line 1: a key has to be one word, not an object");
    check_refused("a: b\n~: c\n", "line 2: a key is missing in front of ':' (or is null)");
}

static void limits_hold_for_yaml_too(void **state)
{
    char deep[2 * DECODE_DEPTH_MAX + 8];
    size_t long_bytes = DECODE_TOKEN_MAX_BYTES + 5;
    char *text = mem_alloc(long_bytes + 1);
    struct err err;

    (void)state;
    memset(deep, '[', DECODE_DEPTH_MAX);
    memset(deep + DECODE_DEPTH_MAX, ']', DECODE_DEPTH_MAX);
    check_i64(read_yaml((struct str){deep, 2 * DECODE_DEPTH_MAX}, &err).code, RC_OK);
    memset(deep, '[', DECODE_DEPTH_MAX + 1);
    check_i64(read_yaml((struct str){deep, 2 * DECODE_DEPTH_MAX}, &err).code, RC_LIMIT);
    assert_string_equal(err.text, "line 1: the text is nested deeper than 64 levels");
    memset(text, 'x', long_bytes);
    memcpy(text, "a: \"", 4);
    text[long_bytes - 1] = '"';
    check_i64(read_yaml((struct str){text, long_bytes}, &err).code, RC_OK);
    text[long_bytes - 1] = 'x';
    text[long_bytes] = '"';
    check_i64(read_yaml((struct str){text, long_bytes + 1}, &err).code, RC_LIMIT);
    assert_string_equal(err.text, "line 1: a text is longer than 1572864 bytes");
    mem_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_and_their_lines),
        cmocka_unit_test(unquoted_words_are_what_kubectl_takes_them_for),
        cmocka_unit_test(keys_become_texts),
        cmocka_unit_test(anchors_aliases_and_merges_are_refused),
        cmocka_unit_test(faults_are_told_with_their_line),
        cmocka_unit_test(limits_hold_for_yaml_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
