package storefake

import "math/rand/v2"

// any is a row drawn at random; false where there is hardly one.
func (s *Store) any(chance *rand.Rand, resource string) (Row, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[resource]
	const tries = 20 // of places whose row may be deleted
	for range tries {
		if t.size == 0 {
			break
		}
		if p := place(chance.IntN(int(t.size))); t.alive(p) {
			return s.words.rowOf(t.res, t.at(p)), true
		}
	}
	return nil, false
}

// belonging are the ids of the rows of an order.
func (s *Store) belonging(resource string, order int64) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[resource]
	q := query{created: anytime, updated: anytime, status: null, order: cell(order), before: null}
	var ids []int64
	for _, p := range t.build(q) {
		ids = append(ids, int64(t.at(p)[0]))
	}
	return ids
}

// newID takes the next id, as a sequence does: for good, whether or not the row is ever committed.
func (s *Store) newID(resource string) (int64, error) {
	t, err := s.table(resource)
	if err != nil {
		return 0, err
	}
	return s.nextID(t), nil
}

// newStatus is status, or with the readings' share one that the document does not name.
func (s *Store) newStatus(chance *rand.Rand, status string) string {
	if share := s.Readings().NewStatuses; share > 0 && chance.Float64() < share {
		return one(chance, newStatuses)
	}
	return status
}

// nulled takes values away by the readings' share.
func (s *Store) nulled(chance *rand.Rand, resource string, row Row) Row {
	share := s.Readings().Nulls
	if share == 0 {
		return row
	}
	for _, f := range s.tables[resource].res.fields[1:] { // in order, so that a seed means the same each time
		if f.name != "created_at" && f.name != "updated_at" && chance.Float64() < share {
			row[f.name] = nil
		}
	}
	return row
}

// scatter is nulled for a row made of cells. Its first and its last two fields are never null.
func scatter(chance *rand.Rand, nulls float64, cells []cell) {
	if nulls == 0 {
		return
	}
	for i := 1; i < len(cells)-2; i++ {
		if chance.Float64() < nulls {
			cells[i] = null
		}
	}
}
