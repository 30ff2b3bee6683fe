/* controller.c - Tallyman in the virtual cluster: its core and driver behind simulated ports. */
#include "sim_internal.h"

#include "tallyman/base/limits.h"
#include "tallyman/base/alloc.h"

#define GHOST_WRITES_MS 3000 /* how long a write may be under way when its writer is gone */

static int64_t port_now_ms(void *ctx)
{
    return sim_clock_ms(ctx);
}

/* -- time ----------------------------------------------------------------------------------------
 */

static void run_wake(struct sim *sim, struct task *task)
{
    bool is_current = task->number == sim->incarnation && sim->wake_at_ms == task->at_ms;
    if (is_current) {
        sim->wake_at_ms = INT64_MAX;
        driver_tick(sim->driver);
    }
}

static void port_wake_at(void *ctx, int64_t at_ms)
{
    struct sim *sim = ctx;
    if (at_ms == INT64_MAX) {
        sim->wake_at_ms = INT64_MAX;
        return;
    }
    int64_t wish_ms = at_ms - sim->options.start_ms;
    wish_ms = wish_ms > sim->now_ms ? wish_ms : sim->now_ms;
    if (wish_ms == sim->wake_at_ms) {
        return;
    }
    sim->wake_at_ms = wish_ms;
    agenda_add(sim, wish_ms, run_wake, STR_NONE)->number = sim->incarnation;
}

/* -- writes --------------------------------------------------------------------------------------
 */

static struct pending_write *find_pending(const struct sim *sim, uint64_t id)
{
    struct pending_write *pending = sim->in_flight;
    while (pending != NULL && pending->write.id != id) {
        pending = pending->next;
    }
    return pending;
}

static void forget_pending(struct sim *sim, struct pending_write *pending)
{
    struct pending_write **link = &sim->in_flight;
    while (*link != pending) {
        link = &(*link)->next;
    }
    *link = pending->next;
    arena_deinit(&pending->arena);
    mem_free(pending);
}

/* The driver's number and the incarnation, so that a task of an older driver finds nothing. */
static struct pending_write *task_pending(const struct sim *sim, const struct task *task)
{
    return (uint64_t)(uintptr_t)task->ctx == sim->incarnation ? find_pending(sim, task->number)
                                                              : NULL;
}

static void give_answer(struct sim *sim, struct task *task)
{
    struct pending_write *pending = task_pending(sim, task);
    if (pending == NULL) {
        return;
    }
    struct driver_answer answer = pending->answer;
    answer.resource_version = arena_copy_str(&sim->scratch, answer.resource_version);
    answer.message = arena_copy_str(&sim->scratch, answer.message);
    uint64_t id = pending->write.id;
    forget_pending(sim, pending);
    driver_write_done(sim->driver, id, &answer);
}

static struct driver_answer fault_answer(enum sim_fault fault)
{
    switch (fault) {
    case SIM_FAULT_CONFLICT:
        return (struct driver_answer){.outcome = WRITE_CONFLICT};
    case SIM_FAULT_REFUSED:
        return (struct driver_answer){.outcome = WRITE_REFUSED,
                                      .message = STR("admission webhook \"moody\" denied it")};
    case SIM_FAULT_OVERLOADED:
        return (struct driver_answer){.outcome = WRITE_RETRY,
                                      .message = STR("too many requests"),
                                      .retry_after_ms = 1000,
                                      .is_overloaded = true};
    case SIM_FAULT_NONE:
    case SIM_FAULT_LOST:
    case SIM_FAULT_ANSWER_LOST:
        break;
    }
    return (struct driver_answer){.outcome = WRITE_RETRY, .message = STR("the server is silent")};
}

static void carry_out(struct sim *sim, struct pending_write *pending)
{
    pending->is_carried_out = true;
    struct driver_answer answer = fault_answer(pending->fault);
    if (pending->fault == SIM_FAULT_NONE || pending->fault == SIM_FAULT_ANSWER_LOST) {
        struct driver_answer real = write_carry_out(sim, &pending->write);
        answer = pending->fault == SIM_FAULT_NONE ? real : answer;
    }
    pending->answer = answer;
    pending->answer.resource_version = arena_copy_str(&pending->arena, answer.resource_version);
    pending->answer.message = arena_copy_str(&pending->arena, answer.message);
}

static void arrive(struct sim *sim, struct task *task)
{
    struct pending_write *pending = task_pending(sim, task);
    if (pending == NULL) {
        return;
    }
    carry_out(sim, pending);
    int64_t rest_ms = sim->options.delays.write_ms - sim->options.delays.write_ms / 2;
    struct task *answer = agenda_add(sim, sim_later(sim, rest_ms), give_answer, STR_NONE);
    answer->number = task->number;
    answer->ctx = task->ctx;
}

static void port_write(void *ctx, const struct driver_write *write)
{
    struct sim *sim = ctx;
    struct pending_write *pending = MEM_NEW(struct pending_write);
    pending->write = *write;
    arena_init(&pending->arena);
    if (sim->options.fault != NULL) {
        pending->fault = sim->options.fault(sim->options.ctx, write);
    }
    struct pending_write **link = &sim->in_flight;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = pending;
    struct task *task =
        agenda_add(sim, sim_later(sim, sim->options.delays.write_ms / 2), arrive, STR_NONE);
    task->number = write->id;
    task->ctx = (void *)(uintptr_t)sim->incarnation;
}

/* -- what it sees
 * ---------------------------------------------------------------------------------- */

static void port_on_event(void *ctx, const struct event *event)
{
    struct sim *sim = ctx;
    if (sim->options.on_event != NULL) {
        sim->options.on_event(sim->options.ctx, event);
    }
}

static void port_on_effects(void *ctx, const struct event *event, const struct effects *effects)
{
    struct sim *sim = ctx;
    if (sim->options.on_effects != NULL) {
        sim->options.on_effects(sim->options.ctx, event, effects);
    }
}

static void port_on_refused(void *ctx, const struct event *event, const struct err *err)
{
    struct sim *sim = ctx;
    if (sim->options.on_refused != NULL) {
        sim->options.on_refused(sim->options.ctx, event, err);
    }
}

static void port_persist(void *ctx, struct str gang_uid, const struct gang_memory *memory)
{
    struct sim *sim = ctx;
    if (sim->options.persist != NULL) {
        sim->options.persist(sim->options.ctx, gang_uid, memory);
    }
}

static void port_ledger(void *ctx, const struct effect *effect)
{
    struct sim *sim = ctx;
    if (sim->options.ledger != NULL) {
        sim->options.ledger(sim->options.ctx, effect);
    }
}

/* -- its life
 * -------------------------------------------------------------------------------------- */

void controller_start(struct sim *sim)
{
    struct core_options options = {.admission_interval_ms = ADMISSION_INTERVAL_MS,
                                   .selector_cost_per_step = SELECTOR_COST_PER_STEP};
    struct driver_ports ports = {.ctx = sim,
                                 .now_ms = port_now_ms,
                                 .wake_at = port_wake_at,
                                 .write = port_write,
                                 .persist = port_persist,
                                 .ledger = port_ledger,
                                 .on_event = port_on_event,
                                 .on_effects = port_on_effects,
                                 .on_refused = port_on_refused};
    sim->incarnation++;
    sim->wake_at_ms = INT64_MAX;
    sim->core = core_new(&options);
    sim->driver = driver_new(sim->core, &ports);
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        stream_list(sim, (enum object_kind)kind);
        driver_synced(sim->driver, (enum object_kind)kind, false);
    }
}

static void free_in_flight(struct pending_write *pending)
{
    while (pending != NULL) {
        struct pending_write *next = pending->next;
        arena_deinit(&pending->arena);
        mem_free(pending);
        pending = next;
    }
}

void controller_stop(struct sim *sim)
{
    free_in_flight(sim->in_flight);
    sim->in_flight = NULL;
    driver_free(sim->driver);
    core_free(sim->core);
    sim->driver = NULL;
    sim->core = NULL;
    stream_forget(sim);
}

/* -- a controller that was, whose writes are still on their way ---------------------------------
 */

struct ghost {
    struct core *core; /* owned, with the driver: the writes are in their memory */
    struct driver *driver;
    struct pending_write *in_flight; /* owned */
    struct ghost *next;
};

static void ghost_free(struct sim *sim, struct ghost *ghost)
{
    struct ghost **link = &sim->ghosts;
    while (*link != ghost) {
        link = &(*link)->next;
    }
    *link = ghost->next;
    free_in_flight(ghost->in_flight);
    driver_free(ghost->driver);
    core_free(ghost->core);
    mem_free(ghost);
}

void controller_free_ghosts(struct sim *sim)
{
    while (sim->ghosts != NULL) {
        ghost_free(sim, sim->ghosts);
    }
}

static void ghost_arrive(struct sim *sim, struct task *task)
{
    struct ghost *ghost = task->ctx;
    sim->is_ghost_writing = true;
    for (struct pending_write *pending = ghost->in_flight; pending != NULL;
         pending = pending->next) {
        if (!pending->is_carried_out) {
            (void)write_carry_out(sim, &pending->write);
        }
    }
    sim->is_ghost_writing = false;
    ghost_free(sim, ghost);
}

static void leave_ghost(struct sim *sim)
{
    struct ghost *ghost = MEM_NEW(struct ghost);
    *ghost = (struct ghost){
        .core = sim->core, .driver = sim->driver, .in_flight = sim->in_flight, .next = sim->ghosts};
    sim->ghosts = ghost;
    sim->core = NULL;
    sim->driver = NULL;
    sim->in_flight = NULL;
    agenda_add(sim, sim_later(sim, GHOST_WRITES_MS), ghost_arrive, STR_NONE)->ctx = ghost;
}

void sim_stop_controller(struct sim *sim, enum sim_writes writes)
{
    sim->is_stopped = true;
    if (sim->driver == NULL) {
        return;
    }
    for (struct pending_write *pending = sim->in_flight;
         pending != NULL && writes == SIM_WRITES_APPLIED; pending = pending->next) {
        if (!pending->is_carried_out) {
            carry_out(sim, pending);
        }
    }
    if (writes == SIM_WRITES_LATE) {
        leave_ghost(sim);
    }
    controller_stop(sim);
    sim->wake_at_ms = INT64_MAX;
    for (int kind = 0; kind < KIND_COUNT; kind++) { /* nobody takes what is on its way */
        sim->stream[kind].number = ++sim->last_stream;
    }
}

void sim_start_controller(struct sim *sim)
{
    sim->is_stopped = false;
    if (sim->driver == NULL) {
        controller_start(sim);
    }
}

void sim_restart_controller(struct sim *sim, enum sim_writes writes)
{
    if (sim->driver != NULL) {
        sim_stop_controller(sim, writes);
        sim_start_controller(sim);
    }
}

void sim_step_clock(struct sim *sim, int64_t by_ms)
{
    sim->options.start_ms += by_ms;
    if (sim->driver != NULL) {
        driver_tick(sim->driver);
    }
}
