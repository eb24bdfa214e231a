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
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/ownership"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/compare"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// Config says what to compare. All of it is needed.
type Config struct {
	Settings  *config.Config
	Schemas   *schemas.Set
	Cluster   *producer.Cluster
	Resources []string
	// Reading hears how far the comparison of a resource has read.
	Reading func(resource string, p compare.Progress)
	// Waiting hears, again and again, what each resource with rows to look at again waits for.
	Waiting func(waits []Wait)
}

const (
	// lookEvery is how often the watermarks are read while the running instance polls, askEvery how often its
	// group is asked who has what.
	lookEvery = 300 * time.Millisecond
	askEvery  = time.Second
)

// Run compares. Its error is the end of ctx, or a source that cannot be opened. What could not be compared is
// in the result.
func Run(ctx context.Context, c Config) (*Result, error) {
	sources, err := connect.OpenSources(c.Settings, zap.NewNop())
	if err != nil {
		return nil, err
	}
	defer sources.Close()
	counts := metrics.New(prometheus.NewRegistry())
	marks, _ := producer.ReadWatermarks(ctx, c.Cluster) // if this fails, the reading fails too
	for _, mark := range marks {
		sources.Dialect().Load(mark.Dialect)
	}
	var all comparisons
	for _, name := range c.Resources {
		r := c.Schemas.Get(name)
		one := newComparison(c, r, sources.New(r, counts.Resource(name), zap.NewNop(), connect.Audience{}))
		one.mark.Identity = marks[name].Identity
		all = append(all, one)
		// Otherwise every row that cannot be decoded would be called stale.
		one.err = producer.SameSchemas(ctx, c.Cluster, r)
		one.topicID, _ = producer.TopicID(ctx, c.Cluster, name) // what fails here fails the reading too
		one.readAll(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if err := all.lookAgain(ctx, c); err != nil {
		return nil, err
	}
	result := &Result{}
	for _, one := range all {
		one.sameTopic(ctx)
		result.Resources = append(result.Resources, one.report())
	}
	result.Verdict = result.verdict()
	return result, nil
}

// comparisons are those of one Run.
type comparisons []*comparison

// lookAgain gives every resource with differences its looks, side by side: what takes time is to wait for the
// polls between them.
func (all comparisons) lookAgain(ctx context.Context, c Config) error {
	watch := producer.NewWatch(c.Cluster)
	var asked time.Time
	for {
		if all.open() && time.Since(asked) >= askEvery {
			all.askGroup(ctx, c.Cluster)
			asked = time.Now()
		}
		_ = watch.Look(ctx) // a broker that does not answer is waited for as long as an instance that does not poll
		marks := watch.Watermarks()
		for _, one := range all {
			if mark, ok := marks[one.resource.Name]; ok {
				one.note(ctx, mark)
			}
			if one.open() && one.ready(time.Now()) {
				one.look(ctx)
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !all.open() {
			return nil
		}
		c.Waiting(all.waits())
		if err := wait.For(ctx, lookEvery); err != nil {
			return err
		}
	}
}

func (all comparisons) open() bool { return slices.ContainsFunc(all, (*comparison).open) }

// waits is what those that are open wait for.
func (all comparisons) waits() (waits []Wait) {
	for _, one := range all {
		if one.open() {
			waits = append(waits, one.wait())
		}
	}
	return waits
}

// askGroup asks the group for the owners. If it does not answer, the known owners stay.
func (all comparisons) askGroup(ctx context.Context, cluster *producer.Cluster) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	members, err := ownership.Members(ctx, cluster)
	sharing := errors.Is(err, producer.ErrSharing)
	if err != nil && !sharing {
		return
	}
	owners := ownership.ByResource(members)
	for _, one := range all {
		one.ownership.Note(owners[one.resource.Name], sharing || len(members) > 0, time.Now())
	}
}

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
	// Verdict is Different if one resource is known to differ, even if others could not be compared.
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

// Report is the result of one resource.
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
	Unknown     int `json:"unknown"`   // shown in one reading, and not in a later one
	Untracked   int `json:"untracked"` // differed, and were too many to be looked at again
	Foreign     int `json:"foreign"`   // their key is no row's
	// The first ids of the rows that differ.
	MissingIDs []int64          `json:"missing_ids"`
	StaleIDs   []int64          `json:"stale_ids"`
	ExtraIDs   []int64          `json:"extra_ids"`
	UnknownIDs []int64          `json:"unknown_ids"`
	AsOf       *schemas.Instant `json:"as_of"` // of its watermark; nil: none
	Seconds    float64          `json:"seconds"`
	// Anew is set if the topic was created again since it was filled, or lost its end. An owner then fills it
	// from the start.
	Anew bool `json:"-"`
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
	case compare.Unknown:
		return &r.UnknownIDs
	}
	return &r.ExtraIDs
}

func (r *Report) note(text string) {
	if r.Note != "" {
		text = r.Note + "; " + text
	}
	r.Note = text
}
