#include "tallyman/kube/auth.h"

#include <assert.h>
#include <time.h>

#include "file.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/kube/base64.h"
#include "tallyman/kube/exec_plugin.h"

struct kube_auth {
    struct kube_auth_options options;
    struct arena arena; /* of the credentials */
    struct kube_credentials credentials;
    struct exec_plugin *plugin; /* borrowed; NULL: none runs */
    uint64_t reads;
    uint64_t read_at_ms;     /* loop time */
    struct opt_time expires; /* wall clock; of what a plugin gave */
    bool has_credentials;
    bool is_closing;
};

static int64_t wall_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Takes the place of what was there; the texts are copied. */
static void auth_take(struct kube_auth *auth, struct str scheme, struct str secret,
                      struct str certificate_pem, struct str key_pem)
{
    struct arena arena;
    arena_init(&arena);
    struct kube_credentials credentials = {
        .certificate_pem = arena_copy_str(&arena, certificate_pem),
        .key_pem = arena_copy_str(&arena, key_pem),
        .generation = auth->credentials.generation + 1,
    };
    if (str_is_set(secret)) {
        credentials.authorization = arena_format(&arena, "Authorization: " STR_FMT " " STR_FMT,
                                                 STR_ARG(scheme), STR_ARG(secret));
    }
    arena_deinit(&auth->arena);
    auth->arena = arena;
    auth->credentials = credentials;
    auth->has_credentials = true;
}

static bool token_is_clean(struct str token)
{
    for (size_t i = 0; i < token.len; i++) {
        if (token.ptr[i] <= ' ' || token.ptr[i] > '~') {
            return false; /* a line break would let it add headers */
        }
    }
    return token.len > 0;
}

static struct str token_trim(struct str token)
{
    while (token.len > 0 && token.ptr[token.len - 1] <= ' ') {
        token.len--;
    }
    while (token.len > 0 && token.ptr[0] <= ' ') {
        token = str_skip(token, 1);
    }
    return token;
}

static struct rc auth_read_token_file(struct kube_auth *auth, struct err *err)
{
    const struct kube_config *config = auth->options.config;
    CLEANUP(arena_deinit) struct arena scratch;
    struct str bytes = STR_NONE;
    arena_init(&scratch);
    auth->reads++;
    auth->read_at_ms = uv_now(auth->options.loop);
    TRY(kube_file_read(&scratch, config->token_file, KUBE_TOKEN_MAX_BYTES, &bytes, err));
    struct str token = token_trim(bytes);
    if (!token_is_clean(token)) {
        return err_set(err, RC_INVALID, STR_FMT ": not a bearer token (one word of ASCII)",
                       STR_ARG(config->token_file));
    }
    struct str line = arena_format(&scratch, "Authorization: Bearer " STR_FMT, STR_ARG(token));
    if (!str_eq(line, auth->credentials.authorization)) {
        auth_take(auth, STR("Bearer"), token, config->client_certificate_pem,
                  config->client_key_pem);
    }
    return RC_SUCCESS;
}

static struct rc auth_take_fixed(struct kube_auth *auth, struct err *err)
{
    const struct kube_config *config = auth->options.config;
    struct str scheme = STR("Bearer");
    struct str secret = config->token;
    CLEANUP(arena_deinit) struct arena scratch;
    arena_init(&scratch);
    if (str_is_set(secret)) {
        secret = token_trim(secret);
        if (!token_is_clean(secret)) {
            return err_set(err, RC_INVALID,
                           STR_FMT ": token is not a bearer token (one word of ASCII)",
                           STR_ARG(config->source));
        }
    } else if (str_is_set(config->user_name)) {
        struct str pair = arena_format(&scratch, STR_FMT ":" STR_FMT, STR_ARG(config->user_name),
                                       STR_ARG(config->password));
        scheme = STR("Basic");
        secret = base64_encode(&scratch, pair);
    }
    auth_take(auth, scheme, secret, config->client_certificate_pem, config->client_key_pem);
    return RC_SUCCESS;
}

static bool auth_uses_plugin(const struct kube_auth *auth)
{
    const struct kube_config *config = auth->options.config;
    return config->exec != NULL && !str_is_set(config->token) && !str_is_set(config->token_file) &&
           !str_is_set(config->user_name);
}

struct rc kube_auth_open(const struct kube_auth_options *options, struct kube_auth **ret_auth,
                         struct err *err)
{
    struct kube_auth *auth = MEM_NEW(struct kube_auth);
    struct rc rc = RC_SUCCESS;
    auth->options = *options;
    arena_init(&auth->arena);
    if (str_is_set(options->config->token_file)) {
        rc = auth_read_token_file(auth, err);
    } else if (!auth_uses_plugin(auth)) {
        rc = auth_take_fixed(auth, err);
    }
    if (rc_failed(rc)) {
        arena_deinit(&auth->arena);
        mem_free(auth);
        return rc;
    }
    *ret_auth = auth;
    return RC_SUCCESS;
}

static void auth_free(struct kube_auth *auth)
{
    void (*on_closed)(void *ctx) = auth->options.on_closed;
    void *ctx = auth->options.ctx;
    arena_deinit(&auth->arena);
    mem_free(auth);
    on_closed(ctx);
}

void kube_auth_close(struct kube_auth *auth)
{
    auth->is_closing = true;
    if (auth->plugin != NULL) {
        exec_plugin_kill(auth->plugin);
        return;
    }
    auth_free(auth);
}

static void auth_on_plugin_done(void *ctx, const struct exec_credential *credential,
                                const struct err *why)
{
    struct kube_auth *auth = ctx;
    auth->plugin = NULL;
    auth->read_at_ms = uv_now(auth->options.loop);
    if (auth->is_closing) {
        auth_free(auth);
        return;
    }
    struct err err = *why;
    struct rc rc = RC_SUCCESS;
    if (credential == NULL) {
        rc = (struct rc){RC_RETRY};
    } else if (str_is_set(credential->token) && !token_is_clean(credential->token)) {
        rc = err_set(&err, RC_INVALID,
                     STR_FMT ": the exec plugin's token is not a bearer token (one word of ASCII)",
                     STR_ARG(auth->options.config->source));
    } else {
        auth_take(auth, STR("Bearer"), credential->token, credential->certificate_pem,
                  credential->key_pem);
        auth->expires = credential->expires;
    }
    auth->options.on_ready(auth->options.ctx, rc, &err);
}

static void auth_run_plugin(struct kube_auth *auth)
{
    struct exec_plugin_options options = {
        .loop = auth->options.loop,
        .config = auth->options.config,
        .timeout_ms = auth->options.plugin_timeout_ms,
        .on_done = auth_on_plugin_done,
        .ctx = auth,
    };
    auth->reads++;
    auth->plugin = exec_plugin_run(&options);
}

/* Whether a plugin has to be asked again. Not at once: it may have given what is about to end, and
 * a clock may be wrong. */
static bool auth_is_ending(const struct kube_auth *auth, uint64_t age_ms)
{
    int64_t least_ms = auth->options.reread_ms < KUBE_EXEC_EXPIRY_MARGIN_MS
                           ? auth->options.reread_ms
                           : KUBE_EXEC_EXPIRY_MARGIN_MS;
    return auth->expires.is_set && age_ms >= (uint64_t)least_ms &&
           auth->expires.ms - KUBE_EXEC_EXPIRY_MARGIN_MS <= wall_clock_ms();
}

bool kube_auth_is_ready(struct kube_auth *auth)
{
    assert(!auth->is_closing);
    if (auth->plugin != NULL) {
        return false;
    }
    uint64_t age_ms = uv_now(auth->options.loop) - auth->read_at_ms;
    if (auth_uses_plugin(auth)) {
        if (!auth->has_credentials || auth_is_ending(auth, age_ms)) {
            auth_run_plugin(auth);
            return false;
        }
    } else if (str_is_set(auth->options.config->token_file) &&
               age_ms >= (uint64_t)auth->options.reread_ms) {
        /* A file that can't be read just now (it is being replaced) leaves the old token in use. */
        struct rc rc = auth_read_token_file(auth, NULL);
        (void)rc;
    }
    return true;
}

const struct kube_credentials *kube_auth_credentials(const struct kube_auth *auth)
{
    assert(auth->has_credentials);
    return &auth->credentials;
}

bool kube_auth_reject(struct kube_auth *auth, uint64_t generation)
{
    if (generation != auth->credentials.generation || auth->plugin != NULL) {
        return true; /* others were read since, or are being */
    }
    if (auth_uses_plugin(auth)) {
        auth->has_credentials = false; /* run anew before the next request */
        return true;
    }
    if (!str_is_set(auth->options.config->token_file)) {
        return false;
    }
    struct rc rc = auth_read_token_file(auth, NULL);
    return !rc_failed(rc) && auth->credentials.generation != generation;
}

uint64_t kube_auth_reads(const struct kube_auth *auth)
{
    return auth->reads;
}
