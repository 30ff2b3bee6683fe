/* fit_break.c - claims on which kube-scheduler gives up, and those that can't be judged.
 *
 * Some errors end its search for a pod as a whole, whatever other nodes could do: a selector that
 * fails on a device, all devices of which a constraint forbids some, a pool that is being updated
 * where all devices are asked for, a capacity that it can't calculate with. */
#include "ailment.h"
#include "ask.h"

#include "internal.h"

#include "tallyman/base/limits.h"
#include "tallyman/base/time_text.h"

struct str ask_names(struct core *core, const struct pod_set *set)
{
    struct text text;
    text_init(&text, &core->scratch, 512);
    const char *separator = "";
    for (uint32_t c = 0; set->ask != NULL && c < set->ask->claim_count; c++) {
        text_addf(&text, "%s" STR_FMT, separator, STR_ARG(set->ask->claims[c].where));
        separator = ", ";
    }
    for (uint32_t c = 0; c < set->claim_count; c++) {
        text_addf(&text, "%sResourceClaim " STR_FMT, separator, STR_ARG(set->claims[c].claim->key));
        separator = ", ";
    }
    return text_str(&text);
}

struct str ask_is_too_hard(struct core *core, const struct pod_set *set)
{
    return arena_format(
        &core->scratch,
        "for how many pods the devices are enough can't be told: the requests of " STR_FMT
        " could be met in too many ways; they would start with selectors "
        "that leave less choice",
        STR_ARG(ask_names(core, set)));
}

struct str ask_is_tied(struct core *core, const struct pod_set *set)
{
    return arena_format(&core->scratch,
                        "how many of its pods find the devices of " STR_FMT " depends on the nodes "
                        "that they are put on: some are seen, or have counters that are drawn on, "
                        "from several nodes and not from all; a nodeSelector would settle it",
                        STR_ARG(ask_names(core, set)));
}

struct str ask_is_held_back(struct core *core, const struct pod_set *set,
                            const struct device_state *device)
{
    int64_t end_ms = ailment_end_ms(core, device);
    char buffer[TIME_TEXT_BYTES];
    return arena_format(&core->scratch,
                        "device " STR_FMT " is in quarantine%s" STR_FMT
                        ", and kube-scheduler, which doesn't know that, may give it to its pods: "
                        "with " STR_FMT " nobody can tell for how many pods the devices beside it "
                        "would then be enough",
                        STR_ARG(device->key), end_ms == 0 ? "" : " until ",
                        STR_ARG(end_ms == 0 ? STR_NONE : time_format_rfc3339(end_ms, buffer)),
                        STR_ARG(ask_names(core, set)));
}

/* The first claim that asks for more devices than a claim may have, whichever of its alternatives
 * are taken; NULL: none does. */
static const struct ask_claim *find_too_many(const struct device_ask *ask, int64_t *ret_devices)
{
    for (uint32_t c = 0; ask != NULL && c < ask->claim_count; c++) {
        const struct ask_claim *claim = &ask->claims[c];
        int64_t devices = 0;
        for (uint32_t r = 0; r < claim->request_count; r++) {
            int64_t least = INT64_MAX;
            for (uint32_t o = 0; o < claim->requests[r].option_count; o++) {
                int64_t count = ask->options[claim->requests[r].first_option + o].count;
                least = count < least ? count : least;
            }
            devices = sat_add(devices, claim->requests[r].option_count == 0 ? 0 : least);
        }
        if (devices > CLAIM_DEVICES_MAX) {
            *ret_devices = devices;
            return claim;
        }
    }
    return NULL;
}

/* Whether the allocator could give up on a claim of the ask at all. */
static bool may_break(struct core *core, const struct device_ask *ask)
{
    for (uint32_t i = 0; ask != NULL && i < ask->option_count; i++) {
        const struct ask_option *option = &ask->options[i];
        if (option->is_all || option->object->capacity != NULL ||
            profile_is_failing(core, option->profile)) {
            return true;
        }
    }
    return false;
}

/* The first claim that asks for all devices, NULL: none does. */
static const struct ask_claim *find_all(const struct device_ask *ask)
{
    for (uint32_t c = 0; ask->has_all && c < ask->claim_count; c++) {
        const struct ask_claim *claim = &ask->claims[c];
        for (uint32_t r = 0; r < claim->request_count; r++) {
            for (uint32_t o = 0; o < claim->requests[r].option_count; o++) {
                if (ask->options[claim->requests[r].first_option + o].is_all) {
                    return claim;
                }
            }
        }
    }
    return NULL;
}

/* What kube-scheduler finds there. */
static const char *const breach_texts[] = {
    [BREACH_SELECTOR] = "has a selector that fails on a device there",
    [BREACH_COUNT] = "asks for more devices there than the 32 that a claim may have",
    [BREACH_CONSTRAINT] = "asks for all devices, and its constraints forbid some of those there",
    [BREACH_CAPACITY] = "asks for a capacity of a device there that can't be calculated with",
};

static void tell_break(struct fit_result *result, enum reason reason, struct str sentence)
{
    result->ask_reason = reason;
    result->ask_trouble = sentence;
}

static bool ask_breaks(struct core *core, const struct pod_demand *demand,
                       const struct device_ask *ask, int64_t pods, struct fit_result *result)
{
    struct arena *arena = &core->scratch;
    int64_t devices = 0;
    const struct ask_claim *many = find_too_many(ask, &devices);
    if (many != NULL) {
        tell_break(result, REASON_NEVER_FITS,
                   arena_format(arena,
                                STR_FMT " asks for %lld devices, and Kubernetes gives a claim %d "
                                        "at most; split it into several claims",
                                STR_ARG(many->where), (long long)devices, CLAIM_DEVICES_MAX));
        return true;
    }
    if (!may_break(core, ask)) {
        return false;
    }
    const struct ask_claim *all = find_all(ask);
    struct str pool = all == NULL ? STR_NONE : pools_trouble(core, arena);
    if (all != NULL && str_is_set(pool)) {
        tell_break(result, REASON_DEVICES_EXHAUSTED,
                   arena_format(arena, STR_FMT " asks for all devices, and " STR_FMT,
                                STR_ARG(all->where), STR_ARG(pool)));
        return true;
    }
    struct node_state *node;
    struct breach breach;
    bool is_too_hard = false;
    fit_plan_new(core);
    RB_FOREACH (node, node_tree, &core->node_order) {
        bool is_out = node_exclusion(core, demand, node) != EXCLUDED_COUNT;
        int64_t here = is_out ? 0 : node_plain_slots(core, demand, node, pods);
        if (here > 0 && node_breaks_ask(core, ask, node, here, &breach, &is_too_hard)) {
            tell_break(
                result, REASON_NEVER_FITS,
                arena_format(arena,
                             "kube-scheduler gives up on its pods when it looks at node " STR_FMT
                             ": " STR_FMT " %s",
                             STR_ARG(node->name), STR_ARG(ask->claims[breach.claim].where),
                             breach_texts[breach.kind]));
            return true;
        }
        if (is_too_hard) { /* it may give up there */
            tell_break(result, REASON_NODE_SHAPE, ask_is_too_hard(core, demand->set));
            return true;
        }
    }
    return false;
}

bool demand_breaks(struct core *core, const struct pod_demand *demand, int64_t pods,
                   struct fit_result *result)
{
    if (ask_breaks(core, demand, demand->set->ask, pods, result)) {
        return true;
    }
    for (uint32_t c = 0; c < demand->set->claim_count; c++) {
        const struct shared_claim_demand *claim = &demand->set->claims[c];
        if (!claim_is_allocated(claim->claim) && ask_breaks(core, demand, claim->ask, 1, result)) {
            return true;
        }
    }
    return false;
}
