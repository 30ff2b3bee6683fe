"""tallyman simulate with manifests: the forms of its output. Loads and traces: tests/simulate."""
import json
import os

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
