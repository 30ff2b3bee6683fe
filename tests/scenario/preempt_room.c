/* The room that is freed for a gang is its own as a whole: what was free already as well as what
 * its victims still hold. */
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

static void given_classes(struct scenario *s)
{
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mid", 5);
    given_priority_class(s, "high", 9);
}

/* `high` gets the node whole once `low` has stopped; `third` would fit on what is free now. */
static void given_third_beside_reserved_room(struct scenario *s)
{
    given_classes(s);
    given_node(s, "n1", "cpu=2");
    given_queue(s, "q", "cpu=9 within=LowerPriority");
    given_job(s, "low", "q", "pods=1 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "low", "n1");
    given_job(s, "high", "q", "pods=1 cpu=2 priority=high created=1000");
    expect_state(s, "high", "Reserved WaitingForVictims");
    given_job(s, "third", "q", "pods=1 cpu=1 priority=mid created=2000");
    expect_state(s, "third", "Pending ReservedForOther");
}

/* One cpu of two is free, `low` has the other, and `high` needs both: the free one isn't anybody's
 * while `low` stops. */
static void free_room_that_it_needs_is_nobody_elses(void **state)
{
    struct scenario *s = *state;
    given_third_beside_reserved_room(s);
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    expect_state(s, "third", "Pending NodesFull");
    gang_starts(s, "high", "n1");
    job_finishes(s, "high");
    expect_state(s, "third", "Admitted");
    expect_state(s, "low", "Admitted");
}

/* It doesn't want it any more: whoever waited for that goes on. */
static void given_up_room_is_anybodys(void **state)
{
    struct scenario *s = *state;
    given_third_beside_reserved_room(s);
    job_deleted_now(s, "high");
    expect_state(s, "third", "Admitted");
}

/* On another node there is room for both. */
static void room_elsewhere_is_free(void **state)
{
    struct scenario *s = *state;
    given_third_beside_reserved_room(s);
    given_node(s, "n2", "cpu=3");
    expect_state(s, "third", "Admitted");
}

/* -- it doesn't fit for a while -------------------------------------------------------------------
 */

/* `high` gets all of the quota, and n1 whole, once `low` has stopped. Before that n1 is cordoned.
 */
static void given_reserved_room_that_went(struct scenario *s)
{
    given_classes(s);
    given_node(s, "n1", "cpu=6");
    given_node(s, "n2", "cpu=2");
    given_queue(s, "q", "cpu=6 within=LowerPriority");
    given_job(s, "low", "q", "pods=2 cpu=2 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "low", "n1 n1");
    given_job(s, "high", "q", "pods=1 cpu=6 priority=high created=1000");
    expect_state(s, "high", "Reserved WaitingForVictims");
    given_node(s, "n1", "cpu=6 cordoned=true");
    given_job(s, "third", "q", "pods=1 cpu=2 priority=mid created=2000");
}

/* The two cpu of quota that were free are `high`'s, until its time is up: whether the controller
 * runs on, starts anew, or judges it anew. */
static void expect_room_is_kept(struct scenario *s)
{
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "third", "Pending QuotaExhausted");
    gang_stops(s, "low");
    expect_state(s, "third", "Pending QuotaExhausted");
    given_node(s, "n1", "cpu=6");
    expect_state(s, "high", "Admitted");
}

static void room_is_kept_while_its_node_is_away(void **state)
{
    struct scenario *s = *state;
    given_reserved_room_that_went(s);
    expect_room_is_kept(s);
}

static void room_is_kept_over_a_restart_while_its_node_is_away(void **state)
{
    struct scenario *s = *state;
    given_reserved_room_that_went(s);
    restart(s, WITH_ADMISSIONS);
    expect_room_is_kept(s);
}

static void room_is_kept_over_an_edit_of_its_queue_while_its_node_is_away(void **state)
{
    struct scenario *s = *state;
    given_reserved_room_that_went(s);
    given_queue(s, "q", "cpu=7 within=LowerPriority");
    expect_room_is_kept(s);
}

/* What a restart takes up again ends as any such room does. */
static void room_that_stays_away_is_given_up(void **state)
{
    struct scenario *s = *state;
    given_reserved_room_that_went(s);
    restart(s, WITHOUT_ADMISSIONS);
    gang_stops(s, "low");
    expect_state(s, "high", "Reserved WaitingForVictims");
    at(s, 601000);
    expect_state(s, "high", "Pending NodesFull");
    expect_state(s, "third", "Admitted");
}

/* It is kept by the quota, so what the quota doesn't hold any more isn't. */
static void room_beyond_a_quota_that_was_cut_is_not_kept(void **state)
{
    struct scenario *s = *state;
    given_reserved_room_that_went(s);
    given_queue(s, "q", "cpu=5 within=LowerPriority");
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "high", "Pending NeverFits");
}

/* `others` are on their way, and may go where `high` would: that is settled when they are bound. */
static void room_is_kept_over_a_restart_beside_pods_on_their_way(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=4");
    given_queue(s, "q", "cpu=8 within=LowerPriority");
    given_job(s, "low", "q", "pods=3 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "low", "n1 n1 n1");
    given_job(s, "others", "q", "pods=2 cpu=1 priority=high created=1000");
    given_job(s, "high", "q", "pods=2 cpu=2 priority=high created=2000");
    expect_state(s, "high", "Reserved WaitingForVictims");
    given_node(s, "n2", "cpu=1");
    given_job(s, "third", "q", "pods=1 cpu=1 priority=mid created=3000");
    expect_state(s, "third", "Pending QuotaExhausted");
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "third", "Pending QuotaExhausted");
}

/* Until the Job is suspended more of its pods may be made: they would take the places of
 * whoever starts there before. */
static void places_of_a_victim_are_its_own_until_its_job_is_suspended(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_priority_class(s, "high", 100);
    given_queue(s, "q", "cpu=3 within=LowerPriority");
    given_queue(s, "r", "cpu=4");
    given_job(s, "low", "q", "pods=3 cpu=1");
    scenario_start(s);
    expect_state(s, "low", "Admitted");
    writes_are_manual(s, true);
    given_job(s, "high", "q", "pods=2 cpu=1 priority=high");
    assert_true(write_is_out(s, "low"));
    given_job(s, "other", "r", "pods=2 cpu=1");
    assert_false(write_is_out(s, "other"));
    write_ok(s, "low", true);
    assert_true(write_is_out(s, "other"));
}

/* -- a card that is shared -----------------------------------------------------------------------
 */

#define CHIP                                                                                       \
    "\"consumesCounters\":[{\"counterSet\":\"chip\",\"counters\":{\"memory\":{\"value\":\"40Gi\"}" \
    "}}]"
#define POOL                                                                                       \
    "\"driver\":\"gpu.example.com\",\"nodeName\":\"n1\",\"pool\":{\"name\":\"n1\",\"generation\":" \
    "1,"                                                                                           \
    "\"resourceSliceCount\":2}"

/* n1 has one card, which is given out as a whole or in shares; n2 has a whole one. */
static void given_cards(struct scenario *s)
{
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=1");
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"s0\"},\"spec\":{" POOL ",\"sharedCounters\":[{\"name\":"
               "\"chip\",\"counters\":{\"memory\":{\"value\":\"40Gi\"}}}]}}");
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"s1\"},\"spec\":{" POOL
               ",\"devices\":[{\"name\":\"share\","
               "\"attributes\":{\"kind\":{\"string\":\"share\"}},\"allowMultipleAllocations\":true,"
               "\"capacity\":{\"memory\":{\"value\":\"40Gi\"}}," CHIP "},{\"name\":\"all\","
               "\"attributes\":{\"kind\":{\"string\":\"whole\"}}," CHIP "}]}}");
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"s2\"},\"spec\":{\"driver\":\"gpu.example.com\","
               "\"nodeName\":\"n2\",\"pool\":{\"name\":\"n2\",\"generation\":1,"
               "\"resourceSliceCount\":1},\"devices\":[{\"name\":\"all\",\"attributes\":{\"kind\":{"
               "\"string\":\"whole\"}}}]}}");
    given_class(s, "share.example.com", "device.attributes['gpu.example.com'].kind == 'share'");
    given_class(s, "whole.example.com", "device.attributes['gpu.example.com'].kind == 'whole'");
    given_template(s, "share", "share.example.com", 1);
    given_template(s, "whole", "whole.example.com", 1);
    given_queue(s, "q", "cpu=99 share.example.com=9 whole.example.com=9 within=LowerPriority");
}

static void claim_has_a_share(struct scenario *s, const char *name, const char *id)
{
    struct resource_claim *claim = scenario_object(s, KIND_RESOURCE_CLAIM, name);
    struct allocation_result *result = &claim->status.allocation->devices.results.items[0];
    struct resource_amount *amount = ARENA_NEW(&s->arena, struct resource_amount);
    *amount = (struct resource_amount){.name = STR("memory")};
    amount->value.nano = (i128)10 * 1024 * 1024 * 1024 * 1000000000;
    result->share_id = str_from_c(id);
    result->consumed_capacity = (struct resource_list){amount, 1};
    object_changed(s, KIND_RESOURCE_CLAIM, name);
}

/* While `low` stops, the other share of its card is given back: with `low` gone the whole card will
 * be free, so `mid` stops nobody for it. */
static void share_that_comes_free_beside_a_victim_counts(void **state)
{
    struct scenario *s = *state;
    given_cards(s);
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mid", 5);
    given_priority_class(s, "high", 9);
    given_job(s, "low", "q", "pods=1 cpu=2 template=share priority=low");
    scenario_start(s);
    gang_starts(s, "low", "n1");
    pod_claims(s, "low-0", "share", "n1/share");
    claim_has_a_share(s, "low-0-share", "11111111-1111-1111-1111-111111111100");
    given_claim(s, "foreign", "share.example.com", 1);
    claim_allocated(s, "foreign", "n1/share");
    claim_has_a_share(s, "foreign", "11111111-1111-1111-1111-111111111101");
    given_job(s, "whole", "q", "pods=1 cpu=1 template=whole priority=low");
    gang_starts(s, "whole", "n2");
    pod_claims(s, "whole-0", "whole", "n2/all");
    given_job(s, "high", "q", "pods=1 cpu=4 priority=high");
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "low", "Suspending WaitingForTermination");
    given_job(s, "probe", "q", "pods=1 cpu=3 priority=mid");
    expect_state(s, "probe", "Pending NodesFull");
    claim_freed(s, "foreign");
    given_job(s, "mid", "q", "pods=1 template=whole priority=mid");
    expect_state(s, "whole", "Running");
    claim_freed(s, "low-0-share");
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    expect_state(s, "mid", "Admitted");
    expect_state(s, "whole", "Running");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(free_room_that_it_needs_is_nobody_elses),
        scenario_test(given_up_room_is_anybodys),
        scenario_test(room_elsewhere_is_free),
        scenario_test(room_is_kept_while_its_node_is_away),
        scenario_test(room_is_kept_over_a_restart_while_its_node_is_away),
        scenario_test(room_is_kept_over_an_edit_of_its_queue_while_its_node_is_away),
        scenario_test(room_that_stays_away_is_given_up),
        scenario_test(room_beyond_a_quota_that_was_cut_is_not_kept),
        scenario_test(room_is_kept_over_a_restart_beside_pods_on_their_way),
        scenario_test(places_of_a_victim_are_its_own_until_its_job_is_suspended),
        scenario_test(share_that_comes_free_beside_a_victim_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
