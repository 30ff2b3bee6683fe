#include "tallyman/base/steady_time.h"

#define SLOWING 10 /* a tenth slower */

int64_t steady_time_ms(struct steady_time *time, int64_t wall_ms, int64_t monotonic_ms)
{
    int64_t ahead_ms = wall_ms - monotonic_ms;
    if (!time->is_started || ahead_ms >= time->ahead_ms) {
        *time = (struct steady_time){
            .is_started = true, .ahead_ms = ahead_ms, .slowed_ms = monotonic_ms};
        return wall_ms;
    }
    int64_t less_ms = (monotonic_ms - time->slowed_ms) / SLOWING;
    time->slowed_ms += less_ms * SLOWING;
    int64_t excess_ms = time->ahead_ms - ahead_ms;
    time->ahead_ms -= less_ms < excess_ms ? less_ms : excess_ms;
    return monotonic_ms + time->ahead_ms;
}
