#include "tallyman/kube/writer.h"

#include <assert.h>

#include "tallyman/base/limits.h"
#include "tallyman/base/time_text.h"
#include "tallyman/kube/path.h"

#define ACCEPT_META  "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
#define MERGE_PATCH  "application/merge-patch+json"
#define APPLY_PATCH  "application/apply-patch+yaml"
#define REPORTER     "tallyman.dev/tallyman"
#define PATH_MAX_LEN 2048

struct write {
    struct arena arena;
    struct kube_request request;
};

static void write_init(struct write *write, const char *method, const char *verb,
                       struct kube_done done)
{
    *write = (struct write){0};
    arena_init(&write->arena);
    write->request = (struct kube_request){
        .method = method,
        .verb = verb,
        .accept = ACCEPT_META,
        .on_done = done.call,
        .ctx = done.ctx,
    };
}

static void write_set_target(struct write *write, const struct kube_target *target)
{
    const struct kind_info *kind = kind_info(target->kind);
    assert(kind != NULL);
    assert(!str_is_empty(target->name));
    struct text path;
    text_init(&path, &write->arena, PATH_MAX_LEN);
    path_add_object(&path, kind, target->namespace_name, target->name, target->subresource);
    write->request.path = text_str(&path);
    write->request.resource = str_from_c(kind->plural);
    if (target->subresource != NULL) {
        write->request.resource =
            arena_format(&write->arena, "%s/%s", kind->plural, target->subresource);
    }
}

static struct kube_call *write_send(struct write *write, struct kube_client *client)
{
    struct kube_call *call = kube_client_send(client, &write->request);
    arena_deinit(&write->arena);
    return call;
}

struct kube_call *kube_patch_merge(struct kube_client *client, const struct kube_target *target,
                                   struct str body, struct kube_done done)
{
    struct write write;
    write_init(&write, "PATCH", "patch", done);
    write_set_target(&write, target);
    write.request.query = STR("fieldManager=" KUBE_FIELD_MANAGER);
    write.request.content_type = MERGE_PATCH;
    write.request.body = body;
    return write_send(&write, client);
}

struct kube_call *kube_apply(struct kube_client *client, const struct kube_target *target,
                             struct str body, struct kube_done done)
{
    struct write write;
    write_init(&write, "PATCH", "apply", done);
    write_set_target(&write, target);
    write.request.query = STR("fieldManager=" KUBE_FIELD_MANAGER "&force=true");
    write.request.content_type = APPLY_PATCH;
    write.request.body = body;
    return write_send(&write, client);
}

struct kube_call *kube_delete(struct kube_client *client, const struct kube_target *target,
                              struct str uid, struct kube_done done)
{
    struct write write;
    write_init(&write, "DELETE", "delete", done);
    write_set_target(&write, target);
    struct json_writer *json = json_writer_new();
    json_object_start(json);
    json_key(json, "kind");
    json_string(json, STR("DeleteOptions"));
    json_key(json, "apiVersion");
    json_string(json, STR("v1"));
    json_key(json, "propagationPolicy");
    json_string(json, STR("Background"));
    json_key(json, "preconditions");
    json_object_start(json);
    json_key(json, "uid");
    json_string(json, uid);
    json_object_end(json);
    json_object_end(json);
    write.request.body = json_writer_text(json);
    write.request.accept = NULL; /* the answer is the object, or a Status */
    struct kube_call *call = write_send(&write, client);
    json_writer_free(json);
    return call;
}

struct kube_call *kube_get(struct kube_client *client, const struct kube_target *target,
                           struct kube_done done)
{
    struct write write;
    write_init(&write, "GET", "get", done);
    write_set_target(&write, target);
    write.request.accept = NULL;
    return write_send(&write, client);
}

/* -- events ------------------------------------------------------------------------------------ */

static void json_pair(struct json_writer *json, const char *key, struct str value)
{
    json_key(json, key);
    json_string(json, value);
}

static void json_pair_if_set(struct json_writer *json, const char *key, struct str value)
{
    if (!str_is_empty(value)) {
        json_pair(json, key, value);
    }
}

static void write_regarding(struct json_writer *json, struct arena *arena,
                            const struct kube_event *event)
{
    const struct kind_info *kind = kind_info(event->regarding_kind);
    assert(kind != NULL);
    json_key(json, "regarding");
    json_object_start(json);
    json_pair(json, "apiVersion",
              kind->group[0] == '\0' ? str_from_c(kind->version)
                                     : arena_format(arena, "%s/%s", kind->group, kind->version));
    json_pair(json, "kind", str_from_c(kind->name));
    json_pair_if_set(json, "namespace", event->regarding_namespace);
    json_pair(json, "name", event->regarding_name);
    json_pair_if_set(json, "uid", event->regarding_uid);
    json_pair_if_set(json, "resourceVersion", event->regarding_resource_version);
    json_object_end(json);
}

static void write_event(struct json_writer *json, struct arena *arena,
                        const struct kube_event *event)
{
    char time[TIME_TEXT_BYTES];
    json_object_start(json);
    json_pair(json, "apiVersion", STR("events.k8s.io/v1"));
    json_pair(json, "kind", STR("Event"));
    json_key(json, "metadata");
    json_object_start(json);
    json_pair(json, "name", event->name);
    json_pair(json, "namespace", event->namespace_name);
    json_object_end(json);
    json_pair(json, "eventTime", time_format_micro(event->at_ms, time));
    json_pair(json, "type", event->type);
    json_pair(json, "reason", str_cut_utf8(event->reason, KUBE_EVENT_WORD_MAX_BYTES));
    json_pair(json, "action", str_cut_utf8(event->action, KUBE_EVENT_WORD_MAX_BYTES));
    json_pair_if_set(json, "note", str_cut_utf8(event->note, KUBE_EVENT_NOTE_MAX_BYTES));
    json_pair(json, "reportingController", STR(REPORTER));
    json_pair(json, "reportingInstance", str_cut_utf8(event->instance, KUBE_EVENT_WORD_MAX_BYTES));
    write_regarding(json, arena, event);
    json_object_end(json);
}

static struct str event_collection(struct arena *arena, struct str namespace_name)
{
    struct text path;
    text_init(&path, arena, PATH_MAX_LEN);
    text_add(&path, STR("/apis/events.k8s.io/v1/namespaces/"));
    path_add_encoded(&path, namespace_name);
    text_add(&path, STR("/events"));
    return text_str(&path);
}

struct kube_call *kube_create_event(struct kube_client *client, const struct kube_event *event,
                                    struct kube_done done)
{
    struct write write;
    write_init(&write, "POST", "create", done);
    struct json_writer *json = json_writer_new();
    write_event(json, &write.arena, event);
    write.request.path = event_collection(&write.arena, event->namespace_name);
    write.request.resource = STR("events");
    write.request.body = json_writer_text(json);
    struct kube_call *call = write_send(&write, client);
    json_writer_free(json);
    return call;
}
