/* shape.c - gangs of a queue that ask the same share one shape, and are judged once. */
#include "ask.h"
#include "behind.h"
#include "bound.h"
#include "fit_plan.h"
#include "claim.h"
#include "preempt.h"
#include "room_index.h"
#include "selectors.h"
#include "wait.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

static struct str shape_key(struct core *core, const struct shape_input *input)
{
    struct text text;
    text_init(&text, &core->scratch, 2 * DECODE_OBJECT_MAX_BYTES);
    text_addf(&text, STR_FMT "/" STR_FMT, STR_ARG(input->queue->name),
              STR_ARG(input->namespace_name));
    if (input->stated_runtime_ms != 0) { /* a shorter one may go before where others can't */
        text_addf(&text, " %lldms", (long long)input->stated_runtime_ms);
    }
    if (str_is_set(input->topology_key)) {
        text_addf(&text, " %s " STR_FMT, input->is_topology_required ? "in one" : "maybe in one",
                  STR_ARG(input->topology_key));
    }
    if (str_is_set(input->pod_group)) {
        text_addf(&text, " with " STR_FMT, STR_ARG(input->pod_group));
    }
    for (uint32_t s = 0; s < input->set_count; s++) {
        const struct shape_input_set *set = &input->sets[s];
        if (set->group_claims != 0) {
            text_addf(&text, " %llx", (unsigned long long)set->group_claims);
        }
        struct json_writer *writer = json_writer_new();
        encode_object(writer, &pod_spec_schema, set->spec);
        text_addf(&text, " " STR_FMT " %lld/%lld%s ", STR_ARG(set->name),
                  (long long)set->size.min_count, (long long)set->size.pods,
                  set->size.is_partial_allowed ? "p" : "");
        text_add(&text, json_writer_text(writer));
        json_writer_free(writer);
    }
    return text_str(&text);
}

static void shape_add_sets(struct shape *shape, const struct shape_input *input)
{
    shape->sets = mem_zalloc(input->set_count * sizeof(struct pod_set));
    shape->set_count = input->set_count;
    for (uint32_t s = 0; s < input->set_count; s++) {
        const struct shape_input_set *from = &input->sets[s];
        shape->sets[s] = (struct pod_set){.shape = shape,
                                          .name = str_own(from->name),
                                          .spec = object_clone(&pod_spec_schema, from->spec),
                                          .size = from->size,
                                          .group_claims = from->group_claims};
        gang_size_add(&shape->size, &from->size);
    }
}

struct shape *shape_use(struct core *core, const struct shape_input *input)
{
    struct str key = shape_key(core, input);
    struct shape *shape = NULL;
    HASH_FIND(hh, core->shapes, key.ptr, (unsigned)key.len, shape);
    if (shape == NULL) {
        selectors_doubt(core); /* it isn't resolved */
        shape = MEM_NEW(struct shape);
        shape->key = str_own(key);
        shape->queue = input->queue;
        shape->namespace_name = str_own(input->namespace_name);
        shape_add_sets(shape, input);
        shape->stated_runtime_ms = input->stated_runtime_ms;
        shape->topology_key = str_own(input->topology_key);
        shape->pod_group = str_own(input->pod_group);
        shape->is_topology_required = input->is_topology_required;
        shape->next_in_queue = input->queue->shapes;
        input->queue->shapes = shape;
        HASH_ADD_KEYPTR(hh, core->shapes, shape->key.ptr, (unsigned)shape->key.len, shape);
    }
    shape->users++;
    return shape;
}

void verdict_drop(struct verdict *verdict)
{
    str_drop(&verdict->message);
    str_drop(&verdict->flavor);
    str_drop(&verdict->resource);
    *verdict = (struct verdict){.reason = REASON_NONE};
}

static void demands_drop(struct core *core, struct device_demand *demands, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        profile_drop(core, demands[i].profile);
    }
    mem_free(demands);
}

static void pod_set_clear(struct core *core, struct pod_set *set)
{
    pod_set_drop_variants(set);
    vector_clear(&set->per_pod);
    mem_free(set->tolerations.items);
    set->tolerations = (struct toleration_list){.items = NULL};
    mem_free(set->node_selector.items);
    set->node_selector = (struct string_map){.items = NULL};
    demands_drop(core, set->devices, set->device_count);
    set->devices = NULL;
    set->device_count = 0;
    set->has_extended = false;
    ask_free(core, set->ask);
    set->ask = NULL;
    for (uint32_t i = 0; i < set->claim_count; i++) {
        demands_drop(core, set->claims[i].requests, set->claims[i].request_count);
        ask_free(core, set->claims[i].ask);
        claim_drop(core, set->claims[i].claim);
    }
    mem_free(set->claims);
    set->claims = NULL;
    set->claim_count = 0;
    mem_free(set->ever);
    set->ever = NULL;
    str_drop(&set->place_key);
}

static void pod_set_free(struct core *core, struct pod_set *set)
{
    pod_set_clear(core, set);
    vector_deinit(&set->per_pod);
    str_drop(&set->name);
    mem_free(set->spec);
    mem_free(set->labels);
}

static void shape_clear(struct core *core, struct shape *shape)
{
    core->promise_changes++;
    plan_lose(core);
    room_index_unsort(core, shape);
    verdict_drop(&shape->broken);
    for (uint32_t s = 0; s < shape->set_count; s++) {
        pod_set_clear(core, &shape->sets[s]);
    }
    shape->is_resolved = shape->is_provisional = false;
}

void shape_drop(struct core *core, struct shape *shape)
{
    if (--shape->users > 0) {
        return;
    }
    tell_shape_gone(core, shape);
    behind_forget(core, shape);
    selectors_forget(core, shape);
    ready_remove(core, shape);
    waits_clear(shape);
    struct shape **link = &shape->queue->shapes;
    while (*link != shape) {
        link = &(*link)->next_in_queue;
    }
    *link = shape->next_in_queue;
    HASH_DEL(core->shapes, shape);
    for (uint32_t s = 0; s < shape->set_count; s++) {
        pod_set_free(core, &shape->sets[s]);
    }
    mem_free(shape->sets);
    verdict_drop(&shape->broken);
    verdict_drop(&shape->verdict);
    room_wait(core, shape);
    preempt_park(core, shape, false);
    evidence_drop(&shape->evidence);
    advice_drop(shape->advice);
    str_drop(&shape->key);
    str_drop(&shape->topology_key);
    str_drop(&shape->pod_group);
    str_drop(&shape->namespace_name);
    mem_free(shape);
}

void shape_unresolve(struct core *core, struct shape *shape)
{
    selectors_doubt(core);
    shape->is_resolved = false;
    room_index_unsort(core, shape);
    wake_shape(core, shape);
    preempt_early_note_shape(core, shape);
}

void shape_break(struct shape *shape, enum reason reason, struct str message)
{
    if (shape->broken.reason == REASON_NONE) {
        shape->broken.reason = reason;
        shape->broken.waits_for = WAIT_CONFIG;
        shape->broken.message = str_own(message);
    }
}

static void pod_set_add_template(struct core *core, struct pod_set *set, struct str name)
{
    struct str key = key_join(&core->scratch, set->shape->namespace_name, name);
    struct str where = arena_format(&core->scratch, "ResourceClaimTemplate " STR_FMT, STR_ARG(key));
    const struct resource_claim_template *template =
        named_find(core, KIND_RESOURCE_CLAIM_TEMPLATE, key);
    if (template == NULL) {
        shape_break(set->shape, REASON_MISSING_REFERENCE,
                    arena_format(&core->scratch, STR_FMT " doesn't exist", STR_ARG(where)));
        return;
    }
    ask_add_claim(core, set->shape, &template->spec.spec.devices, where, &set->ask, &set->devices,
                  &set->device_count);
}

static void pod_set_add_claim(struct core *core, struct pod_set *set, struct str key,
                              bool is_of_group)
{
    struct str where = arena_format(&core->scratch, "ResourceClaim " STR_FMT, STR_ARG(key));
    if (pod_set_names_claim(set, key)) {
        return; /* twice under two names is one claim */
    }
    set->claims = mem_realloc(set->claims, (set->claim_count + 1) * sizeof(*set->claims));
    struct shared_claim_demand *demand = &set->claims[set->claim_count++];
    *demand =
        (struct shared_claim_demand){.claim = claim_get(core, key), .is_of_group = is_of_group};
    demand->claim->users++;
    if (demand->claim->object == NULL) {
        shape_break(set->shape, REASON_MISSING_REFERENCE,
                    arena_format(&core->scratch, STR_FMT " doesn't exist", STR_ARG(where)));
        return;
    }
    ask_add_claim(core, set->shape, &demand->claim->object->spec.devices, where, &demand->ask,
                  &demand->requests, &demand->request_count);
    if (demand->claim->object->meta.deletion_timestamp.is_set) {
        shape_break(set->shape, REASON_MISSING_REFERENCE,
                    arena_format(&core->scratch,
                                 STR_FMT " is being deleted, and kube-scheduler places no pod "
                                         "with it",
                                 STR_ARG(where)));
    }
    if (!is_of_group && set->size.pods > CLAIM_SHARERS_MAX) {
        shape_break(set->shape, REASON_INVALID,
                    arena_format(&core->scratch,
                                 STR_FMT " would be shared by %lld pods; Kubernetes allows %d",
                                 STR_ARG(where), (long long)set->size.pods, CLAIM_SHARERS_MAX));
    }
}

static void pod_set_read_claim(struct core *core, struct pod_set *set, uint32_t index)
{
    const struct pod_resource_claim *entry = &set->spec->resource_claims.items[index];
    if (index < 64 && (set->group_claims >> index & 1) != 0) {
        const struct claim_state *claim = group_claim_find(core, set->shape, entry->name);
        if (claim != NULL) {
            pod_set_add_claim(core, set, claim->key, true);
        }
    } else if (!str_is_empty(entry->resource_claim_template_name)) {
        pod_set_add_template(core, set, entry->resource_claim_template_name);
    } else if (!str_is_empty(entry->resource_claim_name)) {
        struct str name = entry->resource_claim_name;
        struct str key = key_join(&core->scratch, set->shape->namespace_name, name);
        pod_set_add_claim(core, set, key, false);
    }
}

/* What a pod asks for by its template, its namespace's LimitRanges and its RuntimeClass; the hash
 * tells whether any of it, or what is wrong with it, has changed. */
static bool read_requests(struct core *core, const struct pod_set *set,
                          struct amount_list *ret_amounts, uint64_t *ret_hash, struct err *err)
{
    struct str runtime = set->spec->runtime_class_name;
    struct request_context context = namespace_limits(core, set->shape->namespace_name);
    context.runtime_class =
        str_is_empty(runtime) ? NULL : named_find(core, KIND_RUNTIME_CLASS, runtime);
    if (rc_failed(pod_template_requests(&core->scratch, set->spec, &context, ret_amounts, err))) {
        *ret_hash = str_hash(str_from_c(err->text), 1);
        return false;
    }
    *ret_hash = 0;
    for (uint32_t i = 0; i < ret_amounts->count; i++) {
        const struct amount *amount = &ret_amounts->items[i];
        struct str value = {(const char *)&amount->value, sizeof(amount->value)};
        *ret_hash = str_hash(value, str_hash(amount->resource, *ret_hash));
    }
    return true;
}

bool shape_asks_the_same(struct core *core, const struct shape *shape)
{
    for (uint32_t s = 0; s < shape->set_count; s++) {
        struct amount_list amounts;
        uint64_t hash;
        struct err err;
        (void)read_requests(core, &shape->sets[s], &amounts, &hash, &err);
        if (hash != shape->sets[s].requests_hash) { /* which tells of a failure, too */
            return false;
        }
    }
    return true;
}

static void pod_set_read_requests(struct core *core, struct pod_set *set)
{
    struct amount_list amounts;
    struct err err;
    if (!read_requests(core, set, &amounts, &set->requests_hash, &err)) {
        shape_break(set->shape, REASON_INVALID,
                    arena_format(&core->scratch, "spec.template.spec: %s", err.text));
        return;
    }
    for (uint32_t i = 0; i < amounts.count; i++) {
        if (pod_set_take_extended(core, set, &amounts.items[i])) {
            continue;
        }
        struct str name = resource_find(core, amounts.items[i].resource);
        if (!str_is_set(name)) {
            shape_break(set->shape, REASON_NO_MATCHING_FLAVOR,
                        arena_format(&core->scratch,
                                     "asks for " STR_FMT ", which no queue and no node offers",
                                     STR_ARG(amounts.items[i].resource)));
            continue;
        }
        vector_add(&set->per_pod, name, amounts.items[i].value);
    }
}

/* The pods get the RuntimeClass's selector and tolerations beside their own. */
static void pod_set_read_placement(struct pod_set *set, const struct runtime_class *runtime)
{
    const struct runtime_scheduling *extra = runtime == NULL ? NULL : runtime->scheduling;
    const struct pod_spec *spec = set->spec;
    uint32_t selector_count = spec->node_selector.count;
    uint32_t toleration_count = spec->tolerations.count;
    uint32_t extra_pairs = extra == NULL ? 0 : extra->node_selector.count;
    uint32_t extra_tolerations = extra == NULL ? 0 : extra->tolerations.count;
    struct string_pair *pairs =
        mem_zalloc((selector_count + extra_pairs + 1) * sizeof(struct string_pair));
    struct toleration *tolerations =
        mem_zalloc((toleration_count + extra_tolerations + 1) * sizeof(struct toleration));
    for (uint32_t i = 0; i < selector_count; i++) {
        pairs[i] = spec->node_selector.items[i];
    }
    for (uint32_t i = 0; i < extra_pairs; i++) {
        pairs[selector_count + i] = extra->node_selector.items[i];
    }
    for (uint32_t i = 0; i < toleration_count; i++) {
        tolerations[i] = spec->tolerations.items[i];
    }
    for (uint32_t i = 0; i < extra_tolerations; i++) {
        tolerations[toleration_count + i] = extra->tolerations.items[i];
    }
    set->node_selector = (struct string_map){pairs, selector_count + extra_pairs};
    set->tolerations = (struct toleration_list){tolerations, toleration_count + extra_tolerations};
}

/* What makes a pod's place depend on other pods, beyond one such pod per node. */
static const char *placement_unsupported(const struct pod_spec *spec)
{
    const struct topology_spread_constraint_list *spread = &spec->topology_spread_constraints;
    for (uint32_t i = 0; i < spread->count; i++) {
        if (!str_eq_c(spread->items[i].when_unsatisfiable, "ScheduleAnyway")) {
            return "topologySpreadConstraints with whenUnsatisfiable DoNotSchedule, which Tallyman "
                   "doesn't judge yet; it would start with ScheduleAnyway";
        }
    }
    if (spec->scheduling_gates.count > 0) {
        return "schedulingGates, which keep kube-scheduler from placing its pods; it would start "
               "without them";
    }
    const struct affinity *affinity = spec->affinity;
    if (affinity == NULL) {
        return NULL;
    }
    if (affinity->pod_affinity != NULL && affinity->pod_affinity->required.count > 0) {
        return "required podAffinity, which Tallyman doesn't judge yet; it would start with the "
               "preferred form";
    }
    const struct pod_affinity *apart = affinity->pod_anti_affinity;
    for (uint32_t i = 0; apart != NULL && i < apart->required.count; i++) {
        const struct pod_affinity_term *term = &apart->required.items[i];
        if (!str_eq_c(term->topology_key, LABEL_HOSTNAME) || term->namespaces.count > 0 ||
            term->namespace_selector != NULL) {
            return "required podAntiAffinity, which Tallyman judges only by node "
                   "(topologyKey kubernetes.io/hostname) and within its namespace so far; it "
                   "would start with the preferred form";
        }
    }
    return NULL;
}

static void pod_set_check_placement(struct core *core, struct pod_set *set)
{
    const char *unsupported = placement_unsupported(set->spec);
    if (unsupported != NULL) {
        shape_break(set->shape, REASON_NEVER_FITS,
                    arena_format(&core->scratch, "spec.template.spec has %s", unsupported));
    }
}

static void pod_set_resolve(struct core *core, struct pod_set *set)
{
    const struct runtime_class *runtime = NULL;
    if (!str_is_empty(set->spec->runtime_class_name)) {
        runtime = named_find(core, KIND_RUNTIME_CLASS, set->spec->runtime_class_name);
        if (runtime == NULL) {
            shape_break(set->shape, REASON_MISSING_REFERENCE,
                        arena_format(&core->scratch, "RuntimeClass " STR_FMT " doesn't exist",
                                     STR_ARG(set->spec->runtime_class_name)));
        }
    }
    pod_set_read_placement(set, runtime);
    set->place_key = str_own(pod_set_place_key(core, set));
    pod_set_check_placement(core, set);
    pod_set_read_requests(core, set);
    for (uint32_t i = 0; i < set->spec->resource_claims.count; i++) {
        pod_set_read_claim(core, set, i);
    }
    pod_set_check_bound(core, set);
    if (set->has_extended && ask_is_special(set->ask)) {
        shape_break(
            set->shape, REASON_NEVER_FITS,
            arena_format(&core->scratch,
                         "asks for extended resources that DeviceClasses serve beside " STR_FMT
                         ", whose requests aren't just so many devices; Tallyman "
                         "doesn't judge both together, it would start with one of them",
                         STR_ARG(ask_names(core, set))));
    }
    pod_set_make_variants(core, set);
}

void shape_resolve(struct core *core, struct shape *shape)
{
    if (shape->is_resolved) {
        return;
    }
    shape_clear(core, shape);
    for (uint32_t s = 0; s < shape->set_count; s++) {
        pod_set_resolve(core, &shape->sets[s]);
    }
    shape->could_start_on = 0;
    shape->is_resolved = true;
}
