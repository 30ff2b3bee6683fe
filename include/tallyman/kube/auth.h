/* auth.h - the credentials of the moment: certificate, token, token file, credential plugin, basic.
 *
 * A token file is read anew when that was reread_ms ago, a plugin is run anew
 * shortly before what it gave expires, both after a 401. A token file that can't be read any more
 * leaves the last token in use. */
#pragma once

#include <uv.h>

#include "tallyman/kube/config.h"

struct kube_auth;

struct kube_credentials {
    struct str authorization;   /* "Authorization: Bearer …"; absent: none */
    struct str certificate_pem; /* absent: none */
    struct str key_pem;
    uint64_t generation; /* grows with every change */
};

struct kube_auth_options {
    uv_loop_t *loop;                  /* borrowed until on_closed */
    const struct kube_config *config; /* borrowed until on_closed */
    int64_t plugin_timeout_ms;
    int64_t reread_ms; /* a token file that was read longer ago is read anew */
    /* The plugin that kube_auth_is_ready() started has ended; on failure with its sentence. */
    void (*on_ready)(void *ctx, struct rc rc, const struct err *why);
    void (*on_closed)(void *ctx);
    void *ctx; /* borrowed until on_closed */
};

/* Reads a token file, so that a missing one is an error at the start. `*ret_auth` is owned; give it
 * back with kube_auth_close(). */
NODISCARD struct rc kube_auth_open(const struct kube_auth_options *options,
                                   struct kube_auth **ret_auth, struct err *err);
void kube_auth_close(struct kube_auth *auth);

/* False: they are being fetched, on_ready comes. */
bool kube_auth_is_ready(struct kube_auth *auth);
/* Borrowed until the next call of kube_auth_is_ready(). */
const struct kube_credentials *kube_auth_credentials(const struct kube_auth *auth);
/* The server refused those of `generation` (401). True: there is something to read anew, try again;
 * false: they are fixed. */
bool kube_auth_reject(struct kube_auth *auth, uint64_t generation);
/* How often a token or plugin has been read. */
uint64_t kube_auth_reads(const struct kube_auth *auth);
