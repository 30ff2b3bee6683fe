"""Extended resources that a DeviceClass serves, and devices of servers that only have older APIs."""

from lib import manifests
from lib.gangs import Gangs

CLASS = "gpu.example.com"
NAME = "example.com/gpu"
IMPLICIT = f"deviceclass.resource.kubernetes.io/{CLASS}"


def offer_by_plugin(cluster, node, count):
    """What a device plugin would write into the node's status."""
    amount = {NAME: str(count)}
    cluster.request("PATCH", f"/api/v1/nodes/{node}/status",
                    {"status": {"allocatable": amount, "capacity": amount}})


def name_the_class(cluster):
    cluster.request("PATCH", f"/apis/resource.k8s.io/v1/deviceclasses/{CLASS}",
                    {"spec": {"extendedResourceName": NAME}})


def test_an_extended_resource_is_served_by_plugin_or_by_devices(context):
    """worker-1 has a plugin's 2 (and a slice with the same 2), worker-2 has 2 devices: 4 in all."""
    cluster = context.own_cluster(nodes=2, devices=2)
    namespace = context.namespace_in(cluster)
    gangs = Gangs(cluster, namespace)
    name_the_class(cluster)
    offer_by_plugin(cluster, "worker-1", 2)
    context.controller(cluster=cluster)
    cluster.apply(manifests.queue("cards", {CLASS: "9", "cpu": "8"}))

    gangs.create(manifests.job("five", namespace, queue="cards", pods=5, extended={NAME: 1}))
    message = gangs.wait_reason("five", "NeverFits")
    assert f"needs 5 {NAME} at once, and all nodes that it may use have 4 together" in message, message
    gangs.create(manifests.job("four", namespace, queue="cards", pods=4, extended={NAME: 1}))
    gangs.wait_ready("four", 4)
    made = [claim["metadata"]["annotations"].get("resource.kubernetes.io/extended-resource-claim")
            for claim in cluster.items(f"/apis/resource.k8s.io/v1/namespaces/{namespace}"
                                       "/resourceclaims")]
    assert made == ["true", "true"], f"kube-scheduler made claims for two of the pods: {made}"
    gangs.wait_used("cards", CLASS, "4")
    assert set(gangs.record("four")["podSets"][0]["flavors"]) >= {NAME}

    gangs.create(manifests.job("implicit", namespace, queue="cards", pods=1,
                               extended={IMPLICIT: 1}))
    gangs.wait_ready("implicit", 1)  # the slice of worker-1 has two, which the plugin doesn't serve
    gangs.wait_used("cards", CLASS, "5")
    context.note(message)


def beta(kind, name, spec, namespace=None):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "resource.k8s.io/v1beta1", "kind": kind, "metadata": metadata,
            "spec": spec}


def test_devices_of_a_server_that_has_the_first_beta_only(context):
    """kube-scheduler 1.37 doesn't allocate without v1, so nothing is placed here: what is seen is
    that the controller counts what such a server shows."""
    cluster = context.own_cluster(
        nodes=1, devices=0,
        runtime_config="api/all=true,resource.k8s.io/v1=false,resource.k8s.io/v1beta2=false")
    namespace = context.namespace_in(cluster)
    gangs = Gangs(cluster, namespace)
    selector = [{"cel": {"expression": f"device.driver == '{CLASS}'"}}]
    cluster.apply(manifests.to_yaml(
        beta("DeviceClass", CLASS, {"selectors": selector}),
        beta("ResourceSlice", "worker-1-cards", {
            "driver": CLASS, "nodeName": "worker-1",
            "pool": {"name": "worker-1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"g{index}", "basic": {"attributes": {"index": {"int": index}}}}
                        for index in range(2)]}),
        beta("ResourceClaimTemplate", "one", {"spec": {"devices": {"requests": [
            {"name": "gpu", "deviceClassName": CLASS}]}}}, namespace)))
    context.controller(cluster=cluster)
    cluster.apply(manifests.queue("cards", {CLASS: "9", "cpu": "8"}))
    gangs.create(manifests.job("three", namespace, queue="cards", pods=3, claim_templates=["one"]))
    message = gangs.wait_reason("three", "NeverFits")
    assert f"needs 3 {CLASS} at once, and all nodes that it may use have 2 together" in message, message
    gangs.create(manifests.job("two", namespace, queue="cards", pods=2, claim_templates=["one"]))
    gangs.wait_started("two")
    gangs.wait_used("cards", CLASS, "2")
