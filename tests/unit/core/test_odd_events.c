/* Events that make no sense: refused with a sentence or passed over, and nothing else changes. */
#include "support/check.h"

#include "tallyman/api/codec.h"
#include "tallyman/core/core.h"

struct fixture {
    struct core *core;
    struct arena arena;
};

static int setup(void **state)
{
    static struct fixture fixture;
    const struct core_options options = {.stuck_node_ms = 0};
    fixture.core = core_new(&options);
    arena_init(&fixture.arena);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    core_free(f->core);
    arena_deinit(&f->arena);
    return 0;
}

static struct rc step(struct fixture *f, const struct event *event, struct err *err)
{
    struct effects effects = {.arena = &f->arena};
    struct rc rc = core_step(f->core, event, &effects, err);
    assert_int_equal(effects.count, 0);
    return rc;
}

static void an_object_of_no_kind_is_refused(void **state)
{
    struct object_meta meta = {.name = STR("x")};
    struct err err;
    static const enum object_kind kinds[] = {KIND_NONE, KIND_COUNT};
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        struct event event = {.kind = EVENT_OBJECT, .object = {.kind = kinds[i], .value = &meta}};
        assert_int_equal(step(*state, &event, &err).code, RC_INVALID);
        check_str(err_text(&err), "an object of a kind that Tallyman doesn't know");
        event.kind = EVENT_DELETED; /* nothing of that kind was ever there */
        assert_int_equal(step(*state, &event, &err).code, RC_OK);
    }
}

/* The caller may bring the effects of the step before. */
static void what_was_in_the_effects_is_gone(void **state)
{
    struct fixture *f = *state;
    struct event event = {.kind = EVENT_TICK, .now_ms = 1};
    struct effect before = {.kind = EFFECT_WRITE_STATUS};
    struct effects effects = {.arena = &f->arena, .items = &before, .count = 1, .capacity = 1};
    struct err err;
    assert_int_equal(core_step(f->core, &event, &effects, &err).code, RC_OK);
    assert_int_equal(effects.count, 0);
}

static void an_event_of_no_kind_is_refused(void **state)
{
    struct event event = {.kind = (enum event_kind)99};
    struct err err;
    assert_int_equal(step(*state, &event, &err).code, RC_INVALID);
    check_str(err_text(&err), "an event of an unknown kind");
}

static void an_answer_to_nothing_is_passed_over(void **state)
{
    struct event event = {.kind = EVENT_EFFECT_DONE,
                          .done = {.effect_id = 12345, .outcome = EFFECT_OK}};
    struct err err;
    assert_int_equal(step(*state, &event, &err).code, RC_OK);
}

/* A clock that is set back doesn't take the core's own back. */
static void time_never_goes_back(void **state)
{
    struct fixture *f = *state;
    struct err err;
    struct effects effects = {.arena = &f->arena};
    struct event event = {.kind = EVENT_TICK, .now_ms = 5000};
    assert_int_equal(core_step(f->core, &event, &effects, &err).code, RC_OK);
    event.now_ms = 1000;
    assert_int_equal(core_step(f->core, &event, &effects, &err).code, RC_OK);
    check_i64(effects.wake_at_ms, INT64_MAX); /* nothing is listed yet: nothing is due */
}

static void what_was_never_there_can_go(void **state)
{
    struct fixture *f = *state;
    struct object_meta meta = {.name = STR("x"),
                               .namespace_name = STR("ml"),
                               .uid = STR("u"),
                               .resource_version = STR("1")};
    struct err err;
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        /* A whole object of that kind, of which only the metadata are set. */
        void *value = arena_alloc(&f->arena, kind_info((enum object_kind)kind)->schema->bytes);
        *(struct object_meta *)value = meta;
        struct event event = {.kind = EVENT_DELETED,
                              .object = {.kind = (enum object_kind)kind, .value = value}};
        assert_int_equal(step(f, &event, &err).code, RC_OK);
        core_assert_consistent(f->core);
    }
}

static struct opt_quantity whole(int64_t amount)
{
    return (struct opt_quantity){.is_set = true, .value = {.nano = (i128)amount * 1000000000}};
}

/* The server's schema lets none of it through; where it isn't there, the object is dropped. */
static void a_negative_amount_is_refused_with_its_place(void **state)
{
    struct fixture *f = *state;
    struct quota_resource cpu = {.name = STR("cpu")};
    struct quota_flavor flavor = {.name = STR("h100"), .resources = {&cpu, 1}};
    struct resource_group group = {.flavors = {&flavor, 1}};
    struct cohort sea = {
        .meta = {.name = STR("sea"), .uid = STR("s"), .resource_version = STR("1")},
        .spec.resource_groups = {&group, 1}};
    struct queue crane = {
        .meta = {.name = STR("crane"), .uid = STR("c"), .resource_version = STR("1")},
        .spec.resource_groups = {&group, 1}};
    struct event events[] = {
        {.kind = EVENT_OBJECT, .object = {.kind = KIND_COHORT, .value = &sea.meta}},
        {.kind = EVENT_OBJECT, .object = {.kind = KIND_QUEUE, .value = &crane.meta}},
    };
    struct err err;
    assert_int_equal(step(f, &events[1], &err).code, RC_INVALID);
    check_str(err_text(&err), "Queue crane: spec.resourceGroups[0].flavors[0] (h100): nominalQuota "
                              "of cpu must be a quantity of 0 or more");
    cpu.nominal_quota = whole(-1);
    assert_int_equal(step(f, &events[0], &err).code, RC_INVALID);
    check_str(err_text(&err), "Cohort sea: spec.resourceGroups[0].flavors[0] (h100): nominalQuota "
                              "of cpu must be a quantity of 0 or more");
    cpu.nominal_quota = whole(0);
    cpu.borrowing_limit = whole(-1);
    assert_int_equal(step(f, &events[0], &err).code, RC_INVALID);
    check_str(err_text(&err), "Cohort sea: spec.resourceGroups[0].flavors[0] (h100): "
                              "borrowingLimit of cpu must be a quantity of 0 or more");
    cpu.borrowing_limit = whole(0);
    cpu.lending_limit = whole(-1);
    assert_int_equal(step(f, &events[1], &err).code, RC_INVALID);
    check_str(err_text(&err), "Queue crane: spec.resourceGroups[0].flavors[0] (h100): lendingLimit "
                              "of cpu must be a quantity of 0 or more");
    cpu.lending_limit = whole(0);
    for (size_t i = 0; i < ARRAY_COUNT(events); i++) {
        assert_int_equal(step(f, &events[i], &err).code, RC_OK);
    }
    core_assert_consistent(f->core);
}

/* A Queue is there, and not everything has been listed: nobody has been judged whose sentence could
 * be renewed, and it isn't known yet who lends to whom. */
static void sentences_are_renewed_after_the_first_decision_only(void **state)
{
    struct fixture *f = *state;
    struct queue queue = {.meta = {.name = STR("crane"), .uid = STR("u")}};
    struct event event = {.kind = EVENT_OBJECT,
                          .object = {.kind = KIND_QUEUE, .value = &queue.meta}};
    struct err err;
    assert_int_equal(step(f, &event, &err).code, RC_OK);
    core_renew_messages(f->core);
    assert_int_equal(core_decisions(f->core, &f->arena).count, 0);
    core_assert_consistent(f->core);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_object_of_no_kind_is_refused),
        T(an_event_of_no_kind_is_refused),
        T(an_answer_to_nothing_is_passed_over),
        T(time_never_goes_back),
        T(what_was_never_there_can_go),
        T(a_negative_amount_is_refused_with_its_place),
        T(sentences_are_renewed_after_the_first_decision_only),
        T(what_was_in_the_effects_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
