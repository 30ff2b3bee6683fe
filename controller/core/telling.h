/* telling.h - what the files that tell of a wait offer: explain.c, explain_quota.c, advise.c,
 * past.c. Part of internal.h. */
#pragma once

#include "state.h"

/* -- explain.c -------------------------------------------------------------------------------- */

/* The shape's own copy of what an evaluation saw. */
void evidence_keep(struct evidence *kept, const struct evidence *seen);
void evidence_drop(struct evidence *evidence);
/* All but what is told of the flavors. */
void evidence_renew_numbers(struct evidence *kept, const struct evidence *seen);
/* "tainted (maintenance)"; static or in the arena. */
struct str exclusion_sentence(struct arena *arena, enum exclusion exclusion, struct str why);
/* The evidence behind the verdict as the Admission carries it; borrowed from the arena. With advice
 * the verdict's message becomes that of now. */
struct explanation *explain_gang(struct core *core, struct gang *gang, struct verdict *verdict,
                                 struct arena *arena);

/* -- explain_quota.c -------------------------------------------------------------------------- */

/* Asked, used and limit of what the gang asks for, from its queue up the tree. */
void explain_quota(const struct gang *gang, struct explanation *explanation, struct arena *arena);
/* Devices and extended resources that the gangs of a shape ask for. */
int64_t shape_devices(const struct shape *shape);

/* -- advise.c --------------------------------------------------------------------------------- */

/* Whether a change of the Job could end a wait for that reason. */
bool advice_is_possible(enum reason reason);
/* Changes that would start the gang now; NULL: there is nothing to try for that reason, or it
 * wasn't tried. Refreshes the shape's evidence. Only between two steps. Borrowed from the shape. */
const struct advice *advise(struct core *core, struct gang *gang, enum reason reason);
/* advise_topology.c: its sentence and its command. */
void advice_fill_topology(const struct gang *gang, const struct advice_item *item,
                          struct arena *arena, struct explanation_action *action);
/* `list` has room for ADVICE_ITEMS_MAX more. */
void advice_fill(const struct gang *gang, const struct advice *advice, struct arena *arena,
                 struct explanation_action_list *list);
void advice_drop(struct advice *advice);

/* -- past.c: what a gang has been through ----------------------------------------------------- */

/* It is about to be told that it waits for `next` now: what held until now is past. */
void past_turn(struct gang *gang, enum reason next, int64_t now_ms);
/* It, which has a reservation, is being stopped; `by` is the gang that it makes room for, or NULL.
 */
void past_note_eviction(struct core *core, struct gang *gang, const char *rule,
                        const struct gang *by);
void past_explain(const struct gang *gang, struct arena *arena, struct explanation *explanation);
/* As its Admission has kept it. */
void past_take(struct gang *gang, const struct admission_status *status);
void past_free(struct gang *gang);

/* -- tell.c: who is told of a new reason, and when ----------------------------------------------
 */

void tell_init(struct core *core);
void tell_free(struct core *core);
/* All its gangs, those that this step may not tell any more by those that follow. */
void tell_reason(struct core *core, struct shape *shape);
void tell_gang_leaves(struct core *core, struct shape *shape, const struct gang *gang);
void tell_shape_gone(struct core *core, struct shape *shape);
void tell_step(struct core *core);            /* a step begins */
void tell_go_on(struct core *core);           /* with those of former steps */
int64_t tell_due_ms(const struct core *core); /* 0: nobody is to be told */
