package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// errEnough ends a tail that has shown what was asked for.
var errEnough = errors.New("enough")

func (a *app) tailCommand() *cobra.Command {
	var output string
	var beginning bool
	var n int
	cmd := &cobra.Command{
		Use:   "tail RESOURCE",
		Short: "Print upserts and tombstones as they are published",
		Long: `Reads the topic of a resource as a read_committed consumer and prints one record a line, decoded through the registry, until it is
interrupted. It shows values as they are, personal data too.`,
		Example: "  storestream tail orders\n  storestream tail users --from-beginning -n 10 -o json | jq .value.city",
		Args:    oneResource,
		RunE: func(cmd *cobra.Command, args []string) error {
			if n < 0 {
				return usagef(cmd, "-n %d: expected 1 or more, or 0 for no end", n)
			}
			_, set, err := a.load()
			if err != nil {
				return err
			}
			return a.withCluster(cmd, func(ctx context.Context, _ *config.Config, cluster *producer.Cluster) error {
				t := &tail{app: a, json: output == "json", left: n, limited: n > 0}
				return t.run(ctx, cluster, set.Get(args[0]), beginning)
			})
		},
	}
	cmd.Flags().BoolVar(&beginning, "from-beginning", false, "everything that the topic holds first")
	cmd.Flags().IntVarP(&n, "lines", "n", 0, "stop after this `many` records")
	outputFlag(cmd, &output)
	return cmd
}

// tail prints records.
type tail struct {
	*app
	json    bool
	limited bool
	left    int
	line    []byte
}

func (t *tail) run(ctx context.Context, cluster *producer.Cluster, r *schemas.Resource, beginning bool) error {
	err := producer.Tail(ctx, cluster, r, beginning, func(record producer.TailRecord) error { return t.show(r.Name, record) })
	if errors.Is(err, errEnough) {
		return nil
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("topic %s does not exist: `storestream run` creates it", cluster.Topic(r.Name))
	}
	if err != nil && ctx.Err() == nil { // interrupting it is how one ends it
		return err
	}
	return nil
}

// show prints one record. One that cannot be decoded is told on stderr, and the rest goes on. It is called some times more after errEnough: each partition
// has a reader of its own, and learns late that another had the last record.
func (t *tail) show(resource string, record producer.TailRecord) error {
	if t.limited && t.left == 0 {
		return errEnough
	}
	if record.Err != nil {
		_, _ = fmt.Fprintf(t.stderr, "storestream: %s, partition %d, offset %d: %v\n", resource, record.Partition, record.Offset, record.Err)
	} else {
		t.line = t.line[:0]
		if t.json {
			t.line = appendRecord(t.line, resource, record)
		} else {
			t.line = appendLine(t.line, t.paint, resource, record)
		}
		if _, err := t.stdout.Write(append(t.line, '\n')); err != nil {
			return err
		}
	}
	if t.left--; t.limited && t.left == 0 {
		return errEnough
	}
	return nil
}

func appendLine(line []byte, p terminal.Paint, resource string, record producer.TailRecord) []byte {
	line = append(line, p.As(terminal.Faint, record.Time.UTC().Format("2006-01-02T15:04:05.000Z"))...)
	line = fmt.Appendf(line, "  %s  ", p.As(terminal.Bold, fmt.Sprintf("%s/%d", resource, record.ID)))
	if record.Tombstone {
		return append(line, p.As(terminal.Red, "gone")...)
	}
	return record.Value.AppendJSON(line, false)
}

// appendRecord is the line of -o json; value is null for a tombstone.
func appendRecord(line []byte, resource string, record producer.TailRecord) []byte {
	value := json.RawMessage("null")
	if !record.Tombstone {
		value = record.Value.AppendJSON(nil, false)
	}
	text, err := json.Marshal(struct {
		Resource  string          `json:"resource"`
		ID        int64           `json:"id"`
		Partition int32           `json:"partition"`
		Offset    int64           `json:"offset"`
		Time      time.Time       `json:"time"`
		Value     json.RawMessage `json:"value"`
	}{resource, record.ID, record.Partition, record.Offset, record.Time.UTC(), value})
	if err != nil { // AppendJSON writes valid JSON
		return fmt.Appendf(line, `{"resource":%q,"id":%d,"error":%q}`, resource, record.ID, err)
	}
	return append(line, text...)
}
