/* selectors.h - trying device selectors on devices, so much of it in a step.
 *
 * A selector may cost a tenth of a second for each device (CEL_COST_MAX), and a tenant may write
 * many. So with core_options.selector_cost_per_step a gang is judged only when every selector that
 * its judgement may ask about has been tried on every device: until then its shape is put aside,
 * neither admitted nor told anything, and the steps that follow at once try on. Nothing is ever
 * decided by an answer that isn't known: whatever asks for one nevertheless gets it worked out
 * there and then (profile_match()). See docs/decisions/043-selectors-in-steps.md. */
#pragma once

#include "internal.h"

void selectors_init(struct core *core);
void selectors_free(struct core *core);
/* Before anything else of a step. */
void selectors_step(struct core *core, bool is_tick);
/* Tries on; those put aside for whom that was all are woken. */
void selectors_go_on(struct core *core);
/* The next step is wanted at once. */
bool selectors_are_due(const struct core *core);

/* Whether the shape can be judged now; if not, what it takes is on its way and selectors_are_due().
 * Asked about are its own selectors, and those of gangs whose pods are on their way or for whom
 * room is kept. */
bool selectors_are_known(struct core *core, struct shape *shape);
/* A check has passed and its gang can't be judged yet: the next step looks again. */
void selectors_miss_check(struct core *core);
/* The same of only those others. */
bool selectors_beside_are_known(struct core *core);
/* Whether its own have been tried, which changes nothing; of a shape that is resolved. */
bool selectors_are_tried(const struct core *core, const struct shape *shape);
/* Until it can be judged, it isn't woken. */
void selectors_put_aside(struct core *core, struct shape *shape);
void selectors_forget(struct core *core, struct shape *shape);

/* Resolves the shape, and tries its selectors whatever that costs: what asks without having waited
 * until they are known. */
void shape_settle(struct core *core, struct shape *shape);

/* -- profile.c --------------------------------------------------------------------------------- */

/* Whether the step may still try selectors on devices. */
bool selectors_have_budget(const struct core *core);
void selectors_spend(struct core *core, uint64_t cost);
void selectors_changed(struct core *core); /* what some device is to them isn't known any more */
void selectors_doubt(struct core *core);   /* there may be one that hasn't been tried */
/* A question that is asked between steps leaves no trace: a journal doesn't have it. */
bool selectors_may_keep(const struct core *core);
uint64_t selectors_changes(const struct core *core); /* how often; never 0 */
bool selectors_keep_unused(struct core *core);
bool profile_is_tried(const struct core *core, const struct device_profile *profile);
/* Tries it on devices until that has cost `limit` or it has been tried on all: true. */
bool profile_try(struct core *core, struct device_profile *profile, uint64_t limit,
                 struct arena *scratch);
void profiles_free_unused(struct core *core);
void selectors_forget_profile(struct core *core, struct device_profile *profile);
