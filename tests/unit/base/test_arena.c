#include <stdalign.h>
#include <string.h>

#include "support/check.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/arena.h"
#include "tallyman/base/limits.h"

static int set_up(void **state)
{
    struct arena *arena = MEM_NEW(struct arena);

    arena_init(arena);
    *state = arena;
    return 0;
}

static int tear_down(void **state)
{
    arena_deinit(*state);
    mem_free(*state);
    return 0;
}

static bool is_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

static void allocations_are_zeroed_aligned_and_apart(void **state)
{
    struct arena *arena = *state;
    unsigned char *before = NULL;

    for (size_t bytes = 0; bytes < 300; bytes++) {
        unsigned char *p = arena_alloc(arena, bytes);

        check_i64((uintptr_t)p % alignof(max_align_t), 0);
        assert_true(is_zero(p, bytes));
        assert_ptr_not_equal(p, before);
        memset(p, 0xaa, bytes);
        before = p;
    }
}

static void larger_than_any_block(void **state)
{
    struct arena *arena = *state;
    size_t bytes = 3u * ARENA_KEEP_MAX_BYTES + 7;
    unsigned char *small = arena_alloc(arena, 10);
    unsigned char *p = arena_alloc(arena, bytes);

    memset(small, 1, 10);
    memset(p, 2, bytes);
    check_i64(small[9], 1);
    check_i64(p[bytes - 1], 2);
    assert_true(arena->used_bytes >= bytes + 10);

    /* A block after a giant is an ordinary one again, which is worth keeping. */
    memset(arena_alloc(arena, 1), 3, 1);
    arena_reset(arena);
    assert_non_null(arena->blocks);
}

static void reset_gives_zeroed_memory_again(void **state)
{
    struct arena *arena = *state;

    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 100; i++) {
            unsigned char *p = arena_alloc(arena, 1000);

            assert_true(is_zero(p, 1000));
            memset(p, 0xff, 1000);
        }
        arena_reset(arena);
        check_i64(arena->used_bytes, 0);
    }
}

/* Once a round fits into the kept block, the same memory serves each round. */
static void reset_keeps_memory(void **state)
{
    struct arena *arena = *state;
    void *first[2];

    memset(arena_alloc(arena, ARENA_BLOCK_MIN_BYTES / 2), 1, 1);
    arena_reset(arena);
    for (int round = 0; round < 2; round++) {
        first[round] = arena_alloc(arena, ARENA_BLOCK_MIN_BYTES / 2);
        arena_reset(arena);
    }
    assert_ptr_equal(first[0], first[1]);
}

static void reset_gives_back_what_is_too_large_to_keep(void **state)
{
    struct arena *arena = *state;

    memset(arena_alloc(arena, 2u * ARENA_KEEP_MAX_BYTES), 1, 1);
    arena_reset(arena);
    assert_null(arena->blocks);
}

static void deinit_twice_and_of_nothing(void **state)
{
    struct arena arena;

    (void)state;
    arena_init(&arena);
    memset(arena_alloc(&arena, 1), 1, 1);
    arena_deinit(&arena);
    arena_deinit(&arena);
    arena_deinit(NULL);
    check_i64(arena.used_bytes, 0);
}

static void copies_end_in_nul(void **state)
{
    struct arena *arena = *state;
    struct str copy = arena_copy_str(arena, str_take(STR("train-a"), 5));

    check_str(copy, "train");
    check_i64(copy.ptr[5], '\0');
    check_str(arena_copy_str(arena, STR_NONE), NULL);
    check_str(arena_copy_str(arena, STR("")), "");
    check_i64(arena_copy_str(arena, STR("a\0b")).len, 3);
}

static void format_has_no_bound(void **state)
{
    struct arena *arena = *state;
    struct str s = arena_format(arena, "%s needs %d", "train", 4);

    check_str(s, "train needs 4");
    check_i64(s.ptr[s.len], '\0');
    check_i64(arena_format(arena, "%100000d", 1).len, 100000);
    check_str(arena_format(arena, "%s", ""), "");
}

static void array_grows_and_keeps_its_items(void **state)
{
    struct arena *arena = *state;
    uint32_t *items = NULL;
    uint32_t capacity = 0;

    for (uint32_t count = 0; count < 5000; count++) {
        items = arena_grow(arena, items, count, &capacity, sizeof(*items));
        assert_true(capacity > count);
        items[count] = count;
    }
    for (uint32_t i = 0; i < 5000; i++) {
        check_i64(items[i], i);
    }
}

static void heap_array_grows_too(void **state)
{
    uint32_t *items = NULL;
    uint32_t capacity = 0;

    (void)state;
    for (uint32_t count = 0; count < 5000; count++) {
        items = mem_grow(items, count, &capacity, sizeof(*items));
        items[count] = count;
    }
    check_i64(items[4999], 4999);
    check_i64(capacity, 8192);
    mem_free(items);
    mem_free(NULL);
}

static void heap_gives_memory_for_nothing(void **state)
{
    void *none = mem_alloc(0);
    void *zeroed = mem_zalloc(0);

    (void)state;
    assert_ptr_not_equal(none, zeroed);
    none = mem_realloc(none, 0);
    mem_free(none);
    mem_free(zeroed);
}

static void typed_forms(void **state)
{
    struct arena *arena = *state;
    int64_t *one = ARENA_NEW(arena, int64_t);
    int64_t *many = ARENA_ARRAY(arena, int64_t, 100);

    check_i64(*one, 0);
    check_i64(many[99], 0);
    check_i64(mem_array_bytes(3, 7), 21);
    check_i64(mem_grown_capacity(0, 0), GROW_MIN_ITEMS);
    check_i64(mem_grown_capacity(8, 8), 16);
    check_i64(mem_grown_capacity(100, 8), 128);
}

#define EACH(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(allocations_are_zeroed_aligned_and_apart),
        EACH(larger_than_any_block),
        EACH(reset_gives_zeroed_memory_again),
        EACH(reset_keeps_memory),
        EACH(reset_gives_back_what_is_too_large_to_keep),
        EACH(deinit_twice_and_of_nothing),
        EACH(copies_end_in_nul),
        EACH(format_has_no_bound),
        EACH(array_grows_and_keeps_its_items),
        EACH(heap_array_grows_too),
        EACH(heap_gives_memory_for_nothing),
        EACH(typed_forms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
