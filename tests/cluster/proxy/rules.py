"""What the proxy does to a controller.

PlanRules  one plan: kill the controller before or after its n-th write of a kind, show it an older
           state when it is back, or hide what happened meanwhile. Keeps what it let through."""

import asyncio
import collections
import dataclasses
import threading
import time

from .history import History
from .relay import Answer, Cut, Rules

STALE_S = 1.5     # how long the older state is all that the new controller sees
HIDDEN_S = 1.5    # how long changes are kept from it


@dataclasses.dataclass(frozen=True)
class Plan:
    """One fault at one write. `what`: before, after (killed; its answer is lost), stale (after, and
    the next controller begins with the state from before it), hidden (nobody is killed; changes of
    the kinds in `hidden` aren't seen one by one). `store`: kept, lost."""

    story: str
    what: str
    write: str
    number: int
    store: str = "kept"
    hidden: tuple = ()
    lag: int = 0       # stale: so many events older still

    def __str__(self):
        more = f" hides {'+'.join(self.hidden)}" if self.hidden else ""
        more += f" -{self.lag}" if self.lag else ""
        return f"{self.story}: {self.what} {self.write} #{self.number}, store {self.store}{more}"


@dataclasses.dataclass
class Write:
    at: float
    key: str
    number: int
    status: int = 0    # 0: never passed on, or its answer not seen
    is_lease: bool = False


class PlanRules(Rules):
    """Rules of one controller's world."""

    def __init__(self, view, plan=None, kill=None):
        self.view, self.plan, self.kill = view, plan, kill
        self._is_over = False
        self.suffix = f"-{view.namespace}"
        self.writes, self.fired = [], threading.Event()
        self.slowest_lease_s = 0.0    # that the server took over a write of the Lease
        self.fired_at = None
        self._done = collections.Counter()
        self._history = History()
        self._cut_at = None         # how much of it the next controller sees at first
        self._stale_until = None
        self._hidden_until, self._expired = 0.0, set()
        self._streams = set()

    # ---- requests ----

    async def before(self, request):
        self.view.narrow(request)
        if request.is_write:
            return await self._before_write(request)
        if request.is_watch:
            if request.plural in self._expired and not request.is_watch_list:
                return Answer.refusal(410, "Expired", "too old resource version")
            self._expired.discard(request.plural)
            if request.is_watch_list:
                self._show_older(request)
        return None

    async def _before_write(self, request):
        key = request.write_key(self.suffix)
        # Tries that the server refuses don't count: how many there are is a matter of luck.
        write = Write(time.monotonic(), key, self._done[key] + 1, is_lease=request.is_lease)
        request.write = write
        self.writes.append(write)
        if not self._is_planned(write):
            return None
        self._cut_at = max(0, len(self._history) - self.plan.lag)
        if self.plan.what == "before":
            self._fire()
            raise Cut("killed before the write")
        return None

    async def after(self, request, answer):
        write = getattr(request, "write", None)
        if write is None:
            return answer
        write.status = answer.status
        if write.is_lease:
            self.slowest_lease_s = max(self.slowest_lease_s, time.monotonic() - write.at)
        if answer.status >= 300:
            return answer
        self._done[write.key] += 1
        if self._is_planned(write) and self.plan.what != "before":
            if self.plan.what == "hidden":
                self._hide()
            self._fire()
            if self.plan.what != "hidden":
                raise Cut("killed after the write")
        return answer

    def end_story(self):
        """The writes so far, and whether the plan came to its own; from now on it doesn't."""
        self._is_over = True
        return list(self.writes), self.fired.is_set()

    def _is_planned(self, write):
        return (self.plan is not None and not self._is_over and not self.fired.is_set()
                and (write.key, write.number) == (self.plan.write, self.plan.number))

    def _fire(self):
        self.fired_at = time.monotonic()
        self.fired.set()
        if self.plan.what != "hidden":
            self.kill()

    def last_write_at(self):
        """When the controller last wrote anything but its Lease."""
        return max((write.at for write in self.writes if not write.is_lease), default=0.0)

    # ---- an older state ----

    def show_older_state(self):
        """To the controller that is started next, for STALE_S."""
        self._stale_until = time.monotonic() + STALE_S

    def _show_older(self, request):
        if self._stale_until is not None and time.monotonic() < self._stale_until:
            self._history.show_older(request, self._cut_at, self._stale_until - time.monotonic())

    # ---- changes that nobody sees one by one ----

    def _hide(self):
        self._hidden_until = time.monotonic() + HIDDEN_S
        asyncio.get_running_loop().call_later(HIDDEN_S, self._end_hiding)

    def _end_hiding(self):
        self._expired = set(self.plan.hidden)
        for stream in list(self._streams):
            if stream.plural in self.plan.hidden:
                stream.cut()

    # ---- streams ----

    def opened(self, stream):
        self._streams.add(stream)
        if stream.is_initial:
            self._history.begin(stream.plural)

    def closed(self, stream):
        self._streams.discard(stream)

    async def event(self, stream, line):
        if self.plan is not None and stream.plural in self.plan.hidden and \
                time.monotonic() < self._hidden_until:
            return []
        self._history.add(stream.plural, line)
        return [line]
