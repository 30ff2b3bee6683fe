/* template_copy.c - a PodTemplate out of a Job, as its text passes by: whatever stands in
 * spec.template is copied, with the nodeSelector and tolerations of the patch put in. */
#include "tallyman/driver/render.h"

#define DEPTH_TEMPLATE 2 /* containers that are open around spec.template */
#define DEPTH_SPEC     4 /* and around the members of its spec */

struct copy {
    struct json_writer *writer;
    const struct template_patch *patch;
    struct str uid;      /* that the Job must have */
    uint32_t depth;      /* containers that are open */
    uint32_t skip_depth; /* what stands there is left out, while is_skipping */
    bool is_skipping;
    bool in_meta, in_job_spec, in_template, in_pod_spec, in_selector, is_uid;
    bool has_uid;      /* it is that Job */
    bool has_template; /* and there was one */
    bool has_selector;
};

static bool is_patched(const struct string_map *map, struct str key)
{
    for (uint32_t i = 0; i < map->count; i++) {
        if (str_eq(map->items[i].key, key)) {
            return true;
        }
    }
    return false;
}

/* Where the value is that follows. */
static void note_key(struct copy *copy, struct str key)
{
    switch (copy->depth) {
    case 1:
        copy->in_meta = str_eq_c(key, "metadata");
        copy->in_job_spec = str_eq_c(key, "spec");
        copy->in_template = false;
        break;
    case DEPTH_TEMPLATE:
        copy->is_uid = copy->in_meta && str_eq_c(key, "uid");
        copy->in_template = copy->in_job_spec && str_eq_c(key, "template");
        copy->in_pod_spec = false;
        break;
    case DEPTH_TEMPLATE + 1:
        copy->in_pod_spec = copy->in_template && str_eq_c(key, "spec");
        break;
    case DEPTH_SPEC:
        copy->in_selector = copy->in_pod_spec && str_eq_c(key, "nodeSelector");
        copy->is_skipping =
            copy->in_pod_spec && copy->patch->sets_tolerations && str_eq_c(key, "tolerations");
        copy->skip_depth = copy->depth;
        break;
    case DEPTH_SPEC + 1:
        copy->is_skipping =
            copy->in_pod_spec && copy->in_selector && is_patched(&copy->patch->node_selector, key);
        copy->skip_depth = copy->depth;
        break;
    default:
        break;
    }
}

static void put_selector(struct copy *copy)
{
    copy->has_selector = true;
    for (uint32_t i = 0; i < copy->patch->node_selector.count; i++) {
        const struct string_pair *pair = &copy->patch->node_selector.items[i];
        if (str_is_set(pair->value)) {
            json_key_str(copy->writer, pair->key);
            json_string(copy->writer, pair->value);
        }
    }
}

/* In front of the end of a nodeSelector, or of the spec. */
static void put_patch(struct copy *copy)
{
    if (copy->in_pod_spec && copy->in_selector && copy->depth == DEPTH_SPEC + 1) {
        put_selector(copy);
    } else if (copy->in_pod_spec && copy->depth == DEPTH_SPEC) {
        if (!copy->has_selector && copy->patch->node_selector.count > 0) {
            json_key(copy->writer, "nodeSelector");
            json_object_start(copy->writer);
            put_selector(copy);
            json_object_end(copy->writer);
        }
        if (copy->patch->sets_tolerations) {
            render_tolerations(copy->writer, &copy->patch->tolerations);
        }
    }
}

static void put_token(struct copy *copy, const struct token *token)
{
    struct json_writer *writer = copy->writer;
    switch (token->kind) {
    case TOKEN_NULL:
        json_null(writer);
        break;
    case TOKEN_BOOL:
        json_bool(writer, token->boolean);
        break;
    case TOKEN_NUMBER:
        json_number(writer, token->text);
        break;
    case TOKEN_STRING:
        json_string(writer, token->text);
        break;
    case TOKEN_OBJECT_START:
        json_object_start(writer);
        break;
    case TOKEN_KEY:
        json_key_str(writer, token->text);
        break;
    case TOKEN_OBJECT_END:
        put_patch(copy);
        json_object_end(writer);
        break;
    case TOKEN_ARRAY_START:
        json_array_start(writer);
        break;
    case TOKEN_ARRAY_END:
        json_array_end(writer);
        break;
    }
}

static bool is_start(const struct token *token)
{
    return token->kind == TOKEN_OBJECT_START || token->kind == TOKEN_ARRAY_START;
}

static bool is_end(const struct token *token)
{
    return token->kind == TOKEN_OBJECT_END || token->kind == TOKEN_ARRAY_END;
}

static void look(struct copy *copy, const struct token *token)
{
    if (token->kind == TOKEN_KEY) {
        note_key(copy, token->text);
    } else if (copy->is_uid && copy->depth == DEPTH_TEMPLATE) {
        copy->has_uid = str_eq(token->text, copy->uid);
        copy->is_uid = false;
    }
}

static struct rc on_token(void *ctx, const struct token *token, struct err *err)
{
    (void)err;
    struct copy *copy = ctx;
    look(copy, token);
    bool is_inside = copy->depth > DEPTH_TEMPLATE ||
                     (copy->depth == DEPTH_TEMPLATE && token->kind == TOKEN_OBJECT_START);
    if (copy->in_template && is_inside && !copy->is_skipping) {
        copy->has_template = true;
        put_token(copy, token);
    }
    copy->depth += is_start(token) ? 1 : 0;
    copy->depth -= is_end(token) ? 1 : 0;
    bool is_value_over = token->kind != TOKEN_KEY && copy->depth == copy->skip_depth;
    copy->is_skipping = copy->is_skipping && !is_value_over;
    return RC_SUCCESS;
}

static void put_text(struct json_writer *writer, const char *key, struct str value)
{
    json_key(writer, key);
    json_string(writer, value);
}

static void put_head(struct json_writer *writer, const struct template_target *target)
{
    put_text(writer, "apiVersion", STR("v1"));
    put_text(writer, "kind", STR("PodTemplate"));
    json_key(writer, "metadata");
    json_object_start(writer);
    put_text(writer, "name", target->name);
    put_text(writer, "namespace", target->namespace_name);
    json_key(writer, "ownerReferences");
    json_array_start(writer);
    json_object_start(writer);
    put_text(writer, "apiVersion", STR("batch/v1"));
    put_text(writer, "kind", STR("Job"));
    put_text(writer, "name", target->job_name);
    put_text(writer, "uid", target->job_uid);
    json_key(writer, "controller");
    json_bool(writer, true);
    json_object_end(writer);
    json_array_end(writer);
    json_object_end(writer);
}

struct rc render_pod_template(struct json_writer *writer, struct str job_text,
                              const struct template_target *target,
                              const struct template_patch *patch, struct err *err)
{
    struct copy copy = {.writer = writer, .patch = patch, .uid = target->job_uid};
    json_object_start(writer);
    put_head(writer, target);
    json_key(writer, "template");
    struct json_reader *reader = json_reader_new((struct token_sink){on_token, &copy});
    struct rc rc = json_reader_feed(reader, job_text.ptr, job_text.len, err);
    rc = rc_failed(rc) ? rc : json_reader_finish(reader, err);
    json_reader_free(reader);
    if (rc_failed(rc)) {
        return rc;
    }
    if (!copy.has_uid || !copy.has_template) {
        return err_set(err, RC_CONFLICT, "Job " STR_FMT "/" STR_FMT " isn't the one any more",
                       STR_ARG(target->namespace_name), STR_ARG(target->job_name));
    }
    json_object_end(writer);
    return RC_SUCCESS;
}
