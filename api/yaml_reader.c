/* yaml_reader.c - YAML text to tokens, over libyaml's events.
 *
 * Anchors and aliases are refused: a few lines of them can stand for gigabytes, and no field that
 * is read here needs them. */
#include "codec_private.h"

#include <assert.h>
#include <string.h>

#include <yaml.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "yaml_scalar.h"

struct yaml_reader {
    struct token_sink sink;
    struct rc (*on_document)(void *ctx, uint32_t line, struct err *err); /* may be NULL */
    uint32_t depth;
    bool is_map[DECODE_DEPTH_MAX];      /* of the open brackets */
    bool is_key_next[DECODE_DEPTH_MAX]; /* where it is a map */
    uint32_t line;                      /* of the current event */
    uint32_t document_line;             /* 0: its first node hasn't come yet */
};

static bool reader_wants_key(const struct yaml_reader *reader)
{
    return reader->depth > 0 && reader->is_map[reader->depth - 1] &&
           reader->is_key_next[reader->depth - 1];
}

/* A value or a key is complete: in a map they take turns. */
static void reader_turn(struct yaml_reader *reader)
{
    if (reader->depth > 0 && reader->is_map[reader->depth - 1]) {
        reader->is_key_next[reader->depth - 1] = !reader->is_key_next[reader->depth - 1];
    }
}

static struct rc reader_emit(struct yaml_reader *reader, const struct token *token, struct err *err)
{
    return reader->sink.on_token(reader->sink.ctx, token, err);
}

static struct rc refuse_anchor(const yaml_char_t *anchor, const char *sign, struct err *err)
{
    if (anchor == NULL) {
        return RC_SUCCESS;
    }
    return err_set(err, RC_INVALID,
                   "%s" STR_FMT ": anchors and aliases aren't taken; write the value out", sign,
                   STR_ARG(str_cut_utf8(str_from_c((const char *)anchor), 64)));
}

/* As sigs.k8s.io/yaml: a key that is a number or a bool becomes a text. */
static struct rc scalar_to_key(struct token *token, struct err *err)
{
    if (token->kind == TOKEN_NULL) {
        return err_set(err, RC_INVALID, "a key is missing in front of ':' (or is null)");
    }
    if (token->kind == TOKEN_BOOL) {
        token->text = token->boolean ? STR("true") : STR("false");
    }
    token->kind = TOKEN_KEY;
    return RC_SUCCESS;
}

static struct rc take_scalar(struct yaml_reader *reader, const yaml_event_t *event, struct err *err)
{
    struct yaml_scalar scalar = {
        .text = {(const char *)event->data.scalar.value, event->data.scalar.length},
        .tag = str_from_c((const char *)event->data.scalar.tag),
        .is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
    };
    char number[YAML_NUMBER_BYTES];
    struct token token;

    TRY(refuse_anchor(event->data.scalar.anchor, "&", err));
    if (scalar.text.len > DECODE_TOKEN_MAX_BYTES) {
        return err_set(err, RC_LIMIT, "a text is longer than %u bytes", DECODE_TOKEN_MAX_BYTES);
    }
    TRY(yaml_scalar_resolve(&scalar, number, &token, err));
    if (reader_wants_key(reader)) {
        if (scalar.is_plain && str_eq_c(scalar.text, "<<")) {
            return err_set(err, RC_INVALID, "<<: merge keys aren't taken; write the values out");
        }
        TRY(scalar_to_key(&token, err));
    }
    reader_turn(reader);
    return reader_emit(reader, &token, err);
}

static struct rc take_start(struct yaml_reader *reader, bool is_map, const yaml_char_t *anchor,
                            struct err *err)
{
    struct token token = {.kind = is_map ? TOKEN_OBJECT_START : TOKEN_ARRAY_START};

    TRY(refuse_anchor(anchor, "&", err));
    if (reader_wants_key(reader)) {
        return err_set(err, RC_INVALID, "a key has to be one word, not %s",
                       is_map ? "an object" : "a list");
    }
    if (reader->depth >= DECODE_DEPTH_MAX) {
        return err_set(err, RC_LIMIT, "the text is nested deeper than %d levels", DECODE_DEPTH_MAX);
    }
    reader->is_map[reader->depth] = is_map;
    reader->is_key_next[reader->depth] = true;
    reader->depth++;
    return reader_emit(reader, &token, err);
}

static struct rc take_end(struct yaml_reader *reader, enum token_kind kind, struct err *err)
{
    assert(reader->depth > 0);
    reader->depth--;
    reader_turn(reader);
    return reader_emit(reader, &(struct token){.kind = kind}, err);
}

static struct rc take_event(struct yaml_reader *reader, const yaml_event_t *event, struct err *err)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return take_scalar(reader, event, err);
    case YAML_MAPPING_START_EVENT:
        return take_start(reader, true, event->data.mapping_start.anchor, err);
    case YAML_SEQUENCE_START_EVENT:
        return take_start(reader, false, event->data.sequence_start.anchor, err);
    case YAML_MAPPING_END_EVENT:
        return take_end(reader, TOKEN_OBJECT_END, err);
    case YAML_SEQUENCE_END_EVENT:
        return take_end(reader, TOKEN_ARRAY_END, err);
    case YAML_ALIAS_EVENT:
        return refuse_anchor(event->data.alias.anchor, "*", err);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return RC_SUCCESS;
}

static uint32_t line_of_offset(struct str text, size_t offset)
{
    uint32_t line = 1;

    for (size_t i = 0; i < offset && i < text.len; i++) {
        line += text.ptr[i] == '\n';
    }
    return line;
}

static struct rc reader_set_syntax_error(struct yaml_reader *reader, const yaml_parser_t *parser,
                                         struct str text, struct err *err)
{
    const char *problem = parser->problem == NULL ? "it can't be read" : parser->problem;

    if (parser->error == YAML_MEMORY_ERROR) {
        mem_die("out of memory while reading YAML");
    }
    /* A byte that isn't UTF-8 is found before lines are counted. */
    reader->line = parser->error == YAML_READER_ERROR ? line_of_offset(text, parser->problem_offset)
                                                      : (uint32_t)parser->problem_mark.line + 1;
    return err_set(err, RC_INVALID, "not YAML: %s%s%s", problem,
                   parser->context == NULL ? "" : ", ",
                   parser->context == NULL ? "" : parser->context);
}

static struct rc read_event(struct yaml_reader *reader, const yaml_event_t *event, struct err *err)
{
    if (event->type == YAML_DOCUMENT_START_EVENT) {
        reader->document_line = 0;
        return RC_SUCCESS;
    }
    if (event->type == YAML_DOCUMENT_END_EVENT) {
        return reader->on_document == NULL
                   ? RC_SUCCESS
                   : reader->on_document(reader->sink.ctx, reader->document_line, err);
    }
    if (reader->document_line == 0) {
        reader->document_line = reader->line;
    }
    return take_event(reader, event, err);
}

static struct rc read_events(struct yaml_reader *reader, yaml_parser_t *parser, struct str text,
                             uint32_t *ret_line, struct err *err)
{
    struct rc rc = RC_SUCCESS;
    bool is_end = false;

    while (!is_end && !rc_failed(rc)) {
        yaml_event_t event;

        if (yaml_parser_parse(parser, &event) == 0) {
            rc = reader_set_syntax_error(reader, parser, text, err);
            *ret_line = reader->line;
            return rc;
        }
        reader->line = (uint32_t)event.start_mark.line + 1;
        *ret_line = reader->line;
        is_end = event.type == YAML_STREAM_END_EVENT;
        rc = read_event(reader, &event, err);
        yaml_event_delete(&event);
    }
    return rc;
}

struct rc yaml_read_lines(struct str text, struct token_sink sink,
                          struct rc (*on_document)(void *ctx, uint32_t line, struct err *err),
                          uint32_t *ret_line, struct err *err)
{
    struct yaml_reader reader = {.sink = sink, .on_document = on_document};
    yaml_parser_t parser;

    *ret_line = 1;
    if (text.len > MANIFEST_FILE_MAX_BYTES) {
        return err_set(err, RC_LIMIT, "the text is longer than %u bytes", MANIFEST_FILE_MAX_BYTES);
    }
    if (yaml_parser_initialize(&parser) == 0) {
        mem_die("out of memory while reading YAML");
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)(text.len == 0 ? "" : text.ptr),
                                 text.len);
    struct rc rc = read_events(&reader, &parser, text, ret_line, err);

    yaml_parser_delete(&parser);
    return rc;
}

struct rc yaml_read(struct str text, struct token_sink sink,
                    struct rc (*on_document)(void *ctx, uint32_t line, struct err *err),
                    struct err *err)
{
    uint32_t line;
    struct rc rc = yaml_read_lines(text, sink, on_document, &line, err);

    return rc_failed(rc) ? err_prefix(err, rc, "line %u", line) : rc;
}
