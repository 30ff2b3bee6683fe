"""One controller's small world: some nodes with two devices each, a namespace, objects of its own,
and a proxy that shows it nothing else. Many stand side by side in one cluster."""

import contextlib
import pathlib
import shutil
import subprocess
import threading
import time

from lib import manifests, plane as plane_module
from lib.cluster import wait_for
from lib.controller import Controller
from lib.fixtures import DRIVER
from lib.gangs import Gangs

from .relay import Relay
from .rules import PlanRules
from .view import PLAN_LABEL, WORLD_LABEL, View
from .witness import Witness

NODES = 3                # of each world
STEP_S, READY_S = 60, 120    # on a machine that is busy with many of them
RACK = "example.com/rack"
ZONE = "topology.kubernetes.io/zone"
LEASE_RULES = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                "verbs": ["create", "get", "update"]}]


class PatientGangs(Gangs):
    """On a machine that plays many worlds at once every step may take its time."""

    def _wait(self, name, predicate, timeout_s, what):
        super()._wait(name, predicate, max(timeout_s, STEP_S), what)


def prepare(cluster, count):
    """Marks the cluster's nodes and slices as those of `count` worlds: three nodes each, of which
    two are in rack r1 and one in r2."""
    for number in range(count * NODES):
        node = f"worker-{number + 1}"
        labels = {WORLD_LABEL: f"w{number // NODES}", ZONE: "a",
                  RACK: "r2" if number % NODES == NODES - 1 else "r1"}
        cluster.request("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})
        cluster.request("PATCH", f"/apis/resource.k8s.io/v1/resourceslices/{node}-{DRIVER}-0",
                        {"metadata": {"labels": {WORLD_LABEL: labels[WORLD_LABEL]}}})
    for name, value in (("low", 100), ("high", 10000)):
        cluster.apply(manifests.priority_class(name, value))


class World:
    """What a story is told in. `kubeconfig_token` is the controller's own ServiceAccount's."""

    def __init__(self, cluster, token, binary, directory, name, world, plan=None, has_lease=False):
        self.cluster, self.token, self.binary = cluster, token, binary
        self.directory = pathlib.Path(directory) / name
        self.namespace, self.world, self.plan = name, world, plan
        self.gangs = PatientGangs(cluster, name)
        self.queues, self.cluster_objects = [], []
        # A lease that a busy machine renews too late ends a controller: one story has it, for its writes.
        self.arguments = ["--lease-namespace", name] if has_lease else ["--no-leader-election"]
        self.rules = PlanRules(View(name, world), plan, self._killed)
        self.controller = self.proxy = self.witness = None
        self.restart_error = None
        self._restarted = threading.Event()
        self._cleanup = contextlib.ExitStack()

    # ---- what stories use ----

    def add(self, *objects):
        """Creates cluster-wide objects of this world alone."""
        paths = {"Queue": "/apis/tallyman.dev/v1beta1/queues",
                 "Cohort": "/apis/tallyman.dev/v1beta1/cohorts",
                 "ResourceFlavor": "/apis/tallyman.dev/v1beta1/resourceflavors",
                 "DeviceTaintRule": "/apis/resource.k8s.io/v1/devicetaintrules"}
        for item in objects:
            item["metadata"].setdefault("labels", {})[PLAN_LABEL] = self.namespace
            path = paths[item["kind"]]
            self.cluster.request("POST", path, item)
            self.cluster_objects.append(f"{path}/{item['metadata']['name']}")

    def own(self, name):
        return f"{name}-{self.namespace}"

    def node(self, number):
        """Its first, second or third node."""
        return f"worker-{int(self.world[1:]) * NODES + number}"

    def flavor(self, **spec):
        """The one flavor of this world: its nodes."""
        self.add(manifests.resource_flavor(self.own("f"), {WORLD_LABEL: self.world}, **spec))

    def queue(self, name, quotas, **spec):
        self.add(manifests.queue(self.own(name), quotas, flavor=self.own("f"), **spec))
        self.queues.append(self.own(name))

    def template(self, name="one", count=1):
        self.cluster.request(
            "POST", f"/apis/resource.k8s.io/v1/namespaces/{self.namespace}/resourceclaimtemplates",
            manifests.claim_template(name, self.namespace, count))

    def job(self, name, pods, queue="q", templates=("one",), **more):
        labels = dict(more.pop("labels", {}))
        if "priority" in more:
            labels["tallyman.dev/priority-class"] = more.pop("priority")
        self.gangs.create(manifests.job(
            name, self.namespace, pods=pods, queue=self.own(queue) if queue else None,
            claim_templates=list(templates), labels=labels, **more))

    def finish(self, *names):
        """Its pods end well, now, as their kubelet would say it."""
        for name in names:
            for pod in self.gangs.pods(name):
                self.cluster.request(
                    "PATCH", f"/api/v1/namespaces/{self.namespace}/pods/"
                    f"{pod['metadata']['name']}/status", {"status": {"phase": "Succeeded"}})
        for name in names:
            self.gangs.wait_complete(name)

    # ---- life ----

    def open(self):
        namespace = manifests.namespace(self.namespace)
        self.cluster.request("POST", "/api/v1/namespaces", namespace)
        rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self.namespace}"
        self.cluster.request("POST", f"{rbac}/roles", {"metadata": {"name": "lease"},
                                                       "rules": LEASE_RULES})
        self.cluster.request("POST", f"{rbac}/rolebindings", {
            "metadata": {"name": "lease"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "lease"},
            "subjects": [{"kind": "ServiceAccount", "name": "tallyman",
                          "namespace": "tallyman-system"}]})
        self.directory.mkdir(parents=True)
        pki = self.cluster.plane.directory / "pki"
        self.proxy = Relay(self.cluster.plane.data["port"], pki / "ca.crt", pki / "server.crt",
                           pki / "server.key", self.rules).start()
        self._cleanup.callback(self.proxy.stop)
        kubeconfig = self.directory / "kubeconfig"
        plane_module.write_kubeconfig(kubeconfig, f"https://127.0.0.1:{self.proxy.port}",
                                      pki / "ca.crt", {"token": self.token})
        self.controller = Controller(self.binary, kubeconfig, self.directory / "store",
                                     self.directory / "controller.log",
                                     self.arguments)
        self._cleanup.callback(self.controller.kill9)
        self.witness = Witness(self.cluster, self.namespace)
        self._cleanup.callback(self.witness.close)
        self.controller.start(is_ready_awaited=False)
        try:
            self.controller.wait_ready(READY_S)
        except AssertionError:
            if not self.rules.fired.is_set():
                raise
            self.wait_restarted()  # killed at one of its first writes, before it was ready

    def _killed(self):
        """Called on the proxy's loop at the planned write: it must not live a moment longer."""
        self.controller.process.kill()
        threading.Thread(target=self._restart, name=f"restart {self.namespace}").start()

    def _restart(self):
        try:
            self.controller.kill9()
            if self.plan.store == "lost":
                shutil.rmtree(self.controller.store, ignore_errors=True)
            if self.plan.what == "stale":
                self.rules.show_older_state()
            self.controller.start(is_ready_awaited=False)
        except Exception as error:
            self.restart_error = error
        self._restarted.set()

    def wait_restarted(self):
        if self.rules.fired.is_set() and self.plan.what != "hidden":
            self._restarted.wait(READY_S)
            if self.restart_error:
                raise self.restart_error
            self.controller.wait_ready(READY_S)

    def replay(self):
        """Stops the controller and feeds its journal to the core again; what differs, or ""."""
        self.wait_restarted()
        self.controller.finish()
        result = subprocess.run([str(self.binary), "replay", str(self.controller.store)],
                                capture_output=True, text=True, timeout=120, check=False)
        return "" if result.returncode == 0 else \
            f"tallyman replay: status {result.returncode}: {(result.stdout + result.stderr)[-800:]}"

    def clear(self):
        """Empties the world for the next story; the controller still runs and lets go of what it
        holds."""
        self.cluster.clear_namespace_objects(self.namespace)
        for path in reversed(self.cluster_objects):
            self.cluster.api.exchange("DELETE", path)
        wait_for(lambda: not any(self.cluster.api.get_or_none(path)
                                 for path in self.cluster_objects), 15,
                 f"the queues of {self.namespace} gone, their finalizers taken off")

    def close(self):
        self._cleanup.close()
        for path in self.cluster_objects:    # where the controller couldn't
            with contextlib.suppress(Exception):
                self.cluster.request("PATCH", path, {"metadata": {"finalizers": None}})
                self.cluster.api.exchange("DELETE", path)

    def wait_quiet(self, since, quiet_s, checked_s):
        """That nothing was written from `quiet_s` after `since` on, for `checked_s`; what was."""
        time.sleep(max(0.0, since + quiet_s + checked_s - time.monotonic()))
        return sorted({write.key for write in self.rules.writes
                       if write.at > since + quiet_s and not write.is_lease})
