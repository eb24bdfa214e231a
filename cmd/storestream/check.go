package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

// checkPatience bounds one part of `check`: what has not answered by then does not work.
const checkPatience = 30 * time.Second

func (a *app) checkCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Try everything that run needs, and say what is wrong and what to do",
		Long: `Tries the configuration, the service (key, clock, one row of each endpoint), PostgreSQL (role, pooler, tables, types,
index), Kafka (topics, rights, settings) and the schema registry, and prints one line each:

  ok    as it should be
  note  to be known
  warn  works, and costs something: what, and what to do
  FAIL  run will not work so: what is wrong, and what to do

It changes nothing: it makes no topic, registers no schema and disturbs no running instance. Exits 0 where nothing fails, 1 otherwise.`,
		Example: "  storestream check --config storestream.yaml\n  storestream check -o json | jq '.[] | select(.level != \"ok\")'",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, set, err := a.load()
			if err != nil {
				return err
			}
			c := &checker{cfg: cfg, set: set, file: a.configFile}
			if c.registry, err = newRegistry(cfg); err != nil {
				return err
			}
			if c.cluster, err = openCluster(cfg, zap.NewNop()); err != nil {
				return err
			}
			defer c.cluster.Close()
			return a.report(cmd.Context(), c, output == "json")
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

// checker tries what a configuration names.
type checker struct {
	cfg      *config.Config
	set      *schemas.Set
	file     string
	cluster  *producer.Cluster
	registry *registry.Client
}

// parts are tried side by side and shown in this order.
func (c *checker) parts() []func(context.Context) []finding {
	return []func(context.Context) []finding{c.configuration, c.service, c.database, c.kafka, c.schemas, c.status}
}

// report shows what each part found as soon as those before it are shown.
func (a *app) report(ctx context.Context, c *checker, asJSON bool) error {
	var results []chan []finding
	for _, part := range c.parts() {
		found := make(chan []finding, 1)
		results = append(results, found)
		go func() {
			ctx, cancel := context.WithTimeout(ctx, checkPatience)
			defer cancel()
			found <- part(ctx)
		}()
	}
	all, about := []finding{}, max(len("registry "+c.cluster.Topic("order_items")), len("kafka "+c.cluster.DeadLetters()))
	for _, result := range results {
		found := <-result
		all = append(all, found...)
		for _, f := range found {
			if asJSON {
				continue
			}
			if err := f.print(a.stdout, a.paint, about); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return a.sumUp(all, asJSON)
}

func (a *app) sumUp(all []finding, asJSON bool) error {
	count := map[level]int{}
	for _, f := range all {
		count[f.Level]++
	}
	if asJSON {
		if err := printJSON(a.stdout, all); err != nil {
			return err
		}
	}
	if count[failing] > 0 {
		return fmt.Errorf("%d of %d checks fail: `run` goes on by itself once they do not", count[failing], len(all))
	}
	if !asJSON {
		a.print("\n%s (%d checked, %d to be known, %s).\n", a.paint.As(terminal.Green, "Nothing fails"), len(all), count[note], terminal.Plural(count[warning], "warning"))
	}
	return nil
}

// over is the enabled resources that are read from source.
func (c *checker) over(source string) []*schemas.Resource {
	var found []*schemas.Resource
	for _, name := range c.cfg.Enabled() {
		if c.cfg.Resources[name].Source == source {
			found = append(found, c.set.Get(name))
		}
	}
	return found
}

func names(resources []*schemas.Resource) string {
	var all []string
	for _, r := range resources {
		all = append(all, r.Name)
	}
	return strings.Join(all, ", ")
}

// configuration has been checked when it was loaded: what was wrong with it ended the command.
func (c *checker) configuration(context.Context) []finding {
	f := &findings{part: "configuration"}
	from := c.file
	if from == "" {
		from = "no file (--config), so defaults, environment and flags"
	}
	var parts []string
	for _, source := range []string{config.Postgres, config.REST} {
		if found := c.over(source); len(found) > 0 {
			parts = append(parts, names(found)+" over "+source)
		}
	}
	f.ok("", "%s: %s", from, strings.Join(parts, "; "))
	for _, name := range schemas.Names() {
		if r := c.cfg.Resources[name]; r.Enabled && r.Overlap == 0 {
			f.add(warning, name, "set resources."+name+".overlap to longer than any transaction takes from the time that it stamps to its first write",
				"overlap is 0: a row that becomes visible later than its updated_at is missed until a sweep finds it")
		}
	}
	return f.all
}

// status tries the port of the status server. Where a running storestream has it, that is as it should be.
func (c *checker) status(ctx context.Context) []finding {
	f := &findings{part: "status"}
	listen := c.cfg.HTTP.Listen
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", listen)
	if err == nil {
		_ = l.Close() // it was only tried
		f.ok("", "%s is free for the status page", listen)
		return f.all
	}
	if _, port, splitErr := net.SplitHostPort(listen); splitErr == nil && isStorestream(ctx, port) {
		f.ok("", "%s is a running storestream's", listen)
		return f.all
	}
	f.fail("", err, "stop what has the port, or set http.listen to another one")
	return f.all
}

// isStorestream asks who answers at a port of this machine.
func isStorestream(ctx context.Context, port string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK && resp.Header.Get("Content-Security-Policy") != ""
}
