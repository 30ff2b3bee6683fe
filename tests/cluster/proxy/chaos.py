"""Faults at random, from a seed, while hundreds of Jobs come and go: soon after the end of each fault a
gang that comes is started, memory stays flat, and in the end every Job has had its run, once."""

import collections
import random
import shutil
import signal
import threading
import time

from lib import manifests

from . import faults
from .bench import JOBS, SLOTS, SOON_S, Bench
from .relay import Answer

POPULATION = 500
TOP_UP_S = 1.0
SAMPLE_S = 2.0
GROWTH_MAX = 1.25          # of memory, from a life's first steady minute to its end
GROWTH_FREE_BYTES = 8e6
STEADY_S = 60
STUCK_S = 60
LASTS_S = (0.5, 4.0)       # a fault
PAUSE_S = (1.0, 4.0)       # between two
DIRECT_FACTOR = 30         # a start may take so many writes' time more on a machine that is busy
KINDS = ("jobs", "pods", "queues", "admissions", "nodes", faults.ALL)


class _Load(threading.Thread):
    """Keeps POPULATION Jobs there: whoever has finished is deleted by its TTL, and another comes."""

    def __init__(self, bench, randomness):
        super().__init__(name="load", daemon=True)
        self.bench, self.randomness = bench, randomness
        self.made, self.is_stopping, self.error = 0, False, None

    def run(self):
        try:
            while not self.is_stopping:
                self._top_up()
                time.sleep(TOP_UP_S)
        except Exception as error:
            self.error = error

    def _top_up(self):
        missing = POPULATION - (self.made - len(self.bench.course.jobs_finished()))
        jobs = []
        for _ in range(min(missing, 100)):
            self.made += 1
            jobs.append(manifests.job(
                f"load-{self.made}", self.bench.namespace, queue=self.bench.queue, cpu="100m",
                pods=self.randomness.choice((1, 1, 2, 4)),
                run_for=f"{self.randomness.randint(500, 3000)}ms",
                spec={"ttlSecondsAfterFinished": 1}))
        self.bench.cluster.create_many(JOBS.format(self.bench.namespace), jobs)
        self.bench.expected |= {job["metadata"]["name"] for job in jobs}


class _Memory(threading.Thread):
    """Samples the controller's resident size, life by life."""

    def __init__(self, controller):
        super().__init__(name="memory", daemon=True)
        self.controller, self.lives = controller, collections.defaultdict(list)
        self.is_stopping = False

    def run(self):
        began = {}
        while not self.is_stopping:
            life = self.controller.runs
            began.setdefault(life, time.monotonic())
            try:
                self.lives[life].append((time.monotonic() - began[life],
                                         self.controller.memory_bytes()))
            except (AssertionError, OSError, AttributeError):
                pass    # between two lives
            time.sleep(SAMPLE_S)

    def growth(self):
        """[(life, bytes in its first steady minute, bytes at its end)] of lives long enough."""
        found = []
        for life, samples in self.lives.items():
            if not samples or samples[-1][0] < 3 * STEADY_S:
                continue
            early = max(size for at, size in samples if at <= 2 * STEADY_S)
            late = max(size for at, size in samples if at >= samples[-1][0] - STEADY_S)
            found.append((life, early, late))
        return found


class Chaos:
    """One run. A fault is a method named fault_…, which ends it itself."""

    def __init__(self, context, seed):
        self.context, self.random = context, random.Random(seed)
        self.bench = Bench(context).start()
        self.probes = context.name("probes")
        context.apply(manifests.queue(self.probes, {"cpu": "2"}))
        self.counts, self.slowest_s, self.late = collections.Counter(), (0.0, ""), 0

    def _lasting(self):
        time.sleep(self.random.uniform(*LASTS_S))

    def _kind(self):
        return self.random.choice(KINDS)

    def fault_cut(self):
        self.bench.faults.cut(self._kind())

    def fault_torn_event(self):
        self.bench.faults.tear_event(self.random.choice(KINDS[:4]))

    def fault_ended(self):
        self.bench.faults.end(self._kind())

    def fault_expired(self):
        self.bench.faults.expire(self.random.choice(KINDS[:4]))

    def fault_hung(self):
        self.bench.faults.muted = {self._kind()}
        self._lasting()

    def fault_answers_lost(self):
        share = self.random.uniform(0.1, 0.9)
        self.bench.faults.lose = lambda request: self.random.random() < share
        self._lasting()

    def fault_answers_torn(self):
        self.bench.faults.tear = lambda request: self.random.random() < 0.5
        self._lasting()

    def fault_writes_dropped(self):
        self.bench.faults.drop = lambda request: self.random.random() < 0.67
        self._lasting()

    def fault_refused(self):
        code, reason = self.random.choice(((500, "InternalError"), (503, "ServiceUnavailable"),
                                           (429, "TooManyRequests"), (504, "Timeout")))
        self.bench.faults.refusal = Answer.refusal(code, reason, "by chance")
        self._lasting()

    def fault_slow(self):
        self.bench.faults.delay_s = self.random.uniform(0.05, 0.5)
        self._lasting()

    def fault_away(self):
        self.bench.faults.is_down = True
        self.bench.faults.cut()
        self._lasting()

    def fault_empty(self):
        kind = self.random.choice(KINDS[:4])
        self.bench.faults.answers[kind].extend([Answer(200)] * 2)
        self.bench.faults.cut(kind)

    def fault_older_list(self):
        kind = self.random.choice(KINDS[:2])
        history = self.bench.faults.history
        self.bench.faults.older[kind] = (max(0, len(history) - self.random.randint(1, 30)), 1.0)
        self.bench.faults.expire(kind)
        time.sleep(1.5)

    def fault_stopped(self):
        self.bench.controller.process.send_signal(signal.SIGSTOP)
        self._lasting()
        self.bench.controller.process.send_signal(signal.SIGCONT)

    def fault_killed(self):
        if self.random.random() < 0.7:
            return self.fault_stopped()    # long lives, too, so that memory can be seen to be flat
        self.bench.controller.kill9()
        if self.random.random() < 0.5:
            shutil.rmtree(self.bench.controller.store, ignore_errors=True)
        self.bench.controller.start()
        return None

    def one(self, number):
        names = sorted(name for name in dir(self) if name.startswith("fault_"))
        name = self.random.choice(names)
        getattr(self, name)()
        self.bench.faults.off()
        ended = time.monotonic()
        probe = f"probe-{number}"
        self.bench.gangs.create(manifests.job(probe, self.bench.namespace, queue=self.probes, pods=1,
                                              cpu="10m", run_for="300ms",
                                              spec={"ttlSecondsAfterFinished": 5}))
        self.bench.expected.add(probe)
        direct_s = self._direct_s()
        try:
            self.bench.wait_started([probe])
        except AssertionError as error:
            # Is it the controller that is late, or has the machine no time for anybody?
            direct_s = max(direct_s, self._direct_s())
            try:
                self.bench.wait_started([probe], DIRECT_FACTOR * direct_s)
            except AssertionError:
                raise AssertionError(f"after fault {number}, {name}, with {direct_s:.2f} s for a "
                                     f"write straight at the server: {error}") from None
            self.late += 1
        self.counts[name] += 1
        self.slowest_s = max(self.slowest_s, (time.monotonic() - ended, name))

    def _direct_s(self):
        """How long a write takes straight at the API server."""
        began = time.monotonic()
        self.bench.gangs.create(manifests.job(f"direct-{began}".replace(".", "-"),
                                              self.bench.namespace, pods=1, suspend=True,
                                              spec={"ttlSecondsAfterFinished": 1}))
        return time.monotonic() - began

    def run(self, minutes):
        load = _Load(self.bench, random.Random(self.random.random()))
        memory = _Memory(self.bench.controller)
        load.start()
        memory.start()
        deadline, number = time.monotonic() + minutes * 60, 0
        while time.monotonic() < deadline:
            number += 1
            self.one(number)
            time.sleep(self.random.uniform(*PAUSE_S))
            assert load.error is None, load.error
        load.is_stopping = memory.is_stopping = True
        load.join()
        self._drain()
        self._judge(load, memory)

    def _drain(self):
        """Until everybody has had its run; it may take its time, as long as it goes on."""
        done, since = -1, time.monotonic()
        while done < len(self.bench.expected):
            now = len(self.bench.expected & self.bench.finished())
            if now > done:
                done, since = now, time.monotonic()
            assert time.monotonic() - since < STUCK_S, (
                f"{len(self.bench.expected) - done} Jobs left, and none ended for {STUCK_S} s")
            time.sleep(1)

    def _judge(self, load, memory):
        self.bench.course.close()
        lives, most_running, _ = self.bench.course.judge(SLOTS + 20)
        odd = {name: (lives[name].started, lives[name].stopped) for name in self.bench.expected
               if (lives[name].started, lives[name].stopped) != (1, 0)}
        faults_told = ", ".join(f"{name.removeprefix('fault_')} {count}"
                                for name, count in sorted(self.counts.items()))
        self.context.note(f"{sum(self.counts.values())} faults ({faults_told})")
        self.context.note(f"{load.made} Jobs, most pods at once {most_running}; slowest start after a "
                          f"fault {self.slowest_s[0]:.1f} s ({self.slowest_s[1]}), {self.late} later "
                          f"than {SOON_S:g} s on a machine too busy for a write straight at the server")
        for life, early, late in memory.growth():
            self.context.note(f"life {life}: {early / 1e6:.1f} MB, at its end {late / 1e6:.1f} MB")
            assert late < early * GROWTH_MAX + GROWTH_FREE_BYTES, "memory grows"
        assert not odd, f"Jobs (times started, times stopped), each should be (1, 0): {odd}"
