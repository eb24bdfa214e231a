package poller

import (
	"context"
	"fmt"
	"slices"

	"github.com/storestream/storestream/internal/compare"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Rows are taken for gone only where there are at most so many of them, or such a part of the topic: what a shop deletes in a day is little, and an
// answer that lacks more than that is more likely a broken answer (a replica half filled, a filter that changed, a table restored empty) than
// the truth. In a topic of up to 1000 rows the count decides, so that a small one can be tidied at all.
const (
	mostGone      = 100
	mostGoneShare = 10 // percent of the topic's rows
)

// doubt says why rows that the source did not show are not taken for gone, "" if they may be.
func doubt(r compare.Report, extra int) string {
	switch {
	case extra == 0:
		return ""
	case r.SourceRows == 0:
		return fmt.Sprintf("the service showed no row at all, the topic has %d: an empty answer is not taken for deletion", r.TopicRows)
	case tooMany(r, extra):
		return fmt.Sprintf("the service does not have %d of the topic's %d rows, more than %d and more than %d %%: that is not taken for deletion "+
			"(if it is right, delete the topic: it is filled anew)", extra, r.TopicRows, mostGone, mostGoneShare)
	case r.Nameless > 0:
		return fmt.Sprintf("%d rows of the service have no usable id, and may be some of the %d that it seems not to have: they are not taken for deleted", r.Nameless, extra)
	}
	return ""
}

func tooMany(r compare.Report, extra int) bool {
	return extra > max(mostGone, r.TopicRows*mostGoneShare/100)
}

func extras(list []compare.Difference) (n int) {
	for _, d := range list {
		if d.Kind == compare.Extra {
			n++
		}
	}
	return n
}

// dropGone writes tombstones for the rows that are gone, where it may. It returns why it left some, "" if it left none.
func (p *Poller) dropGone(ctx context.Context, tx *watermark.Transaction, left []compare.Difference, r compare.Report, extra int) (reason string, err error) {
	if why := doubt(r, extra); extra == 0 || why != "" {
		return why, nil
	}
	if !p.Sweep.Tombstone {
		return fmt.Sprintf("%d rows that the service does not have stay in the topic (sweep.deletes: report)", extra), nil
	}
	unsought, now := 0, p.Now()
	for _, d := range left {
		switch {
		case d.Kind != compare.Extra:
			continue
		case now.Before(p.confirmedAt(&d)):
			reason = "rows that came and went while they were looked for stay in the topic"
			continue
		case d.CreatedAt == schemas.MinInstant && !p.sweep.everywhere:
			// Not a record of ours, so nobody knows on which day the service would have the row: it was not looked for a second time.
			unsought++
			continue
		}
		tx.Deletes = append(tx.Deletes, d.ID)
		for _, partition := range d.Strays {
			tx.Strays = append(tx.Strays, watermark.Stray{ID: d.ID, Partition: partition})
		}
		p.seen.Remove(d.ID)
		p.older.forget(d.ID)
		p.takeOut(tx, d.ID)
		p.sweep.result.Tombstones++
		if err := p.writeIfFull(ctx, tx); err != nil {
			return "", err
		}
	}
	if unsought > 0 {
		reason = fmt.Sprintf("%d records are not storestream's and have no row in the service, but no day to look for it by: they stay in the topic", unsought)
	}
	return reason, nil
}

// dropLetters takes out the letters of rows that nobody has met since the sweep began as what cannot be published: they are gone, or well. Not where there
// is a doubt about what it met.
func (p *Poller) dropLetters(ctx context.Context, tx *watermark.Transaction, r compare.Report, extra int) error {
	s := p.sweep
	empty := r.SourceRows == 0 && (r.TopicRows > 0 || r.DeadLetters == 0)
	if s.uncertain || r.Untracked > 0 || empty || tooMany(r, extra) {
		return nil
	}
	var keys []string
	for key := range p.letters {
		if !s.met[key] {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		delete(p.letters, key)
		tx.DeadLetters = append(tx.DeadLetters, watermark.DeadLetter{Key: key, Source: p.SourceName})
		if err := p.writeIfFull(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}
