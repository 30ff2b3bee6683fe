/* known.c - whether the controller knew the quotas as they are when it asked for a start, and what
 * another one has started behind its back. */
#include "vopr.h"

#include <stdio.h>

#include "support/check.h"
#include "tallyman/api/queue.h"

static bool is_as_it_is(const struct vopr *v, uint32_t queue, const struct queue *object)
{
    const struct quota_flavor *flavor = &object->spec.resource_groups.items[0].flavors.items[0];
    int64_t cpu = (int64_t)(flavor->resources.items[0].nominal_quota.value.nano / 1000000);
    int64_t devices = (int64_t)(flavor->resources.items[1].nominal_quota.value.nano / 1000000000);
    return cpu == v->quota[queue][CPU_MILLI] && devices == v->quota[queue][DEVICES];
}

void known_take(struct vopr *v, const struct event *event)
{
    v->events++;
    if (event->kind != EVENT_OBJECT || event->object.kind != KIND_QUEUE) {
        return;
    }
    const void *value = event->object.value;
    const struct queue *queue = value;
    for (uint32_t i = 0; i < VOPR_QUEUES; i++) {
        if (str_eq(queue->meta.name, queue_name(i))) {
            bool is_known = is_as_it_is(v, i, queue);
            v->known_since[i] = !is_known               ? 0
                                : v->known_since[i] > 0 ? v->known_since[i]
                                                        : v->events;
        }
    }
}

void known_ask(struct vopr *v, uint32_t number, uint64_t write_id)
{
    if (v->asked_by[number] != write_id) { /* else it is sent again */
        v->asked_by[number] = write_id;
        v->asked_at[number] = v->events;
    }
}

void known_forget(struct vopr *v)
{
    for (uint32_t i = 0; i < VOPR_QUEUES; i++) {
        v->known_since[i] = 0;
    }
    for (uint32_t i = 0; i < VOPR_JOBS; i++) {
        v->asked_by[i] = 0;
    }
}

bool known_at_start(const struct vopr *v, uint32_t number)
{
    bool is_known = true;
    for (uint32_t i = 0; i < VOPR_QUEUES; i++) {
        is_known = is_known && v->known_since[i] > 0 && v->asked_at[number] >= v->known_since[i];
    }
    return is_known;
}

void known_start(struct vopr *v, uint32_t number, bool is_late)
{
    v->late_ms[number] = is_late ? sim_now_ms(v->sim) + 1 : 0;
    if (is_late) {
        v->room_changed_ms = sim_now_ms(v->sim);
        v->is_charge_unsure = true; /* it may be deleted before it was seen */
    }
}

bool known_to_run(const struct vopr *v, uint32_t number)
{
    return v->late_ms[number] == 0 || sim_now_ms(v->sim) - v->late_ms[number] > SEEN_MS;
}
