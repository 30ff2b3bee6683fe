/* informer.h - a kind's objects, first all of them and then every change, for ever.
 *
 * The driver opens one informer per kind of kinds.h (kube_client_open() first,
 * kube_informer_close() for each before kube_client_close()). The life of one:
 *
 *     on_sync_start, on_object(ADDED)…, on_synced, on_object(ADDED | MODIFIED | DELETED)…
 *
 * and again from on_sync_start whenever the thread was lost (410, a broken connection, a silent
 * one, a resourceVersion that went backwards). In a later sync an object that is known already
 * comes as MODIFIED even if nothing changed (after a restore of etcd the same resourceVersion need
 * not be the same content), and what vanished meanwhile comes as DELETED, in order of namespace and
 * name, just before on_synced. No decision should be taken before the first on_synced or on_absent
 * of every kind; later syncs need no such pause, what is known stays good until it is replaced.
 *
 * - WatchList where the server has it, else a paged list and a watch. A stream that ends at its own
 *   deadline is resumed at its last resourceVersion; after any other end everything is listed
 * afresh. Nothing is ever resumed from a stored resourceVersion.
 * - An object that was deleted and created anew under its name comes as DELETED (old uid) and
 * ADDED.
 * - A kind that the server doesn't serve: on_absent, then looked for again every
 *   KUBE_ABSENT_RETRY_MS … KUBE_ABSENT_RETRY_MAX_MS. A kind that stops being served for
 *   absent_grace_ms has all its objects reported as DELETED and then on_absent.
 * - Failures are reported by on_trouble and tried again after a growing pause, for ever.
 *
 * All callbacks come from the loop, none from inside kube_informer_open() or _close(). */
#pragma once

#include "tallyman/api/codec.h"
#include "tallyman/kube/client.h"

struct kube_informer;

/* Any callback but on_object may be NULL. What they are given is borrowed for the call. */
struct kube_informer_handler {
    void (*on_sync_start)(void *ctx, enum object_kind kind);
    /* `type` is WATCH_ADDED, WATCH_MODIFIED or WATCH_DELETED. `is_bare`: a deletion that was
     * inferred; of the object only name, namespace, uid and resourceVersion (the last one seen) are
     * there. */
    void (*on_object)(void *ctx, enum watch_event_type type, const struct object *object,
                      bool is_bare);
    void (*on_synced)(void *ctx, enum object_kind kind);
    void (*on_absent)(void *ctx, enum object_kind kind);
    /* An object that couldn't be decoded; whatever was known of it before still stands. */
    void (*on_malformed)(void *ctx, enum object_kind kind, const struct object_meta *meta,
                         const struct err *why);
    /* One sentence for the log; the next try is in `wait_ms`. */
    void (*on_trouble)(void *ctx, enum object_kind kind, struct str message, int64_t wait_ms);
    void *ctx; /* borrowed until on_closed */
};

struct kube_informer_options {
    struct kube_client *client; /* borrowed until on_closed */
    enum object_kind kind;
    struct kube_informer_handler handler;
    struct str
        label_selector; /* copied; absent: everything. Objects that leave it come as DELETED */
    struct str namespace_name; /* copied; absent: all */

    /* 0: the default of limits.h. For tests, mostly. */
    int64_t idle_timeout_ms;    /* no byte for that long: the stream is dead */
    int64_t initial_timeout_ms; /* the same before the initial objects are complete */
    int64_t watch_ms;           /* how long a stream may last (timeoutSeconds), half of it random */
    int64_t retry_base_ms;
    int64_t retry_max_ms;
    int64_t absent_retry_ms;
    int64_t absent_grace_ms;
    uint32_t page_items;
};

/* Never fails; owned, give it back with kube_informer_close(). */
struct kube_informer *kube_informer_open(const struct kube_informer_options *options);
/* No handler is called any more; on_closed (may be NULL) comes when all of it is freed. */
void kube_informer_close(struct kube_informer *informer, void (*on_closed)(void *ctx), void *ctx);

/* The objects are complete (the last on_synced still stands). */
bool kube_informer_is_synced(const struct kube_informer *informer);
bool kube_informer_is_absent(const struct kube_informer *informer);
