/* main.c - the reference model against the core, on random small states.
 *
 *   model [--states N] [--seed FIRST] [--show N]
 *
 * Each state is generated from its number, judged by both, and compared gang by gang. The first N
 * that differ are shrunk - gangs, nodes, queues, cohorts and settings are dropped while they still
 * differ - and printed as a case that `tallyman plan -f` takes. */
#include <stdlib.h>
#include <string.h>

#include "model/policy.h"

/* Which of the quota's three reasons it is, and which of the room's, depends on how far the numbers
 * are looked into; that it is quota or room is policy. */
static enum reason kind_of(enum reason reason)
{
    bool is_quota = reason == REASON_BORROWING_LIMIT || reason == REASON_COHORT_EXHAUSTED;
    bool is_room = reason == REASON_NODE_SHAPE || reason == REASON_DEVICES_EXHAUSTED ||
                   reason == REASON_DEVICES_UNHEALTHY || reason == REASON_RESERVED_FOR_OTHER;
    return is_quota ? REASON_QUOTA_EXHAUSTED : is_room ? REASON_NODES_FULL : reason;
}

static bool is_same(const struct answer *a, const struct answer *b)
{
    bool starts = a->decision == DECISION_ADMIT || a->decision == DECISION_PREEMPT;
    return a->decision == b->decision && a->victims == b->victims &&
           (!starts || (a->count == b->count && a->flavor == b->flavor)) &&
           (a->decision != DECISION_WAIT || b->is_reason_open ||
            kind_of(a->reason) == kind_of(b->reason));
}

static bool agree(const struct model_state *state, struct answer core[GANGS],
                  struct answer model[GANGS])
{
    core_answer(state, core);
    model_answer(state, core, model);
    for (int g = 0; g < GANGS; g++) {
        if (state->gangs[g].exists && !is_same(&core[g], &model[g])) {
            return false;
        }
    }
    return true;
}

static bool differs(const struct model_state *state)
{
    struct answer core[GANGS];
    struct answer model[GANGS];
    return !agree(state, core, model);
}

static void show(struct model_state *state, uint64_t seed)
{
    struct answer core[GANGS];
    struct answer model[GANGS];
    state_shrink(state, differs);
    (void)agree(state, core, model);
    printf("# state %llu, shrunk\n", (unsigned long long)seed);
    for (int g = 0; g < GANGS; g++) {
        if (state->gangs[g].exists && !is_same(&core[g], &model[g])) {
            printf("# the core says: ");
            answer_print(state, g, &core[g], stdout);
        }
    }
    state_print(state, model, stdout);
    printf("---\n");
    fflush(stdout);
}

struct options {
    uint64_t states;
    uint64_t first;
    uint64_t shown_max;
};

static bool parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i += 2) {
        uint64_t *value = strcmp(argv[i], "--states") == 0 ? &options->states
                          : strcmp(argv[i], "--seed") == 0 ? &options->first
                          : strcmp(argv[i], "--show") == 0 ? &options->shown_max
                                                           : NULL;
        if (value == NULL || i + 1 == argc) {
            fprintf(stderr, "usage: %s [--states N] [--seed N] [--show N]\n", argv[0]);
            return false;
        }
        *value = strtoull(argv[i + 1], NULL, 10);
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options options = {.states = 2000, .first = 1, .shown_max = 1};
    if (!parse(argc, argv, &options)) {
        return 2;
    }
    uint64_t failed = 0;
    uint64_t decided[DECISION_EVICT + 1] = {0};
    for (uint64_t seed = options.first; seed < options.first + options.states; seed++) {
        struct model_state state;
        struct answer core[GANGS];
        struct answer model[GANGS];
        state_generate(&state, seed, ALL_KINDS);
        bool is_agreed = agree(&state, core, model);
        for (int g = 0; g < GANGS; g++) {
            decided[core[g].decision]++;
        }
        if (!is_agreed && failed++ < options.shown_max) {
            show(&state, seed);
        }
    }
    for (int d = DECISION_ADMIT; d <= DECISION_EVICT; d++) {
        printf("%llu %s%s", (unsigned long long)decided[d], decision_name((enum decision)d),
               d == DECISION_EVICT ? "\n" : ", ");
    }
    printf("%llu passed, %llu failed\n", (unsigned long long)(options.states - failed),
           (unsigned long long)failed);
    return failed != 0;
}
