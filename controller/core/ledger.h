/* ledger.h - what gangs hold. Private to the core; the ledger's functions are in internal.h. */
#pragma once

#include "amounts.h"

struct gang;
struct queue_state;

/* In the order of events: whoever decides by it sorts it first. */
struct gang_list {
    struct gang **items; /* owned array of borrowed gangs */
    uint32_t count;
    uint32_t capacity;
};

/* What a gang's reservation takes from one account. */
struct charge {
    struct str flavor;   /* owned */
    struct str resource; /* owned; the account's: of a device the class's name */
    struct str asked;    /* owned; as the pods ask for it; absent: by the same name */
    int64_t amount;      /* per pod, or of a shared claim as a whole */
};

struct charge_list {
    struct charge *items;
    uint32_t count;
};

/* A named claim that a gang holds, with what it would be charged for it. */
struct claim_hold {
    struct str key; /* owned; "namespace/name" */
    struct charge_list charges;
    struct gang *gang;
    struct claim_hold *next_holder; /* in order of admission; the first one pays */
};

/* All that hold one claim. */
struct held_claim {
    struct str key; /* owned */
    UT_hash_handle hh;
    struct claim_hold *holders; /* never NULL */
    bool is_void;               /* there is no such claim any more: nobody is charged */
};

/* What one pod set of a gang holds. */
struct reserved_set {
    struct str name; /* owned */
    struct charge_list per_pod;
    int64_t count; /* pods that are charged */
};

/* The ledger's only entry: (job uid) -> what it holds. */
struct reservation {
    struct queue_state *queue;
    struct reserved_set *sets; /* owned array */
    uint32_t set_count;
    struct claim_hold *claims; /* owned array; each claim once, whichever sets name it */
    uint32_t claim_count;
    uint32_t turn; /* among those that hold the same claims: later than all who held them when it
                      came; kept in the record, so that a restart has the same one pay */
};
