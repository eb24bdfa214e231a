package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/wait"
)

// overlap is the default overlap of orders.
const overlap = 2 * time.Minute

// pace is so many changes a second, polled at an interval.
type pace struct {
	rate     int
	interval string
	// The targets: rows read a change, CPU of storestream and of PostgreSQL, p99. If they are empty, the pace
	// is only a point of the plot.
	read, cpu, pgCPU, p99 string
}

// changing measures the cost of following, and the delay of rows, at more and more changes a second.
func changing(ctx context.Context, r *round) error {
	paces := []pace{
		{rate: 1000, interval: "100ms", read: "2", cpu: "5 %", pgCPU: "30 %", p99: "250 ms"},
		{rate: 1000, interval: "1s", read: "2", cpu: "2 %", pgCPU: "5 %", p99: "1,150 ms"},
		{rate: 5000, interval: "1s", read: "2", cpu: "3 %", pgCPU: "15 %", p99: "1,150 ms"},
	}
	if r.number == 0 {
		paces = append([]pace{{rate: 10, interval: "1s"}, {rate: 100, interval: "1s"}}, paces...)
	}
	lead, window := 10*time.Second, 30*time.Second
	if r.quick {
		paces, lead, window = paces[2:3], time.Second, 3*time.Second
	}
	for _, p := range paces {
		if err := changingAt(ctx, r, p, lead, window); err != nil {
			return fmt.Errorf("%d changes a second: %w", p.rate, err)
		}
	}
	return nil
}

// changingAt measures one pace. The overlap is full of changes at that rate from the start, as it would be
// after two minutes: a version that reads it again and again then does so from the first poll on.
func changingAt(ctx context.Context, r *round, p pace, lead, window time.Duration) (err error) {
	const name = "changing"
	full := p.rate * int(overlap/time.Second)
	n := 2 * (full + p.rate*60) // no row changes twice, and half of the table rests
	db, err := r.database(ctx)
	if err != nil {
		return err
	}
	// Not frozen, as rows are that changed two minutes ago.
	fill := "UPDATE orders SET updated_at = now() - id * interval '1 microsecond' * %d WHERE id <= %d"
	err = db.freshTable(ctx, name, n, fmt.Sprintf(fill, 1_000_000/p.rate, full), "ANALYZE orders")
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, db.server.AdminDSN(name))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	w := &writer{conn: conn, rate: p.rate, next: int64(full) + 1, committed: map[int64]time.Time{}}
	writing, stop := context.WithCancel(ctx)
	var failed error
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		failed = w.write(writing)
	}()
	defer func() {
		stop()
		<-wrote
	}()
	set := setting{dsn: db.reader(name), resources: map[string]string{
		storefake.Orders: fmt.Sprintf("interval: %s, overlap: %s", p.interval, overlap)}}
	err = r.running(ctx, set, func(b *broker, st *stream) error {
		if err := st.awaitReady(ctx, 5*time.Minute); err != nil {
			return err
		}
		a, err := watchAll(ctx, b, n)
		if err != nil {
			return err
		}
		defer a.close()
		if err := wait.For(ctx, lead); err != nil {
			return err
		}
		began := time.Now()
		cost, err := costOver(ctx, r, st, window)
		if err != nil {
			return err
		}
		ended := time.Now()
		stop()
		<-wrote
		if failed != nil {
			return failed
		}
		for id, at := range w.committed {
			if at.Before(began) || at.After(ended) {
				delete(w.committed, id)
			}
		}
		late, err := a.lateness(ctx, w.committed)
		if err != nil {
			return err
		}
		reportPace(r, p, cost, float64(len(w.committed)), late)
		return nil
	})
	if err != nil {
		return err
	}
	return db.drop(ctx, name)
}

// cost is the cost of following for a while: shares of a core in percent, and rows.
type cost struct{ cpu, pgCPU, read float64 }

func costOver(ctx context.Context, r *round, st *stream, window time.Duration) (c cost, err error) {
	rows, err := st.metric(ctx, "storestream_rows_read_total")
	if err != nil {
		return c, err
	}
	readers, err := r.pg.readersCPU(ctx)
	if err != nil {
		return c, err
	}
	spent, began := used(st.Pid()), time.Now()
	if err := wait.For(ctx, window); err != nil {
		return c, err
	}
	share := func(d time.Duration) float64 { return 100 * d.Seconds() / time.Since(began).Seconds() }
	c.cpu = share(used(st.Pid()) - spent)
	later, err := r.pg.readersCPU(ctx)
	if err != nil {
		return c, err
	}
	for pid := range readers {
		if _, there := later[pid]; !there {
			return c, fmt.Errorf("a session of storestream's ended while its CPU was measured")
		}
	}
	for pid, d := range later {
		c.pgCPU += share(d - readers[pid])
	}
	after, err := st.metric(ctx, "storestream_rows_read_total")
	c.read = after - rows
	return c, err
}

func reportPace(r *round, p pace, c cost, changes float64, late series) {
	if p.interval == "1s" {
		rate := float64(p.rate)
		r.point("changes", "CPU, % of a core", "storestream", rate, c.cpu)
		r.point("changes", "CPU, % of a core", "PostgreSQL", rate, c.pgCPU)
		r.point("changes", "rows read a change", "", rate, c.read/changes)
		r.point("changes", "p99 of commit to consumer, ms", "", rate, late.quantile(.99))
	}
	if p.read == "" {
		return
	}
	what := fmt.Sprintf("%s changes a second, interval %s: ", terminal.Count(p.rate), p.interval)
	first := p.interval == "100ms"
	r.add(figure{what: what + "rows read a change", target: p.read, format: "%.1f"}, c.read/changes)
	r.add(figure{what + "CPU of storestream", p.cpu + " of a core", "%.1f %%", first}, c.cpu)
	r.add(figure{what + "CPU of PostgreSQL for polls", p.pgCPU + " of a core", "%.1f %%", false}, c.pgCPU)
	r.add(figure{what + "commit to consumer, p99", p.p99, "%.0f ms", first}, late.quantile(.99))
	r.add(figure{what: what + "commit to consumer, median", format: "%.0f ms"}, late.median())
}

// writer changes rows at a rate, each at most once, in some fifty transactions a second.
type writer struct {
	conn      *pgx.Conn
	rate      int
	next      int64 // id
	committed map[int64]time.Time
}

// write changes rows until ctx ends.
func (w *writer) write(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	began, done := time.Now(), 0
	for ctx.Err() == nil {
		if due := int(time.Since(began).Seconds()*float64(w.rate)) - done; due > 0 {
			// Not with ctx: a commit that is broken off may have happened.
			_, err := w.conn.Exec(context.WithoutCancel(ctx), "UPDATE orders SET user_id = user_id + 1, "+
				"updated_at = now() WHERE id >= $1 AND id < $2", w.next, w.next+int64(due))
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
		case <-tick.C:
		}
	}
	return nil
}
