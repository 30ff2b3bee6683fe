/* Any bytes as the body of a refusal, as what a credential plugin prints, and as base64. */
#include <assert.h>
#include <stdint.h>

#include "tallyman/base/limits.h"
#include "tallyman/kube/base64.h"
#include "tallyman/kube/exec_plugin.h"
#include "tallyman/kube/outcome.h"

#define V1 "client.authentication.k8s.io/v1"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void try_refusal(struct arena *arena, struct str body, uint32_t code)
{
    struct outcome_request request = {"PATCH", STR("/apis/batch/v1/namespaces/a/jobs/b")};
    struct transfer_end end = {.ending = ENDED_WHOLE, .code = code, .refusal = body};
    struct kube_response response;
    outcome_classify(arena, &request, &end, &response);
    assert(response.outcome >= KUBE_DONE && response.outcome <= KUBE_CANCELLED);
    assert(response.message.len <= ERR_TEXT_MAX_BYTES);
    assert((response.outcome == KUBE_DONE) == str_is_empty(response.message));
    assert(response.retry_after_ms >= 0 && response.retry_after_ms <= KUBE_RETRY_AFTER_MAX_MS);
}

static void try_credential(struct arena *arena, struct str text)
{
    struct exec_credential credential = {0};
    if (!rc_failed(exec_credential_parse(arena, text, STR(V1), &credential, NULL))) {
        assert(str_is_set(credential.token) || str_is_set(credential.certificate_pem));
        assert(str_is_set(credential.certificate_pem) == str_is_set(credential.key_pem));
    }
}

static void try_base64(struct arena *arena, struct str text)
{
    struct str decoded = STR_NONE;
    struct str again = STR_NONE;
    if (base64_decode(arena, text, &decoded)) {
        assert(decoded.len <= text.len);
        assert(base64_decode(arena, base64_encode(arena, decoded), &again));
        assert(str_eq(decoded, again));
    }
    assert(base64_decode(arena, base64_encode(arena, text), &again));
    assert(str_eq(text, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 2) {
        return 0;
    }
    struct arena arena;
    arena_init(&arena);
    struct str text = {(const char *)bytes + 2, size - 2};
    try_refusal(&arena, text, bytes[0] * 4u + bytes[1] % 4u);
    try_credential(&arena, text);
    try_base64(&arena, text);
    (void)outcome_parse_retry_after_ms(text);
    arena_deinit(&arena);
    return 0;
}
