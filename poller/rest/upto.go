package rest

import (
	"context"
	"sync"

	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
)

// upTo is how the service reads `updated_to=D` or `created_to=D`: nothing says that it reads both alike.
//
// The document says "on or before the date". A service that compares times with the date takes that for "at
// or before its midnight", and leaves out all the rest of D. If it does, the last day of every window is
// asked for with the day after: that takes in no more than the midnight itself, which the next window shows
// again.
//
// What decides is rows that stand where they could not by the other reading. A row later than any zone's
// midnight of the last day asked for proves that days are whole; so do days asked for alone that show a row
// at no zone's midnight, or rows at two times of day. Where nothing has proved it, and a window may be
// settled by its answer, rows of its last day are looked for beyond its end. Where there are any, their days
// are asked for alone: if none shows them, and they are still there, days are not whole (read.learnUpTo).
type upTo struct {
	mu      sync.Mutex
	reading reading
	// alone is the time of day of all rows that days asked for alone have shown: perhaps it is the service's
	// midnight, and then such rows are lost by no reading. hasAlone: there was one.
	alone    schemas.Instant
	hasAlone bool
}

// toDate is one of the parameters by which the last day of a window is asked for.
type toDate int

const (
	updatedTo toDate = iota
	createdTo
	toDates // how many there are
)

func (t toDate) String() string { return [toDates]string{"updated_to", "created_to"}[t] }

// toDate is what ends w: created_to, where w is bounded by that at all.
func (w window) toDate() toDate {
	if w.created != always {
		return createdTo
	}
	return updatedTo
}

type reading int

const (
	unknown   reading = iota
	wholeDays         // D is in it
	midnights         // only the first instant of D is in it
)

const (
	// quarter divides the midnights of all zones.
	quarter = 15 * 60 * schemas.Instant(1e6)
	// latestMidnight is when a day begins in the last zone, after it began in UTC.
	latestMidnight = 12 * 60 * 60 * schemas.Instant(1e6)
	// mostCandidates is how many pages are searched for a row that makes a difference.
	mostCandidates = 10
	// upToRounds is how often it has to show that days are not whole.
	upToRounds = 2
)

func (u *upTo) get() reading {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.reading
}

// found notes what was found out, once.
func (u *upTo) found(r reading) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reading == unknown {
		u.reading = r
	}
}

// learn looks for a proof that days are whole among the rows of an answer to asked.
func (u *upTo) learn(rows []paging.Row, asked span) {
	if asked.To == future || u.get() != unknown {
		return
	}
	for _, row := range rows {
		at := schemas.Instant(row.Updated)
		if row.Updated == paging.NoTime || outside(at, asked) > 0 {
			continue
		}
		if at > startOf(asked.To)+latestMidnight {
			u.found(wholeDays)
		}
		if asked.Single() {
			u.showsAlone(at)
		}
	}
}

// showsAlone notes the time of a row that a day asked for alone has shown.
func (u *upTo) showsAlone(at schemas.Instant) {
	if at%quarter != 0 || u.differs(at) && u.hasTime() {
		u.found(wholeDays)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.alone, u.hasAlone = timeOfDay(at), true
}

func (u *upTo) hasTime() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.hasAlone
}

// differs tells whether a row of that time is at no time of day that days asked for alone have shown.
func (u *upTo) differs(at schemas.Instant) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.hasAlone || timeOfDay(at) != u.alone
}

func timeOfDay(at schemas.Instant) schemas.Instant { return at - at.Day() }

// learnUpTo finds out how the service reads the dates of to, if the rows of w show it. It publishes nothing.
// Where there is neither why nor an error, it reads them as the source does, or w has no row for which it
// makes a difference. It sets replan if they are midnights. why says why that could not be found out now.
func (rd *read) learnUpTo(ctx context.Context, to toDate, w window) (why string, err error) {
	u := &rd.src.cfg.Zone.upTo[to]
	for rounds := 0; rounds < upToRounds; {
		switch r := u.get(); {
		case rd.src.calendar.midnights[to] || r == wholeDays:
			return "", nil
		case r == midnights:
			rd.replan = true
			return "", nil
		}
		at, why, err := rd.candidate(ctx, to, w, past)
		if why != "" || err != nil || at == schemas.MinInstant {
			return why, err
		}
		d := dayOf(at)
		for _, alone := range []day{d, d - 1, d + 1} { // in another zone it may be on its neighbor
			if why, err := rd.askAlone(ctx, to, alone); why != "" || err != nil {
				return why, err
			}
		}
		if u.get() != unknown || !u.differs(at) { // then another row has to decide
			continue
		}
		still, why, err := rd.candidate(ctx, to, w, d)
		switch {
		case why != "" || err != nil:
			return why, err
		case still == schemas.MinInstant:
			return "rows moved while it was looked for how the service reads to_ dates", nil
		}
		rounds++
	}
	u.found(midnights)
	rd.replan = true
	return "", nil
}

// askAlone looks at the rows of one day. It does so on a few pages: if days of which all these rows have one
// time are taken for midnights, that does no harm. Asked for with the day after they show rows of that, and
// are read as in another zone.
func (rd *read) askAlone(ctx context.Context, to toDate, d day) (why string, err error) {
	alone := updatedOn(span{From: d, To: d})
	if to == createdTo {
		alone = createdOn(alone.updated)
	}
	for page := range mostCandidates {
		times, more, why, err := rd.times(ctx, to, alone, page)
		if why != "" || err != nil {
			return why, err
		}
		for _, at := range times {
			rd.src.cfg.Zone.upTo[to].showsAlone(at)
		}
		if !more || rd.src.cfg.Zone.upTo[to].get() != unknown {
			return "", nil
		}
	}
	return "", nil
}

// candidate is the time of a row of w, on day d (past: on any), that can decide: by preference it is at no
// zone's midnight. It is older than the overlap, so that its row is on all pages on which it will be.
// MinInstant: there is none.
func (rd *read) candidate(
	ctx context.Context, to toDate, w window, d day,
) (found schemas.Instant, why string, err error) {
	found = schemas.MinInstant
	until := rd.src.clock.Service().Add(-rd.src.cfg.Overlap)
	for page := range mostCandidates {
		times, more, why, err := rd.times(ctx, to, w, page)
		if why != "" || err != nil {
			return schemas.MinInstant, why, err
		}
		for _, at := range times {
			switch {
			case at < 0 || at >= until || d != past && dayOf(at) != d || !rd.src.cfg.Zone.upTo[to].differs(at):
			case at%quarter != 0:
				return at, "", nil
			default:
				found = at
			}
		}
		if found != schemas.MinInstant || !more {
			return found, "", nil
		}
	}
	return found, "", nil
}

// times are those that to goes by, of the rows on a page of w. why: the answer proves nothing.
func (rd *read) times(
	ctx context.Context, to toDate, w window, page int,
) (times []schemas.Instant, more bool, why string, err error) {
	p, err := rd.src.endpoint.Page(ctx, rd.src.calendar.query(w, page, paging.PageSize))
	defer rd.src.endpoint.Release()
	switch {
	case page > 0 && client.Refusal(err) != nil: // it refuses the number of the page
		return nil, false, "", nil
	case err != nil:
		return nil, false, "", rd.refused(err, w)
	case p.Age > 0:
		return nil, false, cached(p.Age), nil
	}
	for _, raw := range p.Rows {
		rec, reject := rd.src.parser.Parse(raw)
		at, ok := rec.UpdatedAt, reject == nil
		if to == createdTo {
			at, ok = rd.src.parser.CreatedAt(raw)
		}
		if ok {
			times = append(times, at)
		}
	}
	rd.src.parser.Missing(nil)
	return times, p.More, "", nil
}
