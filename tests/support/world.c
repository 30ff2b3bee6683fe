#include "support/world.h"

#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario_internal.h"

#define NODES   3
#define DEVICES 2 /* of each of the first two nodes */

const char *const world_op_names[OP_COUNT] = {
    [OP_JOB_NEW] = "job-new",
    [OP_JOB_NEW_TOO] = "job-new",
    [OP_POD_APPEARS] = "pod-appears",
    [OP_POD_BINDS] = "pod-binds",
    [OP_POD_BINDS_TOO] = "pod-binds",
    [OP_POD_READY] = "pod-ready",
    [OP_POD_SUCCEEDS] = "pod-succeeds",
    [OP_JOB_FINISHES] = "job-finishes",
    [OP_GANG_STOPS] = "gang-stops",
    [OP_TIME] = "time",
    [OP_JOB_DELETED] = "job-deleted",
    [OP_JOB_RECREATED] = "job-recreated",
    [OP_POD_GONE] = "pod-gone",
    [OP_POD_TERMINATES] = "pod-terminates",
    [OP_QUOTA] = "quota",
    [OP_NODE] = "node",
    [OP_FOREIGN_POD] = "foreign-pod",
    [OP_USER_SUSPENDS] = "user-suspends",
    [OP_JOB_RESIZED] = "job-resized",
    [OP_HOLD] = "hold",
    [OP_RELABEL] = "relabel",
    [OP_AGAIN] = "again",
    [OP_CLAIM_FREED] = "claim-freed",
    [OP_PRIORITY] = "priority",
    [OP_TEMPLATE] = "template",
};

static const char *const queues[] = {"q", "strict", "late"};
static const char *const shapes[] = {
    "pods=1 cpu=1",
    "pods=2 cpu=1",
    "pods=3 cpu=1",
    "pods=2 cpu=2",
    "pods=1 cpu=3",
    "pods=4 cpu=1 min=2",
    "pods=1 cpu=500m template=one",
    "pods=2 cpu=500m template=one",
    "pods=1 cpu=1 template=two",
    "pods=3 cpu=1 selector=kind:a",
    "pods=2 cpu=1 priority=high",
    "pods=6 cpu=1",
    "pods=2 cpu=1 claim=shared",
    "parallelism=2 completions=5 cpu=1",
};

static bool deletes_cleanly;

void world_deletes_cleanly(bool is_clean)
{
    deletes_cleanly = is_clean;
}

void world_given(struct scenario *s)
{
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_template(s, "one", "gpu.example.com", 1);
    given_template(s, "two", "gpu.example.com", 2);
    given_claim(s, "shared", "gpu.example.com", 1);
    given_node(s, "n0", "cpu=4 label=kind:a");
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=3 pods=4 label=kind:a");
    given_devices(s, "n0", "g0 g1");
    given_devices(s, "n1", "g0 g1");
    given_priority_class(s, "high", 10);
    given_queue(s, "q", "cpu=7 gpu.example.com=3 timeout=2m base=30s");
    given_queue(s, "strict", "cpu=5 gpu.example.com=2 strategy=StrictFIFO timeout=3m base=30s");
}

/* -- looking at the scenario --------------------------------------------------------------------
 */

static struct job *job_at(struct scenario *s, uint8_t a, char name[16])
{
    (void)snprintf(name, 16, "j%d", a % WORLD_JOBS);
    struct entry *entry = entry_find(s, KIND_JOB, name);
    return entry == NULL ? NULL : (struct job *)entry->value;
}

static bool is_over(const struct job *job)
{
    return job->status.conditions.count > 0 &&
           !str_eq_c(job->status.conditions.items[0].type, "Suspended");
}

static struct str job_uid_of(const struct pod *pod)
{
    const struct owner_reference *owner = meta_controller(&pod->meta);
    return owner == NULL ? STR_NONE : owner->uid;
}

static int pods_of(struct scenario *s, const struct job *job, bool is_live_only)
{
    int count = 0;
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        const struct pod *pod = (const struct pod *)entry->value;
        if (entry->kind == KIND_POD && str_eq(job_uid_of(pod), job->meta.uid)) {
            count += is_live_only && pod_is_terminal(pod) ? 0 : 1;
        }
    }
    return count;
}

static int64_t milli_of(const struct pod_spec *spec)
{
    const struct resource_list *requests = &spec->containers.items[0].resources.requests;
    return requests->count == 0 ? 0 : quantity_milli_up(requests->items[0].value);
}

/* The n-th pod of a Job, counted round. */
static struct entry *pod_at(struct scenario *s, uint8_t n)
{
    uint32_t count = 0;
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        count += entry->kind == KIND_POD ? 1 : 0;
    }
    if (count == 0) {
        return NULL;
    }
    uint32_t wanted = n % count;
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        if (entry->kind == KIND_POD && wanted-- == 0) {
            return entry;
        }
    }
    return NULL;
}

static void name_of(const struct entry *entry, char name[64])
{
    (void)snprintf(name, 64, STR_FMT, STR_ARG(entry->key));
}

/* -- the scheduler's part -----------------------------------------------------------------------
 */

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

static bool bind(struct scenario *s, struct entry *entry, uint8_t choice)
{
    struct pod *pod = (struct pod *)entry->value;
    if (!str_is_empty(pod->spec.node_name) || pod_is_terminal(pod) ||
        pod->meta.deletion_timestamp.is_set) {
        return true;
    }
    char name[64];
    name_of(entry, name);
    for (int i = 0; i < NODES; i++) {
        char node[16];
        char devices[64];
        (void)snprintf(node, sizeof(node), "n%d", (choice + i) % NODES);
        struct entry *node_entry = entry_find(s, KIND_NODE, node);
        int wanted = devices_wanted(pod);
        if (node_entry == NULL || !has_room(s, (const struct node *)node_entry->value, pod) ||
            !claim_reaches(s, pod, node) || free_devices(s, node, devices, wanted) < wanted) {
            continue;
        }
        /* The scheduler writes the claim first, then binds. */
        if (wanted > 0) {
            pod_claims(s, name, wanted == 2 ? "two" : "one", devices);
        } else if (pod->spec.resource_claims.count > 0) {
            const struct resource_claim *claim = scenario_object(s, KIND_RESOURCE_CLAIM, "shared");
            if (claim->status.allocation == NULL) {
                (void)free_devices(s, node, devices, 1);
                claim_allocated(s, "shared", devices);
            }
        }
        if (entry_find(s, KIND_POD, name) == entry) {
            pod_binds(s, name, node);
        }
        return true;
    }
    return false;
}

/* -- operations ---------------------------------------------------------------------------------
 */

static void job_new(struct scenario *s, const struct op *op, bool is_again)
{
    char name[16];
    struct job *job = job_at(s, op->a, name);
    const char *queue = queues[op->b % 2];
    const char *options = shapes[(op->a / WORLD_JOBS + op->b) % ARRAY_COUNT(shapes)];
    if (job == NULL) {
        given_job(s, name, queue, options);
    } else if (is_again && pods_of(s, job, false) == 0) {
        job_recreated(s, name, queue, options);
    }
}

static void pod_appears(struct scenario *s, const struct op *op)
{
    char name[16];
    struct job *job = job_at(s, op->a, name);
    if (job == NULL || job->spec.suspend.value || is_over(job)) {
        return;
    }
    int64_t left = job->spec.completions.value - job->status.succeeded.value;
    int64_t wanted = job->spec.parallelism.value < left ? job->spec.parallelism.value : left;
    if (pods_of(s, job, true) < wanted) {
        pods_appear(s, name, 1);
    }
}

static void on_pod(struct scenario *s, const struct op *op)
{
    struct entry *entry = pod_at(s, op->a);
    if (entry == NULL) {
        return;
    }
    char name[64];
    name_of(entry, name);
    const struct pod *pod = (const struct pod *)entry->value;
    bool is_live = !pod_is_terminal(pod) && !str_is_empty(pod->spec.node_name);
    if (op->kind == OP_POD_READY && is_live) {
        pod_is_ready_now(s, name, op->b % 8 != 0);
    } else if (op->kind == OP_POD_SUCCEEDS && is_live && op->b % 3 == 0) {
        pod_succeeds(s, name);
    } else if (op->kind == OP_POD_TERMINATES && !pod_is_terminal(pod)) {
        pod_terminates(s, name);
    } else if (op->kind == OP_POD_GONE &&
               (pod->meta.deletion_timestamp.is_set || !str_is_set(job_uid_of(pod)))) {
        pod_gone(s, name);
    }
}

/* The claim controller takes away what nobody uses any more. */
static void free_claims(struct scenario *s)
{
    struct entry *next;
    for (struct entry *entry = s->first; entry != NULL; entry = next) {
        next = entry->next;
        struct resource_claim *claim = (struct resource_claim *)entry->value;
        if (entry->kind != KIND_RESOURCE_CLAIM || claim->status.allocation == NULL) {
            continue;
        }
        bool is_used = false;
        for (struct entry *other = s->first; other != NULL; other = other->next) {
            const struct pod *pod = (const struct pod *)other->value;
            if (other->kind != KIND_POD || pod_is_terminal(pod)) {
                continue;
            }
            bool is_shared =
                pod->spec.resource_claims.count > 0 &&
                str_eq(pod->spec.resource_claims.items[0].resource_claim_name, claim->meta.name);
            is_used = is_used || is_shared ||
                      (str_starts_with(claim->meta.name, pod->meta.name) &&
                       !str_eq_c(claim->meta.name, "shared"));
        }
        if (!is_used) {
            char name[64];
            name_of(entry, name);
            claim_freed(s, name);
            break;
        }
    }
}

static void change_cluster(struct scenario *s, const struct op *op)
{
    static const char *const quotas[] = {
        "cpu=7 gpu.example.com=3 timeout=2m base=30s", "cpu=3 gpu.example.com=1 timeout=2m",
        "cpu=9 gpu.example.com=4 timeout=2m base=30s strategy=StrictFIFO",
        "cpu=7 gpu.example.com=3 stop=Hold"};
    static const char *const nodes[] = {"cpu=4", "cpu=4 label=kind:a", "cpu=4 cordoned=true",
                                        "cpu=2", "cpu=4 ready=False",  "cpu=4 taint=t:NoSchedule"};
    char name[16];
    switch (op->kind) {
    case OP_QUOTA:
        given_queue(s, queues[op->a % 3], quotas[op->b % ARRAY_COUNT(quotas)]);
        break;
    case OP_NODE:
        (void)snprintf(name, sizeof(name), "n%d", op->a % NODES);
        if (op->b % 16 == 0 && entry_find(s, KIND_NODE, name) != NULL) {
            object_gone(s, KIND_NODE, name);
        } else {
            given_node(s, name, nodes[op->b % ARRAY_COUNT(nodes)]);
        }
        break;
    case OP_FOREIGN_POD:
        (void)snprintf(name, sizeof(name), "x%d", op->a % 3);
        if (entry_find(s, KIND_POD, name) != NULL && op->b % 2 == 0) {
            object_gone(s, KIND_POD, name);
        } else if (entry_find(s, KIND_POD, name) == NULL) {
            char node[16];
            (void)snprintf(node, sizeof(node), "n%d", op->b % NODES);
            given_pod(s, name, node, op->a % 2 == 0 ? "cpu=1" : "cpu=2");
        }
        break;
    case OP_PRIORITY:
        given_priority_class(s, "high", op->a % 3 * 10 - 5);
        break;
    case OP_TEMPLATE:
        if (entry_find(s, KIND_RESOURCE_CLAIM_TEMPLATE, "one") != NULL) {
            object_gone(s, KIND_RESOURCE_CLAIM_TEMPLATE, "one");
        } else {
            given_template(s, "one", "gpu.example.com", 1);
        }
        break;
    default:
        break;
    }
}

static void change_job(struct scenario *s, const struct op *op)
{
    char name[16];
    struct job *job = job_at(s, op->a, name);
    if (job == NULL) {
        return;
    }
    bool is_hold = str_is_set(string_map_get(&job->meta.annotations, "tallyman.dev/hold"));
    switch (op->kind) {
    case OP_JOB_FINISHES:
        if (!is_over(job) && !job->spec.suspend.value && pods_of(s, job, true) > 0) {
            job_finishes(s, name);
        }
        break;
    case OP_GANG_STOPS:
        if (job->spec.suspend.value && job->status.start_time.is_set && !is_over(job)) {
            gang_stops(s, name);
        }
        break;
    case OP_JOB_DELETED:
        if (pods_of(s, job, true) == 0 || !deletes_cleanly) {
            job_deleted_now(s, name);
        }
        break;
    case OP_USER_SUSPENDS:
        job_suspended_by_user(s, name, op->b % 2 == 0);
        break;
    case OP_JOB_RESIZED:
        job_resized(s, name, op->b % 5, op->b % 5 == 0 ? 1 : op->b % 5);
        break;
    case OP_HOLD:
        job_annotated(s, name, "tallyman.dev/hold", is_hold ? NULL : "true");
        break;
    case OP_RELABEL:
        job_relabelled(s, name, op->b % 4 == 3 ? "" : queues[op->b % 4]);
        break;
    default:
        break;
    }
}

static void again(struct scenario *s, const struct op *op)
{
    uint32_t wanted = (uint32_t)op->a % (HASH_COUNT(s->entries) + 1);
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        if (wanted-- == 0) {
            tell(s, entry);
            return;
        }
    }
}

void world_do(struct scenario *s, const struct op *op)
{
    scenario_start(s);
    struct entry *pod;
    switch ((enum world_op)op->kind) {
    case OP_JOB_NEW:
    case OP_JOB_NEW_TOO:
    case OP_JOB_RECREATED:
        job_new(s, op, op->kind == OP_JOB_RECREATED);
        break;
    case OP_POD_APPEARS:
        pod_appears(s, op);
        break;
    case OP_POD_BINDS:
    case OP_POD_BINDS_TOO:
        pod = pod_at(s, op->a);
        if (pod != NULL) {
            (void)bind(s, pod, op->b);
        }
        break;
    case OP_TIME:
        at(s, scenario_now_ms(s) + 1000 * (int64_t)(op->a % 60 + 1));
        break;
    case OP_AGAIN:
        again(s, op);
        break;
    case OP_CLAIM_FREED:
        free_claims(s);
        break;
    case OP_POD_READY:
    case OP_POD_SUCCEEDS:
    case OP_POD_GONE:
    case OP_POD_TERMINATES:
        on_pod(s, op);
        break;
    case OP_JOB_FINISHES:
    case OP_GANG_STOPS:
    case OP_JOB_DELETED:
    case OP_USER_SUSPENDS:
    case OP_JOB_RESIZED:
    case OP_HOLD:
    case OP_RELABEL:
        change_job(s, op);
        break;
    case OP_QUOTA:
    case OP_NODE:
    case OP_FOREIGN_POD:
    case OP_PRIORITY:
    case OP_TEMPLATE:
        change_cluster(s, op);
        break;
    case OP_COUNT:
        break;
    }
}

/* -- what has to hold ---------------------------------------------------------------------------
 */

void world_check_devices(struct scenario *s)
{
    int used = 0;
    for (int n = 0; n < 2; n++) {
        for (int d = 0; d < DEVICES; d++) {
            char node[16];
            char device[16];
            (void)snprintf(node, sizeof(node), "n%d", n);
            (void)snprintf(device, sizeof(device), "g%d", d);
            used += is_device_used(s, node, device) ? 1 : 0;
        }
    }
    int promised = 0;
    bool is_shared_promised = false;
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        const struct job *job = (const struct job *)entry->value;
        if (entry->kind != KIND_JOB || job->spec.suspend.value || is_over(job) ||
            job->spec.pod_template.spec.resource_claims.count == 0) {
            continue;
        }
        const struct pod like = {.spec = job->spec.pod_template.spec};
        int64_t left = job->spec.completions.value - job->status.succeeded.value;
        int64_t wanted = job->spec.parallelism.value < left ? job->spec.parallelism.value : left;
        for (struct entry *other = s->first; other != NULL; other = other->next) {
            const struct pod *pod = (const struct pod *)other->value;
            bool is_placed = other->kind == KIND_POD && str_eq(job_uid_of(pod), job->meta.uid) &&
                             !pod_is_terminal(pod) && !str_is_empty(pod->spec.node_name);
            wanted -= is_placed ? 1 : 0;
        }
        promised += wanted > 0 ? (int)wanted * devices_wanted(&like) : 0;
        is_shared_promised = is_shared_promised || devices_wanted(&like) == 0;
    }
    const struct resource_claim *claim = scenario_object(s, KIND_RESOURCE_CLAIM, "shared");
    promised += is_shared_promised && claim->status.allocation == NULL ? 1 : 0;
    if (used + promised > 2 * DEVICES) {
        fail_msg("%d devices are in use and %d promised, of %d\n%s", used, promised, 2 * DEVICES,
                 trace_text(s));
    }
}

void world_place_all(struct scenario *s, uint64_t seed)
{
    scenario_start(s);
    for (int i = 0; i < WORLD_JOBS; i++) {
        for (int k = 0; k < 8; k++) {
            pod_appears(s, &(struct op){OP_POD_APPEARS, (uint8_t)i, 0});
        }
    }
    for (int round = 0; round < 400; round++) {
        struct entry *pod = pod_at(s, (uint8_t)random_next(&seed));
        if (pod != NULL) {
            (void)bind(s, pod, (uint8_t)random_next(&seed));
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
