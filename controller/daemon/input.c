/* input.c - files and directories of manifests. */
#define _GNU_SOURCE
#include "input.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

struct reader {
    struct arena *arena;
    struct manifest_list *list;
};

/* As the API server labels every namespace with its name. */
static void label_namespace(struct arena *arena, struct object_meta *meta)
{
    struct str key = STR("kubernetes.io/metadata.name");
    struct string_map labels = {.count = 0};
    labels.items = ARENA_ARRAY(arena, struct string_pair, meta->labels.count + 1);
    for (uint32_t i = 0; i < meta->labels.count; i++) {
        if (!str_eq(meta->labels.items[i].key, key)) {
            labels.items[labels.count++] = meta->labels.items[i];
        }
    }
    labels.items[labels.count++] = (struct string_pair){key, meta->name};
    meta->labels = labels;
}

static struct rc keep(void *ctx, const struct manifest *manifest, struct err *err)
{
    TRY(input_check(manifest, err));
    struct reader *reader = ctx;
    struct manifest_list *list = reader->list;
    if (manifest->object.kind == KIND_NAMESPACE) {
        label_namespace(reader->arena, (void *)(uintptr_t)manifest->object.value);
    }
    list->items = arena_grow(reader->arena, list->items, list->count, &list->capacity,
                             sizeof(struct manifest));
    list->items[list->count++] = *manifest;
    return RC_SUCCESS;
}

static struct rc read_whole(FILE *file, const char *path, struct str *ret_text, struct err *err)
{
    char *bytes = NULL;
    size_t length = 0;
    size_t capacity = 0;
    for (;;) {
        if (length == capacity) {
            capacity = capacity == 0 ? 65536 : capacity * 2;
            bytes = mem_realloc(bytes, capacity);
        }
        size_t got = fread(bytes + length, 1, capacity - length, file);
        if (got == 0) {
            break;
        }
        length += got;
        if (length > MANIFEST_FILE_MAX_BYTES) {
            mem_free(bytes);
            return err_set(err, RC_LIMIT, "%s: larger than %u bytes", path,
                           MANIFEST_FILE_MAX_BYTES);
        }
    }
    if (ferror(file)) {
        mem_free(bytes);
        return err_set(err, RC_IO, "%s: can't be read: %s", path, strerror(errno));
    }
    *ret_text = (struct str){bytes, length};
    return RC_SUCCESS;
}

/* Owned by the caller. */
static struct rc open_and_read(const char *path, struct str *ret_text, struct err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    if (file == NULL) {
        return err_set(err, RC_INVALID, "%s: can't be opened: %s", path, strerror(errno));
    }
    struct rc rc = read_whole(file, path, ret_text, err);
    if (!is_stdin) {
        fclose(file);
    }
    return rc;
}

struct rc input_read_text(struct arena *arena, const char *path, struct str *ret_text,
                          struct err *err)
{
    struct str text;
    TRY(open_and_read(path, &text, err));
    *ret_text = arena_copy_str(arena, text);
    mem_free((void *)(uintptr_t)text.ptr);
    return RC_SUCCESS;
}

static struct rc read_file(struct reader *reader, const char *path, struct err *err)
{
    struct str text;
    TRY(open_and_read(path, &text, err));
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    struct rc rc = manifests_read(reader->arena, str_from_c(name), text, keep, reader, err);
    mem_free((void *)(uintptr_t)text.ptr);
    return rc;
}

static int is_manifest(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot != NULL && entry->d_name[0] != '.' &&
           (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 || strcmp(dot, ".json") == 0);
}

static struct rc read_directory(struct reader *reader, const char *path, struct err *err)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_manifest, alphasort);
    if (count < 0) {
        return err_set(err, RC_IO, "%s: can't be read: %s", path, strerror(errno));
    }
    struct rc rc = RC_SUCCESS;
    if (count == 0) {
        rc = err_set(err, RC_INVALID, "%s: there is no .yaml, .yml or .json file in it", path);
    }
    for (int i = 0; i < count; i++) {
        if (!rc_failed(rc)) {
            struct str file = arena_format(reader->arena, "%s/%s", path, entries[i]->d_name);
            rc = read_file(reader, file.ptr, err);
        }
        free(entries[i]);
    }
    free(entries);
    return rc;
}

struct rc input_read(struct arena *arena, const char *path, struct manifest_list *list,
                     struct err *err)
{
    struct reader reader = {.arena = arena, .list = list};
    struct stat status;
    if (strcmp(path, "-") != 0 && stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        TRY(read_directory(&reader, path, err));
    } else {
        TRY(read_file(&reader, path, err));
    }
    return input_check_once(arena, list, err);
}
