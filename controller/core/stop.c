/* stop.c - queues that are stopped, and namespaces whose use of a queue is: who doesn't start
 * there, and who has to stop.
 *
 * A Queue says so by spec.stopPolicy; a namespace by `tallyman.dev/stop-policy`, an annotation or a
 * label (the annotation counts where both are): one policy for every queue, or QUEUE=POLICY, …, or
 * both, where the named queue's own goes before the other. The stricter of queue and namespace
 * counts. */

#include "tallyman/base/text.h"
#include "gate.h"

/* The namespace's policy for one queue; false: the text isn't one. */
static bool read_policy(struct str word, enum stop *ret_stop)
{
    static const char *const names[] = {
        [STOP_NONE] = "None", [STOP_HOLD] = "Hold", [STOP_DRAIN] = "HoldAndDrain"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (str_eq_c(word, names[i])) {
            *ret_stop = (enum stop)i;
            return true;
        }
    }
    return false;
}

static struct str trim(struct str text)
{
    while (text.len > 0 && text.ptr[0] == ' ') {
        text = str_skip(text, 1);
    }
    while (text.len > 0 && text.ptr[text.len - 1] == ' ') {
        text = str_take(text, text.len - 1);
    }
    return text;
}

static enum stop stricter(enum stop a, enum stop b)
{
    return a > b ? a : b;
}

static bool read_namespace_policy(struct str text, struct str queue_name, enum stop *ret_stop)
{
    enum stop of_all = STOP_NONE;
    enum stop of_queue = STOP_NONE;
    bool is_named = false;
    bool is_last = false;
    while (!is_last) {
        size_t comma = str_find_char(text, ',');
        struct str part = trim(str_take(text, comma));
        is_last = comma == text.len;
        text = is_last ? text : str_skip(text, comma + 1);
        size_t equals = str_find_char(part, '=');
        bool is_of_all = equals == part.len;
        enum stop stop;
        if (!read_policy(is_of_all ? part : trim(str_skip(part, equals + 1)), &stop)) {
            return false;
        }
        if (is_of_all) {
            of_all = stricter(of_all, stop);
        } else if (str_eq(trim(str_take(part, equals)), queue_name)) {
            is_named = true;
            of_queue = stricter(of_queue, stop);
        }
    }
    *ret_stop = is_named ? of_queue : of_all;
    return true;
}

static enum stop queue_stop(const struct queue_state *queue)
{
    struct str policy = queue->object == NULL ? STR_NONE : queue->object->spec.stop_policy;
    enum stop stop = STOP_NONE;
    if (str_is_set(policy) && !read_policy(policy, &stop)) {
        return STOP_HOLD; /* the schema lets none through: of a later version, and meant to stop */
    }
    return stop;
}

static struct str namespace_policy(const struct core *core, struct str namespace_name)
{
    const struct namespace_object *space = named_find(core, KIND_NAMESPACE, namespace_name);
    if (space == NULL) {
        return STR_NONE;
    }
    struct str text = string_map_get(&space->meta.annotations, KEY_STOP_POLICY);
    return str_is_set(text) ? text : string_map_get(&space->meta.labels, KEY_STOP_POLICY);
}

/* In the arena, and STOP_NONE without a sentence; what can't be read stops nobody who runs. */
static struct stop_order namespace_stop(const struct core *core, struct arena *arena,
                                        struct str queue_name, struct str namespace_name)
{
    struct stop_order order = {.stop = STOP_NONE};
    struct str policy = namespace_policy(core, namespace_name);
    if (!str_is_set(policy)) {
        return order;
    }
    if (!read_namespace_policy(policy, queue_name, &order.stop)) {
        order.stop = STOP_HOLD;
        order.why = arena_format(
            arena,
            "namespace " STR_FMT " has " KEY_STOP_POLICY " \"" STR_FMT
            "\", which can't be read, so nothing of it starts; it has to be None, Hold or "
            "HoldAndDrain, for one queue QUEUE=Hold, several with commas between them",
            STR_ARG(namespace_name), STR_ARG(text_quote(arena, policy, 100)));
    } else if (order.stop != STOP_NONE) {
        order.why = arena_format(arena,
                                 "namespace " STR_FMT "'s use of queue " STR_FMT
                                 " is stopped (" KEY_STOP_POLICY " " STR_FMT ")",
                                 STR_ARG(namespace_name), STR_ARG(queue_name),
                                 STR_ARG(text_quote(arena, policy, 100)));
    }
    return order;
}

struct stop_order stop_find(const struct core *core, struct arena *arena,
                            const struct queue_state *queue, struct str namespace_name)
{
    enum stop stop = queue_stop(queue);
    struct stop_order of_namespace = namespace_stop(core, arena, queue->name, namespace_name);
    if (stop < of_namespace.stop || stop == STOP_NONE) {
        return of_namespace;
    }
    return (struct stop_order){
        .stop = stop,
        .why = arena_format(arena, "queue " STR_FMT " is stopped (stopPolicy " STR_FMT ")",
                            STR_ARG(queue->name), STR_ARG(queue->object->spec.stop_policy))};
}

bool stop_drain(struct core *core, struct gang *gang)
{
    struct stop_order order =
        stop_find(core, &core->scratch, gang->reservation->queue, gang->namespace_name);
    if (order.stop != STOP_DRAIN) {
        return false;
    }
    if (gang->run->write_retry_ms == 0) { /* else it is counted, and only tried again */
        gang_count_eviction(gang);
    }
    patch_suspend(core, gang, "QueueStopped",
                  arena_format(&core->scratch,
                               STR_FMT "; the gang stops whole, keeps its place and starts again "
                                       "by itself once that is lifted",
                               STR_ARG(order.why)));
    return true;
}

void stop_namespace_changed(struct core *core, struct str namespace_name)
{
    struct gang *gang = gang_line_first(&core->holders);
    while (gang != NULL) {
        struct gang *next = gang_line_next(&core->holders, gang);
        if (str_eq(gang->namespace_name, namespace_name)) {
            gang_review(core, gang);
        }
        gang = next;
    }
}
