"""`plan` and `explain` on a real cluster: what plan says is what the controller then does, and a
plain user of a namespace is told why a Job waits and what starts it."""

import json
import os
import subprocess

from lib import manifests
from lib.gangs import Gangs

CLASS = "gpu.example.com"
GANG = 4


def _training(context, queue, name, pods=GANG, **more):
    return manifests.job(name, context.namespace, pods=pods, queue=queue,
                         claim_templates=["one-gpu"], **more)


def _account(context, name, role, is_of_cluster=False):
    """The kubeconfig of a ServiceAccount of the test's namespace that has that role, and its
    name in the audit log."""
    cluster, namespace = context.cluster, context.namespace
    cluster.kubectl("-n", namespace, "create", "serviceaccount", name)
    subject = f"--serviceaccount={namespace}:{name}"
    if is_of_cluster:
        binding = context.name(name)
        context.defer(cluster.kubectl, "delete", "clusterrolebinding", binding)
        cluster.kubectl("create", "clusterrolebinding", binding, f"--clusterrole={role}", subject)
    else:
        cluster.kubectl("-n", namespace, "create", "rolebinding", name, f"--clusterrole={role}",
                        subject)
    kubeconfig = cluster.service_account_kubeconfig(namespace, name)
    return kubeconfig, f"system:serviceaccount:{namespace}:{name}"


def _tallyman(context, kubeconfig, *arguments):
    command = [context.session.binary, *arguments, "--kubeconfig", kubeconfig]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TZ": "UTC"}
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=60, check=False, env=environment)


def _told(context, kubeconfig, *arguments):
    done = _tallyman(context, kubeconfig, *arguments)
    assert done.returncode == 0, f"status {done.returncode}: {done.stdout}{done.stderr}"
    return done


def test_plan_tells_what_the_controller_then_does(context):
    """Read with the role tallyman-reader, from one moment, and not one write."""
    cluster, queue = context.cluster, context.name("research")
    gangs = Gangs(cluster, context.namespace)
    context.controller(is_started=False)
    context.apply(manifests.queue(queue, {CLASS: "20"}),
                  manifests.claim_template("one-gpu", context.namespace))
    for name, pods in (("one", 4), ("two", 4), ("three", 2), ("huge", 21)):
        cluster.apply(_training(context, queue, name, pods=pods))
    kubeconfig, user = _account(context, "planner", "tallyman-reader", is_of_cluster=True)
    start = cluster.audit_position()
    cluster.wait_for(lambda: _tallyman(context, kubeconfig, "plan").returncode == 0, 10,
                     "the role is in effect")
    done = _told(context, kubeconfig, "plan", "-o", "json")
    assert done.stderr == "", done.stderr
    planned = {each["name"]: each for each in json.loads(done.stdout)["decisions"]
               if each["namespace"] == context.namespace}
    context.note(f"plan: {({name: each['decision'] for name, each in planned.items()})}")
    asked = _tallyman(context, kubeconfig, "plan", f"--ask={context.namespace}/huge")
    assert asked.returncode == 4, asked
    seen = {event["verb"] for event in cluster.audit_events(user=user, since=start)}
    assert seen == {"list"}, seen

    context.controllers[0].start()
    for name, each in planned.items():
        if each["decision"] == "Admit":
            gangs.wait_started(name)
        else:
            assert each["decision"] == "Wait", each
            gangs.wait_reason(name, each["reason"])
            assert gangs.is_suspended(name), name
    started = sorted(name for name, each in planned.items() if each["decision"] == "Admit")
    assert started in (["one", "three"], ["three", "two"]), started  # made in one second


def test_a_job_is_planned_before_it_is_submitted(context):
    cluster, queue = context.cluster, context.name("research")
    gangs = Gangs(cluster, context.namespace)
    context.controller()
    context.apply(manifests.queue(queue, {CLASS: "8"}),
                  manifests.claim_template("one-gpu", context.namespace))
    cluster.apply(_training(context, queue, "first"))
    gangs.wait_ready("first", GANG)
    path = context.session.scratch / f"{context.suffix}.yaml"
    for pods, status in ((2, 0), (4, 3), (9, 4)):
        path.write_text(manifests.to_yaml(_training(context, queue, f"new-{pods}", pods=pods)))
        done = _tallyman(context, cluster.plane.kubeconfig, "plan", "-f", path, "--ask")
        assert done.returncode == status, f"{pods} pods: {done.returncode}\n{done.stdout}"
    assert {item["metadata"]["name"] for item in cluster.items(
        f"/apis/batch/v1/namespaces/{context.namespace}/jobs")} == {"first"}


def test_a_plain_user_is_told_why_and_what_starts_it(context):
    """View is enough to read; the command that is given, run with the role edit, starts the gang."""
    cluster, queue = context.cluster, context.name("research")
    gangs = Gangs(cluster, context.namespace)
    context.controller()
    context.apply(manifests.queue(queue, {CLASS: "8"}),
                  manifests.claim_template("one-gpu", context.namespace))
    cluster.apply(_training(context, queue, "train-a"))
    gangs.wait_ready("train-a", GANG)
    cluster.apply(_training(context, queue, "train-b"))
    gangs.wait_reason("train-b", "DevicesExhausted")
    viewer, user = _account(context, "viewer", "view")
    editor, _ = _account(context, "editor", "edit")
    where = ("-n", context.namespace)
    cluster.wait_for(lambda: _tallyman(context, viewer, "explain", "train-b", *where).returncode == 0,
                     10, "the view role is in effect")
    start = cluster.audit_position()
    page = _told(context, viewer, "explain", "train-b", *where).stdout
    context.note(page)
    for part in ("waits: needs 4 gpu.example.com at once, 2 of 6 are free", "[DevicesExhausted]",
                 "would start now with 2 of 4 pods", "train-a: 4 gpu.example.com",
                 f"nobody (first in queue {queue})", f"{queue} 4/8; not the limit"):
        assert part in page, f"{part!r} isn't in\n{page}"
    seen = {(event["verb"], event["objectRef"]["resource"], event["responseStatus"]["code"])
            for event in cluster.audit_events(user=user, since=start)}
    assert seen == {("get", "admissions", 200)}, seen

    command = next(line.strip() for line in page.split("\n") if "kubectl annotate" in line)
    cluster.kubectl(*command.split()[1:], kubeconfig=editor)
    gangs.wait_ready("train-b", 2)
    running = _told(context, viewer, "explain", "job/train-b", *where).stdout
    context.note(running)
    assert "train-b runs: 2/2 pods ready" in running, running
    assert "2 of 2 bound to a node" in running and "DevicesExhausted" in running, running


def test_what_a_plain_user_cant_plan_is_said(context):
    """The role view of a namespace doesn't show queues and nodes: no plan, and the way to one."""
    context.controller()
    viewer, _ = _account(context, "viewer", "view")
    done = _tallyman(context, viewer, "plan", "-n", context.namespace)
    assert done.returncode == 1 and "tallyman-reader" in done.stderr, done
