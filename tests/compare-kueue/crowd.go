package main

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Nothing that waits or runs is there twice, so this many plans are never needed.
const planLimit = 40

// Several gangs wait in a queue. What is compared is who runs on which flavors, and who was stopped
// for it, when nothing changes any more.
//
// Kueue ranks the heads of all queues once a cycle, and lets several of them start in it. Tallyman
// ranks again whenever somebody has started. Where that alone makes the difference, Kueue's own
// code answers as Tallyman does if a cycle ends with the first who starts or preempts; then the
// difference is of the kind "ranked-anew".
func compareCrowd(binary, directory string, result *comparison) {
	if result.kueue, result.err = driveKueue(result.state, rules{}); result.err != nil {
		result.err = fmt.Errorf("kueue: %w", result.err)
		return
	}
	if result.state.isOrder {
		if result.err = checkDriver(result.state, result.kueue); result.err != nil {
			return
		}
	}
	if result.tallyman, result.err = settleTallyman(binary, directory, result.state); result.err != nil {
		result.err = fmt.Errorf("tallyman: %w", result.err)
		return
	}
	if result.isSame() {
		return
	}
	for _, other := range []struct {
		kind  string
		rules rules
	}{{"strict-impossible", rules{passesImpossible: true}}, {"ranked-anew", rules{passesImpossible: true, isAnew: true}}} {
		if result.anew, result.err = driveKueue(result.state, other.rules); result.err != nil {
			result.err = fmt.Errorf("kueue, %s: %w", other.kind, result.err)
			return
		}
		if (&comparison{state: result.state, kueue: result.anew, tallyman: result.tallyman}).isSame() {
			result.kind = other.kind
			return
		}
	}
}

// The cycles that are driven here must end as those of Kueue's whole scheduler do.
func checkDriver(s *state, driven map[string]answer) error {
	whole, err := runKueue(s)
	if err != nil {
		return fmt.Errorf("kueue: %w", err)
	}
	for _, g := range s.waiting {
		if !isSame(whole[g.name], driven[g.name]) {
			return fmt.Errorf("kueue's scheduler says of %s: %s; its cycles driven here: %s", g.name, whole[g.name], driven[g.name])
		}
	}
	return nil
}

// Plans again and again, each time with those started that were to start, and without those that
// were to stop. A gang that others are stopped for has its room for certain.
func settleTallyman(binary, directory string, s *state) (map[string]answer, error) {
	rest := *s
	rest.running, rest.waiting = slices.Clone(s.running), slices.Clone(s.waiting)
	final := map[string]answer{}
	for _, g := range s.waiting {
		final[g.name] = answer{decision: "Wait"}
	}
	victims := []string{}
	for range planLimit {
		answers, err := askTallyman(binary, &rest, directory)
		if err != nil {
			return nil, err
		}
		stopped := rest.apply(answers, final)
		if stopped == nil {
			sort.Strings(victims)
			final[everyVictim] = answer{victims: victims}
			return final, nil
		}
		victims = append(victims, stopped...)
	}
	return nil, fmt.Errorf("it did not come to rest in %d plans", planLimit)
}

// Returns who was stopped; nil if nothing has changed.
func (s *state) apply(answers, final map[string]answer) []string {
	var stopped []string
	hasChanged := false
	for i := range s.waiting {
		g := &s.waiting[i]
		found := answers[g.name]
		if g.isGone || found.decision != "Admit" && found.decision != "Preempt" {
			continue
		}
		hasChanged = true
		stopped = append(stopped, found.victims...)
		flavors := map[string]string{}
		for _, pair := range found.flavors {
			resource, flavor, _ := strings.Cut(pair, "=")
			flavors[resource] = flavor
		}
		*g = g.startedAs(i, flavors)
		final[g.name] = answer{decision: "Admit", flavors: found.flavors}
	}
	for _, name := range stopped {
		for _, gangs := range [][]gang{s.running, s.waiting} {
			for i := range gangs {
				gangs[i].isGone = gangs[i].isGone || gangs[i].name == name
			}
		}
		if _, hasWaited := final[name]; hasWaited {
			final[name] = answer{decision: "Stopped"}
		}
	}
	if hasChanged && stopped == nil {
		stopped = []string{}
	}
	return stopped
}
