/* scenario_checks.c - ProvisioningRequests: the API server's part, and an autoscaler's. */
#include "support/scenario_internal.h"

#include "support/check.h"

void request_make(struct scenario *s, const struct effect *effect)
{
    struct request_content *content = ARENA_NEW(&s->arena, struct request_content);
    if (!core_request_content(s->core, effect->uid, &s->arena, content)) {
        answer(s, effect, EFFECT_OK, STR_NONE, STR_NONE);
        return;
    }
    assert_true(str_eq(content->request.meta.name, effect->name));
    assert_int_equal(content->template_count, content->request.spec.pod_sets.count);
    if (target_of(s, effect) != NULL) {
        fail_msg("ProvisioningRequest " STR_FMT " is there already", STR_ARG(effect->name));
    }
    struct entry *entry = entry_put(s, KIND_PROVISIONING_REQUEST, &content->request.meta);
    answer(s, effect, EFFECT_OK, STR_NONE, STR_NONE);
    tell(s, entry);
}

void request_delete(struct scenario *s, const struct effect *effect)
{
    trace_effect(s, effect);
    struct entry *entry = target_of(s, effect);
    if (!s->drops_request_deletions && entry != NULL && str_eq(entry->value->uid, effect->uid)) {
        tell_gone(s, entry);
    }
}

void requests_are_manual(struct scenario *s, bool is_manual)
{
    s->are_requests_manual = is_manual;
}

void request_is_made(struct scenario *s)
{
    request_make(s, &s->request_effect);
}

void request_is_refused(struct scenario *s, const char *message)
{
    answer(s, &s->request_effect, EFFECT_REFUSED, STR_NONE, str_from_c(message));
}

void request_is_unknown(struct scenario *s)
{
    answer(s, &s->request_effect, EFFECT_GONE, STR_NONE, STR_NONE);
}

void request_deletions_fail(struct scenario *s, bool fails)
{
    s->drops_request_deletions = fails;
}

static bool is_of(const struct entry *entry, const char *job)
{
    return entry->kind == KIND_PROVISIONING_REQUEST &&
           str_eq_c(meta_controller(entry->value)->name, job);
}

const char *request_of(struct scenario *s, const char *job)
{
    scenario_start(s);
    const char *name = NULL;
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        if (is_of(entry, job)) {
            name = make(s, STR_FMT, STR_ARG(entry->value->name)).ptr;
        }
    }
    return name;
}

int requests_of(struct scenario *s, const char *job)
{
    scenario_start(s);
    int count = 0;
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        count += is_of(entry, job) ? 1 : 0;
    }
    return count;
}

static struct provisioning_request *request_object(struct scenario *s, const char *name)
{
    assert_non_null(name);
    return scenario_object(s, KIND_PROVISIONING_REQUEST, name);
}

void request_says_that(struct scenario *s, const char *name, const char *condition,
                       const char *message)
{
    struct provisioning_request *request = request_object(s, name);
    bool is_false = condition[0] == '!';
    struct str type = arena_copy_str(&s->arena, str_from_c(condition + (is_false ? 1 : 0)));
    struct condition_list *list = &request->status.conditions;
    struct condition *items = ARENA_ARRAY(&s->arena, struct condition, list->count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (!str_eq(list->items[i].type, type)) {
            items[count++] = list->items[i];
        }
    }
    items[count++] = (struct condition){.type = type,
                                        .status = is_false ? STR("False") : STR("True"),
                                        .reason = type,
                                        .message = arena_copy_str(&s->arena, str_from_c(message)),
                                        .last_transition_time = {true, s->now_ms / 1000 * 1000}};
    *list = (struct condition_list){items, count};
    object_changed(s, KIND_PROVISIONING_REQUEST, name);
}

void request_has_detail(struct scenario *s, const char *name, const char *key, const char *value)
{
    struct provisioning_request *request = request_object(s, name);
    map_set(s, &request->status.provisioning_class_details, str_from_c(key), str_from_c(value));
    object_changed(s, KIND_PROVISIONING_REQUEST, name);
}

void requests_are_served(struct scenario *s, bool is_served)
{
    scenario_start(s);
    struct event event = {
        .kind = EVENT_SYNCED, .synced_kind = KIND_PROVISIONING_REQUEST, .is_absent = !is_served};
    step(s, &event);
}

void expect_selector(struct scenario *s, const char *job, const char *key, const char *value)
{
    scenario_start(s);
    const struct string_map *selector = &scenario_job(s, job)->spec.pod_template.spec.node_selector;
    struct str found = string_map_get(selector, key);
    if (value == NULL) {
        assert_false(str_is_set(found));
    } else {
        check_str(found, value);
    }
}
