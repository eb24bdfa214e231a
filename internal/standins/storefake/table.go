package storefake

import "iter"

// Rows lie in blocks that never move, so that growing a table copies nothing.
const blockRows = 4096

// place is the index of a row in its table. The place of a deleted row is not given out again, so an id that
// is used again has another one.
type place = int32

// table is the rows of one resource and its indexes. The mutex of Tables guards it, but for res, which does
// not change.
type table struct {
	res   *resource
	lists listings
	contents
}

// contents are the current rows of a table. A restore replaces them.
type contents struct {
	blocks  [][]cell
	size    place // places given out
	live    int
	nextID  int64
	byID    placeList // id to place + 1
	updated dayIndex
	created dayIndex
	orders  *orderIndex // nil if rows belong to no order

	// changes are the places changed since version base; the table's version is base + len(changes).
	changes []place
	base    int64

	used []usedID // rows that were deleted; their ids are maybe given out again
}

// usedID is the id of a row that was deleted, and its updated_at.
type usedID struct {
	id      int64
	updated cell
}

// maxUsed ids are remembered.
const maxUsed = 1000

// Changes from which a kept listing can be brought up to date.
const maxChanges = 1 << 16

func newTable(res *resource) *table {
	t := &table{res: res, contents: noContents(res)}
	t.lists.table = t
	return t
}

func noContents(res *resource) contents {
	c := contents{nextID: 1, updated: dayIndex{}, created: dayIndex{}}
	if res.filter == "order_id" {
		c.orders = &orderIndex{}
	}
	return c
}

func (t *table) at(p place) []cell {
	w := t.res.width()
	from := int(p%blockRows) * w
	return t.blocks[p/blockRows][from : from+w : from+w]
}

// alive says whether the row at p still exists.
func (t *table) alive(p place) bool { return t.at(p)[0] != null }

func (t *table) find(id int64) (place, bool) {
	p := t.byID.get(id)
	return p - 1, p > 0
}

// grow gives out a place for a row to be filled in, which the caller then hands to enter.
func (t *table) grow() (place, []cell) {
	p := t.size
	if p%blockRows == 0 {
		t.blocks = append(t.blocks, make([]cell, blockRows*t.res.width()))
	}
	t.size++
	return p, t.at(p)
}

// enter puts the row at p into the indexes.
func (t *table) enter(p place) {
	row := t.at(p)
	id := int64(row[0])
	t.byID.set(id, p+1)
	t.nextID = max(t.nextID, id+1)
	t.live++
	t.created.add(row[t.res.created()], p)
	t.updated.add(row[t.res.updated()], p)
	if t.orders != nil {
		t.orders.add(row[rowOrderID], p)
	}
	t.changed(p)
}

// put inserts the row or replaces the one with its id.
func (t *table) put(cells []cell) {
	p, found := t.find(int64(cells[0]))
	if !found {
		p, row := t.grow()
		copy(row, cells)
		t.enter(p)
		return
	}
	row := t.at(p)
	t.created.move(row[t.res.created()], cells[t.res.created()], p)
	t.updated.move(row[t.res.updated()], cells[t.res.updated()], p)
	if t.orders != nil && row[rowOrderID] != cells[rowOrderID] {
		t.orders.moved = append(t.orders.moved, p)
	}
	copy(row, cells)
	t.changed(p)
}

// remove deletes the row with that id.
func (t *table) remove(id int64) {
	p, found := t.find(id)
	if !found {
		return
	}
	row := t.at(p)
	t.created.leave(row[t.res.created()])
	t.updated.leave(row[t.res.updated()])
	if len(t.used) < maxUsed {
		t.used = append(t.used, usedID{id, row[t.res.updated()]})
	}
	row[0] = null
	t.byID.set(id, 0)
	t.live--
	t.changed(p)
}

// usedID takes the id of a row that was deleted, and has not come back; false if there is none. If a row's
// updated_at is after now, because the clock was set back, its id waits: it would step back.
func (t *table) usedID(now cell) (int64, bool) {
	for n := len(t.used) - 1; n >= 0 && t.used[n].updated <= now; n-- {
		id := t.used[n].id
		t.used = t.used[:n]
		if _, found := t.find(id); !found {
			return id, true
		}
	}
	return 0, false
}

// replace makes the rows those of another table, and the next id that one's. No listing is kept over it.
func (t *table) replace(by *table) {
	version := t.version()
	t.contents = noContents(t.res)
	t.base = version + 1
	for _, row := range by.all() {
		p, cells := t.grow()
		copy(cells, row)
		t.enter(p)
	}
	t.base, t.changes = t.version(), nil
	t.nextID = by.nextID
}

func (t *table) changed(p place) {
	if len(t.changes) == maxChanges {
		t.base += int64(len(t.changes))
		t.changes = t.changes[:0]
	}
	t.changes = append(t.changes, p)
}

func (t *table) version() int64 { return t.base + int64(len(t.changes)) }

// since is the places changed since version; false: too long ago to say.
func (t *table) since(version int64) ([]place, bool) {
	if version < t.base {
		return nil, false
	}
	return t.changes[version-t.base:], true
}

// all yields every row that exists, in no order that means anything.
func (t *table) all() iter.Seq2[place, []cell] {
	return func(yield func(place, []cell) bool) {
		for p := range t.size {
			if row := t.at(p); row[0] != null && !yield(p, row) {
				return
			}
		}
	}
}
