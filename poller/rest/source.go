package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// SourceConfig configures a Source.
type SourceConfig struct {
	Resource *schemas.Resource
	// Client is the way to the service, and Dialect the knowledge of it. The sources of one process share
	// both.
	Client  *client.Client
	Dialect *dialect.Dialect
	// Overlap is how long after its updated_at a row may become readable.
	Overlap time.Duration
	// Start bounds every read from below. schemas.MinInstant means from the earliest row.
	Start schemas.Instant
	// MaxRows is how many rows make a batch full: the page that reaches it is the batch's last. Zero means
	// 10,000.
	MaxRows int
	Metrics *metrics.Resource
	Log     *zap.Logger // names the resource. Nil logs nothing
	// Doing, if set, gets the activity of a read, for people ("closing 2026-11-20"), and "" when it ends.
	Doing func(string)
	// Days, if set, gets the state of the days that are not settled, whenever a pass has learned of a change.
	Days func([]health.Days)
}

// Source reads one resource. See poller.Source; it uses no cursor: a pass settles day by day, and one that
// was cut short begins at settled.
type Source struct {
	cfg      SourceConfig
	endpoint *client.Endpoint
	clock    *client.Clock
	parser   *schemas.RowParser
	linger   time.Duration // how long rows wait for a batch to fill
	// todayEvery is how often a pass that closes days reads today's rows meanwhile.
	todayEvery time.Duration

	// Knowledge of the service. Only the calendar decides how far days are settled.
	calendar  calendar
	reader    *paging.Reader
	firstPage int         // the service's number of page 0. -1 if unknown
	batches   batchOfDays // of past days
	earliest  day         // before it there was no row. past if unknown
	answered  window      // whose page 0 was answered last. Zero if there is none
	// The form in which windows are asked for: see learnForm. alone is set if the service refuses a window of
	// both dimensions. Then one that is bounded by updated_at is not cut by created_at. least is the smallest
	// page_size that was answered, and 1 until that is refused.
	form  int
	alone bool
	least int

	// Results of earlier reads.
	from schemas.Instant // From of the last pass
	days days
	open openWindow
}

// NewSource returns a source of one resource.
func NewSource(cfg SourceConfig) *Source {
	cfg.Log, cfg.MaxRows = cmp.Or(cfg.Log, zap.NewNop()), cmp.Or(cfg.MaxRows, maxBatchRows)
	if cfg.Doing == nil {
		cfg.Doing = func(string) {}
	}
	if cfg.Days == nil {
		cfg.Days = func([]health.Days) {}
	}
	counted := func(code string) { cfg.Metrics.HTTPRequests(code).Inc() }
	endpoint := cfg.Client.Endpoint(cfg.Resource.Path, counted, cfg.Metrics.RateLimited.Add)
	clock := cfg.Client.Clock()
	s := &Source{
		cfg: cfg, endpoint: endpoint, clock: clock, parser: schemas.NewRowParser(cfg.Resource), linger: flushEvery,
		calendar: calendar{clock: clock, overlap: cfg.Overlap, dialect: cfg.Dialect, begun: past}, firstPage: -1,
		batches: batchOfDays{days: 1}, earliest: past, days: days{}, least: 1, todayEvery: todayEvery,
		reader: paging.NewReader(cfg.Dialect.Value(dialect.Count) != dialect.Estimate),
	}
	s.forget()
	return s
}

// forget drops the results of earlier reads. The days that are not closed stay so.
func (s *Source) forget() {
	s.from, s.open = schemas.MinInstant, openWindow{}
	s.days.forgetClosed()
}

// Read implements poller.Source. It makes a plan and reads by it. If the service turns out to cut days
// otherwise than the plan assumes, it makes another one.
func (s *Source) Read(ctx context.Context, r poller.Request) iter.Seq2[poller.Batch, error] {
	return func(yield func(poller.Batch, error) bool) {
		defer s.cfg.Doing("")
		if r.Kind == poller.Pass {
			if r.From < s.from { // a replay: everything from there on is to be read again
				s.forget()
			}
			s.from = r.From
		}
		handed := schemas.MinInstant
		for range mostPlans {
			if s.calendar.adopt() {
				s.forget()
			}
			s.parser.Missing(nil) // of the page that showed the plan before to be wrong
			rd := &read{src: s, req: r, yield: yield, handed: handed, flushed: time.Now(),
				shown: time.Now(), settled: schemas.MinInstant, fields: newFields(s.cfg.Resource, r.Fields)}
			var err error
			if !s.clock.Heard() { // which days are over depends on the service's clock
				today := on(updated, span{From: dayOf(schemas.InstantOf(s.clock.Now())), To: future})
				_, err = rd.glance(ctx, today, 0, 1, func(client.Page) bool { return true })
			}
			if err == nil {
				s.laterEnd(ctx)
			}
			if s.batches.most > 0 { // the days before today take many windows
				rd.shown = time.Time{}
			}
			switch {
			case err != nil:
			case r.Kind == poller.Full:
				err = s.full(ctx, rd)
			case r.Kind == poller.Lookup:
				err = s.lookup(ctx, rd)
			default:
				if err = s.planPass(ctx, rd); err == nil {
					err = rd.closeDays(ctx, updated)
				}
				if err == nil {
					err = s.readOpenWindow(ctx, rd)
				}
			}
			if err != nil {
				s.forget() // the rows may not be published: the caller drops the batch in hand when it stops
			}
			if errors.Is(err, errReplan) {
				handed = rd.handed
				continue
			}
			if err != nil && !errors.Is(err, errBrokenOff) {
				yield(poller.Batch{}, err)
			}
			return
		}
		s.forget()
		yield(poller.Batch{}, fmt.Errorf("the service's answers contradict each other: %d times in this read they "+
			"showed that it cuts days otherwise than before", mostPlans))
	}
}

// errBrokenOff ends a read whose caller takes no more batches.
var errBrokenOff = errors.New("the caller takes no more batches")

// mostPlans is how many plans one read may make. It makes another one if an answer shows how the service cuts
// days.
const mostPlans = 8

// A service may refuse a request for its form, and answer it in another one:
//
//   - With one bound. Then both are sent: the first day that there is, and the last one. If the service
//     refuses that, it is the latest day of four that it takes, from the day after tomorrow to yesterday.
//     Rows of later days are read once their day has come. A full reading does not meet them. So a lookup
//     asks for the days of each row that it seeks.
//   - That begins and ends on one day. Then the day after is sent as the end (calendar.widened).
//   - Of both dimensions. Then each is asked for alone (Source.alone).
//   - Of many days. Then closeDays asks for fewer (batchOfDays.most), and always for the day after: to find
//     out how to_ dates are read takes windows of many days.
//   - For a page of one row. Then questions that need no more ask for 10, or for 1,000 (Source.least).
//
// A refusal may have another cause: the days, or a row. So the first refusal of a read makes it ask for other
// days, those around today. Only if these are answered in another form, that is taken for the service's, and
// the read makes another plan.
const (
	oneBound = iota
	toTheLastDay
	nearDays // up to the day after tomorrow
	_        // up to tomorrow
	_        // up to today
	toYesterday
	noForm

	firstDay = -719_162  // 0001-01-01
	lastDay  = 2_932_895 // 9999-12-30. The day after may be written for it
)

// pageSizes are page sizes: nearly every service that refuses pages of one row grants one of them.
var pageSizes = []int{10, paging.PageSize}

// errReplan ends a read that asks for days in another way than the service answers. Source.Read makes
// another plan.
var errReplan = errors.New("the service's days are asked for in another way from now on")

// ahead is how many days after today the last date of a window is that has no end, in the forms from nearDays
// on.
func (s *Source) ahead() day { return nearDays + 2 - day(s.form) }

// horizon returns the last day of a window of a dimension that has no end.
func (s *Source) horizon(dimension int) day {
	switch s.form {
	case oneBound:
		return future
	case toTheLastDay:
		return lastDay
	}
	return s.today() + s.ahead() - s.calendar.dayAfter(dimension)
}

// end returns the last day of days of a dimension, as query asks for it.
func (s *Source) end(dimension int, days span) day {
	if days.To == future && days.From != past {
		return max(s.horizon(dimension), days.From)
	}
	return days.To
}

// query is the request for one page of w, in the form that the service accepts, so that all of its last days
// is in it. The service refuses a request without any date, so w has a bound.
func (s *Source) query(w window, page, size int) string {
	if page == 0 {
		size = max(size, s.least)
	}
	v := url.Values{"page": {strconv.Itoa(page)}, "page_size": {strconv.Itoa(size)}}
	for i, name := range dimensions {
		from, to := w[i].From, s.end(i, w[i])
		if s.form != oneBound && w[i] != always {
			from = max(from, firstDay)
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

// ask asks for the first page of w. Its rows go nowhere.
func (s *Source) ask(ctx context.Context, w window) error {
	_, err := s.endpoint.Page(ctx, s.query(w, 0, 1), 1)
	s.endpoint.Release()
	return err
}

// since returns the rows updated from so many days before today on.
func (s *Source) since(days day) window {
	return on(updated, span{From: s.today() - days, To: future})
}

// learnForm asks in which form the service answers windows, after it has refused a request. changed is set if
// that is another form than it was taken for. If the service answers for today in no form, answers is not
// set, and learnForm learns nothing.
func (s *Source) learnForm(ctx context.Context, refused string) (answers, changed bool) {
	c, today, most := &s.calendar, s.today(), &s.batches.most
	form, widened, alone, least, mostBefore := s.form, c.widened, s.alone, s.least, *most
	before := on(updated, span{From: past, To: today - 1})
	oneDay := on(updated, span{From: today - 1, To: today - 1})
	twoDays := on(updated, span{From: today - 2, To: today - 1})
	later := on(updated, span{From: today + 1, To: today + 1})
	refuses := func(w window) bool { return client.Refusal(s.ask(ctx, w)) != nil }
	fails := func(w window) bool { return s.query(w, 0, 1) == refused || s.ask(ctx, w) != nil }
	// The first form in which the service answers all of some windows. noForm if there is none.
	answering := func(windows ...window) int {
		for s.form = oneBound; s.form < noForm && slices.ContainsFunc(windows, fails); {
			s.form++
		}
		return s.form
	}
	grants := func(size int) bool {
		s.least = max(size, least)
		return s.ask(ctx, twoDays) == nil
	}
	// Any form takes two days that are over: a service that does not answer for them is not asked for more.
	if fails(s.since(0)) {
		if !slices.ContainsFunc(pageSizes, grants) {
			s.least = least
			return false, false
		}
		if granted := s.least; !grants(1) {
			s.least = granted
		}
	}
	now := s.since(2)             // these days may be open
	if answering(now) == noForm { // it fails for one of them
		now = s.since(0)
		answering(now)
	}
	nearest := s.form
	// If it answers for tomorrow, it refuses no dates, but rows of today.
	if nearest == noForm || nearest == toYesterday && s.ask(ctx, later) == nil {
		s.form, s.least = form, least
		return false, false
	}
	limited := false
	if answering(now, before) == noForm { // it refuses many days, or early ones, or a row
		s.form, limited = nearest, nearest >= nearDays
	}
	if limited && *most == 0 {
		*most = maxDays
	}
	if c.widened == 0 && (limited || refuses(oneDay)) {
		c.widened = 1
		if s.ask(ctx, oneDay) != nil {
			c.widened = 0
		}
	}
	s.alone = s.alone || refuses(window{updated: now[updated], created: before[updated]})
	return true, s.form != form || c.widened != widened || s.alone != alone || s.least != least ||
		*most != mostBefore
}

// laterEnd asks whether the service takes a later day as the end of windows by now. Its day may begin before
// UTC's. Without such an end, rows of its new day would be hidden.
func (s *Source) laterEnd(ctx context.Context) {
	if today := s.today(); s.form > nearDays {
		s.form--
		if s.ask(ctx, s.since(2)) != nil || s.today() != today {
			s.form++
		}
	}
}

// hides returns why an answer about the days of a dimension up to now may lack rows although it is complete.
// It returns "" if it does not.
func (s *Source) hides(dimension int, proof dialect.ToDate) string {
	whole := proof.Whole || s.cfg.Dialect.Value(toDates[dimension]) == dialect.Whole
	if last := s.ahead(); last > s.calendar.margin || whole && last+s.calendar.margin >= 0 {
		return ""
	}
	return fmt.Sprintf("the service refuses later %s_to dates than %s, and may hide rows of today",
		dimensions[dimension], s.today()+s.ahead())
}
