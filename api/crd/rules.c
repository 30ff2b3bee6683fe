/* rules.c - x-kubernetes-validations. */
#include "crd.h"
#include "tallyman/api/cel.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/text.h"

#define MESSAGE_MAX_BYTES 500

void crd_rules_deinit(struct crd_rules *rules)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        cel_program_free(rules->items[i].program);
    }
    mem_free(rules->items);
}

/* Borrowed from the set. */
static struct rc find_program(struct crd_check *check, const struct json_tree *text,
                              enum cel_purpose purpose, const struct cel_program **ret_program)
{
    struct crd_rules *rules = crd_rules_of(check->set);
    for (uint32_t i = 0; i < rules->count; i++) {
        if (rules->items[i].text == text) {
            *ret_program = rules->items[i].program;
            return RC_SUCCESS;
        }
    }
    struct cel_program *program = NULL;
    TRY(cel_compile_rule(text->text, purpose, &program, check->err));
    rules->items = mem_grow(rules->items, rules->count, &rules->capacity, sizeof(rules->items[0]));
    rules->items[rules->count++] = (struct crd_rule){text, program};
    *ret_program = program;
    return RC_SUCCESS;
}

/* A message that goes on behind what it speaks of: "is not a duration; write …". */
static bool is_predicate(struct str message)
{
    static const struct str verbs[] = {STR_INIT("is "), STR_INIT("has "), STR_INIT("names "),
                                       STR_INIT("begins ")};
    for (size_t i = 0; i < ARRAY_COUNT(verbs); i++) {
        if (str_starts_with(message, verbs[i])) {
            return true;
        }
    }
    return false;
}

/* Whether the message begins with the path's last name. */
static bool repeats_name(struct str path, struct str message)
{
    size_t end = str_find_char(message, ' ');
    return end < path.len && str_ends_with(path, str_take(message, end)) &&
           path.ptr[path.len - end - 1] == '.';
}

/* Where the field that the rule names stands, as far as it is there. */
static const struct json_tree *find_field(const struct json_tree *value, struct str field_path)
{
    while (field_path.len > 0) {
        field_path = str_skip(field_path, 1);
        size_t end = str_find_char(field_path, '.');
        const struct json_tree *inner = json_tree_find(value, str_take(field_path, end));
        if (inner == NULL) {
            break;
        }
        value = inner;
        field_path = str_skip(field_path, end);
    }
    return value;
}

static struct rc refuse_rule(struct crd_check *check, const struct json_tree *rule,
                             const struct json_tree *value, struct str path)
{
    struct str message = crd_text(rule, "message");
    struct str field_path = crd_text(rule, "fieldPath");
    const struct json_tree *expression = json_tree_find(rule, STR("messageExpression"));
    if (expression != NULL) {
        const struct cel_program *program = NULL;
        TRY(find_program(check, expression, CEL_MESSAGE, &program));
        TRY(cel_rule_message(program, value, check->scratch, &message, check->err));
        message = text_quote(check->scratch, message, MESSAGE_MAX_BYTES);
    }
    value = find_field(value, field_path);
    if (field_path.len > 0) {
        path = crd_join(check, path, str_skip(field_path, 1));
    }
    if (str_eq_c(crd_text(rule, "reason"), "FieldValueRequired")) {
        return crd_refuse(check, value, STR_FMT " is missing; " STR_FMT, STR_ARG(path),
                          STR_ARG(message));
    }
    if (str_is_empty(path)) {
        return crd_refuse(check, value, STR_FMT, STR_ARG(message));
    }
    if (repeats_name(path, message)) { /* spec.requeue.base: base 2h is longer than max 1h */
        path = str_take(path, path.len - str_find_char(message, ' '));
        return crd_refuse(check, value, STR_FMT STR_FMT, STR_ARG(path), STR_ARG(message));
    }
    if (value->kind != TOKEN_OBJECT_START && value->kind != TOKEN_ARRAY_START &&
        is_predicate(message)) {
        return crd_refuse(check, value, STR_FMT ": " STR_FMT " " STR_FMT, STR_ARG(path),
                          STR_ARG(crd_quote(check, value)), STR_ARG(message));
    }
    return crd_refuse(check, value, STR_FMT "%s " STR_FMT, STR_ARG(path),
                      is_predicate(message) ? "" : ":", STR_ARG(message));
}

/* A rule that can't be evaluated refuses, as on the server. */
struct rc crd_check_rules(struct crd_check *check, const struct json_tree *schema,
                          const struct json_tree *value, struct str path)
{
    const struct json_tree *rules = json_tree_find(schema, STR("x-kubernetes-validations"));
    for (const struct json_tree *rule = rules == NULL ? NULL : rules->first; rule != NULL;
         rule = rule->next) {
        const struct cel_program *program = NULL;
        bool holds = false;
        TRY(find_program(check, json_tree_find(rule, STR("rule")), CEL_RULE, &program));
        struct rc rc = cel_rule_holds(program, value, check->scratch, &holds, check->err);
        if (rc_failed(rc)) {
            check->line = value->line;
            return err_prefix(check->err, rc, STR_FMT ": the rule \"" STR_FMT "\"", STR_ARG(path),
                              STR_ARG(str_cut_utf8(crd_text(rule, "message"), 200)));
        }
        if (!holds) {
            return refuse_rule(check, rule, value, path);
        }
    }
    return RC_SUCCESS;
}
