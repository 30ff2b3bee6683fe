/* room.c - whether there was room for a gang that was admitted: some placement of all pods that are
 * to come, on what the nodes have left. */
#include "vopr.h"

#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "tallyman/api/dra.h"
#include "tallyman/api/node.h"
#include "tallyman/api/pod.h"
#include "tallyman/api/pod_request.h"

static const char *const node_names[VOPR_NODES] = {"n1", "n2", "n3"};

struct node_room {
    bool is_usable;
    int64_t cpu_milli;
    int64_t pods;
    uint32_t free_devices; /* bit by bit */
};

/* Pods that are alike and have no node yet. */
struct to_place {
    int64_t count;
    int64_t cpu_milli;
    int64_t devices;
    bool is_shared;    /* all go to one node, and take one device there */
    bool is_allocated; /* and it is theirs already */
    int pinned;        /* to this node; -1: to none */
};

struct room {
    struct vopr *v;
    struct node_room nodes[VOPR_NODES];
    struct to_place gangs[VOPR_JOBS];
    struct str job_uid; /* whose pods are counted */
    int64_t placed;     /* of them, that have a node */
    int64_t succeeded;  /* of them, and are there still */
};

static int node_number(struct str name)
{
    for (int i = 0; i < VOPR_NODES; i++) {
        if (str_eq_c(name, node_names[i])) {
            return i;
        }
    }
    return -1;
}

static int64_t foreign_cpu(const struct pod *pod)
{
    const struct resource_list *requests = &pod->spec.containers.items[0].resources.requests;
    for (uint32_t i = 0; i < requests->count; i++) {
        if (str_eq_c(requests->items[i].name, "cpu")) {
            return (int64_t)(requests->items[i].value.nano / 1000000);
        }
    }
    return 0;
}

static void take_pod(void *ctx, const void *value)
{
    struct room *room = ctx;
    const struct pod *pod = value;
    int node = node_number(pod->spec.node_name);
    if (node < 0 || pod_is_terminal(pod)) {
        return;
    }
    const struct vopr_shape *shape = cluster_shape(room->v, vopr_job_uid(pod));
    room->nodes[node].cpu_milli -= shape == NULL ? foreign_cpu(pod) : shape->per_pod[CPU_MILLI];
    room->nodes[node].pods--;
}

/* A pod's devices are chosen a moment before its node is told. */
static bool is_on_its_way(const struct vopr *v, const struct resource_claim *claim)
{
    if (claim->meta.owner_references.count == 0) {
        return false;
    }
    const struct pod *pod =
        sim_find(v->sim, KIND_POD, STR("default"), claim->meta.owner_references.items[0].name);
    return pod != NULL && node_number(pod->spec.node_name) < 0 && !pod_is_terminal(pod);
}

static void take_devices(void *ctx, const void *value)
{
    struct room *room = ctx;
    const struct resource_claim *claim = value;
    if (claim->status.allocation == NULL || is_on_its_way(room->v, claim)) {
        return;
    }
    const struct allocation_result_list *results = &claim->status.allocation->devices.results;
    for (uint32_t i = 0; i < results->count; i++) {
        int node = node_number(results->items[i].pool);
        struct str device = results->items[i].device;
        if (node >= 0 && device.len > 0) {
            room->nodes[node].free_devices &= ~(1u << (device.ptr[device.len - 1] - '0'));
        }
    }
}

static void read_nodes(struct room *room)
{
    for (int i = 0; i < VOPR_NODES; i++) {
        const struct node *node =
            sim_find(room->v->sim, KIND_NODE, STR_NONE, str_from_c(node_names[i]));
        room->nodes[i] = (struct node_room){
            .is_usable = node != NULL && condition_is_true(&node->status.conditions, "Ready"),
            .cpu_milli = NODE_CPU_MILLI,
            .pods = NODE_PODS,
            .free_devices = (1u << room->v->devices[i]) - 1};
    }
    sim_each(room->v->sim, KIND_POD, take_pod, room);
    sim_each(room->v->sim, KIND_RESOURCE_CLAIM, take_devices, room);
}

static void count_pod(void *ctx, const void *value)
{
    struct room *room = ctx;
    const struct pod *pod = value;
    bool is_bound = str_is_set(pod->spec.node_name) && pod->spec.node_name.len > 0;
    bool has_place = is_bound && !pod_is_terminal(pod) && !pod->meta.deletion_timestamp.is_set;
    bool is_its = str_eq(vopr_job_uid(pod), room->job_uid);
    room->placed += is_its && has_place;
    room->succeeded += is_its && str_eq_c(pod->status.phase, "Succeeded");
}

static int shared_node(const struct vopr *v, uint32_t number)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "shared-%u", number);
    const struct resource_claim *claim =
        sim_find(v->sim, KIND_RESOURCE_CLAIM, STR("default"), str_from_c(name));
    bool is_allocated = claim != NULL && claim->status.allocation != NULL &&
                        claim->status.allocation->devices.results.count > 0;
    return is_allocated ? node_number(claim->status.allocation->devices.results.items[0].pool) : -1;
}

/* Where its shared claim has its device, or where the admission has said that it goes. */
static int pinned_node(const struct vopr *v, uint32_t number, const struct job *job)
{
    int allocated = shared_node(v, number);
    struct str host =
        string_map_get(&job->spec.pod_template.spec.node_selector, "kubernetes.io/hostname");
    return allocated < 0 && str_is_set(host) ? node_number(host) : allocated;
}

/* Of its pods, admitted for `count`: that have no node yet, as many as it has to have. */
static int64_t count_left(struct room *room, const struct job *job, const struct vopr_shape *shape,
                          int64_t count)
{
    room->job_uid = job->meta.uid;
    room->placed = room->succeeded = 0;
    sim_each(room->v->sim, KIND_POD, count_pod, room);
    /* Those that have succeeded go with their node; the Job has counted them by then. */
    int64_t counted = job->status.succeeded.value;
    int64_t rest = shape->pods - (counted > room->succeeded ? counted : room->succeeded);
    int64_t least = shape->min_count > 0 ? shape->min_count : count;
    return (least < rest ? least : rest) - room->placed;
}

/* False: what it will make of itself isn't known. */
static bool read_gang(struct room *room, uint32_t number)
{
    const struct vopr *v = room->v;
    const struct job *job = sim_find(v->sim, KIND_JOB, STR("default"), job_name(number));
    bool is_running =
        job != NULL && !vopr_is_over(job) && !(job->spec.suspend.is_set && job->spec.suspend.value);
    if (!is_running) {
        return true;
    }
    const struct vopr_shape *shape = cluster_shape(v, job->meta.uid);
    int64_t count = vopr_admitted_count(job);
    if (shape == NULL || count < 0 || v->is_scaled[number] || job->status.failed.value > 0) {
        return false;
    }
    int64_t left = count_left(room, job, shape, count);
    room->gangs[number] = (struct to_place){.count = left > 0 ? left : 0,
                                            .cpu_milli = shape->per_pod[CPU_MILLI],
                                            .devices = shape->per_pod[DEVICES],
                                            .is_shared = shape->is_shared,
                                            .is_allocated = shared_node(v, number) >= 0,
                                            .pinned = pinned_node(v, number, job)};
    return true;
}

static uint32_t bits(uint32_t set)
{
    return (uint32_t)__builtin_popcount(set);
}

/* So many more pods of that kind as the node can take. */
static int64_t places_on(const struct node_room *node, const struct to_place *pods)
{
    int64_t places = node->cpu_milli / pods->cpu_milli;
    places = places < node->pods ? places : node->pods;
    if (pods->devices > 0 && places > bits(node->free_devices)) {
        places = bits(node->free_devices);
    }
    bool is_without = pods->is_shared && !pods->is_allocated && node->free_devices == 0;
    return node->is_usable && places > 0 && !is_without ? places : 0;
}

static void drop_devices(struct node_room *node, int64_t count)
{
    for (; count > 0; count--) {
        node->free_devices &= node->free_devices - 1;
    }
}

static bool place_rest(struct room *room, uint32_t gang, uint32_t node, int64_t left);

static bool place_some(struct room *room, uint32_t gang, uint32_t node, int64_t left, int64_t here)
{
    const struct to_place *pods = &room->gangs[gang];
    struct node_room before = room->nodes[node];
    room->nodes[node].cpu_milli -= here * pods->cpu_milli;
    room->nodes[node].pods -= here;
    drop_devices(&room->nodes[node], pods->is_shared ? !pods->is_allocated : here * pods->devices);
    bool is_done = place_rest(room, gang, node + 1, left - here);
    room->nodes[node] = before;
    return is_done;
}

static bool place_next(struct room *room, uint32_t next)
{
    while (next < VOPR_JOBS && room->gangs[next].count == 0) {
        next++;
    }
    return next >= VOPR_JOBS || place_rest(room, next, 0, room->gangs[next].count);
}

/* Whatever is left of `gang` goes to `node` and those behind it, then come the other gangs. */
static bool place_rest(struct room *room, uint32_t gang, uint32_t node, int64_t left)
{
    if (left == 0) {
        return place_next(room, gang + 1);
    }
    if (node == VOPR_NODES) {
        return false;
    }
    const struct to_place *pods = &room->gangs[gang];
    int64_t most = places_on(&room->nodes[node], pods);
    most = most < left ? most : left;
    if (pods->is_shared) { /* all or none */
        bool is_here = most == left && (pods->pinned < 0 || pods->pinned == (int)node);
        return (is_here && place_some(room, gang, node, left, left)) ||
               place_rest(room, gang, node + 1, left);
    }
    for (int64_t here = most; here > 0; here--) {
        if (place_some(room, gang, node, left, here)) {
            return true;
        }
    }
    return place_rest(room, gang, node + 1, left);
}

bool is_room_known(const struct vopr *v)
{
    return sim_now_ms(v->sim) - v->room_changed_ms > SEEN_MS;
}

static void print_room(const struct room *room)
{
    for (int i = 0; i < VOPR_NODES; i++) {
        const struct node_room *node = &room->nodes[i];
        printf("%s%s has %lldm cpu, %lld pods and %u devices left\n", node_names[i],
               node->is_usable ? "" : " (not ready)", (long long)node->cpu_milli,
               (long long)node->pods, bits(node->free_devices));
    }
    for (uint32_t i = 0; i < VOPR_JOBS; i++) {
        const struct to_place *gang = &room->gangs[i];
        if (gang->count > 0) {
            printf(STR_FMT " has %lld pods to place, each %lldm cpu and %lld devices%s\n",
                   STR_ARG(job_name(i)), (long long)gang->count, (long long)gang->cpu_milli,
                   (long long)gang->devices, gang->is_shared ? ", all on one node" : "");
        }
    }
}

void check_room(struct vopr *v, uint32_t number)
{
    struct room room = {.v = v};
    read_nodes(&room);
    for (uint32_t i = 0; i < VOPR_JOBS; i++) {
        if (!read_gang(&room, i)) {
            return;
        }
    }
    if (place_next(&room, 0)) {
        return;
    }
    print_room(&room);
    room.gangs[number].count = 0;
    /* Somebody else's pods may have been left without before, by a node that went. */
    if (place_next(&room, 0)) {
        fail_msg(STR_FMT " is admitted, and there is no room for all that run",
                 STR_ARG(job_name(number)));
    }
}
