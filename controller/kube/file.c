#include "file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FILE_STEP_BYTES 4096

static struct rc kube_file_read_stream(struct arena *arena, FILE *file, struct str path,
                                       size_t max_bytes, struct str *ret_bytes, struct err *err)
{
    char *bytes = NULL;
    size_t len = 0;
    size_t capacity = 0;
    while (!feof(file)) {
        if (capacity - len < FILE_STEP_BYTES) {
            capacity = capacity * 2 + 2 * FILE_STEP_BYTES;
            char *grown = arena_alloc(arena, capacity);
            if (len > 0) {
                memcpy(grown, bytes, len);
            }
            bytes = grown;
        }
        len += fread(bytes + len, 1, capacity - len - 1, file);
        if (ferror(file)) {
            return err_set(err, RC_IO, STR_FMT ": %s", STR_ARG(path), strerror(errno));
        }
        if (len > max_bytes) {
            return err_set(err, RC_LIMIT, STR_FMT ": larger than %zu bytes", STR_ARG(path),
                           max_bytes);
        }
    }
    bytes[len] = '\0';
    *ret_bytes = (struct str){bytes, len};
    return RC_SUCCESS;
}

struct rc kube_file_read(struct arena *arena, struct str path, size_t max_bytes,
                         struct str *ret_bytes, struct err *err)
{
    struct str name = arena_copy_str(arena, path);
    FILE *file = fopen(name.ptr, "re");
    if (file == NULL) {
        return err_set(err, errno == ENOENT ? RC_NOT_FOUND : RC_IO, STR_FMT ": %s", STR_ARG(path),
                       strerror(errno));
    }
    struct rc rc = kube_file_read_stream(arena, file, path, max_bytes, ret_bytes, err);
    fclose(file);
    return rc;
}
