/* gang_parts.c - the parts of a gang that most do without. */
#include "state.h"

#include <string.h>

#include "tallyman/base/alloc.h"

const struct gang_run gang_run_none;
const struct gang_room gang_room_none;
const struct gang_trouble gang_trouble_none;

/* Theirs alone may be written to: what isn't `none` was made here. */
static void *own_part(const void *part, const void *none, size_t bytes)
{
    return part == none ? mem_zalloc(bytes) : (void *)(uintptr_t)part;
}

struct gang_run *gang_run_edit(struct gang *gang)
{
    struct gang_run *run = own_part(gang->run, &gang_run_none, sizeof(*run));
    gang->run = run;
    return run;
}

struct gang_room *gang_room_edit(struct gang *gang)
{
    struct gang_room *room = own_part(gang->room, &gang_room_none, sizeof(*room));
    gang->room = room;
    return room;
}

struct gang_trouble *gang_trouble_edit(struct gang *gang)
{
    struct gang_trouble *trouble = own_part(gang->trouble, &gang_trouble_none, sizeof(*trouble));
    gang->trouble = trouble;
    return trouble;
}

void gang_put_memory(struct gang *gang, struct gang_memory memory)
{
    GANG_PUT(gang, trouble, memory.requeue_count, memory.requeue_count);
    GANG_PUT(gang, trouble, memory.requeue_at_ms, memory.requeue_at_ms);
    GANG_PUT(gang, trouble, memory.evictions, memory.evictions);
}

static const void *trimmed(const void *part, const void *none, size_t bytes)
{
    if (part == none || memcmp(part, none, bytes) != 0) {
        return part;
    }
    mem_free((void *)(uintptr_t)part);
    return none;
}

void gang_parts_init(struct gang *gang)
{
    gang->run = &gang_run_none;
    gang->room = &gang_room_none;
    gang->trouble = &gang_trouble_none;
}

void gang_parts_trim(struct gang *gang)
{
    gang->run = trimmed(gang->run, &gang_run_none, sizeof(gang_run_none));
    gang->room = trimmed(gang->room, &gang_room_none, sizeof(gang_room_none));
    gang->trouble = trimmed(gang->trouble, &gang_trouble_none, sizeof(gang_trouble_none));
}

void gang_parts_free(struct gang *gang)
{
    GANG_PUT_TEXT(gang, run, stop_why, STR_NONE);
    GANG_PUT_TEXT(gang, run, request_for, STR_NONE);
    GANG_PUT_TEXT(gang, run, version_text, STR_NONE);
    GANG_PUT_TEXT(gang, trouble, invalid, STR_NONE);
    GANG_PUT_TEXT(gang, trouble, refusal, STR_NONE);
    if (gang->run != &gang_run_none) {
        mem_free((void *)(uintptr_t)gang->run);
    }
    if (gang->room != &gang_room_none) {
        mem_free((void *)(uintptr_t)gang->room);
    }
    if (gang->trouble != &gang_trouble_none) {
        mem_free((void *)(uintptr_t)gang->trouble);
    }
}
