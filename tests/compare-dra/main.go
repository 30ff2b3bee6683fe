// Compares what Tallyman says of gangs with claims with what kube-scheduler's own allocator gives
// them, over random small clusters.
//
// Usage: compare-dra --bin TALLYMAN [-seed N] [-count N] [-show N] [-print]
//
// Whatever Tallyman admits, the allocator places whole, on whichever nodes the pods are put. How
// often Tallyman waits though it always would is counted by kind.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"
)

type planned struct {
	Decisions []struct {
		Name     string
		Decision string
		Reason   string
		Message  string
		PodSets  []struct{ NodeSelector map[string]string }
	}
}

type outcome struct {
	s        *state
	decision string
	why      string
	placed   int
	tries    int
	allocWhy error
	err      error
}

func ask(binary, directory string, s *state) (decision, why string, err error) {
	path := filepath.Join(directory, fmt.Sprintf("state-%d.yaml", s.seed))
	if err := os.WriteFile(path, s.manifests(), 0o600); err != nil {
		return "", "", err
	}
	defer os.Remove(path)
	command := exec.Command(binary, "plan", "-f", path, "--now", "2026-11-29T12:00:00Z", "-o", "json")
	var complaint strings.Builder
	command.Stderr = &complaint
	output, err := command.Output()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() == 2) {
		return "", "", fmt.Errorf("%w: %s", err, complaint.String())
	}
	var plan planned
	if err := json.Unmarshal(output, &plan); err != nil {
		return "", "", fmt.Errorf("%w in %q", err, output)
	}
	if len(plan.Decisions) != len(s.gangs()) {
		return "", "", fmt.Errorf("%d decisions for %d gangs", len(plan.Decisions), len(s.gangs()))
	}
	for _, d := range plan.Decisions {
		for _, g := range s.gangs() {
			if g.name == d.Name {
				g.isAdmitted = d.Decision == "Admit"
				g.pin = d.PodSets[0].NodeSelector
			}
		}
		if d.Name == s.name {
			decision, why = d.Decision, d.Reason+": "+d.Message
		}
	}
	return decision, why, nil
}

func judge(binary, directory string, seed int64) outcome {
	s := newState(seed)
	o := outcome{s: s}
	o.decision, o.why, o.err = ask(binary, directory, s)
	gangs := []*gang{&s.gang}
	if s.other != nil && s.other.isAdmitted {
		gangs = append(gangs, s.other)
	}
	if s.other != nil && !s.isAdmitted {
		gangs = gangs[1:] // whether one waits beyond need isn't asked beside another
		o.decision = "Admit"
	}
	o.placed, o.tries, o.allocWhy = s.judge(gangs)
	return o
}

func main() {
	binary := flag.String("bin", "tallyman", "the program to ask")
	seed := flag.Int64("seed", 1, "the first state")
	count := flag.Int64("count", 4000, "how many states")
	show := flag.Int("show", 5, "how many waits beyond need are told in full")
	print := flag.Bool("print", false, "show the first state's manifests")
	flag.Parse()
	if *print {
		os.Stdout.Write(newState(*seed).manifests())
		*count = 1
	}
	directory, err := os.MkdirTemp("", "compare-dra")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	defer os.RemoveAll(directory)
	outcomes := make([]outcome, *count)
	var group sync.WaitGroup
	next := make(chan int64)
	for range runtime.NumCPU() {
		group.Go(func() {
			for i := range next {
				outcomes[i] = judge(*binary, directory, *seed+i)
			}
		})
	}
	for i := range *count {
		next <- i
	}
	close(next)
	group.Wait()
	os.Exit(report(outcomes, *show))
}

func report(outcomes []outcome, show int) int {
	failed, admitted, always, waits, both := 0, 0, 0, 0, 0
	byKind := map[string]int{}
	for _, o := range outcomes {
		if o.s.other != nil && o.s.other.isAdmitted && o.s.isAdmitted {
			both++
		}
		switch {
		case o.err != nil:
			failed++
			fmt.Printf("FAIL seed %d: %v\n", o.s.seed, o.err)
		case o.decision == "Admit" && o.placed < o.tries:
			failed++
			fmt.Printf("FAIL seed %d (%s): admitted, and placed whole in %d of %d orders: %v\n",
				o.s.seed, o.s.kind(), o.placed, o.tries, o.allocWhy)
		case o.decision == "Admit":
			admitted++
			always++
		case o.placed == o.tries:
			always++
			waits++
			byKind[o.s.kind()]++
			if waits <= show {
				fmt.Printf("waits beyond need: seed %d (%s): %s\n", o.s.seed, o.s.kind(), o.why)
			}
		}
	}
	var kinds []string
	for kind := range byKind {
		kinds = append(kinds, kind)
	}
	sort.Slice(kinds, func(i, j int) bool {
		if byKind[kinds[i]] != byKind[kinds[j]] {
			return byKind[kinds[i]] > byKind[kinds[j]]
		}
		return kinds[i] < kinds[j]
	})
	for _, kind := range kinds {
		fmt.Printf("  %4d waits beyond need: %s\n", byKind[kind], kind)
	}
	fmt.Printf("%d states, %d of them placed whole in every order: %d admitted, %d wait beyond need\n",
		len(outcomes), always, admitted, waits)
	fmt.Printf("in %d states two gangs are admitted together\n", both)
	fmt.Printf("%d passed, %d failed\n", len(outcomes)-failed, failed)
	if failed > 0 {
		return 1
	}
	return 0
}
