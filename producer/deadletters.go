package producer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Headers of a dead letter. headerHash is there only if the row itself did not fit. schemas.HeaderKeyID is
// there as in a record of the row.
const (
	headerResource = "resource"
	headerSource   = "source"
	headerField    = "field"
	headerError    = "error"
	headerHash     = "row_hash"
)

// ReadDeadLetters returns the dead letters of a resource: key to watermark.DeadLetterHash of the row. It
// reads the whole topic, which is small, and waits for open transactions. If there are more letters than an
// owner keeps, the error is a *RefusedError.
func ReadDeadLetters(ctx context.Context, c *Cluster, resource string) (map[string]uint64, error) {
	const most = watermark.MaxDeadLetters
	hashes, over := make(map[string]uint64), 0
	for record, err := range foldState(ctx, c, c.DeadLetters(), c.admin.ListEndOffsets) {
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(string(record.Key), resource+"/") &&
			!foldNewest(hashes, 2*most, record, hashOfDeadLetter) {
			over++
		}
	}
	if n := len(hashes) + over; n > most || over > 0 {
		return nil, &RefusedError{Topic: c.DeadLetters(), Setting: "the number of letters of " + resource,
			Found: strconv.Itoa(n), Expected: fmt.Sprintf("at most %d", most),
			Do: "correct what makes so many rows unfit to be published, or find the other program that wrote them; " +
				"docs/operations.md says how to begin with an empty topic, \"Not taken over\""}
	}
	return hashes, nil
}

// ReadDeadLetter returns the dead letter of row id of a resource, or nil. It waits for open transactions.
func ReadDeadLetter(ctx context.Context, c *Cluster, resource string, id int64) (
	*watermark.DeadLetter, error) {
	key := watermark.DeadLetterKey(resource, schemas.Reject{ID: id, HasID: true})
	return newestDeadLetter(ctx, c, key, func(record *kgo.Record) bool {
		_, ofRow := watermark.DeadLetterRow(key, hashOfDeadLetter(record))
		return ofRow // otherwise the key is the hash of a row without a usable id, and looks like an id
	})
}

// ReadDeadLetterAs returns the dead letter that a watermark.DeadLetters of a resource names by id, or nil.
func ReadDeadLetterAs(ctx context.Context, c *Cluster, resource, id string) (*watermark.DeadLetter, error) {
	return newestDeadLetter(ctx, c, resource+"/"+id, func(*kgo.Record) bool { return true })
}

// newestDeadLetter returns the newest letter under key for which is holds, or nil if it was taken out.
func newestDeadLetter(ctx context.Context, c *Cluster, key string, is func(*kgo.Record) bool) (
	newest *watermark.DeadLetter, err error) {
	for record, err := range foldState(ctx, c, c.DeadLetters(), c.admin.ListEndOffsets) {
		if err != nil {
			return nil, err
		}
		if string(record.Key) != key {
			continue
		}
		if record.Value == nil {
			newest = nil
		} else if is(record) {
			newest = deadLetterOf(record)
			newest.Row = bytes.Clone(newest.Row) // out of the batch
		}
	}
	return newest, nil
}

// deadLetterOf is the dead letter that r holds. Its Row is that of r.
func deadLetterOf(r *kgo.Record) *watermark.DeadLetter {
	letter := &watermark.DeadLetter{Key: string(r.Key), Row: r.Value, Partition: r.Partition, Offset: r.Offset,
		Time: r.Timestamp}
	for _, h := range r.Headers {
		switch h.Key {
		case headerSource:
			letter.Source = string(h.Value)
		case headerField:
			letter.Field = string(h.Value)
		case headerError:
			letter.Err = string(h.Value)
		}
	}
	return letter
}

func hashOfDeadLetter(record *kgo.Record) uint64 {
	for _, h := range record.Headers {
		if hash, err := strconv.ParseUint(string(h.Value), 16, 64); h.Key == headerHash && err == nil {
			return hash
		}
	}
	return watermark.DeadLetterHash(record.Value)
}

// deadLetter is the record of a dead letter in topic. A row that does not fit keeps its key and its headers,
// and a note takes its place: the letter says that a row is missing and why, and the hash of the row says
// when it has changed.
func (t target) deadLetter(topic string, letter watermark.DeadLetter) kgo.Record {
	record := kgo.Record{Topic: topic, Key: []byte(letter.Key), Value: letter.Row, Headers: []kgo.RecordHeader{
		{Key: headerResource, Value: []byte(t.resource.Name)},
		{Key: headerSource, Value: []byte(letter.Source)},
		{Key: headerField, Value: []byte(letter.Field)},
		{Key: headerError, Value: []byte(letter.Err)},
	}}
	if letter.Row == nil {
		return record
	}
	record.Headers = append(record.Headers, t.headers...)
	payload := len(letter.Key) + len(letter.Row)
	for _, h := range record.Headers {
		payload += len(h.Key) + len(h.Value)
	}
	if watermark.RecordSize(payload, len(record.Headers)) > t.limits[topic] {
		_, id, _ := strings.Cut(letter.Key, "/")
		note := "the row is too large for this topic: " + strconv.Itoa(len(letter.Row)) + " bytes"
		record.Value, _ = json.Marshal(map[string]string{"id": id, "note": note})
		hash := strconv.FormatUint(watermark.DeadLetterHash(letter.Row), 16)
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: headerHash, Value: []byte(hash)})
	}
	return record
}
