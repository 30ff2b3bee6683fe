#include "limit_range.h"

#define SHOWN_NAME_MAX_BYTES 128
#define NANO_PER_MILLI       ((i128)1000000)
#define NANO_PER_UNIT        ((i128)1000000000)

/* One container or pod before one LimitRange. */
struct check {
    struct counting *counting;
    const struct limited *limited;
    struct str range; /* its name */
};

/* `rule`: what the LimitRange says of each; `fact`: in which way this one isn't so. */
static void refuse(const struct check *check, struct str rule, struct str fact)
{
    const struct limited *limited = check->limited;
    struct arena *arena = check->counting->arena;
    struct str name = str_cut_utf8(limited->name, SHOWN_NAME_MAX_BYTES);
    struct str who = limited->is_pod
                         ? STR("a pod")
                         : arena_format(arena, "%s \"" STR_FMT "\"", limited->owner, STR_ARG(name));
    check->counting->failure =
        err_set(check->counting->err, RC_INVALID,
                "LimitRange \"" STR_FMT "\" " STR_FMT " per %s, and " STR_FMT " " STR_FMT
                ", so the pods would be refused",
                STR_ARG(check->range), STR_ARG(rule), limited->is_pod ? "pod" : "container",
                STR_ARG(who), STR_ARG(fact));
}

static struct str amount_text(const struct check *check, struct str resource, i128 nano)
{
    int64_t amount = resource_amount_from_quantity(resource, (struct quantity){nano}, true);
    return resource_amount_format(check->counting->arena, resource, amount);
}

/* "asks for 500m", "has a limit of 4", "has no request" */
static struct str fact_of(const struct check *check, bool is_limit, struct str resource,
                          const struct exact_amount *amount)
{
    const char *what = is_limit ? "limit" : "request";
    if (amount == NULL) {
        return arena_format(check->counting->arena, "has no %s", what);
    }
    return arena_format(check->counting->arena, "has a %s of " STR_FMT, what,
                        STR_ARG(amount_text(check, resource, amount->nano)));
}

/* As the API server compares them: in thousandths, or in whole units where one would be too large.
 */
static i128 unit_of(const struct exact_amount *request, const struct exact_amount *limit,
                    i128 bound)
{
    i128 most = bound;
    most = request != NULL && request->nano > most ? request->nano : most;
    most = limit != NULL && limit->nano > most ? limit->nano : most;
    return most > (i128)(INT64_MAX / 1000) * NANO_PER_UNIT ? NANO_PER_UNIT : NANO_PER_MILLI;
}

/* `amount` is more than `bound`, each rounded up to the unit. */
static bool is_more(i128 amount, i128 bound, i128 unit)
{
    return (amount + unit - 1) / unit > (bound + unit - 1) / unit;
}

static void check_min(const struct check *check, const struct resource_amount *bound)
{
    const struct exact_amount *request = exact_find(check->limited->requests, bound->name);
    const struct exact_amount *limit = exact_find(check->limited->limits, bound->name);
    i128 unit = unit_of(request, limit, bound->value.nano);
    bool is_asked = request != NULL && !is_more(bound->value.nano, request->nano, unit);
    if (!is_asked || (limit != NULL && is_more(bound->value.nano, limit->nano, unit))) {
        struct str rule = arena_format(
            check->counting->arena, "wants at least " STR_FMT " " STR_FMT,
            STR_ARG(amount_text(check, bound->name, bound->value.nano)), STR_ARG(bound->name));
        refuse(check, rule, fact_of(check, is_asked, bound->name, is_asked ? limit : request));
    }
}

static void check_max(const struct check *check, const struct resource_amount *bound)
{
    const struct exact_amount *request = exact_find(check->limited->requests, bound->name);
    const struct exact_amount *limit = exact_find(check->limited->limits, bound->name);
    i128 unit = unit_of(request, limit, bound->value.nano);
    bool is_limited = limit != NULL && !is_more(limit->nano, bound->value.nano, unit);
    if (!is_limited || (request != NULL && is_more(request->nano, bound->value.nano, unit))) {
        struct str rule = arena_format(
            check->counting->arena, "allows at most " STR_FMT " " STR_FMT,
            STR_ARG(amount_text(check, bound->name, bound->value.nano)), STR_ARG(bound->name));
        refuse(check, rule, fact_of(check, !is_limited, bound->name, is_limited ? request : limit));
    }
}

static int64_t milli_of(i128 nano)
{
    return quantity_milli_up((struct quantity){nano});
}

static void check_ratio(const struct check *check, const struct resource_amount *bound)
{
    const struct exact_amount *request = exact_find(check->limited->requests, bound->name);
    const struct exact_amount *limit = exact_find(check->limited->limits, bound->name);
    struct arena *arena = check->counting->arena;
    struct str rule =
        arena_format(arena, "allows a limit of " STR_FMT " times the request of " STR_FMT,
                     STR_ARG(bound->text), STR_ARG(bound->name));
    bool is_request_there = request != NULL && request->nano > 0;
    bool is_limit_there = limit != NULL && limit->nano > 0;
    if (!is_request_there || !is_limit_there) {
        refuse(check, rule,
               fact_of(check, is_request_there, bound->name, is_request_there ? limit : request));
    } else if ((i128)milli_of(limit->nano) * 1000 >
               (i128)milli_of(bound->value.nano) * milli_of(request->nano)) {
        refuse(check, rule,
               arena_format(arena, "has a limit of " STR_FMT " and a request of " STR_FMT,
                            STR_ARG(amount_text(check, bound->name, limit->nano)),
                            STR_ARG(amount_text(check, bound->name, request->nano))));
    }
}

static void check_each(const struct check *check, const struct resource_list *bounds,
                       void (*one)(const struct check *, const struct resource_amount *))
{
    for (uint32_t i = 0; i < bounds->count && !rc_failed(check->counting->failure); i++) {
        one(check, &bounds->items[i]);
    }
}

void limits_check(struct counting *counting, const struct request_context *context,
                  const struct limited *limited)
{
    for (uint32_t i = 0; i < context->limit_range_count; i++) {
        const struct limit_range *range = context->limit_ranges[i];
        struct check check = {counting, limited,
                              str_cut_utf8(range->meta.name, SHOWN_NAME_MAX_BYTES)};
        for (uint32_t k = 0; k < range->spec.limits.count; k++) {
            const struct limit_range_item *item = &range->spec.limits.items[k];
            if (str_eq_c(item->type, limited->is_pod ? "Pod" : "Container")) {
                check_each(&check, &item->min, check_min);
                check_each(&check, &item->max, check_max);
                check_each(&check, &item->max_limit_request_ratio, check_ratio);
            }
        }
    }
}
