package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// openDays measures polls of a day that is not over and holds many rows already, of a service that sorts and of one that does not.
func openDays(ctx context.Context, s *stage, t *table) error {
	for _, order := range []struct{ name, what, target string }{
		{"updated", "sorted by updated_at", "about k/1000 + 2"}, {"hash", "not sorted", "a full pass"},
	} {
		if err := s.openDay(ctx, t, order.name, order.what, order.target); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) openDay(ctx context.Context, t *table, order, what, target string) (err error) {
	s.say("a service with an open day of %d users, %s", s.day, what)
	night := time.Now().UTC().Truncate(24 * time.Hour).Add(23*time.Hour + 30*time.Minute).Format(time.RFC3339)
	v, err := s.serve(ctx, "--users", strconv.Itoa(s.day), "--days", "1", "--clock", night, "--order", order)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Kill()) }()
	b, err := s.embedded(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	st, err := s.start(setting{base: v.base, broker: b, resources: map[string]string{"users": "interval: 2s, overlap: 10s"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Kill()) }()
	if err := st.awaitReady(ctx, 5*time.Minute); err != nil {
		return err
	}
	for range 2 { // the first poll after a first load looks whether the service sorts
		if _, _, err := st.poll(ctx); err != nil {
			return err
		}
	}
	for _, k := range []int{0, 100, 10_000} {
		var requests, cpu series
		for range min(s.runs, 3) {
			if err := v.touch(ctx, "users", min(k, s.day/2)); err != nil {
				return err
			}
			n, used, err := st.poll(ctx)
			if err != nil {
				return err
			}
			requests.add(n)
			cpu.add(used.Seconds() * 1000)
			if err := rest(ctx, 12*time.Second); err != nil { // the changed rows leave the overlap
				return err
			}
			if _, _, err := st.poll(ctx); err != nil {
				return err
			}
		}
		s.say("%s: %d rows changed: %.0f requests, %.0f ms CPU", what, k, requests.median(), cpu.median())
		t.add(fmt.Sprintf("poll of an open day of %d rows, %s, %d rows changed: requests", s.day, what, k), target, requests, "%.0f")
		t.add("... CPU of storestream", "", cpu, "%.0f ms")
	}
	t.note("... peak memory", "", "%d MiB", st.peak.Load()>>20)
	return nil
}

// touch has the service change n rows.
func (v *service) touch(ctx context.Context, resource string, n int) error {
	_, err := v.ask(ctx, fmt.Sprintf("/%s/%d", resource, n))
	return err
}

// answered is how many requests for rows the service has answered.
func (v *service) answered(ctx context.Context) (int, error) {
	text, err := v.ask(ctx, "/requests")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

func (v *service) ask(ctx context.Context, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.control+path, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, response.Status)
	}
	return string(text), err
}

// poll waits for the next poll's end and returns what it took, counted between the ends of two polls.
func (st *stream) poll(ctx context.Context) (requests float64, cpu time.Duration, err error) {
	polls, err := st.metric(ctx, "storestream_polls_total")
	if err != nil {
		return 0, 0, err
	}
	before, err := st.metric(ctx, "storestream_http_requests_total")
	if err != nil {
		return 0, 0, err
	}
	began := used(st.Pid())
	err = untilEvery(ctx, 300*time.Millisecond, 2*time.Minute, "the next poll", func() bool {
		n, err := st.metric(ctx, "storestream_polls_total")
		return err == nil && n > polls
	})
	if err != nil {
		return 0, 0, err
	}
	after, err := st.metric(ctx, "storestream_http_requests_total")
	return after - before, used(st.Pid()) - began, err
}
