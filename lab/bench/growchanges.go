package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// overlapSeconds is how much of the default overlap is filled before a rate is measured, as if that rate had been going on.
const overlapSeconds = 100

// growingChanges measures what following costs, and how late rows are, at more and more changes a second. A poll reads the whole overlap, so the window
// of a rate is filled before it is measured.
func growingChanges(ctx context.Context, s *stage, f *figures) (err error) {
	n, rates, window := 1_000_000, []int{0, 10, 100, 1000, 5000}, 20*time.Second
	if s.quick {
		n, rates, window = 20_000, rates[:3], 3*time.Second
	}
	dsn, admin, err := s.tableOf(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.dropTable(ctx, n)) }()
	b, err := s.someBroker(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	st, err := s.start(setting{dsn: dsn, broker: b, resources: map[string]string{"orders": ""}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Kill()) }()
	if err := st.awaitReady(ctx, 2*time.Minute); err != nil {
		return err
	}
	a, err := watch(b)
	if err != nil {
		return err
	}
	defer a.close()
	if err := until(ctx, 2*time.Minute, "reading the topic", func() bool { return a.count() >= n }); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, rate := range rates {
		w := &writer{conn: conn, rate: rate, next: 1, committed: map[int64]time.Time{}}
		if err := s.changesAt(ctx, f, w, st, b, a, window); err != nil {
			return fmt.Errorf("%d changes a second: %w", rate, err)
		}
	}
	return nil
}

// changesAt measures one rate.
func (s *stage) changesAt(ctx context.Context, f *figures, w *writer, st *stream, b *broker, a *arrivals, window time.Duration) error {
	if err := w.fill(ctx, st); err != nil {
		return err
	}
	pid := int(w.conn.PgConn().PID())
	took := func() [4]time.Duration {
		return [4]time.Duration{used(st.Pid()), used(s.pgPid) - used(pid), used(pid), used(b.pid)}
	}
	read, err := st.metric(ctx, "storestream_rows_read_total")
	if err != nil {
		return err
	}
	before, began := took(), time.Now()
	if err := w.write(ctx, window); err != nil {
		return err
	}
	elapsed, after := time.Since(began).Seconds(), took()
	again, err := st.metric(ctx, "storestream_rows_read_total")
	if err != nil {
		return err
	}
	late, err := w.lateness(ctx, a)
	if err != nil {
		return err
	}
	x := float64(w.rate)
	share := func(i int) float64 { return 100 * (after[i] - before[i]).Seconds() / elapsed }
	f.add("changes", "% of a core", "storestream", x, share(0))
	f.add("changes", "% of a core", "PostgreSQL, for storestream", x, share(1))
	f.add("changes", "% of a core", "PostgreSQL, for the changes", x, share(2))
	f.add("changes", "% of a core", "broker", x, share(3))
	f.add("changes", "rows read a second", "rows read, of "+fmt.Sprint(overlapSeconds)+" to 120 s of changes", x, (again-read)/elapsed)
	if len(late) > 0 {
		f.add("changes", "ms", "median", x, late.median())
		f.add("changes", "ms", "p99", x, late.quantile(.99))
	}
	s.say("%d changes a second (%.0f reached): storestream %.1f %%, PostgreSQL %.1f %% + %.1f %%, broker %.1f %%; %.0f rows read a second; late: median %.0f ms, p99 %.0f ms", w.rate,
		float64(len(w.committed))/elapsed, share(0), share(1), share(2), share(3), (again-read)/elapsed, late.median(), late.quantile(.99))
	return nil
}

// writer changes rows at a rate, none of them twice.
type writer struct {
	conn      *pgx.Conn
	rate      int
	next      int64 // id
	committed map[int64]time.Time
}

// fill moves what an earlier rate has changed out of the overlap, and fills that with what this rate would have changed.
func (w *writer) fill(ctx context.Context, st *stream) error {
	for _, sql := range []string{"UPDATE orders SET updated_at = updated_at - interval '1 day' WHERE updated_at > now() - interval '10 minutes'", "VACUUM ANALYZE orders"} {
		if _, err := w.conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	before, err := st.metric(ctx, "storestream_rows_published_total")
	if err != nil {
		return err
	}
	n := w.rate * overlapSeconds
	if n == 0 {
		return rest(ctx, 2*time.Second)
	}
	_, err = w.conn.Exec(ctx, "UPDATE orders SET updated_at = now() - (id * 1000000 / $1::int8) * interval '1 microsecond' WHERE id <= $2", w.rate, n)
	if err != nil {
		return err
	}
	w.next = int64(n) + 1
	return st.awaitPublished(ctx, int(before)+n*9/10) // the statement took its time: the oldest may lie before the overlap now
}

// write changes rows for so long, in fifty transactions a second or fewer.
func (w *writer) write(ctx context.Context, window time.Duration) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	began, done := time.Now(), 0
	for time.Since(began) < window {
		if due := int(time.Since(began).Seconds()*float64(w.rate)) - done; due > 0 {
			_, err := w.conn.Exec(ctx, "UPDATE orders SET user_id = user_id + 1, updated_at = now() WHERE id >= $1 AND id < $2", w.next, w.next+int64(due))
			if err != nil {
				return err
			}
			at := time.Now()
			for range due {
				w.committed[w.next] = at
				w.next++
			}
			done += due
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// lateness is by how many milliseconds rows came later to a consumer than they were committed.
func (w *writer) lateness(ctx context.Context, a *arrivals) (late series, err error) {
	for id, at := range w.committed {
		err := until(ctx, 2*time.Minute, "a changed row", func() bool { t, ok := a.of(id); return ok && t.After(at.Add(-time.Second)) })
		if err != nil {
			return nil, err
		}
		seen, _ := a.of(id)
		late.add(seen.Sub(at).Seconds() * 1000)
	}
	return late, nil
}
