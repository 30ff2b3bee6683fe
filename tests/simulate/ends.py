"""Runs that end without all jobs finished, and inputs at the edge."""
import os

from bench import ONE_TOO_MANY, SWF, case, same

NEVER = """
queues:
- name: q
  nominalQuota: 1
  classes: [{name: a, runFor: 10m, pods: 2}]
"""


@case
def what_can_never_start_ends_the_run_and_is_named(bench):
    bench.write("l.yaml", NEVER)
    text = bench.good("--load", "l.yaml")
    assert "Nothing is to come that could change this:\n  q-a-1 never starts: " in text, text
    assert "times the lower bound" not in text, text
    got = bench.json("--load", "l.yaml")
    same((got["stuck"], got["finished"], "makespanToBound" in got), (True, 0, False))


@case
def nodes_that_never_come_back_end_the_run(bench):
    bench.write("l.yaml", """
cluster: {nodes: 2, devicesPerNode: 8}
queues:
- name: q
  classes:
  - {name: a, runFor: 10m}
events:
- {at: 1m, node: node-1, ready: false}
- {at: 1m, node: node-2, ready: false}
""")
    text = bench.good("--load", "l.yaml")
    assert "q-a-1 never starts again: " in text, text


@case
def what_is_stopped_and_tried_again_for_ever_ends_the_run(bench):
    bench.write("l.yaml", """
cluster: {nodes: 1, devicesPerNode: 2}
queues:
- name: q
  nominalQuota: 2
  fit: Quota
  classes: [{name: a, runFor: 10m}]
events:
- {at: 1m, node: node-1, ready: false}
""")
    text = bench.good("--load", "l.yaml")
    assert "q-a-1 never starts again: whenever it is admitted, its pods find no nodes" in text, text


@case
def a_trace_too_large_for_its_queue_ends(bench):
    bench.write("t.csv", "submit,runtime,devices\n0,10,2\n")
    bench.write("q.yaml", """
apiVersion: tallyman.dev/v1beta1
kind: Queue
metadata: {name: main}
spec:
  namespaceSelector: {}
  resourceGroups:
  - flavors:
    - name: default
      resources: [{name: example.com/device, nominalQuota: 1}]
""")
    same(bench.json("--csv", "t.csv", "q.yaml")["stuck"], True)


@case
def what_until_cuts_off_has_no_ratio_and_no_slowdown(bench):
    bench.write("load.yaml", ONE_TOO_MANY)
    text = bench.good("--load", "load.yaml", "--until", "50s")
    assert "50s played, and cut off by --until with 3 jobs unfinished" in text, text
    assert "times the lower bound" not in text, text
    row = next(line.split() for line in text.splitlines() if line.startswith("  q "))
    same(row[7:10], ["-", "-", "-"])
    got = bench.json("--load", "load.yaml", "--until", "50s")
    same((got["stuck"], "makespanToBound" in got), (False, False))
    same((got["all"]["finished"], got["all"]["boundedSlowdown"]), (0, None))
    same(got["queues"][0]["boundedSlowdown"], None)


@case
def the_header_of_a_trace_obeys_the_limit_of_devices(bench):
    bench.write("t.swf", SWF.replace("MaxProcs: 4", "MaxProcs: 2000000000"))
    same(bench.wrong("--swf", "t.swf"),
         "t.swf:2: header MaxProcs: 2000000000 is more than 800000, the most devices that can be "
         "simulated; say how many with --devices")
    same(bench.json("--swf", "t.swf", "--devices", "4")["devices"], 4)


@case
def a_byte_order_mark_is_skipped(bench):
    bench.write("t.csv", b"\xef\xbb\xbfsubmit,runtime,devices\n0,10,2\n")
    same(bench.json("--csv", "t.csv")["finished"], 1)


@case
def plain_jobs_have_the_devices_that_they_ask_for(bench):
    example = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/deadlock")
    rows = bench.rows(example, "--plain")
    same([(row["job"], row["devices"]) for row in rows], [("train-a", "4"), ("train-b", "4"), ("notebook", "2")])


@case
def a_node_that_the_core_refuses_is_a_wrong_input(bench):
    bench.write("c.yaml", """
apiVersion: v1
kind: Node
metadata: {name: n1}
status:
  allocatable: {cpu: "-1", pods: "10"}
---
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: default}
spec: {template: {spec: {containers: [{name: c, image: i}], restartPolicy: Never}}}
""")
    text = bench.wrong("c.yaml")
    assert text.startswith("c.yaml:2: Node n1: status.allocatable.cpu is negative (-1)"), text


FLAVORS = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 9
---
apiVersion: tallyman.dev/v1beta1
kind: ResourceFlavor
metadata: {name: red}
spec: {nodeLabels: {pool: red}}
---
apiVersion: tallyman.dev/v1beta1
kind: ResourceFlavor
metadata: {name: blue}
spec:
  nodeLabels: {pool: blue}
  nodeTaints: [{key: pool, value: blue, effect: NoSchedule}]
  tolerations: [{key: pool, value: blue, effect: NoSchedule}]
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {pool: blue}}
spec: {taints: [{key: pool, value: blue, effect: NoSchedule}]}
status:
  allocatable: {example.com/device: "2", pods: "10"}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {pool: red}}
status:
  allocatable: {example.com/device: "2", pods: "10"}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: tallyman.dev/v1beta1
kind: Queue
metadata: {name: q}
spec:
  namespaceSelector: {}
  preemption: {withinQueue: LowerPriority}
  resourceGroups:
  - flavors:
    - {name: red, resources: [{name: example.com/device, nominalQuota: "2"}]}
    - {name: blue, resources: [{name: example.com/device, nominalQuota: "2"}]}
"""


@case
def a_gang_of_a_load_keeps_to_the_nodes_of_its_flavor(bench):
    """red's gang is on n2 alone, blue's on n1 alone: each stands still as its node is lost."""
    bench.write("cluster.yaml", FLAVORS)
    load = """
queues:
- name: q
  classes:
  - {name: red, jobs: 1, runFor: 100s, pods: 2}
  - {name: blue, jobs: 1, first: 1s, runFor: 100s, pods: 2}
events:
- {at: 20s, node: %s, ready: false}
- {at: 30s, node: %s, ready: true}
"""
    for node, lost in (("n2", "red"), ("n1", "blue")):
        bench.write("load.yaml", load % (node, node))
        rows = bench.rows("--load", "load.yaml", "cluster.yaml")
        same({row["class"]: (row["start_s"], row["failures"]) for row in rows},
             {"red": ("0.000", str(int(lost == "red"))), "blue": ("1.000", str(int(lost == "blue")))})


@case
def a_gang_that_was_stopped_may_start_in_another_flavor(bench):
    """low, of red, is stopped for high at 20 s, and goes to blue when short leaves it at 40 s: the selector of
    red is gone from its template. Its 20 s are done again."""
    bench.write("cluster.yaml", FLAVORS)
    bench.write("load.yaml", """
queues:
- name: q
  classes:
  - {name: low, jobs: 1, runFor: 100s, pods: 2}
  - {name: short, jobs: 1, first: 1s, runFor: 39s, pods: 2}
  - {name: high, jobs: 1, first: 20s, runFor: 200s, pods: 2, priority: 9}
""")
    rows = bench.rows("--load", "load.yaml", "cluster.yaml")
    same({row["class"]: (row["start_s"], row["end_s"], row["stopped"]) for row in rows},
         {"low": ("0.000", "140.000", "1"), "short": ("1.000", "40.000", "0"), "high": ("20.000", "220.000", "0")})
