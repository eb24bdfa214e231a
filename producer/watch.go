package producer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Watch follows the topics that all instances share: the newest watermark of each resource, and its dead
// letters. It is for people and metrics. It waits for no transaction, so the newest commits may be missing.
// Do not decide anything by it. One goroutine uses it.
type Watch struct {
	// MaxIDs limits the rows that are named for each reason of dead letters. NewWatch sets 5.
	MaxIDs int

	marks   map[string]*kgo.Record // by resource
	letters map[string]heldLetter  // by key
	// How far marks and letters were read.
	marksLog, lettersLog follower
	reasons              map[string][]watermark.DeadLetters // by resource
}

// heldLetter is the part of a dead letter that a Watch keeps.
type heldLetter struct {
	at         time.Time
	field, err unique.Handle[string] // a few texts, many times
}

const (
	maxReason = 1000 // bytes of each text
	// maxFollowed limits the dead letters that are kept: a topic with more is past listing.
	maxFollowed = 100_000
)

// NewWatch returns a Watch that knows nothing yet. Its first Look reads the topics in full.
func NewWatch(c *Cluster) *Watch {
	return &Watch{MaxIDs: 5, marksLog: follower{c: c, topic: c.Watermarks()},
		lettersLog: follower{c: c, topic: c.DeadLetters()}}
}

// Look reads the records since the last look. If it fails, the records that it has read stay known.
func (w *Watch) Look(ctx context.Context) error {
	_, failed := followNewest(ctx, &w.marksLog, &w.marks, foldWatermark)
	changed, err := followNewest(ctx, &w.lettersLog, &w.letters,
		func(letters map[string]heldLetter, record *kgo.Record) {
			foldNewest(letters, maxFollowed, record, holdLetter)
		})
	if changed {
		w.summarize()
	}
	return errors.Join(failed, err)
}

// followNewest folds the records that were committed since the last look into newest. It begins with an empty
// one if the topic is another one. changed reports that newest may have changed, even if there is an error.
func followNewest[T any](ctx context.Context, log *follower, newest *map[string]T,
	fold func(map[string]T, *kgo.Record)) (changed bool, err error) {
	spans, anew, err := log.open(ctx, log.c.admin.ListCommittedOffsets)
	if err != nil {
		return false, err
	}
	if anew {
		*newest = make(map[string]T)
	}
	for record, err := range log.fold(ctx, spans) {
		if err != nil {
			return true, err
		}
		fold(*newest, record)
	}
	return anew || length(spans) > 0, nil
}

func holdLetter(r *kgo.Record) heldLetter {
	// Ours have some hundred bytes. Other programs may write letters, too.
	cut := func(text string) unique.Handle[string] {
		return unique.Make(strings.ToValidUTF8(text[:min(len(text), maxReason)], ""))
	}
	letter := deadLetterOf(r)
	return heldLetter{letter.Time, cut(letter.Field), cut(schemas.Reason(letter.Err))}
}

// Watermarks is the newest watermark of each resource. It leaves out one that cannot be read: a takeover
// reports that.
func (w *Watch) Watermarks() map[string]watermark.Watermark {
	marks, _ := decodeWatermarks(w.marks)
	return marks
}

// DeadLetters is the dead letters of each resource, by reason, the reason with the most first. The caller
// does not change it.
func (w *Watch) DeadLetters() map[string][]watermark.DeadLetters { return w.reasons }

// summarize groups the letters of each resource by their reason.
func (w *Watch) summarize() {
	w.reasons = map[string][]watermark.DeadLetters{}
	newestFirst := slices.SortedFunc(maps.Keys(w.letters), func(a, b string) int {
		return cmp.Or(w.letters[b].at.Compare(w.letters[a].at), strings.Compare(a, b))
	})
	place := map[[3]string]int{} // of a reason in its resource's
	for _, key := range newestFirst {
		resource, id, ok := strings.Cut(key, "/")
		if !ok {
			continue
		}
		letter := w.letters[key]
		reason := watermark.DeadLetters{Field: letter.field.Value(), Error: letter.err.Value(),
			Latest: letter.at.UTC()}
		i, known := place[[3]string{resource, reason.Field, reason.Error}]
		if !known {
			i = len(w.reasons[resource])
			place[[3]string{resource, reason.Field, reason.Error}] = i
			w.reasons[resource] = append(w.reasons[resource], reason)
		}
		all := &w.reasons[resource][i]
		all.First = letter.at.UTC() // they come newest first
		if all.Rows++; len(all.IDs) < w.MaxIDs {
			all.IDs = append(all.IDs, id)
		}
	}
	for _, all := range w.reasons {
		slices.SortStableFunc(all, func(a, b watermark.DeadLetters) int { return b.Rows - a.Rows })
	}
}
