/* record.c - what is written down of an admission, so that it is known again after a restart. */
#include "avoid.h"
#include "check.h"

struct str record_json(struct core *core, const struct schema *schema, const void *value)
{
    struct json_writer *writer = json_writer_new();
    encode_object(writer, schema, value);
    struct str text = arena_copy_str(core->out->arena, json_writer_text(writer));
    json_writer_free(writer);
    return text;
}

/* Of the set's resources and of the claims that it names. */
static struct string_map record_flavors(struct core *core, const struct reserve_request *reserve,
                                        const struct reserved_set *reserved,
                                        const struct pod_set *set)
{
    struct string_map map = {.count = 0};
    uint32_t room = reserved->per_pod.count;
    for (uint32_t c = 0; c < reserve->claim_count; c++) {
        room += reserve->claims[c].charges.count;
    }
    map.items = ARENA_ARRAY(&core->scratch, struct string_pair, room + 1);
    for (uint32_t i = 0; i < reserved->per_pod.count; i++) {
        map.items[map.count++] = (struct string_pair){charge_asked(&reserved->per_pod.items[i]),
                                                      reserved->per_pod.items[i].flavor};
    }
    for (uint32_t c = 0; c < reserve->claim_count; c++) {
        const struct charge_list *charges = &reserve->claims[c].charges;
        bool is_named = pod_set_names_claim(set, reserve->claims[c].key);
        for (uint32_t i = 0; is_named && i < charges->count; i++) {
            if (!str_is_set(string_map_find(&map, charges->items[i].resource))) {
                map.items[map.count++] =
                    (struct string_pair){charges->items[i].resource, charges->items[i].flavor};
            }
        }
    }
    return map;
}

static struct resource_list record_requests(struct core *core, const struct charge_list *charges)
{
    struct resource_list list = {.count = charges->count};
    list.items = ARENA_ARRAY(&core->scratch, struct resource_amount, charges->count + 1);
    for (uint32_t i = 0; i < charges->count; i++) {
        const struct charge *charge = &charges->items[i];
        bool is_milli = resource_is_milli(charge->resource);
        list.items[i].name = charge_asked(charge);
        list.items[i].text =
            arena_format(&core->scratch, "%lld%s", (long long)charge->amount, is_milli ? "m" : "");
        list.items[i].value.nano = (i128)charge->amount * (is_milli ? 1000000 : 1000000000);
    }
    return list;
}

static struct record_restore *restore_of(struct core *core, const struct pod_set *set,
                                         const struct set_choice *choice)
{
    struct record_restore *restore = ARENA_NEW(&core->scratch, struct record_restore);
    *restore = (struct record_restore){.node_selector = set->spec->node_selector,
                                       .tolerations = set->spec->tolerations,
                                       .parallelism = {true, set->size.pods}};
    struct avoidance avoidance = avoid_find(core, set, choice);
    avoid_record(set, &avoidance, restore);
    return restore;
}

/* In the scratch arena, without what is put back. */
static struct record_pod_set *record_sets(struct core *core, const struct gang *gang,
                                          const struct reserve_request *reserve)
{
    const struct shape *shape = gang->shape;
    struct record_pod_set *sets =
        ARENA_ARRAY(&core->scratch, struct record_pod_set, shape->set_count);
    for (uint32_t s = 0; s < shape->set_count; s++) {
        const struct reserved_set *reserved = &reserve->sets[s];
        sets[s] = (struct record_pod_set){
            .name = reserved->name,
            .count = {true, reserved->count},
            .flavors = record_flavors(core, reserve, reserved, &shape->sets[s]),
            .requests = record_requests(core, &reserved->per_pod)};
    }
    return sets;
}

struct str record_text(struct core *core, struct gang *gang, const struct evaluation *evaluation)
{
    const struct shape *shape = gang->shape;
    struct record_pod_set *sets = record_sets(core, gang, &evaluation->reserve);
    for (uint32_t s = 0; s < shape->set_count && shape->set_count > 1; s++) {
        sets[s].restore = restore_of(core, &shape->sets[s], &evaluation->sets[s]);
    }
    struct admission_record record = {
        .queue = gang->queue->name,
        .at = {true, core->now_ms},
        .priority = {true, gang->priority},
        .pod_sets = {.items = sets, .count = shape->set_count},
        .turn = {gang->reservation->turn > 0, gang->reservation->turn},
        .topology = record_domains(core, gang),
        .restore =
            shape->set_count > 1 ? NULL : restore_of(core, &shape->sets[0], &evaluation->sets[0])};
    if (gang->room->check != NULL) {
        record.request =
            request_name(&core->scratch, gang->name, gang->uid, gang->room->check->attempt);
    }
    if (runtime_deadline_to_set(gang).is_set) {
        struct record_restore *restore = record.restore;
        if (restore == NULL) {
            record.restore = restore = ARENA_NEW(&core->scratch, struct record_restore);
        }
        restore->active_deadline_seconds = (struct opt_int){true, gang->deadline_ms / 1000};
    }
    return record_json(core, &admission_record_schema, &record);
}

struct str record_reservation(struct core *core, const struct gang *gang,
                              const struct evaluation *evaluation, struct str asks)
{
    struct request_record record = {
        .queue = gang->queue->name,
        .asks = asks,
        .failures = {true, gang->trouble->memory.requeue_count},
        .pod_sets = {.items = record_sets(core, gang, &evaluation->reserve),
                     .count = gang->shape->set_count}};
    return record_json(core, &request_record_schema, &record);
}

static bool is_same_flavors(const struct string_map *a, const struct string_map *b)
{
    bool is_same = a->count == b->count;
    for (uint32_t i = 0; i < a->count && is_same; i++) {
        is_same = str_eq(a->items[i].value, string_map_find(b, a->items[i].key));
    }
    return is_same;
}

bool record_fits(struct core *core, const struct gang *gang, const struct request_record *record,
                 struct evaluation *evaluation)
{
    struct reserve_request *reserve = &evaluation->reserve;
    if (record->pod_sets.count != reserve->set_count) {
        return false;
    }
    for (uint32_t s = 0; s < reserve->set_count; s++) {
        const struct record_pod_set *set = &record->pod_sets.items[s];
        struct string_map flavors =
            record_flavors(core, reserve, &reserve->sets[s], &gang->shape->sets[s]);
        if (!set->count.is_set || set->count.value < 1 ||
            set->count.value > reserve->sets[s].count ||
            !str_eq(set->name, reserve->sets[s].name) ||
            !is_same_flavors(&set->flavors, &flavors)) {
            return false;
        }
    }
    for (uint32_t s = 0; s < reserve->set_count; s++) {
        reserve->sets[s].count = record->pod_sets.items[s].count.value;
    }
    return true;
}
