#include "tallyman/kube/discovery.h"

#include <stddef.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/text.h"

/* -- /version ---------------------------------------------------------------------------------- */

struct version_read {
    void (*on_version)(void *ctx, const struct kube_server_version *version, struct str message);
    void *ctx;
};

static const struct field version_fields[] = {
    {"gitVersion", FIELD_STRING, offsetof(struct kube_server_version, git_version), NULL},
    {"platform", FIELD_STRING, offsetof(struct kube_server_version, platform), NULL},
};

static const struct schema version_schema = {"Info", sizeof(struct kube_server_version),
                                             version_fields, ARRAY_COUNT(version_fields)};

static void version_on_done(void *ctx, const struct kube_response *response)
{
    struct version_read *read = ctx;
    struct arena arena;
    void *version = NULL;
    struct err err = {0};
    struct str message = response->message;
    arena_init(&arena);
    if (response->outcome == KUBE_DONE) {
        struct rc rc = decode_json(&arena, &version_schema, response->body, &version, &err);
        if (rc_failed(rc)) {
            rc = err_prefix(&err, rc, "GET /version");
            version = NULL;
            message = err_text(&err);
        }
    }
    read->on_version(read->ctx, version, message);
    arena_deinit(&arena);
    mem_free(read);
}

void kube_read_server_version(struct kube_client *client,
                              void (*on_version)(void *ctx,
                                                 const struct kube_server_version *version,
                                                 struct str message),
                              void *ctx)
{
    struct version_read *read = MEM_NEW(struct version_read);
    *read = (struct version_read){.on_version = on_version, .ctx = ctx};
    struct kube_request request = {
        .method = "GET",
        .verb = "get",
        .resource = STR("version"),
        .path = STR("/version"),
        .on_done = version_on_done,
        .ctx = read,
    };
    kube_client_send(client, &request);
}

/* -- a group's versions ------------------------------------------------------------------------ */

struct group_read {
    enum object_kind kind;
    void (*on_group)(void *ctx, const struct kube_group_versions *versions, struct str message);
    void *ctx;
};

struct group_version {
    struct str version;
};

struct group_version_list {
    struct group_version *items;
    uint32_t count;
};

struct api_group {
    struct str name;
    struct group_version_list versions;
};

static const struct field group_version_fields[] = {
    {"version", FIELD_STRING, offsetof(struct group_version, version), NULL},
};

static const struct schema group_version_schema = {
    "GroupVersionForDiscovery", sizeof(struct group_version), group_version_fields,
    ARRAY_COUNT(group_version_fields)};

static const struct field group_fields[] = {
    {"name", FIELD_STRING, offsetof(struct api_group, name), NULL},
    {"versions", FIELD_OBJECT_LIST, offsetof(struct api_group, versions), &group_version_schema},
};

static const struct schema group_schema = {"APIGroup", sizeof(struct api_group), group_fields,
                                           ARRAY_COUNT(group_fields)};

/* "v1, v1beta2 or v1beta1" */
static void add_wanted(struct text *text, const struct kind_info *kind)
{
    for (uint32_t i = 0; kind_version(kind, i) != NULL; i++) {
        bool is_last = kind_version(kind, i + 1) == NULL;
        text_addf(text, "%s%s", i == 0 ? "" : is_last ? " or " : ", ", kind_version(kind, i));
    }
}

static struct str group_advice(struct arena *arena, const struct kind_info *kind,
                               const struct kube_group_versions *versions)
{
    struct text text;
    text_init(&text, arena, 512);
    if (!versions->is_served) {
        text_addf(&text, "%s is not served by this cluster; Tallyman needs ", kind->group);
        add_wanted(&text, kind);
        text_addf(&text, " of it for %s", kind->plural);
        return text_str(&text);
    }
    text_addf(&text, "%s is served as ", kind->group);
    for (uint32_t i = 0; i < versions->versions.count; i++) {
        text_addf(&text, "%s" STR_FMT, i == 0 ? "" : ", ", STR_ARG(versions->versions.items[i]));
    }
    text_addf(&text, " only; Tallyman needs ");
    add_wanted(&text, kind);
    text_addf(&text, " for %s%s", kind->plural,
              str_eq_c(STR("resource.k8s.io"), kind->group) ? ", which Kubernetes has from 1.32 on"
                                                            : "");
    return text_str(&text);
}

static struct rc group_decode(struct arena *arena, const struct kind_info *kind, struct str body,
                              struct kube_group_versions *ret_versions, struct err *err)
{
    void *value = NULL;
    TRY(decode_json(arena, &group_schema, body, &value, err));
    const struct api_group *group = value;
    struct kube_group_versions versions = {.is_served = group->versions.count > 0};
    versions.versions.items = ARENA_ARRAY(arena, struct str, group->versions.count + 1);
    for (uint32_t i = 0; i < group->versions.count; i++) {
        struct str version = group->versions.items[i].version;
        versions.versions.items[versions.versions.count++] = version;
        for (uint32_t v = 0; kind_version(kind, v) != NULL; v++) {
            versions.has_wanted = versions.has_wanted || str_eq_c(version, kind_version(kind, v));
        }
    }
    *ret_versions = versions;
    return RC_SUCCESS;
}

static void group_on_done(void *ctx, const struct kube_response *response)
{
    struct group_read *read = ctx;
    const struct kind_info *kind = kind_info(read->kind);
    struct arena arena;
    struct kube_group_versions versions = {0};
    struct err err = {0};
    struct str message = response->message;
    bool is_good = response->outcome == KUBE_NOT_FOUND;
    arena_init(&arena);
    if (response->outcome == KUBE_DONE) {
        struct rc rc = group_decode(&arena, kind, response->body, &versions, &err);
        is_good = !rc_failed(rc);
        message = err_text(&err);
    }
    if (is_good) {
        versions.advice = versions.has_wanted ? STR("") : group_advice(&arena, kind, &versions);
        message = STR("");
    }
    read->on_group(read->ctx, is_good ? &versions : NULL, message);
    arena_deinit(&arena);
    mem_free(read);
}

void kube_read_group(struct kube_client *client, enum object_kind kind,
                     void (*on_group)(void *ctx, const struct kube_group_versions *versions,
                                      struct str message),
                     void *ctx)
{
    struct group_read *read = MEM_NEW(struct group_read);
    *read = (struct group_read){.kind = kind, .on_group = on_group, .ctx = ctx};
    struct arena arena;
    arena_init(&arena);
    const struct kind_info *info = kind_info(kind);
    struct kube_request request = {
        .method = "GET",
        .verb = "get",
        .resource = STR("apigroups"),
        .path = arena_format(&arena, "/apis/%s", info->group),
        .on_done = group_on_done,
        .ctx = read,
    };
    kube_client_send(client, &request);
    arena_deinit(&arena);
}
