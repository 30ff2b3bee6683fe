/* claim.h - claims that gangs name, and those that one has once for all its pods. Private to the
 * core. */
#pragma once

#include "internal.h"

struct claim_state *claim_get(struct core *core, struct str key); /* the caller counts `users` */
void claim_drop(struct core *core, struct claim_state *claim);
void claims_free(struct core *core);
/* All that is held has been counted: who holds claims wasn't known when these were listed. */
void claims_start(struct core *core);
/* Its first holder, who leads to the others in order of admission; or NULL. In ledger.c. */
const struct claim_hold *ledger_claim_holders(const struct core *core, struct str claim_key);

/* -- group_claim.c ---------------------------------------------------------------------------- */

/* Which of the template's claims the Job wants so; bit i: claim i. */
uint64_t group_claims_of(const struct job *job, const struct pod_spec *spec);
/* "namespace/name" of the PodGroup that the Job gets; in the scratch arena. */
struct str group_claims_pod_group(struct core *core, const struct job *job);
/* Why it can't be told whether its pods share a claim, absent: it can. */
struct str group_claims_trouble(struct core *core, const struct job *job);
/* The claim that the shape's PodGroup has for that entry; NULL: there is none, or not one; the
 * shape is broken then. */
struct claim_state *group_claim_find(struct core *core, struct shape *shape, struct str entry);
/* After claim->object has become another one; NULL: there was none. */
void group_claim_changed(struct core *core, struct claim_state *claim,
                         const struct resource_claim *old);
void group_claims_free(struct core *core);
