#include "window.h"

#include "tallyman/base/limits.h"

void window_init(struct window *window, uint32_t min, uint32_t max)
{
    *window = (struct window){.min = min, .max = max, .allowed = max};
}

static void cut(struct window *window, int64_t now_ms)
{
    uint32_t half = window->allowed / 2;
    window->allowed = half > window->min ? half : window->min;
    window->prompt = 0;
    window->cut_ms = now_ms;
}

void window_answered(struct window *window, int64_t sent_ms, int64_t now_ms, bool has_failed)
{
    if (has_failed || now_ms - sent_ms > WRITE_SLOW_MS) {
        if (sent_ms >= window->cut_ms) {
            cut(window, now_ms);
        }
        return;
    }
    window->prompt++;
    if (window->prompt >= window->allowed && window->allowed < window->max) {
        window->allowed++;
        window->prompt = 0;
    }
}
