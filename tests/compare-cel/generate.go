package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator writes expressions that mostly have the types they should: each method gives one of a
// kind, and now and then one of any kind, so that the checkers are compared too.
type generator struct {
	*rand.Rand
	variables []variable // what the macros around declare
	names     int
}

type variable struct{ name, kind string }

func generate(seed uint64, count int) []string {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0))}
	expressions := make([]string, count)
	for i := range expressions {
		g.variables, g.names = nil, 0
		expressions[i] = g.boolean(2 + g.IntN(3))
		if g.IntN(12) == 0 {
			expressions[i] = g.damage(expressions[i])
		}
	}
	return expressions
}

func (g *generator) pick(choices ...string) string { return choices[g.IntN(len(choices))] }

// damage drops, doubles or changes one character.
func (g *generator) damage(expression string) string {
	runes := []rune(expression)
	at := g.IntN(len(runes))
	switch g.IntN(3) {
	case 0:
		return string(runes[:at]) + string(runes[at+1:])
	case 1:
		return string(runes[:at]) + string(runes[at]) + string(runes[at:])
	}
	return string(runes[:at]) + g.pick("(", ")", "[", "]", ".", "?", "\"", "1", "a", " ", "!", "-", "u", "@", "\\") + string(runes[at+1:])
}

func (g *generator) any(depth int) string {
	kinds := []func(int) string{g.boolean, g.integer, g.text, g.real, g.list, g.mapping, g.quantity, g.version, g.optional, g.unsigned, g.span, g.moment, g.octets}
	return kinds[g.IntN(len(kinds))](depth)
}

// wrong gives an expression of another kind once in a while.
func (g *generator) wrong(depth int) (string, bool) {
	switch g.IntN(40) {
	case 0:
		return g.any(depth - 1), true
	case 1:
		return "dyn(" + g.any(depth-1) + ")", true
	case 2:
		return g.attribute(), true
	}
	return "", false
}

func (g *generator) known(kind string) (string, bool) {
	var names []string
	for _, v := range g.variables {
		if v.kind == kind || v.kind == "dyn" {
			names = append(names, v.name)
		}
	}
	if len(names) == 0 || g.IntN(2) == 0 {
		return "", false
	}
	return g.pick(names...), true
}

func (g *generator) domain() string {
	return g.pick(`"gpu.nvidia.com"`, `"gpu.nvidia.com"`, `"gpu.nvidia.com"`, `"gpu.amd.com"`, `"dra.net"`, `"dra.example.com"`, `"tpu.google.com"`, `"gaudi.intel.com"`, `"resource.kubernetes.io"`, `"nowhere"`, "device.driver")
}

func (g *generator) attribute() string {
	name := g.pick("type", "productName", "uuid", "index", "minor", "driverVersion", "cudaComputeCapability", "pcieRoot", "profile", "numaNode", "rdma", "sriov", "mtu", "model", "ifName", "big", "small", "zero", "no", "unicode", "empty", "pre", "firmwareVersion", "tpuGen", "missing")
	return g.pick("device.attributes[", "device.attributes[", "device.attributes[", "device.attributes[?") + g.domain() + "]" + g.pick(".", ".", ".", ".?") + name
}

func (g *generator) boolean(depth int) string {
	if s, ok := g.known("bool"); ok {
		return s
	}
	if s, ok := g.wrong(depth); ok && depth < 4 {
		return s
	}
	if depth <= 0 {
		return g.pick("true", "false", "device.allowMultipleAllocations", g.attribute()+" == "+g.integer(0), g.attribute()+" == "+g.text(0), `device.driver == "gpu.nvidia.com"`)
	}
	d := depth - 1
	switch g.IntN(26) {
	case 0, 1, 2:
		return "(" + g.boolean(d) + " && " + g.boolean(d) + ")"
	case 3, 4, 5:
		return "(" + g.boolean(d) + " || " + g.boolean(d) + ")"
	case 6:
		return "!" + "(" + g.boolean(d) + ")"
	case 7, 8:
		return g.integer(d) + g.pick(" < ", " <= ", " > ", " >= ", " == ", " != ") + g.integer(d)
	case 9:
		return g.text(d) + g.pick(" < ", " >= ", " == ", " != ") + g.text(d)
	case 10:
		return g.text(d) + g.pick(".contains(", ".startsWith(", ".endsWith(") + g.text(d) + ")"
	case 11:
		return g.text(d) + ".matches(" + g.pattern() + ")"
	case 12, 13:
		return g.quantity(d) + g.pick(".isGreaterThan(", ".isLessThan(") + g.quantity(d) + ")"
	case 14:
		return g.version(d) + g.pick(".isGreaterThan(", ".isLessThan(") + g.version(d) + ")"
	case 15:
		return g.quantity(d) + g.pick(" == ", " != ") + g.quantity(d)
	case 16:
		return "has(" + g.attribute() + ")"
	case 17:
		return "(" + g.boolean(d) + " ? " + g.boolean(d) + " : " + g.boolean(d) + ")"
	case 18:
		return g.any(d) + " in " + g.pick(g.list(d), g.mapping(d))
	case 19:
		return g.any(d) + g.pick(" == ", " != ") + g.any(d)
	case 20:
		return g.list(d) + g.pick(".all(", ".exists(", ".exists_one(") + g.bound("int", d, g.boolean) + ")"
	case 21:
		name := g.fresh()
		kind := g.IntN(4)
		kinds := []func(int) string{g.integer, g.text, g.quantity, g.boolean}
		value := kinds[kind](d)
		return "cel.bind(" + name + ", " + value + ", " + g.with(variable{name, []string{"int", "text", "quantity", "bool"}[kind]}, d, g.boolean) + ")"
	case 22:
		return g.optional(d) + ".hasValue()"
	case 23:
		return g.real(d) + g.pick(" < ", " == ", " > ") + g.pick(g.real(d), g.integer(d), g.unsigned(d))
	case 24:
		return g.pick(g.span(d)+" < "+g.span(d), g.moment(d)+" > "+g.moment(d), g.octets(d)+" == "+g.octets(d), g.list(d)+" == "+g.list(d), g.mapping(d)+" == "+g.mapping(d), "type("+g.any(d)+") == type("+g.any(d)+")")
	}
	return g.pick("isQuantity("+g.text(d)+")", "isSemver("+g.text(d)+")", g.list(d)+".isSorted()", "sets.contains("+g.list(d)+", "+g.list(d)+")", g.list(d)+".includes("+g.integer(d)+")", "bool("+g.text(d)+")", g.quantity(d)+".isInteger()", "sets.intersects("+g.list(d)+", "+g.list(d)+")", "sets.equivalent("+g.list(d)+", "+g.list(d)+")")
}

func (g *generator) fresh() string {
	g.names++
	return fmt.Sprintf("v%d", g.names)
}

func (g *generator) with(v variable, depth int, body func(int) string) string {
	g.variables = append(g.variables, v)
	defer func() { g.variables = g.variables[:len(g.variables)-1] }()
	return body(depth)
}

// bound gives "name, body".
func (g *generator) bound(kind string, depth int, body func(int) string) string {
	name := g.fresh()
	return name + ", " + g.with(variable{name, kind}, depth, body)
}

func (g *generator) integer(depth int) string {
	if s, ok := g.known("int"); ok {
		return s
	}
	if s, ok := g.wrong(depth); ok {
		return s
	}
	if depth <= 0 {
		return g.pick("0", "1", "2", "3", "7", "-1", "100", "1024", "9223372036854775807", "-9223372036854775808", g.attribute())
	}
	d := depth - 1
	return g.pick(
		"("+g.integer(d)+g.pick(" + ", " - ", " * ", " / ", " % ")+g.integer(d)+")",
		"-("+g.integer(d)+")",
		g.text(d)+".size()", "size("+g.list(d)+")", g.mapping(d)+".size()",
		g.text(d)+g.pick(".indexOf(", ".lastIndexOf(")+g.text(d)+")",
		g.text(d)+g.pick(".indexOf(", ".lastIndexOf(")+g.text(d)+", "+g.integer(0)+")",
		g.quantity(d)+".compareTo("+g.quantity(d)+")", g.version(d)+".compareTo("+g.version(d)+")",
		g.version(d)+g.pick(".major()", ".minor()", ".patch()"),
		g.quantity(d)+".asInteger()", "sign("+g.quantity(d)+")",
		"int("+g.pick(g.text(d), g.real(d), g.unsigned(d), g.integer(d))+")",
		g.list(d)+g.pick(".sum()", ".max()", ".min()", "[0]", "[1]", ".size()"),
		g.list(d)+".indexOf("+g.integer(d)+")",
		"("+g.boolean(d)+" ? "+g.integer(d)+" : "+g.integer(d)+")",
		g.optional(d)+".orValue("+g.integer(d)+")", g.optional(d)+".value()",
		g.moment(d)+g.pick(".getHours()", ".getFullYear()", ".getDayOfYear()", ".getDayOfWeek()", ".getMonth()"),
		g.span(d)+g.pick(".getHours()", ".getSeconds()", ".getMilliseconds()"),
		g.mapping(d)+"["+g.text(0)+"]",
	)
}

func (g *generator) unsigned(depth int) string {
	if depth <= 0 {
		return g.pick("0u", "1u", "2u", "18446744073709551615u")
	}
	return g.pick("uint("+g.integer(depth-1)+")", "("+g.unsigned(depth-1)+g.pick(" + ", " - ", " * ", " / ", " % ")+g.unsigned(depth-1)+")")
}

func (g *generator) real(depth int) string {
	if depth <= 0 {
		return g.pick("0.0", "1.5", "-2.25", "1e10", "0.1", "1e300")
	}
	d := depth - 1
	return g.pick("("+g.real(d)+g.pick(" + ", " - ", " * ", " / ")+g.real(d)+")", "double("+g.pick(g.integer(d), g.text(d))+")", g.quantity(d)+".asApproximateFloat()")
}

func (g *generator) text(depth int) string {
	if s, ok := g.known("text"); ok {
		return s
	}
	if s, ok := g.wrong(depth); ok {
		return s
	}
	if depth <= 0 {
		return g.pick(`""`, `"a"`, `"gpu"`, `"NVIDIA A100"`, `'mig'`, `"1g.5gb"`, `"1"`, `"1Gi"`, `"1.2.3"`, `"é日🚀"`, `r"\d"`, `"a,b,c"`, `"pci0000:40"`, "device.driver", g.attribute())
	}
	d := depth - 1
	return g.pick(
		"("+g.text(d)+" + "+g.text(d)+")",
		g.text(d)+g.pick(".lowerAscii()", ".upperAscii()", ".trim()"),
		g.text(d)+".substring("+g.integer(0)+")", g.text(d)+".substring("+g.pick("0", "1", "2")+", "+g.pick("1", "2", "3")+")",
		g.text(d)+".replace("+g.text(0)+", "+g.text(0)+")", g.text(d)+".replace("+g.text(0)+", "+g.text(0)+", "+g.pick("-1", "0", "1")+")",
		g.text(d)+".split("+g.text(0)+")"+g.pick("[0]", "[1]", ".join()", `.join("-")`),
		g.text(d)+".charAt("+g.pick("0", "1", "5", "-1")+")",
		"string("+g.pick(g.integer(d), g.real(d), g.boolean(d), g.unsigned(d), g.span(d), g.moment(d), g.octets(d))+")",
		"("+g.boolean(d)+" ? "+g.text(d)+" : "+g.text(d)+")",
		g.text(d)+".find("+g.pattern()+")", "strings.quote("+g.text(d)+")",
		g.pick(`"%s"`, `"%d"`, `"%s-%d"`, `"%x"`, `"%.2f"`, `"%b"`)+".format(["+g.pick(g.any(d), g.any(d)+", "+g.integer(d))+"])",
		g.text(d)+".findAll("+g.pattern()+").join(\"|\")",
	)
}

func (g *generator) pattern() string {
	if g.IntN(6) == 0 {
		return g.text(0)
	}
	var b strings.Builder
	for range 1 + g.IntN(4) {
		b.WriteString(g.pick("a", "g", "1", ".", "^", "$", "[a-z]", "[^0-9]", `\d`, `\w`, `\s`, `\b`, `\B`, "(a|b)", "(?:g|p)u", "(?i)", "(?s).", "[[:alpha:]]", `\.`, "(|x)", "[]a]", "(?m)^", "(", "A100", `\x41`, `\Q.\E`))
		b.WriteString(g.pick("", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,}", "*?", "+?", "**"))
	}
	return "r'" + b.String() + "'"
}

func (g *generator) quantity(depth int) string {
	if s, ok := g.known("quantity"); ok {
		return s
	}
	if depth > 0 && g.IntN(3) == 0 {
		return g.quantity(depth-1) + g.pick(".add(", ".sub(") + g.pick(g.quantity(depth-1), g.integer(0)) + ")"
	}
	return g.pick(`quantity("1Gi")`, `quantity("40Gi")`, `quantity("100m")`, `quantity("0")`, `quantity("-5")`, `quantity("1.5Gi")`, `quantity("1e3")`, `quantity("80G")`, `quantity("100000Gi")`, `quantity("2k")`,
		"device.capacity["+g.domain()+"]."+g.pick("memory", "multiprocessors", "bandwidth", "hbm", "half", "frac", "neg", "tiny", "missing"))
}

func (g *generator) version(depth int) string {
	return g.pick(`semver("1.2.3")`, `semver("550.54.15")`, `semver("1.2.3-alpha.1")`, `semver("v1.2", true)`, "semver("+g.text(0)+")", "device.attributes["+g.domain()+"]."+g.pick("driverVersion", "cudaComputeCapability", "pre", "long", "firmwareVersion"))
}

func (g *generator) list(depth int) string {
	if depth <= 0 {
		return g.pick("[]", "[1, 2, 3]", "[3, 1, 2, 1]", "[0]", `["a", "b"]`, "[1.5, 0.5]")
	}
	d := depth - 1
	return g.pick(
		"["+g.integer(d)+", "+g.integer(d)+"]", "("+g.list(d)+" + "+g.list(d)+")",
		g.list(d)+".map("+g.bound("int", d, g.integer)+")", g.list(d)+".filter("+g.bound("int", d, g.boolean)+")",
		g.list(d)+g.pick(".sort()", ".reverse()", ".distinct()", ".slice(0, 1)", ".slice(1, 2)"),
		"lists.range("+g.pick("0", "3", "5")+")", "[?"+g.optional(d)+", "+g.integer(d)+"]",
		g.list(d)+".sortBy("+g.bound("int", d, g.integer)+")", g.text(d)+".split("+g.text(0)+").map("+g.bound("text", d, g.integer)+")",
		"["+g.list(d)+", "+g.list(d)+"].flatten()", "optional.unwrap(["+g.optional(d)+"])",
		"("+g.boolean(d)+" ? "+g.list(d)+" : "+g.list(d)+")", g.list(d)+".transformList(i, "+g.bound("int", d, g.integer)+")",
	)
}

func (g *generator) mapping(depth int) string {
	if depth <= 0 {
		return g.pick("{}", `{"a": 1}`, `{"a": 1, "gpu": 2}`, `{1: 2}`, "{true: 1}", `device.attributes["nowhere"]`)
	}
	d := depth - 1
	return g.pick("{"+g.text(0)+": "+g.integer(d)+"}", "{"+g.text(0)+": "+g.integer(d)+", "+g.text(0)+": "+g.integer(d)+"}",
		"{?"+g.text(0)+": "+g.optional(d)+"}", g.list(d)+".transformMap(i, "+g.bound("int", d, g.integer)+")", "("+g.boolean(d)+" ? "+g.mapping(d)+" : "+g.mapping(d)+")")
}

func (g *generator) optional(depth int) string {
	if depth <= 0 {
		return g.pick("optional.none()", "optional.of(1)", g.attribute(), `{"a": 1}.?a`, `{"a": 1}.?b`, "[1, 2][?1]", "[1, 2][?9]")
	}
	d := depth - 1
	return g.pick("optional.of("+g.integer(d)+")", "optional.ofNonZeroValue("+g.integer(d)+")", g.mapping(d)+"[?"+g.text(0)+"]", g.list(d)+"[?"+g.integer(0)+"]",
		g.optional(d)+".or("+g.optional(d)+")", g.optional(d)+".optMap("+g.bound("int", d, g.integer)+")", g.optional(d)+".optFlatMap("+g.bound("int", d, g.optional)+")", g.list(d)+g.pick(".first()", ".last()"))
}

func (g *generator) span(depth int) string {
	if depth <= 0 {
		return g.pick(`duration("1s")`, `duration("90m")`, `duration("-1.5h")`, `duration("1ms")`)
	}
	return g.pick("("+g.span(depth-1)+g.pick(" + ", " - ")+g.span(depth-1)+")", "("+g.moment(depth-1)+" - "+g.moment(depth-1)+")", "duration("+g.text(0)+")")
}

func (g *generator) moment(depth int) string {
	if depth <= 0 {
		return g.pick(`timestamp("2024-02-29T12:34:56Z")`, `timestamp("1999-12-31T23:59:59.999+05:30")`, "timestamp(0)")
	}
	return g.pick("("+g.moment(depth-1)+g.pick(" + ", " - ")+g.span(depth-1)+")", "timestamp("+g.integer(depth-1)+")")
}

func (g *generator) octets(depth int) string {
	return g.pick(`b"a"`, `b"\xff"`, `b""`, "bytes("+g.text(0)+")")
}
