package reconcile

import (
	"context"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Again says which rows of the topic a replay publishes again: those whose newest record lies before Ends, by
// partition, and has an updated_at from From on and before To, to the millisecond. So the topic itself shows
// an owner that takes the replay over how far it is.
type Again struct {
	From, To schemas.Instant
	Ends     []int64
}

// wants reports whether a row whose newest record is p is to be published again.
func (a *Again) wants(p *watermark.Published) bool {
	at := p.UpdatedAt.Millis()
	return !p.Tombstone && !a.did(p) && at >= a.From.Millis() && at < a.To.Millis()
}

// did reports whether a row whose newest record is p was published after the request.
func (a *Again) did(p *watermark.Published) bool {
	return p != nil && (int(p.Partition) >= len(a.Ends) || p.Offset >= a.Ends[p.Partition])
}

// only returns a reader of the topic that shows only the rows that are wanted. The others are as if they were
// deleted. It shows no created_at, because a source that is read by day has these rows on few updated days.
func (a *Again) only(topic TopicReader) TopicReader {
	return func(ctx context.Context, from []int64, wanted func(id int64) bool,
		fold func(watermark.Published) error) (ends []int64, err error) {
		return topic(ctx, from, wanted, func(p watermark.Published) error {
			if p.Foreign || p.Stray {
				return nil
			}
			p.Tombstone, p.CreatedAt = !a.wants(&p), schemas.MinInstant
			return fold(p)
		})
	}
}
