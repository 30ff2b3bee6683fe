/* The plugin is over when its process has ended and both of its pipes have, or when its time is up:
 * then it is killed and what it left open is closed. */
#include "tallyman/kube/exec_plugin.h"

#include <assert.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tallyman/api/codec.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/kube/base64.h"

extern char **environ;

struct plugin_pipe {
    uv_pipe_t pipe;
    char *bytes; /* owned */
    size_t len;
    size_t max_bytes;
    bool is_cut; /* more came than is kept */
    bool is_over;
};

struct exec_plugin {
    struct exec_plugin_options options;
    struct arena arena;
    uv_process_t process;
    uv_timer_t timer;
    struct plugin_pipe output;
    struct plugin_pipe errors;
    char chunk[16384];
    uint32_t open_handles;
    bool has_ended; /* the process */
    bool is_closing;
    bool is_out_of_time;
    bool is_killed;
    int64_t exit_status;
    int signal;
    int spawn_error; /* libuv's code; 0: it was started */
};

/* -- what it printed --------------------------------------------------------------------------- */

struct credential_status {
    struct str token;
    struct str certificate;
    struct str key;
    struct opt_time expires;
};

struct credential_document {
    struct str api_version;
    struct str kind;
    struct credential_status *status;
};

static const struct field credential_status_fields[] = {
    {"token", FIELD_STRING, offsetof(struct credential_status, token), NULL},
    {"clientCertificateData", FIELD_STRING, offsetof(struct credential_status, certificate), NULL},
    {"clientKeyData", FIELD_STRING, offsetof(struct credential_status, key), NULL},
    {"expirationTimestamp", FIELD_TIME, offsetof(struct credential_status, expires), NULL},
};

static const struct schema credential_status_schema = {
    "ExecCredentialStatus", sizeof(struct credential_status), credential_status_fields,
    ARRAY_COUNT(credential_status_fields)};

static const struct field credential_fields[] = {
    {"apiVersion", FIELD_STRING, offsetof(struct credential_document, api_version), NULL},
    {"kind", FIELD_STRING, offsetof(struct credential_document, kind), NULL},
    {"status", FIELD_OBJECT_PTR, offsetof(struct credential_document, status),
     &credential_status_schema},
};

static const struct schema credential_schema = {"ExecCredential",
                                                sizeof(struct credential_document),
                                                credential_fields, ARRAY_COUNT(credential_fields)};

struct rc exec_credential_parse(struct arena *arena, struct str text, struct str api_version,
                                struct exec_credential *ret_credential, struct err *err)
{
    void *value = NULL;
    TRY(decode_json(arena, &credential_schema, text, &value, err));
    const struct credential_document *document = value;
    if (!str_eq_c(document->kind, "ExecCredential") ||
        !str_eq(document->api_version, api_version)) {
        return err_set(err, RC_INVALID,
                       "it printed kind \"" STR_FMT "\" of apiVersion \"" STR_FMT
                       "\"; right is kind ExecCredential of apiVersion " STR_FMT,
                       STR_ARG(document->kind), STR_ARG(document->api_version),
                       STR_ARG(api_version));
    }
    const struct credential_status *status = document->status;
    bool has_certificate = status != NULL && !str_is_empty(status->certificate);
    if (status == NULL || (str_is_empty(status->token) && !has_certificate)) {
        return err_set(err, RC_INVALID,
                       "status has neither token nor clientCertificateData and clientKeyData");
    }
    if (has_certificate != !str_is_empty(status->key)) {
        return err_set(err, RC_INVALID,
                       "status must have clientCertificateData and clientKeyData together");
    }
    *ret_credential = (struct exec_credential){
        .token = str_is_empty(status->token) ? STR_NONE : status->token,
        .certificate_pem = has_certificate ? status->certificate : STR_NONE,
        .key_pem = has_certificate ? status->key : STR_NONE,
        .expires = status->expires,
    };
    return RC_SUCCESS;
}

static struct rc plugin_fail(const struct exec_plugin *plugin, struct err *err)
{
    if (plugin->spawn_error != 0) {
        struct str hint = plugin->options.config->exec->install_hint;
        return err_set(err, RC_IO, "can't be run: %s%s" STR_FMT, uv_strerror(plugin->spawn_error),
                       str_is_empty(hint) ? "" : "; ", STR_ARG(hint));
    }
    if (plugin->is_out_of_time) {
        return err_set(err, RC_RETRY, "gave no credentials within %lld ms and was killed",
                       (long long)plugin->options.timeout_ms);
    }
    if (plugin->is_killed) {
        return err_set(err, RC_RETRY, "was stopped because the client closes");
    }
    if (plugin->output.is_cut) {
        return err_set(err, RC_LIMIT, "printed more than %u bytes", KUBE_EXEC_OUTPUT_MAX_BYTES);
    }
    struct str said = {plugin->errors.bytes, plugin->errors.len};
    if (plugin->signal != 0) {
        return err_set(err, RC_IO, "was ended by signal %d: " STR_FMT, plugin->signal,
                       STR_ARG(said));
    }
    return plugin->exit_status == 0 ? RC_SUCCESS
                                    : err_set(err, RC_IO, "ended with status %lld: " STR_FMT,
                                              (long long)plugin->exit_status, STR_ARG(said));
}

static struct rc plugin_conclude(struct exec_plugin *plugin, struct exec_credential *ret_credential,
                                 struct err *err)
{
    TRY(plugin_fail(plugin, err));
    struct str text = {plugin->output.bytes, plugin->output.len};
    return exec_credential_parse(&plugin->arena, text, plugin->options.config->exec->api_version,
                                 ret_credential, err);
}

static void plugin_finish(struct exec_plugin *plugin)
{
    const struct exec_plugin_options *options = &plugin->options;
    struct exec_credential credential = {0};
    struct err err = {0};
    struct rc rc = plugin_conclude(plugin, &credential, &err);
    if (rc_failed(rc)) {
        rc = err_prefix(&err, rc, STR_FMT ": exec plugin \"" STR_FMT "\"",
                        STR_ARG(options->config->source), STR_ARG(options->config->exec->command));
    }
    options->on_done(options->ctx, rc_failed(rc) ? NULL : &credential, &err);
    mem_free(plugin->output.bytes);
    mem_free(plugin->errors.bytes);
    arena_deinit(&plugin->arena);
    mem_free(plugin);
}

/* -- its process ------------------------------------------------------------------------------- */

static void plugin_on_handle_closed(uv_handle_t *handle)
{
    struct exec_plugin *plugin = handle->data;
    plugin->open_handles--;
    if (plugin->open_handles == 0) {
        plugin_finish(plugin);
    }
}

static void plugin_close(struct exec_plugin *plugin)
{
    if (plugin->is_closing) {
        return;
    }
    plugin->is_closing = true;
    uv_close((uv_handle_t *)&plugin->process, plugin_on_handle_closed);
    uv_close((uv_handle_t *)&plugin->timer, plugin_on_handle_closed);
    uv_close((uv_handle_t *)&plugin->output.pipe, plugin_on_handle_closed);
    uv_close((uv_handle_t *)&plugin->errors.pipe, plugin_on_handle_closed);
}

static void plugin_check_over(struct exec_plugin *plugin)
{
    if (plugin->has_ended && plugin->output.is_over && plugin->errors.is_over) {
        plugin_close(plugin);
    }
}

static void plugin_on_exit(uv_process_t *process, int64_t exit_status, int signal)
{
    struct exec_plugin *plugin = process->data;
    plugin->has_ended = true;
    plugin->exit_status = exit_status;
    plugin->signal = signal;
    plugin_check_over(plugin);
}

static void plugin_kill(struct exec_plugin *plugin)
{
    if (plugin->spawn_error == 0 && !plugin->has_ended) {
        uv_process_kill(&plugin->process, SIGKILL);
    }
}

static void plugin_on_timer(uv_timer_t *timer)
{
    struct exec_plugin *plugin = timer->data;
    if (plugin->spawn_error == 0) {
        if (plugin->is_out_of_time || plugin->has_ended) {
            plugin_close(plugin); /* killed and still there, or a child of its holds the pipes */
        }
        plugin->is_out_of_time = true;
        plugin_kill(plugin);
        if (!plugin->is_closing) {
            uv_timer_start(timer, plugin_on_timer, 1000, 0);
        }
        return;
    }
    plugin_close(plugin);
}

static void plugin_on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *ret_buf)
{
    struct exec_plugin *plugin = handle->data;
    (void)wanted;
    *ret_buf = uv_buf_init(plugin->chunk, sizeof(plugin->chunk));
}

static void plugin_on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct exec_plugin *plugin = stream->data;
    struct plugin_pipe *pipe =
        (void *)stream == (void *)&plugin->output.pipe ? &plugin->output : &plugin->errors;
    if (count < 0) {
        pipe->is_over = true;
        uv_read_stop(stream);
        plugin_check_over(plugin);
        return;
    }
    size_t room = pipe->max_bytes - pipe->len;
    size_t kept = (size_t)count < room ? (size_t)count : room;
    if (kept > 0) {
        memcpy(pipe->bytes + pipe->len, buf->base, kept);
        pipe->len += kept;
    }
    if (kept < (size_t)count) {
        pipe->is_cut = true;
        if (pipe == &plugin->output) {
            plugin_kill(plugin);
        }
    }
}

static void plugin_init_pipe(struct exec_plugin *plugin, struct plugin_pipe *pipe, size_t max_bytes)
{
    uv_pipe_init(plugin->options.loop, &pipe->pipe, 0);
    pipe->pipe.data = plugin;
    pipe->max_bytes = max_bytes;
    pipe->bytes = mem_alloc(max_bytes);
    plugin->open_handles++;
}

static void write_cluster_info(struct json_writer *json, struct arena *arena,
                               const struct kube_config *config)
{
    json_key(json, "cluster");
    json_object_start(json);
    json_key(json, "server");
    json_string(json, config->server);
    if (str_is_set(config->tls_server_name)) {
        json_key(json, "tls-server-name");
        json_string(json, config->tls_server_name);
    }
    if (config->is_insecure) {
        json_key(json, "insecure-skip-tls-verify");
        json_bool(json, true);
    }
    if (str_is_set(config->ca_pem)) {
        json_key(json, "certificate-authority-data");
        json_string(json, base64_encode(arena, config->ca_pem));
    }
    json_object_end(json);
}

static struct str plugin_exec_info(struct arena *arena, const struct kube_config *config)
{
    struct json_writer *json = json_writer_new();
    json_object_start(json);
    json_key(json, "apiVersion");
    json_string(json, config->exec->api_version);
    json_key(json, "kind");
    json_string(json, STR("ExecCredential"));
    json_key(json, "spec");
    json_object_start(json);
    json_key(json, "interactive");
    json_bool(json, false);
    if (config->exec->provide_cluster_info) {
        write_cluster_info(json, arena, config);
    }
    json_object_end(json);
    json_object_end(json);
    struct str info =
        arena_format(arena, "KUBERNETES_EXEC_INFO=" STR_FMT, STR_ARG(json_writer_text(json)));
    json_writer_free(json);
    return info;
}

static bool env_is_replaced(const struct kube_exec *exec, const char *variable)
{
    struct str whole = str_from_c(variable);
    struct str name = str_take(whole, str_find_char(whole, '='));
    if (str_eq_c(name, "KUBERNETES_EXEC_INFO")) {
        return true;
    }
    for (uint32_t i = 0; i < exec->env.count; i++) {
        if (str_eq(exec->env.items[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* uv_spawn() wants char **; it doesn't write to the texts. */
static char *unconst(const char *text)
{
    return (char *)(uintptr_t)text;
}

static char **plugin_env(struct arena *arena, const struct kube_config *config)
{
    size_t count = 0;
    while (environ[count] != NULL) {
        count++;
    }
    const struct kube_exec *exec = config->exec;
    char **env = ARENA_ARRAY(arena, char *, count + exec->env.count + 2);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!env_is_replaced(exec, environ[i])) {
            env[used++] = environ[i];
        }
    }
    for (uint32_t i = 0; i < exec->env.count; i++) {
        const struct kube_env_var *var = &exec->env.items[i];
        struct str line =
            arena_format(arena, STR_FMT "=" STR_FMT, STR_ARG(var->name), STR_ARG(var->value));
        env[used++] = unconst(line.ptr);
    }
    env[used++] = unconst(plugin_exec_info(arena, config).ptr);
    return env;
}

static char **plugin_args(struct arena *arena, const struct kube_exec *exec)
{
    char **args = ARENA_ARRAY(arena, char *, exec->args.count + 2);
    args[0] = unconst(arena_copy_str(arena, exec->command).ptr);
    for (uint32_t i = 0; i < exec->args.count; i++) {
        args[i + 1] = unconst(arena_copy_str(arena, exec->args.items[i]).ptr);
    }
    return args;
}

static int plugin_spawn(struct exec_plugin *plugin)
{
    const struct kube_config *config = plugin->options.config;
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&plugin->output.pipe},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&plugin->errors.pipe},
    };
    char **args = plugin_args(&plugin->arena, config->exec);
    uv_process_options_t options = {
        .exit_cb = plugin_on_exit,
        .file = args[0],
        .args = args,
        .env = plugin_env(&plugin->arena, config),
        .stdio_count = 3,
        .stdio = stdio,
    };
    return uv_spawn(plugin->options.loop, &plugin->process, &options);
}

struct exec_plugin *exec_plugin_run(const struct exec_plugin_options *options)
{
    assert(options->config->exec != NULL);
    struct exec_plugin *plugin = MEM_NEW(struct exec_plugin);
    plugin->options = *options;
    plugin->open_handles = 2;
    arena_init(&plugin->arena);
    plugin_init_pipe(plugin, &plugin->output, KUBE_EXEC_OUTPUT_MAX_BYTES);
    plugin_init_pipe(plugin, &plugin->errors, KUBE_EXEC_ERRORS_MAX_BYTES);
    uv_timer_init(options->loop, &plugin->timer);
    plugin->timer.data = plugin;
    plugin->process.data = plugin;

    plugin->spawn_error = plugin_spawn(plugin);
    uint64_t wait_ms = plugin->spawn_error == 0 ? (uint64_t)options->timeout_ms : 0;
    uv_timer_start(&plugin->timer, plugin_on_timer, wait_ms, 0);
    if (plugin->spawn_error == 0) {
        uv_read_start((uv_stream_t *)&plugin->output.pipe, plugin_on_alloc, plugin_on_read);
        uv_read_start((uv_stream_t *)&plugin->errors.pipe, plugin_on_alloc, plugin_on_read);
    }
    return plugin;
}

void exec_plugin_kill(struct exec_plugin *plugin)
{
    plugin->is_killed = true;
    plugin_kill(plugin);
    plugin_close(plugin);
}
