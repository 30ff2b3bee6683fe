#include "pod_count.h"

#include <assert.h>
#include <stdlib.h>

#include "tallyman/base/limits.h"

#define NANO_PER_MILLI         INT64_C(1000000)
#define SHOWN_NAME_MAX_BYTES   128
#define SHOWN_NUMBER_MAX_BYTES QUANTITY_TEXT_MAX_BYTES

/* -- lists of exact amounts -------------------------------------------------------------------- */

struct exact_amount *exact_find(const struct exact_list *list, struct str resource)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (str_eq(list->items[i].resource, resource)) {
            return &list->items[i];
        }
    }
    return NULL;
}

/* Adds an entry of zero. NULL: the list is full. */
static struct exact_amount *exact_append(struct counting *counting, struct exact_list *list,
                                         struct str resource)
{
    if (list->count >= POD_RESOURCES_MAX) {
        counting->failure = err_set(counting->err, RC_LIMIT,
                                    "more than %d different resources are named; one pod may name "
                                    "at most that many",
                                    POD_RESOURCES_MAX);
        return NULL;
    }
    list->items = arena_grow(counting->arena, list->items, list->count, &list->capacity,
                             sizeof(list->items[0]));
    struct exact_amount *amount = &list->items[list->count++];
    *amount = (struct exact_amount){.resource = resource};
    return amount;
}

void exact_set(struct counting *counting, struct exact_list *list, struct str resource, i128 nano)
{
    struct exact_amount *amount = exact_find(list, resource);
    if (amount == NULL) {
        amount = exact_append(counting, list, resource);
    }
    if (amount != NULL) {
        amount->nano = nano;
    }
}

void exact_add_list(struct counting *counting, struct exact_list *list,
                    const struct exact_list *more)
{
    for (uint32_t i = 0; i < more->count; i++) {
        struct exact_amount *amount = exact_find(list, more->items[i].resource);
        i128 before = amount == NULL ? 0 : amount->nano;
        exact_set(counting, list, more->items[i].resource, before + more->items[i].nano);
    }
}

void exact_max_list(struct counting *counting, struct exact_list *list,
                    const struct exact_list *other)
{
    for (uint32_t i = 0; i < other->count; i++) {
        struct exact_amount *amount = exact_find(list, other->items[i].resource);
        if (amount == NULL || amount->nano < other->items[i].nano) {
            exact_set(counting, list, other->items[i].resource, other->items[i].nano);
        }
    }
}

void exact_fill_list(struct counting *counting, struct exact_list *list,
                     const struct exact_list *defaults)
{
    for (uint32_t i = 0; i < defaults->count; i++) {
        if (exact_find(list, defaults->items[i].resource) == NULL) {
            exact_set(counting, list, defaults->items[i].resource, defaults->items[i].nano);
        }
    }
}

static struct rc refuse_negative(const struct place *place, const struct resource_amount *amount,
                                 struct err *err)
{
    struct str name = str_cut_utf8(place->name, SHOWN_NAME_MAX_BYTES);
    struct str resource = str_cut_utf8(amount->name, SHOWN_NAME_MAX_BYTES);
    struct str text = str_cut_utf8(amount->text, SHOWN_NUMBER_MAX_BYTES);
    const char *quote = str_is_set(name) ? "\"" : "";
    return err_set(err, RC_INVALID,
                   "%s%s%s" STR_FMT "%s: %s[" STR_FMT "] is " STR_FMT
                   ", which is negative; it has to be 0 or more",
                   place->owner, str_is_set(name) ? " " : "", quote, STR_ARG(name), quote,
                   place->field, STR_ARG(resource), STR_ARG(text));
}

void exact_load(struct counting *counting, struct exact_list *list, const struct place *place,
                const struct resource_list *from)
{
    for (uint32_t i = 0; i < from->count; i++) {
        const struct resource_amount *amount = &from->items[i];
        if (amount->value.nano < 0) {
            counting->failure = refuse_negative(place, amount, counting->err);
            return;
        }
        i128 milli = (amount->value.nano + NANO_PER_MILLI - 1) / NANO_PER_MILLI;
        exact_set(counting, list, amount->name, milli * NANO_PER_MILLI);
    }
}

/* -- containers -------------------------------------------------------------------------------- */

uint32_t container_total(const struct pod_spec *spec)
{
    return spec->containers.count + spec->init_containers.count;
}

struct exact_list *container_lists_new(struct counting *counting, const struct pod_spec *spec)
{
    return ARENA_ARRAY(counting->arena, struct exact_list, container_total(spec));
}

const struct container *container_at(const struct pod_spec *spec, uint32_t index)
{
    if (index < spec->containers.count) {
        return &spec->containers.items[index];
    }
    return &spec->init_containers.items[index - spec->containers.count];
}

const char *container_owner(const struct pod_spec *spec, uint32_t index)
{
    return index < spec->containers.count ? "container" : "init container";
}

struct exact_list containers_sum(struct counting *counting, const struct pod_spec *spec,
                                 const struct exact_list *lists)
{
    struct exact_list running = {.count = 0};
    struct exact_list sidecars = {.count = 0};
    struct exact_list starting = {.count = 0};
    for (uint32_t i = 0; i < container_total(spec); i++) {
        const struct exact_list *list = &lists[i];
        if (i < spec->containers.count) {
            exact_add_list(counting, &running, list);
        } else if (str_eq_c(container_at(spec, i)->restart_policy, "Always")) {
            exact_add_list(counting, &running, list);
            exact_add_list(counting, &sidecars, list);
        } else {
            struct exact_list together = {.count = 0};
            exact_add_list(counting, &together, list);
            exact_add_list(counting, &together, &sidecars);
            exact_max_list(counting, &starting, &together);
        }
    }
    exact_max_list(counting, &running, &starting);
    return running;
}

/* -- pod level --------------------------------------------------------------------------------- */

bool resource_is_hugepages(struct str resource)
{
    return str_starts_with(resource, STR("hugepages-"));
}

bool resource_is_cpu_or_memory(struct str resource)
{
    return str_eq_c(resource, "cpu") || str_eq_c(resource, "memory");
}

bool resource_is_pod_level(struct str resource)
{
    return resource_is_cpu_or_memory(resource) || resource_is_hugepages(resource);
}

void replace_by_pod_level(struct counting *counting, struct exact_list *sum,
                          const struct exact_list *pod_level)
{
    for (uint32_t i = 0; i < pod_level->count; i++) {
        const struct exact_amount *amount = &pod_level->items[i];
        if (resource_is_pod_level(amount->resource)) {
            exact_set(counting, sum, amount->resource, amount->nano);
        }
    }
}

static int compare_amounts(const void *a, const void *b)
{
    const struct amount *left = a;
    const struct amount *right = b;
    return str_compare(left->resource, right->resource);
}

struct rc counting_finish(struct counting *counting, const struct exact_list *sum,
                          struct amount_list *ret_amounts)
{
    TRY(counting->failure);
    struct amount_list amounts = {.items = ARENA_ARRAY(counting->arena, struct amount, sum->count)};
    for (uint32_t i = 0; i < sum->count; i++) {
        const struct exact_amount *exact = &sum->items[i];
        struct quantity quantity = {exact->nano};
        int64_t value = resource_amount_from_quantity(exact->resource, quantity, true);
        assert(value >= 0);
        if (value > 0 && !str_eq_c(exact->resource, "pods")) {
            amounts.items[amounts.count++] = (struct amount){exact->resource, value};
        }
    }
    if (amounts.count > 0) {
        qsort(amounts.items, amounts.count, sizeof(amounts.items[0]), compare_amounts);
    }
    *ret_amounts = amounts;
    return RC_SUCCESS;
}
