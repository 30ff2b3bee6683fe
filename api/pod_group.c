/* pod_group.c - names as the Job controller makes them up. Source of the rules:
 * k8s.io/kubernetes/pkg/controller/job/job_scheduling_manager.go. */
#include "tallyman/api/pod_group.h"

#include <inttypes.h>

#define FNV32_START UINT32_C(2166136261)
#define FNV32_PRIME UINT32_C(16777619)

static uint32_t hash_add(uint32_t hash, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        hash = (hash ^ (unsigned char)s.ptr[i]) * FNV32_PRIME;
    }
    return hash;
}

/* The decimal number in letters and digits that make no words. */
static struct str hash_text(struct arena *arena, uint32_t hash)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    struct str decimal = arena_format(arena, "%" PRIu32, hash);
    char *text = arena_alloc(arena, decimal.len);
    for (size_t i = 0; i < decimal.len; i++) {
        text[i] = letters[(unsigned char)decimal.ptr[i] % (sizeof(letters) - 1)];
    }
    return (struct str){text, decimal.len};
}

struct str pod_group_name_of_job(struct arena *arena, const struct job *job)
{
    struct str name = job->meta.name;
    if (name.len > POD_GROUP_JOB_NAME_MAX) {
        return STR_NONE;
    }
    /* The uid is hashed as Go prints it with its type. */
    uint32_t of_uid = hash_add(hash_add(FNV32_START, STR("(types.UID)")), job->meta.uid);
    struct str workload =
        arena_format(arena, STR_FMT "-" STR_FMT, STR_ARG(name), STR_ARG(hash_text(arena, of_uid)));
    struct str template = arena_format(arena, STR_FMT "-pgt-0", STR_ARG(name));
    uint32_t of_both = hash_add(hash_add(FNV32_START, workload), template);
    return arena_format(arena, STR_FMT "-" STR_FMT "-" STR_FMT, STR_ARG(workload),
                        STR_ARG(template), STR_ARG(hash_text(arena, of_both)));
}
