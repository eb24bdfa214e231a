package rest

import (
	"context"

	"github.com/storestream/storestream/poller"
)

// newest is a cheap poll: it reads the end of the open window where changes appear, back to what the last whole read must have met. It closes
// nothing. false: the service does not sort as it did, or this would cost as much as reading all; then all is read.
func (rd *read) newest(ctx context.Context, open day) (done bool, err error) {
	w := &walk{r: rd.reader, piece: window{updated: span{open, future}, created: always}, size: pageSize}
	k, step := 0, 1
	var g glimpse
	if rd.sorting == ascending {
		// From the last page down: a row that is updated meanwhile leaves its place for the end, and its followers move toward the pages that
		// are read after.
		k, g, err = w.climb(ctx, rd.memory.end)
		step, rd.memory.end = -1, k
	} else {
		g, err = w.get(ctx, 0)
	}
	for limit := max(3, rd.memory.requests/2); err == nil; g, err = w.get(ctx, k) {
		if rd.sorting == unsorted || w.endless || w.pages() > limit {
			return false, nil
		}
		k += step
		if g.oldest() < rd.memory.reach || k < 0 || step > 0 && !g.more {
			return true, rd.finish(&poller.Done{Started: rd.req.Started, Held: rd.held()})
		}
	}
	return false, err
}
