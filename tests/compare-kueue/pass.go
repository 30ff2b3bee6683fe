package main

import (
	"fmt"

	"github.com/go-logr/logr"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"

	"sigs.k8s.io/kueue/pkg/resources"
	"sigs.k8s.io/kueue/pkg/scheduler/flavorassigner"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/classical"
	preemptioncommon "sigs.k8s.io/kueue/pkg/scheduler/preemption/common"
	"sigs.k8s.io/kueue/pkg/workload"
)

// What has happened in one of Tallyman's passes, by Kueue's code: those that start, or that others
// stop for, are charged and can't be stopped yet; those that stop are charged too, and can't be
// stopped twice. With the pass all of it is done, and everybody is judged anew.
type pass struct {
	started  []*entry
	stopping []*workload.Info
	seen     int // so many had started when all looked last
}

// The state without those that stop.
func (p *pass) charge(snapshot *schdcache.Snapshot) {
	for _, e := range p.started {
		snapshot.ClusterQueue(e.info.ClusterQueue).AddUsage(e.usage())
	}
}

// Adds those that stop; the result takes them out again.
func (p *pass) addStopping(snapshot *schdcache.Snapshot) func() {
	reverts := []func(){}
	for _, info := range p.stopping {
		reverts = append(reverts, snapshot.ClusterQueue(info.ClusterQueue).SimulateUsageAddition(info.Usage()))
	}
	return func() {
		for _, revert := range reverts {
			revert()
		}
	}
}

// Looks for whom a gang might stop as a whole: all that it asks of the flavor at once, where Kueue's
// own oracle asks resource by resource.
type wholeOracle struct {
	preemptor *preemption.Preemptor
	snapshot  *schdcache.Snapshot
}

func (o *wholeOracle) SimulatePreemption(log logr.Logger, queue *schdcache.ClusterQueueSnapshot, info workload.Info,
	place resources.FlavorResource, _ int64) (preemptioncommon.PreemptionPossibility, int) {
	podSet := flavorassigner.PodSetAssignment{Name: "main", Count: info.TotalRequests[0].Count, Flavors: flavorassigner.ResourceAssignment{}}
	for name, asked := range info.TotalRequests[0].Requests {
		flavor := &flavorassigner.FlavorAssignment{Name: place.Flavor, Mode: flavorassigner.Fit}
		if asked > queue.Available(resources.FlavorResource{Flavor: place.Flavor, Resource: name}) {
			flavor.Mode = flavorassigner.Preempt
		}
		podSet.Flavors[name] = flavor
	}
	targets := o.preemptor.GetTargets(log, info, flavorassigner.Assignment{PodSets: []flavorassigner.PodSetAssignment{podSet}}, o.snapshot)
	possibility := preemptioncommon.NoCandidates
	out := []*workload.Info{}
	for _, target := range targets {
		out = append(out, target.WorkloadInfo)
		if possibility == preemptioncommon.NoCandidates {
			possibility = preemptioncommon.Reclaim
		}
		if target.WorkloadInfo.ClusterQueue == queue.Name {
			possibility = preemptioncommon.Preempt
		}
	}
	defer o.snapshot.SimulateWorkloadRemoval(out)()
	level := 0
	for name, asked := range info.TotalRequests[0].Requests {
		height, _ := classical.FindHeightOfLowestSubtreeThatFits(queue, resources.FlavorResource{Flavor: place.Flavor, Resource: name}, asked)
		level = max(level, height)
	}
	return possibility, level
}

// As things are: those that stop are still there. What a queue is guaranteed it has, even so.
func (d *driver) assignAsIs(snapshot *schdcache.Snapshot, e *entry) {
	defer d.pass.addStopping(snapshot)()
	if len(d.pass.stopping) > 0 { // first of all, whether it fits anywhere
		before := e.queue.FlavorFungibility.WhenCanPreempt
		e.queue.FlavorFungibility.WhenCanPreempt = kueue.TryNextFlavor
		defer func() { e.queue.FlavorFungibility.WhenCanPreempt = before }()
	}
	if d.rules.hasGuaranteed {
		restore := forgetDebts(e.queue)
		d.assign(snapshot, e)
		restore()
		if e.assignment.RepresentativeMode() == flavorassigner.Fit {
			return
		}
	}
	d.assign(snapshot, e)
}

// Without those that stop: whom it would stop itself, or whether it has only to wait for them.
func (d *driver) assignOnceStopped(snapshot *schdcache.Snapshot, e *entry) {
	fits := e.assignment.RepresentativeMode() == flavorassigner.Fit
	if fits && e.queue.FlavorFungibility.WhenCanPreempt != kueue.MayStopSearch {
		return
	}
	asThingsAre, targets := e.assignment, e.targets
	d.assign(snapshot, e)
	if e.assignment.RepresentativeMode() == flavorassigner.Preempt && (len(e.targets) > 0 || !fits) {
		return
	}
	e.isAwaiting = !fits && e.assignment.RepresentativeMode() == flavorassigner.Fit
	e.assignment, e.targets = asThingsAre, targets
}

// Lets the cohorts above the queue use no more than they have.
func forgetDebts(queue *schdcache.ClusterQueueSnapshot) func() {
	restores := []func(){}
	for cohort := range queue.PathParentToRoot() {
		node := &cohort.ResourceNode
		for place, used := range node.Usage {
			most := node.SubtreeQuota[place]
			if limit := node.Quotas[place].BorrowingLimit; limit != nil {
				most += *limit
			} else if cohort.HasParent() {
				continue
			}
			if used > most {
				node.Usage[place] = most
				restores = append(restores, func() { node.Usage[place] = used })
			}
		}
	}
	return func() {
		for _, restore := range restores {
			restore()
		}
	}
}

// Whoever started or began to stop since all looked last may leave others enough to stop others for.
func (d *driver) lookAgain() bool {
	if !d.rules.looksAgain || d.pass.seen == len(d.pass.started) {
		return false
	}
	d.pass.seen = len(d.pass.started)
	d.wakeAll()
	d.note("-- all look again")
	return true
}

// Ends the pass: those that stopped are gone, those that started can be stopped, and all look again.
func (d *driver) endPass() (bool, error) {
	started := d.pass.started
	hasHappened := len(started) > 0
	d.pass = pass{}
	err := d.start(started)
	if err == nil && d.follower != nil {
		err = d.nextPlan(started)
	}
	if hasHappened {
		d.wakeAll()
	}
	d.note("-- the pass ends")
	return hasHappened, err
}

func (d *driver) note(format string, values ...any) {
	if d.isTold {
		fmt.Printf("    "+format+"\n", values...)
	}
}

func (d *driver) noteEntry(e *entry, outcome outcome) {
	if d.isTold {
		targets := []string{}
		for _, target := range e.targets {
			targets = append(targets, target.WorkloadInfo.Obj.Name)
		}
		d.note("%s of %s: %s on %v, level %d %v, stops %v", e.info.Obj.Name, e.info.ClusterQueue,
			[]string{"inadmissible", "skipped", "starts", "preempts"}[outcome], e.usage().Quota, e.level, e.claim().Quota, targets)
	}
}
