package main

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// The states in which the two differ on purpose, by seed, each with the kind of difference that
// docs/decisions explains.
//
//go:embed differences.txt
var differencesText string

func knownDifferences() (map[int64]string, error) {
	known := map[int64]string{}
	for number, line := range strings.Split(differencesText, "\n") {
		text, _, _ := strings.Cut(line, "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		seed, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil || len(fields) != 2 {
			return nil, fmt.Errorf("differences.txt:%d: want \"SEED KIND\", found %q", number+1, line)
		}
		known[seed] = fields[1]
	}
	return known, nil
}
