package storefake

import (
	"math"
	"time"
)

// cell holds one value of any kind in eight bytes without a pointer: two million orders with their items and
// shipments are seven million rows, which as Go objects would be gigabytes for the collector to walk.
//
//	integer     itself
//	instant     microseconds since 1970
//	money       unscaled<<5 | scale, see below
//	coordinate  the bits of a float64
//	text        the place in a dictionary
type cell int64

// null is no value.
const null = cell(math.MinInt64)

const (
	second = cell(1e6)
	day    = 24 * 60 * 60 * second
)

func cellOf(t time.Time) cell     { return cell(t.UnixMicro()) }
func (c cell) time() time.Time    { return time.UnixMicro(int64(c)).UTC() }
func (c cell) float() float64     { return math.Float64frombits(uint64(c)) }
func coordinateOf(f float64) cell { return cell(math.Float64bits(f + 0)) }

// floorTo is c rounded down to a multiple of unit, also before 1970.
func (c cell) floorTo(unit cell) cell {
	rest := c % unit
	if rest < 0 {
		rest += unit
	}
	return c - rest
}

// Money is an exact decimal as text: -?digits, or -?digits.digits. Trailing zeros are kept, as PostgreSQL's
// numeric keeps them.
type Money string

// A money cell is unscaled<<5 | scale. Seventeen digits fit, which is as many as float dust has. Anything
// longer is a place in the dictionary with a scale of longMoney.
const (
	scaleBits   = 5
	longMoney   = 1<<scaleBits - 1
	maxUnscaled = 1 << (63 - scaleBits - 1)
)

func (c cell) scale() int      { return int(c & longMoney) }
func (c cell) unscaled() int64 { return int64(c >> scaleBits) }

// Row is one row: a field's name to int64, Money, string, float64, time.Time, or nil for null.
type Row map[string]any

// ID of the row.
func (r Row) ID() int64 { id, _ := r["id"].(int64); return id }

// Time returns an instant of the row. Null is the zero time.
func (r Row) Time(field string) time.Time { t, _ := r[field].(time.Time); return t }
