package rest

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"

	"github.com/storestream/storestream/poller/rest/client"
)

// A service may refuse a window for its form, and answer it in another one:
//
//   - With one bound. Then both are sent: the first day that there is, and the last one, or the day after
//     tomorrow if the service refuses that. Rows of later days are then read once their day has come. A
//     full reading does not meet them. So a lookup asks for the days of each row that it seeks.
//   - That begins and ends on one day. Then the day after is sent as the end (calendar.widened).
//   - Of both dimensions. Then each is asked for alone (Source.alone).
//   - Of many days. Then closeDays asks for fewer (batchOfDays.most), and always for the day after: to find
//     out how to_ dates are read takes windows of many days.
//
// A refusal may have another cause: the days, or a row. So the first refusal of a read makes it ask for other
// days, those around today. Only if these are answered in another form, that is taken for the service's, and
// the read makes another plan.
const (
	oneBound = iota
	toTheLastDay
	nearDays // up to the day after tomorrow
	limited  // the same, of a service that refuses many days

	firstDay = -719_162  // 0001-01-01
	lastDay  = 2_932_895 // 9999-12-30. The day after may be written for it
)

// errReplan ends a read that asks for days in another way than the service answers. Source.Read makes
// another plan.
var errReplan = errors.New("the service's days are asked for in another way from now on")

// horizon returns the day that is written as the last one of a window that has no end.
func (s *Source) horizon() day {
	switch s.form {
	case oneBound:
		return future
	case toTheLastDay:
		return lastDay
	}
	return s.today() + 2 - s.calendar.widened
}

// query is the request for one page of w, in the form that the service accepts, so that all of its last days
// is in it. The service refuses a request without any date, so w has a bound.
func (s *Source) query(w window, page, size int) string {
	v := url.Values{"page": {strconv.Itoa(page)}, "page_size": {strconv.Itoa(size)}}
	for i, name := range dimensions {
		from, to := w[i].From, w[i].To
		if s.form != oneBound && w[i] != always {
			from = max(from, firstDay)
		}
		if to == future && from != past {
			to = max(s.horizon(), from)
		}
		if from != past {
			v.Set(name+"_from", from.String())
		}
		if to != future {
			v.Set(name+"_to", (to + s.calendar.dayAfter(i)).String())
		}
	}
	return v.Encode()
}

// learnForm asks in which form the service answers windows. It reports whether that is another one than it
// was taken for. If the service answers for today in no form, learnForm learns nothing.
func (s *Source) learnForm(ctx context.Context) (changed bool) {
	c, today := &s.calendar, s.today()
	form, widened, alone := s.form, c.widened, s.alone
	now, before := on(updated, span{From: today, To: future}), on(updated, span{From: past, To: today - 1})
	oneDay := on(updated, span{From: today - 1, To: today - 1})
	ask := func(w window) error {
		_, err := s.endpoint.Page(ctx, s.query(w, 0, 1), 1)
		s.endpoint.Release()
		return err
	}
	refuses := func(w window) bool { return client.Refusal(ask(w)) != nil }
	// The first form in which the service answers all of some windows; limited, if there is none.
	answering := func(windows ...window) int {
		fails := func(w window) bool { return ask(w) != nil }
		for s.form = oneBound; s.form < limited && slices.ContainsFunc(windows, fails); {
			s.form++
		}
		return s.form
	}
	switch nearest := answering(now); {
	case nearest == limited:
		s.form = form
		return false
	case answering(now, before) == limited && nearest < nearDays: // it refuses early days, or a row
		s.form = nearest
	}
	if c.widened == 0 && (s.form == limited || refuses(oneDay)) {
		c.widened = 1
		if ask(oneDay) != nil {
			c.widened = 0
		}
	}
	s.alone = s.alone || refuses(window{updated: now[updated], created: before[updated]})
	return s.form != form || c.widened != widened || s.alone != alone
}
