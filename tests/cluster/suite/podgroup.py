"""Claims that a gang has once for all its pods, by its PodGroup (docs/decisions/038)."""

from lib import manifests
from lib.cluster import stays
from lib.gangs import HOLD, Gangs

CLASS = "gpu.example.com"
SIZE = 3
WITHOUT_CLAIMS = "GenericWorkload=true,WorkloadWithJob=true"
GATES = WITHOUT_CLAIMS + ",DRAWorkloadResourceClaims=true"


class World:
    """A control plane with these gates, Tallyman on it, a queue for all its devices."""

    def __init__(self, context, gates, **options):
        self.cluster = context.own_cluster(gates=gates, **options)
        self.namespace = context.namespace_in(self.cluster)
        self.gangs = Gangs(self.cluster, self.namespace)
        self.controller = context.controller(cluster=self.cluster)
        self.cluster.apply(manifests.queue("cards", {CLASS: "9", "cpu": "99"}),
                           manifests.claim_template("card", self.namespace))

    def job(self, name, pods=SIZE, is_one_for_all=True, **more):
        """Its pods use template `card`: one claim for all of them, or one each."""
        listed = {"schedulingPolicy": {"gang": {"minCount": pods}},
                  "resourceClaims": [{"name": "device-0", "resourceClaimTemplateName": "card"}]}
        spec = {"scheduling": listed} if is_one_for_all else None
        self.gangs.create(manifests.job(name, self.namespace, queue="cards", pods=pods, spec=spec,
                                        claim_templates=["card"], **more))

    def claims(self):
        """Those of PodGroups."""
        return [claim for claim in self.cluster.items(
                    f"/apis/resource.k8s.io/v1/namespaces/{self.namespace}/resourceclaims")
                if claim["metadata"].get("ownerReferences", [{}])[0].get("kind") == "PodGroup"]

    def places(self, name):
        return {pod["spec"].get("nodeName") for pod in self.gangs.pods(name)}


def test_a_claim_of_the_whole_gang_is_one_device(context):
    """Three pods, one device, one node; the five devices that are left are five others'."""
    world = World(context, GATES)
    gangs = world.gangs
    world.job("grouped")
    gangs.wait_ready("grouped", SIZE)
    gangs.wait_used("cards", CLASS, "1")
    assert len(world.places("grouped")) == 1, world.places("grouped")
    claim, = world.claims()
    consumer, = claim["status"]["reservedFor"]
    assert consumer["resource"] == "podgroups", consumer
    record = gangs.record("grouped")["podSets"][0]
    assert record["count"] == SIZE, record

    world.job("six", pods=6, is_one_for_all=False)
    message = gangs.wait_reason("six", "DevicesExhausted")
    assert f"needs 6 {CLASS} at once, 5 of 6 are free" in message, message
    world.job("five", pods=5, is_one_for_all=False)
    gangs.wait_ready("five", 5)
    gangs.wait_used("cards", CLASS, "6")
    world.controller.restart()
    stays(lambda: gangs.used("cards", CLASS) == "6" and gangs.ready("grouped") == SIZE, 2,
          "what is counted after a restart")
    context.note(message)


def test_a_gang_waits_for_the_device_of_another_ones_claim(context):
    """The PodGroup holds it until the Job is deleted: not only while its pods run."""
    world = World(context, GATES, nodes=1, devices=1)
    gangs, cluster = world.gangs, world.cluster
    world.job("first", run_for="3s")
    gangs.wait_ready("first", SIZE)
    world.job("second")
    message = gangs.wait_reason("second", "DevicesExhausted")
    assert f"needs 1 {CLASS} at once, 0 of 1 are free" in message, message
    gangs.wait_complete("first")
    gangs.wait_used("cards", CLASS, "0")
    stays(lambda: gangs.is_suspended("second"), 2, "the gang waits for a device that is held")
    held, = (claim for claim in world.claims() if claim["status"].get("allocation"))
    assert held["status"]["reservedFor"][0]["resource"] == "podgroups", held["status"]
    gangs.delete("first")
    gangs.wait_ready("second", SIZE)
    gangs.wait_used("cards", CLASS, "1")
    assert cluster.devices_held(world.namespace), "no device is held by the second gang"
    context.note(message)


def test_a_gang_that_was_stopped_goes_back_to_its_device(context):
    """The claim outlives the pods: the room that it left is its own, on the same node."""
    world = World(context, GATES, nodes=2, devices=1)
    gangs = world.gangs
    world.job("grouped")
    gangs.wait_ready("grouped", SIZE)
    before = world.places("grouped")
    gangs.patch("grouped", {"spec": {"suspend": True}})
    world.cluster.wait_for(lambda: gangs.annotation("grouped", HOLD) == "true" and
                           gangs.record("grouped") is None, 20, "it is held, and put back")
    world.job("two", pods=2, is_one_for_all=False)
    message = gangs.wait_reason("two", "DevicesExhausted")
    assert f"needs 2 {CLASS} at once, 1 of 2 are free" in message, message
    gangs.annotate("grouped", HOLD, None)
    gangs.wait_ready("grouped", SIZE, timeout_s=30)
    assert world.places("grouped") == before, (before, world.places("grouped"))


def test_without_the_gate_the_listed_claim_is_missed(context):
    """The server keeps the list in the Job and drops it from the PodGroup: each pod would get a
    claim of its own, and nobody can tell before pods are made. The gang waits."""
    world = World(context, WITHOUT_CLAIMS, nodes=2)
    gangs = world.gangs
    world.job("grouped")
    message = gangs.wait_reason("grouped", "MissingReference")
    stays(lambda: gangs.is_suspended("grouped"), 2, "the gang waits")
    groups = world.cluster.items(
        f"/apis/scheduling.k8s.io/v1beta1/namespaces/{world.namespace}/podgroups")
    assert gangs.job("grouped")["spec"]["scheduling"].get("resourceClaims"), "the Job's list is gone"
    assert [group["spec"].get("resourceClaims") for group in groups] == [None], groups
    assert not world.claims()
    context.note(message)
