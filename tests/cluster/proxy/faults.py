"""Faults that a test turns on and off while a controller runs behind the proxy."""

import asyncio
import collections
import json
import time

from .history import History, event_line
from .relay import Answer, Cut, Rules

POLL_S = 0.02
REQUESTS_KEPT = 1000
ALL = "all kinds"


def whole(line):
    return [line]


def in_bytes(line):
    """One byte in each chunk."""
    return [line[at:at + 1] for at in range(len(line))]


def inside_characters(line):
    """Cut in the middle of every character of more than one byte."""
    cuts = [at for at in range(1, len(line)) if line[at] & 0xC0 == 0x80]
    return [line[start:end] for start, end in zip([0, *cuts], [*cuts, len(line)])]


class Faults(Rules):
    """All off at first. Set from the test's thread."""

    def __init__(self):
        self.chop = whole               # how an event of these kinds is cut into chunks
        self.chopped = {"jobs", "queues"}
        self.muted = set()              # kinds whose events are held back; ALL
        self.has_bookmarks = True       # else they are withheld, but for the end of the initial ones
        self.is_down = False            # every request is cut at once, as if nobody were there
        self.refused_token = None       # 401 for whoever shows it
        self.lose = self.tear = self.drop = None    # (request) -> whether: the answer is lost after
        #                                 the commit; only half of it arrives; it isn't passed on
        self.delay_s = 0.0              # before each request is passed on
        self.refusal = None             # the answer to every write
        self.answers = collections.defaultdict(collections.deque)   # kind: for its next watches
        self.older = {}                 # kind: (how much of the history, seconds) for its next list
        self.history, self.streams = History(), set()
        self.counts = collections.Counter()
        self.requests = collections.deque(maxlen=REQUESTS_KEPT)   # (begun, answered, text)
        self.loop = None

    # ---- called by the relay ----

    async def before(self, request):
        self.loop = asyncio.get_running_loop()
        request.begun = time.monotonic()
        if self.is_down:
            raise Cut("down")
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if self.refused_token and self.refused_token in (request.header("authorization") or ""):
            self.counts["401"] += 1
            return Answer.refusal(401, "Unauthorized", "Unauthorized")
        if request.is_write and self.refusal and not request.is_lease:
            self.counts["refused"] += 1
            return self.refusal
        if request.is_write and self.drop and self.drop(request):
            self.counts["dropped"] += 1
            raise Cut("dropped")
        if request.is_watch:
            waiting = self.answers[request.plural]
            if waiting and self._fits(waiting[0], request):
                self.counts["answered"] += 1
                return waiting.popleft()
            if request.is_watch_list and request.plural in self.older:
                length, wait_s = self.older.pop(request.plural)
                self.history.show_older(request, length, wait_s)
                self.counts["older"] += request.prologue is not None
        return None

    @staticmethod
    def _fits(answer, request):
        """410 is what a server says to a watch that goes on, not to one that begins."""
        return answer.status != 410 or not request.is_watch_list

    async def after(self, request, answer):
        self.requests.append((request.begun, time.monotonic(),
                              f"{request.method} {request.target[:160]}: {answer.status}"))
        if request.is_write and answer.status < 300:
            if self.lose and self.lose(request):
                self.counts["lost"] += 1
                raise Cut("the answer is lost")
            if self.tear and self.tear(request):
                self.counts["torn"] += 1
                answer.is_torn = True
        return answer

    async def event(self, stream, line):
        while ALL in self.muted or stream.plural in self.muted:
            await asyncio.sleep(POLL_S)
        self.history.add(stream.plural, line)
        if not self.has_bookmarks and line.startswith(b'{"type":"BOOKMARK"') and \
                not stream.is_initial:
            self.counts["withheld"] += 1
            return []
        return self.chop(line) if stream.plural in self.chopped else [line]

    def opened(self, stream):
        self.streams.add(stream)
        self.counts[f"watch {stream.plural}"] += 1
        self.requests.append((stream.request.begun, time.monotonic(), f"watch {stream.plural}"))
        if stream.is_initial:
            self.counts[f"list {stream.plural}"] += 1
            self.history.begin(stream.plural)

    def closed(self, stream):
        self.streams.discard(stream)

    # ---- called by tests ----

    def each(self, plural, action):
        """Calls action(stream) on the proxy's loop for each open stream of the kind."""
        async def go():
            for stream in [item for item in self.streams if plural in (ALL, item.plural)]:
                result = action(stream)
                if asyncio.iscoroutine(result):
                    await result
        asyncio.run_coroutine_threadsafe(go(), self.loop).result(10)

    def cut(self, plural=ALL):
        self.each(plural, lambda stream: stream.cut())

    def end(self, plural=ALL):
        self.each(plural, lambda stream: stream.end())

    def expire(self, plural):
        """An ERROR event of code 410, and the end of the stream, as from a real server."""
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                  "message": "too old resource version: 1 (751)", "reason": "Expired", "code": 410}

        async def go(stream):
            await stream.send(event_line("ERROR", status))
            stream.end()
        self.each(plural, go)

    def tear_event(self, plural):
        """Half of an event, and the connection is reset."""
        half = json.dumps({"type": "ADDED", "object": {"kind": "Job", "metadata": {"name": "x"}}})

        async def go(stream):
            await stream.send(half[:40].encode())
            stream.cut()
        self.each(plural, go)

    def off(self):
        """Everything as a good connection has it."""
        self.chop, self.has_bookmarks, self.is_down = whole, True, False
        self.muted, self.delay_s = set(), 0.0
        self.lose = self.tear = self.drop = self.refused_token = self.refusal = None
        self.answers.clear()
        self.older.clear()
        self.counts["off"] = time.monotonic()
