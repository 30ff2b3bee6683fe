#define _GNU_SOURCE /* strerrordesc_np */
#include "store_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tallyman/base/limits.h"

#define DATA_FILE      "data.mdb"
#define BAD_FILE       DATA_FILE ".bad-%lld"
#define LMDB_LOCK_FILE "lock.mdb"
#define LOCK_FILE      "lock"

const char *store_errno_text(int error)
{
    /* Not uv_strerror(), which allocates for what it doesn't know. */
    const char *text = strerrordesc_np(error);

    return text == NULL ? "unknown error" : text;
}

bool store_path(char buffer[STORE_PATH_BYTES], const char *dir, const char *name)
{
    int length = snprintf(buffer, STORE_PATH_BYTES, "%s/%s", dir, name);

    return length > 0 && length < STORE_PATH_BYTES;
}

static struct rc make_dir(const char *dir, struct err *err)
{
    struct stat info;

    if (mkdir(dir, 0700) == 0) {
        return RC_SUCCESS;
    }
    if (errno == ENOENT) {
        return err_set(err, RC_IO,
                       "the store's directory %s can't be made: its parent directory doesn't exist",
                       dir);
    }
    /* Asked before the error is told: mkdir() on a read-only file system says EROFS, not EEXIST. */
    int error = errno;

    if (stat(dir, &info) != 0) {
        return err_set(err, RC_IO, "the store's directory %s can't be made: %s", dir,
                       store_errno_text(error));
    }
    if (!S_ISDIR(info.st_mode)) {
        return err_set(err, RC_IO, "the store's directory %s is not a directory", dir);
    }
    return RC_SUCCESS;
}

/* Who holds the lock, as far as its file says; 0: unknown. */
static int64_t lock_owner(int fd)
{
    char text[32];
    int64_t pid = 0;
    ssize_t got = pread(fd, text, sizeof(text), 0);
    struct str line = {text, got > 0 ? (size_t)got : 0};

    return str_to_i64(str_take(line, str_find_char(line, '\n')), &pid) ? pid : 0;
}

static struct rc lock_refused(int fd, int error, const char *dir, struct err *err)
{
    int64_t pid = lock_owner(fd);

    if (error != EWOULDBLOCK) {
        return err_set(err, RC_IO, "the store's lock file %s/" LOCK_FILE " can't be locked: %s",
                       dir, store_errno_text(error));
    }
    if (pid > 0) {
        return err_set(
            err, RC_CONFLICT,
            "the store's directory %s is in use by another Tallyman (process %lld): stop "
            "it, or use another directory",
            dir, (long long)pid);
    }
    return err_set(err, RC_CONFLICT,
                   "the store's directory %s is in use by another Tallyman: stop it, or use "
                   "another directory",
                   dir);
}

struct rc store_dir_take(const char *dir, int *ret_fd, struct err *err)
{
    char path[STORE_PATH_BYTES];

    if (strlen(dir) == 0 || !store_path(path, dir, DATA_FILE ".bad-9999999999")) {
        return err_set(err, RC_IO, "the store's directory has no name, or one that is too long");
    }
    TRY(make_dir(dir, err));
    (void)store_path(path, dir, LOCK_FILE);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        return err_set(err, RC_IO, "the store's directory %s can't be written: " LOCK_FILE ": %s",
                       dir, store_errno_text(errno));
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        struct rc rc = lock_refused(fd, errno, dir, err);

        (void)close(fd);
        return rc;
    }
    /* The number is for people alone; the lock is what counts. */
    if (ftruncate(fd, 0) != 0 || dprintf(fd, "%ld\n", (long)getpid()) < 0) {
        (void)lseek(fd, 0, SEEK_SET);
    }
    *ret_fd = fd;
    return RC_SUCCESS;
}

struct rc store_file_exists(const char *dir, bool *ret_exists, struct err *err)
{
    char path[STORE_PATH_BYTES];
    struct stat info;

    if (!store_path(path, dir, DATA_FILE)) {
        return err_set(err, RC_IO, "the store's directory has a name that is too long");
    }
    if (stat(path, &info) != 0) {
        if (errno != ENOENT) {
            return err_set(err, RC_IO, "the store's file %s can't be reached: %s", path,
                           store_errno_text(errno));
        }
        *ret_exists = false;
        return RC_SUCCESS;
    }
    if (!S_ISREG(info.st_mode)) {
        return err_set(err, RC_IO, "the store's file %s isn't a regular file", path);
    }
    if (access(path, R_OK) != 0) {
        return err_set(err, RC_IO, "the store's file %s can't be read: %s", path,
                       store_errno_text(errno));
    }
    *ret_exists = info.st_size > 0;
    return RC_SUCCESS;
}

static bool bad_path(char buffer[STORE_PATH_BYTES], const char *dir, int64_t number)
{
    char name[STORE_NAME_BYTES];

    (void)snprintf(name, sizeof(name), BAD_FILE, (long long)number);
    return store_path(buffer, dir, name);
}

/* The number of a file that was set aside; 0: it isn't one. */
static int64_t bad_number(const char *name)
{
    struct str text = str_from_c(name);
    const struct str prefix = STR(DATA_FILE ".bad-");
    int64_t number = 0;

    if (!str_starts_with(text, prefix) || text.len > prefix.len + 9 ||
        !str_to_i64(str_skip(text, prefix.len), &number)) {
        return 0;
    }
    return number;
}

static int is_bad_file(const struct dirent *entry)
{
    return bad_number(entry->d_name) > 0;
}

/* One more than the largest number in the directory. */
static int64_t next_bad_number(const char *dir)
{
    struct dirent **entries = NULL;
    int count = scandir(dir, &entries, is_bad_file, NULL);
    int64_t largest = 0;

    for (int i = 0; i < count; i++) {
        int64_t number = bad_number(entries[i]->d_name);

        largest = number > largest ? number : largest;
        free(entries[i]);
    }
    free(entries);
    return largest + 1;
}

struct rc store_file_set_aside(const char *dir, char ret_name[STORE_NAME_BYTES], struct err *err)
{
    char from[STORE_PATH_BYTES];
    char to[STORE_PATH_BYTES];
    char old[STORE_PATH_BYTES];
    int64_t number = next_bad_number(dir);

    if (!store_path(from, dir, DATA_FILE) || !bad_path(to, dir, number)) {
        return err_set(err, RC_IO, "the store's directory has a name that is too long");
    }
    if (rename(from, to) != 0) {
        return err_set(err, RC_IO, "the store's file %s can't be renamed to %s: %s", from, to,
                       store_errno_text(errno));
    }
    if (number > STORE_BAD_FILES_MAX && bad_path(old, dir, number - STORE_BAD_FILES_MAX)) {
        (void)unlink(old);
    }
    /* LMDB's table of readers belonged to the old file. */
    if (store_path(old, dir, LMDB_LOCK_FILE)) {
        (void)unlink(old);
    }
    (void)snprintf(ret_name, STORE_NAME_BYTES, BAD_FILE, (long long)number);
    return store_dir_sync(dir, err);
}

struct rc store_dir_sync(const char *dir, struct err *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = 0;

    if (fd < 0 || fsync(fd) != 0) {
        error = errno;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    /* Some file systems know no fsync of a directory. */
    if (error != 0 && error != EINVAL) {
        return err_set(err, RC_IO, "the store's directory %s can't be flushed: %s", dir,
                       store_errno_text(error));
    }
    return RC_SUCCESS;
}
