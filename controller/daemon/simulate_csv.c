/* simulate_csv.c - a trace as comma-separated values, its columns named by a map. */
#include "simulate_workload.h"

#include <string.h>

#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"
#include "tallyman/base/time_text.h"

enum csv_role {
    CSV_SUBMIT = 0,
    CSV_RUNTIME,
    CSV_DEVICES,
    CSV_QUEUE,
    CSV_NAMESPACE,
    CSV_PRIORITY,
    CSV_BOUND,
    CSV_CLASS,
    CSV_ROLES,
};

static const struct {
    const char *name;
    bool is_needed;
} roles[CSV_ROLES] = {
    [CSV_SUBMIT] = {"submit", true},        [CSV_RUNTIME] = {"runtime", true},
    [CSV_DEVICES] = {"devices", false},     [CSV_QUEUE] = {"queue", false},
    [CSV_NAMESPACE] = {"namespace", false}, [CSV_PRIORITY] = {"priority", false},
    [CSV_BOUND] = {"bound", false},         [CSV_CLASS] = {"class", false},
};

#define ROLES_TEXT "submit, runtime, devices, queue, namespace, priority, bound, class"

struct csv {
    struct lines *lines;
    struct workload *workload;
    const struct trace_options *options;
    struct str heads[CSV_ROLES]; /* absent: not mapped */
    int columns[CSV_ROLES];      /* from 0; -1: not there */
};

/* -- fields ---------------------------------------------------------------------------------------
 */

struct fields {
    struct str items[SIMULATE_COLUMNS_MAX];
    uint32_t columns[SIMULATE_COLUMNS_MAX]; /* where each begins, from 1 */
    uint32_t count;
};

/* A field in quotes; "" inside stands for one. The unquoted text goes to the arena. */
static struct rc take_quoted(const struct csv *csv, struct str line, size_t *at, struct str *ret,
                             struct err *err)
{
    size_t start = *at;
    char *text = arena_alloc(csv->workload->arena, line.len - start + 1);
    size_t length = 0;
    for (size_t i = start + 1; i < line.len; i++) {
        bool is_quote = line.ptr[i] == '"';
        bool is_doubled = is_quote && i + 1 < line.len && line.ptr[i + 1] == '"';
        if (is_quote && !is_doubled) {
            *ret = (struct str){text, length};
            *at = i + 1;
            return RC_SUCCESS;
        }
        i += is_doubled ? 1 : 0;
        text[length++] = line.ptr[i];
    }
    return lines_error(csv->lines, (uint32_t)start + 1, err,
                       "the quote is never closed; a field ends on its own line");
}

static struct rc split(const struct csv *csv, struct str line, struct fields *ret, struct err *err)
{
    size_t at = 0;
    ret->count = 0;
    for (;;) {
        if (ret->count == SIMULATE_COLUMNS_MAX) {
            return lines_error(csv->lines, (uint32_t)at + 1, err, "more than %d columns",
                               SIMULATE_COLUMNS_MAX);
        }
        ret->columns[ret->count] = (uint32_t)at + 1;
        struct str *field = &ret->items[ret->count++];
        if (at < line.len && line.ptr[at] == '"') {
            TRY(take_quoted(csv, line, &at, field, err));
            if (at < line.len && line.ptr[at] != ',') {
                return lines_error(csv->lines, (uint32_t)at + 1, err,
                                   "behind a closing quote comes a comma or the line's end");
            }
        } else {
            size_t length = str_find_char(str_skip(line, at), ',');
            *field = str_take(str_skip(line, at), length);
            at += length;
        }
        if (at >= line.len) {
            return RC_SUCCESS;
        }
        at++;
    }
}

/* -- the map --------------------------------------------------------------------------------------
 */

static int role_named(struct str name)
{
    for (int role = 0; role < CSV_ROLES; role++) {
        if (str_eq_c(name, roles[role].name)) {
            return role;
        }
    }
    return str_eq_c(name, "user") ? CSV_NAMESPACE : -1;
}

/* "submit=timestamp,runtime=duration" */
static struct rc read_map(struct csv *csv, struct err *err)
{
    for (int role = 0; role < CSV_ROLES; role++) {
        csv->heads[role] = STR_NONE;
    }
    struct str rest = csv->options->columns;
    while (rest.len > 0) {
        size_t comma = str_find_char(rest, ',');
        struct str pair = str_take(rest, comma);
        size_t equals = str_find_char(pair, '=');
        int role = role_named(str_take(pair, equals));
        if (role < 0 || equals + 1 >= pair.len) {
            return err_set(err, RC_INVALID,
                           "--columns: \"" STR_FMT
                           "\" is not ROLE=COLUMN; the roles are " ROLES_TEXT
                           ", as in submit=timestamp,runtime=duration",
                           STR_ARG(pair));
        }
        csv->heads[role] = str_skip(pair, equals + 1);
        rest = str_skip(rest, comma + 1);
    }
    return RC_SUCCESS;
}

static struct str list_heads(const struct csv *csv, const struct fields *heads)
{
    struct text text;
    text_init(&text, csv->workload->arena, 512);
    for (uint32_t i = 0; i < heads->count; i++) {
        text_addf(&text, "%s" STR_FMT, i == 0 ? "" : ", ", STR_ARG(heads->items[i]));
    }
    return text_str(&text);
}

static struct rc find_columns(struct csv *csv, const struct fields *heads, struct err *err)
{
    for (int role = 0; role < CSV_ROLES; role++) {
        bool is_mapped = str_is_set(csv->heads[role]);
        struct str wanted = is_mapped ? csv->heads[role] : str_from_c(roles[role].name);
        csv->columns[role] = -1;
        for (uint32_t i = 0; i < heads->count; i++) {
            if (str_eq(heads->items[i], wanted)) {
                csv->columns[role] = (int)i;
            }
        }
        if (csv->columns[role] < 0 && (is_mapped || roles[role].is_needed)) {
            return lines_error(csv->lines, 0, err,
                               "there is no column \"" STR_FMT
                               "\" for the %s; the columns are " STR_FMT
                               "; map one with --columns %s=COLUMN",
                               STR_ARG(wanted), roles[role].name, STR_ARG(list_heads(csv, heads)),
                               roles[role].name);
        }
    }
    return RC_SUCCESS;
}

/* -- values ---------------------------------------------------------------------------------------
 */

/* Seconds, fractions down to a millisecond. */
static bool parse_seconds(struct str text, int64_t *ret_ms)
{
    size_t point = str_find_char(text, '.');
    int64_t seconds;
    if (!str_to_i64(str_take(text, point), &seconds) || seconds < 0 || seconds > INT64_MAX / 2000) {
        return false;
    }
    int64_t ms = 0;
    int64_t weight = 100;
    for (size_t i = point + 1; i < text.len; i++, weight /= 10) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
        ms += (text.ptr[i] - '0') * weight;
    }
    *ret_ms = seconds * 1000 + ms;
    return true;
}

/* Seconds since anything, RFC 3339, or "2017-10-09 07:01:55", taken as UTC. */
static bool parse_moment(struct str text, int64_t *ret_ms)
{
    if (parse_seconds(text, ret_ms) || time_parse_rfc3339(text, ret_ms)) {
        return true;
    }
    char buffer[40];
    if (text.len < 19 || text.len > 30 || text.ptr[10] != ' ') {
        return false;
    }
    memcpy(buffer, text.ptr, text.len);
    buffer[10] = 'T';
    buffer[text.len] = 'Z';
    return time_parse_rfc3339((struct str){buffer, text.len + 1}, ret_ms);
}

static bool parse_span(struct str text, int64_t *ret_ms)
{
    return parse_seconds(text, ret_ms) || duration_parse(text, ret_ms);
}

static struct rc wrong(const struct csv *csv, const struct fields *fields, enum csv_role role,
                       const char *right, struct err *err)
{
    uint32_t column = (uint32_t)csv->columns[role];
    return lines_error(csv->lines, fields->columns[column], err,
                       "\"" STR_FMT "\" is not a %s; write %s",
                       STR_ARG(str_cut_utf8(fields->items[column], DECODE_QUOTE_MAX_BYTES)),
                       roles[role].name, right);
}

/* What a Kubernetes object can be called. */
static bool is_name(struct str text)
{
    bool is_good = text.len > 0 && text.len <= SIMULATE_NAME_MAX_BYTES;
    for (size_t i = 0; i < text.len && is_good; i++) {
        char c = text.ptr[i];
        is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
    }
    return is_good;
}

static struct rc take_name(const struct csv *csv, const struct fields *fields, enum csv_role role,
                           struct str otherwise, struct str *ret_name, struct err *err)
{
    *ret_name = otherwise;
    if (csv->columns[role] < 0 || fields->items[csv->columns[role]].len == 0) {
        return RC_SUCCESS;
    }
    if (!is_name(fields->items[csv->columns[role]])) {
        return wrong(csv, fields, role, "1 to 63 letters, digits, '-', '_' and '.'", err);
    }
    *ret_name = fields->items[csv->columns[role]];
    return RC_SUCCESS;
}

static struct rc take_int(const struct csv *csv, const struct fields *fields, enum csv_role role,
                          int64_t *ret_value, struct err *err)
{
    if (csv->columns[role] < 0) {
        return RC_SUCCESS;
    }
    if (!str_to_i64(fields->items[csv->columns[role]], ret_value)) {
        return wrong(csv, fields, role, "a whole number", err);
    }
    return RC_SUCCESS;
}

static struct rc take_times(const struct csv *csv, const struct fields *fields,
                            struct bulk_gang *gang, struct err *err)
{
    if (!parse_moment(fields->items[csv->columns[CSV_SUBMIT]], &gang->submit_ms)) {
        return wrong(csv, fields, CSV_SUBMIT,
                     "seconds, 2017-10-09T07:01:55Z or 2017-10-09 07:01:55", err);
    }
    if (!parse_span(fields->items[csv->columns[CSV_RUNTIME]], &gang->run_ms)) {
        return wrong(csv, fields, CSV_RUNTIME, "seconds or a duration such as 1h30m", err);
    }
    if (csv->columns[CSV_BOUND] >= 0 && fields->items[csv->columns[CSV_BOUND]].len > 0 &&
        !parse_span(fields->items[csv->columns[CSV_BOUND]], &gang->bound_ms)) {
        return wrong(csv, fields, CSV_BOUND, "seconds or a duration such as 1h30m", err);
    }
    return RC_SUCCESS;
}

static struct str size_class(int64_t devices)
{
    return devices == 1   ? STR("1 device")
           : devices <= 8 ? STR("2 to 8 devices")
                          : STR("more than 8 devices");
}

static struct rc take_job(struct csv *csv, const struct fields *fields, struct err *err)
{
    struct workload *workload = csv->workload;
    struct bulk_gang gang = {.name =
                                 arena_format(workload->arena, "job-%u", workload->gang_count + 1)};
    TRY(take_times(csv, fields, &gang, err));
    int64_t devices = 1;
    int64_t priority = 0;
    TRY(take_int(csv, fields, CSV_DEVICES, &devices, err));
    TRY(take_int(csv, fields, CSV_PRIORITY, &priority, err));
    struct str queue;
    struct str space;
    struct str class_name;
    TRY(take_name(csv, fields, CSV_QUEUE, STR("main"), &queue, err));
    TRY(take_name(csv, fields, CSV_NAMESPACE, STR("default"), &space, err));
    TRY(take_name(csv, fields, CSV_CLASS, size_class(devices), &class_name, err));
    if (devices <= 0) {
        workload->left_out++;
        return RC_SUCCESS;
    }
    if (devices > GANG_PODS_MAX) {
        return wrong(csv, fields, CSV_DEVICES, "a whole number up to 100000", err);
    }
    uint32_t index = workload_queue_get(workload, queue);
    gang.queue = workload->queues[index].name;
    gang.namespace_name = arena_copy_str(workload->arena, space);
    if (csv->columns[CSV_PRIORITY] >= 0) {
        gang.priority_class = arena_format(workload->arena, "priority-%lld", (long long)priority);
    }
    workload_shape(&gang, devices, csv->options->pod_devices);
    return workload_add(workload, &gang, index, workload_class_get(workload, class_name), err);
}

static struct rc read_lines(struct csv *csv, struct err *err)
{
    struct str line;
    struct fields *fields = ARENA_NEW(csv->workload->arena, struct fields);
    TRY(lines_next(csv->lines, &line, err));
    if (!str_is_set(line)) {
        return lines_error(csv->lines, 0, err,
                           "the file is empty; its first line names the columns");
    }
    TRY(split(csv, line, fields, err));
    TRY(find_columns(csv, fields, err));
    uint32_t columns = fields->count;
    TRY(lines_next(csv->lines, &line, err));
    while (str_is_set(line)) {
        if (line.len > 0) {
            TRY(split(csv, line, fields, err));
            if (fields->count != columns) {
                return lines_error(csv->lines, 0, err, "%u fields; the first line names %u",
                                   fields->count, columns);
            }
            TRY(take_job(csv, fields, err));
        }
        TRY(lines_next(csv->lines, &line, err));
    }
    return RC_SUCCESS;
}

struct rc workload_read_csv(struct workload *workload, const char *path,
                            const struct trace_options *options, struct err *err)
{
    struct csv csv = {.workload = workload, .options = options};
    TRY(read_map(&csv, err));
    TRY(lines_open(path, &csv.lines, err));
    struct rc rc = read_lines(&csv, err);
    lines_close(csv.lines);
    return rc;
}
