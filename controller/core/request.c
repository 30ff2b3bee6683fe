/* request.c - the ProvisioningRequests that Tallyman has made, each for an attempt of one Job.
 *
 * They are found again by their names and owners, so that a restart makes no second one. Those of
 * others are none of our business. */
#include "check.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

struct str request_name(struct arena *arena, struct str job_name, struct str job_uid,
                        int64_t attempt)
{
    struct str job = str_take(job_name, REQUEST_JOB_NAME_MAX_BYTES);
    while (job.len > 0 && (job.ptr[job.len - 1] == '.' || job.ptr[job.len - 1] == '-')) {
        job.len--; /* what is put behind it would make a name of it that isn't one */
    }
    struct str uid = str_skip(job_uid, job_uid.len > 8 ? job_uid.len - 8 : 0);
    if (attempt == 0) {
        return arena_format(arena, STR_FMT "-" STR_FMT, STR_ARG(job), STR_ARG(uid));
    }
    return arena_format(arena, STR_FMT "-" STR_FMT "-%lld", STR_ARG(job), STR_ARG(uid),
                        (long long)attempt);
}

/* The attempt that it is; 0: it isn't one of ours. */
static int64_t attempt_of(struct core *core, const struct provisioning_request *object)
{
    const struct owner_reference *owner = meta_controller(&object->meta);
    if (owner == NULL || !str_eq_c(owner->kind, "Job") || str_is_empty(owner->uid)) {
        return 0;
    }
    struct str name = object->meta.name;
    size_t dash = name.len;
    while (dash > 0 && name.ptr[dash - 1] != '-') {
        dash--;
    }
    int64_t attempt = 0;
    if (!str_to_i64(str_skip(name, dash), &attempt) || attempt < 1 ||
        attempt > REQUEST_ATTEMPTS_MAX) {
        return 0;
    }
    struct str expected = request_name(&core->scratch, owner->name, owner->uid, attempt);
    return str_eq(name, expected) ? attempt : 0;
}

enum request_says request_says(const struct request_state *request,
                               const struct condition **ret_because)
{
    static const struct {
        const char *type;
        enum request_says says;
    } ends[] = {{"Failed", REQUEST_FAILED},
                {"CapacityRevoked", REQUEST_REVOKED},
                {"BookingExpired", REQUEST_EXPIRED},
                {"Provisioned", REQUEST_PROVISIONED}};
    const struct condition_list *conditions = &request->object->status.conditions;
    bool is_going = request->object->meta.deletion_timestamp.is_set;
    for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
        *ret_because = condition_find(conditions, ends[i].type);
        bool is_true = condition_is_true(conditions, ends[i].type);
        if (is_true && !(is_going && ends[i].says == REQUEST_PROVISIONED)) {
            return ends[i].says;
        }
    }
    if (*ret_because == NULL) {
        *ret_because = condition_find(conditions, "Accepted");
    }
    return is_going ? REQUEST_GOING : REQUEST_WAITS;
}

int64_t request_made_ms(const struct core *core, const struct request_state *request)
{
    const struct opt_time *made = &request->object->meta.creation_timestamp;
    return made->is_set ? made->ms : core->now_ms;
}

bool request_is_over(const struct request_state *request)
{
    const struct condition *because;
    enum request_says says = request_says(request, &because);
    return says != REQUEST_WAITS && says != REQUEST_PROVISIONED;
}

struct request_state *request_find(const struct gang *gang, int64_t attempt)
{
    struct request_state *request =
        gang->room->requests == NULL ? NULL : gang->room->requests->first;
    while (request != NULL && request->attempt != attempt) {
        request = request->next;
    }
    return request;
}

const struct request_record *request_record(struct core *core, const struct request_state *request)
{
    void *value = NULL;
    struct err err;
    struct str text = string_map_get(&request->object->meta.annotations, ANNOTATION_RESERVATION);
    if (str_is_empty(text) ||
        rc_failed(decode_json(&core->scratch, &request_record_schema, text, &value, &err))) {
        return NULL;
    }
    return value;
}

void request_let_go(struct core *core, struct request_state *request)
{
    if (request->is_let_go) {
        return;
    }
    request->is_let_go = true;
    struct effect *effect = effect_new(core, EFFECT_DELETE_REQUEST);
    struct arena *arena = core->out->arena;
    const struct object_meta *meta = &request->object->meta;
    effect->object_kind = KIND_PROVISIONING_REQUEST;
    effect->namespace_name = arena_copy_str(arena, meta->namespace_name);
    effect->name = arena_copy_str(arena, meta->name);
    effect->uid = arena_copy_str(arena, meta->uid);
}

/* The one whose room its pods use, until they are gone; what has been asked for and not yet used.
 */
static bool is_needed(const struct gang *gang, const struct request_state *request)
{
    if (request->attempt <= gang->room->dropped_attempt) {
        return false;
    }
    bool is_up = gang->state == GANG_ADMITTED || gang->state == GANG_RUNNING ||
                 gang->state == GANG_SUSPENDING || gang->state == GANG_FINISHED;
    return request->attempt > gang->room->used_attempt ||
           (is_up && request->attempt == gang->room->used_attempt);
}

void requests_tidy(struct core *core, struct gang *gang)
{
    struct request_state *request =
        gang->room->requests == NULL ? NULL : gang->room->requests->first;
    for (; request != NULL; request = request->next) {
        if (!is_needed(gang, request)) {
            request_let_go(core, request);
        }
    }
}

/* -- the table --------------------------------------------------------------------------------- */

static struct job_requests *job_requests_find(const struct core *core, struct str owner)
{
    struct job_requests *of = NULL;
    HASH_FIND(hh, core->requests_by_job, owner.ptr, (unsigned)owner.len, of);
    return of;
}

static void link_to_job(struct core *core, struct request_state *request, struct str owner)
{
    struct job_requests *of = job_requests_find(core, owner);
    if (of == NULL) {
        of = MEM_NEW(struct job_requests);
        of->owner = str_own(owner);
        HASH_ADD_KEYPTR(hh, core->requests_by_job, of->owner.ptr, (unsigned)of->owner.len, of);
        of->gang = gang_of_owner(core, owner);
        if (of->gang != NULL) {
            GANG_PUT(of->gang, room, requests, of);
        }
    }
    request->of = of;
    struct request_state **link = &of->first;
    while (*link != NULL && (*link)->attempt > request->attempt) {
        link = &(*link)->next;
    }
    request->next = *link;
    *link = request;
}

static void request_free(struct core *core, struct request_state *request)
{
    struct job_requests *of = request->of;
    struct request_state **link = &of->first;
    while (*link != request) {
        link = &(*link)->next;
    }
    *link = request->next;
    if (of->first == NULL) {
        requests_leave_gang(of->gang);
        HASH_DEL(core->requests_by_job, of);
        str_drop(&of->owner);
        mem_free(of);
    }
    HASH_DEL(core->requests, request);
    mem_free(request->object);
    str_drop(&request->key);
    mem_free(request);
}

void requests_meet_gang(struct core *core, struct gang *gang)
{
    struct job_requests *of =
        job_requests_find(core, owner_key(core, gang->namespace_name, gang->uid));
    if (of != NULL) {
        of->gang = gang;
        GANG_PUT(gang, room, requests, of);
    }
}

void requests_leave_gang(struct gang *gang)
{
    if (gang != NULL && gang->room->requests != NULL) {
        gang->room->requests->gang = NULL;
        GANG_PUT(gang, room, requests, NULL);
    }
}

static struct request_state *find_by_key(struct core *core, const struct object_meta *meta)
{
    struct request_state *request = NULL;
    struct str key = key_join(&core->scratch, meta->namespace_name, meta->name);
    HASH_FIND(hh, core->requests, key.ptr, (unsigned)key.len, request);
    return request;
}

static void request_gone(struct core *core, struct request_state *request)
{
    struct gang *gang = request->of->gang;
    int64_t attempt = request->attempt;
    bool is_news = !request->is_let_go;
    request_free(core, request);
    if (gang != NULL && is_news && core->is_ready) {
        check_request_gone(core, gang, attempt);
    }
}

static bool is_same(const struct provisioning_request *a, const struct provisioning_request *b)
{
    struct provisioning_request left = *a;
    struct provisioning_request right = *b;
    left.meta.resource_version = right.meta.resource_version = STR_NONE;
    return object_equal(kind_info(KIND_PROVISIONING_REQUEST)->schema, &left, &right);
}

void request_apply(struct core *core, const struct provisioning_request *object)
{
    struct request_state *request = find_by_key(core, &object->meta);
    int64_t attempt = attempt_of(core, object);
    bool is_another = request != NULL && !str_eq(request->object->meta.uid, object->meta.uid);
    if (request != NULL && (is_another || attempt == 0)) {
        request_gone(core, request);
        request = NULL;
    }
    if (attempt == 0) {
        return;
    }
    const struct schema *schema = kind_info(KIND_PROVISIONING_REQUEST)->schema;
    if (request == NULL) {
        request = MEM_NEW(struct request_state);
        request->key =
            str_own(key_join(&core->scratch, object->meta.namespace_name, object->meta.name));
        request->attempt = attempt;
        HASH_ADD_KEYPTR(hh, core->requests, request->key.ptr, (unsigned)request->key.len, request);
        link_to_job(
            core, request,
            owner_key(core, object->meta.namespace_name, meta_controller(&object->meta)->uid));
    } else if (is_same(request->object, object)) {
        return;
    }
    mem_free(request->object);
    request->object = object_clone(schema, object);
    if (request->of->gang != NULL && core->is_ready) {
        check_request_changed(core, request->of->gang);
    }
}

void request_deleted(struct core *core, const struct provisioning_request *object)
{
    struct request_state *request = find_by_key(core, &object->meta);
    if (request != NULL && str_eq(request->object->meta.uid, object->meta.uid)) {
        request_gone(core, request);
    }
}

void requests_free(struct core *core)
{
    struct request_state *request;
    struct request_state *next;
    HASH_ITER (hh, core->requests, request, next) {
        request_free(core, request);
    }
}
