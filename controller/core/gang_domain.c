/* gang_domain.c - the domain that a gang's pods are confined to: what its Job asks for, and what
 * its record says. */
#include "topology.h"

#include "tallyman/api/selector.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"

struct str topology_read(struct core *core, const struct job *job, struct shape_input *input)
{
    const struct string_map *annotations = &job->meta.annotations;
    struct str required = string_map_get(annotations, ANNOTATION_REQUIRED_TOPOLOGY);
    struct str preferred = string_map_get(annotations, ANNOTATION_PREFERRED_TOPOLOGY);
    bool is_required = str_is_set(required);
    input->topology_key = STR_NONE;
    if (is_required && str_is_set(preferred)) {
        return STR("annotations " ANNOTATION_REQUIRED_TOPOLOGY " and " ANNOTATION_PREFERRED_TOPOLOGY
                   " are both set; only one of them can be");
    }
    struct str key = is_required ? required : preferred;
    if (!str_is_set(key)) {
        return STR_NONE;
    }
    if (!label_key_is_valid(key)) {
        return arena_format(
            &core->scratch,
            "annotation %s is \"" STR_FMT "\"; it has to be the key of a node label, such as "
            "topology.kubernetes.io/zone",
            is_required ? ANNOTATION_REQUIRED_TOPOLOGY : ANNOTATION_PREFERRED_TOPOLOGY,
            STR_ARG(text_quote(&core->scratch, key, 100)));
    }
    input->topology_key = key;
    input->is_topology_required = is_required;
    return STR_NONE;
}

void gang_confine(struct gang *gang, const struct topology_domain *domain)
{
    topology_use(&gang->domain, (struct topology_domain *)(uintptr_t)domain);
}

/* The first set's: all share one domain. */
static const struct topology_domain *domain_of(struct core *core,
                                               const struct admission_record *record)
{
    if (record == NULL || record->topology.count == 0) {
        return NULL;
    }
    const struct record_level_list *levels = &record->topology.items[0].levels;
    struct string_map path = {.count = levels->count};
    path.items = ARENA_ARRAY(&core->scratch, struct string_pair, levels->count + 1);
    for (uint32_t l = 0; l < levels->count; l++) {
        if (levels->items[l].values.count != 1 || levels->count > TOPOLOGY_LEVELS_MAX) {
            return NULL; /* not of our writing */
        }
        path.items[l] =
            (struct string_pair){levels->items[l].key, levels->items[l].values.items[0]};
    }
    return path.count == 0 ? NULL : topology_domain_of(core, &path);
}

void gang_read_domain(struct core *core, struct gang *gang)
{
    if (!gang_is_busy(gang) && gang->state != GANG_RESERVED) {
        gang_confine(gang, domain_of(core, gang->record));
    }
}

struct record_domain_list record_domains(struct core *core, const struct gang *gang)
{
    struct record_domain_list list = {.items = NULL};
    if (gang->domain == NULL) {
        return list;
    }
    const struct string_map *path = &gang->domain->path;
    struct record_level_list levels = {.count = path->count};
    levels.items = ARENA_ARRAY(&core->scratch, struct record_level, path->count);
    for (uint32_t l = 0; l < path->count; l++) {
        levels.items[l] = (struct record_level){
            .key = path->items[l].key, .values = {.items = &path->items[l].value, .count = 1}};
    }
    list.count = gang->shape->set_count;
    list.items = ARENA_ARRAY(&core->scratch, struct record_domain, list.count);
    for (uint32_t s = 0; s < list.count; s++) {
        list.items[s] = (struct record_domain){.key = gang->shape->sets[s].name, .levels = levels};
    }
    return list;
}
