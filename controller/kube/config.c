/* Which files, which context of them, and what it comes to. */
#include "tallyman/kube/config.h"

#include <stdlib.h>

#include "file.h"
#include "kubeconfig.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/kube/base64.h"

#define ACCOUNT_DIRECTORY "/var/run/secrets/kubernetes.io/serviceaccount"

/* -- several files as one ---------------------------------------------------------------------- */

struct merge {
    struct arena *arena;
    struct str files[KUBE_CONFIG_FILES_MAX];
    struct kubeconfig *parts[KUBE_CONFIG_FILES_MAX];
    uint32_t count;
};

/* What a path or a name in it is relative to. */
static struct str file_directory(struct str file)
{
    size_t end = file.len;
    while (end > 0 && file.ptr[end - 1] != '/') {
        end--;
    }
    return str_take(file, end);
}

static struct str resolve_path(struct arena *arena, struct str file, struct str path)
{
    if (path.ptr[0] == '/') {
        return arena_copy_str(arena, path);
    }
    return arena_format(arena, STR_FMT STR_FMT, STR_ARG(file_directory(file)), STR_ARG(path));
}

static struct rc merge_add_file(struct merge *merge, struct str file, bool must_exist,
                                struct err *err)
{
    struct str text = STR_NONE;
    struct rc rc = kube_file_read(merge->arena, file, KUBE_CONFIG_FILE_MAX_BYTES, &text, err);
    if (rc.code == RC_NOT_FOUND && !must_exist) {
        return RC_SUCCESS;
    }
    TRY(rc);
    if (merge->count == KUBE_CONFIG_FILES_MAX) {
        return err_set(err, RC_LIMIT, "KUBECONFIG names more than %u files", KUBE_CONFIG_FILES_MAX);
    }
    struct kubeconfig *part = NULL;
    TRY(kubeconfig_parse(merge->arena, file, text, &part, err));
    merge->files[merge->count] = arena_copy_str(merge->arena, file);
    merge->parts[merge->count++] = part;
    return RC_SUCCESS;
}

/* As in kubectl, a file of the list that doesn't exist is passed over. */
static struct rc merge_add_list(struct merge *merge, struct str list, struct err *err)
{
    while (list.len > 0) {
        struct str file = str_take(list, str_find_char(list, ':'));
        if (file.len > 0) {
            TRY(merge_add_file(merge, file, false, err));
        }
        list = str_skip(list, file.len + 1);
    }
    if (merge->count == 0) {
        return err_set(err, RC_NOT_FOUND, "KUBECONFIG: none of its files exists");
    }
    return RC_SUCCESS;
}

#define MERGE_FIND(type, member)                                                                   \
    static const struct type *merge_find_##member(const struct merge *merge, struct str name,      \
                                                  struct str *ret_file)                            \
    {                                                                                              \
        for (uint32_t i = 0; i < merge->count; i++) {                                              \
            for (uint32_t k = 0; k < merge->parts[i]->member.count; k++) {                         \
                if (str_eq(merge->parts[i]->member.items[k].name, name)) {                         \
                    *ret_file = merge->files[i];                                                   \
                    return &merge->parts[i]->member.items[k];                                      \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        return NULL;                                                                               \
    }

MERGE_FIND(named_cluster, clusters)
MERGE_FIND(named_user, users)
MERGE_FIND(named_context, contexts)

static struct str merge_current_context(const struct merge *merge)
{
    for (uint32_t i = 0; i < merge->count; i++) {
        if (!str_is_empty(merge->parts[i]->current_context)) {
            return merge->parts[i]->current_context;
        }
    }
    return STR_NONE;
}

/* -- one value --------------------------------------------------------------------------------- */

/* Where a value stands, for the message: `FILE: user "x": client-key-data`. */
struct place {
    struct str file;
    const char *kind;
    struct str name;
};

static struct rc place_fail(const struct place *place, const char *field, const char *what,
                            struct err *err)
{
    return err_set(err, RC_INVALID, STR_FMT ": %s \"" STR_FMT "\": %s: %s", STR_ARG(place->file),
                   place->kind, STR_ARG(place->name), field, what);
}

/* Data in the text wins over a file, as in client-go. */
static struct rc read_pem(struct arena *arena, const struct place *place, const char *field,
                          struct str data, struct str path, struct str *ret_pem, struct err *err)
{
    struct str pem = STR_NONE;
    if (!str_is_empty(data)) {
        if (!base64_decode(arena, data, &pem)) {
            return place_fail(place, field, "the -data form is not base64", err);
        }
    } else if (!str_is_empty(path)) {
        struct str file = resolve_path(arena, place->file, path);
        struct rc rc = kube_file_read(arena, file, KUBE_CONFIG_FILE_MAX_BYTES, &pem, err);
        if (rc_failed(rc)) {
            return err_prefix(err, rc, STR_FMT ": %s \"" STR_FMT "\": %s", STR_ARG(place->file),
                              place->kind, STR_ARG(place->name), field);
        }
    } else {
        return RC_SUCCESS;
    }
    if (str_find(pem, STR("-----BEGIN ")) == pem.len) {
        return place_fail(place, field, "is not in PEM form (no \"-----BEGIN …\")", err);
    }
    *ret_pem = pem;
    return RC_SUCCESS;
}

static struct str copy_if_set(struct arena *arena, struct str text)
{
    return str_is_empty(text) ? STR_NONE : arena_copy_str(arena, text);
}

/* -- cluster, user, context -------------------------------------------------------------------- */

static struct rc take_cluster(struct kube_config *config, const struct place *place,
                              const struct file_cluster *cluster, struct err *err)
{
    struct arena *arena = &config->arena;
    if (cluster == NULL || str_is_empty(cluster->server)) {
        return place_fail(place, "server", "is missing; right is https://HOST:PORT", err);
    }
    struct str server = cluster->server;
    while (server.len > 0 && server.ptr[server.len - 1] == '/') {
        server.len--;
    }
    if (str_find(server, STR("://")) == server.len) {
        server = arena_format(arena, "https://" STR_FMT, STR_ARG(server));
    }
    config->server = arena_copy_str(arena, server);
    config->tls_server_name = copy_if_set(arena, cluster->tls_server_name);
    config->proxy_url = copy_if_set(arena, cluster->proxy_url);
    config->is_insecure = cluster->insecure_skip_tls_verify.value;
    TRY(read_pem(arena, place, "certificate-authority", cluster->certificate_authority_data,
                 cluster->certificate_authority, &config->ca_pem, err));
    if (str_is_empty(cluster->certificate_authority_data) && str_is_set(config->ca_pem)) {
        config->ca_file =
            arena_copy_str(arena, resolve_path(arena, place->file, cluster->certificate_authority));
    }
    if (config->is_insecure && str_is_set(config->ca_pem)) {
        return place_fail(place, "insecure-skip-tls-verify",
                          "can't be true beside a certificate-authority; remove one of them", err);
    }
    return RC_SUCCESS;
}

static struct rc take_exec(struct kube_config *config, const struct place *place,
                           const struct file_exec *exec, struct err *err)
{
    struct arena *arena = &config->arena;
    bool is_known = str_eq_c(exec->api_version, "client.authentication.k8s.io/v1") ||
                    str_eq_c(exec->api_version, "client.authentication.k8s.io/v1beta1");
    if (!is_known) {
        return place_fail(place, "exec.apiVersion",
                          "is not client.authentication.k8s.io/v1 (or v1beta1)", err);
    }
    if (str_is_empty(exec->command)) {
        return place_fail(place, "exec.command", "is missing", err);
    }
    if (str_eq_c(exec->interactive_mode, "Always")) {
        return place_fail(place, "exec.interactiveMode",
                          "is Always, but there is nobody to ask; right is IfAvailable or Never",
                          err);
    }
    struct kube_exec *taken = ARENA_NEW(arena, struct kube_exec);
    taken->api_version = arena_copy_str(arena, exec->api_version);
    /* A name with a slash is a path of the file's own; without one it is looked for in PATH. */
    taken->command = str_find_char(exec->command, '/') == exec->command.len
                         ? arena_copy_str(arena, exec->command)
                         : resolve_path(arena, place->file, exec->command);
    taken->args = exec->args;
    taken->install_hint = copy_if_set(arena, exec->install_hint);
    taken->provide_cluster_info = exec->provide_cluster_info.value;
    taken->env.count = exec->env.count;
    taken->env.items = ARENA_ARRAY(arena, struct kube_env_var, exec->env.count + 1);
    for (uint32_t i = 0; i < exec->env.count; i++) {
        taken->env.items[i] =
            (struct kube_env_var){exec->env.items[i].name, exec->env.items[i].value};
    }
    config->exec = taken;
    return RC_SUCCESS;
}

static struct rc check_user(const struct place *place, const struct file_user *user,
                            struct err *err)
{
    if (user->auth_provider != NULL) {
        return place_fail(place, "auth-provider",
                          "was removed from Kubernetes in 1.26; use exec instead", err);
    }
    if (!str_is_empty(user->impersonate)) {
        return place_fail(place, "as",
                          "impersonation is not supported; use the account's own token", err);
    }
    return RC_SUCCESS;
}

static struct rc take_user(struct kube_config *config, const struct place *place,
                           const struct file_user *user, struct err *err)
{
    struct arena *arena = &config->arena;
    if (user == NULL) {
        return RC_SUCCESS; /* anonymous */
    }
    TRY(check_user(place, user, err));
    TRY(read_pem(arena, place, "client-certificate", user->client_certificate_data,
                 user->client_certificate, &config->client_certificate_pem, err));
    TRY(read_pem(arena, place, "client-key", user->client_key_data, user->client_key,
                 &config->client_key_pem, err));
    if (str_is_set(config->client_certificate_pem) != str_is_set(config->client_key_pem)) {
        return place_fail(place, "client-certificate",
                          "and client-key must both be there, or neither", err);
    }
    config->token = copy_if_set(arena, user->token);
    if (!str_is_empty(user->token_file)) {
        config->token_file = resolve_path(arena, place->file, user->token_file);
    }
    config->user_name = copy_if_set(arena, user->username);
    config->password = copy_if_set(arena, user->password);
    return user->exec == NULL ? RC_SUCCESS : take_exec(config, place, user->exec, err);
}

static struct rc take_context(struct kube_config *config, const struct merge *merge,
                              struct str wanted, struct err *err)
{
    struct arena *arena = &config->arena;
    struct str name = str_is_empty(wanted) ? merge_current_context(merge) : wanted;
    if (str_is_empty(name)) {
        return err_set(err, RC_INVALID,
                       STR_FMT ": current-context is not set; set it by "
                               "`kubectl config use-context NAME`, or name a context",
                       STR_ARG(merge->files[0]));
    }
    struct str file = STR_NONE;
    const struct named_context *context = merge_find_contexts(merge, name, &file);
    if (context == NULL || context->context == NULL) {
        return err_set(err, RC_NOT_FOUND, STR_FMT ": there is no context \"" STR_FMT "\"",
                       STR_ARG(merge->files[0]), STR_ARG(name));
    }
    config->source =
        arena_format(arena, "context \"" STR_FMT "\" of " STR_FMT, STR_ARG(name), STR_ARG(file));
    config->namespace_name = copy_if_set(arena, context->context->namespace_name);

    struct place place = {file, "context", name};
    struct str cluster_name = context->context->cluster;
    const struct named_cluster *cluster = merge_find_clusters(merge, cluster_name, &file);
    if (cluster == NULL) {
        return place_fail(&place, "cluster", "names a cluster that isn't there", err);
    }
    struct place cluster_place = {file, "cluster", cluster_name};
    TRY(take_cluster(config, &cluster_place, cluster->cluster, err));

    struct str user_name = context->context->user;
    if (str_is_empty(user_name)) {
        return RC_SUCCESS;
    }
    const struct named_user *user = merge_find_users(merge, user_name, &file);
    if (user == NULL) {
        return place_fail(&place, "user", "names a user that isn't there", err);
    }
    struct place user_place = {file, "user", user_name};
    return take_user(config, &user_place, user->user, err);
}

/* -- in a pod ---------------------------------------------------------------------------------- */

static struct rc take_account(struct kube_config *config, const struct kube_config_options *options,
                              struct err *err)
{
    struct arena *arena = &config->arena;
    struct str directory = str_is_empty(options->account_directory) ? STR(ACCOUNT_DIRECTORY)
                                                                    : options->account_directory;
    struct str port = str_is_empty(options->service_port) ? STR("443") : options->service_port;
    struct str host = options->service_host;
    bool is_ipv6 = str_find_char(host, ':') < host.len && host.ptr[0] != '[';
    config->source = STR("in-cluster account");
    config->server = arena_format(arena, "https://%s" STR_FMT "%s:" STR_FMT, is_ipv6 ? "[" : "",
                                  STR_ARG(host), is_ipv6 ? "]" : "", STR_ARG(port));
    config->token_file = arena_format(arena, STR_FMT "/token", STR_ARG(directory));
    struct str file = arena_format(arena, STR_FMT "/ca.crt", STR_ARG(directory));
    TRY(kube_file_read(arena, file, KUBE_CONFIG_FILE_MAX_BYTES, &config->ca_pem, err));
    config->ca_file = file;
    struct str name = STR_NONE;
    file = arena_format(arena, STR_FMT "/namespace", STR_ARG(directory));
    struct rc rc = kube_file_read(arena, file, KUBE_CONFIG_FILE_MAX_BYTES, &name, NULL);
    if (!rc_failed(rc) && name.len > 0) {
        config->namespace_name = str_take(name, str_find_char(name, '\n'));
    }
    return RC_SUCCESS;
}

static struct rc take_home(struct merge *merge, struct str home, struct err *err)
{
    struct str file = arena_format(merge->arena, STR_FMT "/.kube/config", STR_ARG(home));
    struct rc rc =
        str_is_empty(home) ? (struct rc){RC_NOT_FOUND} : merge_add_file(merge, file, true, err);
    if (rc.code == RC_NOT_FOUND) {
        return err_set(err, RC_NOT_FOUND,
                       "no way to a cluster is known: neither a kubeconfig was named, nor is "
                       "KUBECONFIG set, nor is this a pod with a service account, nor is there a "
                       "~/.kube/config");
    }
    return rc;
}

static struct rc config_fill(struct kube_config *config, const struct kube_config_options *options,
                             struct err *err)
{
    struct merge merge = {.arena = &config->arena};
    if (!str_is_empty(options->kubeconfig)) {
        TRY(merge_add_file(&merge, options->kubeconfig, true, err));
    } else if (!str_is_empty(options->kubeconfig_env)) {
        TRY(merge_add_list(&merge, options->kubeconfig_env, err));
    } else if (!str_is_empty(options->service_host)) {
        return take_account(config, options, err);
    } else {
        TRY(take_home(&merge, options->home, err));
    }
    return take_context(config, &merge, options->context, err);
}

void kube_config_options_from_env(struct kube_config_options *options)
{
    options->kubeconfig_env = str_from_c(getenv("KUBECONFIG"));
    options->home = str_from_c(getenv("HOME"));
    options->service_host = str_from_c(getenv("KUBERNETES_SERVICE_HOST"));
    options->service_port = str_from_c(getenv("KUBERNETES_SERVICE_PORT"));
}

struct rc kube_config_load(const struct kube_config_options *options,
                           struct kube_config **ret_config, struct err *err)
{
    struct kube_config *config = MEM_NEW(struct kube_config);
    arena_init(&config->arena);
    struct rc rc = config_fill(config, options, err);
    if (rc_failed(rc)) {
        kube_config_free(config);
        return rc;
    }
    *ret_config = config;
    return RC_SUCCESS;
}

void kube_config_free(struct kube_config *config)
{
    if (config != NULL) {
        arena_deinit(&config->arena);
        mem_free(config);
    }
}
