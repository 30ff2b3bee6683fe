/* discovery.h - what the server is, and which versions of a group it serves.
 *
 * Informers find absent kinds by themselves; this is for the log, and for the sentence that tells
 * somebody why resource.k8s.io isn't there. */
#pragma once

#include "tallyman/kube/client.h"

struct kube_server_version {
    struct str git_version; /* "v1.37.2"; absent if the server didn't say */
    struct str platform;
};

/* What they are given is borrowed for the call; NULL with the failure's sentence in `message`. */
void kube_read_server_version(struct kube_client *client,
                              void (*on_version)(void *ctx,
                                                 const struct kube_server_version *version,
                                                 struct str message),
                              void *ctx);

struct kube_group_versions {
    bool is_served;           /* the group is there, in whatever version */
    bool has_wanted;          /* one of those that kind_version() knows is there too */
    struct str_list versions; /* as the server lists them */
    /* `resource.k8s.io is served as v1alpha3 only; Tallyman needs v1, v1beta2 or v1beta1 for
     * resourceslices, which Kubernetes has from 1.32 on`; empty when has_wanted. */
    struct str advice;
};

void kube_read_group(struct kube_client *client, enum object_kind kind,
                     void (*on_group)(void *ctx, const struct kube_group_versions *versions,
                                      struct str message),
                     void *ctx);
