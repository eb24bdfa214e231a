package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// growingRows measures first loads, idle polls and verify of tables of a thousand rows and more.
func growingRows(ctx context.Context, s *stage, f *figures) (err error) {
	sizes := []int{1_000, 10_000, 100_000, 1_000_000}
	if s.quick {
		sizes = sizes[:2]
	} else if s.big {
		sizes = append(sizes, 10_000_000)
	}
	b, err := s.warmBroker(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	for _, n := range sizes {
		if err := s.rowsOf(ctx, f, b, n); err != nil {
			return fmt.Errorf("%d rows: %w", n, err)
		}
	}
	return nil
}

func (s *stage) rowsOf(ctx context.Context, f *figures, b *broker, n int) error {
	dsn, _, err := s.tableOf(ctx, n)
	if err != nil {
		return err
	}
	set := setting{dsn: dsn, broker: b, prefix: fmt.Sprintf("rows%d.", n), group: fmt.Sprintf("rows%d", n)}
	l, err := s.firstLoad(ctx, b, "orders", set)
	if err != nil {
		return err
	}
	v, err := s.verify(ctx, set)
	if err != nil {
		return err
	}
	idle, err := s.idlePoll(ctx, set)
	if err != nil {
		return err
	}
	x := float64(n)
	f.add("rows", "s", "first load, start to exit", x, l.elapsed.Seconds())
	f.add("rows", "s", "... CPU of storestream", x, l.cpu.Seconds())
	f.add("rows", "s", "verify", x, v.elapsed.Seconds())
	f.add("rows", "MiB", "first load", x, mebi(l.peak))
	f.add("rows", "MiB", "verify", x, mebi(v.peak))
	f.add("rows", "ms", "CPU of a poll that finds nothing", x, idle.Seconds()*1000)
	s.say("%d rows: first load %.2f s (CPU %.2f s) and %.0f MiB, verify %.2f s and %.0f MiB, idle poll %.2f ms", n, l.elapsed.Seconds(), l.cpu.Seconds(), mebi(l.peak),
		v.elapsed.Seconds(), mebi(v.peak), idle.Seconds()*1000)
	return nil
}

// verify has the topics of a setting compared in full. The error of a comparison that finds differences says so.
func (s *stage) verify(ctx context.Context, set setting) (l load, err error) {
	set.resources = map[string]string{"orders": ""}
	config, _, err := s.configure(set)
	if err != nil {
		return l, err
	}
	c, err := spawn(s.dir, fmt.Sprintf("verify-%d", s.n), s.program, environment(), "verify", "--config", config)
	if err != nil {
		return l, err
	}
	if err := c.done(ctx); err != nil {
		return l, errors.Join(err, c.Kill())
	}
	return load{elapsed: time.Since(c.began), cpu: c.CPU(), peak: c.peak.Load()}, nil
}

// idlePoll is the CPU of one poll that finds nothing.
func (s *stage) idlePoll(ctx context.Context, set setting) (cpu time.Duration, err error) {
	set.resources = map[string]string{"orders": "interval: 100ms"}
	st, err := s.start(set)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, st.Kill()) }()
	if err := st.awaitReady(ctx, time.Minute); err != nil {
		return 0, err
	}
	window := 10 * time.Second // the kernel counts hundredths of a second
	if s.quick {
		window = time.Second
	}
	before, err := st.metric(ctx, "storestream_polls_total")
	if err != nil {
		return 0, err
	}
	began := used(st.Pid())
	if err := rest(ctx, window); err != nil {
		return 0, err
	}
	spent := used(st.Pid()) - began
	after, err := st.metric(ctx, "storestream_polls_total")
	if err != nil {
		return 0, err
	}
	if after <= before {
		return 0, fmt.Errorf("no poll within %v", window)
	}
	return time.Duration(float64(spent) / (after - before)), nil
}
