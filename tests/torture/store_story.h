/* store_story.h - a store is opened, written and closed, by a process that tells what it saw. */
#pragma once

#include "torture.h"

#include "tallyman/store/store.h"

#define RECORDS_MAX   32
#define VERDICT_BYTES 1024

/* What a process tells of itself, in memory that it shares with the one that watches it. */
struct report {
    bool is_open;
    bool was_set_aside;
    enum rc_code open_code;
    uint32_t tried;    /* the last batch that was committed */
    uint32_t answered; /* the last batch whose callback said RC_OK */
    uint32_t answers;
    bool is_closed;
    bool is_read; /* all of it, with RC_OK */
    char text[VERDICT_BYTES];
};

struct story {
    const char *name;
    uint32_t before; /* batches that are there already */
    uint32_t batches;
    size_t payload_bytes;
    struct store_options options;
    bool is_damaged;
    bool is_killed; /* what wrote them was killed */
    bool is_short;  /* played without --all too */
};

/* In memory that all processes share. */
extern struct report *report;

/* What is on disk. */
struct contents {
    uint32_t gang; /* the batch that wrote it last; 0: none */
    uint32_t ledger[RECORDS_MAX];
    uint32_t journal[RECORDS_MAX];
    size_t payload_bytes;
    bool is_wrong; /* it holds something that nobody wrote */
};

/* What has to be there. */
struct expected {
    uint32_t first;    /* those before are gone with a damaged file */
    uint32_t answered; /* up to this batch everything */
    uint32_t tried;    /* nothing beyond this one */
    bool is_all_due;   /* the ledger up to the last that was tried */
};

/* Which promise isn't kept; empty: all are. Static. */
const char *contents_fault(const struct contents *contents, const struct expected *expected);
NODISCARD struct rc story_read(struct store *store, struct contents *contents, struct err *err);
struct store_options story_options(const struct story *story, const char *dir);
/* Ends the process where it failed. */
void story_must(struct rc rc, const struct err *err);
/* From store_open() on the nth call of the kind fails. */
void story_tell(const struct story *story, const char *dir, enum torture_kind kind, uint64_t nth);
