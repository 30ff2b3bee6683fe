"""Worlds in a real control plane: their objects are made, read back, started and taken away."""

import collections
import concurrent.futures
import time
import urllib.parse

import worlds as generator
from lib.api import ApiError
from lib.cluster import wait_for

THREADS = 8
POLL_S = 0.25
READY_TIMEOUT_S = 90
CLEAR_TIMEOUT_S = 120
QUIET_S = 1.5            # nothing has moved for so long, and everybody has been judged
JUDGED_WITHIN_S = 120  # an error of the scheduler that lasts so long is no hiccup
WHOLE_WITHIN_S = 20      # the scheduler comes back to a pod after at most 10 s of back-off
JOB_NAME = "batch.kubernetes.io/job-name"
CORE, RESOURCE = "/api/v1", "/apis/resource.k8s.io/v1"


class Lanes:
    """One namespace of one control plane, and the worlds in it."""

    def __init__(self, cluster, namespace):
        self.cluster, self.namespace = cluster, namespace
        self.pool = concurrent.futures.ThreadPoolExecutor(THREADS)
        self.built = []   # worlds that are there now
        self.paths = {
            "Node": f"{CORE}/nodes", "Pod": f"{CORE}/namespaces/{namespace}/pods",
            "ResourceSlice": f"{RESOURCE}/resourceslices",
            "DeviceClass": f"{RESOURCE}/deviceclasses",
            "DeviceTaintRule": f"{RESOURCE}/devicetaintrules",
            "ResourceClaim": f"{RESOURCE}/namespaces/{namespace}/resourceclaims",
            "ResourceClaimTemplate": f"{RESOURCE}/namespaces/{namespace}/resourceclaimtemplates"}
        # Whoever asks for adminAccess has to be in such a namespace.
        cluster.request("POST", f"{CORE}/namespaces", {"metadata": {
            "name": namespace, "labels": {"resource.kubernetes.io/admin-access": "true"}}})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.built:
            self.clear(self.built)
        self.pool.shutdown()
        self.cluster.api.exchange("DELETE", f"{CORE}/namespaces/{self.namespace}")

    # -- many requests at once ------------------------------------------------------------------

    def _all(self, function, items):
        return list(self.pool.map(function, items))

    def create(self, items, refused=None):
        """Where `refused` is given, it takes the lanes of what the API server refuses."""
        def create_one(item):
            try:
                self.cluster.request("POST", self.paths[item["kind"]], item)
            except ApiError as error:
                if refused is None or error.status not in (400, 422):
                    raise
                refused.add(lane_of(item))

        self._all(create_one, items)

    def delete_pods(self, names):
        self._all(lambda name: self.cluster.api.exchange(
            "DELETE", f"{self.paths['Pod']}/{name}?gracePeriodSeconds=0"), names)

    def items(self, kind):
        return self.cluster.items(self.paths[kind])

    def pods(self):
        return {pod["metadata"]["name"]: pod for pod in self.items("Pod")}

    # -- a world's life -------------------------------------------------------------------------

    def build(self, worlds, refused=None):
        """Nodes and devices first, then what uses them; unplaced pods of others are taken away."""
        self.built = worlds
        self.create([item for world in worlds
                     for item in world.nodes + world.slices + world.classes], refused)
        names = {node["metadata"]["name"]: node for world in worlds for node in world.nodes}

        def are_ready():
            return all(is_usable(node, names[node["metadata"]["name"]])
                       for node in self.items("Node") if node["metadata"]["name"] in names)

        wait_for(are_ready, READY_TIMEOUT_S, "all random nodes Ready")
        self.create([item for world in worlds for item in world.named], refused)
        self.allocate([item for world in worlds for item in world.named], refused)
        foreign = [pod for world in worlds for pod in world.foreign]
        self.create(foreign, refused)
        self.settle([pod["metadata"]["name"] for pod in foreign if not is_bound(pod)], WHOLE_WITHIN_S)
        unplaced = [name for name, pod in self.pods().items() if not is_bound(pod)]
        self.delete_pods(unplaced)
        self.wait_until_gone(unplaced)

    def allocate(self, claims, refused):
        """Claims of a replayed state come with the devices that they held."""
        self._all(lambda claim: self.cluster.request(
            "PATCH", f"{self.paths['ResourceClaim']}/{claim['metadata']['name']}/status",
            {"status": claim["status"]}) if lane_of(claim) not in (refused or ()) else None,
            [claim for claim in claims if claim["kind"] == "ResourceClaim" and "status" in claim])

    def settle(self, names, timeout_s=WHOLE_WITHIN_S):
        """Waits until all these pods are bound, or nothing moves any more and each that isn't has
        been judged. False: it took too long."""
        wanted, before, quiet_since = set(names), None, time.monotonic()
        deadline = time.monotonic() + timeout_s
        while True:
            pods = {name: pod for name, pod in self.pods().items() if name in wanted}
            bound = {name for name, pod in pods.items() if is_bound(pod)}
            if bound == wanted:
                return True
            state = (frozenset(bound), all(is_judged(pods[name]) for name in pods))
            now = time.monotonic()
            if state != before or not state[1] or len(pods) < len(wanted):
                before, quiet_since = state, now
            if now - quiet_since > QUIET_S:
                return True
            if now > deadline:
                return False
            time.sleep(POLL_S)

    def wait_whole(self, names):
        """Those of the pods that aren't bound within the time, each with what the scheduler says.
        A busy machine isn't a verdict: each should have been found unschedulable."""
        wanted, started = set(names), time.monotonic()
        while True:
            late = {name: pod for name, pod in self.pods().items()
                    if name in wanted and not is_bound(pod)}
            took_s = time.monotonic() - started
            if not late or took_s > JUDGED_WITHIN_S or (
                    took_s > WHOLE_WITHIN_S and all(map(is_unschedulable, late.values()))):
                return {name: scheduler_says(pod) for name, pod in late.items()}
            time.sleep(POLL_S)

    def wait_until_gone(self, pod_names):
        """Pods, and the claims that were made for them; devices are free again then."""
        gone = set(pod_names)

        def are_gone():
            if gone & set(self.pods()):
                return False
            return not any(gone & (owners(claim) | users(claim))
                           for claim in self.items("ResourceClaim"))

        if gone:
            wait_for(are_gone, CLEAR_TIMEOUT_S, "pods and their claims gone")

    def states(self, worlds):
        """{lane: all objects of it, as the API server has them now}."""
        by_lane = collections.defaultdict(list)
        lanes = {world.lane for world in worlds}
        for kind in self.paths:
            api = "v1" if kind in ("Node", "Pod") else generator.RESOURCE_API
            for item in self.items(kind):
                lane = lane_of(item)
                if lane in lanes:
                    item["metadata"].pop("managedFields", None)
                    by_lane[lane].append({"apiVersion": api, "kind": kind, **item})
        return by_lane

    def clear(self, worlds):
        """Takes away everything of this namespace, and what else is in the worlds' lanes."""
        def are_gone():
            for kind in ("Pod", "ResourceClaim"):
                if self.items(kind):
                    self.cluster.request("DELETE", self.paths[kind] + "?gracePeriodSeconds=0")
                    return False
            return True

        wait_for(are_gone, CLEAR_TIMEOUT_S, "the worlds cleared")
        self.cluster.request("DELETE", self.paths["ResourceClaimTemplate"])
        selector = urllib.parse.quote(f"lane in ({','.join(world.lane for world in worlds)})")
        for kind in ("ResourceSlice", "DeviceClass", "DeviceTaintRule", "Node"):
            self.cluster.request("DELETE", f"{self.paths[kind]}?labelSelector={selector}")
        self.built = []


def lane_of(item):
    return item["metadata"]["name"].partition("-")[0]


def is_usable(node, wanted):
    """Ready, and with no other taints than it is meant to have."""
    conditions = node["status"].get("conditions", [])
    taints = {taint["key"] for taint in node["spec"].get("taints", [])}
    meant = {taint["key"] for taint in wanted["spec"].get("taints", [])}
    if node["spec"].get("unschedulable"):
        meant.add("node.kubernetes.io/unschedulable")
    return taints == meant and any(item["type"] == "Ready" and item["status"] == "True"
                                   for item in conditions)


def is_bound(pod):
    return bool(pod["spec"].get("nodeName"))


def _scheduled(pod):
    return next((item for item in pod["status"].get("conditions", [])
                 if item["type"] == "PodScheduled"), None)


def is_unschedulable(pod):
    condition = _scheduled(pod)
    return condition is not None and condition["reason"] == "Unschedulable"


def is_judged(pod):
    return is_bound(pod) or _scheduled(pod) is not None


def scheduler_says(pod):
    return (_scheduled(pod) or {}).get("message", "it hasn't been looked at")


def owners(claim):
    return {owner["name"] for owner in claim["metadata"].get("ownerReferences", [])}


def users(claim):
    return {user["name"] for user in claim.get("status", {}).get("reservedFor", [])}


def without_hosts(affinity, hosts):
    """That required node affinity, and none of these hosts."""
    apart = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": hosts}
    node = affinity.get("nodeAffinity", {})
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = required["nodeSelectorTerms"] if required else [{}]
    terms = [{**term, "matchExpressions": [*term.get("matchExpressions", []), apart]}
             for term in terms]
    return {**affinity, "nodeAffinity": {
        **node, "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def pods_of(job, pod_set):
    """The pods that the Job would have once it is admitted: its template with what the PATCH adds."""
    template, name = job["spec"]["template"], job["metadata"]["name"]
    spec = {**template["spec"], "nodeSelector": {**template["spec"].get("nodeSelector", {}),
                                                 **pod_set.get("nodeSelector", {})}}
    if pod_set.get("avoids"):
        spec["affinity"] = without_hosts(spec.get("affinity", {}), pod_set["avoids"])
    labels = {**template["metadata"].get("labels", {}), JOB_NAME: name}
    return [{"apiVersion": "v1", "kind": "Pod",
             "metadata": {"name": f"{name}-{index}", "namespace": job["metadata"]["namespace"],
                          "labels": {**labels, "batch.kubernetes.io/job-completion-index":
                                     str(index)}},
             "spec": spec} for index in range(job["spec"]["parallelism"])]

