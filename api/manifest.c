/* manifest.c - files of manifests to objects.
 *
 * A document's tokens are kept until it ends, because `kind` may stand behind what it explains, and
 * are then replayed into the decoder of that kind. A list is taken apart on the way. */
#include "manifest_tokens.h"

#include <string.h>

#include "crd/crd.h"
#include "schema.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

struct manifest_reader {
    struct arena *arena; /* borrowed; the caller's */
    struct str file_name;
    struct rc (*on_manifest)(void *ctx, const struct manifest *m, struct err *err);
    void *ctx;               /* borrowed */
    struct decoder *decoder; /* owned */
    struct crd_set *crds;    /* owned; NULL until an object of a kind of ours comes */

    /* The document that is being read. */
    struct arena scratch;
    struct recorded_token *tokens; /* owned */
    uint32_t count;
    uint32_t capacity;
    uint32_t depth;
    uint32_t skip_depth; /* > 0: inside managedFields, whose items are that deep */
    bool is_reported;    /* a failure's sentence has its place in front already */

    /* Where the text's reader is. */
    uint32_t line;
    const struct json_reader *json; /* borrowed; NULL while YAML is read */
    struct str text;
    size_t counted_bytes; /* of the text, up to which `line` counts */
};

/* What a manifest says of itself, found before it is decoded. */
struct manifest_head {
    struct str api_version;
    struct str kind;
    struct str name;
    struct str namespace_name;
    uint32_t items; /* index of the list's first token; 0: there is none */
};

/* -- walking over recorded tokens -------------------------------------------------------------- */

static bool kind_is_start(enum token_kind kind)
{
    return kind == TOKEN_OBJECT_START || kind == TOKEN_ARRAY_START;
}

static bool kind_is_end(enum token_kind kind)
{
    return kind == TOKEN_OBJECT_END || kind == TOKEN_ARRAY_END;
}

/* The index behind the value that begins at `at`. */
static uint32_t value_end(const struct manifest_reader *reader, uint32_t at)
{
    uint32_t depth = 0;
    uint32_t i = at;

    do {
        depth += kind_is_start(reader->tokens[i].kind);
        depth -= kind_is_end(reader->tokens[i].kind);
        i++;
    } while (depth > 0);
    return i;
}

static struct str token_text(const struct recorded_token *token)
{
    return token->kind == TOKEN_STRING || token->kind == TOKEN_KEY
               ? (struct str){token->text, token->len}
               : STR_NONE;
}

static void read_meta_head(const struct manifest_reader *reader, uint32_t at,
                           struct manifest_head *head)
{
    if (reader->tokens[at].kind != TOKEN_OBJECT_START) {
        return;
    }
    for (uint32_t i = at + 1; reader->tokens[i].kind == TOKEN_KEY; i = value_end(reader, i + 1)) {
        struct str key = token_text(&reader->tokens[i]);
        struct str value = token_text(&reader->tokens[i + 1]);

        if (str_eq_c(key, "name")) {
            head->name = value;
        } else if (str_eq_c(key, "namespace")) {
            head->namespace_name = value;
        }
    }
}

static struct manifest_head read_head(const struct manifest_reader *reader, uint32_t at)
{
    struct manifest_head head = {0};

    for (uint32_t i = at + 1; reader->tokens[i].kind == TOKEN_KEY; i = value_end(reader, i + 1)) {
        struct str key = token_text(&reader->tokens[i]);

        if (str_eq_c(key, "apiVersion")) {
            head.api_version = token_text(&reader->tokens[i + 1]);
        } else if (str_eq_c(key, "kind")) {
            head.kind = token_text(&reader->tokens[i + 1]);
        } else if (str_eq_c(key, "metadata")) {
            read_meta_head(reader, i + 1, &head);
        } else if (str_eq_c(key, "items")) {
            head.items = i + 1;
        }
    }
    return head;
}

/* -- errors ------------------------------------------------------------------------------------ */

/* "jobs.yaml:12: " in front, once. */
static struct rc place_error(struct manifest_reader *reader, struct rc rc, uint32_t line,
                             struct err *err)
{
    if (reader->is_reported) {
        return rc;
    }
    reader->is_reported = true;
    return err_prefix(err, rc, STR_FMT ":%u", STR_ARG(reader->file_name), line);
}

/* "jobs.yaml:12: Job ml/train: " in front. */
static struct rc object_error(struct manifest_reader *reader, struct rc rc,
                              const struct manifest_head *head, uint32_t line, struct err *err)
{
    struct rc named;

    if (str_is_empty(head->name)) {
        named = err_prefix(err, rc, STR_FMT " without a name", STR_ARG(head->kind));
    } else if (str_is_empty(head->namespace_name)) {
        named = err_prefix(err, rc, STR_FMT " " STR_FMT, STR_ARG(head->kind), STR_ARG(head->name));
    } else {
        named = err_prefix(err, rc, STR_FMT " " STR_FMT "/" STR_FMT, STR_ARG(head->kind),
                           STR_ARG(head->namespace_name), STR_ARG(head->name));
    }
    return place_error(reader, named, line, err);
}

/* -- objects ----------------------------------------------------------------------------------- */

/* Replays the object's tokens; *ret_line is that of the last one taken. */
static struct rc decode_tokens(struct manifest_reader *reader, const struct schema *schema,
                               struct str api_version, uint32_t at, uint32_t *ret_line,
                               struct err *err)
{
    uint32_t end = value_end(reader, at);

    decoder_restart(reader->decoder, reader->arena, schema);
    if (!str_ends_with(api_version, STR("/v1beta1"))) { /* the one that wrote anything otherwise */
        decoder_read_newest_only(reader->decoder);
    }
    struct token_sink sink = decoder_sink(reader->decoder);

    for (uint32_t i = at; i < end; i++) {
        const struct recorded_token *recorded = &reader->tokens[i];
        struct token token = {recorded->kind, recorded->boolean, {recorded->text, recorded->len}};

        *ret_line = recorded->line;
        TRY(sink.on_token(sink.ctx, &token, err));
    }
    return RC_SUCCESS;
}

/* A kind of tallyman.dev, against its CRD. */
static struct rc check_crd(struct manifest_reader *reader, struct str kind, uint32_t at,
                           uint32_t *ret_line, struct err *err)
{
    reader->crds = reader->crds == NULL ? crd_set_new() : reader->crds;
    struct json_tree_builder builder = {.arena = crd_scratch(reader->crds)};
    uint32_t end = value_end(reader, at);

    for (uint32_t i = at; i < end; i++) {
        const struct recorded_token *recorded = &reader->tokens[i];
        struct token token = {recorded->kind, recorded->boolean, {recorded->text, recorded->len}};

        json_tree_take(&builder, &token, recorded->line);
    }
    return crd_check_object(reader->crds, kind, builder.root, ret_line, err);
}

static struct rc take_known(struct manifest_reader *reader, const struct kind_info *kind,
                            struct manifest_head *head, uint32_t at, struct manifest *manifest,
                            struct err *err)
{
    uint32_t line = reader->tokens[at].line;

    if (!kind->is_namespaced) {
        head->namespace_name = STR_NONE;
    } else if (str_is_empty(head->namespace_name)) {
        head->namespace_name = STR("default");
    }
    struct rc rc = tokens_check_fields(&reader->scratch, kind, reader->tokens, at, &line, err);

    if (!rc_failed(rc) && kind_is_own(kind)) {
        rc = check_crd(reader, head->kind, at, &line, err);
    }
    if (!rc_failed(rc)) {
        rc = decode_tokens(reader, kind->schema, head->api_version, at, &line, err);
    }
    if (rc_failed(rc)) {
        return object_error(reader, rc, head, line, err);
    }
    struct object_meta *meta = decoder_result(reader->decoder);

    if (str_is_empty(meta->name)) {
        return place_error(reader,
                           err_set(err, RC_INVALID,
                                   "the " STR_FMT " has no metadata.name; it needs one",
                                   STR_ARG(head->kind)),
                           reader->tokens[at].line, err);
    }

    if (kind->is_namespaced && str_is_empty(meta->namespace_name)) {
        meta->namespace_name = STR("default");
        manifest->has_no_namespace = true;
    }
    manifest->object = (struct object){kind->kind, meta};
    return RC_SUCCESS;
}

static struct rc take_object(struct manifest_reader *reader, struct manifest_head *head,
                             uint32_t at, struct err *err)
{
    struct manifest manifest = {
        .api_version = arena_copy_str(reader->arena, head->api_version),
        .kind = arena_copy_str(reader->arena, head->kind),
        .file_name = arena_copy_str(reader->arena, reader->file_name),
        .line = reader->tokens[at].line,
    };
    const struct kind_info *kind = kind_find(head->api_version, head->kind);

    if (kind != NULL) {
        TRY(take_known(reader, kind, head, at, &manifest, err));
    }
    struct rc rc = manifest_check_kind(&reader->scratch, head->api_version, head->kind, err);

    if (!rc_failed(rc)) {
        rc = reader->on_manifest(reader->ctx, &manifest, err);
    }

    return rc_failed(rc) ? object_error(reader, rc, head, manifest.line, err) : rc;
}

/* `kind: List`, or `kind: JobList` as a server answers: there the items may leave their kind out.
 */
static bool head_is_list(const struct manifest_head *head)
{
    return head->items != 0 && str_ends_with(head->kind, STR("List"));
}

static struct rc take_value(struct manifest_reader *reader, uint32_t at,
                            const struct manifest_head *list, struct err *err);

static struct rc take_list(struct manifest_reader *reader, const struct manifest_head *list,
                           struct err *err)
{
    enum token_kind kind = reader->tokens[list->items].kind;

    if (kind != TOKEN_ARRAY_START && kind != TOKEN_NULL) {
        return place_error(
            reader,
            err_set(err, RC_INVALID, STR_FMT ": items: that is not a list", STR_ARG(list->kind)),
            reader->tokens[list->items].line, err);
    }
    for (uint32_t i = list->items + 1;
         kind == TOKEN_ARRAY_START && reader->tokens[i].kind != TOKEN_ARRAY_END;
         i = value_end(reader, i)) {
        TRY(take_value(reader, i, list, err));
    }
    return RC_SUCCESS;
}

/* An object or a list; `list` is the one that it is an item of, or NULL. The recursion is as deep
 * as the text, which has its bound. */
static struct rc take_value(struct manifest_reader *reader, uint32_t at,
                            const struct manifest_head *list, struct err *err)
{
    uint32_t line = reader->tokens[at].line;

    if (reader->tokens[at].kind != TOKEN_OBJECT_START) {
        return place_error(
            reader,
            err_set(err, RC_INVALID,
                    "a manifest is an object with apiVersion, kind and metadata; "
                    "that is %s",
                    reader->tokens[at].kind == TOKEN_ARRAY_START ? "a list" : "a single value"),
            line, err);
    }
    struct manifest_head head = read_head(reader, at);

    if (list != NULL && str_is_empty(head.kind) && !str_eq_c(list->kind, "List")) {
        head.kind = str_take(list->kind, list->kind.len - strlen("List"));
        head.api_version = list->api_version;
    }
    if (str_is_empty(head.kind) || str_is_empty(head.api_version)) {
        return place_error(reader,
                           err_set(err, RC_INVALID,
                                   "the manifest has no %s; it needs both, such as "
                                   "apiVersion: batch/v1 and kind: Job",
                                   str_is_empty(head.kind) ? "kind" : "apiVersion"),
                           line, err);
    }
    return head_is_list(&head) ? take_list(reader, &head, err)
                               : take_object(reader, &head, at, err);
}

/* -- recording --------------------------------------------------------------------------------- */

/* An empty document ("---" twice) is none. */
static struct rc document_end(struct manifest_reader *reader, struct err *err)
{
    uint32_t line = 0;
    struct rc rc = tokens_check_keys(&reader->scratch, reader->tokens, reader->count, &line, err);

    if (rc_failed(rc)) {
        rc = place_error(reader, rc, line, err);
    } else if (reader->tokens[0].kind != TOKEN_NULL) {
        rc = take_value(reader, 0, NULL, err);
    }
    reader->count = 0;
    arena_reset(&reader->scratch);
    return rc;
}

/* YAML's reader keeps `line` itself; JSON's tells only how far it is. */
static void update_line(struct manifest_reader *reader)
{
    if (reader->json == NULL) {
        return;
    }
    size_t end = json_reader_offset(reader->json);

    for (; reader->counted_bytes < end; reader->counted_bytes++) {
        reader->line += reader->text.ptr[reader->counted_bytes] == '\n';
    }
}

/* A list under managedFields is half of what `kubectl get -o yaml` prints, and of no use here. True
 * while inside one; its key is dropped again. */
static bool is_passed_over(struct manifest_reader *reader, const struct token *token)
{
    if (reader->skip_depth > 0) {
        if (reader->depth < reader->skip_depth) {
            reader->skip_depth = 0; /* this is the bracket that ends it */
        }
        return true;
    }
    if (token->kind != TOKEN_ARRAY_START || reader->count == 0) {
        return false;
    }
    const struct recorded_token *last = &reader->tokens[reader->count - 1];

    if (last->kind != TOKEN_KEY || !str_eq_c(token_text(last), "managedFields")) {
        return false;
    }
    reader->count--;
    reader->skip_depth = reader->depth + 1;
    return true;
}

static void record(struct manifest_reader *reader, const struct token *token)
{
    struct str text = arena_copy_str(&reader->scratch, token->text);

    reader->tokens =
        mem_grow(reader->tokens, reader->count, &reader->capacity, sizeof(reader->tokens[0]));
    reader->tokens[reader->count++] = (struct recorded_token){
        text.ptr, (uint32_t)text.len, reader->line, token->kind, token->boolean};
}

static struct rc manifest_on_token(void *ctx, const struct token *token, struct err *err)
{
    struct manifest_reader *reader = ctx;

    update_line(reader);
    if (kind_is_end(token->kind)) {
        reader->depth--;
    }
    if (!is_passed_over(reader, token)) {
        record(reader, token);
    }
    if (kind_is_start(token->kind)) {
        reader->depth++;
    }
    return reader->depth == 0 ? document_end(reader, err) : RC_SUCCESS;
}

/* -- the text ---------------------------------------------------------------------------------- */

static struct rc ignore_token(void *ctx, const struct token *token, struct err *err)
{
    (void)ctx;
    (void)token;
    (void)err;
    return RC_SUCCESS;
}

static struct rc read_json(struct token_sink sink, const struct json_reader **ret_reader,
                           struct str text, struct err *err)
{
    struct json_reader *json = json_reader_new(sink);

    json_reader_set_object_max_bytes(json, MANIFEST_FILE_MAX_BYTES);
    if (ret_reader != NULL) {
        *ret_reader = json;
    }
    struct rc rc = json_reader_feed(json, text.ptr, text.len, err);

    if (!rc_failed(rc)) {
        rc = json_reader_finish(json, err);
    }
    json_reader_free(json);
    return rc;
}

/* JSON is YAML, but libyaml doesn't take all of it (long keys, surrogate escapes) and is slower. A
 * text that begins with a brace may still be YAML's flow style, so it is tried as a whole. */
static bool text_is_json(struct str text)
{
    size_t at = 0;

    while (at < text.len && strchr(" \t\r\n", text.ptr[at]) != NULL && text.ptr[at] != '\0') {
        at++;
    }
    return at < text.len && text.ptr[at] == '{' &&
           !rc_failed(read_json((struct token_sink){ignore_token, NULL}, NULL, text, NULL));
}

struct rc manifests_read(struct arena *arena, struct str file_name, struct str text,
                         struct rc (*on_manifest)(void *ctx, const struct manifest *m,
                                                  struct err *err),
                         void *ctx, struct err *err)
{
    struct manifest_reader reader = {
        .arena = arena,
        .file_name = file_name,
        .on_manifest = on_manifest,
        .ctx = ctx,
        .decoder = decoder_new(arena, &namespace_object_schema),
        .line = 1,
        .text = text,
    };
    struct token_sink sink = {manifest_on_token, &reader};
    struct rc rc;

    arena_init(&reader.scratch);
    if (text.len > MANIFEST_FILE_MAX_BYTES) {
        rc = err_set(err, RC_LIMIT, "the file is longer than %u bytes", MANIFEST_FILE_MAX_BYTES);
    } else if (text_is_json(text)) {
        rc = read_json(sink, &reader.json, text, err);
    } else {
        rc = yaml_read_lines(text, sink, NULL, &reader.line, err);
    }
    if (rc_failed(rc)) {
        rc = place_error(&reader, rc, reader.line, err);
    }
    decoder_free(reader.decoder);
    crd_set_free(reader.crds);
    mem_free(reader.tokens);
    arena_deinit(&reader.scratch);
    return rc;
}
