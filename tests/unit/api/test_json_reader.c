/* JSON text to tokens: whatever the chunks are cut like, and never more memory than the limits say.
 */
#include "support/check.h"
#include "support/tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tallyman/api/codec.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

/* Reads the text in chunks of `chunk_bytes`; the tokens, or the sentence of the failure. */
static struct rc read_chunks(struct str text, size_t chunk_bytes, struct tokens *tokens,
                             struct err *err)
{
    struct json_reader *reader;
    struct rc rc = RC_SUCCESS;

    *tokens = (struct tokens){.len = 0};
    reader = json_reader_new(tokens_sink(tokens));
    for (size_t at = 0; at < text.len && !rc_failed(rc); at += chunk_bytes) {
        struct str chunk = str_take(str_skip(text, at), chunk_bytes);

        rc = json_reader_feed(reader, chunk.ptr, chunk.len, err);
    }
    if (!rc_failed(rc)) {
        rc = json_reader_finish(reader, err);
    }
    json_reader_free(reader);
    return rc;
}

static void check_tokens(const char *text, const char *expected)
{
    static struct tokens tokens;
    struct err err = {{0}};

    for (size_t chunk_bytes = 1; chunk_bytes <= strlen(text); chunk_bytes++) {
        struct rc rc = read_chunks(str_from_c(text), chunk_bytes, &tokens, &err);

        if (rc_failed(rc)) {
            fail_msg("chunks of %zu: %s", chunk_bytes, err.text);
        }
        assert_string_equal(tokens.text, expected);
    }
}

static void check_refused(const char *text, const char *sentence)
{
    static struct tokens tokens;
    struct err err = {{0}};

    for (size_t chunk_bytes = 1; chunk_bytes <= strlen(text); chunk_bytes++) {
        check_i64(read_chunks(str_from_c(text), chunk_bytes, &tokens, &err).code, RC_INVALID);
        assert_string_equal(err.text, sentence);
    }
}

static void chunks_may_be_cut_anywhere(void **state)
{
    (void)state;
    check_tokens("{\"gr\xc3\xb6\xc3\x9f\x65\":\"\xf0\x9f\x98\x80\",\"b\":[null,true,false,{}]}",
                 "{ gr\xc3\xb6\xc3\x9f\x65: \"\xf0\x9f\x98\x80\" b: [ null true false { } ] } ");
    check_tokens("[\"\\u00e9\\ud83d\\ude00\\n\\\"\\\\\\/\",\"\"]",
                 "[ \"\xc3\xa9\xf0\x9f\x98\x80\n\"\\/\" \"\" ] ");
    check_tokens(" {\"a\" : [ ] }\r\n\t{}[]\n", "{ a: [ ] } { } [ ] ");
}

static void numbers_keep_their_text(void **state)
{
    (void)state;
    check_tokens("[0,-1,1.50,1e3,123456789012345678901234567890,0.1E-7]",
                 "[ 0 -1 1.50 1e3 123456789012345678901234567890 0.1E-7 ] ");
    check_tokens("12 34\n5", "12 34 5 ");
}

static void an_empty_stream_is_no_error(void **state)
{
    static struct tokens tokens;
    struct err err;

    (void)state;
    check_i64(read_chunks(STR(""), 1, &tokens, &err).code, RC_OK);
    check_i64(read_chunks(STR(" \n\t "), 1, &tokens, &err).code, RC_OK);
    check_i64(tokens.count, 0);
}

static void faults_are_told_in_plain_sentences(void **state)
{
    (void)state;
    check_refused("{\"a\":1", "not JSON at byte 6: the text ends in the middle of a value");
    check_refused("[1 2]", "not JSON at byte 4: ',' or ']' is missing");
    check_refused("{\"a\" 1}", "not JSON at byte 6: a key without its colon");
    check_refused("{1:2}", "not JSON at byte 2: a key that isn't a text in quotes");
    check_refused("[\"\x01\"]",
                  "not JSON at byte 2: a control character in a text; it has to be escaped");
    check_refused("[\"a\xff\"]", "not JSON at byte 5: a text isn't valid UTF-8");
    check_refused("[\"\xc0\xaf\"]", "not JSON at byte 5: a text isn't valid UTF-8");
    check_refused("[\"\xed\xa0\x80\"]", "not JSON at byte 6: a text isn't valid UTF-8");
    check_refused("{\"\xf4\x90\x80\x80\":1}", "not JSON at byte 7: a text isn't valid UTF-8");
}

static void a_reader_is_ready_again_after_finish(void **state)
{
    struct tokens tokens = {.len = 0};
    struct json_reader *reader = json_reader_new(tokens_sink(&tokens));
    struct err err;

    (void)state;
    check_i64(json_reader_feed(reader, "[1,", 3, &err).code, RC_OK);
    check_i64(json_reader_finish(reader, &err).code, RC_INVALID);
    check_i64(json_reader_feed(reader, "]", 1, &err).code, RC_INVALID);
    check_i64(json_reader_feed(reader, "[]", 2, &err).code, RC_INVALID);
    assert_string_equal(err.text, "the text before this was refused");
    check_i64(json_reader_finish(reader, &err).code, RC_INVALID);
    tokens = (struct tokens){.len = 0};
    check_i64(json_reader_feed(reader, "{}", 2, &err).code, RC_OK);
    check_i64(json_reader_finish(reader, &err).code, RC_OK);
    assert_string_equal(tokens.text, "{ } ");
    json_reader_free(reader);
    json_reader_free(NULL);
}

static struct rc refuse_token(void *ctx, const struct token *token, struct err *err)
{
    (void)ctx;
    return token->kind == TOKEN_NULL ? err_set(err, RC_CONFLICT, "no null here") : RC_SUCCESS;
}

static void a_sink_stops_the_reader(void **state)
{
    struct json_reader *reader = json_reader_new((struct token_sink){refuse_token, NULL});
    struct err err;

    (void)state;
    check_i64(json_reader_feed(reader, "[1,null]", 8, &err).code, RC_CONFLICT);
    assert_string_equal(err.text, "no null here");
    json_reader_free(reader);
}

/* -- limits -------------------------------------------------------------------------------------
 */

/* Feeds `head`, then `fill` until it is refused or `max_bytes` have gone in; the bytes that went.
 */
static size_t feed_until_refused(const char *head, const char *fill, size_t max_bytes,
                                 struct err *err)
{
    static struct tokens tokens;
    struct json_reader *reader;
    size_t fed_bytes = 0;
    struct rc rc;

    tokens = (struct tokens){.len = 0};
    reader = json_reader_new(tokens_sink(&tokens));
    rc = json_reader_feed(reader, head, strlen(head), err);
    while (!rc_failed(rc) && fed_bytes < max_bytes) {
        rc = json_reader_feed(reader, fill, strlen(fill), err);
        fed_bytes += strlen(fill);
    }
    check_i64(rc.code, rc_failed(rc) ? RC_LIMIT : RC_OK);
    json_reader_free(reader);
    return fed_bytes;
}

static char *filled(size_t bytes, char c)
{
    char *text = mem_alloc(bytes + 1);

    memset(text, c, bytes);
    text[bytes] = '\0';
    return text;
}

static void a_text_without_end_is_refused_before_memory_grows(void **state)
{
    char *fill = filled(1000, 'x');
    struct err err;
    size_t bytes = feed_until_refused("[\"", fill, 64u * 1024 * 1024, &err);

    (void)state;
    assert_in_range(bytes, DECODE_TOKEN_MAX_BYTES, DECODE_TOKEN_MAX_BYTES + 2000);
    assert_string_equal(err.text, "a text is longer than 1572864 bytes");
    mem_free(fill);
    bytes = feed_until_refused("[1", "00000000", 64u * 1024 * 1024, &err);
    assert_in_range(bytes, DECODE_TOKEN_MAX_BYTES, DECODE_TOKEN_MAX_BYTES + 2000);
}

static void a_text_in_one_chunk_has_the_same_limit(void **state)
{
    static struct tokens tokens;
    char *text = filled(DECODE_TOKEN_MAX_BYTES + 3, 'x');
    struct str all = str_from_c(text);
    struct err err;

    (void)state;
    text[0] = '"';
    text[all.len - 1] = '"';
    check_i64(read_chunks(all, all.len, &tokens, &err).code, RC_LIMIT);
    text[all.len - 2] = '"';
    check_i64(read_chunks(str_take(all, all.len - 1), all.len, &tokens, &err).code, RC_OK);
    mem_free(text);
}

static void an_object_without_end_is_refused(void **state)
{
    struct err err;
    size_t bytes = feed_until_refused("[0", ",\"0123456789\"", 64u * 1024 * 1024, &err);

    (void)state;
    assert_in_range(bytes, DECODE_OBJECT_MAX_BYTES - 16, DECODE_OBJECT_MAX_BYTES + 16);
    assert_string_equal(err.text, "the object is longer than 4194304 bytes");
}

static void many_objects_have_no_limit_together(void **state)
{
    struct err err;
    size_t bytes = feed_until_refused("", "{\"a\":[\"0123456789\"]}   \n   ",
                                      2 * DECODE_OBJECT_MAX_BYTES, &err);

    (void)state;
    assert_true(bytes >= 2 * DECODE_OBJECT_MAX_BYTES);
    /* White space between objects is nobody's. */
    bytes = feed_until_refused("{}", "          ", 2 * DECODE_TOKEN_MAX_BYTES, &err);
    assert_true(bytes >= 2 * DECODE_TOKEN_MAX_BYTES);
}

static void depth_has_its_limit(void **state)
{
    static struct tokens tokens;
    char text[2 * DECODE_DEPTH_MAX + 4];
    struct err err;

    (void)state;
    memset(text, '[', DECODE_DEPTH_MAX);
    memset(text + DECODE_DEPTH_MAX, ']', DECODE_DEPTH_MAX);
    check_i64(read_chunks((struct str){text, 2 * DECODE_DEPTH_MAX}, 7, &tokens, &err).code, RC_OK);
    memset(text, '[', DECODE_DEPTH_MAX + 1);
    check_i64(read_chunks((struct str){text, 2 * DECODE_DEPTH_MAX}, 7, &tokens, &err).code,
              RC_LIMIT);
    assert_string_equal(err.text, "the text is nested deeper than 64 levels");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_may_be_cut_anywhere),
        cmocka_unit_test(numbers_keep_their_text),
        cmocka_unit_test(an_empty_stream_is_no_error),
        cmocka_unit_test(faults_are_told_in_plain_sentences),
        cmocka_unit_test(a_reader_is_ready_again_after_finish),
        cmocka_unit_test(a_sink_stops_the_reader),
        cmocka_unit_test(a_text_without_end_is_refused_before_memory_grows),
        cmocka_unit_test(a_text_in_one_chunk_has_the_same_limit),
        cmocka_unit_test(an_object_without_end_is_refused),
        cmocka_unit_test(many_objects_have_no_limit_together),
        cmocka_unit_test(depth_has_its_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
