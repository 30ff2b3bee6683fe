/* pod.c - every pod that takes room, whoever owns it. */
#include "incident.h"

#include "tallyman/base/alloc.h"

static struct pod_state *pod_find(const struct core *core, struct str uid)
{
    struct pod_state *pod = table_find(&core->pods, uid);
    return pod;
}

static void pod_unlink_node(struct core *core, struct pod_state *pod)
{
    struct node_state *node = pod->node;
    if (node == NULL) {
        return;
    }
    struct pod_state **link = &node->pods;
    while (*link != pod) {
        link = &(*link)->next_on_node;
    }
    *link = pod->next_on_node;
    vector_add_all(&node->used, &pod->amounts, -1);
    node_touch(core, node);
    pod->node = NULL;
}

static void pod_link_node(struct core *core, struct pod_state *pod, struct str node_name)
{
    pod->node = node_get(core, node_name);
    pod->next_on_node = pod->node->pods;
    pod->node->pods = pod;
    vector_add_all(&pod->node->used, &pod->amounts, 1);
    node_touch(core, pod->node);
}

struct pod_group *pod_group_find(const struct core *core, struct str owner)
{
    struct pod_group *group = table_find(&core->pod_groups, owner);
    return group;
}

static struct pod_group *pod_group_get(struct core *core, struct str owner)
{
    struct pod_group *group = pod_group_find(core, owner);
    if (group == NULL) {
        group = MEM_NEW(struct pod_group);
        group->owner = str_own(owner);
        table_add(&core->pod_groups, group);
        group->gang = gang_of_owner(core, owner);
        if (group->gang != NULL) {
            group->gang->pods = group;
        }
    }
    return group;
}

void pod_group_free_if_unused(struct core *core, struct pod_group *group)
{
    if (group->gang == NULL && group->pods == NULL) {
        table_remove(&core->pod_groups, group);
        str_drop(&group->owner);
        mem_free(group);
    }
}

static struct gang *pod_gang(const struct pod_state *pod)
{
    return pod->group == NULL ? NULL : pod->group->gang;
}

static void pod_unlink_group(struct core *core, struct pod_state *pod)
{
    struct pod_group *group = pod->group;
    if (group == NULL) {
        return;
    }
    drift_forget_pod(core, pod);
    *(pod->previous_in_group == NULL ? &group->pods : &pod->previous_in_group->next_in_group) =
        pod->next_in_group;
    if (pod->next_in_group != NULL) {
        pod->next_in_group->previous_in_group = pod->previous_in_group;
    }
    pod->group = NULL;
    if (group->gang != NULL) {
        gang_pod_changed(core, group->gang, pod); /* which may free the gang, and the group then */
    } else {
        pod_group_free_if_unused(core, group);
    }
}

/* Of no Job where `owner` is empty. */
static void pod_link_group(struct core *core, struct pod_state *pod, struct str owner)
{
    struct str now = pod->group == NULL ? STR_NONE : pod->group->owner;
    if (str_eq(now, owner)) {
        return;
    }
    pod_unlink_group(core, pod);
    if (!str_is_empty(owner)) {
        pod->group = pod_group_get(core, owner);
        whatif_forget_gang(core, pod->group->gang);
        pod->next_in_group = pod->group->pods;
        pod->previous_in_group = NULL;
        pod->counted = (struct pod_count){.is_live = false};
        if (pod->next_in_group != NULL) {
            pod->next_in_group->previous_in_group = pod;
        }
        pod->group->pods = pod;
    }
}

static void pod_drop_claims(struct pod_state *pod)
{
    for (uint32_t i = 0; i < pod->claim_count; i++) {
        str_drop(&pod->claims[i]);
    }
    mem_free(pod->claims);
    pod->claims = NULL;
    pod->claim_count = 0;
}

static void pod_add_claim(struct core *core, struct pod_state *pod, const struct pod *object,
                          struct str claim_name)
{
    struct str key = key_join(&core->scratch, object->meta.namespace_name, claim_name);
    pod->claims = mem_realloc(pod->claims, (pod->claim_count + 1) * sizeof(struct str));
    pod->claims[pod->claim_count++] = str_own(key);
}

static void pod_read_claims(struct core *core, struct pod_state *pod, const struct pod *object)
{
    pod_drop_claims(pod);
    const struct pod_resource_claim_list *wanted = &object->spec.resource_claims;
    pod->claims_wanted = wanted->count;
    for (uint32_t i = 0; i < wanted->count; i++) {
        if (!str_is_empty(wanted->items[i].resource_claim_name)) {
            pod_add_claim(core, pod, object, wanted->items[i].resource_claim_name);
        }
    }
    const struct pod_claim_status_list *made = &object->status.resource_claim_statuses;
    for (uint32_t i = 0; i < made->count; i++) {
        if (!str_is_empty(made->items[i].resource_claim_name)) {
            pod_add_claim(core, pod, object, made->items[i].resource_claim_name);
        }
    }
    const struct extended_claim_status *extended = object->status.extended_resource_claim_status;
    if (extended != NULL && !str_is_empty(extended->resource_claim_name)) {
        pod->claims_wanted++;
        pod_add_claim(core, pod, object, extended->resource_claim_name);
    }
}

/* Its claims had devices before it was known that they are its own: from now on stopping its gang
 * would set them free, which those who may stop somebody didn't know. */
static void pod_tell_late_claims(struct core *core, const struct pod_state *pod, uint32_t known)
{
    bool is_late = false;
    for (uint32_t i = 0; i < pod->claim_count && pod->claim_count > known; i++) {
        const struct claim_state *claim = table_find(&core->claims, pod->claims[i]);
        is_late = is_late || (claim != NULL && claim_is_allocated(claim));
    }
    core->has_freed = core->has_freed || (is_late && pod_gang(pod) != NULL);
}

static void pod_read_ports(struct pod_state *pod, const struct pod *object)
{
    mem_free(pod->host_ports);
    pod->host_ports = NULL;
    pod->host_port_count = 0;
    struct host_port_cursor cursor = {0};
    int64_t port = 0;
    while ((port = pod_next_host_port(&object->spec, &cursor)) > 0) {
        pod->host_ports =
            mem_realloc(pod->host_ports, (pod->host_port_count + 1) * sizeof(int64_t));
        pod->host_ports[pod->host_port_count++] = port;
    }
}

static bool pod_sees_claims(const struct core *core, const struct pod_state *pod)
{
    if (pod->claim_count < pod->claims_wanted) {
        return false;
    }
    for (uint32_t i = 0; i < pod->claim_count; i++) {
        struct claim_state *claim = table_find(&core->claims, pod->claims[i]);
        if (claim == NULL || !claim_is_allocated(claim)) {
            return false;
        }
    }
    return true;
}

void pod_settle(struct core *core, struct pod_state *pod)
{
    bool was_settled = pod->is_settled;
    pod->is_settled = !pod->is_terminal && pod->node != NULL && pod_sees_claims(core, pod);
    drift_pod(core, pod);
    if (was_settled != pod->is_settled && pod_gang(pod) != NULL) {
        gang_pod_changed(core, pod_gang(pod), pod);
    }
}

/* What it takes of its node, only of resources that some node or queue knows. */
static struct rc pod_read_amounts(struct core *core, struct pod_state *pod,
                                  const struct pod *object, struct err *err)
{
    struct amount_list requests;
    TRY(err_prefix(err, pod_requests(&core->scratch, object, &requests, err), "Pod " STR_FMT,
                   STR_ARG(pod->key)));
    vector_clear(&pod->amounts);
    for (uint32_t i = 0; i < requests.count; i++) {
        /* Its node may be seen later, so the name is kept now. */
        struct str name = str_is_empty(object->spec.node_name)
                              ? resource_find(core, requests.items[i].resource)
                              : resource_intern_of_pod(core, requests.items[i].resource);
        if (str_is_set(name)) {
            vector_add(&pod->amounts, name, requests.items[i].value);
        }
    }
    vector_add(&pod->amounts, resource_intern(core, STR(RESOURCE_PODS)), 1);
    return RC_SUCCESS;
}

static struct pod_state *pod_new(struct core *core, const struct pod *object)
{
    struct pod_state *pod = MEM_NEW(struct pod_state);
    pod->uid = str_own(object->meta.uid);
    pod->key = str_own(key_join(&core->scratch, object->meta.namespace_name, object->meta.name));
    table_add(&core->pods, pod);
    return pod;
}

static void pod_free(struct core *core, struct pod_state *pod)
{
    table_remove(&core->pods, pod);
    pod_drop_claims(pod);
    mem_free(pod->host_ports);
    pod_drop_apart(core, pod);
    pod_drop_reports(core, pod);
    core->evicted_pods -= pod->evicted_ms != 0 ? 1 : 0;
    vector_deinit(&pod->amounts);
    str_drop(&pod->uid);
    str_drop(&pod->key);
    str_drop(&pod->pod_set);
    mem_free(pod);
}

static struct str job_of(const struct pod *object)
{
    const struct owner_reference *owner = meta_controller(&object->meta);
    bool is_job = owner != NULL && str_eq_c(owner->kind, "Job") &&
                  str_starts_with(owner->api_version, STR("batch/"));
    return is_job ? owner->uid : STR_NONE;
}

/* With --cascade=orphan a Job goes and its pods lose their owner, but they run on and take what
 * they took: they stay with the Job that they were seen with, or whose label they carry. Anybody
 * may write a label: such pods only ever add to what the Job still holds. */
static void pod_read_owner(struct core *core, struct pod_state *pod, const struct pod *object)
{
    struct str job_uid = job_of(object);
    bool has_owner = meta_controller(&object->meta) != NULL;
    pod->is_orphan = !has_owner && pod->group != NULL;
    if (!has_owner && pod->group == NULL) {
        job_uid = string_map_get(&object->meta.labels, LABEL_CONTROLLER_UID);
        pod->is_orphan = !str_is_empty(job_uid);
    }
    if (pod->group == NULL || !pod->is_orphan) {
        bool has_job = !str_is_empty(job_uid);
        pod_link_group(core, pod,
                       has_job ? owner_key(core, object->meta.namespace_name, job_uid) : STR_NONE);
    }
}

struct rc pod_apply(struct core *core, const struct pod *object, struct err *err)
{
    struct pod_state *pod = pod_find(core, object->meta.uid);
    if (pod == NULL) {
        pod = pod_new(core, object);
    }
    whatif_forget_gang(core, pod_gang(pod));
    struct node_state *old_node = pod->node;
    pod_unlink_node(core, pod);
    struct vector old_amounts = pod->amounts;
    pod->amounts = (struct vector){.items = NULL};
    struct rc rc = pod_read_amounts(core, pod, object, err);
    if (rc_failed(rc)) {
        vector_clear(&pod->amounts); /* it is on its node all the same */
        vector_add(&pod->amounts, resource_intern(core, STR(RESOURCE_PODS)), 1);
    }
    pod->is_terminal = pod_is_terminal(object);
    pod->is_ready = pod_is_ready(object) && !pod->is_terminal;
    pod->is_succeeded = str_eq_c(object->status.phase, "Succeeded");
    pod->is_terminating = object->meta.deletion_timestamp.is_set;
    if (!str_is_empty(object->spec.node_name) && !pod->is_terminal) {
        pod_link_node(core, pod, object->spec.node_name);
    }
    str_drop(&pod->pod_set);
    pod->pod_set = str_own(string_map_get(&object->meta.labels, LABEL_POD_SET));
    pod_read_owner(core, pod, object);
    uint32_t known_claims = pod->claim_count;
    pod_read_claims(core, pod, object);
    pod_tell_late_claims(core, pod, known_claims);
    pod_read_ports(pod, object);
    pod_read_apart(core, pod, object);
    pod_read_reports(core, pod, object);
    pod_read_eviction(core, pod, object);
    pod_settle(core, pod);
    if (pod_gang(pod) != NULL) {
        gang_pod_changed(core, pod_gang(pod), pod);
    }
    bool is_resized = !vector_equal(&old_amounts, &pod->amounts);
    vector_deinit(&old_amounts);
    if (old_node != pod->node || is_resized) {
        wake_reserved(core); /* less room, and so less that may stand in each other's way */
    }
    if (old_node != NULL && (old_node != pod->node || is_resized)) {
        wake_for_node(core, old_node);
        node_free_if_unused(core, old_node);
    }
    return rc;
}

void pod_deleted(struct core *core, const struct pod *object)
{
    struct pod_state *pod = pod_find(core, object->meta.uid);
    if (pod == NULL) {
        return;
    }
    struct node_state *node = pod->node;
    whatif_forget_gang(core, pod_gang(pod));
    pod_unlink_node(core, pod);
    pod_unlink_group(core, pod);
    pod_free(core, pod);
    if (node != NULL) {
        wake_reserved(core);
        wake_for_node(core, node);
        node_free_if_unused(core, node);
    }
}

void pods_free(struct core *core)
{
    uint32_t at = 0;
    for (struct pod_state *pod; (pod = table_drain(&core->pods, &at)) != NULL;) {
        pod_unlink_node(core, pod);
        pod_unlink_group(core, pod);
        pod_free(core, pod);
    }
    table_deinit(&core->pods);
    table_deinit(&core->pod_groups);
}
