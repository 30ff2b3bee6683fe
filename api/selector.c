#include "tallyman/api/selector.h"

#define LABEL_NAME_MAX_BYTES   63
#define LABEL_PREFIX_MAX_BYTES 253

/* -- what a label's key and value may be ------------------------------------------------------- */

/* A requirement with a key or value that no label can have makes its whole selector or term match
 * nothing, `NotIn` and `DoesNotExist` included (apimachinery labels.NewRequirement). */

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

static bool is_name_part(struct str text)
{
    if (text.len == 0 || text.len > LABEL_NAME_MAX_BYTES || !is_alnum(text.ptr[0]) ||
        !is_alnum(text.ptr[text.len - 1])) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!is_alnum(c) && c != '-' && c != '_' && c != '.') {
            return false;
        }
    }
    return true;
}

/* A DNS subdomain: lower-case labels joined by dots, each begun and ended by a letter or digit. */
static bool is_subdomain(struct str text)
{
    if (text.len == 0 || text.len > LABEL_PREFIX_MAX_BYTES) {
        return false;
    }
    bool was_edge = true; /* at a label's start, where '-' and '.' may not be */
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_last = i + 1 == text.len || text.ptr[i + 1] == '.';
        if (c == '-' ? (was_edge || is_last) : c == '.' ? was_edge : !is_lower_alnum(c)) {
            return false;
        }
        was_edge = c == '.';
    }
    return !was_edge;
}

bool label_key_is_valid(struct str key)
{
    size_t slash = str_find_char(key, '/');
    if (slash == key.len) {
        return is_name_part(key);
    }
    return is_subdomain(str_take(key, slash)) && is_name_part(str_skip(key, slash + 1));
}

static bool is_label_value(struct str value)
{
    return value.len == 0 || is_name_part(value);
}

/* -- requirements ------------------------------------------------------------------------------ */

/* Each of these is false for a requirement that is malformed, too. */

static bool list_has(const struct str_list *list, struct str value)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (str_eq(list->items[i], value)) {
            return true;
        }
    }
    return false;
}

static bool match_number(const struct match_expression *expression, struct str label)
{
    int64_t wanted = 0;
    int64_t found = 0;
    if (expression->values.count != 1 || !str_to_i64(expression->values.items[0], &wanted) ||
        !str_is_set(label) || !str_to_i64(label, &found)) {
        return false;
    }
    return str_eq_c(expression->op, "Gt") ? found > wanted : found < wanted;
}

static bool match_set(const struct match_expression *expression, struct str label)
{
    if (expression->values.count == 0) {
        return false;
    }
    bool is_in = str_is_set(label) && list_has(&expression->values, label);
    return is_in == str_eq_c(expression->op, "In");
}

static bool match_presence(const struct match_expression *expression, struct str label)
{
    return expression->values.count == 0 && str_is_set(label) == str_eq_c(expression->op, "Exists");
}

static bool requirement_is_well_formed(const struct match_expression *expression)
{
    if (!label_key_is_valid(expression->key)) {
        return false;
    }
    for (uint32_t i = 0; i < expression->values.count; i++) {
        if (!is_label_value(expression->values.items[i])) {
            return false;
        }
    }
    return true;
}

/* Gt and Lt are known to node selectors only. */
static bool match_requirement(const struct match_expression *expression,
                              const struct string_map *labels, bool with_numbers)
{
    if (!requirement_is_well_formed(expression)) {
        return false;
    }
    struct str label = string_map_find(labels, expression->key);
    struct str op = expression->op;
    if (str_eq_c(op, "In") || str_eq_c(op, "NotIn")) {
        return match_set(expression, label);
    }
    if (str_eq_c(op, "Exists") || str_eq_c(op, "DoesNotExist")) {
        return match_presence(expression, label);
    }
    return with_numbers && (str_eq_c(op, "Gt") || str_eq_c(op, "Lt")) &&
           match_number(expression, label);
}

bool node_labels_contain(const struct string_map *wanted, const struct string_map *labels)
{
    for (uint32_t i = 0; i < wanted->count; i++) {
        struct str label = string_map_find(labels, wanted->items[i].key);
        if (!str_is_set(label) || !str_eq(label, wanted->items[i].value)) {
            return false;
        }
    }
    return true;
}

/* -- label selectors --------------------------------------------------------------------------- */

bool label_selector_matches(const struct label_selector *selector, const struct string_map *labels)
{
    if (selector == NULL) {
        return false;
    }
    /* A malformed pair needs no check here: no real label equals it. */
    if (!node_labels_contain(&selector->match_labels, labels)) {
        return false;
    }
    for (uint32_t i = 0; i < selector->match_expressions.count; i++) {
        if (!match_requirement(&selector->match_expressions.items[i], labels, false)) {
            return false;
        }
    }
    return true;
}

/* -- node selectors ---------------------------------------------------------------------------- */

static bool match_field(const struct match_expression *expression, struct str node_name)
{
    bool is_in = str_eq_c(expression->op, "In");
    if ((!is_in && !str_eq_c(expression->op, "NotIn")) || expression->values.count != 1) {
        return false;
    }
    /* A node without a name has no fields, and matchFields aren't looked at then. */
    if (str_is_empty(node_name)) {
        return true;
    }
    /* Any other field is empty on every node. */
    struct str field = str_eq_c(expression->key, "metadata.name") ? node_name : STR("");
    return str_eq(field, expression->values.items[0]) == is_in;
}

static bool term_matches(const struct node_selector_term *term, const struct string_map *labels,
                         struct str node_name)
{
    if (term->match_expressions.count == 0 && term->match_fields.count == 0) {
        return false;
    }
    for (uint32_t i = 0; i < term->match_expressions.count; i++) {
        if (!match_requirement(&term->match_expressions.items[i], labels, true)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < term->match_fields.count; i++) {
        if (!match_field(&term->match_fields.items[i], node_name)) {
            return false;
        }
    }
    return true;
}

bool node_selector_matches(const struct node_selector *selector, const struct string_map *labels,
                           struct str node_name)
{
    if (selector == NULL) {
        return true;
    }
    for (uint32_t i = 0; i < selector->node_selector_terms.count; i++) {
        if (term_matches(&selector->node_selector_terms.items[i], labels, node_name)) {
            return true;
        }
    }
    return false;
}

/* -- taints ------------------------------------------------------------------------------------ */

bool toleration_tolerates(const struct toleration *toleration, const struct taint *taint)
{
    if (!str_is_empty(toleration->effect) && !str_eq(toleration->effect, taint->effect)) {
        return false;
    }
    if (!str_is_empty(toleration->key) && !str_eq(toleration->key, taint->key)) {
        return false;
    }
    if (str_is_empty(toleration->op) || str_eq_c(toleration->op, "Equal")) {
        return str_eq(toleration->value, taint->value);
    }
    /* Gt and Lt are behind a feature gate that is off by default. */
    return str_eq_c(toleration->op, "Exists");
}

static bool is_tolerated(const struct taint *taint, const struct toleration_list *tolerations)
{
    for (uint32_t i = 0; i < tolerations->count; i++) {
        if (toleration_tolerates(&tolerations->items[i], taint)) {
            return true;
        }
    }
    return false;
}

const struct taint *taints_find_untolerated(const struct taint_list *taints,
                                            const struct toleration_list *tolerations)
{
    for (uint32_t i = 0; i < taints->count; i++) {
        const struct taint *taint = &taints->items[i];
        bool is_strict =
            str_eq_c(taint->effect, "NoSchedule") || str_eq_c(taint->effect, "NoExecute");
        if (is_strict && !is_tolerated(taint, tolerations)) {
            return taint;
        }
    }
    return NULL;
}
