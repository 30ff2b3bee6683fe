"""Manifests in a world in which things go wrong: faults by seed, nodes and devices that fall ill."""
from bench import case


CLUSTER = """
apiVersion: v1
kind: Namespace
metadata: {name: quay}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: lift.example.com}
spec:
  selectors: [{cel: {expression: 'device.driver == "lift.example.com"'}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: lift, namespace: quay}
spec:
  spec: {devices: {requests: [{name: lift, exactly: {deviceClassName: lift.example.com}}]}}
---
apiVersion: tallyman.dev/v1beta1
kind: Queue
metadata: {name: crane}
spec:
  namespaceSelector: {}
  podsReadyTimeout: 1m
  requeue: {base: 10s, max: 10s}
  resourceGroups:
  - flavors:
    - name: default
      resources: [{name: cpu, nominalQuota: "99"}, {name: lift.example.com, nominalQuota: "9"}]
"""

NODE = """
---
apiVersion: v1
kind: Node
metadata: {name: w%d, annotations: {%s}, labels: {kubernetes.io/hostname: w%d}}
status:
  allocatable: {cpu: "8", memory: "16Gi", pods: "20"}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: w%d-lifts}
spec:
  driver: lift.example.com
  nodeName: w%d
  pool: {name: w%d, generation: 1, resourceSliceCount: 1}
  devices: [{name: lift-0}, {name: lift-1}]
"""

JOB = """
---
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: quay, labels: {tallyman.dev/queue: crane}%s}
spec:
  suspend: true
  parallelism: %d
  completions: %d
  template:
    metadata: {annotations: {example.com/run-for: %s}}
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: x, resources: {requests: {cpu: "1"}, claims: [{name: lift}]}}
      resourceClaims: [{name: lift, resourceClaimTemplateName: lift}]
"""


def node(number, annotations=""):
    return NODE % (number, annotations, number, number, number, number)


def job(name, pods, run_for, annotations=""):
    extra = f", annotations: {{{annotations}}}" if annotations else ""
    return JOB % (name, extra, pods, pods, run_for)


def when(text, name, what):
    """The clock of the line of that Job that has these words, of the half that is shown."""
    return [line.split()[0] for line in text.splitlines()
            if f" {name} " in line and what in line]


@case
def faults_are_drawn_from_the_seed_and_what_must_hold_is_told(bench):
    bench.write("c.yaml", CLUSTER + node(1) + node(2) + job("a", 4, "5m") + job("b", 2, "5m"))
    first = bench.good("c.yaml", "--faults", "--seed", "3")
    assert first == bench.good("c.yaml", "--faults", "--seed", "3"), "not the same again"
    assert first != bench.good("c.yaml", "--faults", "--seed", "4"), "the seed is no matter"
    assert "Under faults (--seed 3" in first and "  held        no node had more" in first, first
    assert "the end: every Job has finished" in first, first
    assert "Plain Kubernetes" not in first, first


@case
def faults_are_for_manifests(bench):
    bench.write("l.yaml", "queues:\n- name: q\n  classes: [{name: a, runFor: 10m}]\n")
    said = bench.wrong("--load", "l.yaml", "--faults")
    assert said.startswith("--faults") and "manifests" in said, said


@case
def node_that_falls_ill_is_no_room_until_it_is_well(bench):
    bench.write("c.yaml", CLUSTER + node(1, "example.com/conditions: '10s Ready=False, 20m Ready=True'")
                + job("late", 2, "1m", "example.com/submit-after: 1m"))
    text = bench.good("c.yaml", "--with-tallyman")
    started = when(text, "late", "admitted")
    assert len(started) == 1 and started[0].startswith("00:20:0"), text


@case
def device_that_is_tainted_isnt_given_out_until_the_rule_is_gone(bench):
    bench.write("c.yaml", CLUSTER + node(1) + """
---
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata:
  name: worn
  annotations: {example.com/submit-after: 10s, example.com/delete-after: 15m}
spec:
  deviceSelector: {driver: lift.example.com, pool: w1, device: lift-1}
  taint: {key: example.com/worn, value: "yes", effect: NoSchedule}
""" + job("pair", 2, "1m", "example.com/submit-after: 1m")
                + job("one", 1, "1m", "example.com/submit-after: 2m"))
    text = bench.good("c.yaml", "--with-tallyman")
    assert when(text, "one", "admitted")[0].startswith("00:02:0"), text
    assert when(text, "pair", "admitted")[0].startswith("00:15:0"), text


@case
def gang_whose_device_must_not_be_used_stops_whole_and_starts_elsewhere(bench):
    bench.write("c.yaml", CLUSTER + node(1) + node(2) + """
---
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: broken, annotations: {example.com/submit-after: 2m}}
spec:
  deviceSelector: {driver: lift.example.com, pool: w1}
  taint: {key: example.com/broken, value: "yes", effect: NoExecute}
""" + job("pair", 2, "10m"))
    text = bench.good("c.yaml", "--with-tallyman", "--all")
    assert when(text, "pair", "suspended"), text
    bound = [line for line in text.splitlines() if " pair " in line and "pods bound" in line]
    assert len(bound) == 2 and "w2 (lift-0 lift-1)" in bound[1], text


@case
def conditions_that_cant_be_read_are_named(bench):
    bench.write("c.yaml", CLUSTER + node(1, "example.com/conditions: 'soon Ready=False'")
                + job("a", 1, "1m"))
    said = bench.wrong("c.yaml")
    assert 'Node w1: metadata.annotations[example.com/conditions]: "soon Ready=False"' in said, said
