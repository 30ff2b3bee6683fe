"""S7: nodes and devices that aren't healthy are no capacity, a gang that has one stops as a whole,
and they count again after the flavor's quarantine."""

import datetime

from lib import manifests
from lib.cluster import stays
from lib.gangs import Gangs

CLASS = "gpu.example.com"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
FLAVOR = "/apis/tallyman.dev/v1beta1/resourceflavors/default"
CAUSE = "tallyman.dev/suspended"
# Whatever evicts its pods first is no failure of the Job's own.
PATIENT = {"backoffLimit": 20, "podReplacementPolicy": "Failed", "podFailurePolicy": {"rules": [
    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}}


class Health:
    """Two nodes with two cards each; the flavor lists GpuHealthy and has a quarantine."""

    def __init__(self, context, quarantine="4s"):
        self.cluster = context.own_cluster(nodes=2, devices=2)
        self.namespace = context.namespace_in(self.cluster)
        self.gangs = Gangs(self.cluster, self.namespace)
        self.controller = context.controller(cluster=self.cluster)
        self.cluster.apply(
            manifests.resource_flavor("default", health={
                "conditions": [{"type": "GpuHealthy", "status": "False"}],
                "quarantine": quarantine}),
            manifests.queue("cards", {CLASS: "4"}),
            manifests.claim_template("one-gpu", self.namespace))

    def job(self, name, pods, **more):
        self.gangs.create(manifests.job(name, self.namespace, queue="cards", pods=pods,
                                        claim_templates=["one-gpu"], **more))

    def taint(self, node, device, taints):
        """In the node's own slice, as its driver would."""
        name = f"{node}-{CLASS}-0"
        devices = self.cluster.get_json(f"{SLICES}/{name}")["spec"]["devices"]
        devices[device].pop("taints", None)
        if taints:
            devices[device]["taints"] = taints
        self.cluster.request("PATCH", f"{SLICES}/{name}", {"spec": {"devices": devices}})

    def node_says(self, node, status):
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": "GpuHealthy", "status": status, "reason": "Test",
                     "lastTransitionTime": now, "lastHeartbeatTime": now}
        self.cluster.request("PATCH", f"/api/v1/nodes/{node}/status",
                             {"status": {"conditions": [condition]}},
                             content_type="application/strategic-merge-patch+json")

    def flavor(self):
        return self.cluster.get_json(FLAVOR).get("status", {})

    def nodes_of(self, name):
        return {pod["spec"].get("nodeName") for pod in self.gangs.pods(name)
                if "deletionTimestamp" not in pod["metadata"]}

    def held(self):
        return set(self.cluster.devices_held(self.namespace))


def test_a_tainted_device_is_no_capacity_until_its_quarantine_is_over(context):
    health = Health(context)
    gangs = health.gangs
    health.taint("worker-2", 1, [{"key": "example.com/ecc", "effect": "NoSchedule"}])
    health.job("four", 4)
    health.job("three", 3)
    gangs.wait_started("three")
    gangs.delete("three")
    gangs.wait_reason("four", "DevicesUnhealthy")
    assert ("needs 4 gpu.example.com at once, 3 of 4 are free" in gangs.summary("four")
            or "0 of 4" in gangs.summary("four")), gangs.summary("four")
    assert "device gpu.example.com/worker-2/gpu-1 (taint example.com/ecc)" in \
        gangs.summary("four"), gangs.summary("four")
    health.cluster.wait_for(lambda: len(health.flavor().get("devices", [])) == 1, 10,
                            "the flavor to name the device")

    health.taint("worker-2", 1, None)
    stays(lambda: gangs.is_suspended("four"), 1, "four waiting while the device is in quarantine")
    health.controller.restart(is_killed=True)
    stays(lambda: gangs.is_suspended("four"), 1, "the same after a restart")
    gangs.wait_started("four", 15)
    health.cluster.wait_for(lambda: not health.flavor().get("devices"), 10,
                            "the flavor to forget the device")


def test_noexecute_stops_the_gang_whole_and_once(context):
    health = Health(context)
    gangs = health.gangs
    health.job("train", 2, spec=PATIENT)
    gangs.wait_ready("train", 2)
    gangs.wait_state("train", "Running")
    victim = sorted(health.held())[0]
    driver, pool, device = victim.split("/")
    health.cluster.request("POST", RULES, {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule",
        "metadata": {"name": "broken"},
        "spec": {"deviceSelector": {"driver": driver, "pool": pool, "device": device},
                 "taint": {"key": "example.com/broken", "effect": "NoExecute"}}})
    health.cluster.wait_for(lambda: gangs.events("train", "DeviceUnhealthy"), 15,
                            "the Event about the device")
    note = gangs.events("train", "DeviceUnhealthy")[0]["note"]
    assert f"device {victim} has taint example.com/broken" in note, note
    # It starts again, whole, on others.
    health.cluster.wait_for(lambda: gangs.ready("train") == 2 and len(health.held()) == 2
                            and victim not in health.held(), 30, "train whole on healthy devices")
    gangs.wait_state("train", "Running")
    stays(lambda: not gangs.is_suspended("train"), 3, "train running: one suspension")
    status = gangs.status("train")
    assert status.get("evictions") == 1, status
    assert status["explanation"]["eviction"]["rule"] == "DeviceUnhealthy", status


def test_a_condition_that_the_flavor_lists_keeps_gangs_off_the_node(context):
    health = Health(context, quarantine="6s")
    gangs = health.gangs
    health.node_says("worker-1", "False")
    health.cluster.wait_for(lambda: health.flavor().get("nodesUsable") == 1, 10,
                            "one usable node in the flavor's status")
    assert health.flavor()["nodes"] == 2, health.flavor()
    # kube-scheduler knows nothing of it: the admission itself keeps the pods off.
    health.job("pair", 2, spec=PATIENT)
    gangs.wait_ready("pair", 2)
    assert health.nodes_of("pair") == {"worker-2"}, health.nodes_of("pair")
    gangs.wait_state("pair", "Running")

    health.node_says("worker-2", "False")
    health.cluster.wait_for(lambda: gangs.events("pair", "NodeUnhealthy"), 15,
                            "the Event about the node")
    gangs.wait_reason("pair", "DevicesUnhealthy")
    cause = gangs.annotation("pair", CAUSE)
    assert cause is None or "NodeUnhealthy" in cause, cause
    affinity = gangs.job("pair")["spec"]["template"]["spec"].get("affinity")
    assert not affinity, f"the template is as its user wrote it: {affinity}"
    assert "GpuHealthy is False" in gangs.summary("pair"), gangs.summary("pair")

    health.node_says("worker-1", "True")
    stays(lambda: gangs.is_suspended("pair"), 2, "pair waiting for the node's quarantine")
    gangs.wait_ready("pair", 2, 30)
    assert health.nodes_of("pair") == {"worker-1"}, health.nodes_of("pair")
    assert gangs.status("pair").get("evictions") == 1, gangs.status("pair")
