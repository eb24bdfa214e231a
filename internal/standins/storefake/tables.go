package storefake

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Tables are the rows that are committed, of all resources, in memory. All methods may be called at once.
type Tables struct {
	words  *dictionary
	byName map[string]*table // the map does not change

	mu sync.Mutex // guards the tables; never held while waiting for anything
}

// rowKey names a row.
type rowKey struct {
	resource string
	id       int64
}

func newTables() *Tables {
	ts := &Tables{words: &dictionary{numbers: map[string]cell{}}, byName: map[string]*table{}}
	for _, res := range resources {
		ts.byName[res.name] = newTable(res)
	}
	return ts
}

func (ts *Tables) table(resource string) (*table, error) {
	if t, ok := ts.byName[resource]; ok {
		return t, nil
	}
	return nil, fmt.Errorf("no resource %q: expected one of %q", resource, Names())
}

// Count is the number of rows of a resource, 0 for one that does not exist.
func (ts *Tables) Count(resource string) int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t, ok := ts.byName[resource]; ok {
		return t.live
	}
	return 0
}

// Changes is how many times a row has been inserted, changed or deleted. It grows while there is traffic.
func (ts *Tables) Changes() int64 {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	n := int64(0)
	for _, t := range ts.byName {
		n += t.version()
	}
	return n
}

// Row is the row as it is now; false if there is none.
func (ts *Tables) Row(resource string, id int64) (Row, bool) {
	t, err := ts.table(resource)
	if err != nil {
		return nil, false
	}
	cells := ts.cells(t, id)
	if cells == nil {
		return nil, false
	}
	return ts.words.rowOf(t.res, cells), true
}

// Rows is every row of a resource by id, with instants to the microsecond.
func (ts *Tables) Rows(name string) map[int64]Row {
	rows := map[int64]Row{}
	ts.each(name, func(res *resource, cells []cell) { rows[int64(cells[0])] = ts.words.rowOf(res, cells) })
	return rows
}

// each calls do with every row of a resource, in no order that means anything. do must not keep the cells.
func (ts *Tables) each(name string, do func(*resource, []cell)) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t, ok := ts.byName[name]
	if !ok {
		return
	}
	for _, cells := range t.all() {
		do(t.res, cells)
	}
}

// cells is a copy of the row with that id, nil if there is none.
func (ts *Tables) cells(t *table, id int64) []cell {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if p, ok := t.find(id); ok {
		return append([]cell(nil), t.at(p)...)
	}
	return nil
}

// page is part of a listing, copied out of the table so that it can be rendered without holding up anybody.
type page struct {
	rows  [][]cell
	total int
}

// page is the rows [from, from+n) of the listing that q asks for.
func (ts *Tables) page(res *resource, q query, from, n int) page {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.byName[res.name]
	places := t.lists.list(q)
	p := page{total: len(places)}
	places = places[min(from, len(places)):]
	places = places[:min(n, len(places))]
	cells := make([]cell, 0, len(places)*res.width())
	for _, at := range places {
		cells = append(cells, t.at(at)...)
		p.rows = append(p.rows, cells[len(cells)-res.width():])
	}
	return p
}

// belonging are the ids of the rows of an order.
func (ts *Tables) belonging(resource string, order int64) []int64 {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.byName[resource]
	q := query{created: anytime, updated: anytime, status: null, order: cell(order), before: null}
	var ids []int64
	for _, p := range t.lists.build(q) {
		ids = append(ids, int64(t.at(p)[0]))
	}
	return ids
}

// any returns a row drawn at random, or false if there is hardly one.
func (ts *Tables) any(chance *rand.Rand, resource string) (Row, bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.byName[resource]
	const tries = 20 // of places whose row may be deleted
	for range tries {
		if t.size == 0 {
			break
		}
		if p := place(chance.IntN(int(t.size))); t.alive(p) {
			return ts.words.rowOf(t.res, t.at(p)), true
		}
	}
	return nil, false
}

// usedID takes an id whose row was deleted, and not stamped after now; false if there is none.
func (ts *Tables) usedID(resource string, now time.Time) (int64, bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.byName[resource].usedID(cellOf(now))
}

// newID takes the next id, as a sequence does: for good, whether or not the row is ever committed.
func (ts *Tables) newID(resource string) int64 {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.byName[resource]
	t.nextID++
	return t.nextID - 1
}

// apply makes a transaction's writes visible, all at once. nil deletes a row.
func (ts *Tables) apply(order []rowKey, writes map[rowKey][]cell) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, k := range order {
		t := ts.byName[k.resource]
		if cells := writes[k]; cells != nil {
			t.put(cells)
		} else {
			t.remove(k.id)
		}
	}
}

// clone is a copy of all rows.
func (ts *Tables) clone() *Tables {
	c := newTables()
	c.words = ts.words
	c.replace(ts)
	return c
}

// replace takes all rows of another Tables, which must not change meanwhile except by its methods.
func (ts *Tables) replace(by *Tables) {
	if ts == by {
		return
	}
	by.mu.Lock() // always a younger one's or one's that never changes: no two wait for each other
	defer by.mu.Unlock()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for name, t := range ts.byName {
		t.replace(by.byName[name])
	}
}

// stamp gives all rows with from <= id <= to one updated_at, and returns their number.
func (ts *Tables) stamp(res *resource, from, to int64, at cell) int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.byName[res.name]
	n, row := 0, make([]cell, res.width())
	for _, cells := range t.all() {
		if id := int64(cells[0]); id < from || id > to {
			continue
		}
		copy(row, cells)
		row[t.res.updated()] = at
		t.put(row)
		n++
	}
	return n
}
