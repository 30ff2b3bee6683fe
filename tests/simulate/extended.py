"""Extended resources that a DeviceClass serves: w1 has two by its device plugin, w2 two as devices."""
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
  extendedResourceName: example.com/hoist
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
  allocatable: {cpu: "8", memory: "16Gi", pods: "20", example.com/hoist: "2"}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: v1
kind: Node
metadata: {name: w2, labels: {kubernetes.io/hostname: w2}}
status:
  allocatable: {cpu: "8", memory: "16Gi", pods: "20"}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: w2-lifts}
spec:
  driver: lift.example.com
  nodeName: w2
  pool: {name: w2, generation: 1, resourceSliceCount: 1}
  devices: [{name: lift-0}, {name: lift-1}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: four, namespace: quay, labels: {tallyman.dev/queue: crane}}
spec:
  suspend: true
  parallelism: 4
  completions: 4
  template:
    metadata: {annotations: {example.com/run-for: 60s}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: x, resources: {requests: {example.com/hoist: "1"}}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: after, namespace: quay, labels: {tallyman.dev/queue: crane}}
spec:
  suspend: true
  parallelism: 3
  completions: 3
  template:
    metadata: {annotations: {example.com/run-for: 30s}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: x, resources: {requests: {example.com/hoist: "1"}}}]
"""


@case
def pods_get_their_devices_by_plugin_and_by_claim(bench):
    bench.write("m.yaml", CLUSTER)
    text = bench.good("m.yaml")
    plain, whole = text.split("With Tallyman\n", 1)
    assert "3 of 4 pods bound" in plain, plain
    assert "1 pod unschedulable: 0/2 nodes are available: 1 Insufficient" in plain, plain
    assert "4 of 4 pods bound: w1 (2 pods), w2 (2 pods)" in whole, whole
    assert "after     waits: needs 3 example.com/hoist at once, 0 of 4 are free" in whole, whole
    assert "3 of 3 pods bound" in whole, whole
    assert "every Job has finished" in whole, whole
