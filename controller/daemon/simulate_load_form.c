/* simulate_load_form.c - the tables by which a load file is decoded. */
#include "simulate_load.h"

#include <stdio.h>

#include "tallyman/api/codec.h"
#include "tallyman/base/limits.h"

#define F(type, member, json, kind)                                                                \
    {                                                                                              \
        json, kind, offsetof(struct type, member), NULL                                            \
    }
#define F_OF(type, member, json, kind, schema)                                                     \
    {                                                                                              \
        json, kind, offsetof(struct type, member), &schema                                         \
    }
#define SCHEMA(type, fields)                                                                       \
    {                                                                                              \
#type, sizeof(struct type), fields, ARRAY_COUNT(fields)                                    \
    }

static const struct field class_fields[] = {
    F(load_class, name, "name", FIELD_STRING),
    F(load_class, jobs, "jobs", FIELD_INT),
    F(load_class, first, "first", FIELD_DURATION),
    F(load_class, every, "every", FIELD_DURATION),
    F(load_class, run_for, "runFor", FIELD_DURATION),
    F(load_class, spread_percent, "spreadPercent", FIELD_INT),
    F(load_class, pods, "pods", FIELD_INT),
    F(load_class, devices_per_pod, "devicesPerPod", FIELD_INT),
    F(load_class, priority, "priority", FIELD_INT),
    F(load_class, max_runtime, "maxRuntime", FIELD_DURATION),
    F(load_class, checkpoint_every, "checkpointEvery", FIELD_DURATION),
    F(load_class, fail_after, "failAfter", FIELD_DURATION),
    F(load_class, failures, "failures", FIELD_INT),
    F(load_class, namespace_name, "namespace", FIELD_STRING),
};
static const struct schema class_schema = SCHEMA(load_class, class_fields);

static const struct field preemption_fields[] = {
    F(load_preemption, within_queue, "withinQueue", FIELD_STRING),
    F(load_preemption, reclaim_within_cohort, "reclaimWithinCohort", FIELD_STRING),
};
static const struct schema preemption_schema = SCHEMA(load_preemption, preemption_fields);

static const struct field queue_fields[] = {
    F(load_queue, name, "name", FIELD_STRING),
    F(load_queue, count, "count", FIELD_INT),
    F(load_queue, cohort, "cohort", FIELD_STRING),
    F(load_queue, cohorts, "cohorts", FIELD_INT),
    F(load_queue, nominal, "nominalQuota", FIELD_INT),
    F(load_queue, borrowing, "borrowingLimit", FIELD_INT),
    F(load_queue, lending, "lendingLimit", FIELD_INT),
    F(load_queue, strategy, "queueingStrategy", FIELD_STRING),
    F(load_queue, fit, "fit", FIELD_STRING),
    F(load_queue, starvation_bound, "starvationBound", FIELD_DURATION),
    F(load_queue, weight, "weight", FIELD_INT),
    F_OF(load_queue, preemption, "preemption", FIELD_OBJECT, preemption_schema),
    F_OF(load_queue, classes, "classes", FIELD_OBJECT_LIST, class_schema),
};
static const struct schema queue_schema = SCHEMA(load_queue, queue_fields);

static const struct field event_fields[] = {
    F(load_event, at, "at", FIELD_DURATION),
    F(load_event, node, "node", FIELD_STRING),
    F(load_event, ready, "ready", FIELD_BOOL),
    F(load_event, devices, "devices", FIELD_INT),
};
static const struct schema event_schema = SCHEMA(load_event, event_fields);

static const struct field cluster_fields[] = {
    F(load_cluster, nodes, "nodes", FIELD_INT),
    F(load_cluster, devices_per_node, "devicesPerNode", FIELD_INT),
};
static const struct schema cluster_schema = SCHEMA(load_cluster, cluster_fields);

static const struct field load_fields[] = {
    F_OF(load, cluster, "cluster", FIELD_OBJECT, cluster_schema),
    F_OF(load, queues, "queues", FIELD_OBJECT_LIST, queue_schema),
    F_OF(load, events, "events", FIELD_OBJECT_LIST, event_schema),
};
static const struct schema load_schema = SCHEMA(load, load_fields);

/* -- unknown fields: a mistyped one would silently change what is simulated -----------------------
 */

struct strict {
    struct token_sink next;
    const struct schema *open[DECODE_DEPTH_MAX]; /* of each open bracket */
    uint32_t depth;
    const struct schema *coming; /* of the object that the last key or the open list announces */
    uint64_t seen[DECODE_DEPTH_MAX]; /* bit i: the object has given field i of its schema */
};

static struct str known_names(const struct schema *schema, char *buffer, size_t bytes)
{
    size_t length = 0;
    for (uint32_t i = 0; i < schema->field_count; i++) {
        int got = snprintf(buffer + length, bytes - length, "%s%s", i == 0 ? "" : ", ",
                           schema->fields[i].name);
        length += got > 0 && (size_t)got < bytes - length ? (size_t)got : 0;
    }
    return (struct str){buffer, length};
}

static struct rc strict_key(struct strict *strict, struct str name, struct err *err)
{
    const struct schema *schema = strict->depth > 0 ? strict->open[strict->depth - 1] : NULL;
    strict->coming = NULL;
    for (uint32_t i = 0; schema != NULL && i < schema->field_count; i++) {
        if (str_eq_c(name, schema->fields[i].name)) {
            uint64_t *seen = &strict->seen[strict->depth - 1];
            bool is_again = (*seen >> i & 1) != 0;
            *seen |= UINT64_C(1) << i;
            strict->coming = schema->fields[i].schema;
            return is_again ? err_set(err, RC_INVALID,
                                      "\"" STR_FMT "\" is given twice here; leave one out",
                                      STR_ARG(name))
                            : RC_SUCCESS;
        }
    }
    char buffer[512];
    return schema == NULL
               ? RC_SUCCESS
               : err_set(err, RC_INVALID, "\"" STR_FMT "\" is no field here; there are " STR_FMT,
                         STR_ARG(str_cut_utf8(name, DECODE_QUOTE_MAX_BYTES)),
                         STR_ARG(known_names(schema, buffer, sizeof(buffer))));
}

static struct rc strict_token(void *ctx, const struct token *token, struct err *err)
{
    struct strict *strict = ctx;
    switch (token->kind) {
    case TOKEN_KEY:
        TRY(strict_key(strict, token->text, err));
        break;
    case TOKEN_OBJECT_START:
    case TOKEN_ARRAY_START: /* a list's items are what the list's field says */
        strict->seen[strict->depth] = 0;
        strict->open[strict->depth++] = strict->coming;
        break;
    case TOKEN_OBJECT_END:
    case TOKEN_ARRAY_END:
        strict->depth--;
        strict->coming = strict->depth > 0 ? strict->open[strict->depth - 1] : NULL;
        break;
    case TOKEN_NULL:
    case TOKEN_BOOL:
    case TOKEN_NUMBER:
    case TOKEN_STRING:
        break;
    }
    return strict->next.on_token(strict->next.ctx, token, err);
}

struct rc load_decode(struct arena *arena, const char *path, struct str text,
                      const struct load **ret_load, struct err *err)
{
    struct decoder *decoder = decoder_new(arena, &load_schema);
    struct strict strict = {.next = decoder_sink(decoder), .coming = &load_schema};
    struct rc rc = yaml_read(text, (struct token_sink){strict_token, &strict}, NULL, err);
    const struct load *load = decoder_result(decoder);
    decoder_free(decoder);
    TRY(err_prefix(err, rc, "%s", path));
    if (load == NULL) {
        return err_set(err, RC_INVALID, "%s: the file is empty; a load has queues with classes",
                       path);
    }
    *ret_load = load;
    return RC_SUCCESS;
}
