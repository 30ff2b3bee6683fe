/* schema_words.c - see the header. */
#include "tallyman/api/schema_words.h"

#include <string.h>

struct field_words {
    const char *schema;
    const char *field;
    const char *words[FIELD_WORDS_MAX];
};

static const struct field_words table[] = {
    {"match_expression", "operator", {"In", "NotIn", "Exists", "DoesNotExist"}},
    {"queue_spec", "queueingStrategy", {"StrictFIFO", "BestEffortFIFO", "Backfill"}},
    {"queue_spec", "stopPolicy", {"None", "Hold", "HoldAndDrain"}},
    {"queue_spec", "fit", {"Physical", "Quota"}},
    {"queue_spec", "undeclaredResources", {"RefuseDevices", "Allow", "Refuse"}},
    {"queue_preemption", "withinQueue", {"Never", "LowerPriority", "LowerOrNewerEqualPriority"}},
    {"queue_preemption", "reclaimWithinCohort", {"Never", "LowerPriority", "Any"}},
    {"borrow_within_cohort", "policy", {"Never", "LowerPriority"}},
    {"flavor_fungibility", "whenCanBorrow", {"MayStopSearch", "TryNextFlavor"}},
    {"flavor_fungibility", "whenCanPreempt", {"MayStopSearch", "TryNextFlavor"}},
    {"flavor_fungibility", "preference", {"BorrowingOverPreemption", "PreemptionOverBorrowing"}},
    {"taint", "effect", {"NoSchedule", "PreferNoSchedule", "NoExecute"}},
    {"toleration", "operator", {"Exists", "Equal"}},
    {"toleration", "effect", {"NoSchedule", "PreferNoSchedule", "NoExecute"}},
    {"health_condition", "status", {"True", "False", "Unknown"}},
    {"condition", "status", {"True", "False", "Unknown"}},
};

const char *const *schema_words(const struct schema *schema, const struct field *field)
{
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        if (strcmp(table[i].schema, schema->name) == 0 &&
            strcmp(table[i].field, field->name) == 0) {
            return table[i].words;
        }
    }
    return NULL;
}
