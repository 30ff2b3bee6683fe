package main

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/resources"
	"sigs.k8s.io/kueue/pkg/scheduler/flavorassigner"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/classical"
	"sigs.k8s.io/kueue/pkg/workload"
)

const (
	cycleLimit = 200
	// So many cycles in which nobody starts, is stopped or is set aside: nothing comes any more. A
	// head may need one for each flavor that it hasn't looked at yet.
	idleLimit = 4
	// What happened to the gangs in the end, beside each gang's own answer.
	everyVictim = "(victims)"
)

// The gangs that wait in one queue, by Kueue's rules for both strategies.
type line struct {
	isStrict bool
	isShut   bool             // its head waits for the next pass
	active   []*workload.Info // in order
	aside    []*workload.Info // inadmissible heads of BestEffortFIFO
	sticky   string           // a head that preempts stays the head
}

func (l *line) add(infos ...*workload.Info) {
	l.active = append(l.active, infos...)
	slices.SortFunc(l.active, func(a, b *workload.Info) int {
		if aFirst, bFirst := a.Obj.Name == l.sticky, b.Obj.Name == l.sticky; aFirst != bFirst {
			if aFirst {
				return -1
			}
			return 1
		}
		return compareGangs(a, b)
	})
}

func compareGangs(a, b *workload.Info) int {
	if *a.Obj.Spec.Priority != *b.Obj.Spec.Priority {
		return int(*b.Obj.Spec.Priority - *a.Obj.Spec.Priority)
	}
	return a.Obj.CreationTimestamp.Compare(b.Obj.CreationTimestamp.Time)
}

// Kueue's scheduling cycles, one after the other, over its own cache, flavor assigner, preemption
// and shares; victims are gone at the end of the cycle, and don't come back.
type driver struct {
	state     *state
	cache     *schdcache.Cache
	preemptor *preemption.Preemptor
	rules     rules
	lines     map[kueue.ClusterQueueReference]*line
	gangs     map[string]int // where in state.waiting
	answers   map[string]answer
	victims   []string
	pass      pass      // by rules.freesLater
	follower  *follower // of Tallyman's own passes
	isTold    bool      // prints what happens
}

// Where a driver does otherwise than Kueue, for Tallyman does so on purpose.
type rules struct {
	passesImpossible bool // the head of a StrictFIFO queue that can never start doesn't block it
	isAnew           bool // who starts, preempts or is set aside ends the cycle, and preempts and starts at once
	freesLater       bool // what victims hold is free when all have been judged
	hasGuaranteed    bool // what a queue is guaranteed it has, even while its cohort uses too much
	ranksAsIs        bool // a gang that doesn't fit is ranked as if others had ended, whomever it might stop
	keepsNothing     bool // a head that can't start keeps no room in its cycle
	asksWhole        bool // who may be stopped on a flavor is asked for all resources at once
	looksAgain       bool // who was set aside looks again before the pass ends, as others have started or begun to stop
}

type entry struct {
	info       *workload.Info
	queue      *schdcache.ClusterQueueSnapshot
	assignment flavorassigner.Assignment
	targets    []*preemption.Target
	level      int                                // how far up it borrows
	onceFree   resources.FlavorResourceQuantities // of a gang that nothing fits now, where Tallyman ranks it
	isAwaiting bool                               // what stops already is enough for it
	isForced   bool                               // Tallyman has it so
}

func (e *entry) usage() workload.Usage {
	return workload.Usage{Quota: e.assignment.Usage.Quota}
}

// What it is ranked by.
func (e *entry) claim() workload.Usage {
	if e.onceFree != nil {
		return workload.Usage{Quota: e.onceFree}
	}
	return e.usage()
}

func newDriver(ctx context.Context, s *state, rules rules) (*driver, error) {
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		return nil, err
	}
	client := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&kueue.LocalQueue{}, indexer.QueueClusterQueueKey, indexer.IndexQueueClusterQueue).
		WithIndex(&kueue.Workload{}, indexer.WorkloadClusterQueueKey, indexer.IndexWorkloadClusterQueue).Build()
	cache := schdcache.New(client, schdcache.WithFairSharing(s.isFair))
	if err := fillCache(ctx, s, cache); err != nil {
		return nil, err
	}
	var fair *config.FairSharing
	if s.isFair {
		fair = &config.FairSharing{PreemptionStrategies: fairStrategies}
	}
	d := &driver{state: s, cache: cache, rules: rules, lines: map[kueue.ClusterQueueReference]*line{},
		gangs: map[string]int{}, answers: map[string]answer{},
		preemptor: preemption.New(client, workload.Ordering{}, &record.FakeRecorder{}, fair, false, clock.RealClock{}, nil, nil, nil)}
	for _, q := range s.queues {
		d.lines[kueue.ClusterQueueReference(q.name)] = &line{isStrict: q.strict}
	}
	for i, g := range s.waiting {
		info := workload.NewInfo(kueueWorkload(s, g, firstWaiting+i))
		info.ClusterQueue = kueue.ClusterQueueReference(g.queue)
		d.lines[info.ClusterQueue].add(info)
		d.gangs[g.name] = i
		d.answers[g.name] = answer{decision: "Wait"}
	}
	return d, nil
}

// What is left of everybody when Kueue has come to rest.
func driveKueue(s *state, rules rules, isTold bool) (result map[string]answer, err error) {
	defer func() {
		if trouble := recover(); trouble != nil {
			err = fmt.Errorf("%w: %v", errPanic, trouble)
		}
	}()
	ctx := ctrl.LoggerInto(context.Background(), logr.Discard())
	d, err := newDriver(ctx, s, rules)
	if err != nil {
		return nil, err
	}
	d.isTold = isTold
	if err := d.run(ctx); err != nil {
		return nil, err
	}
	return d.answers, nil
}

func (d *driver) run(ctx context.Context) error {
	idle := 0
	for range cycleLimit {
		hasChanged, err := d.cycle(ctx)
		if err == nil && !hasChanged && idle == idleLimit-1 {
			if hasChanged = d.lookAgain(); !hasChanged {
				hasChanged, err = d.endPass()
			}
		}
		if err != nil {
			return err
		}
		if idle++; hasChanged {
			idle = 0
		}
		if idle == idleLimit {
			sort.Strings(d.victims)
			d.answers[everyVictim] = answer{victims: d.victims}
			return nil
		}
	}
	return fmt.Errorf("kueue did not come to rest in %d cycles", cycleLimit)
}

// The head of every queue with what it would get, in the order of the queues.
func (d *driver) nominate(snapshot *schdcache.Snapshot) []*entry {
	entries := []*entry{}
	for _, q := range d.state.queues {
		l := d.lines[kueue.ClusterQueueReference(q.name)]
		if len(l.active) > 0 && !l.isShut {
			info := l.active[0]
			l.active = l.active[1:]
			entries = append(entries, d.judge(snapshot, info))
		}
	}
	return entries
}

func (d *driver) judge(snapshot *schdcache.Snapshot, info *workload.Info) *entry {
	e := &entry{info: info, queue: snapshot.ClusterQueue(info.ClusterQueue)}
	for {
		d.assignAsIs(snapshot, e)
		e.level = e.assignment.Borrows()
		mode := e.assignment.RepresentativeMode()
		if d.rules.isAnew && mode == flavorassigner.NoFit || d.rules.ranksAsIs && mode != flavorassigner.Fit {
			if e.level, e.onceFree = d.placeOnceFree(e); e.level == never {
				e.level = -1 // out of the others' way at once
			}
		}
		if len(d.pass.stopping) > 0 {
			d.assignOnceStopped(snapshot, e)
		}
		e.info.LastAssignment = &e.assignment.LastState
		if !d.rules.isAnew || e.isHopeful() || !e.info.LastAssignment.PendingFlavors() {
			return e
		}
	}
}

func (d *driver) assign(snapshot *schdcache.Snapshot, e *entry) {
	e.targets = nil
	if d.rules.asksWhole {
		e.assignment = flavorassigner.New(e.info, e.queue, snapshot.ResourceFlavors, d.state.isFair,
			&wholeOracle{d.preemptor, snapshot}, nil).Assign(logr.Discard(), nil)
	} else {
		e.assignment = flavorassigner.New(e.info, e.queue, snapshot.ResourceFlavors, d.state.isFair,
			preemption.NewOracle(d.preemptor, snapshot), nil).Assign(logr.Discard(), nil)
	}
	if e.assignment.RepresentativeMode() == flavorassigner.Preempt {
		e.targets = d.preemptor.GetTargets(logr.Discard(), *e.info, e.assignment, snapshot)
	}
}

func (e *entry) isHopeful() bool {
	return e.isAwaiting || e.assignment.RepresentativeMode() == flavorassigner.Fit || len(e.targets) > 0
}

func (d *driver) cycle(ctx context.Context) (bool, error) {
	snapshot, err := d.cache.Snapshot(ctx)
	if err != nil {
		return false, err
	}
	d.pass.charge(snapshot)
	left := d.nominate(snapshot)
	preempted := preemption.PreemptedWorkloads{}
	hasChanged := false
	started := []*entry{}
	for len(left) > 0 && !(d.rules.isAnew && hasChanged) {
		var e *entry
		e, left = takeNext(left, d.state.isFair, d.rules)
		if d.follower != nil {
			if err := d.reconcile(snapshot, e); err != nil {
				return false, err
			}
		}
		outcome := d.process(snapshot, e, preempted)
		d.noteEntry(e, outcome)
		switch {
		case outcome == starts || outcome == preempts && d.rules.isAnew:
			started = append(started, e)
			hasChanged = true
		case outcome == preempts:
			l := d.lines[e.info.ClusterQueue]
			if !l.isStrict {
				l.sticky = e.info.Obj.Name
			}
			l.add(e.info)
			hasChanged = true
		case outcome == inadmissible && d.setAside(e):
			hasChanged = true
		default:
			l := d.lines[e.info.ClusterQueue]
			l.isShut = d.rules.freesLater
			hasChanged = hasChanged || l.isShut
			l.add(e.info)
		}
	}
	for _, e := range left {
		e.info.LastAssignment = nil
		d.lines[e.info.ClusterQueue].add(e.info)
	}
	return hasChanged, d.carryOut(started, preempted)
}

type outcome int

const (
	inadmissible outcome = iota
	skipped
	starts
	preempts
)

func (d *driver) process(snapshot *schdcache.Snapshot, e *entry, preempted preemption.PreemptedWorkloads) outcome {
	mode := e.assignment.RepresentativeMode()
	if e.isAwaiting || mode == flavorassigner.NoFit {
		return inadmissible
	}
	if mode == flavorassigner.Preempt && len(e.targets) == 0 {
		if !d.rules.keepsNothing && !preemption.CanAlwaysReclaim(e.queue) {
			e.queue.AddUsage(workload.Usage{Quota: roomToReserve(e)})
		}
		return inadmissible
	}
	out := []*workload.Info{}
	for _, info := range preempted {
		out = append(out, info)
	}
	for _, target := range e.targets {
		out = append(out, target.WorkloadInfo)
	}
	if !e.isForced && (preempted.HasAny(e.targets) || !fitsWithout(snapshot, e, out)) {
		e.info.LastAssignment = nil
		return skipped
	}
	preempted.Insert(e.targets)
	e.queue.AddUsage(e.usage())
	if mode == flavorassigner.Preempt {
		e.info.LastAssignment = nil
		return preempts
	}
	return starts
}

func fitsWithout(snapshot *schdcache.Snapshot, e *entry, out []*workload.Info) bool {
	defer snapshot.SimulateWorkloadRemoval(out)()
	return e.queue.Fits(e.usage())
}

// What a head that may find nobody to stop keeps for itself in this cycle.
func roomToReserve(e *entry) resources.FlavorResourceQuantities {
	room := resources.FlavorResourceQuantities{}
	for place, asked := range e.assignment.Usage.Quota {
		quota := e.queue.QuotaFor(place)
		used := e.queue.ResourceNode.Usage[place]
		switch {
		case e.assignment.Borrowing == 0:
			room[place] = max(0, min(asked, quota.Nominal-used))
		case quota.BorrowingLimit == nil:
			room[place] = asked
		default:
			room[place] = min(asked, quota.Nominal+*quota.BorrowingLimit-used)
		}
	}
	return room
}

const never = 1000

// What the gang might have once others have ended, and how far up it has to borrow for it; never: it
// couldn't have it if nobody else were there.
func (d *driver) placeOnceFree(e *entry) (int, resources.FlavorResourceQuantities) {
	least := never
	var place resources.FlavorResourceQuantities
	for _, flavor := range d.state.flavors {
		level := 0
		usage := resources.FlavorResourceQuantities{}
		for name, asked := range e.info.TotalRequests[0].Requests {
			account := resources.FlavorResource{Flavor: kueue.ResourceFlavorReference(flavor), Resource: name}
			usage[account] = asked
			height, _ := classical.FindHeightOfLowestSubtreeThatFits(e.queue, account, asked)
			if asked > e.queue.PotentialAvailable(account) {
				height = never
			}
			level = max(level, height)
		}
		if level < least {
			least, place = level, usage
		}
	}
	return least, place
}

func (d *driver) canNeverStart(e *entry) bool {
	level, _ := d.placeOnceFree(e)
	return level == never
}

// Whether the gang leaves its line, so that the next one is its head.
func (d *driver) setAside(e *entry) bool {
	l := d.lines[e.info.ClusterQueue]
	isBlocking := l.isStrict && !(d.rules.passesImpossible && d.canNeverStart(e))
	if isBlocking || e.info.LastAssignment.PendingFlavors() {
		return false
	}
	l.aside = append(l.aside, e.info)
	return true
}

func (d *driver) carryOut(started []*entry, preempted preemption.PreemptedWorkloads) error {
	for key, victim := range preempted {
		if err := d.cache.DeleteWorkload(logr.Discard(), key); err != nil {
			return err
		}
		d.victims = append(d.victims, victim.Obj.Name)
		if _, hasWaited := d.answers[victim.Obj.Name]; hasWaited {
			d.answers[victim.Obj.Name] = answer{decision: "Stopped"}
		}
		if d.rules.freesLater {
			d.pass.stopping = append(d.pass.stopping, victim)
		}
	}
	if d.rules.freesLater {
		d.pass.started = append(d.pass.started, started...)
		return nil
	}
	if len(preempted) > 0 {
		d.wakeAll()
	}
	return d.start(started)
}

// The room of those that are gone wakes everybody.
func (d *driver) wakeAll() {
	for _, l := range d.lines {
		aside := l.aside
		l.aside, l.isShut = nil, false
		l.add(aside...)
	}
}

func (d *driver) start(started []*entry) error {
	for _, e := range started {
		i := d.gangs[e.info.Obj.Name]
		found := answer{decision: "Admit"}
		flavors := map[string]string{}
		for name, flavor := range e.assignment.PodSets[0].Flavors {
			flavors[string(name)] = string(flavor.Name)
			found.flavors = append(found.flavors, fmt.Sprintf("%s=%s", name, flavor.Name))
		}
		sort.Strings(found.flavors)
		d.answers[e.info.Obj.Name] = found
		if !d.cache.AddOrUpdateWorkload(logr.Discard(), kueueWorkload(d.state, d.state.waiting[i].startedAs(i, flavors), firstWaiting+i)) {
			return fmt.Errorf("workload %s was not taken", e.info.Obj.Name)
		}
	}
	return nil
}

// The gang as one that runs, the later the further behind it stood; the same for both.
func (g gang) startedAs(i int, flavors map[string]string) gang {
	g.flavors = flavors
	g.admitted = now.Add(time.Duration(i-50) * time.Second)
	return g
}
