/* live.c - lists every kind, page by page. */
#include "live.h"

#include "tallyman/base/alloc.h"
#include "tallyman/kube/path.h"

#define LIVE_PAGE_ITEMS 200

struct listing {
    struct live *live;
    enum object_kind kind;
    struct str namespace_name; /* absent: all */
    uint32_t version_index;    /* of kind_version(), as which it is read */
    struct str version;        /* of exactly that moment; absent: the newest */
    struct str seen_version;   /* of the list, once it has been read; in live->arena */
};

void object_set_add(struct object_set *set, enum object_kind kind, const struct object_meta *value)
{
    set->items = mem_grow(set->items, set->count, &set->capacity, sizeof(struct object));
    set->items[set->count++] = (struct object){kind, object_clone(kind_info(kind)->schema, value)};
}

static void object_set_cut(struct object_set *set, uint32_t count)
{
    while (set->count > count) {
        mem_free((void *)(uintptr_t)set->items[--set->count].value);
    }
}

void object_set_replace(struct object *item, const struct object_meta *value)
{
    void *old = (void *)(uintptr_t)item->value;
    item->value = object_clone(kind_info(item->kind)->schema, value);
    mem_free(old);
}

void object_set_free(struct object_set *set)
{
    object_set_cut(set, 0);
    mem_free(set->items);
    *set = (struct object_set){.items = NULL};
}

static struct rc on_item(void *ctx, const struct watch_event *event, struct err *err)
{
    (void)err;
    struct listing *listing = ctx;
    object_set_add(&listing->live->objects, listing->kind, event->object.value);
    return RC_SUCCESS;
}

static void on_malformed(void *ctx, const struct object_meta *meta, const struct err *why)
{
    (void)meta;
    struct live *live = ((struct listing *)ctx)->live;
    if (live->malformed_count++ == 0) {
        live->first_malformed = arena_copy_str(&live->arena, err_text(why));
    }
}

static struct rc read_page(struct listing *listing, struct str body, struct str *ret_continue,
                           struct err *err)
{
    struct watch_handler handler = {
        .on_event = on_item, .on_malformed = on_malformed, .ctx = listing};
    struct list_decoder *decoder = list_decoder_new(kind_info(listing->kind), handler);
    struct list_meta meta = {.continue_token = STR_NONE};
    struct rc rc = list_decoder_feed(decoder, body.ptr, body.len, err);
    if (!rc_failed(rc)) {
        rc = list_decoder_finish(decoder, &meta, err);
    }
    if (!rc_failed(rc)) {
        struct arena *arena = &listing->live->arena;
        *ret_continue = arena_copy_str(arena, meta.continue_token);
        listing->seen_version = arena_copy_str(arena, meta.resource_version);
    }
    list_decoder_free(decoder);
    return rc;
}

/* All pages of one list; the answer to the last of them tells how it went. */
static struct rc list_once(struct session *session, struct listing *listing,
                           struct session_answer *ret_answer, struct err *err)
{
    struct arena *arena = &listing->live->arena;
    struct str next = STR_NONE;
    do {
        struct text path;
        struct text query;
        text_init(&path, arena, 1024);
        text_init(&query, arena, 65536);
        path_add_collection_as(&path, kind_info(listing->kind),
                               kind_version(kind_info(listing->kind), listing->version_index),
                               listing->namespace_name);
        text_addf(&query, "limit=%d", LIVE_PAGE_ITEMS);
        if (!str_is_empty(next)) {
            text_add(&query, STR("&continue="));
            path_add_encoded(&query, next);
        } else if (!str_is_empty(listing->version)) {
            text_addf(&query, "&resourceVersion=" STR_FMT "&resourceVersionMatch=Exact",
                      STR_ARG(listing->version));
        }
        session_get(session, text_str(&path), text_str(&query), ret_answer);
        if (ret_answer->outcome != KUBE_DONE) {
            return RC_SUCCESS;
        }
        struct rc rc = read_page(listing, ret_answer->body, &next, err);
        if (rc_failed(rc)) {
            session_answer_drop(ret_answer);
            return rc;
        }
        if (!str_is_empty(next)) {
            session_answer_drop(ret_answer);
        }
    } while (!str_is_empty(next));
    return RC_SUCCESS;
}

/* In the newest version of the API that is served. */
static struct rc list_served(struct session *session, struct listing *listing,
                             struct session_answer *ret_answer, struct err *err)
{
    const struct kind_info *info = kind_info(listing->kind);
    TRY(list_once(session, listing, ret_answer, err));
    while (ret_answer->outcome == KUBE_NOT_FOUND &&
           kind_version(info, listing->version_index + 1) != NULL) {
        listing->version_index++;
        session_answer_drop(ret_answer);
        TRY(list_once(session, listing, ret_answer, err));
    }
    return RC_SUCCESS;
}

/* The same moment as the lists before, else (it has been compacted, or is another store's) now. */
static struct rc list_kind(struct session *session, struct listing *listing,
                           struct session_answer *ret_answer, struct err *err)
{
    uint32_t before = listing->live->objects.count;
    TRY(list_served(session, listing, ret_answer, err));
    enum kube_outcome outcome = ret_answer->outcome;
    bool is_no_moment = outcome == KUBE_GONE || outcome == KUBE_INVALID || outcome == KUBE_RETRY;
    if (!is_no_moment) {
        return RC_SUCCESS;
    }
    bool had_version = !str_is_empty(listing->version);
    object_set_cut(&listing->live->objects, before);
    session_answer_drop(ret_answer);
    listing->version = STR_NONE;
    listing->live->is_mixed = listing->live->is_mixed || had_version;
    return list_served(session, listing, ret_answer, err);
}

static const char *gap_meaning(enum object_kind kind, enum live_extent extent)
{
    bool is_some = extent == LIVE_NAMESPACE;
    switch (kind) {
    case KIND_JOB:
        return is_some ? "what gangs of other namespaces hold, and which of them come first, isn't "
                         "reckoned with"
                       : "only the Jobs of the manifests are known";
    case KIND_POD:
    case KIND_NODE:
    case KIND_RESOURCE_SLICE:
    case KIND_RESOURCE_CLAIM:
        return "only quota is judged, not whether nodes and devices have the room";
    case KIND_NAMESPACE:
        return "every namespace counts as allowed on every queue";
    case KIND_LIMIT_RANGE:
        return is_some ? "requests that LimitRanges of other namespaces add are left out"
                       : "requests that LimitRanges add are left out";
    case KIND_RUNTIME_CLASS:
        return "overhead and node selectors of runtime classes are left out";
    case KIND_PRIORITY_CLASS:
        return "every priority counts as 0";
    case KIND_DEVICE_CLASS:
        return "only quota is judged, and a device class counts as one that exists";
    case KIND_RESOURCE_CLAIM_TEMPLATE:
        return "gangs whose claim templates aren't known wait with MissingReference here";
    case KIND_QUEUE:
        return "only the queues of the manifests are known";
    case KIND_COHORT:
        return "limits of cohorts are left out";
    case KIND_RESOURCE_FLAVOR:
        return "a flavor counts as one that every node has";
    case KIND_ADMISSION:
        return "how often a gang has failed to start, and when it is tried again, isn't known";
    case KIND_DEVICE_TAINT_RULE:
        return "devices that a DeviceTaintRule keeps pods off count as free";
    case KIND_PROVISIONING_REQUEST:
        return "what autoscalers have been asked for, and have answered, isn't known";
    case KIND_NONE:
    case KIND_COUNT:
        break;
    }
    return "";
}

static void add_gap(struct live *live, enum object_kind kind, enum live_extent extent,
                    struct str message)
{
    live->gaps[live->gap_count++] =
        (struct live_gap){.kind = kind,
                          .extent = extent,
                          .message = arena_copy_str(&live->arena, message),
                          .meaning = gap_meaning(kind, extent)};
}

/* In the whole cluster, else in the reader's namespace, else not at all. */
static struct rc read_kind(struct session *session, struct live *live, enum object_kind kind,
                           struct str *version, struct err *err)
{
    struct listing listing = {.live = live, .kind = kind, .version = *version};
    struct session_answer answer;
    TRY(list_kind(session, &listing, &answer, err));
    struct str refusal = arena_copy_str(&live->arena, answer.message);
    enum kube_outcome outcome = answer.outcome;
    session_answer_drop(&answer);
    if (outcome == KUBE_FORBIDDEN && kind_info(kind)->is_namespaced) {
        listing.namespace_name = live->namespace_name;
        TRY(list_kind(session, &listing, &answer, err));
        outcome = answer.outcome;
        session_answer_drop(&answer);
        add_gap(live, kind, outcome == KUBE_DONE ? LIVE_NAMESPACE : LIVE_NOTHING, refusal);
    } else if (outcome == KUBE_FORBIDDEN) {
        add_gap(live, kind, LIVE_NOTHING, refusal);
    }
    switch (outcome) {
    case KUBE_DONE:
        *version = str_is_empty(*version) ? listing.seen_version : *version;
        return RC_SUCCESS;
    case KUBE_NOT_FOUND:
        /* The kind isn't served: there are none. Without our own there is nothing to plan. */
        if (kind != KIND_QUEUE) {
            return RC_SUCCESS;
        }
        return err_set(err, RC_REFUSED,
                       "the cluster has no kind Queue (tallyman.dev/v1beta1); install the CRDs of "
                       "Tallyman first, or plan with -f and without a cluster");
    case KUBE_FORBIDDEN:
        return RC_SUCCESS;
    case KUBE_CONFLICT:
    case KUBE_GONE:
    case KUBE_INVALID:
    case KUBE_RETRY:
    case KUBE_CANCELLED:
        break;
    }
    return err_set(err, RC_IO, "%s can't be listed: " STR_FMT, kind_info(kind)->plural,
                   STR_ARG(refusal));
}

struct rc live_read(struct session *session, struct str namespace_name, struct live *ret_live,
                    struct err *err)
{
    struct live *live = ret_live;
    *live = (struct live){.gap_count = 0};
    arena_init(&live->arena);
    live->namespace_name = arena_copy_str(
        &live->arena, str_is_empty(namespace_name) ? session_namespace(session) : namespace_name);
    struct str version = STR_NONE;
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        TRY(read_kind(session, live, (enum object_kind)kind, &version, err));
    }
    return RC_SUCCESS;
}

void live_free(struct live *live)
{
    object_set_free(&live->objects);
    arena_deinit(&live->arena);
}
