package rest

import (
	"context"
	"fmt"

	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
)

// How a to_ date is read is the question of dialect.UpdatedTo and dialect.CreatedTo. If no row of a read has
// proven that days are whole, and a window may be settled by its answer, rows of its last day are looked for
// beyond its end. If there are any, their days are asked for alone. If none shows them, and they are still
// there, days are not whole (read.learnUpTo).

// learn takes the time of a row in the answer to asked, days of a dimension. It may prove that days are
// whole. If it contradicts that they are not, learn sets replan.
func (rd *read) learn(dimension int, at schemas.Instant, asked span) {
	c, proof := &rd.src.calendar, &rd.proofs[dimension]
	if asked.To = rd.src.end(dimension, asked); asked.To == future {
		return
	}
	last := startOf(asked.To + c.dayAfter(dimension))
	if c.midnights[dimension] {
		if dialect.PastMidnight(at, last) {
			c.dialect.NotMidnight(toDates[dimension], rowAmong(at, asked))
			rd.replan = true
		}
		return
	}
	if proof.Whole || at < startOf(asked.From) || at >= last+dayLength {
		return
	}
	proof.Met(at, last)
	if asked.Single() && c.widened == 0 {
		proof.MetAlone(at)
	}
	if proof.Whole {
		c.dialect.Prove(toDates[dimension], dialect.Whole, rowAmong(at, asked))
	}
}

// learnUpTo finds out how the service reads the to_ dates of a dimension, if the rows of some days show it.
// It publishes nothing. If the service reads them otherwise than this read takes it, it returns errReplan.
// Else it returns why that could not be found out now. Without a reason, the service reads them as this read
// takes it, or no such row makes a difference.
func (rd *read) learnUpTo(ctx context.Context, dimension int, days span) (why string, err error) {
	defer rd.src.parser.Missing(nil) // of the rows that are only looked at
	c, proof := &rd.src.calendar, &rd.proofs[dimension]
	until := c.clock.Service().Add(-c.overlap)
	for c.dayAfter(dimension) == 0 && !proof.Whole {
		// A row that can decide: by preference it is at no zone's midnight. It is older than the overlap, so
		// that it is on all pages on which it will be.
		at := schemas.MinInstant
		why, err := rd.glance(ctx, on(dimension, days), 0, paging.PageSize,
			rd.times(dimension, func(t schemas.Instant) (enough bool) {
				if t >= 0 && t < until && proof.Decides(t) {
					at = t
				}
				return at != schemas.MinInstant && at%dialect.Quarter != 0
			}))
		if why != "" || err != nil || at == schemas.MinInstant {
			return why, err
		}
		d := dayOf(at)
		for _, alone := range []day{d, d - 1, d + 1} { // in another zone it may be on its neighbor
			// A few pages of the day are enough. If all their rows have one time, to_ dates may be taken for midnights
			// by mistake. That does no harm: asked for with the day after, days show rows of that day, and are read as
			// in another zone.
			asked := span{From: alone, To: alone}
			why, err := rd.glance(ctx, on(dimension, asked), 0, paging.PageSize,
				rd.times(dimension, func(t schemas.Instant) (enough bool) {
					if proof.MetAlone(t); proof.Whole {
						c.dialect.Prove(toDates[dimension], dialect.Whole, rowAmong(t, asked))
					}
					return proof.Whole
				}))
			if why != "" || err != nil {
				return why, err
			}
			if proof.Whole { // the day after may still be to come, and a service may refuse it
				break
			}
		}
		if proof.Whole || !proof.Decides(at) { // then another row has to decide
			continue
		}
		still := false
		why, err = rd.glance(ctx, on(dimension, days), 0, paging.PageSize,
			rd.times(dimension, func(t schemas.Instant) (enough bool) {
				still = still || t < until && dayOf(t) == d && proof.Decides(t)
				return still
			}))
		switch {
		case why != "" || err != nil:
			return why, err
		case !still:
			return "rows moved while it was looked for how the service reads to_ dates", nil
		}
		c.dialect.Prove(toDates[dimension], dialect.Midnight,
			fmt.Sprintf("a row of %s is among those of two days, and not among those of its own", at))
		return "", errReplan
	}
	return "", nil
}

// times gives take the times by which a dimension goes, of the rows of each page, until one is enough. Out of
// a cache they prove nothing.
func (rd *read) times(
	dimension int, take func(schemas.Instant) (enough bool),
) func(client.Page) (enough bool) {
	return func(p client.Page) (enough bool) {
		for _, raw := range p.Rows {
			rec, reject := rd.src.parser.Parse(raw)
			at, ok := rec.UpdatedAt, reject == nil
			if dimension == created {
				at, ok = rd.src.parser.CreatedAt(raw)
			}
			if p.Age > 0 || ok && take(at) {
				return true
			}
		}
		return false
	}
}
