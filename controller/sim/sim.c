/* sim.c - the simulator's life and its clock. */
#include "sim_internal.h"

#include <assert.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

#define START_DEFAULT_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

static void set_default(int64_t *delay_ms, int64_t value_ms)
{
    *delay_ms = *delay_ms == 0 ? value_ms : *delay_ms;
}

struct sim *sim_new(const struct sim_options *options)
{
    struct sim *sim = MEM_NEW(struct sim);
    sim->options = *options;
    if (sim->options.start_ms == 0) {
        sim->options.start_ms = START_DEFAULT_MS;
    }
    struct sim_delays *delays = &sim->options.delays;
    set_default(&delays->watch_ms, 5);
    set_default(&delays->write_ms, 10);
    set_default(&delays->schedule_ms, 10);
    set_default(&delays->bind_ms, 10);
    set_default(&delays->start_ms, 2000);
    set_default(&delays->stop_ms, 1000);
    set_default(&delays->provision_ms, 60000);
    sim->random = options->seed;
    sim->scheduler_retry_ms = INT64_MAX;
    sim->wake_at_ms = INT64_MAX;
    arena_init(&sim->scratch);
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        RB_INIT(&sim->objects[kind]);
    }
    RB_INIT(&sim->pod_queue);
    return sim;
}

void sim_free(struct sim *sim)
{
    if (sim == NULL) {
        return;
    }
    controller_stop(sim);
    controller_free_ghosts(sim);
    agenda_deinit(&sim->agenda);
    api_free(sim);
    loads_free(sim);
    devices_forget(sim);
    arena_deinit(&sim->scratch);
    mem_free(sim->nodes);
    mem_free(sim);
}

static void count_waste(struct sim *sim, int64_t until_ms)
{
    if (until_ms > sim->wasted_until_ms) {
        int64_t lasted_ms = until_ms - sim->wasted_until_ms;
        sim->wasted_device_ms += sim_devices(sim).held_for_nothing * lasted_ms;
        sim->wasted_until_ms = until_ms;
    }
}

static void run_task(struct sim *sim, struct task *task)
{
    count_waste(sim, task->at_ms);
    sim->now_ms = task->at_ms;
    arena_reset(&sim->scratch);
    task->run(sim, task);
    task_free(task);
}

int64_t sim_run_until(struct sim *sim, int64_t until_ms)
{
    assert(until_ms >= sim->now_ms && "time goes forward");
    if (sim->options.has_tallyman && sim->driver == NULL && !sim->is_stopped) {
        controller_start(sim);
    }
    int64_t last_ms = -1;
    uint32_t tasks_now = 0;
    const struct task *next;
    while ((next = agenda_first(&sim->agenda)) != NULL && next->at_ms <= until_ms) {
        tasks_now = next->at_ms == last_ms ? tasks_now + 1 : 0;
        assert(tasks_now < SIM_TASKS_AT_ONCE_MAX && "something goes round without time passing");
        last_ms = next->at_ms;
        run_task(sim, agenda_take(&sim->agenda));
    }
    count_waste(sim, until_ms);
    sim->now_ms = until_ms;
    arena_reset(&sim->scratch);
    return last_ms;
}

int64_t sim_now_ms(const struct sim *sim)
{
    return sim->now_ms;
}

int64_t sim_next_ms(const struct sim *sim)
{
    const struct task *next = agenda_first(&sim->agenda);
    return next == NULL ? INT64_MAX : next->at_ms;
}

void sim_tell(struct sim *sim, enum sim_note_kind kind, const struct sim_object *job,
              const struct sim_object *pod, struct str node, struct str text)
{
    if (sim->options.on_note == NULL) {
        return;
    }
    struct sim_note note = {.at_ms = sim->now_ms,
                            .kind = kind,
                            .job = job == NULL ? STR_NONE : job->key,
                            .pod = pod == NULL ? STR_NONE : object_meta(pod)->name,
                            .index = pod == NULL ? -1 : pod->pod.index,
                            .node = node,
                            .text = text,
                            .is_late = sim->is_ghost_writing};
    sim->options.on_note(sim->options.ctx, &note);
}
