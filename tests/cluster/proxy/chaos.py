"""Faults at random, from a seed, while hundreds of Jobs come and go: soon after the end of each fault a
gang that comes is started, memory stays flat, and in the end every Job has had its run, once."""

import collections
import random
import shutil
import signal
import threading
import time

from lib import manifests

from . import control, faults
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
POLL_S = 0.02
SLOW_REQUEST_S = 0.3       # told when a start came too late
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
    """Samples the controller's own memory, life by life; the pages of its store's file that it maps are
    the system's cache, and told."""

    def __init__(self, controller):
        super().__init__(name="memory", daemon=True)
        self.controller, self.lives = controller, collections.defaultdict(list)
        self.is_stopping, self.most_resident = False, 0

    def run(self):
        began = {}
        while not self.is_stopping:
            life = self.controller.runs
            began.setdefault(life, time.monotonic())
            try:
                self.lives[life].append((time.monotonic() - began[life],
                                         self.controller.memory_bytes("RssAnon")))
                self.most_resident = max(self.most_resident, self.controller.memory_bytes())
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
        self.place = control.Place(context, self.bench)
        self.probes = context.name("probes")
        context.apply(manifests.queue(self.probes, {"cpu": "2"}))
        self.counts, self.recoveries = collections.Counter(), []   # (seconds, control, fault)

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
        beside = control.Control(self.place, f"control-{number}")
        self.bench.gangs.create(manifests.job(probe, self.bench.namespace, queue=self.probes, pods=1,
                                              cpu="10m", run_for="300ms",
                                              spec={"ttlSecondsAfterFinished": 5}))
        self.bench.expected.add(probe)
        is_started, took_s = self._wait_started(probe, ended, beside)
        delay_s = beside.stop()
        assert is_started and took_s <= SOON_S + delay_s, self._late(number, name, took_s, delay_s,
                                                                     ended)
        self.counts[name] += 1
        self.recoveries.append((took_s, delay_s, name))

    def _wait_started(self, probe, ended, beside):
        """(whether it was seen to start, how long after the fault's end). It is waited for until it is
        surely late: the trip that was under way when it seemed so has ended, too."""
        trips = None
        while True:
            is_started = probe in self.bench.started()
            took_s = time.monotonic() - ended
            if is_started:
                return True, took_s
            if took_s > SOON_S + beside.delay_s():
                trips = beside.trips if trips is None else trips
                if beside.trips > trips:
                    return False, took_s
            time.sleep(POLL_S)

    def _late(self, number, name, took_s, delay_s, ended):
        slow = [f"{begun - ended:+.1f} s, {answered - begun:.1f} s: {text}"
                for begun, answered, text in list(self.bench.faults.requests)
                if answered > ended and answered - begun > SLOW_REQUEST_S]
        count = sum(answered > ended for _, answered, _ in list(self.bench.faults.requests))
        return (f"after fault {number}, {name}, the probe hasn't started in {took_s:.1f} s; a control "
                f"straight at the server needed {delay_s:.1f} s, {SOON_S:g} s are allowed besides. The "
                f"controller had {count} answers since, of them slow: {slow}")

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

    def _tell_recoveries(self):
        took, delays = ([item[at] for item in self.recoveries] for at in (0, 1))
        beyond = [took_s - delay_s for took_s, delay_s, _ in self.recoveries]
        for what, values in (("a probe started after a fault's end", took),
                             ("a control straight at the server took", delays),
                             ("the probe without the control", beyond)):
            values = sorted(values)
            p50, p99 = (values[int((len(values) - 1) * share)] for share in (0.5, 0.99))
            self.context.note(f"{what}: median {p50:.2f} s, p99 {p99:.2f} s, most {values[-1]:.2f} s")
        late = sum(value > SOON_S for value in took)
        self.context.note(f"{late} of {len(took)} later than {SOON_S:g} s, none of them by more than the "
                          f"control; slowest after {max(self.recoveries)[2]}")

    def _judge(self, load, memory):
        self.bench.course.close()
        lives, most_running, _ = self.bench.course.judge(SLOTS + 20)
        odd = {name: (lives[name].started, lives[name].stopped) for name in self.bench.expected
               if (lives[name].started, lives[name].stopped) != (1, 0)}
        faults_told = ", ".join(f"{name.removeprefix('fault_')} {count}"
                                for name, count in sorted(self.counts.items()))
        self.context.note(f"{sum(self.counts.values())} faults ({faults_told})")
        self.context.note(f"{load.made} Jobs, most pods at once {most_running}")
        self._tell_recoveries()
        self.context.note(f"with the store's mapped file {memory.most_resident / 1e6:.1f} MB at most")
        for life, early, late in memory.growth():
            self.context.note(f"life {life}: {early / 1e6:.1f} MB, at its end {late / 1e6:.1f} MB")
            assert late < early * GROWTH_MAX + GROWTH_FREE_BYTES, "memory grows"
        assert not odd, f"Jobs (times started, times stopped), each should be (1, 0): {odd}"
