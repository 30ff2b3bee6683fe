/* simulate_faults.c - the half with Tallyman once more, while things go wrong: writes are lost,
 * refused or answered never, watches are late, doubled and broken, the controller is killed. All of
 * it is drawn from the seed. The last quarter of the time is quiet. */
#include "simulate_harm.h"

#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/map.h"

#define FAULTS_PERCENT   15   /* of writes and of watch events */
#define LATE_MS_MAX      4000 /* a watch event */
#define BLOW_MS_MIN      20000
#define BLOW_MS_MAX      300000 /* between two kills or broken watches */
#define RELIST_MS_MAX    3000
#define PARTIAL_MS_MAX   60000 /* kube-scheduler takes a moment for each pod */
#define UNSEEN_MS        10000 /* so late may a watch that is late and broken tell of a change */
#define KEY_BYTES        640   /* a namespace and a name */
#define LOOK_MS          10000 /* from one look at the gangs to the next, at most */
#define QUIET_OF_QUARTER 4

/* A Job that Tallyman has let go and not stopped since. */
struct running_job {
    struct str key; /* owned */
    bool is_harmed; /* room went after it was let go, or too shortly before to be known */
    bool is_told;   /* among `halved` */
    UT_hash_handle hh;
};

struct faults {
    uint64_t random;
    int64_t until_ms; /* no fault strikes after that */
    int64_t blow_ms;
    uint64_t writes;
    uint64_t made[SIM_FAULT_OVERLOADED + 1]; /* by enum sim_fault */
    uint64_t late, doubled, broken, kills;
    struct running_job *running;
    struct harm harm;
    uint32_t templates; /* of ResourceClaims, that there are */
    bool has_lost_template;
    uint64_t strikes;                     /* of the harm, that the Jobs running then were told of */
    uint64_t halved;                      /* gangs that stood half, which the cluster itself did */
    char halved_what[ERR_TEXT_MAX_BYTES]; /* the first of them */
    bool is_broken;
    char what[ERR_TEXT_MAX_BYTES]; /* the first thing that didn't hold */
};

static uint32_t draw(struct faults *faults, uint32_t below)
{
    faults->random = faults->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(faults->random >> 33) % below;
}

struct faults *faults_new(uint64_t seed, int64_t until_ms)
{
    struct faults *faults = MEM_NEW(struct faults);
    faults->random = seed * 0x9e3779b97f4a7c15u + 1;
    faults->until_ms = until_ms - until_ms / QUIET_OF_QUARTER;
    faults->blow_ms = BLOW_MS_MIN;
    harm_init(&faults->harm);
    return faults;
}

static void forget_running(struct faults *faults, struct running_job *job)
{
    HASH_DEL(faults->running, job);
    mem_free((void *)(uintptr_t)job->key.ptr);
    mem_free(job);
}

void faults_free(struct faults *faults)
{
    struct running_job *job;
    struct running_job *next;
    HASH_ITER (hh, faults->running, job, next) {
        forget_running(faults, job);
    }
    harm_deinit(&faults->harm);
    mem_free(faults);
}

/* -- what goes wrong ----------------------------------------------------------------------------
 */

enum sim_fault faults_of_write(struct faults *faults, const struct driver_write *write, bool is_on)
{
    static const enum sim_fault kinds[] = {SIM_FAULT_LOST, SIM_FAULT_ANSWER_LOST,
                                           SIM_FAULT_CONFLICT, SIM_FAULT_REFUSED,
                                           SIM_FAULT_OVERLOADED};
    faults->writes++;
    if (!is_on || draw(faults, 100) >= FAULTS_PERCENT) {
        return SIM_FAULT_NONE;
    }
    enum sim_fault kind = kinds[draw(faults, ARRAY_COUNT(kinds))];
    /* An Admission or a status is applied by force, an Event is new: nobody can be first. */
    if (kind == SIM_FAULT_CONFLICT && write->effect->kind != EFFECT_PATCH_JOB) {
        kind = SIM_FAULT_LOST;
    }
    faults->made[kind]++;
    return kind;
}

void faults_of_watch(struct faults *faults, struct sim_watch_fault *ret_fault, bool is_on)
{
    if (!is_on || draw(faults, 100) >= FAULTS_PERCENT) {
        return;
    }
    ret_fault->late_ms = draw(faults, LATE_MS_MAX);
    ret_fault->is_twice = draw(faults, 4) == 0;
    faults->late++;
    faults->doubled += ret_fault->is_twice ? 1 : 0;
}

static void blow(struct faults *faults, struct sim *sim)
{
    if (draw(faults, 2) == 0) {
        sim_restart_controller(sim, (enum sim_writes)draw(faults, 3));
        faults->kills++;
    } else {
        sim_relist(sim, (enum object_kind)(KIND_NONE + 1 + draw(faults, KIND_COUNT - 1)),
                   draw(faults, RELIST_MS_MAX));
        faults->broken++;
    }
    faults->blow_ms = sim_now_ms(sim) + BLOW_MS_MIN + draw(faults, BLOW_MS_MAX - BLOW_MS_MIN);
}

/* -- what must hold -----------------------------------------------------------------------------
 */

static void complain(struct faults *faults, int64_t at_ms, struct str what)
{
    if (!faults->is_broken) {
        faults->is_broken = true;
        (void)snprintf(faults->what, sizeof(faults->what), "after %lld s: " STR_FMT,
                       (long long)(at_ms / 1000), STR_ARG(what));
    }
}

static struct running_job *running_find(const struct faults *faults, struct str key)
{
    struct running_job *job = NULL;
    HASH_FIND(hh, faults->running, key.ptr, (unsigned)key.len, job);
    return job;
}

static void running_add(struct faults *faults, struct str key, int64_t at_ms)
{
    struct running_job *job = MEM_NEW(struct running_job);
    char *copy = mem_alloc(key.len);
    memcpy(copy, key.ptr, key.len);
    job->key = (struct str){copy, key.len};
    job->is_harmed = faults->harm.struck_ms >= 0 && at_ms - faults->harm.struck_ms <= UNSEEN_MS;
    HASH_ADD_KEYPTR(hh, faults->running, job->key.ptr, (unsigned)job->key.len, job);
}

void faults_note(struct faults *faults, const struct sim *sim, const struct sim_note *note)
{
    harm_note(&faults->harm, sim, note);
    bool is_end = note->kind == SIM_JOB_SUSPENDED || note->kind == SIM_JOB_FINISHED ||
                  note->kind == SIM_JOB_DELETED;
    if (!str_is_set(note->job) || (note->kind != SIM_JOB_ADMITTED && !is_end)) {
        return;
    }
    struct running_job *job = running_find(faults, note->job);
    if (note->kind == SIM_JOB_ADMITTED && job != NULL) {
        char text[ERR_TEXT_MAX_BYTES];
        (void)snprintf(text, sizeof(text), STR_FMT " was admitted twice", STR_ARG(note->job));
        complain(faults, note->at_ms, str_from_c(text));
    } else if (note->kind == SIM_JOB_ADMITTED) {
        running_add(faults, note->job, note->at_ms);
    } else if (job != NULL) {
        forget_running(faults, job);
    }
}

struct looking {
    struct faults *faults;
    struct sim *sim;
};

static void tell_half(struct faults *faults, struct running_job *job, int64_t at_ms,
                      const struct sim_job_state *state)
{
    char text[ERR_TEXT_MAX_BYTES];
    (void)snprintf(text, sizeof(text), STR_FMT "/" STR_FMT, STR_ARG(state->namespace_name),
                   STR_ARG(state->name));
    long long half_s = state->partial_ms / 1000;
    if (job == NULL || !job->is_harmed) {
        char what[ERR_TEXT_MAX_BYTES];
        (void)snprintf(what, sizeof(what),
                       "%.300s had some of its pods bound and not all for %lld s", text, half_s);
        complain(faults, at_ms, str_from_c(what));
        return;
    }
    if (!job->is_told && faults->halved++ == 0) {
        (void)snprintf(faults->halved_what, sizeof(faults->halved_what), "%.300s after %lld s: %s",
                       text, (long long)(at_ms / 1000), faults->harm.what);
    }
    job->is_told = true;
}

static void look_at_job(void *ctx, const void *value)
{
    struct looking *looking = ctx;
    const struct object_meta *meta = value;
    struct sim_job_state state;
    if (sim_job_state(looking->sim, meta->namespace_name, meta->name, &state) && state.is_gang &&
        state.partial_ms > PARTIAL_MS_MAX) {
        char key[KEY_BYTES];
        int length = snprintf(key, sizeof(key), STR_FMT "/" STR_FMT, STR_ARG(meta->namespace_name),
                              STR_ARG(meta->name));
        struct running_job *job = running_find(looking->faults, (struct str){key, (size_t)length});
        tell_half(looking->faults, job, sim_now_ms(looking->sim), &state);
    }
}

static void count_template(void *ctx, const void *value)
{
    (void)value;
    ++*(uint32_t *)ctx;
}

/* What the pods' claims hold is what their gangs are charged for, unless a template went: another
 * one may have taken its name meanwhile, and that is no fault of Tallyman's. */
static void look_at_ledger(struct faults *faults, const struct sim *sim)
{
    const struct core *core = sim_core(sim);
    uint32_t templates = 0;
    sim_each(sim, KIND_RESOURCE_CLAIM_TEMPLATE, count_template, &templates);
    faults->has_lost_template = faults->has_lost_template || templates < faults->templates;
    faults->templates = templates;
    int64_t more = core == NULL ? 0 : core_drift_seen(core).devices;
    if (more > 0 && !faults->has_lost_template) {
        char text[ERR_TEXT_MAX_BYTES];
        (void)snprintf(text, sizeof(text), "pods hold %lld device%s that no gang was charged for",
                       (long long)more, more == 1 ? "" : "s");
        complain(faults, sim_now_ms(sim), str_from_c(text));
    }
}

/* Whoever stood half before is judged before what has just gone is known. */
static void look(struct faults *faults, struct sim *sim)
{
    struct err err;
    if (rc_failed(sim_check(sim, &err))) {
        complain(faults, sim_now_ms(sim), str_from_c(err.text));
    }
    look_at_ledger(faults, sim);
    sim_each(sim, KIND_JOB, look_at_job, &(struct looking){faults, sim});
    harm_look(&faults->harm, sim);
    if (faults->strikes == faults->harm.strikes) {
        return;
    }
    faults->strikes = faults->harm.strikes;
    struct running_job *job;
    struct running_job *next;
    HASH_ITER (hh, faults->running, job, next) {
        job->is_harmed = true;
    }
}

void faults_step(struct faults *faults, struct sim *sim, int64_t until_ms)
{
    int64_t now_ms = sim_now_ms(sim);
    int64_t next_ms = sim_next_ms(sim);
    bool may_blow = faults->blow_ms < faults->until_ms;
    next_ms = may_blow && faults->blow_ms < next_ms ? faults->blow_ms : next_ms;
    next_ms = now_ms + LOOK_MS < next_ms ? now_ms + LOOK_MS : next_ms;
    next_ms = next_ms < until_ms ? next_ms : until_ms;
    (void)sim_run_until(sim, next_ms > now_ms ? next_ms : now_ms);
    look(faults, sim);
    if (may_blow && sim_now_ms(sim) >= faults->blow_ms) {
        blow(faults, sim);
    }
}

bool faults_are_on(const struct faults *faults, int64_t now_ms)
{
    return now_ms < faults->until_ms;
}

/* -- what is told of it -------------------------------------------------------------------------
 */

bool faults_print(FILE *out, const struct faults *faults, uint64_t seed)
{
    print_ink(out, INK_BOLD);
    fprintf(out, "Under faults");
    print_ink(out, INK_PLAIN);
    fprintf(out, " (--seed %llu; none in the last quarter)\n", (unsigned long long)seed);
    fprintf(out,
            "  writes      %llu, of them %llu lost, %llu carried out and never answered, %llu in "
            "conflict,\n              %llu refused, %llu sent back by an overloaded server\n",
            (unsigned long long)faults->writes, (unsigned long long)faults->made[SIM_FAULT_LOST],
            (unsigned long long)faults->made[SIM_FAULT_ANSWER_LOST],
            (unsigned long long)faults->made[SIM_FAULT_CONFLICT],
            (unsigned long long)faults->made[SIM_FAULT_REFUSED],
            (unsigned long long)faults->made[SIM_FAULT_OVERLOADED]);
    fprintf(out, "  watches     %llu events late, %llu of them twice; %llu broken\n",
            (unsigned long long)faults->late, (unsigned long long)faults->doubled,
            (unsigned long long)faults->broken);
    fprintf(out, "  controller  killed %llu times\n", (unsigned long long)faults->kills);
    if (faults->is_broken) {
        print_ink(out, INK_RED);
        fprintf(out, "  broken      %s\n%s", faults->what, faults->halved > 0 ? "" : "\n");
        print_ink(out, INK_PLAIN);
    } else {
        fprintf(out,
                "  held        no node had more than it has, no device was given out twice or "
                "uncharged, no Job was\n              admitted twice, no gang stood with some of "
                "its pods for a minute\n%s",
                faults->halved > 0 ? "" : "\n");
    }
    if (faults->halved > 0) {
        fprintf(out,
                "  but for     %llu gang%s that stood so since the cluster itself took room away, "
                "which no admission\n              foresees: %s\n\n",
                (unsigned long long)faults->halved, faults->halved == 1 ? "" : "s",
                faults->halved_what);
    }
    return !faults->is_broken;
}
