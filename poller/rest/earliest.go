package rest

// earliest finds the first day up to which there are rows, at or before last, by bisection: some 15 requests
// for one row each. empty tells whether there is no row up to a day. found is false where there is no row at
// all.
//
// It only says where to begin to cut the past into windows: the first window has no lower bound, so a wrong
// answer here costs requests and loses nothing. The empty answer just below the result is asked for once
// more, because if it were wrong, all that lies before would be in that first window.
func earliest(empty func(until day) (bool, error), last day) (first day, found bool, err error) {
	none, err := empty(last)
	if err == nil && none {
		none, err = empty(last)
	}
	if err != nil || none {
		return 0, false, err
	}
	low, high := day(0), last // rows from before 1970 end up in the first window
	for {
		below := low - 1
		for low < high {
			middle := low + (high-low)/2
			none, err := empty(middle)
			if err != nil {
				return 0, false, err
			}
			if none {
				low, below = middle+1, middle
			} else {
				high = middle
			}
		}
		if below != low-1 || below < 0 {
			return low, true, nil
		}
		none, err := empty(below)
		if err != nil || none {
			return low, true, err
		}
		low, high = 0, below
	}
}
