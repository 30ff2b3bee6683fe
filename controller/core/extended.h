/* extended.h - extended resources that DeviceClasses serve. Private to the core.
 *
 * A DeviceClass answers to two names that pods may put into their requests: its
 * spec.extendedResourceName, and deviceclass.resource.kubernetes.io/<its name>. On a node whose
 * device plugin offers more than zero of that name the plugin serves it; on any other node
 * kube-scheduler makes a claim for devices of the class (in 1.37
 * pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go). Of two classes
 * with one extendedResourceName the newer serves it, of two of one second the one whose name comes
 * first.
 *
 * All names of a class draw on one account: the class's. */
#pragma once

#include "amounts.h"

#include "tallyman/api/pod_request.h"

#define EXTENDED_IMPLICIT_PREFIX "deviceclass.resource.kubernetes.io/"
#define EXTENDED_PER_POD_MAX     4 /* names of one pod; two nodes may differ in each */

struct core;
struct device_demand;
struct node_state;
struct pod_set;
struct quota_cell;
struct quota_node;

/* A name, and the class that serves it. */
struct extended_name {
    struct str name; /* borrowed from core.resource_names; the key */
    UT_hash_handle hh;
    struct str class_name; /* owned */
    int64_t created_ms;    /* of the class */
};

/* The account that a resource is charged to: the class's name, or its own. Borrowed: a class's
 * until the classes change. */
struct str account_of(const struct core *core, struct str resource);
/* Some DeviceClass has come, changed or gone. */
void extended_class_changed(struct core *core);
void extended_free(struct core *core);

/* Takes it among the set's devices if a class serves it, or is to; false: it's none of those. */
bool pod_set_take_extended(struct core *core, struct pod_set *set, const struct amount *amount);
void pod_set_make_variants(struct core *core, struct pod_set *set);
void pod_set_drop_variants(struct pod_set *set);
/* The set as its pods are on that node: what a device plugin offers there is among the plain
 * resources, what it doesn't among the devices. Only per_pod and the devices of it count. */
const struct pod_set *pod_set_on(const struct pod_set *set, const struct node_state *node);
/* A device plugin there serves all extended resources of such pods, and they have claims besides:
 * kube-scheduler 1.37 may choose the node, and then fails to bind them ("nil or empty request
 * mappings"), again and again, with the claims' devices held. */
bool extended_node_misleads(const struct pod_set *set, const struct node_state *node);
/* kube-scheduler can't bind such pods there: that, or it would have to put more devices into one
 * claim than Kubernetes allows. */
bool extended_is_refused(const struct pod_set *set, const struct node_state *node);
/* A device plugin offers some of it there; `resource` may be absent. */
bool node_offers(const struct node_state *node, struct str resource);
/* The name by which the devices are asked for. */
struct str demand_asked(const struct device_demand *demand);
/* "example.com/gpu (DeviceClass gpu.example.com)", in the scratch arena, or the account's name. */
struct str pod_set_asked_text(struct core *core, const struct pod_set *set, struct str account);
/* The sentence about two names in a spec that are one account. */
struct str doubled_text(struct arena *arena, const struct quota_node *node);
/* As the spec has it, else the account's. */
struct str cell_name(const struct quota_cell *cell);
