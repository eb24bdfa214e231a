package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/wait"
)

// openDays measures polls of a day that is not over and holds many rows already, of a service that sorts and
// of one that does not.
func openDays(ctx context.Context, r *round) error {
	sizes := []int{r.day}
	if r.big {
		sizes = append(sizes, 5*r.day)
	}
	for _, n := range sizes {
		err := errors.Join(openDay(ctx, r, n, "updated", "sorted by updated_at"),
			openDay(ctx, r, n, "hash", "not sorted"))
		if err != nil {
			return err
		}
	}
	return nil
}

func openDay(ctx context.Context, r *round, n int, order, how string) (err error) {
	night := time.Now().UTC().Truncate(24 * time.Hour).Add(23*time.Hour + 30*time.Minute).Format(time.RFC3339)
	v, err := startService(ctx, r.stage, "--users", strconv.Itoa(n), "--days", "1", "--clock", night, "--order",
		order)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Kill()) }()
	set := setting{base: v.base, resources: map[string]string{storefake.Users: "interval: 2s, overlap: 10s"}}
	return r.running(ctx, set, func(_ *broker, st *stream) error {
		if err := st.awaitReady(ctx, 10*time.Minute); err != nil {
			return err
		}
		for range 2 { // the first poll after a first load looks whether the service sorts
			if _, _, err := st.poll(ctx); err != nil {
				return err
			}
		}
		open := fmt.Sprintf("open day of %s users, %s", count(n), how)
		for _, changed := range []int{0, min(10_000, n/2)} {
			requests, cpu, err := pollAfter(ctx, v, st, changed)
			if err != nil {
				return err
			}
			polled := fmt.Sprintf("%s, poll after %s changed: ", open, count(changed))
			target, full := "changed/1,000 + 2", ""
			if order == "hash" {
				target, full = "a full pass", "2.5 s for 1M"
			}
			if order == "hash" && changed == 0 {
				full = "1.3 s for 1M"
			}
			r.add(figure{what: polled + "requests", target: target, format: "%.0f"}, requests)
			r.add(figure{what: polled + "CPU", target: full, format: "%.2f s"}, cpu.Seconds())
		}
		r.add(figure{what: open + ": peak memory", target: "128 MiB for 1M, 400 MiB for 5M", format: "%.0f MiB"},
			mebibytes(st.peak.Load()))
		return nil
	})
}

// pollAfter measures a poll that finds n changed users, and waits until these have left the overlap.
func pollAfter(ctx context.Context, v *service, st *stream, n int) (requests float64, cpu time.Duration,
	err error) {
	if err := v.touch(ctx, storefake.Users, n); err != nil {
		return 0, 0, err
	}
	requests, cpu, err = st.poll(ctx)
	if err != nil || n == 0 {
		return requests, cpu, err
	}
	if err := wait.For(ctx, 12*time.Second); err != nil {
		return 0, 0, err
	}
	_, _, err = st.poll(ctx)
	return requests, cpu, err
}
