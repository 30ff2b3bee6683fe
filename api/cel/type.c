#include "type.h"

#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"

const struct cel_type cel_type_error = {.kind = CEL_T_ERROR};
const struct cel_type cel_type_dyn = {.kind = CEL_T_DYN};
const struct cel_type cel_type_null = {.kind = CEL_T_NULL};
const struct cel_type cel_type_bool = {.kind = CEL_T_BOOL};
const struct cel_type cel_type_int = {.kind = CEL_T_INT};
const struct cel_type cel_type_uint = {.kind = CEL_T_UINT};
const struct cel_type cel_type_double = {.kind = CEL_T_DOUBLE};
const struct cel_type cel_type_string = {.kind = CEL_T_STRING};
const struct cel_type cel_type_bytes = {.kind = CEL_T_BYTES};
const struct cel_type cel_type_duration = {.kind = CEL_T_DURATION};
const struct cel_type cel_type_timestamp = {.kind = CEL_T_TIMESTAMP};
const struct cel_type cel_type_quantity = {.kind = CEL_T_QUANTITY};
const struct cel_type cel_type_semver = {.kind = CEL_T_SEMVER};
const struct cel_type cel_type_device = {.kind = CEL_T_DEVICE};
const struct cel_type cel_type_of_dyn = {.kind = CEL_T_TYPE, .inner = {&cel_type_dyn, NULL}};
const struct cel_type cel_type_any_list = {.kind = CEL_T_LIST, .inner = {&cel_type_dyn, NULL}};
const struct cel_type cel_type_any_map = {.kind = CEL_T_MAP,
                                          .inner = {&cel_type_dyn, &cel_type_dyn}};
const struct cel_type cel_type_any_optional = {.kind = CEL_T_OPTIONAL,
                                               .inner = {&cel_type_dyn, NULL}};

static bool assignable(struct cel_solver *solver, const struct cel_type *to,
                       const struct cel_type *from);

const struct cel_type *cel_type_new(struct arena *arena, enum cel_type_kind kind,
                                    const struct cel_type *first, const struct cel_type *second)
{
    struct cel_type *type = ARENA_NEW(arena, struct cel_type);
    type->kind = kind;
    type->inner[0] = first;
    type->inner[1] = second;
    return type;
}

const struct cel_type *cel_solver_fresh(struct cel_solver *solver)
{
    solver->known = arena_grow(solver->arena, (void *)solver->known, solver->count,
                               &solver->capacity, sizeof(*solver->known));
    solver->known[solver->count] = NULL;
    struct cel_type *type = ARENA_NEW(solver->arena, struct cel_type);
    type->kind = CEL_T_PARAM;
    type->param = solver->count++;
    return type;
}

static void learn(struct cel_solver *solver, const struct cel_type *param,
                  const struct cel_type *type)
{
    solver->log = arena_grow(solver->arena, solver->log, solver->log_count, &solver->log_capacity,
                             sizeof(*solver->log));
    solver->log[solver->log_count++] =
        (struct cel_undo){.param = param->param, .before = solver->known[param->param]};
    solver->known[param->param] = type;
}

static void undo(struct cel_solver *solver, uint32_t mark)
{
    while (solver->log_count > mark) {
        struct cel_undo *last = &solver->log[--solver->log_count];
        solver->known[last->param] = last->before;
    }
}

static uint32_t inner_count(const struct cel_type *type)
{
    return type->inner[0] == NULL ? 0 : type->inner[1] == NULL ? 1 : 2;
}

bool cel_type_equal(const struct cel_type *a, const struct cel_type *b, bool same_params)
{
    if (a == b) {
        return true;
    }
    if (a->kind != b->kind || inner_count(a) != inner_count(b)) {
        return false;
    }
    if (same_params && a->kind == CEL_T_PARAM && a->param != b->param) {
        return false;
    }
    for (uint32_t i = 0; i < inner_count(a); i++) {
        if (!cel_type_equal(a->inner[i], b->inner[i], same_params)) {
            return false;
        }
    }
    return true;
}

static bool is_equal_or_more_general(const struct cel_type *a, const struct cel_type *b)
{
    if (a->kind == CEL_T_DYN || a->kind == CEL_T_PARAM) {
        return true;
    }
    if (b->kind == CEL_T_DYN || b->kind == CEL_T_PARAM || a->kind != b->kind) {
        return false;
    }
    if (a->kind != CEL_T_LIST && a->kind != CEL_T_MAP && a->kind != CEL_T_OPTIONAL) {
        return a->kind == CEL_T_TYPE || cel_type_equal(a, b, true);
    }
    for (uint32_t i = 0; i < inner_count(a); i++) {
        if (!is_equal_or_more_general(a->inner[i], b->inner[i])) {
            return false;
        }
    }
    return true;
}

const struct cel_type *cel_type_most_general(const struct cel_type *a, const struct cel_type *b)
{
    return is_equal_or_more_general(a, b) ? a : b;
}

/* The occurs check: a parameter never stands for something that contains it. */
static bool is_absent_from(struct cel_solver *solver, const struct cel_type *param,
                           const struct cel_type *within)
{
    if (++solver->steps > CEL_CHECK_STEPS_MAX) {
        return false;
    }
    if (cel_type_equal(param, within, true)) {
        return false;
    }
    if (within->kind == CEL_T_PARAM) {
        const struct cel_type *known = solver->known[within->param];
        return known == NULL || is_absent_from(solver, param, known);
    }
    for (uint32_t i = 0; i < inner_count(within); i++) {
        if (!is_absent_from(solver, param, within->inner[i])) {
            return false;
        }
    }
    return true;
}

/* Whether the parameter can stand for `type`; *ret_was_known: it stood for something already. */
static bool bind_param(struct cel_solver *solver, const struct cel_type *type,
                       const struct cel_type *param, bool *ret_was_known)
{
    *ret_was_known = true;
    if (cel_type_equal(type, param, true)) {
        return true;
    }
    const struct cel_type *known = solver->known[param->param];
    if (known == NULL) {
        *ret_was_known = false;
        if (!is_absent_from(solver, param, type)) {
            return false;
        }
        learn(solver, param, type);
        return true;
    }
    if (cel_type_equal(type, known, true)) {
        return true;
    }
    if (!assignable(solver, type, known)) {
        return false;
    }
    const struct cel_type *general = cel_type_most_general(type, known);
    if (is_absent_from(solver, param, general)) {
        learn(solver, param, general);
    }
    return true;
}

static bool is_nullable(const struct cel_type *type)
{
    switch (type->kind) {
    case CEL_T_NULL:
    case CEL_T_OPTIONAL:
    case CEL_T_QUANTITY:
    case CEL_T_SEMVER:
    case CEL_T_DEVICE:
    case CEL_T_DURATION:
    case CEL_T_TIMESTAMP:
        return true;
    case CEL_T_ERROR:
    case CEL_T_DYN:
    case CEL_T_BOOL:
    case CEL_T_INT:
    case CEL_T_UINT:
    case CEL_T_DOUBLE:
    case CEL_T_STRING:
    case CEL_T_BYTES:
    case CEL_T_LIST:
    case CEL_T_MAP:
    case CEL_T_TYPE:
    case CEL_T_PARAM:
        break;
    }
    return false;
}

static bool is_wild(const struct cel_type *type)
{
    return type->kind == CEL_T_DYN || type->kind == CEL_T_ERROR;
}

static bool assignable_inner(struct cel_solver *solver, const struct cel_type *to,
                             const struct cel_type *from)
{
    if (to->kind == CEL_T_TYPE) {
        return true;
    }
    for (uint32_t i = 0; i < inner_count(to); i++) {
        if (!assignable(solver, to->inner[i], from->inner[i])) {
            return false;
        }
    }
    return true;
}

static bool assignable(struct cel_solver *solver, const struct cel_type *to,
                       const struct cel_type *from)
{
    bool was_known = false;
    if (++solver->steps > CEL_CHECK_STEPS_MAX) {
        return false;
    }
    if (from->kind == CEL_T_PARAM) {
        if (bind_param(solver, to, from, &was_known)) {
            return true;
        }
        if (was_known) {
            return false;
        }
    }
    if (to->kind == CEL_T_PARAM) {
        return bind_param(solver, from, to, &was_known);
    }
    if (is_wild(to) || is_wild(from)) {
        return true;
    }
    if (to->kind == CEL_T_NULL || from->kind == CEL_T_NULL) {
        return is_nullable(to->kind == CEL_T_NULL ? from : to);
    }
    return to->kind == from->kind && assignable_inner(solver, to, from);
}

bool cel_solver_assignable(struct cel_solver *solver, const struct cel_type *to,
                           const struct cel_type *from)
{
    uint32_t mark = solver->log_count;
    if (assignable(solver, to, from)) {
        return true;
    }
    undo(solver, mark);
    return false;
}

bool cel_solver_assignable_list(struct cel_solver *solver, const struct cel_type *const *to,
                                const struct cel_type *const *from, uint32_t count)
{
    uint32_t mark = solver->log_count;
    for (uint32_t i = 0; i < count; i++) {
        if (!assignable(solver, to[i], from[i])) {
            undo(solver, mark);
            return false;
        }
    }
    return true;
}

const struct cel_type *cel_solver_resolve(struct cel_solver *solver, const struct cel_type *type,
                                          bool to_dyn)
{
    if (++solver->steps > CEL_CHECK_STEPS_MAX) {
        return &cel_type_error;
    }
    if (type->kind == CEL_T_PARAM) {
        const struct cel_type *known = solver->known[type->param];
        if (known != NULL) {
            return cel_solver_resolve(solver, known, to_dyn);
        }
        return to_dyn ? &cel_type_dyn : type;
    }
    const struct cel_type *inner[2] = {NULL, NULL};
    bool changed = false;
    for (uint32_t i = 0; i < inner_count(type); i++) {
        inner[i] = cel_solver_resolve(solver, type->inner[i], to_dyn);
        changed = changed || inner[i] != type->inner[i];
    }
    return changed ? cel_type_new(solver->arena, type->kind, inner[0], inner[1]) : type;
}

static const char *const type_names[] = {
    [CEL_T_ERROR] = "error",
    [CEL_T_DYN] = "dyn",
    [CEL_T_NULL] = "null",
    [CEL_T_BOOL] = "bool",
    [CEL_T_INT] = "int",
    [CEL_T_UINT] = "uint",
    [CEL_T_DOUBLE] = "double",
    [CEL_T_STRING] = "string",
    [CEL_T_BYTES] = "bytes",
    [CEL_T_DURATION] = "duration",
    [CEL_T_TIMESTAMP] = "timestamp",
    [CEL_T_LIST] = "list",
    [CEL_T_MAP] = "map",
    [CEL_T_TYPE] = "type",
    [CEL_T_OPTIONAL] = "optional",
    [CEL_T_QUANTITY] = "quantity",
    [CEL_T_SEMVER] = "semver",
    [CEL_T_DEVICE] = "device",
    [CEL_T_PARAM] = "any type",
};

static void type_text(struct text *text, const struct cel_type *type, uint32_t depth)
{
    text_addf(text, "%s", type_names[type->kind]);
    if (inner_count(type) == 0 || depth > CEL_DEPTH_MAX) {
        return;
    }
    text_addf(text, "(");
    for (uint32_t i = 0; i < inner_count(type); i++) {
        text_add(text, i > 0 ? STR(", ") : STR(""));
        type_text(text, type->inner[i], depth + 1);
    }
    text_addf(text, ")");
}

struct str cel_type_text(struct arena *arena, const struct cel_type *type)
{
    struct text text;
    text_init(&text, arena, CEL_TYPE_TEXT_MAX_BYTES);
    type_text(&text, type, 0);
    return text_str(&text);
}
