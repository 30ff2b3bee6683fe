/* simulate_record.c - what the pod-by-pod simulator tells, as a history: so that manifests get the
 * same summary and chart as a load. */
#include "simulate.h"

#include "tallyman/api/dra.h"
#include "tallyman/api/job.h"
#include "tallyman/api/node.h"
#include "tallyman/base/map.h"
#include "tallyman/base/time_text.h"

struct record_slot {
    struct str key; /* borrowed from the arena */
    uint32_t index;
    UT_hash_handle hh;
};

struct record *record_new(struct arena *arena)
{
    struct record *record = ARENA_NEW(arena, struct record);
    record->workload = (struct workload){.arena = arena};
    record->history.workload = &record->workload;
    return record;
}

void record_deinit(struct record *record)
{
    struct record_slot *slot;
    struct record_slot *next;
    HASH_ITER (hh, record->slots, slot, next) {
        HASH_DEL(record->slots, slot);
        mem_free(slot);
    }
    history_deinit(&record->history);
    workload_deinit(&record->workload);
}

/* Whole devices of extended resources that one pod asks for; of cpu and memory nobody asks here. */
static int64_t extended_units(const struct pod_spec *spec)
{
    int64_t units = 0;
    for (uint32_t c = 0; c < spec->containers.count; c++) {
        const struct resource_requirements *resources = &spec->containers.items[c].resources;
        const struct resource_list *list =
            resources->requests.count > 0 ? &resources->requests : &resources->limits;
        for (uint32_t i = 0; i < list->count; i++) {
            bool is_extended = str_find_char(list->items[i].name, '/') < list->items[i].name.len;
            units = sat_add(units, is_extended ? quantity_units_up(list->items[i].value) : 0);
        }
    }
    return units;
}

/* Of a request with alternatives the first: it is what is tried first. */
static int64_t request_devices(const struct device_request *request)
{
    const struct device_request_exact *exact = request->exactly != NULL ? request->exactly
                                               : request->first_available.count > 0
                                                   ? &request->first_available.items[0]
                                                   : NULL;
    if (exact == NULL || str_eq_c(exact->allocation_mode, "All")) {
        return 0; /* known only once it is allocated */
    }
    return exact->count.is_set ? exact->count.value : 1;
}

/* What the claims of one pod, made from templates, ask for. */
static int64_t claimed_units(struct sim *sim, const struct job *job)
{
    const struct pod_resource_claim_list *claims = &job->spec.pod_template.spec.resource_claims;
    int64_t units = 0;
    for (uint32_t c = 0; c < claims->count; c++) {
        struct str name = claims->items[c].resource_claim_template_name;
        const struct resource_claim_template *template =
            str_is_empty(name)
                ? NULL
                : sim_find(sim, KIND_RESOURCE_CLAIM_TEMPLATE, job->meta.namespace_name, name);
        for (uint32_t i = 0; template != NULL && i < template->spec.spec.devices.requests.count;
             i++) {
            int64_t devices = request_devices(&template->spec.spec.devices.requests.items[i]);
            units = sat_add(units, devices);
        }
    }
    return units;
}

static int64_t run_for_ms(const struct job *job)
{
    struct str text = string_map_get(&job->meta.annotations, SIM_ANNOTATION_RUN_FOR);
    if (!str_is_set(text)) {
        text = string_map_get(&job->spec.pod_template.meta.annotations, SIM_ANNOTATION_RUN_FOR);
    }
    int64_t run_ms = 0;
    return duration_parse(text, &run_ms) ? run_ms : 0;
}

static struct record_slot *slot_add(struct record *record, const struct sim_note *note,
                                    const struct job *job, const struct sim_job_state *state)
{
    struct arena *arena = record->workload.arena;
    struct str queue = string_map_get(&job->meta.labels, "tallyman.dev/queue");
    uint32_t queue_index =
        workload_queue_get(&record->workload, str_is_empty(queue) ? STR("no queue") : queue);
    struct str class_name = job->spec.pod_template.spec.priority_class_name;
    uint32_t class_index = workload_class_get(
        &record->workload, str_is_empty(class_name) ? STR("no priority class") : class_name);
    int64_t units =
        sat_add(extended_units(&job->spec.pod_template.spec), claimed_units(record->sim, job));
    struct bulk_gang gang = {.name = arena_copy_str(arena, job->meta.name),
                             .namespace_name = arena_copy_str(arena, job->meta.namespace_name),
                             .queue = record->workload.queues[queue_index].name,
                             .submit_ms = note->at_ms,
                             .run_ms = run_for_ms(job),
                             .pods = state->wanted,
                             .units_per_pod = units};
    uint32_t index = record->workload.gang_count;
    if (rc_failed(workload_add(&record->workload, &gang, queue_index, class_index, NULL))) {
        return NULL; /* beyond SIMULATE_JOBS_MAX they aren't told of */
    }
    struct record_slot *slot = MEM_NEW(struct record_slot);
    slot->key = arena_copy_str(arena, note->job);
    slot->index = index;
    HASH_ADD_KEYPTR(hh, record->slots, slot->key.ptr, (unsigned)slot->key.len, slot);
    return slot;
}

static struct record_slot *slot_get(struct record *record, const struct sim_note *note)
{
    struct record_slot *slot = NULL;
    HASH_FIND(hh, record->slots, note->job.ptr, (unsigned)note->job.len, slot);
    if (slot != NULL || note->kind != SIM_JOB_SUBMITTED) {
        return slot;
    }
    size_t slash = str_find_char(note->job, '/');
    struct str space = str_take(note->job, slash);
    struct str name = str_skip(note->job, slash + 1);
    const struct job *job = sim_find(record->sim, KIND_JOB, space, name);
    struct sim_job_state state;
    bool is_there = job != NULL && sim_job_state(record->sim, space, name, &state);
    return is_there ? slot_add(record, note, job, &state) : NULL;
}

/* "Reason: sentence", as an Admission says it. */
static enum reason reason_of(struct str summary)
{
    struct str code = str_take(summary, str_find_char(summary, ':'));
    for (int reason = REASON_NONE + 1; reason < REASON_COUNT; reason++) {
        if (str_eq_c(code, reason_info((enum reason)reason)->code)) {
            return (enum reason)reason;
        }
    }
    return REASON_NONE;
}

/* Devices of claims are known once they are allocated. */
static void count_devices(struct record *record, const struct sim_note *note, uint32_t index)
{
    size_t slash = str_find_char(note->job, '/');
    struct sim_job_state state;
    struct bulk_gang *gang = &record->workload.gangs[index];
    if (sim_job_state(record->sim, str_take(note->job, slash), str_skip(note->job, slash + 1),
                      &state) &&
        state.devices > 0) {
        gang->units = state.devices; /* pods may share one */
    }
}

static bool is_working(const struct record *record, uint32_t index)
{
    const struct history *history = &record->history;
    uint32_t last = index < history->job_count ? history->jobs[index].last : HISTORY_NONE;
    return last != HISTORY_NONE && history->spans[last].end == SPAN_OPEN;
}

/* False: nothing that a history is made of. */
static bool translate(const struct record *record, const struct sim_note *note, uint32_t index,
                      struct bulk_note *ret)
{
    bool works = is_working(record, index);
    switch ((int)note->kind) {
    case SIM_JOB_SUBMITTED:
        ret->change = BULK_SUBMITTED;
        return true;
    case SIM_JOB_WAITS:
    case SIM_JOB_ADMITTED:
        ret->change = BULK_WAITS;
        ret->reason = note->kind == SIM_JOB_WAITS ? reason_of(note->text) : REASON_NONE;
        return !works;
    case SIM_JOB_WHOLE:
        ret->change = BULK_STARTED;
        return !works;
    case SIM_JOB_BROKEN:
        ret->change = BULK_BROKEN;
        return works;
    case SIM_JOB_SUSPENDED:
        ret->change = BULK_STOPPED;
        return true;
    case SIM_JOB_FINISHED:
        ret->change = BULK_FINISHED;
        return true;
    default:
        return false;
    }
}

void record_note(struct record *record, const struct sim_note *note)
{
    struct record_slot *slot = str_is_set(note->job) ? slot_get(record, note) : NULL;
    struct bulk_note told = {.at_ms = note->at_ms};
    if (slot == NULL ||
        (note->kind == SIM_JOB_SUBMITTED && slot->index < record->history.job_count) ||
        !translate(record, note, slot->index, &told)) {
        return; /* made again under the same name: its first life is told */
    }
    told.gang = slot->index;
    const struct history *history = &record->history;
    if ((told.change == BULK_BROKEN || told.change == BULK_STOPPED) &&
        is_working(record, slot->index)) {
        told.lost_ms = note->at_ms - history->spans[history->jobs[slot->index].last].start_ms;
    }
    if (told.change == BULK_STARTED) {
        count_devices(record, note, slot->index);
    }
    if (slot->index < history->job_count && history->jobs[slot->index].is_finished) {
        return;
    }
    history_note(&record->history, &told);
}

static void add_extended(void *ctx, const void *value)
{
    const struct node *node = value;
    int64_t *units = ctx;
    for (uint32_t i = 0; i < node->status.allocatable.count; i++) {
        const struct resource_amount *amount = &node->status.allocatable.items[i];
        bool is_extended = str_find_char(amount->name, '/') < amount->name.len;
        *units = sat_add(*units, is_extended ? quantity_units_down(amount->value) : 0);
    }
}

void record_capacity(struct record *record, struct sim *sim)
{
    uint64_t version = sim_supply_version(sim);
    if (record->has_capacity && record->supply_version == version) {
        return;
    }
    int64_t units = sim_devices(sim).total;
    sim_each(sim, KIND_NODE, add_extended, &units);
    if (!record->has_capacity || record->capacity != units) {
        history_capacity(&record->history, sim_now_ms(sim), units);
    }
    record->has_capacity = true;
    record->supply_version = version;
    record->capacity = units;
}
