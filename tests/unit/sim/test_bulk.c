/* The coarse cluster: what happens at one moment is decided once, and the same events played from
 * their journal give the same decisions. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include "support/check.h"
#include "tallyman/api/node.h"
#include "tallyman/api/queue.h"
#include "tallyman/base/text.h"
#include "tallyman/driver/journal.h"
#include "tallyman/sim/bulk.h"

#define RESOURCE    "example.com/device"
#define JOURNAL_MAX 4096

struct bench {
    struct arena arena;
    struct text trace;   /* "[ms] gang what\n" */
    struct text decided; /* what the core decided, as a journal has it */
    struct str lines[JOURNAL_MAX];
    uint32_t line_count;
    uint32_t last_capacity;
};

static const char *change_word(enum bulk_change change)
{
    static const char *const words[] = {
        [BULK_SUBMITTED] = "submitted", [BULK_WAITS] = "waits",   [BULK_STARTED] = "started",
        [BULK_BROKEN] = "broken",       [BULK_FAILED] = "failed", [BULK_STOPPED] = "stopped",
        [BULK_FINISHED] = "finished",
    };
    return words[change];
}

static void on_note(void *ctx, const struct bulk_note *note)
{
    struct bench *bench = ctx;
    text_addf(&bench->trace, "[%lld] %u %s", (long long)note->at_ms, note->gang,
              change_word(note->change));
    if (note->change == BULK_WAITS) {
        text_addf(&bench->trace, " %s", reason_info(note->reason)->code);
    }
    if (note->lost_ms > 0) {
        text_addf(&bench->trace, " lost %lld", (long long)note->lost_ms);
    }
    text_addf(&bench->trace, "\n");
}

static void on_capacity(void *ctx, int64_t at_ms, int64_t units)
{
    (void)at_ms;
    ((struct bench *)ctx)->last_capacity = (uint32_t)units;
}

static void on_event(void *ctx, const struct event *event)
{
    struct bench *bench = ctx;
    assert_true(bench->line_count < JOURNAL_MAX);
    bench->lines[bench->line_count++] = journal_event_line(&bench->arena, event);
}

static void on_effects(void *ctx, const struct event *event, const struct effects *effects)
{
    struct bench *bench = ctx;
    struct str text = journal_decision_text(&bench->arena, effects);
    assert_true(str_is_empty(text) || !event->more_follow || event->kind == EVENT_OBJECT);
    text_add(&bench->decided, text);
}

static struct bench *bench_new(void)
{
    struct bench *bench = test_calloc(1, sizeof(*bench));
    arena_init(&bench->arena);
    text_init(&bench->trace, &bench->arena, 1u << 20);
    text_init(&bench->decided, &bench->arena, 1u << 20);
    return bench;
}

static void bench_free(struct bench *bench)
{
    arena_deinit(&bench->arena);
    test_free(bench);
}

static struct resource_amount devices(struct bench *bench, int64_t units)
{
    return (struct resource_amount){.name = STR(RESOURCE),
                                    .value = {(i128)units * 1000000000},
                                    .text = arena_format(&bench->arena, "%lld", (long long)units)};
}

static void load(struct bulk *bulk, enum object_kind kind, const struct object_meta *value)
{
    struct err err;
    if (rc_failed(bulk_load(bulk, &(struct object){kind, value}, &err))) {
        fail_msg("%s", err.text);
    }
}

/* A queue "q" of that quota, and nodes "a", "b", … of so many devices. */
static struct bulk *bulk_make(struct bench *bench, const struct bulk_gang *gangs, uint32_t count,
                              int64_t quota, const int64_t *nodes, uint32_t node_count)
{
    struct bulk_options options = {.gangs = gangs,
                                   .gang_count = count,
                                   .resource = STR(RESOURCE),
                                   .start_ms = 1767225600000,
                                   .ctx = bench,
                                   .on_note = on_note,
                                   .on_capacity = on_capacity,
                                   .on_event = on_event,
                                   .on_effects = on_effects};
    struct bulk *bulk = bulk_new(&options);
    for (uint32_t i = 0; i < node_count; i++) {
        struct resource_amount amounts[] = {
            devices(bench, nodes[i]),
            {.name = STR("pods"), .value = {(i128)100 * 1000000000}, .text = STR("100")}};
        struct condition ready = {.type = STR("Ready"), .status = STR("True")};
        struct str name = arena_format(&bench->arena, "%c", 'a' + (int)i);
        struct node node = {.meta = {.name = name, .uid = name},
                            .status = {.allocatable = {amounts, 2}, .conditions = {&ready, 1}}};
        load(bulk, KIND_NODE, &node.meta);
    }
    struct namespace_object space = {.meta = {.name = STR("default"), .uid = STR("default")}};
    load(bulk, KIND_NAMESPACE, &space.meta);
    struct resource_amount quota_amount = devices(bench, quota);
    struct quota_resource resource = {
        .name = STR(RESOURCE), .nominal_quota = {true, quota_amount.value, quota_amount.text}};
    struct quota_flavor flavor = {.name = STR("default"), .resources = {&resource, 1}};
    struct resource_group group = {.flavors = {&flavor, 1}};
    struct label_selector everybody = {.match_labels = {NULL, 0}};
    struct queue queue = {
        .meta = {.name = STR("q"), .uid = STR("q")},
        .spec = {.namespace_selector = &everybody, .resource_groups = {&group, 1}}};
    load(bulk, KIND_QUEUE, &queue.meta);
    return bulk;
}

static struct bulk_gang gang(const char *name, int64_t submit_ms, int64_t run_ms, int64_t pods,
                             int64_t units)
{
    return (struct bulk_gang){.name = str_from_c(name),
                              .namespace_name = STR("default"),
                              .queue = STR("q"),
                              .submit_ms = submit_ms,
                              .run_ms = run_ms,
                              .pods = pods,
                              .units_per_pod = units};
}

static void play_to_end(struct bulk *bulk)
{
    while (bulk_run(bulk, INT64_MAX, 100)) {
    }
    core_assert_consistent(bulk_core(bulk));
}

/* -- the cases -----------------------------------------------------------------------------------
 */

static void gangs_run_and_the_rest_follows(void **state)
{
    (void)state;
    struct bench *bench = bench_new();
    struct bulk_gang gangs[] = {gang("x", 0, 1000, 2, 1), gang("y", 0, 500, 1, 1),
                                gang("z", 100, 200, 2, 1)};
    struct bulk *bulk = bulk_make(bench, gangs, 3, 3, (int64_t[]){2, 1}, 2);
    play_to_end(bulk);
    check_str(text_str(&bench->trace), "[0] 0 submitted\n"
                                       "[0] 1 submitted\n"
                                       "[0] 0 started\n"
                                       "[0] 1 started\n"
                                       "[100] 2 submitted\n"
                                       "[100] 2 waits QuotaExhausted\n"
                                       "[500] 1 finished\n"
                                       "[1000] 0 finished\n"
                                       "[1000] 2 started\n"
                                       "[1200] 2 finished\n");
    check_i64(bulk_unfinished(bulk), 0);
    check_i64(bench->last_capacity, 3);
    bulk_free(bulk);
    bench_free(bench);
}

/* Two devices are free in sum, and no node has both: a pod of two waits, whatever the quota says.
 */
static void pods_need_one_node_each(void **state)
{
    (void)state;
    struct bench *bench = bench_new();
    struct bulk_gang gangs[] = {gang("x", 0, 1000, 2, 2), gang("y", 0, 300, 1, 2)};
    struct bulk *bulk = bulk_make(bench, gangs, 2, 6, (int64_t[]){3, 3}, 2);
    play_to_end(bulk);
    check_str(text_str(&bench->trace), "[0] 0 submitted\n"
                                       "[0] 1 submitted\n"
                                       "[0] 1 waits NodeShape\n"
                                       "[0] 0 started\n"
                                       "[1000] 0 finished\n"
                                       "[1000] 1 started\n"
                                       "[1300] 1 finished\n");
    bulk_free(bulk);
    bench_free(bench);
}

static void a_lost_node_breaks_its_gang_alone(void **state)
{
    (void)state;
    struct bench *bench = bench_new();
    struct bulk_gang gangs[] = {gang("x", 0, 1000, 1, 2), gang("y", 0, 1000, 1, 1)};
    gangs[0].checkpoint_ms = 300;
    struct bulk *bulk = bulk_make(bench, gangs, 2, 3, (int64_t[]){2, 1}, 2);
    assert_true(bulk_node_at(bulk, 400, STR("a"), BULK_NODE_DOWN, 0));
    assert_true(bulk_node_at(bulk, 600, STR("a"), BULK_NODE_UP, 0));
    assert_false(bulk_node_at(bulk, 600, STR("c"), BULK_NODE_UP, 0));
    play_to_end(bulk);
    check_str(text_str(&bench->trace), "[0] 0 submitted\n"
                                       "[0] 1 submitted\n"
                                       "[0] 1 waits ReservedForOther\n"
                                       "[0] 0 started\n"
                                       "[0] 1 started\n"
                                       "[400] 0 broken lost 100\n"
                                       "[600] 0 started\n"
                                       "[1000] 1 finished\n"
                                       "[1300] 0 finished\n");
    bulk_free(bulk);
    bench_free(bench);
}

/* The journal of a run, `more` included, decides the same when it is played again. */
static void its_journal_repeats_it(void **state)
{
    (void)state;
    struct bench *bench = bench_new();
    struct bulk_gang gangs[] = {gang("x", 0, 1000, 2, 1), gang("y", 0, 500, 1, 1),
                                gang("z", 0, 200, 2, 1), gang("u", 50, 70, 1, 1)};
    struct bulk *bulk = bulk_make(bench, gangs, 4, 3, (int64_t[]){2, 2}, 2);
    play_to_end(bulk);
    struct core *core = core_new(&(struct core_options){.is_terse = true});
    struct text decided;
    text_init(&decided, &bench->arena, 1u << 20);
    uint32_t more = 0;
    for (uint32_t i = 0; i < bench->line_count; i++) {
        struct journal_line line;
        struct err err;
        struct effects effects = {.arena = &bench->arena};
        if (rc_failed(journal_parse_line(&bench->arena, bench->lines[i], &line, &err)) ||
            rc_failed(core_step(core, &line.event, &effects, &err))) {
            fail_msg("%s", err.text);
        }
        more += line.event.more_follow ? 1 : 0;
        text_add(&decided, journal_decision_text(&bench->arena, &effects));
    }
    assert_true(more > 10);
    assert_true(bench->decided.len > 0);
    assert_true(str_eq(text_str(&decided), text_str(&bench->decided)));
    core_free(core);
    bulk_free(bulk);
    bench_free(bench);
}

static void jobs_and_pods_are_the_loads_own(void **state)
{
    (void)state;
    struct bench *bench = bench_new();
    struct bulk_gang gangs[] = {gang("x", 0, 1000, 1, 1)};
    struct bulk *bulk = bulk_make(bench, gangs, 1, 1, (int64_t[]){1}, 1);
    struct object_meta meta = {.name = STR("mine")};
    struct err err;
    assert_true(rc_failed(bulk_load(bulk, &(struct object){KIND_JOB, &meta}, &err)));
    check_str(err_text(&err), "Job mine: a load or a trace brings the jobs itself");
    bulk_free(bulk);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gangs_run_and_the_rest_follows),
        cmocka_unit_test(pods_need_one_node_each),
        cmocka_unit_test(a_lost_node_breaks_its_gang_alone),
        cmocka_unit_test(its_journal_repeats_it),
        cmocka_unit_test(jobs_and_pods_are_the_loads_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
