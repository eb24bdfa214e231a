//go:build consumers

package consumers

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// foreignID is the first of the ids that only the foreign transaction has.
const foreignID = 900_000_001

// story is what happens while the examples read: the rows of a shop change and some are deleted, wrong rows
// are aborted, storestream and all examples are killed, and orders get a field. It returns when no row
// changes any more and the topics equal the service, by storestream's own word.
func (s *stack) story(examples []*running) {
	s.t.Helper()
	s.fake.StartTraffic(40)
	s.changes()
	for _, e := range examples {
		e.hasBegun()
	}
	s.sweep()
	s.changes()
	s.foreign()
	for _, e := range examples {
		e.child.kill()
	}
	s.changes()
	s.storestream.kill()
	s.addField()
	s.changes()
	for _, e := range examples {
		e.start()
	}
	s.run()
	s.changes()
	s.fake.Quiesce()
	s.sweep()
	s.do("verify")
}

// laterField is a field of orders that consumers have not heard of, and that the service leaves empty.
const laterField = "channel"

// addField gives storestream, when it starts again, a schema of orders with one field more.
func (s *stack) addField() {
	s.t.Helper()
	dir := filepath.Join(s.dir, "schemas")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "schemas", "avsc"))); err != nil {
		s.t.Fatal(err)
	}
	path := filepath.Join(dir, "Order.avsc")
	text, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		s.t.Fatal(err)
	}
	fields, _ := schema["fields"].([]any)
	schema["fields"] = append(fields, map[string]any{"name": laterField, "type": []string{"null", "string"},
		"default": nil})
	if text, err = json.Marshal(schema); err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.configure("schemas: {dir: " + dir + "}\n")
}

// sweep has storestream compare the topics with the service: only that finds rows that were deleted.
func (s *stack) sweep() {
	s.t.Helper()
	s.do("sweep", "--all", "--confirm-deletes", "1000000", "--yes", "--wait")
}

// foreign writes wrong rows in a transaction that it aborts: rows under the ids of others, and rows under ids
// that the service does not have.
func (s *stack) foreign() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers), kgo.TransactionalID("somebody-else"),
		kgo.ConsumeTopics(topics()...), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	rows := map[string][]*kgo.Record{}
	for slices.ContainsFunc(topics(), func(topic string) bool { return len(rows[topic]) < 100 }) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			s.t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Value != nil {
				rows[r.Topic] = append(rows[r.Topic], r)
			}
		})
	}
	if err := client.BeginTransaction(); err != nil {
		s.t.Fatal(err)
	}
	for topic, rows := range rows {
		for i, row := range rows[:99] {
			_, others := split(rows[i+1].Value)
			for _, id := range []int64{keyOf(row), foreignID + int64(i)} {
				key := binary.AppendVarint(slices.Clone(row.Key[:5]), id)
				value := append(binary.AppendVarint(slices.Clone(row.Value[:5]), id), others...)
				client.Produce(ctx, &kgo.Record{Topic: topic, Key: key, Value: value}, nil)
			}
		}
	}
	if err := client.Flush(ctx); err != nil {
		s.t.Fatal(err)
	}
	if err := client.EndTransaction(ctx, kgo.TryAbort); err != nil {
		s.t.Fatal(err)
	}
}

// split returns the id, which is the first field of every key and value, and the bytes after it. It stands
// behind the five bytes of Confluent's wire format, and is an Avro long, which Go calls a varint.
func split(wire []byte) (id int64, rest []byte) {
	id, n := binary.Varint(wire[5:])
	return id, wire[5+n:]
}

func keyOf(r *kgo.Record) int64 {
	id, _ := split(r.Key)
	return id
}

// happened fails the test unless the topics hold what the story is about: tombstones, and rows that were
// aborted.
func (s *stack) happened() {
	s.t.Helper()
	seen := map[string]int{}
	err := s.read(topics(), kgo.ReadUncommitted(), func(r *kgo.Record) {
		switch {
		case r.Value == nil:
			seen["tombstones"]++
		case keyOf(r) >= foreignID:
			seen["aborted"]++
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if seen["tombstones"] == 0 || seen["aborted"] == 0 {
		s.t.Errorf("the topics hold %v, expected tombstones and aborted rows", seen)
	}
	s.t.Logf("the topics hold %v", seen)
}

// newest is the newest value of each key of a topic that has one.
func (s *stack) newest(topic string) (map[string][]byte, error) {
	values := map[string][]byte{}
	err := s.read([]string{topic}, kgo.ReadCommitted(), func(r *kgo.Record) {
		if r.Value == nil {
			delete(values, string(r.Key))
		} else {
			values[string(r.Key)] = r.Value
		}
	})
	return values, err
}

// read gives f every record of the topics up to where they end now.
func (s *stack) read(topics []string, isolation kgo.IsolationLevel, f func(*kgo.Record)) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	ends, err := s.ends(ctx, topics)
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers), kgo.ConsumeTopics(topics...),
		kgo.FetchIsolationLevel(isolation), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer client.Close()
	for len(ends) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			place := fmt.Sprintf("%s/%d", r.Topic, r.Partition)
			if end, open := ends[place]; open && r.Offset >= end-1 {
				delete(ends, place)
			}
			if !r.Attrs.IsControl() {
				f(r)
			}
		})
	}
	return nil
}

// ends are the end offsets of the topics' partitions that hold anything.
func (s *stack) ends(ctx context.Context, topics []string) (map[string]int64, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	listed, err := kadm.NewClient(client).ListEndOffsets(ctx, topics...)
	if err == nil {
		err = listed.Error()
	}
	ends := map[string]int64{}
	listed.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			ends[fmt.Sprintf("%s/%d", o.Topic, o.Partition)] = o.Offset
		}
	})
	return ends, err
}
