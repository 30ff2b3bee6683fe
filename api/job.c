/* job.c - what a Job's status says. */
#include "tallyman/api/job.h"

bool job_is_finished(const struct job *job)
{
    return condition_is_true(&job->status.conditions, "Complete") ||
           condition_is_true(&job->status.conditions, "Failed");
}
