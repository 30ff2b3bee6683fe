"""An API server on loopback that can be watched and written: enough of one for `tallyman run`.

It has no rules of its own: no validation, no defaults, no conflicts. Pods and devices don't exist.
"""
import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from server import COLLECTIONS

END_OF_LIST = {"k8s.io/initial-events-end": "true"}


def merge(target, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def route(path):
    """(kind, namespace, name) of a path; what is no collection's is (None, None, None)."""
    for kind, collection in COLLECTIONS.items():
        group, _, plural = collection.rpartition("/")
        if path.startswith(f"{group}/namespaces/") and plural != "namespaces":
            rest = path[len(f"{group}/namespaces/"):].split("/")
            if len(rest) >= 2 and rest[1] == plural:
                return kind, rest[0], rest[2] if len(rest) > 2 else None
        if path == collection:
            return kind, None, None
        if path.startswith(collection + "/"):
            return kind, None, path[len(collection) + 1:].split("/")[0]
    return None, None, None


class WatchedApi:
    def __init__(self, objects=()):
        self.lock = threading.Lock()
        self.version = 100
        self.objects = {}
        self.watches = []  # (kind, queue)
        for each in objects:
            self.put(each)
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, code, body):
                data = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                parts = urlsplit(self.path)
                query = parse_qs(parts.query)
                if "watch" in query:
                    self.watch(route(parts.path)[0])
                else:
                    self.answer(*api.read(*route(parts.path)))

            def do_PATCH(self):
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                self.answer(*api.write(*route(urlsplit(self.path).path), body))

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                self.answer(201, body)

            do_PUT = do_PATCH

            def chunk(self, event):
                data = json.dumps(event).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

            def watch(self, kind):
                if kind is None:
                    self.answer(404, api.status(404, "NotFound"))
                    return
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                news = queue.SimpleQueue()
                try:
                    for event in api.begin_watch(kind, news):
                        self.chunk(event)
                    while (event := news.get()) is not None:
                        self.chunk(event)
                except OSError:
                    pass  # the controller has hung up
                self.close_connection = True

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a controller that hangs up
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        with self.lock:
            for _, news in self.watches:
                news.put(None)
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    @staticmethod
    def status(code, reason):
        return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
                "message": reason, "code": code}

    def begin_watch(self, kind, news):
        with self.lock:
            self.watches.append((kind, news))
            events = [{"type": "ADDED", "object": each}
                      for key, each in sorted(self.objects.items()) if key[0] == kind]
            meta = {"resourceVersion": str(self.version), "annotations": END_OF_LIST}
            collection = COLLECTIONS[kind].strip("/").split("/")
            version = "/".join(collection[1:-1])
            return [*events, {"type": "BOOKMARK",
                              "object": {"kind": kind, "apiVersion": version, "metadata": meta}}]

    def put(self, each, event="MODIFIED"):
        """With the lock held, or before anybody asks."""
        self.version += 1
        meta = {**each["metadata"], "resourceVersion": str(self.version)}
        meta.setdefault("uid", f'uid-{each["kind"]}-{meta["name"]}')
        meta.setdefault("creationTimestamp", "2026-11-29T11:00:00Z")
        each = {**each, "metadata": meta}
        key = (each["kind"], meta.get("namespace"), meta["name"])
        self.objects[key] = each
        for kind, news in self.watches:
            if kind == each["kind"]:
                news.put({"type": event, "object": each})
        return each

    def create(self, each):
        with self.lock:
            return self.put(each, "ADDED")

    def change(self, kind, namespace, name, patch):
        with self.lock:
            return self.put(merge(self.objects[kind, namespace, name], patch))

    def get(self, kind, namespace, name):
        with self.lock:
            return self.objects.get((kind, namespace, name))

    def read(self, kind, namespace, name):
        found = self.get(kind, namespace, name)
        return (200, found) if found else (404, self.status(404, "NotFound"))

    def write(self, kind, namespace, name, body):
        with self.lock:
            if kind is None:
                return 404, self.status(404, "NotFound")
            old = self.objects.get((kind, namespace, name))
            made = merge(old or {"kind": kind, "apiVersion": body.get("apiVersion"),
                                 "metadata": {"name": name, "namespace": namespace}}, body)
            made["metadata"].pop("managedFields", None)
            return (200 if old else 201), self.put(made, "MODIFIED" if old else "ADDED")
