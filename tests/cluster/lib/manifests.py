"""Objects for tests, as YAML text: Jobs, claim templates, queues and what goes with them."""

import json
import re

from .fixtures import DRIVER

# Words that YAML 1.1 readers take for something else than text are quoted like everything unusual.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_NOT_TEXT = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}


def _scalar(value):
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    return json.dumps(value)


def _lines(value, indent):
    pad = "  " * indent
    if isinstance(value, dict) and value:
        for key, item in value.items():
            if isinstance(item, (dict, list)) and item:
                yield f"{pad}{_scalar(key)}:"
                yield from _lines(item, indent + (1 if isinstance(item, dict) else 0))
            else:
                yield f"{pad}{_scalar(key)}: {_scalar(item)}"
    elif isinstance(value, list) and value:
        for item in value:
            first, *rest = _lines(item, indent + 1)
            yield f"{pad}- {first.lstrip()}"
            yield from rest
    else:
        yield f"{pad}{_scalar(value)}"


def to_yaml(*objects):
    """The objects as one YAML stream, as `kubectl apply -f -` takes it."""
    return "---\n".join("\n".join(_lines(item, 0)) + "\n" for item in objects)


def _without_empty(data):
    return {key: value for key, value in data.items() if value not in (None, {}, [])}


def _metadata(name, namespace, labels=None, annotations=None):
    return _without_empty({"name": name, "namespace": namespace, "labels": labels,
                           "annotations": annotations})


def job(name, namespace, *, pods=4, completions=None, queue=None, cpu="50m", memory="32Mi",
        extended=None, claim_templates=(), claims=(), run_for=None, pod_annotations=None,
        min_count=None, live_min_count=None, labels=None, annotations=None, priority_class=None,
        node_selector=None, suspend=None, spec=None, pod_spec=None):
    """An Indexed Job of `pods` pods at once, backoffLimit 0.

    claim_templates, claims: names of ResourceClaimTemplates and ResourceClaims each pod uses.
    extended:        {resource: count}, as limits.  run_for: "5s", from Ready to each pod's end.
    min_count:       the annotation.                live_min_count: the alpha field of the spec.
    spec, pod_spec:  anything else, merged over what stands here."""
    requests = _without_empty({"cpu": cpu, "memory": memory})
    uses = ([(f"device-{number}", {"resourceClaimTemplateName": template})
             for number, template in enumerate(claim_templates)] +
            [(f"shared-{number}", {"resourceClaimName": claim})
             for number, claim in enumerate(claims)])
    container = _without_empty({
        "name": "main", "image": "registry.invalid/train:1",
        "resources": _without_empty({
            "requests": requests,
            "limits": {key: str(value) for key, value in (extended or {}).items()},
            "claims": [{"name": use} for use, _ in uses]})})
    pod_annotations = dict(pod_annotations or {})
    if run_for is not None:
        pod_annotations["example.com/run-for"] = run_for
    template_spec = _without_empty({
        "restartPolicy": "Never", "priorityClassName": priority_class,
        "nodeSelector": node_selector, "containers": [container],
        "resourceClaims": [{"name": use, **source} for use, source in uses], **(pod_spec or {})})
    template = _without_empty({"metadata": _without_empty({"annotations": pod_annotations}),
                               "spec": template_spec})
    all_labels = {**({"tallyman.dev/queue": queue} if queue else {}), **(labels or {})}
    all_annotations = {**({"tallyman.dev/min-count": str(min_count)} if min_count else {}),
                       **(annotations or {})}
    job_spec = _without_empty({
        "completionMode": "Indexed", "completions": completions or pods, "parallelism": pods,
        "suspend": suspend, "template": template})
    job_spec["backoffLimit"] = 0
    if live_min_count:
        job_spec["scheduling"] = {"schedulingPolicy": {"gang": {"minCount": live_min_count}}}
    job_spec.update(spec or {})
    return {"apiVersion": "batch/v1", "kind": "Job",
            "metadata": _metadata(name, namespace, all_labels, all_annotations), "spec": job_spec}


def _claim_spec(count, device_class):
    return {"devices": {"requests": [{"name": "gpu", "exactly": {
        "deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}}]}}


def claim_template(name, namespace, count=1, device_class=DRIVER):
    """A ResourceClaimTemplate: a claim of `count` devices for each pod that names it."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
            "metadata": _metadata(name, namespace),
            "spec": {"spec": _claim_spec(count, device_class)}}


def claim(name, namespace, count=1, device_class=DRIVER):
    """One ResourceClaim, which all pods that name it share."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": _metadata(name, namespace), "spec": _claim_spec(count, device_class)}


def queue(name, quotas, *, flavor="default", namespace_selector=None, **spec):
    """A Queue of one flavor; quotas: {"cpu": "8", "gpu.example.com": "6"}; spec: further fields."""
    resources = [{"name": key, "nominalQuota": str(value)} for key, value in quotas.items()]
    return {"apiVersion": "tallyman.dev/v1beta1", "kind": "Queue", "metadata": {"name": name},
            "spec": {"namespaceSelector": namespace_selector or {},
                     "resourceGroups": [{"flavors": [{"name": flavor, "resources": resources}]}],
                     **spec}}


def resource_flavor(name, node_labels=None, **spec):
    return {"apiVersion": "tallyman.dev/v1beta1", "kind": "ResourceFlavor",
            "metadata": {"name": name},
            "spec": {**({"nodeLabels": node_labels} if node_labels else {}), **spec}}


def priority_class(name, value):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value}


def namespace(name, labels=None):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": _metadata(name, None, labels)}
