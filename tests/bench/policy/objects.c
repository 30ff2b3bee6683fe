/* objects.c - the objects as JSON, as a watch would bring them. */
#include "policy/cluster_internal.h"

#include <stdio.h>
#include <string.h>

#include "tallyman/base/time_text.h"

const char *bench_uid(uint32_t job, char buffer[BENCH_UID_BYTES])
{
    uint64_t mixed = (job + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed ^= mixed >> 27;
    (void)snprintf(buffer, BENCH_UID_BYTES, "%08x-%04x-4000-8000-%012u", (uint32_t)(mixed >> 32),
                   (uint32_t)(mixed >> 16 & 0xffff), job);
    return buffer;
}

void tell_job(struct cluster *cluster, enum timed timed, uint32_t index, const char *status,
              bool has_record)
{
    struct bench_job *job = &cluster->jobs[index];
    char record[600] = "";
    if (has_record) {
        (void)snprintf(
            record, sizeof(record),
            "\"tallyman.dev/admission\":\"{\\\"queue\\\":\\\"q%05u\\\",\\\"at\\\":"
            "\\\"2026-11-29T11:%02u:%02uZ\\\",\\\"priority\\\":0,\\\"podSets\\\":[{\\\"name\\\":"
            "\\\"main\\\",\\\"count\\\":%u,\\\"flavors\\\":{\\\"gpu.example.com\\\":"
            "\\\"default\\\",\\\"cpu\\\":\\\"default\\\"}}]}\"",
            job->queue, index / 60 % 60, index % 60, job->pods);
    }
    char uid[BENCH_UID_BYTES];
    char created[TIME_TEXT_BYTES];
    char topology[120] = "";
    if (cluster->options.required != NULL) {
        (void)snprintf(topology, sizeof(topology), "%s\"tallyman.dev/required-topology\":\"%s\"",
                       has_record ? "," : "", cluster->options.required);
    }
    char claims[300] = "";
    if (job->devices > 0) {
        (void)snprintf(
            claims, sizeof(claims),
            ",\"resourceClaims\":[{\"name\":\"gpu\",\"resourceClaimTemplateName\":\"d%u\"}]",
            job->devices);
    }
    tell(cluster, timed, KIND_JOB, false,
         "{\"metadata\":{\"name\":\"j%07u\",\"namespace\":\"ml\",\"uid\":"
         "\"%s\",\"resourceVersion\":\"%u\",\"creationTimestamp\":"
         "\"" STR_FMT "\",\"labels\":{\"tallyman.dev/queue\":\"q%05u\"%s},"
         "\"annotations\":{%s%s}},\"spec\":{\"parallelism\":%u,\"completions\":%u,\"suspend\":%s,"
         "\"template\":{\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{\"requests\":"
         "{\"cpu\":\"%um\"}}}]%s}}},\"status\":{%s}}",
         index, bench_uid(index, uid), ++job->version + 1,
         STR_ARG(time_format_rfc3339(job->created_ms / 1000 * 1000, created)), job->queue,
         job->priority > 0 ? ",\"tallyman.dev/priority-class\":\"high\"" : "", record, topology,
         job->pods, job->pods, job->is_suspended ? "true" : "false", 100 + job->kind, claims,
         status);
}

void tell_claim(struct cluster *cluster, enum timed timed, uint32_t index, uint32_t pod)
{
    const struct bench_job *job = &cluster->jobs[index];
    char results[4096];
    int at = 0;
    for (uint32_t d = 0; d < job->devices; d++) {
        at += snprintf(results + at, sizeof(results) - (size_t)at,
                       "%s{\"request\":\"gpu\",\"driver\":\"gpu.example.com\",\"pool\":"
                       "\"n%05u\",\"device\":\"g%u\"}",
                       d == 0 ? "" : ",", job->nodes[pod], job->device[pod] + d);
    }
    tell(cluster, timed, KIND_RESOURCE_CLAIM, false,
         "{\"metadata\":{\"name\":\"c%07u-%u\",\"namespace\":\"ml\",\"uid\":\"c-%u-%u\"},\"spec\":"
         "{\"devices\":{\"requests\":[{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":"
         "\"gpu.example.com\",\"count\":%u}}]}},\"status\":{\"allocation\":{\"devices\":"
         "{\"results\":[%s]}},\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"p\",\"uid\":"
         "\"p-%u-%u\"}]}}",
         index, pod, index, pod, job->devices, results, index, pod);
}

void tell_pod(struct cluster *cluster, enum timed timed, uint32_t index, uint32_t pod,
              const char *phase, bool is_bound)
{
    const struct bench_job *job = &cluster->jobs[index];
    char uid[BENCH_UID_BYTES];
    char node[64] = "";
    if (is_bound) {
        (void)snprintf(node, sizeof(node), ",\"nodeName\":\"n%05u\"", job->nodes[pod]);
    }
    char claims[200] = "";
    char made[200] = "";
    if (job->devices > 0) {
        (void)snprintf(
            claims, sizeof(claims),
            ",\"resourceClaims\":[{\"name\":\"gpu\",\"resourceClaimTemplateName\":\"d%u\"}]",
            job->devices);
        (void)snprintf(made, sizeof(made),
                       ",\"resourceClaimStatuses\":[{\"name\":\"gpu\",\"resourceClaimName\":"
                       "\"c%07u-%u\"}]",
                       index, pod);
    }
    bool is_ready = strcmp(phase, "Running") == 0;
    tell(cluster, timed, KIND_POD, false,
         "{\"metadata\":{\"name\":\"p%07u-%u\",\"namespace\":\"ml\",\"uid\":\"p-%u-%u\","
         "\"ownerReferences\":[{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"j%07u\","
         "\"uid\":\"%s\",\"controller\":true}]},\"spec\":"
         "{\"containers\":[{\"name\":\"main\",\"resources\":{\"requests\":{\"cpu\":\"%um\"}}}]%s%s"
         "},\"status\":{\"phase\":\"%s\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]%s}"
         "}",
         index, pod, index, pod, index, bench_uid(index, uid), 100 + job->kind, node, claims, phase,
         is_ready ? "True" : "False", made);
}

void tell_node(struct cluster *cluster, enum timed timed, uint32_t node)
{
    char rack[40] = "";
    if (cluster->options.racks > 0) {
        (void)snprintf(rack, sizeof(rack), ",\"rack\":\"r%03u\"",
                       node / (cluster->options.nodes / cluster->options.racks));
    }
    tell(cluster, timed, KIND_NODE, false,
         "{\"metadata\":{\"name\":\"n%05u\",\"uid\":\"n-%u\",\"labels\":"
         "{\"kubernetes.io/hostname\":\"n%05u\"%s}},\"status\":{\"allocatable\":{\"cpu\":\"64\","
         "\"memory\":\"256Gi\",\"pods\":\"110\"},\"conditions\":[{\"type\":\"Ready\",\"status\":"
         "\"True\",\"lastHeartbeatTime\":\"2026-11-29T12:00:00Z\"}]}}",
         node, node, node, rack);
}

void tell_slice(struct cluster *cluster, uint32_t node)
{
    char devices[4096];
    int at = 0;
    for (uint32_t d = 0; d < cluster->options.devices_per_node; d++) {
        at += snprintf(devices + at, sizeof(devices) - (size_t)at, "%s{\"name\":\"g%u\"}",
                       d == 0 ? "" : ",", d);
    }
    tell(cluster, TIMED_OTHER, KIND_RESOURCE_SLICE, false,
         "{\"metadata\":{\"name\":\"s%05u\"},\"spec\":{\"driver\":\"gpu.example.com\",\"nodeName\":"
         "\"n%05u\",\"pool\":{\"name\":\"n%05u\",\"generation\":1,\"resourceSliceCount\":1},"
         "\"devices\":[%s]}}",
         node, node, node, devices);
}

void tell_queue(struct cluster *cluster, uint32_t queue, uint32_t quota)
{
    const struct cluster_options *options = &cluster->options;
    char cohort[64] = "";
    if (options->cohorts > 0) {
        (void)snprintf(cohort, sizeof(cohort), "\"cohort\":\"c%03u\",", queue % options->cohorts);
    }
    tell(cluster, TIMED_OTHER, KIND_QUEUE, false,
         "{\"metadata\":{\"name\":\"q%05u\",\"uid\":\"q-%u\",\"finalizers\":"
         "[\"tallyman.dev/in-use\"]},\"spec\":{%s%s%s%s\"namespaceSelector\":{},"
         "\"resourceGroups\":[{\"flavors\":[{\"name\":\"default\",\"resources\":[{\"name\":\"cpu\","
         "\"nominalQuota\":\"%u\"},{\"name\":\"gpu.example.com\",\"nominalQuota\":\"%u\"}]}]}]}}",
         queue, queue, cohort, options->is_fair ? "\"fairSharing\":{\"weight\":\"1\"}," : "",
         options->is_quota_only ? "\"fit\":\"Quota\"," : "",
         options->preempts ? "\"preemption\":{\"withinQueue\":\"LowerPriority\"}," : "", quota * 8,
         quota);
}

void tell_templates(struct cluster *cluster)
{
    tell(cluster, TIMED_OTHER, KIND_NAMESPACE, false, "{\"metadata\":{\"name\":\"ml\"}}");
    tell(cluster, TIMED_OTHER, KIND_RESOURCE_FLAVOR, false,
         "{\"metadata\":{\"name\":\"default\"},\"spec\":{%s}}",
         cluster->options.racks == 0
             ? ""
             : "\"topology\":{\"levels\":[\"rack\",\"kubernetes.io/hostname\"]}");
    tell(cluster, TIMED_OTHER, KIND_PRIORITY_CLASS, false,
         "{\"metadata\":{\"name\":\"high\"},\"value\":100}");
    tell(cluster, TIMED_OTHER, KIND_DEVICE_CLASS, false,
         "{\"metadata\":{\"name\":\"gpu.example.com\"},\"spec\":{\"selectors\":[{\"cel\":"
         "{\"expression\":\"device.driver == 'gpu.example.com'\"}}]}}");
    for (uint32_t d = 1; d <= 8; d++) {
        tell(cluster, TIMED_OTHER, KIND_RESOURCE_CLAIM_TEMPLATE, false,
             "{\"metadata\":{\"name\":\"d%u\",\"namespace\":\"ml\"},\"spec\":{\"spec\":"
             "{\"devices\":{\"requests\":[{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":"
             "\"gpu.example.com\",\"count\":%u}}]}}}}",
             d, d);
    }
}
