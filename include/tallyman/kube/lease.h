/* lease.h - one of several replicas leads, by a Lease of coordination.k8s.io/v1.
 *
 * The rules and times are client-go's, so that operators know them: the lease lasts 15 s, the
 * leader renews it every 2 s and stops when it couldn't for 10 s; whoever follows takes it once
 * the record hasn't changed for 15 s on his own clock (never by the times written in it, which are
 * another machine's), or at once when the leader has given it back. Two that take it at the same
 * moment are told apart by resourceVersion.
 *
 * Clock: monotonic. It goes on while the process is stopped, so that a leader that slept past its
 * lease finds out by kube_lease_is_held() before it writes anything. */
#pragma once

#include <uv.h>

#include "tallyman/kube/client.h"

struct kube_lease;

struct kube_lease_handler {
    void (*on_leading)(void *ctx);
    /* Another replica leads; told when it changes. `holder` is borrowed for the call. */
    void (*on_following)(void *ctx, struct str holder);
    /* It was ours, and isn't any more, or couldn't be renewed in time: stop writing at once.
     * Nothing comes after it. */
    void (*on_lost)(void *ctx, struct str why);
    /* The Lease can't be read or written now; it is tried again. */
    void (*on_trouble)(void *ctx, struct str why);
    void *ctx;
};

struct kube_lease_options {
    uv_loop_t *loop;            /* borrowed until on_closed */
    struct kube_client *client; /* borrowed until on_closed */
    struct str namespace_name;  /* copied */
    struct str name;            /* copied */
    struct str identity;        /* of this replica, unique; copied */
    uint64_t seed;              /* for jitter; draw it with uv_random() */
    struct kube_lease_handler handler;
    int64_t lease_ms; /* 0: KUBE_LEASE_MS; the other times are in proportion to it */
};

/* Owned; kube_lease_close(). Begins at once; callbacks come later, on the loop. */
struct kube_lease *kube_lease_open(const struct kube_lease_options *options);
/* Ours, and renewed recently enough that nobody else can have it. */
bool kube_lease_is_held(const struct kube_lease *lease);
/* Gives the lease back if it is ours, so that another replica may go on at once, and frees it.
 * on_closed is called later; if the server doesn't answer, after KUBE_LEASE_RELEASE_MS. */
void kube_lease_close(struct kube_lease *lease, void (*on_closed)(void *ctx), void *ctx);
