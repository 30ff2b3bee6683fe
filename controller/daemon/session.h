/* session.h - one question after the other to the API server, each answered before the next.
 *
 * For commands that look and then exit. Reads only: nothing here can send anything but a GET. What
 * the server can't answer at once (429, 5xx, no connection) is asked again a few times. */
#pragma once

#include <uv.h>

#include "tallyman/base/text.h"
#include "tallyman/kube/client.h"

struct session_options {
    struct str kubeconfig; /* absent: $KUBECONFIG, the pod's account, ~/.kube/config */
    struct str context;    /* absent: the current one */
};

struct session {
    uv_loop_t loop;
    struct kube_config *config; /* owned */
    struct kube_client *client; /* owned */
};

/* Borrowed until the session's next question. */
struct session_answer {
    enum kube_outcome outcome;
    uint32_t code; /* HTTP; 0: no answer */
    struct str body;
    struct str message; /* one sentence; empty on success */
    struct arena arena; /* of the two */
};

/* RC_INVALID and RC_IO: the kubeconfig is wrong or can't be read; nothing has to be closed then. */
NODISCARD struct rc session_open(const struct session_options *options,
                                 struct session **ret_session, struct err *err);
void session_close(struct session *session); /* NULL is fine */
/* The context's namespace, or "default". Borrowed until the session is closed. */
struct str session_namespace(const struct session *session);
/* `ret_answer` holds memory until session_answer_drop(). */
void session_get(struct session *session, struct str path, struct str query,
                 struct session_answer *ret_answer);
void session_answer_drop(struct session_answer *answer);
