/* eval.h - one evaluation: the device, the variables, and what it may cost.
 *
 * Cost counts as cel-go's interpreter/runtimecost.go and Kubernetes' library/cost.go do, and is
 * charged before the work is done. Work and memory have bounds of their own, because some things
 * that are free there are not free here. Past any bound the evaluation stops: that is no value that
 * && could absorb. */
#pragma once

#include "node.h"
#include "tallyman/api/cel.h"

enum cel_slot_state { CEL_SLOT_EMPTY, CEL_SLOT_PENDING, CEL_SLOT_SET };

struct cel_slot {
    enum cel_slot_state state;
    const struct cel_node *init; /* evaluated when first read, while pending */
    struct cel_value value;
};

struct cel_eval {
    const struct cel_device *device; /* borrowed; NULL while compiling, and in a rule */
    struct cel_value self;           /* in a rule */
    struct arena *scratch;           /* borrowed */
    struct cel_slot *slots;
    uint64_t cost;
    uint64_t work;
    size_t bytes;
    enum rc_code stop;        /* RC_OK: going on */
    const char *stop_text;    /* static */
    struct cel_fault stopped; /* what an evaluation that ended gives */
};

struct cel_value cel_eval_node(struct cel_eval *ev, const struct cel_node *node);

/* An error value; `what` is static, `detail` lives as long as the evaluation. */
struct cel_value cel_fault(struct cel_eval *ev, const char *what, struct str detail);
struct cel_value cel_no_overload(struct cel_eval *ev);
/* Ends the evaluation; the value returned is an error. */
struct cel_value cel_stop(struct cel_eval *ev, enum rc_code code, const char *text);
/* False: past the bound, the evaluation has stopped. */
NODISCARD bool cel_charge(struct cel_eval *ev, uint64_t cost);
NODISCARD bool cel_work(struct cel_eval *ev, uint64_t elements);
/* Zeroed memory of the evaluation; NULL: past the bound, the evaluation has stopped. */
NODISCARD void *cel_alloc(struct cel_eval *ev, size_t count, size_t item_bytes);
/* A copy of `value` in the evaluation's memory; NULL as cel_alloc(). */
const struct cel_value *cel_box(struct cel_eval *ev, struct cel_value value);

/* chain.c: a root with fields and indexes; and the macros' loop. */
struct cel_value cel_eval_chain(struct cel_eval *ev, const struct cel_node *node);
/* fold.c */
struct cel_value cel_eval_fold(struct cel_eval *ev, const struct cel_node *node);
struct cel_value cel_eval_ident(struct cel_eval *ev, const struct cel_node *node);

/* call.c: strict functions. */
typedef struct cel_value cel_function_impl(struct cel_eval *ev, const struct cel_node *node,
                                           const struct cel_value *args, uint32_t count);
struct cel_value cel_eval_call(struct cel_eval *ev, const struct cel_node *node);
/* cost.c: what the call costs by its arguments; false: too much. */
NODISCARD bool cel_charge_call(struct cel_eval *ev, const struct cel_node *node,
                               const struct cel_value *args, uint32_t count);
uint64_t cel_size_cost(struct cel_eval *ev, struct cel_value value);

/* compare.c */
/* A bool, or an error where a quantity or version meets something else. */
struct cel_value cel_equal(struct cel_eval *ev, struct cel_value a, struct cel_value b);
/* Whether the two can be ordered; *ret_order is <0, 0 or >0. *ret_error is set where they can't. */
bool cel_order(struct cel_eval *ev, struct cel_value a, struct cel_value b, int *ret_order,
               struct cel_value *ret_error);
bool cel_is_comparable(enum cel_kind kind);

/* list.c */
struct cel_value cel_list_value(struct cel_eval *ev, const struct cel_value *items, uint32_t count);
struct cel_value cel_list_concat(struct cel_eval *ev, const struct cel_list *a,
                                 const struct cel_list *b);
/* Items for the caller to fill in before cel_list_value(); NULL as cel_alloc(). */
struct cel_value *cel_list_items(struct cel_eval *ev, size_t count);
bool cel_list_contains(struct cel_eval *ev, const struct cel_list *list, struct cel_value item);
/* Takes int, and uint and double that are whole; else *ret_error. */
bool cel_list_index(struct cel_eval *ev, struct cel_value index, int64_t *ret_index,
                    struct cel_value *ret_error);

/* map.c */
struct cel_value cel_map_new(struct cel_eval *ev, uint32_t capacity);
/* The map with the entry; replaces that of an equal key. May write behind the newest view's end. */
struct cel_value cel_map_put(struct cel_eval *ev, const struct cel_map *map, struct cel_value key,
                             struct cel_value value);
struct cel_value cel_map_drop(struct cel_eval *ev, const struct cel_map *map, struct cel_value key);
/* Finds as an index does: 1, 1u and 1.0 are the same key unless the map tells them apart. */
bool cel_map_find(struct cel_eval *ev, const struct cel_map *map, struct cel_value key,
                  struct cel_value *ret_value);
/* As `in` does: the domains of attributes and capacity must be there. */
bool cel_map_contains(struct cel_eval *ev, const struct cel_map *map, struct cel_value key);
/* The map as entries, in the device's order; NULL as cel_alloc(). */
const struct cel_map *cel_map_entries(struct cel_eval *ev, const struct cel_map *map);

/* json_value.c: maps, lists, texts, whole numbers as int and others as double. */
struct cel_value cel_json_value(struct cel_eval *ev, const struct json_tree *tree);

/* device_map.c */
struct cel_value cel_device_value(struct cel_eval *ev);
bool cel_device_map_find(struct cel_eval *ev, const struct cel_map *map, struct str key,
                         struct cel_value *ret_value);
bool cel_device_map_has_domain(const struct cel_eval *ev, const struct cel_map *map,
                               struct str domain);
struct cel_value cel_device_map_list(struct cel_eval *ev, const struct cel_map *map);
/* Every version must be one, whether it is read or not; false: *ret_name is the bad one. */
bool cel_device_is_sound(const struct device *device, struct str *ret_name);
