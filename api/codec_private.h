/* codec_private.h - what the files of the codec share among themselves. */
#pragma once

#include "tallyman/api/codec.h"

/* -- utf8.c ------------------------------------------------------------------------------------ */

/* The length of the longest prefix that is well-formed UTF-8: no overlong form, no surrogate,
 * nothing above U+10FFFF. s.len: all of it. */
size_t utf8_valid_bytes(struct str s);
/* True if `s` is well-formed UTF-8 as a whole. */
bool utf8_is_valid(struct str s);

/* -- json_reader.c ----------------------------------------------------------------------------- */

/* The sink says that an object of its own begins with the token it was just given:
 * DECODE_OBJECT_MAX_BYTES is counted from here, so that a list may be longer than its items. */
void json_reader_start_object(struct json_reader *reader);
/* For a reader whose text is in memory anyhow. */
void json_reader_set_object_max_bytes(struct json_reader *reader, size_t max_bytes);
/* Bytes of the stream up to the end of the token that the sink was just given. */
size_t json_reader_offset(const struct json_reader *reader);

/* -- yaml_reader.c ----------------------------------------------------------------------------- */

/* As yaml_read(), but keeps the line of the token that the sink is given in *ret_line (from 1), the
 * line of the fault when it fails; the sentence has no line in it. */
NODISCARD struct rc yaml_read_lines(struct str text, struct token_sink sink,
                                    struct rc (*on_document)(void *ctx, uint32_t line,
                                                             struct err *err),
                                    uint32_t *ret_line, struct err *err);

/* -- decoder.c --------------------------------------------------------------------------------- */

/* What the document has given so far, also after a failure; NULL before it began. Borrowed from the
 * arena. */
void *decoder_partial(const struct decoder *decoder);
/* Of the document that begins: fields that only an older version of its kind has are passed over. A
 * server answers in the version that it was asked for; who writes a file may mix them up. */
void decoder_read_newest_only(struct decoder *decoder);
/* True once the document's last token has been taken. */
bool decoder_is_complete(const struct decoder *decoder);

/* Every list struct of the api headers has this layout: {T *items; uint32_t count}. It is read and
 * written by memcpy, as its type isn't known here. */
struct any_list {
    void *items;
    uint32_t count;
};
