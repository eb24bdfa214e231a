package producer

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
)

// Headers of a dead letter. headerHash is there only where the row itself did not fit.
const (
	headerResource = "resource"
	headerSource   = "source"
	headerField    = "field"
	headerError    = "error"
	headerHash     = "row_hash"
)

// lettersOf reads the whole topic of dead letters, which is small, for those of resource.
func (c *Cluster) lettersOf(ctx context.Context, resource string) (map[string]uint64, error) {
	spans, err := c.whole(ctx, c.DeadLetters())
	if err != nil {
		return nil, err
	}
	newest := make(map[string]*kgo.Record)
	err = c.readLog(ctx, c.DeadLetters(), spans, func(record *kgo.Record) error {
		key := string(record.Key)
		if last := newest[key]; strings.HasPrefix(key, resource+"/") && (last == nil || later(record, last)) {
			newest[key] = record
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	letters := make(map[string]uint64)
	for key, record := range newest {
		if record.Value != nil {
			letters[key] = hashOfLetter(record)
		}
	}
	return letters, nil
}

func hashOfLetter(record *kgo.Record) uint64 {
	for _, h := range record.Headers {
		if hash, err := strconv.ParseUint(string(h.Value), 16, 64); h.Key == headerHash && err == nil {
			return hash
		}
	}
	return watermark.DeadLetterHash(record.Value)
}

// letterRecord is the record of a letter. A row that does not fit the topic keeps its key, its headers and a note in its place: the letter says that and
// why a row is missing, and the hash of the row says when it has changed.
func (s *Session) letterRecord(letter watermark.DeadLetter) kgo.Record {
	record := kgo.Record{Topic: s.c.DeadLetters(), Key: []byte(letter.Key), Value: letter.Row, Headers: []kgo.RecordHeader{
		{Key: headerResource, Value: []byte(s.resource.Name)},
		{Key: headerSource, Value: []byte(letter.Source)},
		{Key: headerField, Value: []byte(letter.Field)},
		{Key: headerError, Value: []byte(letter.Err)},
	}}
	if letter.Row == nil {
		return record
	}
	room := s.limits[record.Topic] - recordOverhead - len(letter.Key) - 64
	for _, h := range record.Headers {
		room -= len(h.Key) + len(h.Value) + 10
	}
	if len(letter.Row) > room {
		_, id, _ := strings.Cut(letter.Key, "/")
		record.Value, _ = json.Marshal(map[string]string{"id": id, "note": "the row is too large for this topic: " + strconv.Itoa(len(letter.Row)) + " bytes"})
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: headerHash, Value: []byte(strconv.FormatUint(watermark.DeadLetterHash(letter.Row), 16))})
	}
	return record
}
