/* wait.c - see wait.h. */
struct quota_wait;
static void wait_refresh(struct quota_wait *wait);
#define RB_AUGMENT(wait) wait_refresh(wait)
#include "wait.h"

#include <assert.h>

#include "tallyman/base/alloc.h"

static int compare_waits(const struct quota_wait *a, const struct quota_wait *b)
{
    return shape_compare_head(a->shape, b->shape);
}

RB_GENERATE_STATIC(quota_wait_tree, quota_wait, in_line, compare_waits)

/* From the wait up to the root: the least that is asked. */
static void wait_refresh(struct quota_wait *wait)
{
    for (; wait != NULL; wait = RB_PARENT(wait, in_line)) {
        const struct quota_wait *left = RB_LEFT(wait, in_line);
        const struct quota_wait *right = RB_RIGHT(wait, in_line);
        wait->least = wait->asked;
        wait->least = left != NULL && left->least < wait->least ? left->least : wait->least;
        wait->least = right != NULL && right->least < wait->least ? right->least : wait->least;
    }
}

static struct quota_line *line_find(struct queue_state *queue, struct str flavor,
                                    struct str resource)
{
    struct quota_line *line = queue->lines;
    while (line != NULL && !(str_eq(line->flavor, flavor) && str_eq(line->resource, resource))) {
        line = line->next_in_queue;
    }
    return line;
}

static struct quota_line *line_get(struct queue_state *queue, struct str flavor,
                                   struct str resource)
{
    struct quota_line *line = line_find(queue, flavor, resource);
    if (line == NULL) {
        line = MEM_NEW(struct quota_line);
        line->flavor = str_own(flavor);
        line->resource = str_own(resource);
        RB_INIT(&line->waits);
        line->next_in_queue = queue->lines;
        queue->lines = line;
    }
    return line;
}

void queue_lines_free(struct queue_state *queue)
{
    while (queue->lines != NULL) {
        struct quota_line *line = queue->lines;
        queue->lines = line->next_in_queue;
        assert(RB_EMPTY(&line->waits));
        str_drop(&line->flavor);
        str_drop(&line->resource);
        mem_free(line);
    }
}

void waits_link(struct shape *shape)
{
    if (shape->is_in_line || shape->is_ready || gang_line_is_empty(&shape->gangs)) {
        return;
    }
    shape->is_in_line = true;
    for (uint32_t i = 0; i < shape->wait_count; i++) {
        struct quota_wait *wait = &shape->waits[i];
        wait->least = wait->asked;
        RB_INSERT(quota_wait_tree, &wait->line->waits, wait);
    }
}

void waits_unlink(struct shape *shape)
{
    if (!shape->is_in_line) {
        return;
    }
    shape->is_in_line = false;
    for (uint32_t i = 0; i < shape->wait_count; i++) {
        RB_REMOVE(quota_wait_tree, &shape->waits[i].line->waits, &shape->waits[i]);
    }
}

void waits_clear(struct shape *shape)
{
    waits_unlink(shape);
    mem_free(shape->waits);
    shape->waits = NULL;
    shape->wait_count = 0;
}

/* Waits at one account are merged: the least that is asked there counts. */
static void add_wait(struct shape *shape, struct quota_line *line, int64_t asked)
{
    for (uint32_t i = 0; i < shape->wait_count; i++) {
        struct quota_wait *wait = &shape->waits[i];
        if (wait->line == line) {
            wait->asked = asked < wait->asked ? asked : wait->asked;
            return;
        }
    }
    shape->waits[shape->wait_count++] =
        (struct quota_wait){.shape = shape, .line = line, .asked = asked};
}

void waits_set(struct shape *shape, const struct quota_shortage *shortages, uint32_t count)
{
    waits_clear(shape);
    if (count == 0) {
        return;
    }
    bool is_any = count > SHORTAGES_MAX;
    shape->waits = mem_zalloc((is_any ? 1 : count) * sizeof(struct quota_wait));
    if (is_any) {
        add_wait(shape, line_get(shape->queue, STR_NONE, STR_NONE), 0);
    }
    for (uint32_t i = 0; !is_any && i < count; i++) {
        struct quota_line *line =
            line_get(shape->queue, shortages[i].flavor, shortages[i].resource);
        add_wait(shape, line, shortages[i].asked);
    }
}

/* The first in line that asks for no more than that. */
static struct quota_wait *line_first(const struct quota_line *line, i128 free)
{
    struct quota_wait *wait = RB_ROOT(&line->waits);
    if (wait == NULL || wait->least > free) {
        return NULL;
    }
    for (;;) {
        struct quota_wait *left = RB_LEFT(wait, in_line);
        if (left != NULL && left->least <= free) {
            wait = left;
        } else if (wait->asked <= free) {
            return wait;
        } else {
            wait = RB_RIGHT(wait, in_line);
            assert(wait != NULL && wait->least <= free);
        }
    }
}

static void line_wake_next(struct core *core, struct queue_state *queue, struct quota_line *line)
{
    i128 free = quota_available(&queue->node, line->flavor, line->resource);
    struct quota_wait *wait = line_first(line, free);
    bool is_strict = queue_is_strict(queue);
    bool is_judged = wait != NULL && wait->shape->judged_in == core->pass && core->is_passing;
    if (wait == NULL || is_strict || is_judged) {
        line->is_woken = false;
    }
    if (wait != NULL && !is_judged) {
        struct shape *shape = wait->shape;
        wake_shape(core, shape);
        shape->is_woken_by_cell = !is_strict;
    }
}

void waits_go_on(struct core *core, struct queue_state *queue)
{
    for (struct quota_line *line = queue->lines; line != NULL; line = line->next_in_queue) {
        if (line->is_woken) {
            line_wake_next(core, queue, line);
        }
    }
}

static void line_wake_all(struct core *core, struct quota_line *line, i128 free)
{
    struct quota_wait *wait = RB_MIN(quota_wait_tree, &line->waits);
    while (wait != NULL) {
        struct quota_wait *next = RB_NEXT(quota_wait_tree, &line->waits, wait);
        if (wait->asked <= free) {
            wake_shape(core, wait->shape);
        }
        wait = next;
    }
}

static void queue_wake(struct core *core, struct queue_state *queue, struct str flavor,
                       struct str resource)
{
    /* With a half-life the first in line isn't the first in order. */
    bool is_by_namespace = queue->node.half_life_ms != 0;
    for (struct quota_line *line = queue->lines; line != NULL; line = line->next_in_queue) {
        if (!str_is_set(line->flavor)) {
            line_wake_all(core, line, INT64_MAX);
        } else if (is_by_namespace && str_eq(line->flavor, flavor) &&
                   str_eq(line->resource, resource)) {
            line_wake_all(core, line, quota_available(&queue->node, flavor, resource));
        } else if (!RB_EMPTY(&line->waits) && str_eq(line->flavor, flavor) &&
                   str_eq(line->resource, resource)) {
            line->is_woken = true;
            line_wake_next(core, queue, line);
        }
    }
}

void waits_wake(struct core *core, struct quota_node *top, struct str flavor, struct str resource)
{
    if (top->queue != NULL) {
        queue_wake(core, top->queue, flavor, resource);
    }
    for (struct quota_node *child = top->children; child != NULL; child = child->next_sibling) {
        waits_wake(core, child, flavor, resource); /* no deeper than QUOTA_DEPTH_MAX */
    }
}
