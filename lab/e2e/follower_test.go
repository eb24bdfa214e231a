package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	hamba "github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/kgo"
)

// follower is a team's consumer of one resource: it was built with one version of the schema, reads every
// record by that, whatever version it was written with, and keeps the newest state of each row. Its Avro
// library (github.com/hamba/avro) is neither the one that writes nor the one that judges.
type follower struct {
	t        *testing.T
	resource string
	registry string
	schema   hamba.Schema
	avro     hamba.API // its own: the library's usual one takes one reader's schema for another's
	cl       *kgo.Client
	done     chan struct{}

	resolved map[uint32]hamba.Schema // by the writer's schema id; the goroutine's own

	mu   sync.Mutex
	rows map[int64]record
	err  error // the first record that it could not read
}

// follow starts a consumer with this reader schema at the beginning of a topic; it ends with the test. The
// topic has to be there.
func (s *stack) follow(resource, schema string) *follower {
	s.t.Helper()
	parsed, err := hamba.ParseWithCache(schema, "", &hamba.SchemaCache{})
	if err != nil {
		s.t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.ConsumeTopics(s.prefix+resource),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		s.t.Fatal(err)
	}
	f := &follower{t: s.t, resource: resource, registry: s.registry, schema: parsed, cl: cl,
		avro: hamba.Config{}.Freeze(), done: make(chan struct{}), resolved: map[uint32]hamba.Schema{},
		rows: map[int64]record{}}
	go f.run()
	s.t.Cleanup(func() {
		cl.Close()
		<-f.done
	})
	return f
}

func (f *follower) run() {
	defer close(f.done)
	for {
		fetches := f.cl.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			return
		}
		fetches.EachRecord(func(raw *kgo.Record) {
			rec, err := f.read(raw)
			f.mu.Lock()
			defer f.mu.Unlock()
			if err != nil && f.err == nil {
				f.err = fmt.Errorf("%s, partition %d, offset %d: %w", f.resource, raw.Partition, raw.Offset, err)
			}
			f.rows[rec.id] = rec
		})
	}
}

func (f *follower) read(raw *kgo.Record) (rec record, err error) {
	// The key is a lone long.
	zigzag, _ := binary.Uvarint(raw.Key[5:])
	rec.id = int64(zigzag>>1) ^ -int64(zigzag&1)
	if rec.tombstone = raw.Value == nil; rec.tombstone {
		return rec, nil
	}
	schema, err := f.resolve(binary.BigEndian.Uint32(raw.Value[1:]))
	if err != nil {
		return rec, err
	}
	if err := f.avro.Unmarshal(schema, raw.Value[5:], &rec.value); err != nil {
		return rec, err
	}
	for name, value := range rec.value {
		if union, is := value.(map[string]any); is { // a nullable field comes as {its type: value}
			for _, one := range union {
				rec.value[name] = one
			}
		}
	}
	return rec, nil
}

// resolve is how to read by f's schema what was written by the one with this id.
func (f *follower) resolve(id uint32) (hamba.Schema, error) {
	if schema := f.resolved[id]; schema != nil {
		return schema, nil
	}
	text, err := schemaText(f.registry, id)
	if err != nil {
		return nil, err
	}
	writer, err := hamba.ParseWithCache(text, "", &hamba.SchemaCache{})
	if err != nil {
		return nil, err
	}
	schema, err := hamba.NewSchemaCompatibility().Resolve(f.schema, writer)
	if err == nil {
		f.resolved[id] = schema
	}
	return schema, err
}

// holds waits until the consumer has, of each row, what sees shows of it.
func (f *follower) holds(s *stack, sees view) {
	f.t.Helper()
	seen := *s
	seen.sees = sees
	eventually(f.t, "a consumer of "+f.resource+" has what the service has", func() (bool, string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.err != nil {
			f.t.Fatalf("a consumer could not read a record: %v", f.err)
		}
		var records []record
		for _, r := range f.rows {
			records = append(records, r)
		}
		found := seen.differences(f.resource, records)
		return len(found) == 0, summary(found)
	})
}
