/* daemon.h - the controller as a process: one loop, one core, and the real ports around them.
 *
 * run.c starts and stops it, leader.c lets one replica of several decide, kube_port.c carries
 * writes to the API server and events from it, http_port.c says how it is, store_port.c keeps the
 * journal and the ledger, telemetry.c counts and logs. */
#pragma once

#include <stdio.h>
#include <uv.h>

#include "tallyman/base/log.h"
#include "tallyman/base/metrics.h"
#include "tallyman/base/steady_time.h"
#include "tallyman/driver/driver.h"
#include "tallyman/http/server.h"
#include "tallyman/kube/client.h"
#include "tallyman/kube/informer.h"
#include "tallyman/kube/lease.h"
#include "tallyman/kube/retry.h"
#include "tallyman/kube/writer.h"
#include "tallyman/store/store.h"

struct daemon_options {
    struct str kubeconfig;            /* absent: KUBECONFIG, the pod's account, ~/.kube/config */
    struct str context;               /* absent: the current one */
    struct str store_dir;             /* absent: nothing is kept */
    struct str http_listen;           /* absent: no HTTP */
    const char *tls_certificate_file; /* NULL with tls_key_file: made at the start */
    const char *tls_key_file;
    bool is_alone;              /* no leader election */
    struct str lease_namespace; /* absent: tallyman-system */
    struct str identity;        /* absent: host name and a random part */
    const char *journal_file;   /* NULL: none; events and decisions as lines, for `replay` */
    enum log_level log_level;
};

struct telemetry {
    struct metrics *metrics;
    struct metric *pending;
    struct metric *admitted;
    struct metric *quota_used;
    struct metric *quota_nominal;
    struct metric *drift;
    struct metric *drift_devices;
    struct metric *admissions;
    struct metric *suspensions;
    struct metric *step_seconds;
    struct metric *write_seconds;
    struct metric *api_requests;
    struct metric *events;
    struct metric *malformed;
    struct metric *store_degraded;
    struct metric *writes_waiting;
    struct metric *leader;
};

struct daemon {
    struct daemon_options options;
    uv_loop_t loop;
    struct steady_time time;
    struct log_sink log;
    struct core *core;
    struct driver *driver;
    struct kube_config *config;
    struct kube_client *client;
    struct kube_informer *informers[KIND_COUNT];
    struct kube_lease *lease; /* NULL: alone, or not begun */
    struct store *store;
    struct store_batch *batch; /* what the next commit takes */
    struct http_server *http;
    struct kube_access *access; /* who may read what `http` serves; NULL without it */
    struct telemetry telemetry;
    FILE *journal;
    uint64_t journal_lost; /* lines that the store couldn't take since the last one it took */
    uv_timer_t wake_timer;
    uv_timer_t flush_timer;
    uv_timer_t start_timer;
    uv_signal_t signals[2];
    struct kube_backoff start_backoff;
    struct str cluster_id; /* owned; uid of namespace kube-system */
    uint32_t synced_kinds; /* bit per kind */
    uint32_t absent_kinds; /* of them, those that the API server doesn't serve */
    uint64_t step_started_ns;
    uint64_t event_serial;
    uint32_t closing; /* parts that haven't closed yet */
    bool is_stopping;
    bool is_ready;   /* all kinds are listed: it decides, or could at once */
    bool is_leading; /* or alone */
    int exit_status;
};

/* -- run.c -- */

void daemon_stop(struct daemon *daemon, int exit_status);

/* -- leader.c -- */

/* Stands for leader, or leads at once if it is alone. */
void leader_open(struct daemon *daemon);
/* False: another replica may lead by now; the daemon is stopping. Ask before every write. */
bool leader_may_write(struct daemon *daemon);
/* Gives the lease back; on_closed is called later, or at once if there is none. */
void leader_close(struct daemon *daemon, void (*on_closed)(void *ctx));

/* -- kube_port.c -- */

/* What was listed while another replica led is told to the driver now, which then decides. */
void kube_port_lead(struct daemon *daemon);

void kube_port_write(void *ctx, const struct driver_write *write); /* ctx: struct daemon */
void kube_port_open_informers(struct daemon *daemon);

/* -- http_port.c -- */

NODISCARD struct rc http_port_open(struct daemon *daemon, struct err *err);
void http_port_free(struct daemon *daemon); /* once the client and the server are closed */

/* -- request_port.c -- */

/* EFFECT_MAKE_REQUEST: the PodTemplates out of the Job as it is, then the ProvisioningRequest.
 * `done` comes once, with the last answer or the first that isn't good. */
void request_port_make(struct daemon *daemon, const struct driver_write *write,
                       struct kube_done done);

/* -- store_port.c -- */

NODISCARD struct rc store_port_open(struct daemon *daemon, struct err *err);
void store_port_persist(void *ctx, struct str gang_uid, const struct gang_memory *memory);
void store_port_ledger(void *ctx, const struct effect *effect);
/* A line of the journal, to the store and to the file. */
void store_port_journal(struct daemon *daemon, int64_t now_ms, struct str line);
/* Marks that this process begins, with a core that knows nothing. */
void store_port_journal_start(struct daemon *daemon);
void store_port_flush(struct daemon *daemon);

/* -- telemetry.c -- */

void telemetry_open(struct daemon *daemon);
void telemetry_wrote(struct daemon *daemon, const struct effect *effect,
                     const struct driver_answer *answer, int64_t took_ms);
void telemetry_effects(struct daemon *daemon, const struct effects *effects);
/* Written to standard error as one JSON object per line. */
struct log_sink telemetry_log(enum log_level level);
int64_t daemon_now_ms(void *ctx); /* struct daemon; never goes backwards */
