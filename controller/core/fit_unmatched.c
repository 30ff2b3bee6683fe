/* fit_unmatched.c - requests that no device of the whole cluster can meet, in use or not: that is
 * no matter of room, and whoever wrote them should hear which request it is. */
#include "ask.h"

#include "internal.h"

#define EXPRESSION_MAX_BYTES 200

static struct str clipped(struct core *core, struct str text)
{
    struct str cut = str_cut_utf8(text, EXPRESSION_MAX_BYTES);
    return cut.len == text.len ? text : arena_format(&core->scratch, STR_FMT "…", STR_ARG(cut));
}

struct str profile_selector_text(struct core *core, const struct device_profile *profile)
{
    uint32_t count = profile->own.count;
    if (count == 0 || profile->own.items[0].cel == NULL) {
        return STR_NONE;
    }
    struct str first = clipped(core, profile->own.items[0].cel->expression);
    return count == 1 ? arena_format(&core->scratch, "selector '" STR_FMT "'", STR_ARG(first))
                      : arena_format(&core->scratch, "selectors '" STR_FMT "' and %u more",
                                     STR_ARG(first), count - 1);
}

/* "DeviceClass gpu.example.com and its selector 'device.…'" */
static struct str asked_text(struct core *core, const struct ask_option *option)
{
    struct str selector = profile_selector_text(core, option->profile);
    return arena_format(&core->scratch, "DeviceClass " STR_FMT "%s" STR_FMT,
                        STR_ARG(option->profile->class_name),
                        str_is_set(selector) ? " and its " : "", STR_ARG(selector));
}

/* The first device that would do but for its counters, by its key. */
static struct str overdrawn_text(struct core *core, const struct ask_option *option)
{
    struct device_state *device;
    RB_FOREACH (device, device_tree, &core->device_order) {
        const struct counter_state *counter = device_scarce_counter(device);
        if (counter == NULL || !profile_selects(core, option->profile, device)) {
            continue;
        }
        return arena_format(&core->scratch,
                            "every device that matches " STR_FMT
                            " draws more on a shared counter than there is of it, as does " STR_FMT
                            " on " STR_FMT "/" STR_FMT,
                            STR_ARG(asked_text(core, option)), STR_ARG(device->key),
                            STR_ARG(counter->set), STR_ARG(counter->name));
    }
    return STR_NONE;
}

static struct str request_unmatched(struct core *core, const struct device_ask *ask,
                                    const struct ask_claim *claim,
                                    const struct ask_request *request)
{
    const struct ask_option *first = &ask->options[request->first_option];
    bool has_any = request->option_count == 0;
    bool has_usable = has_any;
    for (uint32_t o = 0; o < request->option_count; o++) {
        struct device_profile *profile = first[o].profile;
        has_any = has_any || profile_has_any(core, profile) || profile_is_failing(core, profile);
        has_usable = has_usable || profile_has_usable(core, profile);
    }
    if (has_usable || (has_any && request->option_count > 1)) {
        return STR_NONE;
    }
    struct str what =
        has_any
            ? overdrawn_text(core, first)
            : arena_format(&core->scratch, "no device matches " STR_FMT "%s",
                           STR_ARG(asked_text(core, first)),
                           request->option_count > 1 ? ", nor any of its other alternatives" : "");
    return str_is_set(what)
               ? arena_format(&core->scratch, STR_FMT ": request " STR_FMT ": " STR_FMT,
                              STR_ARG(claim->where), STR_ARG(request->object->name), STR_ARG(what))
               : STR_NONE;
}

static struct str ask_unmatched(struct core *core, const struct device_ask *ask)
{
    struct str found = STR_NONE;
    for (uint32_t c = 0; ask != NULL && c < ask->claim_count; c++) {
        for (uint32_t r = 0; r < ask->claims[c].request_count && !str_is_set(found); r++) {
            found = request_unmatched(core, ask, &ask->claims[c], &ask->claims[c].requests[r]);
        }
    }
    return found;
}

struct str set_unmatched(struct core *core, const struct pod_set *set)
{
    struct str found = ask_unmatched(core, set->ask);
    for (uint32_t c = 0; c < set->claim_count && !str_is_set(found); c++) {
        if (!claim_is_allocated(set->claims[c].claim)) {
            found = ask_unmatched(core, set->claims[c].ask);
        }
    }
    return found;
}
