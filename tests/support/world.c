#include "support/world_internal.h"

#include <stdio.h>
#include <string.h>

#include "support/check.h"

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

struct job *world_job_at(struct scenario *s, uint8_t a, char name[16])
{
    (void)snprintf(name, 16, "j%d", a % WORLD_JOBS);
    struct entry *entry = entry_find(s, KIND_JOB, name);
    return entry == NULL ? NULL : (struct job *)entry->value;
}

bool world_is_over(const struct job *job)
{
    return job->status.conditions.count > 0 &&
           !str_eq_c(job->status.conditions.items[0].type, "Suspended");
}

struct str world_job_uid_of(const struct pod *pod)
{
    const struct owner_reference *owner = meta_controller(&pod->meta);
    return owner == NULL ? STR_NONE : owner->uid;
}

int world_pods_of(struct scenario *s, const struct job *job, bool is_live_only)
{
    int count = 0;
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        const struct pod *pod = (const struct pod *)entry->value;
        if (entry->kind == KIND_POD && str_eq(world_job_uid_of(pod), job->meta.uid)) {
            count += is_live_only && pod_is_terminal(pod) ? 0 : 1;
        }
    }
    return count;
}

/* The n-th pod of a Job, counted round. */
struct entry *world_pod_at(struct scenario *s, uint8_t n)
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

void world_name_of(const struct entry *entry, char name[64])
{
    (void)snprintf(name, 64, STR_FMT, STR_ARG(entry->key));
}

/* -- operations ---------------------------------------------------------------------------------
 */

static void job_new(struct scenario *s, const struct op *op, bool is_again)
{
    char name[16];
    struct job *job = world_job_at(s, op->a, name);
    const char *queue = queues[op->b % 2];
    const char *options = shapes[(op->a / WORLD_JOBS + op->b) % ARRAY_COUNT(shapes)];
    if (job == NULL) {
        given_job(s, name, queue, options);
    } else if (is_again && world_pods_of(s, job, false) == 0) {
        job_recreated(s, name, queue, options);
    }
}

static void pod_appears(struct scenario *s, const struct op *op)
{
    char name[16];
    struct job *job = world_job_at(s, op->a, name);
    if (job == NULL || job->spec.suspend.value || world_is_over(job)) {
        return;
    }
    int64_t left = job->spec.completions.value - job->status.succeeded.value;
    int64_t wanted = job->spec.parallelism.value < left ? job->spec.parallelism.value : left;
    if (world_pods_of(s, job, true) < wanted) {
        pods_appear(s, name, 1);
    }
}

static void end_pod(struct scenario *s, const struct op *op, const struct pod *pod,
                    const char *name)
{
    bool is_going = pod->meta.deletion_timestamp.is_set || !str_is_set(world_job_uid_of(pod));
    if (op->kind == OP_POD_TERMINATES && !pod_is_terminal(pod)) {
        pod_terminates(s, name);
    } else if (op->kind == OP_POD_GONE && is_going) {
        pod_gone(s, name);
    }
}

static void on_pod(struct scenario *s, const struct op *op)
{
    struct entry *entry = world_pod_at(s, op->a);
    if (entry == NULL) {
        return;
    }
    char name[64];
    world_name_of(entry, name);
    const struct pod *pod = (const struct pod *)entry->value;
    bool is_live = !pod_is_terminal(pod) && !str_is_empty(pod->spec.node_name);
    if (op->kind == OP_POD_READY && is_live) {
        pod_is_ready_now(s, name, op->b % 8 != 0);
    } else if (op->kind == OP_POD_SUCCEEDS && is_live && op->b % 3 == 0) {
        pod_succeeds(s, name);
    } else {
        end_pod(s, op, pod, name);
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
            world_name_of(entry, name);
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
        (void)snprintf(name, sizeof(name), "n%d", op->a % WORLD_NODES);
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
            (void)snprintf(node, sizeof(node), "n%d", op->b % WORLD_NODES);
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

static void end_job(struct scenario *s, const struct op *op)
{
    char name[16];
    struct job *job = world_job_at(s, op->a, name);
    if (job == NULL) {
        return;
    }
    bool is_suspended = job->spec.suspend.value;
    int live = world_pods_of(s, job, true);
    if (op->kind == OP_JOB_DELETED) {
        if (live == 0 || !deletes_cleanly) {
            job_deleted_now(s, name);
        }
    } else if (world_is_over(job)) {
        return;
    } else if (op->kind == OP_JOB_FINISHES && !is_suspended && live > 0) {
        job_finishes(s, name);
    } else if (op->kind == OP_GANG_STOPS && is_suspended && job->status.start_time.is_set) {
        gang_stops(s, name);
    }
}

static void change_job(struct scenario *s, const struct op *op)
{
    char name[16];
    struct job *job = world_job_at(s, op->a, name);
    if (job == NULL) {
        return;
    }
    bool is_hold = str_is_set(string_map_get(&job->meta.annotations, "tallyman.dev/hold"));
    switch (op->kind) {
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
        pod = world_pod_at(s, op->a);
        if (pod != NULL) {
            (void)world_bind(s, pod, op->b);
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
        end_job(s, op);
        break;
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
