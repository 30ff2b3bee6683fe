/* Makes torture_client of wire_client: TORTURE=KIND:N in its environment has the nth call of that
 * kind fail, TORTURE_COUNTS=FILE gets a line "KIND CALLS" for each kind at the end. */
#include "torture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wire_begin(void);

static void write_counts(void)
{
    const char *path = getenv("TORTURE_COUNTS");

    torture_disarm();
    FILE *out = path == NULL ? NULL : fopen(path, "w");

    if (out == NULL) {
        return;
    }
    for (int kind = 0; kind < TORTURE_KIND_COUNT; kind++) {
        (void)fprintf(out, "%s %llu\n", torture_kind_name((enum torture_kind)kind),
                      (unsigned long long)torture_calls((enum torture_kind)kind));
    }
    (void)fclose(out);
}

void wire_begin(void)
{
    const char *wanted = getenv("TORTURE");
    const char *colon = wanted == NULL ? NULL : strchr(wanted, ':');
    enum torture_kind kind = TORTURE_KIND_COUNT;

    for (int i = 0; colon != NULL && i < TORTURE_KIND_COUNT; i++) {
        const char *name = torture_kind_name((enum torture_kind)i);

        if (strlen(name) == (size_t)(colon - wanted) && strncmp(name, wanted, strlen(name)) == 0) {
            kind = (enum torture_kind)i;
        }
    }
    (void)atexit(write_counts);
    torture_arm(kind, colon == NULL ? 0 : strtoull(colon + 1, NULL, 10));
}
