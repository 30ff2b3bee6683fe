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

static struct rc compile(struct cel_program *program, struct err *err)
{
    struct cel_check check = {
        .arena = &program->arena, .source = program->source, .solver = {.arena = &program->arena}};
    TRY(cel_parse(&program->arena, program->source, &program->root, err));
    TRY(cel_check_tree(&check, program->root, err));
    program->slot_count = check.slot_count;
    return cel_plan_tree(&check, program->root, err);
}

struct rc cel_compile(struct str expression, struct cel_program **ret_program, struct err *err)
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
    struct rc rc = compile(program, err);
    if (rc_failed(rc)) {
        cel_program_free(program);
        return rc;
    }
    *ret_program = program;
    return RC_SUCCESS;
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

struct rc cel_matches(const struct cel_program *program, const struct cel_device *device,
                      struct arena *scratch, bool *ret_matches, struct err *err)
{
    struct str bad;
    if (!cel_device_is_sound(device->device, &bad)) {
        return err_set(err, RC_INVALID,
                       "attribute %.*s of device %.*s isn't a semantic version "
                       "such as 1.2.3, nor any other value",
                       STR_ARG(bad), STR_ARG(device->device->name));
    }
    struct cel_eval ev = {.device = device, .scratch = scratch};
    ev.slots = ARENA_ARRAY(scratch, struct cel_slot, program->slot_count);
    struct cel_value value = cel_eval_node(&ev, program->root);
    if (ev.stop != RC_OK) {
        return err_set(err, ev.stop, "the expression can't be evaluated: %s", ev.stop_text);
    }
    while (value.kind == CEL_OPTIONAL && value.optional != NULL) {
        value = *value.optional;
    }
    if (value.kind == CEL_ERROR) {
        return fault_text(program, value.fault, scratch, err);
    }
    if (value.kind != CEL_BOOL) {
        struct str kind = cel_kind_name(value.kind);
        return err_set(err, RC_INVALID, "the expression gives a %.*s instead of true or false",
                       STR_ARG(kind));
    }
    *ret_matches = value.boolean;
    return RC_SUCCESS;
}
