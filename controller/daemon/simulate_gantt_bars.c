/* simulate_gantt_bars.c - every gang as a bar: thin while it waits, full while it works, hatched
 * where its work was cut off. Gangs of a queue that don't overlap share a lane. */
#include "simulate_gantt.h"

#include "tallyman/base/alloc.h"

#define LANE_HEIGHT 14
#define BAR_HEIGHT  10
#define NAMED_MAX   100 /* jobs; of more, a name is only told by the tooltip */
#define LETTER      55  /* tenths, of a name on a bar */

static void print_legend(const struct gantt *gantt)
{
    const char *colour = gantt_colour(0);
    gantt_figures(gantt);
    fprintf(gantt->out,
            "<rect x=\"%d\" y=\"56\" width=\"26\" height=\"2\" fill=\"%s\" fill-opacity=\".55\"/>"
            "<text class=\"note\" x=\"%d\" y=\"61\">waits</text>"
            "<rect x=\"%d\" y=\"52\" width=\"26\" height=\"%d\" rx=\"3\" fill=\"%s\"/>"
            "<text class=\"note\" x=\"%d\" y=\"61\">works</text>"
            "<rect x=\"%d\" y=\"52\" width=\"26\" height=\"%d\" rx=\"3\" fill=\"%s\"/>"
            "<rect x=\"%d\" y=\"52\" width=\"26\" height=\"%d\" rx=\"3\" fill=\"url(#cut)\"/>"
            "<text class=\"note\" x=\"%d\" y=\"61\">works, and is preempted or fails</text>\n",
            LEFT, colour, LEFT + 32, LEFT + 80, BAR_HEIGHT, colour, LEFT + 112, LEFT + 160,
            BAR_HEIGHT, colour, LEFT + 160, BAR_HEIGHT, LEFT + 192);
}

/* Lanes of one queue: when each is free again. */
struct lanes {
    int64_t *free_at_ms; /* owned */
    uint32_t count;
    uint32_t capacity;
};

static uint32_t lane_take(struct lanes *lanes, int64_t from_ms, int64_t until_ms)
{
    uint32_t lane = 0;
    while (lane < lanes->count && lanes->free_at_ms[lane] > from_ms) {
        lane++;
    }
    if (lane == lanes->count) {
        lanes->free_at_ms =
            mem_grow(lanes->free_at_ms, lanes->count, &lanes->capacity, sizeof(int64_t));
        lanes->count++;
    }
    lanes->free_at_ms[lane] = until_ms;
    return lane;
}

static void print_wait(const struct gantt *gantt, uint32_t queue, int64_t y, int64_t from_ms,
                       int64_t until_ms)
{
    int64_t x = gantt_x_tenths(gantt, from_ms);
    int64_t width = gantt_x_tenths(gantt, until_ms) - x;
    if (width <= 0) {
        return;
    }
    fputs("<rect x=\"", gantt->out);
    gantt_number(gantt->out, x);
    fprintf(gantt->out, "\" y=\"%lld\" height=\"2\" width=\"", (long long)(y + BAR_HEIGHT / 2 - 1));
    gantt_number(gantt->out, width);
    fprintf(gantt->out, "\" fill=\"%s\" fill-opacity=\".55\"/>\n", gantt_colour(queue));
}

static void print_bar(const struct gantt *gantt, const char *fill, int64_t y,
                      const struct history_span *span)
{
    int64_t x = gantt_x_tenths(gantt, span->start_ms);
    int64_t width = gantt_x_tenths(gantt, span->end_ms) - x;
    fputs("<rect x=\"", gantt->out);
    gantt_number(gantt->out, x);
    fprintf(gantt->out, "\" y=\"%lld\" height=\"%d\" rx=\"3\" width=\"", (long long)y, BAR_HEIGHT);
    gantt_number(gantt->out, width > 8 ? width - 3 : 5);
    fprintf(gantt->out, "\" fill=\"%s\"/>\n", fill);
}

/* On the longest bar whose work was of use, if there is room for all of it. */
static void print_name_on_bar(const struct gantt *gantt, uint32_t index, int64_t y)
{
    const struct history *history = gantt->summary->history;
    struct str name = history->workload->gangs[index].name;
    int64_t best_x = 0;
    int64_t best_width = 0;
    for (uint32_t i = history->jobs[index].first; i != HISTORY_NONE; i = history->spans[i].next) {
        const struct history_span *span = &history->spans[i];
        bool is_cut = span->end != SPAN_FINISHED && span->end != SPAN_OPEN;
        int64_t x = gantt_x_tenths(gantt, span->start_ms);
        int64_t width = is_cut ? 0 : gantt_x_tenths(gantt, span->end_ms) - x;
        best_x = width > best_width ? x : best_x;
        best_width = width > best_width ? width : best_width;
    }
    if (gantt->summary->all.jobs > NAMED_MAX || best_width < 120 + (int64_t)name.len * LETTER) {
        return;
    }
    fputs("<text class=\"on\" x=\"", gantt->out);
    gantt_number(gantt->out, best_x + 50);
    fprintf(gantt->out, "\" y=\"%lld\">", (long long)(y + 8));
    gantt_text(gantt->out, name, 100);
    fputs("</text>\n", gantt->out);
}

static void print_gang(const struct gantt *gantt, uint32_t index, int64_t y)
{
    const struct history *history = gantt->summary->history;
    const struct history_job *job = &history->jobs[index];
    const struct bulk_gang *gang = &history->workload->gangs[index];
    uint32_t queue = history->workload->tags[index].queue;
    int64_t since_ms = gang->submit_ms;
    fputs("<g><title>", gantt->out);
    gantt_text(gantt->out, gang->name, 100);
    fprintf(gantt->out, ": %lld devices, waited ", (long long)bulk_gang_units(gang));
    gantt_time(gantt->out, job->wait_ms, job->wait_ms < 10000 ? 1 : 1000);
    fputs("</title>\n", gantt->out);
    for (uint32_t i = job->first; i != HISTORY_NONE; i = history->spans[i].next) {
        const struct history_span *span = &history->spans[i];
        print_wait(gantt, queue, y, since_ms, span->start_ms);
        print_bar(gantt, gantt_colour(queue), y, span);
        if (span->end != SPAN_FINISHED && span->end != SPAN_OPEN) {
            print_bar(gantt, "url(#cut)", y, span);
        }
        since_ms = span->end_ms;
    }
    if (!job->is_finished &&
        (job->last == HISTORY_NONE || history->spans[job->last].end != SPAN_OPEN)) {
        print_wait(gantt, queue, y, since_ms, gantt_until_ms(gantt, job));
    }
    print_name_on_bar(gantt, index, y);
    fputs("</g>\n", gantt->out);
}

/* Where everybody goes: the lane of each job, and how many lanes each queue has. */
struct layout {
    uint32_t *lanes;      /* owned; of each job */
    struct lanes *queues; /* owned */
    int64_t *tops;        /* owned; of each queue's band */
    int64_t height;
};

static struct layout layout_make(const struct gantt *gantt)
{
    const struct history *history = gantt->summary->history;
    uint32_t queue_count = history->workload->queue_count;
    struct layout layout = {
        .lanes = mem_zalloc(mem_array_bytes((size_t)history->job_count + 1, sizeof(uint32_t))),
        .queues = mem_zalloc(mem_array_bytes((size_t)queue_count + 1, sizeof(struct lanes))),
        .tops = mem_zalloc(mem_array_bytes((size_t)queue_count + 1, sizeof(int64_t))),
        .height = TOP};
    for (uint32_t i = 0; i < history->job_count; i++) {
        const struct history_job *job = &history->jobs[i];
        if (job->is_submitted) {
            layout.lanes[i] =
                lane_take(&layout.queues[history->workload->tags[i].queue],
                          history->workload->gangs[i].submit_ms, gantt_until_ms(gantt, job));
        }
    }
    for (uint32_t q = 0; q < queue_count; q++) {
        layout.tops[q] = layout.height;
        layout.height += layout.queues[q].count == 0
                             ? 0
                             : (int64_t)layout.queues[q].count * LANE_HEIGHT + 4 + BAND_GAP;
    }
    return layout;
}

static void layout_free(struct layout *layout, uint32_t queue_count)
{
    for (uint32_t q = 0; q < queue_count; q++) {
        mem_free(layout->queues[q].free_at_ms);
    }
    mem_free(layout->queues);
    mem_free(layout->lanes);
    mem_free(layout->tops);
}

void gantt_gangs(const struct gantt *gantt, struct str title)
{
    const struct history *history = gantt->summary->history;
    const struct workload *workload = history->workload;
    struct layout layout = layout_make(gantt);
    gantt_head(gantt, title, layout.height + 20);
    print_legend(gantt);
    for (uint32_t q = 0; q < workload->queue_count; q++) {
        if (layout.queues[q].count > 0) {
            gantt_band(gantt, q, layout.tops[q], (int64_t)layout.queues[q].count * LANE_HEIGHT + 4,
                       workload->queues[q].name);
        }
    }
    gantt_axis(gantt, layout.height);
    for (uint32_t i = 0; i < history->job_count; i++) {
        if (history->jobs[i].is_submitted) {
            print_gang(gantt, i,
                       layout.tops[workload->tags[i].queue] + 4 +
                           (int64_t)layout.lanes[i] * LANE_HEIGHT);
        }
    }
    layout_free(&layout, workload->queue_count);
}
