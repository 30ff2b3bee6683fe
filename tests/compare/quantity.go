package main

import (
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"strings"

	inf "gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Texts that are known to be read in surprising ways, or not at all.
var quantityTexts = []string{
	"", "0", "-0", "+0", "000", "+", "-", ".", "..", "+.", "k", "Ki", "E", "e3", "e-9", "e-10", ".e-12",
	".0e-12", "-e-20", "1e", "1E", "1Ei", "1e3", "1E3", "1E+3", "1E-3", "1e+", "1e-", "0.5", ".5", "+1",
	"1.", "1..", "1.2.3", "--1", "+-1", "100m", "1Ki", "1k", "1K", "1KI", "1ki", "1G", "1Gi", "7.5Ti",
	"3.8Ti", "1500m", "1u", "1n", "0.1n", "0.5n", "-0.1n", "0x10", " 1", "1 ", "1 Gi", "1Gi ", "1_000",
	"1,5", "１", "1µ", "1e30", "1e400", "-1e30", "1e-30", "-1e-30", "1e-400", "0e-400",
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "9223372036854775807n",
	"9223372036854775807Ki", "8Ei", "7.999999999999999999999Ei", "-8Ei", "9223372036854775807m",
	"9007199254740992Ki", "18446744073709551616Ki", "4611686018427387904Ei", "9007199254740991.9999999999999Ki", "0.0000000001Ki", "1e4294967296",
	"1e4294967295", "1e-4294967296", "1e9223372036854775807", "1e9223372036854775808",
	"1e99999999999999999999", "0e99999999999999999999", "1e999999999", "-1e999999999", "1e0000003",
	"0001.50", "1.500", "1.0000000001", "1.0000000000000000000000000000000001",
	"123456789012345678901234567890", "123456789012345678901234567890.5Mi", "1m5", "1mm", "1nn", "1Kim",
	"1KiKi", "1mi", "1ei", "1EE", "1e3Ki", "1Kie3", "1e5.", "1e 3", "Infinity", "NaN", "nan", "1i", "1T",
	"1P", "1M", "1M1", "1M-1", "1+1", "1-1", "1e3e3", "0Q", "1\x00", "1\n", "\t1",
}

func randomDigits(r *rand.Rand, most int) string {
	var text strings.Builder
	for range r.Intn(most + 1) {
		text.WriteByte(byte('0' + r.Intn(10)))
	}
	if oneIn(r, 4) {
		return strings.Repeat("0", r.Intn(12)) + text.String() + strings.Repeat("0", r.Intn(12))
	}
	return text.String()
}

func randomSuffix(r *rand.Rand) string {
	switch r.Intn(8) {
	case 0, 1:
		return ""
	case 2, 3:
		return pick(r, "n", "u", "m", "k", "M", "G", "T", "P", "E")
	case 4, 5:
		return pick(r, "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
	case 6:
		return pick(r, "e", "E") + pick(r, "", "+", "-") + fmt.Sprint(r.Intn(25))
	}
	return pick(r, "e", "E") + pick(r, "", "+", "-") + fmt.Sprint(r.Intn(300))
}

func grammarText(r *rand.Rand) string {
	text := pick(r, "", "", "", "+", "-") + randomDigits(r, pick(r, 3, 10, 25))
	if oneIn(r, 3) {
		text += "." + randomDigits(r, pick(r, 3, 12, 40))
	}
	return text + randomSuffix(r)
}

func mutate(r *rand.Rand, text string) string {
	const alphabet = "0123456789+-.eEinumkKMGTP xX_\x01é"
	bytes := []byte(text)
	for range 1 + r.Intn(2) {
		at := r.Intn(len(bytes) + 1)
		letter := string(pick(r, []rune(alphabet)...))
		switch {
		case oneIn(r, 3) && at < len(bytes):
			bytes = append(bytes[:at:at], bytes[at+1:]...)
		case oneIn(r, 2) && at < len(bytes):
			bytes = append(append(bytes[:at:at], letter...), bytes[at+1:]...)
		default:
			bytes = append(append(bytes[:at:at], letter...), bytes[at:]...)
		}
	}
	return strings.ToValidUTF8(string(bytes), "?")
}

// The library itself doesn't end in useful time for these: it writes the power of ten out.
func isTooCostly(text string) bool {
	at := strings.LastIndexAny(text, "eE")
	if at < 0 {
		return false
	}
	var exponent big.Int
	if _, ok := exponent.SetString(strings.TrimLeft(text[at+1:], "+"), 10); !ok || !exponent.IsInt64() {
		return false
	}
	kept := int64(int32(exponent.Int64()))
	return kept < -2000 || (kept > 2000 && strings.Trim(text[:at], "+1") != "")
}

var (
	unitsMax    = inf.NewDec(math.MaxInt64, 0)
	scaleWanted = map[string]inf.Scale{"units": 0, "milli": 3, "nano": 9}
)

// No amount is kept that is larger than the largest int64 of whole units, either way.
func clamp(value *inf.Dec) *inf.Dec {
	if value.Sign() == 0 {
		return inf.NewDec(0, 0)
	}
	if value.Scale() < -1000 {
		value = inf.NewDec(int64(value.Sign()), -1000)
	}
	if value.Cmp(unitsMax) > 0 {
		return unitsMax
	}
	if least := new(inf.Dec).Neg(unitsMax); value.Cmp(least) < 0 {
		return least
	}
	return value
}

func rounded(value *inf.Dec, unit string, rounder inf.Rounder) string {
	scale := scaleWanted[unit]
	whole := new(inf.Dec).Round(value, scale, rounder).UnscaledBig()
	if unit != "nano" {
		if whole.Sign() > 0 && !whole.IsInt64() {
			whole = big.NewInt(math.MaxInt64)
		}
		if whole.Sign() < 0 && !whole.IsInt64() {
			whole = big.NewInt(math.MinInt64)
		}
	}
	return whole.String()
}

// Value() and MilliValue() are what the scheduler uses; where they don't overflow they have to agree
// with the exact rounding, or this program asks the wrong thing.
func checkRounding(text string, quantity resource.Quantity) {
	exact := quantity.DeepCopy()
	value := clamp(exact.AsDec())
	if value.Sign() < 0 || value.Cmp(inf.NewDec(resource.MaxMilliValue-1, 0)) > 0 {
		return
	}
	units, milli := fmt.Sprint(quantity.Value()), fmt.Sprint(quantity.MilliValue())
	if units != rounded(value, "units", inf.RoundUp) || milli != rounded(value, "milli", inf.RoundUp) {
		check(fmt.Errorf("%q: Value %s, MilliValue %s don't fit %s", text, units, milli, value))
	}
}

func quantityAnswer(text string) string {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return "invalid"
	}
	checkRounding(text, quantity)
	value := clamp(quantity.AsDec())
	return fmt.Sprintf("nano=%s units=%s/%s milli=%s/%s", rounded(value, "nano", inf.RoundUp),
		rounded(value, "units", inf.RoundUp), rounded(value, "units", inf.RoundDown),
		rounded(value, "milli", inf.RoundUp), rounded(value, "milli", inf.RoundDown))
}

func writeQuantities(w *writer) {
	texts := quantityTexts
	for len(texts) < quantityCases {
		text := grammarText(w.random)
		if oneIn(w.random, 3) {
			text = mutate(w.random, text)
		}
		texts = append(texts, text)
	}
	for _, text := range texts {
		if isTooCostly(text) {
			text = "1"
		}
		w.add("quantity", map[string]string{"text": text}, quantityAnswer(text))
	}
}
