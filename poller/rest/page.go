package rest

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"go.uber.org/zap"
)

const (
	// maxBatchRows is how many rows are collected before they are handed on; flushEvery how long they wait, while windows of few rows are read.
	maxBatchRows = 10_000
	flushEvery   = time.Second
	// manyRows: when this many or more stand on a page and none can be published, the fault is not in the rows.
	manyRows = 20
)

// fetch asks for a page of w, hands its rows on, and tells what it saw.
func (rd *read) fetch(ctx context.Context, w window, page, size int) (glimpse, error) {
	e, err := rd.ask(ctx, w, page, size)
	if status := client.Refusal(err); page > 0 && status != nil &&
		(status.Status == http.StatusBadRequest || status.Status == http.StatusNotFound) {
		// The service answered page 0 of the same window, so it refuses the number of the page.
		return glimpse{beyond: true, count: -1}, nil
	}
	if err != nil {
		return glimpse{}, rd.refused(err, w)
	}
	if page == 0 {
		rd.pageBase = e.Number
	} else if e.Number >= 0 && rd.pageBase >= 0 && e.Number != rd.pageBase+page {
		return glimpse{beyond: true, count: -1}, nil // it gives the last page instead of one past the end
	}
	g := glimpse{more: e.More, count: e.Count, size: e.Size, rows: make([]sighting, 0, len(e.Rows))}
	if e.More {
		rd.largest[size] = max(rd.largest[size], len(e.Rows))
	}
	rd.parse(&g, e.Rows, e.More || page > 0)
	if !rd.sorting.fits(g) {
		rd.sorting = unsorted
	}
	if err := rd.inside(&g, w.updated); err != nil {
		return g, err
	}
	if len(rd.batch.Rows)+len(rd.batch.Rejects) >= maxBatchRows {
		return g, rd.flush(nil)
	}
	return g, nil
}

// ask sends the request. The rows of the answer are good until the next request.
func (rd *read) ask(ctx context.Context, w window, page, size int) (client.Page, error) {
	return rd.endpoint.Page(ctx, w.query(page, size))
}

// refused says what was asked for where err is the service's refusal of it.
func (rd *read) refused(err error, w window) error {
	if status := client.Refusal(err); status != nil {
		return &poller.HoldError{What: fmt.Sprintf("asking for %s of %s", w, rd.Resource.Name), Err: status}
	}
	return err
}

// anyRow tells whether w has a row. It publishes nothing.
func (rd *read) anyRow(ctx context.Context, w window) (bool, error) {
	e, err := rd.ask(ctx, w, 0, 1)
	return len(e.Rows) > 0 || e.More, rd.refused(err, w)
}

// parse turns rows into records and sightings. A page of many rows of which none can be published is not handed on: it would fill the dead letters with
// what is one fault (a renamed field, a new format), and once that is mended the rows are read again, for its window proves nothing.
func (rd *read) parse(g *glimpse, rows [][]byte, withCreated bool) {
	b := &rd.batch
	good, bad := len(b.Rows), len(b.Rejects)
	for _, raw := range rows {
		s := sighting{created: past}
		rec, reject := rd.parser.Parse(raw)
		if reject == nil {
			s.key, s.updated = key{n: uint64(rec.ID)}, rec.UpdatedAt
			b.Rows = append(b.Rows, rec)
		} else {
			s.key, s.updated = key{n: uint64(reject.ID)}, reject.UpdatedAt
			if !reject.HasID {
				s.key = key{n: xxhash.Sum64(raw), nameless: true}
			}
			b.Rejects = append(b.Rejects, *reject)
		}
		if withCreated {
			if created, ok := rd.parser.CreatedAt(raw); ok {
				s.created = dayOf(created)
			}
		}
		g.rows = append(g.rows, s)
	}
	for _, name := range rd.parser.Unknown() {
		rd.Metrics.UnknownFields(name).Inc()
		rd.Log.Info("the service sends a field that the schema does not know: it is ignored", zap.String("field", name))
	}
	if n := len(b.Rejects) - bad; n >= manyRows && len(b.Rows) == good {
		first := b.Rejects[bad]
		g.doubt = "no row of a page can be published"
		if rd.spoiled == nil {
			rd.spoiled = fmt.Errorf("%s: none of the %d rows of a page can be published; the first breaks the contract in %q: %s. "+
				"Nothing is settled past it, and it is tried again", rd.Resource.Name, n, first.Field, first.Err)
		}
		b.Rejects = b.Rejects[:bad]
	}
}

// flush hands the batch on.
func (rd *read) flush(done *poller.Done) error {
	b := rd.batch
	b.Settled, b.Done = rd.settled, done
	rd.batch = poller.Batch{}
	rd.flushed = time.Now()
	return rd.emit(b)
}

// flushIfDue hands on what has waited long enough.
func (rd *read) flushIfDue() error {
	if time.Since(rd.flushed) < rd.linger {
		return nil
	}
	return rd.flush(nil)
}
