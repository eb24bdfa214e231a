package watermark

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cespare/xxhash/v2"

	"github.com/storestream/storestream/schemas"
)

// ErrNewer means that a newer storestream wrote the watermark.
var ErrNewer = errors.New(
	"written by a newer version of storestream: upgrade this one, or read the topic with the other")

// ErrOlder means that an older storestream wrote the watermark. Its members have other names, and this
// program would not know which rows were published: it would publish them twice.
var ErrOlder = errors.New("written by an older version of storestream: stop all instances, delete this " +
	"topic and the topic of requests, and start the instances again. Every row is published once more")

// Encode returns w as the value of a record: a JSON object, its times in RFC 3339, UTC, with six digits of
// fraction.
func Encode(w Watermark) ([]byte, error) {
	w.Version = Version
	return json.Marshal(w)
}

// Decode reads a value that Encode wrote. It ignores unknown members. It returns an error for another version
// than its own and for an impossible state: an unusable time, a number that no owner writes, or another
// resource than the record's key.
func Decode(resource string, value []byte) (Watermark, error) {
	w := New(resource)
	w.Version = 0 // so that a value without one is seen
	if err := json.Unmarshal(value, &w); err != nil {
		return Watermark{}, fmt.Errorf("watermark of %s: %w", resource, err)
	}
	switch {
	case w.Version > Version:
		return Watermark{}, fmt.Errorf("watermark of %s has version %d, this program knows %d: %w",
			resource, w.Version, Version, ErrNewer)
	case w.Version < 1:
		return Watermark{}, fmt.Errorf("watermark of %s has version %d, expected %d",
			resource, w.Version, Version)
	case w.Version < Version:
		return Watermark{}, fmt.Errorf("watermark of %s has version %d, this program knows %d: %w",
			resource, w.Version, Version, ErrOlder)
	case w.Resource != resource:
		return Watermark{}, fmt.Errorf("watermark under the key %q names resource %q", resource, w.Resource)
	}
	if wrong := w.impossible(); wrong != "" {
		return Watermark{}, fmt.Errorf("watermark of %s: %s", resource, wrong)
	}
	return w, nil
}

// impossible returns an error text for a number that no owner writes and that would be acted on, or "". If
// partitions were 0, the topic would have another count, and people would be told to delete it. The number of
// ends is not checked, because partitions may be added while an owner looks at the topic.
func (w *Watermark) impossible() string {
	ends := w.Ends
	if w.Replay != nil {
		ends = append(slices.Clone(ends), w.Replay.Ends...)
	}
	for _, p := range w.Parts {
		ends = append(slices.Clone(ends), p.Ends...)
	}
	switch {
	case w.Partitions < 1:
		return fmt.Sprintf("partitions is %d, expected 1 or more", w.Partitions)
	case w.Rows < 0, w.Request < -1:
		return fmt.Sprintf("rows is %d and request is %d, expected 0 and -1 or more", w.Rows, w.Request)
	case slices.ContainsFunc(ends, func(end int64) bool { return end < 0 }):
		return fmt.Sprintf("ends are %d, expected 0 or more", ends)
	case w.Load != nil && (w.Load.Block < 0 || w.Load.Blocks < w.Load.Block):
		return fmt.Sprintf("the load is at block %d of %d", w.Load.Block, w.Load.Blocks)
	case w.Sweep != nil && w.Sweep.ConfirmedDeletes < 0, w.Deleted != nil && w.Deleted.Rows < 0:
		return "a number of deletions is negative"
	}
	return ""
}

// DecodeRequest reads the value of a record in the requests topic. id is its offset, resource is its key.
func DecodeRequest(resource string, id int64, value []byte) (Request, error) {
	r := Request{ID: id}
	if n := len(value); n > maxRequestBytes {
		return Request{}, fmt.Errorf("request %d has %d bytes: expected %d at most", id, n, maxRequestBytes)
	}
	if err := json.Unmarshal(value, &r); err != nil {
		return Request{}, fmt.Errorf("request %d: %w", id, err)
	}
	switch {
	case r.Resource == "" || r.Resource != resource:
		return Request{}, fmt.Errorf("request %d names resource %q under the key %q", id, r.Resource, resource)
	case r.UID == "":
		return Request{}, fmt.Errorf("request %d has no uid", id)
	case !slices.Contains(Kinds, r.Kind):
		return Request{}, fmt.Errorf("request %d is of kind %q: expected one of %q", id, r.Kind, Kinds)
	case r.Kind == Erases && (len(r.Rows) == 0 || len(r.Rows) > MostErased):
		return Request{}, fmt.Errorf("request %d erases %d rows: expected 1 to %d", id, len(r.Rows), MostErased)
	case (r.Kind == Replays || r.Kind == Retries) && len(r.Rows) > MostReplayed:
		return Request{}, fmt.Errorf("request %d is a %s of %d named rows: expected %d at most", id, r.Kind,
			len(r.Rows), MostReplayed)
	case r.Kind == Replays && len(r.Rows) == 0 && r.From == nil:
		return Request{}, fmt.Errorf("request %d is a replay without a time and without rows", id)
	case r.ConfirmedDeletes < 0:
		return Request{}, fmt.Errorf("request %d confirms %d deletions: expected 0 or more", id, r.ConfirmedDeletes)
	case len(r.Why) > MostWhy || strings.ContainsFunc(r.Why, unicode.IsControl):
		return Request{}, fmt.Errorf("request %d has a reason of %d bytes, or of several lines: expected one line "+
			"of %d bytes at most", id, len(r.Why), MostWhy)
	case r.Kind == Reset && r.To == nil:
		return Request{}, fmt.Errorf("request %d is a reset without a time", id)
	}
	return r, nil
}

// DeadLetterHash identifies the row of a dead letter, so that an equal one is not written again.
func DeadLetterHash(row []byte) uint64 { return xxhash.Sum64(row) }

// DeadLetterKey returns the key of a row's dead letter: the row's id, or a hash of its content if it has no
// usable id.
func DeadLetterKey(resource string, reject schemas.Reject) string {
	if reject.HasID {
		return resource + "/" + strconv.FormatInt(reject.ID, 10)
	}
	return fmt.Sprintf("%s/%016x", resource, DeadLetterHash(reject.Row))
}

// DeadLetterRow returns the id in a dead letter's key, or false if its row has no usable id. hash is
// DeadLetterHash of the row. It tells the two kinds of keys apart when the digits do not: one hash in 1,800
// has 16 decimal digits, which an id may have too.
func DeadLetterRow(key string, hash uint64) (id int64, ok bool) {
	_, text, _ := strings.Cut(key, "/")
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil && text == strconv.FormatInt(id, 10) && text != fmt.Sprintf("%016x", hash)
}
