package status

import (
	"slices"
	"time"
)

// Detail is the page's view of one resource beside its Resource: /resources/NAME.json. Its size is bounded.
// It holds no values.
type Detail struct {
	Resource string    `json:"resource"`
	Now      time.Time `json:"now"`
	// Settling is the settled and the open part. It is nil if unknown.
	Settling *Settling `json:"settling,omitempty"`
	// Polls are the last fifty of this instance, since it took the resource over; the newest first.
	Polls []Poll `json:"polls"`
	// Sweeps are the last ten sweeps of all instances that ended while this one ran, and the one before. The
	// newest is first.
	Sweeps []Sweep `json:"sweeps"`
	// DeadLetters are the last twenty in the topic, of all instances. The newest is first. They are read every
	// few seconds, so they may be that much behind.
	DeadLetters []DeadLetter `json:"dead_letters"`
}

// DeadLetter is a row that cannot be published. Only the topic has its content.
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
	Outcome string    `json:"outcome"` // ok, held (it is blocked) or failed
}

// mostSweeps is how many sweeps of a resource are kept.
const mostSweeps = 10

// addSweep adds the last sweep to those before it, unless it is known. It may be nil.
func addSweep(known []Sweep, last *Sweep) []Sweep {
	if last == nil || len(known) > 0 && known[len(known)-1].Ended.Equal(last.Ended) {
		return known
	}
	return append(slices.Clone(known[max(0, len(known)-mostSweeps+1):]), *last)
}

// Detail returns the Detail of a resource, or false if there is no such resource here.
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

// public returns d for a stranger, without the reasons why days cannot be closed.
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
