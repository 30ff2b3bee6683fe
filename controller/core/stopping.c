/* stopping.c - who stops for whom, and who is Reserved: few among many that run. */
#include "stopping.h"

#include <assert.h>

#include "tallyman/base/alloc.h"

void gang_list_add(struct gang_list *list, struct gang *gang)
{
    list->items = mem_grow(list->items, list->count, &list->capacity, sizeof(struct gang *));
    list->items[list->count++] = gang;
}

void gang_list_remove(struct gang_list *list, const struct gang *gang)
{
    uint32_t at = 0;
    while (list->items[at] != gang) {
        at++;
        assert(at < list->count);
    }
    list->items[at] = list->items[--list->count];
}

void stopping_begin(struct core *core, struct gang *victim, const struct gang *gang)
{
    stopping_end(core, victim);
    victim->stops_for = str_own(gang->uid);
    gang_list_add(&core->stopping, victim);
}

void stopping_end(struct core *core, struct gang *victim)
{
    if (str_is_set(victim->stops_for)) {
        str_drop(&victim->stops_for);
        gang_list_remove(&core->stopping, victim);
    }
}

void stopping_tell(struct core *core, const struct gang *victim)
{
    struct gang *gang = core->is_ready ? gang_find(core, victim->stops_for) : NULL;
    if (gang != NULL) {
        gang_show(core, gang);
    }
}

bool stopping_is_for(const struct gang *victim, const struct gang *gang)
{
    return str_is_set(victim->stops_for) && str_eq(victim->stops_for, gang->uid);
}

struct victims stopping_find(struct core *core, const struct gang *gang, uint32_t *ret_own)
{
    struct victims found = {.count = 0};
    *ret_own = 0;
    for (uint32_t i = 0; i < core->stopping.count; i++) {
        struct gang *victim = core->stopping.items[i];
        const struct gang *other = gang_find(core, victim->stops_for);
        bool is_own = other != NULL && other == gang;
        if (victim->reservation != NULL &&
            (is_own || (other != NULL && other->state == GANG_RESERVED))) {
            *ret_own += is_own ? 1 : 0;
            victims_append(core, &found, victim);
        }
    }
    return found;
}

void stopping_set_out(struct core *core, bool is_out)
{
    for (uint32_t i = 0; i < core->stopping.count; i++) {
        struct gang *victim = core->stopping.items[i];
        const struct gang *gang = gang_find(core, victim->stops_for);
        if (victim->reservation != NULL && gang != NULL && gang->state == GANG_RESERVED) {
            whatif_set_quota(core, victim, is_out);
        }
    }
}

void stopping_free(struct core *core)
{
    mem_free(core->stopping.items);
    mem_free(core->reserved.items);
}

void stopping_is_deleted(struct core *core, struct gang *gang)
{
    gang_dequeue(core, gang);
    gang_set_timer(core, gang, 0);
    if (gang->reservation != NULL) {
        ledger_release(core, gang);
        stopping_end(core, gang);
    }
    gang_set_state(core, gang, GANG_PENDING, "Deleted");
}
