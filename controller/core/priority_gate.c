/* priority_gate.c - which PriorityClasses a queue takes (spec.allowedPriorityClasses).
 *
 * Both count that a Job may name: its label's, which orders it in the queue, and its template's,
 * with which its pods may push others off their nodes. Who names none is always let in. */

#include "tallyman/base/text.h"
#include "gate.h"
#include "gang_walk.h"

static bool is_allowed(const struct str_list *allowed, struct str class_name)
{
    for (uint32_t i = 0; i < allowed->count; i++) {
        if (str_eq(allowed->items[i], class_name)) {
            return true;
        }
    }
    return str_is_empty(class_name);
}

#define ALLOWED_SHOWN_MAX 10

static struct str refusal(struct arena *arena, const struct gang *gang, struct str class_name,
                          const char *field, const struct str_list *allowed)
{
    struct text text;
    text_init(&text, arena, 900);
    text_addf(&text,
              "PriorityClass " STR_FMT " (%s) may not be used in queue " STR_FMT "; allowed %s ",
              STR_ARG(text_quote(arena, class_name, 100)), field, STR_ARG(gang->queue->name),
              allowed->count == 1 ? "is" : "are");
    uint32_t shown = allowed->count > ALLOWED_SHOWN_MAX ? ALLOWED_SHOWN_MAX : allowed->count;
    for (uint32_t i = 0; i < shown; i++) {
        text_addf(&text, "%s" STR_FMT, i == 0 ? "" : ", ",
                  STR_ARG(text_quote(arena, allowed->items[i], 60)));
    }
    if (shown < allowed->count) {
        text_addf(&text, " and %u more", allowed->count - shown);
    }
    text_addf(&text, ", or none at all");
    return text_str(&text);
}

struct str gate_class_refusal(struct arena *arena, const struct gang *gang)
{
    const struct queue *object = gang->queue == NULL ? NULL : gang->queue->object;
    if (object == NULL || object->spec.allowed_priority_classes.count == 0) {
        return STR_NONE;
    }
    const struct str_list *allowed = &object->spec.allowed_priority_classes;
    struct str of_pods = gang->template_class;
    if (!is_allowed(allowed, gang->priority_class)) {
        const char *field = str_eq(gang->priority_class, of_pods)
                                ? "spec.template.spec.priorityClassName"
                                : "label " LABEL_PRIORITY_CLASS;
        return refusal(arena, gang, gang->priority_class, field, allowed);
    }
    if (!is_allowed(allowed, of_pods)) {
        return refusal(arena, gang, of_pods, "spec.template.spec.priorityClassName", allowed);
    }
    return STR_NONE;
}

bool gate_bars(struct core *core, const struct gang *gang)
{
    return str_is_set(gang->trouble->invalid) || gang->is_class_missing ||
           str_is_set(gate_class_refusal(&core->scratch, gang));
}

bool gate_same_classes(const struct queue *a, const struct queue *b)
{
    static const struct str_list all;
    const struct str_list *left = a == NULL ? &all : &a->spec.allowed_priority_classes;
    const struct str_list *right = b == NULL ? &all : &b->spec.allowed_priority_classes;
    for (uint32_t i = 0; i < left->count && left->count == right->count; i++) {
        if (!str_eq(left->items[i], right->items[i])) {
            return false;
        }
    }
    return left->count == right->count;
}

static bool is_of_queue(const struct gang *gang, const void *queue)
{
    return gang->queue == queue;
}

void gate_classes_changed(struct core *core, const struct queue_state *queue)
{
    struct gang_walk walk;
    gang_walk_begin(core, &walk, is_of_queue, queue);
    for (struct gang *gang; (gang = gang_walk_next(core, &walk)) != NULL;) {
        gang_review(core, gang);
    }
}
