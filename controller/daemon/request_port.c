/* request_port.c - makes a ProvisioningRequest: its PodTemplates first, out of the Job's own text,
 * so that an autoscaler sees the pods as they will be and not only what Tallyman reads of them.
 *
 * Everything is safe to repeat: a PodTemplate that is there is replaced, the request is applied. */
#include "daemon.h"

#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/driver/render.h"
#include "tallyman/kube/path.h"
#include "tallyman/kube/writer.h"

#define PATH_MAX_BYTES 1024

struct making {
    struct daemon *daemon;
    const struct request_content *content; /* borrowed until the driver's write is answered */
    struct str job_uid;                    /* borrowed as long */
    struct str job_text;                   /* owned */
    uint32_t next;                         /* the template that comes next */
    bool is_replacing;                     /* it is there already */
    struct kube_done done;
};

static struct str job_name_of(const struct making *making)
{
    return meta_controller(&making->content->request.meta)->name;
}

static void finish(struct making *making, const struct kube_response *response)
{
    struct kube_done done = making->done;
    mem_free((void *)(uintptr_t)making->job_text.ptr);
    mem_free(making);
    done.call(done.ctx, response);
}

static void on_request(void *ctx, const struct kube_response *response)
{
    finish(ctx, response);
}

static void send_request(struct making *making)
{
    const struct provisioning_request *request = &making->content->request;
    struct json_writer *writer = json_writer_new();
    render_request(writer, request);
    struct kube_target target = {.kind = KIND_PROVISIONING_REQUEST,
                                 .namespace_name = request->meta.namespace_name,
                                 .name = request->meta.name};
    (void)kube_apply(making->daemon->client, &target, json_writer_text(writer),
                     (struct kube_done){on_request, making});
    json_writer_free(writer);
}

static void on_template(void *ctx, const struct kube_response *response);

static void send_template(struct making *making, struct str body, struct str name)
{
    struct arena arena;
    arena_init(&arena);
    struct text path;
    text_init(&path, &arena, PATH_MAX_BYTES);
    text_add(&path, STR("/api/v1/namespaces/"));
    path_add_encoded(&path, making->content->request.meta.namespace_name);
    text_add(&path, STR("/podtemplates"));
    if (making->is_replacing) {
        text_add(&path, STR("/"));
        path_add_encoded(&path, name);
    }
    struct kube_request request = {.method = making->is_replacing ? "PUT" : "POST",
                                   .verb = making->is_replacing ? "update" : "create",
                                   .resource = STR("podtemplates"),
                                   .path = text_str(&path),
                                   .query = STR("fieldManager=" KUBE_FIELD_MANAGER),
                                   .body = body,
                                   .on_done = on_template,
                                   .ctx = making};
    (void)kube_client_send(making->daemon->client, &request);
    arena_deinit(&arena);
}

static void go_on(struct making *making)
{
    const struct request_content *content = making->content;
    if (!leader_may_write(making->daemon)) {
        struct kube_response lost = {.outcome = KUBE_CANCELLED};
        finish(making, &lost); /* the process is about to end */
        return;
    }
    if (making->next == content->template_count) {
        send_request(making);
        return;
    }
    struct template_target target = {
        .namespace_name = content->request.meta.namespace_name,
        .name = content->request.spec.pod_sets.items[making->next].pod_template_ref.name,
        .job_name = job_name_of(making),
        .job_uid = making->job_uid};
    struct json_writer *writer = json_writer_new();
    struct err err;
    if (rc_failed(render_pod_template(writer, making->job_text, &target,
                                      &content->templates[making->next], &err))) {
        struct kube_response gone = {.outcome = KUBE_NOT_FOUND, .message = err_text(&err)};
        finish(making, &gone);
    } else {
        send_template(making, json_writer_text(writer), target.name);
    }
    json_writer_free(writer);
}

static void on_template(void *ctx, const struct kube_response *response)
{
    struct making *making = ctx;
    if (response->outcome == KUBE_CONFLICT && !making->is_replacing) {
        making->is_replacing = true; /* an earlier attempt's */
        go_on(making);
    } else if (response->outcome == KUBE_DONE) {
        making->is_replacing = false;
        making->next++;
        go_on(making);
    } else {
        finish(making, response);
    }
}

static void on_job(void *ctx, const struct kube_response *response)
{
    struct making *making = ctx;
    if (response->outcome != KUBE_DONE) {
        finish(making, response);
        return;
    }
    char *copy = mem_alloc(response->body.len + 1);
    memcpy(copy, response->body.ptr, response->body.len);
    making->job_text = (struct str){copy, response->body.len};
    go_on(making);
}

void request_port_make(struct daemon *daemon, const struct driver_write *write,
                       struct kube_done done)
{
    struct making *making = MEM_NEW(struct making);
    making->daemon = daemon;
    making->content = write->request;
    making->job_uid = write->effect->uid;
    making->done = done;
    struct kube_target job = {.kind = KIND_JOB,
                              .namespace_name = write->effect->namespace_name,
                              .name = job_name_of(making)};
    (void)kube_get(daemon->client, &job, (struct kube_done){on_job, making});
}
