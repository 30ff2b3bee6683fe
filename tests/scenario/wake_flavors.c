/* Several flavors, and several groups of them: a release of any account that a gang was short of
 * wakes it, however many there are. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

enum { FLAVORS = 20 }; /* SHORTAGES_MAX and some */

static void given_flavors(struct scenario *s, const char *more)
{
    char name[40];
    for (int i = 0; i < FLAVORS; i++) {
        (void)snprintf(name, sizeof(name), "f%02d", i);
        given_flavor(s, name, "");
    }
    char options[1200] = "fit=Quota";
    int len = (int)sizeof("fit=Quota") - 1;
    for (int i = 0; i < FLAVORS; i++) {
        len += snprintf(options + len, sizeof(options) - (size_t)len, " flavor=f%02d cpu=2", i);
    }
    (void)snprintf(options + len, sizeof(options) - (size_t)len, "%s", more);
    given_queue(s, "q", options);
    for (int i = 0; i < FLAVORS; i++) {
        (void)snprintf(name, sizeof(name), "on-%02d", i);
        given_job(s, name, "q", "pods=2 cpu=1 created=0");
    }
    scenario_start(s);
}

/* All are full: whichever comes free, the first and the last among them. */
static void whichever_of_many_comes_free(void **state)
{
    struct scenario *s = *state;
    given_flavors(s, "");
    given_job(s, "first", "q", "pods=2 cpu=1 created=1000");
    given_job(s, "second", "q", "pods=1 cpu=2 created=2000");
    given_job(s, "third", "q", "pods=1 cpu=1 created=3000");
    expect_state(s, "first", "Pending QuotaExhausted");
    job_finishes(s, "on-19");
    expect_state(s, "first", "Admitted");
    expect_state(s, "second", "Pending QuotaExhausted");
    job_finishes(s, "on-00");
    expect_state(s, "second", "Admitted");
    job_finishes(s, "on-07");
    expect_state(s, "third", "Admitted");
}

/* The same account stands in the way of both choices of the other group. */
static void one_account_in_the_way_of_two_choices(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "f", "");
    given_flavor(s, "g", "");
    given_flavor(s, "h", "");
    given_queue(s, "q",
                "fit=Quota flavor=f cpu=4 group=new flavor=g memory=4Gi flavor=h memory=4Gi");
    given_job(s, "runs", "q", "pods=3 cpu=1 memory=1Gi created=0");
    scenario_start(s);
    given_job(s, "waits", "q", "pods=2 cpu=1 memory=1Gi created=1000");
    given_job(s, "more", "q", "pods=3 cpu=1 memory=1Gi created=2000");
    expect_state(s, "waits", "Pending QuotaExhausted");
    job_finishes(s, "runs");
    expect_state(s, "waits", "Admitted");
    expect_state(s, "more", "Pending QuotaExhausted");
    job_finishes(s, "waits");
    expect_state(s, "more", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(whichever_of_many_comes_free),
        scenario_test(one_account_in_the_way_of_two_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
