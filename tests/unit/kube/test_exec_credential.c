#include "support/check.h"
#include "tallyman/base/err.h"
#include "tallyman/kube/exec_plugin.h"

#define V1 "client.authentication.k8s.io/v1"

static struct rc parse(struct arena *arena, const char *status, struct exec_credential *ret,
                       struct err *err)
{
    struct str text = arena_format(
        arena, "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":%s}\n", status);
    return exec_credential_parse(arena, text, STR(V1), ret, err);
}

static void token_with_an_end(void **state)
{
    struct arena arena;
    struct exec_credential credential;
    struct err err;
    (void)state;
    arena_init(&arena);
    assert_false(rc_failed(
        parse(&arena, "{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-29T12:00:00Z\"}",
              &credential, &err)));
    check_str(credential.token, "t");
    check_str(credential.certificate_pem, NULL);
    assert_true(credential.expires.is_set);
    check_i64(credential.expires.ms, INT64_C(1795953600000));
    arena_deinit(&arena);
}

static void certificate_and_key(void **state)
{
    struct arena arena;
    struct exec_credential credential;
    struct err err;
    (void)state;
    arena_init(&arena);
    assert_false(rc_failed(parse(
        &arena, "{\"clientCertificateData\":\"C\",\"clientKeyData\":\"K\"}", &credential, &err)));
    check_str(credential.token, NULL);
    check_str(credential.certificate_pem, "C");
    check_str(credential.key_pem, "K");
    assert_false(credential.expires.is_set);
    arena_deinit(&arena);
}

static void check_refused(const char *status, const char *wanted)
{
    struct arena arena;
    struct exec_credential credential;
    struct err err = {0};
    arena_init(&arena);
    assert_true(rc_failed(parse(&arena, status, &credential, &err)));
    if (str_find(err_text(&err), str_from_c(wanted)) == err_text(&err).len) {
        fail_msg("\"%s\" isn't in \"%s\"", wanted, err.text);
    }
    arena_deinit(&arena);
}

static void what_is_no_credential(void **state)
{
    (void)state;
    check_refused("null", "neither token nor clientCertificateData");
    check_refused("{}", "neither token nor clientCertificateData");
    check_refused("{\"token\":\"\"}", "neither token nor clientCertificateData");
    check_refused("{\"token\":\"t\",\"clientKeyData\":\"K\"}", "together");
    check_refused("{\"token\":\"t\",\"clientCertificateData\":\"C\"}", "together");
    check_refused("{\"token\":7}", "token");
    check_refused("{\"token\":\"t\",\"expirationTimestamp\":\"tomorrow\"}", "expirationTimestamp");
    check_refused("{", "");
}

static void another_kind_or_version(void **state)
{
    struct arena arena;
    struct exec_credential credential;
    struct err err = {0};
    (void)state;
    arena_init(&arena);
    struct str text = STR("{\"apiVersion\":\"client.authentication.k8s.io/v1beta1\","
                          "\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\"}}");
    check_i64(exec_credential_parse(&arena, text, STR(V1), &credential, &err).code, RC_INVALID);
    check_str(err_text(&err), "it printed kind \"ExecCredential\" of apiVersion "
                              "\"client.authentication.k8s.io/v1beta1\"; right is kind "
                              "ExecCredential of apiVersion " V1);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(token_with_an_end),
        cmocka_unit_test(certificate_and_key),
        cmocka_unit_test(what_is_no_credential),
        cmocka_unit_test(another_kind_or_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
