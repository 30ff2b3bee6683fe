/* gang_input.h - the pod sets that a gang is made of, whatever object it comes from. Private to the
 * core.
 *
 * A Job has one, `main`. A reader of another kind gives several, each with a name of its own; they
 * start together or not at all. */
#pragma once

#include "tallyman/api/job.h"
#include "tallyman/api/pod_request.h"
#include "tallyman/core/core.h"

struct gang_input_set {
    struct str name;                         /* borrowed from the object, or static */
    const struct pod_template *pod_template; /* borrowed from the object; as it stands */
    struct gang_size size;
    bool is_elastic_index; /* Indexed, and completions equals parallelism: both change together */
};

struct gang_input {
    struct gang_input_set *sets; /* in the arena; 1 to POD_SETS_MAX */
    uint32_t set_count;
};

/* Fills the input in any case; RC_INVALID tells what is wrong with a size. */
typedef struct rc (*gang_reader)(struct arena *arena, const struct job *job,
                                 struct gang_input *ret_input, struct err *err);

NODISCARD struct rc gang_input_of_job(struct arena *arena, const struct job *job,
                                      struct gang_input *ret_input, struct err *err);
/* How the core reads gangs from now on; as long as only Jobs are watched, for tests of what several
 * pod sets do. */
void core_set_gang_reader(struct core *core, gang_reader reader);
