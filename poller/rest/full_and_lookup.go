package rest

import (
	"cmp"
	"context"
	"slices"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/schemas"
)

// full reads every row created or updated at or after From, by the day it was created on, which never
// changes: a row is in one window however often it is updated meanwhile. It returns an error if it could not
// read them all. So a row that it did not meet is not taken for deleted.
//
// A row without created_at is on no such day. It breaks the contract, so a pass has met it and it has a dead
// letter: a Lookup that looks Everywhere finds it.
func (s *Source) full(ctx context.Context, rd *read) error {
	from := s.first(rd, 1)
	if from != past {
		// Rows created before From and updated since. They become more: rows come in by being updated.
		w := window{updated: {From: from, To: future}, created: {From: past, To: from - 1}}
		read := func() error { return s.complete(ctx, rd, w) }
		if s.alone { // a row that is updated meanwhile comes to a day that is read later
			read = func() error { return s.everything(ctx, rd, updated, from) }
		}
		if err := read(); err != nil {
			return err
		}
	}
	if err := s.everything(ctx, rd, created, from); err != nil {
		return err
	}
	return rd.finish(ctx, &poller.Done{Started: rd.req.Started, Complete: true})
}

// first returns the earliest of the service's days that can have a row updated at or after From. margin is by
// how many days the service's days may differ from UTC's.
func (s *Source) first(rd *read, margin day) day {
	from := max(rd.req.From, s.cfg.Start)
	if from == schemas.MinInstant {
		return past
	}
	return dayOf(from) - margin
}

// lastPast returns a day that is over in every zone. Days up to it gain no more rows.
func (s *Source) lastPast() day { return s.calendar.lastOver() - 1 + s.calendar.margin }

// today is the day of the service's clock. A date after it is sent only if nothing else will do: a service
// may refuse it.
func (s *Source) today() day { return dayOf(s.clock.Service()) }

// bounded returns w, a growing set, without bounds after today, and takes in no less. A day behind the
// horizon stays: a window without an end would not take it in.
func (s *Source) bounded(w window) window {
	today := s.today()
	for i := range w {
		other, last := w[1-i], w[i].To
		if last != future && last > s.horizon(i) {
			continue
		}
		w[i].From = min(w[i].From, today)
		if last >= today && (w[i].From != past || other.From != past || other.To < today) {
			w[i].To = future
		}
	}
	return w
}

// everything reads the rows of the days from `from` on: those of the past in batches of days, and then the
// rest at once, which may still gain rows.
func (s *Source) everything(ctx context.Context, rd *read, dimension int, from day) error {
	rd.from, rd.last = from, s.lastPast()
	if err := rd.findFirst(ctx, dimension, past); err != nil {
		return err
	}
	if from == past && rd.next > rd.last { // there seem to be none, and closeDays asks for none
		err := s.complete(ctx, rd, on(dimension, span{From: past, To: rd.last}))
		if err != nil {
			return err
		}
	}
	if err := rd.closeDays(ctx, dimension); err != nil {
		return err
	}
	return s.complete(ctx, rd, on(dimension, span{From: max(from, rd.last+1), To: future}))
}

// complete reads w, which grows, and returns an error if that could not be done completely.
func (s *Source) complete(ctx context.Context, rd *read, w window) error {
	w = s.bounded(w)
	o, err := rd.pages(ctx, w, s.reader.Read(rd.set(w, true)))
	if err == nil {
		err = rd.checkEnd(ctx, w, &o)
	}
	if err == nil && !o.Whole {
		err = rd.incomplete(ctx, w, o)
	}
	return err
}

// lookup asks for each suspect until an answer shows it, or until it has asked for all windows in which the
// suspect can be.
//
// The first question is the row's UTC day, where most rows are. If the answer does not show the row, that
// proves nothing: the service may cut days in another zone, and the row may have another created_at than its
// record, or none. So lookup asks for the days around, by created_* and then by updated_*. A row that these
// answers do not show may be hidden: a service may show only so many rows of any window, and count no more.
// Polls met the row in a narrower one. So lookup asks for its created day and its updated day together. A
// service may refuse that, which proves nothing.
//
// The row may also have got another created_at and another updated_at, which no poll meets. So if the request
// is Everywhere, lookup then reads all rows by updated_*. A full reading has read them by created_*.
func (s *Source) lookup(ctx context.Context, rd *read) error {
	rd.sought = map[int64]bool{}
	most := future // days of one window
	if s.batches.most > 0 {
		most = fewDays
	}
	for _, suspect := range rd.req.Suspects {
		rd.sought[suspect.ID] = true
	}
	const bothDays = 3
	type axis struct { // of the days that a question is for
		dimension int
		created   span // asked for as well, of updated days
	}
	for question := range bothDays + 1 {
		asked := map[axis][]span{}
		for _, suspect := range rd.req.Suspects {
			dimension, at := created, suspect.CreatedAt
			if question >= 2 || question == 0 && at == schemas.MinInstant {
				dimension, at = updated, suspect.UpdatedAt
			}
			if at == schemas.MinInstant || !rd.sought[suspect.ID] {
				continue
			}
			days, on := around(at), axis{dimension, always}
			switch {
			case question == 0:
				days = span{From: dayOf(at), To: dayOf(at)}
			case question == bothDays && suspect.CreatedAt == schemas.MinInstant:
				continue
			case question == bothDays:
				days, on.created = s.calendar.narrow(at), s.calendar.narrow(suspect.CreatedAt)
			}
			// A service that refuses later dates has shown no row of them.
			if hides := s.hides(on.dimension, rd.proofs[on.dimension]); s.form > nearDays && hides == "" &&
				dayOf(at) <= s.today()+s.ahead()+s.calendar.margin {
				days.To = max(days.From, min(days.To, s.horizon(on.dimension)))
			}
			asked[on] = append(asked[on], days)
		}
		apart := day(0)
		if question == bothDays {
			apart = day(len(rd.sought) / manySuspects)
		}
		for on, spans := range asked {
			for _, days := range joined(spans, apart, most) {
				w, growing := window{always, on.created}, days.To > s.lastPast()
				w[on.dimension] = days
				if growing {
					w = s.bounded(w)
				}
				o, err := rd.pages(ctx, w, s.reader.Read(rd.set(w, growing)))
				if err != nil {
					return err
				}
				// The questions after the first ask for its days again. Once all suspects are shown, a row that cannot be
				// read may be another one.
				if last := question > 0 && question < bothDays && len(rd.sought) > 0; !o.Whole && (last || !o.Failed) {
					return rd.incomplete(ctx, w, o)
				}
			}
		}
	}
	if rd.req.Everywhere && len(rd.sought) > 0 {
		if err := s.everything(ctx, rd, updated, s.first(rd, 1)); err != nil {
			return err
		}
	}
	empty := !rd.met
	if empty { // as days are on which all rows were deleted
		all := window{always, always}
		_, err := rd.glance(ctx, all, 0, 1, func(p client.Page) bool { empty = len(p.Rows) == 0; return !empty })
		if err != nil {
			return err
		}
	}
	return rd.finish(ctx, &poller.Done{Started: rd.req.Started, Complete: rd.req.Everywhere, Empty: empty})
}

const (
	// manySuspects is how many suspects may each have a window of their own created and updated day. If there
	// are more, the windows of one created day are joined, over a day more for each further thousand.
	manySuspects = 1000
	// fewDays is how many days a service is asked for that limits them: those of one row.
	fewDays = 4
)

// joined returns spans of one length in order. It merges those that overlap, or are not further apart, up to
// so many days.
func joined(spans []span, apart, most day) (list []span) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.From, b.From) })
	for _, s := range spans {
		if n := len(list); n > 0 && list[n-1].To+apart >= s.From && s.To-list[n-1].From < most {
			list[n-1].To = s.To
		} else {
			list = append(list, s)
		}
	}
	return list
}
