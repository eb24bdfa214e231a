package instance

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// Config is what an instance works with. All of it is needed.
type Config struct {
	// Name distinguishes this instance from the others of its group.
	Name     string
	Settings *config.Config
	Schemas  *schemas.Set
	// Cluster was opened for an instance of this name.
	Cluster *producer.Cluster
	Metrics *metrics.Set
	Board   *status.Board
	Log     *zap.Logger
	// Eager is for `run --once`: every pass is complete, and every watermark is written at once.
	Eager bool
}

// Name is what this process is called in its group, for people: host and process id.
func Name() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// instance is one running storestream. Every field lives as long as the process.
type instance struct {
	c       Config
	sources *connect.Sources
	group   *producer.Group
	owners  map[string]*owner // of each enabled resource, also while another instance has it
	monitor *monitor
}

// Run polls and publishes until ctx ends. Then it finishes the batch in hand of each resource, commits it,
// leaves the group and returns nil. Whatever is down is waited for; its error is what waiting does not
// repair.
func Run(ctx context.Context, c Config) error {
	in, err := newInstance(c)
	if err != nil {
		return err
	}
	defer in.sources.Close()
	c.Board.Provide(in.snapshot)
	c.Metrics.Render(func() []health.Resource { return c.Board.Snapshot().Resources })
	defer in.monitor.start()()
	membership, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, func() { stop(poller.ErrStopping) })()
	return in.group.Run(membership)
}

func newInstance(c Config) (*instance, error) {
	sources, err := connect.OpenSources(c.Settings, c.Log)
	if err != nil {
		return nil, err
	}
	in := &instance{c: c, sources: sources, owners: map[string]*owner{}}
	enabled := c.Settings.Enabled()
	in.group = producer.NewGroup(c.Cluster, enabled, poller.StopWithin,
		func(ctx context.Context, resource string) { in.owners[resource].run(ctx) })
	sweeping := make(chan struct{}, 1) // room for the one resource that sweeps
	for _, name := range enabled {
		in.owners[name] = newOwner(c, name, sources, in.group, sweeping)
	}
	in.monitor = newMonitor(c, in.owners)
	return in, nil
}

// snapshot returns the status page's Snapshot.
func (in *instance) snapshot() status.Snapshot {
	s := status.Snapshot{Group: in.c.Settings.Kafka.Group(), DeadLettersTopic: in.c.Cluster.DeadLetters(),
		Waiting: in.group.Waiting()}
	owned, service := in.group.Owned(), in.service()
	for _, name := range in.c.Settings.Enabled() {
		r := in.monitor.resource(name, slices.Contains(owned, name))
		counts := in.owners[name].metrics
		r.Published, r.UnknownFields = counts.Published(), len(counts.Fields())
		if in.c.Settings.Resources[name].Source == config.REST {
			r.Requests, s.Service = counts.Requests(), service
		}
		s.Resources = append(s.Resources, r)
	}
	in.monitor.addTo(&s)
	return s
}

// service is how the REST service is reached.
func (in *instance) service() *status.Service {
	state := in.sources.Service()
	s := &status.Service{Allowed: state.RequestsPerSecond, Ceiling: in.c.Settings.Store.MaxRequestsPerSecond,
		RefusedSince: state.RefusedSince.UTC()}
	if state.RefusedUntil.After(time.Now()) {
		s.RefusedUntil = state.RefusedUntil.UTC()
	}
	if state.HasClock {
		skew := state.ClockSkew.Seconds()
		s.ClockSkewSeconds = &skew
	}
	for _, known := range in.sources.Dialect().Known() {
		p := status.Property{Name: known.Name, Question: known.Question, Value: known.Value, Set: known.Set,
			Evidence: known.Evidence}
		if known.Evidence != "" {
			p.Since = known.Since.Time()
		}
		s.Dialect = append(s.Dialect, p)
	}
	return s
}
