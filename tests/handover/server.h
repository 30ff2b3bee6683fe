/* server.h - two replicas and the API server's Lease, in virtual time. */
#pragma once

#include "lease_fake.h"

#include "tallyman/kube/lease.h"

#define REPLICAS 2

struct replica {
    uint32_t number;
    struct kube_lease *lease; /* NULL: it isn't running */
    uint32_t incarnation;
    bool is_asleep;  /* SIGSTOP: its timers and answers wait */
    bool is_cut_off; /* the server doesn't answer it */
    bool is_leading;
    bool is_closing;
};

extern struct replica replicas[REPLICAS];

int64_t server_now_ms(void);
/* The replica whose name stands in the Lease; -1: nobody's. */
int server_holder(void);
void server_set_seed(uint64_t seed);
/* When the next timer, request or answer is due; INT64_MAX: never. */
int64_t server_next_ms(void);
void server_run_until(int64_t until_ms);
/* Whatever belongs to this incarnation of it never happens. */
void server_kill(struct replica *replica);
