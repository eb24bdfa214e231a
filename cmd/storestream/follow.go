package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/overview"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// follower waits until the running instance has carried out its requests, and prints the steps.
type follower struct {
	env     *environment
	cfg     *config.Config
	cluster *producer.Cluster
	say     func(format string, args ...any)

	waits   map[string]health.Resource // by name: as it was when it was said that its request waits
	failing bool                       // it was said that Kafka does not answer
	steps   map[string]bool            // by resource and step: it was said that its request is there
}

// step is the progress of a request. The zero value prints nothing.
type step struct{ name, text string }

func newFollower(env *environment, cfg *config.Config, cluster *producer.Cluster) *follower {
	return &follower{env: env, cfg: cfg, cluster: cluster, say: env.print,
		waits: map[string]health.Resource{}, steps: map[string]bool{}}
}

// sayWhoTakes prints which instance carries out the requests, and for other resources why no instance does.
// The requests are written by then. So it prints nothing if Kafka does not answer.
func (f *follower) sayWhoTakes(ctx context.Context, names []string, how string) {
	if resources, err := f.glance(ctx); err == nil {
		for _, name := range names {
			f.tell(resources(name))
		}
	}
	if len(f.waits) < len(names) {
		f.say("The running instance takes it from here%s.\n", how)
	}
}

// glance asks Kafka for the state of each resource. Unknown resources have one too.
func (f *follower) glance(ctx context.Context) (func(name string) health.Resource, error) {
	all, err := overview.Glance(ctx, f.cfg, f.cluster)
	return func(name string) health.Resource {
		for _, r := range all {
			if r.Name == name {
				return r
			}
		}
		r := health.New(watermark.New(name), schemas.InstantOf(time.Now()))
		r.Abandoned = true
		r.Judge()
		return r
	}, err
}

// tell says when the request for a resource begins to wait, for what, and when it no longer does.
func (f *follower) tell(r health.Resource) {
	before, waited := f.waits[r.Name]
	switch why := waitsFor(r); {
	case r.Between: // the next owner may do it at once
	case why == "" && waited:
		delete(f.waits, r.Name)
		f.say("%s: the request waits no longer: %s carries it out\n", r.Name, r.Owner)
	// Texts tell how long it has waited, and of two failures in a row each has its own.
	case why != "" && !(waited && before.State == r.State && before.Since.Equal(r.Since)):
		f.waits[r.Name] = r
		f.say("%s: %s\n", r.Name, f.env.paint.As(terminal.Yellow, why))
	}
}

// waitsFor returns why no instance carries out a request now, or "" if the owner does.
func waitsFor(r health.Resource) string {
	switch {
	case r.State == health.Unowned && !r.Enabled:
		return "not enabled in this configuration, and no instance has it: the request waits until one does"
	case r.State == health.Unowned:
		return "no instance has it: the request waits until one does (`storestream run`)"
	case r.State == health.Unreadable:
		return "it cannot be told whether the request is carried out: " + r.Why
	case r.State == health.Blocked, r.State == health.Failing, r.State == health.Stalled:
		return "the request waits until this is over: " + r.Text()
	}
	return ""
}

// tellFailure says when Kafka does not answer, and when it does again.
func (f *follower) tellFailure(err error) {
	switch {
	case err != nil && !f.failing:
		f.say("%s\n", f.env.paint.As(terminal.Yellow, "how far it is cannot be read, trying again: "+err.Error()))
	case err == nil && f.failing:
		f.say("how far it is can be read again\n")
	}
	f.failing = err != nil
}

// tellStep prints the owner's step with a request, each step once. Between two parts of a sweep the owner
// comes back to a step that was printed.
func (f *follower) tellStep(resource string, now step) {
	if key := resource + " " + now.name; now.name != "" && !f.steps[key] {
		f.steps[key] = true
		f.say("%s: %s\n", resource, now.text)
	}
}

// followEvery is how often --wait looks.
const followEvery = time.Second

// follow waits until each request was carried out, according to over, and then calls done with the watermark.
// Until then it prints the steps that at returns. It gives up on a request that was deleted with its topic
// before an instance took it, because no instance will carry it out. A broker that fails may come back, so it
// goes on until an interrupt. at returns the owner's step with a request that it may have taken.
func (f *follower) follow(ctx context.Context, asked []watermark.Request,
	over func(*following, watermark.Watermark) bool, done func(*following, watermark.Watermark),
	at func(r *following, resources func(name string) health.Resource) step) error {
	var open []*following
	for _, r := range asked {
		open = append(open, &following{Request: r})
	}
	var lost []error
	for {
		resources, err := f.look(ctx, open)
		if ctx.Err() == nil {
			f.tellFailure(err)
		}
		if err == nil {
			open = slices.DeleteFunc(open, func(r *following) bool {
				now := resources(r.Resource)
				if now.Unreadable == nil {
					r.accepted(now.Mark)
				}
				switch {
				case now.Unreadable == nil && over(r, now.Mark):
					done(r, now.Mark)
				case now.Unreadable == nil && r.gone():
					lost = append(lost, fmt.Errorf("%s: the request was deleted with its topic before an instance "+
						"took it: ask again", r.Resource))
				default:
					if f.tell(now); now.Unreadable == nil && now.Owner != "" && waitsFor(now) == "" {
						f.tellStep(r.Resource, at(r, resources))
					}
					return false
				}
				return true
			})
		}
		if len(open) == 0 {
			return errors.Join(lost...)
		}
		if err := wait.For(ctx, followEvery); err != nil {
			return err
		}
	}
}

// look asks how far the resources are, and tells each of open which requests the topic holds: before that, or
// one that is taken in between would count as lost.
func (f *follower) look(ctx context.Context, open []*following) (func(string) health.Resource, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	requests := f.cluster.Requests()
	if err := requests.CatchUp(ctx); err != nil {
		return nil, err
	}
	for _, r := range open {
		r.look(requests.After(r.Resource, -1, ""))
	}
	return f.glance(ctx)
}

// following is a request that the command waits for.
type following struct {
	watermark.Request
	later []string // UIDs of those that came after it: an owner carries out the last of them in its place
	there bool     // the topic held it when it was last looked at
	taken bool     // an instance has accepted it
}

// look takes the requests for the resource that the topic holds.
func (f *following) look(held []watermark.Request) {
	i := slices.IndexFunc(held, func(r watermark.Request) bool { return r.UID == f.UID })
	if f.there = i >= 0; !f.there {
		return
	}
	for _, r := range held[i+1:] {
		if !slices.Contains(f.later, r.UID) {
			f.later = append(f.later, r.UID)
		}
	}
}

// accepted notes whether an instance has taken it.
func (f *following) accepted(mark watermark.Watermark) { f.taken = f.taken || f.is(mark.RequestUID) }

// gone reports whether it was deleted before an instance took it. Then no instance will carry it out.
func (f *following) gone() bool { return !f.there && !f.taken }

// swept reports whether the sweep was carried out, or a later one in its place.
func (f *following) swept(mark watermark.Watermark) bool {
	return mark.Swept != nil && f.is(mark.Swept.RequestUID)
}

// replayed reports whether the replay was carried out. The watermark that accepts it begins it.
func (f *following) replayed(mark watermark.Watermark) bool { return f.taken && mark.Replay == nil }

// is reports whether uid is its own, or that of a later request.
func (f *following) is(uid string) bool { return uid == f.UID || slices.Contains(f.later, uid) }
