/* job_status.c - what the Job controller writes into a Job's status, and when. */
#include "sim_internal.h"

#include <stdlib.h>

#include "tallyman/base/text.h"

static int compare_index(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* "0,2-4" of the indexes whose pods succeeded. */
static struct str completed_indexes(struct sim *sim, const struct sim_object *job,
                                    int64_t succeeded)
{
    int64_t *indexes = ARENA_ARRAY(&sim->scratch, int64_t, (size_t)succeeded + 1);
    size_t count = 0;
    for (const struct sim_object *item = job->job.pods; item != NULL;
         item = item->pod.next_in_job) {
        if (str_eq_c(object_pod(item)->status.phase, "Succeeded") && item->pod.index >= 0) {
            indexes[count++] = item->pod.index;
        }
    }
    if (count == 0) {
        return STR_NONE;
    }
    qsort(indexes, count, sizeof(*indexes), compare_index);
    struct text text;
    text_init(&text, &sim->scratch, 1024 * 1024);
    for (size_t from = 0; from < count;) {
        size_t to = from;
        while (to + 1 < count && indexes[to + 1] <= indexes[to] + 1) {
            to++;
        }
        text_addf(&text, "%s%lld", from == 0 ? "" : ",", (long long)indexes[from]);
        if (indexes[to] > indexes[from]) {
            text_addf(&text, "-%lld", (long long)indexes[to]);
        }
        from = to + 1;
    }
    return text_str(&text);
}

static struct gang_size size_of(struct sim *sim, const struct job *job)
{
    struct gang_size size = {.pods = 1, .min_count = 1};
    struct err err;
    if (rc_failed(job_gang_size(&sim->scratch, job, &size, &err))) {
        size = (struct gang_size){.pods = 1, .min_count = 1};
    }
    return size;
}

struct gang_size job_live_size(struct sim *sim, const struct sim_object *job,
                               const struct job_count *count)
{
    struct job now = *object_job(job);
    now.status.succeeded = (struct opt_int){true, count->succeeded};
    now.status.active = (struct opt_int){true, count->active};
    now.status.completed_indexes = completed_indexes(sim, job, count->succeeded);
    return size_of(sim, &now);
}

int64_t job_min_count(struct sim *sim, const struct sim_object *job)
{
    struct job fresh = *object_job(job);
    fresh.status = (struct job_status){.active = {.is_set = false}};
    return size_of(sim, &fresh).min_count;
}

static void set_condition(struct sim *sim, struct job_status *status, const char *type,
                          bool is_true, const char *reason, const char *message)
{
    struct condition condition = {.type = str_from_c(type),
                                  .status = str_from_c(is_true ? "True" : "False"),
                                  .reason = str_from_c(reason),
                                  .message = str_from_c(message)};
    status->conditions = api_condition_with(sim, &status->conditions, &condition);
}

static void set_suspended(struct sim *sim, const struct job *job, struct job_status *status)
{
    bool was_suspended = condition_is_true(&status->conditions, "Suspended");
    if (job_is_suspended(job)) {
        if (!was_suspended) {
            set_condition(sim, status, "Suspended", true, "JobSuspended", "Job suspended");
        }
        status->start_time = (struct opt_time){.is_set = false};
        return;
    }
    if (was_suspended) {
        set_condition(sim, status, "Suspended", false, "JobResumed", "Job resumed");
    }
    if (!status->start_time.is_set) {
        status->start_time = (struct opt_time){true, sim_clock_ms(sim)};
    }
}

/* True when nothing runs any more and the Job is over. */
static bool set_end(struct sim *sim, const struct job *job, struct job_status *status,
                    const struct job_count *count)
{
    if (count->active > 0 || count->terminating > 0) {
        return false;
    }
    if (!status->start_time.is_set) {
        return false; /* the API server refuses the end of a Job that has none */
    }
    const struct condition *target = condition_find(&status->conditions, "FailureTarget");
    if (target != NULL) {
        struct condition failed = {
            .type = STR("Failed"), .status = STR("True"), .reason = target->reason};
        status->conditions = api_condition_with(sim, &status->conditions, &failed);
        return true;
    }
    bool is_complete = job->spec.completions.is_set
                           ? count->succeeded >= job->spec.completions.value
                           : count->succeeded > 0;
    if (!is_complete || (job_is_suspended(job) && !job->spec.completions.is_set)) {
        return false;
    }
    set_condition(sim, status, "SuccessCriteriaMet", true, "CompletionsReached", "");
    set_condition(sim, status, "Complete", true, "CompletionsReached",
                  "Reached expected number of succeeded pods");
    status->completion_time = (struct opt_time){true, sim_clock_ms(sim)};
    return true;
}

static void watch_deadline(struct sim *sim, struct sim_object *job)
{
    const struct job *object = object_job(job);
    if (object->spec.active_deadline_seconds.is_set && object->status.start_time.is_set) {
        int64_t end_ms =
            object->status.start_time.ms + object->spec.active_deadline_seconds.value * 1000;
        if (end_ms > sim_clock_ms(sim)) {
            job_sync_soon(sim, job, end_ms - sim_clock_ms(sim));
        }
    }
}

/* The TTL controller's. */
static void delete_finished(struct sim *sim, struct task *task)
{
    struct sim_object *job = api_find_uid(sim, task->uid);
    if (job != NULL) {
        api_delete(sim, job);
    }
}

bool job_write_status(struct sim *sim, struct sim_object *job, const struct job_count *count)
{
    const struct job *object = object_job(job);
    struct job next = *object;
    struct job_status *status = &next.status;
    status->active = (struct opt_int){count->active > 0, count->active};
    status->ready = (struct opt_int){true, count->ready};
    status->terminating = (struct opt_int){true, count->terminating};
    status->succeeded = (struct opt_int){count->succeeded > 0, count->succeeded};
    int64_t failed = count->failed + job->job.lost_pods;
    status->failed = (struct opt_int){failed > 0, failed};
    if (str_eq_c(object->spec.completion_mode, "Indexed")) {
        status->completed_indexes = completed_indexes(sim, job, count->succeeded);
    }
    set_suspended(sim, object, status);
    bool is_over = set_end(sim, object, status, count);
    api_update(sim, job, &next, false);
    if (is_over) {
        const struct condition *why = condition_find(&object_job(job)->status.conditions, "Failed");
        struct str text = STR("Complete");
        if (why != NULL) {
            text = arena_format(&sim->scratch, "Failed: " STR_FMT, STR_ARG(why->reason));
        }
        sim_tell(sim, SIM_JOB_FINISHED, job, NULL, STR_NONE, text);
        const struct opt_int *ttl = &object_job(job)->spec.ttl_seconds_after_finished;
        if (ttl->is_set) {
            int64_t ttl_ms = sat_mul(ttl->value, 1000);
            (void)agenda_add(sim, sat_add(sim->now_ms, ttl_ms), delete_finished, job->uid);
        }
    } else {
        watch_deadline(sim, job);
    }
    return is_over;
}
