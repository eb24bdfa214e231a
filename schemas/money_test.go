package schemas

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/storestream/storestream/internal/rounds"
	"pgregory.net/rapid"
)

// reference reads text as an unscaled decimal by math/big. It returns nil if the value does not fit.
func reference(text string, precision, scale int) *big.Int {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	r.Mul(r, new(big.Rat).SetInt(power(scale)))
	v := new(big.Int).Set(r.Num())
	if !r.IsInt() {
		return nil
	}
	if new(big.Int).Abs(v).Cmp(power(precision)) >= 0 {
		return nil
	}
	return v
}

func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// javaBytes is BigInteger.toByteArray: the shortest two's complement.
func javaBytes(v *big.Int) []byte {
	bits := v.BitLen()
	if v.Sign() < 0 {
		bits = new(big.Int).Not(v).BitLen()
	}
	n := bits/8 + 1
	out := make([]byte, n)
	if v.Sign() < 0 {
		v = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	return v.FillBytes(out)
}

// printed is d in JSON.
func printed(d decimal, scale int) string {
	return string(decimalCodec(maxPrecision, scale).toJSON(nil, d.appendBytes(nil)))
}

// checkMoney compares one text with the reference.
func checkMoney(t interface{ Fatalf(string, ...any) }, text string, precision, scale int) {
	want := reference(text, precision, scale)
	d, ok := parseDecimal([]byte(text), precision, scale)
	if ok != (want != nil) {
		t.Fatalf("%q as decimal(%d, %d): fits %v, expected %v", text, precision, scale, ok, want)
	}
	if !ok {
		return
	}
	bytes := javaBytes(want)
	if got := d.appendBytes(nil); hex.EncodeToString(got[1:]) != hex.EncodeToString(bytes) ||
		int(got[0]) != 2*len(bytes) {
		t.Fatalf("%q as decimal(%d, %d) is %x, expected %x", text, precision, scale, got, bytes)
	}
	printed := printed(d, scale)
	r, parsed := new(big.Rat).SetString(printed)
	if !parsed || r.Mul(r, new(big.Rat).SetInt(power(scale))).Cmp(new(big.Rat).SetInt(want)) != 0 {
		t.Fatalf("%q at scale %d is printed as %q", text, scale, printed)
	}
}

// Money that passes through a float, or an encoder that floors, loses a cent.
func TestMoneyIsExactInEveryFormThatTheServiceGivesIt(t *testing.T) {
	for _, c := range []struct{ text, printed, unscaled string }{
		{"49", "49", "02a802f8630a240000"},
		{"49.5", "49.5", "02aef353bcddd60000"},
		{"49.50", "49.5", "02aef353bcddd60000"},
		{"0049.50", "49.5", "02aef353bcddd60000"},
		{"59.990001678466797", "59.990001678466797", "0340874caf9819cdc8"},
		{"1e3", "1000", "3635c9adc5dea00000"},
		{"1E-2", "0.01", "2386f26fc10000"},
		{"-0.00", "0", "00"},
		{"0e999999999", "0", "00"},
		{"0.29", "0.29", ""},
		{"-1.28", "-1.28", ""},
		{"19.99", "19.99", ""},
		{"99999999999999999999.999999999999999999", "99999999999999999999.999999999999999999",
			"4b3b4ca85a86c47a098a223fffffffff"},
		{"-99999999999999999999.999999999999999999", "-99999999999999999999.999999999999999999",
			"b4c4b357a5793b85f675ddc000000001"},
		{"9.223372036854775807", "9.223372036854775807", "7fffffffffffffff"},
		{"9.223372036854775808", "9.223372036854775808", "008000000000000000"},
		{"-9.223372036854775808", "-9.223372036854775808", "8000000000000000"},
		{"0.0000000000000000010000", "0.000000000000000001", "01"},
	} {
		d, ok := parseDecimal([]byte(c.text), 38, 18)
		if got := printed(d, 18); !ok || got != c.printed {
			t.Errorf("%s: %v, printed as %s, expected %s", c.text, ok, got, c.printed)
		}
		if got := hex.EncodeToString(d.appendBytes(nil)[1:]); c.unscaled != "" && got != c.unscaled {
			t.Errorf("%s: %s, expected %s", c.text, got, c.unscaled)
		}
	}
}

// Every price from 0.00 to 999.99 keeps its cent at scale 2, also as the float dust that a float column
// makes of it.
func TestEveryPriceKeepsItsCent(t *testing.T) {
	for cents := range 100_000 {
		text := fmt.Sprintf("%d.%02d", cents/100, cents%100)
		want := javaBytes(big.NewInt(int64(cents)))
		fromText, ok1 := parseDecimal([]byte(text), 38, 2)
		fromFloat, ok2 := columnDecimal(pgtype.Float8OID, pgFloat8(float64(cents)/100), 38, 2)
		if !ok1 || !ok2 || !bytes.Equal(fromText.appendBytes(nil)[1:], want) ||
			!bytes.Equal(fromFloat.appendBytes(nil)[1:], want) {
			t.Fatalf("%s: %v %x, %v %x, expected %x", text, ok1, fromText.appendBytes(nil), ok2,
				fromFloat.appendBytes(nil), want)
		}
	}
}

// At scale 2, two's complement needs its bytes to be minimal, or one value has two forms (hamba/avro writes
// -1.28 as ff80).
func TestMoneyTakesNoMoreBytesThanItNeeds(t *testing.T) {
	for _, text := range []string{"-1.28", "1.27", "1.28", "-1.29", "-327.68", "327.67", "0", "-0.01", "2.55",
		"2.56", "-2.56"} {
		checkMoney(t, text, 38, 2)
	}
	d, _ := parseDecimal([]byte("-1.28"), 38, 2)
	if got := d.appendBytes(nil); !bytes.Equal(got, []byte{2, 0x80}) {
		t.Errorf("-1.28 is % x", got)
	}
}

func TestMoneyThatDoesNotFitIsRejectedAndNotRounded(t *testing.T) {
	for _, text := range []string{"100000000000000000000", "1e20", "-1e20", "0.0000000000000000001", "1e-19",
		"99999999999999999999.9999999999999999999",
		"NaN", "Infinity", "-Infinity", "inf", "", "-", ".", "1.2.3", "1e", "1e+", "0x10", "1_000", " 1", "1 ",
		"1,5", "e5", "--1", "1e5.5"} {
		if _, ok := parseDecimal([]byte(text), 38, 18); ok {
			t.Errorf("%q was taken", text)
		}
	}
}

// An exponent of a billion, or a million digits, cost no more than reading them: no power of ten is built.
func TestHugeExponentsAreReadWithoutBuildingTheNumber(t *testing.T) {
	zeros := strings.Repeat("0", 1_000_000)
	for text, want := range map[string]string{"1e999999999": "", "1e-999999999": "",
		"1e18446744073709551616": "", "1e-18446744073709551616": "", "1e99999999999999999999999999": "",
		"-1e-99999999999999999999999999": "",
		"0e99999999999999999999999999":   "0", "1" + zeros + "e-1000000": "1", "0." + zeros + "1e1000001": "1",
		zeros + "7": "7", "7." + zeros: "7", "1" + zeros: ""} {
		d, ok := parseDecimal([]byte(text), 38, 18)
		if got := printed(d, 18); ok != (want != "") || ok && got != want {
			t.Errorf("%.30s: %v %s, expected %q", text, ok, got, want)
		}
	}
}

func TestMoneyAgreesWithBigArithmetic(t *testing.T) {
	rounds.Check(t, 100, func(t *rapid.T) {
		text := drawNumber(t)
		precision := rapid.IntRange(1, 38).Draw(t, "precision")
		scale := rapid.IntRange(0, precision).Draw(t, "scale")
		if rapid.Bool().Draw(t, "as declared") {
			precision, scale = 38, 18
		}
		checkMoney(t, text, precision, scale)
		checkNumeric(t, text, precision, scale)
	})
}

// drawNumber draws a number's text; every second one near a price.
func drawNumber(t *rapid.T) string {
	if rapid.Bool().Draw(t, "price") {
		return rapid.StringMatching(`-?(0|[1-9]\d{0,7})(\.\d{1,18})?`).Draw(t, "text")
	}
	return rapid.StringMatching(`[+-]?\d{1,42}(\.\d{0,42})?([eE][+-]?\d{1,2})?`).Draw(t, "text")
}

// checkNumeric compares a binary numeric of the same value.
func checkNumeric(t interface{ Fatalf(string, ...any) }, text string, precision, scale int) {
	var n pgtype.Numeric
	if n.Scan(strings.TrimPrefix(text, "+")) != nil {
		return
	}
	raw, err := pgtype.NewMap().Encode(pgtype.NumericOID, pgtype.BinaryFormatCode, n, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	a, ok1 := parseDecimal([]byte(text), precision, scale)
	b, ok2 := columnDecimal(pgtype.NumericOID, raw, precision, scale)
	if ok1 != ok2 || ok1 && !bytes.Equal(a.appendBytes(nil), b.appendBytes(nil)) {
		t.Fatalf("%q as decimal(%d, %d): text %v %x, numeric %v %x", text, precision, scale, ok1,
			a.appendBytes(nil), ok2, b.appendBytes(nil))
	}
	var value big.Rat
	server := string(numericText(raw))
	if _, parsed := value.SetString(server); !parsed {
		t.Fatalf("%q is printed as %q", text, server)
	}
	if want, _ := new(big.Rat).SetString(text); want.Cmp(&value) != 0 {
		t.Fatalf("%q is printed as %q", text, server)
	}
}

func FuzzMoney(f *testing.F) {
	for _, text := range []string{"49", "49.5", "59.990001678466797", "1e3", "1E-2", "-0.00", "1e999999999",
		"NaN", "-1.28", "+.5", "99999999999999999999.999999999999999999"} {
		f.Add(text, byte(38), byte(18))
		f.Add(text, byte(9), byte(2))
	}
	f.Fuzz(func(t *testing.T, text string, precision, scale byte) {
		p := int(precision)%38 + 1
		s := int(scale) % (p + 1)
		_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
		if n, err := strconv.Atoi(cmp.Or(exponent, "0")); err == nil && n < 200 && n > -200 && len(text) < 300 &&
			strings.Trim(text, "0123456789+-.eE") == "" {
			checkMoney(t, text, p, s)
			return
		}
		if d, ok := parseDecimal([]byte(text), p, s); ok && d.atLeast(p) {
			t.Fatalf("%q is over the precision", text)
		}
	})
}
