"""More of what a hostile tenant tries (attack.py has the most): by way of a CronJob, while the controller
is away, and as an autoscaler; and what nodes and drivers say that lie."""

import json
import os
import shutil
import subprocess
import time

from lib import manifests
from lib.fixtures import DRIVER
from lib.gangs import Gangs, remove_policies
from lib.tenant import SECRET, Attack, bad_characters
from suite.attack import TEXTS
from suite.checks import API, Growing

CRON_S = 80                    # a CronJob of every minute has made its Job by then
ATTEMPT = "tallyman.dev/provisioning-attempt"
# 7813 are a million devices, for which the API server alone takes minutes.
LIE_SLICES = int(os.environ.get("LIE_SLICES", "977"))
LIE_POOLS, SLICE_DEVICES = 4, 128
LIMIT_BYTES = 512 << 20        # of memory, as config/manager sets it


# ---- CronJobs ----

def _cron_job(attack, name, labels, annotations=None, **spec):
    job = attack.waiting(name)
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": {
        "schedule": "* * * * *", "concurrencyPolicy": "Forbid",
        "jobTemplate": {"metadata": {"labels": labels, "annotations": annotations or {}},
                        "spec": {**job["spec"], **spec}}}}


def _jobs_of(attack):
    """{CronJob: the names of its Jobs}."""
    found = {}
    for job in attack.cluster.items(attack.path("jobs")):
        for owner in job["metadata"].get("ownerReferences", []):
            if owner["kind"] == "CronJob":
                found.setdefault(owner["name"], []).append(job["metadata"]["name"])
    return found


def _cron_attack(context, has_policies):
    attack = Attack(context, has_policies)
    full = {"tallyman.dev/queue": "full"}
    record = attack.forged_record("open", 1)
    for name, labels, annotations, spec in (
            ("cron-label", full, None, {}), ("cron-flip", full, None, {"suspend": False}),
            ("cron-forged", full, record, {"suspend": False}),
            ("cron-attempt", full, {ATTEMPT: "7"}, {}),
            ("cron-closed", {"tallyman.dev/queue": "closed"}, None, {"suspend": False}),
            ("cron-class", {**full, "tallyman.dev/priority-class": f"{SECRET}-class"}, None, {})):
        attack.case(f"CronJob {name}")
        status, text = attack.ask("POST", attack.path("cronjobs"),
                                  _cron_job(attack, name, labels, annotations, **spec))
        assert status < 300, text[:500]
    # A template's forged keys are refused when its Job is made, where there is a policy to do so.
    refused = {"cron-forged", "cron-attempt"} if has_policies else set()
    wanted = {"cron-label", "cron-flip", "cron-forged", "cron-attempt", "cron-closed", "cron-class"}
    attack.cluster.wait_for(lambda: set(_jobs_of(attack)) >= wanted - refused, CRON_S,
                            "a Job of each CronJob")
    made = _jobs_of(attack)
    assert not refused & set(made), made
    attack.parked.update(name for names in made.values() for name in names)
    attack.wait_parked()
    for cron in ("cron-label", "cron-flip"):
        job = made[cron][0]
        for name, body, is_refused in (
                ("relabelled", {"metadata": {"labels": {"tallyman.dev/queue": "closed"}}}, False),
                ("started", {"spec": {"suspend": False}}, True),
                ("disowned", {"metadata": {"ownerReferences": None}}, False),
                ("relabelled and started", {"metadata": {"labels": {"tallyman.dev/queue": "open"}},
                                            "spec": {"suspend": False}}, True),
                ("back", {"metadata": {"labels": full}}, False)):
            attack.patch_case(f"the Job of {cron} {name}", job, body, is_refused)
        for number in range(5):
            attack.case(f"{cron} flipped, {number}")
            for is_suspended in (True, False):
                attack.ask("PATCH", attack.path("cronjobs", cron), {"spec": {
                    "suspend": is_suspended, "jobTemplate": {"spec": {"suspend": is_suspended}}}})
    for cron in sorted(wanted):
        attack.ask("PATCH", attack.path("cronjobs", cron), {"spec": {"suspend": True}})
    attack.parked.update(name for names in _jobs_of(attack).values() for name in names)
    attack.finish()


def test_a_cronjob_is_no_way_around_where_policies_are_installed(context):
    _cron_attack(context, True)


def test_a_cronjob_is_no_way_around_where_they_are_not(context):
    _cron_attack(context, False)


# ---- forged while the controller is away ----

def _away_attack(context, has_policies):
    attack = Attack(context, has_policies)
    records = {"one pod of two": attack.forged_record("full", 1),
               "another's queue": attack.forged_record("closed", 1),
               "nobody": attack.forged_record("full", 0),
               "no flavor": attack.forged_record("full", 2, flavor="none"),
               "to come": attack.forged_record("full", 2, "9999-12-31T23:59:59Z"),
               "nonsense": {"tallyman.dev/admission": '{"queue":['},
               "suspended": {"tallyman.dev/suspended": '{"cause":"Preempted","for":"x/y"}'}}
    for fate in ("kept", "lost"):
        names = {}
        for number, what in enumerate(records):
            names[what] = f"away-{fate}-{number}"
            attack.job_case(f"a Job to forge on, store {fate}: {what}",
                            attack.waiting(names[what], claim_templates=["one-gpu"]))
        for name in names.values():
            attack.gangs.wait_reason(name, "QuotaExhausted")
        attack.controller.kill9()
        for what, name in names.items():
            body = {"metadata": {"annotations": records[what]}, "spec": {"suspend": False}}
            attack.patch_case(f"forged while nobody looks, store {fate}: {what}", name, body, True)
            attack.job_case(f"made so, store {fate}: {what}", attack.waiting(
                f"made-{name}", annotations=records[what], suspend=False), is_refused=has_policies)
        if fate == "lost":
            shutil.rmtree(attack.controller.store)
        time.sleep(2)
        attack.controller.start()
        attack.count_anew()
        attack.wait_parked(40)
    attack.finish()


def test_forged_while_the_controller_is_away_where_policies_are_installed(context):
    _away_attack(context, True)


def test_forged_while_the_controller_is_away_where_they_are_not(context):
    _away_attack(context, False)


# ---- as an autoscaler ----

def _tenant_of(grows):
    """The token of an account that may do what `edit` may, and make ProvisioningRequests."""
    where = ("-n", grows.namespace)
    kubectl = grows.cluster.kubectl
    kubectl(*where, "create", "serviceaccount", "mallory")
    kubectl("create", "clusterrole", "requests", "--verb=get,list,create,update,patch,delete",
            "--resource=provisioningrequests.autoscaling.x-k8s.io,podtemplates")
    for role in ("edit", "requests"):
        kubectl(*where, "create", "rolebinding", role, f"--clusterrole={role}",
                f"--serviceaccount={grows.namespace}:mallory")
    return grows.cluster.service_account_token(grows.namespace, "mallory")


def _writes(grows, since):
    found = {}
    for event in grows.cluster.audit_events("system:serviceaccount:tallyman-system:tallyman",
                                            writes_only=True, since=since):
        name = event["objectRef"].get("name", "")
        if event["objectRef"]["resource"] != "leases" and event["responseStatus"]["code"] < 400:
            found[name] = found.get(name, 0) + 1
    return found


def _autoscaler_attack(context, has_policies):
    grows = Growing(context, is_audited=True)
    gangs, cluster = grows.gangs, grows.cluster
    if not has_policies:
        remove_policies(cluster)
    token = _tenant_of(grows)

    def ask(method, path, body):
        return cluster.api.exchange(method, path, body, None, token)

    requests = f"{API}/namespaces/{grows.namespace}/provisioningrequests"
    jobs = f"/apis/batch/v1/namespaces/{grows.namespace}/jobs"
    # One takes all of the quota (4 cpu: two gangs of two); the next waits for quota, not for room.
    for name in ("first", "second"):
        grows.job(name)
        grows.provision(grows.wait_request(name))
        gangs.wait_ready(name, 2)
    grows.job("greedy")
    gangs.wait_reason("greedy", "QuotaExhausted")
    job = cluster.job(grows.namespace, "greedy")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "greedy",
             "uid": job["metadata"]["uid"], "controller": True}
    spec = {"provisioningClassName": "check-capacity.autoscaling.x-k8s.io", "podSets": [
        {"count": 2, "podTemplateRef": {"name": "x"}}]}
    tried = 0
    for attempt in ("1", "2", "0", "-1", "9223372036854775807", "9223372036854775808", "x"):
        for name in (f"greedy-{attempt}", f"greedy-{owner['uid'][-8:]}-{attempt}",
                     f"{grows.wait_request('first')['metadata']['name']}"):
            body = {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest",
                    "metadata": {"name": name.lower(), "ownerReferences": [owner],
                                 "annotations": {ATTEMPT: attempt}, "labels": {ATTEMPT: "x"}},
                    "spec": spec}
            tried += 1
            status, text = ask("POST", requests, body)
            assert status < 500, text[:500]
            if status < 300:
                cluster.request("PATCH", f"{requests}/{name.lower()}/status", {"status": {
                    "conditions": [{"type": "Provisioned", "status": "True", "reason": "Forged",
                                    "message": "yours", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                    "provisioningClassDetails": {"Key": "me"}}}, "application/merge-patch+json")
        status, text = ask("PATCH", f"{jobs}/greedy", {"metadata": {"annotations": {ATTEMPT: attempt}}})
        assert status < 500 and (status >= 400) == has_policies, f"{attempt}: {status} {text[:500]}"
        tried += 1
    time.sleep(2)
    since = cluster.audit_position()
    time.sleep(20)
    writes = _writes(grows, since)
    context.note(f"{tried} tries; writes in 20 s of rest: {writes}")
    assert max(writes.values(), default=0) <= 1, writes
    assert gangs.is_suspended("greedy") and gangs.used("grows", "cpu", "grown") == "4"
    assert grows.controller.is_alive(), grows.controller.log_tail()
    # It gets its turn as ever, by a request that the controller makes then, and so does who comes after it.
    gangs.delete("first")
    gangs.wait_reason("greedy", "WaitingForCheck")
    grows.provision(cluster.wait_for(
        lambda: next((request for request in cluster.items(requests)
                      if request["metadata"]["name"].startswith("greedy")
                      and not request.get("status", {}).get("conditions")), None),
        20, "a request of greedy's that nobody has answered"))
    gangs.wait_ready("greedy", 2)
    gangs.delete("greedy")
    grows.job("honest")
    grows.provision(grows.wait_request("honest"))
    gangs.wait_ready("honest", 2)


def test_forged_provisioning_where_policies_are_installed(context):
    _autoscaler_attack(context, True)


def test_forged_provisioning_where_they_are_not(context):
    _autoscaler_attack(context, False)


# ---- hostile text of others ----

def _said(context, grows, name):
    """Everything that anybody reads of the gang: (where, text)."""
    binary = str(context.session.binary)
    where = ("--kubeconfig", str(grows.cluster.plane.kubeconfig))
    for words in (("explain", name, "-n", grows.namespace, *where),
                  ("explain", name, "-n", grows.namespace, "-o", "json", *where),
                  ("explain", name, "-n", grows.namespace, "-o", "yaml", *where),
                  ("plan", *where), ("plan", "-o", "json", *where)):
        done = subprocess.run([binary, *words], capture_output=True, timeout=60, check=False)
        assert done.returncode in (0, 1, 4), f"{words}: {done}"
        yield " ".join(words[:2]), (done.stdout + done.stderr).decode()
    yield "kubectl get", grows.cluster.kubectl("-n", grows.namespace, "get", "admissions").stdout
    for item in (grows.gangs.admission(name), grows.gangs.events(name)):
        yield "objects", json.dumps(item, ensure_ascii=False)
    for line in grows.controller.log_text().splitlines():
        yield "the log", line
    metrics = grows.controller.http("/metrics")[1]
    assert "tallyman_owned" not in metrics
    yield "metrics", metrics


def test_hostile_text_in_conditions_of_others(context):
    """What an autoscaler and a node's reporter say is quoted, bounded, and steers nobody's terminal."""
    grows = Growing(context)
    cluster = grows.cluster
    cluster.apply(manifests.resource_flavor("grown", {"pool": "grown"}, health={
        "conditions": [{"type": "GpuHealthy", "status": "False"}]}))
    texts = {kind: text.encode("utf-8", "ignore").decode() for kind, text in TEXTS.items()}
    for kind, text in texts.items():
        name = f"train-{kind}"
        grows.job(name)
        request = grows.wait_request(name)
        grows.say(request, "Provisioned", f"evil {text}"[:32000], status="False")
        cluster.wait_for(lambda name=name: "evil" in grows.message(name), 15, f"{kind} is quoted")
        cluster.request("PATCH", "/api/v1/nodes/worker-1/status", {"status": {"conditions": [
            {"type": "GpuHealthy", "status": "True", "reason": f"evil {text}"[:1000],
             "message": f"evil {text}"[:32000]}]}}, "application/strategic-merge-patch+json")
        for where, told in _said(context, grows, name):
            bad = bad_characters(told.replace("\n", ""))
            assert not bad, f"{kind}, {where}: {bad} in {told[:600]!r}"
        assert len(grows.message(name).encode()) <= 1024, grows.message(name)
        lines = grows.controller.log_text().splitlines()
        assert not [line for line in lines if line.startswith(("level=info msg=owned", "owned"))]
        grows.say(request, "Failed", f"evil {text}"[:32000])
        grows.gangs.delete(name)
    grows.job("honest")
    grows.provision(grows.wait_request("honest"))
    grows.gangs.wait_ready("honest", 2)
    assert grows.controller.is_alive(), grows.controller.log_tail()


# ---- a driver that lies ----

def _lie(number):
    pool = f"worker-2-lie-{number % LIE_POOLS}"
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": {"name": f"lie-{number}"},
            "spec": {"driver": DRIVER, "nodeName": "worker-2", "pool": {
                "name": pool, "generation": 1,
                "resourceSliceCount": len(range(number % LIE_POOLS, LIE_SLICES, LIE_POOLS))},
                "devices": [{"name": f"g{number * SLICE_DEVICES + i}"} for i in range(SLICE_DEVICES)]}}


def test_a_driver_that_lists_more_devices_than_a_node_has(context):
    """The node that it is of gives none, which is told; the controller goes on, within its limits."""
    cluster = context.own_cluster(nodes=2, devices=2)
    namespace = context.namespace_in(cluster)
    gangs = Gangs(cluster, namespace)
    controller = context.controller(cluster=cluster)
    cluster.apply(manifests.queue("open", {DRIVER: "1000"}),
                  manifests.claim_template("one-gpu", namespace))
    slices = "/apis/resource.k8s.io/v1/resourceslices"
    before, began = controller.cpu_seconds(), time.monotonic()
    cluster.create_many(slices, [_lie(number) for number in range(LIE_SLICES)])
    gangs.create(manifests.job("needs-three", namespace, queue="open", pods=3,
                               claim_templates=["one-gpu"]))
    gangs.wait_reason("needs-three", "DevicesExhausted", timeout_s=60)
    cluster.wait_for(lambda: "lists more than 16384 devices" in gangs.summary("needs-three"), 60,
                     "the reason to name the node's pools")
    spent, took = controller.cpu_seconds() - before, time.monotonic() - began
    memory = controller.memory_bytes("VmHWM")
    before, began = controller.cpu_seconds(), time.monotonic()
    for number in range(20):
        cluster.request("PATCH", f"{slices}/lie-{number}", {"metadata": {"labels": {"x": "y"}},
                                                            "spec": {"devices": [{"name": "other"}]}})
    gangs.create(manifests.job("honest", namespace, queue="open", pods=2, claim_templates=["one-gpu"],
                               node_selector={"kubernetes.io/hostname": "worker-1"}))
    gangs.wait_started("honest", 20)
    edits = controller.cpu_seconds() - before
    controller.restart(is_killed=True)
    restarted = time.monotonic()
    controller.wait_ready()
    context.note(f"{LIE_SLICES * SLICE_DEVICES} devices: {spent:.1f} s of CPU in {took:.0f} s; 20 edits and "
                 f"a start {edits:.2f} s; {memory >> 20} MiB at most, "
                 f"{controller.memory_bytes('VmHWM') >> 20} MiB after a restart")
    assert memory < LIMIT_BYTES and controller.memory_bytes("VmHWM") < LIMIT_BYTES
    assert spent < 30 and edits < 5, (spent, edits)
    assert time.monotonic() - restarted < 30
    assert controller.is_alive(), controller.log_tail()
