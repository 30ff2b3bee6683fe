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
