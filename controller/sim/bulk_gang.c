/* bulk_gang.c - what happens to a gang: submitted, admitted, placed, ended, stopped. */
#include "bulk_internal.h"

#include <assert.h>
#include <string.h>

#include "tallyman/api/codec.h"
#include "tallyman/base/alloc.h"

static void take_version(struct bulk *bulk, struct bulk_gang_state *state)
{
    state->version = ++bulk->version;
}

static void tell(struct bulk *bulk, uint32_t index, enum bulk_change change, int64_t lost_ms)
{
    bulk_tell(bulk, &(struct bulk_note){.change = change, .gang = index, .lost_ms = lost_ms});
}

void bulk_gang_submit(struct bulk *bulk, uint32_t index)
{
    struct bulk_gang_state *state = &bulk->gangs[index];
    const struct bulk_gang *gang = &bulk->options.gangs[index];
    state->state = BULK_WAITING;
    state->is_suspended = true;
    state->generation = 1;
    state->left_ms = gang->run_ms;
    state->failures_left = gang->fails_after_ms > 0 ? gang->failures : 0;
    take_version(bulk, state);
    tell(bulk, index, BULK_SUBMITTED, 0);
    bulk_show_job(bulk, index, false);
}

/* -- pods ----------------------------------------------------------------------------------------
 */

/* It works from now on, until its end or its next failure. */
static void begin(struct bulk *bulk, uint32_t index)
{
    struct bulk_gang_state *state = &bulk->gangs[index];
    const struct bulk_gang *gang = &bulk->options.gangs[index];
    state->state = BULK_RUNNING;
    state->since_ms = bulk->now_ms;
    int64_t lasts_ms = state->left_ms;
    if (state->failures_left > 0 && gang->fails_after_ms < lasts_ms) {
        lasts_ms = gang->fails_after_ms;
    }
    bulk_note_due(bulk, (struct bulk_due){.at_ms = sat_add(bulk->now_ms, lasts_ms),
                                          .kind = DUE_END,
                                          .index = index,
                                          .attempt = ++state->attempt});
}

/* It works no more; what it did since its last checkpoint is lost. */
static int64_t interrupt(struct bulk *bulk, uint32_t index)
{
    struct bulk_gang_state *state = &bulk->gangs[index];
    const struct bulk_gang *gang = &bulk->options.gangs[index];
    if (state->state != BULK_RUNNING) {
        return 0;
    }
    int64_t done_ms = gang->run_ms - state->left_ms + (bulk->now_ms - state->since_ms);
    int64_t kept_ms =
        gang->checkpoint_ms > 0 ? done_ms / gang->checkpoint_ms * gang->checkpoint_ms : 0;
    kept_ms = kept_ms < gang->run_ms ? kept_ms : gang->run_ms;
    state->left_ms = gang->run_ms - kept_ms;
    state->attempt++;
    return done_ms - kept_ms;
}

static void drop_pods(struct bulk *bulk, uint32_t index)
{
    struct bulk_gang_state *state = &bulk->gangs[index];
    const struct bulk_gang *gang = &bulk->options.gangs[index];
    /* The last first: the core finds that one without a walk over the others. */
    for (int64_t pod = gang->pods - 1; state->nodes != NULL && pod >= 0; pod--) {
        if (state->nodes[pod] != BULK_NO_NODE) {
            bulk_show_pod(bulk, index, pod, true);
            bulk_node_use(bulk, state->nodes[pod], -gang->units_per_pod);
        }
    }
    mem_free(state->nodes);
    state->nodes = NULL;
    state->placed = 0;
}

/* The nodes for all pods without one, or none at all. */
static bool find_nodes(struct bulk *bulk, uint32_t index)
{
    struct bulk_gang_state *state = &bulk->gangs[index];
    const struct bulk_gang *gang = &bulk->options.gangs[index];
    uint32_t *chosen = mem_alloc(mem_array_bytes((size_t)gang->pods, sizeof(uint32_t)));
    int64_t pod = 0;
    for (; pod < gang->pods; pod++) {
        chosen[pod] = BULK_NO_NODE;
        if (state->nodes[pod] != BULK_NO_NODE) {
            continue;
        }
        chosen[pod] = bulk_nodes_find(bulk, state->spec, gang->units_per_pod);
        if (chosen[pod] == BULK_NO_NODE) {
            break;
        }
        bulk_node_use(bulk, chosen[pod], gang->units_per_pod);
    }
    bool is_whole = pod == gang->pods;
    bool has_room_come = bulk->has_room_come; /* what is only given back isn't news */
    for (int64_t i = 0; i < pod; i++) {
        if (chosen[i] == BULK_NO_NODE) {
            continue;
        }
        if (is_whole) {
            state->nodes[i] = chosen[i];
            state->placed++;
            bulk_show_pod(bulk, index, i, false);
        } else {
            bulk_node_use(bulk, chosen[i], -gang->units_per_pod);
        }
    }
    bulk->has_room_come = has_room_come;
    mem_free(chosen);
    return is_whole;
}

bool bulk_gang_place(struct bulk *bulk, uint32_t index)
{
    struct bulk_gang_state *state = &bulk->gangs[index];
    const struct bulk_gang *gang = &bulk->options.gangs[index];
    if (state->nodes == NULL) {
        size_t bytes = mem_array_bytes((size_t)gang->pods, sizeof(uint32_t));
        state->nodes = mem_alloc(bytes);
        memset(state->nodes, 0xff, bytes); /* BULK_NO_NODE */
    }
    if (!find_nodes(bulk, index)) {
        return false;
    }
    begin(bulk, index);
    take_version(bulk, state);
    bulk_show_job(bulk, index, false);
    tell(bulk, index, BULK_STARTED, 0);
    return true;
}

static void keep_unplaced(struct bulk *bulk, uint32_t index)
{
    bulk->gangs[index].state = BULK_UNPLACED;
    bulk->unplaced = mem_grow(bulk->unplaced, bulk->unplaced_count, &bulk->unplaced_capacity,
                              sizeof(*bulk->unplaced));
    bulk->unplaced[bulk->unplaced_count++] = index;
}

void bulk_gang_lose_node(struct bulk *bulk, uint32_t index, uint32_t node)
{
    struct bulk_gang_state *state = &bulk->gangs[index];
    const struct bulk_gang *gang = &bulk->options.gangs[index];
    bool is_hit = false;
    for (int64_t pod = 0; pod < gang->pods; pod++) {
        if (state->nodes[pod] == node) {
            bulk_show_pod(bulk, index, pod, true);
            bulk_node_use(bulk, node, -gang->units_per_pod);
            state->nodes[pod] = BULK_NO_NODE;
            state->placed--;
            is_hit = true;
        }
    }
    if (!is_hit) {
        return;
    }
    if (state->state == BULK_RUNNING) {
        tell(bulk, index, BULK_BROKEN, interrupt(bulk, index));
        keep_unplaced(bulk, index);
    }
    take_version(bulk, state);
    bulk_show_job(bulk, index, false);
}

/* -- its Job -------------------------------------------------------------------------------------
 */

void bulk_gang_end(struct bulk *bulk, uint32_t index)
{
    struct bulk_gang_state *state = &bulk->gangs[index];
    if (bulk->now_ms - state->since_ms < state->left_ms) {
        state->failures_left--;
        tell(bulk, index, BULK_FAILED, interrupt(bulk, index));
        begin(bulk, index);
        return;
    }
    state->state = BULK_DONE;
    state->attempt++;
    bulk->unfinished--;
    take_version(bulk, state);
    bulk_show_job(bulk, index, false);
    drop_pods(bulk, index);
    bulk_show_job(bulk, index, true);
    tell(bulk, index, BULK_FINISHED, 0);
    mem_free((void *)(uintptr_t)state->record.ptr);
    state->record = STR_NONE;
    mem_free(state->spec);
    state->spec = NULL;
}

static void set_text(struct str *target, struct str text, bool is_removed)
{
    if (!str_is_set(text) && !is_removed) {
        return;
    }
    char *copy = NULL;
    if (str_is_set(text)) {
        copy = mem_alloc(text.len + 1);
        memcpy(copy, text.ptr, text.len);
        copy[text.len] = '\0';
    }
    mem_free((void *)(uintptr_t)target->ptr);
    *target = (struct str){copy, text.len};
}

static struct string_map merged_selector(struct arena *arena, const struct string_map *old,
                                         const struct string_map *patch)
{
    struct string_map map = {
        .items = ARENA_ARRAY(arena, struct string_pair, old->count + patch->count + 1)};
    for (uint32_t i = 0; i < old->count; i++) {
        bool is_patched = false;
        for (uint32_t j = 0; j < patch->count; j++) {
            is_patched = is_patched || str_eq(old->items[i].key, patch->items[j].key);
        }
        if (!is_patched) {
            map.items[map.count++] = old->items[i];
        }
    }
    for (uint32_t i = 0; i < patch->count; i++) {
        if (str_is_set(patch->items[i].value)) {
            map.items[map.count++] = patch->items[i];
        }
    }
    return map;
}

static void patch_template(struct bulk *bulk, uint32_t index, const struct template_patch *patch)
{
    struct bulk_gang_state *state = &bulk->gangs[index];
    bool changes_affinity = patch->affinity != NULL || patch->drops_affinity != NULL;
    if (patch->node_selector.count == 0 && !patch->sets_tolerations && !changes_affinity) {
        return;
    }
    struct arena arena;
    arena_init(&arena);
    struct bulk_template buffer;
    struct pod_spec next =
        state->spec == NULL ? bulk_template_spec(bulk, index, &buffer) : *state->spec;
    next.node_selector = merged_selector(&arena, &next.node_selector, &patch->node_selector);
    if (patch->sets_tolerations) {
        next.tolerations = patch->tolerations;
    }
    if (changes_affinity) {
        next.affinity = affinity_merge(&arena, next.affinity, patch->affinity,
                                       str_from_c(patch->drops_affinity));
    }
    struct pod_spec *spec = NULL;
    if (next.node_selector.count > 0 || next.tolerations.count > 0 || next.affinity != NULL) {
        spec = object_clone(&pod_spec_schema, &next);
    }
    mem_free(state->spec);
    state->spec = spec;
    arena_deinit(&arena);
}

void bulk_gang_patch(struct bulk *bulk, uint32_t index, const struct job_patch *patch)
{
    struct bulk_gang_state *state = &bulk->gangs[index];
    set_text(&state->record, patch->record, patch->removes_record);
    set_text(&state->suspended, patch->suspended, patch->removes_suspended);
    if (patch->template_count > 0) {
        patch_template(bulk, index, &patch->templates[0]);
    }
    if (patch->suspend.is_set && patch->suspend.value != state->is_suspended) {
        state->is_suspended = patch->suspend.value;
        state->generation++;
    }
    take_version(bulk, state);
    if (!state->is_echo_due) {
        state->is_echo_due = true;
        bulk->echoes =
            mem_grow(bulk->echoes, bulk->echo_count, &bulk->echo_capacity, sizeof(*bulk->echoes));
        bulk->echoes[bulk->echo_count++] = index;
    }
}

static void stop(struct bulk *bulk, uint32_t index)
{
    struct bulk_gang_state *state = &bulk->gangs[index];
    int64_t lost_ms = interrupt(bulk, index);
    state->state = BULK_WAITING;
    state->reason = REASON_NONE;
    bulk_tell(bulk, &(struct bulk_note){.change = BULK_STOPPED,
                                        .gang = index,
                                        .lost_ms = lost_ms,
                                        .cause = state->suspended});
    bulk_show_job(bulk, index, false);
    drop_pods(bulk, index);
}

void bulk_gang_echo(struct bulk *bulk, uint32_t index)
{
    struct bulk_gang_state *state = &bulk->gangs[index];
    state->is_echo_due = false;
    if (state->state == BULK_DONE) {
        return;
    }
    if (!state->is_suspended && state->state == BULK_WAITING) {
        state->was_started = true;
        if (!bulk_gang_place(bulk, index)) {
            keep_unplaced(bulk, index);
            bulk_show_job(bulk, index, false);
        }
        return;
    }
    if (state->is_suspended && state->state != BULK_WAITING) {
        stop(bulk, index);
        return;
    }
    bulk_show_job(bulk, index, false);
}
