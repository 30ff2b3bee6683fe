/* whatif.h - the state as it would be without some gangs: quota, nodes and devices. Private to the
 * core.
 *
 * Gangs are taken out one by one and put back one by one; in between every evaluation sees the
 * state without those that are out. Nothing that an event tells may change meanwhile. */
#pragma once

#include "state.h"

void whatif_begin(struct core *core);
void whatif_take_out(struct core *core, struct gang *gang);
void whatif_put_back(struct core *core, struct gang *gang);
void whatif_end(struct core *core); /* all have been put back */

/* One part of it alone: their quota; their pods' room and devices. */
void whatif_set_quota(struct core *core, struct gang *gang, bool is_out);
void whatif_set_pods(struct core *core, struct gang *gang, bool is_out);
/* The gang whose pods are all that use the claim's devices; NULL: there is none. */
const struct gang *whatif_claim_user(const struct core *core, const struct claim_state *claim);

/* -- whatif_kept.c: without gangs that are mostly the same from one decision to the next ---------
 *
 * What their pods would free stays noted between two such what-ifs, where nobody sees it, so that a
 * decision costs what has changed since the last one. Whoever changes what has been noted says so
 * first. */

/* Begins without them; more may be taken out and put back until the end. */
void whatif_begin_without(struct core *core, struct gang *const *gangs, uint32_t count);
void whatif_end_without(struct core *core, struct gang *const *gangs, uint32_t count);
/* Its pods or their claims are about to change; NULL: nobody's. */
void whatif_forget_gang(struct core *core, struct gang *gang);
/* The same of those whose pods use that claim; NULL: there is none. */
void whatif_forget_claim(struct core *core, const struct resource_claim *object);
/* Nodes, devices or counters are about to come or go. */
void whatif_forget(struct core *core);
/* Whether what bears that epoch is noted. */
bool whatif_is_kept(const struct core *core, uint64_t epoch);
void whatif_free(struct core *core);
/* Aborts if what is noted isn't what is true. */
void whatif_assert_kept(const struct core *core);

struct kept_what_if {
    uint64_t epoch; /* 0: nothing is noted */
    struct gang **gangs;
    uint32_t count;
    uint32_t capacity;
    struct node_state **nodes; /* with something noted, each once */
    uint32_t node_count;
    uint32_t node_capacity;
};
