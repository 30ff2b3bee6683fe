/* window.h - how many writes are out at once: as many as the server answers in time. Private to the
 * driver.
 *
 * Additive increase, multiplicative decrease, as in TCP (RFC 5681). An answer that is late
 * (WRITE_SLOW_MS, which is Kubernetes' own objective for such requests), or that isn't one (no
 * time, too much to do, no connection), halves the window, once for all that were out then: what
 * was sent before the window was cut says nothing new of it. As many prompt answers as the window
 * is wide widen it by one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct window {
    uint32_t min, max;
    uint32_t allowed; /* min to max */
    uint32_t prompt;  /* answers, since it was changed */
    int64_t cut_ms;   /* it was last; 0: never */
};

void window_init(struct window *window, uint32_t min, uint32_t max);
/* A write that was sent then is answered now; `has_failed`: without a definite answer. */
void window_answered(struct window *window, int64_t sent_ms, int64_t now_ms, bool has_failed);
