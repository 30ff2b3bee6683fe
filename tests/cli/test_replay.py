"""tallyman replay: the journal of a store and of a file, whole, cut, forged, and of another build."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time

from objects import job, namespace, node, queue
from watched import WatchedApi

CLUSTER = [namespace("kube-system"), namespace("quay"), node("n1"), queue("crane", "4"),
           job("a", "crane", 3)]
WAIT_S = 30


def until(what, condition):
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"not in {WAIT_S} s: {what}"
        time.sleep(0.02)


class Controller:
    def __init__(self, bench, *arguments, objects=None):
        self.bench = bench
        self.api = WatchedApi(CLUSTER if objects is None else objects)
        self.arguments = [bench.binary, "run", "--kubeconfig", bench.kubeconfig(self.api),
                          "--no-leader-election", *arguments]
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.arguments, stderr=subprocess.DEVNULL,
                                        env=self.bench.environment())

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(WAIT_S)
        assert status in (0, -signal.SIGKILL), f"the controller ended with {status}"

    def create(self, each):
        self.api.create(each)

    def is_admitted(self, name):
        return not self.api.get("Job", "quay", name)["spec"]["suspend"]

    def reason(self, name):
        found = self.api.get("Admission", "quay", name)
        return found and found["status"].get("reason")

    def told(self):
        until("a admitted", lambda: self.is_admitted("a"))
        self.create(job("b", "crane", 2))
        until("b told why it waits", lambda: self.reason("b") == "QuotaExhausted")


@contextlib.contextmanager
def controller(bench, *arguments, **more):
    running = Controller(bench, *arguments, **more)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.stop()
        running.api.close()


def recorded(bench):
    """The lines of one controller that admitted a and let b wait."""
    path = os.path.join(bench.directory, "recorded.journal")
    with controller(bench, "--journal", path) as running:
        running.told()
        running.stop()
    with open(path, encoding="utf-8") as lines:
        return lines.read().splitlines(keepends=True)


def replay(bench, lines, *arguments):
    return bench.run("replay", bench.file("".join(lines), "given.journal"), *arguments)


def test_a_stores_journal_is_repeated_beside_its_controller_and_after_it(bench):
    store = os.path.join(bench.directory, "store")
    with controller(bench, "--store", store) as running:
        running.told()
        time.sleep(0.5)
        while_it_runs = bench.run("replay", store).expect(0, "all as they were")
        running.create(job("c", "crane", 1))
        until("c admitted", lambda: running.is_admitted("c"))
        running.stop()
    after = bench.run("replay", store).expect(0, "all as they were")
    events = [int(answer.out.split()[0]) for answer in (while_it_runs, after)]
    assert 10 < events[0] < events[1], f"more was recorded meanwhile: {events}"


def test_a_restart_begins_a_part_of_its_own(bench):
    store = os.path.join(bench.directory, "store")
    with controller(bench, "--store", store) as running:
        running.told()
        running.stop()
        running.start()
        running.create(job("c", "crane", 1))
        until("c admitted", lambda: running.is_admitted("c"))
        running.stop()
    answer = bench.run("replay", store, "--trace").expect(0, "all as they were")
    assert len(re.findall(r"a controller of version \S+ starts", answer.out)) == 2


def test_the_trace_says_who_was_looked_at_and_what_came_of_it(bench):
    lines = recorded(bench)
    answer = replay(bench, lines, "--trace").expect(0)
    assert re.search(r"#\d+  20\S+Z  every \w+ is listed\n      1\. quay/a of crane: admitted\n"
                     r"    decided: admit quay/a uid=uid-quay-a record=", answer.out), answer.out
    assert re.search(r"Job quay/b is new or changed\n      1\. quay/b of crane: waits, "
                     r"QuotaExhausted: needs 2 cpu at once, queue crane has 1 of 4 free",
                     answer.out), answer.out
    only = replay(bench, lines, "--job", "quay/b").expect(0)
    assert "quay/b of crane: waits" in only.out and "quay/a" not in only.out
    replay(bench, lines, "--job", "b").expect(2, "isn't NAMESPACE/NAME")
    replay(bench, lines, "--job", "quay/nobody").expect(2, "has nothing of Job quay/nobody")


def test_it_stops_at_a_time_or_a_line_and_says_where_all_stood(bench):
    lines = recorded(bench)
    born = next(number for number, line in enumerate(lines, 1)
                if '"kind":"Job"' in line and '"name":"b"' in line)
    before = replay(bench, lines, "--until", str(born - 1)).expect(0, "Where every gang stood")
    after = replay(bench, lines, "--until", str(born)).expect(0, "Where every gang stood")
    assert not re.search(r"quay +b ", before.out) and re.search(r"quay +b +crane +Wait", after.out)
    assert re.search(r"quay +a +crane +Keep", before.out)
    now_ms = json.loads(lines[born - 1])["now"]
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime((now_ms - 1) / 1000))
    at = replay(bench, lines, "--until", f"{stamp}.{(now_ms - 1) % 1000:03d}Z").expect(0)
    assert not re.search(r"quay +b ", at.out), "b came a moment later"
    replay(bench, lines, "--until", "tomorrow").expect(2, "2026-11-29T03:00:00Z", "of a line")


def test_another_decision_is_shown_beside_the_one_of_then(bench):
    lines = recorded(bench)
    forged = [line.replace('admit quay/a', 'admit quay/z') for line in lines]
    replay(bench, forged).expect(1, "another decision", "then: admit quay/z", "now:  admit quay/a")
    left_out = [line for line in lines if "admit quay/a" not in line]
    replay(bench, left_out).expect(1, "then: (none)", "now:  admit quay/a")
    twice = [part for line in lines for part in [line] * (2 if "admit quay/a" in line else 1)]
    replay(bench, twice).expect(1, "another decision")


def test_a_journal_without_its_beginning_says_so(bench):
    lines = recorded(bench)
    answer = replay(bench, lines[3:], "--trace").expect(
        2, "line 1: the journal's beginning is cut off", "no controller starts in it")
    assert "recorded: admit quay/a" in answer.out, "what was decided can still be read"
    replay(bench, lines[3:] + lines).expect(0, "beginning is cut off", "all as they were")


def test_lost_lines_are_a_hole_that_nothing_is_repeated_behind(bench):
    lines = recorded(bench)
    hole = lines[:8] + ['{"lost":3}\n'] + lines[11:]
    answer = replay(bench, hole).expect(0, "3 lines in front of it were lost")
    assert answer.out.startswith("7 events, 0 with decisions"), answer.out
    replay(bench, hole + lines).expect(0, "were lost", "all as they were")


def test_a_killed_controllers_half_line_ends_its_part(bench):
    lines = recorded(bench)
    half = lines[-1][:len(lines[-1]) // 2]
    replay(bench, lines[:-1] + [half]).expect(2, f"line {len(lines)} isn't whole")
    path = bench.file("".join(lines[:-1]) + half, "killed.journal")
    with controller(bench, "--journal", path, objects=CLUSTER) as running:
        until("a admitted", lambda: running.is_admitted("a"))
        running.stop()
    bench.run("replay", path).expect(0, "the line before it isn't whole", "all as they were")
    replay(bench, lines[:5] + ["rumour\n"] + lines[5:]).expect(2, "line 6 isn't whole, or none")


def test_a_decision_that_wasnt_written_any_more_is_no_other_decision(bench):
    lines = recorded(bench)
    decided = next(i for i, line in enumerate(lines) if "admit quay/a" in line)
    replay(bench, lines[:decided]).expect(0, "isn't in the journal", "all as they were")
    replay(bench, lines[:decided] + lines).expect(0, "isn't in the journal", "all as they were")


def test_a_journal_of_another_build_says_so(bench):
    lines = recorded(bench)
    start = {**json.loads(lines[0]), "start": "0.0.9", "build": "abad1dea"}
    replay(bench, [json.dumps(start) + "\n"] + lines[1:]).expect(
        0, "recorded by another build (0.0.9 abad1dea; this is ")
    assert "another build" not in replay(bench, lines).err


def test_what_is_no_journal_is_refused(bench):
    bench.run("replay", os.path.join(bench.directory, "nowhere")).expect(2, "can't be opened")
    empty = os.path.join(bench.directory, "no-store")
    os.mkdir(empty)
    bench.run("replay", empty).expect(2, "there is no store in directory")
    replay(bench, []).expect(2, "has no events")
    bench.run("replay").expect(2, "usage: tallyman replay")
