/* decisions.c - where every gang stands, for `plan` and its like. */
#include "avoid.h"
#include "stopping.h"
#include "topology.h"

#include <stdlib.h>

const char *decision_name(enum decision decision)
{
    static const char *const names[] = {
        [0] = "", /* there is none */
        [DECISION_ADMIT] = "Admit",
        [DECISION_PREEMPT] = "Preempt",
        [DECISION_WAIT] = "Wait",
        [DECISION_HELD] = "Held",
        [DECISION_INVALID] = "Invalid",
        [DECISION_KEEP] = "Keep",
        [DECISION_EVICT] = "Evict",
    };
    return names[decision];
}

static enum decision waiting_decision(const struct gang *gang, const struct verdict *verdict)
{
    if (gang->state == GANG_HELD || verdict->reason == REASON_HELD) {
        return DECISION_HELD;
    }
    return verdict->reason == REASON_INVALID ? DECISION_INVALID : DECISION_WAIT;
}

static enum decision gang_decision(const struct gang *gang, const struct verdict *verdict)
{
    bool is_writing = gang->run->write_effect_id != 0;
    if (is_writing && gang->write_purpose == PATCH_ADMIT) {
        return DECISION_ADMIT;
    }
    if (gang->state == GANG_RESERVED) {
        return gang->room->check != NULL ? DECISION_WAIT : DECISION_PREEMPT;
    }
    if (is_writing && gang->write_purpose == PATCH_SUSPEND) {
        return DECISION_EVICT;
    }
    if (gang->state == GANG_ADMITTED || gang->state == GANG_RUNNING) {
        return str_is_set(gang->stops_for) ? DECISION_EVICT : DECISION_KEEP;
    }
    return waiting_decision(gang, verdict);
}

static void fill_flavors(const struct charge_list *charges, struct arena *arena,
                         struct string_map *flavors)
{
    flavors->items = ARENA_ARRAY(arena, struct string_pair, charges->count + 1);
    for (uint32_t i = 0; i < charges->count; i++) {
        struct str asked = charge_asked(&charges->items[i]);
        if (!str_is_set(string_map_find(flavors, asked))) {
            flavors->items[flavors->count++] = (struct string_pair){
                arena_copy_str(arena, asked), arena_copy_str(arena, charges->items[i].flavor)};
        }
    }
}

/* What the set holds, and the gang for the claims that the set names. */
static struct charge_list charges_of(const struct gang *gang, uint32_t s, struct arena *arena)
{
    const struct reservation *reservation = gang->reservation;
    const struct pod_set *of =
        gang->shape == NULL ? NULL : pod_set_find(gang->shape, reservation->sets[s].name);
    uint32_t room = reservation->sets[s].per_pod.count;
    for (uint32_t c = 0; c < reservation->claim_count; c++) {
        room += reservation->claims[c].charges.count;
    }
    struct charge_list all = {.items = ARENA_ARRAY(arena, struct charge, room + 1)};
    for (uint32_t i = 0; i < reservation->sets[s].per_pod.count; i++) {
        all.items[all.count++] = reservation->sets[s].per_pod.items[i];
    }
    for (uint32_t c = 0; of != NULL && c < reservation->claim_count; c++) {
        bool is_named = pod_set_names_claim(of, reservation->claims[c].key);
        for (uint32_t i = 0; is_named && i < reservation->claims[c].charges.count; i++) {
            all.items[all.count++] = reservation->claims[c].charges.items[i];
        }
    }
    return all;
}

/* What its PATCH writes there, while that is on its way. */
static struct string_map admit_selector_of(const struct gang *gang, struct str name,
                                           struct arena *arena)
{
    const struct gang_set *own = gang_set_find(gang, name);
    struct string_map map = {.count = 0};
    if (own == NULL || gang->run->write_effect_id == 0 || gang->write_purpose != PATCH_ADMIT) {
        return map;
    }
    map.items = ARENA_ARRAY(arena, struct string_pair, own->admit_selector.count + 1);
    for (uint32_t i = 0; i < own->admit_selector.count; i++) {
        const struct string_pair *pair = &own->admit_selector.items[i];
        map.items[map.count++] = (struct string_pair){arena_copy_str(arena, pair->key),
                                                      arena_copy_str(arena, pair->value)};
    }
    return map;
}

static void fill_domain(const struct gang *gang, struct arena *arena, struct string_map *domain)
{
    if (gang->domain == NULL) {
        return;
    }
    const struct string_map *path = &gang->domain->path;
    domain->count = path->count;
    domain->items = ARENA_ARRAY(arena, struct string_pair, path->count);
    for (uint32_t l = 0; l < path->count; l++) {
        domain->items[l] = (struct string_pair){arena_copy_str(arena, path->items[l].key),
                                                arena_copy_str(arena, path->items[l].value)};
    }
}

static void fill_avoided(const struct core *core, const struct gang *gang, uint32_t s,
                         struct arena *arena, struct str_list *avoided)
{
    if (gang->run->write_effect_id == 0 || gang->write_purpose != PATCH_ADMIT) {
        return;
    }
    struct str_list hosts =
        avoid_hosts((struct core *)(uintptr_t)core, gang, &gang->reservation->sets[s]);
    avoided->items = ARENA_ARRAY(arena, struct str, hosts.count + (size_t)1);
    for (uint32_t i = 0; i < hosts.count; i++) {
        avoided->items[avoided->count++] = arena_copy_str(arena, hosts.items[i]);
    }
}

static void fill_pod_sets(const struct core *core, const struct gang *gang, struct arena *arena,
                          struct decided_gang *entry)
{
    const struct reservation *reservation = gang->reservation;
    uint32_t count = reservation != NULL ? reservation->set_count : gang->set_count;
    entry->pod_sets = ARENA_ARRAY(arena, struct decided_pod_set, count + 1);
    entry->pod_set_count = count;
    for (uint32_t s = 0; s < count; s++) {
        struct decided_pod_set *set = &entry->pod_sets[s];
        if (reservation == NULL) {
            set->name = arena_copy_str(arena, gang->sets[s].name);
            set->count = gang->sets[s].size.pods;
        } else {
            set->name = arena_copy_str(arena, reservation->sets[s].name);
            set->count = reservation->sets[s].count;
            struct charge_list charges = charges_of(gang, s, arena);
            fill_flavors(&charges, arena, &set->flavors);
            set->node_selector = admit_selector_of(gang, set->name, arena);
            fill_domain(gang, arena, &set->domain);
            fill_avoided(core, gang, s, arena, &set->avoided);
        }
        entry->pods = sat_add(entry->pods, set->count);
    }
}

static int compare_uids(const void *a, const void *b)
{
    const struct gang *const *left = a;
    const struct gang *const *right = b;
    return gang_compare_uid(*left, *right);
}

static void fill_victims(const struct core *core, const struct gang *gang, struct arena *arena,
                         struct decided_gang *entry)
{
    if (gang->state != GANG_RESERVED) {
        return;
    }
    uint32_t count = 0;
    const struct gang **victims = ARENA_ARRAY(arena, const struct gang *, core->stopping.count + 1);
    for (uint32_t i = 0; i < core->stopping.count; i++) {
        const struct gang *victim = core->stopping.items[i];
        if (victim->reservation != NULL && stopping_is_for(victim, gang)) {
            victims[count++] = victim;
        }
    }
    if (count > 1) {
        qsort(victims, count, sizeof(*victims), compare_uids);
    }
    entry->victims.items = ARENA_ARRAY(arena, struct str, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        entry->victims.items[entry->victims.count++] = arena_copy_str(arena, victims[i]->key);
    }
}

/* Of a gang that is being stopped: not that it stops, but why. */
static void fill_cause(const struct gang *gang, struct arena *arena, struct decided_gang *entry)
{
    if (entry->decision != DECISION_EVICT || gang->run->stop_cause == NULL) {
        return;
    }
    struct str cause = str_from_c(gang->run->stop_cause);
    if (str_eq_c(cause, reason_info(REASON_QUEUE_STOPPED)->code)) {
        entry->reason = REASON_QUEUE_STOPPED;
        entry->message = arena_copy_str(arena, gang->run->stop_why);
    } else {
        entry->message =
            arena_format(arena, STR_FMT ": " STR_FMT, STR_ARG(cause), STR_ARG(gang->run->stop_why));
    }
}

static int compare_entries(const void *a, const void *b)
{
    const struct decided_gang *left = a;
    const struct decided_gang *right = b;
    int by_queue = str_compare(left->queue, right->queue);
    if (by_queue != 0) {
        return by_queue;
    }
    if (left->position != right->position) {
        return (left->position > right->position) - (left->position < right->position);
    }
    int by_namespace = str_compare(left->namespace_name, right->namespace_name);
    if (by_namespace != 0) {
        return by_namespace;
    }
    int by_name = str_compare(left->name, right->name);
    return by_name != 0 ? by_name : str_compare(left->uid, right->uid);
}

static void number_queue(const struct core *core, struct decided_list *list)
{
    /* Entries aren't sorted yet; the queue's tree gives each its place. */
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, (struct queue_tree *)(uintptr_t)&core->queue_order) {
        int64_t position = 0;
        struct gang *gang;
        GANG_LINE_FOREACH (gang, &queue->pending) {
            position++;
            list->items[gang->scratch_index].position = position;
        }
    }
}

struct decided_list core_decisions(const struct core *core, struct arena *arena)
{
    struct decided_list list = {.count = 0};
    list.items = ARENA_ARRAY(arena, struct decided_gang, core->gangs.count + 1);
    uint32_t at = 0;
    for (struct gang *gang; (gang = table_next(&core->gangs, &at)) != NULL;) {
        if (gang->state == 0 || gang->state == GANG_FINISHED || gang->is_job_gone) {
            continue;
        }
        struct verdict verdict = gang_verdict(core, gang, arena);
        struct queue_state *queue =
            gang->reservation != NULL ? gang->reservation->queue : gang->queue;
        gang->scratch_index = list.count;
        struct decided_gang *entry = &list.items[list.count++];
        entry->namespace_name = arena_copy_str(arena, gang->namespace_name);
        entry->name = arena_copy_str(arena, gang->name);
        entry->uid = arena_copy_str(arena, gang->uid);
        entry->queue = queue == NULL ? STR_NONE : arena_copy_str(arena, queue->name);
        entry->decision = gang_decision(gang, &verdict);
        fill_pod_sets(core, gang, arena, entry);
        fill_victims(core, gang, arena, entry);
        if (entry->decision != DECISION_ADMIT && entry->decision != DECISION_KEEP) {
            entry->reason = verdict.reason;
            entry->message = arena_copy_str(arena, verdict.message);
            fill_cause(gang, arena, entry);
        }
    }
    number_queue(core, &list);
    if (list.count > 1) {
        qsort(list.items, list.count, sizeof(struct decided_gang), compare_entries);
    }
    return list;
}
