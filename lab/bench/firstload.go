package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/storestream/storestream/internal/storefake"
	"github.com/storestream/storestream/internal/wait"
)

// load is one first load of one resource.
type load struct {
	rows             float64
	cpu              time.Duration // of storestream, start and end included
	elapsed          time.Duration // from its start to the visible watermark that says "complete"
	brokerCPU, pgCPU time.Duration
	peak             int64
}

// firstLoad has a new storestream fill the topic of one resource, which is empty, and exit.
func firstLoad(ctx context.Context, s *stage, b *broker, resource string) (l load, err error) {
	db, shop, err := s.openShop(ctx)
	if err != nil {
		return l, err
	}
	set := setting{broker: b, dsn: db.reader("postgres"), base: shop.base,
		resources: map[string]string{resource: ""}, once: true}
	program := s.program
	if s.profile != "" {
		if err := os.MkdirAll(s.profile, 0o700); err != nil {
			return l, err
		}
		if program, err = newProfiled(ctx, s); err != nil {
			return l, err
		}
		set.profile, set.once = filepath.Join(s.profile, s.name(resource)), false
	}
	pg, bc := used(db.pid), used(b.pid)
	st, err := program.start(set)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, st.Kill()) }()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	mark, err := awaitLoadBy(ctx, st, b, resource)
	if err != nil {
		return l, err
	}
	if s.profile != "" {
		err = st.finishProfile(ctx)
	} else {
		err = st.done(ctx)
	}
	return load{rows: float64(mark.rows), cpu: st.CPU(), elapsed: mark.done.Sub(st.began),
		brokerCPU: used(b.pid) - bc, pgCPU: used(db.pid) - pg, peak: st.peak.Load()}, err
}

// awaitLoadBy waits for the end of a first load, or for the program's end where it fails before.
func awaitLoadBy(ctx context.Context, st *stream, b *broker, resource string) (loaded, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-st.Exited():
			if st.ExitCode() != 0 {
				cancel()
			}
		case <-ctx.Done():
		}
	}()
	l, err := awaitLoad(ctx, b, resource)
	if err != nil && wait.Over(st.Exited()) {
		return l, st.Ended()
	}
	return l, err
}

// firstLoads measures the first load of each table against COPY of the same query, in turn.
func firstLoads(ctx context.Context, s *stage, t *table) error {
	return errors.Join(loadsOf(ctx, s, t, storefake.Orders, "", startEmbedded),
		loadsOf(ctx, s, t, storefake.OrderItems, "", startEmbedded))
}

// apacheLoads measures the first loads with Apache Kafka as the broker.
func apacheLoads(ctx context.Context, s *stage, t *table) error {
	if !s.kafka {
		return nil
	}
	return errors.Join(loadsOf(ctx, s, t, storefake.Orders, " (Apache Kafka)", startApache),
		loadsOf(ctx, s, t, storefake.OrderItems, " (Apache Kafka)", startApache))
}

type startBroker func(context.Context, *stage) (*broker, error)

func loadsOf(ctx context.Context, s *stage, t *table, resource, suffix string, newBroker startBroker) error {
	db, _, err := s.openShop(ctx)
	if err != nil {
		return err
	}
	var cpu, rate, ratio, peak, copyRate, brokerCPU, pgCPU series
	for i := range s.runs {
		c, err := db.copyOut(ctx, resource)
		if err != nil {
			return err
		}
		b, err := newBroker(ctx, s)
		if err != nil {
			return err
		}
		l, err := firstLoad(ctx, s, b, resource)
		if err := errors.Join(err, b.stop()); err != nil {
			return err
		}
		loading, copying := l.rows/l.elapsed.Seconds(), l.rows/c.elapsed.Seconds()
		cpu.add(micros(l.cpu) / l.rows)
		rate.add(loading)
		ratio.add(loading / copying)
		copyRate.add(copying)
		peak.add(float64(l.peak) / (1 << 20))
		brokerCPU.add(micros(l.brokerCPU) / l.rows)
		pgCPU.add(micros(l.pgCPU) / l.rows)
		s.say("%s%s %d/%d: %.0f rows, %.2f us CPU a row, %.0f rows/s, COPY %.0f rows/s; "+
			"PostgreSQL %.2f us (COPY %.2f us + psql %.2f us), broker %.2f us; peak %s",
			resource, suffix, i+1, s.runs, l.rows, micros(l.cpu)/l.rows, loading, copying, micros(l.pgCPU)/l.rows,
			micros(c.pgCPU)/l.rows, micros(c.cpu)/l.rows, micros(l.brokerCPU)/l.rows, mebibytes(l.peak))
	}
	target := func(text string) string {
		if resource == storefake.Orders && suffix == "" {
			return text
		}
		return ""
	}
	what := "first load of " + resource + suffix
	t.add(what+": CPU of storestream a row", target("<= 1.6 us"), cpu, "%.2f us")
	t.add(what+": rows/s", "", rate, "%.0f")
	t.add(what+": rows/s against psql COPY", target(">= 0.8"), ratio, "%.2f")
	t.add(what+": peak memory", target("<= 80 MB"), peak, "%.0f MiB")
	t.add(what+": CPU of PostgreSQL a row", "", pgCPU, "%.2f us")
	t.add(what+": CPU of the broker a row", "", brokerCPU, "%.2f us")
	t.add("psql COPY of "+resource+suffix+": rows/s", "", copyRate, "%.0f")
	return nil
}

// restLoads measures the first load of a resource that only REST has.
func restLoads(ctx context.Context, s *stage, t *table) error {
	var cpu, rate, peak, more series
	for i := range s.runs {
		b, err := startEmbedded(ctx, s)
		if err != nil {
			return err
		}
		l, err := firstLoad(ctx, s, b, storefake.Users)
		if err := errors.Join(err, b.stop()); err != nil {
			return err
		}
		requests, err := requestsOfLoad(ctx, s, storefake.Users)
		if err != nil {
			return err
		}
		cpu.add(micros(l.cpu) / l.rows)
		rate.add(l.rows / l.elapsed.Seconds())
		peak.add(float64(l.peak) / (1 << 20))
		more.add(requests - l.rows/1000)
		s.say("users %d/%d: %.0f rows, %.2f us CPU a row, %.0f rows/s, %.0f requests, peak %.0f MiB", i+1, s.runs,
			l.rows,
			micros(l.cpu)/l.rows, l.rows/l.elapsed.Seconds(), requests, float64(l.peak)/(1<<20))
	}
	t.add("first load of users over REST: CPU of storestream a row", "<= 3.5 us", cpu, "%.2f us")
	t.add("first load of users over REST: rows/s", "", rate, "%.0f")
	t.add("first load of users over REST: peak memory", "", peak, "%.0f MiB")
	t.add("first load of n users over REST: requests", "n/1000 + a constant", more, "n/1000 + %.0f")
	return nil
}

// requestsOfLoad is how many requests a first load takes.
func requestsOfLoad(ctx context.Context, s *stage, resource string) (n float64, err error) {
	err = s.running(ctx, setting{resources: map[string]string{resource: ""}}, func(_ *broker, st *stream) error {
		if err := st.awaitReady(ctx, 5*time.Minute); err != nil {
			return err
		}
		n, err = st.metric(ctx, "storestream_http_requests_total")
		return err
	})
	return n, err
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
