/* The kubeconfig schema: one table for JSON and YAML alike. */
#include "kubeconfig.h"

#include <stddef.h>

#define FIELD(name, kind, type, member, schema)                                                    \
    {                                                                                              \
        name, kind, offsetof(type, member), schema                                                 \
    }
#define SCHEMA(name, type, fields)                                                                 \
    {                                                                                              \
        name, sizeof(type), fields, ARRAY_COUNT(fields)                                            \
    }

static const struct field cluster_fields[] = {
    FIELD("server", FIELD_STRING, struct file_cluster, server, NULL),
    FIELD("certificate-authority", FIELD_STRING, struct file_cluster, certificate_authority, NULL),
    FIELD("certificate-authority-data", FIELD_STRING, struct file_cluster,
          certificate_authority_data, NULL),
    FIELD("insecure-skip-tls-verify", FIELD_BOOL, struct file_cluster, insecure_skip_tls_verify,
          NULL),
    FIELD("tls-server-name", FIELD_STRING, struct file_cluster, tls_server_name, NULL),
    FIELD("proxy-url", FIELD_STRING, struct file_cluster, proxy_url, NULL),
};
static const struct schema cluster_schema = SCHEMA("Cluster", struct file_cluster, cluster_fields);

static const struct field named_cluster_fields[] = {
    FIELD("name", FIELD_STRING, struct named_cluster, name, NULL),
    FIELD("cluster", FIELD_OBJECT_PTR, struct named_cluster, cluster, &cluster_schema),
};
static const struct schema named_cluster_schema =
    SCHEMA("NamedCluster", struct named_cluster, named_cluster_fields);

static const struct field exec_env_fields[] = {
    FIELD("name", FIELD_STRING, struct exec_env, name, NULL),
    FIELD("value", FIELD_STRING, struct exec_env, value, NULL),
};
static const struct schema exec_env_schema = SCHEMA("ExecEnvVar", struct exec_env, exec_env_fields);

static const struct field exec_fields[] = {
    FIELD("apiVersion", FIELD_STRING, struct file_exec, api_version, NULL),
    FIELD("command", FIELD_STRING, struct file_exec, command, NULL),
    FIELD("args", FIELD_STRING_LIST, struct file_exec, args, NULL),
    FIELD("env", FIELD_OBJECT_LIST, struct file_exec, env, &exec_env_schema),
    FIELD("installHint", FIELD_STRING, struct file_exec, install_hint, NULL),
    FIELD("provideClusterInfo", FIELD_BOOL, struct file_exec, provide_cluster_info, NULL),
    FIELD("interactiveMode", FIELD_STRING, struct file_exec, interactive_mode, NULL),
};
static const struct schema exec_schema = SCHEMA("ExecConfig", struct file_exec, exec_fields);

static const struct field auth_provider_fields[] = {
    FIELD("name", FIELD_STRING, struct auth_provider, name, NULL),
};
static const struct schema auth_provider_schema =
    SCHEMA("AuthProviderConfig", struct auth_provider, auth_provider_fields);

static const struct field user_fields[] = {
    FIELD("client-certificate", FIELD_STRING, struct file_user, client_certificate, NULL),
    FIELD("client-certificate-data", FIELD_STRING, struct file_user, client_certificate_data, NULL),
    FIELD("client-key", FIELD_STRING, struct file_user, client_key, NULL),
    FIELD("client-key-data", FIELD_STRING, struct file_user, client_key_data, NULL),
    FIELD("token", FIELD_STRING, struct file_user, token, NULL),
    FIELD("tokenFile", FIELD_STRING, struct file_user, token_file, NULL),
    FIELD("username", FIELD_STRING, struct file_user, username, NULL),
    FIELD("password", FIELD_STRING, struct file_user, password, NULL),
    FIELD("as", FIELD_STRING, struct file_user, impersonate, NULL),
    FIELD("auth-provider", FIELD_OBJECT_PTR, struct file_user, auth_provider,
          &auth_provider_schema),
    FIELD("exec", FIELD_OBJECT_PTR, struct file_user, exec, &exec_schema),
};
static const struct schema user_schema = SCHEMA("AuthInfo", struct file_user, user_fields);

static const struct field named_user_fields[] = {
    FIELD("name", FIELD_STRING, struct named_user, name, NULL),
    FIELD("user", FIELD_OBJECT_PTR, struct named_user, user, &user_schema),
};
static const struct schema named_user_schema =
    SCHEMA("NamedAuthInfo", struct named_user, named_user_fields);

static const struct field context_fields[] = {
    FIELD("cluster", FIELD_STRING, struct file_context, cluster, NULL),
    FIELD("user", FIELD_STRING, struct file_context, user, NULL),
    FIELD("namespace", FIELD_STRING, struct file_context, namespace_name, NULL),
};
static const struct schema context_schema = SCHEMA("Context", struct file_context, context_fields);

static const struct field named_context_fields[] = {
    FIELD("name", FIELD_STRING, struct named_context, name, NULL),
    FIELD("context", FIELD_OBJECT_PTR, struct named_context, context, &context_schema),
};
static const struct schema named_context_schema =
    SCHEMA("NamedContext", struct named_context, named_context_fields);

static const struct field kubeconfig_fields[] = {
    FIELD("apiVersion", FIELD_STRING, struct kubeconfig, api_version, NULL),
    FIELD("kind", FIELD_STRING, struct kubeconfig, kind, NULL),
    FIELD("current-context", FIELD_STRING, struct kubeconfig, current_context, NULL),
    FIELD("clusters", FIELD_OBJECT_LIST, struct kubeconfig, clusters, &named_cluster_schema),
    FIELD("users", FIELD_OBJECT_LIST, struct kubeconfig, users, &named_user_schema),
    FIELD("contexts", FIELD_OBJECT_LIST, struct kubeconfig, contexts, &named_context_schema),
};
static const struct schema kubeconfig_schema =
    SCHEMA("Config", struct kubeconfig, kubeconfig_fields);

struct kubeconfig_reader {
    struct token_sink decoder;
    uint32_t documents;
};

static struct rc reader_on_token(void *ctx, const struct token *token, struct err *err)
{
    struct kubeconfig_reader *reader = ctx;
    return reader->decoder.on_token(reader->decoder.ctx, token, err);
}

static struct rc reader_on_document(void *ctx, uint32_t line, struct err *err)
{
    struct kubeconfig_reader *reader = ctx;
    reader->documents++;
    return reader->documents == 1
               ? RC_SUCCESS
               : err_set(err, RC_INVALID, "line %u: a second document; a kubeconfig is one", line);
}

struct rc kubeconfig_parse(struct arena *arena, struct str file, struct str text,
                           struct kubeconfig **ret_kubeconfig, struct err *err)
{
    struct decoder *decoder = decoder_new(arena, &kubeconfig_schema);
    struct kubeconfig_reader reader = {.decoder = decoder_sink(decoder)};
    struct token_sink sink = {.on_token = reader_on_token, .ctx = &reader};
    struct rc rc = yaml_read(text, sink, reader_on_document, err);
    struct kubeconfig *result = decoder_result(decoder);
    decoder_free(decoder);
    if (rc_failed(rc)) {
        return err_prefix(err, rc, STR_FMT, STR_ARG(file));
    }
    if (result == NULL) {
        result = ARENA_NEW(arena, struct kubeconfig);
    }
    if (!str_is_empty(result->kind) && !str_eq_c(result->kind, "Config")) {
        return err_set(err, RC_INVALID, STR_FMT ": kind is \"" STR_FMT "\", not Config",
                       STR_ARG(file), STR_ARG(result->kind));
    }
    *ret_kubeconfig = result;
    return RC_SUCCESS;
}
