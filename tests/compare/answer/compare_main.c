/* compare_main.c - answers the cases that ../main.go has written, in the same words: one line each.
 *
 *   compare_main CASES > ANSWERS */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../api/schema.h"
#include "tallyman/api/node.h"
#include "tallyman/api/pod_request.h"

struct quantity_case {
    struct str text;
};

static const struct field quantity_case_fields[] = {
    F_STRING(quantity_case, text, "text"),
};
static SCHEMA(quantity_case);

struct limit_range_list {
    struct limit_range *items;
    uint32_t count;
};

struct template_case {
    struct pod_template pod_template;
    struct limit_range_list limit_ranges;
    struct runtime_class *runtime_class;
};

static const struct field template_case_fields[] = {
    F_OBJECT(template_case, pod_template, "template", pod_template),
    F_OBJECT_LIST(template_case, limit_ranges, "limitRanges", limit_range),
    F_OBJECT_PTR(template_case, runtime_class, "runtimeClass", runtime_class),
};
static SCHEMA(template_case);

struct node_case {
    struct str name;
    struct string_map labels;
    struct string_map wanted;
    struct node_selector *selector;
};

static const struct field node_case_fields[] = {
    F_STRING(node_case, name, "name"),
    F_STRING_MAP(node_case, labels, "labels"),
    F_STRING_MAP(node_case, wanted, "wanted"),
    F_OBJECT_PTR(node_case, selector, "selector", node_selector),
};
static SCHEMA(node_case);

struct label_case {
    struct string_map labels;
    struct label_selector *selector;
};

static const struct field label_case_fields[] = {
    F_STRING_MAP(label_case, labels, "labels"),
    F_OBJECT_PTR(label_case, selector, "selector", label_selector),
};
static SCHEMA(label_case);

struct taint_case {
    struct taint_list taints;
    struct toleration_list tolerations;
};

static const struct field taint_case_fields[] = {
    F_OBJECT_LIST(taint_case, taints, "taints", taint),
    F_OBJECT_LIST(taint_case, tolerations, "tolerations", toleration),
};
static SCHEMA(taint_case);

/* -- answers ----------------------------------------------------------------------------------- */

/* printf has no conversion for 128 bits. */
static struct str format_i128(struct arena *arena, i128 value)
{
    bool is_negative = value < 0;
    uint64_t low = (uint64_t)((is_negative ? -value : value) % INT64_C(1000000000));
    int64_t high = (int64_t)((is_negative ? -value : value) / INT64_C(1000000000));
    const char *sign = is_negative ? "-" : "";
    if (high == 0) {
        return arena_format(arena, "%s%" PRIu64, sign, low);
    }
    return arena_format(arena, "%s%" PRId64 "%09" PRIu64, sign, high, low);
}

static void answer_quantity(struct arena *arena, const void *value)
{
    const struct quantity_case *asked = value;
    struct quantity quantity;
    if (rc_failed(quantity_parse(asked->text, &quantity, NULL))) {
        puts("invalid");
        return;
    }
    printf("nano=" STR_FMT " units=%" PRId64 "/%" PRId64 " milli=%" PRId64 "/%" PRId64 "\n",
           STR_ARG(format_i128(arena, quantity.nano)), quantity_units_up(quantity),
           quantity_units_down(quantity), quantity_milli_up(quantity),
           quantity_milli_down(quantity));
}

static void print_amounts(struct rc rc, const struct amount_list *amounts, const struct err *err)
{
    if (rc_failed(rc)) {
        printf("%s\n", err->text);
        return;
    }
    for (uint32_t i = 0; i < amounts->count; i++) {
        printf("%s" STR_FMT "=%" PRId64, i == 0 ? "" : " ", STR_ARG(amounts->items[i].resource),
               amounts->items[i].value);
    }
    puts("");
}

static void answer_template(struct arena *arena, const void *value)
{
    const struct template_case *asked = value;
    uint32_t count = asked->limit_ranges.count;
    const struct limit_range **ranges = ARENA_ARRAY(arena, const struct limit_range *, count);
    for (uint32_t i = 0; i < count; i++) {
        ranges[i] = &asked->limit_ranges.items[i];
    }
    struct request_context context = {ranges, count, asked->runtime_class};
    struct amount_list amounts = {.count = 0};
    struct err err;
    struct rc rc =
        pod_template_requests(arena, &asked->pod_template.spec, &context, &amounts, &err);
    if (rc_failed(rc) && strstr(err.text, "would be refused") != NULL) {
        puts("refused");
        return;
    }
    print_amounts(rc, &amounts, &err);
}

static void answer_pod(struct arena *arena, const void *value)
{
    struct amount_list amounts = {.count = 0};
    struct err err;
    struct rc rc = pod_requests(arena, value, &amounts, &err);
    print_amounts(rc, &amounts, &err);
}

static void print_bool(bool answer)
{
    puts(answer ? "true" : "false");
}

static void answer_node(struct arena *arena, const void *value)
{
    const struct node_case *asked = value;
    (void)arena;
    print_bool(node_labels_contain(&asked->wanted, &asked->labels) &&
               node_selector_matches(asked->selector, &asked->labels, asked->name));
}

static void answer_label(struct arena *arena, const void *value)
{
    const struct label_case *asked = value;
    (void)arena;
    print_bool(label_selector_matches(asked->selector, &asked->labels));
}

static void answer_taint(struct arena *arena, const void *value)
{
    const struct taint_case *asked = value;
    const struct taint *taint = taints_find_untolerated(&asked->taints, &asked->tolerations);
    (void)arena;
    if (taint == NULL) {
        puts("none");
        return;
    }
    printf("%td\n", taint - asked->taints.items);
}

/* -- cases ------------------------------------------------------------------------------------- */

struct case_kind {
    const char *name;
    const struct schema *schema;
    void (*answer)(struct arena *arena, const void *value);
};

static const struct case_kind case_kinds[] = {
    {"quantity", &quantity_case_schema, answer_quantity},
    {"template", &template_case_schema, answer_template},
    {"pod", &pod_schema, answer_pod},
    {"node", &node_case_schema, answer_node},
    {"label", &label_case_schema, answer_label},
    {"taint", &taint_case_schema, answer_taint},
};

static void answer_line(struct arena *arena, struct str line)
{
    size_t space = str_find_char(line, ' ');
    for (size_t i = 0; i < ARRAY_COUNT(case_kinds); i++) {
        if (!str_eq_c(str_take(line, space), case_kinds[i].name)) {
            continue;
        }
        void *value = NULL;
        struct err err;
        struct str text = str_skip(line, space + 1);
        if (rc_failed(decode_json(arena, case_kinds[i].schema, text, &value, &err))) {
            printf("not decoded: %s\n", err.text);
            return;
        }
        case_kinds[i].answer(arena, value);
        return;
    }
    puts("no such kind of case");
}

int main(int argc, char **argv)
{
    FILE *cases = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (cases == NULL) {
        (void)fputs("usage: compare_main CASES\n", stderr);
        return 2;
    }
    struct arena arena;
    arena_init(&arena);
    char *line = NULL;
    size_t line_bytes = 0;
    ssize_t len = getline(&line, &line_bytes, cases);
    for (; len > 0; len = getline(&line, &line_bytes, cases)) {
        answer_line(&arena, (struct str){line, (size_t)len - (line[len - 1] == '\n')});
        arena_reset(&arena);
    }
    free(line);
    arena_deinit(&arena);
    (void)fclose(cases);
    return 0;
}
