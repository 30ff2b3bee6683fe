/* scenario_jobs.c - the Jobs and pods of a scenario, from options to structs. */
#include "support/scenario_internal.h"

#include "support/check.h"

/* -- jobs and pods ------------------------------------------------------------------------------
 */

struct job_text {
    struct text requests;
    struct text limits;
    struct text labels;
    struct text annotations;
    struct text claims;
    struct text group_claims; /* of spec.scheduling */
    struct text selector;
    struct text tolerations;
    struct text spec; /* further members of the pod's spec */
    struct str parallelism;
    struct str completions;
    struct str namespace_name;
    struct str created;
    struct str deadline;
    bool is_running;
};

static void add_claim(struct text *claims, const char *member, struct str name)
{
    text_addf(claims, "%s{\"name\":\"c-" STR_FMT "\",\"%s\":\"" STR_FMT "\"}", comma(claims),
              STR_ARG(name), member, STR_ARG(name));
}

static bool job_pod_option(struct job_text *text, struct str key, struct str value)
{
    if (is_resource(key)) {
        add_member(&text->requests, key, value);
    } else if (str_eq_c(key, "limit-cpu")) {
        add_member(&text->limits, STR("cpu"), value);
    } else if (str_eq_c(key, "claim")) {
        add_claim(&text->claims, "resourceClaimName", value);
    } else if (str_eq_c(key, "template")) {
        add_claim(&text->claims, "resourceClaimTemplateName", value);
    } else if (str_eq_c(key, "group")) {
        add_claim(&text->claims, "resourceClaimTemplateName", value);
        add_claim(&text->group_claims, "resourceClaimTemplateName", value);
    } else if (str_eq_c(key, "selector")) {
        add_pair(&text->selector, value);
    } else if (str_eq_c(key, "toleration")) {
        add_toleration(&text->tolerations, value);
    } else if (str_eq_c(key, "runtime")) {
        text_addf(&text->spec, ",\"runtimeClassName\":\"" STR_FMT "\"", STR_ARG(value));
    } else {
        return false;
    }
    return true;
}

static bool job_annotation_option(struct job_text *text, struct str key, struct str value)
{
    static const char *const names[][2] = {{"min", "tallyman.dev/min-count"},
                                           {"partial", "tallyman.dev/partial"},
                                           {"hold", "tallyman.dev/hold"},
                                           {"required", "tallyman.dev/required-topology"},
                                           {"preferred", "tallyman.dev/preferred-topology"},
                                           {"max-runtime", "tallyman.dev/max-runtime"}};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (str_eq_c(key, names[i][0])) {
            add_member(&text->annotations, str_from_c(names[i][1]), value);
            return true;
        }
    }
    return false;
}

static void job_option(struct job_text *text, struct str key, struct str value)
{
    if (str_eq_c(key, "pods")) {
        text->parallelism = value;
        text->completions = value;
    } else if (str_eq_c(key, "parallelism")) {
        text->parallelism = value;
    } else if (str_eq_c(key, "completions")) {
        text->completions = value;
    } else if (job_annotation_option(text, key, value)) {
        return;
    } else if (str_eq_c(key, "priority")) {
        add_member(&text->labels, STR("tallyman.dev/priority-class"), value);
    } else if (str_eq_c(key, "deadline")) {
        text->deadline = value;
    } else if (str_eq_c(key, "ns")) {
        text->namespace_name = value;
    } else if (str_eq_c(key, "created")) {
        text->created = value;
    } else if (str_eq_c(key, "running")) {
        text->is_running = true;
    } else {
        fail_msg("a job has no option " STR_FMT, STR_ARG(key));
    }
}

static struct job_text read_job_options(struct scenario *s, const char *options)
{
    struct job_text text = {.requests = list_text(s),
                            .limits = list_text(s),
                            .labels = list_text(s),
                            .annotations = list_text(s),
                            .claims = list_text(s),
                            .group_claims = list_text(s),
                            .selector = list_text(s),
                            .tolerations = list_text(s),
                            .spec = list_text(s),
                            .parallelism = STR("1"),
                            .completions = STR("1"),
                            .namespace_name = STR(NAMESPACE_DEFAULT)};
    struct str key;
    struct str value;
    while (next_option(&options, &key, &value)) {
        /* `pods=5` is the size of the gang here, not a request. */
        if (str_eq_c(key, "pods") || !job_pod_option(&text, key, value)) {
            job_option(&text, key, value);
        }
    }
    return text;
}

static struct job *make_job(struct scenario *s, const char *name, const char *queue,
                            struct job_text *text, struct str spec)
{
    if (*queue != '\0') {
        add_member(&text->labels, STR("tallyman.dev/queue"), str_from_c(queue));
    }
    bool has_completions = !str_eq_c(text->completions, "none");
    struct str completions =
        has_completions ? make(s, "\"completions\":" STR_FMT ",\"completionMode\":\"Indexed\",",
                               STR_ARG(text->completions))
                        : STR("");
    struct str scheduling = text->group_claims.len == 0
                                ? STR("")
                                : make(s, "\"scheduling\":{\"resourceClaims\":[" STR_FMT "]},",
                                       STR_ARG(text_str(&text->group_claims)));
    struct str json = make(s,
                           "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"" STR_FMT
                           "\",\"generation\":1,\"labels\":{" STR_FMT "},\"annotations\":{" STR_FMT
                           "}},\"spec\":{\"parallelism\":" STR_FMT "," STR_FMT STR_FMT
                           "\"suspend\":%s,\"template\":{\"spec\":" STR_FMT "}}}",
                           name, STR_ARG(text->namespace_name), STR_ARG(text_str(&text->labels)),
                           STR_ARG(text_str(&text->annotations)), STR_ARG(text->parallelism),
                           STR_ARG(completions), STR_ARG(scheduling),
                           text->is_running ? "false" : "true", STR_ARG(spec));
    void *value = NULL;
    struct err err;
    if (rc_failed(decode_json(&s->arena, kind_info(KIND_JOB)->schema, json, &value, &err))) {
        fail_msg("Job %s: %s\n" STR_FMT, name, err.text, STR_ARG(json));
    }
    struct job *job = value;
    int64_t created_ms = 0;
    if (str_is_set(text->created) && str_to_i64(text->created, &created_ms)) {
        job->meta.creation_timestamp = (struct opt_time){true, SCENARIO_START_MS + created_ms};
    }
    int64_t deadline_s = 0;
    if (str_is_set(text->deadline) && str_to_i64(text->deadline, &deadline_s)) {
        job->spec.active_deadline_seconds = (struct opt_int){true, deadline_s};
    }
    return job;
}

struct job *job_of_options(struct scenario *s, const char *name, const char *queue,
                           const char *options)
{
    struct job_text text = read_job_options(s, options);
    struct str selector = text.selector.len == 0 ? STR("")
                                                 : make(s, ",\"nodeSelector\":{" STR_FMT "}",
                                                        STR_ARG(text_str(&text.selector)));
    struct str tolerations = text.tolerations.len == 0 ? STR("")
                                                       : make(s, ",\"tolerations\":[" STR_FMT "]",
                                                              STR_ARG(text_str(&text.tolerations)));
    struct str claims = text.claims.len == 0 ? STR("")
                                             : make(s, ",\"resourceClaims\":[" STR_FMT "]",
                                                    STR_ARG(text_str(&text.claims)));
    struct str spec =
        make(s,
             "{\"containers\":[{\"name\":\"main\",\"resources\":{\"requests\":{" STR_FMT
             "},\"limits\":{" STR_FMT "}}}]" STR_FMT STR_FMT STR_FMT STR_FMT "}",
             STR_ARG(text_str(&text.requests)), STR_ARG(text_str(&text.limits)), STR_ARG(selector),
             STR_ARG(tolerations), STR_ARG(claims), STR_ARG(text_str(&text.spec)));
    return make_job(s, name, queue, &text, spec);
}

void set_queue_label(struct scenario *s, struct job *job, const struct job_patch *patch)
{
    if (str_is_set(patch->queue_label)) {
        map_set(s, &job->meta.labels, STR("tallyman.dev/queue"), patch->queue_label);
    }
}

void given_job(struct scenario *s, const char *name, const char *queue, const char *options)
{
    tell(s, entry_put(s, KIND_JOB, &job_of_options(s, name, queue, options)->meta));
}

void given_job_spec(struct scenario *s, const char *name, const char *queue, const char *options,
                    const char *spec)
{
    struct job_text text = read_job_options(s, options);
    tell(s, entry_put(s, KIND_JOB, &make_job(s, name, queue, &text, str_from_c(spec))->meta));
}

void given_pod(struct scenario *s, const char *name, const char *node, const char *options)
{
    struct job_text text = read_job_options(s, options);
    given_json(s, KIND_POD,
               make(s,
                    "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"" STR_FMT
                    "\"},\"spec\":{\"nodeName\":\"%s\",\"containers\":[{\"name\":\"main\","
                    "\"resources\":{\"requests\":{" STR_FMT "}}}],\"resourceClaims\":[" STR_FMT
                    "]},\"status\":{\"phase\":\"Running\"}}",
                    name, STR_ARG(text.namespace_name), node, STR_ARG(text_str(&text.requests)),
                    STR_ARG(text_str(&text.claims)))
                   .ptr);
}
