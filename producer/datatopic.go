package producer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

// target is a resource, and how its data topic is written.
type target struct {
	resource *schemas.Resource
	topic    string // the data topic
	// The schema ids of keys and values in the registry. Readers may not know them: then they are 0.
	keyID, valueID int
	// limits are the largest batches, in bytes, that the topics take which a session writes.
	limits map[string]int
	// headers are those of each record of a row. Records share them.
	headers []kgo.RecordHeader
}

// errNotOurs is the error of a record whose key is not a row's, or does not belong in its partition, or
// whose value fits no schema of this resource. Any program may write to the topic, and one stray record
// must not block a resource.
var errNotOurs = errors.New("not a record of ours")

// id returns the id of a record's row. It refuses a key under another schema id: that is another key for
// the same row, and compaction would keep both.
func (t target) id(record *kgo.Record) (int64, error) {
	schemaID, id, err := schemas.ReadKey(record.Key)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNotOurs, err)
	}
	if schemaID == t.keyID || t.keyID == 0 {
		return id, nil
	}
	return 0, &RefusedError{Topic: t.topic,
		Setting: fmt.Sprintf("the key at offset %d of partition %d", record.Offset, record.Partition),
		Found:   "schema id " + strconv.Itoa(schemaID),
		Expected: fmt.Sprintf("schema id %d, which subject %s-key has in the registry now (under two ids one row "+
			"has two keys, and compaction keeps both)", t.keyID, t.topic),
		Do: "point storestream at the registry that the topic was written with; if it is, another program wrote " +
			"this record, or docs/lifecycle.md says what to do, \"Recreate a topic\""}
}

// oldestKeys returns the oldest record in each partition of topic whose key is ours, under any schema id.
func oldestKeys(ctx context.Context, c *Cluster, topic string) ([]*kgo.Record, error) {
	spans, err := c.spans(ctx, topic, c.admin.ListStartOffsets, c.admin.ListCommittedOffsets)
	if err != nil {
		return nil, err
	}
	var oldest []*kgo.Record
	isRow := func(record *kgo.Record) bool {
		_, _, err := schemas.ReadKey(record.Key)
		return err == nil
	}
	for _, s := range spans {
		for r := (&logReader{c: c, topic: topic, span: s, at: s.from}); r.at < s.to; {
			records, err := r.next(ctx)
			if err != nil {
				return nil, err
			}
			if i := slices.IndexFunc(records, isRow); i >= 0 {
				oldest = append(oldest, records[i])
				break
			}
		}
	}
	return oldest, nil
}

// rowReader decodes records by the schema that they were written with, and hashes their values as today's
// schema encodes them. One goroutine uses it.
type rowReader struct {
	registry *registry.Client
	target   target // its ids may be 0, which means unknown
	home     func(*kgo.Record) int32
	// byID reads the values under one schema id, or says why they cannot be read.
	byID map[int]func(value []byte) (schemas.Value, error)
}

func newRowReader(c *Cluster, t target, partitions int) *rowReader {
	return &rowReader{registry: c.cfg.Registry, target: t, home: partitionsOf(partitions),
		byID: make(map[int]func([]byte) (schemas.Value, error))}
}

// decode yields the decoded records. It leaves out rows for which wanted returns false. A nil wanted leaves
// out none.
func (r *rowReader) decode(ctx context.Context, records iter.Seq2[*kgo.Record, error],
	wanted func(int64) bool) iter.Seq2[watermark.Published, error] {
	return func(yield func(watermark.Published, error) bool) {
		for record, err := range records {
			if err == nil && wanted != nil {
				if _, id, err := schemas.ReadKey(record.Key); err == nil && !wanted(id) {
					continue
				}
			}
			var p watermark.Published
			if err == nil {
				p, err = r.read(ctx, record)
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// read decodes a record as far as it is ours. Its Err is errNotOurs for its key (p.Foreign), its partition
// (p.Stray) or its value. The error is a *RefusedError for its key, or that of the registry, which may pass.
func (r *rowReader) read(ctx context.Context, record *kgo.Record) (p watermark.Published, err error) {
	p = watermark.Published{Tombstone: record.Value == nil, Time: schemas.InstantOf(record.Timestamp),
		Partition: record.Partition, Offset: record.Offset, UpdatedAt: schemas.MinInstant,
		CreatedAt: schemas.MinInstant, Size: len(record.Value)}
	if record.Context == unread {
		p.Foreign, p.Unread, err = true, true, errUnread
	} else {
		p.ID, err = r.target.id(record)
		p.Foreign = errors.Is(err, errNotOurs)
	}
	if err == nil && r.home(record) != record.Partition {
		p.Stray, err = true, fmt.Errorf("%w: its key does not belong in this partition", errNotOurs)
	}
	if err == nil && !p.Tombstone {
		if p.Value, err = r.value(ctx, record.Value); err == nil {
			p.UpdatedAt, p.CreatedAt, p.Hash = p.Value.UpdatedAt, p.Value.CreatedAt, p.Value.Hash
		}
	}
	if errors.Is(err, errNotOurs) {
		p.Err, err = err, nil
	}
	if err != nil {
		err = fmt.Errorf("reading topic %s: %w", record.Topic, err)
	}
	return p, err
}

// value decodes a value. The error is errNotOurs, or the registry's.
func (r *rowReader) value(ctx context.Context, value []byte) (decoded schemas.Value, err error) {
	id, err := schemas.SchemaID(value)
	read, known := r.byID[id]
	if err == nil && !known {
		writer := "" // today's schema
		if id != r.target.valueID {
			writer, err = r.registry.Schema(ctx, id)
		}
		if err == nil { // a schema that does not fit is remembered, too: a million records may have it
			reader, wrong := schemas.NewValueReader(r.target.resource, writer)
			if read = reader.Read; wrong != nil {
				read = func([]byte) (schemas.Value, error) { return schemas.Value{}, wrong }
			}
			r.byID[id] = read
		}
	}
	if err == nil {
		decoded, err = read(value)
	}
	if err != nil && !registry.Retryable(err) {
		err = fmt.Errorf("%w: its value: %w", errNotOurs, err)
	}
	return decoded, err
}

// ReadTopic calls fold with the committed records of r's topic with wanted ids, in offset order within a
// partition. If wanted is nil, all are wanted. It begins with the offsets in from, by partition, or with the
// first record if from is nil. It reads up to the ends that the topic has now, waits for open transactions,
// and returns those ends.
//
// Values of ids that are not wanted are not decoded. A value that is not ours is given as a version that
// equals no other, because a comparison must see that the row has a record. Keys that are not ours, or not in
// their partition, are given as Foreign and Stray.
func ReadTopic(ctx context.Context, c *Cluster, r *schemas.Resource, from []int64, wanted func(int64) bool,
	fold func(watermark.Published) error) (ends []int64, err error) {
	log := follower{c: c, topic: c.Topic(r.Name), all: true, next: from}
	spans, anew, err := log.open(ctx, c.admin.ListEndOffsets)
	if err != nil {
		return nil, err
	}
	if anew && from != nil {
		return nil, fmt.Errorf("topic %s was created anew or lost records, or its partitions changed, while it "+
			"was read", log.topic)
	}
	rows := newRowReader(c, target{resource: r}, len(spans))
	for p, err := range rows.decode(ctx, log.fold(ctx, spans), wanted) {
		if err != nil {
			return nil, err
		}
		if err := fold(p); err != nil {
			return nil, fmt.Errorf("reading topic %s: %w", log.topic, err)
		}
	}
	return log.next, nil
}

// RecordsSince is about how many records of a resource's topic are at or after the first record of a time in
// each partition; schemas.MinInstant means all. It counts older versions of rows, and the markers that end
// transactions, so the topic has no more rows than that.
func RecordsSince(ctx context.Context, c *Cluster, resource string, from schemas.Instant) (int64, error) {
	spans, err := c.spans(ctx, c.Topic(resource), c.firstSince(from), c.admin.ListEndOffsets)
	return length(spans), err
}
