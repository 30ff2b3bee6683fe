/* gang_set.h - the pod sets of a gang, which are found by their names: on its object, in its shape,
 * in its record and in its reservation. Private to the core. */
#pragma once

#include "state.h"

void gang_size_add(struct gang_size *sum, const struct gang_size *size);
/* By their names; NULL: it has no such set. */
struct gang_set *gang_set_find(const struct gang *gang, struct str name);
const struct pod_set *pod_set_find(const struct shape *shape, struct str name);
const struct record_pod_set *record_set(const struct admission_record *record, struct str name);
/* Whether set `s` is the first that names its `claim`-th claim. */
bool shape_names_first(const struct shape *shape, uint32_t s, uint32_t claim);
bool pod_set_names_claim(const struct pod_set *set, struct str claim_key);
/* What is put back into that set's template; NULL: nothing is known. */
const struct record_restore *record_restore(const struct admission_record *record, struct str name);
void gang_sets_read(struct gang *gang, const struct gang_input *input);
/* What our PATCH adds to the templates isn't waited for any more. */
void gang_sets_forget_patch(struct gang *gang);
void gang_sets_free(struct gang *gang);
/* All its pods anew, after a change of the gang; and that one alone, which has changed, or isn't of
 * its group any more. */
void gang_count_pods(const struct core *core, struct gang *gang);
void gang_count_pod(const struct core *core, struct gang *gang, struct pod_state *pod);
/* Places of an admitted gang, or of one of its sets, that no pod has taken up yet. */
int64_t gang_promised_pods(const struct gang *gang);
int64_t gang_set_promised_pods(const struct gang *gang, const struct reserved_set *reserved);
/* Enough pods of each of its sets are ready. */
bool gang_is_whole(const struct gang *gang);
