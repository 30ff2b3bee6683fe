package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/scheduler/flavorassigner"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption"
)

// Goes with Tallyman from plan to plan. Kueue's code, with all that is changed in it, judges each gang
// in its turn in the very state in which Tallyman did; where the two answer otherwise, the difference
// has to be one that is known of single gangs, and what Tallyman decided is done.
type follower struct {
	binary    string
	directory string
	rest      *state // for the next plan
	final     map[string]answer
	plan      map[string]answer
	kinds     map[string]bool
}

// The kinds of difference met on the way, all of them; empty: one isn't understood.
func followTallyman(ctx context.Context, binary, directory string, result *comparison) (kind string, err error) {
	defer func() {
		if trouble := recover(); trouble != nil {
			kind, err = "", fmt.Errorf("%w: %v", errPanic, trouble)
		}
	}()
	all := laterRules()
	d, err := newDriver(ctx, result.state, all[len(all)-1].rules)
	if err != nil {
		return "", err
	}
	d.isTold = result.isTold
	d.follower = &follower{binary: binary, directory: directory, rest: result.state.copied(), final: result.state.nobodyYet(), kinds: map[string]bool{}}
	if err := d.ask(); err != nil {
		return "", err
	}
	if err := d.run(ctx); err != nil {
		d.note("%v", err)
		return "", nil
	}
	return strings.Join(slices.Sorted(maps.Keys(d.follower.kinds)), " "), nil
}

func (d *driver) ask() (err error) {
	d.follower.plan, err = askTallyman(d.follower.binary, d.follower.rest, d.follower.directory)
	return err
}

// What Kueue's code has found for the gang gives way to what Tallyman's plan says.
func (d *driver) reconcile(snapshot *schdcache.Snapshot, e *entry) error {
	wanted := d.follower.plan[e.info.Obj.Name]
	if isSame(e.answer(), wanted) {
		return nil
	}
	q := question{driver: d, snapshot: snapshot, queue: e.queue, info: e.info, kueue: e, tallyman: wanted}
	kind := q.explain()
	if kind == "" {
		return fmt.Errorf("kueue says of %s: %s; tallyman: %s", e.info.Obj.Name, e.answer(), wanted)
	}
	d.note("%s: kueue says of %s: %s; tallyman: %s", kind, e.info.Obj.Name, e.answer(), wanted)
	d.follower.kinds[kind] = true
	q.force(e)
	return nil
}

// Makes Tallyman's answer the entry's.
func (q *question) force(e *entry) {
	e.isForced, e.isAwaiting, e.targets = true, q.tallyman.decision == "Wait", nil
	if e.isAwaiting {
		return
	}
	mode, status := flavorassigner.Fit, flavorassigner.Status{}
	if q.tallyman.decision == "Preempt" {
		mode, status = flavorassigner.Preempt, *flavorassigner.NewStatus("as Tallyman has it")
	}
	podSet := flavorassigner.PodSetAssignment{Name: "main", Status: status, Flavors: flavorassigner.ResourceAssignment{}, Count: q.info.TotalRequests[0].Count}
	e.assignment = flavorassigner.Assignment{PodSets: []flavorassigner.PodSetAssignment{podSet}}
	e.assignment.Usage.Quota = q.asked(q.tallyman.flavors)
	for place := range e.assignment.Usage.Quota {
		podSet.Flavors[place.Resource] = &flavorassigner.FlavorAssignment{Name: place.Flavor, Mode: mode}
	}
	for _, name := range q.tallyman.victims {
		e.targets = append(e.targets, &preemption.Target{WorkloadInfo: q.gang(name), WorkloadCq: e.queue})
	}
}

// All that the plan lets start has started; then the next one is asked for.
func (d *driver) nextPlan(started []*entry) error {
	f := d.follower
	for name, planned := range f.plan {
		hasStarted := slices.ContainsFunc(started, func(e *entry) bool { return e.info.Obj.Name == name })
		if starts := planned.decision == "Admit" || planned.decision == "Preempt"; starts && !hasStarted {
			return fmt.Errorf("kueue never comes to %s, tallyman: %s", name, planned)
		}
	}
	f.rest.apply(f.plan, f.final)
	return d.ask()
}
