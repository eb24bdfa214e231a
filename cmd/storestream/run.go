package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/catchup"
	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/instance"
	"github.com/storestream/storestream/cmd/storestream/internal/logging"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func runCommand(env *environment) *cobra.Command {
	var once bool
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Poll and publish until SIGINT or SIGTERM",
		Long: `Polls every enabled resource and publishes what is new. SIGINT or SIGTERM finishes the batch in
hand and commits it; a second one kills. Whatever is down (broker, registry, database, service) is waited
for, and named in the log, on the status page and at /readyz. Instances of one group share the resources,
and each is the standby of the others.

With --once it publishes everything that was visible when it started and exits 0. It exits 1 when a resource
makes no progress for the time of --patience, and 4 when too many rows cannot be published: more than 5 of a
resource, or more than one in a thousand.`,
		Example: "  storestream run --set http.listen=127.0.0.1:0 # beside another one, on any free port\n" +
			"  storestream run --once --patience 5m",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if patience <= 0 {
				return usagef(cmd, "--patience %s: expected more than 0s", patience)
			}
			if cmd.Flags().Changed("patience") && !once {
				return usagef(cmd, "--patience without --once: `run` alone waits for ever")
			}
			return poll(cmd.Context(), env, once, patience)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "publish everything that is visible now, and exit")
	cmd.Flags().DurationVar(&patience, "patience", time.Minute,
		"with --once: give up after this long without progress")
	return cmd
}

// poll starts the parts in order (log, metrics, cluster, status server, instance) and ends them in reverse.
func poll(ctx context.Context, env *environment, once bool, patience time.Duration) (err error) {
	started, name := time.Now(), instance.Name()
	cfg, set, err := env.load()
	if err != nil {
		return err
	}
	// A reader of the log that goes away must not end publishing. All other commands exist for their output, so
	// SIGPIPE ends them.
	signal.Ignore(syscall.SIGPIPE)
	log := logging.New(cfg.Log, env.stderr)
	defer rotate(cfg.Rotation(), log)()
	log.Info("starting", zap.String("version", version()), zap.String("instance", name),
		zap.String("config", env.configFile), zap.String("group", cfg.Kafka.Group()),
		zap.Strings("resources", cfg.Enabled()), zap.String("base_url", cfg.Store.BaseURL),
		zap.Bool("postgres", cfg.Postgres.DSN.IsSet()),
		zap.Strings("brokers", cfg.Kafka.Brokers), zap.Bool("once", once))
	for _, e := range cfg.Exposed() {
		if e.Credential {
			log.Warn("an exception of security's rules is in use", zap.String("connection", e.Connection),
				zap.String("setting", e.Key), zap.Strings("hosts", e.Hosts), zap.String("risk", e.Risk()))
		}
	}
	defer func() {
		log.Info("stopped", zap.Duration("after", time.Since(started).Round(time.Millisecond)), zap.Error(err))
	}()

	defer collectSooner(len(cfg.Enabled()))()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	counts, board := metrics.New(registry), status.New(name, version())
	if cfg.HTTP.ShowRows {
		board.ShowValues()
	}
	cluster, err := connect.Kafka(cfg, name, log, counts.Kafka)
	if err != nil {
		return err
	}
	defer cluster.Close()
	server, err := status.Listen(status.Config{Addr: cfg.HTTP.Listen, Hosts: cfg.HTTP.Hosts,
		Token: cfg.HTTP.Token, CertFile: cfg.HTTP.TLS.CertFile, KeyFile: cfg.HTTP.TLS.KeyFile,
		Rotation: cfg.Rotation(), Log: log}, board, registry)
	switch {
	case err == nil:
		log.Info("status server listens", zap.String("addr", server.Addr()))
		if cfg.HTTP.InClear() {
			log.Warn("the status page, and http.token if it is set, travel unencrypted beyond this machine: " +
				"listen on 127.0.0.1, or set http.tls and http.token")
		}
		defer func() { err = errors.Join(err, server.Close()) }()
	case once: // most likely the instance that runs all the time has the port
		log.Warn("no status page", zap.Error(err))
	default:
		return err
	}
	c := instance.Config{Name: name, Settings: cfg, Schemas: set, Cluster: cluster, Metrics: counts,
		Board: board, Log: log, Eager: once}
	if !once {
		return instance.Run(ctx, c)
	}
	err = catchup.Run(ctx, catchup.Config{Resources: cfg.Enabled(), Moment: schemas.InstantOf(started),
		Patience: patience, Instance: name, Status: board.Snapshot,
		Watermarks: func(ctx context.Context) (map[string]watermark.Watermark, map[string]error, error) {
			return producer.ReadWatermarks(ctx, cluster)
		}}, func(ctx context.Context) error { return instance.Run(ctx, c) })
	if err != nil {
		return err
	}
	return incomplete(ctx, cfg, cluster, cfg.Enabled())
}

// rotate has secrets and certificates read again: at SIGHUP, and now and then. undo ends that, and waits for
// it.
func rotate(files *rotation.Set, log *zap.Logger) (undo func()) {
	files.Log = log
	ctx, cancel := context.WithCancel(context.Background())
	signals, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	go func() { defer close(ended); files.Follow(ctx, signals) }()
	return func() {
		signal.Stop(signals)
		cancel()
		<-ended
	}
}

// collectSooner lets garbage grow to three quarters of the live heap rather than to all of it, if there are
// several resources. Five first loads at once then take 13 MiB less, for 5 % more CPU while they last. If
// GOGC is set, it decides. undo restores the setting, for tests.
func collectSooner(resources int) (undo func()) {
	if _, set := os.LookupEnv("GOGC"); set || resources < 2 {
		return func() {}
	}
	was := debug.SetGCPercent(75)
	return func() { debug.SetGCPercent(was) }
}
