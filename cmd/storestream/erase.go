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
		Short:     "Delete rows that the service has deleted",
		Long: fmt.Sprintf(`Asks the running instance to look up the rows in the service, and to delete
those that are not there. It looks twice, the overlap apart. Over REST it reads
all rows each time. A row that the service still has stays. If the service
shows no row at all, all rows stay. It takes %d rows at most. Write ids below 0
behind --.

It deletes each copy in the topics: the row, records with its key in other
partitions, and its dead letter. The tombstone makes consumers delete the row.
The old values leave the topics' logs within kafka.erase_within, once another
record comes to the same partition. Backups, mirrors and consumers have to
delete their own copies.

On one UTC day sweeps and erase delete 100 rows of a resource at most, or a
hundredth of its topic if that is more. --confirm-deletes N goes beyond it.

It asks before it begins. Without a terminal it needs --yes. With --wait it
stays until each row is dealt with, and exits with 1 if a row stays.`,
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
