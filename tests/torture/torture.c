#define _GNU_SOURCE
#include "torture.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The sanitizer's allocator where there is one, else the C library's: never looked up by dlsym(),
 * which may allocate itself. */
void *__interceptor_malloc(size_t bytes) __attribute__((weak));
void *__interceptor_calloc(size_t count, size_t bytes) __attribute__((weak));
void *__interceptor_realloc(void *old, size_t bytes) __attribute__((weak));
int __interceptor_posix_memalign(void **ret, size_t align, size_t bytes) __attribute__((weak));
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

struct torture {
    atomic_bool is_armed;
    atomic_bool has_failed;
    enum torture_kind kind;
    uint64_t nth;
    atomic_ulong calls[TORTURE_KIND_COUNT];
};

/* NULL until the first torture_arm(): the loader allocates before there is a main(). */
static struct torture *torture;

/* A thread's own setting up is the C library's and the sanitizer's business. */
static _Thread_local bool is_started;

static const char *const names[TORTURE_KIND_COUNT] = {
#define TORTURE_KIND(name, error) #name,
    TORTURE_KINDS(TORTURE_KIND)
#undef TORTURE_KIND
};

static const int errors[TORTURE_KIND_COUNT] = {
#define TORTURE_KIND(name, error) error,
    TORTURE_KINDS(TORTURE_KIND)
#undef TORTURE_KIND
};

const char *torture_kind_name(enum torture_kind kind)
{
    return names[kind];
}

void torture_arm(enum torture_kind kind, uint64_t nth)
{
    if (torture == NULL) {
        /* By number: mmap() is one of those that are counted. */
        torture = (void *)syscall(SYS_mmap, NULL, sizeof(*torture), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0L);
        if (torture == MAP_FAILED) {
            abort();
        }
    }
    for (int i = 0; i < TORTURE_KIND_COUNT; i++) {
        atomic_store(&torture->calls[i], 0);
    }
    torture->kind = kind;
    torture->nth = nth;
    atomic_store(&torture->has_failed, false);
    is_started = true;
    atomic_store(&torture->is_armed, true);
}

void torture_disarm(void)
{
    if (torture != NULL) {
        atomic_store(&torture->is_armed, false);
    }
}

uint64_t torture_calls(enum torture_kind kind)
{
    return torture == NULL ? 0 : atomic_load(&torture->calls[kind]);
}

bool torture_has_failed(void)
{
    return torture != NULL && atomic_load(&torture->has_failed);
}

static bool is_due(enum torture_kind kind)
{
    if (torture == NULL || !is_started || !atomic_load(&torture->is_armed)) {
        return false;
    }
    uint64_t call = atomic_fetch_add(&torture->calls[kind], 1) + 1;

    if (kind != torture->kind || call != torture->nth) {
        return false;
    }
    atomic_store(&torture->has_failed, true);
    errno = errors[kind];
    return true;
}

/* The next definition of this function. */
#define REAL(name) ((__typeof__(&name))(uintptr_t)real(#name))

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (found == NULL) {
        abort();
    }
    return found;
}

/* --- Memory -----------------------------------------------------------------------------------
 */

static void *plain_malloc(size_t bytes)
{
    return __interceptor_malloc != NULL ? __interceptor_malloc(bytes) : __libc_malloc(bytes);
}

void *malloc(size_t bytes)
{
    return is_due(TORTURE_alloc) ? NULL : plain_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    if (is_due(TORTURE_alloc)) {
        return NULL;
    }
    return __interceptor_calloc != NULL ? __interceptor_calloc(count, bytes)
                                        : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    if (is_due(TORTURE_alloc)) {
        return NULL;
    }
    return __interceptor_realloc != NULL ? __interceptor_realloc(old, bytes)
                                         : __libc_realloc(old, bytes);
}

int posix_memalign(void **ret, size_t align, size_t bytes)
{
    if (is_due(TORTURE_alloc)) {
        return ENOMEM;
    }
    if (__interceptor_posix_memalign != NULL) {
        return __interceptor_posix_memalign(ret, align, bytes);
    }
    *ret = __libc_memalign(align, bytes);
    return *ret == NULL ? ENOMEM : 0;
}

char *strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);

    return copy == NULL ? NULL : memcpy(copy, text, bytes);
}

/* --- What all calls of one form have in common ------------------------------------------------
 */

#define FAILS(kind, result, name, parameters, ...)                                                 \
    result name parameters;                                                                        \
    result name parameters                                                                         \
    {                                                                                              \
        return is_due(TORTURE_##kind) ? (result)-1 : REAL(name)(__VA_ARGS__);                      \
    }

/* `size` bytes are asked for: half of them are done where that is more than none. */
#define FAILS_SHORT(kind, name, size, parameters, ...)                                             \
    ssize_t name parameters;                                                                       \
    ssize_t name parameters                                                                        \
    {                                                                                              \
        if (is_due(TORTURE_##kind)) {                                                              \
            return -1;                                                                             \
        }                                                                                          \
        if (size > 1 && is_due(TORTURE_##kind##_short)) {                                          \
            size /= 2;                                                                             \
        }                                                                                          \
        return REAL(name)(__VA_ARGS__);                                                            \
    }

/* --- Files --------------------------------------------------------------------------------------
 */

#define FAILS_OPEN(name)                                                                           \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;                      \
        va_end(arguments);                                                                         \
        return is_due(TORTURE_open) ? -1 : REAL(name)(path, flags, mode);                          \
    }
FAILS_OPEN(open)
FAILS_OPEN(open64)
FAILS(open, int, __open64_2, (const char *path, int flags), path, flags)

#define FAILS_FCNTL(name)                                                                          \
    int name(int fd, int command, ...)                                                             \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, command);                                                              \
        void *argument = va_arg(arguments, void *);                                                \
        va_end(arguments);                                                                         \
        return is_due(TORTURE_fcntl) ? -1 : REAL(name)(fd, command, argument);                     \
    }
FAILS_FCNTL(fcntl)
FAILS_FCNTL(fcntl64)

/* What wakes a loop (a pipe, an eventfd) is only ever interrupted. */
static bool is_wakeup(int fd)
{
    struct stat info;

    return REAL(fstat)(fd, &info) != 0 || !(S_ISREG(info.st_mode) || S_ISSOCK(info.st_mode));
}

ssize_t read(int fd, void *bytes, size_t count)
{
    if (fd <= STDERR_FILENO) {
        return REAL(read)(fd, bytes, count); /* what the test itself is told and says */
    }
    return is_due(is_wakeup(fd) ? TORTURE_wakeup : TORTURE_read) ? -1
                                                                 : REAL(read)(fd, bytes, count);
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    if (fd <= STDERR_FILENO) {
        return REAL(write)(fd, bytes, count);
    }
    bool is_wake = is_wakeup(fd);

    if (is_due(is_wake ? TORTURE_wakeup : TORTURE_write)) {
        return -1;
    }
    if (!is_wake && count > 1 && is_due(TORTURE_write_short)) {
        count /= 2;
    }
    return REAL(write)(fd, bytes, count);
}

FAILS(write, ssize_t, writev, (int fd, const struct iovec *pieces, int count), fd, pieces, count)
FAILS(pread, ssize_t, pread, (int fd, void *bytes, size_t count, off_t offset), fd, bytes, count,
      offset)
FAILS_SHORT(pwrite, pwrite, count, (int fd, const void *bytes, size_t count, off_t offset), fd,
            bytes, count, offset)
FAILS(sync, int, fsync, (int fd), fd)
FAILS(sync, int, fdatasync, (int fd), fd)
FAILS(sync, int, msync, (void *at, size_t bytes, int flags), at, bytes, flags)
FAILS(ftruncate, int, ftruncate, (int fd, off_t bytes), fd, bytes)
FAILS(flock, int, flock, (int fd, int operation), fd, operation)
FAILS(stat, int, stat, (const char *path, struct stat *ret), path, ret)
FAILS(stat, int, fstat, (int fd, struct stat *ret), fd, ret)
FAILS(stat, int, access, (const char *path, int mode), path, mode)
FAILS(mkdir, int, mkdir, (const char *path, mode_t mode), path, mode)
FAILS(rename, int, rename, (const char *from, const char *to), from, to)
FAILS(unlink, int, unlink, (const char *path), path)

DIR *opendir(const char *path)
{
    return is_due(TORTURE_opendir) ? NULL : REAL(opendir)(path);
}

int scandir(const char *path, struct dirent ***ret, int (*filter)(const struct dirent *),
            int (*compare)(const struct dirent **, const struct dirent **))
{
    return is_due(TORTURE_opendir) ? -1 : REAL(scandir)(path, ret, filter, compare);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return is_due(TORTURE_mmap) ? MAP_FAILED : REAL(mmap)(at, bytes, protection, flags, fd, offset);
}

/* --- Processes, random numbers ------------------------------------------------------------------
 */

FAILS(fork, pid_t, fork, (void), )
FAILS(pipe, int, pipe2, (int fds[2], int flags), fds, flags)
FAILS(waitpid, pid_t, waitpid, (pid_t child, int *ret, int flags), child, ret, flags)
FAILS(getrandom, ssize_t, getrandom, (void *bytes, size_t count, unsigned flags), bytes, count,
      flags)

struct thread {
    void *(*run)(void *);
    void *argument;
};

static void *run_thread(void *ctx)
{
    struct thread thread = *(struct thread *)ctx;

    free(ctx);
    is_started = true;
    return thread.run(thread.argument);
}

int pthread_create(pthread_t *ret, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    if (is_due(TORTURE_thread)) {
        return EAGAIN;
    }
    struct thread *thread = plain_malloc(sizeof(*thread));

    *thread = (struct thread){run, argument};
    bool was_started = is_started;

    is_started = false;
    int error = REAL(pthread_create)(ret, attributes, run_thread, thread);

    is_started = was_started;
    return error;
}

/* Who gave up? */
void abort(void)
{
    Dl_info info = {0};

    (void)dladdr(__builtin_return_address(0), &info);
    dprintf(STDERR_FILENO, "torture: abort() was called by %s\n",
            info.dli_fname == NULL ? "somebody" : info.dli_fname);
    torture_disarm();
    (void)raise(SIGABRT);
    _exit(127);
}

/* --- Sockets and waiting ------------------------------------------------------------------------
 */

FAILS(socket, int, socket, (int domain, int type, int protocol), domain, type, protocol)
FAILS(socket, int, socketpair, (int domain, int type, int protocol, int ret[2]), domain, type,
      protocol, ret)
FAILS(connect, int, connect, (int fd, __CONST_SOCKADDR_ARG to, socklen_t bytes), fd, to, bytes)
FAILS(sockopt, int, setsockopt, (int fd, int level, int name, const void *value, socklen_t bytes),
      fd, level, name, value, bytes)
FAILS(sockopt, int, getsockopt, (int fd, int level, int name, void *value, socklen_t *bytes), fd,
      level, name, value, bytes)
FAILS(sockname, int, getsockname, (int fd, __SOCKADDR_ARG ret, socklen_t *bytes), fd, ret, bytes)
FAILS(sockname, int, getpeername, (int fd, __SOCKADDR_ARG ret, socklen_t *bytes), fd, ret, bytes)
FAILS_SHORT(send, send, count, (int fd, const void *bytes, size_t count, int flags), fd, bytes,
            count, flags)
FAILS_SHORT(recv, recv, count, (int fd, void *bytes, size_t count, int flags), fd, bytes, count,
            flags)
FAILS(poll, int, poll, (struct pollfd * fds, nfds_t count, int wait_ms), fds, count, wait_ms)
FAILS(epoll_create, int, epoll_create1, (int flags), flags)

/* What isn't watched any more can't fail for want of anything. */
int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    return operation != EPOLL_CTL_DEL && is_due(TORTURE_epoll_ctl)
               ? -1
               : REAL(epoll_ctl)(epoll, operation, fd, event);
}

FAILS(epoll_wait, int, epoll_wait, (int epoll, struct epoll_event *ret, int count, int wait_ms),
      epoll, ret, count, wait_ms)
FAILS(epoll_wait, int, epoll_pwait,
      (int epoll, struct epoll_event *ret, int count, int wait_ms, const sigset_t *mask), epoll,
      ret, count, wait_ms, mask)
FAILS(eventfd, int, eventfd, (unsigned count, int flags), count, flags)

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    return is_due(TORTURE_getaddrinfo) ? EAI_AGAIN : REAL(getaddrinfo)(name, service, hints, ret);
}
