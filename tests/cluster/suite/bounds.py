"""Run-time bounds on a real API server: the admission sets the deadline, a stop puts the user's own
back, and the start that is expected from it is told."""

from lib import manifests
from lib.gangs import Gangs

JOB = "/apis/batch/v1/namespaces/{}/jobs/{}"
ADMISSION = "/apis/tallyman.dev/v1beta1/namespaces/{}/admissions/{}"
BOUND = "tallyman.dev/max-runtime"


def _deadline(context, name):
    job = context.cluster.get_json(JOB.format(context.namespace, name))
    return job["spec"].get("activeDeadlineSeconds")


def test_the_bound_of_the_queue_ends_a_job_that_runs_longer(context):
    context.controller()
    queue, gangs = context.name("q"), Gangs(context.cluster, context.namespace)
    context.apply(manifests.queue(queue, {"cpu": "1"}, maxRuntime="5s"))
    gangs.create(manifests.job("endless", context.namespace, queue=queue, pods=2, cpu="100m"))
    gangs.wait_ready("endless", 2)
    assert _deadline(context, "endless") == 5
    context.cluster.wait_for(
        lambda: any(condition["reason"] == "DeadlineExceeded" for condition in
                    context.cluster.job(context.namespace, "endless")["status"].get("conditions", [])),
        30, "the Job has failed by its deadline")
    gangs.wait_state("endless", "Finished")


def test_the_own_deadline_is_back_after_a_stop_and_the_next_start_is_foretold(context):
    context.controller()
    queue, gangs = context.name("q"), Gangs(context.cluster, context.namespace)
    context.apply(manifests.queue(queue, {"cpu": "200m"}, queueingStrategy="Backfill"))
    first = manifests.job("first", context.namespace, queue=queue, pods=2, cpu="100m",
                          annotations={BOUND: "10m"})
    first["spec"]["activeDeadlineSeconds"] = 3600
    gangs.create(first)
    gangs.wait_ready("first", 2)
    assert _deadline(context, "first") == 600
    gangs.create(manifests.job("second", context.namespace, queue=queue, pods=2, cpu="100m"))
    gangs.wait_reason("second", "QuotaExhausted")

    def likely_start():
        status = context.cluster.get_json(ADMISSION.format(context.namespace, "second"))["status"]
        return status.get("explanation", {}).get("likelyStart")
    context.note(f"second is expected to start at "
                 f"{context.cluster.wait_for(likely_start, 20, 'the likely start is told')}")

    gangs.patch("first", {"spec": {"suspend": True}})
    gangs.wait_state("first", "Held")
    context.cluster.wait_for(lambda: _deadline(context, "first") == 3600, 20,
                             "the Job's own deadline is back")
    gangs.wait_ready("second", 2)
