"""Two replicas: one decides, the other has everything listed and stands by. It goes on within a
second when the leader stops in order, after the lease when it was killed, and a leader that slept
past its lease writes nothing any more."""

import signal
import time

from lib import manifests
from lib.cluster import stays
from lib.course import Course
from lib.gangs import Gangs

JOBS = "/apis/batch/v1/namespaces/{}/jobs"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/tallyman-system/leases/tallyman"
LEASE_S = 15
HAND_OVERS = 20
SLOTS = 20


def _replicas(context, count=2):
    replicas = []
    for number in range(count):
        replica = context.controller(arguments=["--identity", f"replica-{number}"])
        replicas.append(replica)
        if number == 0:
            _wait_leads(context, replica, 5)
    return replicas


def _leads(replica):
    return replica.metrics().get("tallyman_leader") == 1


def _wait_leads(context, replica, timeout_s):
    started = time.monotonic()
    context.cluster.wait_for(lambda: _leads(replica), timeout_s, "the replica leads")
    return time.monotonic() - started


def _writes(replica):
    return sum(value for key, value in replica.metrics().items()
               if key.startswith("tallyman_api_requests_total") and 'verb="get"' not in key
               and 'verb="list"' not in key and 'verb="watch"' not in key)


def _versions(context):
    return {job["metadata"]["name"]: job["metadata"]["resourceVersion"]
            for job in context.cluster.items(JOBS.format(context.namespace))}


def _start_jobs(context, queue, prefix, count):
    jobs = [manifests.job(f"{prefix}-{number}", context.namespace, queue=queue, pods=2, cpu="100m",
                          run_for="1s") for number in range(count)]
    context.cluster.create_many(JOBS.format(context.namespace), jobs)
    return {job["metadata"]["name"] for job in jobs}


def _check_started_once(course, names):
    course.close()
    lives, _, _ = course.judge(SLOTS)
    assert names <= set(lives), names - set(lives)
    for life in lives.values():
        assert (life.started, life.stopped) == (1, 0), (life.name, life.started, life.stopped)


def _prepare(context):
    queue = context.name("q")
    context.apply(manifests.queue(queue, {"cpu": f"{SLOTS * 100}m"}))
    course = Course(context.cluster, context.namespace)
    return queue, course


def test_only_the_leader_writes_and_hands_over_in_order(context):
    leader, standby = _replicas(context)
    queue, course = _prepare(context)
    names = _start_jobs(context, queue, "first", 4)
    context.cluster.wait_for(lambda: names <= course.jobs_finished(), 30, "the first Jobs finished")
    assert standby.is_ready() and not _leads(standby)
    assert _writes(standby) == 0, f"the replica that stands by wrote: {standby.metrics()}"

    assert leader.stop() == 0
    stopped = time.monotonic()
    _wait_leads(context, standby, 5)
    took_s = time.monotonic() - stopped
    context.note(f"handed over {took_s * 1000:.0f} ms after the leader had ended")
    assert took_s < 1
    names = _start_jobs(context, queue, "second", 4)
    context.cluster.wait_for(lambda: names <= course.jobs_finished(), 30, "the second Jobs finished")
    _check_started_once(course, names)
    spec = context.cluster.get_json(LEASE)["spec"]
    assert spec["holderIdentity"] == "replica-1" and spec["leaseDurationSeconds"] == LEASE_S, spec


def test_a_killed_leader_is_followed_after_the_lease(context):
    leader, standby = _replicas(context)
    leader.kill9()
    took_s = _wait_leads(context, standby, LEASE_S + 10)
    context.note(f"took over {took_s:.1f} s after kill -9")
    assert took_s < LEASE_S + 2, took_s


def test_a_leader_that_slept_past_its_lease_writes_nothing(context):
    leader, standby = _replicas(context)
    queue, course = _prepare(context)
    leader.process.send_signal(signal.SIGSTOP)
    names = _start_jobs(context, queue, "slept", 4)
    _wait_leads(context, standby, LEASE_S + 10)
    context.cluster.wait_for(lambda: names <= course.jobs_finished(), 30, "the Jobs finished")
    versions = _versions(context)
    leader.process.send_signal(signal.SIGCONT)
    assert leader.wait_ended(10) == 1
    assert "not leading any more" in leader.log_text()
    assert versions == _versions(context)
    _check_started_once(course, names)


def test_twenty_hand_overs_admit_each_job_once(context):
    replicas = _replicas(context)
    queue, course = _prepare(context)
    expected = set()
    slowest_s = 0
    for number in range(HAND_OVERS):
        expected |= _start_jobs(context, queue, f"turn-{number}", 3)
        leader, standby = replicas[number % 2], replicas[1 - number % 2]
        assert leader.stop() == 0
        slowest_s = max(slowest_s, _wait_leads(context, standby, 10))
        leader.start()
    context.cluster.wait_for(lambda: expected <= course.jobs_finished(), 60, "all Jobs finished")
    _check_started_once(course, expected)
    context.note(f"{HAND_OVERS} hand-overs, the slowest {slowest_s * 1000:.0f} ms; "
                 f"{len(expected)} Jobs started once each")


def test_a_standby_knows_the_back_off_of_what_the_leader_stopped(context):
    """It has been there all the time, and is told by the watch what was counted since."""
    leader, standby = _replicas(context)
    queue, gangs = context.name("b"), Gangs(context.cluster, context.namespace)
    context.apply(manifests.queue(queue, {"cpu": "1"}, podsReadyTimeout="2s",
                                  requeue={"base": "10m", "max": "1h"}))
    gangs.create(manifests.job("never", context.namespace, queue=queue, pods=2, cpu="100m",
                               pod_annotations={"example.com/never-ready": "true"}))
    gangs.wait_reason("never", "Backoff", 30)
    assert leader.stop() == 0
    _wait_leads(context, standby, 10)
    stays(lambda: gangs.is_suspended("never"), 3, "the gang waiting for the end of its back-off")
    gangs.wait_reason("never", "Backoff")
    status = gangs.status("never")
    assert (status["evictions"], status["requeue"]["count"]) == (1, 1), status
