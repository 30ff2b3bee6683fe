/* decoder.c - tokens to one struct, by its schema.
 *
 * A stack of frames says where in the struct the next token belongs. Nothing is kept of a field
 * that no schema names. A key given twice counts as given last, as in Go. */
#include "codec_private.h"

#include <assert.h>
#include <string.h>

#include "decode_map.h"
#include "decode_value.h"
#include "schema.h"
#include "tallyman/api/quantity.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

enum frame_kind {
    FRAME_OBJECT = 1, /* in a struct */
    FRAME_LIST,       /* in an array */
    FRAME_MAP,        /* in an object whose keys aren't fields */
};

struct frame {
    enum frame_kind kind;
    uint32_t capacity;           /* FRAME_LIST, FRAME_MAP: room in the items */
    const struct schema *schema; /* FRAME_OBJECT */
    const struct field *field; /* FRAME_OBJECT: whose value comes next, NULL if no schema names it;
                                  else the list's or map's own field */
    char *at;                  /* the struct, or the {items, count}; borrowed from the arena */
    const struct older_shape
        *older;     /* FRAME_OBJECT: what no schema names is a field of this; NULL */
    struct str key; /* FRAME_MAP: whose value comes next; borrowed from the arena */
};

struct decoder {
    struct arena *arena;         /* borrowed */
    const struct schema *schema; /* static */
    void *root;                  /* borrowed from the arena; NULL before the document begins */
    size_t arena_start_bytes;
    uint32_t depth;      /* frames in use */
    uint32_t skip_depth; /* > 0: inside a value that is passed over */
    bool is_complete;
    bool is_failed;
    bool is_newest_only;
    struct frame frames[DECODE_DEPTH_MAX + 1];
};

/* What an empty list's items point to: present, and nothing in it. */
static max_align_t no_items;

/* -- errors ------------------------------------------------------------------------------------ */

static void path_add_frame(struct decode_path *path, const struct frame *frame)
{
    struct any_list list;

    switch (frame->kind) {
    case FRAME_OBJECT:
        if (frame->field != NULL) {
            decode_path_add_name(path, str_from_c(frame->field->name));
        }
        break;
    case FRAME_LIST:
        memcpy(&list, frame->at, sizeof(list));
        decode_path_add_index(path, list.count == 0 ? 0 : list.count - 1);
        break;
    case FRAME_MAP:
        decode_path_add_key(path, frame->key);
        break;
    }
}

/* Puts the path of the current value in front of the sentence. */
static struct rc decoder_fail(struct decoder *decoder, struct rc rc, struct err *err)
{
    struct decode_path path = {0};

    decoder->is_failed = true;
    for (uint32_t i = 0; i < decoder->depth; i++) {
        path_add_frame(&path, &decoder->frames[i]);
    }
    return path.len == 0 ? rc : err_prefix(err, rc, "%s", path.text);
}

/* -- structure --------------------------------------------------------------------------------- */

static struct frame *decoder_top(struct decoder *decoder)
{
    assert(decoder->depth > 0);
    return &decoder->frames[decoder->depth - 1];
}

static struct rc decoder_push(struct decoder *decoder, const struct frame *frame, struct err *err)
{
    if (decoder->depth >= ARRAY_COUNT(decoder->frames)) {
        return err_set(err, RC_LIMIT, "nested deeper than %d levels", DECODE_DEPTH_MAX);
    }
    if (decoder->arena->used_bytes - decoder->arena_start_bytes > DECODE_STRUCT_MAX_BYTES) {
        return err_set(err, RC_LIMIT, "the object needs more than %u bytes of memory",
                       DECODE_STRUCT_MAX_BYTES);
    }
    decoder->frames[decoder->depth++] = *frame;
    return RC_SUCCESS;
}

/* Appends a zeroed item to the list or map of the top frame. */
static struct rc decoder_append(struct decoder *decoder, struct frame *frame, char **ret_item,
                                struct err *err)
{
    size_t bytes = field_item_bytes(frame->field);
    struct any_list list;

    memcpy(&list, frame->at, sizeof(list));
    if (list.count >= DECODE_LIST_MAX_ITEMS) {
        return err_set(err, RC_LIMIT, "more than %d items", DECODE_LIST_MAX_ITEMS);
    }
    void *items = list.count == 0 ? NULL : list.items;

    list.items = arena_grow(decoder->arena, items, list.count, &frame->capacity, bytes);
    *ret_item = (char *)list.items + list.count * bytes;
    memset(*ret_item, 0, bytes);
    list.count++;
    memcpy(frame->at, &list, sizeof(list));
    return RC_SUCCESS;
}

static void map_finish(struct decoder *decoder, const struct frame *frame)
{
    struct any_list list;

    memcpy(&list, frame->at, sizeof(list));
    map_drop_duplicates(decoder->arena, &list, field_item_bytes(frame->field));
    memcpy(frame->at, &list, sizeof(list));
}

/* -- values ------------------------------------------------------------------------------------ */

static void list_init_empty(char *at)
{
    struct any_list list = {&no_items, 0};

    memcpy(at, &list, sizeof(list));
}

static struct rc begin_list(struct decoder *decoder, const struct field *field, char *at,
                            const struct token *token, struct err *err)
{
    bool is_list = field->kind == FIELD_STRING_LIST || field->kind == FIELD_OBJECT_LIST;

    if (is_list && token->kind != TOKEN_ARRAY_START) {
        return decode_wrong(token, "a list", err);
    }
    if (!is_list && token->kind != TOKEN_OBJECT_START) {
        return decode_wrong(token, "an object", err);
    }
    list_init_empty(at);
    return decoder_push(
        decoder,
        &(struct frame){.kind = is_list ? FRAME_LIST : FRAME_MAP, .field = field, .at = at}, err);
}

/* The struct's only field stands for the object as a whole; see SCHEMA(). */
static const struct field *whole_field(const struct schema *schema)
{
    bool is_whole = schema->field_count == 1 && schema->fields[0].name[0] == '\0';
    return is_whole ? &schema->fields[0] : NULL;
}

static struct rc begin_object(struct decoder *decoder, const struct schema *schema, char *at,
                              const struct token *token, struct err *err)
{
    const struct field *whole = whole_field(schema);

    if (whole != NULL) {
        return begin_list(decoder, whole, at + whole->offset, token, err);
    }
    if (token->kind != TOKEN_OBJECT_START) {
        return decode_wrong(token, "an object", err);
    }
    return decoder_push(decoder, &(struct frame){.kind = FRAME_OBJECT, .schema = schema, .at = at},
                        err);
}

static struct rc begin_object_ptr(struct decoder *decoder, const struct schema *schema, char *at,
                                  const struct token *token, struct err *err)
{
    void *object = NULL;

    if (token->kind == TOKEN_OBJECT_START) {
        object = arena_alloc(decoder->arena, schema->bytes);
    }
    memcpy(at, &object, sizeof(object));
    return begin_object(decoder, schema, object, token, err);
}

/* A member of a struct. */
static struct rc decode_member(struct decoder *decoder, const struct field *field, char *at,
                               const struct token *token, struct err *err)
{
    switch (field->kind) {
    case FIELD_STRING_LIST:
    case FIELD_STRING_MAP:
    case FIELD_RESOURCE_LIST:
    case FIELD_OBJECT_LIST:
    case FIELD_OBJECT_MAP:
        if (token->kind == TOKEN_NULL) {
            memset(at, 0, sizeof(struct any_list));
            return RC_SUCCESS;
        }
        return begin_list(decoder, field, at, token, err);
    case FIELD_OBJECT:
        memset(at, 0, field->schema->bytes);
        return token->kind == TOKEN_NULL ? RC_SUCCESS
                                         : begin_object(decoder, field->schema, at, token, err);
    case FIELD_OBJECT_PTR:
        if (token->kind == TOKEN_NULL) {
            memset(at, 0, sizeof(void *));
            return RC_SUCCESS;
        }
        return begin_object_ptr(decoder, field->schema, at, token, err);
    case FIELD_STRING:
    case FIELD_BOOL:
    case FIELD_INT:
    case FIELD_QUANTITY:
    case FIELD_TIME:
    case FIELD_DURATION:
        break;
    }
    return decode_scalar(decoder->arena, field->kind, at, token, err);
}

/* An item of a list or map. A null among them is the type's zero, as in Go. */
static struct rc decode_item(struct decoder *decoder, struct frame *frame,
                             const struct token *token, struct err *err)
{
    const struct field *field = frame->field;
    bool is_null = token->kind == TOKEN_NULL;
    struct token empty = {.kind = TOKEN_STRING, .text = STR("")};
    char *item = NULL;

    TRY(decoder_append(decoder, frame, &item, err));
    if (frame->kind == FRAME_MAP) {
        memcpy(item, &frame->key, sizeof(frame->key));
    }
    switch (field->kind) {
    case FIELD_STRING_LIST:
        return decode_scalar(decoder->arena, FIELD_STRING, item, is_null ? &empty : token, err);
    case FIELD_STRING_MAP:
        return decode_scalar(decoder->arena, FIELD_STRING,
                             item + offsetof(struct string_pair, value), is_null ? &empty : token,
                             err);
    case FIELD_RESOURCE_LIST:
        return decode_amount(decoder->arena, item, token, err);
    case FIELD_OBJECT_LIST:
    case FIELD_OBJECT_MAP:
        if (is_null && whole_field(field->schema) != NULL) {
            list_init_empty(item + whole_field(field->schema)->offset);
        }
        return is_null ? RC_SUCCESS : begin_object(decoder, field->schema, item, token, err);
    case FIELD_STRING:
    case FIELD_BOOL:
    case FIELD_INT:
    case FIELD_QUANTITY:
    case FIELD_TIME:
    case FIELD_DURATION:
    case FIELD_OBJECT:
    case FIELD_OBJECT_PTR:
        break;
    }
    mem_die("a field without items has been given one");
}

/* -- frames ------------------------------------------------------------------------------------ */

static const struct field *schema_find_field(const struct schema *schema, struct str name)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const char *field_name = schema->fields[i].name;

        if (field_name[0] == (name.len == 0 ? '\0' : name.ptr[0]) && str_eq_c(name, field_name)) {
            return &schema->fields[i];
        }
    }
    return NULL;
}

/* The value of a field as an older API version has it. */
static struct rc older_member(struct decoder *decoder, const struct frame *frame,
                              const struct token *token, struct err *err)
{
    const struct older_shape *older = frame->older;
    bool is_nothing =
        token->kind == TOKEN_NULL || (token->kind == TOKEN_STRING && token->text.len == 0);

    if (is_nothing) { /* v1beta1 writes deviceClassName: "" beside firstAvailable */
        return RC_SUCCESS;
    }
    if (frame->field == NULL) {
        return begin_object(decoder, older->schema, frame->at, token, err);
    }
    void *object = NULL;

    memcpy(&object, frame->at + older->offset, sizeof(object));
    if (object == NULL) {
        object = arena_alloc(decoder->arena, older->inlined->bytes);
        memcpy(frame->at + older->offset, &object, sizeof(object));
    }
    return decode_member(decoder, frame->field, (char *)object + frame->field->offset, token, err);
}

static void find_member(const struct decoder *decoder, struct frame *frame, struct str name)
{
    frame->field = schema_find_field(frame->schema, name);
    bool may_be_older = frame->field == NULL && !decoder->is_newest_only;
    frame->older = may_be_older ? older_shape_of(frame->schema) : NULL;
    if (frame->older == NULL) {
        return;
    }
    if (frame->older->inlined != NULL) {
        frame->field = schema_find_field(frame->older->inlined, name);
    }
    bool is_flattened = frame->older->flattened != NULL && str_eq_c(name, frame->older->flattened);
    frame->older = frame->field != NULL || is_flattened ? frame->older : NULL;
}

static void decoder_pop(struct decoder *decoder)
{
    decoder->depth--;
    decoder->is_complete = decoder->depth == 0;
}

static bool token_is_start(const struct token *token)
{
    return token->kind == TOKEN_OBJECT_START || token->kind == TOKEN_ARRAY_START;
}

static bool token_is_end(const struct token *token)
{
    return token->kind == TOKEN_OBJECT_END || token->kind == TOKEN_ARRAY_END;
}

static struct rc object_token(struct decoder *decoder, struct frame *frame,
                              const struct token *token, struct err *err)
{
    if (token->kind == TOKEN_KEY) {
        find_member(decoder, frame, token->text);
        return RC_SUCCESS;
    }
    if (token->kind == TOKEN_OBJECT_END) {
        decoder_pop(decoder);
        return RC_SUCCESS;
    }
    if (frame->older != NULL) {
        return older_member(decoder, frame, token, err);
    }
    if (frame->field == NULL) {
        decoder->skip_depth = token_is_start(token) ? 1 : 0;
        return RC_SUCCESS;
    }
    return decode_member(decoder, frame->field, frame->at + frame->field->offset, token, err);
}

static struct rc items_token(struct decoder *decoder, struct frame *frame,
                             const struct token *token, struct err *err)
{
    if (token->kind == TOKEN_KEY) {
        frame->key = arena_copy_str(decoder->arena, token->text);
        return RC_SUCCESS;
    }
    if (token_is_end(token)) {
        if (frame->kind == FRAME_MAP) {
            map_finish(decoder, frame);
        }
        decoder_pop(decoder);
        return RC_SUCCESS;
    }
    return decode_item(decoder, frame, token, err);
}

static void skip_token(struct decoder *decoder, const struct token *token)
{
    if (token_is_start(token)) {
        decoder->skip_depth++;
    } else if (token_is_end(token)) {
        decoder->skip_depth--;
    }
}

static struct rc root_token(struct decoder *decoder, const struct token *token, struct err *err)
{
    if (decoder->is_complete) {
        return err_set(err, RC_INVALID, "there is more text behind the object");
    }
    if (token->kind == TOKEN_OBJECT_START) {
        decoder->root = arena_alloc(decoder->arena, decoder->schema->bytes);
    }
    return begin_object(decoder, decoder->schema, decoder->root, token, err);
}

static struct rc decoder_on_token(void *ctx, const struct token *token, struct err *err)
{
    struct decoder *decoder = ctx;
    struct rc rc;

    if (decoder->is_failed) {
        return err_set(err, RC_INVALID, "the object was refused before");
    }
    if (decoder->skip_depth > 0) {
        skip_token(decoder, token);
        return RC_SUCCESS;
    }
    if (decoder->depth == 0) {
        rc = root_token(decoder, token, err);
    } else {
        struct frame *frame = decoder_top(decoder);

        rc = frame->kind == FRAME_OBJECT ? object_token(decoder, frame, token, err)
                                         : items_token(decoder, frame, token, err);
    }
    return rc_failed(rc) ? decoder_fail(decoder, rc, err) : rc;
}

/* -- the decoder ------------------------------------------------------------------------------- */

struct decoder *decoder_new(struct arena *arena, const struct schema *schema)
{
    struct decoder *decoder = MEM_NEW(struct decoder);

    decoder_restart(decoder, arena, schema);
    return decoder;
}

void decoder_free(struct decoder *decoder)
{
    mem_free(decoder);
}

void decoder_restart(struct decoder *decoder, struct arena *arena, const struct schema *schema)
{
    decoder->arena = arena;
    decoder->schema = schema;
    decoder->root = NULL;
    decoder->arena_start_bytes = arena->used_bytes;
    decoder->depth = 0;
    decoder->skip_depth = 0;
    decoder->is_complete = false;
    decoder->is_failed = false;
    decoder->is_newest_only = false;
}

void decoder_read_newest_only(struct decoder *decoder)
{
    decoder->is_newest_only = true;
}

struct token_sink decoder_sink(struct decoder *decoder)
{
    return (struct token_sink){decoder_on_token, decoder};
}

void *decoder_result(const struct decoder *decoder)
{
    return decoder->is_complete && !decoder->is_failed ? decoder->root : NULL;
}

void *decoder_partial(const struct decoder *decoder)
{
    return decoder->root;
}

bool decoder_is_complete(const struct decoder *decoder)
{
    return decoder->is_complete;
}

struct rc decode_json(struct arena *arena, const struct schema *schema, struct str text,
                      void **ret_value, struct err *err)
{
    struct decoder *decoder = decoder_new(arena, schema);
    struct json_reader *reader = json_reader_new(decoder_sink(decoder));
    struct rc rc = json_reader_feed(reader, text.ptr, text.len, err);

    if (!rc_failed(rc)) {
        rc = json_reader_finish(reader, err);
    }
    if (!rc_failed(rc) && !decoder->is_complete) {
        rc = err_set(err, RC_INVALID, "the text is empty; a JSON object belongs there");
    }
    if (!rc_failed(rc)) {
        *ret_value = decoder->root;
    }
    json_reader_free(reader);
    decoder_free(decoder);
    return rc;
}
