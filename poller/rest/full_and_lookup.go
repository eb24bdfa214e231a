package rest

import (
	"cmp"
	"context"
	"slices"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/schemas"
)

// createdOn and updatedOn are the two ways to find the rows of some days.

func createdOn(days span) window { return window{updated: always, created: days} }

func updatedOn(days span) window { return window{updated: days, created: always} }

// full reads every row created or updated at or after From, by the day it was created on, which never
// changes: a row is in one window however often it is updated meanwhile. It returns an error if it could not
// read them all. So a row that it did not meet is not taken for deleted.
//
// A row without created_at is on no such day. It breaks the contract, so a pass has met it and it has a dead
// letter: a Lookup that looks Everywhere finds it.
func (s *Source) full(ctx context.Context, rd *read) error {
	from := s.first(rd)
	if from != past {
		// Rows created before From and updated since. They become more: rows come in by being updated.
		w := window{updated: span{From: from, To: future}, created: span{From: past, To: from - 1}}
		if err := s.complete(ctx, rd, w); err != nil || rd.replan {
			return err
		}
	}
	if err := s.everything(ctx, rd, createdOn, from); err != nil || rd.replan {
		return err
	}
	return rd.finish(ctx, &poller.Done{Started: rd.req.Started, Complete: true})
}

// first returns the earliest day of the service, in any zone, that can have a row updated at or after From.
func (s *Source) first(rd *read) day {
	from := max(rd.req.From, s.cfg.Start)
	if from == schemas.MinInstant {
		return past
	}
	return dayOf(from) - 1
}

// lastPast returns a day that is over in every zone. Days up to it gain no more rows.
func (s *Source) lastPast() day { return dayOf(s.clock.Over().Add(-s.cfg.Overlap)) - 2 }

// everything reads the rows of the days from `from` on: those of the past in batches of days, and then the
// rest at once, which may still gain rows.
func (s *Source) everything(ctx context.Context, rd *read, along func(span) window, from day) error {
	rd.from, rd.last = from, s.lastPast()
	if err := rd.findFirst(ctx, along, past); err != nil {
		return err
	}
	open := span{From: max(from, rd.last+1), To: future}
	if from == past && rd.next > rd.last { // no window without a lower bound is read before
		open = always
	}
	if err := rd.closeDays(ctx, along); err != nil || rd.replan {
		return err
	}
	return s.complete(ctx, rd, along(open))
}

// complete reads w, which grows, and returns an error if that could not be done completely.
func (s *Source) complete(ctx context.Context, rd *read, w window) error {
	o, err := rd.pages(ctx, w, s.reader.Read(rd.set(w, true)))
	if err == nil && !rd.replan {
		err = rd.checkEnd(ctx, w, &o)
	}
	if err == nil && !rd.replan && !o.Whole {
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
// answers do not show may have got another created_at and another updated_at, which no poll meets. So if the
// request is Everywhere, lookup then reads all rows by updated_*. A full reading has read them by created_*.
func (s *Source) lookup(ctx context.Context, rd *read) error {
	rd.sought = map[int64]bool{}
	for _, suspect := range rd.req.Suspects {
		rd.sought[suspect.ID] = true
	}
	for _, question := range []func(poller.Suspect) (window, bool){onItsDay, createdAround, updatedAround} {
		var windows []window
		for _, suspect := range rd.req.Suspects {
			if w, ok := question(suspect); ok && rd.sought[suspect.ID] {
				windows = append(windows, w)
			}
		}
		for _, w := range joined(windows) {
			grows := min(w.updated.To, w.created.To) > s.lastPast()
			o, err := rd.pages(ctx, w, s.reader.Read(rd.set(w, grows)))
			if err != nil || rd.replan {
				return err
			}
			if !o.Whole {
				return rd.incomplete(ctx, w, o)
			}
		}
	}
	if rd.req.Everywhere && len(rd.sought) > 0 {
		if err := s.everything(ctx, rd, updatedOn, s.first(rd)); err != nil || rd.replan {
			return err
		}
	}
	empty := !rd.met
	if empty { // as days are on which all rows were deleted
		all := window{updated: always, created: always}
		_, err := rd.glance(ctx, all, 0, 1, func(p client.Page) bool { empty = len(p.Rows) == 0; return !empty })
		if err != nil {
			return err
		}
	}
	return rd.finish(ctx, &poller.Done{Started: rd.req.Started, Complete: rd.req.Everywhere, Empty: empty})
}

// onItsDay returns the UTC day on which a row was created, or if that is not known, the day on which it was
// updated.
func onItsDay(suspect poller.Suspect) (w window, ok bool) {
	if suspect.CreatedAt != schemas.MinInstant {
		d := dayOf(suspect.CreatedAt)
		return createdOn(span{From: d, To: d}), true
	}
	d := dayOf(suspect.UpdatedAt)
	return updatedOn(span{From: d, To: d}), suspect.UpdatedAt != schemas.MinInstant
}

func createdAround(suspect poller.Suspect) (w window, ok bool) {
	return createdOn(around(suspect.CreatedAt)), suspect.CreatedAt != schemas.MinInstant
}

func updatedAround(suspect poller.Suspect) (w window, ok bool) {
	return updatedOn(around(suspect.UpdatedAt)), suspect.UpdatedAt != schemas.MinInstant
}

// joined returns windows of one dimension in order. It merges those that overlap.
func joined(windows []window) (list []window) {
	slices.SortFunc(windows, func(a, b window) int {
		return cmp.Or(cmp.Compare(a.updated.From, b.updated.From), cmp.Compare(a.created.From, b.created.From))
	})
	for _, w := range windows {
		n := len(list) - 1
		switch {
		case n >= 0 && list[n].updated == w.updated && list[n].created.To >= w.created.From:
			list[n].created.To = w.created.To
		case n >= 0 && list[n].created == w.created && list[n].updated.To >= w.updated.From:
			list[n].updated.To = w.updated.To
		default:
			list = append(list, w)
		}
	}
	return list
}
