/* retry.h - how long to wait before the next try: exponential, with jitter, bounded.
 *
 * Pure: the jitter comes from a seed that the caller draws once (uv_random()). The n-th wait is
 * uniform in [d/2, d] with d = min(base * 2^n, max). */
#pragma once

#include <stdint.h>

struct kube_backoff {
    int64_t base_ms;
    int64_t max_ms;
    uint32_t attempts; /* since the last reset */
    uint64_t random;   /* state of the jitter */
};

void kube_backoff_init(struct kube_backoff *backoff, int64_t base_ms, int64_t max_ms,
                       uint64_t seed);
/* Counts one failure and gives the wait. `at_least_ms` is what the server asked for (Retry-After,
 * at most KUBE_RETRY_AFTER_MAX_MS of it is honoured); 0: nothing. */
int64_t kube_backoff_next_ms(struct kube_backoff *backoff, int64_t at_least_ms);
void kube_backoff_reset(struct kube_backoff *backoff); /* after a success */
