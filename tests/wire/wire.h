/* wire.h - what the parts of wire_client share. */
#pragma once

#include "tallyman/kube/informer.h"

#define INPUT_MAX_BYTES (4u * 1024 * 1024)

struct wire {
    uv_loop_t loop;
    struct kube_config *config;
    struct kube_client *client;
    struct kube_informer *informers[KIND_COUNT];
    uint64_t objects[KIND_COUNT];
    struct kube_informer_options numbers;
    struct kube_client_options client_options;
    struct kube_config_options config_options;
    bool is_quiet;
    uv_pipe_t input;
    char *text; /* what of the input hasn't been carried out */
    size_t text_bytes;
    struct kube_call *last_call;
    uint32_t open_informers;
    bool is_quitting;
    const char *first_kinds[KIND_COUNT];
    uint32_t first_kind_count;
};

extern struct wire wire;

/* wire_report.c: one line per callback. */
const char *kind_name(enum object_kind kind);
enum object_kind kind_by_name(const char *name); /* ends the program if there is none */
struct kube_informer_handler report_informer(void);
void report_done(void *ctx, const struct kube_response *response); /* ctx: the request's name */
void report_metrics(void);

/* wire_commands.c: what is typed. */
void watch_kind(const char *name, const char *selector);
void run_line(char *line); /* ends the program on a line that it can't carry out */
void quit(void);

/* wire_lease.c: a Lease, and who may read what. */
void lease_open(const char *identity, const char *lease_ms);
void lease_report(void);
void lease_close(void);
void access_review(const char *token, const char *path);
void access_close(void); /* once the client is closed */

/* Called when all is ready, where tests/torture has linked it: from then on calls fail. */
extern void wire_begin(void) __attribute__((weak));
