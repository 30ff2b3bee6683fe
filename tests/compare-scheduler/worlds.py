"""Small random clusters, and gangs for them: a bit of everything that decides where a pod can go.

A world lives in a lane of its own. Its nodes carry the label lane=NAME, which the queue's flavor
asks for, its drivers and classes are its own, and the name of each of its objects begins with
NAME-; so that many worlds are tried side by side in one control plane."""

import dataclasses

ZONES = ("east", "west")
RACKS = ("r1", "r2", "r3")
MODELS = ("a100", "h100")
ACCEL = "example.com/accel"
ANYTHING = [{"operator": "Exists"}]
HOSTNAME = "kubernetes.io/hostname"
RESOURCE_API = "resource.k8s.io/v1"
# Listed by the queue with more than anybody asks for: this is about room, not about quota.
QUOTAS = {"cpu": "1000", "memory": "10Ti", "pods": "10000", "ephemeral-storage": "100Ti",
          ACCEL: "1000"}


@dataclasses.dataclass
class World:
    lane: str
    namespace: str
    nodes: list = dataclasses.field(default_factory=list)
    slices: list = dataclasses.field(default_factory=list)
    classes: list = dataclasses.field(default_factory=list)  # and device taint rules
    named: list = dataclasses.field(default_factory=list)    # claim templates and claims
    foreign: list = dataclasses.field(default_factory=list)  # other people's pods, bound or not
    jobs: list = dataclasses.field(default_factory=list)
    features: frozenset = frozenset()   # what may occur in it; few at a time let more gangs start

    @property
    def driver(self):
        return f"gpu.{self.lane}.example.com"

    @property
    def extended(self):
        """The resource under whose name pods ask for devices of the class, without a claim."""
        return f"{self.lane}.example.com/gpu"

    @property
    def nic_driver(self):
        return f"nic.{self.lane}.example.com"

    def name(self, rest):
        return f"{self.lane}-{rest}"

    def config(self):
        """The flavor and the queue, for Tallyman alone: the control plane needn't know them."""
        quotas = {**QUOTAS, **{item["metadata"]["name"]: "1000" for item in self.classes
                              if item["kind"] == "DeviceClass"}}
        resources = [{"name": key, "nominalQuota": value} for key, value in quotas.items()]
        group = {"flavors": [{"name": self.lane, "resources": resources}]}
        api = "tallyman.dev/v1beta1"
        flavor = {"nodeLabels": {"lane": self.lane},
                  "topology": {"levels": ["zone", "rack", HOSTNAME]}}
        return [{"apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": self.lane},
                 "spec": flavor},
                {"apiVersion": api, "kind": "Queue", "metadata": {"name": f"q-{self.lane}"},
                 "spec": {"namespaceSelector": {}, "resourceGroups": [group]}}]


def _chance(rng, probability):
    return rng.random() < probability


# Each world has some of these only: with all of them at once hardly any gang finds room.
FEATURES = ("taints cordoned accel unnamed-model sick shared-device odd-pools cards nics network "
            "selectors tolerated two-requests two-claims named joined rules extended plugin "
            "topology limits inits affinity selector apart ports others-devices").split()
# With these Tallyman waits and says so; a few show that it does.
NOT_YET = ("all", "admin", "first-available", "constraints", "company")


def _may(rng, world, feature, probability):
    """Whether a thing of that feature occurs, in a world that has the feature."""
    return feature in world.features and rng.random() < probability


# -- nodes --------------------------------------------------------------------------------------


def _taints(rng, world):
    effect, taints = rng.choice(("NoSchedule", "NoSchedule", "NoExecute")), []
    if _may(rng, world, "taints", 0.4):
        taints.append({"key": "dedicated", "value": "gpu", "effect": effect})
    if _may(rng, world, "taints", 0.25):
        taints.append({"key": "flaky", "effect": rng.choice(("PreferNoSchedule", "NoSchedule"))})
    return taints


def _node(rng, world, number):
    name = world.name(f"n{number}")
    labels = {HOSTNAME: name, "lane": world.lane, "zone": rng.choice(ZONES),
              "rack": rng.choice(RACKS), "size": str(rng.randint(1, 4))}
    labels.update({"fast": "true"} if _chance(rng, 0.5) else {})
    room = {"cpu": rng.choice(("1", "2", "3", "4", "4", "6", "8", "3500m")),
            "memory": f"{rng.choice((2, 4, 8, 16))}Gi", "ephemeral-storage": "20Gi",
            "pods": rng.choice(("3", "8", "110", "110", "110"))}
    if _may(rng, world, "accel", 0.7):
        room[ACCEL] = str(rng.randint(0, 4))
    if "extended" in world.features and _may(rng, world, "plugin", 0.5):
        room[world.extended] = str(rng.randint(1, 3))  # a device plugin offers it, too
    spec = {"taints": _taints(rng, world)}
    spec = {"unschedulable": True} if _may(rng, world, "cordoned", 0.3) else spec
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "spec": spec, "status": {"capacity": room, "allocatable": dict(room)}}


# -- devices ------------------------------------------------------------------------------------


def _device(rng, world, name, index):
    device = {"name": name,
              "attributes": {"model": {"string": rng.choice(MODELS)}, "index": {"int": index},
                             "numa": {"int": rng.randint(0, 1)}},
              "capacity": {"memory": {"value": rng.choice(("40Gi", "80Gi"))}}}
    if _may(rng, world, "unnamed-model", 0.3):
        del device["attributes"]["model"]  # a selector that reads it unguarded fails there
    if _may(rng, world, "sick", 0.25):
        device["taints"] = [{"key": f"{world.driver}/sick",
                             "effect": rng.choice(("NoSchedule", "NoExecute"))}]
    if _may(rng, world, "shared-device", 0.3):
        device["allowMultipleAllocations"] = True
    return device


def _slice(name, driver, where, devices, pool, *, slices=1, generation=1):
    lane = driver.split(".")[1]
    return {"apiVersion": RESOURCE_API, "kind": "ResourceSlice",
            "metadata": {"name": name, "labels": {"lane": lane}},
            "spec": {"driver": driver, **where, "devices": devices,
                     "pool": {"name": pool, "generation": generation,
                              "resourceSliceCount": slices}}}


def _plain_pool(rng, world, node):
    count = rng.choice((1, 1, 2) if "joined" in world.features else (1, 2, 3, 4, 6))
    devices = [_device(rng, world, f"gpu-{index}", index) for index in range(count)]
    rng.shuffle(devices)
    where = {"nodeName": node}
    kind = rng.random() if "odd-pools" in world.features else 1
    if kind < 0.15:   # a slice of the pool is missing
        return [_slice(f"{node}-g", world.driver, where, devices, node, slices=2)]
    if kind < 0.35:   # an older generation is still there
        older = [_device(rng, world, f"old-{index}", index) for index in range(2)]
        return [_slice(f"{node}-g1", world.driver, where, older, node),
                _slice(f"{node}-g2", world.driver, where, devices, node, generation=2)]
    if kind < 0.6 and len(devices) > 1:   # in two slices
        half = len(devices) // 2
        return [_slice(f"{node}-ga", world.driver, where, devices[:half], node, slices=2),
                _slice(f"{node}-gb", world.driver, where, devices[half:], node, slices=2)]
    return [_slice(f"{node}-g", world.driver, where, devices, node)]


def _card(rng, world, index):
    """A card that is offered whole and in parts: all draw on one counter."""
    model, counter = rng.choice(MODELS), f"card-{index}"
    parts = rng.choice((2, 2, 4))
    shapes = [(f"{counter}-whole", parts)] + [(f"{counter}-part-{part}", 1)
                                             for part in range(rng.randint(1, parts))]
    if parts == 4:
        shapes += [(f"{counter}-half-{part}", 2) for part in range(2)]
    devices = []
    for name, amount in shapes:
        device = _device(rng, world, name, index)
        device.pop("allowMultipleAllocations", None)
        device["attributes"]["model"] = {"string": model}
        device["attributes"]["whole"] = {"bool": amount == parts}
        device["consumesCounters"] = [{"counterSet": counter, "counters": {
            "parts": {"value": str(amount)}}}]
        devices.append(device)
    rng.shuffle(devices)
    return devices, {"name": counter, "counters": {"parts": {"value": str(parts)}}}


def _card_pool(rng, world, node):
    cards = [_card(rng, world, index) for index in range(rng.randint(1, 2))]
    devices = [device for parts, _ in cards for device in parts]
    where = {"nodeName": node}
    counters = _slice(f"{node}-gc", world.driver, where, None, node, slices=2)
    del counters["spec"]["devices"]
    counters["spec"]["sharedCounters"] = [counter for _, counter in cards]
    return [_slice(f"{node}-g", world.driver, where, devices, node, slices=2), counters]


def _node_slices(rng, world, node):
    kind, slices = rng.random(), []
    if kind < (0.3 if "cards" in world.features else 0.85):
        slices += _plain_pool(rng, world, node)
    elif kind < 0.85:
        slices += _card_pool(rng, world, node)
    if _may(rng, world, "nics", 0.6):
        nics = [_device(rng, world, f"nic-{index}", index) for index in range(rng.randint(1, 3))]
        slices.append(_slice(f"{node}-nic", world.nic_driver, {"nodeName": node}, nics, node))
    return slices


def _network_slices(rng, world):
    """Devices that no node owns: seen by all nodes, by some, or each by some."""
    devices = [_device(rng, world, f"net-{index}", index) for index in range(rng.randint(1, 3))]
    selector = {"nodeSelectorTerms": [{"matchExpressions": [rng.choice((
        {"key": "lane", "operator": "In", "values": [world.lane]},
        {"key": "zone", "operator": "In", "values": ["east"]}))]}]}
    kind = rng.random()
    where = {"allNodes": True} if kind < 0.4 else {"nodeSelector": selector}
    if kind > 0.8:
        where = {"perDeviceNodeSelection": True}
        for device in devices:
            device.update({"allNodes": True} if _chance(rng, 0.5) else {"nodeSelector": selector})
    pool = world.name("net")
    return [_slice(pool, world.driver, where, devices, pool)]


def _device_class(world, suffix, expression):
    return {"apiVersion": RESOURCE_API, "kind": "DeviceClass",
            "metadata": {"name": world.name(suffix), "labels": {"lane": world.lane}},
            "spec": {"selectors": [{"cel": {"expression": expression}}]}}


def _taint_rule(rng, world):
    selector = {"driver": world.driver}
    pool, device = rng.choice(world.nodes)["metadata"]["name"], f"gpu-{rng.randint(0, 2)}"
    selector.update({"pool": pool} if _chance(rng, 0.7) else {})
    selector.update({"device": device} if _chance(rng, 0.6) else {})
    return {"apiVersion": RESOURCE_API, "kind": "DeviceTaintRule",
            "metadata": {"name": world.name("rule"), "labels": {"lane": world.lane}},
            "spec": {"deviceSelector": selector,
                     "taint": {"key": f"{world.driver}/sick",
                               "effect": rng.choice(("NoSchedule", "NoExecute", "None"))}}}


def _classes(rng, world):
    gpu = f'device.driver == "{world.driver}"'
    model = f'device.attributes["{world.driver}"].model'
    classes = [_device_class(world, "gpu", gpu),
               _device_class(world, "h100", f'{gpu} && has({model}) && {model} == "h100"'),
               _device_class(world, "nic", f'device.driver == "{world.nic_driver}"')]
    if "extended" in world.features:
        rng.choice(classes[:2])["spec"]["extendedResourceName"] = world.extended
    if "rules" in world.features:
        classes.append(_taint_rule(rng, world))
    return classes


# -- claims -------------------------------------------------------------------------------------


def _selector(rng, world):
    own = f'device.attributes["{world.driver}"]'
    expression = rng.choice((
        f'{own}.model == "{rng.choice(MODELS)}"',
        f'device.capacity["{world.driver}"].memory.compareTo(quantity("80Gi")) >= 0',
        f"{own}.index < {rng.randint(1, 3)}", f"{own}.numa == {rng.randint(0, 1)}",
        f"{own}[?'whole'].orValue(true)", "!device.allowMultipleAllocations"))
    return [{"cel": {"expression": expression}}]


def _exactly(rng, world):
    chosen = "nic" if _may(rng, world, "nics", 0.3) else rng.choice(("gpu", "gpu", "gpu", "h100"))
    exactly = {"deviceClassName": world.name(chosen)}
    if _may(rng, world, "all", 0.3):
        exactly["allocationMode"] = "All"
    elif _may(rng, world, "admin", 0.3):
        exactly["adminAccess"] = True
    else:
        exactly["count"] = rng.choice((1, 1, 1, 1, 1, 2, 2, 3))
    if chosen != "nic" and _may(rng, world, "selectors", 0.6):
        exactly["selectors"] = _selector(rng, world)
    if _may(rng, world, "tolerated", 0.4):
        exactly["tolerations"] = [{"key": f"{world.driver}/sick", "operator": "Exists"}]
    return exactly


def _request(rng, world, name):
    if _may(rng, world, "first-available", 0.3):
        subs = [{"name": f"s{index}", **_exactly(rng, world)} for index in range(rng.randint(1, 3))]
        for sub in subs:
            sub.pop("adminAccess", None)
        return {"name": name, "firstAvailable": subs}
    return {"name": name, "exactly": _exactly(rng, world)}


def _claim_spec(rng, world):
    count = 2 if _may(rng, world, "two-requests", 0.5) else 1
    requests = [_request(rng, world, f"r{index}") for index in range(count)]
    devices = {"requests": requests}
    if _may(rng, world, "constraints", 0.3):
        devices["constraints"] = [{rng.choice(("matchAttribute", "distinctAttribute")):
                                   f"{world.driver}/{rng.choice(('model', 'numa', 'index'))}"}]
    return {"devices": devices}


def _named_objects(rng, world):
    def made(kind, name, spec):
        return {"apiVersion": RESOURCE_API, "kind": kind, "spec": spec,
                "metadata": {"name": world.name(name), "namespace": world.namespace}}

    templates = [made("ResourceClaimTemplate", f"t{index}", {"spec": _claim_spec(rng, world)})
                 for index in range(3)]
    return templates + [made("ResourceClaim", f"c{index}", _claim_spec(rng, world))
                        for index in range(3)]


def _c0(world):
    return {"name": "d0", "resourceClaimName": world.name("c0")}


def _uses(rng, world, likely):
    """What a pod's resourceClaims name: mostly one template, or a claim that others share."""
    sources = []
    if _may(rng, world, "joined", 0.5):  # the claim that somebody holds already
        return [_c0(world)]
    if _chance(rng, likely):
        for _ in range(2 if _may(rng, world, "two-claims", 0.5) else 1):
            sources.append({"resourceClaimTemplateName": world.name(f"t{rng.randint(0, 2)}")})
    if _may(rng, world, "named", 0.2 if sources else 0.6):
        sources.append({"resourceClaimName": world.name(f"c{rng.randint(0, 2)}")})
    return [{"name": f"d{number}", **source} for number, source in enumerate(sources)]


# -- pods ---------------------------------------------------------------------------------------


def _resources(rng, world, scale=1.0):
    requests = {"cpu": f"{max(1, int(rng.choice((1, 2, 3, 5, 5, 7, 10, 15, 25)) * scale)) * 100}m",
                "memory": f"{rng.choice((64, 128, 256, 512, 1024))}Mi"}
    if _may(rng, world, "limits", 0.2):
        del requests["cpu"]
    # A template's requests aren't defaulted from its limits before the pods are made.
    return {"limits": requests} if _may(rng, world, "limits", 0.4) else {"requests": requests}


def _container(rng, world, name, scale=1.0, claims=()):
    resources = _resources(rng, world, scale)
    if claims:
        resources["claims"] = [{"name": item["name"]} for item in claims]
    return {"name": name, "image": "registry.invalid/main:1", "resources": resources}


def _init_containers(rng, world):
    containers = []
    for index in range(rng.choice((1, 1, 2))):
        restart = {"restartPolicy": "Always"} if _chance(rng, 0.4) else {}
        containers.append({**_container(rng, world, f"init-{index}", 0.7), **restart})
    return containers


def _affinity(rng):
    expressions = [rng.choice((
        {"key": "zone", "operator": "In", "values": [rng.choice(ZONES)]},
        {"key": "zone", "operator": "NotIn", "values": [rng.choice(ZONES)]},
        {"key": "rack", "operator": "In", "values": rng.sample(RACKS, 2)},
        {"key": "fast", "operator": "Exists"}, {"key": "fast", "operator": "DoesNotExist"},
        {"key": "size", "operator": "Gt", "values": ["2"]},
        {"key": "size", "operator": "Lt", "values": ["3"]})) for _ in range(rng.choice((1, 1, 2)))]
    terms = [{"matchExpressions": [item]} for item in expressions]  # any of them
    terms = [{"matchExpressions": expressions}] if _chance(rng, 0.5) else terms  # or all
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": terms}}}


def _apart(rng):
    """Away from one's own kind, from a gang, or from everybody who has the label."""
    keys = [{"key": rng.choice(("app", "batch.kubernetes.io/job-name")), "operator": "Exists"}]
    terms = [{"topologyKey": HOSTNAME, "labelSelector": {"matchExpressions": keys}}]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _toleration(rng):
    return rng.choice((
        {"key": "dedicated", "operator": "Exists"}, {"operator": "Exists"},
        {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
        {"key": "dedicated", "operator": "Equal", "value": "other"},
        {"key": "flaky", "operator": "Exists", "effect": "NoSchedule"}))


def _company(rng):
    """Rules about other pods that Tallyman doesn't foresee: it has to wait with them, not guess."""
    together = [{"topologyKey": rng.choice((HOSTNAME, "rack")),
                 "labelSelector": {"matchLabels": {"app": rng.choice("ab")}}}]
    return rng.choice((
        {"affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": together}}},
        {"topologySpreadConstraints": [{"maxSkew": 1, **together[0],
                                        "whenUnsatisfiable": "DoNotSchedule"}]}))


def _placement(rng, world):
    spec = {}
    if _may(rng, world, "selector", 0.3):
        spec["nodeSelector"] = rng.choice(({"zone": rng.choice(ZONES)}, {"fast": "true"},
                                           {"rack": rng.choice(RACKS)}))
    if _may(rng, world, "affinity", 0.5):
        spec["affinity"] = _affinity(rng)
    if _may(rng, world, "apart", 0.4):
        spec.setdefault("affinity", {}).update(_apart(rng))
    if _may(rng, world, "taints", 0.6):
        spec["tolerations"] = [_toleration(rng)]
    if _may(rng, world, "company", 0.2):
        spec = {**spec, **_company(rng)}
    return spec


def _pod_spec(rng, world, likely_devices):
    uses = _uses(rng, world, likely_devices)
    spec = {"restartPolicy": "Never", "containers": [_container(rng, world, "main", claims=uses)],
            "terminationGracePeriodSeconds": 0, **_placement(rng, world)}
    if uses:
        spec["resourceClaims"] = uses
    if _may(rng, world, "inits", 0.5):
        spec["initContainers"] = _init_containers(rng, world)
    if _may(rng, world, "inits", 0.3):
        spec["containers"].append(_container(rng, world, "second", 0.5))
    if _may(rng, world, "ports", 0.3):
        spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    if _may(rng, world, "extended", 0.4):
        limits = spec["containers"][-1]["resources"].setdefault("limits", {})
        limits[world.extended] = str(rng.choice((1, 1, 2)))
    if _may(rng, world, "accel", 0.35):
        limits = spec["containers"][0]["resources"].setdefault("limits", {})
        limits[ACCEL] = str(rng.randint(1, 2))
    return spec


def _foreign_pods(rng, world):
    """Somebody else's: bound from the start as static pods are, ended, or with devices and placed
    by the scheduler."""
    pods = []
    for node in world.nodes:
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            pods.append({"restartPolicy": "Never", "tolerations": ANYTHING,
                         "containers": [_container(rng, world, "main", 0.5)],
                         "nodeName": node["metadata"]["name"], "terminationGracePeriodSeconds": 0})
    for _ in range(rng.choice((1, 2, 3)) if "others-devices" in world.features else 0):
        spec = _pod_spec(rng, world, 0.8)
        spec["nodeSelector"] = {**spec.get("nodeSelector", {}), "lane": world.lane}
        pods.append(spec)
    if "joined" in world.features:
        uses = [_c0(world)]
        pods.append({"restartPolicy": "Never", "tolerations": ANYTHING, "resourceClaims": uses,
                     "nodeSelector": {"lane": world.lane}, "terminationGracePeriodSeconds": 0,
                     "containers": [_container(rng, world, "main", 0.3, uses)]})
    ended = {"example.com/run-for": "0s"}
    return [{"apiVersion": "v1", "kind": "Pod", "spec": spec,
             "metadata": {"name": world.name(f"other-{number}"), "namespace": world.namespace,
                          "labels": {"app": rng.choice("ab")},
                          "annotations": ended if _chance(rng, 0.15) else {}}}
            for number, spec in enumerate(pods)]


def _job(rng, world, number):
    pods = rng.choice((1, 1, 2, 2, 2, 2, 3, 3, 4, 6))
    name = world.name(f"j{number}")
    template = {"metadata": {"labels": {"app": rng.choice("ab")}},
                "spec": _pod_spec(rng, world, 0.55)}
    annotations = {}
    if _may(rng, world, "topology", 0.6):
        key = rng.choice(("required", "required", "preferred"))
        annotations[f"tallyman.dev/{key}-topology"] = rng.choice(("zone", "rack", HOSTNAME))
    return {"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "namespace": world.namespace, "annotations": annotations,
                         "labels": {"tallyman.dev/queue": f"q-{world.lane}"}},
            "spec": {"completionMode": "Indexed", "completions": pods, "parallelism": pods,
                     "suspend": True, "template": template}}


def _joining_job(rng, world):
    """A small gang that asks for nothing but the claim that somebody holds already."""
    job = _job(rng, world, "joins")
    uses = [_c0(world)]
    container = {"name": "main", "image": "registry.invalid/main:1",
                 "resources": {"requests": {"cpu": "100m"}, "claims": [{"name": "d0"}]}}
    job["spec"]["template"]["spec"] = {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container],
        "tolerations": [{"key": key, "operator": "Exists"} for key in ("dedicated", "flaky")],
        "resourceClaims": uses}
    return job


def make_world(rng, lane, namespace):
    world = World(lane, namespace)
    world.features = frozenset([item for item in FEATURES if _chance(rng, 0.25)] +
                               [item for item in NOT_YET if _chance(rng, 0.06)])
    for number in range(rng.choice((1, 2, 2, 3, 3, 4, 5, 6))):
        node = _node(rng, world, number)
        world.nodes.append(node)
        world.slices += _node_slices(rng, world, node["metadata"]["name"])
    if _may(rng, world, "network", 0.7):
        world.slices += _network_slices(rng, world)
    world.classes = _classes(rng, world)
    world.named = _named_objects(rng, world)
    world.foreign = _foreign_pods(rng, world)
    world.jobs = [_job(rng, world, number) for number in range(rng.randint(3, 8))]
    if "joined" in world.features:
        world.jobs.append(_joining_job(rng, world))
    return world
