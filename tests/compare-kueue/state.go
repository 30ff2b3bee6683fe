package main

import (
	"fmt"
	"math/rand"
	"time"
)

// A state that both are asked about: queues in trees, gangs that run, and gangs that wait. It has
// only what the two have in common.
type state struct {
	seed    int64
	flavors []string
	cohorts []cohort
	queues  []queue
	running []gang
	waiting []gang
	// Whether shares decide who is preempted. Kueue switches it on for all trees at once, Tallyman
	// where a Queue or a Cohort of the tree says fairSharing.
	isFair bool
	// Several gangs wait, one a queue at most, and nobody preempts: who goes first is what counts.
	isOrder bool
	// Two or three wait in every queue, and it goes on until nothing changes any more.
	isCrowd bool
	// More may run than the quotas hold, as after a cut.
	isOverfull bool
}

type quota struct {
	flavor    string
	resource  string
	nominal   int
	borrowing int // none: -1
	lending   int // none: -1
}

type cohort struct {
	name   string
	parent string
	weight int
	quotas []quota
}

type queue struct {
	name           string
	cohort         string
	weight         int
	quotas         []quota
	strict         bool
	withinQueue    string
	reclaim        string
	borrowWithin   string
	threshold      *int32
	whenCanBorrow  string
	whenCanPreempt string
	preference     string
}

type gang struct {
	name     string
	queue    string
	priority int32
	pods     int
	minPods  int // 0: all of them
	requests map[string]int
	flavors  map[string]string // of what runs
	created  time.Time
	admitted time.Time
	isGone   bool // stopped for another
}

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func pick[T any](r *rand.Rand, choices ...T) T {
	return choices[r.Intn(len(choices))]
}

func uid(seed int64, n int) string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(seed), n)
}

// What a queue or cohort lists: every flavor with every resource, as one group.
func (s *state) randomQuotas(r *rand.Rand, resources []string, largest int, hasCohort bool) []quota {
	quotas := []quota{}
	for _, flavor := range s.flavors {
		for _, resource := range resources {
			q := quota{flavor: flavor, resource: resource, nominal: r.Intn(largest + 1), borrowing: -1, lending: -1}
			if hasCohort && r.Intn(3) == 0 {
				q.borrowing = r.Intn(largest + 1)
			}
			if hasCohort && r.Intn(3) == 0 {
				q.lending = r.Intn(q.nominal + 1)
			}
			quotas = append(quotas, q)
		}
	}
	return quotas
}

func (s *state) randomCohorts(r *rand.Rand, resources []string) {
	for i := range r.Intn(4) {
		c := cohort{name: fmt.Sprintf("cohort-%d", i), weight: pick(r, 1, 1, 1, 2, 3)}
		if i > 0 && r.Intn(3) > 0 {
			c.parent = s.cohorts[r.Intn(i)].name
		}
		if r.Intn(3) == 0 {
			c.quotas = s.randomQuotas(r, resources, 4, c.parent != "")
		}
		s.cohorts = append(s.cohorts, c)
	}
}

func (s *state) randomQueue(r *rand.Rand, n int, resources []string) queue {
	q := queue{name: fmt.Sprintf("queue-%d", n), weight: pick(r, 1, 1, 1, 2, 3), strict: r.Intn(4) == 0,
		withinQueue:   pick(r, "Never", "LowerPriority", "LowerOrNewerEqualPriority"),
		reclaim:       pick(r, "Never", "LowerPriority", "Any", "Any"),
		borrowWithin:  "Never",
		whenCanBorrow: pick(r, "MayStopSearch", "TryNextFlavor"), whenCanPreempt: pick(r, "MayStopSearch", "TryNextFlavor")}
	if len(s.cohorts) > 0 && r.Intn(6) > 0 {
		q.cohort = s.cohorts[r.Intn(len(s.cohorts))].name
	}
	// Kueue refuses borrowWithinCohort beside reclaimWithinCohort: Never, and beside fair sharing.
	if q.reclaim != "Never" && !s.isFair && r.Intn(3) == 0 {
		q.borrowWithin = "LowerPriority"
		if r.Intn(2) == 0 {
			threshold := int32(r.Intn(3) * 100)
			q.threshold = &threshold
		}
	}
	if q.whenCanBorrow == "TryNextFlavor" && q.whenCanPreempt == "TryNextFlavor" {
		q.preference = pick(r, "", "BorrowingOverPreemption", "PreemptionOverBorrowing")
	}
	q.quotas = s.randomQuotas(r, resources, 8, q.cohort != "")
	return q
}

func (s *state) randomGang(r *rand.Rand, name string, resources []string) gang {
	g := gang{name: name, queue: s.queues[r.Intn(len(s.queues))].name, priority: int32(r.Intn(4) * 100), pods: 1 + r.Intn(3),
		requests: map[string]int{}, flavors: map[string]string{}}
	flavor := s.flavors[r.Intn(len(s.flavors))]
	for _, resource := range resources {
		if resource == resources[0] || r.Intn(2) == 0 {
			g.requests[resource] = 1 + r.Intn(3)
			g.flavors[resource] = flavor
		}
	}
	return g
}

func (s *state) makeOrderOnly() {
	for i := range s.queues {
		q := &s.queues[i]
		q.strict = false
		q.withinQueue, q.reclaim, q.borrowWithin, q.threshold = "Never", "Never", "Never", nil
	}
}

// Two or three gangs that wait in each queue. Where the two answer otherwise for one gang already is
// left to the states with one.
func (s *state) makeCrowd(r *rand.Rand, minutes []int, resources []string) {
	s.isCrowd, s.isOverfull = true, false
	for i := range s.queues {
		s.queues[i].preference = ""
	}
	for _, q := range s.queues {
		for range 2 + r.Intn(2) {
			n := len(s.waiting)
			g := s.randomGang(r, fmt.Sprintf("waits-%d", n), resources)
			g.queue = q.name
			g.created = now.Add(-time.Duration(1+minutes[n]) * time.Minute)
			s.waiting = append(s.waiting, g)
		}
	}
	for i := range s.queues {
		if s.hasLargeGang(&s.queues[i]) {
			s.queues[i].withinQueue = "Never"
		}
	}
}

// Whether a gang waits there that is larger than the queue's nominal quota.
func (s *state) hasLargeGang(q *queue) bool {
	for _, g := range s.waiting {
		for _, quota := range q.quotas {
			if g.queue == q.name && g.pods*g.requests[quota.resource] > quota.nominal {
				return true
			}
		}
	}
	return false
}

const crowdEvery = 3 // one state in so many is a crowd

const firstWaiting = 1000 // the number in the uid of the first gang that waits

func randomState(seed int64) *state {
	r := rand.New(rand.NewSource(seed))
	s := &state{seed: seed, isFair: r.Intn(2) == 0, isOverfull: r.Intn(4) == 0, isOrder: r.Intn(3) == 0}
	s.isOverfull = s.isOverfull && !s.isOrder
	resources := []string{"cpu"}
	if r.Intn(3) == 0 {
		resources = []string{"cpu", "memory"}
	}
	s.flavors = pick(r, []string{"red"}, []string{"red", "blue"})
	s.randomCohorts(r, resources)
	for i := range 1 + r.Intn(4) {
		s.queues = append(s.queues, s.randomQueue(r, i, resources))
	}
	// Times all differ, so that no order is by uid, which the two needn't share.
	minutes := r.Perm(200)
	for i := range r.Intn(7) {
		g := s.randomGang(r, fmt.Sprintf("runs-%d", i), resources)
		g.created = now.Add(-time.Duration(400+minutes[i]) * time.Minute)
		g.admitted = now.Add(-time.Duration(1+minutes[i+20]) * time.Minute)
		s.running = append(s.running, g)
	}
	if s.isOrder {
		s.makeOrderOnly()
	}
	if seed%crowdEvery == 0 {
		s.makeCrowd(r, minutes[50:], resources)
		return s
	}
	if s.isOrder {
		for i, q := range s.queues {
			g := s.randomGang(r, fmt.Sprintf("waits-%d", i), resources)
			g.queue = q.name
			g.created = now.Add(-time.Duration(1+minutes[i+50]) * time.Minute)
			s.waiting = append(s.waiting, g)
		}
		return s
	}
	g := s.randomGang(r, "waits", resources)
	g.created = now.Add(-time.Duration(300+r.Intn(300)) * time.Minute).Add(30 * time.Second)
	s.waiting = []gang{g}
	return s
}
