/* scenario.h - a cluster on paper, for tests of the core alone.
 *
 * A scenario holds the cluster's objects, gives each change to the core as an event, and plays the
 * API server for what the core asks: by default every write is answered OK at once and the changed
 * object comes back as an event, as a watch would show it. What the core decides is written down as
 * a readable trace, with the virtual time in milliseconds since the scenario's start:
 *
 *   [   0] train: admit 5 pods, default: cpu=5
 *   [   0] train > Admitted 0/5 on default
 *   [2000] train > Pending #1 QuotaExhausted: needs 5 cpu at once, …
 *   [2000] train ! Warning PodsReadyTimeout: …
 *
 * Objects live in namespace `ml` unless their options say `ns=…`. Options are words KEY=VALUE. A
 * key with a dot or slash in it is a resource name, as are cpu, memory and pods. After each step
 * the ledger is checked, and that no queue grew over its quota and no device was promised twice.
 *
 * Everything that is returned is borrowed until the scenario is freed. */
#pragma once

#include "tallyman/core/core.h"
#include "tallyman/api/codec.h"
#include "tallyman/api/node.h"
#include "tallyman/api/dra.h"

struct scenario;

struct scenario *scenario_new(void);
/* The core of those made from now on looks nothing up in an index (core_options.is_plain). So does
 * every one where the environment has SCENARIOS_ARE_PLAIN. */
void scenarios_are_plain(bool is_plain);
/* Those made from now on let no more gangs go in a step (core_options.admissions_per_step), and go
 * on with the pass at once. 0: all. */
void scenarios_are_cut(uint32_t admissions_per_step);
/* Those made from now on keep this interval between two writes of one Admission
 * (core_options.admission_interval_ms). 0: none. */
void scenarios_are_paced(int64_t interval_ms);
/* Those made from now on try device selectors for so much in a step
 * (core_options.selector_cost_per_step); wakes_at_once() goes on. 0: no limit. */
void scenarios_try_selectors(uint64_t cost_per_step);
void scenario_free(struct scenario *s);
/* For cmocka_unit_test_setup_teardown(). */
int scenario_setup(void **state);
int scenario_teardown(void **state);
#define scenario_test(fn) cmocka_unit_test_setup_teardown(fn, scenario_setup, scenario_teardown)

/* -- time ---------------------------------------------------------------------------------------
 */

/* Goes to that time, waking the core whenever it asked for it on the way. */
void at(struct scenario *s, int64_t ms);
/* Ticks, while the core wants one at once: how many, `most` at most. */
uint32_t wakes_at_once(struct scenario *s, uint32_t most);
/* At once: nothing happens on the way. */
void clock_jumps(struct scenario *s, int64_t by_ms);
int64_t scenario_now_ms(const struct scenario *s);

/* -- what is there ------------------------------------------------------------------------------
 */

/* Until scenario_start() objects are only listed; the first thing that happens starts it too. */
void scenario_start(struct scenario *s);
/* "cpu=4 gpu.example.com=2"; `flavor=NAME` names the flavor of the resources behind it (default:
 * default), `group=new` starts a resource group. strategy= stop= timeout= base= max= limit=
 * undeclared= fit= cohort= within= and reclaim= (preemption) protect= (minRuntimeProtection)
 * check=CLASS (admission check `provisioning`) check-timeout= managed=RESOURCE detail=LABEL:DETAIL
 * starvation= default-runtime= max-runtime= weight= (fairSharing) select=KEY:VALUE
 * (namespaceSelector). Given again, it becomes so. */
void given_queue(struct scenario *s, const char *name, const char *options);
void quota_becomes(struct scenario *s, const char *name, const char *options);
/* label=K:V taint=K:EFFECT (nodeTaints) toleration=K level=K (of the topology, widest first) */
void given_flavor(struct scenario *s, const char *name, const char *options);
/* "cpu=8 memory=… pods=110 nvidia.com/gpu=4 label=K:V taint=K:EFFECT ready=False cordoned=true" */
void given_node(struct scenario *s, const char *name, const char *options);
/* The same of so much cpu, labelled with its zone and rack. */
void given_node_in(struct scenario *s, const char *name, const char *zone, const char *rack,
                   int cpu);
/* The node's slice lists these devices (words) of driver gpu.example.com; class= is no option here:
 * given_class() selects by driver. */
void given_devices(struct scenario *s, const char *node, const char *devices);
void given_class(struct scenario *s, const char *name, const char *cel);
/* The slice of a node with devices g0 and g1; `second` is what g1 says beside its name. */
void given_pair(struct scenario *s, const char *node, const char *second);
void given_template(struct scenario *s, const char *name, const char *class_name, int count);
void given_claim(struct scenario *s, const char *name, const char *class_name, int count);
/* Claim JOB-TEMPLATE, as it is made for the PodGroup of a Job with group=TEMPLATE. */
void given_group_claim(struct scenario *s, const char *job, const char *template_name);
void given_priority_class(struct scenario *s, const char *name, int value);
void given_namespace(struct scenario *s, const char *name, const char *labels); /* "K:V" or "" */
/* pods= cpu= min= partial=true hold=true claim= template= group= (a template of which the gang gets
 * one claim for all, by its PodGroup) selector=K:V toleration=K priority=
 * parallelism= completions= limit-cpu= runtime= created=MS running=true (not suspended)
 * max-runtime= required= preferred= (annotations) deadline= (activeDeadlineSeconds) and resource
 * names. Queue "": no label. */
void given_job(struct scenario *s, const char *name, const char *queue, const char *options);
/* The same with the pod template's spec as JSON. */
void given_job_spec(struct scenario *s, const char *name, const char *queue, const char *options,
                    const char *spec);
/* A further pod set of the Job, to be told before it; options as of given_job(). The Job's own
 * template is set `main`. */
void given_pod_set(struct scenario *s, const char *job, const char *name, const char *options);
/* Its template and sizes as they stand, as a Job. */
struct job *scenario_pod_set(struct scenario *s, const char *job, const char *name);
/* Any object as JSON; uid, resourceVersion and namespace are put in if absent. */
void given_json(struct scenario *s, enum object_kind kind, const char *json);
void object_gone(struct scenario *s, enum object_kind kind, const char *name);
/* The same object comes by the watch once more. */
void object_again(struct scenario *s, enum object_kind kind, const char *name);

/* The object as it stands, to be changed in place; then object_changed() tells the core. */
void *scenario_object(struct scenario *s, enum object_kind kind, const char *name);
bool scenario_has(const struct scenario *s, enum object_kind kind, const char *name);
struct job *scenario_job(struct scenario *s, const char *name);
void object_changed(struct scenario *s, enum object_kind kind, const char *name);

/* -- what happens -------------------------------------------------------------------------------
 */

/* Pods NAME-0, NAME-1, … of the Job are made, bound to these nodes (words) and ready. */
void gang_starts(struct scenario *s, const char *job, const char *nodes);
/* Pods JOB-SET-0, … of a further set, after gang_starts() for the first. */
void pod_set_starts(struct scenario *s, const char *job, const char *name, const char *nodes);
/* All its pods are gone, and the Job's status says so. */
void gang_stops(struct scenario *s, const char *job);
/* Only the status: Suspended is True, while its pods may still be terminating. */
void job_says_suspended(struct scenario *s, const char *job);
void pods_appear(struct scenario *s, const char *job, int count); /* unbound */
void pod_binds(struct scenario *s, const char *pod, const char *node);
void pod_is_ready_now(struct scenario *s, const char *pod, bool is_ready);
void pod_succeeds(struct scenario *s, const char *pod);
void pod_terminates(struct scenario *s, const char *pod); /* gets its deletionTimestamp */
void pod_gone(struct scenario *s, const char *pod);
/* A pod of nobody's Job. */
void given_pod(struct scenario *s, const char *name, const char *node, const char *options);
/* The pod's claim of that template entry is made and allocated: "NODE/DEVICE …" (words). */
void pod_claims(struct scenario *s, const char *pod, const char *template_name,
                const char *devices);
void claim_allocated(struct scenario *s, const char *claim, const char *devices);
void claim_freed(struct scenario *s, const char *claim);
void claim_reserved(struct scenario *s, const char *claim, const char *pod);
/* Claim JOB-TEMPLATE is allocated these devices for the Job's PodGroup, and its pods name it. */
void group_claim_allocated(struct scenario *s, const char *job, const char *template_name,
                           const char *devices);
/* Complete; its pods have succeeded. */
void job_finishes(struct scenario *s, const char *job);
void job_suspended_by_user(struct scenario *s, const char *job, bool is_suspended);
void job_relabelled(struct scenario *s, const char *job, const char *queue); /* "" removes it */
void job_annotated(struct scenario *s, const char *job, const char *key, const char *value);
/* An annotation tallyman.dev/admission that Tallyman didn't write; tells nobody yet. */
void job_has_record(struct scenario *s, const char *job, const char *record);
void job_resized(struct scenario *s, const char *job, int parallelism, int completions);
void job_deleted_now(struct scenario *s, const char *job);
void job_recreated(struct scenario *s, const char *job, const char *queue, const char *options);

/* -- the API server's answers -------------------------------------------------------------------
 */

/* From now on Job writes wait for one of the answers below. */
void writes_are_manual(struct scenario *s, bool is_manual);
/* OK, and the watch shows it (`is_shown`), or not yet: job_shown() does it later. */
void write_ok(struct scenario *s, const char *job, bool is_shown);
void job_shown(struct scenario *s, const char *job);
void write_conflict(struct scenario *s, const char *job);
void write_refused(struct scenario *s, const char *job, const char *message);
void write_gone(struct scenario *s, const char *job);
bool write_is_out(const struct scenario *s, const char *job);
/* The API server says no to every Admission, or no longer. */
void admissions_are_refused(struct scenario *s, bool are_refused);
/* The same of the statuses of Queues, Cohorts and ResourceFlavors. */
void statuses_are_refused(struct scenario *s, bool are_refused);

/* -- ProvisioningRequests
 * --------------------------------------------------------------------------
 */

/* From now on one that the core asks for is only made by request_is_made(). */
void requests_are_manual(struct scenario *s, bool is_manual);
void request_is_made(struct scenario *s);
void request_is_refused(struct scenario *s, const char *message);
void request_is_unknown(struct scenario *s); /* 404 */
/* The only one of the Job, or the latest; NULL: it has none. */
const char *request_of(struct scenario *s, const char *job);
int requests_of(struct scenario *s, const char *job);
/* The autoscaler says so; `condition` False with a leading '!'. */
void request_says_that(struct scenario *s, const char *name, const char *condition,
                       const char *message);
void request_has_detail(struct scenario *s, const char *name, const char *key, const char *value);
/* A deletion that the core asks for doesn't happen any more. */
void request_deletions_fail(struct scenario *s, bool fails);
/* The kind is served no longer, or again. */
void requests_are_served(struct scenario *s, bool is_served);

/* The controller starts anew. What it finds: the cluster's objects, listed kind by kind. */
enum restart_with { WITH_ADMISSIONS = 1, WITHOUT_ADMISSIONS };
void restart(struct scenario *s, enum restart_with what);
/* The order in which a restart lists the objects: shuffled by this seed; 0: as they were
 * made. An odd seed lists kind by kind, each reported complete before the next begins. */
void listing_order(struct scenario *s, uint64_t seed);

/* What happens from now on is seen only by events_arrive(): all of one moment, and the core decides
 * after the last. Each kind's events keep their order, as a watch has it; `seed` mixes the kinds,
 * 0: all as they happened. */
void events_gather(struct scenario *s);
void events_arrive(struct scenario *s, uint64_t seed);
/* Before each step of a random run: in a third of the runs what has happened arrives now and then,
 * and what happens until then is of one moment. events_arrive() at the end. */
void events_arrive_at_times(struct scenario *s, uint64_t seed, uint32_t step);

/* -- what came of it ----------------------------------------------------------------------------
 */

/* The trace since the last call; a line ending in "…" need only begin so. */
#define expect_trace(s, text) expect_trace_at((s), (text), __FILE__, __LINE__)
/* The gang's state and reason as its Admission says them: "Pending QuotaExhausted", "Running". */
#define expect_state(s, job, text) expect_state_at((s), (job), (text), __FILE__, __LINE__)
/* The Admission's message contains this. */
#define expect_message(s, job, part) expect_message_at((s), (job), (part), __FILE__, __LINE__)
/* "cpu=4 gpu.example.com=2": what the queue's gangs are charged, all its flavors together. */
#define expect_used(s, queue, text) expect_used_at((s), (queue), (text), __FILE__, __LINE__)
/* When its Admission says that it starts, since the start; LIKELY_UNKNOWN: nobody can know;
 * LIKELY_NONE: it wasn't worked out. */
#define LIKELY_UNKNOWN (-1)
#define LIKELY_NONE    (-2)
int64_t likely_start_ms(struct scenario *s, const char *job);
int64_t likely_start_minute(struct scenario *s, const char *job); /* the same in whole minutes */
/* For Backfill: in queue q, of 8 cpu by `options`, `long` holds 6 until an hour has passed, and it
 * is one minute past. */
void given_a_long_one(struct scenario *s, const char *options);
void expect_trace_at(struct scenario *s, const char *text, const char *file, int line);
void expect_state_at(struct scenario *s, const char *job, const char *text, const char *file,
                     int line);
void expect_message_at(struct scenario *s, const char *job, const char *part, const char *file,
                       int line);
void expect_used_at(struct scenario *s, const char *queue, const char *text, const char *file,
                    int line);

/* Drops the trace so far. */
void trace_forget(struct scenario *s);
const char *trace_text(const struct scenario *s); /* borrowed until the next step */
/* What the core decides about each gang, one line each. */
const char *decisions_text(struct scenario *s);
/* Why a gang waits may have changed without making a difference: nobody is woken for that. */
const char *decisions_without_reasons(struct scenario *s);

struct scenario_counts {
    uint32_t job_writes;
    uint32_t admission_writes;
    uint32_t status_writes;
    uint32_t events;
    uint32_t effects;       /* of any kind */
    uint32_t most_effects;  /* of one step */
    uint32_t gangs_visited; /* by decisions */
    uint32_t nodes_visited;
    uint32_t queues_ranked;
    uint32_t shapes_woken;
    uint32_t waiters_visited;
    uint32_t admitted;
    uint64_t most_selector_cost; /* of one step */
};

/* Since the last call. */
struct scenario_counts counts_take(struct scenario *s);
struct core *scenario_core(struct scenario *s);
/* The ledger isn't walked after each step any more: for thousands of objects. */
void checks_are_cheap(struct scenario *s);
/* What the Job's nodeSelector says of that key; NULL: nothing. */
void expect_selector(struct scenario *s, const char *job, const char *key, const char *value);
