#include <string.h>

#include "support/check.h"
#include "tallyman/base/attr.h"
#include "tallyman/base/map.h"

struct entry {
    const char *name;
    int rank;
    UT_hash_handle by_name;
    RB_ENTRY(entry) by_rank;
};

RB_HEAD(rank_tree, entry);

static int compare_ranks(const struct entry *a, const struct entry *b)
{
    return (a->rank > b->rank) - (a->rank < b->rank);
}

RB_PROTOTYPE_STATIC(rank_tree, entry, by_rank, compare_ranks)
RB_GENERATE_STATIC(rank_tree, entry, by_rank, compare_ranks)

static void table_finds_by_name(void **state)
{
    struct entry entries[] = {{.name = "b"}, {.name = "a"}, {.name = "c"}};
    struct entry *table = NULL;
    struct entry *found = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(entries); i++) {
        HASH_ADD_KEYPTR(by_name, table, entries[i].name, strlen(entries[i].name), &entries[i]);
    }
    HASH_FIND(by_name, table, "a", 1, found);
    assert_ptr_equal(found, &entries[1]);
    HASH_DELETE(by_name, table, found);
    HASH_FIND(by_name, table, "a", 1, found);
    assert_null(found);
    check_i64(HASH_CNT(by_name, table), 2);
    HASH_CLEAR(by_name, table);
}

static void tree_walks_in_order(void **state)
{
    struct entry entries[100] = {{.rank = 0}};
    struct rank_tree tree = RB_INITIALIZER(&tree);
    struct entry *entry;
    struct entry *next;
    int expected = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        entries[i].rank = i * 37 % 100;
        assert_null(RB_INSERT(rank_tree, &tree, &entries[i]));
    }
    assert_ptr_equal(RB_INSERT(rank_tree, &tree, &entries[7]), &entries[7]);
    RB_FOREACH (entry, rank_tree, &tree) {
        check_i64(entry->rank, expected);
        expected++;
    }
    check_i64(expected, 100);
    RB_FOREACH_SAFE (entry, rank_tree, &tree, next) {
        if (entry->rank % 2 == 0) {
            RB_REMOVE(rank_tree, &tree, entry);
        }
    }
    struct entry wanted = {.rank = 50};

    assert_null(RB_FIND(rank_tree, &tree, &wanted));
    assert_ptr_equal(RB_NFIND(rank_tree, &tree, &wanted), &entries[51 * 73 % 100]);
    assert_ptr_equal(RB_MIN(rank_tree, &tree), &entries[1 * 73 % 100]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_finds_by_name),
        cmocka_unit_test(tree_walks_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
