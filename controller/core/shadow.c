/* shadow.c - the state as it will be when some gangs have ended; see shadow.h. */
#include "shadow.h"
#include "preempt.h"
#include "reach.h"

#include "tallyman/base/limits.h"

#include <assert.h>
#include <stdlib.h>

/* -- limits: where the pods that are on their way can be ----------------------------------------
 */

/* By node, in order of their names: how many such pods there is room for now. */
static int64_t *room_now(struct core *core, const struct pod_demand *demand, int64_t pods)
{
    int64_t *limits = ARENA_ARRAY(&core->scratch, int64_t, HASH_COUNT(core->nodes) + 1);
    fit_plan_new(core);
    struct reach *reach = demand->domain != NULL ? NULL : reach_of(core, demand);
    if (reach != NULL) {
        struct reach_needs needs;
        reach_find_needs(core, reach, demand, &needs);
        struct node_state *node = reach_next(core, reach, &needs, 0);
        while (node != NULL) {
            limits[node->index] = node_place(core, demand, node, pods);
            node = reach_next(core, reach, &needs, node->index + 1);
        }
        return limits;
    }
    uint32_t index = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        bool is_in_question = node_exclusion(core, demand, node) == EXCLUDED_COUNT;
        limits[index++] = is_in_question ? node_place(core, demand, node, pods) : 0;
    }
    return limits;
}

/* Devices that no node owns may be taken from anywhere. */
static const int64_t *limits_of(struct core *core, const struct pod_demand *demand, int64_t pods)
{
    return core->roaming_devices > 0 ? NULL : room_now(core, demand, pods);
}

/* Its room may be free before the pods that are on their way have chosen theirs: it stops, some of
 * its pods are done, or its time is up. */
static bool is_about_to_end(const struct core *core, const struct gang *gang)
{
    bool is_shrinking = gang->run->succeeded > 0 ||
                        (gang->state == GANG_RUNNING &&
                         (int64_t)gang->live_pods < reservation_count(gang->reservation));
    return is_shrinking || runtime_end_ms(core, gang) - core->now_ms <= BOOKING_REFRESH_MS;
}

/* Takes those out, or puts them back. */
static void set_ending(struct core *core, struct victims *ending, bool is_out)
{
    struct gang *gang;
    if (!is_out) {
        for (uint32_t i = 0; i < ending->count; i++) {
            whatif_put_back(core, ending->items[i]);
        }
        return;
    }
    GANG_LINE_FOREACH (gang, &core->holders) {
        if (!gang->is_out && is_about_to_end(core, gang)) {
            ending->items = arena_grow(&core->scratch, ending->items, ending->count,
                                       &ending->capacity, sizeof(struct gang *));
            ending->items[ending->count++] = gang;
            whatif_take_out(core, gang);
        }
    }
}

static void measure_present(struct core *core, struct shadow *shadow, struct shadow_guest *guests,
                            uint32_t guest_count)
{
    struct victims ending = {.count = 0};
    set_ending(core, &ending, true);
    shadow->present = fit_promises(core);
    for (uint32_t i = 0; i < shadow->present.count; i++) {
        struct crowd *crowd = &shadow->present.items[i];
        crowd->limits = limits_of(core, &crowd->demand, crowd->pods);
    }
    for (uint32_t i = 0; i < guest_count; i++) {
        for (uint32_t c = 0; c < guests[i].crowd_count; c++) {
            struct crowd *crowd = &guests[i].crowds[c];
            crowd->limits =
                guests[i].starts_now ? limits_of(core, &crowd->demand, crowd->pods) : NULL;
        }
    }
    set_ending(core, &ending, false);
}

struct crowd_list shadow_crowds(struct core *core, const struct crowd_list *promises)
{
    const struct shadow *shadow = shadow_now(core);
    struct crowd_list list = {.is_incomplete = promises->is_incomplete};
    uint32_t room = promises->count + 1;
    for (uint32_t i = 0; i < shadow->count; i++) {
        room += shadow->entries[i].guest == NULL ? 0 : shadow->entries[i].guest->crowd_count;
    }
    list.items = ARENA_ARRAY(&core->scratch, struct crowd, room);
    for (uint32_t i = 0; i < promises->count; i++) {
        const struct crowd *before =
            fit_crowd_find(core, &shadow->present, &promises->items[i].demand);
        list.items[list.count] = promises->items[i];
        list.items[list.count++].limits = before == NULL ? NULL : before->limits;
    }
    for (uint32_t i = 0; i < shadow->count; i++) {
        const struct shadow_guest *guest = shadow->entries[i].guest;
        bool is_there = guest != NULL && !shadow->entries[i].is_out;
        for (uint32_t c = 0; is_there && c < guest->crowd_count; c++) {
            list.items[list.count++] = guest->crowds[c];
        }
    }
    return list;
}

/* Of the places that the node has for `mine`, how many are gone with `count` pods of `other` there:
 * by cpu, memory and the like exactly, by devices at `device_loss` each. */
static int64_t cost_on_node(struct core *core, const struct pod_demand *mine, int64_t want,
                            const struct crowd *other, int64_t device_loss, struct node_state *node,
                            int64_t count)
{
    fit_plan_new(core);
    int64_t places = node_place(core, mine, node, want);
    fit_plan_new(core);
    node_plan_pods(core, node, other->demand.set, count);
    int64_t left = node_place(core, mine, node, want);
    int64_t plain = places > left ? places - left : 0;
    int64_t by_devices = sat_mul(device_loss, count);
    int64_t cost = by_devices > plain ? by_devices : plain;
    return cost < places ? cost : places;
}

int64_t shadow_worst_cost(struct core *core, const struct crowd *mine, const struct crowd *other,
                          int64_t loss, int64_t device_loss)
{
    int64_t everywhere = sat_mul(loss, other->pods);
    if (other->limits == NULL) {
        return everywhere;
    }
    int64_t want = sat_add(mine->pods, everywhere);
    int64_t cost = 0;
    uint32_t index = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        int64_t limit = other->limits[index++];
        if (limit == 0 || node_exclusion(core, &mine->demand, node) != EXCLUDED_COUNT) {
            continue;
        }
        int64_t count = limit < other->pods ? limit : other->pods;
        cost =
            sat_add(cost, cost_on_node(core, &mine->demand, want, other, device_loss, node, count));
    }
    return cost < everywhere ? cost : everywhere;
}

/* -- who is there -------------------------------------------------------------------------------
 */

static int compare_entries(const void *left, const void *right)
{
    const struct shadow_entry *a = left;
    const struct shadow_entry *b = right;
    if (a->end_ms != b->end_ms) {
        return a->end_ms < b->end_ms ? -1 : 1;
    }
    if (a->gang == NULL || b->gang == NULL) {
        /* Guests come after those that are there, and among themselves as they were given. */
        return a->gang != NULL ? -1 : b->gang != NULL ? 1 : (a->guest < b->guest ? -1 : 1);
    }
    return gang_compare_admitted(a->gang, b->gang);
}

static void list_entries(struct core *core, struct shadow *shadow, struct shadow_guest *guests,
                         uint32_t guest_count)
{
    uint32_t room = guest_count + 1;
    struct gang *gang;
    GANG_LINE_FOREACH (gang, &core->holders) {
        room++;
    }
    shadow->entries = ARENA_ARRAY(&core->scratch, struct shadow_entry, room);
    GANG_LINE_FOREACH (gang, &core->holders) {
        if (!gang->is_out) {
            shadow->entries[shadow->count++] =
                (struct shadow_entry){.end_ms = runtime_end_ms(core, gang), .gang = gang};
        }
    }
    for (uint32_t i = 0; i < guest_count; i++) {
        shadow->entries[shadow->count++] =
            (struct shadow_entry){.end_ms = guests[i].until_ms, .guest = &guests[i]};
    }
    qsort(shadow->entries, shadow->count, sizeof(struct shadow_entry), compare_entries);
    while (shadow->known < shadow->count && shadow->entries[shadow->known].end_ms != INT64_MAX) {
        shadow->known++;
    }
}

static void guest_charge(const struct shadow_guest *guest, int64_t sign)
{
    for (uint32_t i = 0; i < guest->charges.count; i++) {
        const struct charge *charge = &guest->charges.items[i];
        quota_use(guest->node, charge->flavor, charge->resource, (i128)charge->amount * sign);
    }
}

void shadow_open(struct core *core, struct shadow *shadow, struct shadow_guest *guests,
                 uint32_t guest_count)
{
    assert(shadow_now(core) == NULL && "shadows don't nest");
    *shadow = (struct shadow){.owns_what_if = !core->is_what_if};
    if (shadow->owns_what_if) {
        whatif_begin(core);
    }
    measure_present(core, shadow, guests, guest_count);
    list_entries(core, shadow, guests, guest_count);
    for (uint32_t i = 0; i < guest_count; i++) {
        guest_charge(&guests[i], 1);
    }
}

void shadow_set_out(struct core *core, struct shadow_entry *entry, bool is_out)
{
    if (entry->is_out == is_out) {
        return;
    }
    entry->is_out = is_out;
    if (entry->guest != NULL) {
        guest_charge(entry->guest, is_out ? -1 : 1);
    } else if (is_out) {
        whatif_take_out(core, entry->gang);
    } else {
        whatif_put_back(core, entry->gang);
    }
}

void shadow_go_to(struct core *core, struct shadow *shadow, uint32_t out)
{
    while (shadow->out < out) {
        shadow_set_out(core, &shadow->entries[shadow->out++], true);
    }
    while (shadow->out > out) {
        shadow_set_out(core, &shadow->entries[--shadow->out], false);
    }
}

bool shadow_fits(struct core *core, struct shadow *shadow, struct gang *gang,
                 struct evaluation *ret_evaluation)
{
    shadow_enter(core, shadow);
    evaluate_shape(core, gang->shape, ret_evaluation);
    shadow_enter(core, NULL);
    return ret_evaluation->verdict.reason == REASON_NONE;
}

void shadow_close(struct core *core, struct shadow *shadow)
{
    for (uint32_t i = 0; i < shadow->count; i++) {
        struct shadow_entry *entry = &shadow->entries[i];
        shadow_set_out(core, entry, false);
        if (entry->guest != NULL) {
            guest_charge(entry->guest, -1);
        }
    }
    if (shadow->owns_what_if) {
        whatif_end(core);
    }
}
