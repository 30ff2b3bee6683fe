#include <stdlib.h>

#include "support/check.h"
#include "tallyman/api/selector.h"

static struct string_pair node_label_pairs[] = {
    {STR_INIT("zone"), STR_INIT("a")},
    {STR_INIT("gpus"), STR_INIT("8")},
    {STR_INIT("empty"), STR_INIT("")},
    {STR_INIT("example.com/rack"), STR_INIT("r7")},
};
static const struct string_map node_labels = {node_label_pairs, ARRAY_COUNT(node_label_pairs)};

/* A requirement over node_labels; up to two values, NULL: none. */
struct requirement_row {
    const char *key;
    const char *op;
    const char *values[2];
    bool for_labels; /* what a label selector says */
    bool for_nodes;  /* what a node selector says */
};

static const struct requirement_row requirement_rows[] = {
    {"zone", "In", {"a", "b"}, true, true},
    {"zone", "In", {"b", NULL}, false, false},
    {"absent", "In", {"a", NULL}, false, false},
    {"empty", "In", {"", NULL}, true, true},
    {"absent", "In", {"", NULL}, false, false},
    {"zone", "NotIn", {"b", NULL}, true, true},
    {"zone", "NotIn", {"a", NULL}, false, false},
    {"absent", "NotIn", {"a", NULL}, true, true},
    {"zone", "Exists", {NULL, NULL}, true, true},
    {"empty", "Exists", {NULL, NULL}, true, true},
    {"absent", "Exists", {NULL, NULL}, false, false},
    {"absent", "DoesNotExist", {NULL, NULL}, true, true},
    {"empty", "DoesNotExist", {NULL, NULL}, false, false},
    {"gpus", "Gt", {"7", NULL}, false, true},
    {"gpus", "Gt", {"8", NULL}, false, false},
    {"gpus", "Lt", {"9", NULL}, false, true},
    {"gpus", "Lt", {"8", NULL}, false, false},
    {"zone", "Gt", {"1", NULL}, false, false},
    {"absent", "Lt", {"1", NULL}, false, false},
    /* What isn't well formed matches nothing, whatever its operator. */
    {"absent", "NotIn", {NULL, NULL}, false, false},
    {"zone", "Exists", {"a", NULL}, false, false},
    {"absent", "DoesNotExist", {"a", NULL}, false, false},
    {"gpus", "Gt", {"1", "2"}, false, false},
    {"gpus", "Gt", {"1.5", NULL}, false, false},
    {"gpus", "Lt", {"9223372036854775808", NULL}, false, false},
    {"zone", "Near", {"a", NULL}, false, false},
    {"zone", "", {"a", NULL}, false, false},
    {"", "DoesNotExist", {NULL, NULL}, false, false},
    {"a/b/c", "DoesNotExist", {NULL, NULL}, false, false},
    {"UPPER.example/x", "DoesNotExist", {NULL, NULL}, false, false},
    {"a..b/x", "DoesNotExist", {NULL, NULL}, false, false},
    {"a.-b/x", "DoesNotExist", {NULL, NULL}, false, false},
    {"a-/x", "DoesNotExist", {NULL, NULL}, false, false},
    {"example.com/", "DoesNotExist", {NULL, NULL}, false, false},
    {"/x", "DoesNotExist", {NULL, NULL}, false, false},
    {"-a/x", "DoesNotExist", {NULL, NULL}, false, false},
    {".a/x", "DoesNotExist", {NULL, NULL}, false, false},
    {"a-b.c0/x_y.z", "DoesNotExist", {NULL, NULL}, true, true},
    {"zone", "NotIn", {"not a value", NULL}, false, false},
    {"zone", "NotIn", {"-b", NULL}, false, false},
    {"zone",
     "NotIn",
     {"a123456789012345678901234567890123456789012345678901234567890123", NULL},
     false,
     false},
    {"zone",
     "NotIn",
     {"a12345678901234567890123456789012345678901234567890123456789012", NULL},
     true,
     true},
};

struct requirement {
    struct match_expression expression;
    struct str values[2];
};

static void requirement_init(struct requirement *requirement, const struct requirement_row *row)
{
    *requirement = (struct requirement){
        .expression = {.key = str_from_c(row->key), .op = str_from_c(row->op)}};
    for (size_t i = 0; i < 2 && row->values[i] != NULL; i++) {
        requirement->values[i] = str_from_c(row->values[i]);
        requirement->expression.values.count++;
    }
    requirement->expression.values.items = requirement->values;
}

static struct node_selector selector_of(struct node_selector_term *terms, uint32_t count)
{
    return (struct node_selector){.node_selector_terms = {terms, count}};
}

static void a_requirement_matches_as_in_kubernetes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(requirement_rows); i++) {
        const struct requirement_row *row = &requirement_rows[i];
        struct requirement requirement;
        requirement_init(&requirement, row);
        struct match_expression_list list = {&requirement.expression, 1};
        struct label_selector for_labels = {.match_expressions = list};
        struct node_selector_term term = {.match_expressions = list};
        struct node_selector for_nodes = selector_of(&term, 1);
        if (label_selector_matches(&for_labels, &node_labels) != row->for_labels) {
            fail_msg("label selector: %s %s", row->key, row->op);
        }
        if (node_selector_matches(&for_nodes, &node_labels, STR("n1")) != row->for_nodes) {
            fail_msg("node selector: %s %s", row->key, row->op);
        }
    }
}

static void a_label_selector_needs_every_part(void **state)
{
    struct string_pair pairs[] = {{STR("zone"), STR("a")}, {STR("gpus"), STR("8")}};
    struct label_selector selector = {.match_labels = {pairs, 2}};
    struct requirement requirement;
    (void)state;
    requirement_init(&requirement, &(struct requirement_row){.key = "absent", .op = "Exists"});
    assert_true(label_selector_matches(&selector, &node_labels));
    selector.match_expressions = (struct match_expression_list){&requirement.expression, 1};
    assert_false(label_selector_matches(&selector, &node_labels));
    selector.match_expressions.count = 0;
    pairs[1].value = STR("4");
    assert_false(label_selector_matches(&selector, &node_labels));
}

static void an_empty_label_selector_matches_all_and_none_nothing(void **state)
{
    struct label_selector empty = {.match_labels = {NULL, 0}};
    struct string_map no_labels = {NULL, 0};
    (void)state;
    assert_true(label_selector_matches(&empty, &node_labels));
    assert_true(label_selector_matches(&empty, &no_labels));
    assert_false(label_selector_matches(NULL, &node_labels));
}

static void one_term_is_enough_but_not_an_empty_one(void **state)
{
    struct requirement good;
    struct requirement bad;
    (void)state;
    requirement_init(&good, &(struct requirement_row){.key = "zone", .op = "Exists"});
    requirement_init(&bad, &(struct requirement_row){.key = "zone", .op = "Near"});
    struct node_selector_term terms[] = {
        {.match_expressions = {&bad.expression, 1}},
        {.match_expressions = {NULL, 0}},
        {.match_expressions = {&good.expression, 1}},
    };
    struct node_selector selector = selector_of(terms, 3);
    assert_true(node_selector_matches(&selector, &node_labels, STR("n1")));
    selector.node_selector_terms.count = 2;
    assert_false(node_selector_matches(&selector, &node_labels, STR("n1")));
    selector.node_selector_terms.count = 0;
    assert_false(node_selector_matches(&selector, &node_labels, STR("n1")));
    assert_true(node_selector_matches(NULL, &node_labels, STR("n1")));
    struct match_expression both[] = {good.expression, bad.expression};
    terms[0].match_expressions = (struct match_expression_list){both, 2};
    selector.node_selector_terms.count = 1;
    assert_false(node_selector_matches(&selector, &node_labels, STR("n1")));
}

static bool field_matches(const struct requirement_row *row, struct str node_name)
{
    struct requirement requirement;
    requirement_init(&requirement, row);
    struct node_selector_term term = {.match_fields = {&requirement.expression, 1}};
    struct node_selector selector = selector_of(&term, 1);
    return node_selector_matches(&selector, &node_labels, node_name);
}

static void match_fields_know_the_name_only(void **state)
{
    static const struct requirement_row in = {"metadata.name", "In", {"n1", NULL}, false, false};
    static const struct requirement_row not_in = {
        "metadata.name", "NotIn", {"n1", NULL}, false, false};
    static const struct requirement_row two = {"metadata.name", "In", {"n1", "n2"}, false, false};
    static const struct requirement_row exists = {
        "metadata.name", "Exists", {NULL, NULL}, false, false};
    static const struct requirement_row exists_with_value = {
        "metadata.name", "Exists", {"n2", NULL}, false, false};
    static const struct requirement_row other = {
        "metadata.uid", "NotIn", {"n1", NULL}, false, false};
    (void)state;
    assert_true(field_matches(&in, STR("n1")));
    assert_false(field_matches(&in, STR("n2")));
    assert_true(field_matches(&in, STR("")));
    assert_false(field_matches(&not_in, STR("n1")));
    assert_true(field_matches(&not_in, STR("n2")));
    assert_false(field_matches(&two, STR("n1")));
    assert_false(field_matches(&exists, STR("n1")));
    assert_false(field_matches(&exists, STR("")));
    assert_false(field_matches(&exists_with_value, STR("n1")));
    assert_true(field_matches(&other, STR("n1")));
}

static void a_node_selector_map_needs_every_pair(void **state)
{
    struct string_pair pairs[] = {{STR("zone"), STR("a")}, {STR("empty"), STR("")}};
    struct string_map wanted = {pairs, 2};
    (void)state;
    assert_true(node_labels_contain(&wanted, &node_labels));
    pairs[1].key = STR("absent");
    assert_false(node_labels_contain(&wanted, &node_labels));
    pairs[1] = (struct string_pair){STR("zone"), STR("b")};
    assert_false(node_labels_contain(&wanted, &node_labels));
    wanted.count = 0;
    assert_true(node_labels_contain(&wanted, &node_labels));
}

struct toleration_row {
    const char *key;
    const char *op;
    const char *value;
    const char *effect;
    bool tolerates; /* the taint gpu=5:NoSchedule */
};

static void a_toleration_covers_as_in_kubernetes(void **state)
{
    static const struct toleration_row rows[] = {
        {"gpu", "Equal", "5", "NoSchedule", true},
        {"gpu", NULL, "5", "NoSchedule", true},
        {"gpu", "", "5", NULL, true},
        {"gpu", "Equal", "4", "NoSchedule", false},
        {"gpu", "Equal", NULL, "NoSchedule", false},
        {"gpu", "Exists", NULL, NULL, true},
        {"gpu", "Exists", NULL, "NoExecute", false},
        {"gpu", "Exists", "other", "NoSchedule", true},
        {NULL, "Exists", NULL, NULL, true},
        {"", "Exists", NULL, "", true},
        {NULL, "Exists", NULL, "NoExecute", false},
        {"spot", "Exists", NULL, NULL, false},
        {NULL, "Equal", "5", NULL, true},
        {"gpu", "Lt", "9", NULL, false},
        {"gpu", "Gt", "1", NULL, false},
        {"gpu", "exists", NULL, NULL, false},
    };
    struct taint taint = {.key = STR("gpu"), .value = STR("5"), .effect = STR("NoSchedule")};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct toleration toleration = {
            .key = str_from_c(rows[i].key),
            .op = str_from_c(rows[i].op),
            .value = str_from_c(rows[i].value),
            .effect = str_from_c(rows[i].effect),
        };
        if (toleration_tolerates(&toleration, &taint) != rows[i].tolerates) {
            fail_msg("row %zu", i);
        }
    }
}

static void the_first_taint_that_keeps_pods_away_is_found(void **state)
{
    struct taint taints[] = {
        {.key = STR("soft"), .effect = STR("PreferNoSchedule")},
        {.key = STR("gpu"), .effect = STR("NoSchedule")},
        {.key = STR("down"), .effect = STR("NoExecute")},
    };
    struct toleration tolerations[] = {
        {.key = STR("gpu"), .op = STR("Exists")},
        {.key = STR("down"), .op = STR("Exists")},
    };
    struct taint_list taint_list = {taints, 3};
    struct toleration_list toleration_list = {tolerations, 0};
    (void)state;
    assert_ptr_equal(taints_find_untolerated(&taint_list, &toleration_list), &taints[1]);
    toleration_list.count = 1;
    assert_ptr_equal(taints_find_untolerated(&taint_list, &toleration_list), &taints[2]);
    toleration_list.count = 2;
    assert_null(taints_find_untolerated(&taint_list, &toleration_list));
    taint_list.count = 0;
    toleration_list.count = 0;
    assert_null(taints_find_untolerated(&taint_list, &toleration_list));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_requirement_matches_as_in_kubernetes),
        cmocka_unit_test(a_label_selector_needs_every_part),
        cmocka_unit_test(an_empty_label_selector_matches_all_and_none_nothing),
        cmocka_unit_test(one_term_is_enough_but_not_an_empty_one),
        cmocka_unit_test(match_fields_know_the_name_only),
        cmocka_unit_test(a_node_selector_map_needs_every_pair),
        cmocka_unit_test(a_toleration_covers_as_in_kubernetes),
        cmocka_unit_test(the_first_taint_that_keeps_pods_away_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
