// Package row compares one row in the topic with the service (package reconcile), and explains differences.
// It only reads.
//
// Unlike verify, it waits for no poll. A person who asks for one row wants an answer now. The answer tells
// which changes may be under way. If the row differs and the topic got a record of it meanwhile, both are
// looked at again.
package row

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/overview"
	"github.com/storestream/storestream/cmd/storestream/internal/verify"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// Config says which row to look at. All of it is needed.
type Config struct {
	Settings *config.Config
	Schemas  *schemas.Set
	Cluster  *producer.Cluster
	Resource string
	ID       int64
	// Mask leaves out the values of personal fields.
	Mask bool
	// Reading receives the progress: done of about `of`, or 0 if that is unknown.
	Reading func(what string, done, of int)
}

// mostLooks is how often the service is asked if the topic changes meanwhile.
const mostLooks = 3

// Look looks at the row. Its error is that of the topic, of the registry, or of a configuration by which no
// source can be opened. A service that cannot be asked is in the report.
func Look(ctx context.Context, c Config) (*Report, error) {
	sources, err := connect.OpenSources(c.Settings, zap.NewNop())
	if err != nil {
		return nil, err
	}
	defer sources.Close()
	r := c.Schemas.Get(c.Resource)
	values, err := schemas.NewValueReader(r, "")
	if err != nil {
		return nil, err
	}
	settings := c.Settings.Resources[r.Name]
	l := &look{cfg: c, resource: r, settings: settings, start: connect.Start(settings), values: values,
		strays: map[int32]watermark.Published{}}
	if err := l.readLetter(ctx); err != nil {
		return nil, err
	}
	marks, _, _ := producer.ReadWatermarks(ctx, c.Cluster) // without them the row is still compared
	for _, mark := range marks {
		sources.Dialect().Load(mark.Dialect)
	}
	source := sources.New(r, metrics.New(prometheus.NewRegistry()).Resource(r.Name), zap.NewNop(),
		connect.Audience{})
	if err := l.compare(ctx, source, marks[r.Name].Identity); err != nil {
		return nil, err
	}
	report := l.report()
	if ctx.Err() == nil {
		l.explain(ctx, report)
	}
	report.hide(c.Settings.Hidden().Hide)
	return report, nil
}

// look is one Look.
type look struct {
	cfg      Config
	resource *schemas.Resource
	settings config.Resource
	start    schemas.Instant
	values   *schemas.ValueReader
	letter   *watermark.DeadLetter // nil: it has none

	// newest is the newest record of the row in its key's partition, or nil. strays are the newest ones in other
	// partitions, by partition: another program wrote them. Tombstones are not among them.
	newest  *watermark.Published
	strays  map[int32]watermark.Published
	records int // of the row, with strays and older versions that compaction has not taken out
	unread  int // batches that were not read: each may contain a record of the row

	asked   time.Time            // when the service was asked last
	failed  error                // why it could not be asked
	found   reconcile.Difference // what both sides have. Its Kind is "" if that is equal
	service schemas.Value        // of found.Row
	// nameless is the number of rows without a usable id that the service shows. The row in question may be
	// among them.
	nameless int
}

// compare compares the row. Its error is not the service's.
func (l *look) compare(ctx context.Context, source poller.Source, identity *watermark.Identity) error {
	read := 0
	var failed error // of the topic
	compare := reconcile.New(reconcile.Config{
		IDs: []int64{l.cfg.ID}, ByID: l.settings.Source == config.Postgres, Start: l.start,
		CreatedAt: poller.CreatedAtIn(l.resource), Now: time.Now, Overlap: l.settings.Overlap,
		Topic: func(ctx context.Context, from []int64, wanted func(int64) bool,
			fold func(watermark.Published) error) (ends []int64, err error) {
			ends, failed = l.readTopic(ctx, from, wanted, fold)
			return ends, failed
		},
		Source: poller.CompareSource(source, poller.Request{From: l.start, Identity: identity},
			func() schemas.Instant { return schemas.InstantOf(time.Now()) },
			func(n int) { read += n; l.cfg.Reading("reading the service", read, 0) }),
	})
	if err := compare.First(ctx, func(int, int) {}); err != nil {
		return err
	}
	for range mostLooks {
		read, l.asked = 0, time.Now()
		l.failed = compare.Look(ctx)
		if failed != nil {
			return failed
		}
		l.found, l.nameless = compare.Differences()[0], compare.Report().Nameless
		if l.failed != nil || l.verdict() != verify.Different {
			break
		}
		before := l.records
		if err := compare.CatchUp(ctx); err != nil {
			return err
		}
		if l.found = compare.Differences()[0]; l.verdict() == verify.Identical || l.records == before {
			break
		}
	}
	if l.failed != nil {
		return nil //nolint:nilerr // the report tells what the service's failure leaves open
	}
	if l.found.Row != nil {
		var err error
		if l.service, err = l.values.Read(l.found.Row.Value); err != nil {
			return err
		}
	}
	return l.readLetter(ctx)
}

// readTopic reads the topic on. It reads every partition, because another program may have written the row's
// key to a wrong one. Before the first record, the dead letter may tell when the row was created.
func (l *look) readTopic(ctx context.Context, from []int64, wanted func(int64) bool,
	fold func(watermark.Published) error) ([]int64, error) {
	if from == nil {
		for _, p := range []watermark.Published{{ID: l.cfg.ID, CreatedAt: l.createdAt()},
			{ID: l.cfg.ID, Tombstone: true}} {
			if err := fold(p); err != nil {
				return nil, err
			}
		}
	}
	read := 0
	ends, err := producer.ReadTopic(ctx, l.cfg.Cluster, l.resource, from, func(id int64) bool {
		read++
		l.cfg.Reading("reading the topic", read, 0)
		return wanted(id)
	}, func(p watermark.Published) error {
		if l.note(p) {
			return fold(p)
		}
		return nil
	})
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, fmt.Errorf("topic %s does not exist: `storestream run` creates and fills it",
			l.cfg.Cluster.Topic(l.resource.Name))
	}
	return ends, err
}

// note notes a record of the topic. It returns false if the record is no state of the row. If keys of two
// schema ids are in the topic, the row has two partitions, and the later record counts.
func (l *look) note(p watermark.Published) bool {
	if p.Unread {
		l.unread++
	}
	if p.Foreign {
		return false
	}
	l.records++
	switch {
	case p.Stray && p.Tombstone:
		delete(l.strays, p.Partition)
	case p.Stray:
		l.strays[p.Partition] = p
	case l.newest == nil || l.newest.Partition == p.Partition || p.Time > l.newest.Time:
		l.newest = &p
	default:
		return false
	}
	return true
}

func (l *look) readLetter(ctx context.Context) (err error) {
	l.letter, err = producer.ReadDeadLetter(ctx, l.cfg.Cluster, l.resource.Name, l.cfg.ID)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		err = nil
	}
	return err
}

// createdAt returns when the row was created, as its dead letter tells, or MinInstant.
func (l *look) createdAt() schemas.Instant {
	var row map[string]json.RawMessage
	var at time.Time
	if l.letter != nil && json.Unmarshal(l.letter.Row, &row) == nil &&
		json.Unmarshal(row["created_at"], &at) == nil {
		return schemas.InstantOf(at)
	}
	return schemas.MinInstant
}

// verdict judges what both sides have.
func (l *look) verdict() verify.Verdict {
	switch d := l.found; {
	case l.failed != nil, d.Kind == reconcile.Unknown:
		return verify.Unknown
	case d.Kind == "" && d.Row == nil && l.nameless > 0, d.Kind == "" && l.unread > 0:
		return verify.Unknown
	case d.Kind == "", d.Kind == reconcile.Missing && d.Row.UpdatedAt < l.start:
		return verify.Identical
	}
	return verify.Different
}

// report returns the facts, without the reasons.
func (l *look) report() *Report {
	r := &Report{Resource: l.resource.Name, ID: l.cfg.ID, Source: l.settings.Source,
		Topic: l.cfg.Cluster.Topic(l.resource.Name), Verdict: l.verdict(), InTopic: l.inTopic(),
		InService: l.inService(), Differs: []string{}, Notes: []string{}}
	var topic, service *schemas.Value
	if r.InTopic.State == Present {
		topic = &l.newest.Value
	}
	if r.InService.State == Present {
		service = &l.service
	}
	r.setFields(l.resource.Fields, topic, service, l.cfg.Mask)
	if l.letter != nil {
		r.DeadLetter = &DeadLetter{Partition: l.letter.Partition, Offset: l.letter.Offset,
			Time: l.letter.Time.UTC(), Field: l.letter.Field, Error: l.letter.Err}
		if !l.cfg.Mask && json.Valid(l.letter.Row) {
			r.DeadLetter.Row = l.letter.Row
		}
	}
	switch {
	case errors.Is(l.failed, context.Canceled):
		r.Error = "interrupted"
	case l.failed != nil:
		r.Error = status.FirstLine(l.failed)
	case r.Verdict != verify.Unknown:
	case l.found.Kind == reconcile.Unknown:
		r.Error = "the service showed it in one reading and not in a later one"
	case l.unread > 0:
		r.Error = verify.UnreadBatches(l.unread)
	default:
		r.Error = fmt.Sprintf("the service shows %s without a usable id, and this may be one",
			terminal.Plural(l.nameless, "row"))
	}
	return r
}

func (l *look) inTopic() InTopic {
	t := InTopic{State: Absent, Records: l.records, Strays: []Stray{}}
	for _, partition := range slices.Sorted(maps.Keys(l.strays)) {
		t.Strays = append(t.Strays, Stray{partition, l.strays[partition].Offset, l.strays[partition].Time.Time()})
	}
	newest := l.newest
	if newest == nil {
		return t
	}
	at := newest.Time.Time()
	t.Partition, t.Offset, t.Time = &newest.Partition, &newest.Offset, &at
	switch {
	case newest.Tombstone:
		t.State = Tombstone
	case newest.Err != nil:
		t.State, t.Error = Unreadable, status.FirstLine(newest.Err)
	default:
		t.State, t.Value = Present, newest.Value.AppendJSON(nil, l.cfg.Mask)
	}
	return t
}

func (l *look) inService() InService {
	s := InService{State: Absent, Asked: l.asked.UTC()}
	switch {
	case l.failed != nil:
		s.State = Unknown
	case l.found.Reject != nil:
		s.State, s.Field, s.Error = Unpublishable, l.found.Reject.Field, l.found.Reject.Err
	case l.found.Row != nil:
		s.State, s.Value = Present, l.service.AppendJSON(nil, l.cfg.Mask)
	}
	return s
}

// explain adds how far the resource is, and why they differ.
func (l *look) explain(ctx context.Context, r *Report) {
	all, err := overview.Read(ctx, l.cfg.Settings, l.cfg.Cluster)
	if err != nil {
		r.Notes = append(r.Notes, "how far the resource is could not be read: "+status.FirstLine(err))
		return
	}
	f := facts{report: r, nameless: l.nameless, overlap: l.settings.Overlap,
		deletes: cmp.Or(l.cfg.Settings.Sweep.Deletes, config.Tombstone), start: l.start,
		policy:       l.resource.PolicyFingerprint(),
		topicUpdated: schemas.MinInstant, serviceUpdated: schemas.MinInstant}
	if r.InTopic.State == Present {
		f.topicUpdated = l.newest.UpdatedAt
	}
	switch r.InService.State {
	case Unpublishable:
		f.serviceUpdated = l.found.Reject.UpdatedAt
	case Present:
		f.serviceUpdated = l.service.UpdatedAt
	}
	for _, one := range all {
		if one.Name == l.resource.Name {
			f.overview = one
			r.Settled, r.AsOf, r.Trouble = one.Settled, one.AsOf, one.Trouble
		}
	}
	r.Notes = append(r.Notes, f.notes()...)
}
