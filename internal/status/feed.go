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

// feed keeps a sample of the published rows, the newest first. It keeps rows as they were written, and
// decodes them when it is read.
type feed struct {
	mu      sync.Mutex
	last    map[string]time.Time
	readers map[string]*schemas.ValueReader
	kept    []*sample
	version int
	values  bool // rows are shown with their values
}

type sample struct {
	Upsert
	resource *schemas.Resource
	value    []byte // nil once decoded, and where values are not shown
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
	var fresh []*sample
	for _, row := range slices.Backward(rows[max(0, len(rows)-feedRows):]) {
		s := &sample{Upsert: Upsert{At: now.UTC(), Resource: r.Name, ID: row.ID}, resource: r}
		if f.values {
			s.value = bytes.Clone(row.Value)
		}
		fresh = append(fresh, s)
	}
	for _, id := range deleted[max(0, len(deleted)-feedRows):] {
		u := Upsert{At: now.UTC(), Resource: r.Name, ID: id, Gone: true}
		fresh = append(fresh, &sample{Upsert: u})
	}
	f.kept = append(fresh, f.kept...)
	f.kept = f.kept[:min(len(f.kept), feedKept)]
}

// latest is the sample, the newest first, and a number that changes with it.
func (f *feed) latest() (shown []Upsert, version int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.kept {
		if p.value != nil {
			p.Fields, p.value = f.fields(p.resource, p.value), nil
		}
		shown = append(shown, p.Upsert)
	}
	return shown, f.version
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
