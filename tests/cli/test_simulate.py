"""tallyman simulate with manifests: the forms of its output. Loads and traces: tests/simulate."""
import json
import os
import re

from objects import bare, job, namespace, node, queue, STEERING, steering

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEADLOCK = os.path.join(TOP, "examples", "deadlock")


def rows(text):
    lines = text.splitlines()
    return [dict(zip(lines[0].split(","), line.replace('"', "").split(","))) for line in lines[1:]]


def test_manifests_have_a_line_per_job(bench):
    answer = bench.run("simulate", DEADLOCK, "-o", "csv").expect(0)
    got = {row["job"]: row for row in rows(answer.out)}
    assert sorted(got) == ["notebook", "train-a", "train-b"], got
    assert {name: row["devices"] for name, row in got.items()} == {
        "notebook": "2", "train-a": "4", "train-b": "4"}, got
    starts = {name: int(float(row["start_s"])) for name, row in got.items()}
    assert starts == {"train-a": 2, "notebook": 62, "train-b": 605}, starts


def test_manifests_have_a_summary_of_each_half(bench):
    ours = bench.run("simulate", DEADLOCK, "-o", "json").expect(0).data
    assert (ours["jobs"], ours["finished"], ours["devices"]) == (3, 3, 6), ours
    assert ours["lowerBound"]["seconds"] == 900, ours["lowerBound"]
    plain = bench.run("simulate", DEADLOCK, "-o", "json", "--plain").expect(0).data
    assert (plain["jobs"], plain["finished"]) == (3, 0), plain  # they are in each other's way


def test_manifests_have_a_chart(bench):
    path = os.path.join(bench.directory, "c.svg")
    bench.run("simulate", DEADLOCK, "--svg", path).expect(0, "With Tallyman")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert text.startswith("<svg ") and text.count("<g>") == 3, text[:200]


def test_an_indexed_job_that_starts_with_fewer_pods_ends_with_as_many(bench):
    """Its completions are lowered with its parallelism, and put back when it is suspended."""
    meta = {"annotations": {"tallyman.dev/partial": "true", "tallyman.dev/min-count": "1"}}
    elastic = job("elastic", "crane", 4, meta=meta, completionMode="Indexed")
    elastic["spec"]["template"]["metadata"] = {"annotations": {"example.com/run-for": "60s"}}
    given = [bare(each) for each in (namespace("quay"), node("n1"), queue("crane", "3"), elastic)]
    given[1]["status"] = node("n1")["status"]
    answer = bench.run("simulate", bench.file(given), "-o", "json").expect(0).data
    assert (answer["jobs"], answer["finished"]) == (1, 1), json.dumps(answer)[:400]
    assert 60 <= answer["makespanSeconds"] < 100, "one round of three pods, none left for a second"


def test_the_autoscaler_is_played_with_manifests(bench):
    checked = bare(queue("crane", "3"))
    checked["spec"]["admissionChecks"] = ["provisioning"]
    checked["spec"]["provisioning"] = {"className": "check-capacity.autoscaling.x-k8s.io"}
    work = job("j", "crane", 2)
    work["spec"]["template"]["metadata"] = {"annotations": {"example.com/run-for": "60s"}}
    given = [bare(each) for each in (namespace("quay"), node("n1"), work)] + [checked]
    given[1]["status"] = node("n1")["status"]
    answer = bench.run("simulate", bench.file(given), "-o", "json").expect(0).data
    assert (answer["jobs"], answer["finished"]) == (1, 1), json.dumps(answer)[:400]
    assert answer["makespanSeconds"] >= 120, "a minute until it is provisioned, and one of work"


def test_no_format_steers_the_terminal_and_programs_read_the_same(bench):
    name = "crane" + STEERING[:-1]  # YAML has no pairs of surrogates
    given = [bare(each) for each in (namespace("quay"), node("n1"), queue("crane", "3"),
                                     job("a", "crane", 2), job("b", name, 9))]
    given[1]["status"] = node("n1")["status"]
    path, svg = bench.file(given), os.path.join(bench.directory, "steer.svg")
    outs = {form: bench.run("simulate", path, "-o", form).expect(0).out
            for form in ("json", "csv", "text")}
    bench.run("simulate", path, "--svg", svg).expect(0)
    with open(svg, encoding="utf-8") as file:
        outs["svg"] = file.read()
    for form, out in outs.items():
        assert not steering(out), f"{form}: {out!r}"
        assert "crane" in out, f"{form}: {out}"
    assert name in [each["name"] for each in json.loads(outs["json"])["queues"]], outs["json"]
    refused = bench.run("simulate", bench.file([*given, bare(queue(name, "3"))]))
    assert not steering(refused.expect(2, "is not an object name").err), refused.err


def test_options_that_say_nothing_together_are_refused(bench):
    for args, text in (
        (("--faults", "--plain"), "--faults --plain: "),
        (("--seed", "3"), "--seed without --faults: "),
    ):
        bench.run("simulate", DEADLOCK, *args).expect(2, text)


def world(bench, *given):
    return bench.file([bare(namespace("quay")), bare(queue("crane", "8")), *given])


def ill_node(name, cpu, **annotations):
    given = bare(node(name))
    given["metadata"]["annotations"] = annotations
    given["metadata"]["labels"] = {"kubernetes.io/hostname": name}
    given["status"] = node(name, cpu)["status"]
    return given


def runs(name, pods, run_for, **annotations):
    given = bare(job(name, "crane", pods, meta={"annotations": annotations}))
    given["spec"]["template"]["metadata"] = {"annotations": {"example.com/run-for": run_for}}
    return given


def test_options_of_loads_and_a_late_moment_are_refused_with_manifests(bench):
    given = bench.file([bare(queue("crane")), bare(node("n1")), bare(job("a", "crane", 1))])
    load = bench.file("queues:\n- name: a\n  classes: [{name: c, jobs: 1, runFor: 1m}]\n")
    for option, value in (("--devices", "8"), ("--jobs", "3"), ("--strategy", "Backfill"),
                          ("--node-devices", "4"), ("--saturation", "2")):
        bench.run("simulate", given, option, value).expect(2, f"{option} with manifests: it shapes")
    bench.run("simulate", "--load", load, "--devices", "8").expect(2, "--devices with --load")
    bench.run("simulate", "--load", load, "--node-devices", "4").expect(0)
    bench.run("simulate", "--load", load, "--at", "1m").expect(2, "--at with a load or a trace")
    bench.run("simulate", given, "--at", "3h").expect(2, "--at behind --until: it is played for 2h")
    bench.run("simulate", given, "--at", "3h", "--until", "3h", "--with-tallyman").expect(0)


def test_a_key_that_a_load_gives_twice_is_named_with_its_line(bench):
    load = bench.file("queues:\n- name: a\n  classes: [{name: c, jobs: 1, runFor: 1m}]\n  name: b\n")
    bench.run("simulate", "--load", load).expect(2, 'line 4: "name" is given twice here')


def test_a_mistyped_key_is_told_before_it_is_played(bench):
    typo = bare(job("a", "crane", 1))
    typo["metadata"]["annotations"] = {"tallyman.dev/max-runtme": "1h"}
    answer = bench.run("simulate", bench.file([bare(queue("crane")), bare(node("n1")), typo]))
    answer.expect(0, "did you mean tallyman.dev/max-runtime, an annotation of the Job?")


def test_the_kubelet_refuses_pods_that_name_a_node_without_room(bench):
    bound = bare(job("a", "crane", 2, cpu="3", pod={"nodeName": "n1"}))
    given = bench.file([bare(queue("crane", "9")), bare(node("n1")), bound])
    bench.run("simulate", given, "--plain").expect(0, "1 pod failed", "BackoffLimitExceeded")
    bench.run("simulate", given, "--with-tallyman").expect(
        0, "waits: needs 6 cpu at once, and the one node for all its pods has 4")


def test_pods_that_are_being_stopped_are_not_among_those_that_are_bound(bench):
    path = world(bench, ill_node("n1", "1"), ill_node("n3", "1"), runs("a", 2, "30m"),
                 ill_node("n2", "1", **{"example.com/conditions": "30s Ready=False"}))
    text = bench.run("simulate", path, "--with-tallyman", "--until", "30m").expect(0).out
    assert "2 of 2 pods bound: n1, n2" in text and "2 of 2 pods bound: n3" in text, text


def test_a_job_that_was_never_submitted_has_not_finished(bench):
    late = {"example.com/submit-after": "10h"}
    path = world(bench, ill_node("n1", "4"), runs("a", 2, "1m"), runs("late", 1, "1m", **late))
    text = bench.run("simulate", path, "--with-tallyman").expect(0).out
    assert "every Job that came has finished; 1 would come later than --until" in text, text
    text = bench.run("simulate", path, "--with-tallyman", "--until", "30s").expect(0).out
    assert "1 of 1 Jobs unfinished, 1 at work; 1 would come later than --until" in text, text
    text = bench.run("simulate", path, "--with-tallyman", "--until", "11h").expect(0).out
    assert "every Job has finished" in text, text


def test_devices_that_come_later_are_there_from_then_on(bench):
    def with_devices(name, devices, **annotations):
        given = ill_node(name, "8", **annotations)
        given["status"]["allocatable"]["example.com/lift"] = devices
        return given

    path = world(bench, with_devices("n1", "2"), runs("a", 1, "10m"),
                 with_devices("n2", "8", **{"example.com/submit-after": "1s"}))
    with open(path, encoding="utf-8") as file:
        text = file.read()
    lifts = {"requests": {"cpu": "1", "example.com/lift": "8"}, "limits": {"example.com/lift": "8"}}
    text = text.replace(json.dumps({"requests": {"cpu": "1"}}), json.dumps(lifts)).replace(
        '"resources": [{"name": "cpu", "nominalQuota": "8"}]',
        '"resources": [{"name": "cpu", "nominalQuota": "8"}, '
        '{"name": "example.com/lift", "nominalQuota": "8"}]')
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    answer = bench.run("simulate", path, "-o", "json").expect(0).data
    assert (answer["finished"], answer["devices"]) == (1, 10), answer
    assert 0.7 < answer["utilisation"] <= 0.8, answer["utilisation"]


def test_a_device_that_pods_share_is_counted_once(bench):
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
             "metadata": {"name": "shared", "namespace": "quay"},
             "spec": {"devices": {"requests": [
                 {"name": "lift", "exactly": {"deviceClassName": "lift.example.com"}}]}}}
    lifts = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
             "metadata": {"name": "lift.example.com"}, "spec": {}}
    there = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
             "metadata": {"name": "n1-lifts"},
             "spec": {"driver": "lift.example.com", "nodeName": "n1", "devices": [{"name": "one"}],
                      "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}}}
    gang = runs("a", 4, "10m")
    spec = gang["spec"]["template"]["spec"]
    spec["resourceClaims"] = [{"name": "lift", "resourceClaimName": "shared"}]
    spec["containers"][0]["resources"]["claims"] = [{"name": "lift"}]
    crane = bare(queue("crane", "8"))
    crane["spec"]["resourceGroups"][0]["flavors"][0]["resources"].append(
        {"name": "lift.example.com", "nominalQuota": "1"})
    path = bench.file([bare(namespace("quay")), crane, lifts, there, claim, ill_node("n1", "8"), gang])
    answer = bench.run("simulate", path, "-o", "json").expect(0).data
    assert (answer["finished"], answer["devices"]) == (1, 1), answer
    assert 0.9 < answer["utilisation"] <= 1, answer["utilisation"]


def test_what_the_cluster_takes_from_an_admitted_gang_is_no_broken_promise(bench):
    falls_ill = {"example.com/conditions": "2500ms Ready=False"}
    path = world(bench, ill_node("n1", "1"), ill_node("n2", "1", **falls_ill), runs("a", 2, "30m"))
    text = bench.run("simulate", path, "--faults", "--seed", "1").expect(0).out
    assert "  but for     1 gang that stood so since the cluster itself took room away" in text, text
    assert re.search(r"foresees: quay/a after 7\d s: Node n2 fell ill or went", text), text

    foreign = runs("guest", 1, "40m", **{"example.com/submit-after": "1500ms"})
    del foreign["metadata"]["labels"]
    foreign["spec"]["suspend"] = False
    path = world(bench, ill_node("n1", "1"), ill_node("n2", "1"), runs("a", 2, "30m"), foreign)
    text = bench.run("simulate", path, "--faults", "--seed", "1").expect(0).out
    assert re.search(r"foresees: quay/a after 7\d s: pod guest-", text), text
    assert "of no gang took room" in text, text
