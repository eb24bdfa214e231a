package rest

import (
	"context"

	"github.com/storestream/storestream/poller/rest/client"
)

// earliest finds the first day up to which there are rows, at or before last, by bisection: some 15 requests
// for one row each. found is false if there is no row at all, which a second answer has to confirm. along is
// createdOn or updatedOn. known is the result of an earlier search: if there are rows at all, it is good still.
//
// The day only says where to begin to cut the past into windows. The first window has no lower bound, so a
// wrong answer here costs requests and loses nothing.
func (rd *read) earliest(
	ctx context.Context, along func(span) window, last, known day,
) (first day, found bool, err error) {
	low, high, until := day(0), last, last // rows from before 1970 end up in the first window
	for n := 1; ; n++ {
		empty := true
		_, err := rd.glance(ctx, along(span{From: past, To: until}), 0, 1, func(p client.Page) (enough bool) {
			empty = empty && len(p.Rows) == 0 && p.Count <= 0 // one that counts rows and shows none proves nothing
			return !empty
		})
		switch {
		case err != nil:
			return 0, false, err
		case empty && until == last && n == 1:
			continue
		case empty && until == last:
			return 0, false, nil
		case known != past:
			return known, true, nil
		case empty:
			low = until + 1
		default:
			high = until
		}
		if low >= high {
			return low, true, nil
		}
		until = low + (high-low)/2
	}
}
