/* json_reader.c - JSON text to tokens, over yajl.
 *
 * yajl keeps a token that is cut by the end of a chunk in a buffer that grows without a bound,
 * reads it from its start again with every further chunk, and keeps any depth. So it is fed in
 * slices, and what follows a cut token is held back here until the token's end has come: each byte
 * is read twice at most, however small the chunks. After each slice the bytes since the last token
 * and since the object's start are compared with their limits. yajl checks UTF-8 too loosely for
 * us; that is done here, on whole texts.
 *
 * A lone surrogate escape (\ud800) is replaced by yajl; Kubernetes' own encoder writes none. */
#include "codec_private.h"

#include <assert.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

/* What kind of token the last slice ended in the middle of. */
enum cut_token {
    CUT_NONE,
    CUT_TEXT,
    CUT_TEXT_ESCAPE, /* behind a backslash */
    CUT_WORD,        /* a number, true, false, null */
};

struct json_reader {
    struct token_sink sink;
    yajl_handle yajl; /* owned; NULL before the first byte of a stream */
    struct err *err;  /* borrowed for the call of json_reader_feed() */
    struct rc stopped;
    bool is_failed;
    uint32_t depth;
    size_t slice_offset;  /* where in the stream the current slice begins */
    size_t token_offset;  /* where the last token ended */
    size_t object_offset; /* where the current object began */
    size_t object_max_bytes;
    enum cut_token cut;
    char *held; /* owned; the bytes behind a cut token's first part */
    size_t held_bytes;
    size_t held_capacity_bytes;
};

/* -- yajl's memory ----------------------------------------------------------------------------- */

static void *yajl_mem_alloc(void *ctx, size_t bytes)
{
    (void)ctx;
    return mem_alloc(bytes);
}

static void *yajl_mem_realloc(void *ctx, void *old, size_t bytes)
{
    (void)ctx;
    return mem_realloc(old, bytes);
}

static void yajl_mem_free(void *ctx, void *p)
{
    (void)ctx;
    mem_free(p);
}

/* -- callbacks: 1 goes on, 0 stops yajl -------------------------------------------------------- */

static int reader_stop(struct json_reader *reader, struct rc rc)
{
    reader->stopped = rc;
    return 0;
}

static int reader_token(struct json_reader *reader, const struct token *token)
{
    reader->token_offset = reader->slice_offset + yajl_get_bytes_consumed(reader->yajl);
    if (reader->depth == 0) {
        reader->object_offset = reader->token_offset;
    } else if (reader->token_offset - reader->object_offset > reader->object_max_bytes) {
        return reader_stop(reader,
                           err_set(reader->err, RC_LIMIT, "the object is longer than %zu bytes",
                                   reader->object_max_bytes));
    }
    struct rc rc = reader->sink.on_token(reader->sink.ctx, token, reader->err);

    return rc_failed(rc) ? reader_stop(reader, rc) : 1;
}

static int reader_text(struct json_reader *reader, enum token_kind kind, const void *ptr,
                       size_t len)
{
    struct token token = {.kind = kind, .text = {len == 0 ? "" : ptr, len}};

    if (len > DECODE_TOKEN_MAX_BYTES) {
        return reader_stop(reader, err_set(reader->err, RC_LIMIT, "a text is longer than %u bytes",
                                           DECODE_TOKEN_MAX_BYTES));
    }
    if (!utf8_is_valid(token.text)) {
        return reader_stop(reader,
                           err_set(reader->err, RC_INVALID,
                                   "not JSON at byte %zu: a text isn't valid UTF-8",
                                   reader->slice_offset + yajl_get_bytes_consumed(reader->yajl)));
    }
    return reader_token(reader, &token);
}

static int reader_start(struct json_reader *reader, enum token_kind kind)
{
    struct token token = {.kind = kind};

    if (reader->depth >= DECODE_DEPTH_MAX) {
        return reader_stop(reader,
                           err_set(reader->err, RC_LIMIT,
                                   "the text is nested deeper than %d levels", DECODE_DEPTH_MAX));
    }
    int go_on = reader_token(reader, &token);

    reader->depth++;
    return go_on;
}

static int reader_end(struct json_reader *reader, enum token_kind kind)
{
    struct token token = {.kind = kind};

    assert(reader->depth > 0);
    int go_on = reader_token(reader, &token);

    reader->depth--;
    return go_on;
}

static int on_null(void *ctx)
{
    return reader_token(ctx, &(struct token){.kind = TOKEN_NULL});
}

static int on_boolean(void *ctx, int value)
{
    return reader_token(ctx, &(struct token){.kind = TOKEN_BOOL, .boolean = value != 0});
}

static int on_number(void *ctx, const char *text, size_t len)
{
    return reader_text(ctx, TOKEN_NUMBER, text, len);
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
    return reader_text(ctx, TOKEN_STRING, text, len);
}

static int on_map_key(void *ctx, const unsigned char *text, size_t len)
{
    return reader_text(ctx, TOKEN_KEY, text, len);
}

static int on_start_map(void *ctx)
{
    return reader_start(ctx, TOKEN_OBJECT_START);
}

static int on_end_map(void *ctx)
{
    return reader_end(ctx, TOKEN_OBJECT_END);
}

static int on_start_array(void *ctx)
{
    return reader_start(ctx, TOKEN_ARRAY_START);
}

static int on_end_array(void *ctx)
{
    return reader_end(ctx, TOKEN_ARRAY_END);
}

/* yajl_number alone: yajl_integer and yajl_double would lose digits. */
static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_start_map,
    .yajl_map_key = on_map_key,
    .yajl_end_map = on_end_map,
    .yajl_start_array = on_start_array,
    .yajl_end_array = on_end_array,
};

/* -- errors ------------------------------------------------------------------------------------ */

/* yajl's words for the commonest faults, and ours. */
static const struct {
    const char *yajl;
    const char *plain;
} sentences[] = {
    {"premature EOF", "the text ends in the middle of a value"},
    {"invalid char in json text.", "a character that can't stand here"},
    {"invalid string in json text.", "a word that isn't true, false or null"},
    {"unallowed token at this point in JSON text", "a value or sign that can't stand here"},
    {"invalid object key (must be a string)", "a key that isn't a text in quotes"},
    {"object key and value must be separated by a colon (':')", "a key without its colon"},
    {"after key and value, inside map, I expect ',' or '}'", "',' or '}' is missing"},
    {"after array element, I expect ',' or ']'", "',' or ']' is missing"},
    {"invalid character inside string.", "a control character in a text; it has to be escaped"},
    {"probable comment found in input text, comments are not enabled.", "a comment; JSON has none"},
};

/* "parse error: premature EOF\n" without its head and its tail. */
static struct str yajl_sentence(const char *text)
{
    struct str all = str_from_c(text);
    size_t colon = str_find(all, STR(": "));
    struct str s = colon < all.len ? str_skip(all, colon + 2) : all;

    while (s.len > 0 && s.ptr[s.len - 1] == '\n') {
        s.len--;
    }
    return s;
}

static struct rc reader_set_syntax_error(struct json_reader *reader, size_t offset, struct err *err)
{
    unsigned char *text = yajl_get_error(reader->yajl, 0, NULL, 0);
    struct str said = yajl_sentence((const char *)text);
    struct str plain = said;

    for (size_t i = 0; i < ARRAY_COUNT(sentences); i++) {
        if (str_eq_c(said, sentences[i].yajl)) {
            plain = str_from_c(sentences[i].plain);
        }
    }
    struct rc rc =
        err_set(err, RC_INVALID, "not JSON at byte %zu: " STR_FMT, offset, STR_ARG(plain));

    yajl_free_error(reader->yajl, text);
    return rc;
}

/* -- the reader -------------------------------------------------------------------------------- */

struct json_reader *json_reader_new(struct token_sink sink)
{
    struct json_reader *reader = MEM_NEW(struct json_reader);

    reader->sink = sink;
    reader->object_max_bytes = DECODE_OBJECT_MAX_BYTES;
    return reader;
}

void json_reader_free(struct json_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    if (reader->yajl != NULL) {
        yajl_free(reader->yajl);
    }
    mem_free(reader->held);
    mem_free(reader);
}

static void reader_restart(struct json_reader *reader)
{
    if (reader->yajl != NULL) {
        yajl_free(reader->yajl);
    }
    reader->yajl = NULL;
    reader->is_failed = false;
    reader->depth = 0;
    reader->slice_offset = 0;
    reader->token_offset = 0;
    reader->object_offset = 0;
    reader->cut = CUT_NONE;
    reader->held_bytes = 0;
}

static void reader_open(struct json_reader *reader)
{
    yajl_alloc_funcs memory = {yajl_mem_alloc, yajl_mem_realloc, yajl_mem_free, NULL};

    reader->yajl = yajl_alloc(&callbacks, &memory, reader);
    assert(reader->yajl != NULL);
    int is_configured = yajl_config(reader->yajl, yajl_allow_multiple_values, 1) &
                        yajl_config(reader->yajl, yajl_dont_validate_strings, 1);

    assert(is_configured == 1);
    (void)is_configured;
}

/* After a slice: what waits for its end, and how long the object is by now. */
static struct rc reader_check_lengths(struct json_reader *reader, struct err *err)
{
    size_t end = reader->slice_offset + reader->held_bytes;

    if (end - reader->token_offset > DECODE_TOKEN_MAX_BYTES) {
        return err_set(err, RC_LIMIT, "a text is longer than %u bytes", DECODE_TOKEN_MAX_BYTES);
    }
    if (reader->depth > 0 && end - reader->object_offset > reader->object_max_bytes) {
        return err_set(err, RC_LIMIT, "the object is longer than %zu bytes",
                       reader->object_max_bytes);
    }
    return RC_SUCCESS;
}

/* As yajl sees it: it takes \v and \f too, which JSON doesn't know. */
static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Goes on through a cut token; the bytes of `s` up to its end, that one included, or s.len if it
 * isn't in there: then *cut is where the token stands by now. */
static size_t find_token_end(enum cut_token *cut, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (*cut == CUT_TEXT_ESCAPE) {
            *cut = CUT_TEXT;
        } else if (*cut == CUT_WORD ? is_space(c) || strchr(",:]}[{\"", c) != NULL : c == '"') {
            *cut = CUT_NONE;
            return i + 1;
        } else if (*cut == CUT_TEXT && c == '\\') {
            *cut = CUT_TEXT_ESCAPE;
        }
    }
    return s.len;
}

/* Which token the slice that yajl has just taken ends in the middle of. */
static void reader_find_cut(struct json_reader *reader, struct str slice)
{
    size_t behind_bytes = reader->slice_offset - reader->token_offset;
    struct str left =
        str_skip(slice, slice.len - (behind_bytes < slice.len ? behind_bytes : slice.len));

    while (left.len > 0 && (is_space(left.ptr[0]) || strchr(",:", left.ptr[0]) != NULL)) {
        left = str_skip(left, 1);
    }
    reader->cut = CUT_NONE;
    if (left.len > 0) {
        reader->cut = left.ptr[0] == '"' ? CUT_TEXT : CUT_WORD;
        find_token_end(&reader->cut, str_skip(left, 1));
    } else if (reader->depth == 0) {
        reader->token_offset = reader->slice_offset; /* white space behind a document is no token */
    }
}

static struct rc reader_feed_slice(struct json_reader *reader, struct str slice, struct err *err)
{
    yajl_status status = yajl_parse(reader->yajl, (const unsigned char *)slice.ptr, slice.len);

    if (status == yajl_status_client_canceled) {
        return reader->stopped;
    }
    if (status != yajl_status_ok) {
        return reader_set_syntax_error(
            reader, reader->slice_offset + yajl_get_bytes_consumed(reader->yajl), err);
    }
    reader->slice_offset += slice.len;
    reader_find_cut(reader, slice);
    return reader_check_lengths(reader, err);
}

static void reader_hold(struct json_reader *reader, struct str s)
{
    size_t needed_bytes = reader->held_bytes + s.len;

    if (needed_bytes > reader->held_capacity_bytes) {
        reader->held_capacity_bytes = 2 * needed_bytes;
        reader->held = mem_realloc(reader->held, reader->held_capacity_bytes);
    }
    memcpy(reader->held + reader->held_bytes, s.ptr, s.len);
    reader->held_bytes = needed_bytes;
}

static struct rc reader_feed_held(struct json_reader *reader, struct err *err)
{
    struct str held = {reader->held, reader->held_bytes};

    reader->held_bytes = 0;
    return held.len == 0 ? RC_SUCCESS : reader_feed_slice(reader, held, err);
}

/* Takes a part of the input; *ret_bytes is how much. */
static struct rc reader_feed_part(struct json_reader *reader, struct str input, size_t *ret_bytes,
                                  struct err *err)
{
    struct str part = str_take(input, DECODE_SLICE_BYTES);

    if (reader->cut == CUT_NONE) {
        *ret_bytes = part.len;
        return reader_feed_slice(reader, part, err);
    }
    *ret_bytes = find_token_end(&reader->cut, part);
    reader_hold(reader, str_take(part, *ret_bytes));
    return reader->cut == CUT_NONE ? reader_feed_held(reader, err)
                                   : reader_check_lengths(reader, err);
}

struct rc json_reader_feed(struct json_reader *reader, const char *bytes, size_t count,
                           struct err *err)
{
    struct str left = {bytes, count};

    if (reader->is_failed) {
        return err_set(err, RC_INVALID, "the text before this was refused");
    }
    if (reader->yajl == NULL) {
        reader_open(reader);
    }
    reader->err = err;
    while (left.len > 0) {
        size_t taken_bytes;
        struct rc rc = reader_feed_part(reader, left, &taken_bytes, err);

        if (rc_failed(rc)) {
            reader->is_failed = true;
            return rc;
        }
        left = str_skip(left, taken_bytes);
    }
    return RC_SUCCESS;
}

/* Ends what is unfinished: a number is ended by the end of the text, all else isn't. */
static struct rc reader_complete(struct json_reader *reader, struct err *err)
{
    reader->err = err;
    TRY(reader_feed_held(reader, err));
    yajl_status status = yajl_complete_parse(reader->yajl);

    if (status == yajl_status_client_canceled) {
        return reader->stopped;
    }
    return status == yajl_status_ok ? RC_SUCCESS
                                    : reader_set_syntax_error(reader, reader->slice_offset, err);
}

struct rc json_reader_finish(struct json_reader *reader, struct err *err)
{
    struct rc rc = RC_SUCCESS;

    if (reader->is_failed) {
        rc = err_set(err, RC_INVALID, "the text before this was refused");
    } else if (reader->depth > 0 || reader->slice_offset != reader->token_offset) {
        rc = reader_complete(reader, err);
    }
    reader_restart(reader);
    return rc;
}

void json_reader_start_object(struct json_reader *reader)
{
    reader->object_offset = reader->token_offset;
}

void json_reader_set_object_max_bytes(struct json_reader *reader, size_t max_bytes)
{
    reader->object_max_bytes = max_bytes;
}

size_t json_reader_offset(const struct json_reader *reader)
{
    return reader->token_offset;
}
