/* Pods that keep others off their node: host ports, and required podAntiAffinity. And a pod that
 * asks for more kinds of things than are looked at. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#define PORTS(ports) "{\"containers\":[{\"name\":\"main\",\"ports\":[" ports "]}]}"
#define APART(terms)                                                                               \
    "{\"containers\":[{\"name\":\"main\"}],\"affinity\":{\"podAntiAffinity\":{"                    \
    "\"requiredDuringSchedulingIgnoredDuringExecution\":[" terms "]}}}"
#define ON_HOST(selector)                                                                          \
    "{\"topologyKey\":\"kubernetes.io/hostname\",\"labelSelector\":{" selector "}}"

static void given_world(struct scenario *s)
{
    given_node(s, "n1", "cpu=8");
    given_node(s, "n2", "cpu=8");
    given_queue(s, "q", "cpu=100");
}

static void given_foreign(struct scenario *s, const char *name, const char *node,
                          const char *namespace_name, const char *spec)
{
    char json[1024];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"labels\":{\"app\":\"db\"}},"
             "\"spec\":{\"nodeName\":\"%s\",%s,\"status\":{\"phase\":\"Running\"}}",
             name, namespace_name, node, spec + 1);
    given_json(s, KIND_POD, json);
}

/* A host port is had once on a node, by whoever; a port of the pod's own is nobody's matter. */
static void host_port_is_had_once_on_a_node(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_foreign(s, "web", "n1", "other", PORTS("{\"containerPort\":80,\"hostPort\":80}"));
    given_job_spec(s, "none", "q", "pods=3",
                   PORTS("{\"containerPort\":80},{\"containerPort\":81,\"hostPort\":0}"));
    expect_state(s, "none", "Admitted");
    gang_starts(s, "none", "n1 n1 n1");
    given_job_spec(s, "same", "q", "pods=2", PORTS("{\"containerPort\":8080,\"hostPort\":80}"));
    expect_state(s, "same", "Pending NodeShape");
    given_job_spec(s, "another", "q", "pods=2", PORTS("{\"containerPort\":80,\"hostPort\":81}"));
    expect_state(s, "another", "Admitted");
    given_job_spec(s, "three", "q", "pods=3", PORTS("{\"containerPort\":80,\"hostPort\":82}"));
    expect_state(s, "three", "Pending NeverFits");
}

/* Who asks for nothing is told of no amounts. */
static void gang_that_asks_for_nothing_is_told_its_pods_alone(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_job_spec(s, "none", "q", "pods=2", PORTS(""));
    expect_state(s, "none", "Admitted");
    assert_non_null(strstr(trace_text(s), "Admitted: admitted on queue q: 2 pods\n"));
}

/* Where others of its gang or of another are on their way to, it isn't counted on. */
static void host_port_beside_pods_on_their_way_is_not_counted_on(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_job(s, "plain", "q", "pods=1 cpu=1");
    expect_state(s, "plain", "Admitted");
    given_job_spec(s, "port", "q", "pods=2", PORTS("{\"containerPort\":80,\"hostPort\":80}"));
    expect_state(s, "port", "Pending ReservedForOther");
    expect_message(s, "port", "the room is promised to gangs whose pods are being placed");
    gang_starts(s, "plain", "n1");
    expect_state(s, "port", "Admitted");
}

/* A pod that is apart from some of its namespace is put beside none of it, and one a node. */
static void pod_that_keeps_apart_is_alone_of_its_namespace(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_foreign(s, "mine", "n1", "ml", "{\"containers\":[{\"name\":\"main\"}]}");
    given_foreign(s, "theirs", "n2", "other", "{\"containers\":[{\"name\":\"main\"}]}");
    given_job_spec(s, "pair", "q", "pods=2", APART(ON_HOST("\"matchLabels\":{\"app\":\"x\"}")));
    expect_state(s, "pair", "Pending NodeShape");
    given_job_spec(s, "lone", "q", "pods=1", APART(ON_HOST("\"matchLabels\":{\"app\":\"x\"}")));
    expect_state(s, "lone", "Admitted");
}

/* What a pod that works keeps off its node: by the labels of the template, but for those that the
 * Job's controller adds, which may be any. */
static void working_pod_keeps_others_off(void **state)
{
    static const struct {
        const char *terms;
        bool is_kept_off;
    } rows[] = {
        {ON_HOST("\"matchLabels\":{\"role\":\"train\"}"), true},
        {ON_HOST("\"matchLabels\":{\"role\":\"serve\"}"), false},
        {ON_HOST("\"matchLabels\":{\"role\":\"train\",\"other\":\"x\"}"), false},
        {ON_HOST("\"matchLabels\":{\"role\":\"train\",\"job-name\":\"x\"}"), true},
        {ON_HOST("\"matchLabels\":{\"role\":\"train\",\"controller-uid\":\"x\"}"), true},
        {ON_HOST("\"matchLabels\":{\"batch.kubernetes.io/job-name\":\"x\"}"), true},
        {ON_HOST("\"matchExpressions\":[{\"key\":\"role\",\"operator\":\"Exists\"}]"), true},
        {ON_HOST("\"matchExpressions\":[{\"key\":\"role\",\"operator\":\"DoesNotExist\"}]"), false},
        {ON_HOST("\"matchExpressions\":[{\"key\":\"job-name\",\"operator\":\"DoesNotExist\"}]"),
         true},
        {"{\"topologyKey\":\"kubernetes.io/hostname\"}", false},
        /* Whose namespaces it names may be anybody's. */
        {"{\"topologyKey\":\"kubernetes.io/hostname\",\"labelSelector\":{},\"namespaces\":["
         "\"else\"]}",
         true},
        {"{\"topologyKey\":\"kubernetes.io/hostname\",\"labelSelector\":{},"
         "\"namespaceSelector\":{}}",
         true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scenario *s = scenario_new();
        given_node(s, "n1", "cpu=8");
        given_queue(s, "q", "cpu=100");
        given_foreign(s, "db", "n1", "ml", "{\"containers\":[{\"name\":\"main\"}]}");
        char spec[700];
        snprintf(spec, sizeof(spec), "%s%s%s",
                 "{\"containers\":[{\"name\":\"main\"}],\"affinity\":{\"podAntiAffinity\":{"
                 "\"requiredDuringSchedulingIgnoredDuringExecution\":[",
                 rows[i].terms, "]}}}");
        given_foreign(s, "keeper", "n1", "ml", spec);
        given_json(s, KIND_JOB,
                   "{\"metadata\":{\"name\":\"gang\",\"labels\":{\"tallyman.dev/queue\":\"q\"}},"
                   "\"spec\":{\"suspend\":true,\"parallelism\":1,\"completions\":1,\"template\":{"
                   "\"metadata\":{\"labels\":{\"role\":\"train\"}},\"spec\":{\"containers\":[{"
                   "\"name\":\"main\"}]}}}}");
        scenario_start(s);
        expect_state(s, "gang", rows[i].is_kept_off ? "Pending NodeShape" : "Admitted");
        scenario_free(s);
    }
}

/* And off all nodes that are one place with its own for its topology key; not by pods of another
 * namespace. */
static void working_pod_keeps_others_off_its_zone(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8 label=zone:a");
    given_node(s, "n2", "cpu=8 label=zone:a");
    given_node(s, "n3", "cpu=8 label=zone:b");
    given_node(s, "n4", "cpu=8");
    given_queue(s, "q", "cpu=100");
    given_foreign(s, "keeper", "n1", "ml",
                  APART("{\"topologyKey\":\"zone\",\"labelSelector\":{}}"));
    given_foreign(s, "theirs", "n3", "other",
                  APART("{\"topologyKey\":\"zone\",\"labelSelector\":{}}"));
    given_job(s, "three", "q", "pods=3 cpu=8");
    expect_state(s, "three", "Pending NodeShape");
    given_job(s, "two", "q", "pods=2 cpu=8");
    expect_state(s, "two", "Admitted");
}

/* -- more than is looked at -------------------------------------------------------------------- */

/* A pod may ask for as many resources as are looked at, and not for more. */
static void pod_may_ask_for_64_resources(void **state)
{
    struct scenario *s = *state;
    char options[4096];
    size_t length = (size_t)snprintf(options, sizeof(options), "pods=1");
    given_queue(s, "q", "cpu=1 undeclared=Allow");
    for (int i = 0; i < 64; i++) { /* and the pod itself is one */
        length +=
            (size_t)snprintf(options + length, sizeof(options) - length, " example.com/r%02d=1", i);
    }
    given_node(s, "n1", options + strlen("pods=1"));
    given_job(s, "many", "q", options);
    expect_state(s, "many", "Pending Invalid");
    expect_message(s, "many", "asks for more than 64 different resources");
    options[strlen(options) - strlen(" example.com/r63=1")] = '\0';
    given_job(s, "fewer", "q", options);
    expect_state(s, "fewer", "Admitted");
}

/* Nor for more beside the pod itself. */
static void pod_asks_for_no_more_resources_than_are_looked_at(void **state)
{
    struct scenario *s = *state;
    char options[4096];
    size_t length = (size_t)snprintf(options, sizeof(options), "pods=1");
    given_queue(s, "q", "cpu=1 undeclared=Allow");
    for (int i = 0; i < 65; i++) {
        length +=
            (size_t)snprintf(options + length, sizeof(options) - length, " example.com/r%02d=1", i);
    }
    given_node(s, "n1", options + strlen("pods=1"));
    given_job(s, "many", "q", options);
    expect_state(s, "many", "Pending Invalid");
    expect_message(s, "many", "asks for more than 64 different resources");
}

/* Claims NAME-0 to NAME-2, each of devices of 20 classes that no other asks for. */
static void given_claims_of_60_classes(struct scenario *s, enum object_kind kind, const char *name,
                                       const char *spec, const char *end)
{
    for (int i = 0; i < 60; i++) {
        given_class(s, make(s, "c%02d.x", i).ptr, "true");
    }
    for (int c = 0; c < 3; c++) {
        struct text requests = list_text(s);
        for (int i = 20 * c; i < 20 * (c + 1); i++) {
            text_addf(&requests,
                      "%s{\"name\":\"r%02d\",\"exactly\":{\"deviceClassName\":\"c%02d.x\"}}",
                      comma(&requests), i, i);
        }
        given_json(s, kind,
                   make(s,
                        "{\"metadata\":{\"name\":\"%s-%d\"},\"spec\":%s{\"devices\":{"
                        "\"requests\":[" STR_FMT "]}}%s}",
                        name, c, spec, STR_ARG(text_str(&requests)), end)
                       .ptr);
    }
}

/* A class of devices counts as one, whether each pod has a claim or all share it. */
static void pod_asks_for_no_more_classes_than_are_looked_at(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_node(s, "n3",
               "example.com/r0=1 example.com/r1=1 example.com/r2=1 example.com/r3=1 "
               "example.com/r4=1");
    given_claims_of_60_classes(s, KIND_RESOURCE_CLAIM_TEMPLATE, "own", "{\"spec\":", "}");
    given_claims_of_60_classes(s, KIND_RESOURCE_CLAIM, "shared", "", "");
    struct text others = list_text(s);
    for (int i = 0; i < 5; i++) {
        text_addf(&others, " example.com/r%d=1", i);
    }
    given_job(s, "own", "q",
              make(s, "pods=1 template=own-0 template=own-1 template=own-2" STR_FMT,
                   STR_ARG(text_str(&others)))
                  .ptr);
    expect_state(s, "own", "Pending Invalid");
    expect_message(s, "own", "asks for more than 64 different resources");
    given_job(s, "shared", "q",
              make(s, "pods=1 claim=shared-0 claim=shared-1 claim=shared-2" STR_FMT,
                   STR_ARG(text_str(&others)))
                  .ptr);
    expect_state(s, "shared", "Pending Invalid");
    expect_message(s, "shared", "asks for more than 64 different resources");
}

/* No API server takes a Queue of more groups than eight; whoever draws on eight may start. */
static void pod_draws_on_eight_resource_groups(void **state)
{
    struct scenario *s = *state;
    struct text queue = list_text(s);
    struct text node = list_text(s);
    struct text job = list_text(s);
    text_addf(&job, "pods=1");
    for (int i = 0; i < 9; i++) {
        const char *flavor = make(s, "f%d", i).ptr;
        given_flavor(s, flavor, "");
        text_addf(&queue, " group=new flavor=%s example.com/r%d=1", flavor, i);
        text_addf(&node, " example.com/r%d=1", i);
        text_addf(&job, " example.com/r%d=1", i);
        if (i == 7) {
            given_queue(s, "eight", make(s, STR_FMT, STR_ARG(text_str(&queue))).ptr);
            given_node(s, "n1", make(s, STR_FMT, STR_ARG(text_str(&node))).ptr);
            given_job(s, "eight", "eight", make(s, STR_FMT, STR_ARG(text_str(&job))).ptr);
        }
    }
    given_queue(s, "nine", make(s, STR_FMT, STR_ARG(text_str(&queue))).ptr);
    given_node(s, "n2", make(s, STR_FMT, STR_ARG(text_str(&node))).ptr);
    given_job(s, "nine", "nine", make(s, STR_FMT, STR_ARG(text_str(&job))).ptr);
    expect_state(s, "eight", "Admitted");
    expect_state(s, "nine", "Pending Invalid");
    expect_message(s, "nine", "its pods draw on more than 8 resource groups of queue nine");
}

static void given_labelled(struct scenario *s, const char *name, const char *role)
{
    char json[600];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"tallyman.dev/queue\":\"q\"}},"
             "\"spec\":{\"suspend\":true,\"parallelism\":1,\"completions\":1,\"template\":{"
             "\"metadata\":{\"labels\":{\"role\":\"%s\"}},\"spec\":{\"containers\":[{"
             "\"name\":\"main\",\"resources\":{\"requests\":{\"cpu\":\"5\"}}}]}}}}",
             name, role);
    given_json(s, KIND_JOB, json);
}

/* Gangs that are alike but for their pods' labels are judged together: then any label may be one of
 * theirs. */
static void labels_that_differ_between_gangs_may_be_any(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_node(s, "small", "cpu=1");
    given_queue(s, "q", "cpu=100");
    given_foreign(s, "keeper", "n1", "ml", APART(ON_HOST("\"matchLabels\":{\"role\":\"serve\"}")));
    given_labelled(s, "trains", "train");
    given_labelled(s, "serves", "serve");
    expect_state(s, "trains", "Pending NodeShape");
    expect_state(s, "serves", "Pending NodeShape");
}

/* On n1 stands somebody else's pod that keeps the zone of n1 and n2 to itself; the gang waits. */
static void given_a_zone_that_is_kept(struct scenario *s)
{
    given_node(s, "n1", "cpu=8 label=zone:a");
    given_node(s, "n2", "cpu=8 label=zone:a");
    given_queue(s, "q", "cpu=100");
    given_foreign(s, "keeper", "n1", "ml",
                  APART("{\"topologyKey\":\"zone\",\"labelSelector\":{}}"));
    given_job(s, "gang", "q", "pods=2 cpu=1");
    scenario_start(s);
    expect_used(s, "q", "");
}

/* Pods could use the node but for one that keeps its whole zone to itself: in another zone they
 * may.
 */
static void relabelled_node_leaves_the_zone_that_is_kept(void **state)
{
    struct scenario *s = *state;
    given_a_zone_that_is_kept(s);
    given_node(s, "n2", "cpu=8 label=zone:b");
    expect_state(s, "gang", "Admitted");
}

/* Its node is gone, and with it the place that it kept. */
static void pod_on_a_node_that_is_gone_keeps_nobody_off(void **state)
{
    struct scenario *s = *state;
    given_a_zone_that_is_kept(s);
    object_gone(s, KIND_NODE, "n1");
    expect_state(s, "gang", "Admitted");
}

/* A list without terms keeps nobody off, nor does a pod of a namespace whose name only begins
 * alike.
 */
static void terms_of_nothing_and_other_namespaces(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=100");
    given_foreign(s, "silent", "n1", "ml", APART(""));
    given_foreign(s, "keeper", "n1", "mlx", APART(ON_HOST("")));
    given_foreign(s, "short", "n1", "m", APART(ON_HOST("")));
    given_job_spec(s, "gang", "q", "pods=2", APART(""));
    expect_state(s, "gang", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(host_port_is_had_once_on_a_node),
        scenario_test(gang_that_asks_for_nothing_is_told_its_pods_alone),
        scenario_test(host_port_beside_pods_on_their_way_is_not_counted_on),
        scenario_test(pod_that_keeps_apart_is_alone_of_its_namespace),
        cmocka_unit_test(working_pod_keeps_others_off),
        scenario_test(working_pod_keeps_others_off_its_zone),
        scenario_test(pod_may_ask_for_64_resources),
        scenario_test(pod_asks_for_no_more_resources_than_are_looked_at),
        scenario_test(pod_asks_for_no_more_classes_than_are_looked_at),
        scenario_test(pod_draws_on_eight_resource_groups),
        scenario_test(labels_that_differ_between_gangs_may_be_any),
        scenario_test(relabelled_node_leaves_the_zone_that_is_kept),
        scenario_test(pod_on_a_node_that_is_gone_keeps_nobody_off),
        scenario_test(terms_of_nothing_and_other_namespaces),
    };
    return cmocka_run_group_tests_name("apart", tests, NULL, NULL);
}
