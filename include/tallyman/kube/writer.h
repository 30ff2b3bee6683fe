/* writer.h - the few kinds of write that Tallyman does, and one read.
 *
 * Each is one request of client.h: on_done exactly once, always later. All are safe to repeat.
 * Answers are asked for as PartialObjectMetadata, so `response->meta` has uid and resourceVersion
 * of what was written and little else crosses the wire. */
#pragma once

#include "tallyman/kube/client.h"

#define KUBE_FIELD_MANAGER "tallyman"

/* Which object. Texts are copied by the call. */
struct kube_target {
    enum object_kind kind;
    struct str namespace_name; /* absent for a cluster-wide kind */
    struct str name;
    const char *subresource; /* static: "status"; NULL: the object itself */
};

struct kube_done {
    void (*call)(void *ctx, const struct kube_response *response);
    void *ctx; /* borrowed until it is called */
};

/* Merge PATCH (RFC 7386). Guard it by metadata.uid (another object of that name: 422 whose cause is
 * metadata.uid, see kube_status_names_field()) and metadata.resourceVersion (409). */
struct kube_call *kube_patch_merge(struct kube_client *client, const struct kube_target *target,
                                   struct str body, struct kube_done done);
/* Server-side apply as manager `tallyman`, forced; creates what is missing. The body is the whole
 * intent, with apiVersion, kind and metadata.name. */
struct kube_call *kube_apply(struct kube_client *client, const struct kube_target *target,
                             struct str body, struct kube_done done);
/* Deletes only the object with that uid (409 otherwise); in the background, dependents after it. */
struct kube_call *kube_delete(struct kube_client *client, const struct kube_target *target,
                              struct str uid, struct kube_done done);
/* Reads one object; `response->body` is the whole of it: decode_json() with the kind's schema. */
struct kube_call *kube_get(struct kube_client *client, const struct kube_target *target,
                           struct kube_done done);

/* An Event (events.k8s.io/v1). Texts are copied and cut to the server's limits. */
struct kube_event {
    struct str name;           /* unique in its namespace, e.g. <object>.<hex>; "" is refused */
    struct str namespace_name; /* the regarded object's, "default" for a cluster-wide one */
    struct str type;           /* "Normal", "Warning" */
    struct str reason;         /* at most 128 bytes */
    struct str action;         /* at most 128 bytes */
    struct str note;           /* at most 1024 bytes */
    struct str instance;       /* reportingInstance: the pod or host name, at most 128 bytes */
    int64_t at_ms;
    enum object_kind regarding_kind;
    struct str regarding_namespace; /* absent for a cluster-wide object */
    struct str regarding_name;
    struct str regarding_uid;
    struct str regarding_resource_version;
};

struct kube_call *kube_create_event(struct kube_client *client, const struct kube_event *event,
                                    struct kube_done done);
