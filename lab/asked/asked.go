// Package asked judges a topic by what people asked of its owners. It says which versions of rows may be in
// the topic once more, which rows a replay should have published again, and what may not happen in a pause.
// It knows requests and watermarks alone, as docs/reference.md describes their JSON.
package asked

import (
	"fmt"
	"slices"
	"time"
)

// Ask is a record of the topic of requests. ID is its offset.
type Ask struct {
	ID       int64     `json:"-"`
	Resource string    `json:"resource"`
	Kind     string    `json:"kind"`
	To       time.Time `json:"to"`
}

// The kinds of requests that count here.
const (
	reset  = "reset"
	replay = "replay"
	cancel = "cancel"
	pause  = "pause"
	resume = "resume"
)

// mostParts is how many replays of parts may wait. Further ones are refused.
const mostParts = 5

// Mark is a watermark, as far as requests show in it.
type Mark struct {
	Rows     int64     `json:"rows"`
	Request  int64     `json:"request"`
	Instance string    `json:"instance"`
	Written  time.Time `json:"written"`
	// Ends are the offsets of the data topic's partitions behind the records that were committed with it.
	Ends    []int64  `json:"ends"`
	Replay  *Replay  `json:"replay"`
	Parts   []Replay `json:"parts"`
	Results []Result `json:"results"`
	Pause   *Pause   `json:"pause"`
}

// Pause is a pause. Until is zero if it does not end by itself.
type Pause struct {
	Until time.Time `json:"until"`
}

func (p *Pause) lasts(now time.Time) bool {
	return p != nil && (p.Until.IsZero() || now.Before(p.Until))
}

// inHand returns the replays of a watermark: those of parts, and the one that a reset has begun.
func (m *Mark) inHand() []Replay {
	if m.Replay == nil {
		return m.Parts
	}
	return append(slices.Clone(m.Parts), *m.Replay)
}

// Wrong lists the contradictions between the requests for a resource and its watermarks, each in order. Each
// request is accepted and begins what it asks for. Nothing is published in a pause. A pause and a replay stay
// until their end under each owner, and each replay ends with a result, a cancelled one too.
func Wrong(asks []Ask, marks []Mark) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	before := Mark{Request: -1}
	for _, m := range marks {
		accepted := slices.DeleteFunc(slices.Clone(asks), func(a Ask) bool {
			return a.ID <= before.Request || a.ID > m.Request
		})
		for i, a := range accepted {
			if what := m.lacks(a, accepted[i+1:]); what != "" {
				say("request %d (%s) was accepted, and there is no %s", a.ID, a.Kind, what)
			}
		}
		if before.Pause.lasts(m.Written) {
			if n := m.Rows - before.Rows; n != 0 {
				say("%d rows were published in a pause, at %s", n, m.Written.Format(time.RFC3339Nano))
			}
			if m.Pause == nil && !has(accepted, resume) {
				say("a pause ended by %s, and nobody asked for that", m.Written.Format(time.RFC3339Nano))
			}
		}
		for _, r := range before.inHand() {
			if !m.has(r.Request) && !m.replaced(&r) && m.resultOf(r.Request) == nil {
				say("replay %d ended without a result", r.Request)
			}
		}
		before = m
	}
	for _, a := range asks {
		if a.ID > before.Request {
			say("request %d (%s) was never accepted", a.ID, a.Kind)
		}
	}
	return wrong
}

// lacks names what a request should have begun in the watermark that accepts it and these later ones, and has
// not, or returns "".
func (m *Mark) lacks(a Ask, later []Ask) string {
	switch {
	case a.Kind == reset && !has(later, cancel) && m.Replay == nil,
		a.Kind == replay && !has(later, cancel) && !m.has(a.ID) && len(m.Parts) < mostParts:
		return "replay"
	case a.Kind == pause && !has(later, resume) && m.Pause == nil:
		return "pause"
	}
	return ""
}

// has reports whether one of the requests is of this kind.
func has(asks []Ask, kind string) bool {
	return slices.ContainsFunc(asks, func(a Ask) bool { return a.Kind == kind })
}

// has reports whether the replay of a request is in hand.
func (m *Mark) has(request int64) bool {
	return slices.ContainsFunc(m.inHand(), func(r Replay) bool { return r.Request == request })
}

// replaced reports whether a later reset goes on with the replay of a reset.
func (m *Mark) replaced(r *Replay) bool { return !r.isPart() && m.Replay != nil }

func (m *Mark) resultOf(request int64) *Result {
	for i := range m.Results {
		if m.Results[i].Request == request {
			return &m.Results[i]
		}
	}
	return nil
}
