/* fungible.c - the flavors that a gang had better preempt for: all are judged, in the queue's
 * order, and nothing of it is remembered from one decision to the next.
 *
 * The rule is Kueue's (KEP-582, pkg/scheduler/flavorassigner): whenCanBorrow and whenCanPreempt say
 * at which flavor the search may end; that one is taken. If it ends nowhere, the best one is taken,
 * which is by `preference` the one that stops nobody (BorrowingOverPreemption, the default), or the
 * one that borrows from the nearest lender (PreemptionOverBorrowing). Taking back from others goes
 * before stopping gangs of the own queue. */
#include "victims.h"

enum mode { MODE_NONE = 0, MODE_PREEMPT, MODE_RECLAIM, MODE_FIT };

struct option {
    enum mode mode;
    enum reason reason; /* why it doesn't fit as things are */
    struct evaluation evaluation;
    struct victims victims;
};

static bool is_reclaim(const struct gang *gang, const struct victims *victims)
{
    for (uint32_t i = 0; i < victims->count; i++) {
        if (victims->items[i]->reservation->queue == gang->queue) {
            return false;
        }
    }
    return true;
}

static void judge(struct core *core, struct gang *gang, uint32_t combination,
                  struct option *ret_option)
{
    *ret_option = (struct option){.mode = MODE_NONE};
    evaluate_combination(core, gang->shape, combination, &ret_option->evaluation);
    enum reason reason = ret_option->reason = ret_option->evaluation.verdict.reason;
    if (reason == REASON_NONE) {
        ret_option->mode = MODE_FIT;
    } else if (preempt_can_help(reason) &&
               victims_search(core, gang, combination, &ret_option->victims,
                              &ret_option->evaluation)) {
        ret_option->mode = is_reclaim(gang, &ret_option->victims) ? MODE_RECLAIM : MODE_PREEMPT;
    }
}

static bool is_better(const struct option *option, const struct option *best, bool borrows_last)
{
    if (option->mode == MODE_NONE || best->mode == MODE_NONE) {
        return option->mode != MODE_NONE;
    }
    uint32_t level = option->evaluation.level;
    if (borrows_last && level != best->evaluation.level) {
        return level < best->evaluation.level;
    }
    if (option->mode != best->mode) {
        return option->mode > best->mode;
    }
    return level < best->evaluation.level;
}

static bool ends_search(const struct queue *object, const struct option *option)
{
    const struct flavor_fungibility *policy = object->spec.flavor_fungibility;
    bool stops_to_preempt = policy != NULL && str_eq_c(policy->when_can_preempt, "MayStopSearch");
    bool stops_to_borrow = policy == NULL || !str_eq_c(policy->when_can_borrow, "TryNextFlavor");
    if (option->mode == MODE_NONE || (option->evaluation.level > 0 && !stops_to_borrow)) {
        return false;
    }
    return option->mode == MODE_FIT || stops_to_preempt;
}

bool fungible_may_preempt_first(const struct queue_state *queue)
{
    const struct flavor_fungibility *policy =
        queue->object == NULL ? NULL : queue->object->spec.flavor_fungibility;
    return policy != NULL && (str_eq_c(policy->when_can_preempt, "MayStopSearch") ||
                              str_eq_c(policy->preference, "PreemptionOverBorrowing"));
}

/* The evidence has the flavors in the order in which they are judged, as far as it goes. */
static void note(struct core *core, struct evidence *evidence, uint32_t combination,
                 const char *what)
{
    if (combination < evidence->flavor_count) {
        struct flavor_note *flavor = &evidence->flavors[combination];
        flavor->message =
            arena_format(&core->scratch, STR_FMT "; %s", STR_ARG(flavor->message), what);
    }
}

static void note_options(struct core *core, struct evidence *evidence, uint32_t combination,
                         const struct option *option)
{
    if (option->mode == MODE_NONE && preempt_can_help(option->reason)) {
        note(core, evidence, combination, "stopping those that may be stopped makes no room");
    } else if (option->mode == MODE_PREEMPT || option->mode == MODE_RECLAIM) {
        note(core, evidence, combination, "others can be stopped to make room");
    }
}

bool fungible_search(struct core *core, struct gang *gang, struct evidence *evidence,
                     struct victims *ret_victims, struct evaluation *ret_evaluation)
{
    const struct queue *object = gang->queue->object;
    const struct flavor_fungibility *policy =
        object == NULL ? NULL : object->spec.flavor_fungibility;
    bool borrows_last = policy != NULL && str_eq_c(policy->preference, "PreemptionOverBorrowing");
    struct option best = {.mode = MODE_NONE};
    uint32_t count = evaluate_combination_count(core, gang->shape);
    for (uint32_t combination = 0; combination < count; combination++) {
        struct option option;
        judge(core, gang, combination, &option);
        note_options(core, evidence, combination, &option);
        bool is_last = ends_search(object, &option);
        if (is_last || is_better(&option, &best, borrows_last)) {
            best = option;
        }
        if (is_last) {
            break;
        }
    }
    if (best.mode == MODE_NONE || best.mode == MODE_FIT) {
        return false;
    }
    note(core, evidence, best.evaluation.combination, "taken");
    *ret_victims = best.victims;
    *ret_evaluation = best.evaluation;
    return true;
}
