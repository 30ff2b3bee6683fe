/* attempt_fill.c - what is reserved for a gang that may start: charges per pod set, and each named
 * claim once. */
#include "attempt.h"

static void fill_claim(struct attempt *attempt, struct set_attempt *set,
                       const struct shared_claim_demand *claim, struct claim_charge *charge)
{
    charge->key = claim->claim->key;
    charge->charges.items =
        ARENA_ARRAY(&attempt->core->scratch, struct charge, claim->request_count + 1);
    for (uint32_t i = 0; i < claim->request_count; i++) {
        struct quota_demand *demand = attempt_demand(set, claim->requests[i].profile->class_name);
        if (demand != NULL && demand->group >= 0) {
            charge->charges.items[charge->charges.count++] =
                (struct charge){.flavor = attempt_flavor(attempt, set, demand)->name,
                                .resource = demand->resource,
                                .amount = claim->requests[i].charged};
        }
    }
}

static void fill_claims(struct attempt *attempt, struct reserve_request *request)
{
    uint32_t room = 0;
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        room += attempt->sets[s].set->claim_count;
    }
    struct claim_charge *claims =
        ARENA_ARRAY(&attempt->core->scratch, struct claim_charge, room + 1);
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        struct set_attempt *set = &attempt->sets[s];
        for (uint32_t c = 0; c < set->set->claim_count; c++) {
            if (!attempt_is_claim_counted(attempt, s, c)) {
                fill_claim(attempt, set, &set->set->claims[c], &claims[request->claim_count++]);
            }
        }
    }
    request->claims = claims;
}

/* What is asked for by other names than the account's is charged name by name, so that the record
 * holds what the pods ask. */
static int64_t fill_extended(const struct pod_set *set, const struct charge *whole,
                             struct charge_list *charges)
{
    int64_t left = whole->amount;
    for (uint32_t i = 0; i < set->device_count; i++) {
        const struct device_demand *device = &set->devices[i];
        if (str_is_set(device->resource) && str_eq(device->profile->class_name, whole->resource)) {
            charges->items[charges->count] = *whole;
            charges->items[charges->count].asked = device->resource;
            charges->items[charges->count++].amount = device->count < left ? device->count : left;
            left -= charges->items[charges->count - 1].amount;
        }
    }
    return left;
}

static void fill_set(struct attempt *attempt, const struct set_attempt *set,
                     struct reserved_set *reserved)
{
    reserved->name = set->set->name;
    reserved->count = set->count;
    reserved->per_pod.items = ARENA_ARRAY(&attempt->core->scratch, struct charge,
                                          set->demand_count + set->set->device_count + 1);
    for (uint32_t i = 0; i < set->demand_count; i++) {
        const struct quota_demand *demand = &set->demands[i];
        if (demand->group < 0) {
            continue;
        }
        struct charge charge = {.flavor = attempt_flavor(attempt, set, demand)->name,
                                .resource = demand->resource,
                                .amount = demand->per_pod};
        charge.amount = fill_extended(set->set, &charge, &reserved->per_pod);
        if (charge.amount > 0) {
            reserved->per_pod.items[reserved->per_pod.count++] = charge;
        }
    }
}

void attempt_fill(struct attempt *attempt, struct evaluation *evaluation)
{
    struct arena *arena = &attempt->core->scratch;
    struct reserve_request *request = &evaluation->reserve;
    request->queue = attempt->shape->queue;
    request->sets = ARENA_ARRAY(arena, struct reserved_set, attempt->set_count);
    request->set_count = attempt->set_count;
    evaluation->sets = ARENA_ARRAY(arena, struct set_choice, attempt->set_count);
    evaluation->set_count = attempt->set_count;
    evaluation->domain = attempt->domain;
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        const struct set_attempt *set = &attempt->sets[s];
        fill_set(attempt, set, &request->sets[s]);
        for (uint32_t f = 0; f < set->flavor_count; f++) {
            evaluation->sets[s].flavors[f] = set->flavors[f];
        }
        evaluation->sets[s].flavor_count = set->flavor_count;
        evaluation->sets[s].pin = set->pin;
        evaluation->sets[s].domain = attempt->domain;
    }
    fill_claims(attempt, request);
}
