#include "tallyman/kube/access.h"

#include <stddef.h>
#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

/* What is known of one token and path. */
struct known_access {
    char *token; /* owned; NULL: the place is free */
    size_t token_bytes;
    struct str path; /* owned */
    enum kube_access_verdict verdict;
    uint64_t expires_ms;
};

struct kube_access {
    struct kube_client *client; /* borrowed */
    struct known_access known[ACCESS_CACHE_MAX];
    uint32_t under_way;
};

/* One question that is on its way to the API server. */
struct access_review {
    struct kube_access *access; /* borrowed; outlives it */
    char *token;                /* owned */
    size_t token_bytes;
    char *path; /* owned */
    size_t path_bytes;
    kube_access_fn on_verdict;
    void *ctx;
};

static uint64_t clock_ms(void)
{
    return uv_hrtime() / 1000000;
}

static char *copy_bytes(struct str text)
{
    char *copy = mem_alloc(text.len + 1);
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    copy[text.len] = '\0';
    return copy;
}

/* -- what is remembered -------------------------------------------------------------------------
 */

static void free_secret(char *secret, size_t bytes)
{
    if (secret != NULL) {
        explicit_bzero(secret, bytes);
    }
    mem_free(secret);
}

/* In a time that doesn't tell how much of it is right. */
static bool is_secret(const struct known_access *known, struct str token)
{
    if (known->token == NULL || known->token_bytes != token.len) {
        return false;
    }
    unsigned differs = 0;
    for (size_t i = 0; i < token.len; i++) {
        differs |= (unsigned)(known->token[i] ^ token.ptr[i]);
    }
    return differs == 0;
}

static void free_text(struct str text)
{
    union {
        const char *constant;
        char *plain;
    } bytes = {.constant = text.ptr};
    mem_free(bytes.plain);
}

static void known_forget(struct known_access *known)
{
    free_secret(known->token, known->token_bytes);
    free_text(known->path);
    *known = (struct known_access){0};
}

static const struct known_access *known_find(struct kube_access *access, struct str token,
                                             struct str path)
{
    uint64_t now_ms = clock_ms();
    const struct known_access *found = NULL;
    for (size_t i = 0; i < ACCESS_CACHE_MAX; i++) {
        struct known_access *known = &access->known[i];
        if (known->token != NULL && now_ms >= known->expires_ms) {
            known_forget(known);
        }
        if (is_secret(known, token) && str_eq(known->path, path)) {
            found = known;
        }
    }
    return found;
}

/* In the place that is free or would be soonest. */
static void known_remember(struct kube_access *access, const struct access_review *review,
                           enum kube_access_verdict verdict)
{
    struct known_access *place = &access->known[0];
    for (size_t i = 0; i < ACCESS_CACHE_MAX; i++) {
        struct known_access *known = &access->known[i];
        if (place->token != NULL &&
            (known->token == NULL || known->expires_ms < place->expires_ms)) {
            place = known;
        }
    }
    known_forget(place);
    uint64_t lasts_ms = verdict == KUBE_ACCESS_ALLOWED ? ACCESS_ALLOWED_MS : ACCESS_DENIED_MS;
    struct str token = {review->token, review->token_bytes};
    struct str path = {review->path, review->path_bytes};
    *place = (struct known_access){.token = copy_bytes(token),
                                   .token_bytes = token.len,
                                   .path = {copy_bytes(path), path.len},
                                   .verdict = verdict,
                                   .expires_ms = clock_ms() + lasts_ms};
}

/* -- the answer to a TokenReview, made the question of a SubjectAccessReview --------------------
 */

/* Copies status.user into the spec of a SubjectAccessReview, whose names differ in one place. */
struct user_copy {
    struct json_writer *out;
    int depth; /* of objects and arrays */
    bool is_in_status;
    bool is_in_user;
    bool is_copied; /* the member of the user that is passing */
    bool is_authenticated_next;
    bool is_authenticated;
};

#define DEPTH_ROOT   1
#define DEPTH_STATUS 2
#define DEPTH_USER   3

static void copy_user_key(struct user_copy *copy, struct str key)
{
    if (copy->depth > DEPTH_USER) {
        if (copy->is_copied) {
            json_key_str(copy->out, key);
        }
        return;
    }
    copy->is_copied = str_eq_c(key, "username") || str_eq_c(key, "uid") ||
                      str_eq_c(key, "groups") || str_eq_c(key, "extra");
    if (copy->is_copied) {
        json_key_str(copy->out, str_eq_c(key, "username") ? STR("user") : key);
    }
}

static void copy_user_value(struct user_copy *copy, const struct token *token)
{
    if (!copy->is_copied) {
        return;
    }
    switch (token->kind) {
    case TOKEN_NULL:
        json_null(copy->out);
        break;
    case TOKEN_BOOL:
        json_bool(copy->out, token->boolean);
        break;
    case TOKEN_NUMBER:
        json_number(copy->out, token->text);
        break;
    case TOKEN_STRING:
        json_string(copy->out, token->text);
        break;
    case TOKEN_OBJECT_START:
        json_object_start(copy->out);
        break;
    case TOKEN_OBJECT_END:
        json_object_end(copy->out);
        break;
    case TOKEN_ARRAY_START:
        json_array_start(copy->out);
        break;
    case TOKEN_ARRAY_END:
        json_array_end(copy->out);
        break;
    case TOKEN_KEY: /* copy_user_key() has it */
        break;
    }
}

static void pass_key(struct user_copy *copy, struct str key)
{
    if (copy->depth == DEPTH_ROOT) {
        copy->is_in_status = str_eq_c(key, "status");
        return;
    }
    bool is_of_status = copy->is_in_status && copy->depth == DEPTH_STATUS;
    copy->is_in_user = is_of_status && str_eq_c(key, "user");
    copy->is_authenticated_next = is_of_status && str_eq_c(key, "authenticated");
}

/* Of a token between the braces of status.user, or the second of them. */
static void pass_user(struct user_copy *copy, const struct token *token)
{
    if (token->kind == TOKEN_OBJECT_END && copy->depth == DEPTH_USER) {
        copy->is_in_user = false;
    } else if (token->kind == TOKEN_KEY) {
        copy_user_key(copy, token->text);
    } else {
        copy_user_value(copy, token);
    }
}

static struct rc copy_on_token(void *ctx, const struct token *token, struct err *err)
{
    struct user_copy *copy = ctx;
    (void)err;
    if (copy->is_in_user && copy->depth >= DEPTH_USER) {
        pass_user(copy, token);
    } else if (token->kind == TOKEN_KEY) {
        pass_key(copy, token->text);
    } else if (copy->is_authenticated_next && token->kind == TOKEN_BOOL) {
        copy->is_authenticated = token->boolean;
        copy->is_authenticated_next = false;
    }
    if (token->kind == TOKEN_OBJECT_START || token->kind == TOKEN_ARRAY_START) {
        copy->depth++;
    } else if (token->kind == TOKEN_OBJECT_END || token->kind == TOKEN_ARRAY_END) {
        copy->depth--;
    }
    return RC_SUCCESS;
}

/* False: the answer isn't a TokenReview. */
static bool copy_user(struct json_writer *out, struct str body, bool *ret_is_authenticated)
{
    struct user_copy copy = {.out = out};
    struct err err;
    struct json_reader *reader = json_reader_new((struct token_sink){copy_on_token, &copy});
    struct rc rc = json_reader_feed(reader, body.ptr, body.len, &err);
    if (!rc_failed(rc)) {
        rc = json_reader_finish(reader, &err);
    }
    json_reader_free(reader);
    *ret_is_authenticated = copy.is_authenticated;
    return !rc_failed(rc);
}

/* -- asking -------------------------------------------------------------------------------------
 */

struct access_status {
    struct opt_bool allowed;
};

struct access_answer {
    struct access_status status;
};

static const struct field status_fields[] = {
    {"allowed", FIELD_BOOL, offsetof(struct access_status, allowed), NULL},
};
static const struct schema status_schema = {"SubjectAccessReviewStatus",
                                            sizeof(struct access_status), status_fields,
                                            ARRAY_COUNT(status_fields)};
static const struct field answer_fields[] = {
    {"status", FIELD_OBJECT, offsetof(struct access_answer, status), &status_schema},
};
static const struct schema answer_schema = {"SubjectAccessReview", sizeof(struct access_answer),
                                            answer_fields, ARRAY_COUNT(answer_fields)};

static void review_end(struct access_review *review, enum kube_access_verdict verdict)
{
    review->access->under_way--;
    if (verdict != KUBE_ACCESS_UNAVAILABLE) {
        known_remember(review->access, review, verdict);
    }
    review->on_verdict(review->ctx, verdict);
    free_secret(review->token, review->token_bytes);
    mem_free(review->path);
    mem_free(review);
}

static void start_object(struct json_writer *json, const char *api_version, const char *kind)
{
    json_object_start(json);
    json_key(json, "apiVersion");
    json_string(json, str_from_c(api_version));
    json_key(json, "kind");
    json_string(json, str_from_c(kind));
    json_key(json, "spec");
    json_object_start(json);
}

static void review_send(struct access_review *review, struct str resource, struct str path,
                        struct json_writer *json,
                        void (*on_done)(void *ctx, const struct kube_response *response))
{
    json_object_end(json); /* of the spec */
    json_object_end(json);
    struct kube_request request = {.method = "POST",
                                   .verb = "create",
                                   .resource = resource,
                                   .path = path,
                                   .body = json_writer_text(json),
                                   .timeout_ms = ACCESS_TIMEOUT_MS,
                                   .on_done = on_done,
                                   .ctx = review};
    (void)kube_client_send(review->access->client, &request);
}

static void on_access(void *ctx, const struct kube_response *response)
{
    struct access_review *review = ctx;
    enum kube_access_verdict verdict = KUBE_ACCESS_UNAVAILABLE;
    struct arena arena;
    arena_init(&arena);
    void *value = NULL;
    struct err err;
    if (response->outcome == KUBE_DONE &&
        !rc_failed(decode_json(&arena, &answer_schema, response->body, &value, &err))) {
        const struct access_answer *answer = value;
        const struct opt_bool *allowed = &answer->status.allowed;
        verdict = allowed->is_set && allowed->value ? KUBE_ACCESS_ALLOWED : KUBE_ACCESS_FORBIDDEN;
    }
    arena_deinit(&arena);
    review_end(review, verdict);
}

static void ask_access(struct access_review *review, struct str token_review)
{
    bool is_authenticated = false;
    struct json_writer *json = json_writer_new();
    start_object(json, "authorization.k8s.io/v1", "SubjectAccessReview");
    if (!copy_user(json, token_review, &is_authenticated)) {
        review_end(review, KUBE_ACCESS_UNAVAILABLE);
    } else if (!is_authenticated) {
        review_end(review, KUBE_ACCESS_UNKNOWN_USER);
    } else {
        json_key(json, "nonResourceAttributes");
        json_object_start(json);
        json_key(json, "path");
        json_string(json, (struct str){review->path, review->path_bytes});
        json_key(json, "verb");
        json_string(json, STR("get"));
        json_object_end(json);
        review_send(review, STR("subjectaccessreviews"),
                    STR("/apis/authorization.k8s.io/v1/subjectaccessreviews"), json, on_access);
    }
    json_writer_free(json);
}

static void on_token_review(void *ctx, const struct kube_response *response)
{
    struct access_review *review = ctx;
    if (response->outcome == KUBE_DONE) {
        ask_access(review, response->body);
    } else {
        review_end(review, KUBE_ACCESS_UNAVAILABLE);
    }
}

void kube_access_review(struct kube_access *access, struct str token, struct str path,
                        kube_access_fn on_verdict, void *ctx)
{
    const struct known_access *known = known_find(access, token, path);
    if (known != NULL) {
        on_verdict(ctx, known->verdict);
        return;
    }
    if (access->under_way >= ACCESS_UNDER_WAY_MAX) {
        on_verdict(ctx, KUBE_ACCESS_UNAVAILABLE);
        return;
    }
    struct access_review *review = MEM_NEW(struct access_review);
    *review = (struct access_review){.access = access,
                                     .token = copy_bytes(token),
                                     .token_bytes = token.len,
                                     .path = copy_bytes(path),
                                     .path_bytes = path.len,
                                     .on_verdict = on_verdict,
                                     .ctx = ctx};
    access->under_way++;
    struct json_writer *json = json_writer_new();
    start_object(json, "authentication.k8s.io/v1", "TokenReview");
    json_key(json, "token");
    json_string(json, token);
    review_send(review, STR("tokenreviews"), STR("/apis/authentication.k8s.io/v1/tokenreviews"),
                json, on_token_review);
    json_writer_free(json);
}

struct kube_access *kube_access_new(struct kube_client *client)
{
    struct kube_access *access = MEM_NEW(struct kube_access);
    access->client = client;
    return access;
}

void kube_access_free(struct kube_access *access)
{
    if (access == NULL) {
        return;
    }
    for (size_t i = 0; i < ACCESS_CACHE_MAX; i++) {
        known_forget(&access->known[i]);
    }
    mem_free(access);
}
