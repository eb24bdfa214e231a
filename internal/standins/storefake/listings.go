package storefake

import (
	"cmp"
	"math"
	"slices"
)

// span is the instants in [from, to); null is open. The zero value is not a span: use anytime.
type span struct{ from, to cell }

var anytime = span{null, null}

func (s span) open() bool { return s == anytime }

func (s span) holds(at cell) bool {
	return s.open() || at != null && (s.from == null || at >= s.from) && (s.to == null || at < s.to)
}

// touches says whether some instant of the UTC day that begins at d is in s.
func (s span) touches(d cell) bool {
	return (s.from == null || d+day > s.from) && (s.to == null || d < s.to)
}

// query selects the rows of a listing and gives their order.
type query struct {
	created, updated span
	status           cell // null for all
	order            cell // null for all
	before           cell // rows with an updated_at at or after it cannot be queried yet; null hides none
	sort             Order
	ties             bool
	salt             uint64 // of ByHash, ByShuffle and ties
}

// kept says whether the same query will mean the same listing later on.
func (q *query) kept() bool { return q.before == null && q.sort != ByShuffle && !q.ties }

func (q *query) matches(res *resource, row []cell) bool {
	return row[0] != null && q.created.holds(row[res.created()]) && q.updated.holds(row[res.updated()]) &&
		(q.status == null || row[orderStatus] == q.status) && (q.order == null || row[rowOrderID] == q.order) &&
		(q.before == null || row[res.updated()] < q.before)
}

// rank is the sort key of a row: first, then second.
type rank struct {
	first, second int64
	place         place
}

func (q *query) rank(t *table, p place) rank {
	row := t.at(p)
	id, at := int64(row[0]), row[t.res.updated()]
	r := rank{first: id, second: id, place: p}
	if q.ties {
		r.second = mix(id, q.salt)
		if at != null {
			at = at.floorTo(second)
		}
	}
	switch q.sort {
	case ByUpdated:
		r.first = int64(at)
	case ByPinned:
		if r.first = int64(at); id%pinned == 1 {
			r.first = math.MinInt64
		}
	case ByUpdatedDesc:
		r.first = -max(int64(at), -math.MaxInt64)
	case ByHash, ByShuffle:
		r.first = mix(id, q.salt)
	}
	return r
}

// pinned is of how many rows ByPinned pins one.
const pinned = 50

func compareRanks(a, b rank) int {
	return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.second, b.second), cmp.Compare(a.place, b.place))
}

// listing is the sorted places of a query at a version of the table.
type listing struct {
	query   query
	version int64
	places  []place
}

// listings answers queries on one table. It keeps the last answers, the newest first: a client pages through
// a few at a time.
type listings struct {
	table *table
	kept  []*listing
}

const maxListings = 8

// list is the places of the rows that match q, in its order. The caller must not change it, nor keep it
// beyond the mutex of Tables.
func (l *listings) list(q query) []place {
	if !q.kept() {
		return l.build(q)
	}
	for i, one := range l.kept {
		if one.query != q {
			continue
		}
		copy(l.kept[1:i+1], l.kept[:i])
		l.kept[0] = one
		l.refresh(one)
		return one.places
	}
	if len(l.kept) < maxListings {
		l.kept = append(l.kept, nil)
	}
	copy(l.kept[1:], l.kept)
	l.kept[0] = &listing{query: q, version: l.table.version(), places: l.build(q)}
	return l.kept[0].places
}

// refresh brings a listing up to date. Where little has changed one pass over it does: for a million rows
// under traffic that is a hundred times cheaper than sorting them again for each page.
func (l *listings) refresh(one *listing) {
	changes, ok := l.table.since(one.version)
	if one.version = l.table.version(); ok && len(changes) == 0 {
		return
	}
	if !ok || len(changes) > 256+len(one.places)/8 {
		one.places = l.build(one.query)
		return
	}
	moved := slices.Clone(changes)
	slices.Sort(moved)
	moved = slices.Compact(moved)
	kept := slices.DeleteFunc(one.places, func(p place) bool {
		_, found := slices.BinarySearch(moved, p)
		return found
	})
	one.places = l.merge(one.query, kept, l.sorted(one.query, moved))
}

// build finds the rows by the index that leaves the fewest to look at.
func (l *listings) build(q query) []place {
	t := l.table
	var places []place
	switch created, updated := t.created.size(q.created), t.updated.size(q.updated); {
	case q.order != null:
		places = t.orders.read(int64(q.order), nil)
	case !q.updated.open() && (q.created.open() || updated <= created):
		places = t.updated.read(t, t.res.updated(), q.updated, make([]place, 0, updated))
	default:
		places = t.created.read(t, t.res.created(), q.created, make([]place, 0, created))
	}
	return l.sorted(q, places)
}

// sorted is those of places that match q, in its order. It overwrites places.
func (l *listings) sorted(q query, places []place) []place {
	ranks := make([]rank, 0, len(places))
	for _, p := range places {
		if q.matches(l.table.res, l.table.at(p)) {
			ranks = append(ranks, q.rank(l.table, p))
		}
	}
	slices.SortFunc(ranks, compareRanks)
	places = places[:0]
	for _, r := range ranks {
		places = append(places, r.place)
	}
	return slices.Compact(places) // an index may name a row twice
}

// merge is a and b, both in q's order, in q's order.
func (l *listings) merge(q query, a, b []place) []place {
	if len(b) == 0 {
		return a
	}
	out := make([]place, 0, len(a)+len(b))
	for _, p := range b {
		r := q.rank(l.table, p)
		n, _ := slices.BinarySearchFunc(a, r, func(p place, r rank) int {
			return compareRanks(q.rank(l.table, p),
				r)
		})
		out = append(append(out, a[:n]...), p)
		a = a[n:]
	}
	return append(out, a...)
}
