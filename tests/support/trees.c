#include "support/trees.h"

#include <stdio.h>
#include <string.h>

#include "support/check.h"

static const char *const resource_names[RESOURCES] = {"cpu", "memory"};

uint64_t trees_random(const struct op *op)
{
    uint64_t random = ((uint64_t)op->a << 8 | op->b) * 2654435761u + 99;
    (void)random_next(&random);
    return random;
}

static bool one_in(uint64_t *random, uint32_t n)
{
    return random_next(random) % n == 0;
}

static void add_quota(struct place *place, uint64_t *random, char *text, size_t bytes)
{
    size_t length = 0;
    for (int f = 0; f < FLAVORS; f++) {
        length += (size_t)snprintf(text + length, bytes - length,
                                   "%s{\"name\":\"f%d\",\"resources\":[", f == 0 ? "" : ",", f);
        for (int r = 0; r < RESOURCES; r++) {
            int cell = f * RESOURCES + r;
            place->nominal[cell] = one_in(random, 3) ? 0 : random_next(random) % 7;
            place->lending[cell] = place->borrowing[cell] = UNLIMITED;
            length += (size_t)snprintf(
                text + length, bytes - length, "%s{\"name\":\"%s\",\"nominalQuota\":\"%lld\"",
                r == 0 ? "" : ",", resource_names[r], (long long)place->nominal[cell]);
            if (place->parent >= 0 && one_in(random, 4)) {
                place->lending[cell] = random_next(random) % (uint32_t)(place->nominal[cell] + 1);
                length +=
                    (size_t)snprintf(text + length, bytes - length, ",\"lendingLimit\":\"%lld\"",
                                     (long long)place->lending[cell]);
            }
            if (place->parent >= 0 && one_in(random, 4)) {
                place->borrowing[cell] = random_next(random) % 7;
                length +=
                    (size_t)snprintf(text + length, bytes - length, ",\"borrowingLimit\":\"%lld\"",
                                     (long long)place->borrowing[cell]);
            }
            length += (size_t)snprintf(text + length, bytes - length, "}");
        }
        length += (size_t)snprintf(text + length, bytes - length, "]}");
    }
}

static const char *fair_text(const struct trees *trees, uint64_t *random)
{
    static const char *const weights[] = {"0", "1", "1", "2", "500m", "3"};
    static char text[64];
    text[0] = '\0';
    if (trees->is_fair && !one_in(random, 3)) {
        (void)snprintf(text, sizeof(text), ",\"fairSharing\":{\"weight\":\"%s\"}",
                       weights[random_next(random) % 6]);
    }
    return text;
}

void trees_add_cohort(struct trees *trees, struct scenario *s, const struct op *op)
{
    uint64_t random = trees_random(op);
    int index = (int)(random_next(&random) % COHORTS);
    struct place *place = &trees->cohorts[index];
    bool has_parent = index > 0 && !one_in(&random, 4);
    *place = (struct place){.is_there = true, .parent = UNLIMITED};
    place->parent = has_parent ? (int)(random_next(&random) % (uint32_t)index) : UNLIMITED;
    char quota[1500];
    char parent[40] = "";
    char json[2500];
    add_quota(place, &random, quota, sizeof(quota));
    if (has_parent) {
        (void)snprintf(parent, sizeof(parent), "\"parentName\":\"c%d\",", place->parent);
    }
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"c%d\"},\"spec\":{%s\"resourceGroups\":[{\"flavors\":"
                   "[%s]}]%s}}",
                   index, parent, quota, fair_text(trees, &random));
    given_json(s, KIND_COHORT, json);
}

static void preemption_text(struct place *place, uint64_t *random, char *text, size_t bytes)
{
    static const char *const within[] = {"Never", "LowerPriority", "LowerOrNewerEqualPriority"};
    static const char *const reclaim[] = {"Never", "LowerPriority", "Any", "Any"};
    uint32_t mode = random_next(random) % 4;
    place->reclaims_any = mode >= 2;
    bool borrows = mode > 0 && one_in(random, 3);
    (void)snprintf(text, bytes, "{\"withinQueue\":\"%s\",\"reclaimWithinCohort\":\"%s\"%s}",
                   within[random_next(random) % 3], reclaim[mode],
                   borrows ? ",\"borrowWithinCohort\":{\"policy\":\"LowerPriority\"}" : "");
}

void trees_add_queue(struct trees *trees, struct scenario *s, const struct op *op)
{
    static const char *const fungible[] = {
        "{}", "{\"whenCanBorrow\":\"TryNextFlavor\"}", "{\"whenCanPreempt\":\"MayStopSearch\"}",
        "{\"whenCanBorrow\":\"TryNextFlavor\",\"preference\":\"PreemptionOverBorrowing\"}"};
    uint64_t random = trees_random(op);
    int index = (int)(random_next(&random) % QUEUES);
    struct place *place = &trees->queues[index];
    *place = (struct place){.is_there = true};
    place->parent = one_in(&random, 8) ? UNLIMITED : (int)(random_next(&random) % COHORTS);
    char quota[1500];
    char cohort[40] = "";
    char preemption[200];
    char json[2500];
    add_quota(place, &random, quota, sizeof(quota));
    preemption_text(place, &random, preemption, sizeof(preemption));
    if (place->parent >= 0) {
        (void)snprintf(cohort, sizeof(cohort), "\"cohort\":\"c%d\",", place->parent);
    }
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"q%d\"},\"spec\":{%s\"namespaceSelector\":{},"
                   "\"fit\":\"Quota\",\"resourceGroups\":[{\"flavors\":[%s]}],\"preemption\":%s,"
                   "\"flavorFungibility\":%s%s}}",
                   index, cohort, quota, preemption, fungible[random_next(&random) % 4],
                   fair_text(trees, &random));
    given_json(s, KIND_QUEUE, json);
}

void trees_init(struct trees *trees, struct scenario *s, bool is_fair)
{
    *trees = (struct trees){.is_fair = is_fair};
    given_flavor(s, "f0", "");
    given_flavor(s, "f1", "");
    for (int i = 0; i < COHORTS; i++) {
        trees->cohorts[i].parent = UNLIMITED; /* there by its name alone */
        for (int cell = 0; cell < CELLS; cell++) {
            trees->cohorts[i].lending[cell] = trees->cohorts[i].borrowing[cell] = UNLIMITED;
        }
    }
}

int trees_number(struct str name)
{
    int64_t number = 0;
    size_t slash = str_find_char(name, '/');
    struct str last = slash < name.len ? str_skip(name, slash + 1) : name;
    assert_true(str_to_i64(str_skip(last, 1), &number));
    return (int)number;
}

/* -- at rest ------------------------------------------------------------------------------------
 */

static int64_t guaranteed(const struct place *place, int cell)
{
    if (place->parent < 0) {
        return place->subtree[cell];
    }
    bool lends_all =
        place->lending[cell] == UNLIMITED || place->subtree[cell] <= place->lending[cell];
    return lends_all ? 0 : place->subtree[cell] - place->lending[cell];
}

static bool is_within(struct trees *trees, struct place *place)
{
    bool holds = true;
    for (int cell = 0; cell < CELLS; cell++) {
        int64_t most = place->subtree[cell];
        if (place->parent >= 0) {
            int64_t own = guaranteed(place, cell);
            struct place *above = &trees->cohorts[place->parent];
            above->subtree[cell] += place->subtree[cell] - own;
            above->used[cell] += place->used[cell] > own ? place->used[cell] - own : 0;
            most += place->borrowing[cell];
        }
        bool is_bounded = place->parent < 0 || place->borrowing[cell] != UNLIMITED;
        holds = holds && (!is_bounded || place->used[cell] <= most);
    }
    return holds;
}

void trees_read_usage(struct trees *trees, struct scenario *s)
{
    struct arena arena;
    arena_init(&arena);
    struct queue_figures_list list = core_queue_figures(scenario_core(s), &arena);
    for (uint32_t i = 0; i < list.count; i++) {
        struct place *place = &trees->queues[trees_number(list.items[i].queue)];
        for (uint32_t c = 0; c < list.items[i].cell_count; c++) {
            const struct cell_figures *figures = &list.items[i].cells[c];
            int cell = trees_number(figures->flavor) * RESOURCES +
                       (str_eq_c(figures->resource, resource_names[0]) ? 0 : 1);
            place->used[cell] = figures->used_milli / 1000;
        }
    }
    arena_deinit(&arena);
}

bool trees_are_within_quota(struct trees *trees)
{
    bool holds = true;
    for (int i = 0; i < COHORTS; i++) {
        memcpy(trees->cohorts[i].subtree, trees->cohorts[i].nominal, sizeof(int64_t[CELLS]));
        memset(trees->cohorts[i].used, 0, sizeof(int64_t[CELLS]));
    }
    for (int i = 0; i < QUEUES; i++) {
        struct place *queue = &trees->queues[i];
        memcpy(queue->subtree, queue->nominal, sizeof(int64_t[CELLS]));
        if (queue->is_there) {
            holds = is_within(trees, queue) && holds;
        }
    }
    for (int i = COHORTS - 1; i >= 0; i--) { /* a parent's number is lower */
        holds = is_within(trees, &trees->cohorts[i]) && holds;
    }
    return holds;
}
