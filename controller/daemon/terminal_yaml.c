/* terminal_yaml.c - our own compact JSON as YAML.
 *
 * A JSON string is a YAML string in double quotes, so only what reads better without quotes needs
 * thought: a text stands bare where no YAML reader could take it for anything but that text. */
#include "terminal.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

static bool is_plain_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("-_./", c) != NULL;
}

/* YAML readers, old ones too, take these for something else. */
static bool is_word_of_yaml(struct str text)
{
    static const char *const words[] = {"true", "false", "null", "yes", "no",
                                        "on",   "off",   "y",    "n"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (text.len == strlen(words[i]) && strncasecmp(text.ptr, words[i], text.len) == 0) {
            return true;
        }
    }
    return false;
}

/* A letter first, so that it is no number, no date and no indicator. */
static bool is_plain(struct str text)
{
    if (text.len == 0 || text.len > 128 || !isalpha((unsigned char)text.ptr[0])) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\0' || !is_plain_char(text.ptr[i])) {
            return false;
        }
    }
    return !is_word_of_yaml(text);
}

/* The string at the front, with its quotes. */
static struct str take_string(struct str *json)
{
    size_t i = 1;
    while (json->ptr[i] != '"') {
        i += json->ptr[i] == '\\' ? 2 : 1;
    }
    struct str quoted = str_take(*json, i + 1);
    *json = str_skip(*json, i + 1);
    return quoted;
}

static void print_string(FILE *out, struct str quoted)
{
    struct str inner = str_take(str_skip(quoted, 1), quoted.len - 2);
    if (is_plain(inner)) {
        fprintf(out, STR_FMT, STR_ARG(inner));
    } else {
        terminal_print_json(out, quoted, true);
    }
}

static void print_value(FILE *out, struct str *json, int depth, bool is_item);

/* An object as an item begins on the dash's own line. */
static void print_members(FILE *out, struct str *json, int depth, bool is_item)
{
    bool is_first = true;
    while (json->ptr[0] != '}') {
        *json = str_skip(*json, json->ptr[0] == ',' ? 1 : 0);
        if (!is_first || !is_item) {
            fprintf(out, "%*s", depth * 2, "");
        }
        print_string(out, take_string(json));
        fputs(":", out);
        *json = str_skip(*json, 1);
        print_value(out, json, depth, false);
        is_first = false;
    }
    *json = str_skip(*json, 1);
}

static void print_items(FILE *out, struct str *json, int depth)
{
    while (json->ptr[0] != ']') {
        *json = str_skip(*json, json->ptr[0] == ',' ? 1 : 0);
        fprintf(out, "%*s-", depth * 2, "");
        print_value(out, json, depth, true);
    }
    *json = str_skip(*json, 1);
}

static void print_scalar(FILE *out, struct str *json)
{
    if (json->ptr[0] == '"') {
        print_string(out, take_string(json));
    } else {
        size_t end = 0;
        while (end < json->len && strchr(",}]", json->ptr[end]) == NULL) {
            end++;
        }
        fprintf(out, STR_FMT, STR_ARG(str_take(*json, end)));
        *json = str_skip(*json, end);
    }
    fputs("\n", out);
}

/* Behind "key:" or "-", with its line's end. */
static void print_value(FILE *out, struct str *json, int depth, bool is_item)
{
    assert(json->len >= 1);
    char first = json->ptr[0];
    bool is_nest = first == '{' || first == '[';
    if (is_nest && json->len >= 2 && (json->ptr[1] == '}' || json->ptr[1] == ']')) {
        fprintf(out, " " STR_FMT "\n", STR_ARG(str_take(*json, 2)));
        *json = str_skip(*json, 2);
        return;
    }
    fputs(is_nest && !(is_item && first == '{') ? "\n" : " ", out);
    if (!is_nest) {
        print_scalar(out, json);
        return;
    }
    *json = str_skip(*json, 1);
    if (first == '{') {
        print_members(out, json, depth + 1, is_item);
    } else {
        print_items(out, json, is_item ? depth + 1 : depth);
    }
}

void terminal_print_yaml(FILE *out, struct str json)
{
    assert(json.len >= 2 && json.ptr[0] == '{');
    json = str_skip(json, 1);
    print_members(out, &json, 0, false);
}
