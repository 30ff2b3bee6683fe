/* check.h - a gang that has its quota may have to wait until an autoscaler has made room for it.
 *
 * The one admission check that there is: `provisioning`, by a ProvisioningRequest. Private to the
 * core. */
#pragma once

#include "gate.h"

#include "tallyman/api/provisioning.h"

#define CHECK_PROVISIONING      "provisioning" /* its name in a Queue's admissionChecks */
#define ANNOTATION_RESERVATION  "tallyman.dev/reservation"
#define ANNOTATION_ATTEMPT      "tallyman.dev/provisioning-attempt"
#define ANNOTATION_CONSUME      "autoscaling.x-k8s.io/consume-provisioning-request"
#define ANNOTATION_CLASS        "autoscaling.x-k8s.io/provisioning-class-name"
#define PROVISIONING_TIMEOUT_MS (60 * 60 * 1000)

/* -- request.c: the requests that there are, by the Job that each is for ------------------------
 */

struct request_state {
    struct str key; /* owned; "namespace/name" */
    UT_hash_handle hh;
    struct provisioning_request *object; /* owned clone */
    int64_t attempt;                     /* the number that its name ends in */
    struct job_requests *of;
    struct request_state *next; /* of the same Job, the latest attempt first */
    bool is_let_go;             /* its deletion has been asked for */
    bool is_counted;            /* its failure has been */
};

/* All requests of one Job. */
struct job_requests {
    struct str owner; /* owned; see owner_key() */
    UT_hash_handle hh;
    struct request_state *first; /* never NULL */
    struct gang *gang;           /* NULL: the Job isn't known */
};

enum request_says {
    REQUEST_WAITS = 1,
    REQUEST_PROVISIONED,
    REQUEST_EXPIRED, /* it was, and nobody has used it in time */
    REQUEST_FAILED,
    REQUEST_REVOKED,
    REQUEST_GOING, /* it is being deleted */
};

/* What it says; the condition that says so, or what is nearest to one: NULL if there is none. */
enum request_says request_says(const struct request_state *request,
                               const struct condition **ret_because);
int64_t request_made_ms(const struct core *core, const struct request_state *request);
/* Failed, for whatever reason: it will not be provisioned any more. */
bool request_is_over(const struct request_state *request);
struct request_state *request_find(const struct gang *gang, int64_t attempt); /* or NULL */
/* "train-0a1b2c3d-2": of that attempt of the Job; 0: what all of them begin with. In the arena. */
struct str request_name(struct arena *arena, struct str job_name, struct str job_uid,
                        int64_t attempt);
/* The request isn't needed any more: it is deleted. */
void request_let_go(struct core *core, struct request_state *request);
/* Lets go of those that the gang doesn't need where it stands. */
void requests_tidy(struct core *core, struct gang *gang);
/* The record that rides on it, in the scratch arena; NULL: none that can be read. */
const struct request_record *request_record(struct core *core, const struct request_state *request);
void request_apply(struct core *core, const struct provisioning_request *object);
void request_deleted(struct core *core, const struct provisioning_request *object);
void requests_meet_gang(struct core *core, struct gang *gang);
void requests_leave_gang(struct gang *gang);
void requests_free(struct core *core);

/* -- check.c: a gang that waits for one ---------------------------------------------------------
 */

/* While the gang is Reserved for a check. */
struct check {
    int64_t attempt;
    struct str record;  /* owned; annotation reservation */
    struct str asks;    /* owned; as in the record */
    int64_t since_ms;   /* the request's creation, once it is seen */
    uint64_t effect_id; /* the request is being made; 0: that is answered */
    bool is_passed;     /* there is room; the next pass admits it */
};

/* Whether gangs of that shape, which is resolved, are checked before they start. */
bool check_is_asked(const struct shape *shape);
/* What keeps the queue's checks from being asked for anybody; REASON_NONE: nothing does. */
struct verdict check_obstacle(const struct core *core, const struct queue_state *queue,
                              struct arena *arena);
/* Stands for all that a request of such gangs rests on, in the scratch arena. */
struct str check_asks(struct core *core, const struct shape *shape);
/* A request that is there already and asks for what the evaluation has found, or for fewer pods: it
 * is cut down to as many. NULL: there is none. */
struct request_state *check_find_usable(struct core *core, const struct gang *gang,
                                        struct evaluation *evaluation);
/* The gang has its quota: it is held, and the check is asked. */
void check_begin(struct core *core, struct gang *gang, struct evaluation *evaluation);
/* A restart came in between: it holds again what that record says, and waits for that request. */
void check_resume(struct core *core, struct gang *gang, const struct request_state *request,
                  const struct admission_record *record);
/* Starts the gang, or has it checked first. */
void check_or_admit(struct core *core, struct gang *gang, struct evaluation *evaluation);
/* It is Reserved for a check, and still wants it: goes on with it. False: its quota is given back.
 */
bool check_review(struct core *core, struct gang *gang);
/* Gives its quota back; nothing has failed. */
void check_let_go(struct core *core, struct gang *gang, const char *cause);
/* It waits: counts what its latest request failed of, once. True: that was once too often, and it
 * is held. */
bool check_has_given_up(struct core *core, struct gang *gang);
/* All that it has asked for is deleted. */
void check_forget(struct core *core, struct gang *gang);
/* It runs, and its room is taken away: it stops. False: it isn't. */
bool check_revoked(struct core *core, struct gang *gang);
void check_request_changed(struct core *core, struct gang *gang);
void check_request_gone(struct core *core, struct gang *gang, int64_t attempt);
void check_write_done(struct core *core, struct gang *gang, const struct effect_done *done);
void check_drop(struct gang *gang);
/* ProvisioningRequests are served now, or no longer. */
void checks_kind_changed(struct core *core, bool is_absent);

/* -- check_admit.c -------------------------------------------------------------------------------
 */

/* Admits those whose check has passed. */
void checks_finish_ready(struct core *core);
/* Takes up what a restart has interrupted. */
void checks_restore(struct core *core);

/* -- check_tell.c: what is said of it, and written -----------------------------------------------
 */

struct verdict check_verdict(const struct core *core, const struct gang *gang, struct arena *arena);
struct str check_failure(struct arena *arena, const struct request_state *request);
/* What the pods of a set get beside their flavors' directives. */
void check_directives(struct core *core, const struct gang *gang, struct template_patch *patch);
int64_t check_timeout_ms(const struct queue_state *queue); /* 0: none */
/* The provisioning detail that isn't there yet though a nodeSelector needs it; absent: none. */
struct str check_missing_detail(const struct queue_state *queue,
                                const struct request_state *request);

/* -- record.c ------------------------------------------------------------------------------------
 */

/* In the arena of the step's effects. */
struct str record_json(struct core *core, const struct schema *schema, const void *value);
/* Annotation tallyman.dev/admission. */
struct str record_text(struct core *core, struct gang *gang, const struct evaluation *evaluation);
/* Annotation tallyman.dev/reservation. */
struct str record_reservation(struct core *core, const struct gang *gang,
                              const struct evaluation *evaluation, struct str asks);
/* Whether the record's sets are of those flavors and of as many pods or fewer: then the evaluation
 * is cut down to as many. */
bool record_fits(struct core *core, const struct gang *gang, const struct request_record *record,
                 struct evaluation *evaluation);
