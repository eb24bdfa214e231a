package rest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

const (
	// maxBatchRows is the default of SourceConfig.MaxRows.
	maxBatchRows = 10_000
	// maxBatchBytes is the same in bytes of encoded rows. Ordinary ones take a quarter of it.
	maxBatchBytes = 4 << 20
	// flushEvery is how long rows wait for that, while windows of few rows are read.
	flushEvery = time.Second
	// suspectRows is the number of rows that show more than chance. If a page has so many and no row of it can
	// be published, the fault is not in single rows. If a pass has so many and every row has a field, the field
	// is expected.
	suspectRows = 20
)

// read is the state of one Source.Read, from one plan to the next.
type read struct {
	src *Source
	req poller.Request
	// yield hands a batch on. It returns false if the caller takes no more.
	yield func(poller.Batch, error) bool
	// handed is Settled of the batches that this Source.Read has handed on. Another plan reads rows again
	// that it has settled, and so does a day that is read with its neighbors. The caller has forgotten them,
	// and would publish them twice. So they are left out.
	handed schemas.Instant

	batch   poller.Batch    // not handed on yet
	bytes   int             // of it
	oldest  time.Time       // when the oldest answer with its rows was made. Zero if it has none
	flushed time.Time       // when the batch before was handed on
	settled schemas.Instant // Settled of the next batch
	// The days of a pass: from is the first that is not settled, or past in a first load. Those from next to
	// last are over, and are to be closed, and firstOpen is the first that is not closed. closed is set if a
	// day before it is. open is the first day of the open window, and whole is set if that is to be read whole.
	from, next, firstOpen, last, open day
	closed, whole                     bool
	// unbounded is set if the days before next are not known, and the service gives rows of all days.
	unbounded bool
	// shown is when showToday ended last, or when the read began. It took showing.
	shown   time.Time
	showing time.Duration
	// failed is the newest failure that may be stepped over.
	failed *client.RequestError
	// delayed is the first reason why the resource settles no further.
	delayed string

	// The rows of the newest page, and their versions that the poller knows. The memory is used again.
	rows   []paging.Row
	found  []poller.Known
	fields fields
	// old, if not empty, says that an answer came from a cache: in a pass, one about the open window.
	old string
	met bool // a page had a row
	// sought are the suspects of a Lookup that no page has shown.
	sought map[int64]bool
	proofs [2]dialect.ToDate // by this read's answers, that the to_ dates of a dimension take in whole days
	// tried is set once the read has looked how the service reads created_to, which it does when a set is
	// cut. unsure says why it did not find out.
	tried  bool
	unsure string
	// replan is set when rows show that the service cuts days otherwise than the plan assumes. Then the read
	// ends with errReplan.
	replan bool
	// formLearned is set once a refusal made this read ask in which form the service answers windows.
	formLearned bool
	// spoiled is the first page without a row that could be published. good is set once a row could.
	spoiled *poller.BlockedError
	good    bool
}

// set describes w to package paging.
func (rd *read) set(w window, growing bool) paging.Set {
	s := rd.src
	today := min(s.today()+s.calendar.margin, s.horizon(created))
	return paging.Set{Created: w[created], Growing: growing, Today: today,
		Began: int64(s.clock.Service()), Uncut: s.alone && w[updated] != always}
}

// settle moves settled over the days before firstOpen, which was read, whole or not. A closed day that is not
// settled stays known, so that the next pass need not read it again.
func (rd *read) settle(whole bool) {
	if s := rd.src; rd.closed {
		rd.settled = s.calendar.settledBefore(rd.firstOpen, whole)
		maps.DeleteFunc(s.days, func(d day, _ pastDay) bool { return d < dayOf(rd.settled)+s.calendar.margin })
	}
}

// delay notes a reason why the resource settles no further.
func (rd *read) delay(why string) { rd.delayed = cmp.Or(rd.delayed, why) }

// pages asks the service for the pages of w that m wants to see, and hands on their rows.
func (rd *read) pages(ctx context.Context, w window, m *paging.Machine) (o paging.Outcome, err error) {
	s := rd.src
	defer func() {
		m.Stop()
		s.cfg.Metrics.PagePasses.Add(float64(m.Outcome().Passes))
	}()
	for q, ok := m.Next(); ok; q, ok = m.Next() {
		part := window{updated: w[updated], created: q.Created}
		asked := time.Now()
		var failed *client.RequestError
		p, err := s.endpoint.Page(ctx, s.query(part, q.Page, q.Size), s.reader.Tries())
		if err != nil {
			failed, err = rd.failure(ctx, part, q.Page, q.Size, err)
		}
		if err != nil {
			return o, err
		}
		a := rd.answer(p, failed, part, q.Page, asked)
		s.endpoint.Release()
		switch {
		case rd.replan:
			err = errReplan
		case failed == nil:
			err = rd.fields.check(ctx, rd, part, q.Page, q.Size)
		}
		if cut := q.Created.To != future && !rd.proofs[created].Whole; cut && err == nil {
			if !rd.tried {
				rd.tried = true
				rd.unsure, err = rd.learnUpTo(ctx, created, always)
			}
			a.Doubt = cmp.Or(a.Doubt, rd.unsure)
		}
		if err != nil {
			return o, err // the rows go nowhere: the batch is dropped
		}
		a.Doubt = cmp.Or(a.Doubt, rd.early(w, m.Growing(), p.Date))
		m.Answer(a)
		if b := &rd.batch; len(b.Rows)+len(b.Same)+len(b.Rejects) >= s.cfg.MaxRows || rd.bytes >= maxBatchBytes {
			if err := rd.flush(ctx, nil); err != nil {
				return o, err
			}
		}
	}
	return m.Outcome(), nil
}

// early returns why an answer with this Date proves nothing about a set that only shrinks, if it was made
// too early.
//
// Such a set is one of days that are over, by an answer that came before. If an answer of its own was made
// before that, the Date that came before was another server's, or this one is from a cache.
func (rd *read) early(w window, growing bool, made schemas.Instant) string {
	if growing || made == schemas.MinInstant ||
		made >= startOf(min(w[updated].To, w[created].To)+1+rd.src.calendar.widened).Add(rd.src.cfg.Overlap) {
		return ""
	}
	return "by its own Date, an answer was made before this was over: the service's servers have " +
		"different clocks, or one was set"
}

// checkEnd looks whether w, which was read whole, lacks rows of its last day because the service reads to_
// dates as midnights. If w ends with today, it also lacks those of dates that the service refuses.
func (rd *read) checkEnd(ctx context.Context, w window, o *paging.Outcome) (err error) {
	for dimension, days := range w {
		switch {
		case !o.Whole || days == always:
		case days.To == future:
			o.Why = rd.src.hides(dimension, rd.proofs[dimension])
		case dimension == created || w[created] == always:
			o.Why, err = rd.learnUpTo(ctx, dimension, span{From: days.To, To: days.To + 1})
		}
		o.Whole = o.Whole && o.Why == ""
	}
	return err
}

// answer returns the facts of p, or of the request's failure, and collects the rows for the batch. w and
// page were asked for, at asked. answer sets replan if the rows show that the plan is wrong.
func (rd *read) answer(
	p client.Page, failed *client.RequestError, w window, page int, asked time.Time,
) paging.Answer {
	s := rd.src
	doubt := cached(p.Age)
	rd.old = cmp.Or(rd.old, doubt)
	beyond := paging.Answer{Beyond: true, Count: -1, Doubt: doubt}
	if failed != nil {
		// A page above 0 is refused for its number: the service answers page 0 of this window.
		beyond.Failed, beyond.Beyond = failed.Error(), page > 0 && client.Refusal(failed) != nil
		return beyond
	}
	if page == 0 {
		s.firstPage, s.answered = p.Number, w
	} else if p.Number >= 0 && s.firstPage >= 0 && p.Number != s.firstPage+page {
		return beyond // the service gives the last page instead of one past the end
	}
	a := paging.Answer{More: p.More, Unsure: p.Unsure, Count: p.Count, Size: p.Size, Doubt: doubt}
	if p.Age > s.cfg.Overlap {
		// An older state that is shown for an overlap is taken for the row's. So rows may not be older.
		return a
	}
	if made := asked.Add(-p.Age); rd.oldest.IsZero() || made.Before(rd.oldest) {
		rd.oldest = made
	}
	// Sets are cut by the days on which rows were created. A set that fits a page, or is one day, is not cut.
	several := p.More || p.Unsure || page > 0 || p.Count > len(p.Rows)
	rd.parse(&a, p.Rows, w, several && !w[created].Single())
	for _, row := range a.Rows {
		if row.Updated != paging.NoTime {
			rd.learn(updated, schemas.Instant(row.Updated), w[updated])
		}
	}
	rd.replan = rd.replan || s.calendar.check(&a, w[updated])
	return a
}

// cached returns why an answer that was made so long before its request proves nothing. It returns "" if age
// is zero.
//
// The claims of paging rest on answers that are true of one instant each, in the order of their requests.
func cached(age time.Duration) string {
	if age == 0 {
		return ""
	}
	return "answers are out of a cache, though storestream asks for fresh ones (Cache-Control: no-cache). " +
		"Have the proxy before the service let such requests through, or set store.base_url to the service " +
		"itself"
}

const (
	// mostGlances is how many pages are searched for a row that makes a difference.
	mostGlances = 10
	// fewRows is how many rows in a row a glance steps over.
	fewRows = 3
)

// glance looks at the pages of w from one on, of so many rows, until one is enough. It hands no row on, so
// it may ask for anything. A service may say of a page without rows that more follow: of some pages, or of
// every page. doubt, if not empty, says why the answers prove nothing.
//
// glance steps over what fails alone, a row in the end: a page may be too heavy, so smaller ones are asked
// for first. It asks for rows without any bound up to tomorrow. If that fails, it asks up to today. If that
// fails too, some of the rows may do: those up to yesterday, those of the days that are not settled, those
// of the last month. That these show nothing proves nothing.
func (rd *read) glance(
	ctx context.Context, w window, page, size int, enough func(client.Page) bool,
) (doubt string, err error) {
	s, rows, skipped, missed, first, full := rd.src, 0, 0, "", page, size
	defer s.endpoint.Release()
	var others []span
	today := min(s.today(), s.horizon(updated))
	if w == (window{always, always}) {
		w[updated].To = today + 1
		others = []span{{From: past, To: today}, {From: past, To: today - 1}, {From: rd.firstOpen, To: future},
			{From: today - 30, To: future}}
	}
	for glances := 0; glances < mostGlances; {
		var failed *client.RequestError
		p, err := s.endpoint.Page(ctx, s.query(w, page, size), s.reader.Tries())
		if err != nil {
			failed, err = rd.failure(ctx, w, page, size, err)
		}
		switch {
		case err != nil:
			return "", err
		case failed == nil && page == 0:
			s.answered = w
		case failed == nil:
		case page > 0 && client.Refusal(failed) != nil: // it refuses the number of the page
			return cmp.Or(doubt, missed), nil
		case size > 1 && (len(others) == 0 || client.Refusal(failed) == nil): // perhaps it is too heavy
			page, size = page*10, max(1, size/10)
			continue
		case len(others) > 0:
			if w[updated].To <= today {
				missed = failed.Error()
			}
			w[updated], others, page, size = others[0], others[1:], first, full
			continue
		default:
			missed = cmp.Or(missed, failed.Error())
			if page, skipped = page+1, skipped+1; skipped == fewRows || client.Refusal(failed) != nil {
				return cmp.Or(doubt, missed), nil
			}
			continue
		}
		s.reader.LearnCount(p.Count, max(size, len(p.Rows)))
		rows += len(p.Rows)
		glances++
		if doubt = cmp.Or(doubt, cached(p.Age)); enough(p) {
			return doubt, nil
		}
		if !p.More && !p.Unsure || s.reader.NoEnd && len(p.Rows) == 0 {
			return cmp.Or(doubt, missed), nil
		}
		page++
	}
	if rows == 0 && missed == "" {
		s.reader.NoEnd = true
	}
	return cmp.Or(doubt, missed), nil
}

// parse turns rows into records and rejects for the batch, and into the rows of a.
//
// If a page has many rows and all break the contract, parse leaves them out of the batch. They have one
// fault (a renamed field, a new format), which would fill the dead letters. Their window proves nothing, so
// once the fault is mended the rows are read again.
//
// w was asked for. withCreated makes parse note each row's own day.
//
// A pass reads the open window again and again. So parse does not parse a row of it with a text that the
// poller knows, unless it has to learn from the time of creation.
func (rd *read) parse(a *paging.Answer, rows [][]byte, w window, withCreated bool) {
	b := &rd.batch
	parser := rd.src.parser
	learns := w[created].To != future && !rd.proofs[created].Whole
	open := rd.req.Find != nil && w[updated].To == future
	rd.find(rows, open && !learns)
	bad := len(b.Rejects)
	a.Rows = rd.rows[:0]
	rd.met = rd.met || len(rows) > 0
	for i, raw := range rows {
		if row, is := rd.same(i, raw); is {
			a.Rows = append(a.Rows, row)
			continue
		}
		row := paging.Row{Created: past}
		rec, reject := parser.Parse(raw)
		if reject == nil {
			if open {
				rec.Text = parser.Text(raw, &rec)
			}
			delete(rd.sought, rec.ID)
			row.ID, row.Updated = uint64(rec.ID), int64(rec.UpdatedAt)
			rd.good = true
			if rec.UpdatedAt >= rd.handed {
				b.Rows = append(b.Rows, rec)
				rd.bytes += len(rec.Value)
			}
		} else {
			row.ID, row.Updated = uint64(reject.ID), int64(reject.UpdatedAt)
			if reject.UpdatedAt == schemas.MinInstant {
				row.Updated = paging.NoTime
			}
			if reject.HasID {
				delete(rd.sought, reject.ID)
			} else {
				row.ID = xxhash.Sum64(raw)
			}
			b.Rejects = append(b.Rejects, *reject)
			rd.bytes += len(reject.Row)
		}
		if withCreated || learns {
			at, ok := parser.CreatedAt(raw)
			if ok {
				rd.learn(created, at, w[created])
			}
			if row.Undated = withCreated && !ok; withCreated && ok {
				row.Created = dayOf(at)
			}
		}
		a.Rows = append(a.Rows, row)
	}
	rd.rows = a.Rows
	if n := rd.src.cfg.Metrics.UnknownFields(parser.Unknown()); n > 0 {
		rd.src.cfg.Log.Info("the service sends fields that the schema does not know: they are ignored",
			zap.Int("fields", n), zap.String("do", "storestream check --names"))
	}
	if n := len(b.Rejects) - bad; n >= suspectRows && n == len(rows) {
		first := b.Rejects[bad]
		a.Doubt = "no row of a page can be published"
		if rd.spoiled == nil {
			rd.spoiled = &poller.BlockedError{What: fmt.Sprintf("%s: none of the %d rows of a page can be published; "+
				"the first breaks the contract in %q: %s: something bigger is wrong than those rows. Nothing is "+
				"settled past that page, and it goes on by itself once they are good",
				rd.src.cfg.Resource.Name, n, first.Field, first.Err)}
		}
		b.Rejects = b.Rejects[:bad]
	}
}

// find asks the poller for the versions of rows that it knows, if asked is set.
func (rd *read) find(rows [][]byte, asked bool) {
	rd.found = rd.found[:0]
	if !asked {
		return
	}
	for _, raw := range rows {
		id, _ := rd.src.parser.ID(raw)
		rd.found = append(rd.found, poller.Known{ID: id})
	}
	rd.req.Find(rd.found)
}

// same puts row i of a page into the batch without its value, if it has the text of the published version.
func (rd *read) same(i int, raw []byte) (row paging.Row, is bool) {
	if len(rd.found) == 0 || !rd.found[i].Known || rd.found[i].Version.Marked {
		return row, false
	}
	created, is := rd.src.parser.Again(raw, rd.found[i].Note)
	if !is {
		return row, false
	}
	rd.good = true
	updated := schemas.InstantOfMillis(rd.found[i].Version.Millis)
	if updated >= rd.handed {
		rd.batch.Same = append(rd.batch.Same, rd.found[i])
	}
	return paging.Row{ID: uint64(rd.found[i].ID), Updated: int64(updated), Created: dayOf(created)}, true
}

// flush hands the batch on. A pass that took its rows out of a cache does not count for lag.
func (rd *read) flush(ctx context.Context, done *poller.Done) error {
	if done != nil && rd.req.Kind == poller.Pass {
		done.Fields = rd.fields.names()
		if rd.old != "" {
			done.Started = schemas.MinInstant
			done.Delayed = cmp.Or(done.Delayed, rd.old)
		}
	}
	b := rd.batch
	b.Settled, b.Done, b.Dialect = rd.settled, done, rd.src.cfg.Dialect.Found()
	b.Nulls = rd.src.parser.Nulls()
	if rd.failed != nil && rd.req.Kind == poller.Pass {
		b.Failed = rd.failed.Error()
	}
	if !rd.oldest.IsZero() {
		b.Age = time.Since(rd.oldest)
	}
	rd.batch, rd.bytes, rd.oldest = poller.Batch{}, 0, time.Time{}
	if len(b.Rows) >= maxBatchRows { // as many will come, and growing to it would copy them five times
		rd.batch.Rows = make([]schemas.Record, 0, maxBatchRows+paging.PageSize)
	}
	if len(b.Same) >= maxBatchRows {
		rd.batch.Same = make([]poller.Known, 0, maxBatchRows+paging.PageSize)
	}
	rd.flushed, rd.handed = time.Now(), max(rd.handed, b.Settled)
	if !rd.yield(b, nil) {
		return errBrokenOff
	}
	return context.Cause(ctx) // a batch handed over while the caller stops may be dropped
}

// finish hands on the last batch, with done, and returns the error that the read ends with.
func (rd *read) finish(ctx context.Context, done *poller.Done) error {
	if rd.spoiled == nil {
		return rd.flush(ctx, done)
	}
	if err := rd.flush(ctx, nil); err != nil {
		return err
	}
	rd.spoiled.Publishes = rd.good
	return rd.spoiled
}

// incomplete hands on the rows of w, and returns the error of a read that has no other way to report that
// these are not all.
func (rd *read) incomplete(ctx context.Context, w window, o paging.Outcome) error {
	if err := rd.finish(ctx, nil); err != nil {
		return err
	}
	return fmt.Errorf("%s could not be read completely: %s", w, o.Why)
}

// No row, page, window or day keeps the rows behind it from being read. A request that fails by itself is
// stepped over: package paging narrows the place down, and says of the set that it is not whole. So the day
// of such a place stays open, and a full reading ends with an error. The rows of that place count neither as
// read nor as deleted.
//
// A service that is down fails every request. So a request is stepped over only if the service answers
// another question at that moment (read.failure).

// failure looks into err, the error of a request for a page of w. It returns the failure of this request, if
// that may be stepped over: the service refuses the number of the page, or answers another question.
// Otherwise the second error ends the read. It is errReplan if the service answers windows in another form.
func (rd *read) failure(ctx context.Context, w window, page, size int, err error) (
	failed *client.RequestError, _ error,
) {
	s := rd.src
	query, refusal := s.query(w, page, size), client.Refusal(err) != nil
	others := []window{s.answered, s.since(0), on(updated, span{From: past, To: s.today() - 1})}
	if page == 0 && refusal && !rd.formLearned {
		rd.formLearned = true
		answers, changed := s.learnForm(ctx, query)
		if !answers {
			others = slices.Delete(others, 1, 2)
		}
		if changed {
			s.cfg.Log.Info("the service refuses requests of one form, and answers those of another", zap.Error(err),
				zap.Bool("both_bounds", s.form > oneBound), zap.Bool("day_after", s.calendar.widened > 0),
				zap.Bool("one_dimension", s.alone), zap.Int("page_size", s.least))
			return nil, errReplan
		}
	}
	switch failed = client.Failure(err, s.cfg.Resource.Path); {
	case failed == nil:
		return nil, refused(err)
	case page > 0 && refusal:
		s.reader.Failed()
		return failed, nil
	}
	s.reader.Failed()
	rd.failed = failed
	for _, other := range others {
		if s.query(other, 0, 1) == query || other == (window{}) {
			continue
		}
		err := s.ask(ctx, other)
		switch {
		case err == nil && rd.req.Kind == poller.Pass && time.Since(rd.flushed) >= s.linger:
			return failed, rd.flush(ctx, nil) // people see why it takes long
		case err == nil:
			return failed, nil
		}
		also := client.Failure(err, s.cfg.Resource.Path)
		if also == nil || also.Status == 0 { // the next question would take as long
			break
		}
	}
	return nil, refused(err)
}

// refused returns err as one that blocks the resource, if it is the service's refusal of a request.
func refused(err error) error {
	if failed := client.Refusal(err); failed != nil {
		return &poller.BlockedError{What: "the service refuses a request", Err: failed}
	}
	return err
}
