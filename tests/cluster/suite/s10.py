"""S10, its NodeShape half: enough devices in total aren't enough if no node has them together."""

from lib import manifests
from lib.cluster import stays
from lib.gangs import Gangs

CLASS = "gpu.example.com"


def _holder(namespace, number, **more):
    """A plain Job that holds three of the four cards of one node."""
    return manifests.job(f"holder-{number}", namespace, pods=1, claim_templates=["three"],
                         node_selector={"kubernetes.io/hostname": f"worker-{number}"}, **more)


def test_two_free_devices_on_two_nodes_are_no_pair(context):
    cluster = context.own_cluster(nodes=2, devices=4)
    namespace = context.namespace_in(cluster)
    gangs = Gangs(cluster, namespace)
    context.controller(cluster=cluster)
    cluster.apply(manifests.queue("cards", {CLASS: "8"}),
                  *(manifests.claim_template(name, namespace, count=count)
                    for name, count in (("one", 1), ("two", 2), ("three", 3), ("five", 5))))
    gangs.create(_holder(namespace, 1), _holder(namespace, 2, run_for="12s"))
    for number in (1, 2):
        gangs.wait_ready(f"holder-{number}", 1)
    assert len(cluster.devices_held()) == 6

    gangs.create(manifests.job("pair", namespace, pods=1, queue="cards", claim_templates=["two"]),
                 manifests.job("five", namespace, pods=1, queue="cards", claim_templates=["five"]))
    message = gangs.wait_reason("pair", "NodeShape")
    context.note(f"pair: {message}")
    wanted = f"one pod needs 2 {CLASS} on one node, 2 are free in total and at most 1 on one node"
    assert wanted in message, message
    impossible = gangs.wait_reason("five", "NeverFits")
    context.note(f"five: {impossible}")
    assert f"one pod needs 5 {CLASS}, more than any node" in impossible, impossible

    gangs.create(manifests.job("singles", namespace, pods=2, queue="cards",
                               claim_templates=["one"], run_for="2s"))
    gangs.wait_ready("singles", 2, 10)
    assert len(cluster.devices_held()) == 8
    gangs.wait_complete("singles")
    stays(lambda: not gangs.is_started("pair"), 1, "the pair waits")

    gangs.wait_complete("holder-2")
    gangs.wait_ready("pair", 1, 10)
    assert not gangs.is_started("five")


RACK = "example.com/rack"
ZONE = "topology.kubernetes.io/zone"


def _given_racks(context):
    """Two nodes of two cards in each of the racks r1 and r2, one card of each rack in use."""
    labels = [f"worker-{number}:{ZONE}=a" for number in range(1, 5)]
    labels += [f"worker-{number}:{RACK}=r{1 if number < 3 else 2}" for number in range(1, 5)]
    cluster = context.own_cluster(nodes=4, devices=2, labels=labels)
    gangs = Gangs(cluster, context.namespace_in(cluster))
    cluster.apply(manifests.claim_template("one", gangs.namespace, count=1))
    gangs.create(*(manifests.job(f"holder-{number}", gangs.namespace, pods=1,
                                 claim_templates=["one"], run_for=run_for,
                                 node_selector={"kubernetes.io/hostname": f"worker-{number}"})
                   for number, run_for in ((1, None), (3, "25s"))))
    for number in (1, 3):
        gangs.wait_ready(f"holder-{number}", 1)
    return cluster, gangs


def _gang(gangs, name, pods, **annotations):
    return manifests.job(name, gangs.namespace, pods=pods, queue="cards", claim_templates=["one"],
                         annotations={f"tallyman.dev/{key}-topology": value
                                      for key, value in annotations.items()})


def _nodes(gangs, name):
    return {pod["spec"].get("nodeName") for pod in gangs.pods(name)}


def _selector(gangs, name):
    return gangs.job(name)["spec"]["template"]["spec"].get("nodeSelector", {})


def test_a_gang_waits_for_one_rack(context):
    cluster, gangs = _given_racks(context)
    controller = context.controller(cluster=cluster)
    cluster.apply(
        manifests.resource_flavor("default",
                                  topology={"levels": [ZONE, RACK, "kubernetes.io/hostname"]}),
        manifests.queue("cards", {CLASS: "8"}))

    # six of eight are free, three in each rack
    gangs.create(_gang(gangs, "four", 4, required=RACK))
    message = gangs.wait_reason("four", "TopologyUnsatisfied")
    context.note(f"four: {message}")
    assert f"needs 4 {CLASS} in one rack; the emptiest, r1, has 3 free" in message, message
    gangs.create(_gang(gangs, "five", 5, required=RACK), _gang(gangs, "typo", 1, required="rak"))
    assert "has 4 even when it is empty" in gangs.wait_reason("five", "NeverFits")
    assert "no topology level" in gangs.wait_reason("typo", "NoMatchingFlavor")
    topology = gangs.status("four")["explanation"]["topology"]
    assert (topology["level"], topology["total"]) == (RACK, 2), topology

    # three fit into a rack: whole, and nowhere else
    gangs.create(_gang(gangs, "three", 3, required=RACK))
    gangs.wait_ready("three", 3)
    assert _nodes(gangs, "three") == {"worker-1", "worker-2"}, _nodes(gangs, "three")
    assert _selector(gangs, "three") == {ZONE: "a", RACK: "r1"}
    assert gangs.record("three")["topology"] == {"main": {ZONE: ["a"], RACK: ["r1"]}}

    # a new process knows the domain by the record, and takes it out again
    controller.stop()
    context.controller(cluster=cluster)
    gangs.wait_complete("holder-3")
    gangs.wait_ready("four", 4, 20)
    assert _nodes(gangs, "four") == {"worker-3", "worker-4"}, _nodes(gangs, "four")
    gangs.patch("three", {"spec": {"suspend": True}})
    gangs.wait_state("three", "Held")
    cluster.wait_for(lambda: gangs.record("three") is None, 20, "the record is gone")
    assert _selector(gangs, "three") == {}, _selector(gangs, "three")


def test_a_preferred_rack_keeps_nobody_waiting(context):
    cluster, gangs = _given_racks(context)
    context.controller(cluster=cluster)
    cluster.apply(manifests.resource_flavor("default", topology={"levels": [ZONE, RACK]}),
                  manifests.queue("cards", {CLASS: "8"}))
    gangs.create(_gang(gangs, "wide", 4, preferred=RACK))
    gangs.wait_ready("wide", 4)
    assert _selector(gangs, "wide") == {ZONE: "a"}, _selector(gangs, "wide")
    gangs.create(_gang(gangs, "narrow", 1, preferred=RACK))
    gangs.wait_ready("narrow", 1)
    assert RACK in _selector(gangs, "narrow")
