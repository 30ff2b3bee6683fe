"""What happens to a queued Job between its creation and its end: corrected, held, stopped, moved,
deleted, made again; and what comes late: its queue, its nodes, what it refers to."""

import json
import time

from lib import fixtures, manifests, runner
from lib.cluster import stays
from lib.gangs import HOLD, QUEUE, QUEUES_PATH, RECORD, SUSPENDED, Gangs

CLASS = "gpu.example.com"


def _job(gangs, name, queue, **more):
    return manifests.job(name, gangs.namespace, queue=queue, **more)


def _start(context, quotas, cluster=None, **spec):
    """A controller and a queue: (gangs, the queue's name, the controller)."""
    gangs = Gangs(cluster or context.cluster, context.namespace_in(cluster or context.cluster))
    controller = context.controller(cluster=cluster)
    queue = context.name("q")
    context.apply(manifests.queue(queue, quotas, **spec), cluster=cluster)
    return gangs, queue, controller


# ---- what comes late ----

def test_a_queue_may_come_after_its_jobs(context):
    gangs, _, _ = _start(context, {"cpu": "1"})
    late = context.name("late")
    gangs.create(_job(gangs, "early", late, pods=2))
    message = gangs.wait_reason("early", "QueueNotFound")
    context.note(message)
    assert late in message, message
    context.apply(manifests.queue(late, {"cpu": "1"}))
    gangs.wait_ready("early", 2, 10)


def test_a_mistyped_queue_is_corrected_while_the_job_waits(context):
    gangs, queue, _ = _start(context, {"cpu": "1"})
    gangs.create(_job(gangs, "gang", "no-such-queue", pods=2))
    gangs.wait_reason("gang", "QueueNotFound")
    gangs.patch("gang", {"metadata": {"labels": {QUEUE: queue}}})
    gangs.wait_ready("gang", 2, 10)
    assert gangs.record("gang")["queue"] == queue
    assert gangs.admission("gang")["spec"]["queue"] == queue


def test_a_node_that_comes_later_frees_a_waiting_gang_within_two_seconds(context):
    cluster = context.own_cluster(nodes=1)
    gangs, queue, _ = _start(context, {CLASS: "8", "cpu": "32"}, cluster=cluster)
    cluster.apply(manifests.claim_template("one-gpu", gangs.namespace))
    gangs.create(_job(gangs, "gang", queue, pods=4, claim_templates=["one-gpu"]),
                 _job(gangs, "large", queue, pods=1, cpu="9"))
    message = gangs.wait_reason("gang", "NeverFits")
    assert "all nodes that it may use have 2 together" in message, message
    gangs.wait_reason("large", "NeverFits")
    began = time.monotonic()
    cluster.request("POST", "/api/v1/nodes", fixtures.node("worker-2", cpu="16"))
    for item in fixtures.resource_slices("worker-2", 2):
        cluster.request("POST", "/apis/resource.k8s.io/v1/resourceslices", item)
    for name in ("gang", "large"):
        gangs.wait_started(name, 10)
    took_s = time.monotonic() - began
    context.note(f"from the Node's creation to both gangs' admission: {took_s:.2f} s")
    assert took_s < 2.0, f"took {took_s:.2f} s"
    gangs.wait_ready("gang", 4)
    gangs.wait_ready("large", 1)


def test_a_missing_claim_template_is_named_and_may_come_later(context):
    gangs, queue, _ = _start(context, {CLASS: "2"})
    gangs.create(_job(gangs, "gang", queue, pods=2, claim_templates=["late-template"]))
    message = gangs.wait_reason("gang", "MissingReference")
    context.note(message)
    assert "late-template" in message, message
    context.apply(manifests.claim_template("late-template", gangs.namespace))
    gangs.wait_ready("gang", 2, 10)
    gangs.wait_used(queue, CLASS, "2")


# ---- what is charged ----

def test_what_a_template_leaves_out_is_charged_all_the_same(context):
    """Limits stand in for requests, and a LimitRange for both: the Job's template shows neither."""
    gangs, queue, controller = _start(context, {"cpu": "3"})
    inner = f"{gangs.namespace}-l"
    context.apply(manifests.namespace(inner), {
        "apiVersion": "v1", "kind": "LimitRange",
        "metadata": {"name": "defaults", "namespace": inner},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}})
    limited = Gangs(gangs.cluster, inner)
    body = _job(gangs, "limit-only", queue, pods=2)
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    gangs.create(body)
    gangs.wait_ready("limit-only", 2)
    gangs.wait_used(queue, "cpu", "2")
    empty = _job(limited, "nothing", queue, pods=2)
    empty["spec"]["template"]["spec"]["containers"][0].pop("resources")
    limited.create(empty)
    message = limited.wait_reason("nothing", "QuotaExhausted")
    sentence = f"needs 2 cpu at once, queue {queue} has 1 of 3 free"
    assert sentence in message, message
    controller.restart()
    stays(lambda: sentence in limited.summary("nothing")
          and gangs.used(queue, "cpu") == "2", 1.5, "the same after a restart")
    gangs.delete("limit-only")
    limited.wait_ready("nothing", 2)
    gangs.wait_used(queue, "cpu", "2")
    figures = controller.metrics()
    used = [value for key, value in figures.items()
            if "used" in key and f'"{queue}"' in key and '"cpu"' in key]
    assert used == [2.0], {key: value for key, value in figures.items() if queue in key}


# ---- held and stopped by a user ----

def test_a_held_job_keeps_its_place_and_waits(context):
    gangs, queue, _ = _start(context, {"cpu": "1"})
    gangs.create(_job(gangs, "gang", queue, pods=2, annotations={HOLD: "true"}))
    gangs.wait_state("gang", "Held")
    gangs.create(_job(gangs, "other", queue, pods=2))
    gangs.wait_ready("other", 2)
    stays(lambda: gangs.is_suspended("gang"), 1, "the held Job is suspended")
    gangs.annotate("gang", HOLD, None)
    gangs.wait_ready("gang", 2)
    gangs.create(_job(gangs, "third", queue, pods=20))
    gangs.wait_reason("third", "QuotaExhausted")
    gangs.annotate("third", HOLD, "true")
    gangs.wait_state("third", "Held")
    gangs.delete("gang")
    gangs.delete("other")
    stays(lambda: gangs.is_suspended("third"), 1, "the held Job is suspended")
    gangs.annotate("third", HOLD, "false")
    gangs.wait_ready("third", 20)


def _fast_nodes(cluster):
    """worker-1 gets a label and a taint; a flavor that names and tolerates them."""
    cluster.kubectl("label", "node", "worker-1", "pool=fast")
    cluster.kubectl("taint", "node", "worker-1", "fast=yes:NoSchedule")
    taint = {"key": "fast", "value": "yes", "effect": "NoSchedule"}
    cluster.apply(manifests.resource_flavor(
        "fast", {"pool": "fast"}, nodeTaints=[taint],
        tolerations=[{"key": "fast", "operator": "Equal", "value": "yes",
                      "effect": "NoSchedule"}]))


def _steering(job):
    spec = job["spec"]["template"]["spec"]
    return {key: spec.get(key) for key in ("nodeSelector", "tolerations")}


def test_a_user_stops_a_running_job_and_it_is_held(context):
    cluster = context.own_cluster(nodes=2)
    gangs = Gangs(cluster, context.namespace_in(cluster))
    context.session.install(cluster)
    _fast_nodes(cluster)
    queue = "q"
    cluster.apply(manifests.queue(queue, {"cpu": "1"}, flavor="fast"))
    context.controller(cluster=cluster)
    own = {"key": "mine", "operator": "Exists", "effect": "NoSchedule"}
    template = {"tolerations": [own]}
    created = gangs.create(_job(gangs, "gang", queue, pods=2, cpu="500m", pod_spec=template,
                                node_selector={"kubernetes.io/os": "linux"},
                                pod_annotations={"example.com/stop-for": "3s"}),
                           _job(gangs, "bare", queue, pods=1, cpu="500m"))
    before, before_bare = map(_steering, created)
    gangs.wait_ready("gang", 2)
    during = _steering(gangs.job("gang"))
    assert during["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "fast"}, during
    assert own in during["tolerations"] and len(during["tolerations"]) == 2, during
    assert {pod["spec"]["nodeName"] for pod in gangs.pods("gang")} == {"worker-1"}
    gangs.wait_used(queue, "cpu", "1", flavor="fast")
    gangs.wait_reason("bare", "QuotaExhausted")

    gangs.patch("gang", {"spec": {"suspend": True}})
    gangs.wait_state("gang", "Suspending", 5)
    context.note(f"while it stops: {gangs.summary('gang')}")
    stays(lambda: gangs.used(queue, "cpu", "fast") == "1" and gangs.is_suspended("bare")
          and gangs.record("gang"), 1.5, "quota and record stay while its pods stop")
    gangs.wait_state("gang", "Held", 15)
    assert not gangs.pods("gang"), "it is Held while it still has pods"
    after = gangs.job("gang")
    assert _steering(after) == before, f"the template was {before}, and is {_steering(after)}"
    annotations = after["metadata"]["annotations"]
    assert RECORD not in annotations and SUSPENDED not in annotations, annotations
    assert annotations[HOLD] == "true", annotations
    gangs.wait_ready("bare", 1)
    assert _steering(gangs.job("bare"))["nodeSelector"] == {"pool": "fast"}
    stays(lambda: gangs.is_suspended("gang"), 1, "it isn't started against its user's will")

    gangs.patch("bare", {"spec": {"suspend": True}})
    gangs.wait_state("bare", "Held")
    assert _steering(gangs.job("bare")) == before_bare
    gangs.annotate("gang", HOLD, None)
    gangs.wait_ready("gang", 2)


def test_a_job_that_succeeds_or_fails_while_it_is_stopped_ends(context):
    """A suspension takes status.startTime away, and the API server refuses the Job controller's
    write of an end without one: such a Job hung for ever. Tallyman lets it go, and it ends."""
    gangs, queue, _ = _start(context, {"cpu": "0"})
    ends = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}
    for target in ends:
        name = target.lower()
        gangs.create(_job(gangs, name, queue, pods=2))
        gangs.wait_reason(name, "NeverFits")
        status = {"succeeded": 2 if target == "SuccessCriteriaMet" else 1, "conditions": [
            {"type": kind, "status": "True", "reason": "Test",
             "lastTransitionTime": "2026-01-01T00:00:00Z"} for kind in ("Suspended", target)]}
        gangs.cluster.kubectl("--as=system:serviceaccount:kube-system:job-controller",
                              "--as-group=system:masters", "patch", "job", name, "-n", gangs.namespace, "--subresource=status",
                              "--type=merge", "-p", json.dumps({"status": status}))
    for target, end in ends.items():
        gangs.cluster.wait_for(
            lambda name=target.lower(), end=end: end in [
                condition["type"] for condition in gangs.job(name)["status"]["conditions"]],
            30, f"the Job is {end}")
        gangs.wait_state(target.lower(), "Finished")
        assert not gangs.pods(target.lower()), "a pod was started"


def test_slow_pods_keep_their_quota_until_they_are_gone(context):
    """Neither quota nor device is given to another before the last pod has ended and its claim is
    deallocated; in the order in which the API server wrote them."""
    gangs, queue, _ = _start(context, {CLASS: "6"})
    cluster = gangs.cluster
    context.apply(manifests.claim_template("one-gpu", gangs.namespace))
    gangs.create(_job(gangs, "victim", queue, pods=6, claim_templates=["one-gpu"],
                      pod_annotations={"example.com/stop-for": "4s"}))
    gangs.wait_ready("victim", 6)
    gangs.create(_job(gangs, "next", queue, pods=6, claim_templates=["one-gpu"]))
    gangs.wait_reason("next", "QuotaExhausted")
    gangs.wait_used(queue, CLASS, "6")
    claims_path = f"/apis/resource.k8s.io/v1/namespaces/{gangs.namespace}/resourceclaims"
    with cluster.watch(claims_path) as claims:
        gangs.patch("victim", {"spec": {"suspend": True}})
        gangs.wait_state("victim", "Suspending", 5)
        stays(lambda: gangs.used(queue, CLASS) == "6" and gangs.is_suspended("next"), 2,
              "all six are charged while the pods stop")
        gangs.wait_started("next", 20)
        started = int(gangs.job("next")["metadata"]["resourceVersion"])
        gangs.wait_ready("next", 6)
        freed = [int(item["metadata"]["resourceVersion"]) for kind, item in claims.seen
                 if item["metadata"]["name"].startswith("victim-")
                 and (kind == "DELETED" or not item.get("status", {}).get("allocation"))]
        held = [int(item["metadata"]["resourceVersion"]) for kind, item in claims.seen
                if item["metadata"]["name"].startswith("victim-") and kind != "DELETED"
                and item.get("status", {}).get("allocation")]
    assert len(freed) >= 6, f"{len(freed)} claims of the victim were freed"
    assert max(held) < started, "a claim of the victim was allocated when the next gang started"


def test_a_claim_is_in_use_while_it_is_allocated(context):
    """Whatever became of its pod: an allocation without any consumer holds the device."""
    cluster = context.own_cluster(nodes=1, devices=1)
    gangs, queue, _ = _start(context, {CLASS: "2"}, cluster=cluster)
    cluster.apply(manifests.claim("left-over", gangs.namespace),
                  manifests.claim_template("one-gpu", gangs.namespace))
    path = f"/apis/resource.k8s.io/v1/namespaces/{gangs.namespace}/resourceclaims/left-over"
    cluster.request("PATCH", path, {"metadata": {"finalizers": ["example.com/keep"]}})
    cluster.request("PATCH", f"{path}/status", {"status": {"allocation": {"devices": {"results": [
        {"request": "gpu", "driver": CLASS, "pool": "worker-1", "device": "gpu-0"}]}}}})
    gangs.create(_job(gangs, "gang", queue, pods=1, claim_templates=["one-gpu"]))
    message = gangs.wait_reason("gang", "DevicesExhausted")
    assert "0 of 1 " in message, message
    stays(lambda: gangs.is_suspended("gang"), 1, "the gang waits")
    cluster.request("PATCH", f"{path}/status", {"status": {"allocation": None}})
    gangs.wait_ready("gang", 1, 10)
    cluster.request("PATCH", path, {"metadata": {"finalizers": None}})


# ---- deleted, and made again ----

def test_a_job_made_again_under_its_name_is_another_job(context):
    gangs, queue, controller = _start(context, {"cpu": "1"})
    body = _job(gangs, "gang", queue, pods=2, cpu="500m")
    uids = []
    for is_running in (True, False, True):
        if not is_running:
            controller.stop()
        gangs.delete("gang") if uids else None
        gangs.cluster.wait_for(lambda: gangs.job("gang") is None, 15, "the Job gone")
        uids.append(gangs.create(body)[0]["metadata"]["uid"])
        if not is_running:
            controller.start()
        gangs.wait_ready("gang", 2)
        assert gangs.job("gang")["metadata"]["uid"] == uids[-1]
        gangs.wait_used(queue, "cpu", "1")

        def is_of_this_job():
            admission = gangs.admission("gang")
            return admission and admission["spec"]["jobUID"] == uids[-1] and \
                admission["metadata"]["ownerReferences"][0]["uid"] == uids[-1]

        gangs.cluster.wait_for(is_of_this_job, 10, "the Admission is the new Job's")
    assert len(set(uids)) == 3
    gangs.delete("gang")
    gangs.wait_used(queue, "cpu", "0")
    gangs.cluster.wait_for(lambda: gangs.admission("gang") is None, 30, "the Admission collected")


def test_orphaned_pods_hold_their_quota_and_devices(context):
    gangs, queue, _ = _start(context, {CLASS: "6"})
    cluster = gangs.cluster
    context.apply(manifests.claim_template("one-gpu", gangs.namespace))
    gangs.create(_job(gangs, "parent", queue, pods=4, claim_templates=["one-gpu"]))
    gangs.wait_ready("parent", 4)
    gangs.wait_used(queue, CLASS, "4")
    gangs.delete("parent", "Orphan")
    gangs.create(_job(gangs, "next", queue, pods=4, claim_templates=["one-gpu"]))
    message = gangs.wait_reason("next", "QuotaExhausted")
    assert "2 of 6 free" in message, message
    assert gangs.used(queue, CLASS) == "4"
    assert len(cluster.devices_held(gangs.namespace)) == 4, "the orphans run on"
    cluster.request("DELETE", f"/api/v1/namespaces/{gangs.namespace}/pods?labelSelector="
                    "batch.kubernetes.io/job-name%3Dparent")
    gangs.wait_ready("next", 4)


# ---- not whole in time ----

def test_a_gang_that_does_not_get_whole_is_stopped_whole_and_tried_again(context):
    gangs, queue, controller = _start(
        context, {"cpu": "1"}, podsReadyTimeout="3s", requeue={"base": "4s", "max": "8s"})
    cluster = gangs.cluster
    gangs.create(_job(gangs, "stuck", queue, pods=2, cpu="500m",
                      pod_annotations={"example.com/never-ready": "true"}))
    gangs.wait_started("stuck")
    time.sleep(1.1)
    gangs.create(_job(gangs, "behind", queue, pods=2, cpu="500m", run_for="2s"))
    message = gangs.wait_reason("stuck", "Backoff", 20)
    context.note(message)
    assert gangs.is_suspended("stuck") and not gangs.pods("stuck")
    assert gangs.events("stuck", "PodsReadyTimeout"), gangs.events("stuck")
    gangs.wait_complete("behind")
    controller.restart()
    cluster.wait_for(lambda: gangs.is_started("stuck"), 20, "tried again after its backoff")
    cluster.wait_for(lambda: gangs.status("stuck")["evictions"] == 2, 20, "stopped once more")
    gangs.wait_reason("stuck", "Backoff", 20)
    status = gangs.status("stuck")
    assert status["evictions"] == 2 and status["requeue"]["count"] == 2, status


# ---- a queue that goes ----

def test_a_queue_in_use_stays_until_its_last_gang_has_ended(context):
    gangs, queue, _ = _start(context, {"cpu": "1"})
    cluster = gangs.cluster
    gangs.create(_job(gangs, "runs", queue, pods=2, cpu="500m", run_for="6s"))
    gangs.wait_ready("runs", 2)
    cluster.request("DELETE", f"{QUEUES_PATH}/{queue}")
    gangs.create(_job(gangs, "late", queue, pods=1))
    message = gangs.wait_reason("late", "QueueStopped")
    context.note(message)
    cluster.wait_for(lambda: gangs.queue(queue)["status"]["conditions"][0]["reason"] == "Deleting",
                     4, "the Queue says that it is being deleted")
    assert not cluster.has_condition(gangs.namespace, "runs", "Complete")
    gangs.wait_complete("runs")
    cluster.wait_for(lambda: cluster.api.get_or_none(f"{QUEUES_PATH}/{queue}") is None, 10,
                     "the Queue gone after its last gang")
    gangs.wait_reason("late", "QueueNotFound")
    context.apply(manifests.queue(queue, {"cpu": "1"}))
    gangs.wait_ready("late", 1)


# ---- started anew ----

def test_a_restart_changes_nothing(context):
    gangs, queue, controller = _start(context, {"cpu": "1050m"})
    gangs.create(_job(gangs, "runs", queue, pods=2, cpu="500m"),
                 _job(gangs, "done", queue, pods=1, run_for="1s"))
    gangs.wait_ready("runs", 2)
    gangs.wait_complete("done")
    gangs.create(_job(gangs, "waits", queue, pods=2, cpu="400m"))
    gangs.wait_reason("waits", "QuotaExhausted")

    def versions():
        return {f"{kind} {name}": read(name)["metadata"]["resourceVersion"]
                for name in ("runs", "done", "waits")
                for kind, read in (("Job", gangs.job), ("Admission", gangs.admission))}

    time.sleep(2.5)
    before = versions()
    for is_killed in (False, True):
        controller.restart(is_killed=is_killed)
        stays(lambda: versions() == before, 1.5, "no write to what hasn't changed")
    controller.stop()
    second = context.controller()
    stays(lambda: versions() == before, 1.5, "nor by one that knows nothing of before")
    gangs.delete("runs")
    gangs.wait_ready("waits", 2)
    assert second.is_alive()


# ---- what isn't there ----

OWN_API = "/apis/tallyman.dev/v1beta1/"
OWN_KINDS = ("queues", "cohorts", "resourceflavors", "admissions")


def test_the_controller_waits_for_its_kinds(context):
    cluster = context.own_cluster(nodes=1)
    context.session.install(cluster)
    root = runner.ROOT
    cluster.kubectl("delete", "-k", root / "config" / "policies")
    # A kind that is deleted before it is served can stay for minutes.
    for plural in OWN_KINDS:
        cluster.wait_for(lambda path=OWN_API + plural: cluster.items(path) is not None, 30,
                         f"{plural} are served")
    cluster.kubectl("delete", "--wait=false", "-k", root / "crds")
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    cluster.wait_for(lambda: not [crd for crd in cluster.items(crds)
                                  if crd["spec"]["group"] == "tallyman.dev"], 240,
                     "our kinds are gone")
    controller = context.controller(cluster=cluster, is_started=False)
    controller.start(is_ready_awaited=False)
    stays(controller.is_alive, 3, "the controller runs without its kinds")
    cluster.apply(manifests.job("plain", context.namespace_in(cluster), pods=1))
    cluster.kubectl("apply", "-k", root / "crds")
    controller.wait_ready(60)
    gangs = Gangs(cluster, context.namespace_in(cluster))
    cluster.apply(manifests.queue("q", {"cpu": "1"}))
    gangs.create(_job(gangs, "gang", "q", pods=2, suspend=True))
    gangs.wait_ready("gang", 2)


def _bind_all(cluster, namespace, node):
    """In the place of 1.37's scheduler, which waits for resource.k8s.io where it isn't served."""
    for pod in cluster.pods(namespace):
        name = pod["metadata"]["name"]
        if not pod["spec"].get("nodeName"):
            cluster.request("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", {
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node}})


def test_without_device_claims_in_the_api_gangs_of_plain_pods_start(context):
    unserved = ",".join(f"resource.k8s.io/{version}=false"
                        for version in ("v1", "v1beta1", "v1beta2", "v1alpha3"))
    cluster = context.own_cluster(nodes=1, devices=0, runtime_config=f"api/all=true,{unserved}")
    assert "resource.k8s.io" not in cluster.kubectl("api-versions").stdout
    gangs, queue, controller = _start(context, {"cpu": "1", CLASS: "4"}, cluster=cluster)
    gangs.create(_job(gangs, "plain", queue, pods=2, cpu="500m", run_for="2s"),
                 _job(gangs, "claims", queue, pods=1, claim_templates=["one-gpu"]))
    gangs.wait_started("plain")
    cluster.wait_for(lambda: len(gangs.pods("plain")) == 2, 10, "both pods there")
    _bind_all(cluster, gangs.namespace, "worker-1")
    gangs.wait_complete("plain")
    gangs.wait_used(queue, "cpu", "0")
    context.note(f"a Job with claims there: {gangs.wait_reason('claims', 'MissingReference')}")
    cpu_s = controller.cpu_seconds()
    time.sleep(5)
    assert controller.cpu_seconds() - cpu_s < 0.1, "it is busy asking for what isn't served"
