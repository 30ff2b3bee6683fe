/* selector_cost.h - a cluster with devices whose selectors are costly to try. */
#pragma once

#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#include "tallyman/base/limits.h"

#define CLASS   "gpu.example.com"
#define BUDGET  40000
#define TRIAL   120000 /* the costliest costs less */
#define TICKS   10000  /* more than anything takes */
#define DEVICES 20

/* Says `answer` when it has cost some 90,000 units. `salt` tells them apart. */
static UNUSED const char *costly(char text[2048], const char *answer, int salt)
{
    int len = 0;
    const char *names[] = {"a", "b", "c"};
    const int counts[] = {50, 50, 4};
    for (int i = 0; i < 3; i++) {
        len += snprintf(text + len, 2048 - (size_t)len, "[");
        for (int j = 0; j < counts[i]; j++) {
            len += snprintf(text + len, 2048 - (size_t)len, "%s%d", j == 0 ? "" : ",", j % 10);
        }
        len += snprintf(text + len, 2048 - (size_t)len, "].all(%s, ", names[i]);
    }
    (void)snprintf(text + len, 2048 - (size_t)len, "a+b+c >= 0))) && %d >= 0 && %s", salt, answer);
    return text;
}

static UNUSED void given_costly_class(struct scenario *s, const char *name, const char *answer,
                                      int salt)
{
    char text[2048];
    given_class(s, name, costly(text, answer, salt));
    given_template(s, name, name, 1);
}

/* A claim of all such devices of the node. */
static UNUSED void given_template_of_all(struct scenario *s, const char *name,
                                         const char *class_name)
{
    char json[512];
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":["
                   "{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"%s\","
                   "\"allocationMode\":\"All\"}}]}}}}",
                   name, class_name);
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE, json);
}

static UNUSED void given_devices_of(struct scenario *s, const char *node, int count)
{
    char words[512] = ""; /* of 100 devices */
    for (int i = 0, len = 0; i < count; i++) {
        len += snprintf(words + len, sizeof(words) - (size_t)len, "g%d ", i);
    }
    given_devices(s, node, words);
}

static UNUSED void given_cluster(struct scenario *s)
{
    given_node(s, "n1", "cpu=64");
    given_devices_of(s, "n1", DEVICES);
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "plain", CLASS, 1);
    given_costly_class(s, "costly.x", "true", 0);
    given_queue(s, "q", "cpu=100 costly.x=100 gpu.example.com=100 never.x=100");
    given_queue(s, "strict", "cpu=100 costly.x=100 gpu.example.com=100 strategy=StrictFIFO");
    scenario_start(s);
    (void)wakes_at_once(s, TICKS);
    (void)counts_take(s);
}

static UNUSED void expect_bounded(struct scenario *s)
{
    struct scenario_counts counts = counts_take(s);
    assert_true(counts.most_selector_cost <= BUDGET + TRIAL);
}

static UNUSED int try_in_steps(void **state)
{
    scenarios_try_selectors(BUDGET);
    return scenario_setup(state);
}

#define stepwise_test(fn) cmocka_unit_test_setup_teardown(fn, try_in_steps, scenario_teardown)
