"""Claims of all kinds, as kube-scheduler allocates them, in `simulate`."""
from bench import case

CLUSTER = """
apiVersion: v1
kind: Namespace
metadata: {name: quay, labels: {resource.kubernetes.io/admin-access: "true"}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: lift.example.com}
spec:
  selectors: [{cel: {expression: 'device.driver == "lift.example.com"'}}]
---
apiVersion: tallyman.dev/v1beta1
kind: Queue
metadata: {name: crane}
spec:
  namespaceSelector: {}
  resourceGroups:
  - flavors:
    - name: default
      resources: [{name: cpu, nominalQuota: "99"}, {name: lift.example.com, nominalQuota: "9"}]
---
apiVersion: v1
kind: Node
metadata: {name: w1, labels: {kubernetes.io/hostname: w1}}
status:
  allocatable: {cpu: "8", memory: "16Gi", pods: "20"}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: w1-lifts}
spec:
  driver: lift.example.com
  nodeName: w1
  pool: {name: w1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: lift-0, attributes: {side: {string: port}}}
  - {name: lift-1, attributes: {side: {string: starboard}}}
  - {name: lift-2, attributes: {side: {string: port}}}
"""

JOB = """
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %(name)s, namespace: quay}
spec:
  spec: {devices: {%(devices)s}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: %(name)s
  namespace: quay
  labels: {tallyman.dev/queue: crane}
  annotations: {example.com/submit-after: %(after)s}
spec:
  suspend: true
  parallelism: %(pods)d
  completions: %(pods)d
  template:
    metadata: {annotations: {example.com/run-for: 5m}}
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: x, resources: {requests: {cpu: "1"}, claims: [{name: lift}]}}
      resourceClaims: [{name: lift, resourceClaimTemplateName: %(name)s}]
"""

CLASS = "deviceClassName: lift.example.com"


def job(name, devices, pods=1, after="0s"):
    return JOB % {"name": name, "devices": devices, "pods": pods, "after": after}


def bound(bench, name, *jobs):
    """Where its pods went, of the half with Tallyman."""
    bench.write("c.yaml", CLUSTER + "".join(jobs))
    text = bench.good("c.yaml", "--with-tallyman", "--all")
    lines = [line for line in text.splitlines() if f" {name} " in line and "pods bound: " in line]
    assert len(lines) == 1, text
    return lines[0].split()[0], lines[0].split("pods bound: ")[1]


@case
def all_devices_of_a_node(bench):
    at, where = bound(bench, "all", job("all", f"requests: [{{name: r, exactly: {{{CLASS}, "
                                               "allocationMode: All}}]"))
    assert (at, where) == ("00:00:00", "w1 (lift-0 lift-1 lift-2)"), (at, where)


@case
def all_devices_wait_until_nobody_has_one(bench):
    one = job("one", f"requests: [{{name: r, exactly: {{{CLASS}}}}}]")
    at, _ = bound(bench, "all", one,
                  job("all", f"requests: [{{name: r, exactly: {{{CLASS}, allocationMode: All}}}}]",
                      after="1m"))
    assert at.startswith("00:05:0"), at


@case
def second_alternative_where_the_first_cant_be_met(bench):
    four = f"{{name: four, {CLASS}, count: 4}}"
    two = f"{{name: two, {CLASS}, count: 2}}"
    _, where = bound(bench, "some", job("some", f"requests: [{{name: r, firstAvailable: [{four}, "
                                                f"{two}]}}]"))
    assert where == "w1 (lift-0 lift-1)", where


@case
def devices_of_one_side(bench):
    _, where = bound(bench, "pair", job(
        "pair", f"requests: [{{name: r, exactly: {{{CLASS}, count: 2}}}}], "
                "constraints: [{matchAttribute: lift.example.com/side}]"))
    assert where == "w1 (lift-0 lift-2)", where


@case
def devices_of_two_sides(bench):
    _, where = bound(bench, "pair", job(
        "pair", f"requests: [{{name: a, exactly: {{{CLASS}}}}}, {{name: b, exactly: {{{CLASS}}}}}], "
                "constraints: [{requests: [a, b], distinctAttribute: lift.example.com/side}]"))
    assert where == "w1 (lift-0 lift-1)", where


@case
def who_only_looks_on_may_look_at_what_others_use(bench):
    busy = job("busy", f"requests: [{{name: r, exactly: {{{CLASS}, count: 3}}}}]")
    at, where = bound(bench, "watch", busy, job(
        "watch", f"requests: [{{name: r, exactly: {{{CLASS}, adminAccess: true, "
                 "allocationMode: All}}]", after="1m"))
    assert (at, where) == ("00:01:00", "w1 (lift-0 lift-1 lift-2)"), (at, where)
