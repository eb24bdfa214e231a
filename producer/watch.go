package producer

import (
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
		w.reasons = groupByReason(w.letters)
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
		*n = newNewest(len(spans), maxFollowed, log.c.cfg.Now, keep)
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

// groupByReason counts the dead letters of each resource by their reason.
func groupByReason(letters newest[reason]) map[string][]DeadLetterReason {
	type group struct {
		resource string
		reason
	}
	keys := map[group][]string{}
	for key, letter := range letters.all() {
		if resource, _, ok := strings.Cut(key, "/"); ok {
			g := group{resource, letter.kept}
			keys[g] = append(keys[g], key)
		}
	}
	reasons := map[string][]DeadLetterReason{}
	for g, keys := range keys {
		slices.SortFunc(keys, func(a, b string) int {
			if c := letters.byKey[b].time.Compare(letters.byKey[a].time); c != 0 {
				return c
			}
			return strings.Compare(a, b)
		})
		r := DeadLetterReason{Field: g.field.Value(), Err: g.err.Value(), Count: len(keys),
			Latest: letters.byKey[keys[0]].time}
		for _, key := range keys[:min(len(keys), maxIDs)] {
			r.IDs = append(r.IDs, key[len(g.resource)+1:])
		}
		reasons[g.resource] = append(reasons[g.resource], r)
	}
	for _, all := range reasons {
		slices.SortFunc(all, func(a, b DeadLetterReason) int {
			if a.Count != b.Count {
				return b.Count - a.Count
			}
			return strings.Compare(a.Field+a.Err, b.Field+b.Err)
		})
	}
	return reasons
}
