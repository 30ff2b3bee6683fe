/* steady_time.h - the time of day that never goes backwards. Nothing here reads a clock.
 *
 * Times that decisions rest on are points of the day, because the cluster's objects hold those. A
 * wall clock that is set back by an hour would let every timer wait an hour longer. So a step
 * forwards is taken at once (a machine that slept has slept), and one backwards is caught up with
 * by going a tenth slower. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct steady_time {
    bool is_started;
    int64_t ahead_ms;  /* what is added to the monotonic clock */
    int64_t slowed_ms; /* monotonic time up to which the slowing is done */
};

/* Zeroed at first. What both clocks say now, in ms: the wall clock's since 1970, the monotonic
 * one's since whenever. Returns the time of day, never less than the call before. */
int64_t steady_time_ms(struct steady_time *time, int64_t wall_ms, int64_t monotonic_ms);
