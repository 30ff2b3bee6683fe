/* test_gang_line.c - a line against the order that it keeps: whatever comes and goes, each stands
 * where gang_compare_order() or gang_compare_timer() has it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

#include "../../../controller/core/state.h"

#define GANGS 2000u

static struct gang gangs[GANGS];
static bool stands[GANGS];
static char uids[GANGS][24];
static uint32_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* Many alike in what the line keeps of them, and times that it can't tell apart. */
static void make_gangs(uint32_t priorities, uint32_t times)
{
    static const int64_t odd_times[] = {INT64_MIN,       INT64_MIN + 1,   -62167219200001,
                                        -62167219200000, 253402300799999, INT64_MAX - 1,
                                        INT64_MAX};
    memset(gangs, 0, sizeof(gangs));
    memset(stands, 0, sizeof(stands));
    seed = 1;
    for (uint32_t i = 0; i < GANGS; i++) {
        int len = snprintf(uids[i], sizeof(uids[i]), draw(2) == 0 ? "%04x-1234" : "00001234%04x",
                           draw(256) << 8 | i % 256);
        (void)snprintf(uids[i] + len, sizeof(uids[i]) - (size_t)len, "-%u", i);
        gangs[i].uid = str_from_c(uids[i]);
        for (size_t b = 0; b < sizeof(uint64_t); b++) {
            gangs[i].uid_start = gangs[i].uid_start << 8 | (unsigned char)uids[i][b];
        }
        gangs[i].priority = (int64_t)draw(priorities) * INT32_MAX - INT32_MAX;
        gangs[i].order_ms = draw(20) == 0 ? odd_times[draw(ARRAY_COUNT(odd_times))]
                                          : INT64_C(1796000000000) + draw(times);
        gangs[i].timer_ms = -(gangs[i].order_ms + 1);
        gangs[i].admitted_ms = gangs[i].order_ms / 2;
    }
}

static int by_order(const void *a, const void *b)
{
    return gang_compare_order(*(struct gang *const *)a, *(struct gang *const *)b);
}

static int by_timer(const void *a, const void *b)
{
    return gang_compare_timer(*(struct gang *const *)a, *(struct gang *const *)b);
}

static int by_admission(const void *a, const void *b)
{
    return gang_compare_admitted(*(struct gang *const *)a, *(struct gang *const *)b);
}

static int (*const orders[])(const void *a, const void *b) = {
    [LINE_BY_PLACE] = by_order, [LINE_BY_TIMER] = by_timer, [LINE_BY_ADMISSION] = by_admission};

static void check_line(const struct gang_line *line)
{
    static struct gang *sorted[GANGS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < GANGS; i++) {
        if (stands[i]) {
            sorted[count++] = &gangs[i];
        }
    }
    qsort(sorted, count, sizeof(sorted[0]), orders[line->order]);
    assert_int_equal(gang_line_is_empty(line), count == 0);
    uint32_t at = 0;
    struct gang *gang;
    GANG_LINE_FOREACH (gang, line) {
        assert_true(at < count);
        assert_ptr_equal(gang, sorted[at]);
        check_i64(gang_line_ahead(line, gang, GANGS), at);
        check_i64(gang_line_ahead(line, gang, 100), at < 100 ? at : 100);
        assert_ptr_equal(gang_line_next(line, gang), at + 1 < count ? sorted[at + 1] : NULL);
        at++;
    }
    check_i64(at, count);
}

static void put(struct gang_line *line, uint32_t i)
{
    bool is_first = gang_line_put(line, &gangs[i]);
    stands[i] = true;
    assert_int_equal(is_first, gang_line_first(line) == &gangs[i]);
}

static void take(struct gang_line *line, uint32_t i)
{
    const struct gang *next = gang_line_next(line, &gangs[i]);
    gang_line_take(line, &gangs[i]);
    stands[i] = false;
    assert_ptr_equal(gang_line_next(line, &gangs[i]), next);
}

/* More come than go, and then more go than come. */
static void play(struct gang_line line)
{
    for (uint32_t round = 0; round < 24000; round++) {
        uint32_t i = draw(GANGS);
        bool is_wanted = draw(8) < (round < 12000 ? 6 : 2);
        if (is_wanted && !stands[i]) {
            put(&line, i);
        } else if (!is_wanted && stands[i]) {
            take(&line, i);
        }
        if (round % 500 == 0) {
            check_line(&line);
        }
    }
    for (uint32_t i = 0; i < GANGS; i++) {
        if (stands[i]) {
            take(&line, i);
        }
    }
    check_line(&line);
    assert_null(line.blocks);
}

static void each_stands_in_its_place(void **state)
{
    (void)state;
    static const uint32_t ways[][2] = {{1, 1}, {1, 50}, {1, 1000000}, {3, 1}, {3, 1000}, {500, 5}};
    for (size_t w = 0; w < ARRAY_COUNT(ways); w++) {
        make_gangs(ways[w][0], ways[w][1]);
        for (size_t o = 0; o < ARRAY_COUNT(orders); o++) {
            play((struct gang_line){.order = (enum gang_line_order)o});
        }
    }
}

/* The uids grow with the number, so that those of one time come in order or against it. */
static void make_row(void)
{
    make_gangs(1, 1);
    for (uint32_t i = 0; i < GANGS; i++) {
        gangs[i].order_ms = INT64_C(1796000000000) + i / 300;
        gangs[i].uid_start = i % 300;
    }
}

/* Full blocks where they come in order; mostly half full ones against it. */
static void they_come_in_order_and_against_it(void **state)
{
    (void)state;
    struct gang_line line = {.count = 0};
    make_row();
    for (uint32_t i = 0; i < GANGS; i++) {
        put(&line, i);
    }
    check_line(&line);
    check_i64(line.count, (GANGS + 127) / 128);
    for (uint32_t i = 0; i < GANGS; i++) {
        assert_ptr_equal(gang_line_first(&line), &gangs[i]);
        take(&line, i);
    }
    for (uint32_t i = GANGS; i > 0; i--) {
        put(&line, i - 1);
    }
    check_line(&line);
    assert_true(line.count <= GANGS / 50);
    for (uint32_t i = 0; i < GANGS; i++) {
        take(&line, i);
    }
    assert_null(line.blocks);
}

/* Those between a full block and the next one go into either, not each into one of its own. */
static void what_comes_between_full_blocks_shares_them(void **state)
{
    (void)state;
    struct gang_line line = {.count = 0};
    make_row();
    for (uint32_t i = 0; i < 128; i++) {
        put(&line, i);
    }
    for (uint32_t i = GANGS; i > 128; i--) {
        put(&line, i - 1);
    }
    check_line(&line);
    assert_true(line.count <= GANGS / 50);
    for (uint32_t i = 0; i < GANGS; i++) {
        take(&line, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_stands_in_its_place),
        cmocka_unit_test(they_come_in_order_and_against_it),
        cmocka_unit_test(what_comes_between_full_blocks_shares_them),
    };
    return cmocka_run_group_tests_name("gang_line", tests, NULL, NULL);
}
