"""What tests ask about gangs: their Admissions, their records, how their pods came to be bound."""

import json
import time

from . import manifests, paths

QUEUE = "tallyman.dev/queue"
RECORD = "tallyman.dev/admission"
SUSPENDED = "tallyman.dev/suspended"
HOLD = "tallyman.dev/hold"
MIN_COUNT = "tallyman.dev/min-count"
MIN_COUNT_SOURCE = "tallyman.dev/min-count-source"
CONTROLLER_USER = "system:serviceaccount:tallyman-system:tallyman"
QUEUES_PATH = "/apis/tallyman.dev/v1beta1/queues"
BINDING_S = 2.0           # how long the scheduler may take over the pods of one gang
JOB_NAME = "batch.kubernetes.io/job-name"


def remove_policies(cluster):
    """Makes it a cluster without policies, where the controller does their work a moment later."""
    root = paths.SUITE_DIR.parent.parent
    cluster.kubectl("delete", "-k", root / "config" / "policies", "--ignore-not-found")
    probe = manifests.job("probe", "default", pods=1, queue="none")
    cluster.wait_for(lambda: not cluster.request(
        "POST", "/apis/batch/v1/namespaces/default/jobs?dryRun=All", probe)["spec"].get("suspend"),
        20, "the policies out of effect")


class Gangs:
    """The queued Jobs of one namespace."""

    def __init__(self, cluster, namespace):
        self.cluster, self.namespace = cluster, namespace

    # ---- what is there ----

    def job(self, name):
        return self.cluster.job(self.namespace, name)

    def annotation(self, name, key):
        return (self.job(name) or {"metadata": {}})["metadata"].get("annotations", {}).get(key)

    def record(self, name):
        """The admission record on the Job, or None."""
        text = self.annotation(name, RECORD)
        return json.loads(text) if text else None

    def is_started(self, name):
        """Unsuspended, with the record of its admission."""
        job = self.job(name)
        return job is not None and not job["spec"].get("suspend", False) and \
            RECORD in job["metadata"].get("annotations", {})

    def is_suspended(self, name):
        return self.job(name)["spec"].get("suspend", False)

    def ready(self, name):
        return self.job(name)["status"].get("ready", 0)

    def pods(self, name):
        return self.cluster.pods(self.namespace, name)

    def admission(self, name):
        return self.cluster.api.get_or_none(
            f"/apis/tallyman.dev/v1beta1/namespaces/{self.namespace}/admissions/{name}")

    def status(self, name):
        """The Admission's status; {} while there is none."""
        return (self.admission(name) or {}).get("status", {})

    def summary(self, name):
        return self.status(name).get("summary", "")

    def events(self, name, reason=None):
        """Events about the Job of that name, of the Job that has it now."""
        uid = self.job(name)["metadata"]["uid"]
        return [event for event in self.cluster.items(
                    f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")
                if event["regarding"].get("uid") == uid
                and (reason is None or event["reason"] == reason)]

    def queue(self, name):
        return self.cluster.get_json(f"{QUEUES_PATH}/{name}")

    def used(self, queue, resource, flavor="default"):
        """What the Queue's status says is used of it, as text; None if it isn't listed."""
        for item in self.queue(queue).get("status", {}).get("flavors", []):
            for entry in item["resources"] if item["name"] == flavor else []:
                if entry["name"] == resource:
                    return entry["used"]
        return None

    # ---- what is done ----

    def create(self, *objects):
        """POSTs Jobs of this namespace, one after the other; what the server made of them."""
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        return [self.cluster.request("POST", path, item) for item in objects]

    def patch(self, name, body):
        return self.cluster.request(
            "PATCH", f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}", body)

    def annotate(self, name, key, value):
        return self.patch(name, {"metadata": {"annotations": {key: value}}})

    def delete(self, name, propagation="Background"):
        self.cluster.request("DELETE", f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}"
                             f"?propagationPolicy={propagation}")

    # ---- what is waited for ----

    def wait_started(self, name, timeout_s=15):
        self._wait(name, lambda: self.is_started(name), timeout_s, "admitted")

    def wait_ready(self, name, count, timeout_s=20):
        self._wait(name, lambda: self.ready(name) == count, timeout_s, f"{count} of its pods Ready")

    def wait_state(self, name, state, timeout_s=15):
        self._wait(name, lambda: self.status(name).get("state") == state, timeout_s,
                   f"in state {state}")

    def wait_reason(self, name, reason, timeout_s=15):
        """Waits for the reason, and returns the message that comes with it."""
        seen = {}

        def has_reason():
            seen.update(self.status(name))
            return seen.get("reason") == reason

        self._wait(name, has_reason, timeout_s, f"waits with {reason}")
        return seen["message"]

    def wait_complete(self, name, timeout_s=60):
        self._wait(name, lambda: self.cluster.has_condition(self.namespace, name, "Complete"),
                   timeout_s, "complete")

    def wait_used(self, queue, resource, amount, timeout_s=15, flavor="default"):
        try:
            self.cluster.wait_for(lambda: self.used(queue, resource, flavor) == amount, timeout_s,
                                  f"{amount} {resource} of queue {queue} used")
        except AssertionError as error:
            raise AssertionError(f"{error}; now: {self.used(queue, resource, flavor)}") from None

    def _wait(self, name, predicate, timeout_s, what):
        try:
            self.cluster.wait_for(predicate, timeout_s, f"Job {self.namespace}/{name} {what}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.describe(name)}") from None

    def describe(self, name):
        """Job and Admission, for a failing test's report."""
        job = self.job(name) or {}
        metadata = {key: job.get("metadata", {}).get(key)
                    for key in ("uid", "labels", "annotations", "resourceVersion")}
        return json.dumps({"job": metadata, "suspend": job.get("spec", {}).get("suspend"),
                           "parallelism": job.get("spec", {}).get("parallelism"),
                           "status": job.get("status"), "admission": self.status(name)}, indent=1)


class Bindings:
    """Watches the pods of a namespace, and tells how long each Job had some of them bound and
    not all. A context manager; `gang_sizes` is filled in by the test, by Job name."""

    def __init__(self, cluster, namespace, gang_sizes):
        self.gang_sizes = gang_sizes
        self._watch = cluster.watch(f"/api/v1/namespaces/{namespace}/pods")
        self._times = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._watch.close()

    def _collect(self):
        """Reads what has come, each event with the time of reading."""
        while (event := self._watch.next(0.0)) is not None:
            self._times.append((time.monotonic(), event))

    def follow(self, duration_s):
        """Goes on reading for that long, so that each event gets its time."""
        end = time.monotonic() + duration_s
        while (left := end - time.monotonic()) > 0:
            event = self._watch.next(left)
            if event is not None:
                self._times.append((time.monotonic(), event))

    def follow_until(self, predicate, timeout_s, what):
        deadline = time.monotonic() + timeout_s
        while not predicate():
            assert time.monotonic() < deadline, f"{what}: not within {timeout_s} s"
            self.follow(0.05)

    def longest_partial_s(self):
        """{Job name: the longest time in which it had some but not all of its pods bound}; a pod
        that has ended well stays counted as bound, and a deleted one doesn't."""
        self._collect()
        bound, since, longest = {}, {}, {}
        for at, (kind, pod) in self._times:
            job = pod["metadata"].get("labels", {}).get(JOB_NAME)
            if job not in self.gang_sizes:
                continue
            names = bound.setdefault(job, set())
            name = pod["metadata"]["name"]
            if kind == "DELETED":
                names.discard(name)
            elif pod["spec"].get("nodeName"):
                names.add(name)
            is_partial = 0 < len(names) < self.gang_sizes[job]
            if is_partial:
                since.setdefault(job, at)
            elif job in since:
                longest[job] = max(longest.get(job, 0.0), at - since.pop(job))
        now = time.monotonic()
        for job, start in since.items():
            longest[job] = max(longest.get(job, 0.0), now - start)
        return longest

    def assert_never_partial(self):
        partial = self.longest_partial_s()
        too_long = {job: round(span, 2) for job, span in partial.items() if span > BINDING_S}
        assert not too_long, (f"Jobs that had some but not all of their pods bound for longer than "
                              f"{BINDING_S} s: {too_long}")
        return partial

