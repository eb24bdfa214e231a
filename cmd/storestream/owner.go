package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/storestream/storestream/metrics"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/status"
	"github.com/storestream/storestream/watermark"
	"go.uber.org/zap"
)

// owner keeps one resource polled while it belongs to this instance: takeover after takeover, until the group takes it away or the
// instance stops.
type owner struct {
	in       *instance
	resource *schemas.Resource
	metrics  *metrics.Resource
	log      *zap.Logger
	working  sync.WaitGroup
	shown    tenure
}

func newOwner(in *instance, name string) *owner {
	return &owner{in: in, resource: in.set.Get(name), metrics: in.metrics.Resource(name), log: in.log.With(zap.String("resource", name))}
}

// The wait after the first takeover that failed or was lost, and the longest one.
const (
	firstRetake = 200 * time.Millisecond
	lastRetake  = 30 * time.Second
)

func (o *owner) run(ctx context.Context) {
	o.working.Add(1)
	defer o.working.Done()
	failures := poller.Failures{Log: o.log, Now: time.Now}
	for {
		began := time.Now()
		err := o.takeOver(ctx)
		switch {
		case ctx.Err() != nil || err == nil:
			o.show(nil, "not ours", nil)
			return
		case errors.Is(err, poller.ErrReplay):
			failures.Note(nil)
			continue
		}
		if time.Since(began) > lastRetake {
			failures.N = 0 // it worked for a while: this is another failure
		}
		failures.Note(err)
		o.show(nil, "waiting to take over again", err)
		if !o.pause(ctx, o.backoff(err, failures.N)) {
			return
		}
	}
}

// backoff is short for what passes and long for what a person has to mend.
func (o *owner) backoff(err error, n int) time.Duration {
	var refused *producer.RefusedError
	var neighbour *producer.NeighbourError
	if errors.As(err, &refused) || errors.As(err, &neighbour) {
		return lastRetake / 3
	}
	return min(firstRetake<<min(n-1, 10), lastRetake)
}

func (o *owner) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-o.in.stop:
		return false
	case <-timer.C:
		return true
	}
}

// takeOver makes this instance the only writer of the resource, reads back what was published, and polls until it ends. The order is the
// one argued for in package producer: confirm, fence, read state, rebuild; and only then is the source read, by a source that is new.
// nil means that the instance stops. A panic anywhere in it is this resource's failure, not the others'.
func (o *owner) takeOver(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("a defect in storestream: polling panicked: %v\n%s", v, debug.Stack())
		}
	}()
	o.show(nil, "taking over", o.shown.failure())
	if stopped(o.in.stop) {
		return nil
	}
	if err := o.in.member.Confirm(ctx); err != nil {
		return err
	}
	session, err := o.in.cluster.Take(ctx, o.resource)
	if err != nil {
		return err
	}
	defer func() {
		if errors.Is(context.Cause(ctx), producer.ErrLostOwnership) {
			session.Lost()
		} else {
			session.Close()
		}
	}()
	requests := o.in.cluster.Requests()
	if err := requests.CatchUp(ctx); err != nil {
		return err
	}
	c := o.in.cfg.Resources[o.resource.Name]
	p := poller.New(poller.Config{
		Resource: o.resource, Source: o.in.source(o.resource, o.metrics, o.log), SourceName: c.Source, Interval: c.Interval, Overlap: c.Overlap, Start: start(c),
		Watermark: session.Watermark(), Letters: session.Letters(), Publish: session.Commit, MaxRows: session.MaxRows,
		MaxRecordBytes: session.MaxRecordBytes(), EndOffsets: session.EndOffsets,
		Requests: func(after int64) []watermark.Request { return requests.After(o.resource.Name, after) }, Changed: requests.Changed,
		Eager: o.in.eager, Now: time.Now, Metrics: o.metrics, Log: o.log,
	})
	o.show(nil, "reading back what was published", o.shown.failure())
	if err := session.Rebuild(ctx, func(r watermark.Published) error { p.Fold(r); return nil }); err != nil {
		return err
	}
	o.show(p, "", nil)
	return p.Run(ctx, o.in.stop)
}

func stopped(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// show replaces what the status page sees: a poller, or what is done while there is none.
func (o *owner) show(p *poller.Poller, doing string, err error) {
	t := &o.shown
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.failed = time.Time{}
	} else if t.failed.IsZero() {
		t.failed = time.Now()
	}
	t.poller, t.doing, t.since, t.err = p, doing, time.Now(), err
}

func (t *tenure) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

func (o *owner) snapshot(owned bool) status.Resource {
	r := status.Resource{Name: o.resource.Name, Source: o.in.cfg.Resources[o.resource.Name].Source, Owned: owned}
	t := &o.shown
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.poller == nil {
		r.Doing, r.Since, r.FailedSince = t.doing, t.since, t.failed
		if t.err != nil {
			r.Error = t.err.Error()
		}
		return r
	}
	s := t.poller.Status()
	r.Doing, r.Since, r.Passes, r.Held, r.Replaying = s.Doing, s.Since, s.Complete, s.Held, s.Replaying
	r.Settled, r.AsOf, r.Good = timeOf(s.Watermark.Settled), timeOf(s.Watermark.AsOf), timeOf(s.Good)
	r.Rows, r.DeadLetters, r.SeenBytes, r.Owner = s.Watermark.Rows, s.DeadLetters, s.SeenBytes, s.Watermark.Instance
	if s.Err != nil {
		r.Error, r.FailedSince = s.Err.Error(), s.FailedSince
	}
	return r
}

// timeOf is the zero time for "not yet".
func timeOf(i schemas.Instant) time.Time {
	if i == schemas.MinInstant {
		return time.Time{}
	}
	return i.Time()
}
