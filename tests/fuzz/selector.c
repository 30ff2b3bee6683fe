/* Selectors and tolerations of any text: opposite operators never both match, an AND never matches
 * more than its parts, an OR never less. The input is a list of lines; each takes its place by its
 * number. */
#include <assert.h>
#include <stdint.h>

#include "tallyman/api/selector.h"

#define LINES_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct lines {
    struct str items[LINES_MAX]; /* empty beyond the end of the input */
};

static struct lines split(struct str s)
{
    struct lines lines = {{STR_NONE}};

    for (size_t i = 0; i < LINES_MAX; i++) {
        size_t end = str_find_char(s, '\n');
        lines.items[i] = end == 0 ? STR("") : str_take(s, end);
        s = str_skip(s, end + 1);
    }
    return lines;
}

static bool node_matches(struct match_expression *expressions, uint32_t count,
                         const struct string_map *labels)
{
    struct node_selector_term term = {.match_expressions = {expressions, count}};
    struct node_selector selector = {.node_selector_terms = {&term, 1}};

    return node_selector_matches(&selector, labels, STR("n"));
}

static bool label_matches(struct match_expression *expression, const struct string_map *labels)
{
    struct label_selector selector = {.match_expressions = {expression, 1}};

    return label_selector_matches(&selector, labels);
}

static void check_opposites(struct match_expression expression, const struct string_map *labels)
{
    static const struct str pairs[][2] = {{STR_INIT("In"), STR_INIT("NotIn")},
                                          {STR_INIT("Exists"), STR_INIT("DoesNotExist")},
                                          {STR_INIT("Gt"), STR_INIT("Lt")}};

    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++) {
        bool matches[2];
        for (size_t side = 0; side < 2; side++) {
            expression.op = pairs[i][side];
            matches[side] = node_matches(&expression, 1, labels);
            assert(label_matches(&expression, labels) == (i < 2 && matches[side]));
        }
        assert(!matches[0] || !matches[1]);
    }
}

static void check_and_or(struct match_expression *both, const struct string_map *labels)
{
    bool first = node_matches(&both[0], 1, labels);
    bool second = node_matches(&both[1], 1, labels);
    struct node_selector_term terms[] = {{.match_expressions = {&both[0], 1}},
                                         {.match_expressions = {&both[1], 1}}};
    struct node_selector either = {.node_selector_terms = {terms, 2}};

    assert(node_matches(both, 2, labels) == (first && second));
    assert(node_selector_matches(&either, labels, STR("n")) == (first || second));
}

static void check_tolerations(const struct lines *lines)
{
    struct taint taint = {
        .key = lines->items[0], .value = lines->items[1], .effect = STR("NoSchedule")};
    struct toleration own = {.key = lines->items[8],
                             .op = lines->items[9],
                             .value = lines->items[10],
                             .effect = lines->items[11]};
    struct toleration any = {.op = STR("Exists")};
    struct taint_list taints = {&taint, 1};
    struct toleration_list list = {&own, 1};

    assert(toleration_tolerates(&any, &taint));
    assert((taints_find_untolerated(&taints, &list) == NULL) == toleration_tolerates(&own, &taint));
    if (toleration_tolerates(&own, &taint)) {
        assert(str_is_empty(own.key) || str_eq(own.key, taint.key));
        assert(str_is_empty(own.effect) || str_eq(own.effect, taint.effect));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct str all = {(const char *)bytes, size};
    struct lines lines = split(all);
    struct string_pair pairs[] = {{lines.items[0], lines.items[1]},
                                  {lines.items[2], lines.items[3]}};
    struct string_map labels = {pairs, ARRAY_COUNT(pairs)};
    struct match_expression expressions[] = {
        {.key = lines.items[4], .op = lines.items[5], .values = {&lines.items[6], 2}},
        {.key = lines.items[8], .op = lines.items[9], .values = {&lines.items[10], 1}},
        {.key = lines.items[12], .op = lines.items[13]},
    };

    for (size_t i = 0; i < ARRAY_COUNT(expressions); i++) {
        check_opposites(expressions[i], &labels);
    }
    check_and_or(expressions, &labels);
    check_and_or(expressions + 1, &labels);
    check_tolerations(&lines);
    return 0;
}
