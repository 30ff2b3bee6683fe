"""kill -9 at random moments while 200 gangs are admitted, with the store kept, lost, or replaced by
an older copy before each new start: every time the same final state, no Job let go twice, no charge
lost, and nothing over quota at any write."""

import random
import shutil
import time

from lib import manifests
from lib.course import Course

SEED = 20260
SHORT_JOBS = 200
LASTING_JOBS = 4         # gangs of two that run to the end of the test: their charge must survive
LASTING_PODS = 2
SLOTS = 24
POD_MILLI = 100
LIVES_S = (0.2, 2.5)     # a controller is killed at a random moment of its life
KILLS_MIN = 12
FINISH_TIMEOUT_S = 240
JOBS = "/apis/batch/v1/namespaces/{}/jobs"
ADMISSIONS = "/apis/tallyman.dev/v1beta1/namespaces/{}/admissions"


def _jobs(namespace, queue, randomness):
    lasting = [manifests.job(f"lasting-{number}", namespace, queue=queue, pods=LASTING_PODS,
                             cpu=f"{POD_MILLI}m") for number in range(LASTING_JOBS)]
    short = [manifests.job(f"short-{number}", namespace, queue=queue, cpu=f"{POD_MILLI}m",
                           pods=randomness.choice((1, 1, 2, 4)), run_for="1s")
             for number in range(SHORT_JOBS)]
    return lasting, short


class _Store:
    """What becomes of the store between two lives of the controller."""

    def __init__(self, controller, fate):
        self.path, self.fate = controller.store, fate
        self.copy = controller.store.with_name(controller.store.name + ".old")

    def between_lives(self, number):
        if self.fate == "lost":
            shutil.rmtree(self.path, ignore_errors=True)
        elif self.fate == "older":
            if number == 1:
                shutil.copytree(self.path, self.copy)
            else:
                shutil.rmtree(self.path)
                shutil.copytree(self.copy, self.path)


def _kill_until(controller, store, course, wanted, randomness):
    """Kills and starts the controller until all wanted Jobs have been let go."""
    kills = 0
    deadline = time.monotonic() + FINISH_TIMEOUT_S
    while not wanted <= course.jobs_started():
        assert time.monotonic() < deadline, (
            f"{len(wanted - course.jobs_started())} Jobs were not admitted in time, after {kills} "
            f"kills. The end of the controller's log:\n{controller.log_tail()}")
        time.sleep(randomness.uniform(*LIVES_S))
        assert controller.is_alive(), f"it ended on its own:\n{controller.log_tail()}"
        controller.kill9()
        kills += 1
        store.between_lives(kills)
        controller.start(is_ready_awaited=False)
    return kills


def _charged_pods(controller, queue):
    values = [value for key, value in controller.metrics().items()
              if key.startswith("tallyman_quota_used") and f'queue="{queue}"' in key
              and 'resource="cpu"' in key]
    return round(sum(values) * 1000 / POD_MILLI)


def _status_milli(cluster, queue):
    """What the Queue's status says to be used of cpu: "800m", "2"; absent is none."""
    status = cluster.get_json(f"/apis/tallyman.dev/v1beta1/queues/{queue}").get("status", {})
    used = [item.get("used", "0") for flavor in status.get("flavors", [])
            for item in flavor.get("resources", []) if item["name"] == "cpu"]
    return sum(int(text[:-1]) if text.endswith("m") else int(text) * 1000 for text in used)


def _admission_states(cluster, namespace):
    return {item["metadata"]["name"]: item.get("status", {}).get("state")
            for item in cluster.items(ADMISSIONS.format(namespace))}


def _check_charge(context, controller, queue, pods, when):
    """The books say that so many pods are charged, in /metrics and in the Queue's status."""
    cluster = context.cluster
    controller.wait_ready()
    cluster.wait_for(lambda: _charged_pods(controller, queue) == pods, 15,
                     f"{when}: {pods} pods charged by /metrics")
    cluster.wait_for(lambda: _status_milli(cluster, queue) == pods * POD_MILLI, 15,
                     f"{when}: {pods} pods charged by the Queue's status")


def _run(context, fate):
    randomness = random.Random(f"{SEED} {fate}")
    cluster, namespace, queue = context.cluster, context.namespace, context.name("k")
    controller = context.controller()
    context.apply(manifests.queue(queue, {"cpu": f"{SLOTS * POD_MILLI}m"}))
    store = _Store(controller, fate)
    course = Course(cluster, namespace)
    context.defer(course.close)
    lasting, short = _jobs(namespace, queue, randomness)
    cluster.create_many(JOBS.format(namespace), lasting)
    lasting_names = {job["metadata"]["name"] for job in lasting}
    cluster.wait_for(lambda: lasting_names <= course.jobs_started(), 20, "the lasting gangs run")
    cluster.create_many(JOBS.format(namespace), short)
    short_names = {job["metadata"]["name"] for job in short}

    started = time.monotonic()
    kills = _kill_until(controller, store, course, short_names, randomness)
    cluster.wait_for(lambda: short_names <= course.jobs_finished(), 60, "the short Jobs finished")
    lasting_pods = LASTING_JOBS * LASTING_PODS
    _check_charge(context, controller, queue, lasting_pods, "when only the lasting gangs run")
    controller.kill9()
    store.between_lives(kills + 1)
    controller.start()
    _check_charge(context, controller, queue, lasting_pods, "after one more kill")
    _check_final_state(cluster, namespace, lasting_names, short_names)
    for name in lasting_names:
        cluster.request("DELETE", f"{JOBS.format(namespace)}/{name}?propagationPolicy=Background")
    _check_charge(context, controller, queue, 0, "when nothing runs any more")
    course.close()

    lives, most_running, most_charged = course.judge(SLOTS)
    odd = {life.name: (life.started, life.stopped) for life in lives.values()
           if (life.started, life.stopped) != (1, 0)}
    assert not odd, f"Jobs (times let go, times stopped), each should be (1, 0): {odd}"
    assert kills >= KILLS_MIN, f"only {kills} kills: too few to say anything"
    context.note(f"store {fate}: {kills} kills in {time.monotonic() - started:.0f} s; most pods at "
                 f"once {most_running}, most charged {most_charged} of {SLOTS}")


def _check_final_state(cluster, namespace, lasting_names, short_names):
    wanted = {**{name: "Running" for name in lasting_names},
              **{name: "Finished" for name in short_names}}

    def differences():
        states = _admission_states(cluster, namespace)
        return {name: (state, states.get(name)) for name, state in wanted.items()
                if states.get(name) != state}

    cluster.wait_for(lambda: not differences(), 30,
                     "every Admission in its final state")


def test_killed_with_the_store_kept(context):
    _run(context, "kept")


def test_killed_with_the_store_lost(context):
    _run(context, "lost")


def test_killed_with_the_store_older_than_the_cluster(context):
    _run(context, "older")
