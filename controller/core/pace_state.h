/* pace_state.h - what the pace of our writes is known by; see pace.h. Part of state.h. */
#pragma once

#include <stdint.h>

struct gang;

/* Each waits equally long, so the first is due first. */
struct pace_line {
    struct gang *first, *last;
};

enum pace_wait { PACE_WAITS_NOT = 0, PACE_WAITS_BRIEFLY, PACE_WAITS, PACE_WAITS_LONG };

#define PACE_LINES    PACE_WAITS_LONG
#define PACE_OWED_MAX 15 /* four bits */

/* Of an object that isn't a gang. */
struct status_pace {
    int64_t next_ms; /* its status isn't written before */
    int64_t since_ms;
    uint32_t owed;
};
