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
/* A ProvisioningRequest, for server-side apply. */
void render_request(struct json_writer *writer, const struct provisioning_request *request);
/* As a member; null where there are none. */
void render_tolerations(struct json_writer *writer, const struct toleration_list *list);

/* The PodTemplate that is made, and the Job that owns it. */
struct template_target {
    struct str namespace_name;
    struct str name;
    struct str job_name;
    struct str job_uid;
};

/* The pod template of a Job (its text, as the API server sends it) as a PodTemplate, with
 * nodeSelector and tolerations of the patch put in. RC_CONFLICT: it is another Job's text. */
NODISCARD struct rc render_pod_template(struct json_writer *writer, struct str job_text,
                                        const struct template_target *target,
                                        const struct template_patch *patch, struct err *err);
/* A merge PATCH of a Queue's finalizers, guarded by resourceVersion. */
void render_finalizer(struct json_writer *writer, const struct effect *effect);
