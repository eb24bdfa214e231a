package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func eraseCommand(env *environment) *cobra.Command {
	var yes, stay bool
	var confirmed int
	cmd := &cobra.Command{
		Use:       "erase RESOURCE ID...",
		ValidArgs: schemas.Names(),
		Short:     "Delete rows from the topic that the service has deleted",
		Long: fmt.Sprintf(`Asks the running instance to look the rows up in the service, and to delete each that is
not there: when it was looked for again after the resource's overlap, and neither shown then nor by any read
in between. Over REST each time all rows are read. What the service still has stays, and all stays while it
shows no row at all. At most %d rows at a time. Ids below 0 go after --.

It deletes every copy that storestream may delete: the row, records with its key that another program wrote
into other partitions, and its dead letter. A tombstone makes consumers delete the row. Values leave the
topics' logs within kafka.erase_within. It does not reach backups, mirrors and what consumers keep.

In a day (UTC) 100 rows of a resource may be deleted, or a hundredth of the topic's rows if that is more.
Sweeps and erase share this budget. --confirm-deletes with the number of rows goes beyond it.

It says where the request has to wait: no instance has the resource, or its owner is blocked or fails.

It asks first; where there is no terminal, it needs --yes. With --wait it stays until the rows are dealt with,
says when the request begins or ceases to wait and for what, and when it was taken, and exits with 1 if one of
them stays.`, watermark.MostErased),
		Example: "  storestream erase users 123\n  storestream erase users 123 456 --yes --wait",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, ids, err := rowsToErase(cmd, args)
			if err != nil {
				return err
			}
			if err := checkConfirmed(cmd, confirmed, len(ids)); err != nil {
				return err
			}
			if err := env.mayAsk(cmd, yes); err != nil {
				return err
			}
			cfg, err := env.config()
			if err != nil {
				return err
			}
			return env.withCluster(cmd.Context(), cfg, func(cluster *producer.Cluster) error {
				return erase(cmd.Context(), env, cfg, cluster, name, ids, confirmed, yes, stay)
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().IntVar(&confirmed, confirmDeletes, 0,
		"all `N` rows were deleted in the service: delete them, even beyond the day's budget")
	cmd.Flags().BoolVar(&stay, "wait", false, "stay until it is done")
	return cmd
}

// rowsToErase is the resource and the ids that a command line names.
func rowsToErase(cmd *cobra.Command, args []string) (name string, ids []int64, err error) {
	if len(args) < 2 {
		return "", nil, usagef(cmd, "expected a resource and one id or more, such as %s users 123",
			cmd.CommandPath())
	}
	if err := checkResource(cmd, args[0]); err != nil {
		return "", nil, err
	}
	for _, arg := range args[1:] {
		id, err := parseID(cmd, arg)
		if err != nil {
			return "", nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) > watermark.MostErased {
		return "", nil, usagef(cmd, "%d rows: expected %d at most at a time (a sweep deletes any number)", len(ids),
			watermark.MostErased)
	}
	return args[0], ids, nil
}

// erase asks for the rows, and stays until they are dealt with if it shall.
func erase(ctx context.Context, env *environment, cfg *config.Config, cluster *producer.Cluster, name string,
	ids []int64, confirmed int, yes, stay bool) error {
	var rows []watermark.RowToErase
	for _, id := range ids {
		rows = append(rows, watermark.RowToErase{ID: id})
	}
	question := fmt.Sprintf("Delete %s of %s from the topic, if the service does not have them any more?",
		terminal.Plural(len(rows), "row"), name)
	if !yes && !env.confirm(question) {
		return errNotConfirmed
	}
	asked, err := ask(ctx, cluster, []string{name}, watermark.Request{Kind: watermark.Erases, Rows: rows,
		ConfirmedDeletes: confirmed})
	if err != nil {
		return err
	}
	env.print("%s: asked to erase %s\n%s\n", name, terminal.Plural(len(rows), "row"), remains(cfg))
	f := newFollower(env, cfg, cluster)
	f.sayWhoTakes(ctx, []string{name}, "; it takes the resource's overlap, and over REST two or three times as "+
		"long as to read everything")
	if !stay {
		return nil
	}
	return followErase(ctx, f, asked[0])
}

// remains returns a text about the copies that an erase does not reach, and how long they stay.
func remains(cfg *config.Config) string {
	within := "for as long as the brokers' settings say"
	if d := cfg.Kafka.EraseWithin; d > 0 {
		within = fmt.Sprintf("for %s at most, and then until the next record comes to the same partition",
			terminal.Duration(d))
	}
	return "Older records of an erased row and of its dead letter stay in the topics' logs " + within + ". " +
		"Consumers, backups and mirrors have to delete their own copies."
}

// followErase prints what became of each row.
func followErase(ctx context.Context, f *follower, asked watermark.Request) error {
	open := map[int64]bool{}
	for _, row := range asked.Rows {
		open[row.ID] = true
	}
	stays := 0
	stay := func(id int64, why string) {
		stays++
		f.say("%s %d: %s\n", asked.Resource, id, f.env.paint.As(terminal.Yellow, why))
	}
	err := f.follow(ctx, []watermark.Request{asked}, func(r *following, mark watermark.Watermark) bool {
		for _, e := range mark.Erased {
			if e.RequestUID != asked.UID || !open[e.ID] {
				continue
			}
			delete(open, e.ID)
			switch e.Left {
			case "":
				f.say("%s %d: erased\n", asked.Resource, e.ID)
			case watermark.NoSuchRow:
				f.say("%s %d: %s\n", asked.Resource, e.ID, e.Left)
			default:
				stay(e.ID, "stays: "+e.Left)
			}
		}
		for _, row := range asked.Rows { // the watermark has room for the last ones alone
			if open[row.ID] && r.taken && !waitsToBeErased(mark, asked.UID, row.ID) {
				delete(open, row.ID)
				stay(row.ID, fmt.Sprintf("dealt with, and nobody can say how any more: see `storestream row %s %d`",
					asked.Resource, row.ID))
			}
		}
		return len(open) == 0
	}, func(*following, watermark.Watermark) {}, f.eraseStep)
	if err == nil && stays > 0 {
		err = fmt.Errorf("%s of %s not erased", strings.ToLower(terminal.Plural(stays, "row")), asked.Resource)
	}
	return err
}

// eraseStep says what the owner does with the rows that it has taken.
func (f *follower) eraseStep(r *following, resources func(string) health.Resource) step {
	mark, settings := resources(r.Resource).Mark, f.cfg.Resources[r.Resource]
	if !slices.ContainsFunc(mark.Erase, func(e watermark.Erase) bool { return e.RequestUID == r.UID }) {
		return step{}
	}
	return step{"looks", fmt.Sprintf("the service is asked now, and once more after the overlap (%s) for rows "+
		"that it does not show", terminal.Duration(settings.Overlap))}
}

func waitsToBeErased(mark watermark.Watermark, uid string, id int64) bool {
	return slices.ContainsFunc(mark.Erase,
		func(e watermark.Erase) bool { return e.RequestUID == uid && e.ID == id })
}
