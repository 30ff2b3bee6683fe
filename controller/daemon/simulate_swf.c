/* simulate_swf.c - the Standard Workload Format of the Parallel Workloads Archive: a job per line,
 * 18 numbers, -1 where nothing is known; a line that begins with ';' is a remark.
 * https://www.cs.huji.ac.il/labs/parallel/workload/swf.html */
#include "simulate_workload.h"

#include <ctype.h>

#include "tallyman/base/limits.h"

enum swf_field {
    SWF_JOB = 0,
    SWF_SUBMIT,
    SWF_WAIT,
    SWF_RUN,
    SWF_PROCESSORS,
    SWF_CPU,
    SWF_MEMORY,
    SWF_PROCESSORS_ASKED,
    SWF_TIME_ASKED,
    SWF_MEMORY_ASKED,
    SWF_STATUS,
    SWF_USER,
    SWF_GROUP,
    SWF_APPLICATION,
    SWF_QUEUE,
    SWF_PARTITION,
    SWF_AFTER,
    SWF_THINK,
    SWF_FIELDS,
};

static const char *const field_names[SWF_FIELDS] = {
    "job number", "submit time",   "wait time",  "run time",       "processors",
    "cpu time",   "memory",        "processors", "requested time", "requested memory",
    "status",     "user",          "group",      "application",    "queue",
    "partition",  "preceding job", "think time"};

/* Seconds with a fraction are cut to milliseconds: a few traces have such. */
static bool parse_number(struct str text, int64_t *ret_milli)
{
    size_t point = str_find_char(text, '.');
    int64_t whole;
    if (!str_to_i64(str_take(text, point), &whole) || whole > INT64_MAX / 2000 ||
        whole < INT64_MIN / 2000) {
        return false;
    }
    int64_t milli = 0;
    int64_t weight = 100;
    for (size_t i = point + 1; i < text.len; i++, weight /= 10) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
        milli += (text.ptr[i] - '0') * weight;
    }
    *ret_milli = whole * 1000 + (text.ptr[0] == '-' ? -milli : milli);
    return true;
}

static struct rc parse_line(const struct lines *lines, struct str line,
                            int64_t ret_fields[SWF_FIELDS], struct err *err)
{
    uint32_t count = 0;
    size_t at = 0;
    while (at < line.len) {
        size_t start = at;
        while (at < line.len && !isspace((unsigned char)line.ptr[at])) {
            at++;
        }
        struct str word = str_take(str_skip(line, start), at - start);
        while (at < line.len && isspace((unsigned char)line.ptr[at])) {
            at++;
        }
        if (word.len == 0) {
            continue; /* spaces in front */
        }
        if (count == SWF_FIELDS) {
            return lines_error(lines, (uint32_t)start + 1, err,
                               "a line of the Standard Workload Format has 18 fields, here is one "
                               "more");
        }
        if (!parse_number(word, &ret_fields[count])) {
            return lines_error(lines, (uint32_t)start + 1, err,
                               "\"" STR_FMT "\" is not a number; field %u (%s) is one, or -1",
                               STR_ARG(str_cut_utf8(word, DECODE_QUOTE_MAX_BYTES)), count + 1,
                               field_names[count]);
        }
        count++;
    }
    if (count != SWF_FIELDS) {
        return lines_error(lines, 0, err,
                           "%u fields; a line of the Standard Workload Format has 18", count);
    }
    return RC_SUCCESS;
}

/* "; MaxProcs: 128": the size of the machine. */
static struct rc read_remark(const struct lines *lines, struct str line,
                             struct trace_options *options, struct err *err)
{
    size_t at = str_find(line, STR("MaxProcs:"));
    struct str value = str_skip(line, at + sizeof("MaxProcs:") - 1);
    while (value.len > 0 && value.ptr[0] == ' ') {
        value = str_skip(value, 1);
    }
    int64_t devices = 0;
    value = str_take(value, str_find_char(value, ' '));
    if (at >= line.len || !str_to_i64(value, &devices) || devices <= 0) {
        return RC_SUCCESS;
    }
    if (devices > SIMULATE_DEVICES_MAX) {
        return lines_error(lines, 0, err,
                           "header MaxProcs: %lld is more than %d, the most devices that can be "
                           "simulated; say how many with --devices",
                           (long long)devices, SIMULATE_DEVICES_MAX);
    }
    options->devices = devices;
    return RC_SUCCESS;
}

static enum swf_field queue_field(const struct trace_options *options)
{
    static const struct {
        const char *name;
        enum swf_field field;
    } choices[] = {{"user", SWF_USER}, {"group", SWF_GROUP}, {"partition", SWF_PARTITION}};
    for (size_t i = 0; i < ARRAY_COUNT(choices); i++) {
        if (str_eq_c(options->queue_by, choices[i].name)) {
            return choices[i].field;
        }
    }
    return SWF_QUEUE;
}

static struct rc add_job(struct workload *workload, const int64_t fields[SWF_FIELDS],
                         const struct trace_options *options, struct err *err)
{
    int64_t devices =
        (fields[SWF_PROCESSORS] > 0 ? fields[SWF_PROCESSORS] : fields[SWF_PROCESSORS_ASKED]) / 1000;
    if (devices <= 0 || devices > GANG_PODS_MAX || fields[SWF_RUN] < 0 || fields[SWF_SUBMIT] < 0) {
        workload->left_out++;
        return RC_SUCCESS;
    }
    enum swf_field by = queue_field(options);
    struct str queue = fields[by] < 0 ? STR("main")
                                      : arena_format(workload->arena, "%s-%lld",
                                                     by == SWF_QUEUE ? "queue" : field_names[by],
                                                     (long long)(fields[by] / 1000));
    uint32_t index = workload_queue_get(workload, queue);
    struct bulk_gang gang = {.name =
                                 arena_format(workload->arena, "job-%u", workload->gang_count + 1),
                             .namespace_name = STR("default"),
                             .queue = workload->queues[index].name,
                             .submit_ms = fields[SWF_SUBMIT],
                             .run_ms = fields[SWF_RUN],
                             .bound_ms = fields[SWF_TIME_ASKED] > 0 ? fields[SWF_TIME_ASKED] : 0};
    workload_shape(&gang, devices, options->pod_devices);
    uint32_t class_index =
        workload_class_get(workload, devices == 1   ? STR("1 device")
                                     : devices <= 8 ? STR("2 to 8 devices")
                                                    : STR("more than 8 devices"));
    return workload_add(workload, &gang, index, class_index, err);
}

static struct rc read_lines(struct workload *workload, struct lines *lines,
                            struct trace_options *options, struct err *err)
{
    bool has_devices = options->devices > 0;
    struct str line;
    TRY(lines_next(lines, &line, err));
    while (str_is_set(line)) {
        int64_t fields[SWF_FIELDS];
        if (line.len > 0 && line.ptr[0] == ';') {
            TRY(has_devices ? RC_SUCCESS : read_remark(lines, line, options, err));
        } else if (line.len > 0) {
            TRY(parse_line(lines, line, fields, err));
            TRY(add_job(workload, fields, options, err));
        }
        TRY(lines_next(lines, &line, err));
    }
    return RC_SUCCESS;
}

struct rc workload_read_swf(struct workload *workload, const char *path,
                            struct trace_options *options, struct err *err)
{
    struct lines *lines = NULL;
    TRY(lines_open(path, &lines, err));
    struct rc rc = read_lines(workload, lines, options, err);
    lines_close(lines);
    return rc;
}
