package config

import (
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes. In a configuration it is a whole number and its unit: KiB, MiB or GiB.
type Size int64

// The units of a Size.
const (
	KiB Size = 1 << (10 * (iota + 1))
	MiB
	GiB
)

var sizeUnits = []struct {
	name  string
	bytes Size
}{{"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}}

// String is s as a user would write it: in the largest unit that leaves nothing over, else in bytes.
func (s Size) String() string {
	for _, unit := range sizeUnits {
		if s != 0 && s%unit.bytes == 0 {
			return strconv.FormatInt(int64(s/unit.bytes), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

func parseSize(text string) (Size, error) {
	for _, unit := range sizeUnits {
		number, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		number = strings.TrimSpace(number)
		if leadingZero.MatchString(number) {
			return 0, errLeadingZero
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if most := math.MaxInt64 / int64(unit.bytes); err == nil && n >= -most && n <= most {
			return Size(n) * unit.bytes, nil // how much it may be is each key's own rule
		}
	}
	return 0, ruleError("expected a whole number with its unit (KiB, MiB or GiB), such as 64MiB or 2GiB")
}
