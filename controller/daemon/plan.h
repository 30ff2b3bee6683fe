/* plan.h - the ways in which a plan is printed. */
#pragma once

#include "source.h"

enum print_format { PRINT_TABLE = 1, PRINT_JSON, PRINT_YAML };

void plan_print(const struct source *source, struct arena *arena, struct decided_list *list,
                enum print_format format);
/* "table", "json" and "yaml"; "text" is the table of commands that print none. */
bool print_format_parse(const char *text, enum print_format *ret_format);
