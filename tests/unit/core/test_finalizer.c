/* test_finalizer.c - a Queue's finalizer list is others' too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/check.h"
#include "tallyman/core/core.h"

struct fixture {
    struct core *core;
    struct arena arena;
    struct effects effects;
};

static void step(struct fixture *f, struct event event)
{
    struct err err;
    event.now_ms = 1000;
    f->effects = (struct effects){.arena = &f->arena};
    assert_int_equal(core_step(f->core, &event, &f->effects, &err).code, RC_OK);
}

static void sync_all(struct fixture *f)
{
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        step(f, (struct event){.kind = EVENT_SYNCED, .synced_kind = (enum object_kind)kind});
    }
}

static const struct effect *find_finalizer(const struct fixture *f)
{
    for (uint32_t i = 0; i < f->effects.count; i++) {
        if (f->effects.items[i].kind == EFFECT_SET_FINALIZER) {
            return &f->effects.items[i];
        }
    }
    return NULL;
}

/* A merge PATCH replaces the list: whoever else waits for the Queue's end must stay in it. */
static void finalizers_of_others_are_kept(void **state)
{
    (void)state;
    struct core_options options = {.stuck_node_ms = 0};
    struct fixture f = {.core = core_new(&options)};
    arena_init(&f.arena);
    sync_all(&f);
    struct str other = STR("example.com/audit");
    struct label_selector everybody = {.match_labels = {.items = NULL}};
    struct queue queue = {.meta = {.name = STR("research"),
                                   .uid = STR("u1"),
                                   .resource_version = STR("7"),
                                   .finalizers = {&other, 1}},
                          .spec = {.namespace_selector = &everybody}};
    step(&f, (struct event){.kind = EVENT_OBJECT,
                            .object = {.kind = KIND_QUEUE, .value = &queue.meta}});
    const struct effect *effect = find_finalizer(&f);
    assert_non_null(effect);
    assert_int_equal(effect->finalizers.count, 2);
    check_str(effect->finalizers.items[0], "example.com/audit");
    check_str(effect->finalizers.items[1], "tallyman.dev/in-use");

    /* The Queue goes and nothing uses it: only ours is taken out. */
    struct str both[] = {other, STR("tallyman.dev/in-use")};
    queue.meta.finalizers = (struct str_list){both, 2};
    queue.meta.resource_version = STR("8");
    queue.meta.deletion_timestamp = (struct opt_time){true, 900};
    step(&f, (struct event){.kind = EVENT_OBJECT,
                            .object = {.kind = KIND_QUEUE, .value = &queue.meta}});
    effect = find_finalizer(&f);
    assert_non_null(effect);
    assert_int_equal(effect->finalizers.count, 1);
    check_str(effect->finalizers.items[0], "example.com/audit");
    core_free(f.core);
    arena_deinit(&f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finalizers_of_others_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
