package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// owner keeps one resource polled while it belongs to this instance: takeover after takeover, until the group takes it away or the
// instance stops.
type owner struct {
	in       *instance
	resource *schemas.Resource
	metrics  *metrics.Resource
	log      *zap.Logger
	shown    tenure
}

func newOwner(in *instance, name string) *owner {
	return &owner{in: in, resource: in.set.Get(name), metrics: in.metrics.Resource(name), log: in.log.With(zap.String("resource", name)),
		shown: tenure{earliest: schemas.MinInstant}}
}

// The wait after the first takeover that failed or was lost, and the longest one.
const (
	firstRetake = 200 * time.Millisecond
	lastRetake  = 30 * time.Second
)

func (o *owner) run(ctx context.Context) {
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
	if errors.As(err, &refused) && !refused.MayPass || errors.As(err, &neighbour) {
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
	session, err := producer.Take(ctx, o.in.cluster, o.resource)
	if err != nil {
		return err
	}
	defer func() {
		if errors.Is(context.Cause(ctx), producer.ErrLostOwnership) {
			session.Abandon()
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
		Resource: o.resource, Source: o.in.source(o.resource, o.metrics, o.log, o.detail), SourceName: c.Source, Interval: c.Interval, Overlap: c.Overlap, Start: start(c),
		Watermark: session.Watermark(), DeadLetters: session.DeadLetters(), Publish: o.publish(session), MaxRows: session.MaxRows,
		MaxRecordBytes: session.MaxRecordBytes(), EndOffsets: session.EndOffsets,
		Requests: func(after int64) []watermark.Request { return requests.After(o.resource.Name, after) }, Changed: requests.Changed,
		Sweep: o.sweep(), Eager: o.in.eager, Now: time.Now, Metrics: o.metrics, Log: o.log,
	})
	o.show(nil, "reading back what was published", o.shown.failure())
	if err := session.Rebuild(ctx, func(r watermark.Published) error { p.RestorePublished(r); return nil }); err != nil {
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
