"""What an API server would send."""
import json

JOBS = "/apis/batch/v1/jobs"


def job(name, version, uid=None, namespace="ns", note=None, spec=None):
    meta = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}",
            "resourceVersion": str(version)}
    if note is not None:
        meta["annotations"] = {"note": note}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta,
            "spec": spec or {"suspend": True}, "status": {}}


def event(kind, thing):
    return (json.dumps({"type": kind, "object": thing}, ensure_ascii=False) + "\n").encode()


def added(name, version, **more):
    return event("ADDED", job(name, version, **more))


def bookmark(version, is_end=False):
    meta = {"resourceVersion": str(version)}
    if is_end:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return event("BOOKMARK", {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta,
                              "spec": {"template": {"spec": {"containers": None}}}, "status": {}})


def error(code, reason, message, details=None):
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
              "message": message, "reason": reason, "code": code}
    if details is not None:
        status["details"] = details
    return event("ERROR", status)


def job_list(version, items, continue_token=None):
    meta = {"resourceVersion": str(version)}
    if continue_token:
        meta["continue"] = continue_token
        meta["remainingItemCount"] = 1
    # A list's items have neither kind nor apiVersion.
    items = [{key: item[key] for key in ("metadata", "spec", "status")} for item in items]
    return {"apiVersion": "batch/v1", "kind": "JobList", "metadata": meta, "items": items}


def seen(kind, name, version, uid=None, namespace="ns", rest=""):
    """The line that wire_client prints for it."""
    return f"{kind} Job {namespace}/{name} uid={uid or 'uid-' + name} rv={version}{rest}"
