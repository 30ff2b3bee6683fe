/* profile.c - which devices a claim's request could take: its class's selectors and its own, each
 * device judged once. */
#include "ask.h"
#include "selectors.h"

#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

static struct str profile_key(struct core *core, const struct device_request_exact *request)
{
    struct text text;
    text_init(&text, &core->scratch, DECODE_OBJECT_MAX_BYTES);
    text_add(&text, request->device_class_name);
    for (uint32_t i = 0; i < request->selectors.count; i++) {
        const struct cel_selector *cel = request->selectors.items[i].cel;
        text_addf(&text, "\n%zu:", cel == NULL ? 0 : cel->expression.len);
        text_add(&text, cel == NULL ? STR_NONE : cel->expression);
    }
    for (uint32_t i = 0; i < request->tolerations.count; i++) {
        const struct toleration *toleration = &request->tolerations.items[i];
        const struct opt_int *seconds = &toleration->toleration_seconds;
        text_addf(&text, "\n~" STR_FMT " " STR_FMT " " STR_FMT " " STR_FMT " ",
                  STR_ARG(toleration->key), STR_ARG(toleration->op), STR_ARG(toleration->value),
                  STR_ARG(toleration->effect));
        text_addf(&text, seconds->is_set ? "%lld" : "", (long long)seconds->value);
    }
    return text_str(&text);
}

static void profile_clear(struct device_profile *profile)
{
    for (uint32_t i = 0; i < profile->program_count; i++) {
        cel_program_free(profile->programs[i]);
    }
    mem_free(profile->programs);
    profile->programs = NULL;
    profile->program_count = 0;
    str_drop(&profile->problem);
    profile->problem_reason = REASON_NONE;
    profile->looked_at = profile->tried_at = profile->walked_at = 0;
    profile->begun_count = 0;
    str_drop(&profile->failure);
    if (profile->matches != NULL) {
        memset(profile->matches, MATCH_UNKNOWN, profile->match_capacity);
    }
}

static void profile_fail(struct core *core, struct device_profile *profile, enum reason reason,
                         struct str problem)
{
    (void)core;
    if (!str_is_set(profile->problem)) {
        profile->problem = str_own(problem);
        profile->problem_reason = reason;
    }
}

static void profile_add_program(struct core *core, struct device_profile *profile,
                                const struct device_selector *selector, struct str where)
{
    if (selector->cel == NULL) {
        profile_fail(
            core, profile, REASON_INVALID,
            arena_format(&core->scratch, STR_FMT " has a selector that isn't CEL", STR_ARG(where)));
        return;
    }
    struct err err;
    struct cel_program *program = NULL;
    if (rc_failed(cel_compile(selector->cel->expression, &program, &err))) {
        profile_fail(core, profile, REASON_NEVER_FITS,
                     arena_format(&core->scratch,
                                  STR_FMT " has a CEL selector that can't be used: %s",
                                  STR_ARG(where), err.text));
        return;
    }
    profile->programs =
        mem_realloc(profile->programs, (profile->program_count + 1) * sizeof(*profile->programs));
    profile->programs[profile->program_count++] = program;
}

static void profile_compile(struct core *core, struct device_profile *profile)
{
    selectors_doubt(core);
    profile_clear(profile);
    reaches_forget_profile(core, profile);
    const struct device_class *class = named_find(core, KIND_DEVICE_CLASS, profile->class_name);
    if (class == NULL) {
        profile_fail(core, profile, REASON_MISSING_REFERENCE,
                     arena_format(&core->scratch, "DeviceClass " STR_FMT " doesn't exist",
                                  STR_ARG(profile->class_name)));
        return;
    }
    struct str where =
        arena_format(&core->scratch, "DeviceClass " STR_FMT, STR_ARG(profile->class_name));
    for (uint32_t i = 0; i < class->spec.selectors.count; i++) {
        profile_add_program(core, profile, &class->spec.selectors.items[i], where);
    }
    for (uint32_t i = 0; i < profile->own.count; i++) {
        profile_add_program(core, profile, &profile->own.items[i], STR("the claim's request"));
    }
}

/* The request's own selectors, owned by the profile. */
static void profile_keep_selectors(struct device_profile *profile,
                                   const struct device_selector_list *selectors)
{
    if (selectors->count == 0) {
        return;
    }
    profile->own.items = mem_zalloc(selectors->count * sizeof(struct device_selector));
    profile->own.count = selectors->count;
    for (uint32_t i = 0; i < selectors->count; i++) {
        if (selectors->items[i].cel != NULL) {
            profile->own.items[i].cel = MEM_NEW(struct cel_selector);
            profile->own.items[i].cel->expression = str_own(selectors->items[i].cel->expression);
        }
    }
}

static void profile_keep_tolerations(struct device_profile *profile,
                                     const struct toleration_list *tolerations)
{
    if (tolerations->count == 0) {
        return;
    }
    profile->tolerations.items = mem_zalloc(tolerations->count * sizeof(struct toleration));
    profile->tolerations.count = tolerations->count;
    for (uint32_t i = 0; i < tolerations->count; i++) {
        const struct toleration *from = &tolerations->items[i];
        profile->tolerations.items[i] =
            (struct toleration){.key = str_own(from->key),
                                .op = str_own(from->op),
                                .value = str_own(from->value),
                                .effect = str_own(from->effect),
                                .toleration_seconds = from->toleration_seconds};
    }
}

static void profile_drop_tolerations(struct device_profile *profile)
{
    for (uint32_t i = 0; i < profile->tolerations.count; i++) {
        str_drop(&profile->tolerations.items[i].key);
        str_drop(&profile->tolerations.items[i].op);
        str_drop(&profile->tolerations.items[i].value);
        str_drop(&profile->tolerations.items[i].effect);
    }
    mem_free(profile->tolerations.items);
}

struct device_profile *profile_use(struct core *core, const struct device_request_exact *request)
{
    struct str key = profile_key(core, request);
    struct device_profile *profile = NULL;
    HASH_FIND(hh, core->profiles, key.ptr, (unsigned)key.len, profile);
    if (profile == NULL) {
        profile = MEM_NEW(struct device_profile);
        profile->key = str_own(key);
        profile->class_name = str_own(request->device_class_name);
        profile_keep_selectors(profile, &request->selectors);
        profile_keep_tolerations(profile, &request->tolerations);
        HASH_ADD_KEYPTR(hh, core->profiles, profile->key.ptr, (unsigned)profile->key.len, profile);
        profile_compile(core, profile);
    }
    profile->users++;
    return profile;
}

static void profile_free(struct core *core, struct device_profile *profile)
{
    HASH_DEL(core->profiles, profile);
    profile_clear(profile);
    reaches_forget_profile(core, profile);
    selectors_forget_profile(core, profile);
    for (uint32_t i = 0; i < profile->own.count; i++) {
        if (profile->own.items[i].cel != NULL) {
            str_drop(&profile->own.items[i].cel->expression);
            mem_free(profile->own.items[i].cel);
        }
    }
    mem_free(profile->own.items);
    profile_drop_tolerations(profile);
    mem_free(profile->matches);
    str_drop(&profile->key);
    str_drop(&profile->class_name);
    mem_free(profile);
}

void profile_drop(struct core *core, struct device_profile *profile)
{
    if (--profile->users == 0 && !selectors_keep_unused(core)) {
        profile_free(core, profile);
    }
}

void profiles_free_unused(struct core *core)
{
    struct device_profile *profile;
    struct device_profile *next;
    HASH_ITER (hh, core->profiles, profile, next) {
        if (profile->users == 0) {
            profile_free(core, profile);
        }
    }
}

static bool pod_set_uses_class(const struct pod_set *set, struct str class_name)
{
    bool is_used = ask_uses_class(set->ask, class_name);
    for (uint32_t i = 0; i < set->claim_count && !is_used; i++) {
        is_used = ask_uses_class(set->claims[i].ask, class_name);
    }
    return is_used;
}

void profiles_class_changed(struct core *core, struct str class_name)
{
    struct device_profile *profile;
    struct device_profile *next;
    HASH_ITER (hh, core->profiles, profile, next) {
        if (str_eq(profile->class_name, class_name)) {
            profile_compile(core, profile);
        }
    }
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        for (struct shape *shape = queue->shapes; shape != NULL; shape = shape->next_in_queue) {
            bool is_used = false;
            for (uint32_t s = 0; s < shape->set_count; s++) {
                is_used = is_used || pod_set_uses_class(&shape->sets[s], class_name);
            }
            if (is_used) {
                shape_unresolve(core, shape);
            }
        }
    }
}

void profiles_slot_changed(struct core *core, uint32_t slot)
{
    struct device_profile *profile;
    struct device_profile *next;
    HASH_ITER (hh, core->profiles, profile, next) {
        if (slot < profile->match_capacity) {
            profile->matches[slot] = MATCH_UNKNOWN;
        }
        if (profile->begun_slot == slot) {
            profile->begun_count = 0;
        }
        if (profile->failed_slot == slot) {
            str_drop(&profile->failure);
        }
    }
    selectors_changed(core);
}

/* Runs the next program on the device. MATCH_UNKNOWN: it has said yes, and there are more. */
static enum match profile_ask(struct core *core, struct device_profile *profile,
                              const struct device_state *device, struct arena *scratch,
                              struct err *err)
{
    struct cel_device view = {.driver = device->slice->spec.driver, .device = device->device};
    uint32_t i = profile->begun_slot == device->slot ? profile->begun_count : 0;
    uint64_t cost = SELECTOR_BASE_COST;
    bool is_match = true;
    bool has_failed =
        i < profile->program_count &&
        rc_failed(cel_matches_at_cost(profile->programs[i], &view, scratch, &cost, &is_match, err));
    bool is_done = has_failed || !is_match || i + 1 >= profile->program_count;
    profile->begun_slot = device->slot;
    profile->begun_count = is_done ? 0 : i + 1;
    profile->spent += cost;
    selectors_spend(core, cost);
    if (!is_done) {
        return MATCH_UNKNOWN;
    }
    return has_failed ? MATCH_FAILED : is_match ? MATCH_YES : MATCH_NO;
}

static void profile_make_room(struct core *core, struct device_profile *profile,
                              const struct device_state *device)
{
    if (device->slot >= profile->match_capacity) {
        uint32_t capacity = core->device_slots + core->device_slots / 2;
        profile->matches = mem_realloc(profile->matches, capacity);
        memset(profile->matches + profile->match_capacity, MATCH_UNKNOWN,
               capacity - profile->match_capacity);
        profile->match_capacity = capacity;
    }
}

/* The device whose failure is kept, or NULL: none is. */
static const struct device_state *profile_failed_on(const struct core *core,
                                                    const struct device_profile *profile)
{
    return str_is_set(profile->failure) ? core->devices[profile->failed_slot] : NULL;
}

/* Keeps why it fails on the first device by key: asked once more it would cost as much again. */
static void profile_note_failure(struct core *core, struct device_profile *profile,
                                 const struct device_state *device, const struct err *err)
{
    const struct device_state *first = profile_failed_on(core, profile);
    bool is_first = first == NULL ? !profile->has_failed : str_compare(device->key, first->key) < 0;
    if (is_first) {
        str_drop(&profile->failure);
        profile->failure = str_own(str_from_c(err->text));
        profile->failed_slot = device->slot;
    }
}

/* As profile_ask(), and keeps what it is in the end. */
static void profile_try_on(struct core *core, struct device_profile *profile,
                           const struct device_state *device, struct arena *scratch)
{
    struct err err;
    enum match match = profile_ask(core, profile, device, scratch, &err);
    if (match == MATCH_YES && device_is_out(core, profile, device)) {
        match = MATCH_OUT;
    }
    if (match == MATCH_FAILED) {
        profile_note_failure(core, profile, device, &err);
    }
    profile->matches[device->slot] = (uint8_t)match;
    profile->has_failed = profile->has_failed || match == MATCH_FAILED;
}

bool profile_try(struct core *core, struct device_profile *profile, uint64_t limit,
                 struct arena *scratch)
{
    uint64_t enough = profile->spent + limit;
    uint64_t changes = selectors_changes(core);
    profile->walk = profile->walked_at == changes ? profile->walk : 0;
    profile->walked_at = changes;
    for (; profile->walk < core->device_slots; profile->walk++) {
        const struct device_state *device = core->devices[profile->walk];
        if (device == NULL) {
            continue;
        }
        profile_make_room(core, profile, device);
        while (profile->matches[device->slot] == MATCH_UNKNOWN) {
            if (profile->spent >= enough) {
                return false;
            }
            arena_reset(scratch);
            profile_try_on(core, profile, device, scratch);
        }
    }
    profile->tried_at = changes;
    return true;
}

/* The same, whatever it costs, and nothing is kept. */
static enum match profile_judge(struct core *core, const struct device_profile *profile,
                                const struct device_state *device, struct err *err)
{
    struct cel_device view = {.driver = device->slice->spec.driver, .device = device->device};
    for (uint32_t i = 0; i < profile->program_count; i++) {
        bool is_match = false;
        if (rc_failed(cel_matches(profile->programs[i], &view, &core->scratch, &is_match, err))) {
            return MATCH_FAILED;
        }
        if (!is_match) {
            return MATCH_NO;
        }
    }
    return device_is_out(core, profile, device) ? MATCH_OUT : MATCH_YES;
}

enum match profile_match(struct core *core, struct device_profile *profile,
                         const struct device_state *device)
{
    profile_make_room(core, profile, device);
    if (profile->matches[device->slot] == MATCH_UNKNOWN && !selectors_may_keep(core)) {
        struct err err;
        return profile_judge(core, profile, device, &err);
    }
    while (profile->matches[device->slot] == MATCH_UNKNOWN) {
        profile_try_on(core, profile, device, &core->scratch);
    }
    return (enum match)profile->matches[device->slot];
}

bool profile_selects(struct core *core, struct device_profile *profile,
                     const struct device_state *device)
{
    enum match match = profile_match(core, profile, device);
    return match == MATCH_YES || match == MATCH_OUT;
}

static void profile_note(struct core *core, struct device_profile *profile,
                         const struct device_state *device)
{
    enum match match = profile_match(core, profile, device);
    bool is_such = match == MATCH_YES || match == MATCH_OUT;
    profile->is_failing |= match == MATCH_FAILED;
    profile->has_shareable |= is_such && device->is_shareable;
    profile->has_counters |= is_such && device->counter_count > 0;
    profile->has_any |= is_such;
    profile->has_usable |= is_such && !device_is_beyond_counters(device);
}

/* Looks at all devices, once per change of them. */
static void profile_look(struct core *core, struct device_profile *profile)
{
    if (profile->looked_at == core->device_changes) {
        return;
    }
    profile->looked_at = core->device_changes;
    profile->is_failing = profile->has_shareable = profile->has_counters = false;
    profile->has_any = profile->has_usable = false;
    for (uint32_t slot = 0; slot < core->device_slots; slot++) {
        const struct device_state *device = core->devices[slot];
        if (device != NULL) {
            profile_note(core, profile, device);
        }
    }
}

bool profile_is_failing(struct core *core, struct device_profile *profile)
{
    profile_look(core, profile);
    return profile->is_failing;
}

bool profile_has_shareable(struct core *core, struct device_profile *profile)
{
    profile_look(core, profile);
    return profile->has_shareable;
}

bool profile_has_counters(struct core *core, struct device_profile *profile)
{
    profile_look(core, profile);
    return profile->has_counters;
}

bool profile_has_any(struct core *core, struct device_profile *profile)
{
    profile_look(core, profile);
    return profile->has_any;
}

bool profile_has_usable(struct core *core, struct device_profile *profile)
{
    profile_look(core, profile);
    return profile->has_usable;
}

struct str profile_failure(struct core *core, struct device_profile *profile)
{
    struct device_state *device;
    if (!profile->has_failed) {
        return STR_NONE;
    }
    if (profile_failed_on(core, profile) != NULL) {
        return arena_copy_str(&core->scratch, profile->failure);
    }
    RB_FOREACH (device, device_tree, &core->device_order) {
        struct err err;
        if (profile_match(core, profile, device) != MATCH_FAILED ||
            profile_judge(core, profile, device, &err) != MATCH_FAILED) {
            continue;
        }
        if (selectors_may_keep(core)) {
            str_drop(&profile->failure);
            profile->failure = str_own(str_from_c(err.text));
            profile->failed_slot = device->slot;
        }
        return arena_format(&core->scratch, "%s", err.text);
    }
    return STR_NONE;
}

void profiles_free(struct core *core)
{
    struct device_profile *profile;
    struct device_profile *next;
    HASH_ITER (hh, core->profiles, profile, next) {
        profile_free(core, profile);
    }
}
