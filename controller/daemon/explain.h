/* explain.h - what is told about one gang, and how. */
#pragma once

#include "plan.h"
#include "tallyman/api/admission.h"
#include "tallyman/api/pod_progress.h"

#define PODS_SHOWN_MAX 500 /* of one Job */

/* All texts are borrowed from the arena that it was made with. */
struct explained {
    const struct admission *admission;
    enum decision decision;               /* 0: live, where the controller has decided already */
    struct str_list victims;              /* DECISION_PREEMPT */
    const struct pod_progress_list *pods; /* NULL: not asked for, or may not be read */
    struct str pods_unread;               /* why they may not be read; absent: they needn't be */
    int64_t now_ms;
};

/* The Job's pods, where the reader may list them. */
void explain_read_pods(struct session *session, struct arena *arena, struct explained *explained);
void explain_print_text(struct arena *arena, const struct explained *explained);
void explain_print_data(const struct explained *explained, enum print_format format);
