/* pod_count.h - the arithmetic that templates and pods share: exact amounts per resource, and how
 * those of a pod's containers come together. Inside the api layer only; see pod_request.h.
 *
 * That a resource is named matters, even with zero: a zero keeps a default away. A list holds at
 * most POD_RESOURCES_MAX resources. */
#pragma once

#include "tallyman/api/pod_request.h"

/* A sum stays below 2^127: each amount is below 2^93, and there are fewer than 2^20 of them. */
struct exact_amount {
    struct str resource;
    i128 nano;
};

struct exact_list {
    struct exact_amount *items; /* borrowed from the arena */
    uint32_t count;
    uint32_t capacity;
};

/* One calculation. The first failure sticks, so that the arithmetic is written straight down and
 * asked once, at its end. */
struct counting {
    struct arena *arena; /* borrowed */
    struct err *err;     /* borrowed */
    struct rc failure;
};

/* Where a list comes from, for the sentence about a negative amount. */
struct place {
    const char *owner; /* "container" */
    struct str name;   /* absent: there is only one */
    const char *field; /* "resources.requests" */
};

/* The entry of that resource, or NULL. Borrowed until the list grows. */
struct exact_amount *exact_find(const struct exact_list *list, struct str resource);
void exact_set(struct counting *counting, struct exact_list *list, struct str resource, i128 nano);
void exact_add_list(struct counting *counting, struct exact_list *list,
                    const struct exact_list *more);
void exact_max_list(struct counting *counting, struct exact_list *list,
                    const struct exact_list *other);
/* Sets what `list` doesn't name. */
void exact_fill_list(struct counting *counting, struct exact_list *list,
                     const struct exact_list *defaults);
/* Sets each entry of `from`, in thousandths, rounded up: an API server keeps built-in kinds so, and
 * what comes from a file hasn't been through one. A negative amount fails. */
void exact_load(struct counting *counting, struct exact_list *list, const struct place *place,
                const struct resource_list *from);

/* The containers of a pod, then its init containers, in one row. */
uint32_t container_total(const struct pod_spec *spec);
const struct container *container_at(const struct pod_spec *spec, uint32_t index); /* borrowed */
const char *container_owner(const struct pod_spec *spec, uint32_t index);          /* static */

/* One list for each of them, in that order, empty. Borrowed from the arena. */
struct exact_list *container_lists_new(struct counting *counting, const struct pod_spec *spec);
/* What all containers take together: the running ones with the sidecars, or any one init container
 * with the sidecars started before it, whichever is more, for each resource by itself. */
struct exact_list containers_sum(struct counting *counting, const struct pod_spec *spec,
                                 const struct exact_list *lists);

bool resource_is_hugepages(struct str resource);
bool resource_is_cpu_or_memory(struct str resource);
bool resource_is_pod_level(struct str resource); /* may stand in pod.spec.resources */
/* What the pod itself asks for takes the place of what its containers ask for, more or less. */
void replace_by_pod_level(struct counting *counting, struct exact_list *sum,
                          const struct exact_list *pod_level);

/* Rounds up to the resource's unit, drops what is zero, and `pods`, which is counted apart; gives
 * the sticky failure, if there is one. */
NODISCARD struct rc counting_finish(struct counting *counting, const struct exact_list *sum,
                                    struct amount_list *ret_amounts);
