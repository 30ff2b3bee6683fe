"""What a controller has been shown, so that it can be shown an older state of it again."""

import json

_END_MARK = b'"k8s.io/initial-events-end":"true"'


class History:
    """Every event that was let through, of all kinds, in order."""

    def __init__(self):
        self._events = []   # (plural, line); None as the line: a list of the kind begins

    def __len__(self):
        return len(self._events)

    def begin(self, plural):
        self._events.append((plural, None))

    def add(self, plural, line):
        self._events.append((plural, line))

    def show_older(self, request, length, wait_s):
        """Turns a WatchList into one that begins with the kind as it stood after the first `length`
        events; after `wait_s` what has happened since comes, by a real watch from
        there. Not where the kind hadn't been listed by then."""
        objects, mark, version = {}, None, None
        for plural, line in self._events[:length]:
            if plural != request.plural:
                continue
            if line is None:
                objects.clear()
                continue
            event = json.loads(line)
            if event["type"] == "ERROR":
                continue
            meta = event["object"]["metadata"]
            key = meta.get("namespace"), meta.get("name")
            if event["type"] == "BOOKMARK":
                mark = event if mark is None or _END_MARK in line else mark
            elif event["type"] == "DELETED":
                objects.pop(key, None)
            else:
                objects[key] = event["object"]
            version = meta["resourceVersion"]
        if mark is None:
            return
        mark["object"]["metadata"].update(
            resourceVersion=version, annotations={"k8s.io/initial-events-end": "true"})
        lines = [event_line("ADDED", item) for item in objects.values()]
        request.prologue = (lines + [event_line("BOOKMARK", mark["object"])], max(0.0, wait_s))
        request.set_query(sendInitialEvents=None, resourceVersionMatch=None,
                          resourceVersion=version)


def event_line(kind, item):
    return json.dumps({"type": kind, "object": item}, separators=(",", ":")).encode() + b"\n"
