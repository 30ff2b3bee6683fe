/* replay_source.c - a journal's lines, of a file or of a store that a controller may be writing. */
#define _GNU_SOURCE
#include "replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

static struct rc open_store(struct replay_source *source, struct err *err)
{
    struct store_options options = {.dir = str_from_c(source->path), .is_read_only = true};
    return store_open(NULL, &options, &source->store, err);
}

struct rc replay_source_open(struct replay_source *source, const char *path, struct err *err)
{
    *source = (struct replay_source){.path = path, .next_number = 1};
    arena_init(&source->portion);
    struct stat info;
    if (stat(path, &info) != 0) {
        return err_set(err, RC_IO, "%s can't be opened: %s", path, strerror(errno));
    }
    if (S_ISDIR(info.st_mode)) {
        return open_store(source, err);
    }
    source->file = fopen(path, "re");
    if (source->file == NULL) {
        return err_set(err, RC_IO, "%s can't be opened: %s", path, strerror(errno));
    }
    return RC_SUCCESS;
}

static struct rc next_of_file(struct replay_source *source, struct replay_line *ret_line,
                              struct err *err)
{
    ssize_t length = getline(&source->line, &source->line_bytes, source->file);
    if (length < 0) {
        return ferror(source->file)
                   ? err_set(err, RC_IO, "%s can't be read: %s", source->path, strerror(errno))
                   : err_set(err, RC_NOT_FOUND, "the end");
    }
    while (length > 0 && source->line[length - 1] == '\n') {
        length--;
    }
    *ret_line = (struct replay_line){source->next_number++, {source->line, (size_t)length}};
    return RC_SUCCESS;
}

/* A portion at a time: a reader that stays would keep the controller's file from being tidied. */
static bool take_record(void *ctx, uint64_t seq, const struct store_record *record)
{
    struct replay_source *source = ctx;
    source->ready = arena_grow(&source->portion, source->ready, source->ready_count,
                               &source->ready_capacity, sizeof(*source->ready));
    source->ready[source->ready_count++] =
        (struct replay_line){seq, arena_copy_str(&source->portion, record->bytes)};
    source->ready_bytes += record->bytes.len;
    return source->ready_bytes < REPLAY_PORTION_BYTES;
}

static struct rc next_of_store(struct replay_source *source, struct replay_line *ret_line,
                               struct err *err)
{
    if (source->ready_next == source->ready_count) {
        arena_reset(&source->portion);
        source->ready = NULL;
        source->ready_count = source->ready_next = source->ready_capacity = 0;
        source->ready_bytes = 0;
        TRY(store_read_journal(source->store, source->next_number, take_record, source, err));
    }
    if (source->ready_count == 0) {
        return err_set(err, RC_NOT_FOUND, "the end");
    }
    *ret_line = source->ready[source->ready_next++];
    source->next_number = ret_line->number + 1;
    return RC_SUCCESS;
}

struct rc replay_source_next(struct replay_source *source, struct replay_line *ret_line,
                             struct err *err)
{
    return source->file != NULL ? next_of_file(source, ret_line, err)
                                : next_of_store(source, ret_line, err);
}

void replay_source_close(struct replay_source *source)
{
    if (source->file != NULL) {
        fclose(source->file);
    }
    free(source->line); /* getline's */
    store_close(source->store, NULL, NULL);
    arena_deinit(&source->portion);
}
