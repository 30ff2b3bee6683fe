/* simulate_gantt.h - what the files that draw the chart share. */
#pragma once

#include "simulate_history.h"

#define WIDTH    1200
#define LEFT     170 /* names of the queues */
#define RIGHT    30
#define TOP      92
#define BAND_GAP 10

struct gantt {
    FILE *out;
    const struct summary *summary;
    int64_t from_ms;
    int64_t lasts_ms;
};

/* Text of others: markup is escaped, and what XML can't hold is a question mark. */
void gantt_text(FILE *out, struct str text, size_t chars_max);
/* Tenths of a pixel are close enough. */
void gantt_number(FILE *out, int64_t tenths);
int64_t gantt_x_tenths(const struct gantt *gantt, int64_t at_ms);
/* A time on the axis or in a title, as finely as a step tells apart: "1d 06:00", "02:30:00". */
void gantt_time(FILE *out, int64_t ms, int64_t step_ms);
/* Its end, or the chart's. */
int64_t gantt_until_ms(const struct gantt *gantt, const struct history_job *job);
const char *gantt_colour(uint32_t queue);
void gantt_axis(const struct gantt *gantt, int64_t height);
void gantt_head(const struct gantt *gantt, struct str title, int64_t height);
/* What is said under the title: jobs, devices, use. */
void gantt_figures(const struct gantt *gantt);
void gantt_band(const struct gantt *gantt, uint32_t queue, int64_t y, int64_t height,
                struct str name);

/* -- simulate_gantt_bars.c, simulate_gantt_areas.c ------------------------------------------------
 */

void gantt_gangs(const struct gantt *gantt, struct str title);
void gantt_areas(const struct gantt *gantt, struct str title);
