/* victims_barred.c - gangs that would be stopped first, but can't be stopped just yet.
 *
 * A gang that was set aside or admitted a moment ago can't be stopped before it has started. Its
 * queue may borrow by that gang alone: then the others of the queue, which would lose after it, are
 * within what the queue owns, and aren't stopped in its place. Who wants it back waits until the
 * gang can be stopped. */
#include "victims.h"

static bool is_barred(const struct gang *victim)
{
    bool is_up = victim->state == GANG_ADMITTED || victim->state == GANG_RUNNING ||
                 victim->room->check != NULL;
    return is_up ? gang_is_busy(victim) : victim->state == GANG_RESERVED;
}

void victims_note_barred(struct core *core, struct search *search, struct gang *victim)
{
    const struct gang *gang = search->gang;
    if (victim == gang || str_is_set(victim->stops_for) || !is_barred(victim)) {
        return;
    }
    bool is_own = victim->reservation->queue == gang->queue;
    if (!is_own && victims_may_reclaim(gang, victim) &&
        victims_is_lent_to(gang, victim, search->needs)) {
        victim->wakes_preemptors = true;
        victims_append(core, &search->barred, victim);
    }
}

void victims_set_barred(struct core *core, const struct search *search, const struct gang *victim,
                        bool is_out)
{
    for (uint32_t i = 0; i < search->barred.count; i++) {
        struct gang *barred = search->barred.items[i];
        if (barred->reservation->queue == victim->reservation->queue &&
            barred->priority <= victim->priority) {
            whatif_set_quota(core, barred, is_out);
        }
    }
}

bool victims_is_lent(struct core *core, const struct search *search, const struct gang *victim)
{
    victims_set_barred(core, search, victim, true);
    bool is_lent = victims_is_lent_to(search->gang, victim, search->needs);
    victims_set_barred(core, search, victim, false);
    return is_lent;
}
