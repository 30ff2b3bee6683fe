/* measure.h - times and instructions of single events, and the table of figures. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What each event of one kind has cost. */
struct series {
    uint64_t *ns; /* owned */
    uint32_t count;
    uint32_t capacity;
    uint64_t total_ns;
    uint64_t max_ns;
    uint64_t instructions; /* of all; 0 where they can't be counted */
};

/* Whether the processor's instruction counter may be read here. */
bool meter_open(void);
void meter_start(void);
uint64_t meter_stop(struct series *series); /* ns */
void series_add(struct series *series, uint64_t ns);
void meter_close(void);

void series_clear(struct series *series); /* keeps the memory */
void series_free(struct series *series);
/* The time that this part of the events (in thousandths) stayed below, in microseconds. */
double series_permille_us(struct series *series, uint32_t permille);
double series_mean_us(const struct series *series);
double series_instructions(const struct series *series); /* per event */

size_t heap_used_bytes(void);

/* One line: what, the figure, and beside it the target. */
void table_heading(const char *text);
void table_row(const char *what, const char *target, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void table_series(const char *what, const char *target, struct series *series);
