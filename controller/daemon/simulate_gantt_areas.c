/* simulate_gantt_areas.c - of many gangs: how many devices each queue uses over time, and how many
 * its waiting gangs ask for beside those. */
#include "simulate_gantt.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

#define AREA_HEIGHT 56
#define AREA_STEPS  900 /* a point per pixel is enough */

static void print_legend(const struct gantt *gantt)
{
    gantt_figures(gantt);
    fprintf(gantt->out,
            "<rect x=\"%d\" y=\"52\" width=\"26\" height=\"10\" fill=\"%s\" "
            "fill-opacity=\".8\"/><text class=\"note\" x=\"%d\" y=\"61\">devices in use</text>"
            "<path class=\"asked\" d=\"M%d 57h26\"/><text class=\"note\" x=\"%d\" y=\"61\">"
            "in use and waited for</text>\n",
            LEFT, gantt_colour(0), LEFT + 32, LEFT + 140, LEFT + 172);
}

/* Of each queue and step: devices in use, and those together with what is waited for. */
struct areas {
    int64_t *used;  /* owned */
    int64_t *asked; /* owned */
    int64_t most;   /* the highest of any `used` */
};

static size_t step_at(const struct gantt *gantt, int64_t at_ms)
{
    int64_t step = (int64_t)((i128)(at_ms - gantt->from_ms) * AREA_STEPS / gantt->lasts_ms);
    return step < 0 ? 0 : step > AREA_STEPS ? AREA_STEPS : (size_t)step;
}

/* As differences at first; areas_sum() makes levels of them. */
static void area_add(const struct gantt *gantt, int64_t *steps, uint32_t queue, int64_t from_ms,
                     int64_t until_ms, int64_t devices)
{
    size_t base = (size_t)queue * (AREA_STEPS + 2);
    size_t from = step_at(gantt, from_ms);
    size_t until = step_at(gantt, until_ms);
    steps[base + from] += devices;
    steps[base + until] -= devices;
}

static void areas_sum(struct areas *areas, uint32_t queue_count)
{
    for (uint32_t q = 0; q < queue_count; q++) {
        size_t base = (size_t)q * (AREA_STEPS + 2);
        for (size_t i = 1; i <= AREA_STEPS; i++) {
            areas->used[base + i] += areas->used[base + i - 1];
            areas->asked[base + i] += areas->asked[base + i - 1];
        }
        for (size_t i = 0; i <= AREA_STEPS; i++) {
            int64_t used = areas->used[base + i];
            areas->most = used > areas->most ? used : areas->most;
        }
    }
}

static struct areas areas_make(const struct gantt *gantt)
{
    const struct history *history = gantt->summary->history;
    size_t count = (size_t)history->workload->queue_count * (AREA_STEPS + 2) + 1;
    struct areas areas = {.used = mem_zalloc(mem_array_bytes(count, sizeof(int64_t))),
                          .asked = mem_zalloc(mem_array_bytes(count, sizeof(int64_t))),
                          .most = 1};
    for (uint32_t i = 0; i < history->job_count; i++) {
        const struct history_job *job = &history->jobs[i];
        const struct bulk_gang *gang = &history->workload->gangs[i];
        uint32_t queue = history->workload->tags[i].queue;
        if (!job->is_submitted) {
            continue;
        }
        int64_t devices = bulk_gang_units(gang);
        area_add(gantt, areas.asked, queue, gang->submit_ms, gantt_until_ms(gantt, job), devices);
        for (uint32_t s = job->first; s != HISTORY_NONE; s = history->spans[s].next) {
            area_add(gantt, areas.used, queue, history->spans[s].start_ms, history->spans[s].end_ms,
                     devices);
        }
    }
    areas_sum(&areas, history->workload->queue_count);
    return areas;
}

/* A line of steps; points that repeat the level before are left out. */
static void print_steps(FILE *out, const int64_t *levels, int64_t most, int64_t bottom)
{
    int64_t last = -1;
    for (int64_t i = 0; i <= AREA_STEPS; i++) {
        int64_t level = levels[i] > most ? most : levels[i];
        int64_t height = level * AREA_HEIGHT * 10 / most;
        if (height == last && i < AREA_STEPS) {
            continue;
        }
        fputc(last < 0 ? 'M' : 'H', out);
        gantt_number(out, LEFT * 10 + i * (WIDTH - LEFT - RIGHT) * 10 / AREA_STEPS);
        fputc(last < 0 ? ' ' : 'V', out);
        gantt_number(out, bottom * 10 - height);
        last = height;
    }
}

static void print_area(const struct gantt *gantt, const struct areas *areas, uint32_t queue,
                       int64_t y)
{
    FILE *out = gantt->out;
    size_t base = (size_t)queue * (AREA_STEPS + 2);
    int64_t bottom = y + AREA_HEIGHT;
    fprintf(out, "<text class=\"small\" x=\"%d\" y=\"%lld\">up to %lld devices</text>\n", LEFT - 10,
            (long long)(y + 26), (long long)areas->most);
    fprintf(out, "<path fill=\"%s\" fill-opacity=\".8\" d=\"", gantt_colour(queue));
    print_steps(out, areas->used + base, areas->most, bottom);
    fprintf(out, "V%lldH%dZ\"/>\n<path class=\"asked\" d=\"", (long long)bottom, LEFT);
    print_steps(out, areas->asked + base, areas->most, bottom);
    fputs("\"/>\n", out);
}

void gantt_areas(const struct gantt *gantt, struct str title)
{
    const struct workload *workload = gantt->summary->history->workload;
    uint32_t shown = workload->queue_count < SIMULATE_GANTT_QUEUES_MAX ? workload->queue_count
                                                                       : SIMULATE_GANTT_QUEUES_MAX;
    struct areas areas = areas_make(gantt);
    int64_t height = TOP + (int64_t)shown * (AREA_HEIGHT + BAND_GAP);
    gantt_head(gantt, title, height + 30);
    print_legend(gantt);
    for (uint32_t q = 0; q < shown; q++) {
        int64_t y = TOP + (int64_t)q * (AREA_HEIGHT + BAND_GAP);
        gantt_band(gantt, q, y, AREA_HEIGHT, workload->queues[q].name);
        print_area(gantt, &areas, q, y);
    }
    gantt_axis(gantt, height);
    if (shown < workload->queue_count) {
        fprintf(gantt->out, "<text class=\"note\" x=\"%d\" y=\"%lld\">and %u queues more</text>\n",
                LEFT, (long long)(height + 14), workload->queue_count - shown);
    }
    mem_free(areas.used);
    mem_free(areas.asked);
}
