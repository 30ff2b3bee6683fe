"""Objects as a server has them, small."""
import unicodedata

# Names may hold what a terminal obeys, or what turns or hides the text around it.
STEERING = "\u001b[2J\u009b31m\u202e\u2066\u200b\u200d\u2028\ufeff\u00ad\U000e0001"


def steering(text):
    return [hex(ord(char)) for char in text
            if char != "\n" and unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")]


def meta(name, namespace=None, **more):
    result = {"name": name, "uid": f"uid-{namespace}-{name}", "resourceVersion": "5",
              "creationTimestamp": "2026-11-29T11:00:00Z", **more}
    if namespace is not None:
        result["namespace"] = namespace
    return result


def namespace(name, **labels):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta(name, labels=labels)}


def node(name, cpu="4"):
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta(name),
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"},
                       "conditions": [{"type": "Ready", "status": "True"}]}}


def queue(name, cpu="4", selector=None, **spec):
    flavors = [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    return {"apiVersion": "tallyman.dev/v1beta1", "kind": "Queue", "metadata": meta(name),
            "spec": {"namespaceSelector": selector or {},
                     "resourceGroups": [{"flavors": flavors}], **spec}}


def job(name, queue_name, pods=1, cpu="1", namespace="quay", **more):
    spec = {"restartPolicy": "Never", **more.pop("pod", {}),
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}
    return {"apiVersion": "batch/v1", "kind": "Job",
            "metadata": meta(name, namespace, labels={"tallyman.dev/queue": queue_name},
                             **more.pop("meta", {})),
            "spec": {"suspend": True, "parallelism": pods, "completions": pods,
                     "template": {"spec": spec}, **more}}


def bare(each):
    """As its author wrote it: nothing that a server adds."""
    kept = ("name", "namespace", "labels", "annotations")
    return {**each, "metadata": {k: v for k, v in each["metadata"].items() if k in kept}}
