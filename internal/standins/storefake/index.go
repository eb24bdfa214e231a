package storefake

import "slices"

// placeList maps ids to places. Small, dense ids go to a slice, all others to a map. A missing id has place
// 0.
type placeList struct {
	dense  []place
	sparse map[int64]place
}

func (l *placeList) get(n int64) place {
	if n >= 0 && n < int64(len(l.dense)) {
		return l.dense[n]
	}
	return l.sparse[n]
}

func (l *placeList) set(n int64, p place) {
	if n < 0 || n > 2*int64(len(l.dense))+1024 {
		if l.sparse == nil {
			l.sparse = map[int64]place{}
		}
		l.sparse[n] = p
		return
	}
	for int64(len(l.dense)) <= n {
		reached := int64(len(l.dense)) // was out of reach until now
		l.dense = append(l.dense, l.sparse[reached])
		delete(l.sparse, reached)
	}
	l.dense[n] = p
}

// dayIndex is the places of the rows by the UTC day of one of their instants. A place is left behind in the
// day that its row leaves, and swept out when that day is next read: a bulk update of a million rows then
// costs no search.
type dayIndex map[cell]*bucket

type bucket struct {
	places []place
	stale  bool
}

func (x dayIndex) add(at cell, p place) {
	if at == null {
		return
	}
	d := at.floorTo(day)
	b := x[d]
	if b == nil {
		b = &bucket{}
		x[d] = b
	}
	b.places = append(b.places, p)
}

func (x dayIndex) leave(at cell) {
	if at != null {
		x[at.floorTo(day)].stale = true
	}
}

func (x dayIndex) move(from, to cell, p place) {
	if from != null && to != null && from.floorTo(day) == to.floorTo(day) {
		return
	}
	x.leave(from)
	x.add(to, p)
}

// size is about how many places lie in the days that touch s.
func (x dayIndex) size(s span) int {
	n := 0
	for d, b := range x {
		if s.touches(d) {
			n += len(b.places)
		}
	}
	return n
}

// read appends the places of the days that touch s; field is the place of the instant in a row of t.
func (x dayIndex) read(t *table, field int, s span, dst []place) []place {
	for d, b := range x {
		if !s.touches(d) {
			continue
		}
		if b.stale {
			b.sweep(t, field, d)
		}
		dst = append(dst, b.places...)
	}
	return dst
}

// sweep drops the places whose rows are gone or elsewhere, and those that are in it twice because a row left
// and came back.
func (b *bucket) sweep(t *table, field int, d cell) {
	kept := b.places[:0]
	for _, p := range b.places {
		row := t.at(p)
		if row[0] != null && row[field] != null && row[field].floorTo(day) == d {
			kept = append(kept, p)
		}
	}
	slices.Sort(kept)
	b.places, b.stale = slices.Compact(kept), false
}

// orderIndex lists the rows of each order: head is the last place + 1 by order id, next the place + 1 before
// it.
type orderIndex struct {
	head placeList
	next []place
	// moved are rows that came to belong to another order: too few to be worth more than a look at each of them.
	moved []place
}

func (x *orderIndex) add(order cell, p place) {
	for place(len(x.next)) <= p {
		x.next = append(x.next, 0)
	}
	if order != null {
		x.next[p] = x.head.get(int64(order))
		x.head.set(int64(order), p+1)
	}
}

// read appends the places of the order's rows, and maybe others.
func (x *orderIndex) read(order int64, dst []place) []place {
	for p := x.head.get(order); p > 0; p = x.next[p-1] {
		dst = append(dst, p-1)
	}
	return append(dst, x.moved...)
}
