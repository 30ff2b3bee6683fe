"""The promise: on random small clusters every gang that is admitted is placed whole, by the real
kube-scheduler. And the other way round: what waits for room could really not be placed."""

import collections
import concurrent.futures
import os
import random
import time

from lib import fixtures, manifests
from lib.course import is_suspended, pod_job
from lib.random_gangs import make_world

WORLDS = int(os.environ.get("TALLYMAN_WORLDS", "200"))
SEED = os.environ.get("TALLYMAN_SEED", "1729")
AT_ONCE = 40             # worlds side by side in one control plane, each on nodes of its own
THREADS = 8
WHOLE_WITHIN_S = 20      # of its unsuspending, on a machine that is busy with 40 worlds
QUIET_S = 3
SETTLE_TIMEOUT_S = 90
ADMISSIONS = "/apis/tallyman.dev/v1beta1/namespaces/{}/admissions"
JOBS = "/apis/batch/v1/namespaces/{}/jobs"
PODS = "/api/v1/namespaces/{}/pods"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{}/{}s"


def _path_of(item, namespace):
    kind = item["kind"]
    return {"Node": "/api/v1/nodes", "ResourceSlice": SLICES, "Pod": PODS.format(namespace),
            "Job": JOBS.format(namespace)}.get(kind) or CLAIMS.format(namespace, kind.lower())


def _create(cluster, items, namespace):
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda item: cluster.request("POST", _path_of(item, namespace), item), items))


def _delete(cluster, paths):
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda path: cluster.api.exchange("DELETE", path), paths))


def _build(cluster, worlds, namespace):
    """Nodes, devices, other people's pods, claims, flavors and queues; all seen by the scheduler."""
    _create(cluster, [item for world in worlds for item in world.nodes + world.slices], namespace)
    names = {node["metadata"]["name"] for world in worlds for node in world.nodes}

    def are_ready():
        ready = {node["metadata"]["name"] for node in cluster.items("/api/v1/nodes")
                 if any(item["type"] == "Ready" and item["status"] == "True"
                        for item in node["status"].get("conditions", []))
                 and not any(taint["key"].startswith("node.kubernetes.io/not-ready")
                             for taint in node["spec"].get("taints", []))}
        return names <= ready

    cluster.wait_for(are_ready, 60, "all random nodes Ready")
    _create(cluster, [item for world in worlds for item in world.foreign + world.named], namespace)
    cluster.apply(*(item for world in worlds for item in world.config()))
    time.sleep(1)


class _Picture:
    """The Jobs and pods as they are now."""

    def __init__(self, cluster, namespace):
        self.jobs = {job["metadata"]["name"]: job for job in cluster.items(JOBS.format(namespace))}
        self.bound = collections.Counter()
        for pod in cluster.items(PODS.format(namespace)):
            if pod["spec"].get("nodeName") and pod_job(pod):
                self.bound[pod_job(pod)] += 1

    def admitted(self):
        return {name: job for name, job in self.jobs.items() if not is_suspended(job)}

    def partial(self):
        return {name for name, job in self.admitted().items()
                if self.bound[name] < job["spec"]["parallelism"]}


def _settle(cluster, namespace):
    """Waits until nothing moves: no gang is admitted but not whole, and no further one is. The
    names of those that stayed partial for too long."""
    partial_since, quiet_since, before = {}, time.monotonic(), None
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    while True:
        now = time.monotonic()
        picture = _Picture(cluster, namespace)
        partial = picture.partial()
        partial_since = {name: partial_since.get(name, now) for name in partial}
        late = {name for name, since in partial_since.items() if now - since > WHOLE_WITHIN_S}
        state = (frozenset(picture.admitted()), frozenset(partial - late))
        if state != before or partial - late:
            before, quiet_since = state, now
        if now - quiet_since > QUIET_S:
            return picture, late
        assert now < deadline, f"not settled: {sorted(partial)} are not whole"
        time.sleep(0.3)


def _scheduler_says(cluster, namespace, job):
    for pod in cluster.pods(namespace, job):
        for condition in pod["status"].get("conditions", []):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return condition["message"]
    return ""


def _evidence(cluster, namespace, world, name):
    """All that is needed to see it again: the world's manifests, and who runs where."""
    where = [f"  {pod['metadata']['name']} of {pod_job(pod)} on {pod['spec'].get('nodeName')}"
             for pod in cluster.pods(namespace) if str(pod_job(pod)).startswith(world.lane + "-")]
    text = manifests.to_yaml(*world.nodes, *world.slices, *world.foreign, *world.named,
                             *world.config(), *world.jobs)
    return (f"{name} was admitted and is not whole. The scheduler says: "
            f"{_scheduler_says(cluster, namespace, name)}\n" + "\n".join(where) + "\n" + text)


def _reasons(cluster, namespace):
    return {item["metadata"]["name"]: (item.get("status", {}).get("reason"),
                                       item.get("status", {}).get("message", ""))
            for item in cluster.items(ADMISSIONS.format(namespace))}


def _plain_copy(job, world):
    """The same gang without a queue: what kube-scheduler does with it by itself."""
    template = job["spec"]["template"]
    spec = dict(template["spec"])
    spec["nodeSelector"] = {**spec.get("nodeSelector", {}), "lane": world.lane}
    return {"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": f"{job['metadata']['name']}-plain",
                         "namespace": job["metadata"]["namespace"]},
            "spec": {**job["spec"], "suspend": False, "template": {**template, "spec": spec}}}


def _could_be_placed(cluster, namespace, worlds, waiting):
    """For one waiting gang of each world: would it have been placed whole after all?"""
    picks = [(world, job) for world in worlds for job in world.jobs
             if job["metadata"]["name"] in waiting]
    one_each = {world.lane: (world, job) for world, job in picks}.values()
    copies = [_plain_copy(job, world) for world, job in one_each]
    _create(cluster, copies, namespace)

    def is_judged():
        pods = collections.defaultdict(list)
        for pod in cluster.pods(namespace):
            pods[pod_job(pod)].append(pod)
        return all(len(pods[copy["metadata"]["name"]]) == copy["spec"]["parallelism"] and
                   all(pod["spec"].get("nodeName") or any(
                       item["type"] == "PodScheduled"
                       for item in pod["status"].get("conditions", []))
                       for pod in pods[copy["metadata"]["name"]]) for copy in copies)

    cluster.wait_for(is_judged, 60, "the scheduler has judged the plain copies")
    time.sleep(2)
    picture = _Picture(cluster, namespace)
    return [(world, job) for (world, job), copy in zip(one_each, copies)
            if picture.bound[copy["metadata"]["name"]] == copy["spec"]["parallelism"]], len(copies)


def _is_plain(job):
    """Nothing that makes the answer depend on the scheduler's choice among devices."""
    spec = job["spec"]["template"]["spec"]
    return not spec.get("resourceClaims") and "podAntiAffinity" not in spec.get("affinity", {})


def _clear(cluster, worlds, namespace):
    cluster.request("DELETE", f"{JOBS.format(namespace)}?propagationPolicy=Background")

    def is_empty():
        cluster.request("DELETE", f"{PODS.format(namespace)}?gracePeriodSeconds=0")
        for kind in ("resourceclaim", "resourceclaimtemplate"):
            cluster.request("DELETE", CLAIMS.format(namespace, kind))
        return not (cluster.items(PODS.format(namespace)) or cluster.items(JOBS.format(namespace))
                    or cluster.items(CLAIMS.format(namespace, "resourceclaim")))

    cluster.wait_for(is_empty, 90, "the worlds cleared")
    _delete(cluster, [f"/api/v1/nodes/{node['metadata']['name']}"
                      for world in worlds for node in world.nodes] +
            [f"{SLICES}/{item['metadata']['name']}" for world in worlds for item in world.slices] +
            [f"/apis/tallyman.dev/v1beta1/queues/{world.queue}" for world in worlds] +
            [f"/apis/tallyman.dev/v1beta1/resourceflavors/{world.lane}" for world in worlds])


class _Tally:
    """What all the worlds came to."""

    def __init__(self):
        self.admitted = self.waiting = self.judged = 0
        self.reasons, self.too_careful = collections.Counter(), []
        self.broken = []

    def take(self, cluster, namespace, worlds, picture, late):
        """After the worlds have settled."""
        lanes = {world.lane: world for world in worlds}
        self.broken += [_evidence(cluster, namespace, lanes[name.rpartition("-")[0]], name)
                        for name in sorted(late)]
        reasons = _reasons(cluster, namespace)
        waiting = set(picture.jobs) - set(picture.admitted())
        for name in waiting:
            self.reasons[reasons.get(name, (None, ""))[0]] += 1
        self.admitted += len(picture.admitted())
        self.waiting += len(waiting)
        return waiting, reasons


def _run_batch(context, controller_namespace, worlds, randomness, tally):
    cluster, namespace = context.cluster, controller_namespace
    _build(cluster, worlds, namespace)
    jobs = [job for world in worlds for job in world.jobs]
    randomness.shuffle(jobs)
    _create(cluster, jobs, namespace)
    picture, late = _settle(cluster, namespace)
    tally.take(cluster, namespace, worlds, picture, late)
    # A second wave: a third of what runs goes, all at once, and others take the room.
    leaving = [name for name in sorted(picture.admitted()) if randomness.random() < 0.35]
    _delete(cluster, [f"{JOBS.format(namespace)}/{name}?propagationPolicy=Background"
                      for name in leaving])
    picture, late = _settle(cluster, namespace)
    waiting, reasons = tally.take(cluster, namespace, worlds, picture, late)
    placed, judged = _could_be_placed(cluster, namespace, worlds, waiting)
    tally.judged += judged
    tally.too_careful += [(world, job, reasons.get(job["metadata"]["name"]))
                          for world, job in placed]
    _clear(cluster, worlds, namespace)


def test_every_admitted_gang_is_placed_whole(context):
    randomness = random.Random(SEED)
    context.controller()
    namespace, tally = context.namespace, _Tally()
    started = time.monotonic()
    for first in range(0, WORLDS, AT_ONCE):
        worlds = [make_world(randomness, f"w{number}", namespace)
                  for number in range(first, min(first + AT_ONCE, WORLDS))]
        _run_batch(context, namespace, worlds, randomness, tally)
    careful = collections.Counter(reason[0] for _, _, reason in tally.too_careful if reason)
    context.note(f"{WORLDS} random clusters (seed {SEED}) in {time.monotonic() - started:.0f} s: "
                 f"{tally.admitted} gangs admitted, {len(tally.broken)} of them not placed whole, "
                 f"{tally.waiting} waiting: {dict(tally.reasons)}")
    context.note(f"of {tally.judged} waiting gangs, kube-scheduler alone would have placed "
                 f"{len(tally.too_careful)} whole: {dict(careful)}")
    assert not tally.broken, "\n\n".join(tally.broken[:3])
    wrong = [(job["metadata"]["name"], reason) for _, job, reason in tally.too_careful
             if _is_plain(job)]
    assert not wrong, f"these waited without devices being in question, and would fit: {wrong}"
    assert tally.admitted > WORLDS, "too few gangs were admitted to say anything"
    assert tally.waiting > WORLDS / 4, "too few gangs had to wait to say anything"
