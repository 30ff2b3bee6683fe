/* outcome.h - what an answer means for whoever sent the request. Pure. */
#pragma once

#include "tallyman/base/text.h"
#include "tallyman/kube/transport.h"

struct outcome_request {
    const char *method; /* static */
    struct str path;    /* borrowed */
};

/* Fills all of `ret_response` but body and meta. Its texts are borrowed from `arena` and `end`. */
void outcome_classify(struct arena *arena, const struct outcome_request *request,
                      const struct transfer_end *end, struct kube_response *ret_response);
/* Seconds, as Kubernetes sends them; 0 for anything else. Capped at KUBE_RETRY_AFTER_MAX_MS. */
int64_t outcome_parse_retry_after_ms(struct str value);
