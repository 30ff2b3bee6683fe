"""That the harness itself does what the other tests rely on."""

import os
import pathlib
import socket
import ssl
import subprocess
import sys
import textwrap
import time

from lib import fixtures, manifests, paths
from lib.api import Api, ApiError, WatchLost
from lib.plane import load, stop, sweep
from lib.process import Process

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def test_nodes_are_ready_and_devices_published(context):
    cluster = context.cluster
    nodes = {node["metadata"]["name"]: node for node in cluster.items("/api/v1/nodes")}
    assert sorted(nodes) == ["worker-1", "worker-2", "worker-3"]
    for name, node in nodes.items():
        assert fixtures.is_node_ready(node), f"{name}: {node['status']['conditions']}"
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == name
        assert node["status"]["allocatable"]["cpu"] == "8"
    devices = [(item["spec"]["pool"]["name"], device["name"])
               for item in cluster.items("/apis/resource.k8s.io/v1/resourceslices")
               for device in item["spec"]["devices"]]
    assert sorted(devices) == [(name, f"gpu-{index}") for name in sorted(nodes) for index in (0, 1)]
    version = cluster.get_json("/version")
    assert (version["major"], version["minor"]) == ("1", "37"), version
    assert version["gitVersion"].startswith("v1.37."), version


def test_pod_runs_for_as_long_as_its_annotation_says(context):
    cluster, namespace = context.cluster, context.namespace
    with cluster.watch(f"/api/v1/namespaces/{namespace}/pods") as watch:
        cluster.apply(manifests.job("brief", namespace, pods=1, run_for="2s"),
                      manifests.job("endless", namespace, pods=1))
        started, ended, is_touched = None, None, False
        deadline = time.monotonic() + 20
        while ended is None and time.monotonic() < deadline:
            event = watch.next(0.1)
            if started and not is_touched and time.monotonic() > started + 1:
                is_touched = True  # an edit must not start the pod's time anew
                cluster.kubectl("annotate", "-n", namespace, "pod", "--all",
                                "example.com/touched=yes")
            if event is None or "brief" not in event[1]["metadata"]["name"]:
                continue
            phase = event[1]["status"]["phase"]
            if phase == "Running" and started is None:
                started = time.monotonic()
            elif phase == "Succeeded":
                ended = time.monotonic()
    phases = [item["status"]["phase"] for _, item in watch.seen]
    assert ended and is_touched, f"the pods' phases were: {phases}"
    assert 1.8 < ended - started < 2.7, f"ran for {ended - started:.2f} s, not 2 s"
    cluster.wait_for(lambda: cluster.has_condition(namespace, "brief", "Complete"), 20,
                     "Job brief Complete")
    assert cluster.job(namespace, "endless")["status"]["ready"] == 1


def test_pod_fails_with_the_exit_code_asked_for(context):
    cluster, namespace = context.cluster, context.namespace
    cluster.apply(manifests.job("broken", namespace, pods=1, run_for="100ms",
                                pod_annotations={"example.com/exit-code": "3"}))
    cluster.wait_for(lambda: cluster.has_condition(namespace, "broken", "Failed"), 20,
                     "Job broken Failed")
    state = cluster.pods(namespace, "broken")[0]["status"]["containerStatuses"][0]["state"]
    assert state["terminated"]["exitCode"] == 3, state


def test_pod_that_never_gets_ready_stays_pending(context):
    cluster, namespace = context.cluster, context.namespace
    cluster.apply(manifests.job("stuck", namespace, pods=1,
                                pod_annotations={"example.com/never-ready": "true"}))

    def waiting_reason():
        for pod in cluster.pods(namespace, "stuck"):
            for status in pod["status"].get("containerStatuses", []):
                assert pod["status"]["phase"] == "Pending", pod["status"]["phase"]
                return status["state"]["waiting"]["reason"]
        return None

    assert cluster.wait_for(waiting_reason, 15, "a waiting container") == "ContainerCreating"
    # The annotation goes, and the pod starts.
    cluster.kubectl("annotate", "-n", namespace, "pod", "-l", "batch.kubernetes.io/job-name=stuck",
                    "example.com/never-ready-")
    cluster.wait_for(lambda: cluster.job(namespace, "stuck")["status"].get("ready") == 1, 15,
                     "the pod Ready after all")


def test_deleted_pod_holds_on_for_as_long_as_asked(context):
    cluster, namespace = context.cluster, context.namespace
    cluster.apply(manifests.claim_template("one-gpu", namespace),
                  manifests.job("slow", namespace, pods=1, claim_templates=["one-gpu"],
                                pod_annotations={"example.com/stop-for": "2s"}))
    cluster.wait_for(lambda: cluster.job(namespace, "slow")["status"].get("ready") == 1, 20,
                     "the pod Ready")
    started = time.monotonic()
    cluster.request("PATCH", f"/apis/batch/v1/namespaces/{namespace}/jobs/slow",
                    {"spec": {"suspend": True}})
    cluster.wait_for(lambda: cluster.has_condition(namespace, "slow", "Suspended"), 10, "Suspended")
    assert len(cluster.devices_held(namespace)) == 1, "a terminating pod still holds its device"
    cluster.wait_for(lambda: not cluster.pods(namespace, "slow"), 10, "the pod gone")
    assert 1.5 < time.monotonic() - started < 4.5, f"gone after {time.monotonic() - started:.2f} s"
    cluster.wait_for(lambda: not cluster.devices_held(namespace), 5, "the device free")
    assert not cluster.has_condition(namespace, "slow", "Failed"), "a suspension is no failure"


def test_broken_node_turns_not_ready_and_recovers(context):
    cluster = context.cluster

    def is_ready():
        return fixtures.is_node_ready(cluster.get_json("/api/v1/nodes/worker-3"))

    context.defer(cluster.wait_for, is_ready, 30, "worker-3 Ready again")
    context.defer(cluster.kubectl, "annotate", "node", "worker-3", "example.com/broken-")
    cluster.kubectl("annotate", "node", "worker-3", "example.com/broken=true")
    cluster.wait_for(lambda: not is_ready(), 15, "worker-3 NotReady")
    cluster.wait_for(lambda: any(
        taint["key"] == "node.kubernetes.io/not-ready" for taint in
        cluster.get_json("/api/v1/nodes/worker-3")["spec"].get("taints", [])), 15, "its taint")


def test_service_account_has_only_the_rights_it_was_given(context):
    cluster, namespace = context.cluster, context.namespace
    pods = f"/api/v1/namespaces/{namespace}/pods"
    cluster.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts",
                    {"metadata": {"name": "reader"}})
    token = cluster.service_account_token(namespace, "reader")

    def status(path, token_=token):
        try:
            cluster.request("GET", path, token=token_)
            return 200
        except ApiError as error:
            return error.status

    assert status(pods, "not-a-token") == 401
    assert status(pods) == 403
    cluster.request("POST", f"{RBAC}/namespaces/{namespace}/roles", {
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]})
    cluster.request("POST", f"{RBAC}/namespaces/{namespace}/rolebindings", {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}]})
    cluster.wait_for(lambda: status(pods) == 200, 10, "the right takes effect")
    assert status("/api/v1/nodes") == 403
    kubeconfig = cluster.service_account_kubeconfig(namespace, "reader")
    assert kubeconfig.stat().st_mode & 0o077 == 0, "a file with a token is its owner's alone"
    cluster.kubectl("get", "pods", "-n", namespace, kubeconfig=kubeconfig)
    answer = cluster.kubectl("get", "nodes", kubeconfig=kubeconfig, check=False)
    assert "Forbidden" in answer.stderr, answer.stderr
    assert f"system:serviceaccount:{namespace}:reader" in answer.stderr


def test_tls_is_verified(context):
    plane = context.cluster.plane
    with socket.create_connection(("127.0.0.1", plane.data["port"]), 5) as plain:
        try:
            ssl.create_default_context().wrap_socket(plain, server_hostname="127.0.0.1")
            raise AssertionError("the system's CAs vouch for the test server")
        except ssl.SSLCertVerificationError:
            pass
    certificate = plane.directory / "client-certificate.kubeconfig"
    who = context.cluster.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}",
                                  kubeconfig=certificate).stdout
    assert who == "admin", f"the client certificate's user: {who}"


def test_audit_log_counts_the_writes_of_a_user(context):
    cluster, namespace = context.cluster, context.namespace
    if cluster.plane.audit_log is None:
        context.skip("this cluster keeps no audit log")
    since = cluster.audit_position()
    for number in range(3):
        cluster.request("POST", f"/api/v1/namespaces/{namespace}/configmaps",
                        {"metadata": {"name": f"note-{number}"}})
    cluster.items(f"/api/v1/namespaces/{namespace}/configmaps")
    writes = [event for event in cluster.audit_events("admin", writes_only=True, since=since)
              if event["objectRef"].get("namespace") == namespace]
    assert [event["verb"] for event in writes] == ["create"] * 3, writes
    assert cluster.audit_events("nobody", since=since) == []


def _is_open(port):
    try:
        socket.create_connection(("127.0.0.1", port), 2).close()
        return True
    except ConnectionRefusedError:
        return False


def test_a_watch_goes_on_where_its_stream_ended(context):
    cluster, path = context.cluster, f"/api/v1/namespaces/{context.namespace}/configmaps"

    def create(name):
        cluster.request("POST", path, {"metadata": {"name": name}})

    def names(watch):
        return [item["metadata"]["name"] for _, item in watch.seen]

    create("first")
    with cluster.watch(path) as watch:
        cluster.wait_for(lambda: "first" in names(watch), 10, "the present object")
        watch._socket.shutdown(socket.SHUT_RDWR)
        create("second")
        cluster.wait_for(lambda: "second" in names(watch), 10, "the event after the cut")
        assert watch.reconnects == 1 and names(watch).count("first") == 1, names(watch)
    assert not watch._thread.is_alive()

    with cluster.watch(path) as lost:
        cluster.wait_for(lambda: "second" in names(lost), 10, "the present objects")
        lost._resource_version = "none"  # the server can't go on from there
        lost._socket.shutdown(socket.SHUT_RDWR)
        try:
            for _ in lost:
                pass
        except WatchLost as error:
            assert "from resourceVersion none" in str(error), error
        else:
            raise AssertionError("a watch that can't go on ended as if it had been closed")


def test_a_second_cluster_side_by_side_goes_without_a_trace(context):
    first = context.cluster
    second = context.own_cluster(nodes=1, devices=130, labels=["rack=r1", "worker-1:zone=z1"],
                                 cpu="2500m", gates="GenericWorkload=true,WorkloadWithJob=true")
    processes = [Process(item.name, item.pid, item.started) for item in second.plane.processes]
    assert len(first.items("/api/v1/nodes")) == 3
    nodes = second.items("/api/v1/nodes")
    assert len(nodes) == 1 and nodes[0]["status"]["allocatable"]["cpu"] == "2500m"
    assert {"rack": "r1", "zone": "z1"}.items() <= nodes[0]["metadata"]["labels"].items()
    slices = second.items("/apis/resource.k8s.io/v1/resourceslices")
    assert sorted(len(item["spec"]["devices"]) for item in slices) == [2, 128]
    groups = [group["name"] for group in second.get_json("/apis")["groups"]]
    assert "scheduling.k8s.io" in groups
    foreign = Api(second.plane.data["port"], second.plane.directory / "pki" / "ca.crt",
                  first.plane.data["token"])
    answer = foreign.exchange("GET", "/api/v1/nodes")
    assert answer[0] == 401, "the first one's token is worth nothing here"

    directory, ports = second.plane.directory, second.plane.ports
    assert len(processes) == 5 and all(item.is_alive() for item in processes)
    assert len(ports) == 3 and all(_is_open(port) for port in ports)
    second.stop()
    assert not any(item.is_alive() for item in processes)
    assert not any(_is_open(port) for port in ports)
    assert not directory.exists() and load(second.options.name) is None
    assert len(first.items("/api/v1/nodes")) == 3, "the other one goes on"


def test_a_component_that_ends_at_start_is_named_with_its_log(context):
    name = f"bad-gate-{os.getpid()}"
    context.defer(stop, name)
    result = subprocess.run(
        [paths.SUITE_DIR / "cluster", "up", "--name", name, "--gates", "NoSuchGate=true"],
        capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "kube-apiserver ended" in result.stderr, result.stderr
    assert "NoSuchGate" in result.stderr, result.stderr
    assert not any(item.is_alive() for item in load(name).processes)


def test_a_cluster_whose_owner_was_killed_is_swept_away(context):
    name = f"orphan-{os.getpid()}"
    context.defer(stop, name)
    script = ("import os, sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); "
              "from lib.cluster import Cluster; Cluster(name=sys.argv[2], nodes=1).start(); "
              "os.kill(os.getpid(), 9)")
    result = subprocess.run([sys.executable, "-c", script, paths.SUITE_DIR, name], check=False)
    assert result.returncode == -9
    orphan = load(name)
    assert orphan.is_complete(), "the components outlive the one who started them"
    sweep()
    assert load(name) is None and not any(item.is_alive() for item in orphan.processes)
    assert context.cluster.plane.is_complete(), "a cluster that is in use stays"


def test_the_runner_reports_a_failure(context):
    suite = pathlib.Path(context.session.scratch) / "red"
    suite.mkdir()
    (suite / "red.py").write_text(textwrap.dedent("""
        def test_right(context):
            context.note("seen")
        def test_wrong(context):
            assert 1 + 1 == 3, "the sum"
        def test_untidy(context):
            context.defer(lambda: 1 / 0)
        def test_absent(context):
            context.skip("no such thing here")
    """), encoding="utf-8")
    result = subprocess.run([sys.executable, paths.SUITE_DIR / "run", "--suite", suite],
                            capture_output=True, text=True, check=False)
    assert result.returncode == 1, result
    lines = result.stdout.splitlines()
    assert lines[-1] == "1 passed, 2 failed, 1 skipped", result.stdout
    assert lines[0].startswith("ok    red.test_right") and lines[1].strip() == "seen"
    assert "FAIL  red.test_wrong" in result.stdout and "AssertionError: the sum" in result.stdout
    assert "ZeroDivisionError" in result.stdout
    nothing = subprocess.run([sys.executable, paths.SUITE_DIR / "run", "--suite", suite, "--only",
                              "nowhere"], capture_output=True, text=True, check=False)
    assert nothing.returncode == 1 and nothing.stdout == "0 passed, 0 failed\n", nothing


def test_yaml_text_means_what_the_objects_mean(context):
    tricky = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "tricky", "namespace": context.namespace,
        "annotations": {"example.com/empty": "", "on": "no"}},
        "data": {"a": "1e3", "b": "0x10", "c": "null", "d": "- x", "e": "two\nlines", "f": "ü: #1",
                 "g": "~", "h": "12:30:45", "i": " padded ", "j": "*ref", "k": "2026-11-29"}}
    context.cluster.apply(tricky)
    seen = context.cluster.get_json(
        f"/api/v1/namespaces/{context.namespace}/configmaps/tricky")
    assert seen["data"] == tricky["data"], seen["data"]
    assert tricky["metadata"]["annotations"].items() <= seen["metadata"]["annotations"].items()
