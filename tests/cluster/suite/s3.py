"""S3, the field that disappears: the gang size of spec.scheduling counts, whether the API server
keeps the field or drops it without a word, and where it is dropped the user is told once."""

from lib import manifests
from lib.cluster import stays
from lib.gangs import MIN_COUNT, MIN_COUNT_SOURCE, Gangs, remove_policies

CLASS = "gpu.example.com"
DEVICES = 6
GATES = "GenericWorkload=true,WorkloadWithJob=true"
WARNING = "SchedulingFieldDropped"


def _holder(namespace, count, **more):
    """A plain Job that keeps so many of the six devices."""
    return manifests.job("holder", namespace, pods=count, claim_templates=["one-gpu"], **more)


def _elastic(namespace, name="elastic", **more):
    """Six pods, of which four are enough to begin with."""
    return manifests.job(name, namespace, pods=6, queue="s3", claim_templates=["one-gpu"],
                         live_min_count=4, **more)


def _prepare(context, cluster, held, are_policies_wanted=True, **more):
    gangs = Gangs(cluster, context.namespace_in(cluster))
    context.session.install(cluster)
    if not are_policies_wanted:
        remove_policies(cluster)
    cluster.apply(manifests.queue("s3", {CLASS: "12"}),
                  manifests.claim_template("one-gpu", gangs.namespace))
    gangs.create(_holder(gangs.namespace, held, **more))
    gangs.wait_ready("holder", held)
    return gangs, context.controller(cluster=cluster)


def _the_warning(gangs, name):
    """The one Warning about the dropped field: there, and no second one a second later."""
    gangs.cluster.wait_for(lambda: gangs.events(name, WARNING), 10, f"the Warning about {name}")
    stays(lambda: len(gangs.events(name, WARNING)) == 1, 1, "one Warning")
    event = gangs.events(name, WARNING)[0]
    assert event["type"] == "Warning" and "WorkloadWithJob" in event["note"], event
    assert event.get("series") is None, event
    return event["note"]


def _starts_with_four(gangs, name):
    """Four devices are free: enough, if four is the size that counts."""
    gangs.wait_started(name)
    gangs.wait_ready(name, 4)
    pod_set = gangs.admission(name)["spec"]["podSets"][0]
    assert pod_set["minCount"] == 4 and pod_set["count"] == 6, pod_set


def test_the_policy_keeps_the_size_that_the_server_drops(context):
    cluster = context.own_cluster()
    gangs, controller = _prepare(context, cluster, held=2)
    cluster.apply(_elastic(gangs.namespace))
    assert "scheduling" not in gangs.job("elastic")["spec"], "this server keeps the field"
    assert gangs.annotation("elastic", MIN_COUNT) == "4"
    assert gangs.annotation("elastic", MIN_COUNT_SOURCE)
    _starts_with_four(gangs, "elastic")
    note = _the_warning(gangs, "elastic")
    context.note(note)
    assert "policy tallyman-min-count" in note, note
    controller.restart()
    stays(lambda: len(gangs.events("elastic", WARNING)) == 1, 1.5, "one Warning after a restart")


def test_a_users_own_annotation_is_no_dropped_field(context):
    cluster = context.own_cluster()
    gangs, _ = _prepare(context, cluster, held=2)
    gangs.create(manifests.job("elastic", gangs.namespace, pods=6, queue="s3", min_count=4,
                               claim_templates=["one-gpu"]))
    _starts_with_four(gangs, "elastic")
    stays(lambda: not gangs.events("elastic", WARNING), 1, "no Warning")


def test_without_policies_the_size_is_in_what_kubectl_applied(context):
    cluster = context.own_cluster()
    gangs, _ = _prepare(context, cluster, held=2, are_policies_wanted=False)
    cluster.apply(_elastic(gangs.namespace))
    job = gangs.job("elastic")
    assert "scheduling" not in job["spec"] and MIN_COUNT not in job["metadata"]["annotations"]
    _starts_with_four(gangs, "elastic")
    note = _the_warning(gangs, "elastic")
    context.note(note)
    assert "last-applied-configuration" in note, note


def test_with_the_gates_on_the_live_field_counts(context):
    cluster = context.own_cluster(gates=GATES)
    gangs, _ = _prepare(context, cluster, held=3, run_for="12s")
    gangs.create(_elastic(gangs.namespace, annotations={MIN_COUNT: "6"}))
    live = gangs.job("elastic")["spec"]["scheduling"]["schedulingPolicy"]["gang"]["minCount"]
    assert live == 4, "this server drops the field in spite of its gate"
    message = gangs.wait_reason("elastic", "DevicesExhausted")
    assert f"needs 4 {CLASS} at once, 3 of 6 " in message, message

    raised = {"schedulingPolicy": {"gang": {"minCount": 5}}}
    gangs.patch("elastic", {"spec": {"scheduling": raised}})
    cluster.wait_for(lambda: f"needs 5 {CLASS} at once, 3 of 6 " in gangs.summary("elastic"), 10,
                     "the raised size counts")
    context.note(f"raised to 5 while it waits: {gangs.summary('elastic')}")
    gangs.wait_complete("holder")
    gangs.wait_ready("elastic", 6)
    assert not gangs.events("elastic", WARNING), "a Warning about a field that is kept"
    groups = cluster.items(
        f"/apis/scheduling.k8s.io/v1beta1/namespaces/{gangs.namespace}/podgroups")
    context.note(f"PodGroups of the in-tree gang scheduling: {len(groups)}")
    assert groups, "the Job controller has made no PodGroup"
