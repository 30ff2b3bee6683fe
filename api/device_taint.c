/* device_taint.c - taints of devices: whom they are about, and who tolerates them. Source:
 * k8s.io/dynamic-resource-allocation resourceslice/tracker and pkg/controller/devicetainteviction.
 */
#include "tallyman/api/dra.h"

static bool narrows_to(struct str wanted, struct str name)
{
    return !str_is_set(wanted) || str_eq(wanted, name);
}

bool device_taint_rule_selects(const struct device_taint_rule *rule,
                               const struct resource_slice_spec *slice, struct str device_name)
{
    const struct device_taint_selector *selector = rule->spec.device_selector;
    return selector != NULL && narrows_to(selector->driver, slice->driver) &&
           narrows_to(selector->pool, slice->pool.name) &&
           narrows_to(selector->device, device_name);
}

bool device_taint_keeps_off(const struct taint *taint)
{
    return str_eq_c(taint->effect, "NoSchedule") || str_eq_c(taint->effect, "NoExecute");
}

/* `seconds` after the taint came, 1 at the least: that is at once. */
static int64_t end_of_toleration(const struct taint *taint, int64_t seconds)
{
    int64_t since_ms = taint->time_added.is_set ? taint->time_added.ms : 0;
    int64_t end_ms = 0;
    if (seconds <= 0) {
        return 1;
    }
    if (__builtin_mul_overflow(seconds, 1000, &end_ms) ||
        __builtin_add_overflow(end_ms, since_ms, &end_ms)) {
        return INT64_MAX;
    }
    return end_ms;
}

int64_t device_taint_tolerated_until_ms(const struct taint *taint,
                                        const struct toleration_list *tolerations)
{
    bool evicts = str_eq_c(taint->effect, "NoExecute");
    int64_t until_ms = 0;
    for (uint32_t i = 0; i < tolerations->count; i++) {
        const struct toleration *toleration = &tolerations->items[i];
        /* Eviction takes only tolerations that name its effect. */
        bool names_it = !evicts || str_eq_c(toleration->effect, "NoExecute");
        if (!names_it || !toleration_tolerates(toleration, taint)) {
            continue;
        }
        if (!evicts || !toleration->toleration_seconds.is_set) {
            return INT64_MAX;
        }
        int64_t end_ms = end_of_toleration(taint, toleration->toleration_seconds.value);
        until_ms = until_ms == 0 || end_ms < until_ms ? end_ms : until_ms; /* the shortest */
    }
    return until_ms;
}
