"""A small client of the API server: JSON requests and watches, over verified TLS."""

import contextlib
import http.client
import json
import queue
import socket
import ssl
import threading
import urllib.parse

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class ApiError(Exception):
    """An answer of 400 or more. `status` is the code, `reason` the Status object's own."""

    def __init__(self, method, path, status, text):
        self.status, self.text, self.reason = status, text, ""
        message = text
        try:
            body = json.loads(text)
            message, self.reason = body.get("message", text), body.get("reason", "")
        except (ValueError, AttributeError):
            pass
        super().__init__(f"{method} {path}: {status} {self.reason}: {message[:2000]}")


class Api:
    """One API server and one identity. Each thread keeps a connection of its own."""

    def __init__(self, port, ca_file, token, timeout_s=30):
        self.port, self.token, self.timeout_s = port, token, timeout_s
        self.tls = ssl.create_default_context(cafile=str(ca_file))
        self._local = threading.local()

    def connect(self, timeout_s):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls,
                                           timeout=timeout_s)

    def headers(self, content_type=None, token=None):
        result = {"Authorization": f"Bearer {token or self.token}", "Accept": JSON,
                  "User-Agent": "tallyman-tests"}
        if content_type:
            result["Content-Type"] = content_type
        return result

    def exchange(self, method, path, body=None, content_type=None, token=None):
        """(status, text), whatever the status. A connection that the server closed while it was
        idle is opened anew, once."""
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        if body is not None and content_type is None:
            content_type = MERGE_PATCH if method == "PATCH" else JSON
        for is_last in (False, True):
            connection = getattr(self._local, "connection", None)
            is_fresh = connection is None
            if is_fresh:
                connection = self._local.connection = self.connect(self.timeout_s)
            try:
                connection.request(method, path, body, self.headers(content_type, token))
                response = connection.getresponse()
                return response.status, response.read().decode()
            except (http.client.HTTPException, OSError):
                connection.close()
                self._local.connection = None
                if is_fresh or is_last:
                    raise
        raise AssertionError("unreachable")

    def request(self, method, path, body=None, content_type=None, token=None):
        """The answer as JSON data (None if empty); ApiError for a status of 400 or more."""
        status, text = self.exchange(method, path, body, content_type, token)
        if status >= 400:
            raise ApiError(method, path, status, text)
        try:
            return json.loads(text) if text else None
        except ValueError:
            return text

    def get(self, path):
        return self.request("GET", path)

    def get_or_none(self, path):
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def items(self, path):
        return self.get(path)["items"]

    def watch(self, path, resource_version=None):
        return Watch(self, path, resource_version)


class WatchLost(Exception):
    """Events may have been missed: the server couldn't go on from where the stream had ended."""


class Watch:
    """Events of a list path as (type, object), read by a thread. Iterating ends when it is closed.

    Without a resourceVersion it begins with the present objects as ADDED, and goes on from there
    without a gap: a stream that the server ends (as it does to a slow reader) is taken up again
    where it ended, and where that can't be done, reading it raises WatchLost. `seen` holds every
    event so far, for assertions over the whole course; `reconnects` counts the further streams."""

    def __init__(self, api, path, resource_version=None):
        self.api, self.path = api, path
        self.error, self.seen, self.reconnects = None, [], 0
        self._events = queue.Queue()
        self._is_closed = False
        self._resource_version = resource_version
        self._connection = self._response = self._socket = None
        self._open()
        self._thread = threading.Thread(target=self._run, name=f"watch {path}", daemon=True)
        self._thread.start()

    def _open(self):
        query = {"watch": "1", "allowWatchBookmarks": "true"}
        if self._resource_version is not None:
            query["resourceVersion"] = self._resource_version
        separator = "&" if "?" in self.path else "?"
        self._connection = self.api.connect(None)
        self._connection.request("GET", self.path + separator + urllib.parse.urlencode(query),
                                 headers=self.api.headers())
        self._socket = self._connection.sock
        self._response = self._connection.getresponse()
        if self._response.status >= 400:
            text = self._response.read().decode()
            self._connection.close()
            raise ApiError("WATCH", self.path, self._response.status, text)

    def _read_stream(self):
        for line in self._response:
            event = json.loads(line)
            if event["type"] == "ERROR":
                raise WatchLost(f"{self.path}: {event['object'].get('message')}")
            self._resource_version = event["object"]["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                item = (event["type"], event["object"])
                self.seen.append(item)
                self._events.put(item)

    def _run(self):
        while not self._is_closed:
            try:
                # AttributeError is what the library raises when close() takes its socket away.
                with contextlib.suppress(OSError, ValueError, AttributeError,
                                         http.client.HTTPException):
                    self._read_stream()
                if not self._is_closed:
                    self.reconnects += 1
                    self._connection.close()
                    self._open()
            except Exception as error:  # handed on to whoever reads
                if not self._is_closed:
                    self.error = WatchLost(f"{self.path} from resourceVersion "
                                           f"{self._resource_version}: {error}")
                break
        self._events.put(None)

    def next(self, timeout_s):
        """The next event, or None when there is none within the time or the watch was closed."""
        try:
            event = self._events.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if event is None and self.error:
            raise self.error
        return event

    def __iter__(self):
        while (event := self._events.get()) is not None:
            yield event
        if self.error:
            raise self.error

    def close(self):
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
