package storefake

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// cell holds one value of any kind in eight bytes without a pointer: two million orders with their items and shipments are seven
// million rows, which as Go objects would be gigabytes for the collector to walk.
//
//	integer     itself
//	instant     microseconds since 1970
//	money       see money.go
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

// dictionary gives each text a number, for ever.
type dictionary struct {
	mu      sync.RWMutex
	numbers map[string]cell
	texts   []string
}

func newDictionary() *dictionary { return &dictionary{numbers: map[string]cell{}} }

func (d *dictionary) number(s string) cell {
	d.mu.RLock()
	n, ok := d.numbers[s]
	d.mu.RUnlock()
	if ok {
		return n
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, ok := d.numbers[s]; ok {
		return n
	}
	n = cell(len(d.texts))
	d.texts = append(d.texts, s)
	d.numbers[s] = n
	return n
}

func (d *dictionary) text(n cell) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.texts[n]
}

// Row is one row: a field's name to int64, Money, string, float64, time.Time, or nil for null.
type Row map[string]any

// ID of the row.
func (r Row) ID() int64 { id, _ := r["id"].(int64); return id }

// Time is an instant of the row, zero where it is null.
func (r Row) Time(field string) time.Time { t, _ := r[field].(time.Time); return t }

// rowOf unpacks cells.
func (d *dictionary) rowOf(res *resource, cells []cell) Row {
	row := make(Row, len(cells))
	for i, f := range res.fields {
		c := cells[i]
		switch {
		case c == null:
			row[f.name] = nil
		case f.kind == integer:
			row[f.name] = int64(c)
		case f.kind == instant:
			row[f.name] = c.time()
		case f.kind == money:
			row[f.name] = Money(d.appendMoney(nil, c))
		case f.kind == coordinate:
			row[f.name] = c.float()
		default:
			row[f.name] = d.text(c)
		}
	}
	return row
}

// cellsOf packs a row; a field that it lacks is null, one that the resource does not have is an error.
func (d *dictionary) cellsOf(res *resource, row Row) ([]cell, error) {
	for name := range row {
		if res.index(name) < 0 {
			return nil, fmt.Errorf("%s has no field %q", res.name, name)
		}
	}
	cells := make([]cell, res.width())
	for i, f := range res.fields {
		c, err := d.cellOf(f, row[f.name])
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", res.name, f.name, err)
		}
		cells[i] = c
	}
	return cells, nil
}

func (d *dictionary) cellOf(f field, value any) (cell, error) {
	if value == nil {
		return null, nil
	}
	switch v := value.(type) {
	case int64:
		if f.kind == integer {
			return cell(v), nil
		}
	case int:
		if f.kind == integer {
			return cell(v), nil
		}
	case time.Time:
		if f.kind == instant {
			return cellOf(v), nil
		}
	case Money:
		if f.kind == money {
			return d.packMoney(string(v))
		}
	case float64:
		if f.kind == coordinate {
			return coordinateOf(v), nil
		}
	case string:
		if f.kind == text {
			return d.number(v), nil
		}
	}
	return null, fmt.Errorf("a %T does not fit", value)
}
