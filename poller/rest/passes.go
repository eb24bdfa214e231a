package rest

import (
	"context"
	"fmt"

	"github.com/storestream/storestream/schemas"
)

const (
	// steadyPasses is reader.steady of all reads.
	steadyPasses = 8
	// maxPasses bounds the passes over one piece in one read. Random order with a few pages takes about 30.
	maxPasses = 60
)

// passes reads a piece that cannot be cut until every row that stayed in it throughout was read; first is the forward pass that found it
// too big.
//
// Shrinking: passes go from the last page to the first. A row's place only goes down (its predecessors leave), the pages asked for go down
// by one each time, so a row that stays is never jumped over while the relative order holds. And whether it holds is not taken on trust: the pass
// counts only when it is clean (see walk.clean). A clean backward pass began with an answer that said how many rows there were then, all pages below
// were full and no row was met twice: as none can have come, the rows met are those rows, all of them, whatever the order. It must also
// bring nothing new.
//
// Growing: the same with the directions exchanged. Rows that come push others up, so a forward pass jumps over none; where rows are sorted by
// updated_at ascending an updated row goes to the end and its followers down, so there passes go backward. Two passes in a row that met the same
// unchanged rows, the last one to a page that said that it was the last, make it whole. A skip here is late, not lost: nothing is closed, and the next pass reads it all again.
//
// Both: when that does not come about, what union.go can show.
func (r *reader) passes(ctx context.Context, p window, m motion, first *walk) (outcome, error) {
	u := newUnion(r, m)
	u.start = first.began
	u.add(first)
	o := outcome{rows: len(u.met), requests: first.pages()}
	if r.light {
		o.whole, o.why = u.counted(), "it takes several pages and was read once"
		return o, nil
	}
	for n := 1; n <= maxPasses; n++ {
		w := newWalk(r, p, len(first.rows))
		if err := w.again(ctx, m, r.sizeOf(n), len(first.rows)); err != nil {
			return o, err
		}
		o.requests += w.pages()
		if w.doubt != "" || w.endless {
			o.why = w.complaint()
			return o, nil
		}
		fresh, apart := u.add(w)
		o.rows = len(u.met)
		if w.snapshot() || u.settled(w, n, fresh, apart) {
			o.whole = true
			return o, nil
		}
	}
	o.why = fmt.Sprintf("%d passes over %d rows of %s never came clean (the order changes between requests)", maxPasses, o.rows, p)
	return o, nil
}

// sizeOf is the page size of pass n: the same while the order may be stable, then another each time, so that the bounds between pages
// lie between other rows. All requests of one pass use one size: a page's number means nothing otherwise.
func (r *reader) sizeOf(n int) int {
	page := r.pageOf(r.size)
	if n <= r.steady || page < 4 {
		return r.size
	}
	return page - n*37%(page/2)
}

// again makes a walk in the direction in which no row that stays is jumped over.
func (w *walk) again(ctx context.Context, m motion, size, rows int) error {
	if m == growing && !w.r.ascending {
		return w.forward(ctx, size, nil)
	}
	return w.backward(ctx, size, rows/max(1, w.r.pageOf(size)))
}

// walk is one pass over the pages of a piece.
type walk struct {
	r     *reader
	piece window
	began schemas.Instant

	rows    map[key]sighting
	keys    []key       // instead of rows, in a pass that only counts them
	lengths map[int]int // page -> rows
	last    int         // the last page
	exact   bool        // the last page said that it was
	twice   bool        // a row was met on two pages
	seen    []glimpse   // in the order in which they came
	endless bool
	doubt   string
	size    int

	onlyCounts bool
}

// newWalk begins a pass that will meet about so many rows.
func newWalk(r *reader, piece window, rows int) *walk {
	r.passed()
	return &walk{r: r, piece: piece, began: r.now(), rows: make(map[key]sighting, rows), lengths: map[int]int{}}
}

func (w *walk) pages() int { return len(w.seen) }

// get asks for a page and notes what came.
func (w *walk) get(ctx context.Context, page int) (glimpse, error) {
	g, err := w.r.fetch(ctx, w.piece, page, w.size)
	if err == nil {
		w.note(g)
	}
	return g, err
}

func (w *walk) note(g glimpse) {
	w.seen = append(w.seen, g)
	w.r.learn(w.size, g)
	if w.doubt == "" {
		w.doubt = g.doubt
	}
}

// take counts g, page k, as part of the pass. It returns how many of its rows the pass had not met (in a pass that only counts them, how many there are).
func (w *walk) take(k int, g glimpse) (fresh int) {
	w.lengths[k] = len(g.rows)
	if w.onlyCounts {
		for _, s := range g.rows {
			w.keys = append(w.keys, s.key)
		}
		return len(g.rows)
	}
	before := len(w.rows)
	for _, s := range g.rows {
		w.rows[s.key] = s
	}
	fresh = len(w.rows) - before
	w.twice = w.twice || fresh < len(g.rows)
	return fresh
}

// forward reads from page 0 until has_more=false. A page that is short or empty is not the end (K7). A page that is refused although the
// one before it said that there is more is: rows have left meanwhile. begun, if not nil, is page 0.
func (w *walk) forward(ctx context.Context, size int, begun *glimpse) (err error) {
	w.size = size
	idle := 0
	for k := 0; ; k++ {
		var g glimpse
		if k == 0 && begun != nil {
			g = *begun
			w.note(g)
		} else if g, err = w.get(ctx, k); err != nil {
			return err
		}
		if g.beyond {
			w.last = k - 1
			return nil
		}
		if idle++; w.take(k, g) > 0 {
			idle = 0
		}
		if !g.more {
			w.last, w.exact = k, true
			w.r.toTheEnd(w)
			return nil
		}
		if idle >= maxIdle || k >= maxPages {
			w.endless = true
			return nil
		}
	}
}

// backward finds the last page, beginning at page guess, and reads from there to page 0.
//
// Each answer below with has_more=false is the last page now: the pass begins there, and what it met above is no part of it (but was published).
func (w *walk) backward(ctx context.Context, size, guess int) error {
	w.size = size
	k, g, err := w.climb(ctx, guess)
	if err != nil || w.endless {
		return err
	}
	return w.down(ctx, k, g)
}

// down reads from page k, whose answer is g, to page 0.
func (w *walk) down(ctx context.Context, k int, g glimpse) (err error) {
	for {
		if g.beyond || !g.more {
			w.last, w.exact, w.twice = k, !g.beyond, false
			w.keys = w.keys[:0]
			clear(w.rows)
			clear(w.lengths)
		}
		if !g.beyond {
			w.take(k, g)
		}
		if k--; k < 0 {
			return nil
		}
		if w.onlyCounts {
			w.r.left(k + 1)
		}
		if g, err = w.get(ctx, k); err != nil {
			return err
		}
	}
}

// climb asks for pages from guess upward until one says that it is the last, or is refused.
func (w *walk) climb(ctx context.Context, guess int) (int, glimpse, error) {
	for k := guess; ; k++ {
		g, err := w.get(ctx, k)
		if err != nil || g.beyond || !g.more {
			return k, g, err
		}
		if k-guess >= maxPages || k-guess >= maxIdle && len(g.rows) == 0 {
			w.endless = true
			return k, g, nil
		}
	}
}

// clean: the last page said that it was, every page below it was full, and no row was met twice. Then the pass met exactly as many rows as
// there were when the last page was read. Full is what this service grants for this size, not what was asked for: the most rows that one of its
// pages had, or more where it says so itself. (Where all its pages are short, a row may be missing from each.)
func (w *walk) clean() bool {
	if !w.exact || w.twice {
		return false
	}
	page := max(w.r.pageOf(w.size), w.r.claimed[w.size])
	for k := range w.last {
		if w.lengths[k] != page {
			return false
		}
	}
	return w.lengths[w.last] <= page
}

// snapshot: the piece has come to fit one page, which is all of it at one instant.
func (w *walk) snapshot() bool { return w.exact && w.last == 0 }

// created is how many rows were created on each day.
func (w *walk) created() map[day]int {
	counts := map[day]int{}
	for _, s := range w.rows {
		if s.created != past {
			counts[s.created]++
		}
	}
	return counts
}

func (w *walk) complaint() string {
	if w.doubt != "" {
		return w.doubt
	}
	return fmt.Sprintf("the service says for ever that more pages follow (asked for %d, %d rows)", len(w.seen), len(w.rows))
}
