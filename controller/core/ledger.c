/* ledger.c - one entry per gang that holds something; every account is the sum of these.
 *
 * A named claim is charged once, to the earliest-admitted gang that holds it; when that one ends
 * the charge moves to the next oldest, so that the sum of the charges stays what is in use. */
#include "fit_plan.h"
#include "claim.h"
#include "history.h"
#include "stopping.h"
#include "wait.h"

#include <assert.h>

#include "tallyman/base/alloc.h"

struct resource_total {
    struct str resource;
    int64_t amount;
};

static struct charge_list charges_own(const struct charge_list *charges)
{
    struct charge_list copy = {.count = charges->count};
    copy.items = mem_zalloc((charges->count + 1) * sizeof(struct charge));
    for (uint32_t i = 0; i < charges->count; i++) {
        copy.items[i] = (struct charge){.flavor = str_own(charges->items[i].flavor),
                                        .resource = str_own(charges->items[i].resource),
                                        .asked = str_own(charges->items[i].asked),
                                        .amount = charges->items[i].amount};
        assert(copy.items[i].amount >= 0);
    }
    return copy;
}

static void charges_free(struct charge_list *charges)
{
    for (uint32_t i = 0; i < charges->count; i++) {
        str_drop(&charges->items[i].flavor);
        str_drop(&charges->items[i].resource);
        str_drop(&charges->items[i].asked);
    }
    mem_free(charges->items);
    *charges = (struct charge_list){.items = NULL};
}

/* Adds `times` the charges to the queue's accounts; wakes those that a release is enough for. */
static void charges_apply(struct core *core, const struct gang *gang, struct queue_state *queue,
                          const struct charge_list *charges, int64_t times)
{
    history_use(core, gang, queue, charges, times);
    for (uint32_t i = 0; i < charges->count; i++) {
        const struct charge *charge = &charges->items[i];
        struct quota_node *top =
            quota_use(&queue->node, charge->flavor, charge->resource, (i128)charge->amount * times);
        preempt_note_growth(core, queue, charge, times);
        bool is_release = times < 0 && top != NULL;
        if (is_release && core->options.is_plain) {
            wake_for_release_plain(core, charge->flavor, charge->resource);
        } else if (is_release && !core->is_tree_stale) { /* else all are woken when it is linked */
            waits_wake(core, top, charge->flavor, charge->resource);
            preempt_note_freed(core, queue, charge->flavor, charge->resource);
        }
        if (is_release) {
            preempt_early_note_quota(core, queue, charge->resource);
        }
    }
    queue_touch(core, queue);
}

static struct held_claim *held_find(const struct core *core, struct str key)
{
    struct held_claim *held = NULL;
    HASH_FIND(hh, core->held_claims, key.ptr, (unsigned)key.len, held);
    return held;
}

struct gang *ledger_claim_payer(const struct core *core, struct str claim_key)
{
    struct held_claim *held = held_find(core, claim_key);
    return held == NULL || held->is_void ? NULL : held->holders->gang;
}

const struct claim_hold *ledger_claim_holders(const struct core *core, struct str claim_key)
{
    const struct held_claim *held = held_find(core, claim_key);
    return held == NULL ? NULL : held->holders;
}

static void hold_pay(struct core *core, struct claim_hold *hold, int64_t sign)
{
    if (hold != NULL) {
        charges_apply(core, hold->gang, hold->gang->reservation->queue, &hold->charges, sign);
    }
}

static int hold_compare(const struct claim_hold *a, const struct claim_hold *b)
{
    uint32_t turn_a = a->gang->reservation->turn;
    uint32_t turn_b = b->gang->reservation->turn;
    return turn_a != turn_b ? (turn_a < turn_b ? -1 : 1) : gang_compare_admitted(a->gang, b->gang);
}

/* Behind all that hold one of the claims. Times don't tell: records keep whole seconds. */
static uint32_t turn_of(const struct core *core, const struct reserve_request *request)
{
    if (request->turn.is_set) {
        int64_t turn = request->turn.value;
        return turn < 0 ? 0 : turn < UINT32_MAX ? (uint32_t)turn : UINT32_MAX;
    }
    uint32_t turn = 0;
    for (uint32_t i = 0; i < request->claim_count; i++) {
        const struct held_claim *held = held_find(core, request->claims[i].key);
        const struct claim_hold *hold = held == NULL ? NULL : held->holders;
        for (; hold != NULL; hold = hold->next_holder) {
            uint32_t theirs = hold->gang->reservation->turn;
            turn = theirs >= turn && theirs < UINT32_MAX ? theirs + 1 : turn;
        }
    }
    return turn;
}

static void hold_join(struct core *core, struct claim_hold *hold)
{
    struct held_claim *held = held_find(core, hold->key);
    if (held == NULL) {
        held = MEM_NEW(struct held_claim);
        held->key = str_own(hold->key);
        HASH_ADD_KEYPTR(hh, core->held_claims, held->key.ptr, (unsigned)held->key.len, held);
    }
    struct claim_hold *payer = held->holders;
    struct claim_hold **link = &held->holders;
    while (*link != NULL && hold_compare(*link, hold) < 0) {
        link = &(*link)->next_holder;
    }
    hold->next_holder = *link;
    *link = hold;
    if (held->holders == hold && !held->is_void) {
        hold_pay(core, payer, -1);
        hold_pay(core, hold, 1);
    }
}

static void hold_leave(struct core *core, struct claim_hold *hold)
{
    struct held_claim *held = held_find(core, hold->key);
    assert(held != NULL);
    bool was_payer = held->holders == hold;
    struct claim_hold **link = &held->holders;
    while (*link != hold) {
        link = &(*link)->next_holder;
    }
    *link = hold->next_holder;
    if (was_payer && !held->is_void) {
        hold_pay(core, hold, -1);
        hold_pay(core, held->holders, 1);
    }
    if (held->holders == NULL) {
        HASH_DEL(core->held_claims, held);
        str_drop(&held->key);
        mem_free(held);
    }
}

struct gang *ledger_set_void(struct core *core, struct str claim_key, bool is_void)
{
    struct held_claim *held = held_find(core, claim_key);
    if (held == NULL || held->is_void == is_void) {
        return NULL;
    }
    held->is_void = is_void;
    hold_pay(core, held->holders, is_void ? -1 : 1);
    return held->holders->gang;
}

/* Adds so much to what the hold would pay; absent flavor: its queue doesn't ration the resource. */
static void hold_raise(struct core *core, struct claim_hold *hold, const struct charge *more,
                       bool is_payer)
{
    const struct charge_list only = {.items = (struct charge *)(uintptr_t)more, .count = 1};
    struct charge_list old = hold->charges;
    struct charge_list all = {.items = ARENA_ARRAY(&core->scratch, struct charge, old.count + 1)};
    for (uint32_t i = 0; i < old.count; i++) {
        all.items[all.count++] = old.items[i];
    }
    all.items[all.count++] = *more;
    hold->charges = charges_own(&all);
    charges_free(&old);
    if (is_payer) {
        charges_apply(core, hold->gang, hold->gang->reservation->queue, &only, 1);
    }
}

struct gang *ledger_raise_claim(struct core *core, struct str claim_key, struct str resource,
                                int64_t amount)
{
    struct held_claim *held = held_find(core, claim_key);
    struct gang *raised = NULL;
    for (struct claim_hold *hold = held == NULL ? NULL : held->holders; hold != NULL;
         hold = hold->next_holder) {
        int64_t charged = 0;
        for (uint32_t i = 0; i < hold->charges.count; i++) {
            bool is_of = str_eq(hold->charges.items[i].resource, resource);
            charged = sat_add(charged, is_of ? hold->charges.items[i].amount : 0);
        }
        struct charge more = {.flavor = drift_flavor(hold->gang, resource),
                              .resource = resource,
                              .amount = amount - charged};
        bool is_payer = hold == held->holders && !held->is_void;
        if (more.amount > 0 && str_is_set(more.flavor)) {
            hold_raise(core, hold, &more, is_payer);
            raised = is_payer ? hold->gang : raised;
        }
    }
    return raised;
}

void ledger_set_surplus(struct core *core, struct gang *gang, struct charge_list *surplus,
                        const struct charge_list *now)
{
    struct queue_state *queue = gang->reservation->queue;
    if (surplus->count > 0) {
        gang_run_edit(gang)->surplus_pods--;
    }
    charges_apply(core, gang, queue, surplus, -1);
    charges_free(surplus);
    if (now->count > 0) {
        *surplus = charges_own(now);
        charges_apply(core, gang, queue, surplus, 1);
        gang_run_edit(gang)->surplus_pods++;
    }
    bookings_move(core);
}

void ledger_reserve(struct core *core, struct gang *gang, const struct reserve_request *request)
{
    fit_promises_changed(core, gang);
    assert(gang->reservation == NULL && !gang->is_in_queue);
    struct reservation *reservation = MEM_NEW(struct reservation);
    reservation->queue = request->queue;
    reservation->sets = mem_zalloc((request->set_count + 1) * sizeof(struct reserved_set));
    reservation->set_count = request->set_count;
    reservation->claims = mem_zalloc((request->claim_count + 1) * sizeof(struct claim_hold));
    reservation->claim_count = request->claim_count;
    reservation->turn = turn_of(core, request);
    gang->reservation = reservation;
    (void)gang_line_put(&core->holders, gang);
    request->queue->admitted_count++;
    bookings_move(core);
    for (uint32_t i = 0; i < request->set_count; i++) {
        struct reserved_set *set = &reservation->sets[i];
        assert(request->sets[i].count >= 0);
        *set = (struct reserved_set){.name = str_own(request->sets[i].name),
                                     .per_pod = charges_own(&request->sets[i].per_pod),
                                     .count = request->sets[i].count};
        charges_apply(core, gang, request->queue, &set->per_pod, set->count);
    }
    for (uint32_t i = 0; i < request->claim_count; i++) {
        struct claim_hold *hold = &reservation->claims[i];
        hold->key = str_own(request->claims[i].key);
        hold->charges = charges_own(&request->claims[i].charges);
        hold->gang = gang;
        hold_join(core, hold);
    }
    preempt_note_holder(core, gang);
    drift_gang(core, gang);
}

void ledger_resize(struct core *core, struct gang *gang, struct reserved_set *set, int64_t count)
{
    fit_promises_changed(core, gang);
    assert(gang->reservation != NULL && count >= 0);
    if (count != set->count) {
        bookings_move(core);
        charges_apply(core, gang, gang->reservation->queue, &set->per_pod, count - set->count);
        set->count = count;
    }
}

static void sets_release(struct core *core, struct gang *gang)
{
    struct reservation *reservation = gang->reservation;
    for (uint32_t i = 0; i < reservation->set_count; i++) {
        struct reserved_set *set = &reservation->sets[i];
        charges_apply(core, gang, reservation->queue, &set->per_pod, -set->count);
        charges_free(&set->per_pod);
        str_drop(&set->name);
    }
    mem_free(reservation->sets);
}

void ledger_release(struct core *core, struct gang *gang)
{
    fit_promises_changed(core, gang);
    struct reservation *reservation = gang->reservation;
    if (reservation == NULL) {
        return;
    }
    bookings_move(core);
    drift_forget_gang(core, gang);
    for (uint32_t i = 0; i < reservation->claim_count; i++) {
        hold_leave(core, &reservation->claims[i]);
        str_drop(&reservation->claims[i].key);
        charges_free(&reservation->claims[i].charges);
    }
    if (reservation->claim_count > 0) {
        wake_reserved(core); /* who waited for this gang's pods to have the claim allocated */
    }
    sets_release(core, gang);
    reservation->queue->admitted_count--;
    gang_line_take(&core->holders, gang);
    preempt_forget_holder(core, gang);
    struct queue_state *queue = reservation->queue;
    mem_free(reservation->claims);
    mem_free(reservation);
    gang->reservation = NULL;
    stopping_tell(core, gang);
    /* Accounts that are no longer listed go with their last user. */
    queue_check_finalizer(core, queue);
    queue_tidy(core, queue);
    gang_mark_unbound(core, gang);
}

/* -- accounts by other names ------------------------------------------------------------------- */

struct str charge_asked(const struct charge *charge)
{
    return str_is_set(charge->asked) ? charge->asked : charge->resource;
}

/* `times` it is charged; 0: somebody else pays. */
static void charges_rename(struct core *core, const struct gang *gang, struct charge_list *charges,
                           int64_t times)
{
    struct queue_state *queue = gang->reservation->queue;
    for (uint32_t i = 0; i < charges->count; i++) {
        struct charge *charge = &charges->items[i];
        struct str account = account_of(core, charge_asked(charge));
        if (str_eq(account, charge->resource)) {
            continue;
        }
        const struct charge_list only = {.items = charge, .count = 1};
        charges_apply(core, gang, queue, &only, -times);
        if (str_is_set(charge->asked)) {
            str_drop(&charge->resource);
        } else {
            charge->asked = charge->resource;
        }
        charge->resource = str_own(account);
        charges_apply(core, gang, queue, &only, times);
        bookings_move(core);
    }
}

void ledger_rename(struct core *core)
{
    struct gang *gang;
    GANG_LINE_FOREACH (gang, &core->holders) {
        struct reservation *reservation = gang->reservation;
        for (uint32_t s = 0; s < reservation->set_count; s++) {
            struct reserved_set *set = &reservation->sets[s];
            charges_rename(core, gang, &set->per_pod, set->count);
        }
        for (uint32_t c = 0; c < reservation->claim_count; c++) {
            struct claim_hold *hold = &reservation->claims[c];
            bool is_payer = ledger_claim_payer(core, hold->key) == gang;
            charges_rename(core, gang, &hold->charges, is_payer ? 1 : 0);
        }
    }
}

struct reserved_set *reservation_set(const struct reservation *reservation, struct str name)
{
    for (uint32_t i = 0; i < reservation->set_count; i++) {
        if (str_eq(reservation->sets[i].name, name)) {
            return &reservation->sets[i];
        }
    }
    return NULL;
}

int64_t reservation_count(const struct reservation *reservation)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < reservation->set_count; i++) {
        count = sat_add(count, reservation->sets[i].count);
    }
    return count;
}

i128 reservation_amount(const struct reservation *reservation, struct str flavor,
                        struct str resource)
{
    i128 sum = 0;
    for (uint32_t s = 0; s < reservation->set_count; s++) {
        const struct charge_list *charges = &reservation->sets[s].per_pod;
        for (uint32_t i = 0; i < charges->count; i++) {
            bool is_on = !str_is_set(flavor) || str_eq(charges->items[i].flavor, flavor);
            if (is_on && str_eq(charges->items[i].resource, resource)) {
                sum += (i128)charges->items[i].amount * reservation->sets[s].count;
            }
        }
    }
    return sum;
}

i128 reservation_devices(const struct reservation *reservation)
{
    i128 devices = 0;
    for (uint32_t s = 0; s < reservation->set_count; s++) {
        const struct reserved_set *set = &reservation->sets[s];
        for (uint32_t i = 0; i < set->per_pod.count; i++) {
            const struct charge *charge = &set->per_pod.items[i];
            devices += resource_is_device(charge->resource) ? (i128)charge->amount * set->count : 0;
        }
    }
    return devices;
}

bool resource_is_device(struct str resource)
{
    return !str_eq_c(resource, "cpu") && !str_eq_c(resource, "memory") &&
           !str_eq_c(resource, "ephemeral-storage") && !str_eq_c(resource, RESOURCE_PODS) &&
           !str_starts_with(resource, STR("hugepages-"));
}

/* The account's sum over what has been added so far: each resource is told once. */
static void totals_add(struct resource_total *totals, uint32_t *count,
                       const struct charge_list *charges, int64_t times)
{
    for (uint32_t i = 0; i < charges->count; i++) {
        uint32_t at = 0;
        while (at < *count && !str_eq(totals[at].resource, charges->items[i].resource)) {
            at++;
        }
        if (at == *count) {
            totals[(*count)++] = (struct resource_total){charges->items[i].resource, 0};
        }
        totals[at].amount = sat_add(totals[at].amount, sat_mul(charges->items[i].amount, times));
    }
}

static uint32_t charges_in(const struct gang *gang)
{
    const struct reservation *reservation = gang->reservation;
    uint32_t count = 0;
    for (const struct pod_state *pod = gang->run->surplus_pods == 0 ? NULL : gang_first_pod(gang);
         pod != NULL; pod = pod->next_in_group) {
        count += pod->surplus.count;
    }
    for (uint32_t i = 0; i < reservation->set_count; i++) {
        count += reservation->sets[i].per_pod.count;
    }
    for (uint32_t i = 0; i < reservation->claim_count; i++) {
        count += reservation->claims[i].charges.count;
    }
    return count;
}

struct str reservation_text(const struct core *core, const struct gang *gang, struct arena *arena,
                            bool is_devices)
{
    const struct reservation *reservation = gang->reservation;
    struct resource_total *totals = ARENA_ARRAY(arena, struct resource_total, charges_in(gang) + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < reservation->set_count; i++) {
        totals_add(totals, &count, &reservation->sets[i].per_pod, reservation->sets[i].count);
    }
    for (uint32_t i = 0; i < reservation->claim_count; i++) {
        const struct claim_hold *hold = &reservation->claims[i];
        if (ledger_claim_payer(core, hold->key) == gang) {
            totals_add(totals, &count, &hold->charges, 1);
        }
    }
    for (const struct pod_state *pod = gang->run->surplus_pods == 0 ? NULL : gang_first_pod(gang);
         pod != NULL; pod = pod->next_in_group) {
        totals_add(totals, &count, &pod->surplus, 1);
    }
    struct text text;
    text_init(&text, arena, 250);
    for (uint32_t i = 0; i < count; i++) {
        if (!is_devices || resource_is_device(totals[i].resource)) {
            struct str amount = resource_amount_format(arena, totals[i].resource, totals[i].amount);
            text_addf(&text, "%s" STR_FMT "=" STR_FMT, text.len == 0 ? "" : " ",
                      STR_ARG(totals[i].resource), STR_ARG(amount));
        }
    }
    return text_str(&text);
}
