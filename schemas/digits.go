package schemas

import "math/bits"

// digits turns the digits of a number, first to last, into a decimal of a given precision and scale. It takes
// any number, and keeps nothing but sums: a million digits, or an exponent of 10^9, cost no more than reading
// them.
type digits struct {
	d         decimal
	precision int
	// keep is how many more digits belong to the unscaled value; once it is 0 they are dropped.
	keep     int
	overflow bool
	// What was dropped: its first digit, and whether any digit after that was not 0.
	dropping bool
	first    byte
	rest     bool
}

// push takes the next digit, 0 to 9.
func (a *digits) push(digit byte) {
	switch {
	case a.keep > 0:
		a.keep--
		a.add(digit)
	case a.keep < 0: // before the first dropped place stand zeros: 0.004 at scale 0
		a.keep++
		a.rest = a.rest || digit != 0
		a.dropping = true
	case !a.dropping:
		a.dropping, a.first = true, digit
	default:
		a.rest = a.rest || digit != 0
	}
}

func (a *digits) add(digit byte) {
	if a.overflow = a.overflow || a.d.atLeast(a.precision-1); !a.overflow {
		a.d.mulAdd(digit)
	}
}

// finish returns the value. It fails where the value has more than precision digits, or more than scale
// places after the point and halfEven does not allow to round them.
func (a *digits) finish(halfEven bool) (decimal, bool) {
	for a.keep > 0 && a.d.hi|a.d.lo != 0 && !a.overflow { // 5e3: three more places, never more than 38
		a.keep--
		a.add(0)
	}
	if a.overflow {
		return decimal{}, false
	}
	if a.first == 0 && !a.rest {
		return a.d, true
	}
	if !halfEven {
		return decimal{}, false
	}
	if a.first > 5 || a.first == 5 && (a.rest || a.d.lo&1 == 1) {
		var carry uint64
		a.d.lo, carry = bits.Add64(a.d.lo, 1, 0)
		a.d.hi += carry
	}
	return a.d, !a.d.atLeast(a.precision)
}
