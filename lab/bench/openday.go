package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/storestream/storestream/internal/storefake"
	"github.com/storestream/storestream/internal/wait"
)

// openDays measures polls of a day that is not over and holds many rows already, of a service that sorts and
// of one that does not.
func openDays(ctx context.Context, s *stage, t *table) error {
	for _, of := range []struct{ order, what, target string }{
		{"updated", "sorted by updated_at", "about k/1000 + 2"}, {"hash", "not sorted", "a full pass"},
	} {
		if err := openDay(ctx, s, t, of.order, of.what, of.target); err != nil {
			return err
		}
	}
	return nil
}

func openDay(ctx context.Context, s *stage, t *table, order, what, target string) (err error) {
	s.say("a service with an open day of %d users, %s", s.day, what)
	night := time.Now().UTC().Truncate(24 * time.Hour).Add(23*time.Hour + 30*time.Minute).Format(time.RFC3339)
	v, err := startService(ctx, s, "--users", strconv.Itoa(s.day), "--days", "1", "--clock", night, "--order",
		order)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Kill()) }()
	set := setting{base: v.base, resources: map[string]string{storefake.Users: "interval: 2s, overlap: 10s"}}
	return s.running(ctx, set, func(_ *broker, st *stream) error {
		if err := st.awaitReady(ctx, 5*time.Minute); err != nil {
			return err
		}
		for range 2 { // the first poll after a first load looks whether the service sorts
			if _, _, err := st.poll(ctx); err != nil {
				return err
			}
		}
		for _, k := range []int{0, 100, 10_000} {
			requests, cpu, err := pollsAfter(ctx, s, v, st, min(k, s.day/2))
			if err != nil {
				return err
			}
			s.say("%s: %d rows changed: %.0f requests, %.0f ms CPU", what, k, requests.median(), cpu.median())
			changed := fmt.Sprintf("poll of an open day of %d rows, %s, %d rows changed: requests", s.day, what, k)
			t.add(changed, target, requests, "%.0f")
			t.add("... CPU of storestream", "", cpu, "%.0f ms")
		}
		t.note("... peak memory", "", "%s", mebibytes(st.peak.Load()))
		return nil
	})
}

// pollsAfter measures polls that each find n changed users.
func pollsAfter(ctx context.Context, s *stage, v *service, st *stream, n int) (requests, cpu series,
	err error) {
	for range min(s.runs, 3) {
		if err := v.touch(ctx, storefake.Users, n); err != nil {
			return nil, nil, err
		}
		asked, spent, err := st.poll(ctx)
		if err != nil {
			return nil, nil, err
		}
		requests.add(asked)
		cpu.add(spent.Seconds() * 1000)
		if err := wait.For(ctx, 12*time.Second); err != nil { // the changed rows leave the overlap
			return nil, nil, err
		}
		if _, _, err := st.poll(ctx); err != nil {
			return nil, nil, err
		}
	}
	return requests, cpu, nil
}
