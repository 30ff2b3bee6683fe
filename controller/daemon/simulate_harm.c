/* simulate_harm.c - see the header. */
#include "simulate_harm.h"

#include <string.h>

#include "tallyman/api/job.h"
#include "tallyman/api/node.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/map.h"

struct harm_node {
    struct str name; /* owned */
    UT_hash_handle hh;
};

void harm_init(struct harm *harm)
{
    *harm = (struct harm){.struck_ms = -1};
}

static void forget_node(struct harm *harm, struct harm_node *node)
{
    HASH_DEL(harm->nodes, node);
    mem_free((void *)(uintptr_t)node->name.ptr);
    mem_free(node);
}

void harm_deinit(struct harm *harm)
{
    struct harm_node *node;
    struct harm_node *next;
    HASH_ITER (hh, harm->nodes, node, next) {
        forget_node(harm, node);
    }
}

static void strike(struct harm *harm, const struct sim *sim, const char *what, struct str name,
                   const char *did)
{
    harm->struck_ms = sim_now_ms(sim);
    harm->strikes++;
    (void)snprintf(harm->what, sizeof(harm->what), "%s" STR_FMT " %s", what, STR_ARG(name), did);
}

void harm_note(struct harm *harm, const struct sim *sim, const struct sim_note *note)
{
    if (note->kind != SIM_POD_BOUND) {
        return;
    }
    size_t slash = str_find_char(note->job, '/');
    const struct job *job =
        str_is_empty(note->job)
            ? NULL
            : sim_find(sim, KIND_JOB, str_take(note->job, slash), str_skip(note->job, slash + 1));
    if (job == NULL || str_is_empty(string_map_get(&job->meta.labels, "tallyman.dev/queue"))) {
        strike(harm, sim, "pod ", note->pod, "of no gang took room");
    }
}

/* -- nodes ---------------------------------------------------------------------------------------
 */

static bool is_well(const struct node *node)
{
    return condition_is_true(&node->status.conditions, "Ready") &&
           !(node->spec.unschedulable.is_set && node->spec.unschedulable.value);
}

static struct harm_node *find_node(const struct harm *harm, struct str name)
{
    struct harm_node *node = NULL;
    HASH_FIND(hh, harm->nodes, name.ptr, (unsigned)name.len, node);
    return node;
}

static void add_node(void *ctx, const void *value)
{
    struct harm *harm = ctx;
    const struct node *from = value;
    if (!is_well(from) || find_node(harm, from->meta.name) != NULL) {
        return;
    }
    struct harm_node *node = MEM_NEW(struct harm_node);
    char *copy = mem_alloc(from->meta.name.len);
    memcpy(copy, from->meta.name.ptr, from->meta.name.len);
    node->name = (struct str){copy, from->meta.name.len};
    HASH_ADD_KEYPTR(hh, harm->nodes, node->name.ptr, (unsigned)node->name.len, node);
}

static void look_at_nodes(struct harm *harm, const struct sim *sim)
{
    struct harm_node *node;
    struct harm_node *next;
    HASH_ITER (hh, harm->nodes, node, next) {
        const struct node *now = sim_find(sim, KIND_NODE, STR_NONE, node->name);
        if (now == NULL || !is_well(now)) {
            strike(harm, sim, "Node ", node->name, "fell ill or went");
            forget_node(harm, node);
        }
    }
    sim_each(sim, KIND_NODE, add_node, harm);
}

/* -- devices -------------------------------------------------------------------------------------
 */

static void count_rule(void *ctx, const void *value)
{
    (void)value;
    ++*(uint32_t *)ctx;
}

void harm_look(struct harm *harm, const struct sim *sim)
{
    if (harm->supply_version != sim_supply_version(sim)) {
        harm->supply_version = sim_supply_version(sim);
        look_at_nodes(harm, sim);
        int64_t devices = sim_devices(sim).total;
        if (devices < harm->devices) {
            strike(harm, sim, "", STR_NONE, "devices went");
        }
        harm->devices = devices;
    }
    uint32_t rules = 0;
    sim_each(sim, KIND_DEVICE_TAINT_RULE, count_rule, &rules);
    if (rules > harm->rules) {
        strike(harm, sim, "", STR_NONE, "a DeviceTaintRule came");
    }
    harm->rules = rules;
}
