package main

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/compare"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// verified is the comparison of one resource, and what verify -o json says of it.
type verified struct {
	Resource string  `json:"resource"`
	Source   string  `json:"source"`
	Topic    string  `json:"topic"`
	Verdict  verdict `json:"verdict"`
	Error    string  `json:"error,omitempty"`
	Note     string  `json:"note,omitempty"`
	figures
	MissingIDs []int64          `json:"missing_ids"`
	StaleIDs   []int64          `json:"stale_ids"`
	ExtraIDs   []int64          `json:"extra_ids"`
	AsOf       *schemas.Instant `json:"as_of"`
	Seconds    float64          `json:"seconds"`

	v       *verification
	cfg     config.Resource
	compare compare.Config
	c       *compare.Comparison
	err     error
	began   time.Time
	looked  time.Time // when what it compares was last read
	looks   int
	anew    bool // it was compared anew already
	polled  polled
	asOf    *schemas.Instant
}

type figures struct {
	SourceRows  int `json:"source_rows"`
	TopicRows   int `json:"topic_rows"`
	DeadLetters int `json:"dead_letters"`
	InFlight    int `json:"in_flight"`
	Missing     int `json:"missing"`
	Stale       int `json:"stale"`
	Extra       int `json:"extra"`
	Untracked   int `json:"untracked"`
	Foreign     int `json:"foreign"`
}

type verdict string

const (
	identical verdict = "identical"
	different verdict = "different"
	unknown   verdict = "unknown"
)

func newVerified(v *verification, in *instance, name string) *verified {
	c := v.cfg.Resources[name]
	one := &verified{Resource: name, Source: c.Source, Topic: v.cluster.Topic(name), v: v, cfg: c, began: time.Now()}
	r := v.set.Get(name)
	one.compare = compare.Config{
		Start: start(c), CreatedAt: poller.CreatedAtIn(r), Now: time.Now,
		Topic: func(ctx context.Context, from []int64, fold func(watermark.Published) error) ([]int64, error) {
			return producer.ReadTopic(ctx, v.cluster, r, from, fold)
		},
		Source:      poller.CompareSource(in.source(r, in.metrics.Resource(name), in.log, nil), start(c), time.Now),
		DeadLetters: func(ctx context.Context) (map[int64]bool, error) { return lettered(ctx, v, name) },
	}
	return one
}

// lettered is the rows of a resource that have a dead letter. Letters of rows without a usable id are no row's.
func lettered(ctx context.Context, v *verification, resource string) (map[int64]bool, error) {
	letters, err := producer.ReadDeadLetters(ctx, v.cluster, resource)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, nil
	}
	ids := map[int64]bool{}
	for key := range letters {
		if id, ok := watermark.DeadLetterRow(key); ok {
			ids[id] = true
		}
	}
	return ids, err
}

// first reads both in full.
func (o *verified) first(ctx context.Context) {
	o.c = compare.New(o.compare)
	o.fail(o.c.First(ctx, func(p compare.Progress) { o.progress(p) }))
	o.looked = time.Now()
}

// progress shows how far it is. The rows of the topic are the best guess of how many the service has.
func (o *verified) progress(p compare.Progress) {
	if p.SourceRows == 0 {
		o.v.bar.Show(o.Resource+": reading the topic", p.TopicRows, 0)
	} else {
		o.v.bar.Show(o.Resource+": reading the service", p.SourceRows, max(p.TopicRows, 1))
	}
}

func (o *verified) fail(err error) {
	if err != nil {
		o.err = o.v.explain(o.Resource, err)
	}
}

// open says whether there is something to look at again.
func (o *verified) open() bool {
	return o.err == nil && o.looks < mostLooks && (o.c.Suspects() > 0 || o.c.Report().Untracked > 0 && !o.anew)
}

func (o *verified) differing() int { return o.c.Suspects() + o.c.Report().Untracked }

// ready says whether the running instance has had the time to deliver what was under way: a pass that began after the last look is complete, or two
// intervals of one owner are over and a little, for over REST only some passes are complete ones.
func (o *verified) ready(now time.Time) bool {
	switch {
	case o.polled.nobody || o.asOf != nil && *o.asOf > schemas.InstantOf(o.looked):
		return true
	case o.polled.between():
		return false
	}
	began := o.looked
	if o.polled.since.After(began) {
		began = o.polled.since
	}
	return now.Sub(began) > 2*o.cfg.Interval+verifyPatience
}

const verifyPatience = 5 * time.Second

// again takes one look. Where more rows differed than can be looked at again, as while everything is updated at once, it compares anew, once.
func (o *verified) again(ctx context.Context) {
	if o.c.Report().Untracked > 0 && !o.anew {
		o.anew = true
		o.first(ctx)
		return
	}
	o.fail(o.c.Look(ctx))
	o.looked = time.Now()
	if o.looks++; o.polled.nobody {
		o.looks = mostLooks
	}
}

// mostIDs bounds the ids of each kind in the JSON.
const mostIDs = 100

// conclude says what came of it.
func (o *verified) conclude() {
	o.AsOf, o.Seconds = o.asOf, math.Round(time.Since(o.began).Seconds()*10)/10
	o.MissingIDs, o.StaleIDs, o.ExtraIDs = []int64{}, []int64{}, []int64{}
	if o.err != nil {
		o.Verdict, o.Error = unknown, firstLine(o.err)
		return
	}
	r, count := o.c.Report(), o.c.Count()
	o.figures = figures{SourceRows: r.SourceRows, TopicRows: r.TopicRows, DeadLetters: r.DeadLetters, InFlight: r.InFlight, Untracked: r.Untracked, Foreign: r.Foreign,
		Missing: count[compare.Missing], Stale: count[compare.Stale], Extra: count[compare.Extra]}
	strays := 0
	for _, d := range o.c.Differences() {
		if len(d.Strays) > 0 {
			strays++
		}
		if ids := o.ids(d.Kind); len(*ids) < mostIDs {
			*ids = append(*ids, d.ID)
		}
	}
	if o.Verdict = identical; o.Missing+o.Stale+o.Extra > 0 {
		o.Verdict = different
		if o.polled.nobody {
			o.note("no instance polls it: rows that changed since the last one did are differences")
		}
	}
	if r.Foreign > 0 {
		o.note(terminal.Plural(r.Foreign, "record") + " in the topic with a key that is no row's: no row differs by it, but another program wrote it, and consumers that decode keys may stop there")
	}
	if strays > 0 {
		o.note(terminal.Plural(strays, "row") + " of those that differ: another program wrote a record into a partition where its key does not belong, and consumers may take it for the row")
	}
}

func (o *verified) note(text string) {
	if o.Note != "" {
		text = o.Note + "; " + text
	}
	o.Note = text
}

func (o *verified) ids(kind compare.Kind) *[]int64 {
	switch kind {
	case compare.Missing:
		return &o.MissingIDs
	case compare.Stale:
		return &o.StaleIDs
	}
	return &o.ExtraIDs
}
