package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// load is one first load of one resource.
type load struct {
	rows             int
	cpu, elapsed     time.Duration // of storestream, start and end included; from its start to the visible watermark that says "complete"
	brokerCPU, pgCPU time.Duration
	peak             int64
}

// firstLoad has a new storestream fill the topic of one resource, which is empty, and exit.
func (s *stage) firstLoad(ctx context.Context, b *broker, resource string, set setting) (l load, err error) {
	set.resources, set.once, set.broker = map[string]string{resource: ""}, true, b
	if s.profile != "" {
		if err := os.MkdirAll(s.profile, 0o700); err != nil {
			return l, err
		}
		set.profile, set.once = filepath.Join(s.profile, fmt.Sprintf("%s-%d", resource, s.n)), false
	}
	pg := used(s.pgPid)
	bc := used(b.pid)
	st, err := s.start(set)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, st.Kill()) }()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	go func() { // a load that ends with an error says so at once
		select {
		case <-st.Exited():
			if st.ExitCode() != 0 {
				cancel()
			}
		case <-ctx.Done():
		}
	}()
	mark, err := awaitLoad(ctx, b, set.topic("watermarks"), resource)
	if err != nil {
		select {
		case <-st.Exited():
			return l, st.Ended()
		default:
			return l, err
		}
	}
	if set.profile != "" {
		if err := st.profiled(ctx); err != nil {
			return l, err
		}
		if err := st.Stop(); err != nil {
			return l, err
		}
	} else if err := st.done(ctx); err != nil {
		return l, err
	}
	return load{rows: int(mark.rows), cpu: st.CPU(), elapsed: mark.done.Sub(st.began), brokerCPU: used(b.pid) - bc, pgCPU: used(s.pgPid) - pg,
		peak: st.peak.Load()}, nil
}

// copyQuery is what storestream asks for, as one statement.
const copyQuery = "COPY (SELECT %s FROM %s WHERE updated_at IS NOT NULL ORDER BY updated_at, id) TO STDOUT (FORMAT binary)"

var copyColumns = map[string]string{
	"orders":      "id, user_id, status, total_amount, created_at, updated_at",
	"order_items": "id, order_id, product_id, sale_price, quantity, amount, created_at, updated_at",
}

// copied is one psql COPY to nowhere.
type copied struct{ elapsed, cpu, pgCPU time.Duration }

func (s *stage) copyOut(ctx context.Context, table string) (c copied, err error) {
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return c, err
	}
	defer nowhere.Close()
	pg := used(s.pgPid)
	cmd := exec.CommandContext(ctx, "psql", "-X", "-q", "-d", s.readerDSN(), "-c", fmt.Sprintf(copyQuery, copyColumns[table], table))
	cmd.Stdout, cmd.Stderr = nowhere, os.Stderr
	if s.pooler == nil { // one statement for everything takes longer than the reader's minute where others use the machine too
		cmd.Env = append(os.Environ(), "PGOPTIONS=-c statement_timeout=0")
	}
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return c, fmt.Errorf("psql: %w", err)
	}
	c.elapsed = time.Since(began)
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	c.cpu, c.pgCPU = time.Duration(u.Utime.Nano()+u.Stime.Nano()), used(s.pgPid)-pg
	return c, nil
}

// firstLoads measures the first load of each table against COPY of the same query, in turn.
func firstLoads(ctx context.Context, s *stage, t *table) error {
	if err := s.shop(ctx); err != nil {
		return err
	}
	for _, resource := range []string{"orders", "order_items"} {
		if err := s.loadsOf(ctx, t, resource, "", s.embedded); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) loadsOf(ctx context.Context, t *table, resource, suffix string, newBroker func(context.Context) (*broker, error)) error {
	var cpu, rate, ratio, peak, copyRate, brokerCPU, pgCPU series
	for i := range s.runs {
		c, err := s.copyOut(ctx, resource)
		if err != nil {
			return err
		}
		b, err := newBroker(ctx)
		if err != nil {
			return err
		}
		l, err := s.firstLoad(ctx, b, resource, setting{})
		if err := errors.Join(err, b.stop()); err != nil {
			return err
		}
		n := float64(l.rows)
		copying := n / c.elapsed.Seconds()
		cpu.add(micros(l.cpu) / n)
		rate.add(n / l.elapsed.Seconds())
		ratio.add(n / l.elapsed.Seconds() / copying)
		copyRate.add(copying)
		peak.add(float64(l.peak) / (1 << 20))
		brokerCPU.add(micros(l.brokerCPU) / n)
		pgCPU.add(micros(l.pgCPU) / n)
		s.say("%s%s %d/%d: %d rows, %.2f us CPU a row, %.0f rows/s, COPY %.0f rows/s; PostgreSQL %.2f us (COPY %.2f us + psql %.2f us), broker %.2f us; peak %.0f MiB",
			resource, suffix, i+1, s.runs, l.rows, micros(l.cpu)/n, n/l.elapsed.Seconds(), copying, micros(l.pgCPU)/n, micros(c.pgCPU)/n, micros(c.cpu)/n, micros(l.brokerCPU)/n,
			float64(l.peak)/(1<<20))
	}
	target := func(text string) string {
		if resource == "orders" && suffix == "" {
			return text
		}
		return ""
	}
	t.add("first load of "+resource+suffix+": CPU of storestream a row", target("<= 1.6 us"), cpu, "%.2f us")
	t.add("first load of "+resource+suffix+": rows/s", "", rate, "%.0f")
	t.add("first load of "+resource+suffix+": rows/s against psql COPY", target(">= 0.8"), ratio, "%.2f")
	t.add("first load of "+resource+suffix+": peak memory", target("<= 80 MB"), peak, "%.0f MiB")
	t.add("first load of "+resource+suffix+": CPU of PostgreSQL a row", "", pgCPU, "%.2f us")
	t.add("first load of "+resource+suffix+": CPU of the broker a row", "", brokerCPU, "%.2f us")
	t.add("psql COPY of "+resource+suffix+": rows/s", "", copyRate, "%.0f")
	return nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
