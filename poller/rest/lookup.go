package rest

import (
	"cmp"
	"context"
	"slices"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
)

// lookup reads the days on which the suspects are: those on which they were created where that is known, for
// a row stays there; else those on which they were updated.
func (s *Source) lookup(ctx context.Context, rd *read) error {
	wanted := map[window]bool{}
	for _, suspect := range rd.req.Suspects {
		switch {
		case suspect.CreatedAt != schemas.MinInstant:
			wanted[window{updated: always, created: s.calendar.around(suspect.CreatedAt)}] = true
		case suspect.UpdatedAt != schemas.MinInstant:
			wanted[window{updated: s.calendar.around(suspect.UpdatedAt), created: always}] = true
		}
	}
	windows := make([]window, 0, len(wanted))
	for w := range wanted {
		windows = append(windows, w)
	}
	slices.SortFunc(windows, func(a, b window) int {
		return cmp.Or(cmp.Compare(a.created.From, b.created.From), cmp.Compare(a.updated.From, b.updated.From))
	})
	last := s.calendar.lastOver()
	for _, w := range windows {
		motion := paging.Shrinking
		if w.updated.To > last && w.created.To > last {
			motion = paging.Growing
		}
		if err := s.complete(ctx, rd, w, motion); err != nil {
			return err
		}
	}
	return rd.finish(&poller.Done{Started: rd.req.Started})
}
