/* What kube-scheduler chooses: a count of what is free isn't enough where one choice excludes
 * another. Each of these gangs would be let go by counting, and left partial by some choice. */
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"

#define SLICE(name, count, body)                                                                   \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"driver\":\"gpu.example.com\",\"pool\":{"    \
    "\"name\":\"n1\",\"generation\":1,\"resourceSliceCount\":" #count "},"                         \
    "\"nodeName\":\"n1\"," body "}}"
#define MODEL(name, model)                                                                         \
    "{\"name\":\"" name "\",\"attributes\":{\"model\":{\"string\":\"" model "\"}}}"
#define PART(name, amount)                                                                         \
    "{\"name\":\"" name "\",\"consumesCounters\":[{\"counterSet\":\"card\",\"counters\":{"         \
    "\"parts\":{\"value\":\"" #amount "\"}}}]}"
#define REQUEST(name, selectors)                                                                   \
    "{\"name\":\"" name "\",\"exactly\":{\"deviceClassName\":\"gpu.example.com\"" selectors "}}"
#define BIG                                                                                        \
    ",\"selectors\":[{\"cel\":{\"expression\":\"device.attributes['gpu.example.com'].model == "    \
    "'big'\"}}]"
#define TEMPLATE(name, requests)                                                                   \
    "{\"metadata\":{\"name\":\"" name                                                              \
    "\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":[" requests "]}}}}"
#define APART(app)                                                                                 \
    "\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{"     \
    "\"topologyKey\":\"kubernetes.io/"                                                             \
    "hostname\",\"labelSelector\":{\"matchLabels\":{\"app\":\"" app "\"}}}]}}"

static void given_world(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_queue(s, "q", "cpu=100 gpu.example.com=100");
    given_template(s, "one", CLASS, 1);
}

/* Two big ones, two small ones; a pod asks for any and a big one, and may be given both big. */
static void first_pod_may_get_what_only_the_second_can_use(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_json(s, KIND_RESOURCE_SLICE,
               SLICE("s", 1,
                     "\"devices\":[" MODEL("d0", "big") "," MODEL("d1", "big") "," MODEL(
                         "d2", "small") "," MODEL("d3", "small") "]"));
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               TEMPLATE("mixed", REQUEST("any", "") "," REQUEST("big", BIG)));
    given_job(s, "pair", "q", "pods=2 template=mixed");
    expect_state(s, "pair", "Pending NodeShape");
    given_job(s, "single", "q", "pods=1 template=mixed"); /* for one, any way will be found */
    expect_state(s, "single", "Admitted");
}

/* The same request twice in a pod is no trap: four alike are enough for two pods. */
static void equal_requests_share_what_they_find(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_devices(s, "n1", "g0 g1 g2 g3");
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               TEMPLATE("two", REQUEST("a", "") "," REQUEST("b", "")));
    given_job(s, "pair", "q", "pods=2 template=two");
    expect_state(s, "pair", "Admitted");
}

/* A card is offered whole and in halves, and any part will do. */
static void first_pod_may_get_the_whole_card(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_json(
        s, KIND_RESOURCE_SLICE,
        SLICE("parts", 2,
              "\"devices\":[" PART("whole", 2) "," PART("half-0", 1) "," PART("half-1", 1) "]"));
    given_json(s, KIND_RESOURCE_SLICE,
               SLICE("counters", 2,
                     "\"sharedCounters\":[{\"name\":\"card\",\"counters\":{\"parts\":{\"value\":"
                     "\"2\"}}}]"));
    given_job(s, "pair", "q", "pods=2 template=one");
    expect_state(s, "pair", "Pending DevicesExhausted");
    given_job(s, "single", "q", "pods=1 template=one");
    expect_state(s, "single", "Admitted");
}

/* A named claim binds its gang to one node; a pod on its way may take that node's device. */
static void named_claim_waits_for_pods_after_the_same_device(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_node(s, "n2", "cpu=16");
    given_devices(s, "n1", "g0");
    given_devices(s, "n2", "g0");
    given_claim(s, "c", CLASS, 1);
    given_job(s, "roamer", "q", "pods=1 template=one");
    expect_state(s, "roamer", "Admitted");
    given_job(s, "sharer", "q", "pods=1 claim=c");
    expect_state(s, "sharer", "Pending ReservedForOther");
    gang_starts(s, "roamer", "n2");
    pod_claims(s, "roamer-0", "one", "n2/g0");
    expect_state(s, "sharer", "Admitted");
}

/* A pod on its way that asks for a device twice over takes two of them. */
static void requests_of_a_pod_on_its_way_add_up(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_node(s, "n2", "cpu=16");
    given_devices(s, "n1", "g0 g1 g2 g3 g4 g5 g6 g7");
    given_devices(s, "n2", "g0 g1 g2");
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               TEMPLATE("two", REQUEST("a", "") "," REQUEST("b", "")));
    given_job(s, "greedy", "q", "pods=1 template=two");
    expect_state(s, "greedy", "Admitted");
    given_job(s, "modest", "q", "pods=2 template=one selector=kubernetes.io/hostname:n2");
    expect_state(s, "modest", "Pending ReservedForOther");
    gang_starts(s, "greedy", "n1");
    pod_claims(s, "greedy-0", "two", "n1/g0 n1/g1");
    expect_state(s, "modest", "Admitted");
}

/* -- other pods ---------------------------------------------------------------------------------
 */

static void pod_keeps_others_off_its_node(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_json(s, KIND_POD,
               "{\"metadata\":{\"name\":\"loner\",\"labels\":{\"app\":\"x\"}},\"spec\":{"
               "\"nodeName\":\"n1\",\"containers\":[{\"name\":\"main\"}]," APART(
                   "train") "},\"status\":{\"phase\":\"Running\"}}");
    given_job(s, "other", "q", "pods=1 cpu=1"); /* its pods bear no such label */
    expect_state(s, "other", "Admitted");
    given_json(s, KIND_JOB,
               "{\"metadata\":{\"name\":\"train\",\"labels\":{\"tallyman.dev/queue\":\"q\"}},"
               "\"spec\":{\"parallelism\":1,\"completions\":1,\"suspend\":true,\"template\":{"
               "\"metadata\":{\"labels\":{\"app\":\"train\"}},\"spec\":{\"containers\":[{"
               "\"name\":\"main\"}]}}}}");
    expect_state(s, "train", "Pending NodeShape");
    object_gone(s, KIND_POD, "loner");
    expect_state(s, "train", "Admitted");
}

static void host_port_is_taken_once_per_node(void **state)
{
    struct scenario *s = *state;
    static const char again[] = "{\"containers\":[{\"name\":\"other\",\"ports\":[{"
                                "\"containerPort\":81,\"hostPort\":80}]}]}";
    static const char spec[] = "{\"containers\":[{\"name\":\"main\",\"ports\":[{\"containerPort\":"
                               "80,\"hostPort\":80}]}]}";
    given_world(s);
    given_job_spec(s, "first", "q", "pods=1", spec);
    expect_state(s, "first", "Admitted");
    given_job_spec(s, "second", "q", "pods=1", spec);
    expect_state(s, "second", "Pending ReservedForOther");
    gang_starts(s, "first", "n1");
    expect_state(s, "second", "Pending NodeShape");
    given_job(s, "no-port", "q", "pods=3 cpu=1");
    expect_state(s, "no-port", "Admitted");
    gang_starts(s, "no-port", "n1 n1 n1");
    given_job_spec(s, "third", "q", "pods=1", again);
    expect_state(s, "third", "Pending NodeShape");
    given_node(s, "n2", "cpu=1");
    expect_state(s, "second", "Admitted");
}

static void what_depends_on_other_pods_is_an_explained_wait(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_job_spec(s, "spread", "q", "pods=2",
                   "{\"containers\":[{\"name\":\"main\"}],\"topologySpreadConstraints\":[{"
                   "\"maxSkew\":1,\"topologyKey\":\"zone\",\"whenUnsatisfiable\":"
                   "\"DoNotSchedule\"}]}");
    expect_state(s, "spread", "Pending NeverFits");
    expect_message(s, "spread", "ScheduleAnyway");
    given_job_spec(s, "near", "q", "pods=2",
                   "{\"containers\":[{\"name\":\"main\"}],\"affinity\":{\"podAffinity\":{"
                   "\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":"
                   "\"kubernetes.io/hostname\"}]}}}");
    expect_state(s, "near", "Pending NeverFits");
    expect_message(s, "near", "podAffinity");
}

#define OF_CARD(name, key, counters)                                                               \
    "{\"name\":\"" name "\",\"attributes\":{\"" key "\":{\"string\":\"GPU-1\"}}" counters "}"
#define DRAWS                                                                                      \
    ",\"consumesCounters\":[{\"counterSet\":\"card\",\"counters\":{\"parts\":{\"value\":\"1\"}}}]"

/* A part that names a listed card as its own, and no counter ties them: both are given out, and who
 * starts there is warned. */
static void part_without_counters_is_warned_about(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_json(s, KIND_RESOURCE_SLICE,
               SLICE("s", 1,
                     "\"devices\":[" OF_CARD("card", "uuid", "") "," OF_CARD(
                         "part", "gpu.example.com/parentUUID", "") "]"));
    given_job(s, "a", "q", "pods=2 template=one");
    expect_state(s, "a", "Admitted");
    assert_non_null(strstr(trace_text(s),
                           "a ! Warning PartsWithoutCounters: pool gpu.example.com/n1 lists "
                           "device card and its part part without shared counters"));
}

static void part_with_counters_is_as_it_should_be(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_json(s, KIND_RESOURCE_SLICE,
               SLICE("s", 2,
                     "\"sharedCounters\":[{\"name\":\"card\",\"counters\":{\"parts\":{"
                     "\"value\":\"1\"}}}]"));
    given_json(s, KIND_RESOURCE_SLICE,
               SLICE("t", 2,
                     "\"devices\":[" OF_CARD("card", "uuid",
                                             DRAWS) "," OF_CARD("part", "parentUUID", DRAWS) "]"));
    given_job(s, "a", "q", "pods=1 template=one");
    expect_state(s, "a", "Admitted");
    assert_null(strstr(trace_text(s), "PartsWithoutCounters"));
}

/* A gang that asks for no device of that pool has nothing to do with it. */
static void part_without_counters_is_no_matter_to_others(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_json(s, KIND_RESOURCE_SLICE,
               SLICE("s", 1,
                     "\"devices\":[" OF_CARD("card", "uuid", "") "," OF_CARD(
                         "part", "gpu.example.com/parentUUID", "") "]"));
    given_node(s, "n2", "cpu=16");
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"other\"},\"spec\":{\"driver\":\"other.example.com\","
               "\"nodeName\":\"n2\",\"pool\":{\"name\":\"n2\",\"generation\":1,"
               "\"resourceSliceCount\":1},\"devices\":[{\"name\":\"g0\"}]}}");
    given_class(s, "other.example.com", "device.driver == 'other.example.com'");
    given_template(s, "other", "other.example.com", 1);
    given_queue(s, "p", "other.example.com=4");
    given_job(s, "a", "p", "pods=1 template=other");
    given_job(s, "b", "p", "pods=1");
    expect_state(s, "a", "Admitted");
    expect_state(s, "b", "Admitted");
    assert_null(strstr(trace_text(s), "PartsWithoutCounters"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(first_pod_may_get_what_only_the_second_can_use),
        scenario_test(equal_requests_share_what_they_find),
        scenario_test(first_pod_may_get_the_whole_card),
        scenario_test(named_claim_waits_for_pods_after_the_same_device),
        scenario_test(requests_of_a_pod_on_its_way_add_up),
        scenario_test(pod_keeps_others_off_its_node),
        scenario_test(host_port_is_taken_once_per_node),
        scenario_test(what_depends_on_other_pods_is_an_explained_wait),
        scenario_test(part_without_counters_is_warned_about),
        scenario_test(part_with_counters_is_as_it_should_be),
        scenario_test(part_without_counters_is_no_matter_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
