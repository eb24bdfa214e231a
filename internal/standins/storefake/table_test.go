package storefake

import "testing"

// The clock may be set back. An id that comes again has no earlier updated_at than its last row.
func TestAnIDIsUsedAgainOnlyBehindItsLastUpdate(t *testing.T) {
	t.Parallel()
	table := newTable(newTables().byName[Products].res)
	row := make([]cell, table.res.width())
	row[0], row[table.res.updated()] = 7, second
	table.put(row)
	table.remove(7)
	if id, ok := table.usedID(second - 1); ok {
		t.Errorf("id %d is used before its last update", id)
	}
	if id, ok := table.usedID(second); !ok || id != 7 {
		t.Errorf("id %d, %v: expected 7", id, ok)
	}
}
