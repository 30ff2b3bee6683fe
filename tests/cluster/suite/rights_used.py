"""Least rights, from the other side: every right of the shipped role is used, and without any one of
them something that users see doesn't happen. One errand makes the controller do all that it can
write: admit, ask for a checkpoint, preempt, tell, put a status, let a Queue go, clear an Admission."""

import copy
import datetime
import http.client
import urllib.error

from lib import manifests
from lib.cluster import wait_for
from lib.gangs import CONTROLLER_USER, Gangs

CLASS = "gpu.example.com"
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/tallyman-controller"
GROUP = "/apis/tallyman.dev/v1beta1"
REPORTER = "tallyman.dev/tallyman"
PATIENCE_S = 8            # an errand with all its rights takes a fraction of it at each step
READS = ("list", "watch")
# An apply that makes an object needs it, and the audit log calls that a patch.
OF_APPLY = {("create", "tallyman.dev", "admissions")}
# Asked for metrics alone, which suite/metrics.py does with the same role.
OF_METRICS = {("create", "authentication.k8s.io", "tokenreviews"),
              ("create", "authorization.k8s.io", "subjectaccessreviews")}
# Of queues with admission checks, of a kind that this cluster doesn't serve: suite/checks.py uses them
# all, under the same role.
OF_CHECKS = {*((verb, "autoscaling.x-k8s.io", "provisioningrequests")
               for verb in ("list", "watch", "create", "patch", "delete")),
             ("create", "", "podtemplates"), ("update", "", "podtemplates"),
             ("get", "batch", "jobs")}
ELSEWHERE = OF_METRICS | OF_CHECKS


class Errand:
    """In a namespace of its own, with objects of its own, so that one follows the other."""

    def __init__(self, cluster, number):
        self.cluster, self.number = cluster, number
        self.namespace = f"errand-{number}"
        self.gangs = Gangs(cluster, self.namespace)
        cluster.apply(manifests.namespace(self.namespace))

    def name(self, base):
        return f"{base}-{self.number}"

    def wait(self, predicate, what):
        wait_for(predicate, PATIENCE_S, what)

    def is_ready(self, kind, name):
        item = self.cluster.api.get_or_none(f"{GROUP}/{kind}/{self.name(name)}") or {}
        return any(condition["type"] == "Ready" and condition["status"] == "True"
                   for condition in item.get("status", {}).get("conditions", []))

    def job(self, name, priority, **more):
        return manifests.job(name, self.namespace, queue=self.name("cards"), pods=2,
                             claim_templates=["one-gpu"],
                             labels={"tallyman.dev/priority-class": self.name(priority)}, **more)

    def prepare(self):
        flavor = self.name("flavor")
        self.cluster.apply(
            manifests.priority_class(self.name("low"), 1),
            manifests.priority_class(self.name("high"), 9),
            manifests.resource_flavor(flavor),
            {"apiVersion": "tallyman.dev/v1beta1", "kind": "Cohort",
             "metadata": {"name": self.name("lab")}, "spec": {}},
            manifests.queue(self.name("cards"), {CLASS: "2"}, flavor=flavor,
                            cohort=self.name("lab"), preemption={"withinQueue": "LowerPriority"}),
            manifests.claim_template("one-gpu", self.namespace))
        for kind, name in (("queues", "cards"), ("cohorts", "lab"), ("resourceflavors", "flavor")):
            self.wait(lambda k=kind, n=name: self.is_ready(k, n), f"{kind} {name} is Ready")

    def preempt(self):
        gangs = self.gangs
        gangs.create(self.job("low", "low",
                              annotations={"tallyman.dev/checkpoint-grace": "10m"}))
        gangs.wait_ready("low", 2, PATIENCE_S)
        gangs.wait_state("low", "Running", PATIENCE_S)
        self.wait(lambda: any(event.get("reportingController") == REPORTER
                              for event in gangs.events("low")), "an Event of ours about low")
        gangs.create(self.job("high", "high"))
        key = "tallyman.dev/checkpoint-request"
        self.wait(lambda: all(key in pod["metadata"].get("annotations", {})
                              for pod in gangs.pods("low")), "its pods are asked for a checkpoint")
        now = datetime.datetime.now(datetime.timezone.utc)
        gangs.annotate("low", "tallyman.dev/last-checkpoint", now.strftime("%Y-%m-%dT%H:%M:%SZ"))
        gangs.wait_started("high", PATIENCE_S)
        gangs.wait_reason("low", "CohortExhausted", PATIENCE_S)

    def stray(self):
        """An Admission of no Job, which only the controller's own account can have made."""
        token = self.cluster.service_account_token("tallyman-system", "tallyman")
        path = f"{GROUP}/namespaces/{self.namespace}/admissions"
        self.cluster.request("POST", path, {
            "apiVersion": "tallyman.dev/v1beta1", "kind": "Admission",
            "metadata": {"name": "stray", "namespace": self.namespace},
            "spec": {"queue": "none", "jobUID": "none"}}, token=token)
        self.wait(lambda: self.gangs.admission("stray") is None, "the stray Admission is gone")

    def clear(self):
        """The Queue that is deleted while it is used stays until its last gang has ended."""
        queue = f"{GROUP}/queues/{self.name('cards')}"
        self.cluster.request("DELETE", queue)
        assert self.cluster.api.get_or_none(queue), "the Queue went while it was used"
        self.gangs.delete("low")
        self.gangs.delete("high")
        self.wait(lambda: not self.gangs.pods("high"), "the pods of high are gone")
        self.wait(lambda: self.cluster.api.get_or_none(queue) is None, "the Queue is gone")

    def run(self):
        self.prepare()
        self.preempt()
        self.stray()
        self.clear()

    def give_up(self):
        """Takes away what a failed errand has left, so that the next one has the devices."""
        queue = f"{GROUP}/queues/{self.name('cards')}"
        for item in self.cluster.items(f"/apis/batch/v1/namespaces/{self.namespace}/jobs"):
            self.gangs.delete(item["metadata"]["name"])
        if self.cluster.api.get_or_none(queue):
            self.cluster.request("PATCH", queue, {"metadata": {"finalizers": None}})
            self.cluster.api.exchange("DELETE", queue)
        self.cluster.wait_for(
            lambda: not self.cluster.items(f"/api/v1/namespaces/{self.namespace}/pods"), 30,
            "the pods of the errand that failed are gone")


def _rights(role):
    """{(verb, group, resource)} of the role's rules."""
    return {(verb, group, resource) for rule in role["rules"] for verb in rule["verbs"]
            for group in rule.get("apiGroups", []) for resource in rule.get("resources", [])}


def _used(cluster, since):
    """What the controller did, in the same form."""
    used = set()
    for event in cluster.audit_events(user=CONTROLLER_USER, since=since):
        about = event.get("objectRef", {})
        resource = about.get("resource", "")
        if about.get("subresource"):
            resource += f"/{about['subresource']}"
        used.add((event["verb"], about.get("apiGroup", ""), resource))
    return used


def _without(role, right):
    """The role's rules, with that one verb missing."""
    verb, group, resource = right
    rules = []
    for rule in copy.deepcopy(role["rules"]):
        if group not in rule["apiGroups"] or resource not in rule["resources"]:
            rules.append(rule)
            continue
        others = [name for name in rule["resources"] if name != resource]
        if others:
            rules.append({**rule, "resources": others})
        rules.append({**rule, "resources": [resource],
                      "verbs": [name for name in rule["verbs"] if name != verb]})
    return [rule for rule in rules if rule["verbs"]]


def _set_rules(cluster, rules, right=None):
    """…and waits until the authorizer has seen it."""
    role = cluster.get_json(ROLE)
    cluster.request("PUT", ROLE, {**role, "rules": rules})
    if right is None:
        return
    verb, group, resource = right
    name, _, subresource = resource.partition("/")
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
              "spec": {"user": CONTROLLER_USER, "resourceAttributes": {
                  "verb": verb, "group": group, "resource": name, "subresource": subresource}}}
    cluster.wait_for(lambda: not cluster.request(
        "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"],
        10, f"{verb} {resource}.{group} is taken away")


def test_every_right_is_used(context):
    """With WatchList, and on a server without it: a list is what is left there."""
    used, wanted = set(), None
    for gates in ("", "WatchList=false"):
        cluster = context.own_cluster(nodes=1, devices=2, is_audited=True, gates=gates)
        context.session.install(cluster)
        wanted = _rights(cluster.get_json(ROLE))
        since = cluster.audit_position()
        context.controller(cluster=cluster)
        Errand(cluster, 0).run()
        used |= _used(cluster, since)
    unused = wanted - used - OF_APPLY - ELSEWHERE
    assert not unused, f"granted, and never used: {sorted(unused)}"
    context.note(f"{len(wanted)} rights, each used")


def test_without_any_one_right_something_is_red(context):
    cluster = context.own_cluster(nodes=1, devices=2, is_audited=True)
    context.session.install(cluster)
    role = cluster.get_json(ROLE)
    rights = sorted(_rights(role) - ELSEWHERE)
    seen = 0
    for number, right in enumerate(rights, 1):
        verb, group, resource = right
        if verb == "list":
            continue  # asked only of a server without WatchList, as the test above shows
        _set_rules(cluster, _without(role, right), right)
        controller = context.controller(cluster=cluster, is_started=False)
        controller.start(is_ready_awaited=False)
        red = _red(cluster, controller, number, verb)
        controller.stop()
        _set_rules(cluster, role["rules"])
        assert red, f"without the right to {verb} {resource}.{group} all goes well"
        context.note(f"without {verb} {resource}.{group or 'core'}: {red}")
        seen += 1
    context.note(f"{seen} rights taken away, one after the other")


def _red(cluster, controller, number, verb):
    """What doesn't happen; absent if all does."""
    def answers():
        try:
            return controller.http("/healthz")[0] == 200
        except (OSError, urllib.error.URLError, http.client.HTTPException):
            return False

    wait_for(answers, 15, "the controller's /healthz")
    if verb in READS or verb == "get":
        try:
            wait_for(lambda: controller.http("/readyz")[0] == 200, 3, "it is ready")
        except AssertionError:
            return "it never is ready"
    errand = Errand(cluster, number)
    try:
        errand.run()
    except AssertionError as error:  # as it is thrown where something isn't seen in time
        errand.give_up()
        return str(error).splitlines()[0]
    return None
