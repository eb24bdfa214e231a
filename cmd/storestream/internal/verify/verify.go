// Package verify compares topics with the service row by row, and says whether they are equal. It changes
// nothing.
//
// Topic and service both change while they are read, so most differences are at first only under way. verify
// looks at them again, up to twice, each time after the running instance has had the time to deliver them:
//
//	read both in full -- a poll goes by -- look again -- a poll goes by -- look again
//	   equal: done                      equal: was in flight            differs: different
//
// Rows that the instance defers it publishes an overlap later: minutes. So long verify waits for them.
//
// While a group rebalances, no instance polls, and rows wait. So between two owners verify waits, and the
// time of a new owner starts with it. If no instance polls at all, verify does not wait: rows that changed
// since the last instance stopped do differ.
package verify

import (
	"context"
	"sync"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// Config says what to compare. All of it is needed.
type Config struct {
	Settings  *config.Config
	Schemas   *schemas.Set
	Cluster   *producer.Cluster
	Resources []string
	// Say receives a line for people if a resource's comparison reads or waits for more than ten seconds.
	// Several goroutines call it.
	Say func(resource, text string)
}

// Run compares the resources. It returns an error if ctx ends, or if a source cannot be opened. The result
// names the resources that could not be compared.
func Run(ctx context.Context, c Config) (*Result, error) {
	compare, end, err := OpenService(ctx, c.Settings, c.Cluster)
	if err != nil {
		return nil, err
	}
	defer end()
	result := &Result{Resources: make([]*Report, len(c.Resources))}
	turn := make(chan struct{}, 1)
	var all sync.WaitGroup
	for i, name := range c.Resources {
		r := c.Schemas.Get(name)
		one := newComparison(c, r, compare(r, func(int) {}))
		all.Go(func() {
			result.Resources[i] = one.report(one.run(ctx, turn))
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	result.Verdict = result.verdict()
	return result, nil
}

// Verdict says how a topic compares with the service.
type Verdict string

// The verdicts.
const (
	Identical  Verdict = "identical"
	Incomplete Verdict = "incomplete" // identical but for more rows with dead letters than health allows
	Different  Verdict = "different"
	Unknown    Verdict = "unknown" // it could not be compared
)

// Result is what `verify -o json` prints.
type Result struct {
	// Verdict is `identical`, `incomplete`, `different` or `unknown`. It is Different if one resource is
	// known to differ, even if others could not be compared. It is Incomplete if the others are Identical.
	Verdict Verdict `json:"verdict"`
	// Resources lists a result for each resource.
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
	for _, v := range []Verdict{Different, Unknown, Incomplete} {
		if len(r.Names(v)) > 0 {
			return v
		}
	}
	return Identical
}

// Report is the result of one resource.
type Report struct {
	// Resource, Source and Topic are the compared sides.
	Resource string `json:"resource"`
	Source   string `json:"source"`
	Topic    string `json:"topic"`
	// Verdict and Error are its verdict, and why that is unknown.
	Verdict Verdict `json:"verdict"`
	Error   string  `json:"error,omitempty"`
	reconcile.Report
	// Missing, Stale and Extra are the rows missing, outdated and extra in the topic. An extra row is not in the
	// service.
	Missing int `json:"missing"`
	Stale   int `json:"stale"`
	Extra   int `json:"extra"`
	// Unknown is the number of rows that only one of two readings showed.
	Unknown int `json:"unknown"`
	// MissingIDs, StaleIDs, ExtraIDs and UnknownIDs are the first 100 ids of each kind.
	MissingIDs []int64 `json:"missing_ids"`
	StaleIDs   []int64 `json:"stale_ids"`
	ExtraIDs   []int64 `json:"extra_ids"`
	UnknownIDs []int64 `json:"unknown_ids"`
	// AsOf is when the last complete pass began. It is the watermark's, or nil.
	AsOf *schemas.Instant `json:"as_of"`
	// Seconds is the duration.
	Seconds float64 `json:"seconds"`
	// Notes lists explanations and advice.
	Notes []string `json:"notes"`
}

// mostIDs bounds the ids of each kind.
const mostIDs = 100

// IDs is the first ids of the rows that differ so.
func (r *Report) IDs(kind reconcile.Kind) []int64 {
	return map[reconcile.Kind][]int64{reconcile.Missing: r.MissingIDs, reconcile.Stale: r.StaleIDs,
		reconcile.Extra: r.ExtraIDs, reconcile.Unknown: r.UnknownIDs}[kind]
}
