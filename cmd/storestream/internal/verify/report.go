package verify

import (
	"github.com/storestream/storestream/internal/compare"
	"github.com/storestream/storestream/schemas"
)

// Verdict says how a topic compares with the service.
type Verdict string

// The verdicts.
const (
	Identical Verdict = "identical"
	Different Verdict = "different"
	Unknown   Verdict = "unknown" // it could not be compared
)

// Result is what `verify -o json` prints.
type Result struct {
	// Verdict is Different where one resource is known to differ, whatever could not be compared.
	Verdict   Verdict   `json:"verdict"`
	Resources []*Report `json:"resources"`
}

// Names is the resources with a verdict.
func (r *Result) Names(v Verdict) []string {
	var names []string
	for _, one := range r.Resources {
		if one.Verdict == v {
			names = append(names, one.Resource)
		}
	}
	return names
}

func (r *Result) verdict() Verdict {
	for _, v := range []Verdict{Different, Unknown} {
		if len(r.Names(v)) > 0 {
			return v
		}
	}
	return Identical
}

// Report is what came of one resource.
type Report struct {
	Resource string  `json:"resource"`
	Source   string  `json:"source"`
	Topic    string  `json:"topic"`
	Verdict  Verdict `json:"verdict"`
	Error    string  `json:"error,omitempty"` // why it could not be compared
	Note     string  `json:"note,omitempty"`
	// How many rows; Foreign: records.
	SourceRows  int `json:"source_rows"`
	TopicRows   int `json:"topic_rows"`
	DeadLetters int `json:"dead_letters"`
	InFlight    int `json:"in_flight"` // differed at first, and not when looked at again
	Missing     int `json:"missing"`
	Stale       int `json:"stale"`
	Extra       int `json:"extra"`
	Untracked   int `json:"untracked"` // differed, and were too many to be looked at again
	Foreign     int `json:"foreign"`   // their key is no row's
	// The first ids of the rows that differ.
	MissingIDs []int64          `json:"missing_ids"`
	StaleIDs   []int64          `json:"stale_ids"`
	ExtraIDs   []int64          `json:"extra_ids"`
	AsOf       *schemas.Instant `json:"as_of"` // of its watermark; nil: none
	Seconds    float64          `json:"seconds"`
}

// mostIDs bounds the ids of each kind.
const mostIDs = 100

// IDs is the first ids of the rows that differ so.
func (r *Report) IDs(kind compare.Kind) []int64 { return *r.idsOf(kind) }

func (r *Report) idsOf(kind compare.Kind) *[]int64 {
	switch kind {
	case compare.Missing:
		return &r.MissingIDs
	case compare.Stale:
		return &r.StaleIDs
	}
	return &r.ExtraIDs
}

func (r *Report) note(text string) {
	if r.Note != "" {
		text = r.Note + "; " + text
	}
	r.Note = text
}
