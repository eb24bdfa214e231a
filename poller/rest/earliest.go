package rest

import (
	"context"

	"github.com/storestream/storestream/poller/rest/client"
)

// findFirst finds rd.next, the first day to read. In a first load that is the first day up to which there are
// rows, along updated_at or created_at. It is found by bisection: some 15 requests for one row each. If there is
// no row at all, which a second answer has to confirm, rd.next is behind rd.last, and no day is settled: an empty
// service may be one that is just being filled. known is the result of an earlier search: if there are rows at
// all, it is good still.
//
// The day only says where to begin to cut the past into windows. The first window has no lower bound, so a
// wrong answer here costs requests and loses nothing.
func (rd *read) findFirst(ctx context.Context, along func(span) window, known day) error {
	rd.next, rd.firstOpen = rd.from, rd.from
	if rd.from != past {
		return nil
	}
	rd.src.cfg.Doing("looking for the earliest row")
	last := rd.last
	low, high, until := day(0), last, last // rows from before 1970 end up in the first window
	for n := 1; ; n++ {
		empty := true
		_, err := rd.glance(ctx, along(span{From: past, To: until}), 0, 1, func(p client.Page) (enough bool) {
			empty = empty && len(p.Rows) == 0 && p.Count <= 0 // one that counts rows and shows none proves nothing
			return !empty
		})
		switch {
		case err != nil:
			return err
		case empty && until == last && n == 1:
			continue
		case empty && until == last:
			rd.next, rd.firstOpen = last+1, last+1
			return nil
		case known != past:
			rd.next, rd.firstOpen = known, known
			return nil
		case empty:
			low = until + 1
		default:
			high = until
		}
		if low >= high {
			rd.next, rd.firstOpen = low, low
			return nil
		}
		until = low + (high-low)/2
	}
}
