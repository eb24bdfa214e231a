package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/poller/rest"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// instance is one running storestream: a member of the group, with an owner for each resource that falls to it.
type instance struct {
	cfg     *config.Config
	set     *schemas.Set
	metrics *metrics.Set
	log     *zap.Logger
	cluster *producer.Cluster
	member  *producer.Group
	client  *client.Client
	zone    rest.Zone    // in which the service cuts days, as any source found out
	db      *postgres.DB // nil: orders and order_items go over REST
	eager   bool         // run --once
	// stop is closed when the instance is to finish the batches in hand and leave.
	stop   chan struct{}
	owners map[string]*owner
	// sweeping has room for the one resource that sweeps.
	sweeping chan struct{}
	// door orders the owners that go to work and the stop: one that came after it would not be waited for.
	door    sync.Mutex
	working sync.WaitGroup
	// What the page sees.
	board   *status.Board
	lookout *lookout
}

// finishWithin bounds how long the batches in hand may take after SIGTERM, before they are dropped: nothing is lost by that, the next owner
// reads them again.
const finishWithin = 20 * time.Second

// runInstance polls and publishes until ctx ends, then finishes the batch in hand of each resource, commits, and leaves. Its error is what
// waiting cannot mend.
func runInstance(ctx context.Context, cfg *config.Config, set *schemas.Set, cluster *producer.Cluster, m *metrics.Set, board *status.Board,
	log *zap.Logger, eager bool) error {
	in := &instance{cfg: cfg, set: set, metrics: m, log: log, cluster: cluster, eager: eager, stop: make(chan struct{}), owners: map[string]*owner{},
		sweeping: make(chan struct{}, 1),
		board:    board}
	if err := in.openSources(); err != nil {
		return err
	}
	defer in.closeSources()
	in.member = producer.NewGroup(cluster, cfg.Enabled(), in.own)
	for _, name := range cfg.Enabled() {
		in.owners[name] = newOwner(in, name)
	}
	in.lookout = newLookout(in)
	board.Provide(in.snapshot)
	defer in.lookAround()()

	membership, leave := context.WithCancel(context.Background())
	defer leave()
	result := make(chan error, 1)
	go func() { result <- in.member.Run(membership) }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	in.finish()
	if !in.idle(finishWithin) {
		log.Warn("not every batch in hand could be finished, leaving without", zap.Duration("waited", finishWithin))
	}
	leave()
	return <-result
}

// lookAround starts the lookout; the returned function ends it.
func (in *instance) lookAround() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); in.lookout.run(ctx) }()
	return func() { cancel(); <-ended }
}

// own is called by the membership for each resource that falls to this instance. What falls to it while it stops is left to the others.
func (in *instance) own(ctx context.Context, resource string) {
	if !in.enter() {
		return
	}
	defer in.working.Done()
	in.owners[resource].run(ctx)
}

// enter counts an owner as at work; false: the instance stops.
func (in *instance) enter() bool {
	in.door.Lock()
	defer in.door.Unlock()
	if stopped(in.stop) {
		return false
	}
	in.working.Add(1)
	return true
}

// finish asks the owners to finish the batches in hand.
func (in *instance) finish() {
	in.door.Lock()
	defer in.door.Unlock()
	close(in.stop)
}

// idle waits until no owner is at work.
func (in *instance) idle(limit time.Duration) bool {
	all := make(chan struct{})
	go func() {
		defer close(all)
		in.working.Wait()
	}()
	select {
	case <-all:
		return true
	case <-time.After(limit):
		return false
	}
}

func (in *instance) openSources() error {
	var err error
	in.client, err = client.New(client.Config{
		BaseURL: in.cfg.Store.BaseURL, APIKey: string(in.cfg.Store.APIKey), MaxRequestsPerSecond: in.cfg.Store.MaxRequestsPerSecond,
		RequestTimeout: in.cfg.Store.RequestTimeout, Log: in.log.With(zap.String("source", config.REST)),
	})
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if string(in.cfg.Postgres.DSN) == "" {
		return nil
	}
	in.db, err = postgres.Open(postgres.Config{
		DSN: string(in.cfg.Postgres.DSN), MaxConnections: in.cfg.Postgres.MaxConnections,
	})
	return err
}

func (in *instance) closeSources() {
	if in.db != nil {
		in.db.Close()
	}
	in.client.Close()
}

// source is a new source for one takeover of r: it remembers nothing of what an earlier one read. doing is told what it is at.
func (in *instance) source(r *schemas.Resource, bound *metrics.Resource, log *zap.Logger, doing func(string)) poller.Source {
	c := in.cfg.Resources[r.Name]
	if c.Source == config.Postgres {
		return postgres.NewSource(in.db, postgres.SourceConfig{Resource: r, Overlap: c.Overlap, Start: start(c), Metrics: bound, Log: log, Doing: doing})
	}
	return rest.NewSource(rest.SourceConfig{Resource: r, Client: in.client, Zone: &in.zone, Overlap: c.Overlap,
		Start: start(c), Metrics: bound, Log: log, Doing: doing})
}

// start is the configured start of a resource, MinInstant where there is none.
func start(c config.Resource) schemas.Instant {
	if c.Start.IsZero() {
		return schemas.MinInstant
	}
	return schemas.InstantOf(c.Start)
}

// snapshot is what the status page shows.
func (in *instance) snapshot() status.Snapshot {
	s := status.Snapshot{Group: in.cfg.Kafka.Group, DeadLettersTopic: in.cluster.DeadLetters(), Waiting: in.member.Waiting()}
	overREST := false
	owned := map[string]bool{}
	for _, name := range in.member.Owned() {
		owned[name] = true
	}
	for _, name := range in.cfg.Enabled() {
		s.Resources = append(s.Resources, in.owners[name].snapshot(owned[name]))
		overREST = overREST || in.cfg.Resources[name].Source == config.REST
	}
	if overREST {
		s.Service = in.service()
	}
	counted(&s, in.metrics)
	in.lookout.snapshot(&s)
	return s
}
