/* simulate_gantt.c - a chart of a simulation as SVG.
 *
 * Each queue is a band. Of a run with few gangs, every gang is a bar in it: thin while it waits,
 * full while it works, hatched where the work was cut off. Of one with many, the band shows how
 * many devices the queue uses over time, and how many its waiting gangs ask for. Colours are the
 * eight that Okabe and Ito found to be told apart by everybody. */
#include "simulate_gantt.h"

#include "tallyman/base/limits.h"

#define TICKS_WANTED 8
#define NAME_CHARS   22

static const char *const colours[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                      "#56b4e9", "#d55e00", "#8a7a00", "#5b5b5b"};

/* -- pieces ---------------------------------------------------------------------------------------
 */

/* Text of others: markup is escaped, and what XML can't hold is a question mark. */
void gantt_text(FILE *out, struct str text, size_t chars_max)
{
    size_t chars = 0;
    while (text.len > 0 && chars++ < chars_max) {
        struct str before = text;
        uint32_t c = 0;
        if (!str_take_utf8(&text, &c)) {
            text = str_skip(text, 1);
            c = 0;
        }
        struct str written = str_take(before, before.len - text.len);
        switch (c) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            if (str_char_is_unsafe(c)) {
                fputc('?', out);
            } else {
                fprintf(out, STR_FMT, STR_ARG(written));
            }
            break;
        }
    }
    if (text.len > 0) {
        fputs("…", out);
    }
}

/* Tenths of a pixel are close enough. */
void gantt_number(FILE *out, int64_t tenths)
{
    fprintf(out, "%lld.%lld", (long long)(tenths / 10), (long long)(tenths % 10));
}

int64_t gantt_x_tenths(const struct gantt *gantt, int64_t at_ms)
{
    int64_t width = (WIDTH - LEFT - RIGHT) * 10;
    int64_t since_ms = at_ms - gantt->from_ms;
    since_ms = since_ms < 0 ? 0 : since_ms > gantt->lasts_ms ? gantt->lasts_ms : since_ms;
    return LEFT * 10 + (int64_t)((i128)since_ms * width / gantt->lasts_ms);
}

/* A time on the axis or in a title: "1d 06:00", "02:30:00", "1.250 s". */
void gantt_time(FILE *out, int64_t ms, int64_t step_ms)
{
    long long seconds = (long long)(ms / 1000);
    if (step_ms < 1000) {
        fprintf(out, "%lld.%03lld s", seconds, (long long)(ms % 1000));
    } else if (seconds >= 86400 || step_ms >= 86400000) {
        fprintf(out, "%lldd", seconds / 86400);
        if (step_ms < 86400000) {
            fprintf(out, " %02lld:%02lld", seconds / 3600 % 24, seconds / 60 % 60);
        }
    } else if (step_ms < 60000) {
        fprintf(out, "%02lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60, seconds % 60);
    } else {
        fprintf(out, "%02lld:%02lld", seconds / 3600, seconds / 60 % 60);
    }
}

int64_t gantt_until_ms(const struct gantt *gantt, const struct history_job *job)
{
    return job->is_finished ? job->end_ms : gantt->summary->last_ms;
}

const char *gantt_colour(uint32_t queue)
{
    return colours[queue % ARRAY_COUNT(colours)];
}

/* -- the frame ------------------------------------------------------------------------------------
 */

/* The step between two ticks: round in the unit that people count in. */
static int64_t tick_step_ms(int64_t lasts_ms)
{
    static const int64_t steps[] = {
        1,        2,        5,        10,        20,        50,        100,       200,
        500,      1000,     2000,     5000,      10000,     15000,     30000,     60000,
        120000,   300000,   600000,   900000,    1800000,   3600000,   7200000,   10800000,
        21600000, 43200000, 86400000, 172800000, 432000000, 864000000, 1728000000};
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        if (lasts_ms / steps[i] <= TICKS_WANTED) {
            return steps[i];
        }
    }
    int64_t step_ms = steps[ARRAY_COUNT(steps) - 1];
    while (lasts_ms / step_ms > TICKS_WANTED) {
        step_ms *= 2;
    }
    return step_ms;
}

void gantt_axis(const struct gantt *gantt, int64_t height)
{
    int64_t step_ms = tick_step_ms(gantt->lasts_ms);
    for (int64_t at_ms = 0; at_ms <= gantt->lasts_ms; at_ms += step_ms) {
        int64_t x = gantt_x_tenths(gantt, gantt->from_ms + at_ms);
        fputs("<path class=\"grid\" d=\"M", gantt->out);
        gantt_number(gantt->out, x);
        fprintf(gantt->out, " %dV%lld\"/>\n<text class=\"axis\" x=\"", TOP - 6, (long long)height);
        gantt_number(gantt->out, x);
        fprintf(gantt->out, "\" y=\"%d\">", TOP - 12);
        gantt_time(gantt->out, at_ms, step_ms);
        fputs("</text>\n", gantt->out);
    }
}

void gantt_head(const struct gantt *gantt, struct str title, int64_t height)
{
    FILE *out = gantt->out;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %lld\" width=\"%d\" "
            "height=\"%lld\" role=\"img\" font-family=\"system-ui, sans-serif\">\n<title>",
            WIDTH, (long long)height, WIDTH, (long long)height);
    gantt_text(out, title, 200);
    fputs("</title>\n<style>\n"
          "text{fill:#222;font-size:12px}\n"
          ".axis{fill:#666;text-anchor:middle;font-size:11px}\n"
          ".grid{stroke:#ddd;fill:none}\n"
          ".name{text-anchor:end;font-weight:600}\n"
          ".note{fill:#666;font-size:11px}\n"
          ".small{fill:#666;font-size:10px;text-anchor:end}\n"
          ".on{fill:#fff;font-size:8.5px}\n"
          ".asked{fill:none;stroke:#888;stroke-dasharray:3 2}\n"
          "</style>\n<defs><pattern id=\"cut\" width=\"6\" height=\"6\" "
          "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
          "<rect width=\"3\" height=\"6\" fill=\"#fff\" fill-opacity=\".65\"/></pattern></defs>\n",
          out);
    fprintf(out, "<rect width=\"%d\" height=\"%lld\" fill=\"#fff\"/>\n", WIDTH, (long long)height);
    fprintf(out, "<text x=\"%d\" y=\"26\" style=\"font-size:18px;font-weight:600\">", LEFT);
    gantt_text(out, title, 80);
    fputs("</text>\n", out);
}

/* How gantt_time() writes the ticks. */
static const char *axis_unit(int64_t lasts_ms)
{
    int64_t step_ms = tick_step_ms(lasts_ms);
    if (lasts_ms >= 86400000) {
        return step_ms >= 86400000 ? "days" : "days, hours:minutes";
    }
    return step_ms < 1000 ? "seconds" : step_ms < 60000 ? "h:min:s" : "hours:minutes";
}

void gantt_figures(const struct gantt *gantt)
{
    int64_t milli = summary_milli(gantt->summary->all.worked, gantt->summary->there);
    fprintf(gantt->out,
            "<text class=\"note\" x=\"%d\" y=\"44\">%lld jobs on %lld devices, %lld.%lld %% "
            "used; time from the start, in %s</text>\n",
            LEFT, (long long)gantt->summary->all.jobs, (long long)gantt->summary->devices,
            (long long)(milli / 10), (long long)(milli % 10), axis_unit(gantt->lasts_ms));
}

void gantt_band(const struct gantt *gantt, uint32_t queue, int64_t y, int64_t height,
                struct str name)
{
    FILE *out = gantt->out;
    fprintf(out,
            "<rect x=\"%d\" y=\"%lld\" width=\"%d\" height=\"%lld\" rx=\"4\" fill=\"%s\" "
            "fill-opacity=\".07\"/>\n<text class=\"name\" x=\"%d\" y=\"%lld\">",
            LEFT, (long long)y, WIDTH - LEFT - RIGHT, (long long)height, gantt_colour(queue),
            LEFT - 10, (long long)(y + 12));
    gantt_text(out, name, NAME_CHARS);
    fputs("</text>\n", out);
}

void gantt_print(FILE *out, const struct summary *summary, struct str title)
{
    struct gantt gantt = {.out = out,
                          .summary = summary,
                          .from_ms = summary->first_ms,
                          .lasts_ms = summary->makespan_ms > 0 ? summary->makespan_ms : 1};
    if (summary->all.jobs <= SIMULATE_GANTT_BARS_MAX) {
        gantt_gangs(&gantt, title);
    } else {
        gantt_areas(&gantt, title);
    }
    fputs("</svg>\n", out);
}
