// Compares Tallyman's answers with Kueue's own, over random states, where their rules are the same.
//
// Each state goes to Kueue as objects in its cache, and to `tallyman plan` as manifests. One gang
// waits, or one in each queue, or two or three in each; what is compared is who starts, on which
// flavors, and who is preempted.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

type planned struct {
	Decisions []struct {
		Name     string
		Decision string
		Reason   string
		Message  string
		Victims  []string
		PodSets  []struct {
			Flavors map[string]string
		}
	}
}

func askTallyman(binary string, s *state, directory string) (map[string]answer, error) {
	path := filepath.Join(directory, fmt.Sprintf("state-%d.json", s.seed))
	if err := os.WriteFile(path, s.manifests(), 0o600); err != nil {
		return nil, err
	}
	defer os.Remove(path)
	command := exec.Command(binary, "plan", "-f", path, "--now", now.Format(time.RFC3339), "-o", "json")
	var complaint strings.Builder
	command.Stderr = &complaint
	output, err := command.Output()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() == 2) {
		return nil, fmt.Errorf("%w: %s", err, complaint.String())
	}
	var plan planned
	if err := json.Unmarshal(output, &plan); err != nil {
		return nil, fmt.Errorf("%w in %q %s", err, output, complaint.String())
	}
	answers := map[string]answer{}
	for _, d := range plan.Decisions {
		result := answer{decision: d.Decision, why: d.Reason + " " + d.Message}
		for _, victim := range d.Victims {
			result.victims = append(result.victims, strings.TrimPrefix(victim, "quay/"))
		}
		sort.Strings(result.victims)
		if d.Decision != "Wait" {
			for _, podSet := range d.PodSets {
				for resource, flavor := range podSet.Flavors {
					result.flavors = append(result.flavors, resource+"="+flavor)
				}
			}
			sort.Strings(result.flavors)
		}
		answers[d.Name] = result
	}
	return answers, nil
}

func isSame(a, b answer) bool {
	return a.decision == b.decision && strings.Join(a.flavors, " ") == strings.Join(b.flavors, " ") &&
		strings.Join(a.victims, " ") == strings.Join(b.victims, " ")
}

type comparison struct {
	state           *state
	kueue, tallyman map[string]answer
	anew            map[string]answer // of a crowd: Kueue's, when it ranks after each
	kind            string            // of a difference that is understood without being listed
	isTold          bool              // step by step
	err             error
}

func (c *comparison) isSame() bool {
	for _, g := range c.state.waiting {
		if !isSame(c.kueue[g.name], c.tallyman[g.name]) {
			return false
		}
	}
	return isSame(c.kueue[everyVictim], c.tallyman[everyVictim])
}

func compare(binary string, seed int64, directory string, isTold bool) comparison {
	result := comparison{state: randomState(seed), isTold: isTold}
	if result.state.isCrowd {
		compareCrowd(binary, directory, &result)
		return result
	}
	if result.state.isOrder {
		compareOrder(binary, directory, &result)
		return result
	}
	var asked *question
	if result.kueue, asked, result.err = askKueue(result.state); result.err != nil {
		result.err = fmt.Errorf("kueue: %w", result.err)
		return result
	}
	if result.tallyman, result.err = askTallyman(binary, result.state, directory); result.err != nil {
		result.err = fmt.Errorf("tallyman: %w", result.err)
		return result
	}
	if !result.isSame() {
		asked.tallyman = result.tallyman[result.state.waiting[0].name]
		result.kind = asked.explain()
	}
	return result
}

// One gang waits in each queue, and nobody preempts.
func compareOrder(binary, directory string, result *comparison) {
	if result.kueue, result.err = runKueue(result.state); result.err != nil {
		result.err = fmt.Errorf("kueue: %w", result.err)
		return
	}
	if result.tallyman, result.err = askTallyman(binary, result.state, directory); result.err != nil {
		result.err = fmt.Errorf("tallyman: %w", result.err)
		return
	}
	if !result.isSame() {
		explainByRules(binary, directory, result)
	}
}

func main() {
	binary := flag.String("bin", "build/rel/tallyman", "the program")
	first := flag.Int64("seed", 1, "the first state")
	count := flag.Int64("count", 2500, "how many states")
	show := flag.Int("show", 5, "differences that are told whole")
	isPrinting := flag.Bool("print", false, "print the manifests of the first state, and both answers")
	flag.Parse()
	directory, err := os.MkdirTemp("", "compare-kueue-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	defer os.RemoveAll(directory)
	if *isPrinting {
		result := compare(*binary, *first, directory, true)
		fmt.Printf("%s\n# kueue:    %v\n# tallyman: %v\n# error:    %v\n", result.state.manifests(), result.kueue, result.tallyman, result.err)
		return
	}
	seeds := make(chan int64)
	results := make(chan comparison)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for seed := range seeds {
				results <- compare(*binary, seed, directory, false)
			}
		})
	}
	go func() {
		for seed := *first; seed < *first+*count; seed++ {
			seeds <- seed
		}
		close(seeds)
		workers.Wait()
		close(results)
	}()
	os.Exit(report(results, *show))
}

type tally struct {
	passed, failed, panicked int
	decisions                map[string]int
	kinds                    map[string]int
}

func (t *tally) take(result *comparison) string {
	switch {
	case errors.Is(result.err, errPanic):
		t.panicked++
		return ""
	case result.err != nil:
		t.failed++
		return result.err.Error()
	case result.isSame():
		t.passed++
		for _, g := range result.state.waiting {
			t.decisions[result.kueue[g.name].decision]++
		}
		return ""
	case result.kind != "":
		t.passed++
		for _, kind := range strings.Fields(result.kind) {
			t.kinds[kind]++
		}
		return ""
	}
	t.failed++
	return "they differ"
}

func (t *tally) print() {
	fmt.Printf("    agreed: %d Admit, %d Preempt, %d Wait\n", t.decisions["Admit"], t.decisions["Preempt"], t.decisions["Wait"])
	for _, kind := range slices.Sorted(maps.Keys(t.kinds)) {
		fmt.Printf("    differ on purpose: %d %s\n", t.kinds[kind], kind)
	}
	if t.panicked > 0 {
		fmt.Printf("    left out: %d states in which Kueue's code panics\n", t.panicked)
	}
	fmt.Printf("%d passed, %d failed\n", t.passed, t.failed)
}

func report(results <-chan comparison, show int) int {
	t := tally{decisions: map[string]int{}, kinds: map[string]int{}}
	for result := range results {
		trouble := t.take(&result)
		if trouble == "" || t.failed > show {
			continue
		}
		s := result.state
		fmt.Printf("    seed %d (crowd %v, order %v, fair %v, overfull %v): %s\n", s.seed, s.isCrowd, s.isOrder, s.isFair, s.isOverfull, trouble)
		for _, name := range slices.Sorted(maps.Keys(result.kueue)) {
			fmt.Printf("      %-8s kueue    %s\n      %-8s tallyman %s\n", name, result.kueue[name], name, result.tallyman[name])
			if result.anew != nil {
				fmt.Printf("      %-8s anew     %s\n", name, result.anew[name])
			}
		}
	}
	t.print()
	if t.failed > 0 {
		return 1
	}
	return 0
}
