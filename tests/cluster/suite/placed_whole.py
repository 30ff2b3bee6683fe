"""The promise: on random small clusters every gang that is admitted is placed whole, by the real
kube-scheduler. And the other way round: what waits for room could really not be placed."""

import collections
import concurrent.futures
import os
import random
import time

from lib import fixtures, manifests, random_gangs
from lib.course import is_suspended, pod_job

WORLDS = int(os.environ.get("TALLYMAN_WORLDS", "200"))
SEED = os.environ.get("TALLYMAN_SEED", "1729")
AT_ONCE = 25             # worlds side by side in one control plane, each on nodes of its own
THREADS = 8
WHOLE_WITHIN_S = 20      # of its unsuspending, on a machine that is busy with many worlds
QUIET_S = 3
POLL_S = 0.5
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


def _build(context, worlds):
    """Nodes, devices, other people's pods, claims, flavors and queues; all seen by the scheduler."""
    cluster, namespace = context.cluster, context.namespace
    context.defer(_take_away, cluster, worlds)
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
        # Who waits without a reason hasn't been judged yet: a busy controller isn't a settled one.
        reasons = _reasons(cluster, namespace)
        waiting = set(picture.jobs) - set(picture.admitted())
        unjudged = {name for name in waiting if reasons.get(name, (None, ""))[0] is None}
        state = (frozenset(picture.admitted()), frozenset(partial - late),
                 frozenset((name, reasons.get(name, (None, ""))[0]) for name in waiting))
        if state != before or partial - late or unjudged:
            before, quiet_since = state, now
        if now - quiet_since > QUIET_S:
            return picture, late
        assert now < deadline, (f"not settled: {sorted(partial)} are not whole, "
                                f"{sorted(unjudged)} have no reason yet")
        time.sleep(POLL_S)


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


def _take_away(cluster, worlds):
    """What a world has outside of the namespace."""
    _delete(cluster, [f"/api/v1/nodes/{node['metadata']['name']}"
                      for world in worlds for node in world.nodes] +
            [f"{SLICES}/{item['metadata']['name']}" for world in worlds for item in world.slices] +
            [f"/apis/tallyman.dev/v1beta1/queues/{world.queue}" for world in worlds] +
            [f"/apis/tallyman.dev/v1beta1/resourceflavors/{world.lane}" for world in worlds])


def _clear(cluster, worlds, namespace):
    def is_empty():
        time.sleep(POLL_S)
        cluster.request("DELETE", f"{JOBS.format(namespace)}?propagationPolicy=Background")
        cluster.request("DELETE", f"{PODS.format(namespace)}?gracePeriodSeconds=0")
        for kind in ("resourceclaim", "resourceclaimtemplate"):
            cluster.request("DELETE", CLAIMS.format(namespace, kind))
        return not (cluster.items(PODS.format(namespace)) or cluster.items(JOBS.format(namespace))
                    or cluster.items(CLAIMS.format(namespace, "resourceclaim")))

    cluster.wait_for(is_empty, 120, "the worlds cleared")
    _take_away(cluster, worlds)


class _Tally:
    """What all the worlds came to."""

    def __init__(self):
        self.admitted = self.waiting = self.judged = 0
        self.reasons, self.too_careful = collections.Counter(), []
        self.broken, self.reserved = [], []

    def take(self, cluster, namespace, worlds, picture, late):
        """After the worlds have settled."""
        lanes = {world.lane: world for world in worlds}
        self.broken += [_evidence(cluster, namespace, lanes[name.rpartition("-")[0]], name)
                        for name in sorted(late)]
        reasons = _reasons(cluster, namespace)
        waiting = set(picture.jobs) - set(picture.admitted())
        for name in waiting:
            self.reasons[reasons.get(name, (None, ""))[0]] += 1
            if reasons.get(name, (None, ""))[0] == "ReservedForOther" and not late:
                self.reserved.append((name, reasons[name][1]))
        self.admitted += len(picture.admitted())
        self.waiting += len(waiting)
        return waiting, reasons


def _run_batch(context, worlds, randomness, tally):
    cluster, namespace = context.cluster, context.namespace
    _build(context, worlds)
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
        worlds = [random_gangs.make_world(randomness, f"w{number}", namespace)
                  for number in range(first, min(first + AT_ONCE, WORLDS))]
        _run_batch(context, worlds, randomness, tally)
    careful = collections.Counter(reason[0] for _, _, reason in tally.too_careful if reason)
    context.note(f"{WORLDS} random clusters (seed {SEED}) in {time.monotonic() - started:.0f} s: "
                 f"{tally.admitted} gangs admitted, {len(tally.broken)} of them not placed whole, "
                 f"{tally.waiting} waiting: {dict(tally.reasons)}")
    context.note(f"of {tally.judged} waiting gangs, kube-scheduler alone would have placed "
                 f"{len(tally.too_careful)} whole: {dict(careful)}")
    for _, job, reason in tally.too_careful[:5]:
        context.note(f"  too careful: {job['metadata']['name']}: {reason}")
    assert not tally.broken, "\n\n".join(tally.broken[:3])
    assert not tally.reserved, f"nothing is on its way that it could wait for: {tally.reserved}"
    wrong = [(job["metadata"]["name"], reason) for _, job, reason in tally.too_careful
             if _is_plain(job)]
    assert not wrong, f"these waited without devices being in question, and would fit: {wrong}"
    assert tally.admitted > WORLDS, "too few gangs were admitted to say anything"
    assert tally.waiting > WORLDS / 4, "too few gangs had to wait to say anything"


# -- traps: where a count of what is free says yes, and the scheduler's choice says no --------------

ROUNDS = 6


def _device(name, model, **more):
    return {"name": name, "attributes": {"model": {"string": model}}, **more}


def _part(name, amount):
    return _device(name, "part", consumesCounters=[{
        "counterSet": "card", "counters": {"parts": {"value": str(amount)}}}])


def _pool(node, devices, counters=None):
    return random_gangs.one_pool(node, node, devices, {"nodeName": node}, counters)


def _requests(*expressions):
    """One request of one device for each expression; None is any device."""
    return {"devices": {"requests": [{"name": f"r{number}", "exactly": {
        "deviceClassName": fixtures.DRIVER, **({"selectors": [{"cel": {
            "expression": expression}}]} if expression else {})}}
        for number, expression in enumerate(expressions)]}}


def _model(name):
    return f'device.attributes["{fixtures.DRIVER}"].model == "{name}"'


def _trap_world(context, lane, nodes, slices, named, jobs):
    world = random_gangs.World(lane, context.namespace)
    world.nodes = [fixtures.node(f"{lane}-{name}", labels={"lane": lane}) for name in nodes]
    world.slices, world.named, world.jobs = slices, named, jobs(world)
    return world


def _check_trap(context, world):
    """Whatever is admitted must be whole; returns the names of what was."""
    cluster, namespace = context.cluster, context.namespace
    _build(context, [world])
    _create(cluster, world.jobs, namespace)
    picture, late = _settle(cluster, namespace)
    late |= picture.partial()
    assert not late, "\n".join(_evidence(cluster, namespace, world, name) for name in late)
    admitted = set(picture.admitted())
    _clear(cluster, [world], namespace)
    return admitted


def _template(name, namespace, spec):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": namespace}, "spec": {"spec": spec}}


def _claim(name, namespace, spec):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _two_pods(world, template):
    return [manifests.job(f"{world.lane}-j0", world.namespace, queue=world.queue, pods=2,
                          claim_templates=[template])]


def test_a_pod_may_get_the_device_that_only_another_could_use(context):
    """Each pod asks for any device and a big one. Two big, two small: enough for two pods, unless
    the first is given both big ones, and which it is given is the scheduler's choice."""
    context.controller()
    for lane, models in (("trap-a", ("big", "big", "small", "small")),
                         ("trap-b", ("small", "small", "big", "big"))):
        devices = [_device(f"d{number}", model) for number, model in enumerate(models)]
        _check_trap(context, _trap_world(
            context, lane, ["n"], _pool(f"{lane}-n", devices),
            [_template(f"{lane}-t", context.namespace, _requests(None, _model("big")))],
            lambda world: _two_pods(world, f"{world.lane}-t")))


def test_a_pod_may_get_the_whole_card(context):
    """A card is offered whole and in halves, and any part will do: two pods fit, unless the first
    is given the whole."""
    context.controller()
    counters = [{"name": "card", "counters": {"parts": {"value": "2"}}}]
    parts = [_part("whole", 2), _part("half-0", 1), _part("half-1", 1)]
    for lane, devices in (("card-a", parts), ("card-b", parts[::-1])):
        _check_trap(context, _trap_world(
            context, lane, ["n"], _pool(f"{lane}-n", devices, counters),
            [_template(f"{lane}-t", context.namespace, _requests(None))],
            lambda world: _two_pods(world, f"{world.lane}-t")))


def test_a_named_claim_and_another_gang_after_the_same_device(context):
    """Two nodes with a device each. One gang shares a claim, so it is bound to one node; the other
    gang's pod may be placed on either."""
    context.controller()
    started = set()
    for number in range(ROUNDS):
        lane, namespace = f"claim-{number}", context.namespace
        slices = [item for name in ("a", "b")
                  for item in _pool(f"{lane}-{name}", [_device("d", "big")])]
        jobs = lambda world: [  # noqa: E731
            manifests.job(f"{world.lane}-j0", namespace, queue=world.queue, pods=1,
                          claim_templates=[f"{world.lane}-t"]),
            manifests.job(f"{world.lane}-j1", namespace, queue=world.queue, pods=1,
                          claims=[f"{world.lane}-c"])]
        started |= _check_trap(context, _trap_world(
            context, lane, ["a", "b"], slices,
            [_template(f"{lane}-t", namespace, _requests(None)),
             _claim(f"{lane}-c", namespace, _requests(None))], jobs))
    assert len(started) == 2 * ROUNDS, f"both fit, one after the other; admitted: {started}"
