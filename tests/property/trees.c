/* Random trees of queues under load: gangs come, start, end, stop others and are stopped. Nothing
 * is ever over quota anywhere in the tree, nobody's guaranteed part is lent away, every admitted
 * gang's pods find their places whichever nodes are chosen, whoever was stopped for makes use of
 * it, and once all has settled the reference model finds nobody who could start. A controller that
 * starts anew decides the same. */
#include <stdio.h>
#include <string.h>

#include "model/manifest.h"
#include "model/policy.h"
#include "support/check.h"
#include "support/property.h"
#include "support/scenario_internal.h"

enum { OP_ARRIVE, OP_ARRIVE_TOO, OP_BIND, OP_STOP, OP_FINISH, OP_SETTLE, OP_RESTART, OP_KINDS };

static const char *const op_names[OP_KINDS] = {
    [OP_ARRIVE] = "arrive",   [OP_ARRIVE_TOO] = "arrive", [OP_BIND] = "bind",
    [OP_STOP] = "stop",       [OP_FINISH] = "finish",     [OP_SETTLE] = "settle",
    [OP_RESTART] = "restart",
};

#define ROUNDS_MAX 60

struct load {
    struct scenario *s;
    struct model_state all; /* every gang that may come; whether one has is the scenario's matter */
    uint64_t random;
};

/* -- the objects --------------------------------------------------------------------------------
 */

struct choice {
    struct scenario *s;
    bool is_jobs; /* these alone, else all others */
};

static void give(struct sink *sink, const struct document *document)
{
    struct choice *choice = sink->ctx;
    if ((document->kind == KIND_JOB) == choice->is_jobs) {
        given_json(choice->s, document->kind, document_json(sink->arena, document).ptr);
    }
}

static void give_objects(struct load *load, const struct model_state *state, bool is_jobs)
{
    struct choice choice = {load->s, is_jobs};
    struct sink sink = {.arena = &load->s->arena, .take = give, .ctx = &choice};
    state_objects(state, &sink);
}

static struct load load_new(uint64_t seed)
{
    struct load load = {.s = scenario_new(), .random = seed};
    state_generate(&load.all, seed, (struct kinds){.may_be_contested = true});
    load.all.is_dra = false;
    for (int q = 0; q < QUEUES; q++) {
        load.all.queues[q].protect_s = 0; /* no time passes here */
        load.all.queues[q].is_stopped = false;
    }
    for (int g = 0; g < GANGS; g++) {
        struct model_gang *gang = &load.all.gangs[g];
        gang->is_partial = gang->is_held = gang->is_running = false;
        for (int p = 0; p < PODS_MAX; p++) {
            gang->nodes[p] = NONE;
        }
    }
    struct model_state empty = load.all;
    for (int g = 0; g < GANGS; g++) {
        empty.gangs[g].exists = false;
    }
    give_objects(&load, &empty, false);
    scenario_start(load.s);
    return load;
}

static void name_job(int g, char name[16])
{
    (void)snprintf(name, 16, "quay/g%d", g);
}

static struct job *job_of(const struct load *load, int g)
{
    char name[16];
    name_job(g, name);
    struct entry *entry = entry_find(load->s, KIND_JOB, name);
    return entry == NULL ? NULL : (struct job *)entry->value;
}

static bool is_over(const struct job *job)
{
    return job->status.conditions.count > 0 &&
           str_eq_c(job->status.conditions.items[0].type, "Complete");
}

static struct str record_of(const struct job *job)
{
    return string_map_get(&job->meta.annotations, "tallyman.dev/admission");
}

static bool is_stopping(const struct job *job)
{
    return job->spec.suspend.value && str_is_set(record_of(job));
}

static struct entry *pod_of(const struct load *load, int g, int p)
{
    char name[40];
    (void)snprintf(name, sizeof(name), "quay/g%d-%d", g, p);
    return entry_find(load->s, KIND_POD, name);
}

/* -- the cluster as the model sees it ------------------------------------------------------------
 */

static int flavor_in(struct str record)
{
    for (size_t i = 0; i + 3 < record.len; i++) {
        const char *p = record.ptr + i;
        if (p[0] == ':' && p[1] == '"' && p[2] == 'f' && p[3] >= '0' && p[3] < '0' + FLAVORS) {
            return p[3] - '0';
        }
    }
    fail_msg("no flavor in " STR_FMT, STR_ARG(record));
    return NONE;
}

static void read_gang(const struct load *load, struct model_state *state, int g)
{
    struct model_gang *gang = &state->gangs[g];
    const struct job *job = job_of(load, g);
    gang->exists = job != NULL && !is_over(job);
    gang->is_running = gang->exists && str_is_set(record_of(job));
    if (!gang->is_running) {
        return;
    }
    int flavor = flavor_in(record_of(job));
    gang->flavor =
        choice_of(gang->ask[CPU] > 0 ? flavor : NONE, gang->ask[DEVICE] > 0 ? flavor : NONE);
    gang->runs_s = 0;
    gang->saved_s = NONE;
    for (int p = 0; p < gang->count; p++) {
        struct entry *pod = pod_of(load, g, p);
        struct str node = pod == NULL ? STR_NONE : ((struct pod *)pod->value)->spec.node_name;
        gang->nodes[p] = str_is_empty(node) ? NONE : node.ptr[1] - '0';
    }
}

static struct model_state read_cluster(const struct load *load)
{
    struct model_state state = load->all;
    for (int g = 0; g < GANGS; g++) {
        read_gang(load, &state, g);
    }
    return state;
}

/* -- quota --------------------------------------------------------------------------------------
 */

static bool is_below(const struct model_state *state, int member, int above)
{
    while (member != NONE && member != above) {
        member = state->members[member].parent;
    }
    return member == above;
}

/* What the gangs below hold, and what those below own, without any rule of lending. */
static void sum_below(const struct books *books, int above, struct cell at, int *ret_used,
                      int *ret_owned)
{
    const struct model_state *state = books->state;
    *ret_used = *ret_owned = 0;
    for (int m = 0; m < MEMBERS; m++) {
        if (!state->members[m].exists || !is_below(state, m, above)) {
            continue;
        }
        int nominal = state->members[m].quota[at.flavor][at.resource].nominal;
        *ret_owned += nominal > 0 ? nominal : 0;
        *ret_used += m >= COHORTS ? tree_used(books, m, at) : 0;
    }
}

static void check_member(const struct books *books, int m, struct cell at)
{
    const struct model_state *state = books->state;
    const struct quota *quota = &state->members[m].quota[at.flavor][at.resource];
    int used = tree_used(books, m, at);
    int subtree = tree_subtree(state, m, at);
    int root = m;
    while (state->members[root].parent != NONE) {
        root = state->members[root].parent;
    }
    if (root == m && used > subtree) {
        fail_msg("member %d uses %d of its %d", m, used, subtree);
    }
    if (quota->borrowing != NONE && used > subtree + quota->borrowing) {
        fail_msg("member %d uses %d of %d and %d borrowed", m, used, subtree, quota->borrowing);
    }
    int all_used;
    int all_owned;
    int own_used;
    int own_owned;
    sum_below(books, root, at, &all_used, &all_owned);
    sum_below(books, m, at, &own_used, &own_owned);
    int kept = tree_guaranteed(state, m, at);
    if (root != m && all_used - own_used > all_owned - kept) {
        fail_msg("others use %d of %d, of which %d are kept for member %d", all_used - own_used,
                 all_owned, kept, m);
    }
}

static void check_quota(const struct load *load)
{
    struct model_state state = read_cluster(load);
    struct books books = books_at_first(&state, NULL);
    for (int m = 0; m < MEMBERS; m++) {
        for (int i = 0; state.members[m].exists && i < FLAVORS * RESOURCES; i++) {
            check_member(&books, m, (struct cell){i / RESOURCES, (enum resource)(i % RESOURCES)});
        }
    }
}

/* -- what happens -------------------------------------------------------------------------------
 */

static void arrive(struct load *load, int g)
{
    if (job_of(load, g) != NULL || !load->all.gangs[g].exists) {
        return;
    }
    struct model_state alone = load->all;
    for (int other = 0; other < GANGS; other++) {
        alone.gangs[other].exists = other == g;
    }
    give_objects(load, &alone, true);
}

static void stop(struct load *load, int g)
{
    const struct job *job = job_of(load, g);
    char name[16];
    name_job(g, name);
    if (job != NULL && is_stopping(job)) {
        gang_stops(load->s, name);
    }
}

static void finish(struct load *load, int g)
{
    const struct job *job = job_of(load, g);
    char name[16];
    name_job(g, name);
    if (job != NULL && !job->spec.suspend.value && !is_over(job)) {
        job_finishes(load->s, name);
    }
}

/* A node that has room for the pod, from a random one on. */
static int node_for(struct load *load, const struct model_state *state, int g)
{
    struct model_state one = *state;
    struct books books = books_at_first(&one, NULL);
    int first = (int)(random_next(&load->random) % NODES);
    for (int i = 0; i < NODES; i++) {
        int n = (first + i) % NODES;
        if (state->nodes[n].exists && room_on(&books, g, n)) {
            return n;
        }
    }
    return NONE;
}

/* Binds one pod of the gang that isn't bound; false: there is none, or no place for it. */
static bool bind_one(struct load *load, int g)
{
    struct model_state state = read_cluster(load);
    const struct job *job = job_of(load, g);
    if (!state.is_physical || !state.gangs[g].is_running || job->spec.suspend.value) {
        return false;
    }
    char name[16];
    name_job(g, name);
    for (int p = 0; p < state.gangs[g].count; p++) {
        if (pod_of(load, g, p) == NULL) {
            pods_appear(load->s, name, 1);
        }
        int node = state.gangs[g].nodes[p] == NONE ? node_for(load, &state, g) : NONE;
        if (node != NONE) {
            char pod[24];
            char node_name[8];
            (void)snprintf(pod, sizeof(pod), "quay/g%d-%d", g, p);
            (void)snprintf(node_name, sizeof(node_name), "n%d", node);
            pod_binds(load->s, pod, node_name);
            return true;
        }
    }
    return false;
}

/* In a random order, as many as go. Then every gang has what it needs. */
static void bind_all(struct load *load)
{
    int misses = 0;
    while (misses < GANGS) {
        int first = (int)(random_next(&load->random) % GANGS);
        bool is_bound = false;
        for (int i = 0; i < GANGS && !is_bound; i++) {
            is_bound = bind_one(load, (first + i) % GANGS);
        }
        misses = is_bound ? 0 : GANGS;
    }
    struct model_state state = read_cluster(load);
    for (int g = 0; g < GANGS && state.is_physical; g++) {
        const struct model_gang *gang = &state.gangs[g];
        int bound = 0;
        for (int p = 0; p < gang->count; p++) {
            bound += gang->nodes[p] != NONE ? 1 : 0;
        }
        const struct job *job = job_of(load, g);
        if (gang->is_running && !job->spec.suspend.value &&
            bound < pods_needed(gang, gang->count)) {
            fail_msg("gang g%d was let go, and %d of its %d pods find a place", g, bound,
                     gang->count);
        }
    }
}

/* -- at rest ------------------------------------------------------------------------------------
 */

static bool anybody_stops(const struct load *load)
{
    for (int g = 0; g < GANGS; g++) {
        const struct job *job = job_of(load, g);
        if (job != NULL && is_stopping(job)) {
            return true;
        }
    }
    return false;
}

/* All pods are bound and all that stops is gone, however long that takes. */
static void settle(struct load *load)
{
    int rounds = 0;
    bind_all(load);
    while (anybody_stops(load)) {
        if (++rounds > ROUNDS_MAX) {
            fail_msg("gangs go on stopping each other");
        }
        for (int g = 0; g < GANGS; g++) {
            stop(load, g);
        }
        bind_all(load);
    }
    struct model_state state = read_cluster(load);
    struct answer core[GANGS];
    struct answer model[GANGS];
    core_read_answers(scenario_core(load->s), core);
    model_answer(&state, core, model);
    for (int g = 0; g < GANGS; g++) {
        bool waits = state.gangs[g].exists && !state.gangs[g].is_running;
        if (waits && (core[g].decision != DECISION_WAIT || model[g].decision != DECISION_WAIT)) {
            print_error("the model: ");
            answer_print(&state, g, &model[g], stderr);
            print_error("the core: ");
            answer_print(&state, g, &core[g], stderr);
            state_print(&state, model, stderr);
            fail_msg("gang g%d could start", g);
        }
    }
}

/* One whose own victims are gone and that waits for what others' still hold: no object tells of
 * it, so after a restart it waits in its queue, for the same. */
static bool has_untold_preemption(const struct load *load)
{
    struct decided_list list = core_decisions(scenario_core(load->s), &load->s->arena);
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.items[i].decision == DECISION_PREEMPT && list.items[i].victims.count == 0) {
            return true;
        }
    }
    return false;
}

static void restart_decides_the_same(struct load *load, const struct op *op)
{
    bool is_untold = has_untold_preemption(load);
    char before[8192];
    (void)snprintf(before, sizeof(before), "%s", decisions_without_reasons(load->s));
    listing_order(load->s, (uint64_t)op->b + 1);
    restart(load->s, op->a % 2 == 0 ? WITH_ADMISSIONS : WITHOUT_ADMISSIONS);
    const char *after = decisions_without_reasons(load->s);
    if (!is_untold && strcmp(before, after) != 0) {
        print_error("before the restart\n%s", before);
        print_error("after it\n%s", after);
        fail();
    }
}

static void loaded_trees_hold(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct load load = load_new(seed);
    for (uint32_t i = 0; i < count; i++) {
        int g = ops[i].a % GANGS;
        events_arrive_at_times(load.s, seed, i);
        switch (ops[i].kind) {
        case OP_BIND:
            (void)bind_one(&load, g);
            break;
        case OP_STOP:
            stop(&load, g);
            break;
        case OP_FINISH:
            finish(&load, g);
            break;
        case OP_SETTLE:
            events_arrive(load.s, 0);
            settle(&load);
            break;
        case OP_RESTART:
            events_arrive(load.s, 0);
            restart_decides_the_same(&load, &ops[i]);
            break;
        default:
            arrive(&load, g);
            break;
        }
        check_quota(&load);
    }
    events_arrive(load.s, 0);
    settle(&load);
    check_quota(&load);
    scenario_free(load.s);
}

int main(void)
{
    const struct property trees = {.name = "loaded trees hold",
                                   .cases = 600,
                                   .ops = 60,
                                   .kinds = OP_KINDS,
                                   .kind_names = op_names,
                                   .run = loaded_trees_hold};
    return property_check(&trees);
}
