"""The policies of config/policies: what they write into a Job, what they refuse and to whom, and
what everybody may still do. Alice here has every right that RBAC can give."""

import json

from lib import manifests
from lib.api import ApiError, JSON_PATCH

ALICE = ("--as=alice", "--as-group=system:masters")
QUEUE = "tallyman.dev/queue"
RECORD = "tallyman.dev/admission"
MIN_COUNT = "tallyman.dev/min-count"
SOURCE = "tallyman.dev/min-count-source"
SUSPEND_FIRST = "suspend it, wait until its pods are gone"
EFFECTIVE_S = 10      # a policy is in effect about a second after it is made


def _install(context):
    """Installs, and waits until the policies are in effect."""
    cluster, namespace = context.cluster, context.namespace
    context.session.install(cluster)

    def is_in_effect():
        probe = manifests.job("probe", namespace, queue="any", annotations={RECORD: "{}"})
        answer = _alice(cluster, "create", "--dry-run=server", "-f", "-", stdin=_text(probe))
        return "tallyman-guard-jobs" in answer.stderr

    def suspends():
        probe = manifests.job("probe", namespace, queue="any")
        answer = _alice(cluster, "create", "--dry-run=server", "-o", "json", "-f", "-",
                        stdin=_text(probe))
        return answer.returncode == 0 and json.loads(answer.stdout)["spec"]["suspend"]

    cluster.wait_for(is_in_effect, EFFECTIVE_S, "the guard in effect")
    cluster.wait_for(suspends, EFFECTIVE_S, "the suspending policy in effect")
    return cluster, namespace


def _text(*objects):
    return manifests.to_yaml(*objects)


def _alice(cluster, *arguments, stdin=None):
    return cluster.kubectl(*arguments, *ALICE, stdin=stdin, check=False)


def _create(cluster, *objects):
    answer = _alice(cluster, "create", "-f", "-", stdin=_text(*objects))
    assert answer.returncode == 0, answer.stderr


def _patch(cluster, namespace, name, patch, *arguments):
    return _alice(cluster, "-n", namespace, "patch", "job", name, "--type=merge", "-p",
                  json.dumps(patch), *arguments)


def _allowed(cluster, namespace, name, patch, *arguments):
    answer = _patch(cluster, namespace, name, patch, *arguments)
    assert answer.returncode == 0, f"{patch} should be allowed: {answer.stderr}"


def _refused(cluster, namespace, name, patch, text, *arguments):
    answer = _patch(cluster, namespace, name, patch, *arguments)
    assert answer.returncode != 0, f"{patch} {arguments} should be refused with '{text}'"
    assert f"Job {namespace}/{name}: " in answer.stderr and text in answer.stderr, \
        f"{patch} should be refused with '{text}', but: {answer.stderr}"


def _tallyman(cluster, namespace, name, patch):
    token = cluster.service_account_token("tallyman-system", "tallyman")
    return cluster.request("PATCH", f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}", patch,
                           token=token)


def _admit(cluster, namespace, name, queue="gold"):
    return _tallyman(cluster, namespace, name, {
        "metadata": {"annotations": {RECORD: json.dumps({"queue": queue})}},
        "spec": {"suspend": False}})


def _annotations(job):
    return job["metadata"].get("annotations", {})


def test_a_queued_job_starts_suspended(context):
    cluster, namespace = _install(context)
    for name, suspend in (("absent", None), ("false", False), ("true", True)):
        _create(cluster, manifests.job(name, namespace, pods=1, queue="gold", suspend=suspend))
        assert cluster.job(namespace, name)["spec"]["suspend"] is True, name
    _create(cluster, manifests.job("plain", namespace, pods=1))
    assert cluster.job(namespace, "plain")["spec"].get("suspend", False) is False
    _create(cluster, manifests.job("other-controller", namespace, pods=1, queue="gold",
                                   spec={"managedBy": "example.com/other"}))
    assert cluster.job(namespace, "other-controller")["spec"].get("suspend", False) is False
    assert not cluster.pods(namespace, "absent"), "a suspended Job has pods"


def test_a_job_made_from_a_cron_job_starts_suspended(context):
    cluster, namespace = _install(context)
    template = manifests.job("x", namespace, pods=1, queue="gold")
    _create(cluster, {"apiVersion": "batch/v1", "kind": "CronJob",
                      "metadata": {"name": "nightly", "namespace": namespace},
                      "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {
                          "metadata": {"labels": {QUEUE: "gold"}}, "spec": template["spec"]}}})
    made = _alice(cluster, "-n", namespace, "create", "job", "--from=cronjob/nightly", "once")
    assert made.returncode == 0, made.stderr
    assert cluster.job(namespace, "once")["spec"]["suspend"] is True


def test_a_namespace_has_a_default_queue(context):
    cluster, namespace = _install(context)
    cluster.kubectl("label", "namespace", namespace, "tallyman.dev/default-queue=silver")

    def is_labelled():
        probe = manifests.job("probe", namespace, pods=1)
        answer = _alice(cluster, "create", "--dry-run=server", "-o", "json", "-f", "-",
                        stdin=_text(probe))
        return json.loads(answer.stdout)["metadata"].get("labels", {}).get(QUEUE) == "silver"

    cluster.wait_for(is_labelled, EFFECTIVE_S, "the default queue in effect")
    _create(cluster, manifests.job("bare", namespace, pods=4, live_min_count=3),
            manifests.job("own", namespace, pods=1, queue="gold"),
            manifests.job("labels", namespace, pods=1, labels={"app": "x"}))
    bare, own = cluster.job(namespace, "bare"), cluster.job(namespace, "own")
    assert bare["metadata"]["labels"][QUEUE] == "silver", bare["metadata"]
    assert bare["spec"]["suspend"] is True
    assert _annotations(bare)[MIN_COUNT] == "3", bare["metadata"]
    assert own["metadata"]["labels"][QUEUE] == "gold" and own["spec"]["suspend"] is True
    labels = cluster.job(namespace, "labels")["metadata"]["labels"]
    assert labels[QUEUE] == "silver" and labels["app"] == "x", labels
    cluster.kubectl("label", "--overwrite", "namespace", namespace, "tallyman.dev/default-queue=")
    cluster.wait_for(lambda: not is_labelled(), EFFECTIVE_S, "the default queue taken away")
    _create(cluster, manifests.job("free", namespace, pods=1))
    free = cluster.job(namespace, "free")
    assert QUEUE not in free["metadata"].get("labels", {}) and not free["spec"].get("suspend"), free


def test_the_field_that_disappears_is_kept_as_an_annotation(context):
    cluster, namespace = _install(context)
    _create(cluster, manifests.job("field", namespace, pods=6, queue="gold", live_min_count=4),
            manifests.job("both", namespace, pods=6, queue="gold", live_min_count=4, min_count=2),
            manifests.job("plain", namespace, pods=1, live_min_count=1))
    field = cluster.job(namespace, "field")
    kept = "keeps" if "scheduling" in field["spec"] else "drops"
    context.note(f"this server {kept} spec.scheduling")
    assert _annotations(field)[MIN_COUNT] == "4", field["metadata"]
    assert _annotations(field)[SOURCE] == "spec.scheduling.schedulingPolicy.gang.minCount"
    both = _annotations(cluster.job(namespace, "both"))
    assert both[MIN_COUNT] == "2" and SOURCE not in both, both
    assert MIN_COUNT not in _annotations(cluster.job(namespace, "plain"))


def test_the_copy_follows_when_the_manifest_is_applied_again(context):
    cluster, namespace = _install(context)
    for size in (4, 6, 6):
        applied = _alice(cluster, "apply", "-f", "-", stdin=_text(
            manifests.job("gang", namespace, pods=6, queue="gold", live_min_count=size)))
        assert applied.returncode == 0, applied.stderr
        seen = _annotations(cluster.job(namespace, "gang"))[MIN_COUNT]
        assert seen == str(size), f"min-count {seen} after applying {size}"


def test_nobody_else_starts_a_queued_job(context):
    cluster, namespace = _install(context)
    _create(cluster, manifests.job("waits", namespace, pods=1, queue="gold"))
    see = f"see what it waits for with: kubectl -n {namespace} get admission waits"
    for patch in ({"spec": {"suspend": False}}, {"spec": {"suspend": None}},
                  {"spec": {"suspend": False}, "metadata": {"labels": {QUEUE: None}}},
                  {"spec": {"suspend": False}, "metadata": {"labels": {QUEUE: "other"}}}):
        _refused(cluster, namespace, "waits", patch, see)
    assert _admit(cluster, namespace, "waits")["spec"]["suspend"] is False


def test_nobody_else_writes_what_the_controller_writes(context):
    cluster, namespace = _install(context)
    _create(cluster, manifests.job("waits", namespace, pods=1, queue="gold"),
            manifests.job("runs", namespace, pods=1, queue="gold"))
    _admit(cluster, namespace, "runs")
    for key in (RECORD, "tallyman.dev/suspended", "tallyman.dev/checkpoint-request",
                "tallyman.dev/checkpoint-for"):
        text = f"annotation {key} is written by Tallyman alone"
        forged = {"metadata": {"annotations": {key: "{}"}}}
        for name in ("waits", "runs"):
            _refused(cluster, namespace, name, forged, text)
            _refused(cluster, namespace, name, forged, text, "--subresource=status")
        made = _alice(cluster, "create", "-f", "-", stdin=_text(manifests.job(
            "forged", namespace, pods=1, queue="gold", annotations={key: "{}"})))
        assert text + "; leave it out" in made.stderr, made.stderr
    _refused(cluster, namespace, "runs", {"metadata": {"annotations": {RECORD: None}}},
             "keep it as it is")
    _refused(cluster, namespace, "runs", {"metadata": {"annotations": None}}, "keep it as it is")
    _tallyman(cluster, namespace, "runs",
              {"metadata": {"annotations": {RECORD: None, "tallyman.dev/suspended": "{}"}}})


def test_a_forged_record_does_not_come_in_by_labelling(context):
    cluster, namespace = _install(context)
    _create(cluster, manifests.job("outside", namespace, pods=1, suspend=True,
                                   annotations={RECORD: '{"queue":"gold"}'}))
    label = {"metadata": {"labels": {QUEUE: "gold"}}}
    _refused(cluster, namespace, "outside", label, "leave it out")
    _allowed(cluster, namespace, "outside",
             {"metadata": {"labels": {QUEUE: "gold"}, "annotations": {RECORD: None}}})


def test_a_queue_is_corrected_while_the_job_waits_and_kept_while_it_runs(context):
    cluster, namespace = _install(context)
    _create(cluster, manifests.job("gang", namespace, pods=1, queue="glod"))
    for queue in ("silver", None, "gold"):
        _allowed(cluster, namespace, "gang", {"metadata": {"labels": {QUEUE: queue}}})
    _admit(cluster, namespace, "gang")
    for queue in ("silver", None):
        change = {"metadata": {"labels": {QUEUE: queue}}}
        _refused(cluster, namespace, "gang", change, "must stay gold while the Job is admitted")
        _refused(cluster, namespace, "gang", change, SUSPEND_FIRST, "--subresource=status")
    _refused(cluster, namespace, "gang",
             {"spec": {"suspend": True}, "metadata": {"labels": {QUEUE: "silver"}}}, SUSPEND_FIRST)
    _allowed(cluster, namespace, "gang", {"spec": {"suspend": True}})
    _refused(cluster, namespace, "gang", {"metadata": {"labels": {QUEUE: "silver"}}}, SUSPEND_FIRST)
    _tallyman(cluster, namespace, "gang", {"metadata": {"annotations": {RECORD: None}}})
    _allowed(cluster, namespace, "gang", {"metadata": {"labels": {QUEUE: "silver"}}})


def test_an_empty_label_names_no_queue(context):
    cluster, namespace = _install(context)
    answer = _alice(cluster, "create", "-f", "-",
                    stdin=_text(manifests.job("gang", namespace, pods=1, labels={QUEUE: ""})))
    assert answer.returncode != 0 and "label tallyman.dev/queue is empty, which names no queue; " \
        "give the name of a queue, or leave the label out" in answer.stderr, answer.stderr
    _create(cluster, manifests.job("plain", namespace, pods=1, suspend=True),
            manifests.job("gang", namespace, pods=1, queue="gold"))
    for name in ("plain", "gang"):
        empty = {"metadata": {"labels": {QUEUE: ""}}}
        _refused(cluster, namespace, name, empty, "is empty, which names no queue")
        _refused(cluster, namespace, name, empty, "which names no queue", "--subresource=status")


def test_an_empty_label_from_before_is_no_obstacle(context):
    """Its status goes on being written, and it can be given a queue."""
    cluster, namespace = _install(context)
    _create(cluster, manifests.job("early", namespace, pods=1, suspend=True))
    _tallyman(cluster, namespace, "early", {"metadata": {"labels": {QUEUE: ""}}})
    cluster.wait_for(lambda: cluster.job(namespace, "early")["status"].get("conditions"), 10,
                     "the Job controller's status")
    _allowed(cluster, namespace, "early", {"metadata": {"annotations": {"note": "x"}}})
    _allowed(cluster, namespace, "early", {"metadata": {"labels": {QUEUE: "gold"}}})


def test_the_label_stays_where_the_namespace_has_a_default_queue(context):
    cluster, namespace = _install(context)
    _create(cluster, manifests.job("gang", namespace, pods=1, queue="gold"))
    cluster.kubectl("label", "namespace", namespace, "tallyman.dev/default-queue=silver")
    bare = {"metadata": {"labels": {QUEUE: None}}}

    def is_refused():
        answer = _patch(cluster, namespace, "gang", bare, "--dry-run=server")
        return "can be changed but not taken off" in answer.stderr

    cluster.wait_for(is_refused, EFFECTIVE_S, "the default queue in effect")
    _refused(cluster, namespace, "gang", bare, "tallyman.dev/default-queue: silver)")
    _refused(cluster, namespace, "gang", bare, "not taken off", "--subresource=status")
    _refused(cluster, namespace, "gang",
             {"metadata": {"labels": {QUEUE: None}}, "spec": {"suspend": False}}, "suspend")
    _refused(cluster, namespace, "gang", {"metadata": {"labels": {QUEUE: ""}}},
             "leave the label out for the default queue of the namespace, silver")
    _allowed(cluster, namespace, "gang", {"metadata": {"labels": {QUEUE: "silver"}}})


def test_a_running_job_is_not_labelled(context):
    cluster, namespace = _install(context)
    _create(cluster, manifests.job("runs", namespace, pods=1))
    label = {"metadata": {"labels": {QUEUE: "gold"}}}
    _refused(cluster, namespace, "runs", label, "can only be added to a suspended Job")
    _refused(cluster, namespace, "runs", label, "and this one runs", "--subresource=status")
    _allowed(cluster, namespace, "runs", {**label, "spec": {"suspend": True}})


def test_an_admitted_job_does_not_grow(context):
    cluster, namespace = _install(context)
    _create(cluster, manifests.job("gang", namespace, pods=2, queue="gold"))
    _allowed(cluster, namespace, "gang", {"spec": {"parallelism": 3, "completions": 3}})
    _admit(cluster, namespace, "gang")
    for patch in ({"spec": {"parallelism": 4}}, {"spec": {"parallelism": 4, "completions": 4}}):
        _refused(cluster, namespace, "gang", patch, "can only be lowered, from 3; to run more pods")
    _allowed(cluster, namespace, "gang", {"spec": {"parallelism": 2}})
    _refused(cluster, namespace, "gang", {"spec": {"parallelism": 3}}, "from 2")


def test_an_admitted_job_keeps_its_deadline(context):
    cluster, namespace = _install(context)
    job = manifests.job("bound", namespace, pods=1, queue="gold")
    job["spec"]["activeDeadlineSeconds"] = 600
    _create(cluster, job)
    _allowed(cluster, namespace, "bound", {"spec": {"activeDeadlineSeconds": 900}})
    _admit(cluster, namespace, "bound")
    for deadline in (901, None):
        _refused(cluster, namespace, "bound", {"spec": {"activeDeadlineSeconds": deadline}},
                 "can only be lowered, from 900; to run for longer")
    _allowed(cluster, namespace, "bound", {"spec": {"activeDeadlineSeconds": 300}})


def test_what_everybody_may_do(context):
    cluster, namespace = _install(context)
    _create(cluster, manifests.job("gang", namespace, pods=1, queue="gold"))
    free = {"metadata": {"annotations": {
        "tallyman.dev/hold": "true", MIN_COUNT: "1", "tallyman.dev/last-checkpoint": "x"},
        "labels": {"tallyman.dev/priority-class": "high"}}}
    _allowed(cluster, namespace, "gang", free)
    _admit(cluster, namespace, "gang")
    _allowed(cluster, namespace, "gang", {"metadata": {"annotations": {
        "tallyman.dev/hold": None, "tallyman.dev/last-checkpoint": "y"}}})
    _allowed(cluster, namespace, "gang", {"spec": {"suspend": True}})
    deleted = _alice(cluster, "-n", namespace, "delete", "job", "gang")
    assert deleted.returncode == 0, deleted.stderr


def test_the_job_controller_goes_on_working(context):
    """Its status writes pass the guard, and it takes nothing of ours away."""
    cluster, namespace = _install(context)
    _create(cluster, manifests.job("gang", namespace, pods=2, queue="gold", run_for="1s"))
    cluster.wait_for(lambda: cluster.has_condition(namespace, "gang", "Suspended"), 10, "Suspended")
    _admit(cluster, namespace, "gang")
    cluster.wait_for(lambda: cluster.has_condition(namespace, "gang", "Complete"), 60, "Complete")
    done = cluster.job(namespace, "gang")
    assert _annotations(done)[RECORD] == '{"queue": "gold"}', done["metadata"]
    assert done["metadata"]["labels"][QUEUE] == "gold"
    assert done["status"]["succeeded"] == 2, done["status"]


def _make_admission(cluster, namespace, name, owner=None):
    token = cluster.service_account_token("tallyman-system", "tallyman")
    body = {"apiVersion": "tallyman.dev/v1beta1", "kind": "Admission",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"queue": "gold", "jobUID": "u"}}
    if owner:
        body["metadata"]["ownerReferences"] = [{
            "apiVersion": "batch/v1", "kind": "Job", "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": True}]
    path = f"/apis/tallyman.dev/v1beta1/namespaces/{namespace}/admissions"
    cluster.request("POST", path, body, token=token)
    return f"{path}/{name}", token


def test_an_admission_is_written_by_the_controller_alone(context):
    cluster, namespace = _install(context)
    path, token = _make_admission(cluster, namespace, "gang")

    def is_guarded():
        answer = _alice(cluster, "-n", namespace, "delete", "admission", "gang", "--dry-run=server")
        return "delete its Job, and it goes too" in answer.stderr

    cluster.wait_for(is_guarded, EFFECTIVE_S, "the guard of Admissions in effect")
    words = f"Admission {namespace}/gang is written by Tallyman alone"
    patched = _alice(cluster, "-n", namespace, "patch", "admission", "gang", "--type=merge", "-p",
                     '{"status":{"evictions":0}}')
    assert words in patched.stderr, patched.stderr
    deleted = _alice(cluster, "-n", namespace, "delete", "admission", "gang")
    assert words in deleted.stderr, deleted.stderr
    all_deleted = _alice(cluster, "-n", namespace, "delete", "admissions", "--all")
    assert words in all_deleted.stderr, all_deleted.stderr
    made = _alice(cluster, "create", "-f", "-", stdin=_text({
        "apiVersion": "tallyman.dev/v1beta1", "kind": "Admission",
        "metadata": {"name": "forged", "namespace": namespace},
        "spec": {"queue": "gold", "jobUID": "u"}}))
    assert "is written by Tallyman alone" in made.stderr, made.stderr
    cluster.request("DELETE", path, token=token)


def test_an_admission_goes_with_its_job(context):
    cluster, namespace = _install(context)
    for name, cascade in (("back", "background"), ("fore", "foreground")):
        _create(cluster, manifests.job(name, namespace, pods=1, queue="gold"))
        path, _ = _make_admission(cluster, namespace, name, cluster.job(namespace, name))
        deleted = _alice(cluster, "-n", namespace, "delete", "job", name, f"--cascade={cascade}")
        assert deleted.returncode == 0, deleted.stderr
        cluster.wait_for(lambda: cluster.api.get_or_none(path) is None, 30, f"{name} collected")


def test_an_admission_goes_with_its_namespace(context):
    cluster, namespace = _install(context)
    inner = f"{namespace}-x"
    cluster.request("POST", "/api/v1/namespaces", manifests.namespace(inner))
    path, _ = _make_admission(cluster, inner, "gang")
    cluster.kubectl("delete", "namespace", inner, "--wait=false")
    cluster.wait_for(lambda: cluster.api.get_or_none(path) is None, 30, "the Admission gone")
    cluster.wait_for(lambda: cluster.api.get_or_none(f"/api/v1/namespaces/{inner}") is None, 30,
                     f"namespace {inner} gone")


def test_a_json_patch_is_guarded_like_any_other(context):
    cluster, namespace = _install(context)
    _create(cluster, manifests.job("waits", namespace, pods=1, queue="gold"))
    try:
        cluster.request("PATCH", f"/apis/batch/v1/namespaces/{namespace}/jobs/waits",
                        [{"op": "replace", "path": "/spec/suspend", "value": False}], JSON_PATCH)
    except ApiError as error:
        assert error.status == 403 and "Tallyman alone starts a Job" in error.text, error
        return
    raise AssertionError("the admin's JSON patch started a queued Job")
