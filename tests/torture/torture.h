/* torture.h - calls of the C library that fail once, on demand.
 *
 * A program that links torture.c has malloc(), open(), write() and the like of its own, which count
 * themselves and pass on to the C library's; all that it links (LMDB, libuv, libcurl, TLS) calls
 * them too. The counts are shared with the processes that it forks, so a call fails in one of them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* X(name, the error that it fails with). "Short" calls do a part of what they were asked to. */
#define TORTURE_KINDS(X)                                                                           \
    X(alloc, ENOMEM)                                                                               \
    X(open, EMFILE)                                                                                \
    X(read, EIO)                                                                                   \
    X(write, ENOSPC)                                                                               \
    X(write_short, 0)                                                                              \
    X(wakeup, EINTR)                                                                               \
    X(pread, EIO)                                                                                  \
    X(pwrite, ENOSPC)                                                                              \
    X(pwrite_short, 0)                                                                             \
    X(sync, EIO)                                                                                   \
    X(mmap, ENOMEM)                                                                                \
    X(ftruncate, ENOSPC)                                                                           \
    X(fcntl, ENOLCK)                                                                               \
    X(flock, ENOLCK)                                                                               \
    X(stat, EIO)                                                                                   \
    X(mkdir, EACCES)                                                                               \
    X(rename, EACCES)                                                                              \
    X(unlink, EACCES)                                                                              \
    X(opendir, EMFILE)                                                                             \
    X(fork, EAGAIN)                                                                                \
    X(pipe, EMFILE)                                                                                \
    X(waitpid, EINTR)                                                                              \
    X(getrandom, ENOSYS)                                                                           \
    X(socket, EMFILE)                                                                              \
    X(connect, ECONNREFUSED)                                                                       \
    X(sockopt, ENOBUFS)                                                                            \
    X(sockname, ENOBUFS)                                                                           \
    X(send, EPIPE)                                                                                 \
    X(send_short, 0)                                                                               \
    X(recv, ECONNRESET)                                                                            \
    X(recv_short, 0)                                                                               \
    X(poll, EINTR)                                                                                 \
    X(epoll_create, EMFILE)                                                                        \
    X(epoll_ctl, ENOSPC)                                                                           \
    X(epoll_wait, EINTR)                                                                           \
    X(eventfd, EMFILE)                                                                             \
    X(getaddrinfo, 0)                                                                              \
    X(thread, EAGAIN)

enum torture_kind {
#define TORTURE_KIND(name, error) TORTURE_##name,
    TORTURE_KINDS(TORTURE_KIND)
#undef TORTURE_KIND
        TORTURE_KIND_COUNT
};

const char *torture_kind_name(enum torture_kind kind); /* static */

/* From now on the nth call of the kind fails, counted from 1; 0: none does. All counts begin anew.
 */
void torture_arm(enum torture_kind kind, uint64_t nth);
/* Nothing is counted any more, and nothing fails. */
void torture_disarm(void);
/* Calls since torture_arm(). */
uint64_t torture_calls(enum torture_kind kind);
/* Did one fail? */
bool torture_has_failed(void);
