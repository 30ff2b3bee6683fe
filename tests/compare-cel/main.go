// Compares Tallyman's CEL with the scheduler's: the same expressions over the same devices.
//
// Usage: compare-cel -answer PROGRAM [-seed N] [-count N] CORPUS...
package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func lines(path string) []string {
	data, err := os.ReadFile(path)
	fail(err)
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func attribute(kind, value string) resourceapi.DeviceAttribute {
	switch kind {
	case "int":
		n, err := strconv.ParseInt(value, 10, 64)
		fail(err)
		return resourceapi.DeviceAttribute{IntValue: &n}
	case "bool":
		b := value == "true"
		return resourceapi.DeviceAttribute{BoolValue: &b}
	case "version":
		return resourceapi.DeviceAttribute{VersionValue: &value}
	}
	return resourceapi.DeviceAttribute{StringValue: &value}
}

func readDevices(path string) []cel.Device {
	var all []cel.Device
	var device cel.Device
	for _, line := range lines(path) {
		word, rest, _ := strings.Cut(line, " ")
		key, value, _ := strings.Cut(rest, " ")
		switch {
		case line == "" || line[0] == '#':
		case word == "device":
			device = cel.Device{
				Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{},
				Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{},
			}
		case word == "driver":
			device.Driver = rest
		case word == "allow":
			if rest != "-" {
				allow := rest == "true"
				device.AllowMultipleAllocations = &allow
			}
		case word == "end":
			all = append(all, device)
		case word == "capacity":
			device.Capacity[resourceapi.QualifiedName(key)] = resourceapi.DeviceCapacity{Value: resource.MustParse(value)}
		default:
			device.Attributes[resourceapi.QualifiedName(key)] = attribute(word, value)
		}
	}
	return all
}

// compile turns a panic of the reference into what it is to a caller: no program.
func compile(expression string) (result cel.CompilationResult, message string) {
	defer func() {
		if r := recover(); r != nil {
			message = fmt.Sprint("panic: ", r)
		}
	}()
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true})
	result = compiler.CompileCELExpression(expression, cel.Options{DisableCostEstimation: true})
	if result.Error != nil {
		message = result.Error.Detail
		if message == "" {
			message = "error"
		}
	}
	return result, message
}

func matches(program cel.CompilationResult, device cel.Device) (letter byte, message string) {
	defer func() {
		if r := recover(); r != nil {
			letter, message = 'X', fmt.Sprint("panic: ", r)
		}
	}()
	ok, _, err := program.DeviceMatches(context.Background(), device)
	switch {
	case err != nil:
		return 'X', err.Error()
	case ok:
		return 'T', ""
	}
	return 'F', ""
}

// answer gives one letter per device, '?' where the reference itself isn't of one mind (it walks
// over maps in random order), or "E".
func answer(expression string, devices []cel.Device) (string, string) {
	program, message := compile(expression)
	if message != "" {
		return "E", message
	}
	var letters []byte
	var first string
	for _, device := range devices {
		letter, message := matches(program, device)
		for try := 0; try < 2 && strings.Contains(expression, "device.attributes.") || try < 1; try++ {
			if again, _ := matches(program, device); again != letter {
				letter = '?'
			}
		}
		if first == "" {
			first = message
		}
		letters = append(letters, letter)
	}
	return string(letters), first
}

func ask(program, devices string, expressions []string) []string {
	command := exec.Command(program, devices)
	command.Stdin = strings.NewReader(strings.Join(expressions, "\n") + "\n")
	command.Stderr = os.Stderr
	output, err := command.Output()
	fail(err)
	var answers []string
	scanner := bufio.NewScanner(bytes.NewReader(output))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		answers = append(answers, scanner.Text())
	}
	if len(answers) != len(expressions) {
		fail(fmt.Errorf("%d answers to %d expressions", len(answers), len(expressions)))
	}
	return answers
}

func agree(theirs, ours string) bool {
	if len(theirs) != len(ours) {
		return false
	}
	for i := range theirs {
		// A limit of ours is an error of theirs: the scheduler makes no difference.
		o := ours[i]
		if o == 'L' {
			o = 'X'
		}
		if theirs[i] != o && theirs[i] != '?' {
			return false
		}
	}
	return true
}

// readAllowed reads "reason<TAB>expression" lines: where a disagreement is known and explained.
func readAllowed(path string) map[string]string {
	allowed := map[string]string{}
	for _, line := range lines(path) {
		if reason, expression, found := strings.Cut(line, "\t"); found && line[0] != '#' {
			allowed[expression] = reason
		}
	}
	return allowed
}

func main() {
	program := flag.String("answer", "", "the program that answers for Tallyman")
	devicesPath := flag.String("devices", "devices.txt", "the devices")
	allowedPath := flag.String("allowed", "allowed.txt", "known disagreements")
	seed := flag.Uint64("seed", 1, "of the generated expressions")
	count := flag.Int("count", 5000, "how many are generated")
	verbose := flag.Bool("v", false, "print every answer")
	flag.Parse()

	devices := readDevices(*devicesPath)
	allowed := readAllowed(*allowedPath)
	var expressions []string
	for _, path := range flag.Args() {
		for _, line := range lines(path) {
			if line != "" && !strings.HasPrefix(line, "#") {
				expressions = append(expressions, line)
			}
		}
	}
	written := len(expressions)
	expressions = append(expressions, generate(*seed, *count)...)
	ours := ask(*program, *devicesPath, expressions)

	passed, failed, known, compiled := 0, 0, 0, 0
	for i, expression := range expressions {
		theirs, theirMessage := answer(expression, devices)
		our, ourMessage, _ := strings.Cut(ours[i], "\t")
		if theirs != "E" {
			compiled++
		}
		if *verbose {
			fmt.Printf("%s %s %s\n    theirs: %.300s\n    ours:   %s\n", theirs, our, expression, theirMessage, ourMessage)
		}
		if agree(theirs, our) {
			passed++
			continue
		}
		if reason, found := allowed[expression]; found {
			known++
			fmt.Printf("KNOWN %s: %s\n", reason, expression)
			continue
		}
		failed++
		fmt.Printf("DISAGREE %s\n    theirs: %s %.300s\n    ours:   %s %s\n", expression, theirs, theirMessage, our, ourMessage)
	}
	fmt.Printf("%d written and %d generated expressions, %d of them compile, %d devices; %d known to differ\n",
		written, len(expressions)-written, compiled, len(devices), known)
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
