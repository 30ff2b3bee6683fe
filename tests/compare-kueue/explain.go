package main

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/resources"
	"sigs.k8s.io/kueue/pkg/scheduler/flavorassigner"
	"sigs.k8s.io/kueue/pkg/workload"
)

// The two answer otherwise for one gang in one state. Most kinds of difference are proved: with one
// thing changed Kueue's own code answers as Tallyman does. The others are told by what each of the
// two does.
type question struct {
	driver   *driver
	snapshot *schdcache.Snapshot
	queue    *schdcache.ClusterQueueSnapshot
	info     *workload.Info
	kueue    *entry
	tallyman answer
}

type explanation struct {
	kind  string
	holds func(*question) bool
}

func explanations() []explanation {
	return []explanation{
		{"worst-mode", (*question).isBeyondQuota},
		{"asked-whole", func(q *question) bool { return q.isProved(q.askWhole) }},
		{"guaranteed-part", func(q *question) bool { return q.isProved(q.giveGuaranteed) || q.isProved(q.forgetDebts) }},
		{"own-queue", func(q *question) bool { return q.stopsOwnOnly() && q.isProved(q.letStopOwn) }},
		{"swap", (*question).isSwap},
		{"own-quota-first", func(q *question) bool { return q.isProved(q.dropPreference) }},
		{"lent-flavor", (*question).takesUnlent},
		{"all-that-it-asks", (*question).isWithinContestedOnly},
		{"never-in-circles", (*question).goesInCircles},
		{"own-branch", (*question).isWithinBranch},
		{"own-run-on", (*question).countsOwnAsGone},
		{"not-in-its-place", (*question).takesInItsPlace},
	}
}

// The kind of the difference; empty: it isn't understood.
func (q *question) explain() (kind string) {
	for _, e := range explanations() {
		if q.try(e.holds) {
			return e.kind
		}
	}
	return ""
}

// Kueue's code may panic on the way.
func (q *question) try(holds func(*question) bool) (isTrue bool) {
	defer func() {
		if recover() != nil {
			isTrue = false
		}
	}()
	return holds(q)
}

// Whether Kueue answers as Tallyman does with that change, which the result of it takes back.
func (q *question) isProved(change func() func()) bool {
	restore := change()
	defer restore()
	return isSame(q.driver.judge(q.snapshot, q.fresh()).answer(), q.tallyman)
}

func (q *question) fresh() *workload.Info {
	info := *q.info
	info.LastAssignment = nil
	return &info
}

func (q *question) askWhole() func() {
	before := q.driver.rules
	q.driver.rules.asksWhole = true
	return func() { q.driver.rules = before }
}

func (q *question) giveGuaranteed() func() {
	before := q.driver.rules
	q.driver.rules.hasGuaranteed = true
	return func() { q.driver.rules = before }
}

// The same while gangs are sought that might be stopped.
func (q *question) forgetDebts() func() {
	return forgetDebts(q.queue)
}

// Tallyman stops gangs of the queue for one that is larger than the queue's nominal quota.
func (q *question) stopsOwnOnly() bool {
	isLarge := false
	for place, amount := range q.asked(q.tallyman.flavors) {
		isLarge = isLarge || amount > q.queue.QuotaFor(place).Nominal
	}
	for _, name := range q.tallyman.victims {
		isLarge = isLarge && q.gang(name).ClusterQueue == q.queue.Name
	}
	return isLarge && q.tallyman.decision == "Preempt"
}

// It may stop others of its queue however much it asks, and nobody else.
func (q *question) letStopOwn() func() {
	before := q.queue.Preemption
	q.queue.Preemption.ReclaimWithinCohort = kueue.PreemptionPolicyNever
	q.queue.Preemption.BorrowWithinCohort = &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyLowerPriority}
	return func() { q.queue.Preemption = before }
}

func (q *question) dropPreference() func() {
	before := q.queue.FlavorFungibility.Preference
	q.queue.FlavorFungibility.Preference = ptr.To(kueue.BorrowingOverPreemption)
	return func() { q.queue.FlavorFungibility.Preference = before }
}

// Kueue admits what there is no quota for.
func (q *question) isBeyondQuota() bool {
	return q.kueue.answer().decision == "Admit" && !q.queue.Fits(q.kueue.usage())
}

func (q *question) gang(name string) *workload.Info {
	for _, queue := range q.driver.state.queues {
		if snapshot := q.snapshot.ClusterQueue(kueue.ClusterQueueReference(queue.name)); snapshot != nil {
			for _, info := range snapshot.Workloads {
				if info.Obj.Name == name {
					return info
				}
			}
		}
	}
	return nil
}

// Without the victims of the gang's own queue Kueue stops just the other ones.
func (q *question) isSwap() bool {
	own, others := []*workload.Info{}, []string{}
	for _, name := range q.tallyman.victims {
		if info := q.gang(name); info.ClusterQueue == q.queue.Name {
			own = append(own, info)
		} else {
			others = append(others, name)
		}
	}
	if len(own) == 0 || len(others) == 0 {
		return false
	}
	for _, info := range own {
		defer q.snapshot.AddWorkload(info)
		q.snapshot.RemoveWorkload(info)
	}
	found := q.driver.judge(q.snapshot, q.fresh()).answer()
	return isSame(found, answer{decision: "Preempt", flavors: q.tallyman.flavors, victims: others})
}

// What the gang asks of the flavors that Tallyman gives it, or that Kueue would.
func (q *question) asked(flavors []string) resources.FlavorResourceQuantities {
	asked := resources.FlavorResourceQuantities{}
	for name, amount := range q.info.TotalRequests[0].Requests {
		for _, pair := range flavors {
			if resource, flavor, _ := strings.Cut(pair, "="); resource == string(name) {
				asked[resources.FlavorResource{Flavor: kueue.ResourceFlavorReference(flavor), Resource: name}] = amount
			}
		}
	}
	return asked
}

// Kueue stops gangs in a queue that borrows nothing of what is short; when those can't be stopped,
// it answers as Tallyman does.
func (q *question) takesUnlent() bool {
	return q.driver.state.isFair && q.isProvedWithout(q.unlentOf)
}

// Whether Kueue answers as Tallyman does when those that are picked of the gangs that it would stop
// can't be stopped, and those of the next answer, and so on.
func (q *question) isProvedWithout(pick func(*entry) []*workload.Info) bool {
	now := q.kueue
	hidden := map[workload.Reference]*workload.Info{}
	defer func() {
		for key, info := range hidden {
			q.snapshot.ClusterQueue(info.ClusterQueue).Workloads[key] = info
		}
	}()
	for {
		picked := pick(now)
		if len(picked) == 0 {
			return false
		}
		for _, info := range picked {
			hidden[workload.Key(info.Obj)] = info
			delete(q.snapshot.ClusterQueue(info.ClusterQueue).Workloads, workload.Key(info.Obj))
		}
		now = q.driver.judge(q.snapshot, q.fresh())
		if isSame(now.answer(), q.tallyman) {
			return true
		}
	}
}

// One after the other is taken out, as long as the queue and the branches that it stands in borrow.
func (q *question) unlentOf(e *entry) []*workload.Info {
	short := []resources.FlavorResource{}
	for place, asked := range e.usage().Quota {
		if asked > e.queue.Available(place) {
			short = append(short, place)
		}
	}
	unlent := []*workload.Info{}
	for _, target := range e.targets {
		info := target.WorkloadInfo
		if info.ClusterQueue != e.queue.Name && !q.isLent(info, short) {
			unlent = append(unlent, info)
			continue
		}
		q.snapshot.RemoveWorkload(info)
		defer q.snapshot.AddWorkload(info)
	}
	return unlent
}

func (q *question) isLent(info *workload.Info, short []resources.FlavorResource) bool {
	queue := q.snapshot.ClusterQueue(info.ClusterQueue)
	held := info.Usage().Quota
	borrows := func(isBorrowing func(resources.FlavorResource) bool) bool {
		return slices.ContainsFunc(short, func(place resources.FlavorResource) bool { return held[place] > 0 && isBorrowing(place) })
	}
	if !borrows(queue.Borrowing) {
		return false
	}
	for _, cohort := range branches(queue, q.queue) {
		if !borrows(func(place resources.FlavorResource) bool { return cohort.BorrowingWith(place, 0) }) {
			return false
		}
	}
	return true
}

// The cohorts above the queue that aren't above the other one.
func branches(queue, other *schdcache.ClusterQueueSnapshot) []*schdcache.CohortSnapshot {
	above := slices.Collect(other.PathParentToRoot())
	found := []*schdcache.CohortSnapshot{}
	for cohort := range queue.PathParentToRoot() {
		if slices.Contains(above, cohort) {
			break
		}
		found = append(found, cohort)
	}
	return found
}

// With fair sharing Kueue stops a gang that by its own rules could stop the new one in turn, if it is
// to run where it ran.
func (q *question) goesInCircles() bool {
	e := q.kueue
	if !q.driver.state.isFair || e.answer().decision != "Preempt" {
		return false
	}
	for _, target := range e.targets {
		q.snapshot.RemoveWorkload(target.WorkloadInfo)
		defer q.snapshot.AddWorkload(target.WorkloadInfo)
	}
	started := q.running(e)
	q.snapshot.AddWorkload(started)
	defer q.snapshot.RemoveWorkload(started)
	for _, target := range e.targets {
		waiting := q.waitingAgain(target.WorkloadInfo)
		restore := q.onHeldFlavors(target.WorkloadInfo)
		found := q.driver.judge(q.snapshot, waiting).answer()
		restore()
		if slices.Contains(found.victims, started.Obj.Name) {
			return true
		}
	}
	return false
}

// The gang, as it runs with what it has been given.
func (q *question) running(e *entry) *workload.Info {
	flavors := map[string]string{}
	for name, flavor := range e.assignment.PodSets[0].Flavors {
		flavors[string(name)] = string(flavor.Name)
	}
	i := slices.IndexFunc(q.driver.state.waiting, func(g gang) bool { return g.name == e.info.Obj.Name })
	info := workload.NewInfo(kueueWorkload(q.driver.state, q.driver.state.waiting[i].startedAs(i, flavors), firstWaiting+i))
	info.ClusterQueue = e.info.ClusterQueue
	return info
}

// A gang that ran, back in its queue.
func (q *question) waitingAgain(info *workload.Info) *workload.Info {
	object := info.Obj.DeepCopy()
	object.Status = kueue.WorkloadStatus{}
	waiting := workload.NewInfo(object)
	waiting.ClusterQueue = info.ClusterQueue
	return waiting
}

// With fair sharing Kueue passes the shares by for a gang that stays within its queue's quota of what
// is short, though it borrows something else.
func (q *question) isWithinContestedOnly() bool {
	if !q.driver.state.isFair {
		return false
	}
	isReclaim := false
	for _, target := range q.kueue.targets {
		isReclaim = isReclaim || target.Reason == kueue.InCohortReclamationReason
	}
	for place, asked := range q.kueue.usage().Quota {
		if isReclaim && q.queue.BorrowingWith(place, asked) {
			return true
		}
	}
	return false
}

// With fair sharing Tallyman passes the shares by for a gang that stays within its branch's quota of
// all that it asks, though its queue borrows within the branch, and the branch borrows something else.
func (q *question) isWithinBranch() bool {
	if !q.driver.state.isFair || q.tallyman.decision != "Preempt" {
		return false
	}
	asked := q.asked(q.tallyman.flavors)
	for _, name := range q.tallyman.victims {
		info := q.gang(name)
		if info.ClusterQueue == q.queue.Name {
			continue
		}
		if !q.isBranchWithin(asked, q.snapshot.ClusterQueue(info.ClusterQueue)) {
			return false
		}
	}
	return true
}

func (q *question) isBranchWithin(asked resources.FlavorResourceQuantities, other *schdcache.ClusterQueueSnapshot) bool {
	mine := branches(q.queue, other)
	for place, amount := range asked {
		isOver := q.queue.BorrowingWith(place, amount)
		if len(mine) > 0 {
			isOver = mine[len(mine)-1].BorrowingWith(place, amount)
		}
		if isOver {
			return false
		}
	}
	return true
}

// As Tallyman's plan has it.
func (e *entry) answer() answer {
	result := answer{decision: "Wait", why: e.assignment.RepresentativeMode().String()}
	switch {
	case e.isAwaiting:
		return result
	case e.assignment.RepresentativeMode() == flavorassigner.Fit:
		result.decision = "Admit"
	case e.assignment.RepresentativeMode() == flavorassigner.Preempt && len(e.targets) > 0:
		result.decision = "Preempt"
	default:
		return result
	}
	for _, target := range e.targets {
		result.victims = append(result.victims, target.WorkloadInfo.Obj.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(e.assignment.PodSets[0].Flavors)) {
		result.flavors = append(result.flavors, string(name)+"="+string(e.assignment.PodSets[0].Flavors[name].Name))
	}
	slices.Sort(result.victims)
	return result
}
