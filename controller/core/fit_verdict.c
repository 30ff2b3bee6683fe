/* fit_verdict.c - the sentence for a gang that has quota, and no room. */
#include "ask.h"
#include "topology.h"

static struct verdict say(enum reason reason, struct str message)
{
    return (struct verdict){.reason = reason, .waits_for = WAIT_CLUSTER, .message = message};
}

/* "3 nodes: 2 not ready, 1 tainted"; those that are merely in use aren't listed. */
static struct str nodes_text(struct arena *arena, const struct fit_result *fit)
{
    struct text text;
    text_init(&text, arena, 200);
    bool is_bound = !str_is_empty(fit->bound_to);
    if (is_bound) {
        text_addf(&text, "node " STR_FMT " by spec.nodeName", STR_ARG(fit->bound_to));
    } else {
        text_addf(&text, "%u node%s", fit->nodes_total, fit->nodes_total == 1 ? "" : "s");
    }
    const char *separator = ": ";
    for (int i = 0; i < EXCLUDED_COUNT; i++) {
        if (fit->excluded[i] > 0 && i != EXCLUDED_FULL) {
            struct str why = exclusion_sentence(arena, (enum exclusion)i, fit->excluded_why[i]);
            text_add(&text, str_from_c(separator));
            if (!is_bound) {
                text_addf(&text, "%u ", fit->excluded[i]);
            }
            text_add(&text, why);
            separator = ", ";
        }
    }
    return text_str(&text);
}

static bool is_plain(struct str resource)
{
    return str_eq_c(resource, "cpu") || str_eq_c(resource, "memory") ||
           str_eq_c(resource, "ephemeral-storage") || str_eq_c(resource, RESOURCE_PODS) ||
           str_starts_with(resource, STR("hugepages-"));
}

/* "gpu.example.com", or "gpu.example.com (by selector '…')" */
static struct str short_name(struct arena *arena, const struct fit_result *fit)
{
    return str_is_set(fit->selector) ? arena_format(arena, STR_FMT " (by " STR_FMT ")",
                                                    STR_ARG(fit->short_of), STR_ARG(fit->selector))
                                     : fit->short_of;
}

static struct verdict too_large(struct core *core, const struct fit_result *fit)
{
    struct arena *arena = &core->scratch;
    if (str_is_set(fit->too_large_of)) {
        size_t slash = str_find_char(fit->too_large_of, '/');
        return say(
            REASON_NEVER_FITS,
            arena_format(arena,
                         "claim " STR_FMT " needs %lld " STR_FMT
                         " on one node, more than any node that it may use has (" STR_FMT ")",
                         STR_ARG(str_skip(fit->too_large_of, slash + 1)), (long long)fit->asked,
                         STR_ARG(short_name(arena, fit)), STR_ARG(nodes_text(arena, fit))));
    }
    if (str_eq_c(fit->short_of, RESOURCE_PODS)) {
        return say(REASON_NEVER_FITS,
                   arena_format(arena,
                                "no node that it may use takes pods: "
                                "status.allocatable.pods is 0 or missing (" STR_FMT ")",
                                STR_ARG(nodes_text(arena, fit))));
    }
    return say(REASON_NEVER_FITS,
               arena_format(arena,
                            "one pod needs " STR_FMT " " STR_FMT
                            ", more than any node that it may use has (" STR_FMT ")",
                            STR_ARG(resource_amount_format(arena, fit->short_of, fit->per_pod)),
                            STR_ARG(short_name(arena, fit)), STR_ARG(nodes_text(arena, fit))));
}

static struct verdict never_together(struct core *core, const struct pod_set *set,
                                     const struct fit_result *fit)
{
    struct str claims = fit->is_asked_special ? ask_names(core, set) : STR_NONE;
    return say(REASON_NEVER_FITS,
               arena_format(&core->scratch,
                            "no node that it may use has all that one pod needs%s" STR_FMT "%s, "
                            "even when it is empty (" STR_FMT ")",
                            str_is_set(claims) ? " (with the devices of " : "", STR_ARG(claims),
                            str_is_set(claims) ? ")" : "",
                            STR_ARG(nodes_text(&core->scratch, fit))));
}

/* More pods than all nodes could hold, were they empty and healthy; whatever ends, it can't start.
 */
static bool is_too_many(const struct fit_result *fit)
{
    return fit->ever.is_too_many && fit->nodes_total > 0 && !str_is_set(fit->pool_trouble);
}

/* Why there is room for so few. */
static struct str crowded_text(const struct pod_set *set, const struct fit_ever *ever)
{
    if (ever->is_one_node) {
        return STR(" on one node, which they need because they share a ResourceClaim");
    }
    if (pod_set_keeps_apart(set)) {
        return STR(", one on each because of their anti-affinity");
    }
    if (pod_set_is_one_a_node(set)) {
        return STR(", one on each because of their host ports");
    }
    return ever->has_counters
               ? STR(", since devices of one card exclude each other by the counters "
                     "that they share")
               : STR_NONE;
}

static struct verdict too_many(struct core *core, const struct pod_set *set,
                               const struct fit_result *fit)
{
    struct arena *arena = &core->scratch;
    const struct fit_ever *ever = &fit->ever;
    if (!str_is_set(ever->resource)) {
        return say(
            REASON_NEVER_FITS,
            arena_format(arena,
                         "the nodes that it may use have room for %lld of its %lld pods" STR_FMT
                         ", even when they are empty (" STR_FMT ")",
                         (long long)ever->pods, (long long)ever->count,
                         STR_ARG(crowded_text(set, ever)), STR_ARG(nodes_text(arena, fit))));
    }
    bool is_bound = !str_is_empty(fit->bound_to);
    return say(REASON_NEVER_FITS,
               arena_format(arena,
                            "needs " STR_FMT " " STR_FMT " at once, and %s " STR_FMT
                            "%s, used or not (" STR_FMT ")",
                            STR_ARG(resource_amount_format(arena, ever->resource, ever->asked)),
                            STR_ARG(ever->resource),
                            is_bound ? "the one node for all its pods has"
                                     : "all nodes that it may use have",
                            STR_ARG(resource_amount_format(arena, ever->resource, ever->capacity)),
                            is_bound ? "" : " together", STR_ARG(nodes_text(arena, fit))));
}

static struct verdict short_of(struct core *core, const struct fit_result *fit)
{
    struct arena *arena = &core->scratch;
    bool is_devices = fit->is_class || !is_plain(fit->short_of);
    struct verdict verdict =
        say(is_devices ? REASON_DEVICES_EXHAUSTED : REASON_NODES_FULL,
            arena_format(arena,
                         "needs " STR_FMT " " STR_FMT " at once, " STR_FMT " of " STR_FMT
                         " are free (" STR_FMT "%s" STR_FMT ")",
                         STR_ARG(resource_amount_format(arena, fit->short_of, fit->asked)),
                         STR_ARG(short_name(arena, fit)),
                         STR_ARG(resource_amount_format(arena, fit->short_of, fit->free)),
                         STR_ARG(resource_amount_format(arena, fit->short_of, fit->capacity)),
                         STR_ARG(nodes_text(arena, fit)), str_is_set(fit->pool_trouble) ? "; " : "",
                         STR_ARG(fit->pool_trouble)));
    verdict.resource = fit->short_of;
    verdict.asked = fit->asked;
    verdict.free = fit->free;
    return verdict;
}

/* The nodes that are large enough for one pod, or a claim, are away for now. */
static struct verdict larger_is_away(struct core *core, const struct fit_result *fit)
{
    struct arena *arena = &core->scratch;
    struct verdict verdict = short_of(core, fit);
    size_t slash = str_find_char(fit->too_large_of, '/');
    struct str who = !str_is_set(fit->too_large_of)
                         ? STR("one pod")
                         : arena_format(arena, "claim " STR_FMT,
                                        STR_ARG(str_skip(fit->too_large_of, slash + 1)));
    verdict.message = arena_format(
        arena,
        STR_FMT " needs " STR_FMT " " STR_FMT
                " on one node, and of the nodes that can be used now none has more than " STR_FMT
                " (" STR_FMT ")",
        STR_ARG(who), STR_ARG(resource_amount_format(arena, fit->short_of, fit->per_pod)),
        STR_ARG(short_name(arena, fit)),
        STR_ARG(resource_amount_format(arena, fit->short_of, fit->largest)),
        STR_ARG(nodes_text(arena, fit)));
    return verdict;
}

/* Of which all that a node has are wanted; absent: of none. */
static struct str all_of_class(const struct device_ask *ask)
{
    for (uint32_t o = 0; ask != NULL && o < ask->option_count; o++) {
        if (ask->options[o].is_all) {
            return ask->options[o].profile->class_name;
        }
    }
    return STR_NONE;
}

/* "the free devices are enough for 1 of 2 pods with ResourceClaimTemplate ml/one" */
static struct str searched_text(struct core *core, const struct pod_set *set,
                                const struct fit_result *fit)
{
    struct str all = all_of_class(set->ask);
    struct str names = ask_names(core, set);
    long long placed = (long long)fit->asked_placed;
    long long pods = (long long)set->size.min_count;
    const char *what = "the free devices are enough for";
    return str_is_set(all)
               ? arena_format(&core->scratch,
                              "%s %lld of %lld pods with " STR_FMT
                              ", where allocationMode All wants every " STR_FMT " of a node",
                              what, placed, pods, STR_ARG(names), STR_ARG(all))
               : arena_format(&core->scratch, "%s %lld of %lld pods with " STR_FMT, what, placed,
                              pods, STR_ARG(names));
}

/* There is enough of everything, but for what isn't healthy. */
static struct verdict unhealthy(struct core *core, const struct pod_set *set,
                                const struct fit_result *fit)
{
    struct arena *arena = &core->scratch;
    const struct fit_health *health = &fit->health;
    if (health->is_by_search) {
        return say(REASON_DEVICES_UNHEALTHY,
                   arena_format(arena,
                                STR_FMT
                                "; with what is out for health reasons it could start: " STR_FMT
                                " (" STR_FMT ")",
                                STR_ARG(searched_text(core, set, fit)), STR_ARG(health->names),
                                STR_ARG(nodes_text(arena, fit))));
    }
    struct verdict verdict =
        say(REASON_DEVICES_UNHEALTHY,
            arena_format(arena,
                         "needs " STR_FMT " " STR_FMT " at once, " STR_FMT " of " STR_FMT
                         " are free; with " STR_FMT " that %s out for health reasons it could "
                         "start: " STR_FMT " (" STR_FMT "%s" STR_FMT ")",
                         STR_ARG(resource_amount_format(arena, health->resource, health->asked)),
                         STR_ARG(health->resource),
                         STR_ARG(resource_amount_format(arena, health->resource, health->free)),
                         STR_ARG(resource_amount_format(arena, health->resource, health->capacity)),
                         STR_ARG(resource_amount_format(arena, health->resource, health->ailing)),
                         health->ailing == 1 ? "is" : "are", STR_ARG(health->names),
                         STR_ARG(nodes_text(arena, fit)), str_is_set(fit->pool_trouble) ? "; " : "",
                         STR_ARG(fit->pool_trouble)));
    verdict.resource = health->resource;
    verdict.asked = health->asked;
    verdict.free = health->free;
    return verdict;
}

/* What it is that keeps pods apart that there is enough for. */
static const char *together_text(const struct pod_set *set)
{
    for (uint32_t c = 0; c < set->claim_count; c++) {
        if (!claim_is_allocated(set->claims[c].claim)) {
            return "one node, which they need because they share a ResourceClaim";
        }
    }
    return set->device_count > 1 ? "the nodes together, whichever of the free devices "
                                   "kube-scheduler gives to which of their requests"
                                 : "the nodes together";
}

/* Which pod is placed first, and where, decides for how many the devices are enough. */
static struct verdict uneven(struct core *core, const struct pod_set *set,
                             const struct fit_result *fit)
{
    struct arena *arena = &core->scratch;
    struct str nodes = nodes_text(arena, fit);
    long long pods = (long long)set->size.min_count;
    if (pods == 1) {
        return say(
            REASON_NODE_SHAPE,
            arena_format(arena,
                         "no node is sure to have room for its pod and the devices too: some "
                         "devices are seen from several nodes and not from all (" STR_FMT ")",
                         STR_ARG(nodes)));
    }
    struct str sure = fit->asked_placed == 0 ? arena_format(arena, "none of its %lld pods is", pods)
                                             : arena_format(arena, "only %lld of its %lld pods %s",
                                                            (long long)fit->asked_placed, pods,
                                                            fit->asked_placed == 1 ? "is" : "are");
    return say(REASON_NODE_SHAPE,
               arena_format(arena,
                            STR_FMT
                            " sure to find devices: some are seen from several nodes and "
                            "not from all, so that a pod may take what only pods elsewhere could "
                            "use; a nodeSelector would settle it (" STR_FMT ")",
                            STR_ARG(sure), STR_ARG(nodes)));
}

static struct verdict scattered(struct arena *arena, const struct pod_set *set,
                                const struct fit_result *fit)
{
    int64_t pods = set->size.min_count;
    const char *why = pod_set_keeps_apart(set)     ? "; their anti-affinity lets one on a node"
                      : pod_set_is_one_a_node(set) ? "; each takes a port of its node (hostPort) "
                                                     "that no other pod there may have"
                                                   : "";
    return say(REASON_NODE_SHAPE,
               arena_format(arena,
                            "enough is free in total, but " STR_FMT " place on %s (" STR_FMT ")%s",
                            STR_ARG(pods == 1 ? STR("such a pod doesn't find a")
                                              : arena_format(arena, "%lld such pods don't find a",
                                                             (long long)pods)),
                            together_text(set), STR_ARG(nodes_text(arena, fit)), why));
}

/* Enough in all, and not together. */
static struct verdict misshapen(struct core *core, const struct pod_set *set,
                                const struct fit_result *fit)
{
    struct arena *arena = &core->scratch;
    if (fit->is_asked_special && fit->asked_placed < set->size.min_count) {
        return say(REASON_DEVICES_EXHAUSTED, arena_format(arena, STR_FMT " (" STR_FMT ")",
                                                          STR_ARG(searched_text(core, set, fit)),
                                                          STR_ARG(nodes_text(arena, fit))));
    }
    if (!str_is_set(fit->apart) && fit->is_uneven) {
        return uneven(core, set, fit);
    }
    if (!str_is_set(fit->apart)) {
        return scattered(arena, set, fit);
    }
    struct verdict verdict =
        say(REASON_NODE_SHAPE,
            arena_format(arena,
                         "one pod needs " STR_FMT " " STR_FMT " on one node, " STR_FMT
                         " are free in total and at most " STR_FMT " on one node (" STR_FMT ")",
                         STR_ARG(resource_amount_format(arena, fit->apart, fit->apart_per_pod)),
                         STR_ARG(fit->apart),
                         STR_ARG(resource_amount_format(arena, fit->apart, fit->apart_free)),
                         STR_ARG(resource_amount_format(arena, fit->apart, fit->apart_largest)),
                         STR_ARG(nodes_text(arena, fit))));
    verdict.resource = fit->apart;
    verdict.asked = fit->apart_per_pod;
    verdict.free = fit->apart_largest;
    return verdict;
}

/* Nodes on whose devices a selector fails are out, for kube-scheduler as well: who wrote it should
 * hear of it. */
static void tell_failing_selector(struct core *core, struct device_profile *profile,
                                  bool is_given_up, struct verdict *verdict)
{
    struct str failure = profile_failure(core, profile);
    if (str_is_set(failure)) {
        verdict->message = arena_format(
            &core->scratch,
            STR_FMT "; %s selector of DeviceClass " STR_FMT " or of its request fails: " STR_FMT,
            STR_ARG(verdict->message),
            is_given_up ? "a" : "nodes are passed over on whose devices a",
            STR_ARG(profile->class_name), STR_ARG(failure));
    }
}

static void tell_failing_selectors(struct core *core, const struct pod_set *set, bool is_given_up,
                                   struct verdict *verdict)
{
    for (uint32_t i = 0; i < set->device_count; i++) {
        tell_failing_selector(core, set->devices[i].profile, is_given_up, verdict);
    }
    for (uint32_t c = 0; c < set->claim_count; c++) {
        for (uint32_t i = 0; i < set->claims[c].request_count; i++) {
            tell_failing_selector(core, set->claims[c].requests[i].profile, is_given_up, verdict);
        }
    }
}

static bool has_nodes_away(const struct fit_result *fit)
{
    return fit->excluded[EXCLUDED_NOT_READY] + fit->excluded[EXCLUDED_CORDONED] +
               fit->excluded[EXCLUDED_UNHEALTHY] + fit->excluded[EXCLUDED_QUARANTINE] +
               fit->excluded[EXCLUDED_CLAIM] >
           0;
}

/* One pod would find a place; all together don't. */
static struct verdict together_verdict(struct core *core, const struct pod_set *set,
                                       const struct fit_result *fit)
{
    if (fit->topology.is_never || fit->topology.is_short) {
        return topology_verdict(core, &fit->topology);
    }
    if (fit->is_too_large && has_nodes_away(fit)) {
        return larger_is_away(core, fit);
    }
    return str_is_set(fit->short_of) ? short_of(core, fit) : misshapen(core, set, fit);
}

static struct verdict no_node(struct core *core, const struct fit_result *fit)
{
    bool is_choice =
        fit->sick_count == 0 && fit->excluded[EXCLUDED_CORDONED] == 0 && fit->ever.pods == 0;
    return say(is_choice ? REASON_NO_MATCHING_FLAVOR : REASON_NODES_FULL,
               arena_format(&core->scratch, "no node can take its pods (" STR_FMT ")",
                            STR_ARG(nodes_text(&core->scratch, fit))));
}

/* One pod of it, or what all pods share, is larger than any node. */
static bool is_one_too_large(const struct fit_result *fit)
{
    bool may_come_back = has_nodes_away(fit) && !fit->is_never_together;
    return fit->is_too_large && !may_come_back;
}

/* Nobody's pods on their way are in the way: it is something else. */
static struct verdict lacking_verdict(struct core *core, const struct pod_set *set,
                                      const struct fit_result *fit)
{
    bool is_never = is_too_many(fit) && fit->ever.pods > 0;
    if (str_is_set(fit->health.resource) && !fit->health.is_short_anyway && !is_never) {
        return unhealthy(core, set, fit);
    }
    if (fit->excluded[EXCLUDED_FULL] == 0 && !is_never) {
        return no_node(core, fit);
    }
    if (str_is_set(fit->unmatched)) {
        return say(REASON_NEVER_FITS, fit->unmatched);
    }
    if (str_is_set(fit->pool_trouble)) {
        return together_verdict(core, set, fit);
    }
    return is_one_too_large(fit)    ? too_large(core, fit)
           : fit->is_never_together ? never_together(core, set, fit)
           : is_never               ? too_many(core, set, fit)
                                    : together_verdict(core, set, fit);
}

static struct verdict nearest_verdict(struct core *core, const struct pod_set *set,
                                      const struct fit_result *fit)
{
    if (str_is_set(fit->ask_trouble) && !is_too_many(fit)) {
        return say(fit->ask_reason, fit->ask_trouble);
    }
    if (str_is_set(fit->claim_trouble) && !(fit->is_claim_in_way && is_too_many(fit))) {
        bool is_shape = fit->is_misled || fit->is_claim_in_way;
        return say(is_shape            ? REASON_NODE_SHAPE
                   : fit->is_claim_ill ? REASON_DEVICES_UNHEALTHY
                                       : REASON_RESERVED_FOR_OTHER,
                   fit->claim_trouble);
    }
    if (fit->is_promised) {
        return say(REASON_RESERVED_FOR_OTHER,
                   STR("the room is promised to gangs whose pods are being placed"));
    }
    if (fit->nodes_total == 0) {
        return say(REASON_NODES_FULL, STR("there are no nodes yet"));
    }
    return lacking_verdict(core, set, fit);
}

static struct verdict judge_fit(struct core *core, const struct pod_set *set,
                                const struct fit_result *fit)
{
    struct verdict verdict =
        fit->is_own_way
            ? say(REASON_NODE_SHAPE,
                  STR("its pods may take the places that pods of its other sets need, in whatever "
                      "order they are placed; they would start on nodes, or flavors, of their own"))
            : nearest_verdict(core, set, fit);
    tell_failing_selectors(core, set, str_is_set(fit->ask_trouble), &verdict);
    return verdict;
}

struct verdict fit_verdict(struct core *core, const struct fit_wants *wants,
                           const struct fit_result *fit)
{
    struct verdict verdict = judge_fit(core, wants->items[fit->short_set].demand.set, fit);
    verdict.waits_for |= fit->is_beside_promises ? WAIT_PROMISES : 0;
    verdict.is_never = is_too_many(fit);
    return verdict;
}
