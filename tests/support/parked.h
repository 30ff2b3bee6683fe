/* parked.h - gangs that wait while nothing happens, and how many are looked at when something does.
 */
#pragma once

#include "support/scenario.h"

#define MINUTE ((int64_t)60 * 1000)

/* So many shapes were woken, and as many gangs judged, since the last call. */
void expect_woken(struct scenario *s, uint32_t shapes);
#define expect_nobody_woken(s) expect_woken((s), 0)
/* A gang that waits for another queue's gang to end: it is no matter to anything else. */
void given_bystander(struct scenario *s);
/* Lets everything come to rest, and counts from there. */
void parked(struct scenario *s);
/* The JSON of a Cohort with a quota of one cpu; static, until the next call. */
const char *cohort_of_one(const char *name);
