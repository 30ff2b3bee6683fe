/* scenario_life.c - time, and the lives of the controller. */
#include "support/scenario_internal.h"

#include <stdlib.h>

#include "support/check.h"

#define TRACE_MAX_BYTES (8u * 1024 * 1024)
#define WAKES_MAX       100000

/* -- time and life ------------------------------------------------------------------------------
 */

int64_t scenario_now_ms(const struct scenario *s)
{
    return s->now_ms - SCENARIO_START_MS;
}

static void tick(struct scenario *s)
{
    struct event event = {.kind = EVENT_TICK};
    step(s, &event);
}

void at(struct scenario *s, int64_t ms)
{
    scenario_start(s);
    int64_t goal_ms = SCENARIO_START_MS + ms;
    assert_true(goal_ms >= s->now_ms);
    int wakes = 0;
    while (s->wake_ms <= goal_ms) {
        if (s->wake_ms <= s->now_ms && wakes > 0 && s->wake_ms != s->now_ms) {
            fail_msg("at %lld ms the core wants to be woken in the past",
                     (long long)scenario_now_ms(s));
        }
        s->now_ms = s->wake_ms > s->now_ms ? s->wake_ms : s->now_ms;
        int64_t before_ms = s->wake_ms;
        tick(s);
        if (++wakes > WAKES_MAX || s->wake_ms == before_ms) {
            fail_msg("at %lld ms the core wants to be woken again and again",
                     (long long)scenario_now_ms(s));
        }
    }
    s->now_ms = goal_ms;
    tick(s);
}

uint32_t wakes_at_once(struct scenario *s, uint32_t most)
{
    uint32_t count = 0;
    scenario_start(s);
    while (count < most && s->wake_ms <= s->now_ms) {
        tick(s);
        count++;
    }
    return count;
}

void clock_jumps(struct scenario *s, int64_t by_ms)
{
    scenario_start(s);
    s->now_ms += by_ms;
    tick(s);
}

static bool are_plain;

void scenarios_are_plain(bool is_plain)
{
    are_plain = is_plain;
}

static uint32_t cut_at;

void scenarios_are_cut(uint32_t admissions_per_step)
{
    cut_at = admissions_per_step;
}

uint32_t scenarios_cut_at(void)
{
    return cut_at;
}

static uint64_t selector_cost;

void scenarios_try_selectors(uint64_t cost_per_step)
{
    selector_cost = cost_per_step;
}

static int64_t pace_ms;

void scenarios_are_paced(int64_t interval_ms)
{
    pace_ms = interval_ms;
}

static void begin_core(struct scenario *s)
{
    struct core_options options = {.gives_advice = true,
                                   .is_plain = are_plain || getenv("SCENARIOS_ARE_PLAIN") != NULL,
                                   .admissions_per_step = cut_at,
                                   .selector_cost_per_step = selector_cost,
                                   .admission_interval_ms = pace_ms};
    s->core = core_new(&options);
    s->queue_first = NULL;
    s->queue_last = &s->queue_first;
    s->wake_ms = INT64_MAX;
}

struct scenario *scenario_new(void)
{
    struct scenario *s = MEM_NEW(struct scenario);
    arena_init(&s->arena);
    s->now_ms = SCENARIO_START_MS;
    s->next_version = 1000;
    text_init(&s->trace, &s->arena, TRACE_MAX_BYTES);
    begin_core(s);
    given_namespace(s, NAMESPACE_DEFAULT, "");
    return s;
}

void scenario_free(struct scenario *s)
{
    if (s == NULL) {
        return;
    }
    core_free(s->core);
    HASH_CLEAR(hh, s->entries);
    arena_deinit(&s->arena);
    mem_free(s);
}

int scenario_setup(void **state)
{
    *state = scenario_new();
    return 0;
}

int scenario_teardown(void **state)
{
    scenario_free(*state);
    return 0;
}

void listing_order(struct scenario *s, uint64_t seed)
{
    s->listing_seed = seed;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void synced(struct scenario *s, int kind)
{
    struct event event = {.kind = EVENT_SYNCED, .synced_kind = (enum object_kind)kind};
    step(s, &event);
}

static void list_mixed(struct scenario *s, struct entry **order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        tell(s, order[i]);
    }
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        synced(s, kind);
    }
}

/* Each kind is complete before the next one begins, in an order that the seed turns. */
static void list_by_kind(struct scenario *s, struct entry **order, uint32_t count)
{
    int kinds = KIND_COUNT - 1;
    for (int k = 0; k < kinds; k++) {
        int kind = 1 + (int)(((uint64_t)k * 7 + s->listing_seed) % (uint64_t)kinds);
        for (uint32_t i = 0; i < count; i++) {
            if ((int)order[i]->kind == kind) {
                tell(s, order[i]);
            }
        }
        synced(s, kind);
    }
}

static void list_objects(struct scenario *s)
{
    uint32_t count = HASH_COUNT(s->entries);
    struct entry **order = ARENA_ARRAY(&s->arena, struct entry *, count + 1);
    uint32_t n = 0;
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        entry->pending_effect = 0; /* its answer came to a process that is no more */
        order[n++] = entry;
    }
    uint64_t random = s->listing_seed;
    for (uint32_t i = n; s->listing_seed != 0 && i > 1; i--) {
        uint32_t j = (uint32_t)(next_random(&random) % i);
        struct entry *other = order[j];
        order[j] = order[i - 1];
        order[i - 1] = other;
    }
    if (s->listing_seed % 2 == 0) {
        list_mixed(s, order, n);
    } else {
        list_by_kind(s, order, n);
    }
}

void scenario_start(struct scenario *s)
{
    if (s->is_started) {
        return;
    }
    s->is_started = true;
    list_objects(s);
}

void restart(struct scenario *s, enum restart_with what)
{
    scenario_start(s);
    core_free(s->core);
    begin_core(s);
    struct entry *next;
    for (struct entry *entry = s->first; entry != NULL; entry = next) {
        next = entry->next;
        if (entry->kind == KIND_ADMISSION && what == WITHOUT_ADMISSIONS) {
            entry_drop(s, entry);
        }
    }
    s->is_started = false;
    scenario_start(s);
}

struct core *scenario_core(struct scenario *s)
{
    return s->core;
}

void checks_are_cheap(struct scenario *s)
{
    s->is_cheap = true;
}

struct scenario_counts counts_take(struct scenario *s)
{
    scenario_start(s);
    struct scenario_counts counts = s->counts;
    s->counts = (struct scenario_counts){.effects = 0};
    return counts;
}

bool scenario_has(const struct scenario *s, enum object_kind kind, const char *name)
{
    return entry_find(s, kind, name) != NULL;
}
