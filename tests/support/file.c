#include "support/file.h"

#include <stdio.h>

#include "support/check.h"

#define FILE_MAX_BYTES (64l * 1024 * 1024)

struct str file_read(struct arena *arena, const char *path)
{
    FILE *file = fopen(path, "rb");

    if (file == NULL) {
        fail_msg("%s can't be opened", path);
        return STR_NONE;
    }
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long bytes = ftell(file);

    assert_true(bytes >= 0 && bytes < FILE_MAX_BYTES);
    rewind(file);
    char *text = arena_alloc(arena, (size_t)bytes + 1);

    assert_int_equal(fread(text, 1, (size_t)bytes, file), (size_t)bytes);
    fclose(file);
    return (struct str){text, (size_t)bytes};
}
