package rest

import (
	"context"
	"fmt"

	"github.com/storestream/storestream/schemas"
)

// This file and pieces.go, passes.go, stretch.go and union.go are the reading of a window in full while its rows move. They know neither
// HTTP nor JSON: they see the service through one function, so that property tests can put any interleaving behind it.
//
// The argument. Let W be the window's rows.
//
//  1. An answer to page 0 that says has_more=false is all of its window at one instant, whatever the order. So W is cut by created_at, which
//     never changes, into pieces that fit one page. The pieces share no row and leave none out, and a row that stays in W stays in its
//     piece: it is in that piece's answer. Nothing is assumed of order or stability. (passes over pages lose rows: one that leaves moves
//     its followers down a place, and the one that moves from page k+1 to page k after page k was read is in neither.)
//  2. A piece that cannot be cut, because its rows were created on one day, is read in passes: passes.go.
//  3. Days that lie further back, where little moves, are read many at once, in one backward pass that is counted: stretch.go.
//
// A window is either shrinking (its days are over: rows leave it, by being updated or deleted, and none comes) or growing (rows come and,
// deletions apart, none leaves; in the open window an updated row stays, in a window by created_at alone too).
type motion int

const (
	shrinking motion = iota
	growing
)

// key names a row in what the reader remembers: its id, or a hash of its text where it has no usable id.
type key struct {
	n        uint64
	nameless bool
}

// sighting is a row on a page.
type sighting struct {
	key     key
	updated schemas.Instant // MinInstant where it is unusable
	created day             // of rows on pages of windows that take several, UTC; past where it is unusable. It only helps to plan
}

// glimpse is what one answer told.
type glimpse struct {
	rows []sighting
	more bool
	// count is meta.count, -1 where it is absent.
	count int
	// size is meta.page_size, the rows a page has by the service's own word; -1 where it is absent.
	size int
	// beyond: the service refused a page above 0, or answered with another one. There is no such page now.
	beyond bool
	// doubt, if not empty, says why this answer proves nothing.
	doubt string
}

// fetch asks for one page. It publishes the rows that it reads; an error ends the reading.
type fetch func(ctx context.Context, w window, page, size int) (glimpse, error)

// outcome is what reading a window came to.
type outcome struct {
	// whole: every row that stayed in the window throughout was read.
	whole bool
	// why it is not, for people.
	why string
	// overflow: the window was to be read only if it fits one page, and does not. rows is how many it showed.
	overflow bool
	rows     int // read in one-page pieces, or known of the others
	requests int
	paged    bool // it took more than one page
}

// reader reads windows.
type reader struct {
	fetch fetch
	// size is the page_size asked for. granted is how many rows a page then really has, learned.
	size    int
	granted map[int]int
	// claimed is what the service said of that, for the sizes asked for in this read.
	claimed map[int]int
	// cuts is where the last windows had to be cut.
	cuts *cuts
	// rows come sorted by updated_at, ascending: passes over a growing piece then go backward.
	ascending bool
	// steady is how many passes a piece gets to come clean before its order is held to be unstable.
	steady int
	// chance is with what chance, at most, a row may be hidden when a piece is taken for whole by union.unlikely; 0: that is not done.
	chance float64
	// light: no more than one pass over a piece that cannot be cut.
	light bool
	// now is the service's clock; passed hears of each pass before it begins, and of its end.
	now    func() schemas.Instant
	passed func()
	// left hears how many pages a stretch still has to read.
	left func(pages int)
	// toTheEnd hears of each forward pass that reached the end.
	toTheEnd func(*walk)
}

const (
	pageSize = 1000
	// maxIdle is how many pages in a row may bring nothing that the pass has not met before it is held that has_more stays true for ever.
	maxIdle = 10
	// maxPages bounds one pass.
	maxPages = 50_000
	// maxPieces bounds how often one window is cut.
	maxPieces = 20_000
)

// glance reads w if it fits one page.
func (r *reader) glance(ctx context.Context, w window, m motion) (outcome, error) {
	g, err := r.once(ctx, w, m)
	o := g.snapshot()
	o.overflow = g.more
	return o, err
}

// snapshot is what page 0 shows of a window, taken alone.
func (g *glimpse) snapshot() outcome {
	return outcome{whole: !g.more && g.doubt == "", why: g.doubt, rows: len(g.rows), requests: 1}
}

// once reads page 0. An empty answer is asked for twice before a day is closed on it (K25): a service that has just lost its tables, or a
// gateway that has nothing to say, answers like this too.
func (r *reader) once(ctx context.Context, w window, m motion) (glimpse, error) {
	g, err := r.fetch(ctx, w, 0, r.size)
	if err == nil && len(g.rows) == 0 && !g.more && m == shrinking {
		g, err = r.fetch(ctx, w, 0, r.size)
	}
	if err == nil {
		r.learn(r.size, g)
	}
	return g, err
}

// learn notes how many rows a page has that is not the last.
func (r *reader) learn(size int, g glimpse) {
	if g.more {
		r.claimed[size] = max(r.claimed[size], min(g.size, size))
		r.granted[size] = max(r.granted[size], len(g.rows))
	}
}

// read reads w whole, in as many pieces and passes as that takes.
func (r *reader) read(ctx context.Context, w window, m motion) (outcome, error) {
	anchor := w.updated.to
	if anchor == future {
		anchor = w.updated.from
	}
	total := outcome{whole: true}
	todo := r.cuts.apply(w.created, anchor)
	var fit []piece
	for n := 0; len(todo) > 0; n++ {
		p := w
		p.created = todo[0]
		todo = todo[1:]
		if n >= maxPieces {
			return outcome{why: "it falls into too many pieces"}, nil
		}
		o, parts, err := r.piece(ctx, p, m)
		if err != nil {
			return o, err
		}
		total.requests += o.requests
		if len(parts) > 0 {
			todo = append(parts, todo...)
			total.paged = true
			continue
		}
		fit = append(fit, piece{p.created, o.rows})
		total.add(o)
	}
	total.paged = total.paged || len(fit) > 1
	r.cuts.learn(fit, anchor, r.pageOf(r.size))
	return total, nil
}

// piece reads p if it fits one page or cannot be cut; otherwise it returns the parts to read instead.
//
// A piece that does not fit is read to its end all the same: only then is it known where its rows were created, so that the parts fit, and its
// rows are published meanwhile. So a window of n rows takes some 2n/1000 requests the first time and n/800 from then on. Halving it blindly
// would read a full page at each level and keep nothing of what that page says about the rest.
func (r *reader) piece(ctx context.Context, p window, m motion) (outcome, []span, error) {
	g, err := r.once(ctx, p, m)
	if err != nil || !g.more {
		return g.snapshot(), nil, err
	}
	w := newWalk(r, p, len(g.rows)*2)
	if err := w.forward(ctx, r.size, &g); err != nil {
		return outcome{}, nil, err
	}
	if w.endless || w.doubt != "" {
		return outcome{why: w.complaint(), rows: len(w.rows), requests: w.pages(), paged: true}, nil, nil
	}
	if parts := divide(p.created, w.created(), r.pageOf(r.size)); len(parts) > 1 {
		return outcome{requests: w.pages()}, parts, nil
	}
	o, err := r.passes(ctx, p, m, w)
	o.paged = true
	return o, nil, err
}

// pageOf is how many rows a page has that was asked for with size.
func (r *reader) pageOf(size int) int {
	if n := r.granted[size]; n > 0 {
		return n
	}
	return size
}

func (o *outcome) add(p outcome) {
	o.rows += p.rows
	o.paged = o.paged || p.paged
	if !p.whole && o.whole {
		o.whole, o.why = false, p.why
	}
}

// incomplete is o as an error, for reads that have no other way to say it.
func (o outcome) incomplete(w window) error {
	return fmt.Errorf("%s could not be read completely: %s", w, o.why)
}
