package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/storestream/storestream/poller"
	"go.uber.org/zap"
)

const (
	// How often a chunk is tried again for each reason before Read gives up and leaves the waiting to the poller.
	maxReconnects = 6
	maxUnanswered = 1 // of those, after a whole chunkDeadline
	maxRefusals   = 2 // of those, where a pooler refused the login, or was full: it does not say which
	maxLooks      = 3
	maxLagging    = 8
	// lagPatience is how long a standby may lag behind what was read before; after that it is another cluster's.
	lagPatience = 10 * time.Minute
)

// errRewound: the database is not the one that was read before (a restore, another cluster). What was known of it is forgotten; the pass begins again.
var errRewound = errors.New("the database's transaction ids went back: it was restored, or is another one; reading again from the watermark")

var errLagging = errors.New("the server shows less than the one that answered before: the pooler leads to servers that are not equally up to date")

// tries counts what went wrong with one chunk.
type tries struct {
	reconnects, unanswered, looks, lagging int
	pause                                  *backoff.ExponentialBackOff
}

// read gets the next chunk, or only the clock where ask is nil. It tries again what trying again at once may mend.
func (s *Source) read(ctx context.Context, ask question, k key) (*chunk, error) {
	t := tries{pause: backoff.NewExponentialBackOff()}
	t.pause.InitialInterval, t.pause.MaxInterval = 50*time.Millisecond, 3*time.Second
	for {
		limit := s.size.next()
		c, err := s.readOnce(ctx, ask, k, limit)
		if err == nil {
			err = s.follows(&c.clock)
		}
		switch {
		case err == nil:
			s.size.took(c.n, c.bytes, c.first, c.total)
			return c, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, errRewound):
			return nil, err
		}
		s.Log.Debug("a chunk is tried again", zap.Int("limit", limit), zap.Error(err))
		if err := s.remedy(ctx, &t, limit, err); err != nil {
			return nil, err
		}
	}
}

// follows says whether a chunk with this clock may be used after those before it, and if so takes it for the latest.
func (s *Source) follows(c *clock) error {
	switch {
	case s.latest == nil:
	case c.rewound(s.latest):
		s.forget()
		return errRewound
	case c.olderThan(s.latest):
		if s.lagging.IsZero() {
			s.lagging = time.Now()
		}
		if time.Since(s.lagging) < lagPatience {
			return errLagging
		}
		s.forget()
		return errRewound
	}
	s.latest, s.lagging = c, time.Time{}
	return nil
}

// remedy does what err asks for before another try; nil: try again.
func (s *Source) remedy(ctx context.Context, t *tries, limit int, err error) error {
	explained := s.db.explain(s.Resource.Table, err)
	if errors.Is(err, errLagging) {
		if t.lagging++; t.lagging > maxLagging {
			return fmt.Errorf("read %s: %w", s.Resource.Table, err)
		}
		return t.wait(ctx)
	}
	switch remedyFor(err) {
	case smaller:
		if s.Metrics != nil {
			s.Metrics.SQLTimeouts.Inc()
		}
		if !s.size.cancelled(limit) {
			return fmt.Errorf("%w: even %d rows take longer than the server allows: is there an index on (updated_at, id) of %s?",
				explained, limit, s.Resource.Table)
		}
		return nil
	case lookAgain:
		s.table = nil
		if t.looks++; t.looks > maxLooks {
			return explained
		}
		return nil
	case reconnect:
		s.db.dropIdle(err)
		if errors.Is(err, context.DeadlineExceeded) {
			t.unanswered++
		}
		limit := maxReconnects
		if refusal := new(poller.HoldError); errors.As(explained, &refusal) {
			limit = maxRefusals
		}
		if t.reconnects++; t.reconnects > limit || t.unanswered > maxUnanswered {
			return explained
		}
		return t.wait(ctx)
	case hold:
		s.table = nil // whoever mends it may have changed the table
	}
	return explained
}

// dropIdle closes the idle connections after one of them broke: those to a server that was restarted are all dead, and each would cost a try.
func (db *DB) dropIdle(err error) {
	var refused *pgconn.ConnectError
	if !errors.As(err, &refused) {
		db.pool.Reset()
	}
}

func (t *tries) wait(ctx context.Context) error { return pause(ctx, t.pause.NextBackOff()) }

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// readOnce reads one chunk in one transaction.
func (s *Source) readOnce(ctx context.Context, ask question, k key, limit int) (*chunk, error) {
	answered := s.await()
	defer answered()
	if s.table == nil {
		t, err := s.db.look(ctx, s.Resource)
		if err != nil {
			return nil, err
		}
		s.table, s.looked = t, time.Now()
		s.tellMissing()
	}
	c := &chunk{end: k, last: true, answered: answered}
	if ask == nil {
		var err error
		c.clock, err = s.db.snapshot(ctx, catalogueDeadline, nil, nil)
		return c, err
	}
	q := ask(s.table, k, limit)
	started, maxBytes := time.Now(), s.size.bytes()
	var err error
	c.clock, err = s.db.snapshot(ctx, chunkDeadline, &q, func(rows *pgconn.ResultReader) error { return c.take(s.table, rows, limit, maxBytes, started) })
	return c, err
}

// walk reads chunks from k on until the end, and hands each over. The connection is free while take has it.
func (s *Source) walk(ctx context.Context, ask question, k key, take func(c *chunk, from key) error) error {
	for {
		c, err := s.read(ctx, ask, k)
		if err != nil {
			return err
		}
		if err := take(c, k); err != nil || c.last {
			return err
		}
		k = c.end
	}
}

// badPage is the complaint about the first chunk of 20 rows or more of which none can be published; nil while there is none.
type badPage struct {
	rows       int
	field, err string
}

func (b *badPage) hold(table string) error {
	return &poller.HoldError{What: fmt.Sprintf("table %s: all of %d rows read together cannot be published, the first because of %s (%s): "+
		"something bigger is wrong than those rows; none of them is published, and it goes on by itself once they are good", table, b.rows, b.field, b.err)}
}

func pageError(c *chunk) *badPage {
	return &badPage{rows: len(c.rejects), field: c.rejects[0].Field, err: c.rejects[0].Err}
}
