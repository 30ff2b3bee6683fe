/* session.c - a client on a loop that runs only while an answer is awaited. */
#include "session.h"

#include <signal.h>

#include "commands.h"
#include "tallyman/base/alloc.h"
#include "tallyman/kube/retry.h"

#define SESSION_TRIES_MAX     4
#define SESSION_RETRY_BASE_MS 300
#define SESSION_RETRY_MAX_MS  3000

struct question {
    struct session_answer *answer;
    int64_t retry_after_ms;
    bool is_answered;
};

struct rc session_open(const struct session_options *options, struct session **ret_session,
                       struct err *err)
{
    struct kube_config_options config_options = {.kubeconfig = options->kubeconfig,
                                                 .context = options->context};
    kube_config_options_from_env(&config_options);
    struct kube_config *config = NULL;
    TRY(kube_config_load(&config_options, &config, err));
    signal(SIGPIPE, SIG_IGN);
    struct session *session = MEM_NEW(struct session);
    session->config = config;
    uv_loop_init(&session->loop);
    uint64_t seed = 0;
    (void)uv_random(NULL, NULL, &seed, sizeof(seed), 0, NULL);
    struct kube_client_options client_options = {
        .loop = &session->loop, .config = config, .version = tallyman_version(), .seed = seed};
    struct rc rc = kube_client_open(&client_options, &session->client, err);
    if (rc_failed(rc)) {
        session_close(session);
        return rc;
    }
    *ret_session = session;
    return RC_SUCCESS;
}

void session_close(struct session *session)
{
    if (session == NULL) {
        return;
    }
    if (session->client != NULL) {
        kube_client_close(session->client, NULL, NULL);
    }
    uv_run(&session->loop, UV_RUN_DEFAULT);
    uv_loop_close(&session->loop);
    kube_config_free(session->config);
    mem_free(session);
}

struct str session_namespace(const struct session *session)
{
    struct str name = session->config->namespace_name;
    return str_is_empty(name) ? STR("default") : name;
}

static void on_answer(void *ctx, const struct kube_response *response)
{
    struct question *question = ctx;
    struct session_answer *answer = question->answer;
    answer->outcome = response->outcome;
    answer->code = response->code;
    answer->body = arena_copy_str(&answer->arena, response->body);
    answer->message = arena_copy_str(&answer->arena, response->message);
    question->retry_after_ms = response->retry_after_ms;
    question->is_answered = true;
}

void session_get(struct session *session, struct str path, struct str query,
                 struct session_answer *ret_answer)
{
    *ret_answer = (struct session_answer){.outcome = KUBE_RETRY};
    arena_init(&ret_answer->arena);
    struct kube_backoff backoff;
    kube_backoff_init(&backoff, SESSION_RETRY_BASE_MS, SESSION_RETRY_MAX_MS, 1);
    for (int tries = 1; tries <= SESSION_TRIES_MAX; tries++) {
        arena_reset(&ret_answer->arena);
        struct question question = {.answer = ret_answer};
        struct kube_request request = {.method = "GET",
                                       .verb = "get",
                                       .resource = STR("objects"),
                                       .path = path,
                                       .query = query,
                                       .on_done = on_answer,
                                       .ctx = &question};
        (void)kube_client_send(session->client, &request);
        while (!question.is_answered) {
            uv_run(&session->loop, UV_RUN_ONCE);
        }
        if (ret_answer->outcome != KUBE_RETRY || tries == SESSION_TRIES_MAX) {
            return;
        }
        int64_t wait_ms = kube_backoff_next_ms(&backoff, question.retry_after_ms);
        uv_sleep((unsigned)(wait_ms < SESSION_RETRY_MAX_MS ? wait_ms : SESSION_RETRY_MAX_MS));
    }
}

void session_answer_drop(struct session_answer *answer)
{
    arena_deinit(&answer->arena);
}
