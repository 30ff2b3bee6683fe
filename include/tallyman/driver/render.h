/* render.h - the JSON bodies of the driver's writes. */
#pragma once

#include "tallyman/api/codec.h"
#include "tallyman/driver/driver.h"

/* A merge PATCH of a Job with its guards (metadata.uid, metadata.resourceVersion). */
void render_job_patch(struct json_writer *writer, const struct effect *effect);
/* A merge PATCH of the checkpoint request on a Pod, guarded by uid. */
void render_pod_mark(struct json_writer *writer, const struct effect *effect);
/* The whole intent of an Admission, for server-side apply. */
void render_admission(struct json_writer *writer, const struct admission *admission);
/* The status of a Queue, Cohort or ResourceFlavor, for server-side apply. */
void render_status(struct json_writer *writer, const struct status_content *content);
/* A merge PATCH of a Queue's finalizers, guarded by resourceVersion. */
void render_finalizer(struct json_writer *writer, const struct effect *effect);
