#include "tallyman/kube/retry.h"

#include <assert.h>

#include "tallyman/base/limits.h"

/* splitmix64 (Steele, Lea, Flood 2014): enough for spreading retries. */
static uint64_t retry_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void kube_backoff_init(struct kube_backoff *backoff, int64_t base_ms, int64_t max_ms, uint64_t seed)
{
    assert(base_ms > 0);
    assert(max_ms >= base_ms);
    *backoff = (struct kube_backoff){.base_ms = base_ms, .max_ms = max_ms, .random = seed};
}

int64_t kube_backoff_next_ms(struct kube_backoff *backoff, int64_t at_least_ms)
{
    int64_t wait_ms = backoff->base_ms;
    for (uint32_t i = 0; i < backoff->attempts && wait_ms < backoff->max_ms; i++) {
        wait_ms = wait_ms > backoff->max_ms / 2 ? backoff->max_ms : wait_ms * 2;
    }
    if (backoff->attempts < UINT32_MAX) {
        backoff->attempts++;
    }
    uint64_t half = (uint64_t)wait_ms / 2;
    wait_ms -= (int64_t)(retry_random(&backoff->random) % (half + 1));
    if (at_least_ms > KUBE_RETRY_AFTER_MAX_MS) {
        at_least_ms = KUBE_RETRY_AFTER_MAX_MS;
    }
    /* The jitter goes on top of what the server asked for: it asks everybody for the same. */
    return at_least_ms > wait_ms ? at_least_ms + wait_ms % (at_least_ms / 4 + 1) : wait_ms;
}

void kube_backoff_reset(struct kube_backoff *backoff)
{
    backoff->attempts = 0;
}
