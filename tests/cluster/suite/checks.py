"""Clusters that grow: the admission check `provisioning` on a real API server, with an autoscaler
that this test plays; its CRD is provisioningrequests.yaml."""

import datetime
import pathlib

from lib import manifests
from lib.cluster import stays
from lib.gangs import Gangs

HERE = pathlib.Path(__file__).resolve().parents[1]
CRD = HERE / "provisioningrequests.yaml"
API = "/apis/autoscaling.x-k8s.io/v1"
CONSUME = "autoscaling.x-k8s.io/consume-provisioning-request"
CLASS_NAME = "check-capacity.autoscaling.x-k8s.io"
STATUS_PATCH = "application/merge-patch+json"


class Growing:
    """A node, a queue with the check, and an autoscaler's pencil."""

    def __init__(self, context, has_crd=True, is_audited=False, **spec):
        self.cluster = context.own_cluster(nodes=1, devices=0, is_audited=is_audited)
        if has_crd:
            self.serve_requests()
        self.namespace = context.namespace_in(self.cluster)
        self.gangs = Gangs(self.cluster, self.namespace)
        self.controller = context.controller(cluster=self.cluster)
        self.cluster.apply(
            manifests.resource_flavor("grown", {"pool": "grown"}),
            manifests.queue("grows", {"cpu": "4"}, flavor="grown",
                            admissionChecks=["provisioning"],
                            provisioning={"className": CLASS_NAME,
                                          "parameters": {"ValidUntilSeconds": "600"},
                                          "nodeSelectorFromDetails": {"example.com/made-for": "Key"}},
                            requeue={"base": "2s", "max": "1m"}, **spec))
        self.cluster.kubectl("label", "node", "worker-1", "pool=grown", "example.com/made-for=me")

    def serve_requests(self):
        self.cluster.kubectl("apply", "-f", CRD)
        self.cluster.kubectl("wait", "--for=condition=Established", "--timeout=20s", "-f", CRD)

    def job(self, name, **more):
        self.gangs.create(manifests.job(name, self.namespace, queue="grows", pods=2, cpu="1", **more))

    def requests(self, name=None):
        found = self.cluster.items(f"{API}/namespaces/{self.namespace}/provisioningrequests")
        return [item for item in found
                if name is None or item["metadata"]["ownerReferences"][0]["name"] == name]

    def wait_request(self, name, other_than=None, timeout_s=20):
        def one():
            found = self.requests(name)
            return found[0] if len(found) == 1 and found[0]["metadata"]["name"] != other_than else None

        self.cluster.wait_for(one, timeout_s, f"one ProvisioningRequest of {name} other than {other_than}")
        return one()

    def say(self, request, condition, message, status="True", details=None):
        """What an autoscaler writes."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        name = request["metadata"]["name"]
        path = f"{API}/namespaces/{self.namespace}/provisioningrequests/{name}"
        before = self.cluster.get_json(path).get("status", {}).get("conditions", [])
        conditions = [item for item in before if item["type"] != condition]
        conditions.append({"type": condition, "status": status, "reason": "Test", "message": message,
                           "lastTransitionTime": now})
        body = {"status": {"conditions": conditions}}
        if details:
            body["status"]["provisioningClassDetails"] = details
        self.cluster.request("PATCH", f"{path}/status", body, STATUS_PATCH)

    def provision(self, request):
        self.say(request, "Provisioned", "capacity is found", details={"Key": "me"})

    def message(self, name):
        return self.gangs.status(name).get("message", "")


def test_room_is_asked_for_and_used(context):
    grows = Growing(context)
    gangs = grows.gangs
    grows.job("train", pod_spec={"volumes": [{"name": "scratch", "emptyDir": {}}]})
    request = grows.wait_request("train")
    gangs.wait_reason("train", "WaitingForCheck")
    assert gangs.status("train")["state"] == "Reserved", gangs.status("train")
    spec = request["spec"]
    assert spec["provisioningClassName"] == CLASS_NAME, spec
    assert spec["parameters"] == {"ValidUntilSeconds": "600"}, spec
    assert [item["count"] for item in spec["podSets"]] == [2], spec
    template = grows.cluster.get_json(
        f"/api/v1/namespaces/{grows.namespace}/podtemplates/{spec['podSets'][0]['podTemplateRef']['name']}")
    pod = template["template"]["spec"]
    job = grows.cluster.job(grows.namespace, "train")
    assert pod["nodeSelector"] == {"pool": "grown"}, pod
    assert pod["volumes"] == [{"name": "scratch", "emptyDir": {}}], "more than what Tallyman reads"
    assert pod["containers"] == job["spec"]["template"]["spec"]["containers"], pod
    for item in (template, request):
        owner = item["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["uid"]) == ("Job", job["metadata"]["uid"]), owner

    grows.say(request, "Provisioned", "2 of 3 nodes are up", status="False")
    grows.cluster.wait_for(lambda: "2 of 3 nodes are up" in grows.message("train"), 10,
                           "its Admission quotes the request")
    stays(lambda: gangs.is_suspended("train"), 1, "train waiting")
    grows.provision(request)
    gangs.wait_ready("train", 2)
    for item in gangs.pods("train"):
        assert item["metadata"]["annotations"][CONSUME] == request["metadata"]["name"], item
        assert item["spec"]["nodeSelector"]["example.com/made-for"] == "me", item

    grows.cluster.kubectl("-n", grows.namespace, "delete", "job", "train")
    grows.cluster.wait_for(lambda: not grows.requests("train"), 30, "the request goes with its Job")


def test_failure_is_tried_again(context):
    grows = Growing(context)
    gangs = grows.gangs
    grows.job("train")
    first = grows.wait_request("train")
    grows.job("next", run_for="2s")
    gangs.wait_reason("next", "WaitingForCheck")
    grows.say(first, "Failed", "no machines in zone b")
    second = grows.wait_request("train", other_than=first["metadata"]["name"])
    grows.say(second, "Failed", "still none")
    gangs.wait_reason("train", "Backoff")
    assert "still none" in grows.message("train"), grows.message("train")
    third = grows.wait_request("train", other_than=second["metadata"]["name"])
    grows.provision(third)
    gangs.wait_ready("train", 2)


def test_a_restart_asks_nobody_twice(context):
    grows = Growing(context)
    gangs = grows.gangs
    grows.job("train")
    request = grows.wait_request("train")
    for _ in range(2):
        grows.controller.restart(is_killed=True)
        gangs.wait_state("train", "Reserved")
        stays(lambda: [item["metadata"]["uid"] for item in grows.requests()]
              == [request["metadata"]["uid"]], 1, "the one request")
    grows.controller.kill9()
    grows.provision(request)
    grows.controller.start()
    gangs.wait_ready("train", 2)
    grows.controller.restart(is_killed=True)
    stays(lambda: not gangs.is_suspended("train"), 1, "train running")
    assert len(grows.requests()) == 1, grows.requests()
    writes = [event for event in grows.cluster.items(
        f"/apis/events.k8s.io/v1/namespaces/{grows.namespace}/events")
              if event["reason"] == "ProvisioningRequested"]
    assert len(writes) == 1, writes


def test_revoked_capacity_stops_the_gang_whole(context):
    grows = Growing(context)
    gangs = grows.gangs
    grows.job("train")
    request = grows.wait_request("train")
    grows.provision(request)
    gangs.wait_ready("train", 2)
    gangs.wait_state("train", "Running")
    grows.say(request, "CapacityRevoked", "spot nodes were taken back")
    again = grows.wait_request("train", other_than=request["metadata"]["name"])
    assert gangs.is_suspended("train")
    annotations = grows.cluster.job(grows.namespace, "train")["spec"]["template"]["metadata"].get(
        "annotations", {})
    assert CONSUME not in annotations, annotations
    assert gangs.status("train")["evictions"] == 1, gangs.status("train")
    grows.provision(again)
    gangs.wait_ready("train", 2)


def test_the_kind_may_come_and_go(context):
    grows = Growing(context, has_crd=False)
    gangs = grows.gangs
    grows.job("train")
    gangs.wait_reason("train", "WaitingForCheck")
    assert gangs.status("train")["state"] == "Pending", gangs.status("train")
    assert "doesn't serve provisioningrequests" in grows.message("train"), grows.message("train")
    queue = grows.cluster.get_json("/apis/tallyman.dev/v1beta1/queues/grows")
    ready = {item["type"]: item for item in queue["status"]["conditions"]}["Ready"]
    assert ready["reason"] == "AdmissionCheckUnavailable", ready

    grows.serve_requests()
    gangs.wait_state("train", "Reserved", 60)
    grows.wait_request("train")

    grows.cluster.kubectl("delete", "-f", CRD)
    grows.cluster.wait_for(lambda: "doesn't serve" in grows.message("train"), 90,
                           "the kind's end is noticed")
    assert gangs.status("train")["state"] == "Pending", gangs.status("train")
    grows.serve_requests()
    grows.provision(grows.wait_request("train", timeout_s=90))
    gangs.wait_ready("train", 2)
