/* simulate_print.c - colours, clocks and lines of a terminal. */
#define _GNU_SOURCE
#include "simulate.h"

#include <stdlib.h>
#include <unistd.h>

static bool has_ink;

void print_choose_ink(FILE *out)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    bool is_dumb = term != NULL && str_eq_c(str_from_c(term), "dumb");
    has_ink = isatty(fileno(out)) == 1 && (no_color == NULL || no_color[0] == '\0') && !is_dumb;
}

void print_ink(FILE *out, enum ink ink)
{
    static const char *const codes[] = {
        [INK_PLAIN] = "0",  [INK_BOLD] = "1",    [INK_DIM] = "2",
        [INK_GREEN] = "32", [INK_YELLOW] = "33", [INK_RED] = "31",
    };
    if (has_ink) {
        fprintf(out, "\033[%sm", codes[ink]);
    }
}

void print_clock(FILE *out, int64_t ms)
{
    int64_t seconds = ms / 1000;
    fprintf(out, "%02lld:%02lld:%02lld", (long long)(seconds / 3600),
            (long long)(seconds / 60 % 60), (long long)(seconds % 60));
}

/* At most so many characters; returns how many. */
static int print_chars(FILE *out, struct str text, int max)
{
    int shown = 0;
    while (text.len > 0 && shown < max) {
        struct str before = text;
        uint32_t c = 0;
        bool is_good = str_take_utf8(&text, &c);
        text = is_good ? text : str_skip(text, 1);
        if (!is_good || str_char_is_unsafe(c)) {
            fputc('?', out);
        } else {
            fwrite(before.ptr, 1, before.len - text.len, out);
        }
        shown++;
    }
    return shown;
}

void print_safe(FILE *out, struct str text)
{
    (void)print_chars(out, text, INT32_MAX);
}

void print_name(FILE *out, struct str text, int columns)
{
    int shown = print_chars(out, text, columns);
    fprintf(out, "%*s", columns - shown, "");
}

/* Characters, not bytes: names and sentences may be in any language. */
static size_t width_of(struct str text)
{
    size_t width = 0;
    for (size_t i = 0; i < text.len; i++) {
        width += ((unsigned char)text.ptr[i] & 0xc0) != 0x80 ? 1 : 0;
    }
    return width;
}

void print_wrapped(FILE *out, int indent, struct str text)
{
    size_t room = SIMULATE_COLUMNS - (size_t)indent;
    size_t used = 0;
    while (text.len > 0) {
        size_t length = str_find_char(text, ' ');
        struct str word = str_take(text, length);
        text = str_skip(text, length + 1);
        size_t width = width_of(word);
        if (used > 0 && used + 1 + width > room) {
            fprintf(out, "\n%*s", indent, "");
            used = 0;
        }
        fputs(used > 0 ? " " : "", out);
        print_safe(out, word);
        used += width + (used > 0 ? 1 : 0);
    }
    fputc('\n', out);
}
