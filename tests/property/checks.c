/* Admission checks under random users, autoscalers and restarts: a controller that starts anew
 * decides as the one that ran on, nobody is asked twice, and no request is left that nobody wants.
 */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/property.h"
#include "support/scenario_internal.h"

enum check_op {
    OP_NEW = 0,
    OP_NEW_TOO,
    OP_SAYS,
    OP_SAYS_TOO,
    OP_STARTS,
    OP_STOPS,
    OP_TIME,
    OP_HOLD,
    OP_RESIZE,
    OP_DELETE,
    OP_REQUEST_GONE,
    OP_QUOTA,
    OP_CONFIG,
    OP_COUNT,
};

static const char *const op_names[OP_COUNT] = {"new",          "new",   "says",  "says",   "starts",
                                               "stops",        "time",  "hold",  "resize", "delete",
                                               "request-gone", "quota", "config"};

#define JOBS 5

static const char *const shapes[] = {"pods=2 cpu=1",
                                     "pods=3 cpu=1",
                                     "pods=1 cpu=2",
                                     "pods=4 cpu=1 min=2 partial=true",
                                     "pods=2 cpu=1 priority=high",
                                     "pods=5 cpu=1"};

static const char *const configs[] = {
    "check=a.example.com base=30s max=2m limit=3 check-timeout=3m timeout=2m within=LowerPriority",
    "check=b.example.com base=30s max=2m check-timeout=0s timeout=2m within=LowerPriority",
    "fit=Quota base=30s max=2m timeout=2m within=LowerPriority",
};

static int quota = 6;
static unsigned config;

static void queue_is(struct scenario *s)
{
    char text[200];
    (void)snprintf(text, sizeof(text), "cpu=%d %s", quota, configs[config]);
    given_queue(s, "q", text);
}

static struct job *job_at(struct scenario *s, const struct op *op, char name[16])
{
    (void)snprintf(name, 16, "j%d", op->a % JOBS);
    struct entry *entry = entry_find(s, KIND_JOB, name);
    return entry == NULL ? NULL : (struct job *)entry->value;
}

static int pods_of(struct scenario *s, const struct job *job)
{
    int count = 0;
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        if (entry->kind == KIND_POD) {
            count += str_eq(meta_controller(entry->value)->uid, job->meta.uid) ? 1 : 0;
        }
    }
    return count;
}

/* The autoscaler, about one request. */
static void says(struct scenario *s, const struct op *op)
{
    static const char *const conditions[] = {"!Provisioned", "Provisioned",    "Provisioned",
                                             "Failed",       "BookingExpired", "CapacityRevoked",
                                             "Accepted"};
    char name[16];
    if (job_at(s, op, name) != NULL && request_of(s, name) != NULL) {
        request_says_that(s, request_of(s, name), conditions[op->b % ARRAY_COUNT(conditions)],
                          "as it is");
    }
}

static void starts(struct scenario *s, const char *name, const struct job *job)
{
    bool is_up = !job->spec.suspend.value && pods_of(s, job) == 0;
    if (is_up) {
        static const char nodes[] = "n n n n n n n n";
        int64_t pods = job->spec.parallelism.value;
        gang_starts(s, name, nodes + sizeof(nodes) - 2 * (size_t)pods);
    }
}

static void stops(struct scenario *s, const char *name, const struct job *job)
{
    if (job->spec.suspend.value && (pods_of(s, job) > 0 || job->status.start_time.is_set)) {
        gang_stops(s, name);
    }
}

static void about_job(struct scenario *s, const struct op *op)
{
    char name[16];
    struct job *job = job_at(s, op, name);
    if (job == NULL) {
        return;
    }
    bool is_idle = job->spec.suspend.value && pods_of(s, job) == 0;
    switch ((int)op->kind) {
    case OP_STARTS:
        starts(s, name, job);
        break;
    case OP_STOPS:
        stops(s, name, job);
        break;
    case OP_HOLD:
        job_annotated(s, name, "tallyman.dev/hold", op->b % 2 == 0 ? "true" : NULL);
        break;
    case OP_RESIZE:
        if (is_idle) {
            job_resized(s, name, 1 + op->b % 4, 1 + op->b % 4);
        }
        break;
    case OP_DELETE:
        if (is_idle) {
            job_deleted_now(s, name);
        }
        break;
    default:
        if (request_of(s, name) != NULL) {
            object_gone(s, KIND_PROVISIONING_REQUEST, request_of(s, name));
        }
        break;
    }
}

static void do_op(struct scenario *s, const struct op *op)
{
    char name[16];
    switch ((int)op->kind) {
    case OP_NEW:
    case OP_NEW_TOO:
        if (job_at(s, op, name) == NULL) {
            given_job(s, name, "q", shapes[op->b % ARRAY_COUNT(shapes)]);
        }
        break;
    case OP_SAYS:
    case OP_SAYS_TOO:
        says(s, op);
        break;
    case OP_TIME:
        at(s, scenario_now_ms(s) + 1 + op->a * 500);
        break;
    case OP_QUOTA:
    case OP_CONFIG:
        config = op->kind == OP_CONFIG ? op->b % ARRAY_COUNT(configs) : config;
        quota = op->kind == OP_QUOTA ? 3 + op->b % 6 : quota;
        queue_is(s);
        break;
    default:
        about_job(s, op);
        break;
    }
}

/* Of a Job that is gone nothing is asked any more: the garbage collector has its requests. */
static void collect(struct scenario *s)
{
    struct entry *next;
    for (struct entry *entry = s->first; entry != NULL; entry = next) {
        next = entry->next;
        if (entry->kind != KIND_PROVISIONING_REQUEST) {
            continue;
        }
        char owner[64];
        (void)snprintf(owner, sizeof(owner), STR_FMT, STR_ARG(meta_controller(entry->value)->name));
        const struct entry *job = entry_find(s, KIND_JOB, owner);
        if (job == NULL || !str_eq(job->value->uid, meta_controller(entry->value)->uid)) {
            tell_gone(s, entry);
            next = s->first;
        }
    }
}

static bool is_over(const struct provisioning_request *request)
{
    const struct condition_list *list = &request->status.conditions;
    return condition_is_true(list, "Failed") || condition_is_true(list, "BookingExpired") ||
           condition_is_true(list, "CapacityRevoked");
}

static void check_requests(struct scenario *s)
{
    for (int i = 0; i < JOBS; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "j%d", i);
        const struct entry *admission = entry_find(s, KIND_ADMISSION, name);
        int count = entry_find(s, KIND_JOB, name) == NULL ? 0 : requests_of(s, name);
        if (count > 1) {
            fail_msg("%s has %d requests\n%s", name, count, trace_text(s));
        }
        if (admission == NULL || count == 0) {
            continue;
        }
        const struct admission_status *status =
            &((const struct admission *)admission->value)->status;
        const struct provisioning_request *request =
            scenario_object(s, KIND_PROVISIONING_REQUEST, request_of(s, name));
        bool is_wanted = !str_eq_c(status->state, "Pending") && !str_eq_c(status->state, "Held");
        if (!is_wanted && !is_over(request)) {
            fail_msg("%s is " STR_FMT " and has a request that waits\n%s", name,
                     STR_ARG(status->state), trace_text(s));
        }
    }
}

static void compare(struct scenario *s, const char *before)
{
    const char *after = decisions_text(s);
    if (strcmp(before, after) != 0) {
        print_error("before the restart\n%s", before);
        print_error("after it\n%s", after);
        fail();
    }
}

static void a_restart_decides_the_same(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct scenario *s = scenario_new();
    quota = 6;
    config = 0;
    checks_are_cheap(s); /* a gang and the victims of the next one may be charged in one step */
    given_node(s, "n", "cpu=100");
    given_priority_class(s, "high", 10);
    queue_is(s);
    for (uint32_t i = 0; i < count; i++) {
        do_op(s, &ops[i]);
        collect(s);
        core_assert_consistent(scenario_core(s));
        check_requests(s);
    }
    at(s, scenario_now_ms(s) + 1);
    puts(trace_text(s));
    const char *before = decisions_text(s);
    for (uint64_t i = 0; i < 3; i++) {
        listing_order(s, seed * 31 + i);
        restart(s, WITH_ADMISSIONS);
        compare(s, before);
        check_requests(s);
    }
    scenario_free(s);
}

int main(void)
{
    const struct property checks = {.name = "a restart takes admission checks up where they were",
                                    .cases = 1500,
                                    .ops = 40,
                                    .kinds = OP_COUNT,
                                    .kind_names = op_names,
                                    .run = a_restart_decides_the_same};
    return property_check(&checks);
}
