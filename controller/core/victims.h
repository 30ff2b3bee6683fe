/* victims.h - between victims.c and victims_fair.c: one search for the gangs to stop. */
#pragma once

#include "preempt.h"

struct search {
    struct gang *gang;
    uint32_t combination;            /* of flavors: the one that is searched */
    const struct quota_probe *needs; /* the accounts that stand in the way */
    const struct quota_probe *ask;   /* all that it asks for, at least */
    uint32_t level_max;              /* how far up the gang may borrow with these victims */
    uint32_t from_level; /* of other queues only those whose branch meets the gang's so far up */
    bool is_own_only;
    struct victims barred; /* of other queues: would be stopped, but can't be just yet */
    bool has_threshold;    /* borrowWithinCohort: borrowing only at the cost of such priorities */
    int64_t threshold;
};

/* The lowest node above both; NULL: they stand in different trees. */
const struct quota_node *victims_common_node(const struct quota_node *a,
                                             const struct quota_node *b);
/* The branch that `leaf` stands in, below `top`. */
const struct quota_node *victims_branch_below(const struct quota_node *leaf,
                                              const struct quota_node *top);
/* Whether each branch that the victim's queue stands in, up to where it meets the gang's, uses more
 * than its own quota of something that the victim holds and the gang needs. */
bool victims_is_lent_to(const struct gang *gang, const struct gang *victim,
                        const struct quota_probe *needs);

/* victims_barred.c: notes the gang if it would be stopped, but can't be before it has started; it
 * leaves word to look again then. */
void victims_note_barred(struct core *core, struct search *search, struct gang *victim);
/* Takes the quota out, or puts it back, of those noted that would be stopped before that one of
 * their queue. Within a what-if. */
void victims_set_barred(struct core *core, const struct search *search, const struct gang *victim,
                        bool is_out);
/* As victims_is_lent_to(), without them. */
bool victims_is_lent(struct core *core, const struct search *search, const struct gang *victim);

/* reclaimWithinCohort of the gang's queue. */
bool victims_may_within_queue(const struct gang *gang, const struct gang *victim);
bool victims_may_reclaim(const struct gang *gang, const struct gang *victim);
/* Other queues first, lower priority, least lost work, latest admitted, uid. Total. */
int victims_compare(const struct core *core, const struct gang *preemptor, struct gang *a,
                    struct gang *b);
void victims_sort(struct core *core, const struct gang *preemptor, struct victims *list);
bool victims_fit(struct core *core, const struct search *search, struct evaluation *evaluation);

/* victims_back.c: of these victims, those that would take their own queue's quota back from the
 * gang aren't candidates any more; true: there were any. Borrowing as far up as `level`. Within a
 * what-if; leaves it as it was. */
bool victims_leave_out_reclaiming(struct core *core, const struct search *search,
                                  const struct victims *victims, uint32_t level,
                                  struct victims *candidates);

/* Work that is lost with it, in devices x milliseconds; -1: it hasn't begun. */
i128 victims_lost_work(const struct core *core, const struct gang *victim);
/* Of those candidates, in their order, by the policies in turn. */
bool victims_search_among(struct core *core, const struct search *search,
                          const struct victims *candidates, struct victims *ret_victims,
                          struct evaluation *ret_evaluation);
/* victims_topology.c: the same for a gang that has to be in one domain. */
bool victims_search_domains(struct core *core, const struct search *search,
                            const struct victims *candidates, struct victims *ret_victims,
                            struct evaluation *ret_evaluation);

/* The smallest set of gangs to stop so that the gang fits on that combination of flavors. Within a
 * what-if; leaves it as it was. */
bool victims_search(struct core *core, struct gang *gang, uint32_t combination,
                    struct victims *ret_victims, struct evaluation *ret_evaluation);

/* fungible.c: over all combinations. Within a what-if; leaves it as it was. */
bool fungible_search(struct core *core, struct gang *gang, struct evidence *evidence,
                     struct victims *ret_victims, struct evaluation *ret_evaluation);

/* victims_fair.c: by fair sharing. Within a what-if; leaves it as it was. */
bool victims_find_fair(struct core *core, const struct search *search,
                       const struct victims *candidates, struct victims *victims,
                       struct evaluation *evaluation);
