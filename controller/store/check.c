#define _GNU_SOURCE /* pipe2, sigdescr_np */
#include "store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tallyman/base/limits.h"
#include "tallyman/store/pages.h"

/* The child's exit code is its enum rc_code; its sentence comes through the pipe, behind this. A
 * child that dies before it has said so (libuv's own, when a process is forked, for want of files)
 * has seen nothing of the file. */
#define BEGUN '>'

static struct rc check_record(void *ctx, struct str db_name, struct str key, struct str value,
                              struct err *err)
{
    enum store_db db = store_db_find(db_name);
    struct store_record record;

    (void)ctx;
    /* Another program's, or a newer schema's: that is found when the file's identity is read. */
    return db == STORE_DB_COUNT ? RC_SUCCESS : store_record_read(db, key, value, &record, err);
}

/* The bytes themselves, without LMDB. */
static struct rc check_pages(const char *path, struct err *err)
{
    const struct pages_visitor visitor = {.record = check_record};
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &info) != 0) {
        return err_set(err, RC_IO, "it can't be opened: %s", store_errno_text(errno));
    }
    size_t count = (size_t)info.st_size;
    void *bytes = mmap(NULL, count, PROT_READ, MAP_PRIVATE, fd, 0);

    if (bytes == MAP_FAILED) {
        return err_set(err, RC_IO, "it can't be mapped: %s", store_errno_text(errno));
    }
    return pages_check(bytes, count, &visitor, err);
}

/* What the system lacks just now (memory, files, locks) says nothing about the file. LMDB's own
 * codes are negative. */
static enum rc_code code_of(int error)
{
    return error > 0 || error == MDB_READERS_FULL || error == MDB_TLS_FULL ? RC_IO : RC_CORRUPT;
}

static struct rc read_records(MDB_cursor *cursor, const char *name, struct err *err)
{
    MDB_val key = {0};
    MDB_val value = {0};
    int error = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);

    while (error == 0) {
        TRY(check_record(NULL, str_from_c(name), (struct str){key.mv_data, key.mv_size},
                         (struct str){value.mv_data, value.mv_size}, err));
        error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    return error == MDB_NOTFOUND
               ? RC_SUCCESS
               : err_set(err, code_of(error), "database \"%s\": %s", name, mdb_strerror(error));
}

static struct rc read_db(MDB_txn *txn, const char *name, struct err *err)
{
    MDB_dbi dbi = 0;
    MDB_cursor *cursor = NULL;
    int error = mdb_dbi_open(txn, name, 0, &dbi);

    if (error == MDB_NOTFOUND || error == MDB_INCOMPATIBLE) {
        return RC_SUCCESS; /* found when the file's identity is read */
    }
    if (error == 0) {
        error = mdb_cursor_open(txn, dbi, &cursor);
    }
    if (error != 0) {
        return err_set(err, code_of(error), "database \"%s\": %s", name, mdb_strerror(error));
    }
    struct rc rc = read_records(cursor, name, err);

    mdb_cursor_close(cursor);
    return rc;
}

static void on_lmdb_assertion(MDB_env *env, const char *message)
{
    (void)env;
    (void)message; /* LMDB aborts when this returns, and the parent says what died */
    (void)signal(SIGABRT, SIG_DFL);
}

/* The same records as LMDB sees them. */
static struct rc check_records(const char *dir, bool is_read_only, struct err *err)
{
    MDB_env *env = NULL;
    MDB_txn *txn = NULL;
    /* Without the store's lock there may be a writer, against whom only LMDB's lock file helps. */
    unsigned flags = MDB_RDONLY | MDB_NOTLS | (is_read_only ? 0u : MDB_NOLOCK);
    int error = mdb_env_create(&env);

    if (error == 0) {
        error = mdb_env_set_assert(env, on_lmdb_assertion);
    }
    if (error == 0) {
        error = mdb_env_set_maxdbs(env, STORE_DB_COUNT);
    }
    if (error == 0) {
        error = mdb_env_open(env, dir, flags, 0600);
    }
    if (error == 0) {
        error = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);
    }
    if (error != 0) {
        return err_set(err, code_of(error), "LMDB can't open it: %s", mdb_strerror(error));
    }
    struct rc rc = RC_SUCCESS;

    for (int db = 0; db < STORE_DB_COUNT && !rc_failed(rc); db++) {
        rc = read_db(txn, store_db_name((enum store_db)db), err);
    }
    mdb_txn_abort(txn); /* gives the reader's slot back */
    mdb_env_close(env);
    return rc;
}

static NORETURN void child_main(const char *dir, bool is_read_only, int fd, pid_t parent)
{
    const struct rlimit no_core = {0, 0};
    const struct rlimit cpu = {STORE_CHECK_CPU_S, STORE_CHECK_CPU_S};
    char path[STORE_PATH_BYTES];
    struct err err = {{0}};
    struct rc rc = RC_SUCCESS;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(RC_IO);
    }
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)setrlimit(RLIMIT_CPU, &cpu);
    (void)signal(SIGBUS, SIG_DFL);
    (void)signal(SIGSEGV, SIG_DFL);
    (void)signal(SIGABRT, SIG_DFL);
    const char begun = BEGUN;

    if (write(fd, &begun, 1) != 1) {
        _exit(RC_IO);
    }
    (void)store_path(path, dir, "data.mdb");
    if (!is_read_only) {
        rc = check_pages(path, &err);
    }
    if (!rc_failed(rc)) {
        rc = check_records(dir, is_read_only, &err);
    }
    if (rc_failed(rc) && write(fd, err.text, strlen(err.text)) < 0) {
        _exit(RC_IO);
    }
    /* Not exit(): what the parent has registered or buffered isn't the child's to run. */
    _exit((int)rc.code);
}

/* Until the child has closed its end, cut at what an err holds. */
static void read_sentence(int fd, char text[ERR_TEXT_MAX_BYTES])
{
    size_t length = 0;
    ssize_t got = 1;

    while (length < ERR_TEXT_MAX_BYTES - 1 && got != 0) {
        got = read(fd, text + length, ERR_TEXT_MAX_BYTES - 1 - length);
        if (got > 0) {
            length += (size_t)got;
        } else if (got < 0 && errno != EINTR) {
            break;
        }
    }
    text[length] = '\0';
}

/* A kill from outside (out of memory, a shutdown) says nothing about the file. */
static bool is_files_fault(int number)
{
    return number == SIGBUS || number == SIGSEGV || number == SIGABRT || number == SIGILL ||
           number == SIGFPE || number == SIGXCPU;
}

static const char *signal_text(int number)
{
    const char *text = sigdescr_np(number);

    return text == NULL ? "unknown signal" : text;
}

static struct rc child_verdict(int status, const char *text, struct err *err)
{
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);

        return err_set(err, is_files_fault(number) && text[0] == BEGUN ? RC_CORRUPT : RC_IO,
                       "the process that read it died: %s", signal_text(number));
    }
    int code = WEXITSTATUS(status);

    if (code == RC_OK) {
        return RC_SUCCESS;
    }
    /* A sanitizer's or valgrind's own exit code isn't one of ours. */
    if (code != RC_IO && code != RC_CORRUPT) {
        return err_set(err, RC_CORRUPT, "the process that read it ended with code %d", code);
    }
    return err_set(err, (enum rc_code)code, "%s", text[0] == BEGUN ? text + 1 : "it can't be read");
}

struct rc store_check_file(const char *dir, bool is_read_only, struct err *err)
{
    char text[ERR_TEXT_MAX_BYTES];
    int fds[2];
    int status = 0;
    pid_t parent = getpid();

    if (pipe2(fds, O_CLOEXEC) != 0) {
        return err_set(err, RC_IO, "it can't be checked: pipe: %s", store_errno_text(errno));
    }
    (void)fflush(NULL);
    pid_t child = fork();

    if (child == 0) {
        child_main(dir, is_read_only, fds[1], parent);
    }
    (void)close(fds[1]);
    if (child < 0) {
        struct rc rc =
            err_set(err, RC_IO, "it can't be checked: fork: %s", store_errno_text(errno));

        (void)close(fds[0]);
        return rc;
    }
    read_sentence(fds[0], text);
    (void)close(fds[0]);
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return err_set(err, RC_IO, "it can't be checked: wait: %s", store_errno_text(errno));
        }
    }
    return child_verdict(status, text, err);
}
