/* topology.c - which nodes are in which domain; see topology.h. */
#include "topology.h"

#include <stdlib.h>

#include "booking.h"
#include "reach.h"

#include "tallyman/base/alloc.h"

/* -- paths ------------------------------------------------------------------------------------ */

static struct str path_key(struct arena *arena, const struct string_map *path)
{
    struct text text;
    text_init(&text, arena, 1u << 20);
    for (uint32_t i = 0; i < path->count; i++) {
        text_addf(&text, "%zu:", path->items[i].key.len);
        text_add(&text, path->items[i].key);
        text_addf(&text, "=%zu:", path->items[i].value.len);
        text_add(&text, path->items[i].value);
    }
    return text_str(&text);
}

struct topology_domain *topology_domain_of(struct core *core, const struct string_map *path)
{
    struct str key = path_key(&core->scratch, path);
    struct topology_domain *domain = NULL;
    HASH_FIND(hh, core->topology_domains, key.ptr, (unsigned)key.len, domain);
    if (domain == NULL) {
        domain = MEM_NEW(struct topology_domain);
        domain->key = str_own(key);
        domain->path = string_map_own(path);
        HASH_ADD_KEYPTR(hh, core->topology_domains, domain->key.ptr, (unsigned)domain->key.len,
                        domain);
    }
    return domain;
}

void topology_use(struct topology_domain **holder, struct topology_domain *domain)
{
    if (domain != NULL) {
        domain->users++;
    }
    if (*holder != NULL) {
        (*holder)->users--;
    }
    *holder = domain;
}

static void domain_free(struct core *core, struct topology_domain *domain)
{
    HASH_DEL(core->topology_domains, domain);
    str_drop(&domain->key);
    string_map_drop(&domain->path);
    mem_free(domain);
}

static void mark(const struct topology_domain *domain)
{
    if (domain != NULL) {
        ((struct topology_domain *)(uintptr_t)domain)->is_booked = true;
    }
}

void topology_tidy(struct core *core)
{
    if (HASH_COUNT(core->topology_domains) <= TOPOLOGY_DOMAINS_MAX ||
        HASH_COUNT(core->topology_domains) <= core->topology_domains_limit) {
        return;
    }
    for (uint32_t b = 0; b < core->bookings->count; b++) {
        const struct booking *booking = &core->bookings->items[b];
        for (uint32_t i = 0; i < booking->crowd_count; i++) {
            mark(booking->crowds[i].demand.domain);
        }
        for (uint32_t i = 0; i < booking->refusal_count; i++) {
            mark(booking->refusals[i].demand.domain);
        }
    }
    struct topology_domain *domain;
    struct topology_domain *next;
    HASH_ITER (hh, core->topology_domains, domain, next) {
        if (domain->users == 0 && !domain->is_booked) {
            domain_free(core, domain);
        } else {
            domain->is_booked = false;
        }
    }
    core->topology_domains_limit = 2 * HASH_COUNT(core->topology_domains);
}

bool topology_are_apart(const struct topology_domain *a, const struct topology_domain *b)
{
    for (uint32_t i = 0; i < a->path.count; i++) {
        struct str other = string_map_find(&b->path, a->path.items[i].key);
        if (str_is_set(other) && !str_eq(other, a->path.items[i].value)) {
            return true;
        }
    }
    return false;
}

/* -- trees ------------------------------------------------------------------------------------ */

static void tree_free(struct core *core, struct topology_tree *tree)
{
    HASH_DEL(core->topology_trees, tree);
    for (uint32_t l = 0; l < tree->level_count; l++) {
        str_drop(&tree->keys[l]);
        mem_free(tree->levels[l].first);
        mem_free(tree->levels[l].end);
        mem_free(tree->levels[l].of);
    }
    mem_free(tree->keys);
    mem_free(tree->levels);
    mem_free(tree->order);
    str_drop(&tree->key);
    mem_free(tree);
}

void topology_forget(struct core *core)
{
    topology_rooms_forget(core);
    struct topology_tree *tree;
    struct topology_tree *next;
    HASH_ITER (hh, core->topology_trees, tree, next) {
        tree_free(core, tree);
    }
}

void topology_labels_changed(struct core *core, const struct string_map *before,
                             const struct string_map *now)
{
    struct topology_tree *tree;
    struct topology_tree *next;
    HASH_ITER (hh, core->topology_trees, tree, next) {
        bool is_same = true;
        for (uint32_t l = 0; l < tree->level_count && is_same; l++) {
            struct str old = string_map_find(before, tree->keys[l]);
            struct str new = string_map_find(now, tree->keys[l]);
            is_same = str_is_set(old) == str_is_set(new) && str_eq(old, new);
        }
        if (!is_same) {
            topology_rooms_forget(core);
            tree_free(core, tree);
        }
    }
}

/* A node and the values of its labels, as far as it has them without a gap. */
struct placed_node {
    const struct str *values;
    uint32_t depth;
    uint32_t index;
};

static int compare_placed(const void *left, const void *right)
{
    const struct placed_node *a = left;
    const struct placed_node *b = right;
    for (uint32_t l = 0; l < a->depth && l < b->depth; l++) {
        int order = str_compare(a->values[l], b->values[l]);
        if (order != 0) {
            return order;
        }
    }
    if (a->depth != b->depth) {
        return a->depth < b->depth ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index ? 1 : 0;
}

static struct placed_node read_node(struct core *core, const struct topology_tree *tree,
                                    uint32_t index)
{
    const struct node_state *node = core->node_index[index];
    struct str *values = ARENA_ARRAY(&core->scratch, struct str, tree->level_count);
    struct placed_node placed = {.values = values, .index = index};
    while (node->object != NULL && placed.depth < tree->level_count) {
        struct str value = string_map_find(&node->object->meta.labels, tree->keys[placed.depth]);
        if (!str_is_set(value)) {
            break;
        }
        values[placed.depth++] = value;
    }
    return placed;
}

static bool is_same_path(const struct placed_node *a, const struct placed_node *b, uint32_t level)
{
    for (uint32_t l = 0; l <= level; l++) {
        if (!str_eq(a->values[l], b->values[l])) {
            return false;
        }
    }
    return true;
}

static void fill_level(struct topology_tree *tree, uint32_t l, const struct placed_node *placed)
{
    struct topology_level *level = &tree->levels[l];
    size_t bytes = (tree->node_count + (size_t)1) * sizeof(uint32_t);
    level->first = mem_alloc(bytes);
    level->end = mem_alloc(bytes);
    level->of = mem_alloc(bytes);
    uint32_t previous = TOPOLOGY_NONE;
    for (uint32_t i = 0; i < tree->node_count; i++) {
        level->of[placed[i].index] = TOPOLOGY_NONE;
        if (placed[i].depth <= l) {
            continue;
        }
        if (previous == TOPOLOGY_NONE || !is_same_path(&placed[previous], &placed[i], l)) {
            level->first[level->count++] = i;
        }
        level->end[level->count - 1] = i + 1;
        level->of[placed[i].index] = level->count - 1;
        previous = i;
    }
}

static void tree_fill(struct core *core, struct topology_tree *tree)
{
    tree->node_count = HASH_COUNT(core->nodes);
    struct placed_node *placed =
        ARENA_ARRAY(&core->scratch, struct placed_node, tree->node_count + 1);
    for (uint32_t i = 0; i < tree->node_count; i++) {
        placed[i] = read_node(core, tree, i);
    }
    qsort(placed, tree->node_count, sizeof(placed[0]), compare_placed);
    tree->order = mem_alloc((tree->node_count + (size_t)1) * sizeof(uint32_t));
    for (uint32_t i = 0; i < tree->node_count; i++) {
        tree->order[i] = placed[i].index;
    }
    for (uint32_t l = 0; l < tree->level_count; l++) {
        fill_level(tree, l, placed);
    }
}

/* Others are asked for while one is searched: pods on their way to domains of other levels. */
static void drop_oldest(struct core *core)
{
    struct topology_tree *oldest = NULL;
    struct topology_tree *tree;
    struct topology_tree *next;
    HASH_ITER (hh, core->topology_trees, tree, next) {
        if (tree->holders == 0 && (oldest == NULL || tree->used_at < oldest->used_at)) {
            oldest = tree;
        }
    }
    if (oldest != NULL) {
        topology_rooms_forget_of(core, oldest);
        tree_free(core, oldest);
    }
}

static struct topology_tree *tree_new(struct core *core, const struct str_list *levels,
                                      struct str key)
{
    if (HASH_COUNT(core->topology_trees) >= TOPOLOGY_TREES_MAX) {
        drop_oldest(core);
    }
    struct topology_tree *tree = MEM_NEW(struct topology_tree);
    tree->key = str_own(key);
    tree->serial = ++core->topology_serial;
    tree->level_count = levels->count;
    tree->keys = mem_zalloc(levels->count * sizeof(struct str));
    tree->levels = mem_zalloc(levels->count * sizeof(struct topology_level));
    for (uint32_t l = 0; l < levels->count; l++) {
        tree->keys[l] = str_own(levels->items[l]);
    }
    HASH_ADD_KEYPTR(hh, core->topology_trees, tree->key.ptr, (unsigned)tree->key.len, tree);
    tree_fill(core, tree);
    return tree;
}

static struct str levels_key(struct arena *arena, const struct str_list *levels)
{
    struct text text;
    text_init(&text, arena, 1u << 16);
    for (uint32_t l = 0; l < levels->count; l++) {
        text_addf(&text, "%zu:", levels->items[l].len);
        text_add(&text, levels->items[l]);
    }
    return text_str(&text);
}

struct topology_tree *topology_tree_of(struct core *core, const struct str_list *levels)
{
    nodes_index(core);
    struct str key = levels_key(&core->scratch, levels);
    struct topology_tree *tree = NULL;
    HASH_FIND(hh, core->topology_trees, key.ptr, (unsigned)key.len, tree);
    if (tree == NULL) {
        tree = tree_new(core, levels, key);
    }
    tree->used_at = ++core->reach_uses;
    return tree;
}

struct topology_tree *topology_hold(struct core *core, const struct str_list *levels)
{
    struct topology_tree *tree = topology_tree_of(core, levels);
    tree->holders++;
    return tree;
}

void topology_give_back(struct topology_tree *tree)
{
    tree->holders--;
}

struct string_map topology_path(struct core *core, const struct topology_tree *tree, uint32_t level,
                                uint32_t index)
{
    struct string_map path = {.count = level + 1};
    path.items = ARENA_ARRAY(&core->scratch, struct string_pair, path.count);
    uint32_t first = tree->order[tree->levels[level].first[index]];
    const struct node_state *node = core->node_index[first];
    for (uint32_t l = 0; l <= level; l++) {
        path.items[l] = (struct string_pair){
            tree->keys[l], string_map_find(&node->object->meta.labels, tree->keys[l])};
    }
    return path;
}

/* -- the nodes of a path ------------------------------------------------------------------------
 */

/* Whether the tree's first levels are those of the path. */
static bool has_levels(const struct topology_tree *tree, const struct string_map *path)
{
    if (path->count == 0 || path->count > tree->level_count) {
        return false;
    }
    for (uint32_t l = 0; l < path->count; l++) {
        if (!str_eq(tree->keys[l], path->items[l].key)) {
            return false;
        }
    }
    return true;
}

bool topology_is_of(const struct topology_tree *tree, const struct topology_domain *domain)
{
    return has_levels(tree, &domain->path);
}

/* The most recently used of those that will do, or one of the path's own labels. */
static struct topology_tree *tree_for(struct core *core, const struct string_map *path)
{
    struct topology_tree *found = NULL;
    struct topology_tree *tree;
    struct topology_tree *next;
    HASH_ITER (hh, core->topology_trees, tree, next) {
        if (has_levels(tree, path) && (found == NULL || tree->used_at > found->used_at)) {
            found = tree;
        }
    }
    if (found != NULL) {
        return found;
    }
    struct str_list levels = {.count = path->count};
    levels.items = ARENA_ARRAY(&core->scratch, struct str, levels.count);
    for (uint32_t l = 0; l < levels.count; l++) {
        levels.items[l] = path->items[l].key;
    }
    return topology_tree_of(core, &levels);
}

static int compare_path(struct core *core, const struct topology_tree *tree, uint32_t index,
                        const struct string_map *path)
{
    uint32_t level = path->count - 1;
    struct string_map here = topology_path(core, tree, level, index);
    for (uint32_t l = 0; l <= level; l++) {
        int order = str_compare(here.items[l].value, path->items[l].value);
        if (order != 0) {
            return order;
        }
    }
    return 0;
}

static uint32_t find_in(struct core *core, const struct topology_tree *tree,
                        const struct string_map *path)
{
    uint32_t low = 0;
    uint32_t high = tree->levels[path->count - 1].count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare_path(core, tree, middle, path);
        if (order == 0) {
            return middle;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return TOPOLOGY_NONE;
}

static bool is_there(const struct core *core, const struct topology_domain *domain)
{
    struct topology_tree *tree;
    struct topology_tree *next;
    HASH_ITER (hh, core->topology_trees, tree, next) {
        if (tree == domain->tree && tree->serial == domain->found_in) {
            return true;
        }
    }
    return false;
}

struct node_indexes topology_nodes(struct core *core, const struct topology_domain *domain)
{
    struct topology_domain *known = (struct topology_domain *)(uintptr_t)domain;
    nodes_index(core);
    if (!is_there(core, domain)) {
        known->tree = tree_for(core, &domain->path);
        known->found_in = known->tree->serial;
        known->index = find_in(core, known->tree, &domain->path);
    }
    if (known->index == TOPOLOGY_NONE) {
        return (struct node_indexes){.items = NULL};
    }
    const struct topology_level *level = &known->tree->levels[domain->path.count - 1];
    uint32_t first = level->first[known->index];
    return (struct node_indexes){.items = &known->tree->order[first],
                                 .count = level->end[known->index] - first};
}

void topology_free(struct core *core)
{
    topology_forget(core);
    struct topology_domain *domain;
    struct topology_domain *next;
    HASH_ITER (hh, core->topology_domains, domain, next) {
        domain_free(core, domain);
    }
}
