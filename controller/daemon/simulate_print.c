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
        fprintf(out, "%s" STR_FMT, used > 0 ? " " : "", STR_ARG(word));
        used += width + (used > 0 ? 1 : 0);
    }
    fputc('\n', out);
}
