/* measure.c - the clock, the processor's counter and the table. */
#define _GNU_SOURCE
#include "policy/measure.h"

#include <linux/perf_event.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tallyman/base/alloc.h"

static int counter_fd = -1;
static uint64_t started_ns;
static uint64_t started_instructions;

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool meter_open(void)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.type = PERF_TYPE_HARDWARE;
    attr.size = sizeof(attr);
    attr.config = PERF_COUNT_HW_INSTRUCTIONS;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    counter_fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0ul);
    return counter_fd >= 0;
}

void meter_close(void)
{
    if (counter_fd >= 0) {
        (void)close(counter_fd);
        counter_fd = -1;
    }
}

static uint64_t instructions_now(void)
{
    uint64_t count = 0;
    if (counter_fd < 0 || read(counter_fd, &count, sizeof(count)) != (ssize_t)sizeof(count)) {
        return 0;
    }
    return count;
}

void meter_start(void)
{
    started_instructions = instructions_now();
    started_ns = now_ns();
}

uint64_t meter_stop(struct series *series)
{
    uint64_t ns = now_ns() - started_ns;
    series->instructions += instructions_now() - started_instructions;
    series_add(series, ns);
    return ns;
}

void series_add(struct series *series, uint64_t ns)
{
    series->ns = mem_grow(series->ns, series->count, &series->capacity, sizeof(*series->ns));
    series->ns[series->count++] = ns;
    series->total_ns += ns;
    series->max_ns = ns > series->max_ns ? ns : series->max_ns;
}

void series_clear(struct series *series)
{
    series->count = 0;
    series->total_ns = series->max_ns = series->instructions = 0;
}

void series_free(struct series *series)
{
    mem_free(series->ns);
    *series = (struct series){.ns = NULL};
}

static int compare_ns(const void *a, const void *b)
{
    const uint64_t *left = a;
    const uint64_t *right = b;
    return (*left > *right) - (*left < *right);
}

double series_permille_us(struct series *series, uint32_t permille)
{
    if (series->count == 0) {
        return 0;
    }
    qsort(series->ns, series->count, sizeof(*series->ns), compare_ns);
    uint64_t index = (uint64_t)series->count * permille / 1000;
    index = index >= series->count ? series->count - 1 : index;
    return (double)series->ns[index] / 1e3;
}

double series_mean_us(const struct series *series)
{
    return series->count == 0 ? 0 : (double)series->total_ns / series->count / 1e3;
}

double series_instructions(const struct series *series)
{
    return series->count == 0 ? 0 : (double)series->instructions / series->count;
}

size_t heap_used_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

void table_heading(const char *text)
{
    printf("\n%s\n", text);
    (void)fflush(stdout);
}

void table_row(const char *what, const char *target, const char *format, ...)
{
    char figure[200];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(figure, sizeof(figure), format, args);
    va_end(args);
    printf("  %-46s %-62s %s\n", what, figure, target);
    (void)fflush(stdout);
}

void table_series(const char *what, const char *target, struct series *series)
{
    char instructions[40] = "";
    if (series->instructions > 0) {
        (void)snprintf(instructions, sizeof(instructions), "  %.0f instr.",
                       series_instructions(series));
    }
    table_row(what, target, "%u: p50 %.1f  p99 %.1f  max %.1f us%s", series->count,
              series_permille_us(series, 500), series_permille_us(series, 990),
              (double)series->max_ns / 1e3, instructions);
}
