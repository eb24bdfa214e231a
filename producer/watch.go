package producer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
)

// Watch follows the topics that all instances share: the newest watermark of each resource, and its dead
// letters. It is for people and metrics. It waits for no transaction, so the newest commits may be missing.
// Do not decide anything by it. One goroutine uses it.
type Watch struct {
	marks   newest[[]byte]
	letters newest[reason]
	// How far marks and letters were read.
	marksLog, lettersLog follower
	reasons              map[string][]DeadLetterReason // by resource
}

// reason is the headers of a dead letter: a few texts, many times.
type reason struct{ field, err unique.Handle[string] }

// DeadLetterReason is the dead letters of one resource that have the same reason.
type DeadLetterReason struct {
	Field string // that breaks the contract; "" for the row as a whole
	Err   string // the rule that it breaks, without a value
	Count int
	// IDs are a few of the rows, the newest letters first: the id, or 16 digits of hash if the row has no
	// usable id.
	IDs []string
	// Latest is when the newest of them was written.
	Latest time.Time
}

const (
	maxIDs    = 5    // of a DeadLetterReason
	maxReason = 1000 // bytes of each text
	// maxFollowed limits the keys of a topic that are kept: a topic with more dead letters is past listing.
	maxFollowed = 100_000
)

// NewWatch returns a Watch that knows nothing yet. Its first Look reads the topics in full.
func NewWatch(c *Cluster) *Watch {
	return &Watch{marksLog: follower{c: c, topic: c.Watermarks()},
		lettersLog: follower{c: c, topic: c.DeadLetters()}}
}

func reasonOf(r *kgo.Record) reason {
	why := reason{unique.Make(""), unique.Make("")}
	for _, h := range r.Headers {
		switch h.Key {
		case headerField:
			why.field = unique.Make(cut(h.Value))
		case headerError:
			why.err = unique.Make(cut(h.Value))
		}
	}
	return why
}

// cut limits a text of a header. Ours have some hundred bytes. Other programs may write letters, too.
func cut(text []byte) string {
	return strings.ToValidUTF8(string(text[:min(len(text), maxReason)]), "")
}

// Look reads the records since the last look. If it fails, the records that it has read stay known.
func (w *Watch) Look(ctx context.Context) error {
	_, failed := followNewest(ctx, &w.marksLog, &w.marks, copyValue)
	changed, err := followNewest(ctx, &w.lettersLog, &w.letters, reasonOf)
	if changed {
		w.summarize()
	}
	return errors.Join(failed, err)
}

// followNewest adds the records that were committed since the last look to n. It begins with an empty n if
// the topic is another one. changed reports that n may have changed, even if there is an error.
func followNewest[T any](ctx context.Context, log *follower, n *newest[T], keep func(*kgo.Record) T) (
	changed bool, err error) {
	spans, anew, err := log.open(ctx, log.c.admin.ListCommittedOffsets)
	if err != nil {
		return false, err
	}
	if changed = anew; anew {
		*n = newNewest(len(spans), maxFollowed, keep)
	}
	for record, err := range log.fold(ctx, spans) {
		if err != nil {
			return changed, err
		}
		changed = true
		n.add(record)
	}
	return changed, nil
}

// Watermarks is the newest watermark of each resource. It leaves out one that cannot be read: a takeover
// reports that.
func (w *Watch) Watermarks() map[string]watermark.Watermark {
	marks := make(map[string]watermark.Watermark)
	for name, record := range w.marks.all() {
		if mark, err := watermark.Decode(name, record.kept); err == nil {
			marks[name] = mark
		}
	}
	return marks
}

// DeadLetters is the dead letters of each resource, by reason, the reason with the most first. The caller
// does not change it.
func (w *Watch) DeadLetters() map[string][]DeadLetterReason { return w.reasons }

// summarize groups the letters of each resource by their reason.
func (w *Watch) summarize() {
	w.reasons = map[string][]DeadLetterReason{}
	var newestFirst []string
	for key := range w.letters.all() {
		newestFirst = append(newestFirst, key)
	}
	slices.SortFunc(newestFirst, func(a, b string) int {
		return cmp.Or(w.letters.byKey[b].time.Compare(w.letters.byKey[a].time), strings.Compare(a, b))
	})
	place := map[[3]string]int{} // of a reason in its resource's
	for _, key := range newestFirst {
		resource, id, ok := strings.Cut(key, "/")
		if !ok {
			continue
		}
		at, why := w.letters.byKey[key].time, w.letters.byKey[key].kept
		field, text := why.field.Value(), why.err.Value()
		i, known := place[[3]string{resource, field, text}]
		if !known {
			i = len(w.reasons[resource])
			place[[3]string{resource, field, text}] = i
			w.reasons[resource] = append(w.reasons[resource], DeadLetterReason{Field: field, Err: text, Latest: at})
		}
		reason := &w.reasons[resource][i]
		if reason.Count++; len(reason.IDs) < maxIDs {
			reason.IDs = append(reason.IDs, id)
		}
	}
	for _, all := range w.reasons {
		slices.SortStableFunc(all, func(a, b DeadLetterReason) int { return b.Count - a.Count })
	}
}
