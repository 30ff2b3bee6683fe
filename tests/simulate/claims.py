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


def slices(text):
    """The cluster with other slices: everything of w1's from the driver on."""
    return CLUSTER.split("metadata: {name: w1-lifts}", maxsplit=1)[0] + text.lstrip("\n")


def bound_by_each(bench, cluster, name, *jobs):
    """Where its pods are after two minutes, by kube-scheduler alone and with Tallyman; "": nowhere. The two have to
    agree about what can be had at a node."""
    bench.write("c.yaml", cluster + "".join(jobs))
    places = []
    for option in ("--plain", "--with-tallyman"):
        text = bench.good("c.yaml", option, "--all", "--until", "2m")
        told = [line.split("pods bound: ")[1] for line in text.splitlines()
                if f" {name} " in line and "pods bound: " in line]
        places.append(told[-1] if told else "")
    assert places[0] == places[1], places
    return places[0]


def lifts(name, count, **more):
    return job(name, f"requests: [{{name: r, exactly: {{{CLASS}, count: {count}}}}}]", **more)


AT_W1 = "nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [w1]}]}]}"


@case
def each_device_says_at_which_nodes_it_is(bench):
    cluster = slices("""
metadata: {name: yard}
spec:
  driver: lift.example.com
  perDeviceNodeSelection: true
  pool: {name: yard, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: far, nodeName: w9}
  - {name: near, %s}
  - {name: other, %s}
  - {name: any, allNodes: true}
  - {name: here, nodeName: w1}
""" % (AT_W1, AT_W1.replace("w1", "w9")))
    three = bound_by_each(bench, cluster, "three", lifts("three", 3))
    assert three == "w1 (any here near)", three
    four = bound_by_each(bench, cluster, "four", lifts("four", 4))
    assert four == "", four


@case
def a_slice_says_at_which_nodes_its_devices_are(bench):
    pool = """
metadata: {name: %s}
spec: {driver: lift.example.com, pool: {name: %s, generation: 1, resourceSliceCount: 1}, %s, devices: [{name: %s}]}
"""
    head = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice"
    cluster = slices(head.join(pool % (name, name, where, name) for name, where in (
        ("a", AT_W1), ("b", "allNodes: true"), ("c", AT_W1.replace("w1", "w9")), ("d", "allNodes: false"))))
    two = bound_by_each(bench, cluster, "two", lifts("two", 2))
    assert two == "w1 (a b)", two
    three = bound_by_each(bench, cluster, "three", lifts("three", 3))
    assert three == "", three


PARTS = """
metadata: {name: card}
spec:
  driver: lift.example.com
  nodeName: w1
  pool: {name: w1, generation: 1, resourceSliceCount: 2}
  sharedCounters:
  - {name: aside, counters: {memory: {value: 1Gi}}}
  - {name: card, counters: {cores: {value: "9"}, memory: {value: 8Gi}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: parts}
spec:
  driver: lift.example.com
  nodeName: w1
  pool: {name: w1, generation: 1, resourceSliceCount: 2}
  devices:
  - {name: all, consumesCounters: [{counterSet: card, counters: {memory: {value: 8Gi}}}]}
  - {name: half-0, consumesCounters: [{counterSet: card, counters: {cores: {value: "3"}, memory: {value: 4Gi}}}]}
  - {name: half-1, consumesCounters: [{counterSet: card, counters: {memory: {value: 4Gi}}}]}
  - {name: half-2, consumesCounters: [{counterSet: card, counters: {memory: {value: 4Gi}}}]}
"""


@case
def parts_of_a_card_are_had_as_far_as_its_counters_go(bench):
    """All of it, or two halves: in one claim as in two, and a third waits."""
    cluster = slices(PARTS)
    one = bound_by_each(bench, cluster, "one", lifts("one", 1))
    assert one == "w1 (all)", one
    two = bound_by_each(bench, cluster, "two", lifts("two", 2))
    assert two == "w1 (half-0 half-1)", two
    three = bound_by_each(bench, cluster, "three", lifts("three", 3))
    assert three == "", three
    third = bound_by_each(bench, cluster, "third", lifts("two", 2), lifts("third", 1, after="1m"))
    assert third == "", third


@case
def a_part_that_is_shared_draws_on_its_counter_once(bench):
    """Three shares of half-0 are 4 Gi, so half-1 is to be had beside them, and half-2 isn't."""
    cluster = slices(PARTS.replace("name: all,", "name: all, attributes: {use: {string: none}},").replace(
        "name: half-0,", "name: half-0, allowMultipleAllocations: true, attributes: {use: {string: many}},").replace(
        "name: half-1,", "name: half-1, attributes: {use: {string: one}},").replace(
        "name: half-2,", "name: half-2, attributes: {use: {string: one}},"))

    def use(name, which, pods=1, after="0s"):
        wanted = f"""'device.attributes["lift.example.com"].use == "{which}"'"""
        return job(name, f"requests: [{{name: r, exactly: {{{CLASS}, selectors: [{{cel: {{expression: {wanted}}}}}]}}}}]",
                   pods=pods, after=after)
    jobs = (use("many", "many", pods=3), use("first", "one", after="20s"), use("second", "one", after="40s"))
    places = [bound_by_each(bench, cluster, name, *jobs) for name in ("many", "first", "second")]
    assert places == ["w1 (half-0 half-0 half-0)", "w1 (half-1)", ""], places
