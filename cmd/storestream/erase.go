package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func eraseCommand(env *environment) *cobra.Command {
	o := order{Request: watermark.Request{Kind: watermark.Erases}}
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
topics' logs within kafka.erase_within, and when the next record comes to the same partition. It does not
reach backups, mirrors and what consumers keep: they have to delete their own copies.

In a day (UTC) 100 rows of a resource may be deleted, or a hundredth of the topic's rows if that is more.
Sweeps and erase share this budget. --confirm-deletes with the number of rows goes beyond it.

It asks first; where there is no terminal, it needs --yes. It says who takes the request, or what it waits
for. With --wait it stays until the rows are dealt with, and exits with 1 if one of them stays.`,
			watermark.MostErased),
		Example: "  storestream erase users 123\n  storestream erase users 123 456 --yes --wait",
	}
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := parseIDs(cmd, args, watermark.MostErased)
		if err != nil {
			return err
		}
		o.Rows = ids
		rows := terminal.Plural(len(ids), "row")
		o.what = "an erase of " + rows
		return o.send(env, cmd, args[:1], fmt.Sprintf(
			"Delete %s of %s from the topic, if the service does not have them any more?", rows, args[0]), nil)
	}
	return cmd
}
