"""A cluster as tests use it."""

import concurrent.futures
import itertools
import json
import os
import subprocess
import time

from . import plane as plane_module
from . import tokens
from .api import ApiError
from .manifests import to_yaml

KUBECTL_TIMEOUT_S = 120
WAIT_POLL_S = 0.05
WRITE_VERBS = {"create", "update", "patch", "delete", "deletecollection"}
NO_AUDIT_LOG = "this cluster keeps no audit log: start it with is_audited=True"

_numbers = itertools.count(1)


class WaitTimeout(AssertionError):
    """What was waited for didn't happen within the time."""


class KubectlError(AssertionError):
    """kubectl ended with another status than 0."""


def wait_for(predicate, timeout_s, what):
    """What the predicate returned first that was true. API and connection errors count as not yet:
    the thing that is waited for may not exist yet."""
    deadline = time.monotonic() + timeout_s
    last_error = ""
    while True:
        try:
            result = predicate()
            if result:
                return result
            last_error = ""
        except (OSError, ApiError) as error:
            last_error = f" ({error})"
        if time.monotonic() >= deadline:
            raise WaitTimeout(f"{what}: not within {timeout_s} s{last_error}")
        time.sleep(WAIT_POLL_S)


def stays(predicate, duration_s, what):
    """Asserts that the predicate is true now and all the time for that long."""
    deadline = time.monotonic() + duration_s
    while True:
        assert predicate(), f"{what}: no longer so"
        if time.monotonic() >= deadline:
            return
        time.sleep(WAIT_POLL_S)


class Cluster:
    """One control plane with its nodes. Use it as a context manager, or start() and stop().

    Keyword arguments are the fields of plane.Options: nodes, devices, gates, is_audited, …"""

    def __init__(self, **options):
        options.setdefault("name", f"test-{os.getpid()}-{next(_numbers)}")
        options.setdefault("is_owned", True)
        self.options = plane_module.Options(**options)
        self.plane = self.api = None

    @classmethod
    def attach(cls, name):
        """A cluster that runs already; stop() leaves it alone."""
        cluster = cls(name=name)
        cluster._use(plane_module.load_running(name))
        cluster.stop = lambda: None
        return cluster

    def _use(self, plane):
        self.plane, self.api = plane, plane.api()

    def start(self, say=lambda text: None):
        self._use(plane_module.start(self.options, say))
        return self

    def stop(self):
        plane_module.stop(self.options.name)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # ---- kubectl ----

    def kubectl(self, *arguments, check=True, stdin=None, kubeconfig=None):
        """The finished process, with stdout and stderr as text."""
        result = subprocess.run(
            [self.plane.binaries / "kubectl", "--kubeconfig", kubeconfig or self.plane.kubeconfig,
             *arguments], input=stdin if stdin is not None else "", capture_output=True, text=True,
            timeout=KUBECTL_TIMEOUT_S, check=False)
        if check and result.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(map(str, arguments))}: status "
                               f"{result.returncode}: {result.stderr.strip()}")
        return result

    def apply(self, *objects, arguments=()):
        """Applies YAML text, or objects (see manifests)."""
        return self.kubectl("apply", "-f", "-", *arguments, stdin=_as_text(objects)).stdout

    def delete(self, *objects):
        """Deletes what `apply` applied, and waits until it is gone."""
        self.kubectl("delete", "--ignore-not-found", "--timeout=30s", "-f", "-",
                     stdin=_as_text(objects))

    # ---- the API ----

    def request(self, method, path, body=None, content_type=None, token=None):
        return self.api.request(method, path, body, content_type, token)

    def get_json(self, path):
        return self.api.get(path)

    def items(self, path):
        return self.api.items(path)

    def watch(self, path, resource_version=None):
        return self.api.watch(path, resource_version)

    def wait_for(self, predicate, timeout_s=30, what="the condition"):
        return wait_for(predicate, timeout_s, what)

    def create_many(self, path, objects, threads=8):
        """POSTs the objects to one list path, several at a time; in no order. What kubectl needs
        minutes for takes seconds."""
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda item: self.request("POST", path, item), objects))

    def job(self, namespace, name):
        return self.api.get_or_none(f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}")

    def pods(self, namespace, job_name=None):
        selector = f"?labelSelector=batch.kubernetes.io/job-name%3D{job_name}" if job_name else ""
        return self.api.items(f"/api/v1/namespaces/{namespace}/pods{selector}")

    def has_condition(self, namespace, job_name, condition):
        """Whether the Job has that condition as True: Complete, Failed or Suspended."""
        job = self.job(namespace, job_name)
        return job is not None and any(
            item["type"] == condition and item["status"] == "True"
            for item in job["status"].get("conditions", []))

    def devices_held(self, namespace=None):
        """The allocated devices as {"driver/pool/device": [claims "namespace/name"]}: a claim that
        exists without an allocation holds nothing, one that several pods share holds it once."""
        where = f"/namespaces/{namespace}" if namespace else ""
        held = {}
        for claim in self.items(f"/apis/resource.k8s.io/v1{where}/resourceclaims"):
            allocation = claim.get("status", {}).get("allocation", {})
            for result in allocation.get("devices", {}).get("results", []):
                key = f"{result['driver']}/{result['pool']}/{result['device']}"
                held.setdefault(key, []).append(
                    f"{claim['metadata']['namespace']}/{claim['metadata']['name']}")
        return held

    def clear_namespace(self, name, timeout_s=60):
        """Deletes the namespace's Jobs, pods and claims, without any grace, and waits until they
        are gone; then the namespace, whose own end takes some seconds and is not waited for."""
        self.clear_namespace_objects(name, timeout_s)
        self.api.exchange("DELETE", f"/api/v1/namespaces/{name}")

    def clear_namespace_objects(self, name, timeout_s=60):
        """The same, and the namespace stays."""
        batch, core = f"/apis/batch/v1/namespaces/{name}", f"/api/v1/namespaces/{name}"
        claims = f"/apis/resource.k8s.io/v1/namespaces/{name}/resourceclaims"

        def is_empty():
            self.api.request("DELETE", f"{batch}/cronjobs")
            self.api.request("DELETE", f"{batch}/jobs?propagationPolicy=Background")
            self.api.request("DELETE", f"{core}/pods?gracePeriodSeconds=0")
            if self.items(f"{batch}/jobs") or self.items(f"{core}/pods"):
                return False
            self.api.request("DELETE", claims)
            return not self.items(claims)

        wait_for(is_empty, timeout_s, f"the Jobs, pods and claims of namespace {name} gone")

    def strip_finalizers(self, path):
        """Frees the objects of a cluster-scoped list whose finalizers nobody is left to remove."""
        for item in self.items(path):
            if item["metadata"].get("finalizers"):
                self.request("PATCH", f"{path}/{item['metadata']['name']}",
                             {"metadata": {"finalizers": None}})

    def wait_namespaces_gone(self, names, timeout_s=90):
        for name in names:
            wait_for(lambda name=name: self.api.get_or_none(f"/api/v1/namespaces/{name}") is None,
                     timeout_s, f"namespace {name} gone")

    # ---- identities and the audit log ----

    def service_account_kubeconfig(self, namespace="tallyman-system", name="tallyman",
                                   duration_s=3600):
        return tokens.service_account_kubeconfig(self.plane, namespace, name, duration_s)

    def service_account_token(self, namespace, name, duration_s=3600):
        return tokens.request_token(self.api, namespace, name, duration_s)

    def audit_events(self, user=None, writes_only=False, since=0):
        """Finished requests of the audit log from byte `since` on (audit_position() tells it)."""
        assert self.plane.audit_log, NO_AUDIT_LOG
        with open(self.plane.audit_log, "rb") as log:
            log.seek(since)
            events = [json.loads(line) for line in log if line.endswith(b"\n")]
        return [event for event in events
                if event["stage"] == "ResponseComplete"
                and (user is None or event["user"]["username"] == user)
                and (not writes_only or event["verb"] in WRITE_VERBS)]

    def audit_position(self):
        assert self.plane.audit_log, NO_AUDIT_LOG
        return os.path.getsize(self.plane.audit_log)


def _as_text(objects):
    return "---\n".join(item if isinstance(item, str) else to_yaml(item) for item in objects)
