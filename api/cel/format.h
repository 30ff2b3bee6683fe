/* format.h - the clauses of string.format(), read once for the checker and once for the values. */
#pragma once

#include "impl.h"

struct cel_clause {
    char verb;       /* 's', 'd', 'f', 'e', 'b', 'x', 'X', 'o'; '%': a plain percent sign */
    int precision;   /* -1: none */
    struct str text; /* what stands before it */
};

enum cel_clause_state { CEL_CLAUSE_FOUND, CEL_CLAUSE_END, CEL_CLAUSE_BAD };

/* Takes the text up to the next clause, and the clause, off *rest. At the end only text is left. */
enum cel_clause_state cel_clause_next(struct str *rest, struct cel_clause *ret_clause);
/* Whether a clause takes a value of that static type; dyn fits all. */
bool cel_clause_takes(char verb, enum cel_type_kind kind);
