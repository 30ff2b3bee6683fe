"""Plans in the way of the Sieve method: every story is told once without a fault, its writes are
listed, and then it is told again for each of them with a fault at exactly that write. Each time it
has to come to the same end."""

import concurrent.futures
import itertools
import json
import queue
import random
import time
import traceback

from .rules import Plan
from .stories import STORIES
from .witness import end_state
from .worlds import World

SETTLE_S = 20
QUIET_S = 10.5    # positions and explanations of those who wait are refreshed every ten seconds
CHECKED_S = 1.0
LEASE_STORY, LEASE_WRITES = "s1", 2    # which has a Lease; it is written without end
LEASE_LOST = "the lease couldn't be renewed in time"
LEASE_PATIENCE_S = 3.3    # a leader's, for one answer: a third of the time in which it has to renew
# While the controller is away kube evicts the one pod itself and the Job replaces it: whether anything
# is left to stop when it comes back is a matter of luck.
LOST_RACES = {("s7", "PATCH jobs/train stop", "before")}
HIDDEN = (("jobs",), ("pods",), ("resourceclaims",), ("jobs", "pods", "resourceclaims"))


class Outcome:
    """What came of one run."""

    def __init__(self, name, plan=None):
        self.name, self.plan, self.problems = name, plan, []
        self.end, self.counts, self.writes = None, None, []
        self.is_starved = False     # the leader gave up since the server took too long over its Lease
        self.is_fired, self.seconds, self.log = False, 0.0, ""


class Teller:
    """Tells stories in `slots` worlds side by side."""

    def __init__(self, cluster, token, binary, directory, slots, say=lambda text: None):
        self.cluster, self.token, self.binary = cluster, token, binary
        self.directory, self.slots, self.say = directory, slots, say
        self._free = queue.SimpleQueue()
        for number in range(slots):
            self._free.put(f"w{number}")
        self._numbers, self._run = itertools.count(1), f"{int(time.time()) % 1000000}"
        self.references, self.told_again = {}, 0

    def tell(self, story, plan=None):
        """One run; a second one where the machine had no time for the Lease in the first."""
        outcome = self._tell_once(story, plan)
        if outcome.problems and outcome.is_starved:
            self.told_again += 1
            outcome = self._tell_once(story, plan)
        return outcome

    def _tell_once(self, story, plan):
        """In a world of its own."""
        world_name = self._free.get()
        name = f"{story}-{next(self._numbers)}-{self._run}"
        outcome = Outcome(name, plan)
        started = time.monotonic()
        world = World(self.cluster, self.token, self.binary, self.directory, name, world_name, plan,
                      story == LEASE_STORY)
        try:
            world.open()
            self._tell_in(world, story, outcome)
        except Exception as error:
            text = str(error) if isinstance(error, AssertionError) else traceback.format_exc()
            outcome.problems.append(text)
            outcome.log = world.controller.log_tail(40) if world.controller else ""
        # What clearing up writes is no part of the story: no plan is made of it, and none fires there.
        outcome.writes, outcome.is_fired = world.rules.end_story()
        try:
            world.clear()
            if not outcome.problems:
                outcome.problems += [text for text in [world.replay()] if text]
        except Exception as error:
            outcome.problems.append(f"at the end: {error}")
        outcome.is_starved = world.controller is not None and \
            LEASE_LOST in world.controller.log_text() and \
            world.rules.slowest_lease_s > LEASE_PATIENCE_S
        world.close()
        outcome.seconds = time.monotonic() - started
        self._free.put(world_name)
        return outcome

    def _tell_in(self, world, story, outcome):
        function, slots = STORIES[story]
        function(world)
        world.wait_restarted()
        reference = self.references.get(story)
        outcome.end = self._settle(world, reference)
        settled = time.monotonic()
        late = world.wait_quiet(settled, QUIET_S, CHECKED_S)
        if late:
            outcome.problems.append(f"still writing {QUIET_S:g} s after all was settled: {late}")
        world.witness.close()
        problems, outcome.counts = world.witness.verdict(slots)
        outcome.problems += problems[:5]
        if reference:
            outcome.problems += _differences(reference, outcome)

    @staticmethod
    def _settle(world, reference):
        """The end state, once it is the reference's, or doesn't change for two seconds."""
        deadline = time.monotonic() + SETTLE_S
        last, since = None, time.monotonic()
        while True:
            state = json.loads(json.dumps(end_state(world)))
            if reference and state == reference.end:
                return state
            if state != last:
                last, since = state, time.monotonic()
            is_still = time.monotonic() - since > 2.0
            if (is_still and not reference) or time.monotonic() > deadline:
                return state
            time.sleep(0.3)

    def tell_all(self, items):
        """[(story, plan)] side by side; the outcomes as they come."""
        with concurrent.futures.ThreadPoolExecutor(self.slots) as pool:
            running = [pool.submit(self.tell, story, plan) for story, plan in items]
            for future in concurrent.futures.as_completed(running):
                yield future.result()

    def tell_references(self, stories=tuple(STORIES)):
        """Every story once without a fault: the states, counts and writes that the plans are made
        from and held against."""
        failed = []
        for outcome in self.tell_all([(story, None) for story in stories]):
            story = outcome.name.split("-")[0]
            self.say(f"{story}: {outcome.seconds:.0f} s, "
                     f"{sum(not write.is_lease for write in outcome.writes)} writes")
            if outcome.problems:
                failed.append(f"{story} without a fault: {outcome.problems}\n{outcome.log}")
            self.references[story] = outcome
        assert not failed, "\n".join(failed)

    def plans(self):
        """All of them, in a fixed order."""
        return [plan for story in STORIES if story in self.references
                for plan in _plans_of(story, self.references[story].writes)]


def sample(plans, count, seed):
    return plans if count >= len(plans) else random.Random(seed).sample(plans, count)


def _plans_of(story, writes):
    """Each write of a Job, a pod or a Lease with all that may befall it; of the others, which tell
    and decide nothing, one kill before and one after, in turn with the store kept and lost."""
    keys = dict.fromkeys((write.key, write.number, write.is_lease) for write in writes)
    for place, (key, number, is_lease) in enumerate(keys):
        if is_lease and number > LEASE_WRITES:
            continue
        is_job = " jobs/" in key
        fates = [(what, store) for what in ("before", "after") for store in ("kept", "lost")]
        if not is_job and not is_lease and " pods/" not in key:
            fates = [fates[0], fates[3]] if place % 2 else [fates[1], fates[2]]
        for what, store in fates:
            if (story, key, what) in LOST_RACES:
                continue
            yield Plan(story, what, key, number, store)
        if is_job:
            for lag in (0, 4):
                yield Plan(story, "stale", key, number, "lost", lag=lag)
            for hidden in HIDDEN[place % 2::2]:
                yield Plan(story, "hidden", key, number, hidden=hidden)


def _differences(reference, outcome):
    found = []
    if outcome.counts != reference.counts:
        found.append(f"(started, stopped) by Job: {outcome.counts}, without the fault "
                     f"{reference.counts}")
    for part, wanted in reference.end.items():
        seen = outcome.end[part]
        if seen == wanted:
            continue
        if isinstance(wanted, dict):
            names = sorted(set(wanted) | set(seen))
            found += [f"{part}/{name}: {seen.get(name)}, without the fault {wanted.get(name)}"
                      for name in names if seen.get(name) != wanted.get(name)]
        else:
            found.append(f"{part}: {seen}, without the fault {wanted}")
    return found
