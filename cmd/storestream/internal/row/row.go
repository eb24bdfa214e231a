// Package row compares one row in the topic with the service (package reconcile), and explains differences.
// It only reads.
//
// Unlike verify, it waits for no poll, because a person who looks up one row wants the answer now. The answer
// names the changes that may be under way. If the row differs and the topic got a record of it meanwhile,
// topic and service are read again.
package row

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/cmd/storestream/internal/overview"
	"github.com/storestream/storestream/cmd/storestream/internal/verify"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/terminal"
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
		hide: c.Settings.Hidden().Hide, said: time.Now()}
	compare := service(r, func(n int) {
		if l.read += n; time.Since(l.said) > silence {
			l.said = time.Now()
			l.Say("reading the service: " + terminal.Plural(l.read, "row"))
		}
	})
	compare.IDs, l.start = []int64{l.ID}, compare.Start
	err = l.compare(ctx, reconcile.New(compare))
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		err = fmt.Errorf("topic %s does not exist: `storestream run` creates and fills it", c.Cluster.Topic(r.Name))
	}
	if err != nil {
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

	asked  time.Time            // when the service was asked last
	failed error                // why it, or the topic beside it, could not be read, or nil
	found  reconcile.Difference // what both sides have. Its Kind is "" if that is equal
	// figures count the rows without a usable id that the service shows, and the batches that could not be read.
	// The row in question may be among either.
	figures reconcile.Report
}

// compare compares the row. Its error is the topic's.
func (l *look) compare(ctx context.Context, compare *reconcile.Comparison) error {
	if err := compare.First(ctx, func(int, int) {}); err != nil {
		return err
	}
	take := func() { l.found, l.figures = compare.Differences()[0], compare.Report() }
	for range mostLooks {
		l.read, l.asked = 0, time.Now()
		l.failed = compare.Look(ctx)
		take()
		if v, _ := l.verdict(); v != verify.Different {
			break
		}
		before := l.found.Newest
		if err := compare.CatchUp(ctx); err != nil {
			return err
		}
		if take(); l.found.Newest == before {
			break
		}
	}
	return nil
}

// verdict judges what both sides have. why says why it is Unknown.
func (l *look) verdict() (v verify.Verdict, why string) {
	switch d := l.found; {
	case errors.Is(l.failed, context.Canceled):
		return verify.Unknown, "interrupted"
	case l.failed != nil:
		return verify.Unknown, status.FirstLine(l.failed)
	case d.Kind == reconcile.Unknown:
		return verify.Unknown, "the service showed it in one reading and not in another"
	case d.Kind == "" && l.figures.Unread > 0:
		return verify.Unknown, verify.UnreadBatches(l.figures.Unread)
	case d.Kind == "" && d.Row == nil && l.figures.Nameless > 0:
		return verify.Unknown, fmt.Sprintf("the service shows %s without a usable id, and this may be one",
			terminal.Plural(l.figures.Nameless, "row"))
	case d.Kind == "", d.Kind == reconcile.Missing && d.Row.UpdatedAt < l.start:
		return verify.Identical, ""
	}
	return verify.Different, ""
}

// report returns the facts and the notes.
func (l *look) report(ctx context.Context) (*Report, error) {
	verdict, why := l.verdict()
	r := &Report{Resource: l.resource.Name, ID: l.ID, Source: l.settings.Source, Verdict: verdict,
		Error: l.hide(why), Topic: l.Cluster.Topic(l.resource.Name), Differs: []string{}, Notes: []string{}}
	var topic, service *schemas.Value
	var err error
	r.InTopic, topic = l.inTopic()
	if r.InService, service, err = l.inService(); err != nil {
		return nil, err
	}
	r.setFields(topic, service, l.Mask)
	if ctx.Err() != nil { // a person who interrupts sees the findings so far
		return r, nil //nolint:nilerr // and that is no failure
	}
	letter, err := producer.ReadDeadLetter(ctx, l.Cluster, l.resource.Name, l.ID)
	if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, err
	}
	if letter != nil {
		r.DeadLetter = NewDeadLetter(letter, l.hide, l.Mask)
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

// inTopic returns the topic's side, and the row if it has it.
func (l *look) inTopic() (t InTopic, row *schemas.Value) {
	t = InTopic{State: Absent, Strays: []Place{}}
	for _, stray := range l.found.Strays {
		t.Strays = append(t.Strays, placeOf(stray))
	}
	newest := l.found.Newest
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
