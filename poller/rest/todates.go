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

// toDate is what ends w: created_to, if w is bounded by that at all.
func (w window) toDate() *dialect.Property {
	if w.created != always {
		return dialect.CreatedTo
	}
	return dialect.UpdatedTo
}

// upToRounds is how often it has to show that days are not whole.
const upToRounds = 2

// shown returns the proof of this read for to.
func (rd *read) shown(to *dialect.Property) *dialect.ToDate {
	if to == dialect.CreatedTo {
		return &rd.createdTo
	}
	return &rd.updatedTo
}

// learn takes the time of a row in the answer to asked. It may prove that days are whole. If it contradicts
// that they are not, learn sets replan.
func (rd *read) learn(to *dialect.Property, at schemas.Instant, asked span) {
	rd.replan = rd.src.calendar.notMidnight(to, at, asked) || rd.replan
	proof := rd.shown(to)
	if rd.src.calendar.midnight(to) || proof.Whole || asked.To == future || outside(at, asked) > 0 {
		return
	}
	proof.Met(at, startOf(asked.To))
	if asked.Single() {
		proof.MetAlone(at)
	}
	if proof.Whole {
		rd.src.cfg.Dialect.Prove(to, dialect.Whole, rowAmong(at, asked))
	}
}

// learnUpTo finds out how the service reads the dates of to, if the rows of w show it. It publishes
// nothing. If the service reads them otherwise than this read takes it, learnUpTo sets replan. It returns
// why that could not be found out now. Otherwise the service reads them as this read takes it, or no row of
// w makes a difference.
func (rd *read) learnUpTo(ctx context.Context, to *dialect.Property, w window) (why string, err error) {
	defer rd.src.parser.Missing(nil) // of the rows that are only looked at
	proof, along := rd.shown(to), updatedOn
	if to == dialect.CreatedTo {
		along = createdOn
	}
	until := rd.src.clock.Service().Add(-rd.src.cfg.Overlap)
	for rounds := 0; rounds < upToRounds && !rd.src.calendar.midnight(to) && !proof.Whole; {
		// A row that can decide: by preference it is at no zone's midnight. It is older than the overlap, so
		// that it is on all pages on which it will be.
		at := schemas.MinInstant
		why, err := rd.glance(ctx, w, 0, paging.PageSize, rd.times(to, func(t schemas.Instant) (enough bool) {
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
			// A few pages of it will do: if days of which all these rows have one time are taken for
			// midnights, that does no harm. Asked for with the day after they show rows of that, and are
			// read as in another zone.
			asked := span{From: alone, To: alone}
			decides := rd.times(to, func(t schemas.Instant) (enough bool) {
				if proof.MetAlone(t); proof.Whole {
					rd.src.cfg.Dialect.Prove(to, dialect.Whole, rowAmong(t, asked))
				}
				return proof.Whole
			})
			why, err := rd.glance(ctx, along(asked), 0, paging.PageSize, decides)
			if why != "" || err != nil {
				return why, err
			}
		}
		if proof.Whole || !proof.Decides(at) { // then another row has to decide
			continue
		}
		still := false
		why, err = rd.glance(ctx, w, 0, paging.PageSize, rd.times(to, func(t schemas.Instant) (enough bool) {
			still = still || t < until && dayOf(t) == d && proof.Decides(t)
			return still
		}))
		switch {
		case why != "" || err != nil:
			return why, err
		case !still:
			return "rows moved while it was looked for how the service reads to_ dates", nil
		}
		if rounds++; rounds == upToRounds {
			rd.src.cfg.Dialect.Prove(to, dialect.Midnight,
				fmt.Sprintf("a row of %s is among those of two days, and not among those of its own", at))
			rd.replan = true
		}
	}
	return "", nil
}

// times gives take the times that to goes by, of the rows on a page, until one is enough. Out of a cache they
// prove nothing.
func (rd *read) times(to *dialect.Property, take func(schemas.Instant) (enough bool)) func(client.Page) bool {
	return func(p client.Page) bool {
		for _, raw := range p.Rows {
			rec, reject := rd.src.parser.Parse(raw)
			at, ok := rec.UpdatedAt, reject == nil
			if to == dialect.CreatedTo {
				at, ok = rd.src.parser.CreatedAt(raw)
			}
			if p.Age > 0 || ok && take(at) {
				return true
			}
		}
		return false
	}
}
