package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// order is what one call of sweep, erase, replay, pause or another such command asks of the running instance.
type order struct {
	watermark.Request        // of each resource, which is not set yet
	what              string // the request in words: "a sweep"

	all, yes, wait bool // flags
}

// confirmDeletes is the flag of sweep and erase that gives the number of deletions that the user has checked.
const confirmDeletes = "confirm-deletes"

// flags adds the flags that all orders have, and those of its kind.
func (o *order) flags(cmd *cobra.Command) {
	if o.Kind != watermark.Erases && o.Kind != watermark.Retries {
		cmd.Flags().BoolVar(&o.all, "all", false, "all enabled resources")
	}
	if o.Kind == watermark.Sweeps || o.Kind == watermark.Erases {
		cmd.Flags().IntVar(&o.ConfirmedDeletes, confirmDeletes, 0,
			"delete up to `N` rows of each resource, or none if more are due")
	}
	cmd.Flags().StringVar(&o.Why, "why", "", "the reason: one line of `TEXT`, 200 bytes at most")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until it is done")
}

// send writes a request for each of names, or with --all for each enabled resource, once a person has said
// yes to question. With --wait it stays until all are carried out. If explain is set, it prints before the
// question their effect.
func (o *order) send(env *environment, cmd *cobra.Command, names []string, question string,
	explain func(cluster *producer.Cluster, names []string) error) error {
	if o.all == (len(names) > 0) {
		return usagef(cmd, "expected one or more resources, or --all")
	}
	if len(o.Why) > watermark.MostWhy || strings.ContainsFunc(o.Why, unicode.IsControl) {
		return usagef(cmd, "--why: expected one line of at most %d bytes", watermark.MostWhy)
	}
	least := max(1, len(o.Rows))
	if cmd.Flags().Changed(confirmDeletes) && o.ConfirmedDeletes < least {
		return usagef(cmd, "--%s %d: expected %d or more", confirmDeletes, o.ConfirmedDeletes, least)
	}
	if !o.yes && !env.terminal {
		return usagef(cmd, "it asks first, and there is no terminal to ask on: add --yes")
	}
	return env.inKafka(cmd, func(cfg *config.Config, _ *schemas.Set, cluster *producer.Cluster) error {
		ctx := cmd.Context()
		if o.all { // a request for another one would wait for weeks, and be carried out once that is enabled
			if names = cfg.Enabled(); len(names) == 0 {
				return errors.New("--all: no resource is enabled in this configuration: expected one or more")
			}
		}
		if explain != nil {
			if err := explain(cluster, names); err != nil {
				return err
			}
		}
		if explain == nil {
			env.print("%s: %s\n", strings.Join(names, ", "), o.what)
		}
		if !o.yes && !env.confirm(ctx, question) {
			return errors.New("not confirmed: nothing was asked of the running instance")
		}
		asked, err := o.ask(ctx, cluster, names)
		for _, r := range asked {
			env.print("%s: asked for %s\n", r.Resource, o.what)
		}
		if err != nil {
			return err
		}
		if !o.wait {
			env.print("`storestream watermark list` and the status page show how far it is.\n")
		}
		return follow(ctx, env, cfg, cluster, asked, o.wait)
	})
}

// ask writes the requests, and returns those that were written, with their ids.
func (o *order) ask(ctx context.Context, cluster *producer.Cluster, names []string) (
	asked []watermark.Request, err error) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	o.By, o.At = whoAmI(), schemas.InstantOf(time.Now())
	for _, name := range names {
		o.Resource = name
		r, err := cluster.Requests().Ask(ctx, o.Request)
		if err != nil {
			return asked, fmt.Errorf("asking for a %s of %s: %w", o.Kind, name, err)
		}
		asked = append(asked, r)
	}
	return asked, nil
}

// whoAmI goes into a request, so that others know whom to ask: user@host.
func whoAmI() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}
