/* mutant.h - is this the change that is tried? Every changed place of a copy of the core asks. */
#pragma once

#include <stdbool.h>

/* 0: none is; -1: it is only noted who asks. From the environment, TALLYMAN_MUTANT. */
extern int mutant_now;

/* Notes that it was asked, in the file TALLYMAN_MUTANT_FILE; false. */
bool mutant_note(int number);

static inline bool mutant_is(int number)
{
    return mutant_now == number || (mutant_now < 0 && mutant_note(number));
}
