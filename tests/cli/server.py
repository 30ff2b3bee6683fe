"""A small API server on loopback that only lists and gets, with rights that can be taken away."""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

COLLECTIONS = {
    "Job": "/apis/batch/v1/jobs", "Pod": "/api/v1/pods", "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces", "LimitRange": "/api/v1/limitranges",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaim": "/apis/resource.k8s.io/v1/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/resourceclaimtemplates",
    "Queue": "/apis/tallyman.dev/v1beta1/queues", "Cohort": "/apis/tallyman.dev/v1beta1/cohorts",
    "ResourceFlavor": "/apis/tallyman.dev/v1beta1/resourceflavors",
    "Admission": "/apis/tallyman.dev/v1beta1/admissions",
}
PAGES_OF = 2  # smaller than asked for, so that several pages are read


class Api:
    """objects: a list; forbidden: kinds that can't be listed in the whole cluster, or (kind, ns)."""

    def __init__(self, objects=(), forbidden=(), absent=(), compacted=False, before=None,
                 page_items=PAGES_OF):
        self.objects = list(objects)
        self.forbidden = set(forbidden)
        self.absent = set(absent)
        self.compacted = compacted
        self.page_items = page_items
        self.answer_before = list(before or [])  # (code, body) in front of everything else
        self.requests = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle_any(self):
                parts = urlsplit(self.path)
                query = {key: values[0] for key, values in parse_qs(parts.query).items()}
                api.requests.append((self.command, parts.path, query))
                code, body = api.answer(parts.path, query)
                data = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    @staticmethod
    def status(code, reason, message):
        return code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
                      "message": message, "code": code}

    def answer(self, path, query):
        if self.answer_before:
            return self.answer_before.pop(0)
        for kind, collection in COLLECTIONS.items():
            group, _, plural = collection.rpartition("/")
            if path == collection:
                return self.list(kind, None, query)
            if path.startswith(f"{group}/namespaces/"):
                rest = path[len(f"{group}/namespaces/"):].split("/")
                if len(rest) == 2 and rest[1] == plural:
                    return self.list(kind, rest[0], query)
                if len(rest) == 3 and rest[1] == plural:
                    return self.get(kind, rest[0], rest[2])
        return self.status(404, "NotFound", "no such path")

    def get(self, kind, namespace, name):
        if (kind, namespace) in self.forbidden:
            return self.status(403, "Forbidden", f"user may not get {kind} in {namespace}")
        for each in self.objects:
            meta = each["metadata"]
            if (each["kind"], meta.get("namespace"), meta["name"]) == (kind, namespace, name):
                return 200, each
        return self.status(404, "NotFound", f"{kind} {name} not found")

    def list(self, kind, namespace, query):
        if kind in self.absent:
            return self.status(404, "NotFound", "the server could not find the requested resource")
        right = kind if namespace is None else (kind, namespace)
        if right in self.forbidden:
            return self.status(403, "Forbidden", f"user may not list {kind}")
        if "resourceVersion" in query and self.compacted:
            return self.status(410, "Expired", "the provided resource version is too old")
        items = [each for each in self.objects if each["kind"] == kind
                 and namespace in (None, each["metadata"].get("namespace"))]
        start = int(query.get("continue", "0"))
        meta = {"resourceVersion": "77"}
        if start + self.page_items < len(items):
            meta["continue"] = str(start + self.page_items)
        return 200, {"kind": f"{kind}List", "apiVersion": "v1", "metadata": meta,
                     "items": items[start:start + self.page_items]}
