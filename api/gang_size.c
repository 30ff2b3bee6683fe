#include "tallyman/api/pod_request.h"

#include "schema.h"

#include <inttypes.h>

#define MIN_COUNT_ANNOTATION    "tallyman.dev/min-count"
#define PARTIAL_ANNOTATION      "tallyman.dev/partial"
#define LAST_APPLIED_ANNOTATION "kubectl.kubernetes.io/last-applied-configuration"
#define MIN_COUNT_FIELD         "spec.scheduling.schedulingPolicy.gang.minCount"
#define SHOWN_VALUE_MAX_BYTES   64

/* -- the field that the API server prunes ------------------------------------------------------ */

/* What kubectl applied last, as far as the gang's size goes. */
struct applied_spec {
    struct job_scheduling *scheduling;
};

struct applied_job {
    struct applied_spec spec;
};

static const struct field gang_policy_fields[] = {
    F_INT(gang_policy, min_count, "minCount"),
};
static SCHEMA(gang_policy);

static const struct field scheduling_policy_fields[] = {
    F_OBJECT_PTR(scheduling_policy, gang, "gang", gang_policy),
};
static SCHEMA(scheduling_policy);

static const struct field job_scheduling_fields[] = {
    F_OBJECT_PTR(job_scheduling, scheduling_policy, "schedulingPolicy", scheduling_policy),
};
static SCHEMA(job_scheduling);

static const struct field applied_spec_fields[] = {
    F_OBJECT_PTR(applied_spec, scheduling, "scheduling", job_scheduling),
};
static SCHEMA(applied_spec);

static const struct field applied_job_fields[] = {
    F_OBJECT(applied_job, spec, "spec", applied_spec),
};
static SCHEMA(applied_job);

static struct opt_int scheduling_min_count(const struct job_scheduling *scheduling)
{
    if (scheduling == NULL || scheduling->scheduling_policy == NULL ||
        scheduling->scheduling_policy->gang == NULL) {
        return (struct opt_int){.is_set = false};
    }
    return scheduling->scheduling_policy->gang->min_count;
}

/* The annotation is whatever its last writer put there. A text that isn't a Job's says nothing
 * about the gang, and is no reason to refuse the Job. */
static struct opt_int last_applied_min_count(struct arena *arena, const struct job *job)
{
    struct str text = string_map_get(&job->meta.annotations, LAST_APPLIED_ANNOTATION);
    void *applied = NULL;
    if (str_find(text, STR("\"minCount\"")) == text.len ||
        rc_failed(decode_json(arena, &applied_job_schema, text, &applied, NULL))) {
        return (struct opt_int){.is_set = false};
    }
    const struct applied_job *applied_job = applied;
    return scheduling_min_count(applied_job->spec.scheduling);
}

/* -- completions ------------------------------------------------------------------------------- */

/* Cuts the text before `separator` off the front of `*text`. */
static struct str take_until(struct str *text, char separator)
{
    size_t end = str_find_char(*text, separator);
    struct str head = str_take(*text, end);
    *text = str_skip(*text, end + 1);
    return head;
}

/* How many indexes below `completions` a text such as "1,3-5" names. The controller writes them in
 * ascending order, without overlap; a piece that isn't of that form is passed over. */
static int64_t indexes_count(struct str text, int64_t completions)
{
    int64_t count = 0;
    int64_t next = 0; /* the lowest index that hasn't been counted */
    while (text.len > 0) {
        struct str piece = take_until(&text, ',');
        struct str first_text = take_until(&piece, '-');
        int64_t first = 0;
        int64_t last = 0;
        if (!str_to_i64(first_text, &first)) {
            continue;
        }
        last = first;
        if (piece.len > 0 && !str_to_i64(piece, &last)) {
            continue;
        }
        first = first < next ? next : first;
        last = last >= completions ? completions - 1 : last;
        if (first <= last) {
            count += last - first + 1;
            next = last + 1;
        }
    }
    return count;
}

static int64_t value_or(struct opt_int number, int64_t otherwise)
{
    if (!number.is_set) {
        return otherwise;
    }
    return number.value < 0 ? 0 : number.value;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t job_parallelism(const struct job *job)
{
    return value_or(job->spec.parallelism, 1);
}

/* Pods that succeeded, those included whose finalizer is still to be taken off. */
static int64_t job_succeeded(const struct job *job)
{
    int64_t succeeded = value_or(job->status.succeeded, 0);
    const struct uncounted_pods *uncounted = job->status.uncounted_terminated_pods;
    return uncounted == NULL ? succeeded : sat_add(succeeded, uncounted->succeeded.count);
}

int64_t job_completions_left(const struct job *job)
{
    int64_t done = job_succeeded(job);
    if (!job->spec.completions.is_set) {
        /* A work queue: with the first success no pod is started any more, and those that run end
         * by themselves (job_controller.go manageJob). */
        int64_t parallelism = job_parallelism(job);
        return done == 0 ? parallelism : smaller(value_or(job->status.active, 0), parallelism);
    }
    int64_t completions = value_or(job->spec.completions, 0);
    if (str_eq_c(job->spec.completion_mode, "Indexed")) {
        done = sat_add(indexes_count(job->status.completed_indexes, completions),
                       indexes_count(job->status.failed_indexes, completions));
    }
    return done >= completions ? 0 : completions - done;
}

/* -- gang size --------------------------------------------------------------------------------- */

/* Where a min-count was found, in the words of whoever wrote it. */
struct min_count {
    enum gang_size_source source;
    const char *where;
    struct str text; /* as written, for the annotation; absent otherwise */
    bool is_number;
    int64_t value;
};

static struct min_count find_min_count(struct arena *arena, const struct job *job)
{
    struct opt_int field = scheduling_min_count(job->spec.scheduling);
    if (field.is_set) {
        return (struct min_count){.source = GANG_SIZE_FIELD,
                                  .where = "field " MIN_COUNT_FIELD,
                                  .is_number = true,
                                  .value = field.value};
    }
    struct str text = string_map_get(&job->meta.annotations, MIN_COUNT_ANNOTATION);
    if (str_is_set(text)) {
        struct min_count found = {.source = GANG_SIZE_ANNOTATION,
                                  .where = "annotation " MIN_COUNT_ANNOTATION,
                                  .text = text};
        found.is_number = str_to_i64(text, &found.value);
        return found;
    }
    struct opt_int applied = last_applied_min_count(arena, job);
    if (applied.is_set) {
        return (struct min_count){.source = GANG_SIZE_LAST_APPLIED,
                                  .where = "field " MIN_COUNT_FIELD
                                           " (in annotation " LAST_APPLIED_ANNOTATION ")",
                                  .is_number = true,
                                  .value = applied.value};
    }
    return (struct min_count){.source = GANG_SIZE_DEFAULT};
}

static struct rc check_min_count(const struct min_count *found, int64_t parallelism,
                                 struct err *err)
{
    if (!found->is_number) {
        return err_set(err, RC_INVALID,
                       "%s is \"" STR_FMT "\"; it has to be a whole number from 1 to %" PRId64
                       " (spec.parallelism)",
                       found->where, STR_ARG(str_cut_utf8(found->text, SHOWN_VALUE_MAX_BYTES)),
                       parallelism);
    }
    if (found->value < 1) {
        return err_set(err, RC_INVALID,
                       "%s is %" PRId64 "; it has to be from 1 to %" PRId64 " (spec.parallelism)",
                       found->where, found->value, parallelism);
    }
    if (found->value > parallelism) {
        return err_set(err, RC_INVALID,
                       "%s is %" PRId64 ", but spec.parallelism is %" PRId64
                       ", so that many pods never run at once; lower it to %" PRId64
                       " or less, or raise spec.parallelism",
                       found->where, found->value, parallelism, parallelism);
    }
    return RC_SUCCESS;
}

struct rc job_gang_size(struct arena *arena, const struct job *job, struct gang_size *ret_size,
                        struct err *err)
{
    int64_t parallelism = job_parallelism(job);
    int64_t pods = smaller(parallelism, job_completions_left(job));
    struct min_count found = find_min_count(arena, job);
    int64_t min_count = pods;
    /* parallelism 0 is a pause: no size is right or wrong then. */
    if (found.source != GANG_SIZE_DEFAULT && parallelism > 0) {
        TRY(check_min_count(&found, parallelism, err));
        min_count = smaller(found.value, pods);
    }
    struct str partial = string_map_get(&job->meta.annotations, PARTIAL_ANNOTATION);
    *ret_size = (struct gang_size){.pods = pods,
                                   .min_count = min_count,
                                   .source = found.source,
                                   .is_partial_allowed = str_eq_c(partial, "true")};
    return RC_SUCCESS;
}
