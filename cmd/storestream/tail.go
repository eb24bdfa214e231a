package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func tailCommand(env *environment) *cobra.Command {
	var beginning, follow, mask bool
	var n int
	cmd := &cobra.Command{
		Use:       "tail RESOURCE",
		ValidArgs: schemas.Names(),
		Short:     "Print upserts and tombstones as they are published",
		Long: `Prints the records of a resource's topic, one a line, decoded through the
registry, as a read_committed consumer sees them. Without a flag it prints the
records that come from now on, until you interrupt it.

It shows personal data. With --mask it shows "***" in its place.`,
		Example: "  storestream tail orders -n 5\n" +
			"  storestream tail users -n 10 -o json | jq .value.city",
		Args: resourceArgs(1, 1),
	}
	cmd.Flags().BoolVar(&beginning, "from-beginning", false, "begin with everything that the topic holds")
	cmd.Flags().BoolVar(&mask, "mask", false, "hide the values of personal fields")
	cmd.Flags().IntVarP(&n, "lines", "n", 0, "only the last `many` records")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "with --lines: continue with new records")
	cmd.MarkFlagsMutuallyExclusive("from-beginning", "lines")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case n < 0 || n == 0 && cmd.Flags().Changed("lines"):
			return usagef(cmd, "-n %d: expected 1 or more", n)
		case n > mostLast:
			return usagef(cmd, "-n %d: expected %d at most, or --from-beginning without -n", n, mostLast)
		}
		resource, last := args[0], n
		if beginning {
			last = -1
		}
		return env.inKafka(cmd, func(_ *config.Config, set *schemas.Set, cluster *producer.Cluster) error {
			for record, err := range producer.Tail(cmd.Context(), cluster, set.Get(resource), last, follow || n == 0) {
				if err == nil {
					err = printRecord(env, resource, record, *asJSON, mask)
				}
				switch {
				case cmd.Context().Err() != nil: // interrupting it is how one ends it
					return nil
				case errors.Is(err, kerr.UnknownTopicOrPartition):
					return fmt.Errorf("topic %s does not exist: `storestream run` creates it", cluster.Topic(resource))
				case err != nil:
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

// mostLast bounds the records that -n keeps in memory, of each partition.
const mostLast = 10_000

// printRecord prints one record. If it cannot be decoded, printRecord names it on stderr instead.
func printRecord(env *environment, resource string, record watermark.Published, asJSON, mask bool) error {
	if record.Err != nil {
		_, _ = fmt.Fprintf(env.stderr, "storestream: %s, partition %d, offset %d: %v\n",
			resource, record.Partition, record.Offset, record.Err)
		return nil //nolint:nilerr // it is said, and the tail goes on
	}
	if asJSON {
		value := json.RawMessage("null")
		if !record.Tombstone {
			value = record.Value.AppendJSON(nil, mask)
		}
		return json.NewEncoder(env.rows).Encode(struct {
			// Resource and ID are those of the row.
			Resource string `json:"resource"`
			ID       int64  `json:"id"`
			// Partition, Offset and Time are the place and time of the record.
			Partition int32     `json:"partition"`
			Offset    int64     `json:"offset"`
			Time      time.Time `json:"time"`
			// Value is the row, or null for a tombstone.
			Value json.RawMessage `json:"value"`
		}{resource, record.ID, record.Partition, record.Offset, record.Time.Time(), value})
	}
	line := fmt.Appendf(nil, "%s  %s/%d  ", record.Time.Time().Format("2006-01-02T15:04:05.000Z"), resource,
		record.ID)
	if record.Tombstone {
		line = append(line, "gone"...)
	} else {
		line = record.Value.AppendJSON(line, mask)
	}
	_, err := env.rows.Write(append(line, '\n'))
	return err
}
