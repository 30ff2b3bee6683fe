/* Searches for devices that are too long, whatever makes them so: nobody knows then for how many
 * pods the devices are enough, which is said, and nobody else waits for the answer meanwhile. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS    "gpu.example.com"
#define OF_CLASS "\"deviceClassName\":\"" CLASS "\""
#define SELECT   ",\"selectors\":[{\"cel\":{\"expression\":\"device.attributes['" CLASS "']."

/* JSON that is written piece by piece. */
struct json {
    char *text;
    size_t size;
    FILE *out;
};

static void json_begin(struct json *json)
{
    json->out = open_memstream(&json->text, &json->size);
    assert_non_null(json->out);
}

static void json_end(struct scenario *s, struct json *json, enum object_kind kind)
{
    fclose(json->out);
    given_json(s, kind, json->text);
    free(json->text);
}

static void slice_begin(struct json *json, const char *name, const char *node)
{
    json_begin(json);
    fprintf(json->out,
            "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"driver\":\"" CLASS
            "\",\"nodeName\":\"%s\",\"pool\":{\"name\":\"%s\",\"generation\":1,"
            "\"resourceSliceCount\":1},\"devices\":[",
            name, node, name);
}

static void slice_end(struct scenario *s, struct json *json)
{
    fputs("]}}", json->out);
    json_end(s, json, KIND_RESOURCE_SLICE);
}

/* Devices g<first>, … of that NUMA node, none with the serial number of another. */
static void add_devices(struct json *json, int first, int count, int numa)
{
    for (int i = first; i < first + count; i++) {
        fprintf(json->out,
                "{\"name\":\"g%d\",\"attributes\":{\"numa\":{\"int\":%d},\"serial\":{\"int\":%d},"
                "\"odd\":{\"bool\":false}}},",
                i, numa, i);
    }
}

static void add_odd(struct json *json, int serial, int numa)
{
    fprintf(json->out,
            "{\"name\":\"odd%d\",\"attributes\":{\"numa\":{\"int\":%d},\"serial\":{\"int\":%d},"
            "\"odd\":{\"bool\":true}}}",
            serial, numa, serial);
}

/* Eight devices and an odd one, of one NUMA node, and no two with one serial number. */
static void given_nine(struct scenario *s)
{
    struct json json;
    json_begin(&json);
    fputs("{\"metadata\":{\"name\":\"nine\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":[{"
          "\"name\":\"m\",\"exactly\":{" OF_CLASS SELECT
          "odd == false\"}}],\"count\":8}},{\"name\":\"o\",\"exactly\":{" OF_CLASS SELECT
          "odd\"}}]}}],\"constraints\":[{\"matchAttribute\":\"" CLASS
          "/numa\"},{\"distinctAttribute\":\"" CLASS "/serial\"}]}}}}",
          json.out);
    json_end(s, &json, KIND_RESOURCE_CLAIM_TEMPLATE);
}

static void given_world(struct scenario *s)
{
    given_node(s, "n1", "cpu=100 pods=110");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_queue(s, "q", "cpu=1000 gpu.example.com=1000");
}

/* Seven requests that are met by all of one of eight kinds, in whichever way, and one for a device
 * that isn't there: two million ways, and no single device is looked for in any of them. */
static void alternatives_of_all_devices_are_too_many(void **state)
{
    enum { REQUESTS = 7, KINDS = 8 };
    struct scenario *s = *state;
    given_world(s);
    struct json slice;
    slice_begin(&slice, "s", "n1");
    for (int i = 0; i < KINDS * REQUESTS; i++) {
        fprintf(slice.out, "%s{\"name\":\"g%d\",\"attributes\":{\"kind\":{\"int\":%d}}}",
                i == 0 ? "" : ",", i, i);
    }
    slice_end(s, &slice);
    struct json ask;
    json_begin(&ask);
    fputs("{\"metadata\":{\"name\":\"ask\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":[",
          ask.out);
    for (int i = 0; i < KINDS * REQUESTS; i++) {
        if (i % KINDS == 0) {
            fprintf(ask.out, "{\"name\":\"r%d\",\"firstAvailable\":[", i);
        }
        fprintf(ask.out,
                "{\"name\":\"a%d\"," OF_CLASS ",\"allocationMode\":\"All\"" SELECT
                "kind == %d\"}}]}%s",
                i, i, i % KINDS == KINDS - 1 ? "]}," : ",");
    }
    fputs("{\"name\":\"last\",\"exactly\":{" OF_CLASS SELECT "kind == 99\"}}]}}]}}}}", ask.out);
    json_end(s, &ask, KIND_RESOURCE_CLAIM_TEMPLATE);
    given_job(s, "gang", "q", "pods=1 template=ask");
    expect_state(s, "gang", "Pending NodeShape");
    expect_message(s, "gang", "ResourceClaimTemplate ml/ask could be met in too many ways");
}

/* Where two nodes took much no further one may: it is given up on while its devices, of which no
 * two are alike, are still compared with each other. */
static void devices_of_a_later_node_are_not_all_compared(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_node(s, "n2", "cpu=100 pods=110");
    given_node(s, "n3", "cpu=100 pods=110");
    given_nine(s);
    const char *nodes[] = {"n1", "n2", "n3"};
    const int counts[] = {20, 20, 300};
    for (int i = 0; i < 3; i++) {
        struct json slice;
        slice_begin(&slice, nodes[i], nodes[i]);
        add_devices(&slice, 0, counts[i], 0);
        add_odd(&slice, 1000, 1);
        slice_end(s, &slice);
    }
    given_job(s, "gang", "q", "pods=1 template=nine");
    expect_state(s, "gang", "Pending NodeShape");
    expect_message(s, "gang", "ResourceClaimTemplate ml/nine could be met in too many ways");
}

/* In whatever order the slices come the first pod finds its devices at once. For the second the
 * search is too long, so that nobody knows whether there could be two. */
static void later_pod_of_unknown_order_is_too_hard(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_nine(s);
    struct json slice;
    slice_begin(&slice, "s1", "n1");
    add_devices(&slice, 0, 14, 0);
    add_odd(&slice, 100, 0);
    slice_end(s, &slice);
    slice_begin(&slice, "s2", "n1");
    add_devices(&slice, 50, 14, 0);
    add_odd(&slice, 101, 1);
    slice_end(s, &slice);
    given_job(s, "one", "q", "pods=1 template=nine");
    expect_state(s, "one", "Admitted");
    object_gone(s, KIND_JOB, "one");
    given_job(s, "gang", "q", "pods=2 template=nine min=1 partial=true");
    expect_state(s, "gang", "Pending NodeShape");
    expect_message(s, "gang", "ResourceClaimTemplate ml/nine could be met in too many ways");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(alternatives_of_all_devices_are_too_many),
        scenario_test(devices_of_a_later_node_are_not_all_compared),
        scenario_test(later_pod_of_unknown_order_is_too_hard),
    };
    return cmocka_run_group_tests_name("allocate_long", tests, NULL, NULL);
}
