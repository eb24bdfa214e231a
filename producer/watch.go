package producer

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
)

// Watch follows what the topics shared by all instances say: the newest watermark of each resource and its dead letters. It is for people and
// metrics. It waits for no transaction, so what was committed this moment may be missing; nothing may be decided by it. One goroutine uses it.
type Watch struct {
	marks, letters follower
	reasons        map[string][]DeadLetterReason
	seen           int // changes of letters when reasons were made
}

// Watch begins with nothing known: the first Look reads the topics in full.
func NewWatch(c *Cluster) *Watch {
	return &Watch{marks: follower{c: c, topic: c.Watermarks()}, letters: follower{c: c, topic: c.DeadLetters(), bare: true}, reasons: map[string][]DeadLetterReason{}}
}

// Look reads what was written since the last look. What it has read stays known when it fails.
func (w *Watch) Look(ctx context.Context) error {
	return errors.Join(w.marks.look(ctx), w.letters.look(ctx))
}

// Watermarks is the newest watermark of each resource. One that cannot be read is left out: whoever takes the resource over says why.
func (w *Watch) Watermarks() map[string]watermark.Watermark {
	marks := make(map[string]watermark.Watermark, len(w.marks.newest))
	for name, n := range w.marks.newest {
		if mark, err := watermark.Decode(name, n.value); err == nil && !n.gone {
			marks[name] = mark
		}
	}
	return marks
}

// DeadLetterReason is the dead letters of one resource that have the same reason.
type DeadLetterReason struct {
	Field string // that breaks the contract; "" for the row as a whole
	Err   string // what was expected, never a value
	Count int
	// IDs are a few of the rows, the newest letters first: an id, or a hash of 16 digits of a row that has no usable one.
	IDs []string
	// Latest is when the newest of them was written.
	Latest time.Time
}

// maxIDs bounds DeadLetterReason.IDs.
const maxIDs = 5

// Letters is the dead letters of each resource, by reason, the reason with the most first. The caller does not change it.
func (w *Watch) DeadLetters() map[string][]DeadLetterReason {
	if w.seen == w.letters.changes {
		return w.reasons
	}
	w.seen = w.letters.changes
	type reason struct{ resource, field, err string }
	type found struct {
		DeadLetterReason
		keys []string
	}
	byReason := map[reason]*found{}
	for key, n := range w.letters.newest {
		resource, _, ok := strings.Cut(key, "/")
		if !ok || n.gone {
			continue
		}
		r := reason{resource, n.field, n.err}
		if byReason[r] == nil {
			byReason[r] = &found{DeadLetterReason: DeadLetterReason{Field: r.field, Err: r.err}}
		}
		f := byReason[r]
		f.Count++
		if n.time.After(f.Latest) {
			f.Latest = n.time
		}
		f.keys = append(f.keys, key)
	}
	w.reasons = map[string][]DeadLetterReason{}
	for r, f := range byReason {
		slices.SortFunc(f.keys, func(a, b string) int {
			if c := w.letters.newest[b].time.Compare(w.letters.newest[a].time); c != 0 {
				return c
			}
			return strings.Compare(a, b)
		})
		for _, key := range f.keys[:min(len(f.keys), maxIDs)] {
			f.IDs = append(f.IDs, key[len(r.resource)+1:])
		}
		w.reasons[r.resource] = append(w.reasons[r.resource], f.DeadLetterReason)
	}
	for _, all := range w.reasons {
		slices.SortFunc(all, func(a, b DeadLetterReason) int {
			if a.Count != b.Count {
				return b.Count - a.Count
			}
			return strings.Compare(a.Field+a.Err, b.Field+b.Err)
		})
	}
	return w.reasons
}

// follower keeps the newest record of each key of one topic.
type follower struct {
	c       *Cluster
	topic   string
	bare    bool // of letters, keep no value: it holds a row
	id      [16]byte
	next    []int64 // by partition, where the next look begins
	newest  map[string]note
	changes int
	words   map[string]string // what headers say: a few texts, many times
}

type note struct {
	partition int32
	offset    int64
	time      time.Time
	gone      bool // a tombstone: kept, for an older record may come after it from another partition
	value     []byte
	// The headers of a letter.
	field, err string
}

// maxNotes bounds what a follower keeps. There are five resources, and a topic with more dead letters is past listing.
const maxNotes = 100_000

func (f *follower) look(ctx context.Context) error {
	info, err := f.c.describe(ctx, f.topic, false)
	if err != nil {
		return err
	}
	spans, err := f.c.settled(ctx, f.topic)
	if err != nil {
		return err
	}
	if f.newest == nil || f.id != info.id || f.shrunk(spans) {
		f.id, f.next, f.newest, f.words = info.id, make([]int64, len(spans)), map[string]note{}, map[string]string{}
		f.changes++
	}
	for len(f.next) < len(spans) {
		f.next = append(f.next, 0)
	}
	for i := range spans {
		spans[i].from = max(spans[i].from, f.next[i])
	}
	if err := f.c.readLog(ctx, f.topic, spans, func(r *kgo.Record) error { f.take(r); return nil }); err != nil {
		return err
	}
	for i := range spans {
		f.next[i] = max(f.next[i], spans[i].to)
	}
	return nil
}

// shrunk says that the topic lost its end, or partitions: it is not the log that was read.
func (f *follower) shrunk(spans []span) bool {
	return len(spans) < len(f.next) || slices.ContainsFunc(spans, func(s span) bool { return int(s.partition) < len(f.next) && s.to < f.next[s.partition] })
}

func (f *follower) take(r *kgo.Record) {
	key := string(r.Key)
	last, known := f.newest[key]
	switch {
	case known && !later(r, &kgo.Record{Partition: last.partition, Offset: last.offset, Timestamp: last.time}):
		return
	case !known && len(f.newest) >= maxNotes:
		maps.DeleteFunc(f.newest, func(_ string, n note) bool { return n.gone })
		if len(f.newest) >= maxNotes {
			return
		}
	}
	n := note{partition: r.Partition, offset: r.Offset, time: r.Timestamp, gone: r.Value == nil}
	if f.bare && !n.gone {
		for _, h := range r.Headers {
			switch h.Key {
			case headerField:
				n.field = f.word(h.Value)
			case headerError:
				n.err = f.word(h.Value)
			}
		}
	}
	if !f.bare {
		n.value = bytes.Clone(r.Value) // not the batch that it stands in
	}
	f.newest[key] = n
	f.changes++
}

func (f *follower) word(text []byte) string {
	if known, ok := f.words[string(text)]; ok {
		return known
	}
	word := string(text)
	f.words[word] = word
	return word
}
