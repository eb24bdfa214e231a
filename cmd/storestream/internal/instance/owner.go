package instance

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/status"
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
	resource *schemas.Resource
	settings config.Resource
	memory   int // poll.memory, in bytes
	sweep    poller.SweepConfig
	eager    bool
	secrets  *rotation.Set

	cluster *producer.Cluster
	group   *producer.Group
	sources *connect.Sources

	board   *status.Board
	metrics *metrics.Resource
	log     *zap.Logger

	mu   sync.Mutex
	live live
}

// newOwner is the owner of the resource called name. sweeping has room for the one resource that sweeps.
func newOwner(c Config, name string, sources *connect.Sources, group *producer.Group,
	sweeping chan struct{}) *owner {
	o := &owner{
		resource: c.Schemas.Get(name), settings: c.Settings.Resources[name], eager: c.Eager,
		memory: int(c.Settings.Poll.Memory), secrets: c.Settings.Rotation(),
		cluster: c.Cluster, group: group, sources: sources,
		board: c.Board, metrics: c.Metrics.Resource(name), log: c.Log.With(zap.String("resource", name)),
	}
	o.turn(nil, "not ours", nil)
	o.metrics.SweepInterval.Set(c.Settings.Sweep.Interval.Seconds())
	// A sweep reads the topic as everybody sees it. newPoller adds its source.
	o.sweep = poller.SweepConfig{
		Interval: c.Settings.Sweep.Interval, Turn: sweeping, Memory: int64(c.Settings.Sweep.Memory),
		ByID:      c.Settings.Resources[name].Source == config.Postgres,
		Tombstone: c.Settings.Sweep.Deletes == config.Tombstone,
		Topic: func(ctx context.Context, from []int64, wanted func(int64) bool,
			fold func(watermark.Published) error) ([]int64, error) {
			return producer.ReadTopic(ctx, c.Cluster, o.resource, from, wanted, fold)
		},
	}
	return o
}

// The wait after the first takeover that failed or whose reads did not count, and the longest one.
const (
	firstRetake = 200 * time.Millisecond
	lastRetake  = 30 * time.Second
)

func (o *owner) run(ctx context.Context) {
	failures, rereads := &poller.Failures{Log: o.log, Now: time.Now}, false
	var tries retakes
	for {
		began, before := time.Now(), rereads
		err := o.takeOver(ctx, failures)
		rereads = errors.As(err, new(*poller.LostError))
		switch {
		case ctx.Err() != nil || err == nil:
			o.turn(nil, "not ours", nil)
			return
		case rereads && before && time.Since(began) < lastRetake:
			// Twice in a row: the next takeover may lead to the same, so it waits as after a failure.
		case errors.Is(err, poller.ErrTakeover):
			continue
		}
		worked := time.Duration(0)
		if !failures.Good.IsZero() {
			worked = time.Since(failures.Good)
		}
		failures.Note(err)
		o.turn(nil, "waiting to take over again", err)
		if wait.For(ctx, tries.after(err, worked, time.Since(began))) != nil {
			return
		}
	}
}

// retakes decides how long to wait before the next takeover. A good poll ends a row of failures, but the
// waits go on to grow. Otherwise two writers that take a session from each other would never stop, each with
// one good poll in between. If a session lasted longer than the last wait, the next wait is the shortest
// again.
type retakes struct {
	n      int           // takeovers that failed or were lost, without working long enough in between
	waited time.Duration // before the last one
}

// after is the wait after a takeover that took so long in all and ended with err; worked is since when its
// polls were good.
func (r *retakes) after(err error, worked, took time.Duration) time.Duration {
	if worked > r.waited || took > lastRetake {
		r.n = 0
	}
	r.n++
	r.waited = retakeAfter(err, r.n)
	return r.waited
}

// retakeAfter returns the wait after the n-th failure in a row: a growing time if the failure may pass, ten
// seconds if a person has to repair it.
func retakeAfter(err error, n int) time.Duration {
	if needsAPerson(err) {
		return lastRetake / 3
	}
	return min(firstRetake<<min(n-1, 10), lastRetake)
}

// needsAPerson says of a takeover's error whether it is one that a person has to put right.
func needsAPerson(err error) bool {
	return producer.Refused(err)
}

// takeOver makes this instance the only writer of the resource, reads the published rows back, and polls
// until ctx ends. Package producer argues for the order: confirm, look, fence, read state, rebuild. Only then
// is the source read, by a new source without a memory.
//
// If ctx ends with poller.ErrStopping, the batch in hand is still committed. Before the first poll there is
// none.
func (o *owner) takeOver(ctx context.Context, failures *poller.Failures) (err error) {
	defer poller.Recover("polling", &err)
	failure := o.now().err // it stays until polls begin
	o.turn(nil, "taking over", failure)
	if err := o.group.Confirm(ctx); err != nil {
		return err
	}
	session, err := producer.Take(ctx, o.cluster, o.resource)
	if err != nil {
		return err
	}
	defer session.Close()
	requests := o.cluster.Requests()
	if err := requests.CatchUp(ctx); err != nil {
		return err
	}
	p := o.newPoller(session, requests, failures)
	defer p.Close()
	o.turn(nil, "reading back what was published", failure)
	err = session.Rebuild(ctx, func(r watermark.Published) error { p.RestorePublished(r); return nil })
	if err != nil {
		return err
	}
	o.turn(p, "", nil)
	err = p.Run(ctx)
	o.handSweepOver(ctx, session)
	return err
}

// handOverWithin bounds how long the group waits for the last word on a sweep.
const handOverWithin = 2 * time.Second

// handSweepOver says in the watermark that a sweep in hand did not die, but goes on with the next owner.
func (o *owner) handSweepOver(ctx context.Context, session *producer.Session) {
	mark := session.Watermark()
	if !mark.HandSweepOver() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverWithin)
	defer cancel()
	if err := session.Commit(ctx, watermark.Transaction{Watermark: mark}); err != nil {
		o.log.Info("the sweep in hand could not be handed over: the next owner takes it for one that died",
			zap.Error(err))
	}
}

func (o *owner) newPoller(session *producer.Session, requests *producer.Requests,
	failures *poller.Failures) *poller.Poller {
	o.sources.Dialect().Load(session.Watermark().Dialect)
	polls := o.sources.New(o.resource, o.metrics, o.log, connect.Audience{
		Doing: func(text string) {
			o.change(func(l *live) {
				if l.detail != text {
					l.detail, l.detailSince = text, time.Now()
				}
			})
		},
		Days: func(days []health.Days) { o.change(func(l *live) { l.days = days }) },
	})
	sweep := o.sweep
	sweep.Source = func() poller.Source { return o.sources.Beside(polls, o.resource, o.metrics, o.log) }
	return poller.New(poller.Config{
		Settings: poller.Settings{
			Resource: o.resource, SourceName: o.settings.Source, Interval: o.settings.Interval,
			Overlap: o.settings.Overlap, Memory: o.memory, CatchesUp: o.settings.Source == config.Postgres,
			Start: connect.Start(o.settings), Eager: o.eager,
		},
		Clock: clock, Source: polls,
		Session: session, Requests: requests,
		Waits: o.sources.Waits(o.resource.Name), Renewed: o.secrets.Renewed, Hide: o.secrets.Hide,
		Published: func(rows []schemas.Record, deleted []int64) {
			o.board.Published(o.resource, rows, deleted)
		},
		Sweep: sweep, Metrics: o.metrics, Log: o.log, Failures: failures,
	})
}

func clock() poller.Moment {
	now := time.Now()
	return poller.Moment{Now: now, Wall: schemas.InstantOf(now)}
}

// change changes what the owner does now.
func (o *owner) change(change func(*live)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.live)
}

// turn notes that p polls from now on; or, if p is nil, what the owner does instead, and its failure.
func (o *owner) turn(p *poller.Poller, doing string, err error) {
	o.change(func(l *live) {
		failed := l.failed
		if err == nil {
			failed = time.Time{}
		} else if failed.IsZero() {
			failed = time.Now()
		}
		*l = live{poller: p, doing: doing, since: time.Now(), err: err, failed: failed}
	})
}

// now returns what the owner does now.
func (o *owner) now() live {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.live
}
