/* terminal.h - text for people: what is safe to show, how wide the screen is, and YAML. */
#pragma once

#include <stdio.h>

#include "tallyman/base/arena.h"
#include "tallyman/base/str.h"

/* Whoever names an object may put in it what steers a terminal: control characters (C1 too) and
 * marks that turn the direction of text come out as `\u001b`, bytes that aren't UTF-8 as `\xff`.
 * Borrowed from the arena. */
struct str terminal_safe(struct arena *arena, struct str text);
/* Prints JSON as json_writer gives it: what steers a terminal stands there escaped, which says the
 * same. In YAML's strings an escape may be longer. */
void terminal_print_json(FILE *out, struct str json, bool is_yaml);
/* Columns of the terminal behind `file`; 0: it isn't one, and nothing is wrapped or coloured. */
int terminal_columns(FILE *file);
/* How many columns the text takes (one each; text is safe already). */
int terminal_width(struct str text);
/* Prints words, wrapped at `columns` (0: not at all), lines after the first indented by `indent`.
 * `used` columns of the first line are taken. Returns the columns taken of the last line. */
int terminal_wrap(FILE *out, struct str text, int used, int indent, int columns);

/* Whether bold and the like may be used: a terminal, and NO_COLOR isn't set, TERM isn't dumb. */
bool terminal_has_color(FILE *file);

/* The JSON text (compact, as json_writer gives it) as YAML: block style, in the same order. */
void terminal_print_yaml(FILE *out, struct str json);
