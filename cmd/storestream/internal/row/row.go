// Package row compares one row in the topic with the service, and explains differences. It only reads.
//
// Both change while they are read, and the topic takes long to read. So the service is read after it. If they
// differ, the topic is read on, which takes no time:
//
//	topic, all of it -- service -- topic, from there on -- (it has changed: service -- topic ...)
//	                    equal: done    equal: done         differs: so it is
//
// Unlike verify, it waits for no poll. A person who asks for one row wants an answer now. The answer tells
// which changes may be under way.
//
// PostgreSQL is asked for the id. REST has no request for one row, so Look reads the days around the
// created_at in the row's record in the topic. If no record has it, or these days do not show the row, Look
// reads everything, by updated_at and by created_at, because another program's record may name any day. Only
// then it reports that the service has no such row.
package row

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/overview"
	"github.com/storestream/storestream/cmd/storestream/internal/verify"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/metrics"
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
		log: producer.NewRowLog(c.Cluster, r, c.ID),
		source: sources.New(r, metrics.New(prometheus.NewRegistry()).Resource(r.Name), zap.NewNop(),
			connect.Audience{})}
	if err := l.readTopic(ctx, "reading the topic"); err != nil {
		return nil, err
	}
	marks, _ := producer.ReadWatermarks(ctx, c.Cluster) // without them the row is still compared
	for _, mark := range marks {
		sources.Dialect().Load(mark.Dialect)
	}
	l.identity = marks[r.Name].Identity
	if err := l.readLetter(ctx); err != nil {
		return nil, err
	}
	if err := l.compare(ctx); err != nil {
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
	log      *producer.RowLog
	source   poller.Source
	identity *watermark.Identity // of the published rows. Nil if it is not known

	letter *producer.DeadLetterRecord // nil: it has none

	// The service's last answer: a row, a row that cannot be published, no row, or an error.
	asked  time.Time
	row    *schemas.Record
	value  schemas.Value // of row
	reject *schemas.Reject
	failed error
	// nameless are the rows without a usable id that were met on the way, by the hash of their text. The row
	// in question may be among them.
	nameless map[uint64]bool
}

// compare asks the service, and asks again if the topic changes meanwhile. Its error is that of the topic.
func (l *look) compare(ctx context.Context) error {
	for range mostLooks {
		l.asked = time.Now()
		l.failed = l.ask(ctx)
		if l.verdict() != verify.Different {
			return nil
		}
		before := l.log.Records()
		if err := l.readTopic(ctx, "reading the topic on"); err != nil {
			return err
		}
		if l.verdict() == verify.Identical || l.log.Records() == before {
			break
		}
	}
	return l.readLetter(ctx)
}

func (l *look) readTopic(ctx context.Context, what string) error {
	err := l.log.Look(ctx, func(done, of int64) { l.cfg.Reading(what, int(done), max(1, int(of))) })
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("topic %s does not exist: `storestream run` creates and fills it",
			l.cfg.Cluster.Topic(l.resource.Name))
	}
	return err
}

func (l *look) readLetter(ctx context.Context) (err error) {
	l.letter, err = producer.ReadDeadLetter(ctx, l.cfg.Cluster, l.resource.Name, l.cfg.ID)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		err = nil
	}
	return err
}

// ask looks the row up in the service.
func (l *look) ask(ctx context.Context) error {
	l.nameless = map[uint64]bool{}
	suspect := poller.Suspect{ID: l.cfg.ID, UpdatedAt: schemas.MinInstant, CreatedAt: l.createdAt()}
	inPostgres := l.settings.Source == config.Postgres
	if inPostgres || suspect.CreatedAt != schemas.MinInstant {
		err := l.read(ctx, poller.Request{Kind: poller.Lookup, Suspects: []poller.Suspect{suspect}}, 0)
		if err != nil || inPostgres || l.row != nil || l.reject != nil {
			return err
		}
	}
	return l.lookEverywhere(ctx)
}

// createdAt returns when the row was created, or MinInstant if unknown.
func (l *look) createdAt() schemas.Instant {
	if l.row != nil { // as the service showed it at the look before
		return l.value.CreatedAt
	}
	if created := l.log.CreatedAt(); created != schemas.MinInstant {
		return created
	}
	if l.letter != nil {
		var row map[string]json.RawMessage
		var created time.Time
		if json.Unmarshal(l.letter.Row, &row) == nil && json.Unmarshal(row["created_at"], &created) == nil {
			return schemas.InstantOf(created)
		}
	}
	return schemas.MinInstant
}

// errFound ends a reading of everything.
var errFound = errors.New("found")

// lookEverywhere reads all that the service has until the row is met.
func (l *look) lookEverywhere(ctx context.Context) error {
	records, err := producer.RecordsSince(ctx, l.cfg.Cluster, l.resource.Name, schemas.MinInstant)
	if err != nil {
		return err
	}
	suspect := poller.Suspect{ID: l.cfg.ID, UpdatedAt: schemas.MinInstant, CreatedAt: schemas.MinInstant}
	for _, request := range []poller.Request{
		{Kind: poller.Lookup, Everywhere: true, Suspects: []poller.Suspect{suspect}}, {Kind: poller.Full}} {
		if err := l.read(ctx, request, max(1, int(records))); err != nil {
			if errors.Is(err, errFound) {
				err = nil
			}
			return err
		}
	}
	return nil
}

// read carries out the request, and takes the row from it. about is the expected number of rows, or 0 for a
// single day. If the request is for more than a day, read stops at the row.
func (l *look) read(ctx context.Context, request poller.Request, about int) error {
	l.row, l.reject = nil, nil
	request.From, request.Identity, request.Started = l.start, l.identity, schemas.InstantOf(time.Now())
	rows, done := 0, false
	err := poller.Each(l.source.Read(ctx, request), func(b poller.Batch) error {
		done = done || b.Done != nil
		rows += len(b.Rows) + len(b.Rejects)
		l.cfg.Reading("reading the service", rows, about)
		if err := l.take(b); err != nil || about == 0 || l.row == nil && l.reject == nil {
			return err
		}
		return errFound
	})
	if err == nil && !done {
		err = errors.New("a defect in storestream: the source ended without saying that it read everything")
	}
	if err == nil || errors.Is(err, errFound) {
		l.settle()
	}
	return err
}

// take notes the row's versions in a batch. The newer of two versions is the row, because a source may show
// an older one beside it.
func (l *look) take(b poller.Batch) error {
	for i := range b.Rows {
		if row := b.Rows[i]; row.ID == l.cfg.ID && (l.row == nil || row.UpdatedAt >= l.row.UpdatedAt) {
			row.Value = append([]byte(nil), row.Value...)
			value, err := l.values.Read(row.Value)
			if err != nil {
				return err
			}
			l.row, l.value = &row, value
		}
	}
	for i := range b.Rejects {
		reject := b.Rejects[i]
		if !reject.HasID {
			l.nameless[xxhash.Sum64(reject.Row)] = true
		} else if reject.ID == l.cfg.ID && (l.reject == nil || reject.UpdatedAt >= l.reject.UpdatedAt) {
			l.reject = &reject
		}
	}
	return nil
}

// settle decides between a good row and one that cannot be published. The newer one is the service's.
func (l *look) settle() {
	switch {
	case l.row == nil || l.reject == nil:
	case l.row.UpdatedAt >= l.reject.UpdatedAt:
		l.reject = nil
	default:
		l.row = nil
	}
}

// verdict compares both sides.
func (l *look) verdict() verify.Verdict {
	inTopic, known := l.log.Newest()
	holds := known && !inTopic.Tombstone
	equal := false
	switch {
	case l.failed != nil:
		return verify.Unknown
	case len(l.log.Strays()) > 0 || inTopic.Err != nil || l.reject != nil:
	case l.row == nil && !holds && len(l.nameless) > 0:
		return verify.Unknown
	case l.row == nil: // that row, too, could not be published, and the topic would keep its record
		equal = !holds
	case !holds:
		equal = l.row.UpdatedAt < l.start
	default:
		equal = inTopic.Value.Hash == l.value.Hash
	}
	switch {
	case equal && l.log.Unread() > 0:
		return verify.Unknown
	case equal:
		return verify.Identical
	}
	return verify.Different
}

// report returns the facts, without the reasons.
func (l *look) report() *Report {
	r := &Report{Resource: l.resource.Name, ID: l.cfg.ID, Source: l.settings.Source,
		Topic: l.cfg.Cluster.Topic(l.resource.Name), Verdict: l.verdict(), InTopic: l.inTopic(),
		InService: l.inService(), Differs: []string{}, Notes: []string{}}
	newest, known := l.log.Newest()
	var topic, service *schemas.Value
	if known && r.InTopic.State == Present {
		topic = &newest.Value
	}
	if l.row != nil && l.failed == nil {
		service = &l.value
	}
	r.setFields(l.resource.Fields, topic, service, l.cfg.Mask)
	if l.letter != nil {
		r.DeadLetter = &DeadLetter{Partition: l.letter.Partition, Offset: l.letter.Offset,
			Time: l.letter.Time.UTC(), Field: l.letter.Field, Error: l.letter.Err}
		if !l.cfg.Mask && json.Valid(l.letter.Row) {
			r.DeadLetter.Row = l.letter.Row
		}
	}
	if l.failed != nil {
		r.Error = status.FirstLine(l.failed)
		if errors.Is(l.failed, context.Canceled) {
			r.Error = "interrupted"
		}
	} else if r.Verdict == verify.Unknown && l.log.Unread() > 0 {
		r.Error = verify.UnreadBatches(l.log.Unread())
	} else if r.Verdict == verify.Unknown {
		r.Error = fmt.Sprintf("the service shows %s without a usable id, and this may be one",
			terminal.Plural(len(l.nameless), "row"))
	}
	return r
}

func (l *look) inTopic() InTopic {
	t := InTopic{State: Absent, Records: l.log.Records(), Strays: []Stray{}}
	for _, s := range l.log.Strays() {
		t.Strays = append(t.Strays, Stray{s.Partition, s.Offset, s.Time.UTC()})
	}
	newest, known := l.log.Newest()
	if !known {
		return t
	}
	at := newest.Time.UTC()
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
	case l.reject != nil:
		s.State, s.Field, s.Error = Unpublishable, l.reject.Field, l.reject.Err
	case l.row != nil:
		s.State, s.Value = Present, l.value.AppendJSON(nil, l.cfg.Mask)
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
	f := facts{report: r, nameless: len(l.nameless), overlap: l.settings.Overlap,
		deletes: cmp.Or(l.cfg.Settings.Sweep.Deletes, config.Tombstone), start: l.start,
		policy:       l.resource.PolicyFingerprint(),
		topicUpdated: schemas.MinInstant, serviceUpdated: schemas.MinInstant}
	if newest, known := l.log.Newest(); known && r.InTopic.State == Present {
		f.topicUpdated = newest.Value.UpdatedAt
	}
	switch {
	case l.failed != nil:
	case l.reject != nil:
		f.serviceUpdated = l.reject.UpdatedAt
	case l.row != nil:
		f.serviceUpdated = l.value.UpdatedAt
	}
	for _, one := range all {
		if one.Name == l.resource.Name {
			f.overview = one
			r.Settled, r.AsOf, r.Trouble = one.Settled, one.AsOf, one.Trouble
		}
	}
	r.Notes = append(r.Notes, f.notes()...)
}
