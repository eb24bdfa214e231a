package rest

import (
	"cmp"
	"context"
	"slices"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// full reads every row created or updated at or after From, by the day it was created on, which never changes: a row is in one window
// however often it is updated meanwhile. It returns an error where that could not be done completely, so that a row that was not met is not
// taken for deleted.
func (rd *read) full(ctx context.Context) error {
	from := rd.firstDay(max(rd.req.From, rd.Start))
	// The last day for which rows can still be created, in any zone, is tomorrow's at most: the days before yesterday's only lose rows.
	past1 := dayOf(rd.clock.Over().Add(-rd.Overlap)) - 2
	if from != past {
		// Rows created before From and updated since. Their number grows: rows come in by being updated.
		if err := rd.complete(ctx, window{updated: span{from, future}, created: span{past, from - 1}}, growing); err != nil {
			return err
		}
	}
	next := from
	if from == past {
		first, found, err := rd.earliest(ctx, func(d day) window { return window{updated: always, created: span{past, d}} }, past1)
		if err != nil {
			return err
		}
		if next = first; !found {
			next = past1 + 1
		}
	}
	if err := rd.createdDays(ctx, from == past, next, past1); err != nil {
		return err
	}
	rest := span{max(next, past1+1), future}
	if from == past && next > past1 {
		rest = always
	}
	if err := rd.complete(ctx, window{updated: always, created: rest}, growing); err != nil {
		return err
	}
	return rd.finish(&poller.Done{Started: rd.req.Started, Complete: true})
}

// createdDays reads the rows created on the days next..last, and those before next too where unbounded.
func (rd *read) createdDays(ctx context.Context, unbounded bool, next, last day) error {
	rd.stretch, rd.density = 1, 0
	for next <= last {
		days := span{next, min(next+day(rd.stretch)-1, last)}
		w := window{updated: always, created: days}
		if unbounded {
			w.created.from = past
		}
		rd.closing("reading everything created " + days.String())
		o, err := rd.window(ctx, w, days, future)
		if err != nil {
			return err
		}
		rd.adapt(days, o)
		if o.overflow {
			continue
		}
		if !o.whole {
			return rd.cannot(w, o)
		}
		unbounded, next = false, days.to+1
		if err := rd.flushIfDue(); err != nil {
			return err
		}
	}
	return nil
}

// complete reads w, and returns an error if that could not be done completely.
func (rd *read) complete(ctx context.Context, w window, m motion) error {
	o, err := rd.reader.read(ctx, w, m)
	if err == nil && !o.whole {
		err = rd.cannot(w, o)
	}
	return err
}

func (rd *read) cannot(w window, o outcome) error {
	if err := rd.finish(nil); err != nil {
		return err
	}
	return o.incomplete(w)
}

// lookup reads the days on which the suspects are: those on which they were created where that is known, for a row stays there; else those on which
// they were updated.
func (rd *read) lookup(ctx context.Context) error {
	wanted := map[window]bool{}
	for _, s := range rd.req.Suspects {
		switch {
		case s.CreatedAt != schemas.MinInstant:
			wanted[window{updated: always, created: rd.around(s.CreatedAt)}] = true
		case s.UpdatedAt != schemas.MinInstant:
			wanted[window{updated: rd.around(s.UpdatedAt), created: always}] = true
		}
	}
	windows := make([]window, 0, len(wanted))
	for w := range wanted {
		windows = append(windows, w)
	}
	slices.SortFunc(windows, func(a, b window) int {
		return cmp.Or(cmp.Compare(a.created.from, b.created.from), cmp.Compare(a.updated.from, b.updated.from))
	})
	last := rd.lastOver()
	for _, w := range windows {
		m := shrinking
		if w.updated.to > last && w.created.to > last {
			m = growing
		}
		if err := rd.complete(ctx, w, m); err != nil {
			return err
		}
	}
	return rd.finish(&poller.Done{Started: rd.req.Started})
}

// around is the service's days in which the UTC day of i lies.
func (rd *read) around(i schemas.Instant) span {
	d := dayOf(i)
	return span{d - rd.margin(), d + rd.margin()}
}
