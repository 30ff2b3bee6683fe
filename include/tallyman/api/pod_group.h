/* pod_group.h - the PodGroup that the Job controller makes for a Job (Kubernetes 1.37, feature gate
 * WorkloadWithJob). */
#pragma once

#include "tallyman/api/job.h"
#include "tallyman/base/arena.h"

/* A Job's name is at most that long where its pods can be made: a label holds it. */
#define POD_GROUP_JOB_NAME_MAX 63

/* Its name, which follows from the Job's name and uid; in the arena. Absent: the Job's name is too
 * long. */
struct str pod_group_name_of_job(struct arena *arena, const struct job *job);
