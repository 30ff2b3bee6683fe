// Writes two files: cases, one JSON document per line behind the name of its kind, and what the
// libraries of Kubernetes answer to each, line by line.
//
//	compare CASES ANSWERS
//
// The seed is fixed, so that every run asks the same.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
)

const seed = 20261129

// How many cases of each kind are written.
const (
	quantityCases   = 8000
	templateCases   = 3000
	podCases        = 2000
	nodeCases       = 3000
	labelCases      = 2000
	tolerationCases = 3000
)

type writer struct {
	cases, answers *bufio.Writer
	random         *rand.Rand
}

func (w *writer) add(kind string, input any, answer string) {
	text, err := json.Marshal(input)
	check(err)
	_, err = fmt.Fprintf(w.cases, "%s %s\n", kind, text)
	check(err)
	_, err = fmt.Fprintln(w.answers, answer)
	check(err)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func create(path string) (*os.File, *bufio.Writer) {
	file, err := os.Create(path)
	check(err)
	return file, bufio.NewWriter(file)
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: compare CASES ANSWERS")
		os.Exit(2)
	}
	casesFile, cases := create(os.Args[1])
	answersFile, answers := create(os.Args[2])
	w := &writer{cases, answers, rand.New(rand.NewSource(seed))}

	writeQuantities(w)
	writeTemplates(w)
	writePods(w)
	writeNodeSelectors(w)
	writeLabelSelectors(w)
	writeTolerations(w)

	check(cases.Flush())
	check(answers.Flush())
	check(casesFile.Close())
	check(answersFile.Close())
}

// One of the choices, each as likely.
func pick[T any](r *rand.Rand, choices ...T) T {
	return choices[r.Intn(len(choices))]
}

// True once in n times.
func oneIn(r *rand.Rand, n int) bool {
	return r.Intn(n) == 0
}
