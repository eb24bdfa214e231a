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
)

// follower prints how far the running instance is with requests.
type follower struct {
	env     *environment
	cfg     *config.Config
	cluster *producer.Cluster
	said    map[string]string // the step that was printed last, by resource
}

// tell prints a step of a resource's request, unless it is the one that was printed last. Steps are compared
// by step, because their texts tell how long something has lasted.
func (f *follower) tell(resource, step, text string) {
	if step != "" && f.said[resource] != step {
		f.said[resource] = step
		f.env.print("%s: %s\n", resource, text)
	}
}

// find returns the state of a resource. One that is not among all has no watermark, and is not enabled.
func find(all []health.Resource, name string) health.Resource {
	i := slices.IndexFunc(all, func(r health.Resource) bool { return r.Name == name })
	if i < 0 {
		return health.Resource{Name: name, State: health.Unowned, Mark: watermark.New(name)}
	}
	return all[i]
}

// step returns what happens to a request now, and a text about it. It is "" if there is nothing to say.
func (f *follower) step(r *following, now health.Resource) (step, text string) {
	overlap, mark := terminal.Duration(f.cfg.Resources[r.Resource].Overlap), now.Mark
	waits := func(text string) (string, string) {
		return string(now.State) + now.Since.String(), text
	}
	if now.Between { // the next owner may do it at once
		return "", ""
	}
	switch now.State {
	case health.Unowned:
		return waits("no instance has it: the request waits until one does (`storestream run`, with the resource " +
			"enabled)")
	case health.Unreadable:
		return waits("it cannot be told whether the request is carried out: " + now.Why)
	case health.Blocked, health.Failing, health.Stalled:
		return waits("the request waits until this is over: " + now.Text())
	}
	switch {
	case !r.taken:
		return "asked " + now.Owner, now.Owner + " takes it from here"
	case mark.Replay != nil && r.Kind == watermark.Reset:
		return "replay", "the replay is in hand: it is over with the first complete pass that began after it"
	case mark.Replay != nil && r.Kind == watermark.Sweeps:
		return "behind a replay", "the sweep waits until the replay is over"
	case r.Kind == watermark.Erases:
		return "erase", "the service is asked now, and once more after the overlap (" + overlap + ") for rows " +
			"that it does not show"
	case mark.Sweep != nil && (mark.Sweep.Tried != nil || mark.Sweep.From != nil):
		return "sweep", "the sweep has begun: it reads topic and service in full. If rows differ, it looks at " +
			"them again, and once more an overlap (" + overlap + ") later, three times at most"
	case mark.Sweep != nil:
		return "turn", "the sweep waits for its turn: " + now.Owner + " reads for one resource at a time"
	}
	return "", ""
}

// result prints the result of a request that was carried out. err says what it has left undone. A request
// that was deleted with its topic before an instance took it is over too, because no instance will carry it
// out.
func (f *follower) result(r *following, mark watermark.Watermark) (over bool, err error) {
	r.taken = r.taken || r.is(mark.RequestUID)
	switch r.Kind {
	case watermark.Sweeps:
		if over = mark.Swept != nil && r.is(mark.Swept.RequestUID); over {
			f.env.print("%s\n", sweepText(r.Resource, mark.Swept))
			if mark.Swept.Left != "" {
				err = exitError{exitDifferent, fmt.Errorf("%s: different from the service still", r.Resource)}
			}
		}
	case watermark.Reset: // the watermark that accepts a replay begins it
		if over = r.taken && mark.Replay == nil; !over {
			break
		}
		if done := mark.Replayed; done != nil && r.is(done.RequestUID) {
			f.env.print("%s: published again: %s since %s, in %s\n", r.Resource, terminal.Plural(done.Rows, "row"),
				done.From, terminal.Duration(done.Ended.Sub(done.Began)))
		} else {
			err = fmt.Errorf("%s: the instance has not replayed it: see its log", r.Resource)
		}
	case watermark.Erases:
		waits := func(e watermark.Erase) bool { return e.RequestUID == r.UID }
		if over = r.taken && !slices.ContainsFunc(mark.Erase, waits); over {
			err = f.erased(r, mark.Erased)
		}
	}
	if !over && !r.there && !r.taken {
		return true, fmt.Errorf("%s: the request was deleted with its topic before an instance took it: ask again",
			r.Resource)
	}
	return over, err
}

// erased prints what became of each row of an erase.
func (f *follower) erased(r *following, results []watermark.Erased) error {
	stays := 0
	for _, row := range r.Rows {
		i := slices.IndexFunc(results, func(e watermark.Erased) bool {
			return e.RequestUID == r.UID && e.ID == row.ID
		})
		text := "erased"
		switch {
		case i < 0: // a watermark has room for the last results alone
			stays++
			text = fmt.Sprintf("dealt with, and its result is no longer known: see `storestream row %s %d`",
				r.Resource, row.ID)
		case results[i].Left == watermark.NoSuchRow:
			text = results[i].Left
		case results[i].Left != "":
			stays++
			text = "stays: " + results[i].Left
		}
		f.env.print("%s %d: %s\n", r.Resource, row.ID, text)
	}
	if stays > 0 {
		return fmt.Errorf("%s of %s not erased", terminal.Plural(stays, "row"), r.Resource)
	}
	return nil
}

// followEvery is how often --wait looks.
const followEvery = time.Second

// follow prints what happens to each request now. If stay is set, it waits until each was carried out, and
// prints the steps until then, and the results. A broker that fails may come back, so it goes on until an
// interrupt.
func (f *follower) follow(ctx context.Context, asked []watermark.Request, stay bool) error {
	var open []*following
	for _, r := range asked {
		open = append(open, &following{Request: r})
	}
	var failed []error
	for {
		all, err := f.look(ctx, open)
		for _, r := range open {
			if err != nil && ctx.Err() == nil {
				f.tell(r.Resource, "unknown", "how far it is cannot be read: "+err.Error())
			}
		}
		if err == nil {
			open = slices.DeleteFunc(open, func(r *following) bool {
				now := find(all, r.Resource)
				if stay && now.Unreadable == nil {
					if over, err := f.result(r, now.Mark); over {
						failed = append(failed, err)
						return true
					}
				}
				step, text := f.step(r, now)
				f.tell(r.Resource, step, text)
				return false
			})
		}
		if len(open) == 0 || !stay {
			return errors.Join(failed...)
		}
		if err := wait.For(ctx, followEvery); err != nil {
			return err
		}
	}
}

// look asks how far the resources are, and tells each of open which requests the topic holds: before that, or
// one that is taken in between would count as lost.
func (f *follower) look(ctx context.Context, open []*following) ([]health.Resource, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	requests := f.cluster.Requests()
	if err := requests.CatchUp(ctx); err != nil {
		return nil, err
	}
	for _, r := range open {
		r.look(requests.After(r.Resource, -1, ""))
	}
	return overview.Glance(ctx, f.cfg, f.cluster)
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

// is reports whether uid is its own, or that of a later request.
func (f *following) is(uid string) bool { return uid == f.UID || slices.Contains(f.later, uid) }
