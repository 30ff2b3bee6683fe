/* world.c - a run on the simulated cluster, with a store beside it. */
#include "keep.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/property.h"
#include "tallyman/api/codec.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/text.h"
#include "tallyman/sim/sim.h"

#define TRACE_BYTES (512u * 1024)
#define RUN_STEPS   60
#define STEP_MS     20000
#define HOUR_MS     3600000LL
#define DAY_HOURS   24
#define WARM_HOURS  4 /* tables have found their size by then */
#define HOUR_JOBS   20

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

struct world {
    struct sim *sim;
    struct keep *keep; /* NULL: none */
    uint64_t random;
    char *trace;
    size_t trace_len;
    struct run_figures figures;
    uint32_t made;
};

static void on_note(void *ctx, const struct sim_note *note)
{
    struct world *world = ctx;
    world->figures.admissions += note->kind == SIM_JOB_ADMITTED;
    if (world->trace != NULL) {
        int count = snprintf(world->trace + world->trace_len, TRACE_BYTES - world->trace_len,
                             "%lld " STR_FMT " %d " STR_FMT "\n", (long long)note->at_ms,
                             STR_ARG(note->job), (int)note->kind, STR_ARG(note->text));
        assert_true(count > 0 && world->trace_len + (size_t)count < TRACE_BYTES);
        world->trace_len += (size_t)count;
    }
}

static void on_persist(void *ctx, struct str gang_uid, const struct gang_memory *memory)
{
    struct world *world = ctx;
    char text[64];
    (void)snprintf(text, sizeof(text), "%lld %lld", (long long)memory->requeue_count,
                   (long long)memory->evictions);
    bool is_nothing =
        memory->requeue_count == 0 && memory->requeue_at_ms == 0 && memory->evictions == 0;
    world->figures.kept += is_nothing ? 0 : 1;
    if (world->keep != NULL) {
        keep_persist(world->keep, gang_uid, is_nothing ? STR_NONE : str_from_c(text));
    }
}

static void on_ledger(void *ctx, const struct effect *effect)
{
    struct world *world = ctx;
    char text[128];
    (void)snprintf(text, sizeof(text), STR_FMT " %s %s %lld", STR_ARG(effect->uid),
                   effect->transition.from, effect->transition.to,
                   (long long)effect->transition.pods);
    if (world->keep != NULL) {
        keep_ledger(world->keep, effect->transition.at_ms, str_from_c(text));
    }
}

static void PRINTF_LIKE(3, 4)
    load(struct world *world, enum object_kind kind, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    struct arena arena;
    arena_init(&arena);
    void *value = NULL;
    struct err err;
    if (rc_failed(decode_json(&arena, kind_info(kind)->schema, str_from_c(text), &value, &err)) ||
        rc_failed(sim_load(world->sim, &(struct object){.kind = kind, .value = value}, &err))) {
        fail_msg("%s\n%s", err.text, text);
    }
    arena_deinit(&arena);
}

static void given(struct world *world, uint64_t seed)
{
    struct sim_options options = {.has_tallyman = true,
                                  .seed = seed,
                                  .ctx = world,
                                  .on_note = on_note,
                                  .persist = on_persist,
                                  .ledger = on_ledger};
    world->random = seed * 2 + 1;
    world->sim = sim_new(&options);
    load(world, KIND_NAMESPACE, "{\"metadata\":{\"name\":\"default\"}}");
    load(world, KIND_PRIORITY_CLASS, "{\"metadata\":{\"name\":\"high\"},\"value\":100}");
    for (int i = 1; i <= 2; i++) {
        load(world, KIND_NODE,
             "{\"metadata\":{\"name\":\"n%d\"},\"status\":{\"allocatable\":{\"cpu\":\"4\",\"pods\":"
             "\"20\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
             i);
    }
    load(world, KIND_QUEUE,
         "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"namespaceSelector\":{},\"podsReadyTimeout\":"
         "\"1m\",\"requeue\":{\"base\":\"10s\",\"max\":\"60s\"},\"preemption\":{\"withinQueue\":"
         "\"LowerPriority\"},\"resourceGroups\":[{\"flavors\":[{\"name\":\"default\",\"resources\":"
         "[{\"name\":\"cpu\",\"nominalQuota\":\"6\"}]}]}]}}");
}

static uint32_t draw(struct world *world, uint32_t below)
{
    return random_next(&world->random) % below;
}

static void make_job(struct world *world)
{
    uint32_t pods = 1 + draw(world, 4);
    load(world, KIND_JOB,
         "{\"metadata\":{\"name\":\"j%u\",\"namespace\":\"default\",\"labels\":{"
         "\"tallyman.dev/queue\":\"a\"%s},\"annotations\":{\"example.com/run-for\":\"%us\"}},"
         "\"spec\":{\"parallelism\":%u,\"completions\":%u,\"template\":{\"spec\":{"
         "\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"main\",\"image\":\"x\","
         "\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}}}",
         world->made++, draw(world, 4) == 0 ? ",\"tallyman.dev/priority-class\":\"high\"" : "",
         10 + draw(world, 120), pods, pods);
}

static void flush(struct world *world)
{
    if (world->keep != NULL) {
        keep_flush(world->keep);
    }
}

static void do_something(struct world *world)
{
    switch (draw(world, 8)) {
    case 0: /* what it was about to write to its store is lost with it */
        world->figures.kills++;
        if (world->keep != NULL) {
            keep_die(world->keep);
        }
        sim_restart_controller(world->sim, (enum sim_writes)draw(world, 2));
        break;
    case 1:
        (void)sim_node_set_ready(world->sim, STR("n2"), draw(world, 2) == 0);
        break;
    default:
        make_job(world);
        break;
    }
}

char *world_run(struct keep *keep, uint64_t seed, struct run_figures *ret_figures)
{
    struct world world = {.keep = keep, .trace = mem_alloc(TRACE_BYTES)};
    world.trace[0] = '\0';
    given(&world, seed);
    for (int i = 0; i < RUN_STEPS; i++) {
        (void)sim_run_until(world.sim, sim_now_ms(world.sim) + draw(&world, STEP_MS));
        if (draw(&world, 3) > 0) { /* else the next thing finds it unwritten */
            flush(&world);
        }
        do_something(&world);
    }
    (void)sim_run_until(world.sim, sim_now_ms(world.sim) + HOUR_MS);
    flush(&world);
    sim_free(world.sim);
    *ret_figures = world.figures;
    return world.trace;
}

/* -- a day ----------------------------------------------------------------------------------------
 */

static size_t allocated_bytes(void)
{
    return __sanitizer_get_current_allocated_bytes != NULL
               ? __sanitizer_get_current_allocated_bytes()
               : mallinfo2().uordblks;
}

static void pass_hour(struct world *world)
{
    uint32_t first = world->made;
    int64_t began_ms = sim_now_ms(world->sim);
    for (int i = 0; i < HOUR_JOBS; i++) {
        make_job(world);
        (void)sim_run_until(world->sim, sim_now_ms(world->sim) + 60000);
        flush(world);
    }
    (void)sim_run_until(world->sim, began_ms + HOUR_MS - 60000);
    for (uint32_t i = first; i < world->made; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "j%u", i);
        struct sim_job_state state;
        assert_true(sim_job_state(world->sim, STR("default"), str_from_c(name), &state));
        assert_true(state.is_finished);
        (void)sim_delete(world->sim, KIND_JOB, STR("default"), str_from_c(name));
    }
    (void)sim_run_until(world->sim, began_ms + HOUR_MS);
    flush(world);
}

void world_churn(struct keep *keep)
{
    struct world world = {.keep = keep};
    given(&world, 5);
    size_t least = SIZE_MAX;
    size_t most = 0;
    uint64_t pages_least = UINT64_MAX;
    uint64_t pages_most = 0;
    for (int hour = 1; hour <= DAY_HOURS; hour++) {
        pass_hour(&world);
        size_t bytes = allocated_bytes();
        uint64_t pages = keep_used_bytes(keep);
        if (keep_gang_records(keep) != 0) {
            fail_msg("the store keeps %llu gangs, and there are none",
                     (unsigned long long)keep_gang_records(keep));
        }
        if (hour > WARM_HOURS) {
            least = bytes < least ? bytes : least;
            most = bytes > most ? bytes : most;
        }
        if (hour > DAY_HOURS / 2) { /* the journal has reached its bound by then */
            pages_least = pages < pages_least ? pages : pages_least;
            pages_most = pages > pages_most ? pages : pages_most;
        }
    }
    assert_true(world.figures.kept > 0);
    printf("a day of %u Jobs: %zu to %zu bytes allocated at rest, %llu to %llu in the store\n",
           world.made, least, most, (unsigned long long)pages_least,
           (unsigned long long)pages_most);
    if (most > least + least / 50) {
        fail_msg("memory grows: %zu to %zu bytes at rest", least, most);
    }
    if (pages_most > pages_least + pages_least / 4) {
        fail_msg("the store grows: %llu to %llu bytes", (unsigned long long)pages_least,
                 (unsigned long long)pages_most);
    }
    sim_free(world.sim);
}
