package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/schemas"
)

const (
	// skewLimit is how far two clocks may differ before it is worth a word. Date headers are good to a second,
	// and overlaps are minutes.
	skewLimit = 5 * time.Second
	// trialTimeout bounds the one request that a person waits for.
	trialTimeout = 15 * time.Second
)

// service tries each endpoint that is polled: it asks for one row.
type service struct {
	found  *findings
	rest   *client.Client
	trials []trial
}

// trial is what one endpoint answered.
type trial struct {
	resource *schemas.Resource
	answer   client.Trial
	err      error
}

func tryService(ctx context.Context, c Config, f *findings) {
	s := service{found: f}
	resources := c.over(config.REST)
	if len(resources) == 0 {
		return
	}
	store := c.Settings.Store
	how, err := connect.Service(c.Settings)
	if err == nil {
		how.Attempts, how.RequestTimeout = 1, min(trialTimeout, store.RequestTimeout)
		s.rest, err = client.New(how)
	}
	if err != nil {
		s.found.fail("", err, "")
		return
	}
	defer s.rest.Close()
	s.tryAll(ctx, resources)
	if err := s.noPage(); err != nil {
		s.found.fail("", err, serviceRemedy(err))
		return
	}
	key := "its key was fetched"
	if store.APIKey.IsSet() {
		key = "store.api_key is accepted"
	}
	s.found.ok("", "%s answers, and %s", store.BaseURL, key)
	s.clock()
	s.dialect(c)
	s.lostFields(ctx, c)
	for _, t := range s.trials {
		s.endpoint(t)
	}
}

// lostFields checks whether rows have lost a field, by a read, and puts the read's error into the trial. One
// row without a field that every row had proves nothing, because the service may leave out null.
func (s *service) lostFields(ctx context.Context, c Config) {
	marks := c.marks()
	for i := range s.trials {
		t := &s.trials[i]
		had := marks[t.resource.Name].Fields
		if !slices.ContainsFunc(t.answer.Missing, func(name string) bool { return slices.Contains(had, name) }) {
			continue
		}
		sources, err := connect.OpenSources(c.Settings, zap.NewNop())
		if err != nil {
			continue
		}
		source := sources.New(t.resource, metrics.New(prometheus.NewRegistry()).Resource(t.resource.Name),
			zap.NewNop(), connect.Audience{})
		for _, err := range source.Read(ctx, poller.Request{Kind: poller.Full, Fields: had,
			From: schemas.MinInstant, Started: schemas.InstantOf(time.Now())}) {
			if errors.As(err, new(*poller.BlockedError)) {
				t.err = err
			}
			break // the first rows are as they were, or they are not
		}
		sources.Close()
	}
}

func (s *service) tryAll(ctx context.Context, resources []*schemas.Resource) {
	s.trials = make([]trial, len(resources))
	var group sync.WaitGroup
	for i, r := range resources {
		group.Go(func() {
			answer, err := s.rest.Try(ctx, r)
			s.trials[i] = trial{r, answer, err}
		})
	}
	group.Wait()
}

// noPage returns an error if no endpoint answered with a page. Then the service as a whole is wrong, not
// single endpoints. A service that only asks for fewer requests is there.
func (s *service) noPage() error {
	for _, t := range s.trials {
		if t.err == nil || client.RefusedForRate(t.err) {
			return nil
		}
	}
	return s.trials[0].err
}

func serviceRemedy(err error) string {
	if errors.As(err, new(*poller.BlockedError)) { // its text is complete
		return "check store.base_url (with its version, such as /v1) and store.api_key"
	}
	return "is the service up, and is store.base_url right? `run` waits for it"
}

func (s *service) clock() {
	state := s.rest.State()
	switch {
	case !state.HasClock:
		s.found.add(Note, "clock", "keep this machine's clock right (NTP)",
			"the service sends no Date header, so days are closed by this machine's clock alone")
	case state.ClockSkew.Abs() > skewLimit:
		s.found.add(Warning, "clock", "find out which clock is wrong (NTP): a day is closed when both say so, and "+
			"what is newer than its overlap may be late by the difference",
			"the service's clock is %s this machine's", beside(state.ClockSkew))
	default:
		s.found.ok("clock", "the service's clock and this machine's differ by less than %s", skewLimit)
	}
}

// dialect reports what is known of the questions that the service's document leaves open.
func (s *service) dialect(c Config) {
	d := connect.NewDialect(c.Settings, nil)
	for _, mark := range c.marks() {
		d.Load(mark.Dialect)
	}
	for _, known := range d.Known() {
		level := OK
		if known.Value != "" && known.Value != known.Plain {
			level = Note
		}
		s.found.add(level, known.Name, "", "%s", known)
	}
}

// beside says on which side of another clock one is.
func beside(ahead time.Duration) string {
	if ahead < 0 {
		return terminal.Duration(-ahead) + " behind"
	}
	return terminal.Duration(ahead) + " ahead of"
}

func (s *service) endpoint(t trial) {
	f, name := s.found, t.resource.Name
	switch {
	case client.RefusedForRate(t.err):
		f.add(Warning, name, "somebody uses the key at the limit of its rate: a running instance that is catching "+
			"up, or another program; lower store.max_requests_per_second if it goes on", "%s", t.err)
	case t.err != nil:
		f.fail(name, t.err, serviceRemedy(t.err))
	case t.answer.Reject != nil:
		f.add(Warning, name, "look at that row at its source: it will be a dead letter, and if all rows are so "+
			"the resource is blocked", "the one row that came breaks the contract in %q: %s",
			t.answer.Reject.Field, t.answer.Reject.Err)
	case !t.answer.Row:
		f.add(Note, name, "", "%s answers, and has no rows", t.resource.Path)
	case len(t.answer.Unknown) > 0:
		f.add(Note, name, addFields(t.resource),
			"%s has fields that the schema does not know, and that are left out: %s",
			t.resource.Path, strings.Join(t.answer.Unknown, ", "))
	default:
		f.ok(name, "%s gave a row, as the schema has it", t.resource.Path)
	}
}

// addFields is what to do about fields that the schema of r does not know.
func addFields(r *schemas.Resource) string {
	return fmt.Sprintf("to publish one, add it to %s.avsc in schemas.dir: docs/operations.md, %q", r.RecordName,
		"A field is added")
}
