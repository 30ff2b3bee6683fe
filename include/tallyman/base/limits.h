/* limits.h - every queue, loop, body, depth and retry of the project has its bound here.
 *
 * Sizes are in bytes unless the name says otherwise. Where a bound is Kubernetes' own, the line
 * says so; ours are chosen far above honest use and low enough that hostile input can't hurt. */
#pragma once

#include <stdint.h>

/* base */
#define ARENA_BLOCK_MIN_BYTES (16u * 1024)
#define ARENA_KEEP_MAX_BYTES  (1024u * 1024)
#define GROW_MIN_ITEMS        8u /* first capacity of a growing array */
#define TEXT_FIRST_BYTES      64
#define TEXT_LIMIT_BYTES      (64u * 1024 * 1024)    /* what a text may be bounded to at most */
#define DURATION_MAX_MS       INT64_C(3155760000000) /* 100 years of 365.25 days */
#define LOG_FIELD_MAX_BYTES   2048
#define LOG_LINE_MAX_BYTES    (16u * 1024)

/* api: decoding */
#define DECODE_DEPTH_MAX        64                 /* nesting of one document */
#define DECODE_TOKEN_MAX_BYTES  (1536u * 1024)     /* one string; etcd's request limit is 1.5 MiB */
#define DECODE_OBJECT_MAX_BYTES (4u * 1024 * 1024) /* one object's text */
#define DECODE_LIST_MAX_ITEMS   65536              /* one list inside an object */
#define DECODE_STRUCT_MAX_BYTES (64u * 1024 * 1024) /* what one object's text may grow to */
#define DECODE_MAP_SMALL_ITEMS  24                  /* above: duplicate keys are found by sorting */
#define DECODE_SLICE_BYTES      (64u * 1024)        /* fed to the JSON parser between two checks */
#define DECODE_PATH_MAX_BYTES   512                 /* "spec.template…" in an error */
#define DECODE_QUOTE_MAX_BYTES  64                  /* how much of a wrong value an error shows */
#define MANIFEST_FILE_MAX_BYTES (256u * 1024 * 1024)
#define MANIFEST_FILES_MAX      10000
#define QUANTITY_TEXT_MAX_BYTES 64
#define SELECTOR_TERMS_MAX      1024

/* api: CEL. The cost limit is Kubernetes' own for device selectors. */
#define CEL_EXPRESSION_MAX_BYTES (10u * 1024)
#define CEL_COST_MAX             1000000
#define CEL_DEPTH_MAX            64
#define CEL_HEIGHT_MAX           256                 /* of the tree, macros expanded */
#define CEL_NODES_MAX            20000               /* macros expanded */
#define CEL_CHECK_STEPS_MAX      2000000             /* type comparisons of one compilation */
#define CEL_TYPE_TEXT_MAX_BYTES  128                 /* a type in a message */
#define CEL_MEMORY_MAX_BYTES     (32u * 1024 * 1024) /* values of one evaluation */
#define CEL_WORK_MAX             10000000 /* elements compared or copied in one evaluation */
#define CEL_RANGE_MAX            1000000  /* lists.range(); cel-go's own */
#define CEL_VALUE_DEPTH_MAX      512      /* lists and maps inside each other */
#define CEL_FORMAT_PRECISION_MAX 300
#define CEL_REGEX_PROGRAM_MAX    20000 /* instructions of one pattern, repeats expanded */
#define CEL_REGEX_DEPTH_MAX      64
#define CEL_REGEX_REPEAT_MAX     1000 /* RE2's own */

/* core */
#define MESSAGE_MAX_BYTES        1024             /* a sentence in an Admission */
#define ADVICE_CREDIT_MAX        INT64_C(2000000) /* nodes and devices looked at for advice */
#define ADVICE_CREDIT_PER_MS     200
#define ADVICE_COMMAND_MAX_BYTES 512
#define RESOURCE_NAMES_MAX       4096
#define POD_SETS_MAX             16
#define CLAIM_SHARERS_MAX        256 /* Kubernetes: ResourceClaim.status.reservedFor */
#define CLAIM_DEVICES_MAX        32  /* Kubernetes: allocation results of a claim */
#define ROAMING_GROUPS_MAX       64  /* sets of nodes that see devices of no node; one bit */
#define ROAMING_CHOICES_MAX      6   /* kinds of nodes that may be full before these run out */
#define PINNED_NODES_MAX         64  /* that a gang is tried on whole, for one judgement */
/* Steps of searches for devices: a device that is tried, or compared with several others. */
#define ALLOCATE_STEPS_MAX 500000  /* on one node */
#define ALLOCATE_STEPS_ALL 1000000 /* of all nodes of one judgement */
#define ALLOCATE_STEPS_FEW 2000    /* for each node after that */
/* Who lists more has made a mistake, or lies: each edit and each placement looks at all of them. */
#define POOL_DEVICES_MAX      65536
#define NODE_DEVICES_MAX      16384
#define CLAIM_CONSTRAINTS_MAX 32 /* Kubernetes: constraints of a claim */
#define GANG_PODS_MAX         100000
#define EXACT_FIT_NODES_MAX   16 /* brute force up to here, the heuristic beyond */
/* Gangs that the controller lets go in one step; see core_options. */
#define ADMISSIONS_PER_STEP 8
/* What trying device selectors may cost between two ticks; see core_options. Measured on a release
 * build: 15 ns a unit in loops, 50 with quantities, 85 in regular expressions, so some 40 ms. The
 * trial that uses it up isn't interrupted, and costs CEL_COST_MAX at most. */
#define SELECTOR_COST_PER_STEP 400000
#define SELECTOR_BASE_COST     10    /* of a trial, beside what the expression costs */
#define SELECTOR_TURN_COST     50000 /* for one selector, then it is another's turn */
/* Gangs that one step tells of a new reason; the others are told by the steps that follow. */
#define TELL_GANGS_PER_STEP            128
#define POSITION_EXACT_MAX             100
#define POSITION_REFRESH_MS            10000
#define READY_REFRESH_MS               10000 /* how many pods are ready, while more are to come */
#define GHOST_GRACE_MS                 60000 /* for the garbage collector, before we delete an Admission */
#define JOB_WRITES_IN_FLIGHT_MAX       64
#define JOB_WRITES_IN_FLIGHT_MIN       4 /* however slow the server is: driver/window.h */
#define ADMISSION_WRITES_IN_FLIGHT_MAX 32
#define ADMISSION_WRITES_IN_FLIGHT_MIN 1
#define WRITE_SLOW_MS                  1000    /* an answer that takes longer is late */
#define CHECKPOINT_GRACE_MAX_MS        3600000 /* a longer checkpoint-grace counts as this */
#define VICTIM_DOMAINS_MAX             64      /* that are searched for victims by themselves */
#define RESERVED_JUDGED_MAX            64      /* while victims stop; the others wait for them */
#define PREEMPTION_TIMEOUT_MS          600000  /* then the freed room is given up */
#define REQUEST_ATTEMPTS_MAX           1000000 /* a ProvisioningRequest's name that ends so isn't ours */
#define REQUEST_JOB_NAME_MAX_BYTES     40      /* of the Job's name in it */
#define CHECK_QUOTE_MAX_BYTES          300 /* of a condition's message */
#define WRITE_ARENA_FIRST_BYTES        512 /* of a write that waits; there may be one per Job */
#define WRITE_RETRIES_MAX              10
#define WRITE_DENIED_TRIES_MAX         5 /* then it counts as refused */
#define WRITE_RETRY_BASE_MS            500
#define WRITE_RETRY_MAX_MS             60000
#define WRITE_JOB_RETRY_MAX_MS         4000 /* as a watch's, KUBE_RETRY_MAX_MS */
#define WRITE_REFUSED_RETRY_MS         5000 /* a suspension that the API server refused */
#define SUSPENDED_COUNT_MAX            1000000 /* in tallyman.dev/suspended; larger ones are not ours */
#define CONFLICT_WAIT_MS               30000 /* for the watch to show what a 409 was about */
#define CONFLICT_STEP_MS               5000  /* all that a clock that jumps can take of it */
#define TELL_RETRY_MS                  15000 /* an Admission or status that was refused */
#define ADMISSION_INTERVAL_MS          1500  /* between two writes of one, but for news: pace.h */
#define PACE_PAID_MS                   20000 /* a write of a gang is paid for in so long */
#define PACE_NUMBERS_MAX               12   /* who owes so many isn't told anew for numbers alone */
#define PACE_NEWS_MAX                  30   /* nor for a reason to wait */
#define STATUS_INTERVAL_MS             2000 /* between two status writes of one Queue */

/* base: metrics */
#define METRIC_SERIES_MAX      10000u
#define METRIC_LABEL_MAX_BYTES 256u
#define METRIC_COLLECTORS_MAX  8u
#define METRICS_MAX            128u
#define METRIC_BUCKETS_MAX     32u

/* store. LMDB's own limit for keys is 511 bytes. The map's bound leaves room for both histories at
 * their largest, twice over: a transaction copies the pages that it changes. */
#define STORE_KEY_MAX_BYTES     400u
#define STORE_RECORD_MAX_BYTES  (8u * 1024 * 1024)
#define STORE_BATCH_MAX_BYTES   (32u * 1024 * 1024)
#define STORE_QUEUE_MAX_BATCHES 8192u
#define STORE_QUEUE_MAX_BYTES   (64u * 1024 * 1024)
#define STORE_TXN_MAX_BYTES     (32u * 1024 * 1024) /* batches that share one transaction */
#define STORE_OWED_MAX_BYTES    (16u * 1024 * 1024)
#define STORE_MAP_FIRST_BYTES   (8u * 1024 * 1024)
#define STORE_MAP_MAX_BYTES     (1024u * 1024 * 1024)
#define STORE_JOURNAL_MAX_BYTES (128u * 1024 * 1024)
#define STORE_JOURNAL_KEEP_MS   INT64_C(604800000) /* 7 days */
#define STORE_LEDGER_MAX_BYTES  (256u * 1024 * 1024)
#define STORE_LEDGER_KEEP_MS    INT64_C(34560000000) /* 400 days */
#define STORE_PRUNE_RECORDS_MAX 1024u                /* on top of what a transaction adds */
#define STORE_BAD_FILES_MAX     3u
#define STORE_RETRY_BASE_MS     1000u
#define STORE_RETRY_MAX_MS      60000u
#define STORE_CHECK_CPU_S       120u /* of the child that walks the file */
#define STORE_TREE_DEPTH_MAX    32u  /* LMDB's own */

/* http */
#define HTTP_CONNECTIONS_MAX        64u
#define HTTP_CONNECTIONS_KEPT       56u /* of these; the rest is for who comes next */
#define HTTP_CONNECTIONS_PER_IP_MAX 32u
#define HTTP_CONNECTION_BYTES       (16u * 1024)
#define HTTP_BACKLOG                64
#define HTTP_SWEEP_MS               1000u
#define HTTP_IDLE_S                 15u
#define HTTP_REQUEST_S              30u
#define HTTP_TLS_REREAD_S           60 /* above HTTP_REQUEST_S: a handshake outlives no two of them */
#define HTTP_CHAIN_MAX              8 /* certificates up to the CA */
#define HTTP_PATH_BYTES             4096

/* kube */
#define KUBE_CONFIG_FILE_MAX_BYTES (4u * 1024 * 1024)
#define KUBE_CONFIG_FILES_MAX      64
#define KUBE_RESPONSE_MAX_BYTES    (8u * 1024 * 1024) /* one answer that is kept whole */
#define KUBE_REFUSAL_MAX_BYTES     (256u * 1024)      /* the body of an error */
#define KUBE_HEADERS_MAX_BYTES     (256u * 1024)
#define KUBE_INFLATE_CHUNK_BYTES   (32u * 1024)
#define KUBE_IN_FLIGHT_MAX         96 /* a server allows 100 streams per HTTP/2 connection */
#define KUBE_CONNECTIONS_MAX       16 /* for requests, where HTTP/2 isn't served */
#define KUBE_QUEUE_MAX             65536
#define KUBE_IDLE_HANDLES_MAX      32 /* curl handles kept for the next request */
#define KUBE_METRIC_SERIES_MAX     512
#define ACCESS_CACHE_MAX           64     /* tokens and paths that are remembered */
#define ACCESS_UNDER_WAY_MAX       8u     /* questions at once: strangers may send any token */
#define ACCESS_ALLOWED_MS          60000u /* a right that is taken away lasts that long */
#define ACCESS_DENIED_MS           10000u
#define ACCESS_TIMEOUT_MS          10000
#define KUBE_LIST_PAGE_ITEMS       500
#define KUBE_CONNECT_TIMEOUT_MS    10000
#define KUBE_REQUEST_TIMEOUT_MS    30000
#define KUBE_TIMEOUT_GRACE_MS      2000  /* libcurl's own time-outs are waited for so long */
#define KUBE_LEASE_MS              15000 /* client-go's lease duration */
#define KUBE_LEASE_RELEASE_MS      1000 /* a lease that is given back waits so long for an answer */
#define KUBE_WATCH_MS              1800000 /* a stream lasts this long at most, half of it at least */
#define KUBE_WATCH_IDLE_MS         150000  /* bookmarks come about once a minute */
#define KUBE_INITIAL_IDLE_MS       30000   /* silence before the initial objects are complete */
#define KUBE_STREAM_STEADY_MS      1000    /* a watch that lasted so long was no failure */
#define KUBE_DEADLINE_SLACK_MS     5000    /* a clean end so near the deadline is the deadline */
#define KUBE_WATCH_LIST_RETRY_MS   1800000 /* a server without WatchList is asked again */
#define KUBE_RETRY_BASE_MS         500
#define KUBE_RETRY_MAX_MS          4000 /* decisions are right again soon after a server is back */
#define KUBE_RETRY_AFTER_MAX_MS    120000
#define KUBE_ABSENT_RETRY_MS       5000
#define KUBE_ABSENT_RETRY_MAX_MS   30000
#define KUBE_ABSENT_GRACE_MS       10000 /* how long a kind must be gone before its objects are */
#define KUBE_TOKEN_REREAD_MS       50000
#define KUBE_TOKEN_MAX_BYTES       (256u * 1024)
#define KUBE_EXEC_TIMEOUT_MS       30000
#define KUBE_EXEC_OUTPUT_MAX_BYTES (1024u * 1024)
#define KUBE_EXEC_ERRORS_MAX_BYTES 4096  /* what is kept of a plugin's complaints */
#define KUBE_EXEC_EXPIRY_MARGIN_MS 10000 /* credentials are renewed that long before they end */
#define KUBE_EVENT_NOTE_MAX_BYTES  1024  /* Kubernetes: events.k8s.io/v1 */
#define KUBE_EVENT_WORD_MAX_BYTES  128   /* the same: reason, action, reportingInstance */

/* core: room that is kept for the heads of queues */
#define BOOKINGS_MAX            64   /* at once */
#define BOOKING_PASSED_OVER_MAX 1000 /* impossible gangs in front of a head */
#define BOOKING_AWAITED_MAX     64   /* ends that are tried one by one */
#define BOOKING_ROUNDS_MAX      100  /* passes of one step, each woken by a booking */
#define BOOKING_REFUSALS_MAX    16   /* kinds of gangs that are known to be in the way */
#define RECORD_AHEAD_MAX_MS     INT64_C(86400000) /* of a record's `at`, by another's clock */
#define LOOKS_MAX               10000             /* that the trace of one step tells */
#define BOOKING_REFRESH_MS      10000             /* between two looks at when booked heads start */

/* core: health */
#define INCIDENT_AGAIN_MS  (10 * 60 * 1000)      /* a gang that stops again so soon backs off */
#define FLAVOR_DEVICES_MAX 512                   /* ailing devices in a flavor's status */
#define REPORTED_REST_MS   (5 * 60 * 1000)       /* at least, of a device that a pod reported */
#define AILMENT_GONE_MS    (24 * 60 * 60 * 1000) /* a device that is gone is forgotten then */
#define AVOIDED_HOSTS_MAX  1000                  /* unhealthy nodes that one affinity names */
#define NODE_SETTLING_MS   (5 * 60 * 1000)       /* a new Node comes up: no recovery */

/* core: topology */
#define TOPOLOGY_LEVELS_MAX 16  /* of a flavor */
#define TOPOLOGY_TRIALS_MAX 256 /* domains that a gang's pods are placed in, for one judgement */
#define TOPOLOGY_UNSAFE_MAX 8   /* of these, where others may take the places */

/* api: counting */
#define POD_RESOURCES_MAX 128 /* different resources that one pod may name */

/* daemon */
#define DAEMON_BATCH_MAX     512 /* changes that the store gets in one batch */
#define DAEMON_FLUSH_MS      100 /* how long a change may wait for the others of its batch */
#define REPLAY_PORTION_BYTES (1024u * 1024) /* of a store's journal, read at once */

/* sim */
#define SIM_TASKS_AT_ONCE_MAX     1000000 /* at one moment of virtual time */
#define SIM_IDLE_MOMENTS_MAX      10000   /* in a row, with nothing to come but the core's clock */
#define SIMULATE_JOBS_MAX         5000000 /* of a load or a trace */
#define SIMULATE_QUEUES_MAX       100000
#define SIMULATE_CLASSES_MAX      1000
#define SIMULATE_NODES_MAX        100000
#define SIMULATE_DEVICES_MAX      800000  /* of a trace's cluster */
#define SIMULATE_UNITS_MAX        1000000 /* devices of one node or pod */
#define SIMULATE_LINE_MAX_BYTES   65536   /* of a trace */
#define SIMULATE_COLUMNS_MAX      256
#define SIMULATE_NAME_MAX_BYTES   63
#define SIMULATE_GANTT_BARS_MAX   2500 /* above, a chart shows queues instead of gangs */
#define SIMULATE_GANTT_QUEUES_MAX 40
