package storefake

import (
	"fmt"
	"sync"
)

// Store is the service's rows: in memory, and orders and order_items in PostgreSQL too where it has one. All methods may be called at
// once.
type Store struct {
	clock *Clock
	seed  uint64
	words *dictionary
	db    *database // nil: in memory only

	mu     sync.Mutex // guards what follows; never held while waiting for anything
	tables map[string]*table
	read   Readings
	locks  locks
	shop   *shop // nil until traffic is first asked for

	failed  int   // of traffic's transactions
	failure error // the last of them

	traffic traffic
}

// rowKey names a row.
type rowKey struct {
	resource string
	id       int64
}

// NewStore is an empty store in memory.
func NewStore(clock *Clock, seed uint64) *Store {
	s := &Store{clock: clock, seed: seed, words: newDictionary(), tables: map[string]*table{}, locks: locks{rows: map[rowKey]chan struct{}{}}}
	for _, res := range resources {
		s.tables[res.name] = newTable(res)
	}
	return s
}

// Clock is the clock that stamps the rows.
func (s *Store) Clock() *Clock { return s.clock }

// Readings in force.
func (s *Store) Readings() Readings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read
}

// SetReadings changes the readings in force from the next request on.
func (s *Store) SetReadings(change func(*Readings)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.read
	change(&r)
	if err := r.Check(); err != nil {
		return err
	}
	s.read = r
	return nil
}

func (s *Store) table(resource string) (*table, error) {
	if t, ok := s.tables[resource]; ok {
		return t, nil
	}
	return nil, fmt.Errorf("no resource %q: expected one of %q", resource, Names())
}

// Count is the number of rows of a resource, 0 for a resource that there is not.
func (s *Store) Count(resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.tables[resource]; ok {
		return t.live
	}
	return 0
}

// Changes is how many times a row has been inserted, changed or deleted: wait for it to grow to see traffic.
func (s *Store) Changes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int64(0)
	for _, t := range s.tables {
		n += t.version()
	}
	return n
}

// Row is the row as it is now; false if there is none.
func (s *Store) Row(resource string, id int64) (Row, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tables[resource]
	if !ok {
		return nil, false
	}
	p, ok := t.find(id)
	if !ok {
		return nil, false
	}
	return s.words.rowOf(t.res, t.at(p)), true
}

// Rows is every row of a resource by id, with instants to the microsecond.
func (s *Store) Rows(resource string) map[int64]Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tables[resource]
	if !ok {
		return nil
	}
	rows := make(map[int64]Row, t.live)
	for _, cells := range t.all() {
		rows[int64(cells[0])] = s.words.rowOf(t.res, cells)
	}
	return rows
}

// page is part of a listing, copied out of the table so that it can be rendered without holding the Store up.
type page struct {
	rows  [][]cell
	total int
}

// page is the rows [from, from+n) of the listing that q asks for.
func (s *Store) page(res *resource, q query, from, n int) page {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[res.name]
	places := t.list(q)
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
