"""A hostile tenant: an account with the role `edit` in one namespace, next to a neighbour's namespace, on
a cluster with its own controller; and what has to be true of them all whatever that account tries."""

import collections
import datetime
import json
import subprocess
import time
import unicodedata

from . import manifests
from .api import ApiError
from .fixtures import DRIVER
from .gangs import CONTROLLER_USER, RECORD, Gangs, remove_policies

SECRET = "moonshot"            # in each name of the neighbour's: it must never be read by the tenant
RSS_MAX = 256 << 20
REST_S = 20.0
REST_WRITES_MAX = 1            # of one object while it rests: three a minute
# Of one object over the whole attack, where nobody edits it. Without policies a Job is created running: it is
# stopped and queued by three writes (see suite/writes.py), and told again as others come and go.
WRITES_MAX = 8
PLACE_S = 9.0                  # what comes so long after the last is its place, told every ten seconds at most
UNDOING_MAX = 3                # more for each edit: it is undone, and the Admission and an Event say so
CPU_SHARE_MAX = 0.25           # while the attack goes on; this is a fiftieth of what a loop would use
REST_CPU_SHARE_MAX = 0.05
TENANT_EXTRA = {
    "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
    "metadata": {"name": "tenant-extra"},
    "rules": [{"apiGroups": ["resource.k8s.io"],
               "resources": ["resourceclaims", "resourceclaimtemplates"],
               "verbs": ["get", "list", "create", "update", "patch", "delete"]},
              {"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["patch", "update"]}]}


class Attack:
    """Queue `full` (cpu 1, two devices) is taken by the neighbour, `open` (cpu 2, one device) is
    the tenant's, `closed` (cpu 64, four devices) is of the neighbour's namespace alone."""

    def __init__(self, context, has_policies=True):
        self.context = context
        self.cluster = cluster = context.own_cluster(nodes=2, devices=2, is_audited=True)
        context.session.install(cluster)
        if not has_policies:
            remove_policies(cluster)
        self.has_policies = has_policies
        self.namespace = context.namespace_in(cluster)
        self.victim = f"{SECRET}-team"
        cluster.apply(manifests.namespace(self.victim, {"team": SECRET}), TENANT_EXTRA,
                      manifests.queue("full", {"cpu": "1", DRIVER: "2"}),
                      manifests.queue("open", {"cpu": "2", DRIVER: "1"}),
                      manifests.queue("closed", {"cpu": "64", DRIVER: "4"},
                                      namespace_selector={"matchLabels": {"team": SECRET}}),
                      manifests.priority_class(f"{SECRET}-class", 1000000))
        self.token = self._account()
        self.gangs = Gangs(cluster, self.namespace)
        self.neighbours = Gangs(cluster, self.victim)
        self.controller = context.controller(cluster=cluster)
        cluster.apply(manifests.claim_template("one-gpu", self.victim),
                      manifests.claim_template("one-gpu", self.namespace))
        self.neighbours.create(manifests.job(f"{SECRET}-train", self.victim, pods=2, cpu="500m",
                                             queue="full", claim_templates=["one-gpu"]))
        self.neighbours.wait_ready(f"{SECRET}-train", 2)
        self.gangs.create(manifests.job("runner", self.namespace, pods=2, completions=4, cpu="500m",
                                        queue="open", spec={"activeDeadlineSeconds": 3600}))
        self.gangs.wait_ready("runner", 2)
        self.gangs.wait_used("open", "cpu", "1")
        self.parked, self.count, self.refused, self.edits = set(), 0, 0, {}
        self.cluster.wait_for(lambda: self.ask("GET", self.path("jobs"))[0] == 200, 10,
                              "the role edit in effect")
        self.since = cluster.audit_position()
        self.count_anew()

    def _account(self):
        kubectl, where = self.cluster.kubectl, ("-n", self.namespace)
        kubectl(*where, "create", "serviceaccount", "mallory")
        subject = f"--serviceaccount={self.namespace}:mallory"
        kubectl(*where, "create", "rolebinding", "edits", "--clusterrole=edit", subject)
        kubectl(*where, "create", "rolebinding", "extra", "--clusterrole=tenant-extra", subject)
        return self.cluster.service_account_token(self.namespace, "mallory")

    # ---- what the tenant does ----

    def path(self, kind, name="", namespace=None):
        api = {"jobs": "batch/v1", "cronjobs": "batch/v1", "admissions": "tallyman.dev/v1beta1",
               "provisioningrequests": "autoscaling.x-k8s.io/v1", "events": "events.k8s.io/v1",
               "resourceclaims": "resource.k8s.io/v1",
               "resourceclaimtemplates": "resource.k8s.io/v1"}.get(kind)
        root = f"/apis/{api}" if api else "/api/v1"
        return f"{root}/namespaces/{namespace or self.namespace}/{kind}" + (f"/{name}" if name else "")

    def ask(self, method, path, body=None, content_type=None):
        """(status, text) of a request with the tenant's token."""
        return self.cluster.api.exchange(method, path, body, content_type, self.token)

    def case(self, name):
        self.count += 1
        self.context.note(name)

    def refused_case(self, name, method, path, body=None, content_type=None):
        """A request that the API server has to refuse, whatever the policies."""
        self.case(name)
        status, text = self.ask(method, path, body, content_type)
        assert status >= 400, f"{name}: {status} {text[:500]}"

    def job_case(self, name, job, may_run=False, is_refused=False):
        """The tenant makes the Job; refused or not, it must not start (unless it may)."""
        self.case(name)
        body = job if isinstance(job, (bytes, str)) else json.dumps(job)
        status, text = self.ask("POST", self.path("jobs"), body)
        assert status < 500 and (status >= 400 or not is_refused), f"{name}: {status} {text[:500]}"
        self.refused += status >= 400
        if status < 400 and not may_run:
            self.parked.add(json.loads(text)["metadata"]["name"])

    def patch_case(self, name, job, body, is_refused=False, subresource=""):
        """The tenant edits a Job of its own; `is_refused` says that a policy has to refuse it."""
        self.case(name)
        path = self.path("jobs", job) + subresource
        status, text = self.ask("PATCH", path, body)
        assert status < 500, f"{name}: {status} {text[:500]}"
        assert status >= 400 or not (is_refused and self.has_policies), f"{name}: accepted"
        self.refused += status >= 400
        self.edits[job] = self.edits.get(job, 0) + (status < 400)

    def waiting(self, name, queue="full", **more):
        """A Job of the tenant's, as manifest, that its queue has no room for."""
        return manifests.job(name, self.namespace, queue=queue, **{"pods": 2, "cpu": "500m", **more})

    # ---- what must be true then ----

    def check_parked(self):
        """No Job that may not run has started, no pod of it is there, and no charge is wrong."""
        jobs = {job["metadata"]["name"]: job for job in self.cluster.items(self.path("jobs"))}
        for name in sorted(self.parked & set(jobs)):
            job = jobs[name]
            # The Job controller fails a Job at once whose deadline overflows: it is over, not running.
            is_over = any(item["type"] == "Failed" and item["status"] == "True"
                          for item in job["status"].get("conditions", []))
            assert job["spec"].get("suspend") or is_over, f"{name} runs: {json.dumps(job)[:3000]}"
        active = [pod["metadata"]["name"] for pod in self.cluster.pods(self.namespace)
                  if pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name")
                  in self.parked and pod["status"].get("phase") not in ("Succeeded", "Failed")]
        assert not active, f"pods of Jobs that wait: {active[:5]}"
        # Whose record was taken off is stopped and queues again; its room may go to the next.
        running = [name for name in ("runner", "beyond")
                   if name in jobs and not jobs[name]["spec"].get("suspend")]
        assert running == ["runner"] or (not self.has_policies and len(running) <= 1), running
        of_open = {"runner": "1", "beyond": "1500m"}[running[0]] if running else "0"
        for queue, resource, amount in (("full", "cpu", "1"), ("full", DRIVER, "2"),
                                        ("open", "cpu", of_open), ("open", DRIVER, "0"),
                                        ("closed", "cpu", "0"), ("closed", DRIVER, "0")):
            used = self.gangs.used(queue, resource)
            assert used == amount, f"{queue}: {used} {resource} used, it should be {amount}"
        held = self.cluster.devices_held(self.namespace)
        assert not held, f"the tenant holds devices: {held}"
        assert self.neighbours.ready(f"{SECRET}-train") == 2, "the neighbour's gang was hurt"

    def wait_parked(self, timeout_s=20):
        """Undone, at the latest by then, and for good."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                self.check_parked()
                return
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.5)

    def _words_of_ours(self):
        """All text that the controller wrote where the tenant reads it: (where, text)."""
        for item in self.cluster.items(self.path("admissions")):
            yield f"Admission {item['metadata']['name']}", item.get("status", {})
        for event in self.cluster.items(self.path("events")):
            if "tallyman" in event.get("reportingController", ""):
                yield f"Event {event['metadata']['name']}", event.get("note", "")

    def check_text(self):
        """No name of the neighbour's, no control or bidi character, no line that isn't one."""
        for where, data in self._words_of_ours():
            for text in _strings(data):
                assert SECRET not in text, f"{where} names the neighbour: {text}"
                assert not bad_characters(text), f"{where}: {text!r}"
                assert len(text.encode()) <= 4096, f"{where} has a text of {len(text)} characters"
        log = self.controller.log.read_bytes()
        for line in log.split(b"\n"):
            assert len(line) < 16384, f"the log has a line of {len(line)} bytes"
            text = line.decode()  # not UTF-8: an error
            assert not bad_characters(text), f"the log: {text[:500]!r}"
            assert not text.startswith(("level=info msg=owned", "owned")), text[:200]
        metrics = self.controller.http("/metrics")[1]
        assert "tallyman_owned" not in metrics and not bad_characters(metrics.replace("\n", ""))
        for line in metrics.splitlines():
            if line and not line.startswith("#"):
                float(line.rpartition(" ")[2])

    def check_terminal(self, names):
        """What `explain` prints for the tenant itself holds nothing that a terminal obeys."""
        kubeconfig = self.cluster.service_account_kubeconfig(self.namespace, "mallory")
        for name in names:
            done = subprocess.run(
                [str(self.context.session.binary), "explain", name, "-n", self.namespace,
                 "--kubeconfig", str(kubeconfig)], capture_output=True, timeout=30, check=False)
            text = (done.stdout + done.stderr).decode()
            assert done.returncode in (0, 1, 4) and name in text, f"{name}: {done}"
            assert not bad_characters(text.replace("\n", "")), f"{name}: {text!r}"
            assert SECRET not in text, f"{name}: {text}"

    def _write_times(self, since):
        """{Job: [(when, what) the controller wrote of it]}; a conflict wrote nothing."""
        found = collections.defaultdict(list)
        for event in self.cluster.audit_events(CONTROLLER_USER, writes_only=True, since=since):
            target = event["objectRef"]
            if event["responseStatus"]["code"] < 400 and target.get("namespace") == self.namespace:
                name = target.get("name", "").rpartition(".")[0] \
                    if target["resource"] == "events" else target.get("name", "")
                at = datetime.datetime.fromisoformat(
                    event["requestReceivedTimestamp"].replace("Z", "+00:00")).timestamp()
                found[name].append((at, f"{event['verb']} {target['resource']}"))
        return found

    def _told_writes(self, name):
        times = sorted(self._write_times(self.since)[name])
        return ", ".join(f"{at - times[0][0]:.1f} s {what}" for at, what in times)

    def _writes(self, since):
        return {name: len(times) for name, times in self._write_times(since).items()}

    def _prompt_writes(self):
        """{Job: what was written of it less than PLACE_S after the write before, and the first}."""
        found = {}
        for name, writes in self._write_times(self.since).items():
            times = sorted(at for at, _ in writes)
            found[name] = 1 + sum(at - before < PLACE_S for before, at in zip(times, times[1:]))
        return found

    def _busiest_minute(self):
        """(most writes of one Job that nobody edits in any 60 seconds, its name)."""
        found = (0, "-")
        for name, times in self._write_times(self.since).items():
            most = max(sum(at <= other < at + 60 for other, _ in times) for at, _ in times)
            found = max(found, (most, name)) if name not in self.edits else found
        return found

    def check_honest(self):
        """The neighbour's next Job starts as ever, and what it had is free again, whatever a pod of the
        tenant's says whose it is."""
        name = f"{SECRET}-honest"
        self.neighbours.create(manifests.job(name, self.victim, pods=2, cpu="500m", queue="closed"))
        self.neighbours.wait_ready(name, 2)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "controller": True,
                 "uid": self.neighbours.job(name)["metadata"]["uid"]}
        status, text = self.ask("POST", self.path("pods"), json.dumps({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "stranger", "finalizers": ["example.com/mine"], "ownerReferences": [owner],
                         "annotations": {"example.com/stop-for": "60s"}},
            "spec": {"nodeName": "worker-1", "terminationGracePeriodSeconds": 1000,
                     "containers": [{"name": "main", "image": "none"}]}}))
        assert status < 300, text
        self.neighbours.delete(name)
        self.gangs.wait_used("closed", "cpu", "0")

    def count_anew(self):
        """The controller is another process now."""
        self.began, self.cpu_before = time.monotonic(), self.controller.cpu_seconds()

    def finish(self):
        """After the last case: all undone, the controller at work for others, then at rest, at little
        cost."""
        self.wait_parked()
        self.check_honest()
        spent = time.monotonic() - self.began
        share = (self.controller.cpu_seconds() - self.cpu_before) / spent
        total = self._prompt_writes()
        time.sleep(2)
        rest, cpu = self.cluster.audit_position(), self.controller.cpu_seconds()
        time.sleep(REST_S)
        self.check_parked()
        self.check_text()
        resting = self._writes(rest)
        rest_share = (self.controller.cpu_seconds() - cpu) / REST_S
        memory = self.controller.memory_bytes("VmHWM")
        unedited = {name: count for name, count in total.items() if name not in self.edits}
        worst = max(unedited.items(), key=lambda item: item[1], default=("-", 0))
        self.context.note(f"{self.count} cases, {self.refused} refused; CPU {share:.1%} under attack, "
                          f"{rest_share:.1%} at rest; {memory >> 20} MiB; most writes where nobody edits: {worst}, "
                          f"in one minute with its place: {self._busiest_minute()}")
        assert not {name: count for name, count in resting.items() if count > REST_WRITES_MAX}, resting
        for name, count in total.items():
            bound = WRITES_MAX + UNDOING_MAX * self.edits.get(name, 0)
            assert count <= bound, (f"{name}: {count} writes for {self.edits.get(name, 0)} edits: "
                                    f"{self._told_writes(name)}")
        assert share < CPU_SHARE_MAX and rest_share < REST_CPU_SHARE_MAX, (share, rest_share)
        assert memory < RSS_MAX, memory
        assert self.controller.is_alive(), self.controller.log_tail()

    def forged_record(self, queue="open", count=1, at="2026-01-01T00:00:00Z", flavor="default", **more):
        return {RECORD: json.dumps({
            "queue": queue, "at": at, "priority": 1, "podSets": [
                {"name": "main", "count": count, "flavors": {"cpu": flavor}}], **more})}


def _strings(data):
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield key
            yield from _strings(value)
    elif isinstance(data, list):
        for value in data:
            yield from _strings(value)


def bad_characters(text):
    """Controls, and formats such as the bidi overrides: what a terminal or a log reader obeys."""
    return [hex(ord(char)) for char in text if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")]


__all__ = ["ApiError", "Attack", "SECRET", "bad_characters"]
