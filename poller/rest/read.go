package rest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
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
	// maxBatchRows is how many rows are collected before they are handed on.
	maxBatchRows = 10_000
	// maxBatchBytes is the same in bytes of encoded rows: ordinary ones take a quarter of it.
	maxBatchBytes = 4 << 20
	// flushEvery is how long rows wait for that, while windows of few rows are read.
	flushEvery = time.Second
	// manyRows: when at least so many rows stand on a page and none can be published, the fault is not in the
	// rows.
	manyRows = 20
)

// read is one Read in hand: it asks for pages, hands their rows on in batches, and shows paging what it needs
// of them.
type read struct {
	src  *Source
	req  poller.Request
	emit func(poller.Batch) error

	batch  poller.Batch
	bytes  int          // in it
	oldest time.Time    // when the oldest answer with its rows was made. Zero if it has none
	rows   []paging.Row // of the last page; its memory is used again
	fields fields
	made   schemas.Instant // the Date of the newest answer, MinInstant where it has none
	// old says that an answer was out of a cache, in a pass one about the open window; "": none was.
	old     string
	flushed time.Time // when the last batch was emitted
	met     bool      // a page had a row
	// sought are the suspects of a Lookup that no page has shown.
	sought map[int64]bool
	// settled is what the next batch says; MinInstant: nothing.
	settled schemas.Instant
	// updatedTo and createdTo are the proofs by this read's answers that to_ dates take in whole days.
	updatedTo, createdTo dialect.ToDate
	// tried: when a set was cut, it was looked for how the service reads created_to. unsure is why that was not
	// found out.
	tried  bool
	unsure string
	// replan is set once an answer has shown that days are to be asked for in another way.
	replan bool
	// spoiled is the first page of which nothing could be published.
	spoiled *poller.HoldError
	// good: a row was handed on, or waits for it in the batch.
	good bool
}

// set is w for paging, which asks for the pages of its parts here.
//
// A set that only shrinks is one of days that are over, by an answer that came before. If an answer of its
// own was made before that, it proves nothing: the Date that came before was another server's, or this one
// is from a cache.
func (rd *read) set(w window, motion paging.Motion) paging.Set {
	over := schemas.MinInstant
	if motion == paging.Shrinking {
		over = startOf(min(w.updated.To, w.created.To) + 1).Add(rd.src.cfg.Overlap)
	}
	touching := rd.src.calendar.createdMidnight
	return paging.Set{Created: w.created, Motion: motion, Like: past, Touching: touching,
		Ask: func(ctx context.Context, created span, page, size int) (paging.Answer, error) {
			a, err := rd.page(ctx, window{w.updated, created}, page, size)
			if err == nil && created.To != future && !rd.createdTo.Whole {
				if !rd.tried {
					rd.tried = true
					rd.unsure, err = rd.learnUpTo(ctx, dialect.CreatedTo, window{updated: always, created: always})
				}
				a.Doubt = cmp.Or(a.Doubt, rd.unsure)
			}
			if rd.made != schemas.MinInstant && rd.made < over && a.Doubt == "" {
				a.Doubt = "by its own Date, an answer was made before this was over: the service's servers have " +
					"different clocks, or one was set"
			}
			return a, err
		}}
}

// page asks for a page of w and hands its rows on.
func (rd *read) page(ctx context.Context, w window, page, size int) (paging.Answer, error) {
	asked := time.Now()
	p, err := rd.src.endpoint.Page(ctx, rd.src.calendar.query(w, page, size))
	defer rd.src.endpoint.Release()
	doubt := cached(p.Age)
	rd.made, rd.old = p.Date, cmp.Or(rd.old, doubt)
	if status := client.Refusal(err); page > 0 && status != nil &&
		(status.Status == http.StatusBadRequest || status.Status == http.StatusNotFound) {
		// The service answers page 0 of this window, so it refuses the number of the page.
		return paging.Answer{Beyond: true, Count: -1, Doubt: doubt}, nil
	}
	if err != nil {
		return paging.Answer{}, rd.refused(err, w)
	}
	if page == 0 {
		rd.src.firstPage = p.Number
	} else if p.Number >= 0 && rd.src.firstPage >= 0 && p.Number != rd.src.firstPage+page {
		// The service gives the last page instead of one past the end.
		return paging.Answer{Beyond: true, Count: -1, Doubt: doubt}, nil
	}
	a := paging.Answer{More: p.More, Count: p.Count, Size: p.Size, Doubt: doubt}
	if p.Age > rd.src.cfg.Overlap {
		// An older state that is shown for an overlap is taken for the row's, so rows may not be older than
		// that.
		return a, nil
	}
	if made := asked.Add(-p.Age); rd.oldest.IsZero() || made.Before(rd.oldest) {
		rd.oldest = made
	}
	// Sets are cut by when their rows were created. What fits a page, or is one day, is not cut.
	several := p.More || page > 0 || p.Count > len(p.Rows)
	rd.parse(&a, p.Rows, w.created, several && !w.created.Single())
	rd.src.endpoint.Release()
	for _, row := range a.Rows {
		if row.Updated != paging.NoTime {
			rd.learn(dialect.UpdatedTo, schemas.Instant(row.Updated), w.updated)
		}
	}
	if rd.replan || rd.src.calendar.check(&a, w.updated, rd.src.cfg.Log) {
		return a, errAskAnew
	}
	if err := rd.fields.check(ctx, rd.src, rd.src.calendar.query(w, page, size)); err != nil {
		return a, err // and the rows go nowhere: the batch in hand is dropped
	}
	if len(rd.batch.Rows)+len(rd.batch.Rejects) >= maxBatchRows || rd.bytes >= maxBatchBytes {
		return a, rd.flush(nil)
	}
	return a, nil
}

// cached is why an answer proves nothing that was made so long before its request; "" where it was made for
// it.
//
// The claims of paging rest on answers that are true of one instant each, in the order of their requests.
func cached(age time.Duration) string {
	if age == 0 {
		return ""
	}
	unit := time.Second
	for _, u := range []time.Duration{10 * time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		if age >= u { // rounded: a text that changed with every answer would say something new each time
			unit = u
		}
	}
	return fmt.Sprintf("answers are out of a cache, %s old and more, though storestream asks for fresh ones "+
		"(Cache-Control: no-cache). Have what stands before the service let such requests through, or set "+
		"store.base_url to the service itself", age.Truncate(unit))
}

// anyRow tells whether w has a row, and how many the service counts (-1: it does not). It publishes nothing.
// A service may say of a page without rows that more follow: of some pages, or of all for ever. So an answer
// without rows that counts some proves nothing.
func (rd *read) anyRow(ctx context.Context, w window) (some bool, counted int, err error) {
	const mostEmpty = 4
	counted = -1
	for page := range mostEmpty {
		p, err := rd.src.endpoint.Page(ctx, rd.src.calendar.query(w, page, 1))
		rd.src.endpoint.Release()
		rd.src.reader.LearnCount(p.Count, 1)
		none := page > 0 && client.Refusal(err) != nil // it refuses the number of the page
		if err != nil && !none {
			return false, -1, rd.refused(err, w)
		}
		if !none {
			counted = max(counted, p.Count)
		}
		if none || len(p.Rows) > 0 || !p.More || rd.src.reader.NoEnd() {
			return len(p.Rows) > 0, counted, nil
		}
	}
	rd.src.reader.LearnNoEnd()
	return false, counted, nil
}

// refused says what was asked for where err is the service's refusal of it.
func (rd *read) refused(err error, w window) error {
	if status := client.Refusal(err); status != nil {
		return &poller.HoldError{What: fmt.Sprintf("asking for %s of %s", w, rd.src.cfg.Resource.Name), Err: status}
	}
	return err
}

// parse turns rows into records and rejects for the batch, and into what paging looks at.
//
// It does not hand on a page of many rows of which none can be published: that would fill the dead letters
// with what is one fault (a renamed field, a new format). Its window proves nothing, so once the fault is
// mended the rows are read again.
//
// asked are the days of creation that were asked for.
func (rd *read) parse(a *paging.Answer, rows [][]byte, asked span, withCreated bool) {
	b := &rd.batch
	parser := rd.src.parser
	good, bad := len(b.Rows), len(b.Rejects)
	a.Rows = rd.rows[:0]
	rd.met = rd.met || len(rows) > 0
	for _, raw := range rows {
		row := paging.Row{Created: past}
		rec, reject := parser.Parse(raw)
		if reject == nil {
			delete(rd.sought, rec.ID)
			row.ID, row.Updated = uint64(rec.ID), int64(rec.UpdatedAt)
			b.Rows = append(b.Rows, rec)
			rd.bytes += len(rec.Value)
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
		if withCreated || asked.To != future && !rd.createdTo.Whole {
			created, ok := parser.CreatedAt(raw)
			if ok {
				rd.learn(dialect.CreatedTo, created, asked)
			}
			if row.Undated = withCreated && !ok; withCreated && ok {
				row.Created = dayOf(created)
			}
		}
		a.Rows = append(a.Rows, row)
	}
	rd.rows = a.Rows
	for _, name := range parser.Unknown() {
		rd.src.cfg.Metrics.UnknownFields(name).Inc()
		rd.src.cfg.Log.Info("the service sends a field that the schema does not know: it is ignored",
			zap.String("field", name))
	}
	rd.good = rd.good || len(b.Rows) > good
	if n := len(b.Rejects) - bad; n >= manyRows && len(b.Rows) == good {
		first := b.Rejects[bad]
		a.Doubt = "no row of a page can be published"
		if rd.spoiled == nil {
			rd.spoiled = &poller.HoldError{What: fmt.Sprintf("%s: none of the %d rows of a page can be published; "+
				"the first breaks the contract in %q: %s: something bigger is wrong than those rows. Nothing is "+
				"settled past that page, and it goes on by itself once they are good",
				rd.src.cfg.Resource.Name, n, first.Field, first.Err)}
		}
		b.Rejects = b.Rejects[:bad]
	}
}

// flush hands the batch on. A pass that took its rows out of a cache does not count for lag.
func (rd *read) flush(done *poller.Done) error {
	if done != nil && rd.req.Kind == poller.Pass {
		done.Fields = rd.fields.names()
		if rd.old != "" {
			done.Started = schemas.MinInstant
			done.Held = cmp.Or(done.Held, rd.old)
		}
	}
	b := rd.batch
	b.Settled, b.Done, b.Dialect = rd.settled, done, rd.src.cfg.Dialect.Found()
	if !rd.oldest.IsZero() {
		b.Age = time.Since(rd.oldest)
	}
	rd.batch, rd.bytes, rd.oldest = poller.Batch{}, 0, time.Time{}
	if len(b.Rows) >= maxBatchRows { // as many will come, and growing to it would copy them five times
		rd.batch.Rows = make([]schemas.Record, 0, maxBatchRows+paging.PageSize)
	}
	rd.flushed = time.Now()
	return rd.emit(b)
}

// flushIfDue hands on what has waited long enough.
func (rd *read) flushIfDue() error {
	if time.Since(rd.flushed) < rd.src.linger {
		return nil
	}
	return rd.flush(nil)
}

// finish emits what is left, with done, and returns the error that the read ends with.
func (rd *read) finish(done *poller.Done) error {
	if rd.spoiled == nil {
		return rd.flush(done)
	}
	if err := rd.flush(nil); err != nil {
		return err
	}
	rd.spoiled.Publishes = rd.good
	return rd.spoiled
}
