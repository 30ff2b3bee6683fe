#include "pod_fixture.h"

#include "tallyman/base/limits.h"

static void given_limit_range(struct fixture *f, const char *json)
{
    f->limit_ranges[f->context.limit_range_count++] = decoded(f, KIND_LIMIT_RANGE, json);
}

static void given_runtime_class(struct fixture *f, const char *json)
{
    f->context.runtime_class = decoded(f, KIND_RUNTIME_CLASS, json);
}

/* Of {'spec': …}: what a template of that spec takes. */
static void check_template(struct fixture *f, const char *json, const char *expected)
{
    struct amount_list amounts;
    struct err err;
    struct pod *pod = pod_of(f, json);
    if (rc_failed(pod_template_requests(&f->arena, &pod->spec, &f->context, &amounts, &err))) {
        fail_msg("%s", err.text);
    }
    check_str(amounts_text(f, &amounts), expected);
}

static void check_template_fails(struct fixture *f, const char *json, enum rc_code code,
                                 const char *expected)
{
    struct amount_list amounts = {.count = 7};
    struct err err;
    struct pod *pod = pod_of(f, json);
    struct rc rc = pod_template_requests(&f->arena, &pod->spec, &f->context, &amounts, &err);
    check_i64(rc.code, code);
    assert_string_equal(err.text, expected);
    check_i64(amounts.count, 7);
}

/* -- containers -------------------------------------------------------------------------------- */

static void containers_add_up(void **state)
{
    check_template(
        *state,
        "{'spec':{'containers':[" CONTAINER(
            "a", "'requests':{'cpu':'1500m','memory':"
                 "'1Gi'}") "," CONTAINER("b", "'requests':{'cpu':'1','example.com/gpu':2}") "]}}",
        "cpu=2500 example.com/gpu=2 memory=1073741824");
}

/* Sidecar before a plain init container: the two run together. */
static void a_sidecar_runs_beside_later_init_containers(void **state)
{
    check_template(
        *state,
        "{'spec':{'overhead':{'cpu':'500m'},"
        "'containers':[" CONTAINER(
            "main",
            "'requests':{'cpu':1}") "],"
                                    "'initContainers':[" SIDECAR(
                                        "side",
                                        "'requests':{'cpu':1}") "," CONTAINER("init",
                                                                              "'requests':{'cpu':"
                                                                              "2}") "]}}",
        "cpu=3500");
}

static void a_sidecar_does_not_run_beside_earlier_init_containers(void **state)
{
    check_template(
        *state,
        "{'spec':{'overhead':{'cpu':'500m'},"
        "'containers':[" CONTAINER(
            "main", "'requests':{'cpu':1}") "],"
                                            "'initContainers':[" CONTAINER(
                                                "init",
                                                "'requests':{'cpu':2}") "," SIDECAR("side",
                                                                                    "'requests':{'"
                                                                                    "cpu':1}") "]}"
                                                                                               "}",
        "cpu=2500");
}

static void the_larger_phase_is_taken_for_each_resource(void **state)
{
    check_template(
        *state,
        "{'spec':{'containers':[" CONTAINER(
            "main",
            "'requests':{'cpu':4,'example.com/gpu':1}") "],"
                                                        "'initContainers':[" CONTAINER(
                                                            "init",
                                                            "'requests':{'cpu':1,'memory':'1Gi','"
                                                            "example.com/gpu':2}") "]}}",
        "cpu=4000 example.com/gpu=2 memory=1073741824");
}

static void zero_and_pods_are_left_out(void **state)
{
    check_template(*state,
                   "{'spec':{'containers':[" CONTAINER("main",
                                                       "'requests':{'cpu':'0',"
                                                       "'example.com/gpu':0,'pods':1}") "]}}",
                   "");
}

static void the_sum_is_rounded_up_once(void **state)
{
    struct fixture *f = *state;
    check_template(
        f,
        "{'spec':{'containers':[" CONTAINER("a", "'requests':{'memory':'100m'}") "," CONTAINER(
            "b", "'requests':{'memory':'100m'}") "]}}",
        "memory=1");
    /* But each request by itself is one of thousandths, as the API server keeps it. */
    check_template(
        f,
        "{'spec':{'containers':[" CONTAINER("a", "'requests':{'cpu':'1u'}") "," CONTAINER(
            "b", "'requests':{'cpu':'1u'}") "]}}",
        "cpu=2");
}

static void a_huge_request_saturates(void **state)
{
    check_template(
        *state,
        "{'spec':{'containers':[" CONTAINER(
            "a", "'requests':{'cpu':'9223372036854775807','memory':"
                 "'5e18'}") "," CONTAINER("b", "'requests':{'cpu':'1e30','memory':'5e18'}") "]}}",
        "cpu=9223372036854775807 memory=9223372036854775807");
}

/* -- defaulting -------------------------------------------------------------------------------- */

static void limits_fill_requests_in_a_template(void **state)
{
    check_template(
        *state,
        "{'spec':{'containers':[" CONTAINER(
            "a", "'limits':{'cpu':1,'memory':'1Gi'},'requests':{'cpu':'"
                 "0'}") "],"
                        "'initContainers':[" CONTAINER("i", "'limits':{'example.com/gpu':1}") "]}}",
        "example.com/gpu=1 memory=1073741824");
}

static void a_limit_range_fills_an_empty_template(void **state)
{
    struct fixture *f = *state;
    given_limit_range(f, "{'metadata':{'name':'l'},'spec':{'limits':[{'type':'Container',"
                         "'default':{'cpu':1}}]}}");
    check_template(f, "{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}", "cpu=2000");
}

/* max -> default -> defaultRequest, and min for the rest; items of another type don't count. */
static void a_limit_range_is_completed_first(void **state)
{
    struct fixture *f = *state;
    given_limit_range(f,
                      "{'metadata':{'name':'l'},'spec':{'limits':["
                      "{'type':'Container','max':{'cpu':4,'memory':'4Gi','example.com/gpu':2},"
                      "'min':{'ephemeral-storage':'1Ki','memory':'1Mi'},'default':{'memory':'2Gi'},"
                      "'defaultRequest':{'cpu':'100m'}},"
                      "{'type':'Pod','max':{'cpu':64},'defaultRequest':{'cpu':32}}]}}");
    check_template(f, "{'spec':{'containers':[{'name':'a'}]}}",
                   "cpu=100 ephemeral-storage=1024 example.com/gpu=2 memory=2147483648");
}

static void the_items_of_a_limit_range_complete_each_other(void **state)
{
    struct fixture *f = *state;
    given_limit_range(f, "{'metadata':{'name':'a'},'spec':{'limits':["
                         "{'type':'Container','defaultRequest':{'cpu':1,'memory':7}},"
                         "{'type':'Container','defaultRequest':{'cpu':2}}]}}");
    check_template(f, "{'spec':{'containers':[{'name':'a'}]}}", "cpu=2000 memory=7");
}

/* The limits that LimitRanges give, from every item and object, count where pod-level huge pages
 * are made of limits. */
static void limits_of_limit_ranges_reach_the_pod_level(void **state)
{
    struct fixture *f = *state;
    given_limit_range(f, "{'metadata':{'name':'a'},'spec':{'limits':["
                         "{'type':'Container','default':{'hugepages-2Mi':'2Mi'}},"
                         "{'type':'Container','default':{'cpu':2}}]}}");
    given_limit_range(f, "{'metadata':{'name':'b'},'spec':{'limits':[{'type':'Container',"
                         "'default':{'hugepages-2Mi':'8Mi','hugepages-1Gi':'1Gi'}}]}}");
    check_template(f,
                   "{'spec':{'resources':{'requests':{'cpu':1}},'containers':[" CONTAINER(
                       "a", "'requests':{'hugepages-2Mi':0,'hugepages-1Gi':0}") "]}}",
                   "cpu=1000 hugepages-1Gi=1073741824 hugepages-2Mi=2097152");
}

static void the_first_limit_range_by_name_wins_and_the_last_item_in_it(void **state)
{
    struct fixture *f = *state;
    given_limit_range(f, "{'metadata':{'name':'a'},'spec':{'limits':["
                         "{'type':'Container','defaultRequest':{'cpu':1}},"
                         "{'type':'Container','defaultRequest':{'cpu':2}}]}}");
    given_limit_range(f, "{'metadata':{'name':'b'},'spec':{'limits':["
                         "{'type':'Container','defaultRequest':{'cpu':8,'memory':5}}]}}");
    check_template(f, "{'spec':{'containers':[{'name':'a'}]}}", "cpu=2000 memory=5");
}

/* The container's own limit has filled its request before a LimitRange is asked. */
static void a_container_limit_goes_before_a_limit_range(void **state)
{
    struct fixture *f = *state;
    given_limit_range(f, "{'metadata':{'name':'l'},'spec':{'limits':[{'type':'Container',"
                         "'default':{'cpu':4},'defaultRequest':{'cpu':'100m'}}]}}");
    check_template(f, "{'spec':{'containers':[" CONTAINER("a", "'limits':{'cpu':2}") "]}}",
                   "cpu=2000");
    check_template(f, "{'spec':{'containers':[" CONTAINER("a", "'requests':{'cpu':'0'}") "]}}", "");
}

/* The case that was tried on a real control plane: 2.1 + 0.3 against 2 + 0.3, and 0.25 more. */
static void all_of_it_together(void **state)
{
    struct fixture *f = *state;
    given_limit_range(f, "{'metadata':{'name':'l'},'spec':{'limits':[{'type':'Container',"
                         "'max':{'cpu':4},'default':{'memory':'1Gi'},"
                         "'defaultRequest':{'cpu':'100m'}}]}}");
    given_runtime_class(f, "{'metadata':{'name':'r'},'overhead':{'podFixed':{'cpu':'250m'}}}");
    check_template(
        f,
        "{'spec':{'containers':[{'name':'none'}," CONTAINER(
            "limit",
            "'limits':{'cpu':"
            "1}") "," CONTAINER("request", "'requests':{'cpu':1}") "],"
                                                                   "'initContainers':[" SIDECAR(
                                                                       "side",
                                                                       "'requests':{'cpu':'300m'"
                                                                       "}") "," CONTAINER("init",
                                                                                          "'limits'"
                                                                                          ":{'cpu':"
                                                                                          "2}") "]}"
                                                                                                "}",
        "cpu=2650 memory=4294967296");
}

static void overhead_in_the_spec_goes_before_the_runtime_class(void **state)
{
    struct fixture *f = *state;
    given_runtime_class(f, "{'metadata':{'name':'r'},'overhead':{'podFixed':{'cpu':'250m'}}}");
    check_template(f, "{'spec':{'overhead':{'cpu':'100m'},'containers':[{'name':'a'}]}}",
                   "cpu=100");
    check_template(f, "{'spec':{'containers':[{'name':'a'}]}}", "cpu=250");
    given_runtime_class(f, "{'metadata':{'name':'r'}}");
    check_template(f, "{'spec':{'containers':[{'name':'a'}]}}", "");
}

/* -- pod level --------------------------------------------------------------------------------- */

static void pod_level_requests_replace_what_containers_ask_for(void **state)
{
    check_template(*state,
                   "{'spec':{'overhead':{'cpu':'100m'},"
                   "'resources':{'requests':{'cpu':1,'hugepages-2Mi':'4Mi','example.com/gpu':5}},"
                   "'containers':[" CONTAINER("a", "'requests':{'cpu':3,'memory':7,"
                                                   "'example.com/gpu':1}") "]}}",
                   "cpu=1100 example.com/gpu=1 hugepages-2Mi=4194304 memory=7");
}

static void a_pod_level_limit_fills_only_what_no_container_asks_for(void **state)
{
    check_template(*state,
                   "{'spec':{'resources':{'limits':{'cpu':8,'memory':'1Gi'}},"
                   "'containers':[" CONTAINER("a", "'requests':{'cpu':3}") "]}}",
                   "cpu=3000 memory=1073741824");
}

/* Requests of huge pages that containers have don't reach the pod level, but their limits do. */
static void pod_level_huge_pages_come_from_container_limits(void **state)
{
    struct fixture *f = *state;
    check_template(f,
                   "{'spec':{'resources':{'limits':{'cpu':8}},'containers':[" CONTAINER(
                       "a", "'requests':{'hugepages-2Mi':'2Mi'},"
                            "'limits':{'hugepages-2Mi':'4Mi'}") "]}}",
                   "cpu=8000 hugepages-2Mi=4194304");
    check_template(
        f,
        "{'spec':{'resources':{'requests':{'hugepages-2Mi':'6Mi'}},'containers':[" CONTAINER(
            "a", "'limits':{'hugepages-2Mi':'4Mi'}") "]}}",
        "hugepages-2Mi=6291456");
}

static void empty_pod_level_resources_change_nothing(void **state)
{
    check_template(*state,
                   "{'spec':{'resources':{},'containers':[" CONTAINER(
                       "a", "'requests':{'hugepages-2Mi':'2Mi'},"
                            "'limits':{'hugepages-2Mi':'4Mi'}") "]}}",
                   "hugepages-2Mi=2097152");
}

/* -- refusals ---------------------------------------------------------------------------------- */

static void a_negative_amount_is_refused_by_name(void **state)
{
    struct fixture *f = *state;
    check_template_fails(f,
                         "{'spec':{'containers':[{'name':'ok'}," CONTAINER(
                             "bad", "'requests':{'cpu':'-500m'}") "]}}",
                         RC_INVALID,
                         "container \"bad\": resources.requests[cpu] is -500m, which is negative; "
                         "it has to be 0 or more");
    check_template_fails(f,
                         "{'spec':{'containers':[{'name':'ok'}],'initContainers':[" CONTAINER(
                             "bad", "'limits':{'example.com/gpu':-1}") "]}}",
                         RC_INVALID,
                         "init container \"bad\": resources.limits[example.com/gpu] is -1, which "
                         "is negative; it has to be 0 or more");
    check_template_fails(f,
                         "{'spec':{'containers':[{'name':'ok'}],"
                         "'resources':{'requests':{'memory':'-1Gi'}}}}",
                         RC_INVALID,
                         "pod: resources.requests[memory] is -1Gi, which is negative; it has to be "
                         "0 or more");
    check_template_fails(f, "{'spec':{'containers':[],'overhead':{'cpu':'-1n'}}}", RC_INVALID,
                         "pod: overhead[cpu] is -1n, which is negative; it has to be 0 or more");
    given_limit_range(f, "{'metadata':{'name':'l'},'spec':{'limits':[{'type':'Container',"
                         "'min':{'cpu':-1}}]}}");
    check_template_fails(f, "{'spec':{'containers':[{'name':'ok'}]}}", RC_INVALID,
                         "LimitRange \"l\": min[cpu] is -1, which is negative; it has to be 0 or "
                         "more");
}

static struct str many_resources(struct fixture *f, int count)
{
    struct text text;
    text_init(&text, &f->arena, 1u << 20);
    text_addf(&text, "{'spec':{'containers':[{'name':'a','resources':{'requests':{");
    for (int i = 0; i < count; i++) {
        text_addf(&text, "%s'example.com/r%d':1", i == 0 ? "" : ",", i);
    }
    text_addf(&text, "}}}]}}");
    return text_str(&text);
}

static void the_number_of_resources_is_bounded(void **state)
{
    struct fixture *f = *state;
    struct amount_list amounts;
    struct pod *pod = pod_of(f, many_resources(f, POD_RESOURCES_MAX).ptr);
    assert_false(
        rc_failed(pod_template_requests(&f->arena, &pod->spec, &f->context, &amounts, NULL)));
    check_i64(amounts.count, POD_RESOURCES_MAX);
    check_template_fails(f, many_resources(f, POD_RESOURCES_MAX + 1).ptr, RC_LIMIT,
                         "more than 128 different resources are named; one pod may name at most "
                         "that many");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(containers_add_up),
        TEST(a_sidecar_runs_beside_later_init_containers),
        TEST(a_sidecar_does_not_run_beside_earlier_init_containers),
        TEST(the_larger_phase_is_taken_for_each_resource),
        TEST(zero_and_pods_are_left_out),
        TEST(the_sum_is_rounded_up_once),
        TEST(a_huge_request_saturates),
        TEST(limits_fill_requests_in_a_template),
        TEST(a_limit_range_fills_an_empty_template),
        TEST(a_limit_range_is_completed_first),
        TEST(the_items_of_a_limit_range_complete_each_other),
        TEST(limits_of_limit_ranges_reach_the_pod_level),
        TEST(the_first_limit_range_by_name_wins_and_the_last_item_in_it),
        TEST(a_container_limit_goes_before_a_limit_range),
        TEST(all_of_it_together),
        TEST(overhead_in_the_spec_goes_before_the_runtime_class),
        TEST(pod_level_requests_replace_what_containers_ask_for),
        TEST(a_pod_level_limit_fills_only_what_no_container_asks_for),
        TEST(pod_level_huge_pages_come_from_container_limits),
        TEST(empty_pod_level_resources_change_nothing),
        TEST(a_negative_amount_is_refused_by_name),
        TEST(the_number_of_resources_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
