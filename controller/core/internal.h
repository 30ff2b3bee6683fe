/* internal.h - what the files of controller/core offer each other, file by file. */
#pragma once

#include "extended.h"
#include "fit.h"
#include "gang_set.h"
#include "state.h"
#include "strategy.h"
#include "telling.h"
#include "whatif.h"

/* -- quota.c: the trees of shared quota ------------------------------------------------------- */

#define QUOTA_DEPTH_MAX 32 /* cohorts above a queue; a longer chain is told and admits nothing */

void quota_node_init(struct quota_node *node, struct str name, struct queue_state *queue);
void quota_node_deinit(struct quota_node *node);
/* Accounts that neither the spec nor a gang needs any more. */
void quota_node_prune(struct quota_node *node);
struct quota_cell *quota_cell_find(const struct quota_node *node, struct str flavor,
                                   struct str resource);
/* Reads nominal quotas and limits; what isn't listed any more stays while it is used. */
void quota_node_read(struct core *core, struct quota_node *node,
                     const struct resource_group_list *groups);
/* Why nothing starts in the queue whatever is free, in the arena; absent: it may. */
struct str quota_trouble(const struct quota_node *node, struct arena *arena);
/* Specs have changed: links the trees and sums them up anew, if they have. */
void quota_relink(struct core *core);
/* quota_wake.c: before the first edit; and once it is linked anew, those that it may help. */
void quota_mark_stale(struct core *core);
void quota_wake_edited(struct core *core);
/* Whether gangs of that shape draw on the account at all. */
bool quota_shape_asks(const struct core *core, const struct shape *shape, struct str account);
const struct quota_node *quota_root(const struct quota_node *node);
/* Charges or gives back, up the tree. */
/* The highest node whose usage changes; NULL: nothing does. */
struct quota_node *quota_use(struct quota_node *node, struct str flavor, struct str resource,
                             i128 delta);
/* What the node may still use now, its own and what it may borrow; >= 0. */
i128 quota_available(const struct quota_node *node, struct str flavor, struct str resource);
/* What it could ever use, with everything else idle. */
i128 quota_potential(const struct quota_node *node, struct str flavor, struct str resource);
/* With `asked` more, the height of the lowest subtree whose quota holds it: 0 the node's own, else
 * that of the cohort within which it borrows; the root's, if none does. */
uint32_t quota_borrow_level(const struct quota_node *node, struct str flavor, struct str resource,
                            i128 asked);
/* What the node, which has a parent, uses beyond its guaranteed part, with `extra` more. */
i128 quota_beyond(const struct quota_node *node, struct str flavor, struct str resource,
                  i128 extra);
/* Whether the borrowing limit of the node itself is what stands in the way. */
bool quota_hits_borrowing_limit(const struct quota_node *node, struct str flavor,
                                struct str resource, i128 asked);

/* -- order.c: who is next ------------------------------------------------------------------------
 */

/* The shape whose first gang is judged next, or NULL. */
struct shape *order_next(struct core *core);
/* Whether the one would be judged before the other. */
bool order_is_ahead(struct core *core, struct gang *gang, struct gang *other);

/* -- wake.c: which parked shapes a change could free ------------------------------------------ */

void ready_add(struct core *core, struct shape *shape);
void ready_remove(struct core *core, struct shape *shape);
/* The shape is evaluated in this step's pass (if it has gangs that wait). */
void wake_shape(struct core *core, struct shape *shape);
/* The shapes of a queue that wait for one of these bits; all of them with WAIT_ANY. */
#define WAIT_ANY 0xffffffffu
void wake_queue(struct core *core, struct queue_state *queue, uint32_t bits);
/* All that wait for room or for an object (WAIT_CLUSTER, WAIT_PROMISES, WAIT_CONFIG). */
void wake_all(struct core *core, uint32_t bits);
/* wake_cluster.c: the Node is another than it was; or some devices are. */
void wake_for_node_edit(struct core *core, const struct node_state *before,
                        const struct node_state *node);
void wake_for_devices(struct core *core);
/* Room came free on that node. */
void wake_for_node(struct core *core, struct node_state *node);
/* The places that were promised to a gang have been taken up or given back. */
void wake_reserved(struct core *core);
void wake_if_promises_are_stale(struct core *core); /* config.c: as an object has changed */

/* -- queue.c: queues, flavors, cohorts -------------------------------------------------------- */

struct queue_state *queue_find(const struct core *core, struct str name);
/* Finds or makes it (without an object). */
struct queue_state *queue_get(struct core *core, struct str name);
void queue_free_if_unused(struct core *core, struct queue_state *queue);
bool queue_is_strict(const struct queue_state *queue);
bool queue_looks_at_nodes(const struct queue_state *queue); /* unless it is `fit: Quota` */
/* Never NULL. Static, or borrowed from the queue's object. */
const struct queue_preemption *queue_preemption_policy(const struct queue_state *queue);
int64_t queue_pods_ready_timeout_ms(const struct queue_state *queue);
NODISCARD struct rc queue_apply(struct core *core, const struct queue *object, struct err *err);
void queue_deleted(struct core *core, const struct queue *object);
void queue_touch(struct core *core, struct queue_state *queue); /* its status may have changed */
/* Accounts, and a queue, that nobody needs any more. */
void queue_tidy(struct core *core, struct queue_state *queue);
void queue_check_finalizer(struct core *core, struct queue_state *queue);
void queue_tick(struct core *core); /* emits the statuses and positions that are due */
int64_t queue_next_due_ms(const struct core *core);               /* INT64_MAX: nothing is due */
void queue_set_due(struct core *core, struct queue_state *queue); /* after a change of the flags */
void queue_clear_due(struct core *core, struct queue_state *queue);
struct flavor_state *flavor_find(const struct core *core, struct str name);
/* The flavor of that name; `default` is there without an object too. NULL: there is none. */
const struct resource_flavor *flavor_object(const struct core *core, struct str name);
/* The field of the pods that contradicts the flavor's labels, or NULL (static). Keys that the
 * flavor doesn't name are the nodes' business. */
const char *flavor_contradiction(const struct pod_set *set, const struct resource_flavor *flavor);
/* The taint of the flavor that neither the pods nor the flavor itself tolerate, or NULL. */
const struct taint *flavor_untolerated(const struct pod_set *set,
                                       const struct resource_flavor *flavor);
void flavor_apply(struct core *core, const struct resource_flavor *object);
void flavor_deleted(struct core *core, const struct resource_flavor *object);
/* flavor_status.c: nodes and queues, counted; its devices that are ailing. */
void flavor_fill_figures(const struct core *core, const struct flavor_state *flavor,
                         struct arena *arena, struct resource_flavor_status *status);
void flavors_touch(struct core *core); /* what they count may have changed */
struct cohort_state *cohort_find(const struct core *core, struct str name);
/* Finds or makes it (by its name alone). */
struct cohort_state *cohort_get(struct core *core, struct str name);
/* Cohorts that are only named come to be, those that nobody names any more go. */
void cohorts_make_implicit(struct core *core);
struct rc cohort_apply(struct core *core, const struct cohort *object, struct err *err);
void cohort_deleted(struct core *core, const struct cohort *object);
void queues_free(struct core *core);
void flavors_free(struct core *core);

/* -- config.c: the small named objects -------------------------------------------------------- */

const void *named_find(const struct core *core, enum object_kind kind, struct str key);
void named_apply(struct core *core, enum object_kind kind, const struct object_meta *object);
void named_deleted(struct core *core, enum object_kind kind, const struct object_meta *object);
/* The namespace's LimitRanges by name; the array lives in the scratch arena. */
struct request_context namespace_limits(struct core *core, struct str namespace_name);
/* A Job's priority by the class's value, or the global default's, or 0; false: no such class. */
bool priority_of_class(const struct core *core, struct str class_name, int64_t *ret_priority);
void named_free(struct core *core);

/* -- node.c, pod.c ---------------------------------------------------------------------------- */

struct node_state *node_get(struct core *core, struct str name);
NODISCARD struct rc node_apply(struct core *core, const struct node *object, struct err *err);
void node_deleted(struct core *core, const struct node *object);
void node_free_if_unused(struct core *core, struct node_state *node);
void node_tick(struct core *core);
bool node_is_stuck(const struct core *core, const struct node_state *node);
NODISCARD struct rc pod_apply(struct core *core, const struct pod *object, struct err *err);
void pod_deleted(struct core *core, const struct pod *object);
void pod_settle(struct core *core, struct pod_state *pod); /* after a claim changed */
struct pod_group *pod_group_find(const struct core *core, struct str owner); /* or NULL */
void pod_group_free_if_unused(struct core *core, struct pod_group *group);
void pods_free(struct core *core);
void nodes_free(struct core *core);

/* -- health.c: which nodes count as healthy --------------------------------------------------- */

/* Keeps what the Node says of itself; false: it is the same as before. */
bool node_read_conditions(struct node_state *node, const struct node *object, int64_t now_ms);
void node_drop_conditions(struct node_state *node);
/* After a change of the Node or of a flavor's rules: when its quarantine ends. */
void node_plan_rest(struct core *core, struct node_state *node);
void nodes_plan_rest(struct core *core); /* all of them */
void health_tick(struct core *core);
/* A condition that the flavor lists as unhealthy and that the node has, or NULL; borrowed. */
const struct node_condition *node_illness(const struct resource_flavor *flavor,
                                          const struct node_state *node);
/* When its quarantine by that flavor ends; 0: it isn't in any. */
int64_t node_rest_end_ms(const struct core *core, const struct resource_flavor *flavor,
                         const struct node_state *node);

/* -- device.c, claim.c, profile.c ------------------------------------------------------------- */

void slice_apply(struct core *core, const struct resource_slice *object);
void slice_deleted(struct core *core, const struct resource_slice *object);
/* What the claims' allocations take of that key has changed; NULL: nothing any more. */
void device_set_used(struct core *core, struct str key, struct used_device *used);
/* Free for the plan of core.plan_epoch: unused, its counters suffice. Whether a request may have
 * it is asked of profile_match(). */
bool device_is_free(const struct core *core, const struct device_state *device);
/* Free, or it may be allocated several times and nobody has it as a whole. */
bool device_is_open(const struct core *core, const struct device_state *device);
/* A what-if frees what the allocation takes of it, or takes that back. */
void device_set_freed(struct core *core, const struct allocation_result *result, bool is_freed);
void device_plan(struct core *core, struct device_state *device);
void device_unplan(struct core *core, struct device_state *device); /* the last that was planned */
void devices_free(struct core *core);
/* Why some pool's devices don't count, or absent: of the first such pool by its key. */
struct str pools_trouble(const struct core *core, struct arena *arena);
void claim_apply(struct core *core, const struct resource_claim *object);
void claim_deleted(struct core *core, const struct resource_claim *object);
bool claim_is_allocated(const struct claim_state *claim);
/* Whether what the allocation names is in use by it: admin access uses nothing. */
bool allocation_is_use(const struct allocation_result *result);
/* "driver/pool/device"; in the scratch arena. */
struct str allocation_key(struct core *core, const struct allocation_result *result);
/* The profile for one request, counted in `users`; profile->problem tells why it can't be judged.
 */
struct device_profile *profile_use(struct core *core, const struct device_request_exact *request);
void profile_drop(struct core *core, struct device_profile *profile);
void profiles_class_changed(struct core *core, struct str class_name);
void profiles_slot_changed(struct core *core, uint32_t slot);
/* MATCH_OUT: it is such a device, and the request can't have it now (taint.c). */
enum match { MATCH_UNKNOWN = 0, MATCH_NO, MATCH_YES, MATCH_FAILED, MATCH_OUT };
enum match profile_match(struct core *core, struct device_profile *profile,
                         const struct device_state *device);
/* Whether it is such a device, be it in use or out. */
bool profile_selects(struct core *core, struct device_profile *profile,
                     const struct device_state *device);
/* Why a selector fails on a device (the first of them by key), absent: none does. Scratch arena. */
struct str profile_failure(struct core *core, struct device_profile *profile);
void profiles_free(struct core *core);

/* -- taint.c: devices that are tainted -------------------------------------------------------- */

void taint_rule_apply(struct core *core, const struct device_taint_rule *object);
void taint_rule_deleted(struct core *core, const struct device_taint_rule *object);
void taint_rules_free(struct core *core);
/* Reads whether it is tainted by its slice or a rule; what rested on that is judged anew. */
void device_read_taints(struct core *core, struct device_state *device);
void device_set_ailing(struct core *core, struct device_state *device, bool is_ailing);
void device_set_evicting(struct core *core, struct device_state *device, bool is_evicting);

struct taint_query {
    const struct toleration_list *tolerations;
    int64_t at_ms; /* that they cover until then doesn't suffice */
    bool only_evicting;
    int64_t *due_ms; /* lowered to when the first that they cover for a time isn't any more */
};

/* The first taint of the device that they don't cover, or NULL; borrowed until the slice or the
 * rule changes. */
const struct taint *device_untolerated(const struct core *core, const struct device_state *device,
                                       const struct taint_query *query);
/* Whether such a request can't have it now, for a taint of the device. */
bool device_is_out(const struct core *core, const struct device_profile *profile,
                   const struct device_state *device);
/* Why a request can't have a device that it selects, or absent; in the scratch arena. */
/* Out only because it was ailing: kube-scheduler, which doesn't know, may give it out. */
bool device_is_held_back(const struct core *core, const struct device_profile *profile,
                         const struct device_state *device);
struct str device_out_text(struct core *core, const struct device_profile *profile,
                           const struct device_state *device);

/* -- shape.c ---------------------------------------------------------------------------------- */

struct shape_input_set {
    struct str name;
    const struct pod_spec *spec; /* as the user wrote it: nothing injected */
    struct gang_size size;
    uint64_t group_claims; /* see pod_set */
};

struct shape_input {
    struct queue_state *queue;
    struct str namespace_name;
    const struct shape_input_set *sets;
    uint32_t set_count;
    int64_t stated_runtime_ms;
    struct str topology_key; /* absent: no domain is asked for */
    bool is_topology_required;
    struct str pod_group; /* see shape */
};

/* Finds or makes it; counted in `users`. */
struct shape *shape_use(struct core *core, const struct shape_input *input);
void shape_drop(struct core *core, struct shape *shape);
/* Fills what the fit needs; a problem goes to shape->broken. */
void shape_resolve(struct core *core, struct shape *shape);
/* Resolved anew its pods would ask for the same; of a shape that is resolved. */
bool shape_asks_the_same(struct core *core, const struct shape *shape);
void shape_unresolve(struct core *core, struct shape *shape);
/* The shape can't be judged; the first problem stays. */
void shape_break(struct shape *shape, enum reason reason, struct str message);
void verdict_drop(struct verdict *verdict);
bool verdict_is_passed_over(const struct verdict *verdict); /* StrictFIFO goes on behind it */

/* -- ledger.c: who holds what ----------------------------------------------------------------- */

struct claim_charge {
    struct str key; /* "namespace/name" */
    struct charge_list charges;
};

/* What is to be reserved. Texts may be borrowed: the ledger copies. */
struct reserve_request {
    struct queue_state *queue;
    struct reserved_set *sets;
    uint32_t set_count;
    const struct claim_charge *claims;
    uint32_t claim_count;
    struct opt_int turn; /* of a record; unset: behind all that hold the claims now */
};

/* The gang's place among those that hold the same claim is by its turn, then by its admitted_ms. */
void ledger_reserve(struct core *core, struct gang *gang, const struct reserve_request *request);
void ledger_resize(struct core *core, struct gang *gang, struct reserved_set *set, int64_t count);
void ledger_release(struct core *core, struct gang *gang);
/* account_of() tells otherwise now: what is charged moves with it. */
void ledger_rename(struct core *core);
/* Nobody is charged for a claim that isn't there; who was, or is now, NULL: nothing has changed. */
struct gang *ledger_set_void(struct core *core, struct str claim_key, bool is_void);
/* All holders would pay so much of it at least; who pays more now, or NULL. */
struct gang *ledger_raise_claim(struct core *core, struct str claim_key, struct str resource,
                                int64_t amount);
/* What a pod of the gang is charged beyond its share becomes `now`, which is copied. */
void ledger_set_surplus(struct core *core, struct gang *gang, struct charge_list *surplus,
                        const struct charge_list *now);
/* The resource as the pods ask for it. */
struct str charge_asked(const struct charge *charge);
/* The gang that is charged for the claim, or NULL. */
struct gang *ledger_claim_payer(const struct core *core, struct str claim_key);
/* What the set of that name holds, or NULL. */
struct reserved_set *reservation_set(const struct reservation *reservation, struct str name);
int64_t reservation_count(const struct reservation *reservation); /* pods of all its sets */
i128 reservation_devices(const struct reservation *reservation);  /* of its pods, of any kind */
/* What its pods are charged of a resource, named claims apart; `flavor` absent: on all flavors. */
i128 reservation_amount(const struct reservation *reservation, struct str flavor,
                        struct str resource);
/* What it is charged of each resource: "cpu=4 gpu.example.com=4", in the arena. `is_devices`: only
 * what isn't cpu, memory, ephemeral-storage or pods. */
struct str reservation_text(const struct core *core, const struct gang *gang, struct arena *arena,
                            bool is_devices);
bool resource_is_device(struct str resource);
void ledger_assert(const struct core *core);

/* -- drift.c: the ledger against the cluster's claims --------------------------------------------
 */

/* After the pod's claims, or what its gang holds, have changed. */
void drift_pod(struct core *core, struct pod_state *pod);
void drift_forget_pod(struct core *core, struct pod_state *pod); /* before it leaves its gang */
void drift_gang(struct core *core, struct gang *gang);           /* all its pods */
void drift_forget_gang(struct core *core, struct gang *gang);    /* before it holds nothing */
void drift_claim(struct core *core, struct str key);             /* it has changed, or gone */
/* On which flavor the gang is, or would be, charged for devices of the class; absent: on none. */
struct str drift_flavor(const struct gang *gang, struct str class_name);
void drift_start(struct core *core); /* all has been listed */

/* -- evaluate.c: quota, flavor and room together ---------------------------------------------- */

/* Where the pods of one set go. */
struct set_choice {
    const struct resource_flavor *flavors[FLAVORS_PER_GANG_MAX];
    uint32_t flavor_count;
    const struct topology_domain *domain; /* that all of them must go to; NULL: none */
    struct str pin; /* the hostname label that all of them must go to, absent: none */
};

struct evaluation {
    struct verdict verdict; /* message in the scratch arena */
    struct reserve_request reserve;
    struct set_choice *sets; /* in the scratch arena; as the shape's sets */
    uint32_t set_count;
    const struct topology_domain *domain; /* that all pods go to; NULL: none in particular */
    struct fit_result fit;
    bool has_fit;
    uint32_t level;                   /* of borrowing */
    uint32_t combination;             /* of flavors, by its number in the queue's order */
    struct evidence evidence;         /* texts in the scratch arena */
    struct quota_shortage *shortages; /* in the scratch arena; one per combination of flavors */
    uint32_t shortage_count;
};

/* Whether its queue lets anybody start, and its namespace; the message in the scratch arena. */
struct verdict evaluate_queue(struct core *core, const struct shape *shape);
void evaluate_shape(struct core *core, struct shape *shape, struct evaluation *ret_evaluation);

struct probe_item {
    struct str flavor;
    struct str resource;
    i128 asked;
};

/* What the first gang of a shape would take, by quota alone, in the scratch arena. */
struct quota_probe {
    struct probe_item *items;
    uint32_t count;
    uint32_t capacity;
    uint32_t level;   /* of borrowing; 0 where no flavor could ever have the quota */
    bool is_hopeless; /* which is told here */
    bool is_fixed;    /* of what is here only the level depends on what is used */
};

void evaluate_quota(struct core *core, struct shape *shape, struct quota_probe *ret_probe);

/* The combinations of flavors that are judged; 0: none can be. */
uint32_t evaluate_combination_count(struct core *core, struct shape *shape);
/* The same verdict on one combination alone; without evidence. */
void evaluate_combination(struct core *core, struct shape *shape, uint32_t combination,
                          struct evaluation *ret_evaluation);
/* What the gang (its smallest admissible part) asks of that combination; false: its pods can't have
 * it. `needs`: the accounts that stand in the way, which are those that are too short, or, on a
 * flavor with quota enough, all that the gang asks for. */
bool evaluate_ask(struct core *core, struct shape *shape, uint32_t combination,
                  struct quota_probe *ret_ask, struct quota_probe *ret_needs);

/* -- decide.c --------------------------------------------------------------------------------- */

/* The pass: takes the next gang by order until no shape is ready. */
void decide(struct core *core, bool goes_on); /* with the cut pass: nothing is new since then */

/* -- gang.c: one gang's life ------------------------------------------------------------------ */

const char *gang_state_name(enum gang_state state);
void gang_set_state(struct core *core, struct gang *gang, enum gang_state state, const char *cause);
struct gang *gang_find(const struct core *core, struct str uid);
struct gang *gang_new(struct core *core, struct str uid, struct str namespace_name,
                      struct str name);
/* Whether it is among those with promised places; after each change of what it holds. */
void gang_mark_unbound(struct core *core, struct gang *gang);
void gang_job_gone(struct core *core, struct gang *gang);
void gang_remember(struct core *core, struct gang *gang);
/* Once, until its suspension is on the Job; told of is only what came about. */
void gang_count_eviction(struct gang *gang);
/* Puts off its next start: one failure more, and a time that doubles with each. */
void gang_back_off(struct core *core, struct gang *gang);
/* The same, for a failure of that time, with `before` others in front of it; once for each. */
void gang_failed_before(struct core *core, struct gang *gang, int64_t before, int64_t at_ms);
bool gang_is_over_limit(const struct gang *gang);
void gang_enqueue(struct core *core, struct gang *gang);
void gang_dequeue(struct core *core, struct gang *gang);
/* The first of its pods, by next_in_group; NULL: none has been seen. */
struct pod_state *gang_first_pod(const struct gang *gang);
/* Looks at the Job, its pods and the time, and does what follows. Idempotent. */
void gang_review(struct core *core, struct gang *gang);
void gang_pods_changed(struct core *core, struct gang *gang); /* counts all its pods anew */
/* That pod has, or it has left the gang. */
void gang_pod_changed(struct core *core, struct gang *gang, struct pod_state *pod);
void gang_set_timer(struct core *core, struct gang *gang, int64_t at_ms); /* 0: none */
void gang_show(struct core *core, struct gang *gang); /* its Admission may have changed */
void gang_reprioritize(struct core *core, struct gang *gang);
void gang_free(struct core *core, struct gang *gang);
bool gang_is_busy(const struct gang *gang); /* a write of ours isn't settled yet */
/* gang_domain.c: its pods go, or will go, to that domain (NULL: anywhere). */
void gang_confine(struct gang *gang, const struct topology_domain *domain);
/* What the record on the Job says of it, once no write of ours is on its way. */
void gang_read_domain(struct core *core, struct gang *gang);
/* Of each pod set, for the record. In the scratch arena. */
struct record_domain_list record_domains(struct core *core, const struct gang *gang);
/* What the Job asks for; the trouble with it, absent: there is none. */
struct str topology_read(struct core *core, const struct job *job, struct shape_input *input);
void gangs_free(struct core *core);

/* Reserves again what the record says, after a restart. */
void gang_adopt(struct core *core, struct gang *gang, const struct admission_record *record);

/* -- job.c ------------------------------------------------------------------------------------ */

void job_apply(struct core *core, const struct job *object);
void job_deleted(struct core *core, const struct job *object);
void job_write_done(struct core *core, struct gang *gang, const struct effect_done *done);

/* -- patch.c: what is written to a Job -------------------------------------------------------- */

/* What steers kube-scheduler to the flavors that were chosen. In the arena, as the next. */
void patch_add_directives(struct arena *arena, const struct pod_set *set,
                          const struct set_choice *choice, struct template_patch *patch);
/* An absent value removes the key. */
void patch_add_selector(struct arena *arena, struct template_patch *patch, struct str key,
                        struct str value, uint32_t *capacity);
void patch_admit(struct core *core, struct gang *gang, const struct evaluation *evaluation);
void patch_suspend(struct core *core, struct gang *gang, const char *cause, struct str why);
/* A victim, for the sake of that gang; and the Event about it, once. */
void patch_suspend_for(struct core *core, struct gang *victim, const struct gang *gang);
void patch_tell_victim(struct core *core, struct gang *victim, const struct gang *gang);
/* Asks for a checkpoint since then, for the gang of that key; absent: takes that back. */
void patch_checkpoint(struct core *core, struct gang *gang, struct str since, struct str for_key);
void patch_restore(struct core *core, struct gang *gang, bool sets_hold);
void patch_finish(struct core *core, struct gang *gang);
/* No pod is left to start, whatever happens. */
bool gang_is_over(const struct gang *gang);
/* Whether a conflict that nothing has explained was waited for long enough; else a timer is set. */
bool conflict_is_over(struct core *core, struct gang *gang);
struct effect *effect_new(struct core *core, enum effect_kind kind);
void note_event(struct core *core, const struct gang *gang, bool is_warning, const char *reason,
                const char *action, struct str text);

/* -- status.c, admission.c -------------------------------------------------------------------- */

/* Why it waits, as it stands: the gang's own trouble, else the queue's order, else its shape's. */
struct verdict gang_verdict(const struct core *core, const struct gang *gang, struct arena *arena);
/* 0: it has none; POSITION_EXACT_MAX + 1: one beyond that. */
int64_t gang_position(const struct gang *gang);
/* "gpu.example.com=4": what the gang asks for; and the flavors that it holds, each once. */
struct str admission_asked_devices(const struct gang *gang, struct arena *arena);
struct str admission_held_flavors(const struct gang *gang, struct arena *arena);
void admission_apply(struct core *core, const struct admission *object);
void admission_deleted(struct core *core, const struct admission *object);
void admission_write_done(struct core *core, struct gang *gang, const struct effect_done *done);
void admissions_meet_job(struct core *core, struct gang *gang);
/* The Job is gone: whoever has its name next waits until its Admission is gone, too. */
void admission_outlives(struct core *core, const struct gang *gang);
void admissions_retry(struct core *core);
/* At the start: those of Jobs that are no more. */
void admissions_check(struct core *core);
/* The Job is no longer ours: so its Admission goes. */
void admission_withdraw(struct core *core, const struct gang *gang);
void admissions_free(struct core *core);
