/* kubeconfig.h - one kubeconfig file, as it stands; private to the layer.
 *
 * Field names as in k8s.io/client-go/tools/clientcmd/api/v1/types.go. */
#pragma once

#include "tallyman/api/codec.h"

struct file_cluster {
    struct str server;
    struct str certificate_authority;
    struct str certificate_authority_data;
    struct opt_bool insecure_skip_tls_verify;
    struct str tls_server_name;
    struct str proxy_url;
};

struct named_cluster {
    struct str name;
    struct file_cluster *cluster;
};

struct named_cluster_list {
    struct named_cluster *items;
    uint32_t count;
};

struct exec_env {
    struct str name;
    struct str value;
};

struct exec_env_list {
    struct exec_env *items;
    uint32_t count;
};

struct file_exec {
    struct str api_version;
    struct str command;
    struct str_list args;
    struct exec_env_list env;
    struct str install_hint;
    struct opt_bool provide_cluster_info;
    struct str interactive_mode;
};

struct auth_provider {
    struct str name;
};

struct file_user {
    struct str client_certificate;
    struct str client_certificate_data;
    struct str client_key;
    struct str client_key_data;
    struct str token;
    struct str token_file;
    struct str username;
    struct str password;
    struct str impersonate; /* as */
    struct auth_provider *auth_provider;
    struct file_exec *exec;
};

struct named_user {
    struct str name;
    struct file_user *user;
};

struct named_user_list {
    struct named_user *items;
    uint32_t count;
};

struct file_context {
    struct str cluster;
    struct str user;
    struct str namespace_name;
};

struct named_context {
    struct str name;
    struct file_context *context;
};

struct named_context_list {
    struct named_context *items;
    uint32_t count;
};

struct kubeconfig {
    struct str api_version;
    struct str kind;
    struct str current_context;
    struct named_cluster_list clusters;
    struct named_user_list users;
    struct named_context_list contexts;
};

/* A text that holds no document gives an empty kubeconfig. Everything is borrowed from the arena
 * and has NULs behind its texts. */
NODISCARD struct rc kubeconfig_parse(struct arena *arena, struct str file, struct str text,
                                     struct kubeconfig **ret_kubeconfig, struct err *err);
