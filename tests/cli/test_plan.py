"""tallyman plan: options, formats, exit status, and a live cluster."""
import json
import pathlib
import re

from objects import bare, job, namespace, node, queue, STEERING, steering

TESTS = pathlib.Path(__file__).resolve().parent.parent
CLUSTER = [namespace("quay"), namespace("yard"), node("n1"), node("n2"), node("n3"),
           queue("crane", "4"), job("a", "crane", 3), job("b", "crane", 2),
           job("c", "crane", 1, namespace="yard")]
DECISIONS = {"quay/a": "Admit", "quay/b": "Wait", "yard/c": "Admit"}


def files(bench, objects=None):
    return "-f", bench.file([bare(each) for each in objects or CLUSTER])


# -- formats -----------------------------------------------------------------------------------------

def test_json_has_the_documented_members_in_their_order(bench):
    answer = bench.plan(*files(bench), "-o", "json").expect(0)
    assert list(answer.data) == ["decisions"]
    for each in answer.data["decisions"]:
        assert list(each) == ["namespace", "name", "uid", "queue", "decision", "podSets",
                              "victims", "reason", "message", "position"], each
    assert answer.decisions() == DECISIONS


def test_json_tells_what_the_admission_writes_into_the_pods(bench):
    """All pods that share a claim go to one node, which the PATCH names."""
    case = pathlib.Path(__file__).parent.parent / "cases" / "claim-shared-goes-to-one-node.yaml"
    sets = {each["name"]: each["podSets"][0]
            for each in bench.plan("-f", case, "-o", "json").expect(0).data["decisions"]}
    assert sets["two"]["nodeSelector"] == {"kubernetes.io/hostname": "w1"}, sets
    assert "nodeSelector" not in sets["four"], "it waits"
    plain = bench.plan(*files(bench), "-o", "json").expect(0).data["decisions"]
    assert all("nodeSelector" not in each["podSets"][0] for each in plain), "nothing is added"


def test_yaml_says_the_same_as_json(bench):
    given = files(bench)
    data = bench.plan(*given, "-o", "json").expect(0).data
    text = bench.plan(*given, "-o", "yaml").expect(0).out
    lines = [line.strip().removeprefix("- ") for line in text.split("\n")]
    for each in data["decisions"]:
        for key in ("namespace", "name", "queue", "decision", "position"):
            assert f"{key}: {each[key]}" in lines, (key, text)
        assert f"message: {json.dumps(each['message'])}" in lines, text


def test_yaml_quotes_what_a_reader_could_take_for_something_else(bench):
    odd = job("true", "crane")
    odd["metadata"]["uid"] = "1e5"
    text = bench.plan("-f", bench.file([queue("crane"), odd]), "-o", "yaml").expect(0).out
    assert 'name: "true"' in text and 'uid: "1e5"' in text, text


def test_the_same_input_gives_the_same_bytes(bench):
    given = files(bench)
    assert bench.plan(*given, "-o", "yaml").out == bench.plan(*given, "-o", "yaml").out


def test_a_table_isnt_wrapped_in_a_pipe_and_is_on_a_terminal(bench):
    given = files(bench)
    lines = bench.plan(*given).expect(0).out.rstrip("\n").split("\n")
    assert len(lines) == 1 + len(DECISIONS)
    assert all(line == line.rstrip() for line in lines)
    for columns in (80, 120):
        shown = bench.terminal("plan", *given, columns=columns).expect(0).out
        assert all(len(line) <= columns for line in shown.split("\n")), shown
        assert "\x1b" not in shown


def test_a_name_cant_steer_the_terminal(bench):
    evil = job("b", "crane\u001b[2J\u009b31m\u202e")
    out = bench.plan("-f", bench.file([bare(evil)])).expect(0).out
    assert "\x1b" not in out and "\x9b" not in out and "\u202e" not in out
    assert "\\u001b" in out and "\\u009b" in out and "\\u202e" in out


def test_no_format_steers_the_terminal_and_programs_read_the_same(bench):
    name = "crane" + STEERING
    given = bench.file([bare(job("b", name))])
    outs = {form: bench.plan("-f", given, "-o", form).expect(0).out
            for form in ("json", "yaml", "table")}
    for form, out in outs.items():
        assert not steering(out), f"{form}: {out!r}"
    assert json.loads(outs["json"])["decisions"][0]["queue"] == name
    assert r"\U000e0001" in outs["yaml"] and r"\u200b" in outs["yaml"], outs["yaml"]


# -- wrong input -------------------------------------------------------------------------------------

def test_wrong_options_exit_2_with_a_sentence(bench):
    bench.plan("--nonsense").expect(2, "--help")
    bench.plan(*files(bench), "-o", "xml").expect(2, "use table, json or yaml")
    bench.plan(*files(bench), "--now", "noon").expect(2, "2026-11-29T12:00:00Z")
    bench.plan(*files(bench), "extra").expect(2, '"extra"')


def test_a_wrong_field_is_named_with_file_line_and_object(bench):
    text = ("apiVersion: tallyman.dev/v1beta1\nkind: Queue\nmetadata: {name: crane}\nspec:\n"
            "  resourceGroups:\n  - flavors:\n    - name: default\n      resources:\n"
            "      - {name: cpu, nominalQuota: many}\n")
    bench.plan("-f", bench.file(text, "crane.yaml")).expect(
        2, "crane.yaml", "9", "Queue", "crane", "nominalQuota", "many")


def refusal(text):
    """Of what an API server says, the field's path and the CRD's own message (either may be "")."""
    path = re.match(r"([a-z]\w*(?:\[\d+\])?(?:\.\w+(?:\[\d+\])?)*): ", text)
    message = re.search(r'Invalid value: (?:(?:"[^"]*"|-?\d+): )?(.*)', text)
    path, message = path[1] if path else "", message[1] if message else ""
    return path, message.removeprefix(path.rsplit(".", 1)[-1] + " ") if path else message


def test_a_mistyped_key_and_a_job_that_is_passed_over_are_told(bench):
    typo, misplaced, empty, foreign = (job(name, "crane", 1) for name in ("a", "b", "c", "d"))
    typo["metadata"]["annotations"] = {"tallyman.dev/mincount": "1"}
    misplaced["spec"]["template"]["metadata"] = {"annotations": {"tallyman.dev/hold": "true"}}
    empty["metadata"]["labels"]["tallyman.dev/queue"] = ""
    foreign["spec"]["managedBy"] = "example.com/other"
    plain = job("e", "crane", 1)
    del plain["metadata"]["labels"]
    old = {"apiVersion": "batch/v1beta1", "kind": "Job", "metadata": {"name": "f"}}
    slices = {"apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourceSlice", "metadata": {"name": "g"}}
    other = {"apiVersion": "example.com/v1", "kind": "Job", "metadata": {"name": "h"}}
    given = bench.file([*map(bare, [queue("crane"), node("n1"), typo, misplaced, empty, foreign, plain]),
                        old, slices, other])
    answer = bench.plan("-f", given).expect(0)
    for text in ("Job a: annotation of the Job tallyman.dev/mincount has no effect: did you mean "
                 "tallyman.dev/min-count, an annotation of the Job?",
                 "Job b: annotation of the pod template tallyman.dev/hold has no effect: it has to "
                 "be an annotation of the Job",
                 "Job c: it is passed over: label tallyman.dev/queue is empty",
                 "Job d: it is passed over: spec.managedBy says that example.com/other runs it",
                 "Job: it is passed over: its apiVersion is batch/v1beta1",
                 "ResourceSlice: it is passed over: its apiVersion is resource.k8s.io/v1alpha3; Tallyman reads "
                 "kind ResourceSlice of resource.k8s.io/v1"):
        assert text in answer.err, (text, answer.err)
    assert "Job e" not in answer.err, answer.err
    assert len(answer.err.strip().split("\n")) == 6, answer.err
    none = bench.plan("-f", bench.file([bare(queue("crane")), bare(plain)]))
    none.expect(0, "No Job names a queue")
    assert "Job e: it is passed over: it has no label tallyman.dev/queue" in none.err, none.err
    bare_node = bare(node("n1"))
    bare_node["status"]["capacity"] = bare_node["status"].pop("allocatable")
    answer = bench.plan("-f", bench.file([bare_node]))
    assert "Node n1: it has no status.allocatable" in answer.err, answer.err


def test_a_negative_node_and_a_label_with_nul_are_named_with_their_place(bench):
    less = bare(node("n1"))
    less["status"]["allocatable"]["cpu"] = "-8"
    bench.plan("-f", bench.file([less])).expect(
        2, ":1: Node n1: status.allocatable.cpu is negative (-8); it has to be 0 or more")
    odd = bare(job("a", "cra\0ne", 1))
    bench.plan("-f", bench.file([odd])).expect(2, "metadata.labels.tallyman.dev/queue has a NUL in it")


def test_what_a_server_refuses_of_our_kinds_is_refused_in_its_words(bench):
    """The cases of tests/cluster, which a real server has judged; each rule of the CRDs is in one."""
    said = ""
    bad = sorted((TESTS / "cluster" / "crd_cases" / "bad").glob("*.yaml"))
    for file in bad:
        answer = bench.plan("-f", file)
        assert answer.status == 2 and f"{file}:" in answer.err, (file.name, answer.err)
        path, message = refusal(file.read_text().split("\n")[0].removeprefix("# expect: "))
        path = "" if "two-mistakes" in file.name else path  # here the first is told, there all are
        assert path in answer.err and message in answer.err, (file.name, path, message, answer.err)
        said += answer.err
    for crd in ("queues", "cohorts", "resourceflavors"):
        text = (TESTS.parent / "crds" / f"{crd}.tallyman.dev.yaml").read_text()
        for message in re.findall(r"^ +message: (.*(?:\n {6,}(?! *[-\w]+:| *- ).*)*)", text, re.M):
            message = re.sub(r"\s+", " ", message)
            name, _, rest = message.partition(" ")
            if "is longer than " in rest:
                continue  # the words where messageExpression can't be evaluated
            assert message in said or f".{name} {rest}" in said, f"{crd}: no case for: {message}"


def test_what_a_server_takes_of_our_kinds_is_taken(bench):
    for file in sorted((TESTS / "cluster" / "crd_cases" / "good").glob("*.yaml")):
        bench.plan("-f", file).expect(0)


def test_no_manifests_and_no_cluster_says_where_it_looked(bench):
    bench.plan().expect(1, "KUBECONFIG")


# -- --admitted --------------------------------------------------------------------------------------

def test_admitted_makes_a_job_run_on_that_flavor(bench):
    for name in ("b", "quay/b"):
        answer = bench.plan(*files(bench), "--admitted", f"{name}=default", "-o", "json").expect(0)
        assert answer.decisions() == {"quay/b": "Keep", "quay/a": "Wait", "yard/c": "Admit"}


def test_admitted_pods_go_to_the_nodes_of_that_flavor(bench):
    """They aren't there yet, and the template in the manifest doesn't select them."""
    nodes = [node("left"), node("right")]
    flavors = []
    for each in nodes:
        kind = each["metadata"]["name"]
        each["metadata"].setdefault("labels", {})["kind"] = kind
        flavors.append({"apiVersion": "tallyman.dev/v1beta1", "kind": "ResourceFlavor",
                        "metadata": {"name": kind}, "spec": {"nodeLabels": {"kind": kind}}})
    both = queue("crane")
    both["spec"]["resourceGroups"][0]["flavors"] = [
        {"name": name, "resources": [{"name": "cpu", "nominalQuota": "4"}]}
        for name in ("left", "right")]
    given = files(bench, [namespace("quay"), *nodes, *flavors, both,
                          job("a", "crane", 4), job("b", "crane", 4)])
    answer = bench.plan(*given, "--admitted", "a=right", "-o", "json").expect(0)
    assert answer.decisions() == {"quay/a": "Keep", "quay/b": "Admit"}, answer.data


def test_admitted_names_what_is_wrong(bench):
    given = files(bench)
    twice = files(bench, CLUSTER + [job("a", "crane", namespace="yard")])
    bench.plan(*given, "--admitted", "b").expect(2, "NAME=FLAVOR")
    bench.plan(*given, "--admitted", "z=default").expect(2, "there is no Job z")
    bench.plan(*given, "--admitted", "b=gold").expect(2, "no flavor gold", "it has: default")
    bench.plan(*twice, "--admitted", "a=default").expect(2, "quay", "yard", "NAMESPACE/NAME")


# -- --ask -------------------------------------------------------------------------------------------

def test_ask_answers_by_the_exit_status(bench):
    given = files(bench, CLUSTER + [job("huge", "crane", 100), job("lost", "nowhere")])
    assert bench.plan(*given, "--ask=a").expect(0).out.count("\n") == 2
    bench.plan(*given, "--ask=quay/b").expect(3, "QuotaExhausted")
    bench.plan(*given, "--ask=huge").expect(4, "NeverFits")
    bench.plan(*given, "--ask=lost").expect(4, "QueueNotFound")
    bench.plan(*given, "--ask=a", "--ask=b").expect(3)
    bench.plan(*given, "--ask").expect(4)
    bench.plan(*given, "--ask=nobody").expect(2, "nobody")


# -- a live cluster ----------------------------------------------------------------------------------

def live(bench, *arguments, namespace_name=None, objects=None, **options):
    api = bench.api(objects or CLUSTER, **options)
    kubeconfig = bench.kubeconfig(api, namespace_name)
    return api, bench.plan("--kubeconfig", kubeconfig, *arguments)


def test_live_decides_as_the_manifests_do_and_only_lists(bench):
    api, answer = live(bench, "-o", "json")
    assert answer.expect(0).decisions() == DECISIONS
    assert {method for method, _, _ in api.requests} == {"GET"}
    assert answer.err == ""


def test_live_reads_all_kinds_as_of_one_moment_in_pages(bench):
    api, answer = live(bench)
    answer.expect(0)
    first = [query for _, path, query in api.requests if "continue" not in query]
    assert "resourceVersion" not in first[0]
    assert all(query["resourceVersion"] == "77" and query["resourceVersionMatch"] == "Exact"
               for query in first[1:]), first
    assert any("continue" in query for _, _, query in api.requests)


def test_live_takes_a_newer_list_where_that_moment_is_gone_and_says_so(bench):
    _, answer = live(bench, "-o", "json", compacted=True)
    answer.expect(0, "slightly different moments")
    assert answer.decisions() == DECISIONS


def test_kubeconfig_comes_from_the_environment_too(bench):
    api = bench.api(CLUSTER)
    kubeconfig = bench.kubeconfig(api)
    answer = bench.plan("-o", "json", KUBECONFIG=kubeconfig).expect(0)
    assert answer.decisions() == DECISIONS
    bench.plan(*files(bench), KUBECONFIG=kubeconfig).expect(0)
    count = len(api.requests)
    bench.plan(*files(bench), "--live", KUBECONFIG=kubeconfig).expect(0)
    assert len(api.requests) > count, "manifests alone ask nobody; --live does"


def test_manifests_join_the_live_objects(bench):
    new = bench.file([bare(job("d", "crane", 1)), bare(queue("crane", "9"))])
    _, answer = live(bench, "-f", new, "-o", "json")
    assert answer.expect(0).decisions() == {**DECISIONS, "quay/b": "Admit", "quay/d": "Admit"}


def test_a_manifest_of_a_live_job_keeps_its_place_and_identity(bench):
    changed = bench.file([bare(job("b", "crane", 1))])
    _, answer = live(bench, "-f", changed, "-o", "json",
                     objects=CLUSTER + [job("e", "crane", 1)])
    found = {d["name"]: d for d in answer.expect(0).data["decisions"]}
    assert found["b"]["uid"] == "uid-quay-b"
    assert found["b"]["decision"] == "Admit" and found["b"]["podSets"][0]["count"] == 1


def test_a_manifest_without_a_namespace_is_in_the_contexts(bench):
    new = bare(job("d", "crane"))
    del new["metadata"]["namespace"]
    path = bench.file([new])
    _, answer = live(bench, "-f", path, "--ask=d", "-o", "json", namespace_name="yard")
    assert list(answer.expect(3).decisions()) == ["yard/d"]
    _, answer = live(bench, "-f", path, "--ask", "-n", "quay", "-o", "json")
    assert list(answer.expect(3).decisions()) == ["quay/d"]


def test_what_cant_be_read_is_told_with_its_meaning(bench):
    """A room that can't be seen must not look like a room that isn't there."""
    _, answer = live(bench, "-o", "json", forbidden={"Node", "Namespace", "PriorityClass"},
                     objects=[each for each in CLUSTER if each["kind"] != "Node"])
    answer.expect(0, "nodes can't be read, so only quota is judged")
    assert answer.decisions() == DECISIONS
    assert [each["kind"] for each in answer.data["notRead"]] == ["Node", "Namespace",
                                                                 "PriorityClass"]


def test_what_can_be_read_in_ones_own_namespace_is(bench):
    api, answer = live(bench, "-o", "json", forbidden={"Job", "Pod"}, namespace_name="quay")
    answer.expect(0, "jobs can be read in namespace quay only")
    assert answer.decisions() == {"quay/a": "Admit", "quay/b": "Wait"}
    assert ("GET", "/apis/batch/v1/namespaces/quay/jobs") in [r[:2] for r in api.requests]


def test_names_that_cant_be_looked_up_arent_called_missing(bench):
    asks = job("p", "crane", 1, pod={"priorityClassName": "high", "runtimeClassName": "fast"})
    _, answer = live(bench, "-o", "json", objects=CLUSTER + [asks],
                     forbidden={"PriorityClass", "RuntimeClass"})
    reasons = {d["name"]: d["reason"] for d in answer.expect(0).data["decisions"]}
    assert reasons["p"] == "", reasons


def test_without_queues_there_is_no_plan(bench):
    _, answer = live(bench, forbidden={"Queue"})
    answer.expect(1, "the queues can't be read", "tallyman explain")
    given = bench.file([bare(queue("crane"))])
    live(bench, "-f", given, forbidden={"Queue"})[1].expect(0, "queues can't be read")


def test_a_cluster_without_the_crds_says_what_to_do(bench):
    _, answer = live(bench, absent={"Queue", "Cohort", "ResourceFlavor", "Admission"})
    answer.expect(1, "install the CRDs")


def test_a_server_that_is_busy_is_asked_again(bench):
    busy = (429, {"kind": "Status", "status": "Failure", "code": 429, "message": "later"})
    _, answer = live(bench, "-o", "json", before=[busy, busy])
    assert answer.expect(0).decisions() == DECISIONS


def test_a_live_object_that_is_wrong_is_left_out_and_told(bench):
    wrong = job("w", "crane")
    wrong["spec"]["parallelism"] = "three"
    _, answer = live(bench, "-o", "json", objects=CLUSTER + [wrong])
    answer.expect(0, "left out", "parallelism")
    assert answer.decisions() == DECISIONS
