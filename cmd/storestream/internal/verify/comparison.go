package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/ownership"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/compare"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

const (
	// mostLooks is how often what differs is looked at again.
	mostLooks = 2
	// deliverWithin is how long an instance takes at most from the end of a poll until its rows can be read.
	deliverWithin = 5 * time.Second
)

// comparison is the comparison of one resource.
type comparison struct {
	resource *schemas.Resource
	settings config.Resource
	topic    string
	cluster  *producer.Cluster
	compare  compare.Config
	reading  func(resource string, p compare.Progress)
	began    time.Time

	compared *compare.Comparison // of the last reading in full
	looked   time.Time           // when its topic and source were last read
	looks    int                 // since the first reading
	again    bool                // it was read in full a second time
	err      error               // why it cannot be compared

	partitions int    // of the topic, when it was last read
	topicID    string // before it was first read, "" where it is unknown
	otherLog   string // why it does not hold all that the watermark tells of, "": it may

	// The state of the running instance.
	ownership ownership.Resource
	mark      watermark.Watermark
}

func newComparison(c Config, r *schemas.Resource, source poller.Source) *comparison {
	settings := c.Settings.Resources[r.Name]
	start := connect.Start(settings)
	o := &comparison{
		resource: r, settings: settings, topic: c.Cluster.Topic(r.Name), cluster: c.Cluster,
		reading: c.Reading, began: time.Now(), mark: watermark.New(r.Name),
	}
	o.compare = compare.Config{
		Start: start, CreatedAt: poller.CreatedAtIn(r), Now: time.Now,
		Source: func(ctx context.Context, ids compare.Range, suspects []poller.Suspect, take compare.Take) error {
			read := poller.CompareSource(source, poller.Request{From: start, Identity: o.mark.Identity},
				func() schemas.Instant { return schemas.InstantOf(time.Now()) })
			return read(ctx, ids, suspects, take)
		},
		Topic: func(ctx context.Context, from []int64, wanted func(int64) bool,
			fold func(watermark.Published) error) ([]int64, error) {
			ends, err := producer.ReadTopic(ctx, c.Cluster, r, from, wanted, fold)
			if err == nil {
				o.partitions = len(ends)
			}
			return ends, err
		},
		Records: func(ctx context.Context) (int64, error) {
			return producer.RecordsSince(ctx, c.Cluster, r.Name, schemas.MinInstant)
		},
		Memory: int64(c.Settings.Sweep.Memory), ByID: settings.Source == config.Postgres,
	}
	return o
}

// readAll reads topic and service in full, part by part.
func (o *comparison) readAll(ctx context.Context) {
	limit, err := producer.MaxRecordBytes(ctx, o.cluster, o.resource.Name)
	if o.read(err); o.err != nil {
		return
	}
	o.compare.TooLarge = poller.TooLarge(limit)
	o.compared = compare.New(o.compare)
	for more := true; more && o.err == nil; _, more = o.compared.Part() {
		o.read(o.compared.First(ctx, func(p compare.Progress) { o.reading(o.resource.Name, p) }))
	}
}

// read notes how a reading ended.
func (o *comparison) read(err error) {
	o.looked = time.Now()
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		err = fmt.Errorf("topic %s does not exist: `storestream run` creates and fills it", o.topic)
	}
	if err != nil {
		o.err = err
	}
}

// note notes the watermark. Partitions that were added move keys: each row whose key has moved would be
// missing and look like another program's, and no sweep runs on such a topic. A topic that was created again
// may have any number of partitions.
func (o *comparison) note(ctx context.Context, mark watermark.Watermark) {
	o.mark = mark // even if no row is looked at again: the report has its times
	if was := int(mark.Partitions); o.err == nil && was > 0 && was != o.partitions && !o.another(ctx) {
		o.err = producer.OtherPartitions(o.cluster, mark, o.partitions)
	}
}

// another reports whether the topic was created again since it was filled, or lost its end. It is false if
// Kafka cannot tell.
func (o *comparison) another(ctx context.Context) bool {
	if o.mark.Written > schemas.MinInstant {
		if other, err := producer.OtherLog(ctx, o.cluster, o.mark); err == nil {
			o.otherLog = other
		}
	}
	return o.otherLog != ""
}

// sameTopic looks at the end whether the topic is still the one that was read, because equal rows are not
// looked at again.
func (o *comparison) sameTopic(ctx context.Context) {
	if o.err != nil {
		return
	}
	id, err := producer.TopicID(ctx, o.cluster, o.resource.Name)
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		o.read(err)
	case err == nil && id != "" && o.topicID != "" && id != o.topicID:
		o.err = fmt.Errorf("topic %s was created anew while it was compared: verify it again once an instance has "+
			"filled it from the start (`storestream watermark list`)", o.topic)
	default:
		o.another(ctx)
	}
}

// open says whether there is something to look at again.
func (o *comparison) open() bool {
	return o.err == nil && o.looks < mostLooks &&
		(o.compared.Suspects() > 0 || o.compared.Report().Untracked > 0 && !o.again)
}

// ready reports whether the running instance has had the time to deliver changes that were under way. It has
// if a pass that began after the last look is complete. Over REST only some passes are complete ones, so two
// intervals of one owner and a little are enough too. While rows are deferred, which it publishes an overlap
// later, that is too soon.
func (o *comparison) ready(now time.Time) bool {
	w := o.wait()
	switch over := now.After(w.Until); {
	case o.ownership.Abandoned:
		return true
	case w.Handover:
		return false
	case w.Deferred:
		return over
	default:
		return over || o.mark.AsOf > schemas.InstantOf(o.looked)
	}
}

// wait returns the reason to wait before the differences are looked at again.
func (o *comparison) wait() Wait {
	w := Wait{Resource: o.resource.Name, Last: o.looks == mostLooks-1, Handover: o.ownership.Between(),
		Deferred: o.mark.Trouble != nil && o.mark.Trouble.Until != nil, Overlap: o.settings.Overlap}
	if o.compared != nil {
		w.Rows = o.compared.Suspects() + o.compared.Report().Untracked
	}
	if w.Handover {
		return w
	}
	began := o.looked
	if o.ownership.Since.After(began) {
		began = o.ownership.Since
	}
	w.Until = began.Add(2*o.settings.Interval + deliverWithin)
	if w.Deferred {
		w.Until = w.Until.Add(w.Overlap)
	}
	return w
}

// look takes one look at what differs. Where more rows differed than can be looked at again, as while
// everything is updated at once, it reads both in full once more.
func (o *comparison) look(ctx context.Context) {
	if o.compared.Report().Untracked > 0 && !o.again {
		o.again = true
		o.readAll(ctx)
		return
	}
	o.read(o.compared.Look(ctx))
	if o.looks++; o.ownership.Abandoned {
		o.looks = mostLooks
	}
}

// report returns the result.
func (o *comparison) report() *Report {
	r := &Report{Resource: o.resource.Name, Source: o.settings.Source, Topic: o.topic, Verdict: Identical,
		MissingIDs: []int64{}, StaleIDs: []int64{}, ExtraIDs: []int64{}, UnknownIDs: []int64{},
		Seconds: math.Round(time.Since(o.began).Seconds()*10) / 10}
	if o.mark.AsOf > schemas.MinInstant {
		r.AsOf = &o.mark.AsOf
	}
	if o.err != nil {
		r.Verdict, r.Error = Unknown, status.FirstLine(o.err)
		return r
	}
	figures, count := o.compared.Report(), o.compared.Count()
	r.SourceRows, r.TopicRows, r.DeadLetters = figures.SourceRows, figures.TopicRows, figures.DeadLetters
	r.InFlight, r.Untracked, r.Foreign = figures.InFlight, figures.Untracked, figures.Foreign
	r.Missing, r.Stale, r.Extra = count[compare.Missing], count[compare.Stale], count[compare.Extra]
	r.Unknown = count[compare.Unknown]
	strays := 0
	for _, d := range o.compared.Differences() {
		if len(d.Strays) > 0 {
			strays++
		}
		if ids := r.idsOf(d.Kind); len(*ids) < mostIDs {
			*ids = append(*ids, d.ID)
		}
	}
	switch {
	case r.Missing+r.Stale+r.Extra > 0:
		r.Verdict, r.Anew = Different, o.otherLog != ""
	case o.otherLog != "": // nobody knows whether that was before the topic was read
		r.Verdict, r.Error = Unknown, "the topic does not hold all that was published: "+o.otherLog+": verify it "+
			"again once an instance has filled it from the start (`storestream watermark list`)"
	case r.Unknown > 0:
		r.Verdict, r.Error = Unknown, fmt.Sprintf("the service showed %s (such as %d) in one reading and not in a "+
			"later one, and the topic does not have them as they were shown. If they were deleted meanwhile, another "+
			"verify does not meet them. If it does, the service answers the same question in two ways",
			terminal.Plural(r.Unknown, "row"), r.UnknownIDs[0])
	case figures.Unread > 0:
		r.Verdict, r.Error = Unknown, UnreadBatches(figures.Unread)
	}
	o.addNotes(r, figures.Early, strays)
	return r
}

// UnreadBatches returns the text about n batches of a topic that were stepped over.
func UnreadBatches(n int) string {
	return fmt.Sprintf("the topic has batches of another program that are too large to be read (%d), and these "+
		"may hold any row's key: docs/security.md says what to do, \"A batch that was stepped over\"", n)
}

// addNotes adds sentences to the figures. early and strays are numbers of rows.
func (o *comparison) addNotes(r *Report, early, strays int) {
	if r.Verdict == Different && o.ownership.Abandoned {
		r.note("no instance polls it: rows that changed since the last one did are differences")
	}
	if r.Verdict == Different && r.Unknown > 0 {
		r.note(terminal.Plural(r.Unknown, "row") + " beside them: the service showed each in one reading and not " +
			"in a later one, so verify cannot tell whether they differ")
	}
	if r.Verdict == Different && o.mark.Trouble.Blocked() {
		r.note("it is blocked, and a sweep waits until it goes on: " + o.mark.Trouble.Why)
	}
	if r.Anew {
		r.note("the topic does not hold all that was published: " + o.otherLog)
	}
	if unread := o.compared.Report().Unread; unread > 0 && r.Verdict == Different {
		r.note(UnreadBatches(unread))
	}
	if r.Foreign > 0 {
		r.note(terminal.Plural(r.Foreign, "record") + " in the topic with a key that is no row's: no row differs " +
			"by it, but another program wrote it, and consumers that decode keys may stop there")
	}
	if early > 0 {
		r.note(fmt.Sprintf("%s of the topic from before resources.%s.start: not compared",
			terminal.Plural(early, "row"), o.resource.Name))
	}
	if strays > 0 {
		r.note(terminal.Plural(strays, "row") + " of those that differ: another program wrote a record into a " +
			"partition where its key does not belong, and consumers may take it for the row")
	}
}
