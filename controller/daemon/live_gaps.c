/* live_gaps.c - what can't be read must not look like what doesn't exist.
 *
 * A reader without the right to see DeviceClasses isn't somebody whose Job names a class that isn't
 * there: where a missing object would be told as the gang's own fault, an empty one stands in. */
#include "live.h"

#include "tallyman/api/dra.h"
#include "tallyman/api/job.h"
#include "tallyman/api/node.h"
#include "tallyman/api/queue.h"

struct known_name {
    enum object_kind kind;
    struct str name; /* borrowed from the objects */
};

struct filler {
    struct live *live;
    struct known_name *known; /* in live->arena; all objects of kinds that weren't read */
    uint32_t count;
    uint32_t capacity;
};

static bool is_unread(const struct live *live, enum object_kind kind)
{
    for (uint32_t i = 0; i < live->gap_count; i++) {
        if (live->gaps[i].kind == kind) {
            return true;
        }
    }
    return false;
}

static void meet(struct filler *filler, enum object_kind kind, struct str name)
{
    filler->known = arena_grow(&filler->live->arena, filler->known, filler->count,
                               &filler->capacity, sizeof(struct known_name));
    filler->known[filler->count++] = (struct known_name){kind, name};
}

/* The kind's struct with nothing but its name; every field's absence is its default. */
static void stand_in(struct filler *filler, enum object_kind kind, struct str name)
{
    struct live *live = filler->live;
    if (str_is_empty(name) || !is_unread(live, kind)) {
        return;
    }
    for (uint32_t i = filler->count; i > 0; i--) {
        if (filler->known[i - 1].kind == kind && str_eq(filler->known[i - 1].name, name)) {
            return;
        }
    }
    struct object_meta *meta = arena_alloc(&live->arena, kind_info(kind)->schema->bytes);
    meta->name = name;
    meta->uid = arena_format(&live->arena, "%s/" STR_FMT, kind_info(kind)->name, STR_ARG(name));
    meta->resource_version = STR("1");
    object_set_add(&live->objects, kind, meta);
    meet(filler, kind, live->objects.items[live->objects.count - 1].value->name);
}

static void fill_for_claim(struct filler *filler, const struct device_claim *claim)
{
    for (uint32_t i = 0; i < claim->requests.count; i++) {
        const struct device_request *request = &claim->requests.items[i];
        if (request->exactly != NULL) {
            stand_in(filler, KIND_DEVICE_CLASS, request->exactly->device_class_name);
        }
        for (uint32_t f = 0; f < request->first_available.count; f++) {
            stand_in(filler, KIND_DEVICE_CLASS,
                     request->first_available.items[f].device_class_name);
        }
    }
}

static void fill_for_job(struct filler *filler, const struct job *job)
{
    const struct pod_spec *spec = &job->spec.pod_template.spec;
    stand_in(filler, KIND_PRIORITY_CLASS, spec->priority_class_name);
    stand_in(filler, KIND_PRIORITY_CLASS,
             string_map_get(&job->meta.labels, "tallyman.dev/priority-class"));
    stand_in(filler, KIND_RUNTIME_CLASS, spec->runtime_class_name);
    stand_in(filler, KIND_NAMESPACE, job->meta.namespace_name);
}

static void fill_for_queue(struct filler *filler, struct queue *queue)
{
    const struct live *live = filler->live;
    static struct label_selector all; /* no condition at all: every namespace */
    bool is_blind = is_unread(live, KIND_NODE) || is_unread(live, KIND_POD) ||
                    is_unread(live, KIND_RESOURCE_SLICE) || is_unread(live, KIND_RESOURCE_CLAIM) ||
                    is_unread(live, KIND_DEVICE_CLASS);
    if (is_blind) {
        queue->spec.fit = STR("Quota");
    }
    if (is_unread(live, KIND_NAMESPACE)) {
        queue->spec.namespace_selector = &all;
    }
    for (uint32_t g = 0; g < queue->spec.resource_groups.count; g++) {
        const struct quota_flavor_list *flavors = &queue->spec.resource_groups.items[g].flavors;
        for (uint32_t f = 0; f < flavors->count; f++) {
            stand_in(filler, KIND_RESOURCE_FLAVOR, flavors->items[f].name);
        }
    }
}

void live_fill_gaps(struct live *live)
{
    if (live->gap_count == 0) {
        return;
    }
    struct filler filler = {.live = live};
    uint32_t count = live->objects.count; /* the stand-ins behind need none themselves */
    for (uint32_t i = 0; i < count; i++) {
        const struct object *object = &live->objects.items[i];
        if (!kind_info(object->kind)->is_namespaced && is_unread(live, object->kind)) {
            meet(&filler, object->kind, object->value->name);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        struct object_meta *value = (struct object_meta *)(uintptr_t)live->objects.items[i].value;
        switch ((int)live->objects.items[i].kind) {
        case KIND_JOB:
            fill_for_job(&filler, (const struct job *)value);
            break;
        case KIND_QUEUE:
            fill_for_queue(&filler, (struct queue *)value);
            break;
        case KIND_RESOURCE_CLAIM:
            fill_for_claim(&filler, &((const struct resource_claim *)value)->spec.devices);
            break;
        case KIND_RESOURCE_CLAIM_TEMPLATE:
            fill_for_claim(&filler,
                           &((const struct resource_claim_template *)value)->spec.spec.devices);
            break;
        default:
            break;
        }
    }
}
