"""Small random clusters and gangs for them: nodes with labels, taints and devices, pods that others
have put there, and gangs that ask for a bit of everything."""

import dataclasses

from . import fixtures, manifests

DRIVER = fixtures.DRIVER
ZONES = ("east", "west")
MODELS = ("a100", "h100")
TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


@dataclasses.dataclass
class World:
    """One random cluster, in a lane of its own: nodes carry lane=NAME, and the queue's flavor too."""

    lane: str
    namespace: str
    nodes: list = dataclasses.field(default_factory=list)
    slices: list = dataclasses.field(default_factory=list)
    foreign: list = dataclasses.field(default_factory=list)   # pods, bound from the start
    named: list = dataclasses.field(default_factory=list)     # claim templates and claims
    jobs: list = dataclasses.field(default_factory=list)

    @property
    def queue(self):
        return f"q-{self.lane}"

    def config(self):
        quotas = {"cpu": "1000", "memory": "10Ti", "pods": "10000", DRIVER: "1000",
                  "example.com/accel": "1000"}
        return [manifests.resource_flavor(self.lane, {"lane": self.lane}),
                manifests.queue(self.queue, quotas, flavor=self.lane)]


def _node(randomness, world, number):
    labels = {"lane": world.lane, "zone": randomness.choice(ZONES),
              "size": str(randomness.randint(1, 4))}
    if randomness.random() < 0.5:
        labels["fast"] = "true"
    taints = []
    if randomness.random() < 0.25:
        taints.append(dict(TAINT))
    if randomness.random() < 0.1:
        taints.append({"key": "flaky", "effect": "PreferNoSchedule"})
    node = fixtures.node(f"{world.lane}-n{number}", cpu=str(randomness.randint(2, 8)),
                         memory=f"{randomness.choice((2, 4, 8, 16))}Gi",
                         pods=str(randomness.choice((4, 8, 110, 110))), labels=labels, taints=taints)
    if randomness.random() < 0.3:
        count = str(randomness.randint(0, 4))
        for field in ("capacity", "allocatable"):
            node["status"][field]["example.com/accel"] = count
    if randomness.random() < 0.1:
        node["spec"]["unschedulable"] = True
    return node


def _device(randomness, index, is_tainted):
    result = {"name": f"gpu-{index}",
              "attributes": {"model": {"string": randomness.choice(MODELS)},
                             "index": {"int": index}},
              "capacity": {"memory": {"value": f"{randomness.choice((40, 80))}Gi"}}}
    if is_tainted:
        result["taints"] = [{"key": "example.com/sick", "effect": "NoSchedule"}]
    return result


def one_pool(name, pool, devices, where, counters=None):
    """One complete pool. `where` is {"nodeName": …} or {"nodeSelector": …}."""
    specs = [{"driver": DRIVER, **where, "devices": devices,
              "pool": {"name": pool, "generation": 1,
                       "resourceSliceCount": 2 if counters else 1}}]
    if counters:
        specs.append({"driver": DRIVER, **where, "sharedCounters": counters,
                      "pool": dict(specs[0]["pool"])})
    return [{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
             "metadata": {"name": f"{name}-{number}"}, "spec": spec}
            for number, spec in enumerate(specs)]


def _card(randomness, index):
    """A card that is offered whole and in halves: all draw on one counter."""
    counter = f"card-{index}"
    parts = []
    for name, amount in ((f"card-{index}-whole", 2), (f"card-{index}-half-0", 1),
                         (f"card-{index}-half-1", 1)):
        parts.append({"name": name, "attributes": {
                          "model": {"string": randomness.choice(MODELS)}, "index": {"int": index}},
                      "capacity": {"memory": {"value": f"{40 * amount}Gi"}},
                      "consumesCounters": [{"counterSet": counter, "counters": {
                          "parts": {"value": str(amount)}}}]})
    randomness.shuffle(parts)
    return parts, {"name": counter, "counters": {"parts": {"value": "2"}}}


def _node_slices(randomness, name):
    kind = randomness.random()
    if kind < 0.15:
        return []
    if kind < 0.8:
        devices = [_device(randomness, index, randomness.random() < 0.1)
                   for index in range(randomness.randint(2, 6))]
        randomness.shuffle(devices)
        return one_pool(name, name, devices, {"nodeName": name})
    cards = [_card(randomness, index) for index in range(randomness.randint(1, 2))]
    return one_pool(name, name, [part for parts, _ in cards for part in parts], {"nodeName": name},
                  [counter for _, counter in cards])


def _roaming_slices(randomness, world):
    """Devices behind a network, that all nodes of the lane reach."""
    devices = [_device(randomness, index, False) for index in range(randomness.randint(1, 3))]
    where = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "lane", "operator": "In", "values": [world.lane]}]}]}}
    return one_pool(f"{world.lane}-net", f"{world.lane}-net", devices, where)


def _foreign_pod(randomness, world, node, number):
    """Somebody else's pod, bound by itself like a static pod; some have ended already."""
    requests = {"cpu": f"{randomness.randint(1, 10)}00m", "memory": "256Mi"}
    annotations = {"example.com/run-for": "0s"} if randomness.random() < 0.2 else {}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"{node['metadata']['name']}-other-{number}",
                         "namespace": world.namespace, "annotations": annotations},
            "spec": {"nodeName": node["metadata"]["name"], "restartPolicy": "Never",
                     "containers": [{"name": "main", "image": "registry.invalid/other:1",
                                     "resources": {"requests": requests}}],
                     "tolerations": [{"operator": "Exists"}]}}


def _request(randomness, name):
    exactly = {"deviceClassName": DRIVER, "allocationMode": "ExactCount",
               "count": randomness.choice((1, 1, 1, 2))}
    expression = randomness.choice((
        None, None, f'device.attributes["{DRIVER}"].model == "{randomness.choice(MODELS)}"',
        f'device.capacity["{DRIVER}"].memory.compareTo(quantity("80Gi")) >= 0',
        f'device.attributes["{DRIVER}"].index < 2'))
    if expression:
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return {"name": name, "exactly": exactly}


def _claim_object(randomness, world, kind, name):
    requests = [_request(randomness, f"r{index}") for index in range(randomness.choice((1, 1, 2)))]
    spec = {"devices": {"requests": requests}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind,
            "metadata": {"name": name, "namespace": world.namespace},
            "spec": {"spec": spec} if kind == "ResourceClaimTemplate" else spec}


def _affinity(randomness):
    expressions = [randomness.choice((
        {"key": "zone", "operator": "In", "values": [randomness.choice(ZONES)]},
        {"key": "zone", "operator": "NotIn", "values": [randomness.choice(ZONES)]},
        {"key": "fast", "operator": "Exists"}, {"key": "fast", "operator": "DoesNotExist"},
        {"key": "size", "operator": "Gt", "values": ["2"]},
        {"key": "size", "operator": "Lt", "values": ["3"]}))
        for _ in range(randomness.choice((1, 1, 2)))]
    terms = [{"matchExpressions": [item]} for item in expressions]  # any of them
    if randomness.random() < 0.5:
        terms = [{"matchExpressions": expressions}]                 # or all
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": terms}}}


def _pod_spec(randomness):
    spec = {}
    if randomness.random() < 0.15:
        spec["nodeSelector"] = {"zone": randomness.choice(ZONES)}
    if randomness.random() < 0.2:
        spec["affinity"] = _affinity(randomness)
    if randomness.random() < 0.1:
        spec.setdefault("affinity", {})["podAntiAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": [{
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchExpressions": [
                    {"key": "batch.kubernetes.io/job-name", "operator": "Exists"}]}}]}
    if randomness.random() < 0.4:
        spec["tolerations"] = [randomness.choice((
            {"key": "dedicated", "operator": "Exists"},
            {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
            {"key": "dedicated", "operator": "Equal", "value": "other"}, {"operator": "Exists"}))]
    return spec


def _job(randomness, world, number):
    templates, claims = [], []
    if randomness.random() < 0.6:
        templates = randomness.sample([item["metadata"]["name"] for item in world.named
                                       if item["kind"] == "ResourceClaimTemplate"], 1)
    elif randomness.random() < 0.4:
        claims = randomness.sample([item["metadata"]["name"] for item in world.named
                                    if item["kind"] == "ResourceClaim"], 1)
    extended = {"example.com/accel": randomness.randint(1, 2)} if randomness.random() < 0.1 else {}
    return manifests.job(
        f"{world.lane}-j{number}", world.namespace, queue=world.queue,
        pods=randomness.choice((1, 2, 2, 2, 3, 4)), cpu=f"{randomness.choice((1, 2, 3, 5, 7, 10, 15, 25))}00m",
        memory=f"{randomness.choice((64, 128, 256, 512, 1024))}Mi", extended=extended,
        claim_templates=templates, claims=claims, pod_spec=_pod_spec(randomness))


def make_world(randomness, lane, namespace):
    world = World(lane, namespace)
    for number in range(randomness.choice((1, 2, 2, 3, 3, 4))):
        node = _node(randomness, world, number)
        world.nodes.append(node)
        world.slices += _node_slices(randomness, node["metadata"]["name"])
        world.foreign += [_foreign_pod(randomness, world, node, index)
                          for index in range(randomness.choice((0, 0, 1, 2)))]
    if randomness.random() < 0.2:
        world.slices += _roaming_slices(randomness, world)
    world.named = [_claim_object(randomness, world, "ResourceClaimTemplate", f"{lane}-t{index}")
                   for index in range(3)]
    world.named += [_claim_object(randomness, world, "ResourceClaim", f"{lane}-c{index}")
                    for index in range(2)]
    world.jobs = [_job(randomness, world, number) for number in range(randomness.randint(2, 7))]
    return world
