"""The smallest state that still shows a difference: objects and parts of objects are dropped for as
long as it does. What is tried is tried side by side, each in lanes of its own."""

import copy
import itertools
import json
import re
import time

import lanes as lanes_module
import trial
import worlds

COPIES = 3           # the scheduler's choices aren't always the same
AT_ONCE = 30         # lanes
BUDGET_S = 150       # for one failure; then it stays as small as it has become
SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields",
                 "ownerReferences", "finalizers", "generateName", "selfLink")
_numbers = itertools.count()


class Case:
    """Objects as they can be made anew, the Jobs to plan, and what shows that they differ."""

    def __init__(self, lane, objects, jobs, waiting=None):
        self.lane, self.objects, self.jobs = lane, objects, jobs
        self.waiting = waiting   # name of a Job that waits though it fits; None: one that doesn't fit

    def in_lane(self, lane, namespace):
        """A World of these objects, under other names."""
        def renamed(items):
            text = re.sub(rf"\b{self.lane}\b", lane, json.dumps(items))
            found = json.loads(text)
            for item in found:
                if "namespace" in item["metadata"]:
                    item["metadata"]["namespace"] = namespace
            return found

        kinds = renamed(self.objects)
        of = lambda *names: [item for item in kinds if item["kind"] in names]  # noqa: E731
        return worlds.World(lane, namespace, nodes=of("Node"), slices=of("ResourceSlice"),
                            classes=of("DeviceClass", "DeviceTaintRule"), foreign=of("Pod"),
                            jobs=renamed(self.jobs),
                            named=of("ResourceClaimTemplate", "ResourceClaim"))

    def size(self):
        return len(json.dumps(self.objects)) + len(json.dumps(self.jobs))


def _clean(item):
    item = copy.deepcopy(item)
    for field in SERVER_FIELDS:
        item["metadata"].pop(field, None)
    status = item.pop("status", {})
    if item["kind"] == "Node":
        item["status"] = {key: status[key] for key in ("capacity", "allocatable")}
        item["metadata"].pop("annotations", None)
        spec = item["spec"]
        if spec.get("taints"):
            spec["taints"] = [taint for taint in spec["taints"]
                              if not taint["key"].startswith("node.kubernetes.io/")]
    if item["kind"] == "ResourceClaim":
        item["metadata"].pop("annotations", None)
        if "allocation" in status:
            item["status"] = {"allocation": status["allocation"]}
    return item


def _clean_pod(pod):
    """Bound from the start, and with the claims that were made for it under their own names."""
    made = {item["name"]: item["resourceClaimName"]
            for item in pod["status"].get("resourceClaimStatuses", [])
            if item.get("resourceClaimName")}
    ended = pod["status"].get("phase") in ("Succeeded", "Failed")
    pod = _clean(pod)
    pod["metadata"].pop("annotations", None)
    if ended:
        pod["metadata"]["annotations"] = {"example.com/run-for": "0s"}
    for use in pod["spec"].get("resourceClaims", []):
        if use["name"] in made:
            use.pop("resourceClaimTemplateName", None)
            use["resourceClaimName"] = made[use["name"]]
    return pod


def make_case(world, state, jobs, waiting=None):
    objects = [_clean_pod(item) if item["kind"] == "Pod" else _clean(item) for item in state]
    return Case(world.lane, objects, copy.deepcopy(jobs), waiting)


# -- what can be dropped --------------------------------------------------------------------------


def _without(case, objects=None, jobs=None):
    return Case(case.lane, objects if objects is not None else case.objects,
                jobs if jobs is not None else case.jobs, case.waiting)


def _drop_objects(case):
    for index, job in enumerate(case.jobs):
        if job["metadata"]["name"] != case.waiting:
            yield _without(case, jobs=case.jobs[:index] + case.jobs[index + 1:])
    for item in case.objects:
        name = item["metadata"]["name"]
        rest = [other for other in case.objects if other is not item]
        if item["kind"] == "Node":
            rest = [other for other in rest if other["spec"].get("nodeName") != name]
        yield _without(case, objects=rest)


def _places(value, path=()):
    """Each key and each list item of the data, the outermost first."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in pairs:
        yield (*path, key)
        if isinstance(item, (dict, list)):
            yield from _places(item, (*path, key))


def _cut(item, path):
    item = copy.deepcopy(item)
    parent = item
    for key in path[:-1]:
        parent = parent[key]
    del parent[path[-1]]
    return item


DROPPED_PARTS = {"affinity", "tolerations", "initContainers", "taints", "unschedulable", "selectors",
                 "constraints", "attributes", "capacity", "requests", "limits", "nodeSelector", "ports",
                 "devices", "resourceClaims", "containers", "annotations", "sharedCounters", "labels",
                 "tolerations", "matchExpressions", "nodeSelectorTerms", "firstAvailable"}


def _drop_parts(case):
    for items, is_job in ((case.jobs, True), (case.objects, False)):
        for index, item in enumerate(items):
            if is_job and item["spec"]["parallelism"] > 1:
                fewer = copy.deepcopy(item)
                fewer["spec"]["parallelism"] -= 1
                fewer["spec"]["completions"] = fewer["spec"]["parallelism"]
                yield _replaced(case, index, fewer, is_job)
            if item["kind"] == "DeviceClass":
                continue  # without its selector it would reach into the other lanes
            for path in _places(item):
                names = set(path[-2:]) if isinstance(path[-1], int) else set(path[-1:])
                keys = {key for key in path if isinstance(key, str)}
                if "status" in keys or not (names & DROPPED_PARTS or path[-2:-1] in
                                            (("attributes",), ("requests",), ("labels",))):
                    continue
                if path[-1] in ("labels", "tallyman.dev/queue", "lane", "kubernetes.io/hostname"):
                    continue
                yield _replaced(case, index, _cut(item, path), is_job)


def _replaced(case, index, item, is_job):
    items = list(case.jobs if is_job else case.objects)
    items[index] = item
    return _without(case, jobs=items) if is_job else _without(case, objects=items)


# -- does it still show? --------------------------------------------------------------------------


class Shrinker:
    def __init__(self, lanes, binary, rng):
        self.lanes, self.binary, self.rng = lanes, binary, rng

    def shows(self, cases, copies=COPIES):
        """For each case whether one of its copies shows the difference."""
        plausible = [self._is_planned(case) for case in cases]
        lots = [(case, self.rng_world(case)) for case, is_good in zip(cases, plausible) if is_good
                for _ in range(copies)]
        found = set()
        for first in range(0, len(lots), AT_ONCE):
            found |= self._try(lots[first:first + AT_ONCE])
        return [id(case) in found for case in cases]

    def rng_world(self, case):
        return case.in_lane(f"x{next(_numbers)}", self.lanes.namespace)

    def _decide(self, world, state):
        try:
            return trial.plan(self.binary, world, state, world.jobs)
        except (trial.PlanError, ValueError):
            return None

    def _is_planned(self, case):
        """Of the bare objects, before anything is made: most candidates fail here."""
        world = self.rng_world(case)
        state = world.nodes + world.slices + world.classes + world.named + world.foreign
        state = copy.deepcopy(state)
        for item in state:
            if item["kind"] == "Node":
                item["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        return self._starts(world, self._decide(world, state)) is not None

    def _starts(self, world, decisions):
        """The pods to start, or None where there is nothing to try."""
        if decisions is None:
            return None
        if not any(job["metadata"]["name"].endswith("-waits") for job in world.jobs):
            return trial.admitted_pods(decisions, world.jobs) or None
        job = next(job for job in world.jobs if job["metadata"]["name"].endswith("-waits"))
        if decisions[job["metadata"]["name"]]["decision"] != "Wait":
            return None
        return lanes_module.pods_of(job, {"nodeSelector": {"lane": world.lane}})

    def _try(self, lots):
        tried, refused = [world for _, world in lots], set()
        self.lanes.build(tried, refused)
        states, pods = self.lanes.states(tried), {}
        for world in tried:
            own = self._starts(world, self._decide(world, states[world.lane])) or []
            self.rng.shuffle(own)
            pods[world.lane] = own
        everybody = [pod for own in pods.values() for pod in own]
        self.lanes.create(everybody, refused)
        self.lanes.settle([pod["metadata"]["name"] for pod in everybody
                           if lanes_module.lane_of(pod) not in refused])
        bound = {name for name, pod in self.lanes.pods().items() if lanes_module.is_bound(pod)}
        found = set()
        for case, world in lots:
            names = {pod["metadata"]["name"] for pod in pods[world.lane]}
            if names and world.lane not in refused and (names <= bound) == (case.waiting is not None):
                found.add(id(case))
        self.lanes.clear(tried)
        return found

    def shrink(self, case, say):
        """The smallest that still shows it, or None if it can't be seen again at all."""
        if case.waiting:
            self._mark(case)
        if not any(self.shows([case], 8)):
            return None
        deadline = time.monotonic() + BUDGET_S
        for parts in (_drop_objects, _drop_parts):
            while time.monotonic() < deadline:
                smaller = self._step(case, list(parts(case)), deadline)
                if smaller is None:
                    break
                case = smaller
                say(f"    smaller: {case.size()} bytes")
        return case

    @staticmethod
    def _mark(case):
        for job in case.jobs:
            if job["metadata"]["name"] == case.waiting:
                job["metadata"]["name"] = case.waiting = case.waiting + "-waits"

    def _step(self, case, candidates, deadline):
        """One that is smaller and shows it: all that can be dropped at once, if that shows it too."""
        candidates = [item for item in candidates if self._is_planned(item)]
        for first in range(0, len(candidates), AT_ONCE // 2):
            if time.monotonic() > deadline:
                break
            tried = candidates[first:first + AT_ONCE // 2]
            good = [item for item, shows in zip(tried, self.shows(tried, 2)) if shows]
            if good:
                merged = _merge(case, good)
                if len(good) > 1 and any(self.shows([merged])):
                    return merged
                return min(good, key=Case.size)
        return None


def _merge(case, good):
    """All the drops of whole objects at once; of parts of objects one for each object."""
    jobs = _common(case.jobs, [item.jobs for item in good])
    return _without(case, objects=_common(case.objects, [item.objects for item in good]), jobs=jobs)


def _common(before, lists):
    result = []
    for item in before:
        changed = [items for items in lists if not any(other is item for other in items)]
        if not changed:
            result.append(item)
            continue
        name = (item["kind"], item["metadata"]["name"])
        new = next((other for items in changed for other in items
                    if (other["kind"], other["metadata"]["name"]) == name), None)
        if new is not None and all(any((other["kind"], other["metadata"]["name"]) == name
                                       for other in items) for items in changed):
            result.append(new)
    return result
