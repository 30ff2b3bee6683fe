/* simulate_history.c - notes become the life of each job. */
#include "simulate_history.h"

#include <string.h>

#include "tallyman/api/quantity.h"
#include "tallyman/base/alloc.h"

void history_deinit(struct history *history)
{
    mem_free(history->jobs);
    mem_free(history->spans);
    mem_free(history->steps);
    mem_free(history->waits);
}

static struct history_job *job_get(struct history *history, uint32_t index)
{
    while (history->job_count <= index) {
        history->jobs = mem_grow(history->jobs, history->job_count, &history->job_capacity,
                                 sizeof(*history->jobs));
        history->jobs[history->job_count++] =
            (struct history_job){.first = HISTORY_NONE, .last = HISTORY_NONE};
    }
    return &history->jobs[index];
}

static int64_t *waits_get(struct history *history, uint32_t queue)
{
    while (history->wait_count <= queue) {
        history->waits = mem_grow(history->waits, history->wait_count, &history->wait_capacity,
                                  sizeof(*history->waits));
        memset(history->waits[history->wait_count++], 0, sizeof(*history->waits));
    }
    return history->waits[queue];
}

/* What it has waited since the last note counts for the reason that it had. */
static void count_wait(struct history *history, uint32_t index, int64_t now_ms)
{
    struct history_job *job = job_get(history, index);
    int64_t waited_ms = now_ms - job->since_ms;
    job->wait_ms = sat_add(job->wait_ms, waited_ms);
    job->since_ms = now_ms;
    int64_t *waits = waits_get(history, history->workload->tags[index].queue);
    waits[job->reason] = sat_add(waits[job->reason], waited_ms);
}

static void span_open(struct history *history, struct history_job *job, int64_t now_ms)
{
    history->spans = mem_grow(history->spans, history->span_count, &history->span_capacity,
                              sizeof(*history->spans));
    uint32_t index = history->span_count++;
    history->spans[index] = (struct history_span){.start_ms = now_ms, .next = HISTORY_NONE};
    if (job->last == HISTORY_NONE) {
        job->first = index;
    } else {
        history->spans[job->last].next = index;
    }
    job->last = index;
}

static bool is_working(const struct history *history, const struct history_job *job)
{
    return job->last != HISTORY_NONE && history->spans[job->last].end == SPAN_OPEN;
}

static void span_close(struct history *history, struct history_job *job, int64_t now_ms,
                       enum span_end end)
{
    if (is_working(history, job)) {
        history->spans[job->last].end_ms = now_ms;
        history->spans[job->last].end = end;
    }
    job->since_ms = now_ms;
    job->reason = REASON_NONE;
}

void history_note(struct history *history, const struct bulk_note *note)
{
    struct history_job *job = job_get(history, note->gang);
    job->lost_ms = sat_add(job->lost_ms, note->lost_ms);
    switch (note->change) {
    case BULK_SUBMITTED:
        job->is_submitted = true;
        job->since_ms = note->at_ms;
        break;
    case BULK_WAITS:
        count_wait(history, note->gang, note->at_ms);
        job->reason = note->reason;
        break;
    case BULK_STARTED:
        count_wait(history, note->gang, note->at_ms);
        span_open(history, job, note->at_ms);
        break;
    case BULK_BROKEN:
        job->failures++;
        span_close(history, job, note->at_ms, SPAN_BROKEN);
        break;
    case BULK_FAILED:
        job->failures++;
        span_close(history, job, note->at_ms, SPAN_FAILED);
        span_open(history, job, note->at_ms);
        break;
    case BULK_STOPPED:
        job->stops++;
        if (!is_working(history, job)) {
            count_wait(history, note->gang, note->at_ms);
        }
        span_close(history, job, note->at_ms, SPAN_STOPPED);
        break;
    case BULK_FINISHED:
        span_close(history, job, note->at_ms, SPAN_FINISHED);
        job->is_finished = true;
        job->end_ms = note->at_ms;
        break;
    }
}

void history_capacity(struct history *history, int64_t at_ms, int64_t units)
{
    history->steps = mem_grow(history->steps, history->step_count, &history->step_capacity,
                              sizeof(*history->steps));
    history->steps[history->step_count++] = (struct history_step){at_ms, units};
}

void history_close(struct history *history, int64_t at_ms)
{
    for (uint32_t i = 0; i < history->job_count; i++) {
        struct history_job *job = &history->jobs[i];
        if (!job->is_submitted || job->is_finished) {
            continue;
        }
        if (is_working(history, job)) {
            history->spans[job->last].end_ms = at_ms;
        } else {
            count_wait(history, i, at_ms);
        }
    }
}

int64_t history_slowdown_milli(const struct history *history, uint32_t index)
{
    const struct history_job *job = &history->jobs[index];
    const struct bulk_gang *gang = &history->workload->gangs[index];
    int64_t run_ms = gang->run_ms > SLOWDOWN_FLOOR_MS ? gang->run_ms : SLOWDOWN_FLOOR_MS;
    int64_t lasted_ms = job->end_ms - gang->submit_ms;
    int64_t milli = summary_milli(lasted_ms, run_ms);
    return milli > 1000 ? milli : 1000;
}
