"""What a controller has been shown, so that it can be shown an older state of it again."""

import collections
import json

_END_MARK = b'"k8s.io/initial-events-end":"true"'
KEPT = 1024    # events behind which none is gone back to: a run of hours would fill the memory, and
#                to read all of them would hold up everybody


class _State:
    """The objects of one kind after some of its events."""

    def __init__(self):
        self.objects, self.mark, self.version = {}, None, None

    def copy(self):
        other = _State()
        other.objects, other.mark, other.version = dict(self.objects), self.mark, self.version
        return other

    def take(self, line):
        if line is None:
            self.objects.clear()
            return
        event = json.loads(line)
        if event["type"] == "ERROR":
            return
        meta = event["object"]["metadata"]
        key = meta.get("namespace"), meta.get("name")
        if event["type"] == "BOOKMARK":
            self.mark = line if self.mark is None or _END_MARK in line else self.mark
        elif event["type"] == "DELETED":
            self.objects.pop(key, None)
        else:
            self.objects[key] = line
        self.version = meta["resourceVersion"]


class History:
    """The events that were let through, of all kinds, in order: what came of all but the last KEPT,
    and those."""

    def __init__(self):
        self._events = collections.deque()   # (plural, line); None as the line: a list begins
        self._before, self._gone = collections.defaultdict(_State), 0

    def __len__(self):
        return self._gone + len(self._events)

    def begin(self, plural):
        self._append(plural, None)

    def add(self, plural, line):
        self._append(plural, line)

    def _append(self, plural, line):
        self._events.append((plural, line))
        if len(self._events) > KEPT:
            oldest, its_line = self._events.popleft()
            self._before[oldest].take(its_line)
            self._gone += 1

    def show_older(self, request, length, wait_s):
        """Turns a WatchList into one that begins with the kind as it stood after the first `length`
        events; after `wait_s` what has happened since comes, by a real watch from
        there. Not where the kind hadn't been listed by then."""
        state = self._before[request.plural].copy()
        for number, (plural, line) in enumerate(self._events, self._gone):
            if number < length and plural == request.plural:
                state.take(line)
        if state.mark is None:
            return
        mark = json.loads(state.mark)
        mark["object"]["metadata"].update(
            resourceVersion=state.version, annotations={"k8s.io/initial-events-end": "true"})
        lines = [event_line("ADDED", json.loads(line)["object"]) for line in state.objects.values()]
        request.prologue = (lines + [event_line("BOOKMARK", mark["object"])], max(0.0, wait_s))
        request.set_query(sendInitialEvents=None, resourceVersionMatch=None,
                          resourceVersion=state.version)


def event_line(kind, item):
    return json.dumps({"type": kind, "object": item}, separators=(",", ":")).encode() + b"\n"
