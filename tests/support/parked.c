/* parked.c - see parked.h. */
#include "support/parked.h"

#include <stdio.h>

#include "support/check.h"

void expect_woken(struct scenario *s, uint32_t shapes)
{
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.shapes_woken, shapes);
    assert_int_equal(counts.gangs_visited, shapes);
}

void given_bystander(struct scenario *s)
{
    given_node(s, "n0", "cpu=1 label=for:bystander");
    given_queue(s, "elsewhere", "cpu=1");
    given_job(s, "runner", "elsewhere", "pods=1 cpu=1 selector=for:bystander created=0");
    given_job(s, "bystander", "elsewhere", "pods=1 cpu=1 selector=for:bystander created=1000");
    scenario_start(s);
    gang_starts(s, "runner", "n0");
}

void parked(struct scenario *s)
{
    expect_state(s, "bystander", "Pending QuotaExhausted");
    at(s, MINUTE);
    (void)counts_take(s);
    at(s, 5 * MINUTE); /* and no polling */
    expect_nobody_woken(s);
}

const char *cohort_of_one(const char *name)
{
    static char json[300];
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"resourceGroups\":[{\"flavors\":[{"
                   "\"name\":\"default\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":"
                   "\"1\"}]}]}]}}",
                   name);
    return json;
}
