/* keep.h - the store beside the simulated cluster, and what may become of it.
 *
 * world.c plays a run: Jobs come and go by a seed, the controller is killed now and then. keep.c
 * is the store of that run, the real one in a directory of its own, and what happens to its file
 * while the controller is dead. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tallyman/base/str.h"

/* What a controller finds of its store when it starts again. */
enum fate {
    FATE_KEPT = 0, /* all that was committed */
    FATE_LOST,     /* nothing */
    FATE_OLDER,    /* the file of some time ago: older than the cluster */
    FATE_TORN,     /* a file with bytes of something else in it */
    FATE_SHORT,    /* the file's first half */
    FATE_FULL,     /* all of it, but the disk has no room for more */
    FATE_COUNT,
};

extern const char *const fate_names[FATE_COUNT];

struct keep;

/* In a new directory below TMPDIR. Owned; keep_free() removes the directory. */
struct keep *keep_new(enum fate fate, uint64_t seed);
void keep_free(struct keep *keep);
/* What the driver's ports are given. Absent bytes: nothing is to be kept of that gang. */
void keep_persist(struct keep *keep, struct str gang_uid, struct str bytes);
void keep_ledger(struct keep *keep, int64_t at_ms, struct str line);
/* What has been given so far is committed. */
void keep_flush(struct keep *keep);
/* The controller dies: what wasn't committed is lost; the file meets its fate; it is opened anew.
 */
void keep_die(struct keep *keep);
/* Fails the test unless the ledger on disk has what was committed: all of it, once, in order, since
 * the fate last struck. */
void keep_check(struct keep *keep);
/* Of the file; 0 if it can't be written. */
uint64_t keep_used_bytes(const struct keep *keep);
/* Gangs of which something is kept. */
uint64_t keep_gang_records(const struct keep *keep);

struct run_figures {
    uint32_t kills;
    uint32_t admissions;
    uint32_t kept; /* times that something was to be kept of a gang */
};

/* world.c: the trace of all decisions, owned (mem_free()). `keep` NULL: no store. */
char *world_run(struct keep *keep, uint64_t seed, struct run_figures *ret_figures);
/* A day of Jobs that come, end and are deleted: fails unless what is allocated and what the store
 * uses is the same at every rest. */
void world_churn(struct keep *keep);
