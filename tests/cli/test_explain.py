"""tallyman explain: live from the Admission alone, and from manifests."""
import json

from objects import bare, job, meta, namespace, node, queue, STEERING, steering

CLUSTER = [namespace("quay"), node("n1"), node("n2"), queue("crane", "4"), job("a", "crane", 3),
           job("b", "crane", 2), job("c", "crane", 1)]
UID = "uid-quay-b"


def admission(**status):
    explanation = {
        "since": "2026-11-29T11:20:00Z", "asOf": "2026-11-29T11:50:00Z", "changesTried": True,
        "actions": [
            {"kind": "Wait", "message": "It starts when gangs of its queue end."},
            {"kind": "ChangeJob", "message": "would start now with 2 of 4 pods",
             "command": "kubectl annotate --overwrite job b -n quay tallyman.dev/partial=true"}],
        "inTheWay": [{"name": "a", "queue": "crane", "size": "3 cpu",
                      "since": "2026-11-29T11:02:00Z", "until": "2026-11-29T15:05:00Z"},
                     {"queue": "hoist", "size": "1 cpu"}],
        "ahead": {"gangs": 2, "devices": 12, "pods": 12},
        "quota": [{"kind": "Queue", "name": "crane", "flavor": "default", "resource": "cpu",
                   "asked": "4", "used": "2", "limit": "4"},
                  {"kind": "Cohort", "name": "lab", "flavor": "default", "resource": "cpu",
                   "asked": "4", "used": "7", "limit": "8", "limiting": True}],
        "nodes": {"total": 3, "excluded": [{"reason": "Tainted", "count": 2,
                                            "message": "tainted"}]},
        "flavors": [{"name": "old", "reason": "NoMatchingFlavor", "message": "not selected"},
                    {"name": "new", "reason": "CohortExhausted", "message": "short"}],
        "otherReasons": [{"reason": "NodesFull", "message": "no room either"}],
        "history": [{"reason": "QuotaExhausted", "since": "2026-11-29T11:09:00Z",
                     "until": "2026-11-29T11:20:00Z"}],
        "eviction": {"rule": "PreemptedWithinQueue", "at": "2026-11-29T11:08:00Z", "by": "a",
                     "queue": "crane", "lost": "1h on 4 pods"},
    }
    return {"apiVersion": "tallyman.dev/v1beta1", "kind": "Admission",
            "metadata": meta("b", "quay"),
            "spec": {"queue": "crane", "jobUID": UID, "priority": 0,
                     "podSets": [{"name": "main", "count": 4, "minCount": 4}]},
            "status": {"state": "Pending", "position": 3, "pos": "3", "pods": "0/4",
                       "reason": "CohortExhausted", "message": "needs 4 cpu at once",
                       "since": "2026-11-29T11:20:00Z", "explanation": explanation, **status}}


RUNNING = {"state": "Running", "reason": "", "message": "", "pods": "2/3", "flavor": "default",
           "explanation": {"since": "2026-11-29T11:20:00Z"}}


def pod(name, **status):
    spec = {"nodeName": status.pop("node")} if "node" in status else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta(name, "quay"), "spec": spec,
            "status": status}


def ready(name):
    return pod(name, node="n1", phase="Running", conditions=[{"type": "Ready", "status": "True"}])


def live(bench, *arguments, objects=None, **options):
    api = bench.api(objects or [admission()], page_items=500, **options)
    kubeconfig = bench.kubeconfig(api, "quay")
    return api, bench.run("explain", "--kubeconfig", kubeconfig, "--now", "2026-11-29T12:00:00Z",
                          *arguments, TZ="UTC")


# -- live --------------------------------------------------------------------------------------------

def test_a_waiting_gang_needs_its_admission_and_nothing_else(bench):
    api, answer = live(bench, "b")
    answer.expect(0)
    assert [request[:2] for request in api.requests] == [
        ("GET", "/apis/tallyman.dev/v1beta1/namespaces/quay/admissions/b")]


def test_the_page_in_its_order(bench):
    _, answer = live(bench, "b")
    assert answer.expect(0).out == """\
quay/b waits: needs 4 cpu at once.  [CohortExhausted]
  you can     wait    It starts when gangs of its queue end.
              change  would start now with 2 of 4 pods
                kubectl annotate --overwrite job b -n quay tallyman.dev/partial=true
  start       likely --
  in the way  a: 3 cpu, since 11:02, ends by 15:05
              a gang of queue hoist: 1 cpu
  ahead       2 gangs, 12 devices, 12 pods (place 3 in queue crane)
  quota       cpu on default, asks 4: crane 2/4, lab 7/8 (the limit)
  nodes       3: 2 tainted
  flavors     old: NoMatchingFlavor: not selected
              new: CohortExhausted: short
  then        NodesFull: no room either
  numbers     as of 11:50
  stopped     11:08 PreemptedWithinQueue for a of queue crane; lost 1h on 4 pods
  so far      11:09 QuotaExhausted 11m, 11:20 CohortExhausted 40m
""", answer.out


def test_the_job_can_be_named_as_kubectl_does(bench):
    for arguments in (("job/b",), ("jobs.batch/b",), ("quay/b",), ("b", "-n", "quay")):
        live(bench, *arguments)[1].expect(0, "quay/b waits")


def test_json_and_yaml_have_the_admissions_own_words(bench):
    data = live(bench, "b", "-o", "json")[1].expect(0).data
    assert data["metadata"] == {"name": "b", "namespace": "quay"}
    assert data["status"]["explanation"] == admission()["status"]["explanation"]
    live(bench, "b", "-o", "yaml")[1].expect(0, "reason: CohortExhausted")


def test_after_admission_it_goes_on_with_the_pods(bench):
    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff"}}, "name": "main"}
    pods = [ready("b-0"), pod("b-1", node="n2", phase="Pending", containerStatuses=[waiting]),
            pod("b-2", phase="Pending", conditions=[
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}])]
    api, answer = live(bench, "b", objects=[admission(**RUNNING)] + pods)
    answer.expect(0, "quay/b runs: 2/3 pods ready, on flavor default", "2 of 3 bound to a node",
                  "1 waits: ImagePullBackOff (b-1)", "1 waits: Unschedulable (b-2)")
    assert api.requests[1][2]["labelSelector"] == f"batch.kubernetes.io/controller-uid={UID}"
    data = live(bench, "b", "-o", "json", objects=[admission(**RUNNING)] + pods)[1].data
    assert [each["waitsFor"] for each in data["pods"]] == ["", "ImagePullBackOff", "Unschedulable"]


def test_without_the_right_to_list_pods_the_rest_is_told(bench):
    _, answer = live(bench, "b", objects=[admission(**RUNNING)], forbidden={("Pod", "quay")})
    answer.expect(0, "quay/b runs", "pods        ? (you may not list the pods")


def test_what_is_missing_is_told_apart(bench):
    nothing = [namespace("quay")]
    live(bench, "b", objects=nothing)[1].expect(1, "there is no Job b in namespace quay")
    live(bench, "a", objects=[job("a", "crane")])[1].expect(1, "the controller hasn't seen it")
    free = job("a", "crane")
    free["metadata"]["labels"] = {}
    live(bench, "a", objects=[free])[1].expect(1, "names no queue", "tallyman.dev/queue")
    live(bench, "b", forbidden={("Admission", "quay")})[1].expect(1, "role `view`")
    live(bench, "b", objects=nothing, forbidden={("Job", "quay")})[1].expect(
        1, "no such Job, or it names no queue")


def test_an_admission_that_says_little_is_shown(bench):
    bare_one = admission(explanation=None, message="there is no Queue x", reason="QueueNotFound")
    live(bench, "b", objects=[bare_one])[1].expect(0, "there is no Queue x.  [QueueNotFound]")
    young = admission()
    del young["status"]
    live(bench, "b", objects=[young])[1].expect(0, "quay/b is not looked at yet")


def test_text_is_wrapped_on_a_terminal_and_commands_are_not(bench):
    told = admission(message="needs " + "much " * 40 + "cpu")
    command = "kubectl annotate --overwrite job b -n quay " + "x" * 80
    told["status"]["explanation"]["actions"][1]["command"] = command
    api = bench.api([told])
    for columns in (80, 120):
        answer = bench.terminal("explain", "--kubeconfig", bench.kubeconfig(api, "quay"), "b",
                                columns=columns, NO_COLOR="1").expect(0)
        assert "\x1b" not in answer.out
        lines = answer.out.split("\n")
        assert all(len(line) <= columns or command in line for line in lines), answer.out
        assert any(command in line for line in lines)


def test_colours_are_for_terminals_and_controls_for_nobody(bench):
    told = admission(message="\u001b[2Jevil \u009b31m")
    api = bench.api([told])
    kubeconfig = bench.kubeconfig(api, "quay")
    assert "\x1b[1m" in bench.terminal("explain", "--kubeconfig", kubeconfig, "b").out
    plain = bench.run("explain", "--kubeconfig", kubeconfig, "b").out
    assert "\x1b" not in plain and "\x9b" not in plain and "\\u001b[2Jevil" in plain


def test_no_format_steers_the_terminal_and_programs_read_the_same(bench):
    told = "evil" + STEERING + "."
    for form in ("json", "yaml", "text"):
        _, answer = live(bench, "b", *(() if form == "text" else ("-o", form)),
                         objects=[admission(message=told)])
        assert not steering(answer.expect(0).out), f"{form}: {answer.out!r}"
        assert form != "json" or answer.data["status"]["message"] == told, answer.out


def test_wrong_command_lines_exit_2(bench):
    bench.run("explain").expect(2, "which Job?")
    bench.run("explain", "a", "b").expect(2, "one Job at a time")
    bench.run("explain", "a", "-o", "xml").expect(2, "text, json or yaml")
    bench.run("explain", "a/b/c").expect(2, "no name of a Job")
    bench.run("explain", "/j").expect(2, '"" is no namespace')
    bench.run("explain", "j", "-n", "").expect(2, '"" is no namespace')
    bench.run("explain", "j", "-n", "../x").expect(2, '"../x" is no namespace')
    bench.run("explain", "a/j", "-n", "b").expect(2, '"a/j" is in one namespace and -n b in another')
    bench.run("explain", "-f", bench.file([bare(each) for each in CLUSTER]), "quay/b", "-n", "quay").expect(0)


# -- from manifests ----------------------------------------------------------------------------------

def given(bench, *arguments, objects=None):
    path = bench.file([bare(each) for each in objects or CLUSTER])
    return bench.run("explain", "-f", path, "--now", "2026-11-29T12:00:00Z", *arguments, TZ="UTC")


def test_from_manifests_the_change_is_found_and_works(bench):
    alone = [each for each in CLUSTER if each["metadata"]["name"] != "c"]
    answer = given(bench, "b", objects=alone).expect(0, "quay/b waits", "would start now with 1 of 2 pods")
    command = next(line for line in answer.out.split("\n") if "kubectl annotate" in line).split()
    changed = json.loads(json.dumps(alone))
    [target] = [each for each in changed if each["metadata"]["name"] == "b"]
    target["metadata"]["annotations"] = dict(word.split("=") for word in command if "=" in word)
    given(bench, "b", objects=changed).expect(0, "quay/b would start now: 1 pods")


def test_from_manifests_a_start_is_told(bench):
    given(bench, "a").expect(0, "quay/a would start now: 3 pods on flavor default")


def test_from_manifests_another_may_count_as_admitted(bench):
    alone = [each for each in CLUSTER if each["metadata"]["name"] != "c"]
    given(bench, "b", "--admitted", "a=default", objects=alone).expect(0, "quay/b waits", "in the way  a: ")
    given(bench, "b", "--admitted", "a").expect(2, "NAME=FLAVOR")
    bench.run("explain", "b", "--admitted", "a=default").expect(2, "--admitted", "-f")


def test_from_manifests_the_same_name_twice_wants_a_namespace(bench):
    twice = CLUSTER + [job("b", "crane", namespace="yard")]
    given(bench, "b", objects=twice).expect(2, "quay", "yard", "-n")
    given(bench, "b", "-n", "yard", objects=twice).expect(0, "yard/b")
    given(bench, "nobody").expect(1, "nobody")


def test_from_manifests_plan_has_the_same_sentence(bench):
    """b is short of 2 cpu when it is judged, and of 3 once c has started: both tell how it is now."""
    told = given(bench, "b", "-o", "json").expect(0).data["status"]["message"]
    path = bench.file([bare(each) for each in CLUSTER])
    plan = bench.run("plan", "-f", path, "--now", "2026-11-29T12:00:00Z", "-o", "json").data
    [planned] = [each["message"] for each in plan["decisions"] if each["name"] == "b"]
    assert planned == told and "has 0 of 4 free" in told, (planned, told)


def test_from_manifests_nothing_starts_behind_a_head_that_blocks(bench):
    strict = [queue("crane", "4", queueingStrategy="StrictFIFO") if each["kind"] == "Queue" else each
              for each in CLUSTER] + [job("large", "crane", 5)]
    answer = given(bench, "large", objects=strict).expect(0, "[NeverFits]")
    assert "would start now" not in answer.out, answer.out
