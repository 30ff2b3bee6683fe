/* main.c - breadth first through all orders of events, each state once.
 *
 *     smallscope [--scope NAME] [--gangs N] [--steps N]
 *
 * --gangs: no more than so many come. --steps: no more than so many are tried in each scope, else
 * all. */
#include "small.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tallyman/base/alloc.h"

#define QUOTA                                                                                      \
    .gangs = {{"x", 0, 2, false}, {"y", 1, 3, false}, {"z", 0, 2, false}}, .quota = {2, 2},        \
    .node_cpu = 4, .strategy = "BestEffortFIFO", .lag = 1
#define ROOM                                                                                       \
    .gangs = {{"x", 0, 2, false}, {"y", 1, 3, false}, {"z", 0, 2, false}}, .quota = {5, 5},        \
    .node_cpu = 2, .placements = 2, .strategy = "BestEffortFIFO", .lag = 1
#define PRIORITY                                                                                   \
    .gangs = {{"x", 0, 2, false}, {"y", 0, 2, false}, {"z", 0, 2, true}}, .quota = {2, 0},         \
    .node_cpu = 1, .strategy = "StrictFIFO", .lag = 1
#define USERS                                                                                      \
    .gangs = {{"x", 0, 2, false}, {"y", 0, 1, false}, {"x", 0, 2, false}}, .quota = {2, 0},        \
    .node_cpu = 2, .strategy = "BestEffortFIFO", .lag = 1

/* Three gangs in any order, and two with whatever may go wrong, so that each comes to its end. */
static const struct small_scope scopes[] = {
    {.name = "quota", .gang_count = 3, QUOTA},
    {.name = "quota-faults", .gang_count = 2, .faults = 1, QUOTA},
    {.name = "quota-two-faults", .gang_count = 2, .faults = 2, QUOTA},
    {.name = "room", .gang_count = 3, ROOM},
    {.name = "room-faults", .gang_count = 2, .faults = 1, ROOM},
    {.name = "priority", .gang_count = 3, PRIORITY},
    {.name = "priority-faults", .gang_count = 3, .faults = 1, PRIORITY},
    {.name = "users", .gang_count = 3, .user_edits = 2, USERS},
    {.name = "users-faults", .gang_count = 2, .user_edits = 1, .faults = 1, USERS},
    {.name = "late-admissions", .gang_count = 2, .faults = 1, .has_late_admissions = true, ROOM},
};

/* -- the way that is walked ----------------------------------------------------------------------
 */

static struct {
    const struct small_scope *scope;
    struct small_step steps[SMALL_STEPS];
    uint32_t count;
} way;

static void tell_way(void)
{
    printf("in scope %s, after\n", way.scope->name);
    for (uint32_t i = 0; i < way.count; i++) {
        printf("  %2u %s: %s\n", i + 1, way.scope->gangs[way.steps[i].gang].name,
               step_name(way.steps[i].kind));
    }
}

void small_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("ERROR: ");
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    tell_way();
    fflush(NULL);
    _exit(1);
}

static void on_abort(int number)
{
    printf("ERROR: an assertion failed\n");
    tell_way();
    fflush(NULL);
    (void)signal(number, SIG_DFL);
}

/* -- states --------------------------------------------------------------------------------------
 */

struct node {
    uint64_t fingerprint;
    uint32_t parent;
    struct small_step step;
    uint16_t depth;
};

static struct {
    struct node *nodes;
    uint32_t count, capacity;
    uint32_t *slots; /* by fingerprint; number of the node + 1 */
    uint32_t slot_count;
} states;

static uint32_t *find_slot(uint64_t fingerprint)
{
    uint32_t at = (uint32_t)fingerprint & (states.slot_count - 1);
    while (states.slots[at] != 0 && states.nodes[states.slots[at] - 1].fingerprint != fingerprint) {
        at = (at + 1) & (states.slot_count - 1);
    }
    return &states.slots[at];
}

static void grow_slots(void)
{
    mem_free(states.slots);
    states.slot_count = states.slot_count == 0 ? 1 << 16 : states.slot_count * 2;
    states.slots = mem_zalloc(mem_array_bytes(states.slot_count, sizeof(uint32_t)));
    for (uint32_t i = 0; i < states.count; i++) {
        *find_slot(states.nodes[i].fingerprint) = i + 1;
    }
}

/* False: it was there. */
static bool add_state(uint64_t fingerprint, uint32_t parent, struct small_step step)
{
    if (states.count >= states.slot_count / 2) {
        grow_slots();
    }
    uint32_t *slot = find_slot(fingerprint);
    if (*slot != 0) {
        return false;
    }
    states.nodes = mem_grow(states.nodes, states.count, &states.capacity, sizeof(struct node));
    uint16_t depth = states.count == 0 ? 0 : (uint16_t)(states.nodes[parent].depth + 1);
    states.nodes[states.count] = (struct node){fingerprint, parent, step, depth};
    *slot = ++states.count;
    return true;
}

static void forget_states(void)
{
    mem_free(states.nodes);
    mem_free(states.slots);
    memset(&states, 0, sizeof(states));
}

/* -- walking -------------------------------------------------------------------------------------
 */

static uint32_t possible_steps(const struct small_world *world, struct small_step *steps)
{
    uint32_t count = 0;
    for (uint8_t kind = 1; kind < STEP_COUNT; kind++) {
        for (uint8_t gang = 0; gang < SMALL_GANGS; gang++) {
            struct small_step step = {kind, gang};
            if (world_can(world, step)) {
                steps[count++] = step;
            }
        }
    }
    return count;
}

static void set_way(uint32_t number)
{
    way.count = states.nodes[number].depth;
    for (uint32_t at = number; states.nodes[at].depth > 0; at = states.nodes[at].parent) {
        way.steps[states.nodes[at].depth - 1] = states.nodes[at].step;
    }
}

static struct small_world *walk(uint32_t number)
{
    struct small_world *world = world_new(way.scope);
    set_way(number);
    uint32_t count = way.count;
    for (uint32_t i = 0; i < count; i++) {
        way.count = i + 1;
        world_do(world, way.steps[i]);
    }
    return world;
}

struct figures {
    uint64_t steps;
    uint64_t rests;
    uint16_t depth;
};

/* Uses the world up. */
static void look(struct small_world *world, struct figures *figures)
{
    core_assert_consistent(world->core);
    if (world_is_quiet(world)) {
        figures->rests++;
        if (check_pauses(world)) {
            check_restart(world);
        }
        check_drains(world);
    }
    world_free(world);
}

static void take_step(struct small_world *world, uint32_t from, struct small_step step,
                      struct figures *figures)
{
    if (way.count == SMALL_STEPS) {
        small_fail("a way of more than %d steps", SMALL_STEPS);
    }
    way.steps[way.count++] = step;
    world_do(world, step);
    figures->steps++;
    if (add_state(world_fingerprint(world), from, step)) {
        figures->depth = states.nodes[states.count - 1].depth;
        look(world, figures);
    } else {
        world_free(world);
    }
}

static void follow(uint32_t number, struct figures *figures)
{
    struct small_step steps[SMALL_CHILDREN];
    struct small_world *world = walk(number);
    uint32_t count = possible_steps(world, steps);
    for (uint32_t i = 0; i < count; i++) {
        world = i == 0 ? world : walk(number);
        take_step(world, number, steps[i], figures);
    }
    if (count == 0) {
        world_free(world);
    }
}

static double cpu_s(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static void search(const struct small_scope *scope, uint64_t steps_max)
{
    struct figures figures = {0};
    double started_s = cpu_s();
    way.scope = scope;
    way.count = 0;
    objects_given(scope);
    struct small_world *world = world_new(scope);
    (void)add_state(world_fingerprint(world), 0, (struct small_step){0, 0});
    world_free(world);
    uint32_t next = 0;
    while (next < states.count && figures.steps < steps_max) {
        follow(next++, &figures);
    }
    printf("%-16s %8u states, %9llu steps, %7llu at rest, %2u deep, %s, %.1f s of CPU\n",
           scope->name, states.count, (unsigned long long)figures.steps,
           (unsigned long long)figures.rests, figures.depth,
           next == states.count ? "all" : "not all", cpu_s() - started_s);
    fflush(stdout);
    forget_states();
}

int main(int argc, char **argv)
{
    uint64_t steps_max = UINT64_MAX;
    uint8_t gangs_max = SMALL_GANGS;
    const char *only = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--steps") == 0) {
            steps_max = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--gangs") == 0) {
            gangs_max = (uint8_t)strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--scope") == 0) {
            only = argv[i + 1];
        }
    }
    (void)signal(SIGABRT, on_abort);
    for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
        if (only == NULL || strcmp(only, scopes[i].name) == 0) {
            struct small_scope scope = scopes[i];
            scope.gang_count = scope.gang_count < gangs_max ? scope.gang_count : gangs_max;
            search(&scope, steps_max);
        }
    }
    return 0;
}
