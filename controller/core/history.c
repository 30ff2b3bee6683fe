/* history.c - fairness over time; see history.h. The formula is in docs/decisions. */
#include "history.h"

#include <assert.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/text.h"

struct usage_entry {
    struct str namespace_name; /* owned */
    struct str resource;       /* owned */
    i128 value;                /* unit-milliseconds as of the history's time */
    i128 used;                 /* now, in the resource's unit */
};

struct usage_history {
    int64_t half_life_ms;
    int64_t as_of_ms;
    int64_t restored_ms; /* what the status said at the start was of then; 0: it said nothing */
    struct usage_entry *entries; /* by namespace and resource */
    uint32_t count;
    uint32_t capacity;
};

/* -- the curve ----------------------------------------------------------------------------------
 */

#define ONE     ((i128)1 << 62)
#define LN2     INT64_C(3196577161300663914) /* ln 2 * 2^62 */
#define INV_LN2 INT64_C(1549082004)          /* 2^30 / ln 2 */
#define USE_MAX ((i128)1 << 60)

/* 2^-(elapsed / half-life) in parts of 2^62: whole halvings shift, the rest is a series. */
static i128 decay(int64_t elapsed_ms, int64_t half_life_ms)
{
    int64_t halvings = elapsed_ms / half_life_ms;
    if (halvings >= 62) {
        return 0;
    }
    i128 fraction = ((i128)(elapsed_ms % half_life_ms) << 62) / half_life_ms;
    i128 x = (fraction * LN2) >> 62;
    i128 sum = ONE;
    i128 term = ONE;
    for (int k = 1; k <= 24 && term > 0; k++) {
        term = ((term * x) >> 62) / k;
        sum += k % 2 == 0 ? term : -term;
    }
    return sum >> halvings;
}

static i128 times_part(i128 value, i128 part)
{
    i128 low = value & (ONE - 1);
    return (value >> 62) * part + ((low * part) >> 62);
}

/* What a use of that much adds in that time, the early part of it decayed: use * half-life / ln 2 *
 * (1 - 2^-(elapsed / half-life)). `part` is that power. */
static i128 grown(i128 use, i128 part, int64_t half_life_ms)
{
    i128 weight = (((ONE - part) * half_life_ms) >> 40) * INV_LN2 >> 30; /* ms in parts of 2^22 */
    use = use > USE_MAX ? USE_MAX : use;
    return (use * weight) >> 22;
}

static i128 value_at(const struct usage_history *history, const struct usage_entry *entry,
                     int64_t at_ms)
{
    int64_t elapsed_ms = at_ms > history->as_of_ms ? at_ms - history->as_of_ms : 0;
    i128 part = decay(elapsed_ms, history->half_life_ms);
    return times_part(entry->value, part) + grown(entry->used, part, history->half_life_ms);
}

static void bring_up(struct usage_history *history, int64_t now_ms)
{
    if (now_ms <= history->as_of_ms) {
        return;
    }
    for (uint32_t i = 0; i < history->count; i++) {
        history->entries[i].value = value_at(history, &history->entries[i], now_ms);
    }
    history->as_of_ms = now_ms;
}

/* -- entries ------------------------------------------------------------------------------------
 */

static void drop_entry(struct usage_history *history, uint32_t at)
{
    str_drop(&history->entries[at].namespace_name);
    str_drop(&history->entries[at].resource);
    for (uint32_t i = at; i + 1 < history->count; i++) {
        history->entries[i] = history->entries[i + 1];
    }
    history->count--;
}

/* Those that are idle and have faded go; if that isn't enough, the smallest idle one. */
static void make_room(struct usage_history *history)
{
    uint32_t smallest = UINT32_MAX;
    for (uint32_t i = history->count; i > 0; i--) {
        const struct usage_entry *entry = &history->entries[i - 1];
        if (entry->used == 0 && entry->value < 1000) {
            drop_entry(history, i - 1);
        }
    }
    for (uint32_t i = 0; history->count >= HISTORY_ENTRIES_MAX && i < history->count; i++) {
        const struct usage_entry *entry = &history->entries[i];
        if (entry->used == 0 &&
            (smallest == UINT32_MAX || entry->value < history->entries[smallest].value)) {
            smallest = i;
        }
    }
    if (smallest != UINT32_MAX) {
        drop_entry(history, smallest);
    }
}

static int compare_entry(const struct usage_entry *entry, struct str namespace_name,
                         struct str resource)
{
    int by_namespace = str_compare(entry->namespace_name, namespace_name);
    return by_namespace != 0 ? by_namespace : str_compare(entry->resource, resource);
}

static struct usage_entry *entry_get(struct usage_history *history, struct str namespace_name,
                                     struct str resource)
{
    uint32_t at = 0;
    while (at < history->count &&
           compare_entry(&history->entries[at], namespace_name, resource) < 0) {
        at++;
    }
    if (at < history->count &&
        compare_entry(&history->entries[at], namespace_name, resource) == 0) {
        return &history->entries[at];
    }
    history->entries =
        mem_grow(history->entries, history->count, &history->capacity, sizeof(struct usage_entry));
    for (uint32_t i = history->count; i > at; i--) {
        history->entries[i] = history->entries[i - 1];
    }
    history->count++;
    history->entries[at] = (struct usage_entry){.namespace_name = str_own(namespace_name),
                                                .resource = str_own(resource)};
    return &history->entries[at];
}

/* -- from the status, and to it ------------------------------------------------------------------
 */

static i128 read_number(struct str text)
{
    i128 number = 0;
    for (size_t i = 0; i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9'; i++) {
        number = number * 10 + (text.ptr[i] - '0');
        if (number > (i128)1 << 100) {
            return (i128)1 << 100;
        }
    }
    return number;
}

static void take_status(struct usage_history *history, const struct fair_sharing_status *status)
{
    if (status == NULL || !status->as_of.is_set || status->as_of.ms > history->as_of_ms) {
        return;
    }
    history->as_of_ms = status->as_of.ms;
    uint32_t count = status->decayed_usage.count;
    for (uint32_t i = 0; i < count && i < HISTORY_SHOWN_MAX; i++) {
        const struct decayed_usage *shown = &status->decayed_usage.items[i];
        size_t slash = str_find_char(shown->name, '/');
        if (slash < shown->name.len) {
            struct usage_entry *entry =
                entry_get(history, str_take(shown->name, slash), str_skip(shown->name, slash + 1));
            entry->value = read_number(shown->value) * 1000;
        }
    }
}

static struct str number_text(struct arena *arena, i128 number)
{
    char digits[48];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + (int)(number % 10));
        number /= 10;
    } while (number > 0);
    return arena_copy_str(arena, (struct str){digits + at, sizeof(digits) - at});
}

/* Whether so many others are larger that it isn't shown. */
static bool is_hidden(const struct usage_history *history, uint32_t at)
{
    uint32_t before = 0;
    for (uint32_t i = 0; history->count > HISTORY_SHOWN_MAX && i < history->count; i++) {
        i128 more = history->entries[i].value - history->entries[at].value;
        before += more > 0 || (more == 0 && i < at) ? 1 : 0;
    }
    return before >= HISTORY_SHOWN_MAX;
}

struct fair_sharing_status *history_status(const struct queue_state *queue, struct arena *arena)
{
    const struct usage_history *history = queue->history;
    bool has_share = queue->node.parent != NULL && share_is_on(quota_root(&queue->node));
    if (history == NULL && !has_share) {
        return NULL;
    }
    struct fair_sharing_status *status = ARENA_NEW(arena, struct fair_sharing_status);
    *status = (struct fair_sharing_status){.weighted_share = {false, 0}};
    if (has_share) {
        int64_t share = share_of(&queue->node, NULL, NULL);
        bool is_infinite = share == SHARE_INFINITE;
        status->weighted_share =
            (struct opt_int){true, is_infinite ? share : share / (SHARE_SCALE / 1000)};
    }
    if (history == NULL || history->as_of_ms == 0) {
        return status;
    }
    status->as_of = (struct opt_time){true, history->as_of_ms / 1000 * 1000};
    status->decayed_usage.items = ARENA_ARRAY(arena, struct decayed_usage, history->count + 1);
    for (uint32_t i = 0; i < history->count; i++) {
        const struct usage_entry *entry = &history->entries[i];
        struct str name = arena_format(arena, STR_FMT "/" STR_FMT, STR_ARG(entry->namespace_name),
                                       STR_ARG(entry->resource));
        if (entry->value >= 1000 && name.len <= 253 && !is_hidden(history, i)) {
            status->decayed_usage.items[status->decayed_usage.count++] = (struct decayed_usage){
                .name = name, .value = number_text(arena, entry->value / 1000)};
        }
    }
    return status;
}

/* -- half-lives ---------------------------------------------------------------------------------
 */

static int64_t half_life_of(const struct quota_node *node)
{
    for (; node != NULL; node = node->parent) {
        if (node->half_life_ms > 0) {
            return node->half_life_ms > HISTORY_HALF_LIFE_MAX_MS ? HISTORY_HALF_LIFE_MAX_MS
                                                                 : node->half_life_ms;
        }
    }
    return 0;
}

void history_free(struct queue_state *queue)
{
    struct usage_history *history = queue->history;
    while (history != NULL && history->count > 0) {
        drop_entry(history, history->count - 1);
    }
    if (history != NULL) {
        mem_free(history->entries);
        mem_free(history);
    }
    queue->history = NULL;
}

/* What runs through a restart has been used since it was admitted, or since the status was of; so
 * it counts from then on, whatever has brought the history up to a later time meanwhile. What a
 * restart takes back (who of several pays for a claim, pods that have succeeded) takes that back.
 */
static int64_t found_use_ms(const struct core *core, const struct usage_history *history,
                            const struct gang *gang)
{
    int64_t from_ms =
        gang->admitted_ms > history->restored_ms ? gang->admitted_ms : history->restored_ms;
    return !core->has_restored && history->as_of_ms > from_ms ? history->as_of_ms - from_ms : 0;
}

static void add_use(struct core *core, struct usage_history *history, const struct gang *gang,
                    const struct charge_list *charges, int64_t times)
{
    bool is_found = !core->has_restored && gang->admitted_ms <= history->as_of_ms;
    if (!is_found) {
        bring_up(history, core->now_ms);
    }
    i128 part = decay(found_use_ms(core, history, gang), history->half_life_ms);
    for (uint32_t i = 0; i < charges->count; i++) {
        const struct charge *charge = &charges->items[i];
        struct usage_entry *entry = entry_get(history, gang->namespace_name, charge->resource);
        i128 change = (i128)charge->amount * times;
        i128 value = grown(change < 0 ? -change : change, part, history->half_life_ms);
        entry->used += change;
        entry->value += change < 0 ? -value : value;
        entry->value = entry->value < 0 ? 0 : entry->value;
    }
}

/* All that it is charged. */
static void take_up_gang(struct core *core, struct usage_history *history, const struct gang *gang)
{
    const struct reservation *held = gang->reservation;
    for (uint32_t i = 0; i < held->set_count; i++) {
        add_use(core, history, gang, &held->sets[i].per_pod, held->sets[i].count);
    }
    for (uint32_t i = 0; i < held->claim_count; i++) {
        bool is_payer = ledger_claim_payer(core, held->claims[i].key) == gang;
        add_use(core, history, gang, &held->claims[i].charges, is_payer ? 1 : 0);
    }
    const struct pod_state *pod = gang->run->surplus_pods == 0 ? NULL : gang_first_pod(gang);
    for (; pod != NULL; pod = pod->next_in_group) {
        add_use(core, history, gang, &pod->surplus, 1);
    }
}

static void take_up(struct core *core, struct queue_state *queue, int64_t half_life_ms)
{
    queue->history = MEM_NEW(struct usage_history);
    queue->history->half_life_ms = half_life_ms;
    queue->history->as_of_ms = core->now_ms;
    if (!core->has_restored && queue->object != NULL) {
        take_status(queue->history, queue->object->status.fair_sharing);
        queue->history->restored_ms = queue->history->as_of_ms;
    }
    struct gang *gang;
    GANG_LINE_FOREACH (gang, &core->holders) {
        if (gang->reservation->queue == queue) {
            take_up_gang(core, queue->history, gang);
        }
    }
}

void history_relink(struct core *core)
{
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        int64_t half_life_ms = queue->object == NULL ? 0 : half_life_of(&queue->node);
        if (half_life_ms == 0) {
            history_free(queue);
        } else if (queue->history == NULL) {
            take_up(core, queue, half_life_ms);
        } else if (queue->history->half_life_ms != half_life_ms) {
            bring_up(queue->history, core->now_ms);
            queue->history->half_life_ms = half_life_ms;
        }
    }
}

/* -- use ----------------------------------------------------------------------------------------
 */

void history_use(struct core *core, const struct gang *gang, struct queue_state *queue,
                 const struct charge_list *charges, int64_t times)
{
    struct usage_history *history = queue->history;
    if (history == NULL) {
        return;
    }
    add_use(core, history, gang, charges, times);
    if (history->count >= HISTORY_ENTRIES_MAX) {
        make_room(history);
    }
}

/* -- questions ----------------------------------------------------------------------------------
 */

bool history_is_kept(const struct quota_node *branch)
{
    if (branch->queue != NULL) {
        return branch->queue->history != NULL;
    }
    for (const struct quota_node *child = branch->children; child != NULL;
         child = child->next_sibling) {
        if (history_is_kept(child)) {
            return true;
        }
    }
    return false;
}

/* Of a namespace, or absent: of all of them. */
static i128 used_of(const struct core *core, const struct queue_state *queue,
                    struct str namespace_name, struct str resource)
{
    const struct usage_history *history = queue->history;
    i128 sum = 0;
    for (uint32_t i = 0; history != NULL && i < history->count; i++) {
        const struct usage_entry *entry = &history->entries[i];
        bool is_of = !str_is_set(namespace_name) || str_eq(entry->namespace_name, namespace_name);
        if (is_of && str_eq(entry->resource, resource)) {
            sum += value_at(history, entry, core->now_ms);
            sum += grown(entry->used, 0, history->half_life_ms); /* from now on, for ever */
        }
    }
    return sum;
}

static i128 used_below(const struct core *core, const struct quota_node *branch,
                       struct str resource)
{
    if (branch->queue != NULL) {
        return used_of(core, branch->queue, STR_NONE, resource);
    }
    i128 sum = 0;
    for (const struct quota_node *child = branch->children; child != NULL;
         child = child->next_sibling) {
        sum += used_below(core, child, resource);
    }
    return sum;
}

static i128 part_of(i128 used_ms, i128 whole)
{
    i128 most = (i128)1 << 90;
    i128 used = used_ms / 1000 > most ? most : used_ms / 1000;
    if (used == 0) {
        return 0;
    }
    return whole <= 0 ? SHARE_INFINITE : used * SHARE_SCALE / whole;
}

int64_t history_of_branch(const struct core *core, const struct quota_node *branch)
{
    i128 dominant = 0;
    if (!history_is_kept(branch)) {
        return 0;
    }
    for (uint32_t i = 0; i < branch->parent->cell_count; i++) {
        struct str resource = branch->parent->cells[i].resource;
        i128 part =
            part_of(used_below(core, branch, resource), share_lendable(branch->parent, resource));
        dominant = part > dominant ? part : dominant;
    }
    if (dominant > 0 && branch->weight_milli == 0) {
        return SHARE_INFINITE;
    }
    return dominant == 0 ? 0 : i128_clamp(i128_clamp(dominant) * (i128)1000 / branch->weight_milli);
}

int64_t history_of_namespace(const struct core *core, const struct queue_state *queue,
                             struct str namespace_name)
{
    i128 dominant = 0;
    for (uint32_t i = 0; i < queue->node.cell_count; i++) {
        struct str resource = queue->node.cells[i].resource;
        i128 part = part_of(used_of(core, queue, namespace_name, resource),
                            share_lendable(&queue->node, resource));
        dominant = part > dominant ? part : dominant;
    }
    return i128_clamp(dominant);
}
