package main

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// engine joins the group and polls what falls to this instance until ctx is done; then it finishes the batch in hand, commits, leaves the
// group and returns nil. An error is what waiting cannot mend. eager: every pass is complete and every watermark is written at once.
type engine func(ctx context.Context, cfg *config.Config, set *schemas.Set, cluster *producer.Cluster, m *metrics.Set, board *status.Board,
	log *zap.Logger, eager bool) error

func (a *app) runCommand() *cobra.Command {
	var once bool
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Poll and publish until SIGINT or SIGTERM",
		Long: `Polls every enabled resource and publishes what is new. SIGINT or SIGTERM finishes the batch in hand and commits it;
a second one kills. Whatever is down (broker, registry, database, service) is waited for, and said in the log, on the status page and
at /readyz. Instances of one group share the resources, and one is the standby of the other.

With --once it publishes everything that was visible when it started and exits 0, or exits 1 when a resource makes no progress for
the time of --patience.`,
		Example: "  storestream run --config storestream.yaml\n  storestream run --once --patience 5m --config storestream.yaml",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if patience <= 0 {
				return usagef(cmd, "--patience %s: expected more than 0s", patience)
			}
			if cmd.Flags().Changed("patience") && !once {
				return usagef(cmd, "--patience without --once: `run` alone waits for ever")
			}
			return a.start(cmd.Context(), once, patience)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "publish everything that is visible now, then exit")
	cmd.Flags().DurationVar(&patience, "patience", time.Minute, "with --once: how long a resource may stand still")
	return cmd
}

// start brings up the parts in order: log, metrics, cluster, status server, instance. It takes them down in reverse.
func (a *app) start(ctx context.Context, once bool, patience time.Duration) (err error) {
	started := time.Now()
	cfg, set, err := a.load()
	if err != nil {
		return err
	}
	log := newLogger(cfg.Log, a.stderr)
	log.Info("starting", zap.String("version", version()), zap.String("instance", instanceName()), zap.String("group", cfg.Kafka.Group),
		zap.Strings("resources", cfg.Enabled()), zap.String("base_url", cfg.Store.BaseURL), zap.Bool("postgres", cfg.Postgres.DSN != ""),
		zap.Strings("brokers", cfg.Kafka.Brokers), zap.Bool("once", once))
	defer func() {
		log.Info("stopped", zap.Duration("after", time.Since(started).Round(time.Millisecond)), zap.Error(err))
	}()

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := metrics.New(registry)
	board := status.New(instanceName(), version())
	cluster, err := openMeasured(cfg, log, m.Kafka)
	if err != nil {
		return err
	}
	defer cluster.Close()
	server, err := status.Listen(cfg.HTTP.Listen, board, registry)
	switch {
	case err == nil:
		log.Info("status server listens", zap.String("addr", server.Addr()))
		defer func() { err = errors.Join(err, server.Close()) }()
	case once: // most likely the instance that runs all the time has the port
		log.Warn("no status page", zap.Error(err))
	default:
		return err
	}
	if !once {
		return a.engine(ctx, cfg, set, cluster, m, board, log, false)
	}
	w := &catchUp{enabled: cfg.Enabled(), start: schemas.InstantOf(started), patience: patience, read: func(ctx context.Context) (map[string]watermark.Watermark, error) {
		return producer.ReadWatermarks(ctx, cluster)
	}, lastError: lastErrors(board),
		paint: a.paint}
	if err := w.run(ctx, func(ctx context.Context) error { return a.engine(ctx, cfg, set, cluster, m, board, log, true) }); err != nil {
		return err
	}
	return w.summary().Print(a.stdout)
}

// lastErrors tells from the board what a resource fails with, "" if nothing is known.
func lastErrors(board *status.Board) func(resource string) string {
	return func(resource string) string {
		s := board.Snapshot()
		for _, r := range s.Resources {
			switch {
			case r.Name != resource:
			case r.Error != "":
				return r.Error
			case r.Held != "":
				return r.Held
			case r.Owned && r.Doing != "":
				return r.Doing
			}
		}
		return s.Waiting
	}
}
