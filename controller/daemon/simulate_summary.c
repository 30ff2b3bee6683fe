/* simulate_summary.c - what a history amounts to.
 *
 * The lower bound of the makespan is the largest of three that hold for any schedule: all work
 * spread over all devices; for each job its submission and its run time; for each moment of
 * submission that moment and the work that comes from then on, spread over all devices. */
#include "simulate_history.h"

#include <stdlib.h>
#include <string.h>

#include "tallyman/api/quantity.h"
#include "tallyman/base/alloc.h"

int64_t summary_milli(int64_t part, int64_t whole)
{
    return whole <= 0 ? 0 : (int64_t)((i128)part * 1000 / whole);
}

static int64_t job_devices(const struct history *history, uint32_t index)
{
    return bulk_gang_units(&history->workload->gangs[index]);
}

/* -- distributions --------------------------------------------------------------------------------
 */

static int compare_i64(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return left < right ? -1 : left > right ? 1 : 0;
}

/* The smallest value that so many percent are no larger than. */
static int64_t percentile(const int64_t *sorted, int64_t count, int64_t percent)
{
    int64_t rank = (count * percent + 99) / 100;
    return count == 0 ? 0 : sorted[rank > 0 ? rank - 1 : 0];
}

static struct distribution distribution_of(int64_t *values, int64_t count)
{
    i128 sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += values[i];
    }
    qsort(values, (size_t)count, sizeof(*values), compare_i64);
    return (struct distribution){.mean = count == 0 ? 0 : (int64_t)(sum / count),
                                 .p50 = percentile(values, count, 50),
                                 .p90 = percentile(values, count, 90),
                                 .p99 = percentile(values, count, 99),
                                 .max = percentile(values, count, 100)};
}

/* -- groups ---------------------------------------------------------------------------------------
 */

static void count_job(const struct history *history, uint32_t index, struct summary_group *group)
{
    const struct history_job *job = &history->jobs[index];
    int64_t devices = job_devices(history, index);
    group->jobs++;
    group->finished += job->is_finished ? 1 : 0;
    group->stops += job->stops;
    group->failures += job->failures;
    group->lost = sat_add(group->lost, sat_mul(job->lost_ms, devices));
    for (uint32_t i = job->first; i != HISTORY_NONE; i = history->spans[i].next) {
        int64_t lasted_ms = history->spans[i].end_ms - history->spans[i].start_ms;
        group->worked = sat_add(group->worked, sat_mul(lasted_ms, devices));
    }
}

/* Which jobs are of which group: they are put together by a counting sort, so that a thousand
 * queues cost one walk. */
struct grouping {
    uint32_t *order;  /* jobs by group */
    uint32_t *starts; /* of each group, and one behind the last */
};

static uint32_t group_of(const struct history *history, uint32_t job, bool by_queue)
{
    const struct workload_tag *tag = &history->workload->tags[job];
    return by_queue ? tag->queue : tag->class_index;
}

static struct grouping grouping_make(struct arena *arena, const struct history *history,
                                     uint32_t groups, bool by_queue)
{
    struct grouping grouping = {.order = ARENA_ARRAY(arena, uint32_t, history->job_count + 1),
                                .starts = ARENA_ARRAY(arena, uint32_t, groups + 2)};
    uint32_t *at = ARENA_ARRAY(arena, uint32_t, groups + 2);
    for (uint32_t i = 0; i < history->job_count; i++) {
        if (history->jobs[i].is_submitted) {
            at[group_of(history, i, by_queue) + 1]++;
        }
    }
    for (uint32_t g = 0; g <= groups; g++) {
        at[g + 1] += at[g];
    }
    memcpy(grouping.starts, at, (groups + 1) * sizeof(*at));
    for (uint32_t i = 0; i < history->job_count; i++) {
        if (history->jobs[i].is_submitted) {
            grouping.order[at[group_of(history, i, by_queue)]++] = i;
        }
    }
    return grouping;
}

static void fill_group(const struct history *history, const uint32_t *jobs, uint32_t count,
                       struct summary_group *group)
{
    int64_t *waits = mem_alloc(mem_array_bytes((size_t)count + 1, sizeof(int64_t)));
    int64_t *slowdowns = mem_alloc(mem_array_bytes((size_t)count + 1, sizeof(int64_t)));
    int64_t finished = 0;
    for (uint32_t i = 0; i < count; i++) {
        count_job(history, jobs[i], group);
        waits[i] = history->jobs[jobs[i]].wait_ms;
        if (history->jobs[jobs[i]].is_finished) {
            slowdowns[finished++] = history_slowdown_milli(history, jobs[i]);
        }
    }
    group->wait_ms = distribution_of(waits, count);
    group->slowdown_milli = distribution_of(slowdowns, finished);
    mem_free(waits);
    mem_free(slowdowns);
}

static void fill_groups(struct arena *arena, struct summary *summary)
{
    const struct history *history = summary->history;
    const struct workload *workload = history->workload;
    struct grouping by_queue = grouping_make(arena, history, workload->queue_count, true);
    struct grouping by_class = grouping_make(arena, history, workload->class_count, false);
    summary->queues = ARENA_ARRAY(arena, struct summary_group, workload->queue_count + 1);
    summary->classes = ARENA_ARRAY(arena, struct summary_group, workload->class_count + 1);
    for (uint32_t q = 0; q < workload->queue_count; q++) {
        struct summary_group *group = &summary->queues[q];
        group->name = workload->queues[q].name;
        fill_group(history, by_queue.order + by_queue.starts[q],
                   by_queue.starts[q + 1] - by_queue.starts[q], group);
        for (int reason = 0; reason < REASON_COUNT && q < history->wait_count; reason++) {
            group->waits_ms[reason] = history->waits[q][reason];
            summary->all.waits_ms[reason] =
                sat_add(summary->all.waits_ms[reason], history->waits[q][reason]);
        }
    }
    for (uint32_t c = 0; c < workload->class_count; c++) {
        summary->classes[c].name = workload->classes[c].name;
        fill_group(history, by_class.order + by_class.starts[c],
                   by_class.starts[c + 1] - by_class.starts[c], &summary->classes[c]);
    }
    summary->all.name = STR("all");
    fill_group(history, by_queue.order, by_queue.starts[workload->queue_count], &summary->all);
}

/* -- the bound ------------------------------------------------------------------------------------
 */

static int64_t divide_up(int64_t work, int64_t devices)
{
    return devices <= 0 ? 0 : work / devices + (work % devices != 0 ? 1 : 0);
}

/* Jobs are in order of submission. */
static void fill_bound(struct summary *summary)
{
    const struct history *history = summary->history;
    struct summary_bound *bound = &summary->bound;
    int64_t work = 0;
    for (uint32_t i = history->job_count; i > 0; i--) {
        if (!history->jobs[i - 1].is_submitted) {
            continue;
        }
        const struct bulk_gang *gang = &history->workload->gangs[i - 1];
        int64_t since_ms = gang->submit_ms - summary->first_ms;
        int64_t alone_ms = sat_add(since_ms, gang->run_ms);
        work = sat_add(work, sat_mul(job_devices(history, i - 1), gang->run_ms));
        int64_t together_ms = sat_add(since_ms, divide_up(work, summary->devices));
        bound->longest_ms = alone_ms > bound->longest_ms ? alone_ms : bound->longest_ms;
        bound->after_release_ms =
            together_ms > bound->after_release_ms ? together_ms : bound->after_release_ms;
    }
    bound->work_ms = divide_up(work, summary->devices);
    bound->ms = bound->work_ms;
    bound->kind = BOUND_WORK;
    if (bound->longest_ms > bound->ms) {
        bound->ms = bound->longest_ms;
        bound->kind = BOUND_LONGEST;
    }
    if (bound->after_release_ms > bound->ms) {
        bound->ms = bound->after_release_ms;
        bound->kind = BOUND_AFTER_RELEASE;
    }
}

/* -- over time ------------------------------------------------------------------------------------
 */

static void fill_span(struct summary *summary)
{
    const struct history *history = summary->history;
    summary->first_ms = -1;
    for (uint32_t i = 0; i < history->job_count; i++) {
        const struct history_job *job = &history->jobs[i];
        int64_t submit_ms = history->workload->gangs[i].submit_ms;
        if (job->is_submitted && (summary->first_ms < 0 || submit_ms < summary->first_ms)) {
            summary->first_ms = submit_ms;
        }
        int64_t end_ms = job->is_finished ? job->end_ms : job->since_ms;
        if (!job->is_finished && job->last != HISTORY_NONE) {
            int64_t worked_ms = history->spans[job->last].end_ms;
            end_ms = worked_ms > end_ms ? worked_ms : end_ms;
        }
        summary->last_ms = end_ms > summary->last_ms ? end_ms : summary->last_ms;
    }
    summary->first_ms = summary->first_ms < 0 ? 0 : summary->first_ms;
    summary->last_ms = summary->last_ms < summary->first_ms ? summary->first_ms : summary->last_ms;
    summary->makespan_ms = summary->last_ms - summary->first_ms;
}

/* Where period `number` begins. */
static int64_t period_from(const struct summary *summary, uint32_t number)
{
    return summary->first_ms + (int64_t)((i128)summary->makespan_ms * number / SUMMARY_PERIODS);
}

static uint32_t period_at(const struct summary *summary, int64_t at_ms)
{
    if (summary->makespan_ms == 0) {
        return 0;
    }
    i128 number = (i128)(at_ms - summary->first_ms) * SUMMARY_PERIODS / summary->makespan_ms;
    return number >= SUMMARY_PERIODS ? SUMMARY_PERIODS - 1 : number < 0 ? 0 : (uint32_t)number;
}

/* Adds weight * time to each period that [from, to) touches; `ret` has one number per period. */
static void spread(const struct summary *summary, int64_t from_ms, int64_t to_ms, int64_t weight,
                   int64_t *ret)
{
    from_ms = from_ms < summary->first_ms ? summary->first_ms : from_ms;
    for (uint32_t p = period_at(summary, from_ms); p < SUMMARY_PERIODS && from_ms < to_ms; p++) {
        int64_t end_ms = p + 1 == SUMMARY_PERIODS ? to_ms : period_from(summary, p + 1);
        end_ms = end_ms < to_ms ? end_ms : to_ms;
        if (end_ms > from_ms) {
            ret[p] = sat_add(ret[p], sat_mul(end_ms - from_ms, weight));
            from_ms = end_ms;
        }
    }
}

static void fill_capacity(struct summary *summary)
{
    const struct history *history = summary->history;
    int64_t there[SUMMARY_PERIODS] = {0};
    for (uint32_t i = 0; i < history->step_count; i++) {
        const struct history_step *step = &history->steps[i];
        int64_t until_ms =
            i + 1 < history->step_count ? history->steps[i + 1].at_ms : summary->last_ms;
        until_ms = until_ms < summary->last_ms ? until_ms : summary->last_ms;
        summary->devices = step->units > summary->devices ? step->units : summary->devices;
        spread(summary, step->at_ms, until_ms, step->units, there);
    }
    for (uint32_t p = 0; p < SUMMARY_PERIODS; p++) {
        summary->periods[p].there = there[p];
        summary->there = sat_add(summary->there, there[p]);
    }
}

/* The time between its works, until its end. */
static void spread_waits(const struct summary *summary, uint32_t index, int64_t *waiting)
{
    const struct history *history = summary->history;
    const struct history_job *job = &history->jobs[index];
    int64_t since_ms = history->workload->gangs[index].submit_ms;
    for (uint32_t i = job->first; i != HISTORY_NONE; i = history->spans[i].next) {
        spread(summary, since_ms, history->spans[i].start_ms, 1, waiting);
        since_ms = history->spans[i].end_ms;
    }
    if (!job->is_finished) {
        spread(summary, since_ms, summary->last_ms, 1, waiting);
    }
}

static int64_t weight_of(const struct workload_queue *queue)
{
    return queue->weight > 0 ? queue->weight : queue->nominal > 0 ? queue->nominal : 1;
}

/* Jain's index over what the queues that had work waiting used, by their weight. */
static int64_t jain_milli(const struct summary *summary, uint32_t period, const int64_t *waiting,
                          int64_t lasts_ms)
{
    const struct workload *workload = summary->history->workload;
    i128 sum = 0;
    i128 squares = 0;
    int64_t count = 0;
    for (uint32_t q = 0; q < workload->queue_count; q++) {
        if (lasts_ms == 0 || waiting[q * SUMMARY_PERIODS + period] < lasts_ms) {
            continue; /* on average less than one job */
        }
        i128 share = (i128)summary->periods[period].queues[q] * 1000 / lasts_ms /
                     weight_of(&workload->queues[q]);
        sum += share;
        squares += share * share;
        count++;
    }
    return count < 2 || squares == 0 ? 1000 : (int64_t)(sum * sum * 1000 / (squares * count));
}

static void fill_periods(struct arena *arena, struct summary *summary)
{
    const struct history *history = summary->history;
    uint32_t queues = history->workload->queue_count;
    int64_t *used = ARENA_ARRAY(arena, int64_t, (size_t)queues * SUMMARY_PERIODS + 1);
    int64_t *waiting = ARENA_ARRAY(arena, int64_t, (size_t)queues * SUMMARY_PERIODS + 1);
    for (uint32_t i = 0; i < history->job_count; i++) {
        if (!history->jobs[i].is_submitted) {
            continue;
        }
        size_t at = (size_t)history->workload->tags[i].queue * SUMMARY_PERIODS;
        for (uint32_t s = history->jobs[i].first; s != HISTORY_NONE; s = history->spans[s].next) {
            spread(summary, history->spans[s].start_ms, history->spans[s].end_ms,
                   job_devices(history, i), used + at);
        }
        spread_waits(summary, i, waiting + at);
    }
    int64_t sum_milli = 0;
    summary->jain_least_milli = 1000;
    for (uint32_t p = 0; p < SUMMARY_PERIODS; p++) {
        struct summary_period *period = &summary->periods[p];
        period->from_ms = period_from(summary, p);
        period->queues = ARENA_ARRAY(arena, int64_t, queues + 1);
        for (uint32_t q = 0; q < queues; q++) {
            period->queues[q] = used[(size_t)q * SUMMARY_PERIODS + p];
            period->used = sat_add(period->used, period->queues[q]);
        }
        period->jain_milli =
            jain_milli(summary, p, waiting, period_from(summary, p + 1) - period->from_ms);
        sum_milli += period->jain_milli;
        if (period->jain_milli < summary->jain_least_milli) {
            summary->jain_least_milli = period->jain_milli;
        }
    }
    summary->jain_mean_milli = sum_milli / SUMMARY_PERIODS;
}

struct summary *summary_make(struct arena *arena, const struct history *history)
{
    struct summary *summary = ARENA_NEW(arena, struct summary);
    summary->history = history;
    fill_span(summary);
    fill_capacity(summary);
    fill_bound(summary);
    fill_groups(arena, summary);
    summary->unfinished = (int64_t)history->workload->gang_count - summary->all.finished;
    fill_periods(arena, summary);
    return summary;
}
