"""What a request of the controller is about."""

import json
import re
import urllib.parse

_PATH = re.compile(r"^/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)"
                   r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<plural>[^/]+)"
                   r"(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[^/]+))?$")
_WRITES = {"POST", "PUT", "PATCH", "DELETE"}


class Request:
    """One request as it came: `target` and `headers` may be changed before it is passed on."""

    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body
        self.prologue = None   # of a watch: (lines to send first, seconds to wait after them)
        path, _, query = target.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query))
        found = _PATH.match(path)
        parts = found.groupdict() if found else {}
        self.namespace, self.plural = parts.get("namespace"), parts.get("plural")
        self.name, self.subresource = parts.get("name"), parts.get("subresource")

    @property
    def is_watch(self):
        return "watch" in self.query

    @property
    def is_watch_list(self):
        return "sendInitialEvents" in self.query

    @property
    def is_list(self):
        return self.method == "GET" and self.plural is not None and self.name is None

    @property
    def is_write(self):
        return self.method in _WRITES and self.plural is not None

    @property
    def is_lease(self):
        return self.plural == "leases"

    def header(self, name):
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return None

    def set_query(self, **changes):
        """Changes the query's fields; None takes one out."""
        self.query.update(changes)
        self.query = {key: value for key, value in self.query.items() if value is not None}
        path = self.target.partition("?")[0]
        self.target = path + ("?" + urllib.parse.urlencode(self.query) if self.query else "")

    def data(self):
        try:
            return json.loads(self.body)
        except ValueError:
            return {}

    def write_key(self, suffix=""):
        """Which write it is, without what differs from run to run: "PATCH jobs/train-a start".
        `suffix` is what a plan has added to the names of its objects."""
        what, name = self.subresource or "", self.name or ""
        if self.plural == "jobs":
            suspend = self.data().get("spec", {}).get("suspend")
            what = {False: "start", True: "stop"}.get(suspend, "annotate")
        elif self.plural == "events":
            event = self.data()
            what, name = event.get("reason", ""), event.get("regarding", {}).get("name", "")
        elif self.plural == "pods":
            name = name.rpartition("-")[0]   # without the random part
        if suffix:
            name = name.replace(suffix, "")
        return " ".join(word for word in (self.method, f"{self.plural}/{name}", what) if word)
