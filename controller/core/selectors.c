/* selectors.c - see the header.
 *
 * Those that are wanted take turns: every other one is that of the first that came, so that each
 * gets done, and the others are of the one that has cost least so far, so that an ordinary selector
 * doesn't wait for somebody's thousand costly ones. */
#include "selectors.h"

#include "ask.h"
#include "booking.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

struct selector_work {
    uint64_t left; /* until the next tick */
    uint64_t turns;
    uint64_t changes;             /* counts what makes an answer unknown again */
    struct device_profile *first; /* wanted; list by next_wanted, the first that came first */
    struct device_profile *last;
    struct shape *aside;      /* list by next_aside */
    struct arena scratch;     /* of one trial */
    uint64_t beside_known_at; /* the changes at which all that isn't a shape's own was known */
    uint64_t beside_promises; /* and core.promise_changes then */
    uint64_t all_known_at;    /* the changes at which everything of everybody was; 0: not now */
    bool is_missed;           /* somebody couldn't be judged in this step */
    bool may_have_unused;     /* profiles that nobody uses any more */
    bool has_missed_check;    /* one that has passed */
};

static bool is_bounded(const struct core *core)
{
    return core->options.selector_cost_per_step > 0;
}

void selectors_init(struct core *core)
{
    core->selector_work = MEM_NEW(struct selector_work);
    arena_init(&core->selector_work->scratch);
    core->selector_work->left = core->options.selector_cost_per_step;
    core->selector_work->changes = 1;
}

void selectors_free(struct core *core)
{
    arena_deinit(&core->selector_work->scratch);
    mem_free(core->selector_work);
}

/* -- the budget --------------------------------------------------------------------------------
 */

void selectors_step(struct core *core, bool is_tick)
{
    struct selector_work *work = core->selector_work;
    work->is_missed = false;
    core->has_passed_check = core->has_passed_check || work->has_missed_check;
    work->has_missed_check = false;
    if (is_tick) {
        work->left = core->options.selector_cost_per_step;
    }
    if (work->may_have_unused) {
        work->may_have_unused = false;
        profiles_free_unused(core);
    }
}

bool selectors_have_budget(const struct core *core)
{
    return !is_bounded(core) || core->selector_work->left > 0;
}

void selectors_spend(struct core *core, uint64_t cost)
{
    uint64_t *left = &core->selector_work->left;
    core->cost.selector_cost += cost;
    *left -= cost < *left ? cost : *left;
}

/* Before it is used up: events may come without a tick between them. */
bool selectors_are_due(const struct core *core)
{
    const struct selector_work *work = core->selector_work;
    return is_bounded(core) && (work->first != NULL || work->aside != NULL || work->is_missed ||
                                work->left < core->options.selector_cost_per_step / 2);
}

void selectors_changed(struct core *core)
{
    core->selector_work->changes++;
}

void selectors_doubt(struct core *core)
{
    core->selector_work->all_known_at = 0;
}

bool selectors_may_keep(const struct core *core)
{
    return !is_bounded(core) || core->out != NULL;
}

uint64_t selectors_changes(const struct core *core)
{
    return core->selector_work->changes;
}

bool selectors_keep_unused(struct core *core)
{
    core->selector_work->may_have_unused = is_bounded(core);
    return is_bounded(core);
}

/* -- those that are wanted --------------------------------------------------------------------- */

static void want(struct core *core, struct device_profile *profile)
{
    struct selector_work *work = core->selector_work;
    if (profile->is_wanted) {
        return;
    }
    profile->is_wanted = true;
    profile->next_wanted = NULL;
    *(work->first == NULL ? &work->first : &work->last->next_wanted) = profile;
    work->last = profile;
}

void selectors_forget_profile(struct core *core, struct device_profile *profile)
{
    struct selector_work *work = core->selector_work;
    struct device_profile *before = NULL;
    if (!profile->is_wanted) {
        return;
    }
    for (struct device_profile *other = work->first; other != profile; other = other->next_wanted) {
        before = other;
    }
    *(before == NULL ? &work->first : &before->next_wanted) = profile->next_wanted;
    work->last = work->last == profile ? before : work->last;
    profile->is_wanted = false;
}

static struct device_profile *cheapest(const struct selector_work *work)
{
    struct device_profile *least = work->first;
    for (struct device_profile *profile = work->first; profile != NULL;
         profile = profile->next_wanted) {
        least = profile->spent < least->spent ? profile : least;
    }
    return least;
}

static void try_wanted(struct core *core)
{
    struct selector_work *work = core->selector_work;
    while (work->left > 0 && work->first != NULL) {
        struct device_profile *profile = work->turns++ % 2 == 0 ? cheapest(work) : work->first;
        uint64_t limit = work->left < SELECTOR_TURN_COST ? work->left : SELECTOR_TURN_COST;
        if (profile_try(core, profile, limit, &work->scratch)) {
            selectors_forget_profile(core, profile);
        }
    }
}

bool profile_is_tried(const struct core *core, const struct device_profile *profile)
{
    return !is_bounded(core) || profile->tried_at == core->selector_work->changes ||
           str_is_set(profile->problem);
}

/* -- what a shape asks ------------------------------------------------------------------------- */

/* Visits every profile of the shape's requests; true: `visit` said so of all. */
typedef bool visit_fn(struct core *core, struct device_profile *profile);

static bool visit_demands(struct core *core, const struct device_demand *demands, uint32_t count,
                          visit_fn *visit)
{
    bool is_all = true;
    for (uint32_t i = 0; i < count; i++) {
        is_all = visit(core, demands[i].profile) && is_all;
    }
    return is_all;
}

static bool visit_ask(struct core *core, const struct device_ask *ask, visit_fn *visit)
{
    bool is_all = true;
    for (uint32_t i = 0; ask != NULL && i < ask->option_count; i++) {
        is_all = visit(core, ask->options[i].profile) && is_all;
    }
    return is_all;
}

static bool visit_shape(struct core *core, const struct shape *shape, visit_fn *visit)
{
    bool is_all = true;
    for (uint32_t s = 0; s < shape->set_count; s++) {
        const struct pod_set *set = &shape->sets[s];
        is_all = visit_demands(core, set->devices, set->device_count, visit) && is_all;
        is_all = visit_ask(core, set->ask, visit) && is_all;
        for (uint32_t c = 0; c < set->claim_count; c++) {
            const struct shared_claim_demand *claim = &set->claims[c];
            is_all = visit_demands(core, claim->requests, claim->request_count, visit) && is_all;
            is_all = visit_ask(core, claim->ask, visit) && is_all;
        }
    }
    return is_all;
}

static bool is_tried(struct core *core, struct device_profile *profile)
{
    return profile_is_tried(core, profile);
}

static bool is_tried_or_wanted(struct core *core, struct device_profile *profile)
{
    if (!profile_is_tried(core, profile)) {
        want(core, profile);
        return false;
    }
    return true;
}

static bool try_now(struct core *core, struct device_profile *profile)
{
    return profile_is_tried(core, profile) ||
           profile_try(core, profile, UINT64_MAX / 2, &core->selector_work->scratch);
}

bool selectors_are_tried(const struct core *core, const struct shape *shape)
{
    return !is_bounded(core) || visit_shape((struct core *)(uintptr_t)core, shape, is_tried);
}

/* Resolves it, wants what hasn't been tried, and tries as long as the budget lasts. */
static bool are_own_known(struct core *core, struct shape *shape)
{
    shape_resolve(core, shape);
    if (visit_shape(core, shape, is_tried_or_wanted)) {
        return true;
    }
    try_wanted(core);
    return visit_shape(core, shape, is_tried);
}

/* The gangs that may be the heads of their queues, as booking_heads.c finds them. */
static bool are_heads_known(struct core *core, struct queue_state *queue)
{
    bool are_known = true;
    uint32_t passed = 0;
    struct gang *gang = gang_line_first(&queue->pending);
    while (gang != NULL && gang->shape->verdict.reason != REASON_NONE &&
           passed < BOOKING_PASSED_OVER_MAX) {
        struct shape *shape = gang->shape;
        are_known = are_own_known(core, shape) && are_known;
        if (!reason_info(shape->verdict.reason)->is_passed_over && !shape->is_beyond_help) {
            break;
        }
        passed++;
        gang = gang_line_next(&queue->pending, gang);
    }
    return are_known;
}

static bool are_all_tried(struct core *core)
{
    struct device_profile *profile;
    struct device_profile *next;
    HASH_ITER (hh, core->profiles, profile, next) {
        if (!profile_is_tried(core, profile)) {
            return false;
        }
    }
    return true;
}

bool selectors_beside_are_known(struct core *core)
{
    struct selector_work *work = core->selector_work;
    bool is_as_before =
        work->all_known_at == work->changes ||
        (work->beside_known_at == work->changes && work->beside_promises == core->promise_changes);
    if (!is_bounded(core) || is_as_before) {
        return true;
    }
    bool are_known = true;
    struct gang *gang;
    GANG_LINE_FOREACH (gang, &core->unbound) {
        are_known = (gang->shape == NULL || are_own_known(core, gang->shape)) && are_known;
    }
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        are_known = (!queue->has_bookings || are_heads_known(core, queue)) && are_known;
    }
    if (are_known) {
        work->beside_known_at = work->changes;
        work->beside_promises = core->promise_changes;
    }
    work->is_missed = work->is_missed || !are_known;
    return are_known;
}

bool selectors_are_known(struct core *core, struct shape *shape)
{
    struct selector_work *work = core->selector_work;
    if (!is_bounded(core)) {
        return true;
    }
    shape_resolve(core, shape); /* which may bring new ones */
    if (work->all_known_at == work->changes) {
        return true; /* each admission of a pass would have everybody on the way looked at */
    }
    bool are_known = are_own_known(core, shape);
    are_known = selectors_beside_are_known(core) && are_known; /* it is wanted anyhow */
    work->all_known_at = are_known && are_all_tried(core) ? work->changes : 0;
    work->is_missed = work->is_missed || !are_known;
    return are_known;
}

void selectors_miss_check(struct core *core)
{
    core->selector_work->has_missed_check = true;
}

/* -- those that are put aside ------------------------------------------------------------------ */

void selectors_put_aside(struct core *core, struct shape *shape)
{
    struct shape **link = &core->selector_work->aside;
    if (shape->is_aside) {
        return;
    }
    while (*link != NULL) {
        link = &(*link)->next_aside;
    }
    shape->is_aside = true;
    shape->next_aside = NULL;
    *link = shape;
}

void selectors_forget(struct core *core, struct shape *shape)
{
    struct shape **link = &core->selector_work->aside;
    if (!shape->is_aside) {
        return;
    }
    while (*link != shape) {
        link = &(*link)->next_aside;
    }
    *link = shape->next_aside;
    shape->is_aside = false;
}

void selectors_go_on(struct core *core)
{
    struct selector_work *work = core->selector_work;
    try_wanted(core);
    struct shape *next;
    for (struct shape *shape = work->aside; shape != NULL; shape = next) {
        next = shape->next_aside;
        if (selectors_are_known(core, shape)) {
            selectors_forget(core, shape);
            wake_shape(core, shape);
        }
    }
}

/* Devices of which all are wanted are counted when the shape is resolved: is_provisional. */
void shape_settle(struct core *core, struct shape *shape)
{
    shape_resolve(core, shape);
    if (selectors_may_keep(core)) {
        (void)visit_shape(core, shape, try_now);
    }
    if (shape->is_provisional) {
        shape->is_resolved = false;
        shape_resolve(core, shape);
    }
}
