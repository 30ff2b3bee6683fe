/* metrics.h - what the kube client counts; it prints nothing itself.
 *
 * A reader walks `requests` and the per-kind counters whenever it likes: one loop, one thread. */
#pragma once

#include <stdint.h>

#include "tallyman/api/kinds.h"

/* "get", "list", "watch", "patch", "apply", "create", "delete"; code 0: no answer came. */
struct kube_request_count {
    const char *verb; /* static */
    char resource[64];
    uint32_t code;
    uint64_t count;
};

struct kube_kind_metrics {
    uint64_t watch_starts; /* streams begun, the first one too */
    uint64_t full_syncs;   /* complete initial lists */
    uint64_t events;       /* objects given to the handler */
    uint64_t bookmarks;
    uint64_t malformed_objects; /* skipped */
    uint64_t vanished_objects;  /* found missing by a full sync */
    uint64_t version_reversals; /* resourceVersion went backwards inside a stream */
    uint64_t known_objects;     /* now */
};

struct kube_metrics {
    /* In order of first use; at most KUBE_METRIC_SERIES_MAX, the rest is counted in `other`. */
    struct kube_request_count *requests; /* owned by the client */
    uint32_t request_count;
    uint64_t other_requests;
    uint64_t received_bytes; /* as they came, before decompression */
    uint64_t sent_body_bytes;
    uint64_t credential_reads;
    uint32_t in_flight; /* requests sent and not answered, watches left out */
    uint32_t queued;    /* requests that wait for their turn */
    struct kube_kind_metrics kinds[KIND_COUNT];
};
