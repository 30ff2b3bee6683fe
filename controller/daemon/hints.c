/* hints.c - see hints.h. */
#include "hints.h"

#include <stdio.h>
#include <string.h>

#include "terminal.h"
#include "tallyman/api/job.h"
#include "tallyman/api/node.h"
#include "tallyman/api/schema_words.h"

#define PREFIX      "tallyman.dev/"
#define LABEL_QUEUE PREFIX "queue"

/* Where a key of ours means something. */
enum place {
    PLACE_JOB_LABEL = 1,
    PLACE_JOB_ANNOTATION = 2,
    PLACE_TEMPLATE_LABEL = 4,
    PLACE_TEMPLATE_ANNOTATION = 8,
    PLACE_NAMESPACE_LABEL = 16,
    PLACE_NAMESPACE_ANNOTATION = 32,
};

#define JOB_LABELS      (PLACE_JOB_LABEL | PLACE_TEMPLATE_LABEL)
#define JOB_ANNOTATIONS (PLACE_JOB_ANNOTATION | PLACE_TEMPLATE_ANNOTATION)

static const struct known_key {
    const char *name; /* behind PREFIX */
    unsigned places;
} known_keys[] = {
    {"queue", PLACE_JOB_LABEL},
    {"priority-class", PLACE_JOB_LABEL},
    {"pod-set", PLACE_TEMPLATE_LABEL},
    {"min-count", PLACE_JOB_ANNOTATION},
    {"partial", PLACE_JOB_ANNOTATION},
    {"hold", PLACE_JOB_ANNOTATION},
    {"max-runtime", PLACE_JOB_ANNOTATION},
    {"required-topology", PLACE_JOB_ANNOTATION},
    {"preferred-topology", PLACE_JOB_ANNOTATION},
    {"checkpoint-grace", PLACE_JOB_ANNOTATION},
    {"last-checkpoint", JOB_ANNOTATIONS},
    /* Those that Tallyman or its policies write. */
    {"admission", PLACE_JOB_ANNOTATION},
    {"suspended", PLACE_JOB_ANNOTATION},
    {"min-count-source", PLACE_JOB_ANNOTATION},
    {"provisioning-attempt", PLACE_JOB_ANNOTATION},
    {"checkpoint-request", JOB_ANNOTATIONS},
    {"checkpoint-for", PLACE_JOB_ANNOTATION},
    {"default-queue", PLACE_NAMESPACE_LABEL},
    {"stop-policy", PLACE_NAMESPACE_LABEL | PLACE_NAMESPACE_ANNOTATION},
};

struct hints {
    const char *command;
    const struct manifest_list *list;
    const struct decided_list *decided; /* NULL: not known */
    bool is_all;
    struct arena arena; /* of one line */
    uint32_t count;
};

/* `text`: of the hints' arena. */
static void hint(struct hints *hints, const struct manifest *manifest, struct str text)
{
    if (hints->count++ < HINTS_MAX) {
        const struct object_meta *meta = manifest->object.value;
        bool is_named = manifest->object.kind != KIND_NONE;
        struct str name =
            is_named ? arena_format(&hints->arena, " " STR_FMT, STR_ARG(meta->name)) : STR("");
        text = arena_format(&hints->arena, STR_FMT ":%u: " STR_FMT STR_FMT ": " STR_FMT,
                            STR_ARG(manifest->file_name), manifest->line, STR_ARG(manifest->kind),
                            STR_ARG(name), STR_ARG(text));
        fprintf(stderr, "tallyman %s: " STR_FMT "\n", hints->command,
                STR_ARG(terminal_safe(&hints->arena, text)));
    }
    arena_reset(&hints->arena);
}

/* -- keys ---------------------------------------------------------------------------------------
 */

/* A place is one bit. */
static const char *place_text(unsigned place)
{
    switch (place) {
    case PLACE_JOB_LABEL:
        return "a label of the Job";
    case PLACE_JOB_ANNOTATION:
        return "an annotation of the Job";
    case PLACE_TEMPLATE_LABEL:
        return "a label of the pod template";
    case PLACE_TEMPLATE_ANNOTATION:
        return "an annotation of the pod template";
    case PLACE_NAMESPACE_LABEL:
        return "a label of the Namespace";
    default:
        return "an annotation of the Namespace";
    }
}

static unsigned lowest_place(unsigned places)
{
    return places & (0u - places);
}

/* The key that was most likely meant; NULL: none is like it. */
static const struct known_key *nearest_key(struct str name)
{
    const struct known_key *nearest = NULL;
    uint32_t least = name.len / 3 > 2 ? (uint32_t)(name.len / 3) : 2;
    for (size_t i = 0; i < ARRAY_COUNT(known_keys); i++) {
        uint32_t distance = word_distance(name, str_from_c(known_keys[i].name));
        if (distance < least || (distance == least && nearest == NULL)) {
            nearest = &known_keys[i];
            least = distance;
        }
    }
    return nearest;
}

static void check_key(struct hints *hints, const struct manifest *manifest, struct str key,
                      unsigned place)
{
    struct str name = str_skip(key, strlen(PREFIX));
    const struct known_key *known = nearest_key(name);
    bool is_it = known != NULL && str_eq_c(name, known->name);
    if (is_it && (known->places & place) != 0) {
        return;
    }
    const char *here = strchr(place_text(place), ' ') + 1; /* without the article */
    struct str is = arena_format(&hints->arena, "%s " STR_FMT " has no effect", here, STR_ARG(key));
    if (known == NULL) {
        hint(hints, manifest,
             arena_format(&hints->arena, STR_FMT ": Tallyman knows no such key", STR_ARG(is)));
        return;
    }
    const char *where = place_text(lowest_place(known->places));
    hint(hints, manifest,
         is_it ? arena_format(&hints->arena, STR_FMT ": it has to be %s", STR_ARG(is), where)
               : arena_format(&hints->arena, STR_FMT ": did you mean " PREFIX "%s, %s?",
                              STR_ARG(is), known->name, where));
}

static void check_keys(struct hints *hints, const struct manifest *manifest,
                       const struct string_map *map, unsigned place)
{
    for (uint32_t i = 0; i < map->count; i++) {
        if (str_starts_with(map->items[i].key, STR(PREFIX))) {
            check_key(hints, manifest, map->items[i].key, place);
        }
    }
}

/* -- Jobs that are passed over ------------------------------------------------------------------
 */

static bool is_decided(const struct hints *hints, const struct object_meta *meta)
{
    for (uint32_t i = 0; hints->decided != NULL && i < hints->decided->count; i++) {
        const struct decided_gang *gang = &hints->decided->items[i];
        if (str_eq(gang->name, meta->name) && str_eq(gang->namespace_name, meta->namespace_name)) {
            return true;
        }
    }
    return false;
}

static bool has_default_queue(const struct hints *hints, struct str name)
{
    for (uint32_t i = 0; i < hints->list->count; i++) {
        const struct object *object = &hints->list->items[i].object;
        if (object->kind == KIND_NAMESPACE && str_eq(object->value->name, name)) {
            return !str_is_empty(string_map_get(&object->value->labels, PREFIX "default-queue"));
        }
    }
    return false;
}

/* Why it isn't queued, where its manifest shows that it should be (or of every one). Absent: it is,
 * or nobody said that it should. */
static struct str passed_over(struct hints *hints, const struct job *job)
{
    struct str manager = job->spec.managed_by;
    struct str queue = string_map_find(&job->meta.labels, STR(LABEL_QUEUE));
    bool is_foreign = !str_is_empty(manager) && !str_eq_c(manager, "kubernetes.io/job-controller");
    if (is_foreign && !str_is_empty(queue)) {
        return arena_format(&hints->arena,
                            "it is passed over: spec.managedBy says that " STR_FMT
                            " runs it, not Kubernetes' Job controller",
                            STR_ARG(manager));
    }
    if (str_is_set(queue) && str_is_empty(queue)) {
        return STR("it is passed over: label " LABEL_QUEUE " is empty; it has to name a queue");
    }
    bool is_over = hints->is_all && job_is_finished(job);
    bool has_none = hints->is_all && !str_is_set(queue);
    return is_over    ? STR("it is passed over: it has finished")
           : has_none ? STR("it is passed over: it has no label " LABEL_QUEUE)
                      : STR_NONE;
}

static void check_job(struct hints *hints, const struct manifest *manifest)
{
    const struct job *job = (const struct job *)manifest->object.value;
    const struct object_meta *template_meta = &job->spec.pod_template.meta;
    check_keys(hints, manifest, &job->meta.labels, PLACE_JOB_LABEL);
    check_keys(hints, manifest, &job->meta.annotations, PLACE_JOB_ANNOTATION);
    check_keys(hints, manifest, &template_meta->labels, PLACE_TEMPLATE_LABEL);
    check_keys(hints, manifest, &template_meta->annotations, PLACE_TEMPLATE_ANNOTATION);
    if (is_decided(hints, &job->meta) || has_default_queue(hints, job->meta.namespace_name)) {
        return;
    }
    struct str why = passed_over(hints, job);
    if (str_is_set(why)) {
        hint(hints, manifest, why);
    }
}

static void check_node(struct hints *hints, const struct manifest *manifest)
{
    const struct node *node = (const struct node *)manifest->object.value;
    if (node->status.allocatable.count == 0) {
        hint(hints, manifest,
             STR("it has no status.allocatable, so no pod finds room there; status.capacity alone "
                 "isn't looked at"));
    }
}

static bool is_of_group(struct str api_version, const char *group)
{
    size_t slash = str_find_char(api_version, '/');
    return slash < api_version.len ? str_eq_c(str_take(api_version, slash), group)
                                   : group[0] == '\0';
}

/* Of a kind that is read, in a version that isn't. */
static void check_foreign(struct hints *hints, const struct manifest *manifest)
{
    for (int i = KIND_NONE + 1; i < KIND_COUNT; i++) {
        const struct kind_info *kind = kind_info((enum object_kind)i);
        if (str_eq_c(manifest->kind, kind->name) &&
            is_of_group(manifest->api_version, kind->group)) {
            hint(hints, manifest,
                 arena_format(&hints->arena,
                              "it is passed over: its apiVersion is " STR_FMT
                              "; Tallyman reads kind %s of %s%s%s",
                              STR_ARG(manifest->api_version), kind->name, kind->group,
                              kind->group[0] == '\0' ? "" : "/", kind->version));
        }
    }
}

static void check_manifest(struct hints *hints, const struct manifest *manifest)
{
    const struct object_meta *meta = manifest->object.value;
    switch ((int)manifest->object.kind) {
    case KIND_JOB:
        check_job(hints, manifest);
        break;
    case KIND_NODE:
        check_node(hints, manifest);
        break;
    case KIND_NAMESPACE:
        check_keys(hints, manifest, &meta->labels, PLACE_NAMESPACE_LABEL);
        check_keys(hints, manifest, &meta->annotations, PLACE_NAMESPACE_ANNOTATION);
        break;
    case KIND_NONE:
        check_foreign(hints, manifest);
        break;
    default:
        break;
    }
}

void hints_print(const char *command, const struct manifest_list *list,
                 const struct decided_list *decided, bool is_all)
{
    struct hints hints = {.command = command, .list = list, .decided = decided, .is_all = is_all};
    arena_init(&hints.arena);
    for (uint32_t i = 0; i < list->count; i++) {
        check_manifest(&hints, &list->items[i]);
    }
    if (hints.count > HINTS_MAX) {
        fprintf(stderr, "tallyman %s: and %u more of that kind\n", command,
                hints.count - HINTS_MAX);
    }
    arena_deinit(&hints.arena);
}
