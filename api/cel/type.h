/* type.h - static types and their unification, after cel-go's checker/types.go. */
#pragma once

#include "tallyman/base/arena.h"

enum cel_type_kind {
    CEL_T_ERROR,
    CEL_T_DYN,
    CEL_T_NULL,
    CEL_T_BOOL,
    CEL_T_INT,
    CEL_T_UINT,
    CEL_T_DOUBLE,
    CEL_T_STRING,
    CEL_T_BYTES,
    CEL_T_DURATION,
    CEL_T_TIMESTAMP,
    CEL_T_LIST,
    CEL_T_MAP,
    CEL_T_TYPE,
    CEL_T_OPTIONAL,
    CEL_T_QUANTITY, /* this and the next two are objects, so null may stand for them */
    CEL_T_SEMVER,
    CEL_T_DEVICE,
    CEL_T_PARAM, /* a type that is still to be found out */
};

struct cel_type {
    enum cel_type_kind kind;
    uint32_t param; /* CEL_T_PARAM: its number */
    const struct cel_type
        *inner[2]; /* list and optional: element; map: key, value; type: of what */
};

/* What is known about each parameter, with a log so that a failed attempt can be undone. */
struct cel_solver {
    struct arena *arena; /* borrowed */
    const struct cel_type **known;
    uint32_t count;
    uint32_t capacity;
    struct cel_undo *log;
    uint32_t log_count;
    uint32_t log_capacity;
    uint32_t steps; /* bounded by CEL_CHECK_STEPS_MAX */
};

struct cel_undo {
    uint32_t param;
    const struct cel_type *before;
};

extern const struct cel_type cel_type_error, cel_type_dyn, cel_type_null, cel_type_bool,
    cel_type_int, cel_type_uint, cel_type_double, cel_type_string, cel_type_bytes,
    cel_type_duration, cel_type_timestamp, cel_type_quantity, cel_type_semver, cel_type_device,
    cel_type_of_dyn, cel_type_any_list, cel_type_any_map, cel_type_any_optional;

const struct cel_type *cel_type_new(struct arena *arena, enum cel_type_kind kind,
                                    const struct cel_type *first, const struct cel_type *second);
const struct cel_type *cel_solver_fresh(struct cel_solver *solver);
/* Whether `from` and `to` can be made to agree; what was learned is kept only if they do. */
bool cel_solver_assignable(struct cel_solver *solver, const struct cel_type *to,
                           const struct cel_type *from);
bool cel_solver_assignable_list(struct cel_solver *solver, const struct cel_type *const *to,
                                const struct cel_type *const *from, uint32_t count);
/* `type` with what is known filled in; `to_dyn`: what isn't becomes dyn. */
const struct cel_type *cel_solver_resolve(struct cel_solver *solver, const struct cel_type *type,
                                          bool to_dyn);
const struct cel_type *cel_type_most_general(const struct cel_type *a, const struct cel_type *b);
/* Equal; `same_params`: parameters must be the same ones too. */
bool cel_type_equal(const struct cel_type *a, const struct cel_type *b, bool same_params);
/* "list(int)", for messages. Returns a view in the arena. */
struct str cel_type_text(struct arena *arena, const struct cel_type *type);
