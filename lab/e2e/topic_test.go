package e2e

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/lab/asked"
)

// record is one record of a data topic, decoded by the schema that the registry has for it.
type record struct {
	id        int64
	tombstone bool
	value     map[string]any
	updatedAt time.Time
	partition int32
	offset    int64
	timestamp time.Time
	keyID     string // the header privacy_key_id
}

func (r *record) version() asked.Version {
	return asked.Version{ID: r.id, Millis: r.updatedAt.UnixMilli(), Partition: r.partition, Offset: r.offset}
}

// reader decodes Confluent's wire format with github.com/twmb/avro.
type reader struct {
	t        *testing.T
	registry string
	schemas  map[uint32]*avro.Schema
}

func (r *reader) decode(wire []byte) (map[string]any, error) {
	if len(wire) < 5 || wire[0] != 0 {
		return nil, fmt.Errorf("not Confluent's wire format: % x", wire[:min(len(wire), 8)])
	}
	id := binary.BigEndian.Uint32(wire[1:])
	schema := r.schemas[id]
	if schema == nil {
		var err error
		if schema, err = r.fetch(id); err != nil {
			return nil, err
		}
		r.schemas[id] = schema
	}
	var value map[string]any
	rest, err := schema.Decode(wire[5:], &value)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes after the value", len(rest))
	}
	return value, err
}

func (r *reader) fetch(id uint32) (*avro.Schema, error) {
	text, err := schemaText(r.registry, id)
	if err != nil {
		return nil, err
	}
	return avro.Parse(text)
}

// schemaText is the schema that the registry has given this id.
func schemaText(registry string, id uint32) (string, error) {
	resp, err := http.Get(fmt.Sprintf("%s/schemas/ids/%d", registry, id))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	var answer struct{ Schema string }
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", fmt.Errorf("schema %d: %s: %w", id, body, err)
	}
	return answer.Schema, nil
}

// topic is a whole data topic as a read_committed consumer reads it, in offset order within each partition.
// What was read and decoded before is kept: a test that waits for 100,000 rows looks again and again.
func (s *stack) topic(resource string) []record {
	s.t.Helper()
	known := s.topics[resource]
	more, id, ends := s.readFrom(s.prefix+resource, known.id, known.ends)
	if id != known.id {
		known = topicCopy{id: id}
	}
	known.ends = ends
	r := &reader{t: s.t, registry: s.registry, schemas: map[uint32]*avro.Schema{}}
	for _, raw := range more {
		key, err := r.decode(raw.Key)
		if err != nil {
			s.t.Fatalf("%s: key at %d/%d: %v", resource, raw.Partition, raw.Offset, err)
		}
		rec := record{id: key["id"].(int64), partition: raw.Partition, offset: raw.Offset, timestamp: raw.Timestamp,
			tombstone: raw.Value == nil, keyID: header(raw, "privacy_key_id")}
		if len(key) != 1 {
			s.t.Fatalf("%s: key %v, expected id alone", resource, key)
		}
		if raw.Value != nil {
			if rec.value, err = r.decode(raw.Value); err != nil {
				s.t.Fatalf("%s: value at %d/%d: %v", resource, raw.Partition, raw.Offset, err)
			}
			rec.updatedAt = rec.value["updated_at"].(time.Time)
			if rec.value["id"] != rec.id {
				s.t.Fatalf("%s: key %d has a value with id %v", resource, rec.id, rec.value["id"])
			}
		}
		known.records = append(known.records, rec)
	}
	if s.topics == nil {
		s.topics = map[string]topicCopy{}
	}
	s.topics[resource] = known
	return slices.Clip(known.records)
}

// topicCopy is what a test has read of a topic, up to ends.
type topicCopy struct {
	id      kadm.TopicID
	ends    map[int32]int64
	records []record
}

// read is every committed record of a topic up to where it ends now; nil where there is no such topic yet.
func (s *stack) read(topic string) []*kgo.Record {
	s.t.Helper()
	records, _, _ := s.readFrom(topic, kadm.TopicID{}, nil)
	return records
}

// readFrom is every committed record of a topic from these offsets on, and where it ends now. A topic with
// another id, which it returns, is read from its start.
func (s *stack) readFrom(topic string, id kadm.TopicID, from map[int32]int64) (
	[]*kgo.Record, kadm.TopicID, map[int32]int64) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	looks, err := kgo.NewClient(s.client()...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer looks.Close()
	admin := kadm.NewClient(looks)
	topics, err := admin.ListTopics(ctx, topic)
	if err != nil {
		s.t.Fatal(err)
	}
	if topics[topic].ID != id {
		id, from = topics[topic].ID, nil
	}
	listed, err := admin.ListCommittedOffsets(ctx, topic)
	if err != nil {
		s.t.Fatal(err)
	}
	ends, left := map[int32]int64{}, map[int32]kgo.Offset{}
	listed.Each(func(o kadm.ListedOffset) {
		if o.Err != nil {
			return
		}
		if ends[o.Partition] = o.Offset; o.Offset > from[o.Partition] {
			left[o.Partition] = kgo.NewOffset().At(from[o.Partition])
		}
	})
	if len(left) == 0 {
		return nil, id, ends
	}
	cl, err := kgo.NewClient(s.client(kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: maps.Clone(left)}))...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	var records []*kgo.Record
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			s.t.Fatalf("reading %s: %v", topic, err)
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			_, open := left[rec.Partition]
			if open && rec.Offset < ends[rec.Partition] && !rec.Attrs.IsControl() {
				records = append(records, rec)
			}
			if open && rec.Offset >= ends[rec.Partition]-1 {
				delete(left, rec.Partition)
			}
		})
	}
	return records, id, ends
}
