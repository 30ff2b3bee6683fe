/* version.c - the version, in one place. */
#include "commands.h"

const char *tallyman_version(void)
{
    return "0.1.0";
}
