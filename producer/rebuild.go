package producer

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

// Rebuild gives to fold, one at a time, each record of the data topic from the watermark's DedupFrom on, in offset order within a partition; a key stays in
// one partition. A record's Kafka time is min(updated_at, time of writing), so the first offset of that time in each partition has nothing before it that
// `seen` held. What follows it is given whatever its own time: an old row written later may be the newest of its id.
func (s *Session) Rebuild(ctx context.Context, fold func(watermark.Published) error) error {
	if err := s.usable(); err != nil {
		return err
	}
	spans, err := s.seenSpans(ctx)
	if err != nil {
		return fmt.Errorf("rebuilding what was published of %s: %w", s.resource.Name, err)
	}
	readers := &valueReaders{c: s.c, resource: s.resource, today: s.valueID, byID: make(map[int]*schemas.ValueReader)}
	home := homes(len(s.topic.leaders))
	err = s.c.readLog(ctx, s.topic.name, spans, func(record *kgo.Record) error {
		published, err := s.published(ctx, readers, record)
		if err == nil && home(record) != record.Partition {
			err = errStray
		}
		if errors.Is(err, errForeignKey) || errors.Is(err, errStray) {
			s.log.Warn("a record that is not ours in the data topic", zap.String("topic", record.Topic), zap.Int32("partition", record.Partition),
				zap.Int64("offset", record.Offset), zap.Error(err))
			return nil
		}
		if err != nil {
			return err
		}
		return fold(published)
	})
	if err != nil {
		return fmt.Errorf("rebuilding what was published of %s: %w", s.resource.Name, err)
	}
	return nil
}

func (s *Session) seenSpans(ctx context.Context) ([]span, error) {
	if s.mark.DedupFrom == schemas.MaxInstant {
		return nil, nil // nothing was held
	}
	from, err := s.c.offsets(ctx, func(ctx context.Context, topics ...string) (kadm.ListedOffsets, error) {
		return s.c.admin.ListOffsetsAfterMilli(ctx, recordMillis(s.mark.DedupFrom), topics...)
	}, s.topic.name)
	if err != nil {
		return nil, err
	}
	ends, err := s.EndOffsets(ctx)
	if err != nil {
		return nil, err
	}
	var spans []span
	for p := range min(len(from), len(ends)) {
		spans = append(spans, span{int32(p), from[p], ends[p]})
	}
	return spans, nil
}

func (s *Session) published(ctx context.Context, readers *valueReaders, record *kgo.Record) (watermark.Published, error) {
	id, err := s.readKey(record)
	if err != nil {
		return watermark.Published{}, err
	}
	old := s.mark.Replay != nil && int(record.Partition) < len(s.mark.Replay.Ends) && record.Offset < s.mark.Replay.Ends[record.Partition]
	if record.Value == nil {
		return watermark.Published{ID: id, Tombstone: true, Old: old, Time: schemas.InstantOf(record.Timestamp)}, nil
	}
	value, err := readers.read(ctx, record.Value)
	if err != nil {
		if !errors.Is(err, errForeignValue) {
			return watermark.Published{}, err
		}
		// Written by something else. To forget the id is safe: the row is published again when it is next read.
		s.log.Warn("a record that is not ours in the data topic", zap.String("topic", record.Topic), zap.Int32("partition", record.Partition),
			zap.Int64("offset", record.Offset), zap.Error(err))
		return watermark.Published{ID: id, Tombstone: true, Old: old, Time: schemas.InstantOf(record.Timestamp)}, nil
	}
	return watermark.Published{ID: id, UpdatedAt: value.UpdatedAt, Hash: value.Hash, Time: schemas.InstantOf(record.Timestamp), Old: old}, nil
}

// errStray: a key of ours in a partition where it does not belong. Whoever wrote it there, it says nothing of what we published.
var errStray = errors.New("its key does not belong in this partition")

// errForeignKey: the bytes are no key of ours. No row has such a key, so the record says nothing about one: one stray record from somebody's console
// producer must not hold a resource.
var errForeignKey = errors.New("not a key of ours")

// readKey is the id of a record's row. A key under another schema id is another key for the same row, and compaction would keep both: refused.
func (s *Session) readKey(record *kgo.Record) (int64, error) {
	schemaID, id, err := schemas.ReadKey(record.Key)
	if err != nil {
		return 0, &stepError{"reading a key", errors.Join(errForeignKey, err)}
	}
	if schemaID == s.keyID {
		return id, nil
	}
	return 0, &RefusedError{Topic: s.topic.name, Setting: fmt.Sprintf("the key at offset %d of partition %d", record.Offset, record.Partition), Found: "schema id " + strconv.Itoa(schemaID),
		Expected: "schema id " + strconv.Itoa(s.keyID) + ", which subject " + s.topic.name + "-key has in the registry now (under two ids one row has two keys, and compaction keeps both)",
		Do:       "point storestream at the registry that the topic was written with, or delete the topic: it is created anew and filled from the start"}
}

// checkKeys looks at the oldest record of ours in each partition. The rest is looked at as Rebuild comes by.
func (s *Session) checkKeys(ctx context.Context) error {
	spans, err := s.c.settled(ctx, s.topic.name)
	if err != nil {
		return err
	}
	return s.c.readLog(ctx, s.topic.name, spans, func(record *kgo.Record) error {
		_, err := s.readKey(record)
		switch {
		case errors.Is(err, errForeignKey):
			return nil
		case err != nil:
			return err
		}
		return errStop
	})
}

// errForeignValue: the bytes are no value of this resource under any schema.
var errForeignValue = errors.New("not a value of this resource")

// valueReaders decode values by the schema that they were written with, and hash them as today's schema encodes them.
type valueReaders struct {
	c        *Cluster
	resource *schemas.Resource
	today    int // the id of today's schema, 0 if unknown
	byID     map[int]*schemas.ValueReader
}

func (v *valueReaders) read(ctx context.Context, value []byte) (schemas.Value, error) {
	id, err := schemas.SchemaID(value)
	if err != nil {
		return schemas.Value{}, &stepError{"decoding", errors.Join(errForeignValue, err)}
	}
	reader, err := v.of(ctx, id)
	if err != nil {
		return schemas.Value{}, err
	}
	decoded, err := reader.Read(value)
	if err != nil {
		return schemas.Value{}, &stepError{"decoding", errors.Join(errForeignValue, err)}
	}
	return decoded, nil
}

func (v *valueReaders) of(ctx context.Context, id int) (*schemas.ValueReader, error) {
	if reader, ok := v.byID[id]; ok {
		return reader, nil
	}
	writer := "" // today's schema
	if id != v.today {
		var err error
		if writer, err = v.c.cfg.Registry.Schema(ctx, id); err != nil {
			if registry.Retryable(err) {
				return nil, err
			}
			return nil, &stepError{"decoding", errors.Join(errForeignValue, err)}
		}
	}
	reader, err := schemas.NewValueReader(v.resource, writer)
	if err != nil {
		return nil, &stepError{"decoding", errors.Join(errForeignValue, err)}
	}
	v.byID[id] = reader
	return reader, nil
}
