/* bulk_writes.c - the driver's ports in the bulk simulator: each write is carried out and answered
 * as soon as the driver has returned. */
#include "bulk_internal.h"

#include <stdio.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

static int64_t port_now_ms(void *ctx)
{
    const struct bulk *bulk = ctx;
    return sat_add(bulk->options.start_ms, bulk->now_ms);
}

static void port_wake_at(void *ctx, int64_t at_ms)
{
    ((struct bulk *)ctx)->wake_at_ms = at_ms;
}

static void port_write(void *ctx, const struct driver_write *write)
{
    struct bulk *bulk = ctx;
    bulk->writes =
        mem_grow(bulk->writes, bulk->write_count, &bulk->write_capacity, sizeof(*bulk->writes));
    bulk->writes[bulk->write_count++] =
        (struct bulk_write){write->id, write->effect, write->admission};
}

static void port_on_event(void *ctx, const struct event *event)
{
    struct bulk *bulk = ctx;
    if (bulk->options.on_event != NULL) {
        bulk->options.on_event(bulk->options.ctx, event);
    }
}

static void port_on_effects(void *ctx, const struct event *event, const struct effects *effects)
{
    struct bulk *bulk = ctx;
    if (bulk->options.on_effects != NULL) {
        bulk->options.on_effects(bulk->options.ctx, event, effects);
    }
}

static void port_on_refused(void *ctx, const struct event *event, const struct err *err)
{
    struct bulk *bulk = ctx;
    if (bulk->options.on_refused != NULL) {
        bulk->options.on_refused(bulk->options.ctx, event, err);
    }
}

void bulk_ports_open(struct bulk *bulk)
{
    struct core_options options = {.is_terse = true,
                                   .selector_cost_per_step = SELECTOR_COST_PER_STEP};
    struct driver_ports ports = {.ctx = bulk,
                                 .now_ms = port_now_ms,
                                 .wake_at = port_wake_at,
                                 .write = port_write,
                                 .on_event = port_on_event,
                                 .on_effects = port_on_effects,
                                 .on_refused = port_on_refused};
    bulk->core = core_new(&options);
    bulk->driver = driver_new(bulk->core, &ports);
}

/* The gang's number stands in the uid of its Job. */
static uint32_t gang_of(const struct bulk *bulk, struct str uid)
{
    int64_t index = -1;
    bool is_ours = str_starts_with(uid, STR("job-")) && str_to_i64(str_skip(uid, 4), &index) &&
                   index >= 0 && index < (int64_t)bulk->options.gang_count;
    return is_ours ? (uint32_t)index : UINT32_MAX;
}

static enum reason reason_named(struct str code)
{
    for (int reason = REASON_NONE + 1; reason < REASON_COUNT; reason++) {
        if (str_eq_c(code, reason_info((enum reason)reason)->code)) {
            return (enum reason)reason;
        }
    }
    return REASON_NONE;
}

static void take_admission(struct bulk *bulk, uint32_t index, const struct admission *admission)
{
    struct bulk_gang_state *state = &bulk->gangs[index];
    if (state->state != BULK_WAITING) {
        return;
    }
    enum reason reason = reason_named(admission->status.reason);
    if (reason != REASON_NONE && reason != state->reason) { /* none: it has just been admitted */
        state->reason = reason;
        bulk_tell(bulk, &(struct bulk_note){.change = BULK_WAITS, .gang = index, .reason = reason});
    }
}

static struct driver_answer carry_out(struct bulk *bulk, const struct bulk_write *write,
                                      char version[24])
{
    struct driver_answer answer = {.outcome = WRITE_OK};
    uint32_t index = gang_of(bulk, write->effect->uid);
    if (index == UINT32_MAX) {
        return answer;
    }
    if (write->effect->kind == EFFECT_WRITE_ADMISSION) {
        take_admission(bulk, index, write->admission);
    } else if (write->effect->kind == EFFECT_PATCH_JOB) {
        if (bulk->gangs[index].state == BULK_DONE) {
            answer.outcome = WRITE_GONE;
            return answer;
        }
        bulk_gang_patch(bulk, index, &write->effect->patch);
        int length = snprintf(version, 24, "%llu", (unsigned long long)bulk->gangs[index].version);
        answer.resource_version = (struct str){version, (size_t)length};
    }
    return answer;
}

bool bulk_writes_answer(struct bulk *bulk)
{
    bool has_any = bulk->write_next < bulk->write_count;
    while (bulk->write_next < bulk->write_count) {
        struct bulk_write write = bulk->writes[bulk->write_next++];
        char version[24];
        struct driver_answer answer = carry_out(bulk, &write, version);
        driver_write_done(bulk->driver, write.id, &answer);
    }
    bulk->write_count = 0;
    bulk->write_next = 0;
    return has_any;
}
