package rest

import (
	"context"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"go.uber.org/zap"
)

// No row, page, window or day keeps the rows behind it from being read. A request that fails by itself is
// stepped over: package paging narrows the place down, and says of the set that it is not whole. So the day
// of such a place stays open, and a full reading ends with an error. Nothing is taken for read or for
// deleted.
//
// A service that is down fails every request. So nothing is stepped over unless the service answers another
// question at that moment (read.failure).

// failure looks into err, the error of a request for a page of w. If the service answers the request in
// another form, p becomes that answer. failed is the failure of this request, if it may be stepped over: the
// service refuses the number of the page, or answers another question. Otherwise the second error ends the
// read.
func (rd *read) failure(ctx context.Context, w window, page, size int, p *client.Page, err error) (
	failed *client.RequestError, _ error,
) {
	s := rd.src
	if page == 0 && client.Refusal(err) != nil && rd.otherForm(ctx, w, size, p) {
		return nil, nil
	}
	query := rd.query(w, page, size)
	switch failed = client.Failure(err, s.cfg.Resource.Path); {
	case failed == nil:
		return nil, refused(err)
	case page > 0 && client.Refusal(failed) != nil:
		s.reader.Failed()
		return failed, nil
	}
	s.reader.Failed()
	rd.failed = failed
	now, before := span{From: s.today(), To: future}, span{From: past, To: s.today() - 1}
	for _, other := range []window{s.answered, on(updated, now), on(updated, before)} {
		question := rd.query(other, 0, 1)
		if question == query || other == (window{}) {
			continue
		}
		_, err := s.endpoint.Page(ctx, question, 1)
		s.endpoint.Release()
		if err == nil {
			return failed, nil
		}
		also := client.Failure(err, s.cfg.Resource.Path)
		if also == nil || also.Status == 0 { // the next question would take as long
			break
		}
	}
	return nil, refused(err)
}

// A service may refuse a window with one bound. Then both are sent: the first day that there is, and the
// last one, or the day after tomorrow if the service refuses dates that far off. Rows of later days are then
// read once their day has come. A read that looks for deleted rows is to meet them too, so it asks for the
// last day.
const (
	oneBound = iota
	toTheLastDay
	toTheDayAfterTomorrow

	firstDay = -719_162  // 0001-01-01
	lastDay  = 2_932_896 // 9999-12-31
)

// query is the request for a page of w, in the form that the service accepts.
func (rd *read) query(w window, page, size int) string {
	form, to := rd.src.form, day(lastDay)
	if form == toTheDayAfterTomorrow && rd.req.Kind != poller.Full && !rd.req.Everywhere {
		to = rd.src.today() + 2
	}
	for i := range w {
		switch {
		case form == oneBound || w[i] == always:
		case w[i].From == past:
			w[i].From = firstDay
		case w[i].To == future:
			w[i].To = max(to, w[i].From)
		}
	}
	return w.query(rd.src.calendar.midnights, page, size)
}

// otherForm asks for page 0 of w, which the service refuses, with both bounds. If it is answered, p becomes
// the answer.
func (rd *read) otherForm(ctx context.Context, w window, size int, p *client.Page) (answered bool) {
	s := rd.src
	was, asked := s.form, rd.query(w, 0, size)
	for s.form < toTheDayAfterTomorrow {
		s.form++
		query := rd.query(w, 0, size)
		if query == asked {
			continue
		}
		if answer, err := s.endpoint.Page(ctx, query, 1); err == nil {
			*p = answer
			s.cfg.Log.Info("the service refuses a window without a first or a last day: both are sent",
				zap.String("refused", asked), zap.String("sent", query))
			return true
		}
		asked = query
	}
	s.form = was
	return false
}

// refused returns err as one that blocks the resource, if it is the service's refusal of a request.
func refused(err error) error {
	if failed := client.Refusal(err); failed != nil {
		return &poller.BlockedError{What: "the service refuses a request", Err: failed}
	}
	return err
}

// today is the day of the service's clock. A date after it is sent only if nothing else will do: a service
// may refuse it.
func (s *Source) today() day { return dayOf(s.clock.Service()) }

// bounded returns w, a growing set, without bounds after today. It takes in no less.
func (s *Source) bounded(w window) window {
	today := s.today()
	for i := range w {
		w[i].From = min(w[i].From, today)
		if other := w[1-i]; w[i].To >= today && (w[i].From != past || other.From != past || other.To < today) {
			w[i].To = future
		}
	}
	return w
}
