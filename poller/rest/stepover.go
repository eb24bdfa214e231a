package rest

import (
	"context"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
)

// No row, page, window or day keeps the rows behind it from being read. A request that fails by itself is
// stepped over: package paging narrows the place down, and says of the set that it is not whole. So the day
// of such a place stays open, and a full reading ends with an error. Nothing is taken for read or for
// deleted.
//
// A service that is down fails every request. So nothing is stepped over unless the service answers another
// question at that moment (read.ask).

// ask asks for a page of w. failed is the failure of this request, if it may be stepped over: the service
// refuses the number of the page, or answers another question. err ends the read.
func (rd *read) ask(ctx context.Context, w window, page, size int) (
	p client.Page, failed *client.RequestError, err error,
) {
	s := rd.src
	query := w.query(s.calendar.midnights, page, size)
	p, err = s.endpoint.Page(ctx, query, s.reader.Tries())
	if err == nil {
		if page == 0 {
			s.answered = w
		}
		return p, nil, nil
	}
	switch failed = client.Failure(err, s.cfg.Resource.Path); {
	case failed == nil:
		return p, nil, refused(err)
	case page > 0 && client.Refusal(failed) != nil:
		return p, failed, nil
	}
	s.reader.Failed()
	rd.failed = failed
	now, before := span{From: s.today(), To: future}, span{From: past, To: s.today() - 1}
	for _, other := range []window{s.answered, on(updated, now), on(updated, before)} {
		question := other.query(s.calendar.midnights, 0, 1)
		if question == query || other == (window{}) {
			continue
		}
		_, err := s.endpoint.Page(ctx, question, 1)
		s.endpoint.Release()
		if err == nil {
			return p, failed, nil
		}
		also := client.Failure(err, s.cfg.Resource.Path)
		if also == nil || also.Status == 0 { // the next question would take as long
			break
		}
	}
	return p, nil, refused(err)
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
