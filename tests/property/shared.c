/* The accounting of shared devices, under any order of events: what all queues together are charged
 * is one for each named claim that somebody holds, however many share it, and what the other pods
 * of the gangs have of their own; once every pod has its devices that is exactly what is in use.
 * Pods that want none take nothing off. Nothing is ever negative. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/property.h"
#include "support/scenario_internal.h"
#include "support/uses.h"

#define CLASS   "gpu.example.com"
#define NODES   2
#define DEVICES 3 /* of each */
#define JOBS    12
#define CLAIMS  4

enum shared_op {
    OP_JOB_NEW = 0,
    OP_JOB_NEW_TOO,
    OP_PODS,
    OP_PODS_TOO,
    OP_POD_ENDS,
    OP_JOB_ENDS,
    OP_CLAIM_FREED,
    OP_RESTART,
    OP_CLAIM_GONE,
    OP_CLAIM_BACK,
    OP_COUNT,
};

static const char *const op_names[OP_COUNT] = {"job",        "job",       "pods",        "pods",
                                               "pod-ends",   "job-ends",  "claim-freed", "restart",
                                               "claim-gone", "claim-back"};

static const char *const namespaces[] = {"ml", "bio"};
static const char *const queues[] = {"q0", "q1", "q2"};

static void claim_name(int claim, char name[32])
{
    (void)snprintf(name, 32, "%s/shared-%d", namespaces[claim % 2], claim / 2);
}

static void given_shared(struct scenario *s, int claim)
{
    char json[300];
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"shared-%d\",\"namespace\":\"%s\"},\"spec\":{"
                   "\"devices\":{\"requests\":[{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":"
                   "\"" CLASS "\",\"count\":%d}}]}}}",
                   claim / 2, namespaces[claim % 2], claim / 2 + 1);
    given_json(s, KIND_RESOURCE_CLAIM, json);
}

static void shared_given(struct scenario *s)
{
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_node(s, "n0", "cpu=64");
    given_node(s, "n1", "cpu=64");
    given_devices(s, "n0", "g0 g1 g2");
    given_devices(s, "n1", "g0 g1 g2");
    for (int i = 0; i < (int)ARRAY_COUNT(queues); i++) {
        given_queue(s, queues[i], CLASS "=99"); /* whoever has to pay may */
    }
    for (int claim = 0; claim < CLAIMS; claim++) {
        given_shared(s, claim);
    }
}

/* -- the cluster --------------------------------------------------------------------------------
 */

static struct job *job_at(struct scenario *s, uint8_t a, char name[32])
{
    (void)snprintf(name, 32, "%s/j%d", namespaces[a % 2], a % JOBS);
    struct entry *entry = entry_find(s, KIND_JOB, name);
    return entry == NULL ? NULL : (struct job *)entry->value;
}

static bool is_of(const struct entry *entry, const struct job *job)
{
    const struct owner_reference *owner =
        entry->kind == KIND_POD ? meta_controller(entry->value) : NULL;
    return owner != NULL && str_eq(owner->uid, job->meta.uid);
}

static int64_t count_live(struct scenario *s, const struct job *job)
{
    int64_t live = 0;
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        live += is_of(entry, job) && !pod_is_terminal((const struct pod *)entry->value) ? 1 : 0;
    }
    return live;
}

static bool is_over(const struct job *job)
{
    return job->status.conditions.count > 0 &&
           str_eq_c(job->status.conditions.items[0].type, "Complete");
}

static bool is_device_free(struct scenario *s, const char *node, const char *device)
{
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        const struct resource_claim *claim = (const struct resource_claim *)entry->value;
        if (entry->kind != KIND_RESOURCE_CLAIM || claim->status.allocation == NULL) {
            continue;
        }
        const struct allocation_result_list *list = &claim->status.allocation->devices.results;
        for (uint32_t i = 0; i < list->count; i++) {
            if (str_eq_c(list->items[i].pool, node) && str_eq_c(list->items[i].device, device)) {
                return false;
            }
        }
    }
    return true;
}

/* "n0/g1 n0/g2" if so many are free there. */
static bool find_devices(struct scenario *s, const char *node, int wanted, char text[64])
{
    text[0] = '\0';
    for (int d = 0; d < DEVICES && wanted > 0; d++) {
        char device[16];
        (void)snprintf(device, sizeof(device), "g%d", d);
        if (is_device_free(s, node, device)) {
            size_t len = strlen(text);
            (void)snprintf(text + len, 64 - len, "%s/%s ", node, device);
            wanted--;
        }
    }
    return wanted == 0;
}

/* -- operations ---------------------------------------------------------------------------------
 */

static void new_job(struct scenario *s, const struct op *op)
{
    static const char *const shapes[] = {"pods=2 claim=shared-0", "pods=1 claim=shared-1",
                                         "pods=3 claim=shared-0", "pods=2 cpu=1",
                                         "pods=2 template=one",   "pods=1 template=one"};
    char name[32];
    if (job_at(s, op->a, name) != NULL) {
        return;
    }
    bool has_templates = op->a % 2 == 0; /* namespace ml */
    char options[80];
    (void)snprintf(options, sizeof(options), "%s ns=%s",
                   shapes[op->b % (has_templates ? ARRAY_COUNT(shapes) : 4)],
                   namespaces[op->a % 2]);
    given_job(s, strchr(name, '/') + 1, queues[(op->a + op->b) % 3], options);
}

/* The named claim of the pod, or NULL; its key is written down. */
static const struct entry *named_claim(struct scenario *s, const struct pod *pod, char name[64])
{
    const struct pod_resource_claim_list *claims = &pod->spec.resource_claims;
    name[0] = '\0';
    if (claims->count == 0 || !str_is_set(claims->items[0].resource_claim_name)) {
        return NULL;
    }
    (void)snprintf(name, 64, STR_FMT "/" STR_FMT, STR_ARG(pod->meta.namespace_name),
                   STR_ARG(claims->items[0].resource_claim_name));
    return entry_find(s, KIND_RESOURCE_CLAIM, name);
}

/* Devices that the pod's claim is still to get. */
static int count_wanted(const struct pod *pod, const struct resource_claim *named)
{
    if (pod->spec.resource_claims.count == 0 ||
        (named != NULL && named->status.allocation != NULL)) {
        return 0;
    }
    return named == NULL ? 1 : (int)named->spec.devices.requests.items[0].exactly->count.value;
}

static bool may_go_to(const struct pod *pod, const struct resource_claim *named, const char *node)
{
    if (named != NULL && named->status.allocation != NULL) {
        return str_eq_c(named->status.allocation->devices.results.items[0].pool, node);
    }
    struct str pin = string_map_get(&pod->spec.node_selector, "kubernetes.io/hostname");
    return str_is_empty(pin) || str_eq_c(pin, node);
}

static void bind_to(struct scenario *s, const struct pod *pod, const char *name, const char *node,
                    const char *devices)
{
    char key[64];
    const struct entry *named = named_claim(s, pod, key);
    if (named != NULL && devices[0] != '\0') {
        claim_allocated(s, key, devices);
    } else if (named == NULL && devices[0] != '\0') {
        pod_claims(s, name, "one", devices);
    }
    if (named != NULL) {
        claim_reserved(s, key, name);
    }
    pod_binds(s, name, node);
}

static void bind(struct scenario *s, struct entry *entry)
{
    const struct pod *pod = (const struct pod *)entry->value;
    char name[64];
    char key[64];
    (void)snprintf(name, sizeof(name), STR_FMT, STR_ARG(entry->key));
    const struct entry *found = named_claim(s, pod, key);
    if (key[0] != '\0' && found == NULL) {
        return; /* its claim is gone: it waits */
    }
    const struct resource_claim *named =
        found == NULL ? NULL : (const struct resource_claim *)found->value;
    for (int n = 0; n < NODES; n++) {
        char node[16];
        char devices[64];
        (void)snprintf(node, sizeof(node), "n%d", n);
        if (may_go_to(pod, named, node) &&
            find_devices(s, node, count_wanted(pod, named), devices)) {
            bind_to(s, pod, name, node, devices);
            return;
        }
    }
}

static void make_pods(struct scenario *s, const struct op *op)
{
    char name[32];
    struct job *job = job_at(s, op->a, name);
    if (job == NULL || job->spec.suspend.value || is_over(job)) {
        return;
    }
    int64_t left = job->spec.completions.value - job->status.succeeded.value;
    if (count_live(s, job) < left) {
        pods_appear(s, name, 1);
    }
    struct entry *next;
    for (struct entry *entry = s->first; entry != NULL; entry = next) {
        next = entry->next;
        const struct pod *pod = (const struct pod *)entry->value;
        if (is_of(entry, job) && !pod_is_terminal(pod) && str_is_empty(pod->spec.node_name)) {
            bind(s, entry);
            return;
        }
    }
}

static void end_pod(struct scenario *s, const struct op *op)
{
    uint32_t wanted = op->a;
    for (int round = 0; round < 2; round++) {
        for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
            const struct pod *pod = (const struct pod *)entry->value;
            bool is_running =
                entry->kind == KIND_POD && !pod_is_terminal(pod) && str_is_set(pod->spec.node_name);
            if (is_running && wanted-- % 8 == 0) {
                char name[64];
                (void)snprintf(name, sizeof(name), STR_FMT, STR_ARG(entry->key));
                pod_succeeds(s, name);
                return;
            }
        }
    }
}

static bool has_live_consumer(struct scenario *s, const struct resource_claim *claim)
{
    for (uint32_t i = 0; i < claim->status.reserved_for.count; i++) {
        for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
            if (entry->kind == KIND_POD &&
                str_eq(entry->value->uid, claim->status.reserved_for.items[i].uid) &&
                !pod_is_terminal((const struct pod *)entry->value)) {
                return true;
            }
        }
    }
    return false;
}

/* The claim controller's part: free when the last has left, and not before. */
static void free_claims(struct scenario *s)
{
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        const struct resource_claim *claim = (const struct resource_claim *)entry->value;
        if (entry->kind == KIND_RESOURCE_CLAIM && claim->status.allocation != NULL &&
            !has_live_consumer(s, claim)) {
            char name[64];
            (void)snprintf(name, sizeof(name), STR_FMT, STR_ARG(entry->key));
            claim_freed(s, name);
        }
    }
}

static void change_claim(struct scenario *s, const struct op *op)
{
    char name[32];
    claim_name(op->a % CLAIMS, name);
    const struct entry *entry = entry_find(s, KIND_RESOURCE_CLAIM, name);
    if (op->kind == OP_CLAIM_BACK && entry == NULL) {
        given_shared(s, op->a % CLAIMS);
    } else if (op->kind == OP_CLAIM_GONE && entry != NULL && op->b % 4 == 0 &&
               ((const struct resource_claim *)entry->value)->status.allocation == NULL) {
        object_gone(s, KIND_RESOURCE_CLAIM, name);
    }
}

static void shared_do(struct scenario *s, const struct op *op)
{
    char name[32];
    switch ((enum shared_op)op->kind) {
    case OP_JOB_NEW:
    case OP_JOB_NEW_TOO:
        new_job(s, op);
        break;
    case OP_PODS:
    case OP_PODS_TOO:
        make_pods(s, op);
        break;
    case OP_POD_ENDS:
        end_pod(s, op);
        break;
    case OP_JOB_ENDS:
        if (op->b % 4 == 0 && job_at(s, op->a, name) != NULL &&
            count_live(s, job_at(s, op->a, name)) > 0) {
            job_finishes(s, name);
        }
        break;
    case OP_CLAIM_FREED:
        free_claims(s);
        break;
    case OP_RESTART:
        if (op->b % 4 == 0) {
            struct uses before = uses_read(scenario_core(s), CLASS);
            listing_order(s, op->a);
            restart(s, op->a % 2 == 0 ? WITH_ADMISSIONS : WITHOUT_ADMISSIONS);
            check_same_payers(before, uses_read(scenario_core(s), CLASS));
        }
        break;
    case OP_CLAIM_GONE:
    case OP_CLAIM_BACK:
        change_claim(s, op);
        break;
    case OP_COUNT:
        break;
    }
}

/* -- what has to hold ---------------------------------------------------------------------------
 */

struct account {
    int64_t charged;   /* what the queues should be charged together */
    int64_t in_use;    /* devices that a live pod has */
    bool is_all_there; /* every pod of every gang has its devices */
};

static bool is_held(struct scenario *s, const struct job *job)
{
    bool has_record = str_is_set(string_map_get(&job->meta.annotations, "tallyman.dev/admission"));
    return has_record && !(is_over(job) && count_live(s, job) == 0);
}

/* All its pods are there and bound. */
static bool is_whole(struct scenario *s, const struct job *job, int64_t live, int64_t left)
{
    bool is_bound = true;
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        const struct pod *pod = (const struct pod *)entry->value;
        is_bound = is_bound && !(is_of(entry, job) && str_is_empty(pod->spec.node_name));
    }
    return is_bound && live == left && live > 0;
}

static void hold_claim(const struct job *job, struct str claim_name_text, bool held[CLAIMS])
{
    for (int claim = 0; claim < CLAIMS; claim++) {
        char name[32];
        char own[64];
        claim_name(claim, name);
        (void)snprintf(own, sizeof(own), STR_FMT "/" STR_FMT, STR_ARG(job->meta.namespace_name),
                       STR_ARG(claim_name_text));
        held[claim] = held[claim] || strcmp(name, own) == 0;
    }
}

static void add_job(struct scenario *s, const struct job *job, bool held[CLAIMS],
                    struct account *account)
{
    if (!is_held(s, job)) {
        return;
    }
    int64_t live = count_live(s, job);
    int64_t left = is_over(job) ? 0 : job->spec.completions.value - job->status.succeeded.value;
    account->is_all_there = account->is_all_there && is_whole(s, job, live, left);
    const struct pod_resource_claim_list *claims = &job->spec.pod_template.spec.resource_claims;
    if (claims->count == 0) {
        return;
    }
    if (str_is_set(claims->items[0].resource_claim_template_name)) {
        account->charged += live > left ? live : left;
    } else {
        hold_claim(job, claims->items[0].resource_claim_name, held);
    }
}

static struct account account_of_cluster(struct scenario *s)
{
    struct account account = {.is_all_there = true};
    bool held[CLAIMS] = {false};
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        const struct resource_claim *claim = (const struct resource_claim *)entry->value;
        if (entry->kind == KIND_JOB) {
            add_job(s, (const struct job *)entry->value, held, &account);
        } else if (entry->kind == KIND_RESOURCE_CLAIM && claim->status.allocation != NULL &&
                   has_live_consumer(s, claim)) {
            account.in_use += claim->status.allocation->devices.results.count;
        }
    }
    for (int claim = 0; claim < CLAIMS; claim++) {
        char name[32];
        claim_name(claim, name);
        bool is_there = entry_find(s, KIND_RESOURCE_CLAIM, name) != NULL;
        account.charged += held[claim] && is_there ? claim / 2 + 1 : 0;
    }
    return account;
}

static void check_accounts(struct scenario *s)
{
    struct arena arena;
    arena_init(&arena);
    struct queue_figures_list list = core_queue_figures(scenario_core(s), &arena);
    int64_t charged = 0;
    for (uint32_t q = 0; q < list.count; q++) {
        for (uint32_t c = 0; c < list.items[q].cell_count; c++) {
            const struct cell_figures *cell = &list.items[q].cells[c];
            assert_true(cell->used_milli >= 0);
            charged += str_eq_c(cell->resource, CLASS) ? cell->used_milli / 1000 : 0;
        }
    }
    arena_deinit(&arena);
    struct account account = account_of_cluster(s);
    bool is_right = charged == account.charged && account.in_use <= charged &&
                    (!account.is_all_there || account.in_use == charged);
    if (!is_right) {
        puts(trace_text(s));
        fail_msg("%lld devices are charged, not %lld; %lld are in use%s", (long long)charged,
                 (long long)account.charged, (long long)account.in_use,
                 account.is_all_there ? ", and none is to come" : "");
    }
    assert_null(strstr(trace_text(s), " -"));
}

static void payers_pay_for_what_is_in_use(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct scenario *s = scenario_new();
    (void)seed;
    shared_given(s);
    scenario_start(s);
    for (uint32_t i = 0; i < count; i++) {
        shared_do(s, &ops[i]);
        check_accounts(s);
    }
    scenario_free(s);
}

int main(void)
{
    const struct property shared = {.name = "payers pay for what is in use, once",
                                    .cases = 600,
                                    .ops = 100,
                                    .kinds = OP_COUNT,
                                    .kind_names = op_names,
                                    .run = payers_pay_for_what_is_in_use};
    return property_check(&shared);
}
