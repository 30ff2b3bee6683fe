/* main.c - the operations of a run, and its end. */
#include "vopr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/property.h"
#include "tallyman/api/node.h"
#include "tallyman/base/alloc.h"

enum vopr_op {
    OP_JOB = 0,
    OP_JOB_TOO,
    OP_JOB_THREE,
    OP_MOMENT,
    OP_WHILE,
    OP_LONG,
    OP_DELETE,
    OP_MAKE_AGAIN,
    OP_SUSPEND,
    OP_START,
    OP_SCALE,
    OP_HOLD,
    OP_LIFT,
    OP_NODE_BAD,
    OP_NODE_GOOD,
    OP_NODE_GONE,
    OP_NODE_BACK,
    OP_DEVICES_GO,
    OP_DEVICES_COME,
    OP_FOREIGN_POD,
    OP_POD_FAILS,
    OP_QUOTA,
    OP_STOP_QUEUE,
    OP_CLASS,
    OP_KILL,
    OP_BREAK_WATCH,
    OP_CLOCK,
    OP_FAULTS,
    OP_COUNT,
};

static const char *const op_names[OP_COUNT] = {
    "job",          "job",         "job",       "moment",    "while",      "long",
    "delete",       "make again",  "suspend",   "start",     "scale",      "hold",
    "lift",         "node bad",    "node good", "node gone", "node back",  "devices go",
    "devices come", "foreign pod", "pod fails", "quota",     "stop queue", "class",
    "kill",         "break watch", "clock",     "faults",
};

#define LATE_MS_MAX 4000u
#define DRAIN_MS    (48 * 3600000LL) /* all Jobs one after the other, with every back-off */
#define QUIET_MS    (2 * 3600000LL)
/* Eight Jobs have no more to say in a minute, whatever fails. */
#define MINUTE_WRITES_MAX 1000

static uint32_t draw(struct vopr *v, uint32_t below)
{
    return random_next(&v->random) % below;
}

/* -- faults -------------------------------------------------------------------------------------
 */

static void count_write(struct vopr *v)
{
    int64_t minute = sim_now_ms(v->sim) / 60000;
    v->writes++;
    v->minute_writes = minute == v->minute ? v->minute_writes + 1 : 1;
    v->minute = minute;
    if (v->minute_writes > MINUTE_WRITES_MAX) {
        fail_msg("more than %d writes in a minute", MINUTE_WRITES_MAX);
    }
}

static enum sim_fault fault(void *ctx, const struct driver_write *write)
{
    static const enum sim_fault faults[] = {SIM_FAULT_LOST,        SIM_FAULT_ANSWER_LOST,
                                            SIM_FAULT_ANSWER_LOST, SIM_FAULT_CONFLICT,
                                            SIM_FAULT_REFUSED,     SIM_FAULT_OVERLOADED};
    struct vopr *v = ctx;
    bool is_patch = write->effect->kind == EFFECT_PATCH_JOB;
    count_write(v);
    if (is_patch && write->effect->patch.purpose == PATCH_SUSPEND) {
        order_hear_stop(v, &write->effect->patch);
    }
    for (uint32_t i = 0; i < VOPR_JOBS && is_patch; i++) {
        if (write->effect->patch.purpose == PATCH_ADMIT &&
            str_eq(write->effect->name, job_name(i))) {
            v->starting_ms[i] = sim_now_ms(v->sim) + 1;
            known_ask(v, i, write->id);
        }
    }
    printf("[%lld] > write %d.%d " STR_FMT "\n", (long long)sim_now_ms(v->sim),
           (int)write->effect->kind, is_patch ? (int)write->effect->patch.purpose : 0,
           STR_ARG(write->effect->name));
    if (draw(v, 100) >= v->fault_rate) {
        return SIM_FAULT_NONE;
    }
    v->fault_ms = sim_now_ms(v->sim);
    enum sim_fault chosen = faults[draw(v, ARRAY_COUNT(faults))];
    /* An Admission or a status is applied by force, an Event is new: nobody can be first. */
    return chosen == SIM_FAULT_CONFLICT && !is_patch ? SIM_FAULT_LOST : chosen;
}

static void watch_fault(void *ctx, enum object_kind kind, struct sim_watch_fault *ret_fault)
{
    struct vopr *v = ctx;
    (void)kind;
    if (draw(v, 100) < v->fault_rate) {
        ret_fault->late_ms = draw(v, LATE_MS_MAX);
        ret_fault->is_twice = draw(v, 4) == 0;
    }
}

/* -- what is seen -------------------------------------------------------------------------------
 */

static void on_note(void *ctx, const struct sim_note *note)
{
    struct vopr *v = ctx;
    if (note->kind == SIM_POD_BOUND && !str_is_set(note->job)) {
        v->room_changed_ms = note->at_ms; /* somebody else's may have waited for a node for long */
    }
    for (uint32_t i = 0; i < VOPR_JOBS; i++) {
        if (!str_ends_with(note->job, job_name(i))) {
            continue;
        }
        printf("[%lld] " STR_FMT " %d " STR_FMT " " STR_FMT " " STR_FMT "\n",
               (long long)note->at_ms, STR_ARG(note->job), (int)note->kind, STR_ARG(note->pod),
               STR_ARG(note->node), STR_ARG(note->text));
        order_hear(v, i, note);
        if (note->kind == SIM_JOB_ADMITTED) {
            known_start(v, i, note->is_late);
            v->is_just_admitted[i] = true;
            v->is_restarted[i] = false;
        } else if (note->kind == SIM_JOB_SUSPENDED || note->kind == SIM_JOB_FINISHED ||
                   note->kind == SIM_JOB_DELETED) {
            v->is_admitted[i] = false;
        }
    }
}

static void on_event(void *ctx, const struct event *event)
{
    struct vopr *v = ctx;
    known_take(v, event);
    bool is_object = event->kind == EVENT_OBJECT || event->kind == EVENT_DELETED;
    if (is_object && (event->object.kind == KIND_JOB || event->object.kind == KIND_ADMISSION)) {
        const struct object_meta *meta = event->object.value;
        printf("[%lld] < %s %s " STR_FMT " uid " STR_FMT "\n", (long long)sim_now_ms(v->sim),
               kind_info(event->object.kind)->name, event->kind == EVENT_DELETED ? "gone" : "seen",
               STR_ARG(meta->name), STR_ARG(meta->uid));
    }
}

/* Notes come in the midst of a change; what must hold is looked at behind it. */
static void look(struct vopr *v)
{
    for (uint32_t i = 0; i < VOPR_JOBS; i++) {
        if (v->is_just_admitted[i]) {
            v->is_just_admitted[i] = false;
            check_admission(v, i);
        }
    }
    check_moment(v);
}

static void pass_time(struct vopr *v, int64_t ms)
{
    int64_t end_ms = sim_now_ms(v->sim) + ms;
    int64_t next_ms;
    while ((next_ms = sim_next_ms(v->sim)) <= end_ms) {
        (void)sim_run_until(v->sim, next_ms);
        look(v);
    }
    (void)sim_run_until(v->sim, end_ms);
}

/* -- operations ---------------------------------------------------------------------------------
 */

static bool is_recorded(const struct vopr *v, uint32_t number)
{
    const struct job *job = sim_find(v->sim, KIND_JOB, STR("default"), job_name(number));
    return job != NULL &&
           str_is_set(string_map_get(&job->meta.annotations, "tallyman.dev/admission"));
}

static void do_job_op(struct vopr *v, const struct op *op)
{
    uint32_t number = op->a % VOPR_JOBS;
    struct str name = job_name(number);
    struct str space = STR("default");
    v->room_changed_ms = op->kind == OP_HOLD || op->kind == OP_LIFT || op->kind <= OP_JOB_THREE
                             ? v->room_changed_ms
                             : sim_now_ms(v->sim);
    switch (op->kind) {
    case OP_DELETE:
    case OP_MAKE_AGAIN:
        v->is_remade = v->is_remade || is_recorded(v, number);
        /* Of pods that weren't seen yet nobody can know that they still stop. */
        v->is_charge_unsure = v->is_charge_unsure || (v->fault_rate > 0 && is_recorded(v, number));
        vopr_note_left(v, number);
        (void)sim_delete(v->sim, KIND_JOB, space, name);
        if (op->kind == OP_MAKE_AGAIN) {
            (void)cluster_job(v, number, op->b);
        }
        break;
    case OP_SUSPEND:
        if (sim_job_suspend(v->sim, space, name, true)) {
            v->is_admitted[number] = false;
        }
        break;
    case OP_START: /* as where no policy refuses it: it runs until it is stopped again */
        v->is_disturbed = true;
        v->is_restarted[number] = v->is_restarted[number] || is_recorded(v, number);
        v->is_charge_unsure = v->is_charge_unsure || v->is_restarted[number];
        (void)sim_job_suspend(v->sim, space, name, false);
        break;
    case OP_SCALE:
        v->is_disturbed = v->is_scaled[number] = true;
        (void)sim_job_scale(v->sim, space, name, 1 + op->b % 4);
        break;
    case OP_HOLD:
        v->class_changed_ms = sim_now_ms(v->sim);
        (void)sim_job_annotate(v->sim, space, name, STR("tallyman.dev/hold"), STR("true"));
        break;
    case OP_LIFT:
        v->class_changed_ms = sim_now_ms(v->sim);
        (void)sim_job_annotate(v->sim, space, name, STR("tallyman.dev/hold"), STR_NONE);
        break;
    default:
        (void)cluster_job(v, number, op->b);
        break;
    }
}

static void set_quota(struct vopr *v, uint32_t queue, int64_t cpu_milli, int64_t devices)
{
    v->quota[queue][CPU_MILLI] = cpu_milli;
    v->quota[queue][DEVICES] = devices;
    for (int r = 0; r < RESOURCE_COUNT; r++) {
        if (v->quota[queue][r] > v->quota_seen[queue][r]) {
            v->quota_seen[queue][r] = v->quota[queue][r];
        }
    }
    v->quota_changed_ms = sim_now_ms(v->sim);
    v->known_since[queue] = 0;
    cluster_queue(v, queue, "None");
}

/* Where something runs: so low that it is over its quota from now on. */
static void cut_quota(struct vopr *v, uint32_t queue)
{
    int64_t cut[RESOURCE_COUNT];
    for (int r = 0; r < RESOURCE_COUNT; r++) {
        int64_t lent = queue < 2 ? v->quota[1 - queue][r] : 0;
        int64_t used = vopr_used(v, queue, (enum vopr_resource)r) - lent;
        cut[r] = used > 0 ? (used - 1) / (r == CPU_MILLI ? 500 : 1) : 0;
    }
    set_quota(v, queue, cut[CPU_MILLI] * 500, cut[DEVICES]);
}

static void fail_a_pod(struct vopr *v, const struct op *op)
{
    char name[32];
    (void)snprintf(name, sizeof(name), STR_FMT "-%u", STR_ARG(job_name(op->a % VOPR_JOBS)),
                   op->b % 4u);
    (void)sim_pod_fail(v->sim, STR("default"), str_from_c(name));
}

/* Quota may have let go of pods that come back with it, and stop only now. */
static void node_becomes_ready(struct vopr *v, struct str name)
{
    const struct node *node = sim_find(v->sim, KIND_NODE, STR_NONE, name);
    bool was_ready = node != NULL && condition_is_true(&node->status.conditions, "Ready");
    v->is_charge_unsure = v->is_charge_unsure || !was_ready;
    (void)sim_node_set_ready(v->sim, name, true);
}

static void do_cluster_op(struct vopr *v, const struct op *op)
{
    static const char *const names[VOPR_NODES] = {"n1", "n2", "n3"};
    static const char *const policies[] = {"None", "Hold", "HoldAndDrain"};
    uint32_t node = op->a % VOPR_NODES;
    struct str name = str_from_c(names[node]);
    v->is_disturbed = true; /* but for the last four */
    v->room_changed_ms = sim_now_ms(v->sim);
    switch (op->kind) {
    case OP_NODE_BAD:
        (void)sim_node_set_ready(v->sim, name, false);
        break;
    case OP_NODE_GOOD:
        node_becomes_ready(v, name);
        break;
    case OP_NODE_GONE:
        (void)sim_delete(v->sim, KIND_NODE, STR_NONE, name);
        break;
    case OP_NODE_BACK:
        if (sim_find(v->sim, KIND_NODE, STR_NONE, name) == NULL) {
            v->is_charge_unsure = true; /* pods that went with it may come back with it */
            cluster_node(v, node);
        }
        break;
    case OP_DEVICES_GO:
    case OP_DEVICES_COME:
        cluster_slice(v, node, op->kind == OP_DEVICES_GO ? op->b % 2u : NODE_DEVICES,
                      ++v->generation);
        break;
    case OP_FOREIGN_POD:
        if (sim_find(v->sim, KIND_NODE, STR_NONE, name) != NULL) {
            cluster_foreign_pod(v, ++v->foreign_pods, node, 500 * (1 + op->b % 4));
        }
        break;
    case OP_POD_FAILS:
        fail_a_pod(v, op);
        break;
    case OP_QUOTA:
        if (op->b % 4 == 3) {
            cut_quota(v, op->a % VOPR_QUEUES);
        } else {
            set_quota(v, op->a % VOPR_QUEUES, 1000 * (1 + op->b % 6), op->b / 6 % 5);
        }
        break;
    case OP_CLASS:
        v->high_value = op->a % 2 == 0 ? 100 : -100;
        v->class_changed_ms = sim_now_ms(v->sim);
        cluster_priority_class(v);
        break;
    default:
        cluster_queue(v, op->a % VOPR_QUEUES, policies[op->b % 3]);
        break;
    }
}

static void break_watch(struct vopr *v, const struct op *op)
{
    enum object_kind kind = (enum object_kind)(KIND_NONE + 1 + op->a % (KIND_COUNT - 1));
    v->is_charge_unsure = v->is_charge_unsure || kind == KIND_POD;
    sim_relist(v->sim, kind, op->b * 10);
}

static void do_op(struct vopr *v, const struct op *op)
{
    static const int64_t steps_ms[] = {50, 5000, 60000, 3600000};
    bool was_disturbed = v->is_disturbed;
    printf("[%lld] - %s %u %u\n", (long long)sim_now_ms(v->sim), op_names[op->kind], op->a, op->b);
    switch (op->kind) {
    case OP_MOMENT:
        pass_time(v, op->a * 20);
        break;
    case OP_WHILE:
        pass_time(v, op->a * 500);
        break;
    case OP_LONG:
        pass_time(v, op->a * 10000);
        break;
    case OP_KILL:
        /* Pods of the Job before tell the next controller nothing of their queue. */
        v->is_charge_unsure = v->is_charge_unsure || v->is_remade;
        known_forget(v);
        sim_restart_controller(v->sim, (enum sim_writes)(op->a % 3u));
        break;
    case OP_BREAK_WATCH:
        break_watch(v, op);
        break;
    case OP_CLOCK:
        sim_step_clock(v->sim, steps_ms[op->a % 4]);
        break;
    case OP_FAULTS:
        v->fault_rate = op->a % 3 == 0 ? 0 : op->a % 40;
        break;
    default:
        if (op->kind >= OP_NODE_BAD) {
            do_cluster_op(v, op);
            if (op->kind >= OP_POD_FAILS) {
                v->is_disturbed = was_disturbed;
            }
        } else {
            do_job_op(v, op);
        }
        break;
    }
    look(v);
}

/* -- the end ------------------------------------------------------------------------------------
 */

static void heal(struct vopr *v)
{
    v->room_changed_ms = sim_now_ms(v->sim);
    static const char *const nodes[VOPR_NODES] = {"n1", "n2", "n3"};
    v->fault_rate = 0;
    for (uint32_t i = 0; i < VOPR_NODES; i++) {
        if (sim_find(v->sim, KIND_NODE, STR_NONE, str_from_c(nodes[i])) == NULL) {
            v->is_charge_unsure = true;
            cluster_node(v, i);
        }
        node_becomes_ready(v, str_from_c(nodes[i]));
        cluster_slice(v, i, NODE_DEVICES, ++v->generation);
    }
    for (uint32_t i = 0; i < VOPR_QUEUES; i++) {
        set_quota(v, i, 4000, i < 2 ? 3 : 6);
    }
    /* After the controller has seen who was suspended by hand: that is held, too. */
    pass_time(v, 60000);
    v->class_changed_ms = sim_now_ms(v->sim);
    for (uint32_t i = 0; i < VOPR_JOBS; i++) {
        (void)sim_job_annotate(v->sim, STR("default"), job_name(i), STR("tallyman.dev/hold"),
                               STR_NONE);
    }
}

static void end_well(struct vopr *v)
{
    heal(v);
    v->is_disturbed = true; /* what was quota's excess may still run */
    pass_time(v, DRAIN_MS);
    check_drained(v);
    uint64_t writes = v->writes;
    pass_time(v, QUIET_MS);
    if (v->writes != writes) {
        fail_msg("%llu writes though nothing happens", (unsigned long long)(v->writes - writes));
    }
}

static void run(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct vopr *v = MEM_NEW(struct vopr);
    struct sim_options options = {.has_tallyman = true,
                                  .seed = seed,
                                  .ctx = v,
                                  .on_note = on_note,
                                  .fault = fault,
                                  .on_event = on_event,
                                  .watch_fault = watch_fault};
    v->random = seed * 0x9e3779b97f4a7c15u + 1;
    v->generation = 1;
    /* Many kinds at once hide each other, so a run has about three quarters of them. */
    v->kinds = random_next(&v->random) | random_next(&v->random) | (1u << OP_LONG);
    if (seed % 4 == 0) {
        v->kinds &= ~(UINT32_MAX << OP_NODE_BAD) | UINT32_MAX << OP_QUOTA; /* no room goes */
        v->kinds &= ~(1u << OP_START | 1u << OP_SCALE);
    }
    v->sim = sim_new(&options);
    cluster_given(v);
    pass_time(v, 100);
    for (uint32_t i = 0; i < count; i++) {
        struct op op = ops[i];
        if ((v->kinds >> op.kind & 1) == 0) {
            op.kind = op.a % 3 == 0 ? OP_MOMENT : OP_JOB;
        }
        do_op(v, &op);
    }
    end_well(v);
    sim_free(v->sim);
    mem_free(v);
}

int main(void)
{
    const struct property vopr = {.name = "whatever goes wrong",
                                  .cases = 1000,
                                  .ops = 100,
                                  .kinds = OP_COUNT,
                                  .kind_names = op_names,
                                  .run = run};
    return property_check(&vopr);
}
