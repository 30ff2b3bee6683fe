#include "store_story.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <uv.h>

#include "tallyman/base/alloc.h"

#define CLUSTER "0e6c42d1-6a51-4b0c-9a51-3f1cf3a2f001"

struct report *report;

/* --- The story, told by a process of its own ----------------------------------------------------
 */

static void on_answer(void *ctx, struct rc rc, struct str sentence)
{
    (void)sentence;
    report->answers++;
    if (rc.code == RC_OK) {
        report->answered = (uint32_t)(uintptr_t)ctx;
    }
}

static void on_closed(void *ctx)
{
    (void)ctx;
    report->is_closed = true;
}

void story_must(struct rc rc, const struct err *err)
{
    if (rc_failed(rc)) {
        (void)snprintf(report->text, sizeof(report->text), "%s: %.900s", rc_name(rc), err->text);
        _exit(2);
    }
}

static struct store_batch *batch_of(uint32_t number, size_t payload_bytes)
{
    struct store_batch *batch = store_batch_new();
    struct store_record record = {.time_ms = number, .kind = number};
    struct err err;
    char text[16];

    (void)snprintf(text, sizeof(text), "%u", number);
    record.bytes = str_from_c(text);
    story_must(store_batch_put_gang(batch, STR("gang"), str_from_c(text), &err), &err);
    story_must(store_batch_add_ledger(batch, &record, &err), &err);
    char *payload = mem_zalloc(payload_bytes + 1);

    record.bytes = (struct str){payload, payload_bytes};
    story_must(store_batch_add_journal(batch, &record, &err), &err);
    mem_free(payload);
    return batch;
}

static void write_batches(uv_loop_t *loop, struct store *store, const struct story *story,
                          uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        struct store_batch *batch = batch_of(i, story->payload_bytes);
        uint32_t answers = report->answers;
        struct err err;

        report->tried = i;
        story_must(store_commit(store, batch, on_answer, (void *)(uintptr_t)i, &err), &err);
        while (report->answers == answers) {
            (void)uv_run(loop, UV_RUN_ONCE);
        }
    }
}

static bool take_gang(void *ctx, struct str key, struct str value)
{
    struct contents *contents = ctx;
    int64_t number = 0;

    contents->is_wrong |= !str_eq_c(key, "gang") || !str_to_i64(value, &number);
    contents->gang = (uint32_t)number;
    return true;
}

static bool take_ledger(void *ctx, uint64_t seq, const struct store_record *record)
{
    struct contents *contents = ctx;
    int64_t number = 0;

    (void)seq;
    contents->is_wrong |= record->kind >= RECORDS_MAX || !str_to_i64(record->bytes, &number) ||
                          number != record->kind || record->time_ms != number;
    contents->ledger[record->kind % RECORDS_MAX]++;
    return true;
}

static bool take_journal(void *ctx, uint64_t seq, const struct store_record *record)
{
    struct contents *contents = ctx;

    (void)seq;
    contents->is_wrong |=
        record->kind >= RECORDS_MAX || record->bytes.len != contents->payload_bytes;
    contents->journal[record->kind % RECORDS_MAX]++;
    return true;
}

struct rc story_read(struct store *store, struct contents *contents, struct err *err)
{
    TRY(store_read_gangs(store, take_gang, contents, err));
    TRY(store_read_ledger(store, 0, INT64_MAX, take_ledger, contents, err));
    return store_read_journal(store, 0, take_journal, contents, err);
}

struct store_options story_options(const struct story *story, const char *dir)
{
    struct store_options options = story->options;

    options.dir = str_from_c(dir);
    options.cluster_id = options.is_read_only ? STR_NONE : STR(CLUSTER);
    options.now_ms = 1;
    return options;
}

/* What must be there of the records of batch i; empty: it is. */
static const char *records_fault(const struct contents *contents, const struct expected *expected,
                                 uint32_t i)
{
    bool is_due = i >= expected->first &&
                  (i <= expected->answered || (expected->is_all_due && i <= expected->tried));

    if (contents->ledger[i] > 1 || contents->journal[i] > 1) {
        return "a record is there twice";
    }
    if (is_due && contents->ledger[i] == 0) {
        return "a ledger record is lost";
    }
    if (i > expected->tried && contents->ledger[i] + contents->journal[i] > 0) {
        return "it holds a record of a batch that was never committed";
    }
    return "";
}

const char *contents_fault(const struct contents *contents, const struct expected *expected)
{
    const char *fault = "";

    if (contents->is_wrong) {
        return "it holds what nobody wrote";
    }
    if (contents->gang < expected->answered || contents->gang > expected->tried) {
        return "the soft state is neither what was answered nor newer";
    }
    for (uint32_t i = 1; i < RECORDS_MAX && fault[0] == '\0'; i++) {
        fault = records_fault(contents, expected, i);
    }
    return fault;
}

static void read_only_story(const struct story *story, struct store *store)
{
    struct contents contents = {.payload_bytes = story->payload_bytes};
    struct err err;

    if (rc_failed(story_read(store, &contents, &err))) {
        return;
    }
    report->is_read = true;
    const struct expected expected = {1, story->before, story->before, true};
    const char *fault = contents_fault(&contents, &expected);

    if (fault[0] != '\0') {
        (void)snprintf(report->text, sizeof(report->text), "read as whole, but %s", fault);
    }
}

void story_tell(const struct story *story, const char *dir, enum torture_kind kind, uint64_t nth)
{
    struct store_options options = story_options(story, dir);
    struct store *store = NULL;
    struct err err = {{0}};
    uv_loop_t loop;

    if (uv_loop_init(&loop) != 0) {
        _exit(2);
    }
    torture_arm(kind, nth);
    struct rc rc = store_open(&loop, &options, &store, &err);

    report->open_code = rc.code;
    if (!rc_failed(rc)) {
        report->is_open = true;
        report->was_set_aside = store_stats(store).was_set_aside;
        if (options.is_read_only) {
            read_only_story(story, store);
            store_close(store, NULL, NULL);
        } else {
            write_batches(&loop, store, story, story->before + 1, story->batches);
            store_close(store, on_closed, NULL);
        }
        (void)uv_run(&loop, UV_RUN_DEFAULT);
    } else {
        (void)snprintf(report->text, sizeof(report->text), "%s", err.text);
    }
    if (uv_loop_close(&loop) != 0) {
        (void)snprintf(report->text, sizeof(report->text), "handles are left open");
        exit(3);
    }
}
