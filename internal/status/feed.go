package status

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/storestream/storestream/schemas"
)

const (
	// feedEvery and feedRows limit the sample of a resource: so many rows so often. Each transaction costs a
	// look at the clock, in a first load of a million rows a minute as in a quiet shop.
	feedEvery = 900 * time.Millisecond
	feedRows  = 2
	// feedKept is how many rows are shown.
	feedKept = 24
)

// Upsert is a row that was published, or deleted.
type Upsert struct {
	// At is when it was committed.
	At time.Time `json:"at"`
	// Resource and ID are those of the row.
	Resource string `json:"resource"`
	ID       int64  `json:"id"`
	// Gone is set for a tombstone.
	Gone bool `json:"gone,omitzero"`
	// Fields lists names and values, with `http.show_rows`. They are in the order of the schema, without id
	// and null values. Fields is nil if values are not shown (Board.ShowValues). Personal values are "***".
	// Values are text, so that readers of the JSON do not make floats of money.
	Fields [][2]string `json:"fields,omitempty"`
}

// feed keeps a sample of the published rows, the newest first.
type feed struct {
	mu      sync.Mutex
	last    map[string]time.Time
	kept    []Upsert
	version int
	values  bool // rows are shown with their values
}

func (f *feed) note(now time.Time, r *schemas.Resource, rows []schemas.Record, deleted []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.last[r.Name]) < feedEvery {
		return
	}
	f.last[r.Name] = now
	f.version++
	var fresh []Upsert
	for _, row := range slices.Backward(rows[max(0, len(rows)-feedRows):]) {
		u := Upsert{At: now.UTC(), Resource: r.Name, ID: row.ID}
		if f.values {
			u.Fields = shownFields(r, row.Value)
		}
		fresh = append(fresh, u)
	}
	for _, id := range deleted[max(0, len(deleted)-feedRows):] {
		fresh = append(fresh, Upsert{At: now.UTC(), Resource: r.Name, ID: id, Gone: true})
	}
	kept := append(fresh, f.kept...) // a new slice: readers have the old one
	f.kept = kept[:min(len(kept), feedKept)]
}

// latest is the sample, the newest first, and a number that changes with it.
func (f *feed) latest() (shown []Upsert, version int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kept, f.version
}

// shownFields decodes a value. If that fails, the page shows the row without them.
func shownFields(r *schemas.Resource, value []byte) (fields [][2]string) {
	reader, err := schemas.NewValueReader(r, "")
	if err != nil {
		return nil
	}
	decoded, err := reader.Read(value)
	if err != nil {
		return nil
	}
	for f, text := range decoded.Fields() {
		if f.Name == "id" || string(text) == "null" {
			continue
		}
		text, shown := f.Shown(text, true), ""
		if json.Unmarshal(text, &shown) != nil {
			shown = string(text) // no string
		}
		fields = append(fields, [2]string{f.Name, shown})
	}
	return fields
}
