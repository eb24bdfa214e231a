package rowset

import (
	"iter"
	"sort"
)

// Table holds a Version by row id, like a Set, for rows that are put in the order of their ids. A row takes
// TableRowBytes. It is quick for rows that are got in that order too. It is for one goroutine, and must be
// closed.
type Table struct {
	rows area[entry]
	n    int
	at   int // the place of the row that Get found last
}

// TableRowBytes is what one row of a Table takes.
const TableRowBytes = entryBytes

// NewTable returns an empty table with room for so many rows.
func NewTable(rows int) *Table { return &Table{rows: newArea[entry](max(1, rows))} }

// Len is the number of rows.
func (t *Table) Len() int { return t.n }

// Put remembers v for id, which is the id of the last Put or a higher one. It returns false if there is no
// room.
func (t *Table) Put(id int64, v Version) bool {
	if t.n == 0 || t.rows.elements[t.n-1].id() != id {
		if t.n == len(t.rows.elements) {
			return false
		}
		t.n++
	}
	t.rows.elements[t.n-1] = pack(id, v)
	return true
}

// Remove forgets the last row if it has this id.
func (t *Table) Remove(id int64) {
	if t.n > 0 && t.rows.elements[t.n-1].id() == id {
		t.n--
	}
}

// Get returns the version of id.
func (t *Table) Get(id int64) (Version, bool) {
	rows := t.rows.elements[:t.n]
	is := func(at int) bool { return at < t.n && rows[at].id() == id }
	if is(t.at + 1) {
		t.at++
	} else if !is(t.at) {
		at := sort.Search(t.n, func(i int) bool { return rows[i].id() >= id })
		if !is(at) {
			return Version{}, false
		}
		t.at = at
	}
	return rows[t.at].version(), true
}

// Mark marks the row that Get has found last.
func (t *Table) Mark() { t.rows.elements[t.at][4] |= markBit }

// All yields every row, in the order of ids.
func (t *Table) All() iter.Seq2[int64, Version] {
	return func(yield func(int64, Version) bool) {
		for i := range t.n {
			if e := &t.rows.elements[i]; !yield(e.id(), e.version()) {
				return
			}
		}
	}
}

// Close gives the memory back and leaves the table empty.
func (t *Table) Close() {
	t.rows.free()
	*t = Table{}
}
