"""What every test cluster holds from the start: nodes, their fake devices, and the device class."""

import base64
import concurrent.futures

DRIVER = "gpu.example.com"     # the driver's and the DeviceClass's name
MAX_SLICE_DEVICES = 128        # resource.k8s.io allows no more in one ResourceSlice
CREATE_THREADS = 8


def base64_of(path):
    return base64.b64encode(path.read_bytes()).decode()


def node_name(number):
    return f"worker-{number}"


def parse_labels(specifications):
    """["KEY=VALUE", "NODE:KEY=VALUE", …] as {node name or None for all: {key: value}}."""
    result = {}
    for text in specifications:
        target, colon, label = text.rpartition(":")
        key, equals, value = label.partition("=")
        if not key or not equals or (colon and not target):
            raise ValueError(f"--label '{text}': it should be KEY=VALUE (every node) or "
                             "NODE:KEY=VALUE, such as worker-1:rack=r1")
        result.setdefault(target or None, {})[key] = value
    return result


def node(name, cpu="8", memory="32Gi", pods="110", labels=None, taints=None):
    """A Node object, with its capacity; kwok makes it Ready."""
    capacity = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64", **(labels or {})}},
        "spec": {"taints": taints} if taints else {},
        "status": {"capacity": capacity, "allocatable": dict(capacity)},
    }


def device(node_name_, index):
    return {"name": f"gpu-{index}",
            "attributes": {"type": {"string": "gpu"}, "index": {"int": index},
                           "uuid": {"string": f"gpu-{node_name_}-{index}"}},
            "capacity": {"memory": {"value": "80Gi"}}}


def resource_slices(node_name_, count, driver=DRIVER, generation=1):
    """The node's pool of `count` devices, cut into as many slices as the API's limit asks for."""
    starts = range(0, count, MAX_SLICE_DEVICES)
    return [{
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name_}-{driver}-{number}"},
        "spec": {"driver": driver, "nodeName": node_name_,
                 "pool": {"name": node_name_, "generation": generation,
                          "resourceSliceCount": len(starts)},
                 "devices": [device(node_name_, index) for index in
                             range(start, min(start + MAX_SLICE_DEVICES, count))]},
    } for number, start in enumerate(starts)]


def device_class(name=DRIVER, driver=DRIVER):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}}


def create_all(api, options):
    labels = parse_labels(options.labels)
    if options.devices:  # none, where resource.k8s.io isn't served
        api.request("POST", "/apis/resource.k8s.io/v1/deviceclasses", device_class())

    def create(number):
        name = node_name(number)
        api.request("POST", "/api/v1/nodes", node(
            name, options.cpu, options.memory, options.pods,
            {**labels.get(None, {}), **labels.get(name, {})}))
        for item in resource_slices(name, options.devices):
            api.request("POST", "/apis/resource.k8s.io/v1/resourceslices", item)

    with concurrent.futures.ThreadPoolExecutor(CREATE_THREADS) as pool:
        list(pool.map(create, range(1, options.nodes + 1)))


def is_node_ready(item):
    """Ready, and without the taint that keeps a new node's pods away until it is."""
    ready = any(condition["type"] == "Ready" and condition["status"] == "True"
                for condition in item["status"].get("conditions", []))
    return ready and not item["spec"].get("taints")


def are_nodes_ready(api, options):
    nodes = api.items("/api/v1/nodes")
    return len(nodes) == options.nodes and all(is_node_ready(item) for item in nodes)
