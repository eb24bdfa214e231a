package main

import (
	"context"
	"errors"
	"time"
)

// restLoads measures the first load of the resources that only REST has.
func restLoads(ctx context.Context, s *stage, t *table) error {
	if err := s.shop(ctx); err != nil {
		return err
	}
	var cpu, rate, peak, more series
	for i := range s.runs {
		b, err := s.embedded(ctx)
		if err != nil {
			return err
		}
		l, err := s.firstLoad(ctx, b, "users", setting{})
		if err := errors.Join(err, b.stop()); err != nil {
			return err
		}
		n := float64(l.rows)
		requests, err := s.requests(ctx, "users")
		if err != nil {
			return err
		}
		cpu.add(micros(l.cpu) / n)
		rate.add(n / l.elapsed.Seconds())
		peak.add(float64(l.peak) / (1 << 20))
		more.add(requests - n/1000)
		s.say("users %d/%d: %d rows, %.2f us CPU a row, %.0f rows/s, %.0f requests, peak %.0f MiB", i+1, s.runs, l.rows, micros(l.cpu)/n,
			n/l.elapsed.Seconds(), requests, float64(l.peak)/(1<<20))
	}
	t.add("first load of users over REST: CPU of storestream a row", "<= 3.5 us", cpu, "%.2f us")
	t.add("first load of users over REST: rows/s", "", rate, "%.0f")
	t.add("first load of users over REST: peak memory", "", peak, "%.0f MiB")
	t.add("first load of n users over REST: requests", "n/1000 + a constant", more, "n/1000 + %.0f")
	return nil
}

// requests is how many requests a first load took.
func (s *stage) requests(ctx context.Context, resource string) (n float64, err error) {
	b, err := s.embedded(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	st, err := s.start(setting{resources: map[string]string{resource: ""}, broker: b})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, st.Kill()) }()
	if err := st.awaitReady(ctx, 5*time.Minute); err != nil {
		return 0, err
	}
	return st.metric(ctx, "storestream_http_requests_total")
}
