"""How much the controller writes: little, and nothing at all where nothing happens. Read from the
API server's audit log."""

import collections
import time

from lib import manifests
from lib.gangs import CONTROLLER_USER, Gangs, remove_policies

IDLE_S = 60
LEASE_RENEWAL_S = 2
IDLE_CPU_SHARE_MAX = 0.005


def _writes(cluster, since, namespace=None):
    """What the controller wrote: {(resource, name): count}. A conflict (409) wrote nothing."""
    found = collections.Counter()
    for event in cluster.audit_events(CONTROLLER_USER, writes_only=True, since=since):
        target = event["objectRef"]
        is_done = event["responseStatus"]["code"] < 400
        if is_done and (namespace is None or target.get("namespace") == namespace):
            found[target["resource"], target.get("name", "")] += 1
    return found


def _prepare(context, quota):
    gangs = Gangs(context.cluster, context.namespace)
    controller = context.controller()
    queue = context.name("q")
    context.apply(manifests.queue(queue, {"cpu": quota}))
    return gangs, queue, controller


def test_a_parked_job_costs_two_writes_until_it_is_admitted(context):
    gangs, queue, _ = _prepare(context, "1")
    cluster, namespace = gangs.cluster, gangs.namespace
    gangs.create(manifests.job("first", namespace, pods=2, cpu="500m", queue=queue))
    gangs.wait_state("first", "Running")
    gangs.create(manifests.job("parked", namespace, pods=2, cpu="500m", queue=queue))
    gangs.wait_reason("parked", "QuotaExhausted")
    time.sleep(1.5)
    before = cluster.audit_position()
    path = f"/apis/tallyman.dev/v1beta1/namespaces/{namespace}/admissions"
    with cluster.watch(path) as admissions:
        gangs.delete("first")
        gangs.wait_state("parked", "Running")
        time.sleep(1.5)
        states = [item["status"]["state"] for kind, item in admissions.seen
                  if item["metadata"]["name"] == "parked"]
    assert states[0] == "Pending" and states[-1] == "Running", states
    until_admitted = next(number for number, state in enumerate(states) if state != "Pending")
    written = _writes(cluster, before, namespace)
    jobs = written["jobs", "parked"]
    admissions = written["admissions", "parked"]
    events = sum(count for (resource, _), count in written.items() if resource == "events")
    context.note(f"from parked to admitted: {jobs} write to the Job, {until_admitted} to its "
                 f"Admission; {admissions - until_admitted} more until it runs whole; "
                 f"{events} Event")
    assert jobs == 1, written
    assert until_admitted == 1, states
    assert admissions <= 2, f"{admissions} writes to the Admission, as {states}"
    assert events <= 1, written


def test_a_job_that_was_made_running_costs_three_writes(context):
    """Where no policy suspends Jobs as they are made: it is suspended, with an Event, and its
    Admission is written when it is queued, not for each pod that stops before."""
    cluster = context.own_cluster(nodes=2, is_audited=True)
    context.session.install(cluster)
    remove_policies(cluster)
    namespace = context.namespace_in(cluster)
    cluster.apply(manifests.queue("q", {"cpu": "1"}))
    gangs = Gangs(cluster, namespace)
    context.controller(cluster=cluster)
    gangs.create(manifests.job("first", namespace, pods=2, cpu="500m", queue="q"))
    gangs.wait_state("first", "Running")
    time.sleep(1.5)
    before = cluster.audit_position()
    path = f"/apis/tallyman.dev/v1beta1/namespaces/{namespace}/admissions"
    with cluster.watch(path) as admissions:
        gangs.create(manifests.job("bad", namespace, pods=5, cpu="500m", queue="q"))
        gangs.wait_reason("bad", "NeverFits")
        time.sleep(3)
        said = [f"{item['status']['state']} {item['status'].get('pods')} {item['status'].get('message')}"
                for _, item in admissions.seen if item["metadata"]["name"] == "bad"]
    written = {target: count for target, count in _writes(cluster, before, namespace).items()
               if target[1].startswith("bad")}
    context.note(f"a Job of five pods that was made running: {written}; {said}")
    assert sum(written.values()) <= 3, written


def test_a_job_that_is_edited_in_a_loop_costs_three_writes_a_minute(context):
    """Its hold goes on and off: some thirty Admissions and Events at first, then three a minute. What its user
    wants to know after that, that it has started and ended, is told at once."""
    gangs, queue, _ = _prepare(context, "1")
    cluster, namespace = gangs.cluster, gangs.namespace
    gangs.create(manifests.job("first", namespace, pods=2, cpu="500m", queue=queue))
    gangs.wait_state("first", "Running")
    gangs.create(manifests.job("bad", namespace, pods=2, cpu="500m", queue=queue, run_for="1s"))
    gangs.wait_reason("bad", "QuotaExhausted")

    def edit_for(duration_s, pause_s):
        end, edits = time.monotonic() + duration_s, 0
        while time.monotonic() < end:
            gangs.annotate("bad", "tallyman.dev/hold", "false" if edits % 2 else "true")
            edits += 1
            time.sleep(pause_s)
        gangs.annotate("bad", "tallyman.dev/hold", "false")
        return edits + 1

    start = cluster.audit_position()
    edits = edit_for(15, 0.1)
    minute = cluster.audit_position()
    edits += edit_for(60, 0.5)
    at_first, then = (sum(count for (resource, name), count in written.items()
                          if resource != "jobs" and name.startswith("bad"))
                      for written in (_writes(cluster, start, namespace), _writes(cluster, minute, namespace)))
    context.note(f"{edits} edits of a Job in 75 s: {at_first} Admissions and Events, {then} of them in the last minute")
    assert then <= 4, then
    began = time.monotonic()
    gangs.delete("first")
    gangs.wait_state("bad", "Finished")
    context.note(f"started, run for 1 s and ended, all told after {time.monotonic() - began:.1f} s")
    assert time.monotonic() - began < 10


def test_a_queue_of_jobs_costs_two_writes_each(context):
    """Forty Jobs of which four run at once: what is written grows with the Jobs, not with the time
    that they wait."""
    gangs, queue, _ = _prepare(context, "1")
    cluster, namespace = gangs.cluster, gangs.namespace
    before = cluster.audit_position()
    names = [f"job-{number:02}" for number in range(40)]
    cluster.create_many(f"/apis/batch/v1/namespaces/{namespace}/jobs", [
        manifests.job(name, namespace, pods=1, cpu="250m", queue=queue, run_for="500ms")
        for name in names])
    for name in names:
        gangs.wait_complete(name, 120)
    time.sleep(2)
    by_resource = collections.Counter()
    for (resource, _), count in _writes(cluster, before).items():
        by_resource[resource] += count
    context.note(f"40 Jobs through 4 slots: {dict(sorted(by_resource.items()))}")
    assert by_resource["jobs"] == len(names), by_resource
    assert by_resource["events"] <= len(names), by_resource
    # Pending, Admitted, Running, Finished, and now and then a position that has moved.
    assert by_resource["admissions"] <= 7 * len(names), by_resource
    assert by_resource["queues"] <= len(names), by_resource


def test_an_idle_cluster_costs_nothing_but_the_lease(context):
    gangs, queue, controller = _prepare(context, "1")
    cluster, namespace = gangs.cluster, gangs.namespace
    gangs.create(manifests.job("runs", namespace, pods=2, cpu="500m", queue=queue))
    gangs.wait_state("runs", "Running")
    gangs.create(*(manifests.job(f"waits-{number}", namespace, pods=1, cpu="100m", queue=queue)
                   for number in range(5)))
    gangs.wait_reason("waits-4", "QuotaExhausted")
    time.sleep(12)  # positions are refreshed every ten seconds at most
    before, cpu_s = cluster.audit_position(), controller.cpu_seconds()
    time.sleep(IDLE_S)
    written, share = _writes(cluster, before), (controller.cpu_seconds() - cpu_s) / IDLE_S
    requests = len(cluster.audit_events(CONTROLLER_USER, since=before))
    context.note(f"{IDLE_S} s of nothing: {sum(written.values())} writes, {share:.2%} of one core, "
                 f"{requests} requests ended, {controller.memory_bytes() / 1e6:.0f} MB resident")
    lease = written.pop(("leases", "tallyman"), 0)
    assert lease <= IDLE_S / LEASE_RENEWAL_S + 1, lease
    assert not written, written
    assert share < IDLE_CPU_SHARE_MAX, f"{share:.2%} of a core"


def test_a_status_that_was_overwritten_is_put_right_once(context):
    """As when etcd is put back to a backup, or an administrator edits what isn't his."""
    gangs, queue, _ = _prepare(context, "1")
    cluster, namespace = gangs.cluster, gangs.namespace
    gangs.create(manifests.job("runs", namespace, pods=2, cpu="500m", queue=queue))
    gangs.wait_state("runs", "Running")
    gangs.create(manifests.job("waits", namespace, pods=1, cpu="100m", queue=queue))
    gangs.wait_reason("waits", "QuotaExhausted")
    cluster.wait_for(lambda: gangs.queue(queue)["status"].get("pending") == 1, 20, "a status")
    time.sleep(12)  # positions are refreshed every ten seconds at most
    # The policies keep all others off an Admission.
    cluster.request("PATCH", f"/apis/tallyman.dev/v1beta1/namespaces/{namespace}/admissions/waits",
                    {"status": {"reason": "DevicesUnavailable"}},
                    token=cluster.service_account_token("tallyman-system", "tallyman"))
    before = cluster.audit_position()
    cluster.request("PATCH", f"/apis/tallyman.dev/v1beta1/queues/{queue}/status",
                    {"status": {"admitted": 7, "flavors": [], "usage": "cpu 0/1"}})
    cluster.wait_for(lambda: gangs.queue(queue)["status"]["admitted"] == 1, 10, "the Queue's status")
    assert gangs.used(queue, "cpu") == "1"
    gangs.wait_reason("waits", "QuotaExhausted", 25)
    time.sleep(20)
    written = _writes(cluster, before)
    del written["leases", "tallyman"]
    assert written == {("queues", queue): 1, ("admissions", "waits"): 1}, written
