/* world_schedule.c - the scheduler's part of the world, and what has to hold of its devices. */
#include "support/world_internal.h"

#include <stdio.h>
#include <string.h>

#include "support/check.h"

#define DEVICES 2 /* of each of the first two nodes */

static int64_t milli_of(const struct pod_spec *spec)
{
    const struct resource_list *requests = &spec->containers.items[0].resources.requests;
    return requests->count == 0 ? 0 : quantity_milli_up(requests->items[0].value);
}

static bool is_device_used(struct scenario *s, const char *node, const char *device)
{
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        const struct resource_claim *claim = (const struct resource_claim *)entry->value;
        if (entry->kind != KIND_RESOURCE_CLAIM || claim->status.allocation == NULL) {
            continue;
        }
        const struct allocation_result_list *list = &claim->status.allocation->devices.results;
        for (uint32_t i = 0; i < list->count; i++) {
            if (str_eq_c(list->items[i].pool, node) && str_eq_c(list->items[i].device, device)) {
                return true;
            }
        }
    }
    return false;
}

static int free_devices(struct scenario *s, const char *node, char text[64], int wanted)
{
    int found = 0;
    text[0] = '\0';
    for (int d = 0; d < DEVICES && found < wanted && node[1] < '2'; d++) {
        char device[16];
        (void)snprintf(device, sizeof(device), "g%d", d);
        if (!is_device_used(s, node, device)) {
            size_t len = strlen(text);
            (void)snprintf(text + len, 64 - len, "%s/%s ", node, device);
            found++;
        }
    }
    return found;
}

static bool has_room(struct scenario *s, const struct node *node, const struct pod *pod)
{
    int64_t used_milli = 0;
    int64_t pods = 0;
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        const struct pod *other = (const struct pod *)entry->value;
        if (entry->kind == KIND_POD && str_eq(other->spec.node_name, node->meta.name) &&
            !pod_is_terminal(other)) {
            used_milli += milli_of(&other->spec);
            pods++;
        }
    }
    int64_t cpu_milli = 0;
    int64_t pods_max = 0;
    for (uint32_t i = 0; i < node->status.allocatable.count; i++) {
        const struct resource_amount *amount = &node->status.allocatable.items[i];
        cpu_milli = str_eq_c(amount->name, "cpu") ? quantity_milli_down(amount->value) : cpu_milli;
        pods_max = str_eq_c(amount->name, "pods") ? quantity_units_down(amount->value) : pods_max;
    }
    return used_milli + milli_of(&pod->spec) <= cpu_milli && pods < pods_max &&
           !node->spec.unschedulable.value &&
           condition_is_true(&node->status.conditions, "Ready") &&
           node_labels_contain(&pod->spec.node_selector, &node->meta.labels);
}

static int devices_wanted(const struct pod *pod)
{
    if (pod->spec.resource_claims.count == 0) {
        return 0;
    }
    struct str template_name = pod->spec.resource_claims.items[0].resource_claim_template_name;
    return str_eq_c(template_name, "two") ? 2 : str_eq_c(template_name, "one") ? 1 : 0;
}

/* A named claim goes with its pod's node: allocated there, or to be. */
static bool claim_reaches(struct scenario *s, const struct pod *pod, const char *node)
{
    bool is_shared = pod->spec.resource_claims.count > 0 &&
                     str_is_set(pod->spec.resource_claims.items[0].resource_claim_name);
    if (!is_shared) {
        return true;
    }
    const struct resource_claim *claim = scenario_object(s, KIND_RESOURCE_CLAIM, "shared");
    if (claim->status.allocation != NULL) {
        return true; /* its devices here have no node selector */
    }
    char text[64];
    return free_devices(s, node, text, 1) == 1;
}

static bool is_waiting(const struct pod *pod)
{
    return str_is_empty(pod->spec.node_name) && !pod_is_terminal(pod) &&
           !pod->meta.deletion_timestamp.is_set;
}

static bool could_take(struct scenario *s, const char *node, const struct pod *pod,
                       char devices[64])
{
    struct entry *entry = entry_find(s, KIND_NODE, node);
    int wanted = devices_wanted(pod);
    return entry != NULL && has_room(s, (const struct node *)entry->value, pod) &&
           claim_reaches(s, pod, node) && free_devices(s, node, devices, wanted) >= wanted;
}

/* The scheduler writes the claim, its consumer with it, before it binds. */
static void allocate_claim(struct scenario *s, const struct pod *pod, const char *name,
                           const char *node, char devices[64])
{
    int wanted = devices_wanted(pod);
    if (wanted > 0) {
        pod_claims(s, name, wanted == 2 ? "two" : "one", devices);
        return;
    }
    if (pod->spec.resource_claims.count == 0) {
        return;
    }
    const struct resource_claim *claim = scenario_object(s, KIND_RESOURCE_CLAIM, "shared");
    if (claim->status.allocation == NULL) {
        (void)free_devices(s, node, devices, 1);
        claim_allocated(s, "shared", devices);
    }
    claim_reserved(s, "shared", name);
}

bool world_bind(struct scenario *s, struct entry *entry, uint8_t choice)
{
    struct pod *pod = (struct pod *)entry->value;
    char name[64];
    world_name_of(entry, name);
    for (int i = 0; i < WORLD_NODES && is_waiting(pod); i++) {
        char node[16];
        char devices[64];
        (void)snprintf(node, sizeof(node), "n%d", (choice + i) % WORLD_NODES);
        if (could_take(s, node, pod, devices)) {
            allocate_claim(s, pod, name, node, devices);
            if (entry_find(s, KIND_POD, name) == entry) {
                pod_binds(s, name, node);
            }
            return true;
        }
    }
    return !is_waiting(pod);
}

/* -- what has to hold ---------------------------------------------------------------------------
 */

static int devices_used(struct scenario *s)
{
    int used = 0;
    for (int i = 0; i < 2 * DEVICES; i++) {
        char node[16];
        char device[16];
        (void)snprintf(node, sizeof(node), "n%d", i / DEVICES);
        (void)snprintf(device, sizeof(device), "g%d", i % DEVICES);
        used += is_device_used(s, node, device) ? 1 : 0;
    }
    return used;
}

/* Pods of a running Job that no node has yet. */
static int64_t pods_to_come(struct scenario *s, const struct job *job)
{
    int64_t left = job->spec.completions.value - job->status.succeeded.value;
    int64_t wanted = job->spec.parallelism.value < left ? job->spec.parallelism.value : left;
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        const struct pod *pod = (const struct pod *)entry->value;
        bool is_placed = entry->kind == KIND_POD && str_eq(world_job_uid_of(pod), job->meta.uid) &&
                         !pod_is_terminal(pod) && !str_is_empty(pod->spec.node_name);
        wanted -= is_placed ? 1 : 0;
    }
    return wanted > 0 ? wanted : 0;
}

void world_check_devices(struct scenario *s)
{
    int64_t promised = 0;
    bool is_shared_promised = false;
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        const struct job *job = (const struct job *)entry->value;
        if (entry->kind != KIND_JOB || job->spec.suspend.value || world_is_over(job) ||
            job->spec.pod_template.spec.resource_claims.count == 0) {
            continue;
        }
        const struct pod like = {.spec = job->spec.pod_template.spec};
        promised += pods_to_come(s, job) * devices_wanted(&like);
        is_shared_promised = is_shared_promised || devices_wanted(&like) == 0;
    }
    const struct resource_claim *claim = scenario_object(s, KIND_RESOURCE_CLAIM, "shared");
    promised += is_shared_promised && claim->status.allocation == NULL ? 1 : 0;
    int used = devices_used(s);
    if (used + promised > 2 * DEVICES) {
        puts(trace_text(s));
        fail_msg("%d devices are in use and %lld promised, of %d", used, (long long)promised,
                 2 * DEVICES);
    }
}

void world_place_all(struct scenario *s, uint64_t seed)
{
    scenario_start(s);
    for (int i = 0; i < WORLD_JOBS; i++) {
        for (int k = 0; k < 8; k++) {
            world_do(s, &(struct op){OP_POD_APPEARS, (uint8_t)i, 0});
        }
    }
    for (int round = 0; round < 400; round++) {
        struct entry *pod = world_pod_at(s, (uint8_t)random_next(&seed));
        if (pod != NULL) {
            (void)world_bind(s, pod, (uint8_t)random_next(&seed));
        }
    }
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        const struct pod *pod = (const struct pod *)entry->value;
        if (entry->kind == KIND_POD && !pod_is_terminal(pod) && str_is_empty(pod->spec.node_name)) {
            puts(trace_text(s));
            fail_msg("pod " STR_FMT " of an admitted gang finds no place", STR_ARG(entry->key));
        }
    }
}
