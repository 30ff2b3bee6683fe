/* admission_columns.c - what an Admission's columns tell of all pod sets together. */
#include "internal.h"

struct asked_device {
    struct str name;
    int64_t amount;
};

struct asked_devices {
    struct asked_device *items;
    uint32_t count;
    uint32_t capacity;
};

static void ask(struct asked_devices *asked, struct arena *arena, struct str name, int64_t amount)
{
    uint32_t at = 0;
    while (at < asked->count && !str_eq(asked->items[at].name, name)) {
        at++;
    }
    if (at == asked->count) {
        asked->items = arena_grow(arena, asked->items, asked->count, &asked->capacity,
                                  sizeof(struct asked_device));
        asked->items[asked->count++] = (struct asked_device){.name = name};
    }
    asked->items[at].amount = sat_add(asked->items[at].amount, amount);
}

static void ask_for_set(struct asked_devices *asked, struct arena *arena, const struct pod_set *set)
{
    for (uint32_t i = 0; i < set->device_count; i++) {
        ask(asked, arena, set->devices[i].profile->class_name,
            sat_mul(set->devices[i].charged, set->size.pods));
    }
    for (uint32_t i = 0; i < set->per_pod.count; i++) {
        struct str name = set->per_pod.items[i].resource;
        if (str_find_char(name, '/') < name.len) {
            ask(asked, arena, name, i128_clamp(set->per_pod.items[i].value * set->size.pods));
        }
    }
}

static void ask_for_claims(struct asked_devices *asked, struct arena *arena,
                           const struct shape *shape, uint32_t s)
{
    const struct pod_set *set = &shape->sets[s];
    for (uint32_t c = 0; c < set->claim_count; c++) {
        for (uint32_t i = 0; shape_names_first(shape, s, c) && i < set->claims[c].request_count;
             i++) {
            ask(asked, arena, set->claims[c].requests[i].profile->class_name,
                set->claims[c].requests[i].charged);
        }
    }
}

struct str admission_asked_devices(const struct gang *gang, struct arena *arena)
{
    struct asked_devices asked = {.items = NULL};
    const struct shape *shape = gang->shape;
    for (uint32_t s = 0; shape != NULL && s < shape->set_count; s++) {
        ask_for_set(&asked, arena, &shape->sets[s]);
        ask_for_claims(&asked, arena, shape, s);
    }
    struct text text;
    text_init(&text, arena, 250);
    for (uint32_t i = 0; i < asked.count; i++) {
        text_addf(&text, "%s" STR_FMT "=%lld", i == 0 ? "" : " ", STR_ARG(asked.items[i].name),
                  (long long)asked.items[i].amount);
    }
    return text_str(&text);
}

struct str admission_held_flavors(const struct gang *gang, struct arena *arena)
{
    const struct reservation *reservation = gang->reservation;
    uint32_t room = 0;
    for (uint32_t s = 0; s < reservation->set_count; s++) {
        room += reservation->sets[s].per_pod.count;
    }
    struct str *names = ARENA_ARRAY(arena, struct str, room + 1);
    uint32_t count = 0;
    struct text text;
    text_init(&text, arena, 250);
    for (uint32_t s = 0; s < reservation->set_count; s++) {
        const struct charge_list *charges = &reservation->sets[s].per_pod;
        for (uint32_t i = 0; i < charges->count; i++) {
            uint32_t at = 0;
            while (at < count && !str_eq(names[at], charges->items[i].flavor)) {
                at++;
            }
            if (at == count) {
                names[count++] = charges->items[i].flavor;
                text_addf(&text, "%s" STR_FMT, at == 0 ? "" : ",", STR_ARG(names[at]));
            }
        }
    }
    return text_str(&text);
}
