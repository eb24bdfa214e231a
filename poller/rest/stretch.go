package rest

import (
	"cmp"
	"context"
	"slices"
)

// widest is how many pages a window of the past may take at most: settled moves, and a load that is cut short resumes, after each.
const widest = 32

// stretch reads a window whose days are over in one backward pass, which begins at its last page: n/1000 requests and about one more. guess is where
// that page is looked for first, limit how far. A window that this does not prove to be whole comes back as an overflow, to be read in
// smaller ones.
//
// The argument needs no order and no second pass. The answer for the last page, k, says how many rows the window has at that moment: k full
// pages and those that it holds. Every page below is full too, and no row is met twice: so as many different rows were met. None has come since,
// so each of them was in the window at that moment, and as there were no more, they are all that were. (It counts rows by pages: so every page
// below must be as long as was asked for, or a row left out of each short page would not be missed. Where the service grants less, pages must show their
// length often enough. And a last page that is empty, below which others say that more follows, contradicts them.)
//
// A forward pass proves less: the answer that counts comes last, and a row that left before it made room for one that was jumped over.
func (r *reader) stretch(ctx context.Context, w window, guess, limit int) (outcome, error) {
	pass := newWalk(r, w, 0)
	pass.size, pass.onlyCounts = r.size, true
	k, g, err := pass.end(ctx, guess, limit)
	if err == nil && !pass.endless {
		err = pass.down(ctx, k, g)
	}
	o := outcome{rows: pass.count(), requests: pass.pages(), paged: pass.last > 0}
	switch {
	case err != nil:
		return o, err
	case pass.doubt != "" || pass.endless:
		o.overflow = true
	case pass.snapshot() && o.rows == 0: // an empty answer alone closes nothing
		g, err := r.once(ctx, w, shrinking)
		o = g.snapshot()
		o.overflow = g.more
		return o, err
	default:
		o.whole = pass.snapshot() || pass.counted()
		o.overflow = !o.whole
	}
	return o, nil
}

// count is how many different rows the pass has met; it notes whether one was met twice. To sort them costs a fifth of the map that other passes need.
func (w *walk) count() int {
	slices.SortFunc(w.keys, func(a, b key) int {
		switch {
		case a.n != b.n:
			return cmp.Compare(a.n, b.n)
		case a.nameless == b.nameless:
			return 0
		case b.nameless:
			return -1
		}
		return 1
	})
	met := len(w.keys)
	w.keys = slices.Compact(w.keys)
	w.twice = w.twice || len(w.keys) < met
	return len(w.keys)
}

// telling is how many pages of one length show that it is the length of a page, where it is less than was asked for.
const telling = 5

// counted tells whether a backward pass met as many rows as there were when it began.
func (w *walk) counted() bool {
	full := w.r.pageOf(w.size) == w.size || w.last >= telling
	return full && w.clean() && w.lengths[w.last] > 0
}

// end looks for the last page, from guess to limit; w.endless where it lies behind that. What the service says of its rows' number only makes the search
// shorter.
func (w *walk) end(ctx context.Context, guess, limit int) (k int, g glimpse, err error) {
	k = guess
	for asked := 0; ; asked++ {
		g, err = w.get(ctx, k)
		if err != nil || !g.more && len(g.rows) > 0 || k == 0 && !g.more {
			return k, g, err
		}
		hint := (g.count - 1) / w.r.pageOf(w.size)
		if !g.more || g.beyond {
			if asked > 0 || g.count <= 0 || hint >= k-1 {
				return k, g, nil // down from here
			}
			k = hint
			continue
		}
		if k++; hint > k {
			k = hint
		}
		if k > limit {
			w.endless = true
			return k, g, nil
		}
	}
}
