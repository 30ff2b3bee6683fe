#include "tallyman/api/cel.h"

#include "check.h"
#include "eval.h"
#include "parser.h"
#include "plan.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "utf8.h"

struct cel_program {
    struct arena arena;    /* the tree and its constants */
    struct str source;     /* in the arena */
    struct cel_node *root; /* in the arena */
    uint32_t slot_count;
};

static struct rc compile(struct cel_program *program, enum cel_purpose purpose, struct err *err)
{
    struct cel_check check = {.arena = &program->arena,
                              .source = program->source,
                              .purpose = purpose,
                              .solver = {.arena = &program->arena}};
    TRY(cel_parse(&program->arena, program->source, &program->root, err));
    TRY(cel_check_tree(&check, program->root, err));
    program->slot_count = check.slot_count;
    return cel_plan_tree(&check, program->root, err);
}

struct rc cel_compile_rule(struct str expression, enum cel_purpose purpose,
                           struct cel_program **ret_program, struct err *err)
{
    if (expression.len > CEL_EXPRESSION_MAX_BYTES) {
        return err_set(err, RC_LIMIT, "the expression has %zu bytes; at most %u are allowed",
                       expression.len, CEL_EXPRESSION_MAX_BYTES);
    }
    if (!utf8_is_sound(expression)) {
        return err_set(err, RC_INVALID, "the expression is no UTF-8 text");
    }
    struct cel_program *program = MEM_NEW(struct cel_program);
    arena_init(&program->arena);
    program->source = arena_copy_str(&program->arena, expression);
    struct rc rc = compile(program, purpose, err);
    if (rc_failed(rc)) {
        cel_program_free(program);
        return rc;
    }
    *ret_program = program;
    return RC_SUCCESS;
}

struct rc cel_compile(struct str expression, struct cel_program **ret_program, struct err *err)
{
    return cel_compile_rule(expression, CEL_DEVICE_SELECTOR, ret_program, err);
}

void cel_program_free(struct cel_program *program)
{
    if (program != NULL) {
        arena_deinit(&program->arena);
        mem_free(program);
    }
}

static struct rc fault_text(const struct cel_program *program, const struct cel_fault *fault,
                            struct arena *scratch, struct err *err)
{
    struct str at = cel_position_text(scratch, program->source, fault->position);
    struct str detail = str_cut_utf8(fault->detail, ERR_TEXT_MAX_BYTES / 4);
    return err_set(err, RC_INVALID, "%.*s: %s%s%.*s", STR_ARG(at), fault->what,
                   detail.len > 0 ? " " : "", STR_ARG(detail));
}

/* The value of the whole; no error, and no optional. */
static struct rc evaluate(const struct cel_program *program, struct cel_eval *ev,
                          struct cel_value *ret_value, struct err *err)
{
    ev->slots = ARENA_ARRAY(ev->scratch, struct cel_slot, program->slot_count);
    struct cel_value value = cel_eval_node(ev, program->root);
    if (ev->stop != RC_OK) {
        return err_set(err, ev->stop, "the expression can't be evaluated: %s", ev->stop_text);
    }
    while (value.kind == CEL_OPTIONAL && value.optional != NULL) {
        value = *value.optional;
    }
    if (value.kind == CEL_ERROR) {
        return fault_text(program, value.fault, ev->scratch, err);
    }
    *ret_value = value;
    return RC_SUCCESS;
}

static struct rc refuse_kind(struct cel_value value, const char *wanted, struct err *err)
{
    return err_set(err, RC_INVALID, "the expression must give %s; the type of this one is %.*s",
                   wanted, STR_ARG(cel_kind_name(value.kind)));
}

struct rc cel_matches(const struct cel_program *program, const struct cel_device *device,
                      struct arena *scratch, bool *ret_matches, struct err *err)
{
    uint64_t cost = 0;
    return cel_matches_at_cost(program, device, scratch, &cost, ret_matches, err);
}

struct rc cel_matches_at_cost(const struct cel_program *program, const struct cel_device *device,
                              struct arena *scratch, uint64_t *cost, bool *ret_matches,
                              struct err *err)
{
    struct str bad;
    if (!cel_device_is_sound(device->device, &bad)) {
        return err_set(err, RC_INVALID,
                       "attribute %.*s of device %.*s isn't a semantic version "
                       "such as 1.2.3, nor any other value",
                       STR_ARG(bad), STR_ARG(device->device->name));
    }
    struct cel_eval ev = {.device = device, .scratch = scratch};
    struct cel_value value;
    struct rc rc = evaluate(program, &ev, &value, err);
    *cost += ev.cost > ev.work / 10 ? ev.cost : ev.work / 10;
    TRY(rc);
    if (value.kind != CEL_BOOL) {
        return refuse_kind(value, "true or false", err);
    }
    *ret_matches = value.boolean;
    return RC_SUCCESS;
}

static struct rc evaluate_rule(const struct cel_program *program, const struct json_tree *self,
                               struct arena *scratch, struct cel_value *ret_value, struct err *err)
{
    struct cel_eval ev = {.scratch = scratch};
    ev.self = cel_json_value(&ev, self);
    return evaluate(program, &ev, ret_value, err);
}

struct rc cel_rule_holds(const struct cel_program *program, const struct json_tree *self,
                         struct arena *scratch, bool *ret_holds, struct err *err)
{
    struct cel_value value;
    TRY(evaluate_rule(program, self, scratch, &value, err));
    if (value.kind != CEL_BOOL) {
        return refuse_kind(value, "true or false", err);
    }
    *ret_holds = value.boolean;
    return RC_SUCCESS;
}

struct rc cel_rule_message(const struct cel_program *program, const struct json_tree *self,
                           struct arena *scratch, struct str *ret_text, struct err *err)
{
    struct cel_value value;
    TRY(evaluate_rule(program, self, scratch, &value, err));
    if (value.kind != CEL_STRING) {
        return refuse_kind(value, "a text", err);
    }
    *ret_text = value.text;
    return RC_SUCCESS;
}
