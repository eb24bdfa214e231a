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

// following is a request. The command prints the progress of the running instance with it.
type following struct {
	watermark.Request
	env   *environment
	said  string   // the step that was printed last
	later []string // UIDs of those that came after it: an owner carries out the last of them in its place
	there bool     // the topic held it when it was last looked at
	taken bool     // an instance has accepted it
}

// followEvery is how often --wait looks.
const followEvery = time.Second

// follow prints what happens to each request now. If stay is set, it waits until each was carried out, and
// prints the steps until then, and the results. A broker that fails may come back, so it goes on until an
// interrupt.
func follow(ctx context.Context, env *environment, cfg *config.Config, cluster *producer.Cluster,
	asked []watermark.Request, stay bool) error {
	var open []*following
	var topics []string // to be complete afterwards; an erase only takes rows out
	for _, r := range asked {
		open = append(open, &following{Request: r, env: env})
		if r.Kind != watermark.Erases {
			topics = append(topics, r.Resource)
		}
	}
	var failed []error
	for {
		all, err := look(ctx, cfg, cluster, open)
		open = slices.DeleteFunc(open, func(r *following) bool {
			if err != nil {
				r.tell("unknown", "how far it is cannot be read: "+err.Error())
				return false
			}
			now := find(all, r.Resource)
			if stay && now.Unreadable == nil {
				if over, err := r.result(now.Mark); over {
					failed = append(failed, err)
					return true
				}
			}
			r.tell(r.step(now))
			return false
		})
		if len(open) == 0 && stay {
			failed = append(failed, incomplete(ctx, cfg, cluster, topics))
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
func look(ctx context.Context, cfg *config.Config, cluster *producer.Cluster, open []*following) (
	[]health.Resource, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	requests := cluster.Requests()
	if err := requests.CatchUp(ctx); err != nil {
		return nil, err
	}
	for _, r := range open {
		r.look(requests.After(r.Resource, -1, ""))
	}
	return overview.Glance(ctx, cfg, cluster)
}

// find returns the state of a resource. One that is not among all has no watermark, and is not enabled.
func find(all []health.Resource, name string) health.Resource {
	i := slices.IndexFunc(all, func(r health.Resource) bool { return r.Name == name })
	if i < 0 {
		return health.Resource{Name: name, State: health.Unowned, Mark: watermark.New(name),
			Why: "no instance has ever polled it, and it is not enabled here"}
	}
	return all[i]
}

// look takes the requests for the resource that the topic holds.
func (r *following) look(held []watermark.Request) {
	i := slices.IndexFunc(held, func(h watermark.Request) bool { return h.UID == r.UID })
	if r.there = i >= 0; !r.there {
		return
	}
	for _, h := range held[i+1:] {
		if !slices.Contains(r.later, h.UID) {
			r.later = append(r.later, h.UID)
		}
	}
}

// is reports whether uid is its own, or that of a later request.
func (r *following) is(uid string) bool { return uid == r.UID || slices.Contains(r.later, uid) }

// tell prints a step, unless it is the one that was printed last. Steps are compared by step, because their
// texts tell how long something has lasted.
func (r *following) tell(step, text string) {
	if text != "" && r.said != step {
		r.said = step
		r.env.print("%s: %s\n", r.Resource, text)
	}
}

// step returns what happens to the request now, and a text about it. The text is "" if there is nothing to
// say.
func (r *following) step(now health.Resource) (step, text string) {
	if now.Between { // the next owner may do it at once
		return "", ""
	}
	waits := []health.State{health.Unowned, health.Unreadable, health.Stalled}
	switch r.Kind {
	case watermark.Cancels, watermark.Pauses, watermark.Resumes: // an owner does these at once
	default:
		waits = append(waits, health.Blocked, health.Failing, health.Paused)
	}
	if slices.Contains(waits, now.State) {
		return string(now.State) + now.Since.String(), "the request waits until this is over: " + stateText(now)
	}
	if text = requestText(now); now.Sweep != nil && now.Sweep.Tried == nil && now.Sweep.Failure != "" {
		text = "the sweep has not ended: " + now.Sweep.Failure
	}
	if len(now.Parts) > 0 && now.Parts[0].Failure != "" {
		text = "the " + string(now.Parts[0].Kind) + " has not ended: " + now.Parts[0].Failure
	}
	if !r.taken {
		text = now.Owner + " takes it from here"
	}
	return text, text
}

// result prints the result of a request that was carried out. err is set if a part of it was left undone. If
// the request was deleted with its topic before an instance took it, it is over too, because no instance will
// carry it out. Then err is set, too.
func (r *following) result(mark watermark.Watermark) (over bool, err error) {
	r.taken = r.taken || r.is(mark.RequestUID)
	switch r.Kind {
	case watermark.Sweeps:
		if over = mark.Swept != nil && r.is(mark.Swept.RequestUID); over {
			r.env.print("%s\n", sweepText(r.Resource, mark.Swept))
			if mark.Swept.Left != "" {
				err = exitError{exitDifferent, fmt.Errorf("%s: different from the service still", r.Resource)}
			}
		}
	case watermark.Reset: // the watermark that accepts a replay begins it
		if over = r.taken && mark.Replay == nil; !over {
			break
		}
		err = r.ended(&mark)
	case watermark.Replays, watermark.Retries:
		mine := func(p watermark.Part) bool { return p.RequestUID == r.UID }
		if over = r.taken && !slices.ContainsFunc(mark.Parts, mine); over {
			err = r.ended(&mark)
		}
	case watermark.Cancels, watermark.Pauses, watermark.Resumes:
		if over = r.taken; over {
			err = r.ended(&mark)
		}
	case watermark.Erases:
		waits := func(e watermark.Erase) bool { return e.RequestUID == r.UID }
		if over = r.taken && !slices.ContainsFunc(mark.Erase, waits); over {
			err = r.erased(mark.Erased)
		}
	}
	if !over && !r.there && !r.taken {
		return true, fmt.Errorf("%s: the request was deleted with its topic before an instance took it: ask again",
			r.Resource)
	}
	return over, err
}

// erased prints what became of each row of an erase.
func (r *following) erased(results []watermark.Erased) error {
	stays := 0
	for _, id := range r.Rows {
		i := slices.IndexFunc(results, func(e watermark.Erased) bool {
			return e.RequestUID == r.UID && e.ID == id
		})
		text := "erased"
		switch {
		case i < 0: // a watermark has room for the last results alone
			stays++
			text = fmt.Sprintf("dealt with, and its result is no longer known: see `storestream row %s %d`",
				r.Resource, id)
		case results[i].Left == watermark.NoSuchRow:
			text = results[i].Left
		case results[i].Left != "":
			stays++
			text = "stays: " + results[i].Left
		}
		r.env.print("%s %d: %s\n", r.Resource, id, text)
	}
	if stays > 0 {
		return fmt.Errorf("%s of %s not erased", terminal.Plural(stays, "row"), r.Resource)
	}
	return nil
}
