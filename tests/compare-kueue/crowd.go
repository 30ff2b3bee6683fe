package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Nothing that waits or runs is there twice, so this many plans are never needed.
const planLimit = 40

// Several gangs wait in a queue. What is compared is who runs on which flavors, and who was stopped
// for it, when nothing changes any more.
//
// Kueue ranks the heads of all queues once a cycle, and lets several of them start in it. Tallyman
// ranks again whenever somebody has started, and goes on otherwise in more ways (laterRules).
func compareCrowd(binary, directory string, result *comparison) {
	if result.kueue, result.err = driveKueue(result.state, rules{}, result.isTold); result.err != nil {
		result.err = fmt.Errorf("kueue: %w", result.err)
		return
	}
	if result.state.isOrder {
		if result.err = checkDriver(result.state, result.kueue); result.err != nil {
			return
		}
	}
	if result.tallyman, result.err = settleTallyman(binary, directory, result.state, result.isTold); result.err != nil {
		result.err = fmt.Errorf("tallyman: %w", result.err)
		return
	}
	if !result.isSame() {
		explainByRules(binary, directory, result)
	}
}

// Kueue's cycles with one thing after the other changed, until they end as Tallyman's passes do.
func explainByRules(binary, directory string, result *comparison) {
	for _, other := range laterRules() {
		if result.isTold {
			fmt.Printf("%s:\n", other.kind)
		}
		if result.anew, result.err = driveKueue(result.state, other.rules, result.isTold); result.err != nil {
			result.err = fmt.Errorf("kueue, %s: %w", other.kind, result.err)
			return
		}
		if (&comparison{state: result.state, kueue: result.anew, tallyman: result.tallyman}).isSame() {
			result.kind = other.kind
			return
		}
	}
	if result.isTold {
		fmt.Println("step by step:")
	}
	result.kind, result.err = followTallyman(ctrl.LoggerInto(context.Background(), logr.Discard()), binary, directory, result)
	if result.err == nil && result.kind == "" && result.isSameButForNothing() {
		result.kind = "started-for-nothing"
	}
}

// Kueue has started gangs and stopped them again, which Tallyman has never started: apart from these
// the two end alike.
func (c *comparison) isSameButForNothing() bool {
	kueue := maps.Clone(c.kueue)
	victims := slices.Clone(kueue[everyVictim].victims)
	for _, g := range c.state.waiting {
		if kueue[g.name].decision == "Stopped" && c.tallyman[g.name].decision == "Wait" {
			kueue[g.name] = c.tallyman[g.name]
			victims = slices.DeleteFunc(victims, func(name string) bool { return name == g.name })
		}
	}
	kueue[everyVictim] = answer{victims: victims}
	return (&comparison{state: c.state, kueue: kueue, tallyman: c.tallyman}).isSame()
}

type namedRules struct {
	kind  string
	rules rules
}

// What Tallyman does otherwise than Kueue where several gangs wait; each with all those before it.
func laterRules() []namedRules {
	all := []namedRules{}
	now := rules{}
	add := func(kind string, change func()) {
		change()
		all = append(all, namedRules{kind, now})
	}
	add("strict-impossible", func() { now.passesImpossible = true })
	add("ranked-anew", func() { now.isAnew = true })
	add("freed-later", func() { now.freesLater = true })
	add("keeps-nothing", func() { now.keepsNothing = true })
	add("guaranteed-part", func() { now.hasGuaranteed = true })
	add("ranked-as-is", func() { now.ranksAsIs = true })
	add("asked-whole", func() { now.asksWhole = true })
	add("looks-again", func() { now.looksAgain = true })
	return all
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
func settleTallyman(binary, directory string, s *state, isTold bool) (map[string]answer, error) {
	rest, final := s.copied(), s.nobodyYet()
	victims := []string{}
	for range planLimit {
		answers, err := askTallyman(binary, rest, directory)
		if err != nil {
			return nil, err
		}
		if isTold {
			fmt.Println("    -- a plan")
			for _, name := range slices.Sorted(maps.Keys(answers)) {
				if answers[name].decision != "Keep" {
					fmt.Printf("    %s: %s\n", name, answers[name])
				}
			}
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

func (s *state) copied() *state {
	rest := *s
	rest.running, rest.waiting = slices.Clone(s.running), slices.Clone(s.waiting)
	return &rest
}

func (s *state) nobodyYet() map[string]answer {
	final := map[string]answer{}
	for _, g := range s.waiting {
		final[g.name] = answer{decision: "Wait"}
	}
	return final
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
