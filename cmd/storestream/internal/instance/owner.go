package instance

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// owner keeps one resource polled while it belongs to this instance: takeover after takeover, until the group
// takes it away or the instance stops. Every field lives as long as the process; what lives for one takeover
// is local to takeOver.
type owner struct {
	c        Config
	resource *schemas.Resource
	settings config.Resource
	sources  *connect.Sources
	group    *producer.Group
	sweeping chan struct{} // poller.SweepConfig.Turn
	metrics  *metrics.Resource
	log      *zap.Logger
	failures *poller.Failures // in a row, of takeovers and polls

	mu   sync.Mutex
	live live
}

// newOwner is the owner of the resource called name. sweeping has room for the one resource that sweeps.
func newOwner(c Config, name string, sources *connect.Sources, group *producer.Group,
	sweeping chan struct{}) *owner {
	o := &owner{c: c, resource: c.Schemas.Get(name), settings: c.Settings.Resources[name], sources: sources,
		group: group, sweeping: sweeping, metrics: c.Metrics.Resource(name),
		log: c.Log.With(zap.String("resource", name))}
	o.failures = &poller.Failures{Log: o.log, Now: time.Now}
	o.turn(nil, "not ours", nil)
	o.metrics.SweepInterval.Set(c.Settings.Sweep.Interval.Seconds())
	return o
}

func (o *owner) run(ctx context.Context) {
	defer func() { // what failed here is over: the next time that it is ours, others have polled it
		o.failures.N, o.failures.Since = 0, time.Time{}
		o.turn(nil, "not ours", nil)
	}()
	tries, rereads := 0, false
	for {
		began, before := time.Now(), rereads
		err := o.takeOver(ctx)
		long := time.Since(began) > lastRetake
		rereads = errors.As(err, new(*poller.LostError))
		switch {
		case ctx.Err() != nil || err == nil:
			return
		case rereads && before && !long:
			// Twice in a row: the next takeover may lead to the same, so it waits as after a failure.
		case errors.Is(err, poller.ErrTakeover):
			continue
		}
		// A good poll in between does not make the wait short again. Otherwise two writers that take a session
		// from each other would never stop.
		if tries++; long {
			tries = 1
		}
		o.failures.Note(err)
		o.turn(nil, "waiting to take over again", err)
		if wait.For(ctx, retakeAfter(err, tries)) != nil {
			return
		}
	}
}

// The wait after the first takeover that failed or whose reads did not count, and the longest one.
const (
	firstRetake = 200 * time.Millisecond
	lastRetake  = 30 * time.Second
)

// retakeAfter returns the wait after the n-th takeover in a row that ended early: a growing time if the
// failure may pass, ten seconds if a person has to repair it.
func retakeAfter(err error, n int) time.Duration {
	if producer.Refused(err) {
		return lastRetake / 3
	}
	return min(firstRetake<<min(n-1, 10), lastRetake)
}

// takeOver makes this instance the only writer of the resource, reads the published rows back, and polls
// until ctx ends. Package producer argues for the order: confirm, look, fence, read state, rebuild. Only then
// is the source read, by a new source without a memory.
//
// If ctx ends with poller.ErrStopping, the batch in hand is still committed. Before the first poll there is
// none.
func (o *owner) takeOver(ctx context.Context) (err error) {
	defer wait.Recover("polling", &err)
	failure := o.now().err // it stays until polls begin
	o.turn(nil, "taking over", failure)
	if err := o.group.Confirm(ctx); err != nil {
		return err
	}
	session, err := producer.Take(ctx, o.c.Cluster, o.resource)
	if err != nil {
		return err
	}
	defer session.Close()
	requests := o.c.Cluster.Requests()
	if err := requests.CatchUp(ctx); err != nil {
		return err
	}
	p := o.newPoller(session, requests)
	defer p.Close()
	o.turn(nil, "reading back what was published", failure)
	err = session.Rebuild(ctx, func(r watermark.Published) error { p.RestorePublished(r); return nil })
	if err != nil {
		return err
	}
	o.turn(p, "starting", nil)
	if err = p.Run(ctx); ctx.Err() != nil {
		p.HandSweepOver(ctx)
	}
	return err
}

func (o *owner) newPoller(session *producer.Session, requests *producer.Requests) *poller.Poller {
	o.sources.Dialect().Load(session.Watermark().Dialect)
	doing := func(activity string) {
		activity = cmp.Or(activity, "polling") // the source has no more to say
		o.change(func(l *live) {
			if l.doing != activity {
				l.doing, l.since = activity, time.Now()
			}
		})
	}
	polls := o.sources.New(o.resource, o.metrics, o.log, connect.Audience{Doing: doing,
		Days: func(days []health.Days) { o.change(func(l *live) { l.days = days }) }})
	c := o.c.Settings
	return poller.New(poller.Config{
		Settings: poller.Settings{
			Resource: o.resource, SourceName: o.settings.Source, Interval: o.settings.Interval,
			Overlap: o.settings.Overlap, Memory: int(c.Poll.Memory),
			CatchesUp: o.settings.Source == config.Postgres,
			Start:     o.settings.Start, Eager: o.c.Eager,
		},
		Clock: clock, Source: polls, Doing: doing,
		Session: session, Requests: requests,
		Waits: o.sources.Waits(o.resource), Renewed: c.Rotation().Renewed, Hide: c.Rotation().Hide,
		Published: func(rows []schemas.Record, deleted []int64) {
			o.c.Board.Published(o.resource, rows, deleted)
		},
		Sweep: poller.SweepConfig{
			Interval: c.Sweep.Interval, Turn: o.sweeping, Memory: int64(c.Sweep.Memory),
			Scratch:   int64(c.Sweep.Scratch),
			ByID:      o.settings.Source == config.Postgres,
			Tombstone: c.Sweep.Deletes == config.Tombstone,
			Source:    func() poller.Source { return o.sources.Beside(polls, o.resource, o.metrics, o.log) },
			Topic: func(ctx context.Context, from []int64, wanted func(int64) bool,
				fold func(watermark.Published) error) ([]int64, error) {
				return producer.ReadTopic(ctx, o.c.Cluster, o.resource, from, wanted, fold)
			},
		},
		Metrics: o.metrics, Log: o.log, Failures: o.failures,
	})
}

func clock() poller.Moment {
	now := time.Now()
	return poller.Moment{Now: now, Wall: schemas.InstantOf(now)}
}

// change changes the owner's activity.
func (o *owner) change(change func(*live)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.live)
}

// turn notes that p polls from now on. If p is nil, doing is the owner's other activity, and err is the
// failure that it is in.
func (o *owner) turn(p *poller.Poller, doing string, err error) {
	o.change(func(l *live) {
		*l = live{poller: p, doing: doing, since: time.Now(), err: err, failed: o.failures.Since}
	})
}

// now returns the owner's activity.
func (o *owner) now() live {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.live
}
