/* codec.h - JSON and YAML to structs and back, by table, as the bytes arrive.
 *
 * A reader turns text into tokens, a decoder turns tokens into one struct by its schema. No tree of
 * the object is ever built: a field that no schema names is skipped as it passes. Bounds:
 * DECODE_DEPTH_MAX, DECODE_TOKEN_MAX_BYTES, DECODE_OBJECT_MAX_BYTES, DECODE_LIST_MAX_ITEMS.
 *
 * A value of the wrong type is an error that names the path: `spec.template.spec.containers[0].
 * resources.requests.cpu: "1 Gi" is not a quantity; …`. */
#pragma once

#include "tallyman/api/kinds.h"
#include "tallyman/base/arena.h"
#include "tallyman/base/err.h"

enum field_kind {
    FIELD_STRING = 1,    /* struct str */
    FIELD_BOOL,          /* struct opt_bool */
    FIELD_INT,           /* struct opt_int */
    FIELD_QUANTITY,      /* struct opt_quantity; JSON string or number */
    FIELD_TIME,          /* struct opt_time, RFC 3339 */
    FIELD_DURATION,      /* struct opt_duration, "1h30m" */
    FIELD_STRING_LIST,   /* struct str_list */
    FIELD_STRING_MAP,    /* struct string_map */
    FIELD_RESOURCE_LIST, /* struct resource_list: a JSON object of quantities */
    FIELD_OBJECT,        /* the struct itself, inline */
    FIELD_OBJECT_PTR,    /* pointer to it, NULL when absent */
    FIELD_OBJECT_LIST,   /* {T *items; uint32_t count} */
    FIELD_OBJECT_MAP,    /* the same; T begins with `struct str key` */
};

struct field {
    const char *name; /* JSON name */
    enum field_kind kind;
    size_t offset;
    const struct schema *schema; /* of the object kinds */
};

struct schema {
    const char *name;
    size_t bytes; /* sizeof the struct */
    const struct field *fields;
    uint32_t field_count;
};

enum token_kind {
    TOKEN_NULL = 1,
    TOKEN_BOOL,
    TOKEN_NUMBER, /* text as written */
    TOKEN_STRING,
    TOKEN_OBJECT_START,
    TOKEN_KEY,
    TOKEN_OBJECT_END,
    TOKEN_ARRAY_START,
    TOKEN_ARRAY_END,
};

struct token {
    enum token_kind kind;
    bool boolean;
    struct str text; /* borrowed for the call; of a YAML bool, the word that stood there */
};

/* Takes one token; a failure stops the reader. */
struct token_sink {
    struct rc (*on_token)(void *ctx, const struct token *token, struct err *err);
    void *ctx;
};

/* -- readers ----------------------------------------------------------------------------------- */

struct json_reader; /* api/json_reader.c is one of the two files that include yajl */

/* Several documents may follow each other, as in a watch. Owned; free with json_reader_free(). */
struct json_reader *json_reader_new(struct token_sink sink);
void json_reader_free(struct json_reader *reader); /* NULL is fine */
NODISCARD struct rc json_reader_feed(struct json_reader *reader, const char *bytes, size_t count,
                                     struct err *err);
/* RC_INVALID if a document is unfinished. The reader is ready for a new stream afterwards. */
NODISCARD struct rc json_reader_finish(struct json_reader *reader, struct err *err);

/* One file of YAML documents (JSON is YAML). `on_document` is called behind each document with its
 * line. Anchors and aliases are refused, a number or bool stays what YAML 1.1's core schema as
 * kubectl reads it (yes/no/on/off are texts there only when quoted: sigs.k8s.io/yaml rules). */
NODISCARD struct rc yaml_read(struct str text, struct token_sink sink,
                              struct rc (*on_document)(void *ctx, uint32_t line, struct err *err),
                              struct err *err);

/* -- decoding ---------------------------------------------------------------------------------- */

struct decoder; /* one document by one schema */

/* Owned. Texts and arrays of what is decoded go to `arena` (borrowed until the decoder is freed).
 */
struct decoder *decoder_new(struct arena *arena, const struct schema *schema);
void decoder_free(struct decoder *decoder);
/* Ready for the next document, of maybe another schema and arena. */
void decoder_restart(struct decoder *decoder, struct arena *arena, const struct schema *schema);
struct token_sink decoder_sink(struct decoder *decoder);
/* The finished struct, NULL while the document isn't complete. Borrowed from the arena. */
void *decoder_result(const struct decoder *decoder);

/* A whole JSON text at once, such as an annotation. */
NODISCARD struct rc decode_json(struct arena *arena, const struct schema *schema, struct str text,
                                void **ret_value, struct err *err);

/* -- what an API server sends ----------------------------------------------------------------- */

enum watch_event_type {
    WATCH_ADDED = 1,
    WATCH_MODIFIED,
    WATCH_DELETED,
    WATCH_BOOKMARK,
    WATCH_ERROR
};

struct api_status_cause {
    struct str reason;
    struct str message;
    struct str field;
};

struct api_status_cause_list {
    struct api_status_cause *items;
    uint32_t count;
};

struct api_status_details {
    struct str name;
    struct str kind;
    struct opt_int retry_after_seconds;
    struct api_status_cause_list causes;
};

/* metav1.Status, the body of an error. */
struct api_status {
    struct object_meta meta; /* only resourceVersion and continue are ever there */
    struct str status;       /* "Success", "Failure" */
    struct str message;
    struct str reason;
    struct opt_int code;
    struct api_status_details *details;
};

struct watch_event {
    enum watch_event_type type;
    struct object object;            /* all but WATCH_ERROR; a bookmark has only its meta */
    const struct api_status *status; /* WATCH_ERROR only */
};

/* Takes one event; everything in it is borrowed for the call. */
struct watch_handler {
    struct rc (*on_event)(void *ctx, const struct watch_event *event, struct err *err);
    /* One object could not be decoded (wrong type, bad quantity): it is skipped, the stream goes
     * on. `meta` holds as much of its meta as was read; `why` names the object and the field. NULL:
     * such an object ends the stream. */
    void (*on_malformed)(void *ctx, const struct object_meta *meta, const struct err *why);
    void *ctx;
};

struct watch_decoder; /* {"type":…,"object":…} one after the other, type first */

struct watch_decoder *watch_decoder_new(const struct kind_info *kind, struct watch_handler handler);
void watch_decoder_free(struct watch_decoder *decoder);
/* RC_INVALID: the text isn't a watch stream of that kind; drop the connection. */
NODISCARD struct rc watch_decoder_feed(struct watch_decoder *decoder, const char *bytes,
                                       size_t count, struct err *err);
/* Tells whether the stream ended between two events. */
NODISCARD struct rc watch_decoder_finish(struct watch_decoder *decoder, struct err *err);

struct list_meta {
    struct str resource_version;
    struct str continue_token; /* absent: last page */
    struct opt_int remaining_item_count;
};

struct list_decoder; /* {"metadata":…,"items":[…]}: each item goes to the handler as WATCH_ADDED */

struct list_decoder *list_decoder_new(const struct kind_info *kind, struct watch_handler handler);
void list_decoder_free(struct list_decoder *decoder);
NODISCARD struct rc list_decoder_feed(struct list_decoder *decoder, const char *bytes, size_t count,
                                      struct err *err);
/* Ends the page. Borrowed until the decoder is fed again or freed. */
NODISCARD struct rc list_decoder_finish(struct list_decoder *decoder, struct list_meta *ret_meta,
                                        struct err *err);

/* -- manifests --------------------------------------------------------------------------------- */

struct manifest {
    struct object object; /* KIND_NONE: a kind that isn't ours; then the two texts below tell it */
    struct str api_version; /* borrowed from the arena */
    struct str kind;
    struct str file_name;  /* as given to manifests_read() */
    uint32_t line;         /* in the file, from 1 */
    bool has_no_namespace; /* it is in "default" for want of one */
};

/* Reads a file's text (YAML or JSON, several documents, `kind: List` taken apart). Every document
 * is given to `on_manifest`, in the order of the text. An error names file, line, object and path;
 * a failure of `on_manifest` gets file, line and object put in front. A namespaced object without a
 * namespace is in "default". */
NODISCARD struct rc manifests_read(struct arena *arena, struct str file_name, struct str text,
                                   struct rc (*on_manifest)(void *ctx, const struct manifest *m,
                                                            struct err *err),
                                   void *ctx, struct err *err);

/* -- writing ----------------------------------------------------------------------------------- */

struct json_writer; /* api/json_writer.c is the other file that includes yajl */

/* Compact JSON; owned. Nesting errors are the programmer's and assert. */
struct json_writer *json_writer_new(void);
void json_writer_free(struct json_writer *writer);
void json_writer_reset(struct json_writer *writer);
void json_object_start(struct json_writer *writer);
void json_object_end(struct json_writer *writer);
void json_array_start(struct json_writer *writer);
void json_array_end(struct json_writer *writer);
void json_key(struct json_writer *writer, const char *key);
void json_key_str(struct json_writer *writer, struct str key);
void json_string(struct json_writer *writer, struct str value); /* bad UTF-8 becomes U+FFFD */
void json_int(struct json_writer *writer, int64_t value);
void json_number(struct json_writer *writer, struct str digits);
void json_bool(struct json_writer *writer, bool value);
void json_null(struct json_writer *writer);
/* Borrowed until the writer changes. */
struct str json_writer_text(const struct json_writer *writer);

/* Writes a struct by its schema: the fields that are present, in the schema's order, so that
 * decode(encode(x)) equals x and the same struct always gives the same bytes. */
void encode_object(struct json_writer *writer, const struct schema *schema, const void *value);
/* The members alone, into an object that the caller has started: it may put others in front. */
void encode_fields(struct json_writer *writer, const struct schema *schema, const void *value);

/* -- copies ----------------------------------------------------------------------------------- */

/* A deep copy of a struct and all that it points to, in one allocation. Owned; mem_free(). */
NODISCARD void *object_clone(const struct schema *schema, const void *value);
/* Whether two structs of one schema say the same, presence included; quantities by value, list and
 * map entries in their order. */
bool object_equal(const struct schema *schema, const void *a, const void *b);
