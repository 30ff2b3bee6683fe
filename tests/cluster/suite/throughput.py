"""A thousand Jobs through one small queue: nothing over quota at any write, no gang partial by our
doing, few writes. And the journal of that run, played again, decides the same."""

import collections
import json
import os
import pathlib
import subprocess
import time

from lib import manifests
from lib.course import Course

JOBS = int(os.environ.get("TALLYMAN_JOBS", "1000"))
GANG_EVERY = 5          # each fifth Job is a gang of four, the others are single pods
GANG = 4
SLOTS = 50
POD_MILLI = 100
FINISH_TIMEOUT_S = 600
BINDING_MAX_S = 30      # how long kube-scheduler may take over one gang on a machine this busy
ADMISSIONS_PER_JOB_MAX = 8
USER = "system:serviceaccount:tallyman-system:tallyman"


def _jobs(namespace, queue):
    return [manifests.job(f"job-{number}", namespace, queue=queue, cpu=f"{POD_MILLI}m",
                          pods=GANG if number % GANG_EVERY == 0 else 1, run_for="1s")
            for number in range(JOBS)]


def _writes_by_kind(cluster, since):
    counts = collections.Counter()
    for event in cluster.audit_events(user=USER, writes_only=True, since=since):
        code = event["responseStatus"]["code"]
        outcome = "" if code < 400 else f" refused with {code}"
        counts[f"{event['verb']} {event['objectRef']['resource']}{outcome}"] += 1
    return counts


def _used_cpu(controller, queue):
    return sum(value for key, value in controller.metrics().items()
               if key.startswith("tallyman_quota_used") and f'queue="{queue}"' in key
               and 'resource="cpu"' in key)


def _assert_gangs_whole(lives):
    slowest = 0
    for life in lives.values():
        gap = life.binding_s()
        assert gap is not None, f"{life.name}: {len(life.bound_at)} of {life.pods} pods were bound"
        assert gap <= BINDING_MAX_S, f"{life.name} was partial for {gap:.1f} s"
        slowest = max(slowest, gap)
    return slowest


def _replay(context, journal):
    return subprocess.run([context.session.binary, "replay", journal], capture_output=True,
                          text=True, timeout=300, check=False)


def _check_replay(context, journal):
    """The same decisions; a forged one is noticed; a line cut in the middle is no journal."""
    started = time.monotonic()
    result = _replay(context, journal)
    assert result.returncode == 0, f"replay: status {result.returncode}: {result.stdout[-1500:]}"
    context.note(f"replay: {result.stdout.strip()}, {time.monotonic() - started:.1f} s")
    lines = pathlib.Path(journal).read_text(encoding="utf-8").splitlines(keepends=True)
    decided = [number for number, line in enumerate(lines) if "admit " in line
               and line.startswith('{"decisions"')]
    assert len(decided) > 10, "the journal holds few decisions to admit"
    middle = decided[len(decided) // 2]
    forged = pathlib.Path(str(journal) + ".forged")
    for what, text, status in (
            ("a decision about another Job", lines[middle].replace("job-", "jab-", 1), 1),
            ("a decision left out", "", 1),
            ("a decision that wasn't made", lines[decided[0]] * 2, 1),
            ("a line cut short", lines[middle][:len(lines[middle]) // 2], 2),
            ("an event of no kind", json.dumps({"now": 1, "event": "rumour"}) + "\n", 2)):
        forged.write_text("".join([*lines[:middle], text]), encoding="utf-8")
        if what in ("a decision left out",):
            forged.write_text("".join([*lines[:middle], *lines[middle + 1:]]), encoding="utf-8")
        result = _replay(context, forged)
        assert result.returncode == status, (f"{what}: replay's status is {result.returncode}, not "
                                             f"{status}: {result.stdout[-500:]}{result.stderr}")
        assert result.stderr if status == 2 else "line " in result.stdout, f"{what}: unexplained"


def test_a_thousand_jobs_pass_one_queue_of_fifty_slots(context):
    cluster, namespace, queue = context.cluster, context.namespace, context.name("narrow")
    journal = context.session.scratch / f"{context.suffix}.journal"
    controller = context.controller(arguments=["--journal", journal])
    context.apply(manifests.queue(queue, {"cpu": f"{SLOTS * POD_MILLI}m"}))
    course = Course(cluster, namespace)
    context.defer(course.close)
    since = cluster.audit_position()
    started = time.monotonic()
    cluster.create_many(f"/apis/batch/v1/namespaces/{namespace}/jobs", _jobs(namespace, queue))
    created_s = time.monotonic() - started
    cluster.wait_for(lambda: len(course.jobs_finished()) == JOBS, FINISH_TIMEOUT_S,
                     f"all {JOBS} Jobs finished")
    took_s = time.monotonic() - started
    cluster.wait_for(lambda: _used_cpu(controller, queue) == 0, 20, "nothing is charged any more")
    cpu_s, most_bytes = controller.cpu_seconds(), controller.memory_bytes("VmHWM")
    time.sleep(3)  # the last Admissions and statuses
    course.close()
    lives, most_running, most_charged = course.judge(SLOTS)
    assert len(lives) == JOBS
    odd = [life.name for life in lives.values() if (life.started, life.stopped) != (1, 0)]
    assert not odd, f"let go more or less than once, or stopped: {odd[:10]}"
    slowest = _assert_gangs_whole(lives)
    writes = _writes_by_kind(cluster, since)
    assert writes["patch jobs"] == JOBS, f"one PATCH per Job would do: {dict(writes)}"
    tried_again = writes["patch jobs refused with 409"]  # the Job's own controller was quicker
    assert tried_again < JOBS / 10, f"too many PATCHes came too late: {dict(writes)}"
    admissions = sum(count for key, count in writes.items() if " admissions" in key)
    assert admissions <= ADMISSIONS_PER_JOB_MAX * JOBS, f"Admission writes: {dict(writes)}"
    assert most_running >= SLOTS * 0.8, f"at most {most_running} of {SLOTS} slots were ever used"
    context.note(f"{JOBS} Jobs created in {created_s:.0f} s, all finished after {took_s:.0f} s; "
                 f"most pods at once {most_running}, most charged {most_charged} of {SLOTS}")
    context.note(f"slowest binding of a gang {slowest:.1f} s")
    context.note("writes per Job: " + ", ".join(
        f"{key} {count / JOBS:.2f}" for key, count in sorted(writes.items())))
    context.note(f"controller: {cpu_s:.1f} s CPU, at most {most_bytes / 1e6:.0f} MB resident")
    assert controller.stop() == 0
    _check_replay(context, journal)
