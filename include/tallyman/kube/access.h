/* access.h - who sends this bearer token, and may they read that path? Asked of the API server.
 *
 * A TokenReview tells the user, a SubjectAccessReview whether that user may `get` the path as a
 * non-resource URL, as kube-apiserver's own /metrics is guarded. Answers are remembered for
 * ACCESS_ALLOWED_MS or ACCESS_DENIED_MS (the times of the API server's own webhook authorizer's
 * order of magnitude, so that a right that is taken away ends within a minute), at most
 * ACCESS_CACHE_MAX of them. A failure to ask isn't remembered.
 *
 * All that a review says about the user (uid, groups, extra) is handed on unread, so that an
 * authorizer that looks at scopes sees them. */
#pragma once

#include "tallyman/kube/client.h"

struct kube_access;

enum kube_access_verdict {
    KUBE_ACCESS_ALLOWED = 1,
    KUBE_ACCESS_UNKNOWN_USER, /* the token is nobody's: 401 */
    KUBE_ACCESS_FORBIDDEN,    /* 403 */
    KUBE_ACCESS_UNAVAILABLE,  /* the API server couldn't be asked: 503 */
};

typedef void (*kube_access_fn)(void *ctx, enum kube_access_verdict verdict);

/* `client` is borrowed until kube_access_free(). Owned. */
struct kube_access *kube_access_new(struct kube_client *client);
/* Once the client is closed: until then answers may come. NULL is fine. */
void kube_access_free(struct kube_access *access);
/* `on_verdict` is called once: before this returns where the answer is remembered, else later, on
 * the loop; at the latest when the client is closed. `token` and `path` are copied. */
void kube_access_review(struct kube_access *access, struct str token, struct str path,
                        kube_access_fn on_verdict, void *ctx);
