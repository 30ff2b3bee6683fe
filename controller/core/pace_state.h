/* pace_state.h - what pace.h keeps in a gang and in the core. Part of state.h. */
#pragma once

/* Which line an Admission waits in. */
enum pace_wait {
    PACE_WAITS_NOT = 0,
    PACE_WAITS_BRIEFLY, /* an interval */
    PACE_WAITS_LONG,    /* until a write is paid for */
};

#define PACE_LINES 2

enum pace_urgency {
    PACE_NUMBERS = 0,
    PACE_NEWS,   /* another state or reason */
    PACE_URGENT, /* it has started, or is over */
};

struct pace_line {
    struct gang *first, *last;
};
