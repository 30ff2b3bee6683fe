/* order.c - who goes first, and how long something may last. */
#include "vopr.h"

#include <string.h>

#include "support/check.h"
#include "tallyman/api/admission.h"
#include "tallyman/api/codec.h"
#include "tallyman/api/job.h"

/* So long after a fault somebody may still wait for what it has done to a write. */
#define STARTING_MS 1000 /* a write's way */
#define CALM_MS     (3 * 60000)
/* Writes may be lost one after the other, and the controller be killed in between. */
#define LASTING_MS (20 * 60000)

/* -- order ---------------------------------------------------------------------------------------
 */

static int64_t priority_of(const struct vopr *v, const struct vopr_shape *shape)
{
    return shape->is_high ? v->high_value : 0;
}

static int64_t made_ms(const struct vopr *v, struct str uid)
{
    for (uint32_t i = 0; i < v->made_count; i++) {
        if (str_eq_c(uid, v->made[i].uid)) {
            return v->made[i].made_ms;
        }
    }
    return INT64_MAX;
}

/* It waits for nothing but quota, room, or those in front of it. */
static bool is_about_room(struct str reason)
{
    static const char *const reasons[] = {"QuotaExhausted",  "CohortExhausted", "BorrowingLimit",
                                          "BehindInQueue",   "NodesFull",       "NodeShape",
                                          "DevicesExhausted"};
    for (size_t i = 0; i < ARRAY_COUNT(reasons); i++) {
        if (str_eq_c(reason, reasons[i])) {
            return true;
        }
    }
    return false;
}

static bool waits_for_room(const struct vopr *v, uint32_t number)
{
    const struct admission *admission =
        sim_find(v->sim, KIND_ADMISSION, STR("default"), job_name(number));
    return admission != NULL && is_about_room(admission->status.reason);
}

void order_hear(struct vopr *v, uint32_t number, const struct sim_note *note)
{
    if (note->kind == SIM_JOB_WAITS) {
        bool waits = is_about_room(str_take(note->text, str_find_char(note->text, ':')));
        v->waits_ms[number] = !waits                    ? 0
                              : v->waits_ms[number] > 0 ? v->waits_ms[number]
                                                        : note->at_ms + 1;
        if (waits && note->at_ms - v->promised_ms[number] > STARTING_MS) {
            v->promised_ms[number] = 0; /* nobody stops for it any more */
        }
    } else if (note->kind == SIM_JOB_SUBMITTED || note->kind == SIM_JOB_SUSPENDED) {
        v->waits_ms[number] = v->promised_ms[number] = 0;
    }
}

void order_hear_stop(struct vopr *v, const struct job_patch *patch)
{
    struct arena arena;
    arena_init(&arena);
    void *value = NULL;
    struct err err;
    if (!rc_failed(decode_json(&arena, &suspended_record_schema, patch->suspended, &value, &err))) {
        struct str gang = ((const struct suspended_record *)value)->for_gang;
        for (uint32_t i = 0; i < VOPR_JOBS; i++) {
            if (str_ends_with(gang, job_name(i)) && v->promised_ms[i] == 0) {
                v->promised_ms[i] = sim_now_ms(v->sim) + 1;
            }
        }
    }
    arena_deinit(&arena);
}

/* It waited already when that start was decided, or when somebody was asked to stop for the sake of
 * it: the room that comes so is nobody else's. */
static bool has_waited(const struct vopr *v, uint32_t number, uint32_t started)
{
    int64_t decided_ms =
        v->promised_ms[started] > 0 ? v->promised_ms[started] : v->starting_ms[started];
    return v->waits_ms[number] > 0 && v->waits_ms[number] < decided_ms;
}

static bool asks_no_more(const struct vopr_shape *a, const struct vopr_shape *b, int64_t b_count)
{
    return a->queue == b->queue && !a->is_shared && !b->is_shared && a->pods <= b_count &&
           b->min_count == 0 && a->per_pod[CPU_MILLI] <= b->per_pod[CPU_MILLI] &&
           a->per_pod[DEVICES] == b->per_pod[DEVICES];
}

/* Nobody's fault, and nothing that was seen late. */
static bool is_calm(const struct vopr *v)
{
    int64_t now_ms = sim_now_ms(v->sim);
    return now_ms - v->fault_ms > CALM_MS && now_ms - v->class_changed_ms > SEEN_MS &&
           now_ms - v->quota_changed_ms > SEEN_MS && v->fault_rate == 0 && is_room_known(v);
}

/* What it asks for if it has waited long enough to be known, and for nothing else; else NULL. */
static const struct vopr_shape *waiting_shape(const struct vopr *v, uint32_t number)
{
    const struct job *job = sim_find(v->sim, KIND_JOB, STR("default"), job_name(number));
    /* The writes of two that start at once may overtake each other. */
    bool is_starting =
        v->starting_ms[number] > 0 && sim_now_ms(v->sim) - v->starting_ms[number] < STARTING_MS;
    bool is_waiting = job != NULL && !v->is_scaled[number] && !is_starting &&
                      job->spec.suspend.value && vopr_admitted_count(job) < 0 &&
                      sim_now_ms(v->sim) - made_ms(v, job->meta.uid) > SEEN_MS;
    return is_waiting && waits_for_room(v, number) ? cluster_shape(v, job->meta.uid) : NULL;
}

void check_order(struct vopr *v, uint32_t number)
{
    const struct job *job = sim_find(v->sim, KIND_JOB, STR("default"), job_name(number));
    const struct vopr_shape *shape = job == NULL ? NULL : cluster_shape(v, job->meta.uid);
    if (shape == NULL || !is_calm(v)) {
        return;
    }
    for (uint32_t i = 0; i < VOPR_JOBS; i++) {
        const struct vopr_shape *asked = i == number ? NULL : waiting_shape(v, i);
        if (asked != NULL && has_waited(v, i, number) &&
            priority_of(v, asked) > priority_of(v, shape) &&
            asks_no_more(asked, shape, vopr_admitted_count(job))) {
            fail_msg(STR_FMT " is admitted before " STR_FMT
                             ", which has a higher priority and asks for no more",
                     STR_ARG(job_name(number)), STR_ARG(job_name(i)));
        }
    }
}

/* -- how long something lasts --------------------------------------------------------------------
 */

static void count_time(struct vopr *v, int64_t *since_ms, bool is_so, uint32_t number,
                       const char *what)
{
    int64_t now_ms = sim_now_ms(v->sim) + 1;
    *since_ms = !is_so ? 0 : *since_ms == 0 ? now_ms : *since_ms;
    if (*since_ms != 0 && now_ms - *since_ms > LASTING_MS) {
        fail_msg(STR_FMT " %s for %lld s", STR_ARG(job_name(number)), what,
                 (long long)((now_ms - *since_ms) / 1000));
    }
}

static bool is_short(const struct sim_job_state *state)
{
    return !state->is_whole && state->succeeded < state->min_count;
}

void check_duration(struct vopr *v, uint32_t number)
{
    const struct job *job = sim_find(v->sim, KIND_JOB, STR("default"), job_name(number));
    struct sim_job_state state = {.is_suspended = true};
    bool is_there = job != NULL && sim_job_state(v->sim, STR("default"), job_name(number), &state);
    bool is_running = is_there && !state.is_suspended && !state.is_finished;
    int64_t count = is_running ? vopr_admitted_count(job) : -1;
    bool is_admitted = is_running && count >= 0;
    bool is_broken = is_admitted && is_short(&state);
    bool is_oversized = is_admitted && v->is_scaled[number] && job->status.active.value > count;
    count_time(v, &v->loose_ms[number], is_running && count < 0, number, "runs without a record");
    count_time(v, &v->broken_ms[number], is_broken, number, "is admitted and not whole");
    count_time(v, &v->oversized_ms[number], is_oversized, number,
               "has more pods than it was admitted with");
}
