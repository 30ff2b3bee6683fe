/* Strings count in characters (code points). Source: cel-go ext/strings.go, version 2. */
#include <string.h>

#include "impl.h"
#include "tallyman/base/limits.h"
#include "utf8.h"

#define TEXT_FIRST_CAPACITY 32u

void cel_text_add(struct cel_text *text, struct str piece)
{
    if (text->len + piece.len > text->capacity) {
        size_t capacity =
            text->capacity < TEXT_FIRST_CAPACITY ? TEXT_FIRST_CAPACITY : 2 * text->capacity;
        capacity = capacity < text->len + piece.len ? text->len + piece.len : capacity;
        char *grown = cel_alloc(text->ev, capacity, 1);
        if (grown == NULL) {
            return;
        }
        if (text->len > 0) {
            memcpy(grown, text->ptr, text->len);
        }
        text->ptr = grown;
        text->capacity = capacity;
    }
    if (piece.len > 0) {
        memcpy(text->ptr + text->len, piece.ptr, piece.len);
        text->len += piece.len;
    }
}

void cel_text_add_char(struct cel_text *text, uint32_t character)
{
    char bytes[UTF8_MAX_BYTES];
    cel_text_add(text, (struct str){bytes, utf8_encode(character, bytes)});
}

struct str cel_text_str(const struct cel_text *text)
{
    return text->ptr == NULL ? STR("") : (struct str){text->ptr, text->len};
}

static struct cel_value text_value(const struct cel_text *text)
{
    return text->ev->stop == RC_OK ? cel_string(cel_text_str(text))
                                   : cel_stop(text->ev, RC_LIMIT, NULL);
}

static bool are_strings(const struct cel_value *args, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (args[i].kind != CEL_STRING) {
            return false;
        }
    }
    return true;
}

static struct cel_value out_of_range(struct cel_eval *ev)
{
    return cel_fault(ev, "index out of range", STR_NONE);
}

struct cel_value cel_contains(struct cel_eval *ev, UNUSED const struct cel_node *node,
                              const struct cel_value *args, UNUSED uint32_t count)
{
    if (!are_strings(args, 2)) {
        return cel_no_overload(ev);
    }
    return cel_bool(args[1].text.len == 0 ||
                    str_find(args[0].text, args[1].text) < args[0].text.len);
}

struct cel_value cel_starts_with(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                 const struct cel_value *args, UNUSED uint32_t count)
{
    return are_strings(args, 2) ? cel_bool(str_starts_with(args[0].text, args[1].text))
                                : cel_no_overload(ev);
}

struct cel_value cel_ends_with(struct cel_eval *ev, UNUSED const struct cel_node *node,
                               const struct cel_value *args, UNUSED uint32_t count)
{
    return are_strings(args, 2) ? cel_bool(str_ends_with(args[0].text, args[1].text))
                                : cel_no_overload(ev);
}

struct cel_value cel_size(struct cel_eval *ev, UNUSED const struct cel_node *node,
                          const struct cel_value *args, UNUSED uint32_t count)
{
    switch ((int)args[0].kind) {
    case CEL_STRING:
        return cel_int(utf8_count(args[0].text));
    case CEL_BYTES:
    case CEL_LIST:
    case CEL_MAP:
        return cel_int((int64_t)cel_size_cost(ev, args[0]));
    default:
        return cel_no_overload(ev);
    }
}

struct cel_value cel_char_at(struct cel_eval *ev, UNUSED const struct cel_node *node,
                             const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_STRING || args[1].kind != CEL_INT) {
        return cel_no_overload(ev);
    }
    struct str text = args[0].text;
    if (args[1].integer < 0 || args[1].integer > utf8_count(text)) {
        return out_of_range(ev);
    }
    struct str rest = str_skip(text, utf8_offset(text, (uint64_t)args[1].integer));
    return cel_string(str_take(rest, utf8_length(rest)));
}

struct cel_value cel_substring(struct cel_eval *ev, UNUSED const struct cel_node *node,
                               const struct cel_value *args, uint32_t count)
{
    bool has_end = count == 3;
    if (args[0].kind != CEL_STRING || args[1].kind != CEL_INT ||
        (has_end && args[2].kind != CEL_INT)) {
        return cel_no_overload(ev);
    }
    struct str text = args[0].text;
    int64_t length = utf8_count(text);
    int64_t start = args[1].integer;
    int64_t end = has_end ? args[2].integer : length;
    if (start < 0 || start > end || end > length) {
        return out_of_range(ev);
    }
    size_t from = utf8_offset(text, (uint64_t)start);
    size_t to = utf8_offset(text, (uint64_t)end);
    return cel_string(str_take(str_skip(text, from), to - from));
}

static struct cel_value change_case(struct cel_eval *ev, const struct cel_value *args, char first,
                                    char last)
{
    if (args[0].kind != CEL_STRING) {
        return cel_no_overload(ev);
    }
    struct str text = args[0].text;
    char *changed = cel_alloc(ev, text.len + 1, 1);
    if (changed == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        changed[i] = c >= first && c <= last ? (char)(c ^ 0x20) : c;
    }
    return cel_string((struct str){changed, text.len});
}

struct cel_value cel_lower_ascii(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                 const struct cel_value *args, UNUSED uint32_t count)
{
    return change_case(ev, args, 'A', 'Z');
}

struct cel_value cel_upper_ascii(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                 const struct cel_value *args, UNUSED uint32_t count)
{
    return change_case(ev, args, 'a', 'z');
}

struct cel_value cel_trim(struct cel_eval *ev, UNUSED const struct cel_node *node,
                          const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_STRING) {
        return cel_no_overload(ev);
    }
    struct str text = args[0].text;
    size_t start = text.len;
    size_t end = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < text.len; i += bytes) {
        if (!utf8_is_space(utf8_decode(str_skip(text, i), &bytes))) {
            start = start == text.len ? i : start;
            end = i + bytes;
        }
    }
    return cel_string(end == 0 ? STR("") : str_take(str_skip(text, start), end - start));
}

/* One replacement: what is before it, `new`, and after an empty `old` one character more. False: it
 * was the last. */
static bool replace_one(struct cel_text *text, struct str *rest, struct str old, struct str new)
{
    size_t at = old.len == 0 ? 0 : str_find(*rest, old);
    if (at >= rest->len && old.len > 0) {
        return false;
    }
    cel_text_add(text, str_take(*rest, at));
    cel_text_add(text, new);
    *rest = str_skip(*rest, at + old.len);
    if (old.len == 0) {
        size_t one = utf8_length(*rest);
        cel_text_add(text, str_take(*rest, one));
        *rest = str_skip(*rest, one);
        return one > 0;
    }
    return true;
}

/* Go's strings.Replace: an empty `old` matches before each character and at the end. */
struct cel_value cel_replace(struct cel_eval *ev, UNUSED const struct cel_node *node,
                             const struct cel_value *args, uint32_t count)
{
    if (!are_strings(args, 3) || (count == 4 && args[3].kind != CEL_INT)) {
        return cel_no_overload(ev);
    }
    struct str rest = args[0].text;
    struct cel_text text = {.ev = ev};
    int64_t left = count == 4 ? args[3].integer : -1;
    while (left != 0 && ev->stop == RC_OK &&
           replace_one(&text, &rest, args[1].text, args[2].text)) {
        left -= left > 0 ? 1 : 0;
    }
    cel_text_add(&text, rest);
    return text_value(&text);
}

/* How many pieces there are; at most `limit` unless that is negative. */
static uint32_t count_pieces(struct str text, struct str separator, int64_t limit)
{
    uint32_t pieces = 1;
    if (separator.len == 0) {
        pieces = utf8_count(text);
    } else {
        for (size_t at = str_find(text, separator); at < text.len; at = str_find(text, separator)) {
            text = str_skip(text, at + separator.len);
            pieces++;
        }
    }
    return limit >= 0 && limit < pieces ? (uint32_t)limit : pieces;
}

struct cel_value cel_split(struct cel_eval *ev, UNUSED const struct cel_node *node,
                           const struct cel_value *args, uint32_t count)
{
    if (!are_strings(args, 2) || (count == 3 && args[2].kind != CEL_INT)) {
        return cel_no_overload(ev);
    }
    struct str rest = args[0].text;
    struct str separator = args[1].text;
    uint32_t pieces = count_pieces(rest, separator, count == 3 ? args[2].integer : -1);
    struct cel_value *items = cel_list_items(ev, pieces);
    if (items == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    for (uint32_t i = 0; i < pieces; i++) {
        size_t at = separator.len == 0 ? utf8_length(rest) : str_find(rest, separator);
        at = i + 1 == pieces ? rest.len : at;
        items[i] = cel_string(str_take(rest, at));
        rest = str_skip(rest, at + separator.len);
    }
    return cel_list_value(ev, items, pieces);
}

struct cel_value cel_join(struct cel_eval *ev, UNUSED const struct cel_node *node,
                          const struct cel_value *args, uint32_t count)
{
    struct cel_text text = {.ev = ev};
    if (args[0].kind != CEL_LIST || (count == 2 && args[1].kind != CEL_STRING)) {
        return cel_no_overload(ev);
    }
    const struct cel_list *list = args[0].list;
    for (uint32_t i = 0; i < list->count && ev->stop == RC_OK; i++) {
        if (list->items[i].kind != CEL_STRING) {
            return cel_fault(ev, "join() takes strings, this is a",
                             cel_kind_name(list->items[i].kind));
        }
        if (i > 0 && count == 2) {
            cel_text_add(&text, args[1].text);
        }
        cel_text_add(&text, list->items[i].text);
    }
    if (!cel_charge(ev, text.len / 5)) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    return text_value(&text);
}

struct cel_value cel_quote(struct cel_eval *ev, UNUSED const struct cel_node *node,
                           const struct cel_value *args, UNUSED uint32_t count)
{
    static const char escapes[] = "\aa\bb\ff\nn\rr\tt\vv\\\\\"\"";
    struct cel_text text = {.ev = ev};
    size_t bytes = 0;
    if (args[0].kind != CEL_STRING) {
        return cel_no_overload(ev);
    }
    cel_text_add_char(&text, '"');
    for (size_t i = 0; i < args[0].text.len; i += bytes) {
        uint32_t c = utf8_decode(str_skip(args[0].text, i), &bytes);
        for (size_t e = 0; escapes[e] != '\0'; e += 2) {
            if ((uint32_t)escapes[e] == c) {
                cel_text_add_char(&text, '\\');
                c = (uint32_t)escapes[e + 1];
                break;
            }
        }
        cel_text_add_char(&text, c);
    }
    cel_text_add_char(&text, '"');
    return text_value(&text);
}

static struct cel_value index_in_list(struct cel_eval *ev, const struct cel_value *args,
                                      bool is_last)
{
    const struct cel_list *list = args[0].list;
    for (uint32_t n = 0; n < list->count && ev->stop == RC_OK; n++) {
        uint32_t i = is_last ? list->count - 1 - n : n;
        if (cel_is_true(cel_equal(ev, list->items[i], args[1]))) {
            return cel_int(i);
        }
    }
    return ev->stop == RC_OK ? cel_int(-1) : cel_stop(ev, RC_LIMIT, NULL);
}

/* The bounds that both searches share. True: *ret_value is the answer already. */
static bool index_is_known(struct cel_eval *ev, const struct cel_value *args, int64_t offset,
                           struct cel_value *ret_value)
{
    int64_t length = utf8_count(args[0].text);
    if (offset < 0) {
        *ret_value = out_of_range(ev);
        return true;
    }
    if (args[1].text.len == 0) {
        *ret_value = cel_int(offset > length ? length : offset);
        return true;
    }
    *ret_value = cel_int(-1);
    return offset >= length;
}

struct cel_value cel_index_of(struct cel_eval *ev, UNUSED const struct cel_node *node,
                              const struct cel_value *args, uint32_t count)
{
    struct cel_value value;
    if (args[0].kind == CEL_LIST && count == 2) {
        return index_in_list(ev, args, false);
    }
    if (!are_strings(args, 2) || (count == 3 && args[2].kind != CEL_INT)) {
        return cel_no_overload(ev);
    }
    int64_t offset = count == 3 ? args[2].integer : 0;
    if (index_is_known(ev, args, offset, &value)) {
        return value;
    }
    size_t start = utf8_offset(args[0].text, (uint64_t)offset);
    struct str rest = str_skip(args[0].text, start);
    size_t at = str_find(rest, args[1].text);
    return at < rest.len ? cel_int(offset + utf8_count(str_take(rest, at))) : cel_int(-1);
}

/* The last place at or before byte `at` where `part` stands; in characters. */
static struct cel_value search_back(struct str text, struct str part, size_t at)
{
    for (at++; at > 0; at--) {
        bool is_start = ((unsigned char)text.ptr[at - 1] & 0xc0u) != 0x80u;
        if (is_start && str_starts_with(str_skip(text, at - 1), part)) {
            return cel_int(utf8_count(str_take(text, at - 1)));
        }
    }
    return cel_int(-1);
}

struct cel_value cel_last_index_of(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                   const struct cel_value *args, uint32_t count)
{
    struct cel_value value;
    if (args[0].kind == CEL_LIST && count == 2) {
        return index_in_list(ev, args, true);
    }
    if (!are_strings(args, 2) || (count == 3 && args[2].kind != CEL_INT)) {
        return cel_no_overload(ev);
    }
    struct str text = args[0].text;
    struct str part = args[1].text;
    if (count == 2 && text.len < part.len) {
        return cel_int(-1);
    }
    int64_t last = (int64_t)utf8_count(text) - (part.len == 0 ? 0 : 1);
    int64_t offset = count == 3 ? args[2].integer : last;
    if (index_is_known(ev, args, offset, &value)) {
        return value;
    }
    return search_back(text, part, utf8_offset(text, (uint64_t)offset));
}
