"""What a hostile tenant tries with the role `edit` of one namespace, on a real API server, with the
policies installed and without: it gets no quota, no device and no word about its neighbours, and one
bad object costs the controller no crash, no loop and next to no writes. See lib/tenant.py."""

import json

from lib import manifests
from lib.fixtures import DRIVER
from lib.tenant import SECRET, Attack

TEXTS = {
    "json": '"},"queue":"open","podSets":[{"name":"main',
    "newline": "1\nlevel=info msg=owned\r\nowned 1",
    "terminal": "\x1b[2J\x1b]0;owned\x07\x1b[31m",
    "bidi": "\u202etxt.exe\u2066\u2069\u200f",
    "c1": "\x9b31mowned\x85",
    "nul": "a\x00b",
    "separator": "a\u2028b\u2029c",
    "surrogate": "\ud800\udfff\ud800",
    "format": "%s%n%08x{{.}}${jndi:ldap://x}",
    "html": "</pre><script>alert(1)</script>",
    "metrics": 'x"} 1\ntallyman_owned{y="1"} 7',
    "long": "9" * 100000,
    "overlong": "\u0301" * 40000,
}
QUOTED = ("min-count", "max-runtime", "required-topology", "checkpoint-grace", "last-checkpoint",
          "partial", "hold", "preferred-topology", "min-count-source")
# Written by the controller alone; a policy refuses each to anybody else.
OURS = ("admission", "suspended", "checkpoint-request", "checkpoint-for", "provisioning-attempt")
FORGED = ("{}", "null", "[]", "x", '{"queue":"open"}', '{"cause":"x","for":"y","at":"z"}')
NUMBERS = {
    "min-count": ("0", "-1", "+1", "1e1", "0x1", " 1", "99999999999999999999", "2147483648", ""),
    "max-runtime": ("0s", "-1s", "9223372036854775807s", "99999999999999999999h", "NaN", "1", ""),
    "checkpoint-grace": ("-1s", "9223372036854775807h", "1e9s"),
    "last-checkpoint": ("9999-12-31T23:59:59Z", "0000-00-00T00:00:00Z", "-1"),
}
SPECS = {  # (may run, fields): 0 pods ask for nothing, and may start
    "parallelism": ((False, -1), (True, 0), (False, 2147483647), (False, 2147483648), (False, None),
                    (False, 1e300), (False, "2")),
    "completions": ((False, -1), (True, 0), (False, 2147483647), (False, None), (False, "x")),
    "activeDeadlineSeconds": ((False, -1), (False, 9223372036854775807), (False, None)),
    "backoffLimit": ((False, 2147483647), (False, -1)),
    "ttlSecondsAfterFinished": ((False, 2147483647), (False, -1)),
}
AMOUNTS = ("9223372036854775807", "9223372036854775808", "8E", "9E", "1e30", "1e-30", "-1", "0.5n",
           "1000000000000000000000m", "1e", "", None)


def _texts(attack):
    """Text that would break out of JSON, log lines, metrics, a page or a terminal."""
    for kind, text in TEXTS.items():
        for key in QUOTED:
            attack.job_case(f"text {kind} in {key}", attack.waiting(
                f"text-{kind}-{key}", annotations={f"tallyman.dev/{key}": text}))
        for label in ("queue", "priority-class"):
            attack.job_case(f"text {kind} in label {label}", attack.waiting(
                f"text-{kind}-{label}", labels={f"tallyman.dev/{label}": text}), is_refused=True)
    body = json.dumps(attack.waiting("utf8", annotations={"tallyman.dev/min-count": "BYTES"}))
    attack.job_case("text that isn't UTF-8", body.encode().replace(b"BYTES", b"\xff\xfe\xc0\x80"))


def _numbers(attack):
    for key, values in NUMBERS.items():
        for number, value in enumerate(values):
            attack.job_case(f"{key}: {value!r}", attack.waiting(
                f"number-{key}-{number}", annotations={f"tallyman.dev/{key}": value}))
    for field, values in SPECS.items():
        for number, (may_run, value) in enumerate(values):
            attack.job_case(f"{field}: {value!r}", attack.waiting(
                f"spec-{field.lower()}-{number}", spec={field: value}), may_run=may_run)
    for number, amount in enumerate(AMOUNTS):
        # A template's own charge is one cpu at the least, so no value of these makes it free.
        for resource, container in (("cpu", {}), ("memory", {"cpu": "1"}), (DRIVER, {"cpu": "1"}),
                                    ("example.com/free", {"cpu": "1"})):
            job = attack.waiting(f"amount-{resource.replace('/', '-').replace('.', '-')}-{number}")
            requests = {**container, resource: amount}
            job["spec"]["template"]["spec"]["containers"][0]["resources"] = {
                "requests": requests, "limits": requests}
            attack.job_case(f"{resource}: {amount!r}", job, may_run=resource == "cpu" and not amount)


def _others(attack):
    """What belongs to others: names, queues, claims, classes, and what the controller writes."""
    for queue in ("closed", "no-such", "full.", "x" * 63, "x" * 64, "../full", "Full"):
        attack.job_case(f"queue {queue[:20]}", attack.waiting("of-" + str(attack.count), queue=queue))
    for length in (1, 63, 64, 253):
        attack.job_case(f"a name of {length} characters", attack.waiting("n" * length))
    attack.job_case("the neighbour's Job name", attack.waiting(f"{SECRET}-train"[-9:]))
    for name in (f"{attack.victim}/claim", "../claim", "claim", "x" * 253):
        attack.job_case(f"claim {name[:30]}", attack.waiting("claim-" + str(attack.count), claims=[name]))
        attack.job_case(f"claim template {name[:30]}", attack.waiting(
            "template-" + str(attack.count), claim_templates=[name]))
    attack.job_case("the neighbour's priority class", attack.waiting("class", labels={
        "tallyman.dev/priority-class": "system-node-critical"}))
    for pod_spec in ({"nodeName": "worker-1"}, {"schedulerName": "mine"},
                     {"schedulingGates": [{"name": "example.com/gate"}]},
                     {"tolerations": [{"operator": "Exists"}]},
                     {"priorityClassName": "system-node-critical"},
                     {"overhead": {"cpu": "-1"}}, {"runtimeClassName": "none"},
                     {"resources": {"requests": {"cpu": "1m"}}},
                     {"nodeSelector": {"kubernetes.io/hostname": "worker-1"}}):
        attack.job_case(f"by hand: {json.dumps(pod_spec)}", attack.waiting(
            "by-hand-" + str(attack.count), pod_spec=pod_spec))
    for kind in ("admissions", "provisioningrequests"):
        for method, body in (("POST", {"metadata": {"name": "x"}}), ("DELETE", None)):
            attack.refused_case(f"{method} {kind}", method, attack.path(kind), body)
    for method, body in (("DELETE", None), ("PATCH", {"status": {"state": "Running"}}),
                         ("PATCH", {"metadata": {"ownerReferences": None}})):
        attack.refused_case(f"{method} its Admission {body}", method,
                            attack.path("admissions", "runner"), body)
    for path in (attack.path("admissions", namespace=attack.victim),
                 attack.path("jobs", namespace=attack.victim), "/apis/tallyman.dev/v1beta1/queues",
                 "/apis/resource.k8s.io/v1/resourceslices"):
        attack.refused_case(f"GET {path}", "GET", path)
    attack.refused_case("another's quota", "PATCH", "/apis/tallyman.dev/v1beta1/queues/open",
                        {"spec": {"stopPolicy": "None"}})
    attack.refused_case("its namespace's labels", "PATCH", f"/api/v1/namespaces/{attack.namespace}",
                        {"metadata": {"labels": {"team": SECRET}}})
    attack.refused_case("the controller's token", "POST",
                        "/api/v1/namespaces/tallyman-system/serviceaccounts/tallyman/token", {})


def _forged(attack):
    """Each key of ours, at creation and by edit, on a Job, its status, its template and its pods."""
    records = [attack.forged_record()["tallyman.dev/admission"],
               attack.forged_record("closed", 0)["tallyman.dev/admission"],
               attack.forged_record("full", -2147483649)["tallyman.dev/admission"],
               attack.forged_record("open", 1, "9999-12-31T23:59:59Z")["tallyman.dev/admission"]]
    attack.job_case("a Job to forge on", attack.waiting("forge"))
    attack.gangs.wait_reason("forge", "QuotaExhausted")
    for key in OURS:
        for number, value in enumerate((*FORGED, *(records if key == "admission" else ()))):
            annotations = {f"tallyman.dev/{key}": value}
            attack.job_case(f"created with {key} {value[:50]}", attack.waiting(
                f"forged-{key}-{number}", annotations=annotations, suspend=number % 2 == 0),
                is_refused=attack.has_policies)
            body = {"metadata": {"annotations": annotations}, "spec": {"suspend": False}}
            attack.patch_case(f"started with {key} {value[:50]}", "forge", body, is_refused=True)
            attack.patch_case(f"by status {key} {value[:50]}", "forge", {"metadata": body["metadata"]},
                              is_refused=True, subresource="/status")
        job = attack.waiting(f"inside-{key}")
        job["spec"]["template"]["metadata"] = {"annotations": {f"tallyman.dev/{key}": records[0]}}
        attack.job_case(f"{key} in the template", job)
    for key in ("pod-set", "in-use", "reservation", "default-queue", "stop-policy", "unheard-of"):
        attack.job_case(f"key {key}", attack.waiting(
            f"key-{key}", labels={f"tallyman.dev/{key}": "full"},
            annotations={f"tallyman.dev/{key}": '{"queue":"open"}'}))
    for name, body in (("suspend", {"spec": {"suspend": False}}),
                       ("no label", {"metadata": {"labels": {"tallyman.dev/queue": None}},
                                     "spec": {"suspend": False}}),
                       ("managedBy", {"spec": {"managedBy": "example.com/mine", "suspend": False}}),
                       ("parallelism", {"spec": {"parallelism": 1, "suspend": False}}),
                       ("status", {"status": {"active": -1, "ready": 2147483647}})):
        attack.patch_case(f"by edit: {name}", "forge", body, is_refused=name == "suspend",
                          subresource="/status" if name == "status" else "")
        if name == "no label" and not attack.has_policies:
            attack.patch_case("its label again", "forge", {
                "metadata": {"labels": {"tallyman.dev/queue": "full"}}})


def _running(attack):
    """On a gang of its own that runs: more than it was admitted with, or less told."""
    for name, record in (("another queue", attack.forged_record("closed", 2)),
                         ("less", attack.forged_record("open", 0)),
                         ("more", attack.forged_record("open", 2147483647)),
                         ("none", {"tallyman.dev/admission": None}),
                         ("year 9999", attack.forged_record("open", 2, "9999-12-31T23:59:59Z")),
                         ("another flavor", attack.forged_record("open", 2, flavor="none"))):
        attack.patch_case(f"the record of a gang that runs: {name}", "runner",
                          {"metadata": {"annotations": record}}, is_refused=True)
    for name, fields in (("parallelism", {"parallelism": 4}),
                         ("activeDeadlineSeconds", {"activeDeadlineSeconds": 86400})):
        if attack.has_policies:
            attack.patch_case(f"{name} of a gang that runs", "runner", {"spec": fields},
                              is_refused=True)
    attack.job_case("more than is left of its own queue", attack.waiting("beyond", "open", cpu="750m"),
                    may_run=not attack.has_policies)
    for number in range(10):
        attack.patch_case(f"started by hand, {number}", "beyond", {"spec": {"suspend": False}},
                          is_refused=True)
    for pod in attack.gangs.pods("runner"):
        attack.case("keys of ours on a pod")
        attack.ask("PATCH", attack.path("pods", pod["metadata"]["name"]), {"metadata": {
            "annotations": {"tallyman.dev/admission": "{}", "tallyman.dev/checkpoint-request": "x"},
            "labels": {"tallyman.dev/pod-set": "x", "tallyman.dev/queue": "closed"}}})


def _attack(context, has_policies):
    attack = Attack(context, has_policies)
    for part in (_others, _texts, _numbers, _forged, _running):
        part(attack)
    attack.check_terminal([f"text-{kind}-min-count" for kind in ("terminal", "bidi", "newline")])
    attack.finish()


def test_a_tenant_gets_nothing_where_policies_are_installed(context):
    _attack(context, True)


def test_a_tenant_gets_nothing_where_they_are_not(context):
    _attack(context, False)
