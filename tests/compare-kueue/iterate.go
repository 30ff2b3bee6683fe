package main

import (
	"cmp"
	"slices"

	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
)

// Who of those nominated is next, and the others. Without fair sharing: who borrows less, then
// priority, then time. With it: the winner of a tournament in each cohort, from the leaves up.
func takeNext(left []*entry, isFair bool, rules rules) (*entry, []*entry) {
	best := left[0]
	if isFair {
		best = fairest(left, rules)
	} else {
		for _, e := range left[1:] {
			if order := cmp.Compare(e.level, best.level); order < 0 ||
				order == 0 && compareGangs(e.info, best.info) < 0 {
				best = e
			}
		}
	}
	return best, slices.DeleteFunc(slices.Clone(left), func(e *entry) bool { return e == best })
}

// The share that a branch would have with the gang in it, by the gang and the cohort above.
type branchKey struct {
	parent *schdcache.CohortSnapshot
	gang   *entry
}

type tournament struct {
	byQueue map[*schdcache.ClusterQueueSnapshot]*entry
	shares  map[branchKey]schdcache.DRS
	rules   rules
}

func fairest(left []*entry, rules rules) *entry {
	if !left[0].queue.HasParent() {
		return left[0]
	}
	t := tournament{byQueue: map[*schdcache.ClusterQueueSnapshot]*entry{}, shares: map[branchKey]schdcache.DRS{}, rules: rules}
	for _, e := range left {
		t.byQueue[e.queue] = e
		if !e.queue.HasParent() {
			continue
		}
		revert := e.queue.SimulateUsageAddition(e.claim())
		share := e.queue.DominantResourceShare()
		for ancestor := range e.queue.PathParentToRoot() {
			t.shares[branchKey{ancestor, e}] = share
			share = ancestor.DominantResourceShare()
		}
		revert()
	}
	return t.winner(left[0].queue.Parent().Root())
}

func (t *tournament) winner(cohort *schdcache.CohortSnapshot) *entry {
	var best *entry
	take := func(e *entry) {
		if e != nil && (best == nil || t.isFairer(e, best, cohort)) {
			best = e
		}
	}
	for _, child := range cohort.ChildCohorts() {
		take(t.winner(child))
	}
	for _, queue := range cohort.ChildCQs() {
		take(t.byQueue[queue])
	}
	return best
}

func (t *tournament) isFairer(a, b *entry, cohort *schdcache.CohortSnapshot) bool {
	if t.rules.isAnew && a.level != b.level {
		return a.level < b.level
	}
	mine, theirs := t.shares[branchKey{cohort, a}], t.shares[branchKey{cohort, b}]
	if mineBorrows, theirsBorrows := mine.IsBorrowingOn(a.claim().Quota), theirs.IsBorrowingOn(b.claim().Quota); mineBorrows != theirsBorrows {
		return !mineBorrows
	}
	if order := schdcache.CompareDRS(mine, theirs); order != 0 {
		return order < 0
	}
	return compareGangs(a.info, b.info) < 0
}
