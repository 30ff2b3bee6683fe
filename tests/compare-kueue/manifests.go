package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

type object = map[string]any

func groupsOf(s *state, quotas []quota) []any {
	flavors := []any{}
	for _, flavor := range s.flavors {
		resources := []any{}
		for _, q := range quotas {
			if q.flavor != flavor {
				continue
			}
			item := object{"name": q.resource, "nominalQuota": strconv.Itoa(q.nominal)}
			if q.borrowing >= 0 {
				item["borrowingLimit"] = strconv.Itoa(q.borrowing)
			}
			if q.lending >= 0 {
				item["lendingLimit"] = strconv.Itoa(q.lending)
			}
			resources = append(resources, item)
		}
		if len(resources) > 0 {
			flavors = append(flavors, object{"name": flavor, "resources": resources})
		}
	}
	if len(flavors) == 0 {
		return []any{}
	}
	return []any{object{"flavors": flavors}}
}

func queueManifest(s *state, q queue) object {
	borrowWithin := object{"policy": q.borrowWithin}
	if q.threshold != nil {
		borrowWithin["maxPriorityThreshold"] = *q.threshold
	}
	fungibility := object{"whenCanBorrow": q.whenCanBorrow, "whenCanPreempt": q.whenCanPreempt}
	if q.preference != "" {
		fungibility["preference"] = q.preference
	}
	spec := object{"namespaceSelector": object{}, "fit": "Quota", "resourceGroups": groupsOf(s, q.quotas),
		"preemption": object{"withinQueue": q.withinQueue, "reclaimWithinCohort": q.reclaim,
			"borrowWithinCohort": borrowWithin},
		"flavorFungibility": fungibility, "queueingStrategy": "BestEffortFIFO"}
	if q.strict {
		spec["queueingStrategy"] = "StrictFIFO"
	}
	if q.cohort != "" {
		spec["cohort"] = q.cohort
	}
	if s.isFair {
		spec["fairSharing"] = object{"weight": strconv.Itoa(q.weight)}
	}
	return object{"apiVersion": "tallyman.dev/v1beta1", "kind": "Queue", "metadata": object{"name": q.name}, "spec": spec}
}

func jobManifest(s *state, g gang, n int) object {
	requests := object{}
	for resource, amount := range g.requests {
		requests[resource] = strconv.Itoa(amount)
	}
	metadata := object{"name": g.name, "namespace": "quay", "uid": uid(s.seed, n),
		"creationTimestamp": g.created.Format(time.RFC3339), "labels": object{"tallyman.dev/queue": g.queue}}
	isRunning := !g.admitted.IsZero()
	status := object{}
	if isRunning {
		record, err := json.Marshal(object{"queue": g.queue, "at": g.admitted.Format(time.RFC3339), "priority": g.priority,
			"podSets": []any{object{"name": "main", "count": g.pods, "flavors": g.flavors}}})
		if err != nil {
			panic(err)
		}
		metadata["annotations"] = object{"tallyman.dev/admission": string(record)}
		status = object{"active": g.pods, "ready": g.pods, "startTime": g.admitted.Format(time.RFC3339)}
	}
	if g.minPods > 0 {
		metadata["annotations"] = object{"tallyman.dev/partial": "true", "tallyman.dev/min-count": strconv.Itoa(g.minPods)}
	}
	return object{"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "status": status,
		"spec": object{"suspend": !isRunning, "parallelism": g.pods, "completions": g.pods,
			"template": object{"spec": object{"restartPolicy": "Never", "priorityClassName": className(g.priority),
				"containers": []any{object{"name": "main", "resources": object{"requests": requests}}}}}}}
}

func className(priority int32) string {
	return fmt.Sprintf("class-%d", priority)
}

// What `tallyman plan` is given.
func (s *state) manifests() []byte {
	items := []any{object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "quay"}}}
	for priority := int32(0); priority <= 300; priority += 100 {
		items = append(items, object{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
			"metadata": object{"name": className(priority)}, "value": priority})
	}
	for _, flavor := range s.flavors {
		items = append(items, object{"apiVersion": "tallyman.dev/v1beta1", "kind": "ResourceFlavor", "metadata": object{"name": flavor},
			"spec": object{}})
	}
	for _, c := range s.cohorts {
		spec := object{"resourceGroups": groupsOf(s, c.quotas)}
		if c.parent != "" {
			spec["parentName"] = c.parent
		}
		if s.isFair {
			spec["fairSharing"] = object{"weight": strconv.Itoa(c.weight)}
		}
		items = append(items, object{"apiVersion": "tallyman.dev/v1beta1", "kind": "Cohort", "metadata": object{"name": c.name}, "spec": spec})
	}
	for _, q := range s.queues {
		items = append(items, queueManifest(s, q))
	}
	for i, g := range s.running {
		if !g.isGone {
			items = append(items, jobManifest(s, g, 1+i))
		}
	}
	for i, g := range s.waiting {
		if !g.isGone {
			items = append(items, jobManifest(s, g, firstWaiting+i))
		}
	}
	text, err := json.MarshalIndent(object{"apiVersion": "v1", "kind": "List", "items": items}, "", " ")
	if err != nil {
		panic(err)
	}
	return text
}
