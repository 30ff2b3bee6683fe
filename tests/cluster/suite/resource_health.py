"""Devices that a pod's kubelet reports Unhealthy (status.containerStatuses[].allocatedResourcesStatus,
by the pods' status subresource): the gang that uses one stops whole, and starts on others."""

from lib import manifests
from lib.cluster import stays
from lib.gangs import Gangs

CLASS = "gpu.example.com"
PATCH = "application/strategic-merge-patch+json"


def _report(cluster, pod, health):
    """As its kubelet says it; the device that it is about."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    claim = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    claim = cluster.get_json(f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{claim}")
    result = claim["status"]["allocation"]["devices"]["results"][0]
    device = f"{result['driver']}/{result['pool']}/{result['device']}"
    answer = cluster.request(
        "PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}/status",
        {"status": {"containerStatuses": [{"name": "main", "allocatedResourcesStatus": [
            {"name": "claim:device-0", "resources": [{"resourceID": device, "health": health}]}]}]}},
        content_type=PATCH)
    kept = answer["status"]["containerStatuses"][0].get("allocatedResourcesStatus")
    assert kept, f"the server drops the field: {answer['status']}"
    return device


def test_a_device_that_a_pods_status_reports_stops_its_gang_whole(context):
    cluster = context.own_cluster(nodes=2, devices=2)
    gangs = Gangs(cluster, context.namespace_in(cluster))
    context.controller(cluster=cluster)
    cluster.apply(manifests.queue("cards", {CLASS: "4"}),
                  manifests.claim_template("one-gpu", gangs.namespace))
    gangs.create(manifests.job("train", gangs.namespace, queue="cards", pods=2,
                               claim_templates=["one-gpu"], spec={"backoffLimit": 6}))
    gangs.wait_ready("train", 2, 30)
    gangs.wait_state("train", "Running")
    names = {pod["metadata"]["name"] for pod in gangs.pods("train")}

    _report(cluster, gangs.pods("train")[0], "Unknown")
    stays(lambda: not gangs.is_suspended("train"), 2, "train running: Unknown is no failure")
    device = _report(cluster, gangs.pods("train")[0], "Unhealthy")
    cluster.wait_for(lambda: gangs.events("train", "DeviceUnhealthy"), 20, "the Event about it")
    note = gangs.events("train", "DeviceUnhealthy")[0]["note"]
    context.note(note)
    assert f"device {device} is reported Unhealthy" in note, note
    cluster.wait_for(lambda: not names & {pod["metadata"]["name"] for pod in gangs.pods("train")}, 30,
                     "all of its pods gone")
    status = gangs.status("train")
    assert status.get("evictions") == 1, status
    flavor = cluster.api.get_or_none("/apis/tallyman.dev/v1beta1/resourceflavors/default")
    out = [item.get("name") or item.get("device") for item in
           (flavor or {}).get("status", {}).get("devices", [])]
    context.note(f"out of use: {out}")
    # Three are left of four, and two are enough.
    cluster.wait_for(lambda: gangs.is_started("train") and gangs.ready("train") == 2, 30,
                     "train whole again")
