package status

import (
	"bytes"
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
	At       time.Time `json:"at"` // when its transaction was committed
	Resource string    `json:"resource"`
	ID       int64     `json:"id"`
	Gone     bool      `json:"gone,omitzero"` // a tombstone
	// Fields are names and values in the order of the schema, without id and null values. Fields is nil if
	// values are not shown (Board.ShowValues). Personal values are "***". Values are text, so that readers of
	// the JSON do not make floats of money.
	Fields [][2]string `json:"fields,omitempty"`
}

// feed keeps a sample of the published rows, the newest first.
type feed struct {
	mu      sync.Mutex
	last    map[string]time.Time
	readers map[string]*schemas.ValueReader
	kept    []Upsert
	version int
	values  bool // rows are shown with their values
}

func newFeed() feed {
	return feed{last: map[string]time.Time{}, readers: map[string]*schemas.ValueReader{}}
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
			u.Fields = f.fields(r, row.Value)
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

// fields decodes a value. If that fails, the page shows the row without them.
func (f *feed) fields(r *schemas.Resource, value []byte) [][2]string {
	reader := f.readers[r.Name]
	if reader == nil {
		var err error
		if reader, err = schemas.NewValueReader(r, ""); err != nil {
			return nil
		}
		f.readers[r.Name] = reader
	}
	decoded, err := reader.Read(value)
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(decoded.AppendJSON(nil, true)))
	d.UseNumber()
	var fields [][2]string
	for t, err := d.Token(); err == nil; t, err = d.Token() {
		name, ok := t.(string)
		if !ok {
			continue // the braces
		}
		switch v, _ := d.Token(); v := v.(type) {
		case string:
			fields = append(fields, [2]string{name, v})
		case json.Number:
			if name != "id" {
				fields = append(fields, [2]string{name, v.String()})
			}
		}
	}
	return fields
}
