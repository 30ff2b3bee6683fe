/* told.h - what people are told of a wait beside its reason: the evidence, changes that would end
 * it, and what went before. No decision rests on any of it. Private to the core. */
#pragma once

#include "tallyman/base/str.h"
#include "tallyman/core/reason.h"

/* Why a node is out for a gang. */
enum exclusion {
    EXCLUDED_NOT_READY = 0,
    EXCLUDED_UNHEALTHY,  /* by a node condition that a flavor lists */
    EXCLUDED_QUARANTINE, /* good again, and not for long enough */
    EXCLUDED_CORDONED,
    EXCLUDED_FLAVOR,
    EXCLUDED_SELECTOR,
    EXCLUDED_TAINT,
    EXCLUDED_CLAIM,
    EXCLUDED_FULL,
    EXCLUDED_COUNT,
};

/* Why one flavor, or one combination of flavors, was not taken. */
struct flavor_note {
    struct str flavor; /* owned; "a+b" for a combination */
    enum reason reason;
    struct str message; /* owned */
};

#define FLAVOR_NOTES_MAX 8

/* The domains of the level that was asked for, and why none will do. */
struct topology_note {
    struct str level;   /* owned; the label, absent: topology isn't what is short */
    uint32_t total;     /* the sum of the three */
    uint32_t unusable;  /* without a node that the pods may use */
    uint32_t too_small; /* even when empty */
    uint32_t full;      /* with too little room now */
};

/* What the last evaluation saw, for the explanation. */
struct evidence {
    struct topology_note topology;
    struct flavor_note flavors[FLAVOR_NOTES_MAX];
    uint32_t flavor_count;
    uint32_t nodes_total; /* 0: no node was looked at */
    uint32_t excluded[EXCLUDED_COUNT];
    struct str excluded_why[EXCLUDED_COUNT]; /* owned; more about those, absent: nothing */
    struct str resource; /* owned; what ran short where it came nearest to a start, absent: none */
    int64_t asked;       /* of it */
    int64_t free;
    int64_t at_ms;
};

enum advice_kind {
    ADVICE_FEWER_PODS = 1,
    ADVICE_OTHER_FLAVOR,
    ADVICE_WIDER_SELECTOR,
    ADVICE_SHORTER_RUN,
    ADVICE_TOPOLOGY_PREFERRED,
    ADVICE_NO_TOPOLOGY,
};

/* A change that would start the gang now: it has been tried. */
struct advice_item {
    enum advice_kind kind;
    int64_t count;    /* ADVICE_FEWER_PODS: pods; ADVICE_SHORTER_RUN: minutes */
    struct str patch; /* owned; members of a nodeSelector as JSON */
    struct str what;  /* owned; the flavor, "key=value" of the selector, or the topology's label */
};

#define ADVICE_ITEMS_MAX 4

/* So many nodes have room for so many of the gang's pods. */
struct node_places {
    int64_t pods;
    uint32_t nodes;
};

#define NODE_PLACES_MAX 8

struct advice {
    struct advice_item items[ADVICE_ITEMS_MAX];
    uint32_t count;
    struct str message;       /* owned; the sentence with the numbers of now */
    enum reason other_reason; /* what would stand in the way next; REASON_NONE: nothing known */
    struct str other_message; /* owned */
    struct node_places places[NODE_PLACES_MAX]; /* of the flavor that is nearest, the most first */
    uint32_t place_count;
};

/* How a running gang was last stopped, and what that cost. */
struct eviction {
    struct str rule; /* owned; as in annotation tallyman.dev/suspended */
    struct str by;   /* owned; a Job of its own namespace, absent: none, or another's */
    struct str queue;
    struct str lost;
    int64_t at_ms;
};

/* A reason that has held; REASON_NONE: it waited for nothing, so it ran or was about to. */
struct past_reason {
    int64_t since_ms;
    enum reason reason;
};

#define PAST_REASONS_MAX 12
