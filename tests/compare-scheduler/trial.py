"""What is done with a world: planned, started, looked at; as often as something can still start."""

import collections
import dataclasses
import json
import re
import subprocess

import lanes as lanes_module

MAX_ROUNDS = 6   # of planning and starting; each but the last starts somebody
ALONE_ROUNDS = 2  # of the gangs that wait, so many of each world are started alone


@dataclasses.dataclass
class Failure:
    """Admitted, started, and not placed whole."""

    world: object
    state: list           # the objects that the plan was made of
    jobs: list            # the Jobs of that plan
    order: list           # the pods' names as they were created
    unplaced: dict        # pod name: what the scheduler says
    where: dict           # pod name: node, of all that are bound


@dataclasses.dataclass
class Careful:
    """It waits, and kube-scheduler would have placed it whole."""

    world: object
    state: list
    job: dict
    reason: str
    message: str
    is_exact: bool        # there is no excuse for it


@dataclasses.dataclass
class Tally:
    worlds: int = 0
    plans: int = 0
    admitted: int = 0
    pods: int = 0
    waiting: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    judged: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    exact: int = 0        # waits for which there is one right answer
    careful: list = dataclasses.field(default_factory=list)
    failures: list = dataclasses.field(default_factory=list)


def add_up(tallies):
    total = Tally()
    for tally in tallies:
        for field in dataclasses.fields(Tally):
            setattr(total, field.name, getattr(total, field.name) + getattr(tally, field.name))
    return total


UNSUPPORTED = re.compile(r"which Tallyman doesn't \w+ yet")


class PlanError(Exception):
    """tallyman plan said no plan; its text and the manifests are in the message."""


def plan(binary, world, state, jobs):
    """{job name: its decision}"""
    items = state + world.config() + jobs
    result = subprocess.run(
        [binary, "plan", "-f", "-", "-o", "json"], capture_output=True, text=True, check=False,
        input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    if result.returncode != 0:
        raise PlanError(f"{world.lane}: status {result.returncode}: {result.stderr}")
    return {item["name"]: item for item in json.loads(result.stdout)["decisions"]}


def admitted_pods(decisions, jobs):
    """The pods of all gangs that are admitted by it."""
    pods = []
    for job in jobs:
        decision = decisions[job["metadata"]["name"]]
        if decision["decision"] == "Admit":
            pods += lanes_module.pods_of(job, decision["podSets"][0])
    return pods


def _has_its_devices(job, state):
    """All claims that its pods name have been allocated: nothing is left to choose."""
    allocated = {item["metadata"]["name"] for item in state if item["kind"] == "ResourceClaim"
                 and "allocation" in item.get("status", {})}
    return all(use.get("resourceClaimName") in allocated
               for use in job["spec"]["template"]["spec"].get("resourceClaims", []))


def _tolerates_cordons(spec):
    return any("key" not in item for item in spec.get("tolerations", []))


def is_exact(world, state, job, message):
    """Nothing makes the answer depend on the scheduler's choice among devices or nodes, and all of
    it is supported."""
    spec = job["spec"]["template"]["spec"]
    together = {"podAntiAffinity", "podAffinity"} & set(spec.get("affinity", {}))
    limits = [container["resources"].get("limits", {}) for container in spec["containers"]]
    is_cordoned = any(node["spec"].get("unschedulable") for node in state if node["kind"] == "Node")
    are_ready = all(any(item["type"] == "Ready" and item["status"] == "True"
                        for item in node["status"].get("conditions", []))
                    for node in state if node["kind"] == "Node")
    return (_has_its_devices(job, state) and are_ready and not together and
            not job["metadata"].get("annotations") and
            not (is_cordoned and _tolerates_cordons(spec)) and
            not UNSUPPORTED.search(message) and "topologySpreadConstraints" not in spec and
            not any(world.extended in item for item in limits) and
            not any("ports" in container for container in spec["containers"]))


class Trial:
    """Many worlds at once: each step waits for the slowest of them."""

    def __init__(self, lanes, binary, rng, tally):
        self.lanes, self.binary, self.rng, self.tally = lanes, binary, rng, tally

    def run(self, worlds):
        self.tally.worlds += len(worlds)
        self.lanes.build(worlds)
        self.started, self.running, self.broken = {}, collections.defaultdict(list), set()
        self.start_all(worlds)
        self.stop_some()
        waiting = self.start_all(worlds)
        self.try_alone(worlds, waiting)
        self.lanes.clear(worlds)

    def start_all(self, worlds):
        """Plans and starts until nobody else can. {lane: (state, [(job, decision) that waits])}"""
        waiting = {}
        open_worlds = [world for world in worlds if world.lane not in self.broken]
        for _ in range(MAX_ROUNDS):
            open_worlds = [world for world in open_worlds
                           if self.jobs_left(world) and world.lane not in self.broken]
            if not open_worlds:
                break
            states = self.lanes.states(open_worlds)
            plans, pods = {}, []
            for world in open_worlds:
                jobs, state = self.jobs_left(world), states[world.lane]
                decisions = plan(self.binary, world, state, jobs)
                self.tally.plans += 1
                own = admitted_pods(decisions, jobs)
                plans[world.lane] = (state, jobs, own)
                waiting[world.lane] = (state, [(job, decisions[job["metadata"]["name"]])
                                               for job in jobs])
                pods += own
                if not own:
                    open_worlds = [item for item in open_worlds if item is not world]
            self.start(worlds, plans, pods)
        return waiting

    def jobs_left(self, world):
        return [job for job in world.jobs if job["metadata"]["name"] not in self.started]

    def start(self, worlds, plans, pods):
        self.rng.shuffle(pods)
        self.lanes.create(pods)
        names = [pod["metadata"]["name"] for pod in pods]
        late = self.lanes.wait_whole(names)
        for pod in pods:
            job = pod["metadata"]["labels"][lanes_module.JOB_NAME]
            self.started[job] = True
            self.running[job].append(pod["metadata"]["name"])
        self.tally.admitted += len({pod["metadata"]["labels"][lanes_module.JOB_NAME]
                                    for pod in pods})
        self.tally.pods += len(pods)
        if late:
            self.take_failures(worlds, plans, names, late)

    def take_failures(self, worlds, plans, names, late):
        everybody = self.lanes.pods()
        for world in worlds:
            own = {name: text for name, text in late.items()
                   if name.startswith(world.lane + "-")}
            if own:
                self.broken.add(world.lane)
                state, jobs, _ = plans[world.lane]
                prefix = world.lane + "-"
                self.tally.failures.append(Failure(
                    world, state, jobs, [name for name in names if name.startswith(prefix)], own,
                    {name: pod["spec"].get("nodeName") for name, pod in everybody.items()
                     if name.startswith(prefix)}))

    def stop_some(self):
        """A third of what runs goes, all at once, so that others take the room."""
        leaving = [job for job in sorted(self.running) if self.rng.random() < 0.35]
        names = [name for job in leaving for name in self.running.pop(job)]
        self.lanes.delete_pods(names)
        self.lanes.wait_until_gone(names)

    def try_alone(self, worlds, waiting):
        """Nobody else is on the way now: what does the scheduler do with each that waits?"""
        queues = {}
        for world in worlds:
            if world.lane in self.broken or world.lane not in waiting:
                continue
            state, judged = waiting[world.lane]
            rest = [(world, state, job, decision) for job, decision in judged
                    if decision["decision"] == "Wait"]
            for _, _, _, decision in rest:
                self.tally.waiting[decision["reason"]] += 1
            self.rng.shuffle(rest)
            rest.sort(key=lambda item: not is_exact(*item[:3], item[3]["message"]))
            queues[world.lane] = rest[:ALONE_ROUNDS]
        for number in range(ALONE_ROUNDS):
            self.try_these([queue[number] for queue in queues.values() if number < len(queue)])

    def try_these(self, tried):
        pods = {job["metadata"]["name"]: lanes_module.pods_of(job, {"nodeSelector": {"lane": world.lane}})
                for world, _, job, _ in tried}
        everybody = [pod for own in pods.values() for pod in own]
        names = [pod["metadata"]["name"] for pod in everybody]
        self.lanes.create(everybody)
        self.lanes.settle(names)
        bound = {name for name, pod in self.lanes.pods().items() if lanes_module.is_bound(pod)}
        for world, state, job, decision in tried:
            self.tally.judged[decision["reason"]] += 1
            self.tally.exact += is_exact(world, state, job, decision["message"])
            if all(pod["metadata"]["name"] in bound for pod in pods[job["metadata"]["name"]]):
                self.tally.careful.append(Careful(world, state, job, decision["reason"],
                                                  decision["message"],
                                                  is_exact(world, state, job, decision["message"])))
        self.lanes.delete_pods(names)
        self.lanes.wait_until_gone(names)
