package rest

import "context"

// earliest finds the first day up to which there are rows, at or before last, by bisection: some 15 requests
// for one row each. found is false if there is no row at all. along is createdOn or updatedOn.
//
// The day only says where to begin to cut the past into windows. The first window has no lower bound, so a
// wrong answer here costs requests and loses nothing. The empty answer just below the result is asked for
// once more: if it were wrong, all earlier rows would be in that first window.
func (rd *read) earliest(
	ctx context.Context, along func(span) window, last day,
) (first day, found bool, err error) {
	empty, err := rd.empty(ctx, along, last)
	if err == nil && empty {
		empty, err = rd.empty(ctx, along, last)
	}
	if err != nil || empty {
		return 0, false, err
	}
	low, high := day(0), last // rows from before 1970 end up in the first window
	for {
		below := low - 1
		for low < high {
			middle := low + (high-low)/2
			empty, err := rd.empty(ctx, along, middle)
			if err != nil {
				return 0, false, err
			}
			if empty {
				low, below = middle+1, middle
			} else {
				high = middle
			}
		}
		if below != low-1 || below < 0 {
			return low, true, nil
		}
		empty, err := rd.empty(ctx, along, below)
		if err != nil || empty {
			return low, true, err
		}
		low, high = 0, below
	}
}

// empty reports whether there is no row up to a day. An answer without rows that counts some proves nothing.
func (rd *read) empty(ctx context.Context, along func(span) window, until day) (bool, error) {
	some, counted, err := rd.anyRow(ctx, along(span{From: past, To: until}))
	return !some && counted <= 0, err
}
