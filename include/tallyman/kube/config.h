/* config.h - which API server, and who we are there: kubeconfig files and the in-cluster account.
 *
 * kube_config_load() looks where every Kubernetes controller looks, in this order: the file named
 * on the command line, KUBECONFIG (several files, joined by ':'), the service account of the pod,
 * ~/.kube/config. Files are merged as kubectl does: of two entries with one name the first wins,
 * current-context is the first one set, a relative path is relative to its own file. Errors name
 * the file and the field. Source: k8s.io/client-go/tools/clientcmd (loader.go, client_config.go),
 * the documentation page "Organizing Cluster Access Using kubeconfig Files". */
#pragma once

#include "tallyman/base/arena.h"
#include "tallyman/base/err.h"

struct kube_env_var {
    struct str name;
    struct str value;
};

struct kube_env_var_list {
    struct kube_env_var *items;
    uint32_t count;
};

/* A credential plugin: client.authentication.k8s.io v1 (and v1beta1, which has the same fields). */
struct kube_exec {
    struct str api_version;
    struct str command; /* a path, or a name that is looked for in PATH */
    struct str_list args;
    struct kube_env_var_list env; /* added to our own environment */
    struct str install_hint;
    bool provide_cluster_info;
};

/* All texts are borrowed from `arena`, which the config owns. Absent: not set. */
struct kube_config {
    struct arena arena;
    struct str source; /* for messages: `context "dev" of ~/.kube/config`, "in-cluster account" */
    struct str server; /* "https://host:port/prefix", no slash at its end */
    struct str namespace_name;

    struct str ca_pem;  /* the bundle itself; absent: the system's */
    struct str ca_file; /* where it was read; read again when it changes; absent: it is fixed */
    struct str tls_server_name;
    bool is_insecure; /* insecure-skip-tls-verify */
    struct str proxy_url;

    struct str client_certificate_pem;
    struct str client_key_pem;
    struct str token;
    struct str token_file; /* wins over token; read again at least every KUBE_TOKEN_REREAD_MS */
    struct str user_name;  /* basic authentication */
    struct str password;
    struct kube_exec *exec; /* NULL: none */
};

struct kube_config_options {
    struct str kubeconfig;        /* one file, as from --kubeconfig; absent: look further */
    struct str context;           /* absent: current-context */
    struct str kubeconfig_env;    /* KUBECONFIG */
    struct str home;              /* HOME */
    struct str service_host;      /* KUBERNETES_SERVICE_HOST; absent: not in a pod */
    struct str service_port;      /* KUBERNETES_SERVICE_PORT */
    struct str account_directory; /* absent: /var/run/secrets/kubernetes.io/serviceaccount */
};

/* Fills in what the environment says. The views are borrowed from the environment. */
void kube_config_options_from_env(struct kube_config_options *options);

/* `*ret_config` is owned; free it with kube_config_free(). */
NODISCARD struct rc kube_config_load(const struct kube_config_options *options,
                                     struct kube_config **ret_config, struct err *err);
void kube_config_free(struct kube_config *config); /* NULL is fine */
