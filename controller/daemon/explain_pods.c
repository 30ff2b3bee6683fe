/* explain_pods.c - how far the pods of an admitted gang are. */
#include "explain.h"

#include "tallyman/kube/path.h"

static bool has_pods(const struct admission *admission)
{
    struct str state = admission->status.state;
    return str_eq_c(state, "Admitted") || str_eq_c(state, "Running") ||
           str_eq_c(state, "Suspending");
}

void explain_read_pods(struct session *session, struct arena *arena, struct explained *explained)
{
    const struct admission *admission = explained->admission;
    if (!has_pods(admission)) {
        return;
    }
    struct text path;
    struct text query;
    text_init(&path, arena, 1024);
    text_init(&query, arena, 1024);
    path_add_collection(&path, kind_info(KIND_POD), admission->meta.namespace_name);
    text_addf(&query, "limit=%d&labelSelector=", PODS_SHOWN_MAX);
    path_add_encoded(&query, STR("batch.kubernetes.io/controller-uid="));
    path_add_encoded(&query, admission->spec.job_uid);
    struct session_answer answer;
    session_get(session, text_str(&path), text_str(&query), &answer);
    void *value = NULL;
    struct err err;
    if (answer.outcome != KUBE_DONE) {
        explained->pods_unread = arena_copy_str(arena, answer.message);
    } else if (rc_failed(
                   decode_json(arena, &pod_progress_page_schema, answer.body, &value, &err))) {
        explained->pods_unread = arena_copy_str(arena, err_text(&err));
    } else {
        explained->pods = &((const struct pod_progress_page *)value)->items;
    }
    session_answer_drop(&answer);
}
