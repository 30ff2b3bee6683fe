/* reach.c - see reach.h. Maxima are kept as in a segment tree: node 1 is the root, the children of
 * i are 2i and 2i+1, the leaves stand in the order of the nodes' names. */
#include "reach.h"
#include "selectors.h"
#include "topology.h"

#include <string.h>

#include "tallyman/base/alloc.h"

#define NOT_THERE   (-1) /* a leaf whose node is out of reach */
#define NOT_COUNTED 255  /* only pods name the node */

/* -- what has changed -------------------------------------------------------------------------- */

void node_touch(struct core *core, struct node_state *node)
{
    node->changed_at = ++core->node_changes;
    if (core->newest_node == node) {
        return;
    }
    if (node->newer != NULL) {
        node->newer->older = node->older;
    }
    if (node->older != NULL) {
        node->older->newer = node->newer;
    }
    node->newer = NULL;
    node->older = core->newest_node;
    if (core->newest_node != NULL) {
        core->newest_node->newer = node;
    }
    core->newest_node = node;
}

void node_touch_object(struct core *core, struct node_state *node)
{
    node_touch(core, node);
    node->object_changed_at = core->object_changed_at = node->changed_at;
    core->supply_changes++;
}

void node_touch_drop(struct core *core, struct node_state *node)
{
    if (core->newest_node == node) {
        core->newest_node = node->older;
    }
    if (node->newer != NULL) {
        node->newer->older = node->older;
    }
    if (node->older != NULL) {
        node->older->newer = node->newer;
    }
    reaches_forget(core);
}

static void columns_free(struct core *core, struct reach *reach)
{
    for (uint32_t i = 0; i < reach->column_count; i++) {
        mem_free(reach->columns[i].maxima);
        reach->columns[i] = (struct reach_column){.maxima = NULL};
    }
    core->reach_columns -= reach->column_count;
    reach->column_count = 0;
}

static void reach_free(struct core *core, struct reach *reach)
{
    HASH_DEL(core->reaches, reach);
    columns_free(core, reach);
    mem_free(reach->bits);
    mem_free(reach->exclusions);
    str_drop(&reach->key);
    mem_free(reach);
}

void reaches_forget(struct core *core)
{
    core->object_changed_at = ++core->node_changes;
    core->supply_changes++;
    struct reach *reach;
    struct reach *next;
    HASH_ITER (hh, core->reaches, reach, next) {
        reach_free(core, reach);
    }
    topology_forget(core);
    mem_free(core->node_index);
    core->node_index = NULL;
}

/* It may serve another. */
static void column_spare(struct reach_column *column)
{
    column->profile = NULL;
    column->resource = STR_NONE;
}

void reaches_forget_profile(struct core *core, const struct device_profile *profile)
{
    core->object_changed_at = ++core->node_changes;
    topology_rooms_forget(core);
    struct reach *reach;
    struct reach *next;
    HASH_ITER (hh, core->reaches, reach, next) {
        for (uint32_t i = 0; i < reach->column_count; i++) {
            if (reach->columns[i].profile == profile) {
                column_spare(&reach->columns[i]);
            }
        }
    }
}

void nodes_index(struct core *core)
{
    uint32_t count = 0;
    if (core->node_index != NULL) {
        return;
    }
    core->node_index = mem_zalloc((HASH_COUNT(core->nodes) + 1) * sizeof(struct node_state *));
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        node->index = count;
        core->node_index[count++] = node;
    }
}

/* -- columns ----------------------------------------------------------------------------------- */

static int64_t leaf_value(struct core *core, const struct reach *reach,
                          const struct reach_column *column, uint32_t index)
{
    struct node_state *node = core->node_index[index];
    if (reach->exclusions[index] != EXCLUDED_COUNT) {
        return NOT_THERE;
    }
    if (column->profile == NULL || node_offers(node, column->resource)) {
        return i128_clamp(node_room(core, node, column->resource));
    }
    int64_t free = 0;
    for (struct device_state *device = node->devices; device != NULL;
         device = device->next_on_node) {
        free += profile_match(core, column->profile, device) == MATCH_YES &&
                        device_is_open(core, device)
                    ? 1
                    : 0;
    }
    return free;
}

static void set_leaf(const struct reach *reach, struct reach_column *column, uint32_t index,
                     int64_t value)
{
    uint32_t at = reach->leaves + index;
    int64_t old = column->maxima[at];
    if (old == value) {
        return;
    }
    column->sum += (value > 0 ? value : 0) - (old > 0 ? old : 0);
    column->maxima[at] = value;
    while (at > 1) {
        at /= 2;
        int64_t left = column->maxima[2 * (size_t)at];
        int64_t right = column->maxima[2 * (size_t)at + 1];
        int64_t larger = left > right ? left : right;
        if (column->maxima[at] == larger) {
            return;
        }
        column->maxima[at] = larger;
    }
}

static void column_fill(struct core *core, const struct reach *reach, struct reach_column *column)
{
    int64_t *maxima = column->maxima;
    column->sum = 0;
    column->capacity_at = 0;
    for (uint32_t i = 0; i < reach->leaves; i++) {
        int64_t value = i < reach->node_count ? leaf_value(core, reach, column, i) : NOT_THERE;
        maxima[reach->leaves + i] = value;
        column->sum += value > 0 ? value : 0;
    }
    for (uint32_t i = reach->leaves - 1; i > 0; i--) {
        int64_t left = maxima[2 * (size_t)i];
        int64_t right = maxima[2 * (size_t)i + 1];
        maxima[i] = left > right ? left : right;
    }
}

/* Of the reach that was used longest ago: there are others enough for it not to be in use now. */
static void make_room_for_column(struct core *core, const struct reach *wanted)
{
    struct reach *oldest = NULL;
    struct reach *reach;
    struct reach *next;
    if (core->reach_columns < REACH_COLUMNS_ALL) {
        return;
    }
    HASH_ITER (hh, core->reaches, reach, next) {
        if (reach != wanted && reach->column_count > 0 &&
            (oldest == NULL || reach->used_at < oldest->used_at)) {
            oldest = reach;
        }
    }
    if (oldest != NULL) {
        columns_free(core, oldest);
    }
}

struct reach_column *reach_column_of(struct core *core, struct reach *reach, struct str resource,
                                     struct device_profile *profile)
{
    struct reach_column *spare = NULL;
    for (uint32_t i = 0; i < reach->column_count; i++) {
        struct reach_column *column = &reach->columns[i];
        bool is_spare = column->profile == NULL && !str_is_set(column->resource);
        spare = is_spare ? column : spare;
        if (!is_spare && column->profile == profile && column->resource.ptr == resource.ptr) {
            return column;
        }
    }
    if (spare == NULL && reach->column_count == REACH_COLUMNS_MAX) {
        return NULL;
    }
    if (spare == NULL) {
        make_room_for_column(core, reach);
        core->reach_columns++;
        spare = &reach->columns[reach->column_count++];
        spare->maxima = mem_alloc(2 * (size_t)reach->leaves * sizeof(int64_t));
    }
    spare->resource = resource;
    spare->profile = profile;
    column_fill(core, reach, spare);
    return spare;
}

static i128 devices_everywhere(struct core *core, struct device_profile *profile)
{
    i128 count = 0;
    for (uint32_t slot = 0; slot < core->device_slots; slot++) {
        const struct device_state *device = core->devices[slot];
        count += device != NULL && profile_selects(core, profile, device) ? 1 : 0;
    }
    return count;
}

void reach_measure_capacity(struct core *core, struct reach *reach, struct reach_column *column)
{
    if (column->capacity_at == core->object_changed_at + 1) {
        return;
    }
    column->capacity_at = core->object_changed_at + 1;
    column->capacity_sum = 0;
    column->capacity_largest = -1;
    for (uint32_t i = 0; i < reach->node_count; i++) {
        if (reach->exclusions[i] != EXCLUDED_COUNT) {
            continue;
        }
        struct node_state *node = core->node_index[i];
        int64_t here = column->profile != NULL && !node_offers(node, column->resource)
                           ? node_count_devices(core, column->profile, node)
                           : i128_clamp(vector_get(&node->capacity, column->resource));
        column->capacity_sum += here;
        column->capacity_largest =
            here > column->capacity_largest ? here : column->capacity_largest;
    }
    if (column->profile != NULL && !str_is_set(column->resource)) {
        column->capacity_sum = devices_everywhere(core, column->profile);
    }
}

/* -- one reach --------------------------------------------------------------------------------- */

static void read_exclusion(struct core *core, struct reach *reach, const struct pod_demand *demand,
                           uint32_t index)
{
    const struct node_state *node = core->node_index[index];
    uint64_t bit = UINT64_C(1) << (index % 64);
    if (reach->exclusions[index] != NOT_COUNTED) {
        reach->nodes_total--;
        reach->excluded[reach->exclusions[index]]--;
    }
    uint8_t exclusion = NOT_COUNTED;
    if (node->object != NULL) {
        exclusion = (uint8_t)node_exclusion(core, demand, node);
        reach->nodes_total++;
        reach->excluded[exclusion]++;
    }
    reach->exclusions[index] = exclusion;
    reach->bits[index / 64] &= ~bit;
    reach->bits[index / 64] |= exclusion == EXCLUDED_COUNT ? bit : 0;
}

static void reach_sync(struct core *core, struct reach *reach, const struct pod_demand *demand)
{
    for (struct node_state *node = core->newest_node;
         node != NULL && node->changed_at > reach->synced_at; node = node->older) {
        if (node->object_changed_at > reach->synced_at) {
            read_exclusion(core, reach, demand, node->index);
        }
        for (uint32_t c = 0; c < reach->column_count; c++) {
            struct reach_column *column = &reach->columns[c];
            if (column->profile != NULL && !profile_is_tried(core, column->profile)) {
                column_spare(column); /* it is made anew when it is asked for */
            } else if (column->profile != NULL || str_is_set(column->resource)) {
                set_leaf(reach, column, node->index, leaf_value(core, reach, column, node->index));
            }
        }
    }
    reach->synced_at = core->node_changes;
}

static void add_pairs(struct text *text, const struct string_map *map)
{
    for (uint32_t i = 0; i < map->count; i++) {
        text_addf(text, "%zu:", map->items[i].key.len);
        text_add(text, map->items[i].key);
        text_addf(text, "=%zu:", map->items[i].value.len);
        text_add(text, map->items[i].value);
    }
}

static struct str reach_key(struct core *core, const struct pod_demand *demand)
{
    struct text text;
    text_init(&text, &core->scratch, 1u << 20);
    text_add(&text, demand->set->place_key);
    for (uint32_t i = 0; i < demand->flavor_count; i++) {
        text_add(&text, STR("+"));
        text_add(&text, demand->flavors[i]->meta.name);
    }
    if (demand->is_written) {
        text_add(&text, STR("!"));
    }
    if (demand->node_selector != &demand->set->node_selector) {
        text_add(&text, STR("/"));
        add_pairs(&text, demand->node_selector);
    }
    return text_str(&text);
}

struct str pod_set_place_key(struct core *core, const struct pod_set *set)
{
    struct text text;
    text_init(&text, &core->scratch, 1u << 20);
    add_pairs(&text, &set->node_selector);
    struct pod_spec only = {.node_name = set->spec->node_name,
                            .tolerations = set->tolerations,
                            .affinity = set->spec->affinity};
    struct json_writer *writer = json_writer_new();
    encode_object(writer, &pod_spec_schema, &only);
    text_add(&text, json_writer_text(writer));
    json_writer_free(writer);
    return text_str(&text);
}

static struct reach *reach_new(struct core *core, struct str key)
{
    struct reach *oldest = core->reaches;
    struct reach *reach;
    struct reach *next;
    HASH_ITER (hh, core->reaches, reach, next) {
        oldest = reach->used_at < oldest->used_at ? reach : oldest;
    }
    if (HASH_COUNT(core->reaches) >= REACHES_MAX) {
        reach_free(core, oldest);
    }
    reach = MEM_NEW(struct reach);
    reach->key = str_own(key);
    reach->node_count = HASH_COUNT(core->nodes);
    reach->leaves = 1;
    while (reach->leaves < reach->node_count) {
        reach->leaves *= 2;
    }
    reach->bits = mem_zalloc((reach->node_count / 64 + 1) * sizeof(uint64_t));
    reach->exclusions = mem_alloc(reach->node_count + 1);
    memset(reach->exclusions, NOT_COUNTED, reach->node_count + 1);
    HASH_ADD_KEYPTR(hh, core->reaches, reach->key.ptr, (unsigned)reach->key.len, reach);
    return reach;
}

struct reach *reach_of(struct core *core, const struct pod_demand *demand)
{
    if (core->options.is_plain || core->roaming_devices > 0 || demand->set->claim_count > 0 ||
        !str_is_set(demand->set->place_key)) {
        return NULL;
    }
    nodes_index(core);
    struct pod_demand anywhere = *demand;
    anywhere.domain = NULL;
    struct str key = reach_key(core, demand);
    struct reach *reach = NULL;
    HASH_FIND(hh, core->reaches, key.ptr, (unsigned)key.len, reach);
    if (reach == NULL) {
        reach = reach_new(core, key);
        for (uint32_t i = 0; i < reach->node_count; i++) {
            read_exclusion(core, reach, &anywhere, i);
        }
        reach->synced_at = core->node_changes;
    } else {
        reach_sync(core, reach, &anywhere);
    }
    reach->used_at = ++core->reach_uses;
    return reach;
}

/* -- what is asked of it ------------------------------------------------------------------------
 */

static void add_need(struct core *core, struct reach *reach, struct str resource,
                     struct device_profile *profile, int64_t amount, struct reach_needs *needs)
{
    const struct reach_column *column = reach_column_of(core, reach, resource, profile);
    if (column != NULL && needs->count < REACH_COLUMNS_MAX) {
        needs->items[needs->count++] = (struct reach_need){column, amount};
    }
}

void reach_find_needs(struct core *core, struct reach *reach, const struct pod_demand *demand,
                      struct reach_needs *ret_needs)
{
    const struct pod_set *set = demand->set;
    *ret_needs = (struct reach_needs){.count = 0};
    for (uint32_t i = 0; i < set->device_count; i++) {
        if (!set->devices[i].is_alternative) {
            add_need(core, reach, set->devices[i].resource, set->devices[i].profile,
                     set->devices[i].count, ret_needs);
        }
    }
    for (uint32_t i = 0; i < set->per_pod.count; i++) {
        add_need(core, reach, set->per_pod.items[i].resource, NULL,
                 i128_clamp(set->per_pod.items[i].value), ret_needs);
    }
    add_need(core, reach, resource_find(core, STR(RESOURCE_PODS)), NULL, 1, ret_needs);
}

static bool may_be_below(const struct reach *reach, const struct reach_needs *needs, uint32_t at)
{
    for (uint32_t i = 0; i < needs->count; i++) {
        if (needs->items[i].column->maxima[at] < needs->items[i].amount) {
            return false;
        }
    }
    return needs->count > 0 || at < reach->leaves ||
           reach->exclusions[at - reach->leaves] == EXCLUDED_COUNT;
}

bool reach_has(const struct reach *reach, const struct reach_needs *needs, uint32_t index)
{
    return may_be_below(reach, needs, reach->leaves + index);
}

static uint32_t find_below(const struct reach *reach, const struct reach_needs *needs, uint32_t at,
                           uint32_t first, uint32_t span, uint32_t from)
{
    if (first + span <= from || first >= reach->node_count || !may_be_below(reach, needs, at)) {
        return REACH_NONE;
    }
    if (span == 1) {
        return first;
    }
    uint32_t found = find_below(reach, needs, 2 * at, first, span / 2, from);
    return found != REACH_NONE
               ? found
               : find_below(reach, needs, 2 * at + 1, first + span / 2, span / 2, from);
}

struct node_state *reach_next(const struct core *core, const struct reach *reach,
                              const struct reach_needs *needs, uint32_t from)
{
    uint32_t found = find_below(reach, needs, 1, 0, reach->leaves, from);
    return found == REACH_NONE ? NULL : core->node_index[found];
}
