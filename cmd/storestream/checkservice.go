package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/schemas"
)

const (
	// skewLimit is how far two clocks may differ before it is worth a word: Date headers are good to a second, and overlap is minutes.
	skewLimit = 5 * time.Second
	// trialTimeout bounds the one request that a person waits for.
	trialTimeout = 15 * time.Second
)

// trial is what one endpoint answered.
type trial struct {
	client.Trial
	resource *schemas.Resource
	err      error
}

// service asks each endpoint that is polled for one row.
func (c *checker) service(ctx context.Context) []finding {
	f := &findings{part: "service"}
	resources := c.over(config.REST)
	if len(resources) == 0 {
		return nil
	}
	service, err := client.New(client.Config{BaseURL: c.cfg.Store.BaseURL, APIKey: string(c.cfg.Store.APIKey), Attempts: 1,
		MaxRequestsPerSecond: c.cfg.Store.MaxRequestsPerSecond, RequestTimeout: min(trialTimeout, c.cfg.Store.RequestTimeout)})
	if err != nil {
		f.fail("", err, "")
		return f.all
	}
	defer service.Close()
	trials := tryAll(ctx, service, resources)
	if err := common(trials); err != nil {
		f.fail("", err, serviceRemedy(err))
		return f.all
	}
	key := "its key was fetched"
	if c.cfg.Store.APIKey != "" {
		key = "store.api_key is accepted"
	}
	f.ok("", "%s answers, and %s", c.cfg.Store.BaseURL, key)
	f.clock(service.State())
	for _, t := range trials {
		f.endpoint(t)
	}
	return f.all
}

func tryAll(ctx context.Context, service *client.Client, resources []*schemas.Resource) []trial {
	trials := make([]trial, len(resources))
	var group sync.WaitGroup
	for i, r := range resources {
		group.Go(func() {
			found, err := service.Try(ctx, r)
			trials[i] = trial{found, r, err}
		})
	}
	group.Wait()
	return trials
}

// common is an error where no endpoint answered with a page: then the service is the matter, and not its endpoints one by one. A service that only asks for
// fewer requests is there.
func common(trials []trial) error {
	var rate *client.RateError
	for _, t := range trials {
		if t.err == nil || errors.As(t.err, &rate) {
			return nil
		}
	}
	return trials[0].err
}

func serviceRemedy(err error) string {
	var held *poller.HoldError
	if errors.As(err, &held) {
		return "check store.base_url (with its version, such as /v1) and store.api_key" // what is wrong says the rest
	}
	return "is the service up, and is store.base_url right? `run` waits for it"
}

func (f *findings) clock(s client.State) {
	switch {
	case !s.HasClock:
		f.add(note, "clock", "keep this machine's clock right (NTP)", "the service sends no Date header, so days are closed by this machine's clock alone")
	case s.ClockSkew.Abs() > skewLimit:
		f.add(warning, "clock", "find out which clock is wrong (NTP): a day is closed when both say so, and what is newer than its overlap may be late by the difference",
			"the service's clock is %s this machine's", beside(s.ClockSkew))
	default:
		f.ok("clock", "the service's clock and this machine's differ by less than %s", skewLimit)
	}
}

// beside says on which side of another clock one is.
func beside(ahead time.Duration) string {
	if ahead < 0 {
		return terminal.Duration(-ahead) + " behind"
	}
	return terminal.Duration(ahead) + " ahead of"
}

func (f *findings) endpoint(t trial) {
	name := t.resource.Name
	var rate *client.RateError
	switch {
	case errors.As(t.err, &rate):
		f.add(warning, name, "somebody uses the key at the limit of its rate: a running instance that is catching up, or another program; "+
			"lower store.max_requests_per_second if it goes on", "%s", t.err)
	case t.err != nil:
		f.fail(name, t.err, serviceRemedy(t.err))
	case t.Reject != nil:
		f.add(warning, name, "look at that row at its source: it will be a dead letter, and if all rows are so the resource is held",
			"the one row that came breaks the contract in %q: %s", t.Reject.Field, t.Reject.Err)
	case !t.Row:
		f.add(note, name, "", "%s answers, and has no rows", t.resource.Path)
	case len(t.Unknown) > 0:
		f.add(note, name, "to publish them, add them to "+t.resource.RecordName+".avsc in schemas.dir", "%s has fields that the schema does not know, and that are left out: %s",
			t.resource.Path, strings.Join(t.Unknown, ", "))
	default:
		f.ok(name, "%s gave a row, as the schema has it", t.resource.Path)
	}
}
