/* world_internal.h - what the files of the world share. */
#pragma once

#include "support/scenario_internal.h"
#include "support/world.h"

#define WORLD_NODES 3

/* The Job of that number, or NULL; its name is filled in anyhow. Borrowed from the scenario. */
struct job *world_job_at(struct scenario *s, uint8_t a, char name[16]);
bool world_is_over(const struct job *job); /* Complete or Failed */
struct str world_job_uid_of(const struct pod *pod);
int world_pods_of(struct scenario *s, const struct job *job, bool is_live_only);
/* The n-th pod, counted round; NULL: there is none. Borrowed from the scenario. */
struct entry *world_pod_at(struct scenario *s, uint8_t n);
void world_name_of(const struct entry *entry, char name[64]);
/* Binds a pod that waits, to the first node from `choice` on that can take it; false: none can. */
bool world_bind(struct scenario *s, struct entry *entry, uint8_t choice);
