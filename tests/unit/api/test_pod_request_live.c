#include "pod_fixture.h"

static void check_pod(struct fixture *f, const char *json, const char *expected)
{
    struct amount_list amounts;
    struct err err;
    if (rc_failed(pod_requests(&f->arena, pod_of(f, json), &amounts, &err))) {
        fail_msg("%s", err.text);
    }
    check_str(amounts_text(f, &amounts), expected);
}

static void a_pod_is_taken_as_it_is(void **state)
{
    struct fixture *f = *state;
    check_pod(f,
              "{'spec':{'overhead':{'cpu':'250m'},'containers':[" CONTAINER(
                  "a", "'requests':{'cpu':1},'limits':{'memory':5}") "]}}",
              "cpu=1250");
    check_pod(f,
              "{'spec':{'resources':{'requests':{'cpu':3},'limits':{'memory':9}},'containers':"
              "[" CONTAINER("a", "'requests':{'cpu':1}") "]}}",
              "cpu=3000");
}

#define RESIZED(spec, allocated, actual, reason)                                                   \
    "{'spec':{'containers':[" CONTAINER(                                                           \
        "a",                                                                                       \
        "'requests':{'cpu':" spec                                                                  \
        "}") "]},"                                                                                 \
             "'status':{'containerStatuses':[{'name':'a','allocatedResources':{'cpu':" allocated   \
             "},"                                                                                  \
             "'resources':{'requests':{'cpu':" actual "}}}],"                                      \
             "'conditions':[{'type':'PodResizePending','status':'True','reason':'" reason "'}]}}"

static void while_resizing_the_largest_counts(void **state)
{
    struct fixture *f = *state;
    check_pod(f, RESIZED("3", "2", "1", ""), "cpu=3000");
    check_pod(f, RESIZED("1", "3", "2", ""), "cpu=3000");
    check_pod(f, RESIZED("1", "2", "3", ""), "cpu=3000");
    check_pod(f, RESIZED("3", "2", "1", "Deferred"), "cpu=3000");
    check_pod(f, RESIZED("3", "2", "1", "Infeasible"), "cpu=2000");
    check_pod(f, RESIZED("3", "1", "2", "Infeasible"), "cpu=2000");
}

static void a_container_without_status_counts_by_its_spec(void **state)
{
    struct fixture *f = *state;
    check_pod(
        f,
        "{'spec':{'containers':[" CONTAINER(
            "a",
            "'requests':{'cpu':1}") "],"
                                    "'initContainers':[" SIDECAR(
                                        "s",
                                        "'requests':{'cpu':1}") "]},"
                                                                "'status':{'initContainerStatuses':"
                                                                "[{'name':'s','resources':{'"
                                                                "requests':"
                                                                "{'cpu':4}}}]}}",
        "cpu=5000");
    /* Unless the node has said that it can't do what spec asks for. */
    check_pod(f,
              "{'spec':{'containers':[" CONTAINER("a", "'requests':{'cpu':1}") "," CONTAINER(
                  "b", "'requests':{'cpu':7}") "]},"
                                               "'status':{'containerStatuses':[{'name':'b','"
                                               "allocatedResources':{'cpu':2}}],"
                                               "'conditions':[{'type':'PodResizePending','reason':'"
                                               "Infeasible'}]}}",
              "cpu=2000");
}

static void pod_level_status_replaces_the_sum_over_containers(void **state)
{
    struct fixture *f = *state;
    check_pod(f,
              "{'spec':{'containers':[" CONTAINER(
                  "a", "'requests':{'cpu':1}") "]},"
                                               "'status':{'allocatedResources':{'cpu':2},'"
                                               "resources':{'requests':{'cpu':3}},"
                                               "'containerStatuses':[{'name':'a','"
                                               "allocatedResources':{'cpu':9}}]}}",
              "cpu=3000");
    check_pod(f,
              "{'spec':{'resources':{'requests':{'cpu':2}},'containers':[{'name':'a'}]},"
              "'status':{'allocatedResources':{'cpu':3},'resources':{'requests':{'cpu':4,"
              "'memory':6}}}}",
              "cpu=4000 memory=6");
    check_pod(f,
              "{'spec':{'resources':{'requests':{'cpu':8}},'containers':[{'name':'a'}]},"
              "'status':{'allocatedResources':{'cpu':3},'resources':{'requests':{'cpu':4}},"
              "'conditions':[{'type':'PodResizePending','reason':'Infeasible'}]}}",
              "cpu=4000");
}

static void pod_level_status_counts_only_with_a_pod_level_request(void **state)
{
    struct fixture *f = *state;
    check_pod(f,
              "{'spec':{'resources':{'limits':{'cpu':3}},'containers':[" CONTAINER(
                  "a", "'requests':{'cpu':1}") "]},"
                                               "'status':{'resources':{'requests':{'cpu':9}}}}",
              "cpu=1000");
    check_pod(f,
              "{'spec':{'resources':{'requests':{'cpu':2}},'containers':[{'name':'a'}]},"
              "'status':{'allocatedResources':{'cpu':5},'resources':{'requests':{'cpu':4}}}}",
              "cpu=5000");
}

static void a_negative_amount_in_a_status_is_refused(void **state)
{
    struct fixture *f = *state;
    struct amount_list amounts;
    struct err err;
    struct pod *pod = pod_of(f, RESIZED("1", "-2", "1", ""));
    check_i64(pod_requests(&f->arena, pod, &amounts, &err).code, RC_INVALID);
    assert_string_equal(err.text, "container \"a\": status.allocatedResources[cpu] is -2, which is "
                                  "negative; it has to be 0 or more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pod_is_taken_as_it_is),
        TEST(while_resizing_the_largest_counts),
        TEST(a_container_without_status_counts_by_its_spec),
        TEST(pod_level_status_replaces_the_sum_over_containers),
        TEST(pod_level_status_counts_only_with_a_pod_level_request),
        TEST(a_negative_amount_in_a_status_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
