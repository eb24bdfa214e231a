// Command consume keeps PostgreSQL tables equal to storestream's topics.
//
//	psql "$DATABASE" -f ../tables.sql
//	BROKERS=127.0.0.1:9092 REGISTRY=http://127.0.0.1:8081 DATABASE=postgres://... go run .
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"maps"
	"math/big"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

// By name: a pattern such as ^store\..* would also meet store.watermarks, which is JSON and no row.
var topics = []string{"store.orders", "store.order_items", "store.products", "store.users", "store.shipments"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	db, err := pgx.Connect(ctx, os.Getenv("DATABASE"))
	if err != nil {
		return err
	}
	defer db.Close(context.Background())
	columns, err := columnsOf(ctx, db)
	if err != nil {
		return err
	}
	registry, err := sr.NewClient(sr.URLs(cmp.Or(os.Getenv("REGISTRY"), "http://127.0.0.1:8081")))
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(cmp.Or(os.Getenv("BROKERS"), "127.0.0.1:9092"), ",")...),
		kgo.ConsumerGroup(cmp.Or(os.Getenv("GROUP"), "example-go")),
		kgo.ConsumeTopics(topics...),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), // or rows that were aborted come too
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
	)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	d := &decoder{registry: registry, schemas: map[int]*avro.Schema{}}
	for {
		fetches := client.PollRecords(ctx, 1000)
		if err := fetches.Err(); err != nil {
			return err
		}
		if err := write(ctx, db, columns, d, fetches.Records()); err != nil {
			return err
		}
		// Once the tables have the rows, never before. After a crash some come once more, which changes
		// nothing: each is the whole row, under its id.
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			return err
		}
		client.AllowRebalance()
		written := map[string]int{}
		fetches.EachRecord(func(r *kgo.Record) { written[r.Topic]++ })
		log.Print("written: ", written)
	}
}

// columnsOf are the columns of each table. A field that topics get later is left out until its table has a
// column for it, and this is started again.
func columnsOf(ctx context.Context, db *pgx.Conn) (map[string]map[string]bool, error) {
	rows, err := db.Query(ctx,
		"SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()")
	if err != nil {
		return nil, err
	}
	columns := map[string]map[string]bool{}
	var table, column string
	_, err = pgx.ForEachRow(rows, []any{&table, &column}, func() error {
		if columns[table] == nil {
			columns[table] = map[string]bool{}
		}
		columns[table][column] = true
		return nil
	})
	return columns, err
}

// write writes records to their tables in one transaction.
func write(ctx context.Context, db *pgx.Conn, columns map[string]map[string]bool, d *decoder,
	records []*kgo.Record) error {
	var batch pgx.Batch
	for _, record := range records {
		name := strings.TrimPrefix(record.Topic, "store.")
		table := pgx.Identifier{name}.Sanitize()
		key, err := d.decode(ctx, record.Key)
		if err != nil {
			return fmt.Errorf("key in %s at %d/%d: %w", record.Topic, record.Partition, record.Offset, err)
		}
		if record.Value == nil { // a tombstone: the row is gone
			batch.Queue("DELETE FROM "+table+" WHERE id = $1", key["id"])
			continue
		}
		row, err := d.decode(ctx, record.Value)
		if err != nil {
			return fmt.Errorf("value in %s at %d/%d: %w", record.Topic, record.Partition, record.Offset, err)
		}
		maps.DeleteFunc(row, func(field string, _ any) bool { return !columns[name][field] })
		sql, values := upsert(table, row)
		batch.Queue(sql, values...)
	}
	return db.SendBatch(ctx, &batch).Close()
}

func upsert(table string, row map[string]any) (sql string, values []any) {
	var columns, places, sets []string
	for _, name := range slices.Sorted(maps.Keys(row)) {
		column, value := pgx.Identifier{name}.Sanitize(), row[name]
		if money, ok := value.(*big.Rat); ok {
			value = money.FloatString(18) // all the digits that there are
		}
		values = append(values, value)
		columns = append(columns, column)
		places = append(places, fmt.Sprintf("$%d", len(values)))
		sets = append(sets, column+" = excluded."+column)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) ON CONFLICT (id) DO UPDATE SET %s", table,
		strings.Join(columns, ", "), strings.Join(places, ", "), strings.Join(sets, ", ")), values
}

// decoder reads Avro in Confluent's wire format. It asks the registry once for each schema.
type decoder struct {
	registry *sr.Client
	schemas  map[int]*avro.Schema
}

func (d *decoder) decode(ctx context.Context, wire []byte) (row map[string]any, err error) {
	var header sr.ConfluentHeader
	id, body, err := header.DecodeID(wire)
	if err != nil {
		return nil, err
	}
	schema, known := d.schemas[id]
	if !known {
		text, err := d.registry.SchemaByID(ctx, id)
		if err != nil {
			return nil, err
		}
		if schema, err = avro.Parse(text.Schema); err != nil {
			return nil, err
		}
		d.schemas[id] = schema
	}
	_, err = schema.Decode(body, &row)
	return row, err
}
