#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check.h"
#include "tallyman/base/err.h"
#include "tallyman/kube/config.h"

#define PEM "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
/* The same, as base64. */
#define PEM_DATA "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBQUEKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="

struct fixture {
    char directory[64];
    struct kube_config_options options;
    struct kube_config *config;
    struct err err;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.directory = "/tmp/tallyman-config-XXXXXX"};
    *state = &fixture;
    return mkdtemp(fixture.directory) == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    char command[128];
    kube_config_free(fixture->config);
    snprintf(command, sizeof(command), "rm -r %s", fixture->directory);
    return system(command);
}

static const char *put_file(struct fixture *fixture, const char *name, const char *text)
{
    static char paths[8][128];
    static unsigned used;
    char *path = paths[used++ % 8];
    snprintf(path, sizeof(paths[0]), "%s/%s", fixture->directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

static struct rc load(struct fixture *fixture)
{
    kube_config_free(fixture->config);
    fixture->config = NULL;
    return kube_config_load(&fixture->options, &fixture->config, &fixture->err);
}

static const struct kube_config *load_text(struct fixture *fixture, const char *text)
{
    fixture->options.kubeconfig = str_from_c(put_file(fixture, "config", text));
    if (rc_failed(load(fixture))) {
        fail_msg("%s", fixture->err.text);
    }
    return fixture->config;
}

static void check_load_fails(struct fixture *fixture, const char *wanted)
{
    char text[2048];
    assert_true(rc_failed(load(fixture)));
    assert_null(fixture->config);
    /* DIR stands for the directory. */
    const char *rest = strstr(wanted, "DIR");
    if (rest != NULL) {
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(rest - wanted), wanted, fixture->directory,
                 rest + 3);
    } else {
        snprintf(text, sizeof(text), "%s", wanted);
    }
    if (strstr(fixture->err.text, text) == NULL) {
        fail_msg("wanted \"%s\", got \"%s\"", text, fixture->err.text);
    }
}

static void check_text_fails(struct fixture *fixture, const char *text, const char *wanted)
{
    fixture->options.kubeconfig = str_from_c(put_file(fixture, "config", text));
    check_load_fails(fixture, wanted);
}

#define TAIL                                                                                       \
    "contexts: [{name: x, context: {cluster: c, user: u}}]\n"                                      \
    "current-context: x\n"
#define CLUSTER "clusters: [{name: c, cluster: {server: 'https://h:6443'}}]\n"
#define USER    "users: [{name: u, user: {token: t}}]\n"

static void a_common_file(void **state)
{
    const struct kube_config *config =
        load_text(*state, "apiVersion: v1\n"
                          "kind: Config\n"
                          "clusters:\n"
                          "- name: c\n"
                          "  cluster:\n"
                          "    certificate-authority-data: " PEM_DATA "\n"
                          "    server: https://10.0.0.1:6443/\n"
                          "    tls-server-name: kubernetes\n"
                          "    proxy-url: http://proxy:3128\n"
                          "contexts:\n"
                          "- context: {cluster: c, user: u, namespace: team}\n"
                          "  name: x\n"
                          "current-context: x\n"
                          "preferences: {}\n"
                          "users:\n"
                          "- name: u\n"
                          "  user:\n"
                          "    client-certificate-data: " PEM_DATA "\n"
                          "    client-key-data: " PEM_DATA "\n");
    check_str(config->server, "https://10.0.0.1:6443");
    check_str(config->ca_pem, PEM);
    check_str(config->tls_server_name, "kubernetes");
    check_str(config->proxy_url, "http://proxy:3128");
    check_str(config->namespace_name, "team");
    check_str(config->client_certificate_pem, PEM);
    check_str(config->client_key_pem, PEM);
    check_str(config->token, NULL);
    assert_false(config->is_insecure);
    assert_true(str_starts_with(config->source, STR("context \"x\" of /tmp/")));
}

static void json_is_yaml(void **state)
{
    const struct kube_config *config = load_text(
        *state,
        "{\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"h:6443\","
        "\"insecure-skip-tls-verify\":true}}],\"contexts\":[{\"name\":\"x\",\"context\":"
        "{\"cluster\":\"c\",\"user\":\"u\"}}],\"current-context\":\"x\",\"users\":[{\"name\":\"u\","
        "\"user\":{\"username\":\"me\",\"password\":\"secret\"}}]}");
    check_str(config->server, "https://h:6443");
    assert_true(config->is_insecure);
    check_str(config->user_name, "me");
    check_str(config->password, "secret");
}

static void of_several_files_the_first_wins(void **state)
{
    struct fixture *fixture = *state;
    char list[512];
    const char *one = put_file(fixture, "one", USER "current-context: x\n");
    const char *two = put_file(fixture, "two",
                               CLUSTER "users: [{name: u, user: {token: two}}]\n"
                                       "current-context: other\n");
    const char *three = put_file(fixture, "three",
                                 "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                                 "clusters: [{name: c, cluster: {server: 'https://other:1'}}]\n");
    snprintf(list, sizeof(list), "%s:/nonexistent/file::%s:%s", one, two, three);
    fixture->options.kubeconfig_env = str_from_c(list);
    if (rc_failed(load(fixture))) {
        fail_msg("%s", fixture->err.text);
    }
    check_str(fixture->config->token, "t");
    check_str(fixture->config->server, "https://h:6443");
}

static void an_empty_file_takes_no_part(void **state)
{
    struct fixture *fixture = *state;
    char list[512];
    snprintf(list, sizeof(list), "%s:%s", put_file(fixture, "empty", ""),
             put_file(fixture, "full", CLUSTER USER TAIL));
    fixture->options.kubeconfig_env = str_from_c(list);
    assert_false(rc_failed(load(fixture)));
    check_str(fixture->config->token, "t");
}

static void a_context_can_be_named(void **state)
{
    struct fixture *fixture = *state;
    fixture->options.context = STR("other");
    const struct kube_config *config =
        load_text(fixture, "clusters: [{name: c, cluster: {server: 'https://h:6443'}},\n"
                           "  {name: d, cluster: {server: 'https://d:6443'}}]\n" USER
                           "contexts: [{name: x, context: {cluster: c, user: u}},\n"
                           "  {name: other, context: {cluster: d}}]\n"
                           "current-context: x\n");
    check_str(config->server, "https://d:6443");
    check_str(config->token, NULL); /* no user: nobody */
    fixture->options.context = STR("z");
    check_load_fails(fixture, "DIR/config: there is no context \"z\"");
}

static void paths_are_relative_to_their_file(void **state)
{
    struct fixture *fixture = *state;
    put_file(fixture, "ca.pem", PEM);
    put_file(fixture, "token", "abc\n");
    const struct kube_config *config =
        load_text(fixture, "clusters: [{name: c, cluster: {server: 'https://h', "
                           "certificate-authority: ca.pem}}]\n"
                           "users: [{name: u, user: {tokenFile: token}}]\n" TAIL);
    check_str(config->ca_pem, PEM);
    assert_true(str_ends_with(config->token_file, STR("/token")));
    assert_true(str_starts_with(config->token_file, str_from_c(fixture->directory)));
}

static void a_plugin_with_all_its_fields(void **state)
{
    const struct kube_config *config =
        load_text(*state, CLUSTER "users:\n- name: u\n  user:\n    exec:\n"
                                  "      apiVersion: client.authentication.k8s.io/v1beta1\n"
                                  "      command: aws\n"
                                  "      args: [eks, get-token]\n"
                                  "      env: [{name: A, value: b}]\n"
                                  "      installHint: get it\n"
                                  "      interactiveMode: IfAvailable\n"
                                  "      provideClusterInfo: true\n" TAIL);
    const struct kube_exec *exec = config->exec;
    assert_non_null(exec);
    check_str(exec->command, "aws");
    check_i64(exec->args.count, 2);
    check_str(exec->args.items[1], "get-token");
    check_i64(exec->env.count, 1);
    check_str(exec->env.items[0].name, "A");
    check_str(exec->env.items[0].value, "b");
    check_str(exec->install_hint, "get it");
    assert_true(exec->provide_cluster_info);
}

static void a_bad_file_is_named_with_its_field(void **state)
{
    static const char *const rows[][2] = {
        {"", "DIR/config: current-context is not set"},
        {"kind: Deployment\n", "DIR/config: kind is \"Deployment\", not Config"},
        {"clusters: 7\n", "DIR/config: "},
        {"a: [\n", "DIR/config: "},
        {CLUSTER USER TAIL "---\n" CLUSTER, "there is more text behind the object"},
        {"current-context: x\n", "there is no context \"x\""},
        {USER TAIL, "DIR/config: context \"x\": cluster: names a cluster that isn't there"},
        {CLUSTER TAIL, "DIR/config: context \"x\": user: names a user that isn't there"},
        {"clusters: [{name: c}]\n" USER TAIL, "cluster \"c\": server: is missing"},
        {"clusters: [{name: c, cluster: {server: 'https://h', certificate-authority-data: "
         "'*'}}]\n" USER TAIL,
         "DIR/config: cluster \"c\": certificate-authority: the -data form is not base64"},
        {"clusters: [{name: c, cluster: {server: 'https://h', certificate-authority-data: "
         "Zm9v}}]\n" USER TAIL,
         "certificate-authority: is not in PEM form"},
        {"clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: "
         "gone.pem}}]\n" USER TAIL,
         "DIR/config: cluster \"c\": certificate-authority: "},
        {"clusters: [{name: c, cluster: {server: 'https://h', insecure-skip-tls-verify: true, "
         "certificate-authority-data: " PEM_DATA "}}]\n" USER TAIL,
         "insecure-skip-tls-verify: can't be true beside a certificate-authority"},
        {"clusters: [{name: c, cluster: {server: 'https://h', insecure-skip-tls-verify: "
         "maybe}}]\n" USER TAIL,
         "insecure-skip-tls-verify"},
        {CLUSTER "users: [{name: u, user: {client-certificate-data: " PEM_DATA "}}]\n" TAIL,
         "user \"u\": client-certificate: and client-key must both be there"},
        {CLUSTER "users: [{name: u, user: {auth-provider: {name: gcp}}}]\n" TAIL,
         "user \"u\": auth-provider: was removed from Kubernetes in 1.26"},
        {CLUSTER "users: [{name: u, user: {as: root, token: t}}]\n" TAIL,
         "user \"u\": as: impersonation is not supported"},
        {CLUSTER "users: [{name: u, user: {exec: {apiVersion: v1, command: x}}}]\n" TAIL,
         "user \"u\": exec.apiVersion: is not client.authentication.k8s.io/v1"},
        {CLUSTER
         "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1}}}]\n" TAIL,
         "user \"u\": exec.command: is missing"},
        {CLUSTER "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, "
                 "command: x, interactiveMode: Always}}}]\n" TAIL,
         "exec.interactiveMode: is Always"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        check_text_fails(*state, rows[i][0], rows[i][1]);
    }
}

static void a_missing_file_is_said(void **state)
{
    struct fixture *fixture = *state;
    fixture->options.kubeconfig = STR("/nonexistent/config");
    check_load_fails(fixture, "/nonexistent/config: No such file or directory");
    fixture->options.kubeconfig = STR_NONE;
    fixture->options.kubeconfig_env = STR("/nonexistent/a:/nonexistent/b");
    check_load_fails(fixture, "KUBECONFIG: none of its files exists");
    fixture->options.kubeconfig_env = STR_NONE;
    fixture->options.home = str_from_c(fixture->directory);
    check_load_fails(fixture, "no way to a cluster is known");
    fixture->options.home = STR_NONE;
    check_load_fails(fixture, "no way to a cluster is known");
}

static void the_account_of_a_pod(void **state)
{
    struct fixture *fixture = *state;
    put_file(fixture, "ca.crt", PEM);
    put_file(fixture, "token", "abc");
    put_file(fixture, "namespace", "tallyman-system");
    fixture->options.service_host = STR("fd00::1");
    fixture->options.service_port = STR("6443");
    fixture->options.account_directory = str_from_c(fixture->directory);
    fixture->options.home = STR("/root"); /* comes after it */
    assert_false(rc_failed(load(fixture)));
    check_str(fixture->config->server, "https://[fd00::1]:6443");
    check_str(fixture->config->namespace_name, "tallyman-system");
    check_str(fixture->config->ca_pem, PEM);
    check_str(fixture->config->source, "in-cluster account");
    assert_true(str_ends_with(fixture->config->token_file, STR("/token")));

    fixture->options.service_host = STR("10.0.0.1");
    fixture->options.service_port = STR_NONE;
    assert_false(rc_failed(load(fixture)));
    check_str(fixture->config->server, "https://10.0.0.1:443");
}

static void the_file_in_the_home_comes_last(void **state)
{
    struct fixture *fixture = *state;
    char path[128];
    snprintf(path, sizeof(path), "%s/.kube", fixture->directory);
    assert_int_equal(mkdir(path, 0700), 0);
    put_file(fixture, ".kube/config", CLUSTER USER TAIL);
    fixture->options.home = str_from_c(fixture->directory);
    assert_false(rc_failed(load(fixture)));
    check_str(fixture->config->token, "t");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_common_file),
        TEST(json_is_yaml),
        TEST(of_several_files_the_first_wins),
        TEST(an_empty_file_takes_no_part),
        TEST(a_context_can_be_named),
        TEST(paths_are_relative_to_their_file),
        TEST(a_plugin_with_all_its_fields),
        TEST(a_bad_file_is_named_with_its_field),
        TEST(a_missing_file_is_said),
        TEST(the_account_of_a_pod),
        TEST(the_file_in_the_home_comes_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
