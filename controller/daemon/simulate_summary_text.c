/* simulate_summary_text.c - a summary for people. */
#include "simulate.h"
#include "simulate_history.h"

#include "tallyman/base/time_text.h"

#define GROUPS_SHOWN  20
#define REASONS_SHOWN 10
#define STUCK_SHOWN   10
#define NAME_COLUMNS  20
#define CELL_BYTES    40

/* "150ms", "2.5s", "93s", "5m20s". */
static const char *format_span(int64_t ms, char buffer[TIME_TEXT_BYTES])
{
    if (ms < 1000) {
        snprintf(buffer, TIME_TEXT_BYTES, ms == 0 ? "0" : "%lldms", (long long)ms);
    } else if (ms < 10000) {
        snprintf(buffer, TIME_TEXT_BYTES, "%lld.%llds", (long long)(ms / 1000),
                 (long long)(ms % 1000 / 100));
    } else {
        struct str text = duration_format_short(ms, buffer);
        buffer[text.len] = '\0';
    }
    return buffer;
}

/* Thousandths as "1.23"; from 100 on as "123", which nobody reads more closely. */
static const char *format_milli(int64_t milli, char buffer[TIME_TEXT_BYTES])
{
    if (milli >= 100000) {
        snprintf(buffer, TIME_TEXT_BYTES, "%lld", (long long)(milli / 1000));
    } else {
        snprintf(buffer, TIME_TEXT_BYTES, "%lld.%02lld", (long long)(milli / 1000),
                 (long long)(milli % 1000 / 10));
    }
    return buffer;
}

/* Device-milliseconds as device-hours, or -seconds where they are few. */
static void format_work(int64_t work, char buffer[CELL_BYTES])
{
    bool is_small = work < INT64_C(360000);
    int64_t tenths = is_small ? work / 100 : work / INT64_C(360000);
    snprintf(buffer, CELL_BYTES, "%lld.%lld device-%s", (long long)(tenths / 10),
             (long long)(tenths % 10), is_small ? "seconds" : "hours");
}

static void print_head(FILE *out, const char *head)
{
    print_ink(out, INK_DIM);
    fprintf(out, "  %-14s", head);
    print_ink(out, INK_PLAIN);
}

static void print_makespan(FILE *out, const struct summary *summary)
{
    static const char *const kinds[] = {[BOUND_WORK] = "all work on all devices",
                                        [BOUND_LONGEST] = "one job's submission and run time",
                                        [BOUND_AFTER_RELEASE] =
                                            "all work that comes from some moment on, on all "
                                            "devices"};
    char span[TIME_TEXT_BYTES];
    char bound[TIME_TEXT_BYTES];
    char ratio[TIME_TEXT_BYTES];
    const char *played = format_span(summary->makespan_ms, span);
    int64_t ratio_milli = summary_milli(summary->makespan_ms, summary->bound.ms);
    print_head(out, "makespan");
    print_ink(out, INK_BOLD);
    fputs(played, out);
    print_ink(out, INK_PLAIN);
    if (summary->unfinished > 0) {
        fprintf(out, " played, and %s with %lld job%s unfinished: no makespan to judge\n",
                summary->history->is_stuck ? "then stuck" : "cut off by --until",
                (long long)summary->unfinished, summary->unfinished == 1 ? "" : "s");
        return;
    }
    fprintf(out, ", %s times the lower bound of %s (%s)\n", format_milli(ratio_milli, ratio),
            format_span(summary->bound.ms, bound), kinds[summary->bound.kind]);
}

static void print_use(FILE *out, const struct summary *summary)
{
    char worked[CELL_BYTES];
    char lost[CELL_BYTES];
    const struct summary_group *all = &summary->all;
    int64_t milli = summary_milli(all->worked, summary->there);
    format_work(all->worked, worked);
    format_work(all->lost, lost);
    print_head(out, "utilisation");
    fprintf(out, "%lld.%lld %% of %lld devices: %s\n", (long long)(milli / 10),
            (long long)(milli % 10), (long long)summary->devices, worked);
    print_head(out, "stopped");
    fprintf(out, "%lld time%s as a whole, %lld failure%s, %s of work done again\n",
            (long long)all->stops, all->stops == 1 ? "" : "s", (long long)all->failures,
            all->failures == 1 ? "" : "s", lost);
}

static void print_fairness(FILE *out, const struct summary *summary)
{
    char mean[TIME_TEXT_BYTES];
    char least[TIME_TEXT_BYTES];
    print_head(out, "fairness");
    fprintf(out,
            "Jain's index of the queues that had work waiting: %s on average, %s at the worst of "
            "%d periods\n",
            format_milli(summary->jain_mean_milli, mean),
            format_milli(summary->jain_least_milli, least), SUMMARY_PERIODS);
}

/* -- the table -----------------------------------------------------------------------------------
 */

static void print_group_heads(FILE *out, const char *what)
{
    print_ink(out, INK_BOLD);
    fprintf(out, "\n  %-*s %8s %8s %-31s  %s\n", NAME_COLUMNS, "", "", "", "   wait", "slowdown");
    fprintf(out, "  %-*s %8s %8s %7s %7s %7s %7s %8s %8s %8s %7s\n", NAME_COLUMNS, what, "jobs",
            "done", "mean", "p50", "p90", "max", "mean", "p90", "max", "stopped");
    print_ink(out, INK_PLAIN);
}

static void print_group(FILE *out, const struct summary_group *group)
{
    char spans[4][TIME_TEXT_BYTES];
    char millis[3][TIME_TEXT_BYTES];
    bool has_any = group->finished > 0;
    fputs("  ", out);
    print_name(out, group->name, NAME_COLUMNS);
    fprintf(out, " %8lld %8lld %7s %7s %7s %7s %8s %8s %8s %7lld\n", (long long)group->jobs,
            (long long)group->finished, format_span(group->wait_ms.mean, spans[0]),
            format_span(group->wait_ms.p50, spans[1]), format_span(group->wait_ms.p90, spans[2]),
            format_span(group->wait_ms.max, spans[3]),
            has_any ? format_milli(group->slowdown_milli.mean, millis[0]) : "-",
            has_any ? format_milli(group->slowdown_milli.p90, millis[1]) : "-",
            has_any ? format_milli(group->slowdown_milli.max, millis[2]) : "-",
            (long long)group->stops);
}

static void print_legend(FILE *out)
{
    print_ink(out, INK_DIM);
    fputs("\n  wait: from submission to the end, but for the work; slowdown: the time from "
          "submission "
          "to the end\n  over the work's, which counts as 10 s at least; stopped: as a whole, by "
          "preemption or loss\n",
          out);
    print_ink(out, INK_PLAIN);
}

static void print_groups(FILE *out, const char *what, const struct summary_group *groups,
                         uint32_t count)
{
    print_group_heads(out, what);
    for (uint32_t i = 0; i < count && i < GROUPS_SHOWN; i++) {
        print_group(out, &groups[i]);
    }
    if (count > GROUPS_SHOWN) {
        fprintf(out, "  and %u more; -o json has them all\n", count - GROUPS_SHOWN);
    }
}

/* -- reasons -------------------------------------------------------------------------------------
 */

static int next_reason(const struct summary_group *all, const bool *is_shown)
{
    int best = -1;
    for (int reason = 0; reason < REASON_COUNT; reason++) {
        if (!is_shown[reason] && all->waits_ms[reason] > 0 &&
            (best < 0 || all->waits_ms[reason] > all->waits_ms[best])) {
            best = reason;
        }
    }
    return best;
}

static void print_reasons(FILE *out, const struct summary *summary)
{
    bool is_shown[REASON_COUNT] = {false};
    int64_t sum_ms = 0;
    for (int reason = 0; reason < REASON_COUNT; reason++) {
        sum_ms = sat_add(sum_ms, summary->all.waits_ms[reason]);
    }
    if (sum_ms == 0) {
        fputs(summary->history->is_stuck ? "" : "\n  Nobody waited.\n", out);
        return;
    }
    print_ink(out, INK_BOLD);
    fputs("\n  what the waiting was made of, all jobs together\n", out);
    print_ink(out, INK_PLAIN);
    int reason;
    for (int i = 0; i < REASONS_SHOWN && (reason = next_reason(&summary->all, is_shown)) >= 0;
         i++) {
        char span[TIME_TEXT_BYTES];
        int64_t milli = summary_milli(summary->all.waits_ms[reason], sum_ms);
        is_shown[reason] = true;
        const char *code = reason_info((enum reason)reason)->code;
        fprintf(out, "  %-24s %3lld.%lld %%  %s\n",
                reason == REASON_NONE ? "admitted, not whole" : code, (long long)(milli / 10),
                (long long)(milli % 10), format_span(summary->all.waits_ms[reason], span));
    }
}

static void print_left_out(FILE *out, const struct workload *workload)
{
    if (workload->left_out > 0) {
        fprintf(out, "  %u jobs of the trace state no devices or no run time, and are left out\n",
                workload->left_out);
    }
    if (workload->too_large > 0) {
        fprintf(out, "  %u jobs need more than the cluster has, and are left out\n",
                workload->too_large);
    }
}

/* Nothing works and nothing comes: whoever is unfinished stays so. */
static void print_stuck(FILE *out, const struct history *history, int64_t unfinished)
{
    int64_t shown = 0;
    for (uint32_t i = 0; i < history->job_count && shown < STUCK_SHOWN; i++) {
        const struct history_job *job = &history->jobs[i];
        if (!job->is_submitted || job->is_finished) {
            continue;
        }
        fputs(shown++ == 0 ? "\n  Nothing is to come that could change this:\n  " : "  ", out);
        print_safe(out, history->workload->gangs[i].name);
        const struct reason_info *why = reason_info(job->reason);
        fprintf(out, " never starts%s: ", job->first == HISTORY_NONE ? "" : " again");
        if (job->reason == REASON_NONE || job->reason == REASON_BACKOFF) {
            fputs("whenever it is admitted, its pods find no nodes\n", out);
        } else {
            fprintf(out, "%s. %s\n", why->code, why->advice);
        }
    }
    if (unfinished > shown) {
        fprintf(out, "  and %lld more; -o csv has them all\n", (long long)(unfinished - shown));
    }
}

void summary_print(FILE *out, const struct summary *summary)
{
    const struct workload *workload = summary->history->workload;
    const struct summary_group *all = &summary->all;
    print_head(out, "jobs");
    fprintf(out, "%lld of %u queue%s, %lld finished\n", (long long)all->jobs, workload->queue_count,
            workload->queue_count == 1 ? "" : "s", (long long)all->finished);
    print_left_out(out, workload);
    print_makespan(out, summary);
    print_use(out, summary);
    print_fairness(out, summary);
    print_groups(out, "queue", summary->queues, workload->queue_count);
    print_group(out, all);
    print_groups(out, "class", summary->classes, workload->class_count);
    print_legend(out);
    print_reasons(out, summary);
    if (summary->history->is_stuck) {
        print_stuck(out, summary->history, summary->unfinished);
    }
}
