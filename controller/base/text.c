#include "tallyman/base/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tallyman/base/limits.h"

static const struct str ELLIPSIS = STR_INIT("…");

void text_init(struct text *text, struct arena *arena, size_t max_bytes)
{
    assert(max_bytes <= TEXT_LIMIT_BYTES);
    *text = (struct text){.arena = arena, .max_bytes = max_bytes};
}

/* Makes room for `bytes` more and a NUL. */
static void text_reserve(struct text *text, size_t bytes)
{
    size_t needed = text->len + bytes + 1;

    if (needed <= text->capacity) {
        return;
    }
    size_t capacity = text->capacity * 2;

    if (capacity < TEXT_FIRST_BYTES) {
        capacity = TEXT_FIRST_BYTES;
    }
    if (capacity > text->max_bytes + 1) {
        capacity = text->max_bytes + 1;
    }
    if (capacity < needed) {
        capacity = needed;
    }
    char *moved = arena_alloc(text->arena, capacity);

    if (text->len > 0) {
        memcpy(moved, text->ptr, text->len);
    }
    text->ptr = moved;
    text->capacity = capacity;
}

/* The text is full up to max_bytes and more was to come: its end becomes the ellipsis. */
static void text_cut(struct text *text)
{
    struct str ending = text->max_bytes >= ELLIPSIS.len ? ELLIPSIS : STR_NONE;
    struct str whole = {text->ptr, text->len};

    text->len = str_cut_utf8(whole, text->max_bytes - ending.len).len;
    if (ending.len > 0) {
        memcpy(text->ptr + text->len, ending.ptr, ending.len);
        text->len += ending.len;
    }
    text->ptr[text->len] = '\0';
    text->is_cut = true;
}

void text_add(struct text *text, struct str piece)
{
    if (text->is_cut || piece.len == 0) {
        return;
    }
    size_t room = text->max_bytes - text->len;
    size_t taken = piece.len < room ? piece.len : room;

    text_reserve(text, taken);
    memcpy(text->ptr + text->len, piece.ptr, taken);
    text->len += taken;
    text->ptr[text->len] = '\0';
    if (taken < piece.len) {
        text_cut(text);
    }
}

void text_addf(struct text *text, const char *format, ...)
{
    va_list args;
    va_list again;

    if (text->is_cut) {
        return;
    }
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(length >= 0);

    size_t room = text->max_bytes - text->len;
    size_t taken = (size_t)length < room ? (size_t)length : room;

    text_reserve(text, taken);
    int written = vsnprintf(text->ptr + text->len, taken + 1, format, again);

    va_end(again);
    assert(written == length);
    text->len += taken;
    if (taken < (size_t)length) {
        text_cut(text);
    }
}

struct str text_str(const struct text *text)
{
    return text->ptr == NULL ? STR("") : (struct str){text->ptr, text->len};
}

/* Takes a character off the front of `rest`; false if it isn't one that may be shown. */
static bool take_shown(struct str *rest)
{
    uint32_t c;

    if (str_take_utf8(rest, &c)) {
        return !str_char_is_unsafe(c);
    }
    *rest = str_skip(*rest, 1);
    return false;
}

struct str text_quote(struct arena *arena, struct str text, size_t max_bytes)
{
    const struct str whole = text.len > max_bytes ? str_cut_utf8(text, max_bytes) : text;
    struct str rest = whole;
    bool is_clean = true;

    while (rest.len > 0 && is_clean) {
        is_clean = take_shown(&rest);
    }
    if (is_clean) {
        return whole;
    }
    char *copy = arena_alloc(arena, whole.len + 1);
    size_t len = 0;

    for (rest = whole; rest.len > 0;) {
        struct str from = rest;

        if (take_shown(&rest)) {
            memcpy(copy + len, from.ptr, from.len - rest.len);
            len += from.len - rest.len;
        } else {
            copy[len++] = '?';
        }
    }
    copy[len] = '\0';
    return (struct str){copy, len};
}
