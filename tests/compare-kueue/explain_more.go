package main

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/workload"
)

// Lets the gang's queue have no flavors but those that it held; the result takes that back.
func (q *question) onHeldFlavors(info *workload.Info) func() {
	held := sets.New[kueue.ResourceFlavorReference]()
	for place := range info.Usage().Quota {
		held.Insert(place.Flavor)
	}
	queue := q.snapshot.ClusterQueue(info.ClusterQueue)
	before := queue.ResourceGroups
	queue.ResourceGroups = slices.Clone(before)
	for i := range queue.ResourceGroups {
		group := &queue.ResourceGroups[i]
		group.Flavors = slices.DeleteFunc(slices.Clone(group.Flavors), func(name kueue.ResourceFlavorReference) bool { return !held.Has(name) })
	}
	return func() { queue.ResourceGroups = before }
}

// With fair sharing Kueue stops gangs of the own queue, and for the share that the queue then has
// others' too. With its own gangs running on, as they may in what those others leave, its branch's
// share is too high for either of Kueue's rules.
func (q *question) countsOwnAsGone() bool {
	e := q.kueue
	isOwn := func(info *workload.Info) bool { return info.ClusterQueue == e.queue.Name }
	others := []*workload.Info{}
	for _, target := range e.targets {
		if !isOwn(target.WorkloadInfo) {
			others = append(others, target.WorkloadInfo)
		}
	}
	if !q.driver.state.isFair || len(others) == 0 || len(others) == len(e.targets) {
		return false
	}
	revert := e.queue.SimulateUsageAddition(e.usage())
	defer revert()
	return slices.ContainsFunc(others, q.isShareTooHighFor)
}

// By LessThanInitialShare, and by LessThanOrEqualToFinalShare.
func (q *question) isShareTooHighFor(victim *workload.Info) bool {
	queue := q.snapshot.ClusterQueue(victim.ClusterQueue)
	mine := shareBelow(q.queue, queue)
	before := shareBelow(queue, q.queue)
	q.snapshot.RemoveWorkload(victim)
	after := shareBelow(queue, q.queue)
	q.snapshot.AddWorkload(victim)
	return schdcache.CompareDRS(mine, before) >= 0 && schdcache.CompareDRS(mine, after) > 0
}

// The share of the queue's branch below the lowest cohort that is above the other one as well.
func shareBelow(queue, other *schdcache.ClusterQueueSnapshot) schdcache.DRS {
	if cohorts := branches(queue, other); len(cohorts) > 0 {
		return cohorts[len(cohorts)-1].DominantResourceShare()
	}
	return queue.DominantResourceShare()
}

// Kueue stops gangs of a queue of which one with no higher priority has been let in in this pass, and
// can't be stopped before it ends; when those can't be stopped in its place, Kueue answers as Tallyman
// does.
func (q *question) takesInItsPlace() bool {
	return q.isProvedWithout(func(e *entry) []*workload.Info {
		taken := []*workload.Info{}
		for _, target := range e.targets {
			if info := target.WorkloadInfo; info.ClusterQueue != q.queue.Name && q.wouldLoseFirst(info) {
				taken = append(taken, info)
			}
		}
		return taken
	})
}

func (q *question) wouldLoseFirst(info *workload.Info) bool {
	return slices.ContainsFunc(q.driver.pass.started, func(e *entry) bool {
		return e.info.ClusterQueue == info.ClusterQueue && *e.info.Obj.Spec.Priority <= *info.Obj.Spec.Priority
	})
}
