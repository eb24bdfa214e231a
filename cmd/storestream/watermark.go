package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// brokerPatience is how long a command that answers at once waits for the broker.
const brokerPatience = 15 * time.Second

func (a *app) watermarkCommand() *cobra.Command {
	return a.group(&cobra.Command{Use: "watermark", Short: "Is everything up to date, and replays",
		Example: "  storestream watermark list --config storestream.yaml"}, a.watermarkList(), a.watermarkReset())
}

func (a *app) watermarkList() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Say whether everything is up to date, and how far each resource is published",
		Long: `Reads the watermarks from Kafka and prints, for each resource: settled (every row with an earlier updated_at is published, and none
can appear there any more), as of (the topic holds what was visible then), lag (now minus as of), rows published in all, what the last
sweep found, the instance that polls it, and the request that it works on or that waits for it. Below stands whether everything is up to
date, and if not, why not, and which rows cannot be published.`,
		Example: "  storestream watermark list --config storestream.yaml\n  storestream watermark list -o json | jq '.[] | select(.lag_seconds > 60)'",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCluster(cmd, func(ctx context.Context, cfg *config.Config, cluster *producer.Cluster) error {
				states, err := readStates(ctx, cfg, cluster)
				if err != nil {
					return err
				}
				if output == "json" {
					return printJSON(a.stdout, states)
				}
				return a.printStates(cfg, states)
			})
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

// withCluster does f with the cluster of the configuration, and explains a broker that does not answer.
func (a *app) withCluster(cmd *cobra.Command, f func(context.Context, *config.Config, *producer.Cluster) error) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	cluster, err := openCluster(cfg, zap.NewNop()) // what matters comes back as an error
	if err != nil {
		return err
	}
	defer cluster.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), brokerPatience)
	defer cancel()
	if err := cluster.Ping(ctx); err != nil {
		return fmt.Errorf("%w: expected a Kafka broker at kafka.brokers (TLS and SASL as kafka.tls and kafka.sasl say)", err)
	}
	return f(cmd.Context(), cfg, cluster)
}

// state is a watermark as `watermark list` shows it.
type state struct {
	Resource   string              `json:"resource"`
	Settled    *schemas.Instant    `json:"settled"` // null: nothing yet
	AsOf       *schemas.Instant    `json:"as_of"`   // null: no complete pass yet
	LagSeconds *float64            `json:"lag_seconds"`
	Rows       int64               `json:"rows"`
	Owner      string              `json:"owner"`    // the member of the group that has it now, "": none
	Instance   string              `json:"instance"` // who wrote the watermark last
	Group      string              `json:"group"`
	Written    *schemas.Instant    `json:"written"`
	Replay     *watermark.Replay   `json:"replay,omitempty"`
	Sweep      *watermark.Sweep    `json:"sweep,omitempty"`
	LastSweep  *schemas.Instant    `json:"last_sweep"` // null: never
	Swept      *watermark.Swept    `json:"swept,omitempty"`
	Pending    []watermark.Request `json:"pending"` // asked for, not accepted yet
	// DeadLetters are the rows that cannot be published now, by reason.
	DeadLetters []letters `json:"dead_letters"`

	now schemas.Instant
	// between: nobody has it, but there are instances, and it was polled a moment ago: the group shares it out.
	between bool
}

func readStates(ctx context.Context, cfg *config.Config, cluster *producer.Cluster) ([]state, error) {
	ctx, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	marks, err := producer.ReadWatermarks(ctx, cluster)
	if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) { // no such topic: nothing has ever run
		return nil, err
	}
	dead := producer.NewWatch(cluster)
	if err := dead.Look(ctx); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, err
	}
	pending, err := readPending(ctx, cluster)
	if err != nil {
		return nil, err
	}
	members, err := readMembers(ctx, cluster)
	sharing := errors.Is(err, producer.ErrSharing)
	if err != nil && !sharing {
		return nil, err
	}
	owners := ownersOf(members)
	now := schemas.InstantOf(time.Now())
	states := []state{}
	for _, name := range schemas.Names() {
		mark, written := marks[name]
		if !written {
			if !cfg.Resources[name].Enabled {
				continue
			}
			mark = watermark.New(name)
		}
		s := stateOf(mark, pending(name, mark.Request), now)
		s.Owner, s.between = owners[name], owners[name] == "" && (sharing || len(members) > 0) && s.LagSeconds != nil && s.lag() <= handoverPatience
		s.DeadLetters = lettersOf(dead.DeadLetters()[name])
		states = append(states, s)
	}
	return states, nil
}

func stateOf(mark watermark.Watermark, pending []watermark.Request, now schemas.Instant) state {
	s := state{Resource: mark.Resource, Settled: known(mark.Settled), AsOf: known(mark.AsOf), Rows: mark.Rows, Instance: mark.Instance, Group: mark.Group,
		Written: known(mark.Written), Replay: mark.Replay, Sweep: mark.Sweep, LastSweep: known(mark.LastSweep), Swept: mark.Swept,
		Pending: pending, DeadLetters: []letters{}, now: now}
	if s.AsOf != nil {
		lag := max(0, now.Sub(mark.AsOf).Seconds())
		s.LagSeconds = &lag
	}
	if s.Pending == nil {
		s.Pending = []watermark.Request{}
	}
	return s
}

// readPending reads the requests and returns the function that says which of a resource's are newer than the last one accepted.
func readPending(ctx context.Context, cluster *producer.Cluster) (func(resource string, accepted int64) []watermark.Request, error) {
	requests := cluster.Requests()
	err := requests.CatchUp(ctx)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return func(string, int64) []watermark.Request { return nil }, nil
	}
	return requests.After, err
}

// readMembers is the instances of the group and what each has now, by the group's own word; none where nothing has ever run.
func readMembers(ctx context.Context, cluster *producer.Cluster) ([]producer.Owner, error) {
	members, err := producer.Owners(ctx, cluster)
	if errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.GroupIDNotFound) {
		return nil, nil
	}
	return members, err
}

// owner is who polls it, or that nobody does and who did last.
func (s state) owner() string {
	switch {
	case s.Owner != "":
		return s.Owner
	case s.between:
		return fmt.Sprintf("between two (last %s)", s.Instance)
	case s.Written == nil:
		return "none"
	}
	return fmt.Sprintf("none (last %s, %s ago)", s.Instance, terminal.Duration(s.now.Sub(*s.Written)))
}

// request is what is being done or waits, in words.
func (s state) request() string {
	var parts []string
	if s.Replay != nil {
		parts = append(parts, "replaying from "+instantText(s.Replay.From))
	}
	if s.Sweep != nil {
		parts = append(parts, "sweeping")
	}
	for _, p := range s.Pending {
		what := "waits: " + string(p.Kind)
		if p.To != nil {
			what += " to " + instantText(*p.To)
		}
		parts = append(parts, what+" by "+p.By)
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, "; ")
}
