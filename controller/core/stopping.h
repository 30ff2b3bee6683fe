/* stopping.h - who stops for whom. Private to the core. */
#pragma once

#include "preempt.h"

/* The victim makes room for that gang now, and for no other. */
void stopping_begin(struct core *core, struct gang *victim, const struct gang *gang);
/* It stops for nobody, or doesn't stop. */
void stopping_end(struct core *core, struct gang *victim);
/* It has given back what it held: the gang that it stopped for says how many are left. */
void stopping_tell(struct core *core, const struct gang *victim);
bool stopping_is_for(const struct gang *victim, const struct gang *gang);
/* Those that stop for the gang, of which there are `ret_own`, or for one that is Reserved, and
 * still hold something: their room is on its way. In the scratch arena; `gang` NULL: only the
 * latter. */
struct victims stopping_find(struct core *core, const struct gang *gang, uint32_t *ret_own);
/* The quota of those that stop for a gang that is Reserved, as if they were gone; and back. */
void stopping_set_out(struct core *core, bool is_out);
/* Its Job is being deleted, and finalizers keep it. No pod is left and none can come any more; the
 * Job controller leaves such a Job alone, so its status stays as it was. */
void stopping_is_deleted(struct core *core, struct gang *gang);
void stopping_free(struct core *core);

void gang_list_add(struct gang_list *list, struct gang *gang);
void gang_list_remove(struct gang_list *list, const struct gang *gang);
