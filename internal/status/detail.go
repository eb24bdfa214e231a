package status

import (
	"slices"
	"time"
)

// Detail is what the page shows of one resource beside its Resource: /resources/NAME.json. Its size is
// bounded. It holds no values.
type Detail struct {
	Resource string    `json:"resource"`
	Now      time.Time `json:"now"`
	// Settling says what is settled and what is open; nil where nothing is known of it.
	Settling *Settling `json:"settling,omitempty"`
	// Polls are the last fifty of this instance, since it took the resource over; the newest first.
	Polls []Poll `json:"polls"`
	// Sweeps are the last ten that ended while this instance ran, whoever made them, and the one before; the
	// newest first.
	Sweeps []Sweep `json:"sweeps"`
	// DeadLetters are the last twenty that stand in the topic, whoever wrote them; the newest first. They are
	// read every few seconds, so they may be that much behind.
	DeadLetters []DeadLetter `json:"dead_letters"`
}

// DeadLetter is a row that cannot be published. What it holds is in the topic alone.
type DeadLetter struct {
	ID    string    `json:"id"`             // or 16 hash digits for a row without a usable one
	At    time.Time `json:"at"`             // when it was written
	Field string    `json:"field,omitzero"` // "" for the row as a whole
	Error string    `json:"error"`          // never holds a value
}

// Poll is how one poll ended.
type Poll struct {
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	Rows    int64     `json:"rows"`    // published
	Outcome string    `json:"outcome"` // ok, held (it is on hold) or failed
}

// mostSweeps is how many sweeps of a resource are kept.
const mostSweeps = 10

// addSweep adds the last sweep to those before it, unless it is known; nil: there was none.
func addSweep(known []Sweep, last *Sweep) []Sweep {
	if last == nil || len(known) > 0 && known[len(known)-1].Ended.Equal(last.Ended) {
		return known
	}
	return append(slices.Clone(known[max(0, len(known)-mostSweeps+1):]), *last)
}

// Detail is what is known of a resource; false: there is no such one here.
func (b *Board) Detail(name string) (Detail, bool) {
	s := b.ask()
	i := slices.IndexFunc(s.Resources, func(r Resource) bool { return r.Name == name })
	if i < 0 {
		return Detail{}, false
	}
	r := &s.Resources[i]
	d := Detail{Resource: name, Now: s.Now, Settling: r.Settling, Polls: append([]Poll{}, r.Polls...),
		Sweeps: []Sweep{}, DeadLetters: append([]DeadLetter{}, r.LatestLetters...)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.memory[name]; m != nil {
		d.Sweeps = append(d.Sweeps, addSweep(m.sweeps, r.Sweep)...)
	}
	slices.Reverse(d.Polls)
	slices.Reverse(d.Sweeps)
	return d, true
}

// public is d for a stranger: without what was said of a day that cannot be closed.
func (d Detail) public() Detail {
	if d.Settling != nil {
		s := *d.Settling
		s.Days = slices.Clone(s.Days)
		for i := range s.Days {
			if s.Days[i].Why != "" {
				s.Days[i].Why = hidden
			}
		}
		d.Settling = &s
	}
	return d
}
