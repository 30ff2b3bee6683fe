/* meta.h - what all Kubernetes objects share, and how an optional field is kept.
 *
 * Every struct of an object kind begins with `struct object_meta meta`. All text and arrays are
 * borrowed from the arena that the object was decoded into. A text field that is absent has a NULL
 * pointer; numbers and flags that may be absent are `opt_…`; an absent nested object is NULL; an
 * absent list or map has items == NULL, an empty one has items != NULL and count 0. `null` in the
 * input means absent. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tallyman/base/str.h"

struct opt_bool {
    bool is_set;
    bool value;
};

struct opt_int {
    bool is_set;
    int64_t value;
};

struct opt_time {
    bool is_set;
    int64_t ms; /* since 1970 */
};

struct opt_duration {
    bool is_set;
    int64_t ms;
};

struct string_pair {
    struct str key;
    struct str value;
};

struct string_map {
    struct string_pair *items; /* in the order of the input */
    uint32_t count;
};

struct owner_reference {
    struct str api_version;
    struct str kind;
    struct str name;
    struct str uid;
    struct opt_bool controller;
};

struct owner_reference_list {
    struct owner_reference *items;
    uint32_t count;
};

struct object_meta {
    struct str name;
    struct str namespace_name;
    struct str uid;
    struct str resource_version;
    struct opt_int generation;
    struct opt_time creation_timestamp;
    struct opt_time deletion_timestamp;
    struct string_map labels;
    struct string_map annotations;
    struct owner_reference_list owner_references;
    struct str_list finalizers;
};

/* metav1.Condition, and the older ones of Pod, Node and Job. */
struct condition {
    struct str type;
    struct str status; /* "True", "False", "Unknown" */
    struct str reason;
    struct str message;
    struct opt_int observed_generation;
    struct opt_time last_transition_time;
};

struct condition_list {
    struct condition *items;
    uint32_t count;
};

/* The value under `key`, or an absent view. Borrowed from the map. */
struct str string_map_get(const struct string_map *map, const char *key);
struct str string_map_find(const struct string_map *map, struct str key);
/* The condition of that type, or NULL. Borrowed. */
const struct condition *condition_find(const struct condition_list *list, const char *type);
/* True if the condition is there with status "True". */
bool condition_is_true(const struct condition_list *list, const char *type);
/* The owner with `controller: true`, or NULL. Borrowed. */
const struct owner_reference *meta_controller(const struct object_meta *meta);
