/* status.c - what a Queue and a ResourceFlavor say of themselves. */
#include "check.h"
#include "history.h"

#include <stdlib.h>
#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

/* -- what isn't supported yet ----------------------------------------------------------------- */

static void name_field(struct text *text, bool is_set, const char *field)
{
    if (is_set) {
        text_addf(text, "%s%s", text->len == 0 ? "" : ", ", field);
    }
}

/* -- conditions ------------------------------------------------------------------------------- */

/* The time of the last change is kept while the status stays. */
static struct condition_list ready_condition(const struct core *core, struct arena *arena,
                                             const struct condition_list *old,
                                             const struct object_meta *meta, bool is_ready,
                                             const char *reason, struct str message)
{
    struct condition *condition = ARENA_NEW(arena, struct condition);
    condition->type = STR("Ready");
    condition->status = str_from_c(is_ready ? "True" : "False");
    condition->reason = str_from_c(reason);
    condition->message = message;
    condition->observed_generation = meta->generation;
    condition->last_transition_time = (struct opt_time){true, core->now_ms / 1000 * 1000};
    const struct condition *before = condition_find(old, "Ready");
    if (before != NULL && str_eq(before->status, condition->status) &&
        before->last_transition_time.is_set) {
        condition->last_transition_time = before->last_transition_time;
    }
    return (struct condition_list){.items = condition, .count = 1};
}

static struct str missing_flavors(const struct core *core, struct arena *arena,
                                  const struct queue_state *queue)
{
    struct text text;
    text_init(&text, arena, 400);
    for (uint32_t i = 0; i < queue->node.cell_count; i++) {
        const struct quota_cell *cell = &queue->node.cells[i];
        bool is_repeat = i > 0 && str_eq(queue->node.cells[i - 1].flavor, cell->flavor);
        if (cell->is_listed && !is_repeat && flavor_object(core, cell->flavor) == NULL) {
            text_addf(&text, "%s" STR_FMT, text.len == 0 ? "" : ", ", STR_ARG(cell->flavor));
        }
    }
    return text_str(&text);
}

static struct condition_list queue_conditions(const struct core *core, struct arena *arena,
                                              const struct queue_state *queue)
{
    const struct queue *object = queue->object;
    const struct condition_list *old = &object->status.conditions;
    if (object->meta.deletion_timestamp.is_set) {
        return ready_condition(core, arena, old, &object->meta, false, "Deleting",
                               STR("the queue is being deleted; it admits nothing any more"));
    }
    struct str missing = missing_flavors(core, arena, queue);
    if (missing.len > 0) {
        return ready_condition(core, arena, old, &object->meta, false, "FlavorNotFound",
                               arena_format(arena,
                                            "ResourceFlavor " STR_FMT
                                            " doesn't exist; create it, or name "
                                            "another in spec.resourceGroups",
                                            STR_ARG(missing)));
    }
    if (queue->node.is_in_cycle) {
        return ready_condition(core, arena, old, &object->meta, false, "Cycle",
                               quota_trouble(&queue->node, arena));
    }
    if (str_is_set(queue->node.doubled)) {
        return ready_condition(core, arena, old, &object->meta, false, "Invalid",
                               doubled_text(arena, &queue->node));
    }
    struct verdict obstacle = check_obstacle(core, queue, arena);
    if (obstacle.reason != REASON_NONE) {
        return ready_condition(core, arena, old, &object->meta, false, "AdmissionCheckUnavailable",
                               obstacle.message);
    }
    return ready_condition(core, arena, old, &object->meta, true, "Ready",
                           STR("the queue admits gangs"));
}

static struct condition_list cohort_conditions(const struct core *core, struct arena *arena,
                                               const struct cohort_state *cohort)
{
    const struct object_meta *meta = &cohort->object->meta;
    const struct condition_list *old = &cohort->object->status.conditions;
    if (cohort->node.is_in_cycle) {
        return ready_condition(core, arena, old, meta, false, "Cycle",
                               STR("the cohorts above it form a cycle, or are too many; nothing is "
                                   "admitted below it"));
    }
    if (str_is_set(cohort->node.doubled)) {
        return ready_condition(core, arena, old, meta, false, "Invalid",
                               doubled_text(arena, &cohort->node));
    }
    return ready_condition(core, arena, old, meta, true, "Ready",
                           STR("queues below it share its quota"));
}

/* -- figures ---------------------------------------------------------------------------------- */

static struct usage_flavor_list usage_list(struct arena *arena, const struct quota_node *node)
{
    struct usage_flavor_list list = {.count = 0};
    list.items = ARENA_ARRAY(arena, struct usage_flavor, node->cell_count + 1);
    for (uint32_t i = 0; i < node->cell_count; i++) {
        const struct quota_cell *cell = &node->cells[i];
        uint32_t f = 0;
        while (f < list.count && !str_eq(list.items[f].name, cell->flavor)) {
            f++;
        }
        if (f == list.count) {
            list.items[f].name = arena_copy_str(arena, cell->flavor);
            list.items[f].resources.items =
                ARENA_ARRAY(arena, struct usage_resource, node->cell_count);
            list.count++;
        }
        struct usage_resource_list *resources = &list.items[f].resources;
        resources->items[resources->count++] = (struct usage_resource){
            .name = arena_copy_str(arena, cell_name(cell)),
            .nominal = resource_amount_format(arena, cell->resource, i128_clamp(cell->subtree)),
            .used = resource_amount_format(arena, cell->resource, i128_clamp(cell->used))};
    }
    return list;
}

/* used/nominal of the resource of which the largest part is used. */
static struct str dominant_usage(struct arena *arena, const struct quota_node *node)
{
    const struct quota_cell *top = NULL;
    for (uint32_t i = 0; i < node->cell_count; i++) {
        const struct quota_cell *cell = &node->cells[i];
        bool is_larger = top == NULL || cell->used * top->subtree > top->used * cell->subtree;
        top = is_larger ? cell : top;
    }
    if (top == NULL) {
        return STR_NONE;
    }
    return arena_format(
        arena, STR_FMT " " STR_FMT "/" STR_FMT, STR_ARG(cell_name(top)),
        STR_ARG(resource_amount_format(arena, top->resource, i128_clamp(top->used))),
        STR_ARG(resource_amount_format(arena, top->resource, i128_clamp(top->subtree))));
}

static bool queue_content(struct core *core, struct str name, struct arena *arena,
                          struct status_content *ret_content)
{
    struct queue_state *queue = queue_find(core, name);
    if (queue == NULL || queue->object == NULL) {
        return false;
    }
    struct queue *content = &ret_content->queue;
    *content = (struct queue){.meta.name = arena_copy_str(arena, name)};
    content->status.observed_generation = queue->object->meta.generation;
    content->status.conditions = queue_conditions(core, arena, queue);
    content->status.pending = (struct opt_int){true, queue->pending_count};
    content->status.admitted = (struct opt_int){true, queue->admitted_count};
    content->status.usage = dominant_usage(arena, &queue->node);
    content->status.flavors = usage_list(arena, &queue->node);
    content->status.fair_sharing = history_status(queue, arena);
    return status_write_is_news(KIND_QUEUE, content, &queue->status);
}

static bool flavor_content(struct core *core, struct str name, struct arena *arena,
                           struct status_content *ret_content)
{
    struct flavor_state *flavor = flavor_find(core, name);
    if (flavor == NULL) {
        return false;
    }
    const struct resource_flavor *object = flavor->object;
    struct text text;
    text_init(&text, arena, 300);
    name_field(&text, object->spec.cost_rates.count > 0, "costRates");
    struct resource_flavor *content = &ret_content->flavor;
    *content = (struct resource_flavor){.meta.name = arena_copy_str(arena, name)};
    content->status.observed_generation = object->meta.generation;
    content->status.conditions =
        text.len > 0 ? ready_condition(core, arena, &object->status.conditions, &object->meta, true,
                                       "PartlySupported",
                                       arena_format(arena, "this version doesn't act on: " STR_FMT,
                                                    STR_ARG(text_str(&text))))
                     : ready_condition(core, arena, &object->status.conditions, &object->meta, true,
                                       "Ready", STR("queues may use the flavor"));
    flavor_fill_figures(core, flavor, arena, &content->status);
    return status_write_is_news(KIND_RESOURCE_FLAVOR, content, &flavor->status);
}

static bool cohort_content(struct core *core, struct str name, struct arena *arena,
                           struct status_content *ret_content)
{
    struct cohort_state *cohort = cohort_find(core, name);
    if (cohort == NULL || cohort->object == NULL) {
        return false;
    }
    struct cohort *content = &ret_content->cohort;
    *content = (struct cohort){.meta.name = arena_copy_str(arena, name)};
    content->status.observed_generation = cohort->object->meta.generation;
    content->status.conditions = cohort_conditions(core, arena, cohort);
    content->status.usage = dominant_usage(arena, &cohort->node);
    content->status.flavors = usage_list(arena, &cohort->node);
    return status_write_is_news(KIND_COHORT, content, &cohort->status);
}

bool core_status_content(struct core *core, enum object_kind kind, struct str name,
                         struct arena *arena, struct status_content *ret_content)
{
    ret_content->kind = kind;
    if (kind == KIND_QUEUE) {
        return queue_content(core, name, arena, ret_content);
    }
    if (kind == KIND_RESOURCE_FLAVOR) {
        return flavor_content(core, name, arena, ret_content);
    }
    return kind == KIND_COHORT && cohort_content(core, name, arena, ret_content);
}

static int64_t milli(struct str resource, i128 amount)
{
    return i128_clamp(resource_is_milli(resource) ? amount : amount * 1000);
}

static void fill_cells(const struct queue_state *queue, struct arena *arena,
                       struct queue_figures *figures)
{
    figures->cells = ARENA_ARRAY(arena, struct cell_figures, queue->node.cell_count + 1);
    figures->cell_count = queue->node.cell_count;
    for (uint32_t i = 0; i < queue->node.cell_count; i++) {
        const struct quota_cell *cell = &queue->node.cells[i];
        figures->cells[i] =
            (struct cell_figures){.flavor = arena_copy_str(arena, cell->flavor),
                                  .resource = arena_copy_str(arena, cell->resource),
                                  .used_milli = milli(cell->resource, cell->used),
                                  .nominal_milli = milli(cell->resource, cell->nominal)};
    }
}

struct queue_figures_list core_queue_figures(const struct core *core, struct arena *arena)
{
    struct queue_figures_list list = {.count = 0};
    list.items = ARENA_ARRAY(arena, struct queue_figures, HASH_COUNT(core->queues) + 1);
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, (struct queue_tree *)(uintptr_t)&core->queue_order) {
        struct queue_figures *figures = &list.items[list.count++];
        figures->queue = arena_copy_str(arena, queue->name);
        figures->pending = queue->pending_count;
        figures->admitted = queue->admitted_count;
        fill_cells(queue, arena, figures);
    }
    return list;
}

/* -- when they are written -------------------------------------------------------------------- */

/* How many gangs were told. */
static uint32_t refresh_positions(struct core *core, struct queue_state *queue)
{
    uint32_t count = 0;
    struct gang *gang = gang_line_first(&queue->pending);
    for (; gang != NULL && count < POSITION_EXACT_MAX; count++) {
        gang_show(core, gang);
        gang = gang_line_next(&queue->pending, gang);
    }
    return count;
}

/* When something about the queue is to be written; INT64_MAX: nothing is. */
static int64_t queue_due_ms(const struct queue_state *queue)
{
    int64_t due_ms = queue->object != NULL ? status_write_due_ms(&queue->status) : INT64_MAX;
    if (queue->is_pending_dirty && queue->next_refresh_ms < due_ms) {
        due_ms = queue->next_refresh_ms;
    }
    return due_ms;
}

void queue_set_due(struct core *core, struct queue_state *queue)
{
    int64_t due_ms = queue_due_ms(queue);
    if (queue->is_due_set && queue->due_ms == due_ms) {
        return;
    }
    queue_clear_due(core, queue);
    if (due_ms != INT64_MAX) {
        queue->is_due_set = true;
        queue->due_ms = due_ms;
        RB_INSERT(queue_due_tree, &core->due_queues, queue);
    }
}

void queue_clear_due(struct core *core, struct queue_state *queue)
{
    if (queue->is_due_set) {
        RB_REMOVE(queue_due_tree, &core->due_queues, queue);
        queue->is_due_set = false;
    }
}

/* How much of it there was to say. */
static uint32_t queue_refresh(struct core *core, struct queue_state *queue)
{
    uint32_t said = 1;
    if (queue->object != NULL && core->now_ms >= status_write_due_ms(&queue->status)) {
        status_write_emit(core, KIND_QUEUE, queue->name, &queue->status);
    }
    if (queue->is_pending_dirty && core->now_ms >= queue->next_refresh_ms) {
        queue->is_pending_dirty = false;
        queue->next_refresh_ms = core->now_ms + POSITION_REFRESH_MS;
        said += refresh_positions(core, queue);
    }
    queue_set_due(core, queue);
    return said;
}

static int compare_names(const void *a, const void *b)
{
    const struct queue_state *const *left = a;
    const struct queue_state *const *right = b;
    return queue_compare_name(*left, *right);
}

/* Those that are due, by name; what is more than a step should say is left to the next. */
static void refresh_queues(struct core *core)
{
    struct queue_state **due = NULL;
    uint32_t count = 0;
    uint32_t capacity = 0;
    struct queue_state *queue;
    RB_FOREACH (queue, queue_due_tree, &core->due_queues) {
        if (queue->due_ms > core->now_ms || count == TELL_GANGS_PER_STEP) {
            break;
        }
        due = arena_grow(&core->scratch, due, count, &capacity, sizeof(struct queue_state *));
        due[count++] = queue;
    }
    if (count > 1) {
        qsort(due, count, sizeof(struct queue_state *), compare_names);
    }
    uint32_t said = 0;
    for (uint32_t i = 0; i < count && said < TELL_GANGS_PER_STEP; i++) {
        said += queue_refresh(core, due[i]);
    }
}

static void refresh(struct core *core, enum object_kind kind, struct str name,
                    struct status_write *status)
{
    int64_t due_ms = status_write_due_ms(status);
    if (core->now_ms >= due_ms) {
        status_write_emit(core, kind, name, status);
    } else if (due_ms < core->next_status_ms) {
        core->next_status_ms = due_ms;
    }
}

void queue_tick(struct core *core)
{
    if (core->options.is_terse) {
        return;
    }
    refresh_queues(core);
    core->next_status_ms = INT64_MAX;
    struct flavor_state *flavor;
    struct flavor_state *next_flavor;
    HASH_ITER (hh, core->flavors, flavor, next_flavor) {
        refresh(core, KIND_RESOURCE_FLAVOR, flavor->name, &flavor->status);
    }
    struct cohort_state *cohort;
    struct cohort_state *next_cohort;
    HASH_ITER (hh, core->cohorts, cohort, next_cohort) {
        if (cohort->object != NULL) {
            refresh(core, KIND_COHORT, cohort->name, &cohort->status);
        }
    }
}

int64_t queue_next_due_ms(const struct core *core)
{
    if (core->options.is_terse) {
        return INT64_MAX;
    }
    const struct queue_state *queue =
        RB_MIN(queue_due_tree, (struct queue_due_tree *)(uintptr_t)&core->due_queues);
    int64_t due_ms = queue == NULL ? INT64_MAX : queue->due_ms;
    due_ms = due_ms > core->now_ms ? due_ms : core->now_ms + 1; /* this step had enough to say */
    return core->next_status_ms < due_ms ? core->next_status_ms : due_ms;
}
