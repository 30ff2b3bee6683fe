/* exec_plugin.h - runs a credential plugin once (client.authentication.k8s.io/v1 or v1beta1).
 *
 * The plugin gets our environment, its own variables and KUBERNETES_EXEC_INFO; it prints an
 * ExecCredential. Its output is bounded (KUBE_EXEC_OUTPUT_MAX_BYTES) and it is killed after its
 * time-out. Standard input is /dev/null: there is nobody to ask. */
#pragma once

#include <uv.h>

#include "tallyman/api/meta.h"
#include "tallyman/kube/config.h"

struct exec_plugin;

struct exec_credential {
    struct str token; /* absent: none */
    struct str certificate_pem;
    struct str key_pem;
    struct opt_time expires; /* wall clock */
};

struct exec_plugin_options {
    uv_loop_t *loop;                  /* borrowed until on_done */
    const struct kube_config *config; /* borrowed until on_done; config->exec is set */
    int64_t timeout_ms;
    /* `credential` (NULL on failure) and `why` are borrowed for the call; the plugin and all its
     * handles are gone by then. Never from inside exec_plugin_run(). */
    void (*on_done)(void *ctx, const struct exec_credential *credential, const struct err *why);
    void *ctx; /* borrowed until on_done */
};

/* Borrowed until on_done. */
struct exec_plugin *exec_plugin_run(const struct exec_plugin_options *options);
void exec_plugin_kill(struct exec_plugin *plugin); /* on_done still comes, with a failure */

/* What a plugin printed. Texts are borrowed from the arena. */
NODISCARD struct rc exec_credential_parse(struct arena *arena, struct str text,
                                          struct str api_version,
                                          struct exec_credential *ret_credential, struct err *err);
