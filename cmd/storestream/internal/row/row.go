// Package row compares one row in the topic with the service (package reconcile), and explains differences.
// It only reads.
//
// Unlike verify, it waits for no poll. A person who asks for one row wants an answer now. The answer tells
// which changes may be under way. If the row differs and the topic got a record of it meanwhile, both are
// looked at again.
package row

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/cmd/storestream/internal/overview"
	"github.com/storestream/storestream/cmd/storestream/internal/verify"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
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
	// Say receives a line about the progress, if that takes more than ten seconds.
	Say func(text string)
}

const (
	// mostLooks is how often the service is asked if the topic changes meanwhile.
	mostLooks = 3
	// silence is how long row reads without saying so.
	silence = 10 * time.Second
)

// Look looks at the row. Its error is that of the topic, of the registry, or of a configuration by which no
// source can be opened. A service that cannot be asked is in the report.
func Look(ctx context.Context, c Config) (*Report, error) {
	service, end, err := verify.OpenService(ctx, c.Settings, c.Cluster)
	if err != nil {
		return nil, err
	}
	defer end()
	r := c.Schemas.Get(c.Resource)
	l := &look{Config: c, resource: r, settings: c.Settings.Resources[r.Name],
		strays: map[int32]watermark.Published{}, hide: c.Settings.Hidden().Hide, said: time.Now()}
	compare := service(r, func(n int) { l.read += n; l.progress("reading the service", l.read) })
	l.start = compare.Start
	if err := l.compare(ctx, compare); err != nil {
		return nil, err
	}
	return l.report(ctx)
}

// look is one Look.
type look struct {
	Config
	resource *schemas.Resource
	settings config.Resource
	start    schemas.Instant
	hide     func(string) string // masks secrets that the text of others repeats
	said     time.Time           // when the progress was said last
	read     int                 // rows of the service in the look in hand

	// newest is the newest record of the row in its key's partition, or nil. strays are the newest ones in other
	// partitions, by partition: another program wrote them. Tombstones are not among them.
	newest  *watermark.Published
	strays  map[int32]watermark.Published
	records int // of the row, with strays and older versions that compaction has not taken out
	unread  int // batches that were not read: each may contain a record of the row

	asked  time.Time            // when the service was asked last
	failed error                // why it could not be asked
	found  reconcile.Difference // what both sides have. Its Kind is "" if that is equal
	// nameless is the number of rows without a usable id that the service shows. The row in question may be
	// among them.
	nameless int
}

// compare compares the row. Its error is not the service's.
func (l *look) compare(ctx context.Context, c reconcile.Config) error {
	var failed error // of the topic
	c.IDs = []int64{l.ID}
	c.Topic = func(ctx context.Context, from []int64, wanted func(int64) bool,
		fold func(watermark.Published) error) (ends []int64, err error) {
		ends, failed = l.readTopic(ctx, from, wanted, fold)
		return ends, failed
	}
	compare := reconcile.New(c)
	if err := compare.First(ctx, func(int, int) {}); err != nil {
		return err
	}
	for range mostLooks {
		l.read, l.asked = 0, time.Now()
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
		if l.found = compare.Differences()[0]; l.records == before {
			break
		}
	}
	return nil //nolint:nilerr // the report tells what the service's failure leaves open
}

// readTopic reads the topic on. It reads every partition, because another program may have written the row's
// key to a wrong one.
func (l *look) readTopic(ctx context.Context, from []int64, wanted func(int64) bool,
	fold func(watermark.Published) error) ([]int64, error) {
	read := 0
	ends, err := producer.ReadTopic(ctx, l.Cluster, l.resource, from, func(id int64) bool {
		read++
		l.progress("reading the topic", read)
		return wanted(id)
	}, func(p watermark.Published) error {
		if l.note(p) {
			return fold(p)
		}
		return nil
	})
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, fmt.Errorf("topic %s does not exist: `storestream run` creates and fills it",
			l.Cluster.Topic(l.resource.Name))
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

func (l *look) progress(what string, rows int) {
	if time.Since(l.said) > silence {
		l.said = time.Now()
		l.Say(what + ": " + terminal.Plural(rows, "row"))
	}
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

// report returns the facts and the notes.
func (l *look) report(ctx context.Context) (*Report, error) {
	r := &Report{Resource: l.resource.Name, ID: l.ID, Source: l.settings.Source,
		Topic: l.Cluster.Topic(l.resource.Name), Verdict: l.verdict(), Differs: []string{}, Notes: []string{}}
	var topic, service *schemas.Value
	var err error
	r.InTopic, topic = l.inTopic()
	if r.InService, service, err = l.inService(); err != nil {
		return nil, err
	}
	r.setFields(l.resource.Fields, topic, service, l.Mask)
	if r.Verdict == verify.Unknown {
		r.Error = l.hide(l.unknown())
	}
	if ctx.Err() != nil { // a person who interrupts sees what was found until then
		return r, nil //nolint:nilerr // and that is no failure
	}
	letter, err := producer.ReadDeadLetter(ctx, l.Cluster, l.resource.Name, l.ID)
	if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, err
	}
	if letter != nil {
		r.DeadLetter = &DeadLetter{Place: Place{letter.Partition, letter.Offset, letter.Time.UTC()},
			Field: letter.Field, Error: l.hide(letter.Err)}
		if !l.Mask && json.Valid(letter.Row) {
			r.DeadLetter.Row = letter.Row
		}
	}
	all, err := overview.Glance(ctx, l.Settings, l.Cluster)
	if err != nil { // the row is compared all the same
		r.Notes = append(r.Notes, l.hide("How far the resource is could not be read: "+status.FirstLine(err)))
	}
	var now health.Resource
	for _, one := range all {
		if one.Name == l.resource.Name {
			now = one
		}
	}
	for _, note := range l.notes(r, now, topic, service) {
		r.Notes = append(r.Notes, l.hide(note))
	}
	return r, nil
}

// unknown says why it cannot be told whether the row is right.
func (l *look) unknown() string {
	switch {
	case errors.Is(l.failed, context.Canceled):
		return "interrupted"
	case l.failed != nil:
		return status.FirstLine(l.failed)
	case l.found.Kind == reconcile.Unknown:
		return "the service showed it in one reading and not in a later one"
	case l.unread > 0:
		return verify.UnreadBatches(l.unread)
	}
	return fmt.Sprintf("the service shows %s without a usable id, and this may be one",
		terminal.Plural(l.nameless, "row"))
}

// inTopic returns the topic's side, and the row if it has it.
func (l *look) inTopic() (t InTopic, row *schemas.Value) {
	t = InTopic{State: Absent, Strays: []Place{}}
	for _, partition := range slices.Sorted(maps.Keys(l.strays)) {
		t.Strays = append(t.Strays, placeOf(l.strays[partition]))
	}
	newest := l.newest
	if newest == nil {
		return t, nil
	}
	place := placeOf(*newest)
	t.Place = &place
	switch {
	case newest.Tombstone:
		t.State = Tombstone
	case newest.Err != nil:
		t.State, t.Error = Unreadable, l.hide(status.FirstLine(newest.Err))
	default:
		t.State, t.Value = Present, newest.Value.AppendJSON(nil, l.Mask)
		return t, &newest.Value
	}
	return t, nil
}

// inService returns the service's side, and the row if it has one that can be published.
func (l *look) inService() (s InService, row *schemas.Value, err error) {
	s = InService{State: Absent, Asked: l.asked.UTC()}
	switch {
	case l.failed != nil:
		s.State = Unknown
	case l.found.Reject != nil:
		s.State, s.Field, s.Error = Unpublishable, l.found.Reject.Field, l.hide(l.found.Reject.Err)
	case l.found.Row != nil:
		values, err := schemas.NewValueReader(l.resource, "")
		if err != nil {
			return s, nil, err
		}
		value, err := values.Read(l.found.Row.Value)
		s.State, s.Value = Present, value.AppendJSON(nil, l.Mask)
		return s, &value, err
	}
	return s, nil, nil
}
