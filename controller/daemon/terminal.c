/* terminal.c - what is safe and fits. */
#define _GNU_SOURCE
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tallyman/base/text.h"

#define COLUMNS_MIN 40
#define COLUMNS_MAX 400

struct str terminal_safe(struct arena *arena, struct str text)
{
    struct text safe;
    text_init(&safe, arena, text.len * 6 + 16);
    while (text.len > 0) {
        struct str before = text;
        uint32_t c;
        if (!str_take_utf8(&text, &c)) {
            text_addf(&safe, "\\x%02x", (unsigned)(unsigned char)text.ptr[0]);
            text = str_skip(text, 1);
        } else if (str_char_is_unsafe(c)) {
            text_addf(&safe, c > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)c);
        } else {
            text_add(&safe, str_take(before, before.len - text.len));
        }
    }
    return text_str(&safe);
}

static void print_escape(FILE *out, uint32_t c, bool is_yaml)
{
    if (c <= 0xffff) {
        fprintf(out, "\\u%04x", (unsigned)c);
    } else if (is_yaml) {
        fprintf(out, "\\U%08x", (unsigned)c);
    } else {
        uint32_t beyond = c - 0x10000;
        fprintf(out, "\\u%04x\\u%04x", (unsigned)(0xd800 + (beyond >> 10)),
                (unsigned)(0xdc00 + (beyond & 0x3ff)));
    }
}

void terminal_print_json(FILE *out, struct str json, bool is_yaml)
{
    struct str plain = json;
    while (json.len > 0) {
        struct str before = json;
        uint32_t c;
        if (!str_take_utf8(&json, &c)) {
            json = str_skip(json, 1);
            c = 0xfffd;
        } else if (!str_char_is_unsafe(c)) {
            continue;
        }
        fwrite(plain.ptr, 1, plain.len - before.len, out);
        print_escape(out, c, is_yaml);
        plain = json;
    }
    if (plain.len > 0) { /* a text that is absent has no bytes to point at */
        fwrite(plain.ptr, 1, plain.len, out);
    }
}

int terminal_columns(FILE *file)
{
    struct winsize size = {.ws_col = 0};
    if (!isatty(fileno(file))) {
        return 0;
    }
    int columns = 80;
    const char *wanted = getenv("COLUMNS");
    int64_t value;
    if (wanted != NULL && str_to_i64(str_from_c(wanted), &value) && value > 0) {
        columns = value < COLUMNS_MAX ? (int)value : COLUMNS_MAX;
    } else if (ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        columns = size.ws_col;
    }
    columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns;
    return columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
}

bool terminal_has_color(FILE *file)
{
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    bool is_wanted = no_color == NULL || no_color[0] == '\0';
    return is_wanted && isatty(fileno(file)) && term != NULL && strcmp(term, "dumb") != 0;
}

int terminal_width(struct str text)
{
    int width = 0;
    for (size_t i = 0; i < text.len; i++) {
        width += ((unsigned char)text.ptr[i] & 0xc0) != 0x80 ? 1 : 0;
    }
    return width;
}

int terminal_wrap(FILE *out, struct str text, int used, int indent, int columns)
{
    bool is_first = true;
    while (text.len > 0) {
        size_t end = str_find_char(text, ' ');
        struct str word = str_take(text, end);
        text = str_skip(text, end + 1);
        int width = terminal_width(word);
        int space = is_first ? 0 : 1;
        if (columns > 0 && used + space + width > columns && used > indent) {
            fprintf(out, "\n%*s", indent, "");
            used = indent;
            space = 0;
        }
        fprintf(out, "%s" STR_FMT, space == 1 ? " " : "", STR_ARG(word));
        used += space + width;
        is_first = false;
    }
    return used;
}
