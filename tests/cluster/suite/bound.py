"""Pods that name their node (spec.nodeName): kube-scheduler passes over them, Tallyman judges that node."""

from lib import manifests
from lib.cluster import stays
from lib.gangs import Gangs

CLASS = "gpu.example.com"


def _bound(gangs, name, queue, node, **more):
    return manifests.job(name, gangs.namespace, queue=queue, pod_spec={"nodeName": node}, **more)


def _claims(cluster, namespace):
    path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
    return cluster.items(path)


def test_a_gang_that_names_its_node_starts_there_cordoned_or_not_and_only_if_all_of_it_fits(context):
    cluster = context.own_cluster(nodes=2)
    gangs = Gangs(cluster, context.namespace_in(cluster))
    context.controller(cluster=cluster)
    queue = context.name("q")
    context.apply(manifests.queue(queue, {"cpu": "64"}), cluster=cluster)
    cluster.kubectl("cordon", "worker-1")
    gangs.create(_bound(gangs, "too-many", queue, "worker-1", pods=2, cpu="5"),
                 _bound(gangs, "astray", queue, "worker-9", pods=1),
                 _bound(gangs, "fits", queue, "worker-1", pods=2, cpu="3"))
    gangs.wait_ready("fits", 2, 10)
    message = gangs.wait_reason("too-many", "NeverFits")
    assert "needs 10 cpu at once, and the one node for all its pods has 8" in message, message
    message = gangs.wait_reason("astray", "MissingReference")
    assert message.endswith("spec.template.spec.nodeName: there is no node worker-9"), message
    gangs.create(_bound(gangs, "later", queue, "worker-1", pods=1, cpu="5"))
    gangs.wait_reason("later", "NodesFull")
    cluster.kubectl("delete", "job", "fits", "-n", gangs.namespace)
    gangs.wait_ready("later", 1, 10)


def test_kube_scheduler_allocates_nothing_for_pods_that_name_their_node(context):
    cluster = context.own_cluster(nodes=1)
    gangs = Gangs(cluster, context.namespace_in(cluster))
    context.controller(cluster=cluster)
    queue = context.name("q")
    context.apply(manifests.queue(queue, {"cpu": "64", CLASS: "2"}), cluster=cluster)
    cluster.apply(manifests.claim_template("one-gpu", gangs.namespace))
    gangs.create(_bound(gangs, "plain", None, "worker-1", pods=1, claim_templates=["one-gpu"]),
                 _bound(gangs, "queued", queue, "worker-1", pods=1, claim_templates=["one-gpu"]))
    message = gangs.wait_reason("queued", "NeverFits")
    assert "nodeSelector kubernetes.io/hostname: worker-1" in message, message
    cluster.wait_for(lambda: len(_claims(cluster, gangs.namespace)) == 1, what="the pod's claim")
    stays(lambda: all("allocation" not in claim.get("status", {})
                      for claim in _claims(cluster, gangs.namespace)), 5, "no allocation")
    gangs.create(manifests.job("selected", gangs.namespace, queue=queue, pods=1,
                               claim_templates=["one-gpu"],
                               node_selector={"kubernetes.io/hostname": "worker-1"}))
    gangs.wait_ready("selected", 1, 10)
