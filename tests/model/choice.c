/* choice.c - what is held at first, what a gang asks, and what it could run on: one flavor of each
 * resource group that it asks of. */
#include <string.h>

#include "model/policy.h"

int ask_of(const struct model_gang *gang, enum resource r, int count)
{
    return gang->ask[r] * count;
}

bool is_ahead(const struct model_state *state, int a, int b)
{
    const struct model_gang *one = &state->gangs[a];
    const struct model_gang *two = &state->gangs[b];
    if (one->priority != two->priority) {
        return one->priority > two->priority;
    }
    return one->age_s != two->age_s ? one->age_s > two->age_s : one->uid < two->uid;
}

struct books books_at_first(const struct model_state *state, const struct answer *core)
{
    struct books books = {.state = state, .core = core};
    for (int g = 0; g < GANGS; g++) {
        const struct model_gang *gang = &state->gangs[g];
        books.is_charged[g] = books.is_using[g] = gang->exists && gang->is_running;
        books.flavor[g] = gang->flavor;
        books.count[g] = gang->count;
    }
    return books;
}

static int choices_of_queue(const struct model_gang *gang, const int *flavors, const int *cards,
                            int ret_choices[CHOICES])
{
    int count = 0;
    for (int i = 0; i < FLAVORS; i++) {
        for (int j = 0; j < FLAVORS; j++) {
            bool is_first = (gang->ask[CPU] > 0 || i == 0) && (gang->ask[DEVICE] > 0 || j == 0);
            if (is_first && flavors[i] != NONE && cards[j] != NONE) {
                ret_choices[count++] = choice_of(gang->ask[CPU] > 0 ? flavors[i] : NONE,
                                                 gang->ask[DEVICE] > 0 ? cards[j] : NONE);
            }
        }
    }
    return count;
}

int choices_of(const struct model_state *state, int g, int ret_choices[CHOICES])
{
    const struct model_gang *gang = &state->gangs[g];
    const struct model_queue *queue = &state->queues[gang->queue];
    if (state->has_groups) {
        return choices_of_queue(gang, queue->flavors, queue->cards, ret_choices);
    }
    int count = 0;
    for (int i = 0; i < FLAVORS && queue->flavors[i] != NONE; i++) {
        int flavor = queue->flavors[i];
        ret_choices[count++] =
            choice_of(gang->ask[CPU] > 0 ? flavor : NONE, gang->ask[DEVICE] > 0 ? flavor : NONE);
    }
    return count;
}

int nodes_of(int choice)
{
    int flavor = flavor_of(choice, CPU);
    return flavor == FLAVORS ? flavor_of(choice, DEVICE) : flavor;
}

bool choice_is_open(const struct model_state *state, const struct model_gang *gang, int flavor)
{
    bool is_listed = true;
    for (int r = 0; r < RESOURCES; r++) {
        is_listed = is_listed &&
                    (gang->ask[r] == 0 || state->members[COHORTS + gang->queue]
                                                  .quota[flavor_of(flavor, (enum resource)r)][r]
                                                  .nominal != NONE);
    }
    bool has_labels = !state->has_groups || gang->ask[CPU] > 0;
    return is_listed &&
           (gang->selector == NONE || !has_labels || gang->selector == nodes_of(flavor));
}

static int fewest(const struct model_gang *gang)
{
    return gang->min == NONE ? gang->count : gang->min;
}

/* Without a min-count there is nothing to be partial about. */
static bool is_partial(const struct model_gang *gang)
{
    return gang->is_partial && gang->min != NONE;
}

bool is_twin(const struct model_gang *a, const struct model_gang *b)
{
    return a->queue == b->queue && a->count == b->count && fewest(a) == fewest(b) &&
           is_partial(a) == is_partial(b) && a->selector == b->selector &&
           a->bound_s == b->bound_s && memcmp(a->ask, b->ask, sizeof(a->ask)) == 0;
}

bool is_class_allowed(const struct model_state *state, const struct model_gang *gang)
{
    uint32_t classes = state->queues[gang->queue].classes;
    return classes == 0 || (classes >> gang->priority & 1) != 0;
}
