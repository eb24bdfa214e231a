package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/wait"
)

// stream is a running storestream.
type stream struct {
	*child
	status  string // base URL of the status page
	profile string // as its setting has it
	config  string // file
}

// finishProfile has the profiles written, waits for them, and stops the program.
func (st *stream) finishProfile(ctx context.Context) error {
	if err := st.Signal(syscall.SIGUSR1); err != nil {
		return err
	}
	written := func() bool { _, err := os.Stat(st.profile + ".done"); return err == nil }
	if err := until(ctx, 10*time.Second, "the profile", written); err != nil {
		return err
	}
	return st.Stop()
}

// get asks the status page's server.
func (st *stream) get(ctx context.Context, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, st.status+path, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(r)
}

// metric is the sum of all samples of a metric.
func (st *stream) metric(ctx context.Context, name string) (float64, error) {
	response, err := st.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	sum, lines := 0.0, bufio.NewScanner(response.Body)
	for lines.Scan() {
		rest, found := strings.CutPrefix(lines.Text(), name)
		if !found || !strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, " ") {
			continue
		}
		value := rest[strings.LastIndexByte(rest, ' ')+1:]
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, lines.Err()
}

// awaitReady waits until every resource has completed a pass.
func (st *stream) awaitReady(ctx context.Context, patience time.Duration) error {
	err := until(ctx, patience, "readiness of storestream", func() bool {
		if servers.Closed(st.Exited()) {
			return true
		}
		response, err := st.get(ctx, "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	if servers.Closed(st.Exited()) {
		return errors.Join(err, st.Ended())
	}
	return err
}

// awaitPublished waits until so many rows have been published since the start.
func (st *stream) awaitPublished(ctx context.Context, n int) error {
	what := fmt.Sprintf("the publishing of %d rows", n)
	return untilEvery(ctx, 100*time.Millisecond, 10*time.Minute, what, func() bool {
		rows, err := st.metric(ctx, "storestream_rows_published_total")
		return err == nil && int(rows) >= n
	})
}

// poll waits for the end of the next poll. It returns the requests and the CPU time of the program between
// the ends of the two polls.
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

// until waits for a condition.
func until(ctx context.Context, patience time.Duration, what string, met func() bool) error {
	return untilEvery(ctx, 20*time.Millisecond, patience, what, met)
}

// untilEvery looks at a condition at that interval: reading the metrics costs the measured program a
// millisecond.
func untilEvery(ctx context.Context, every, patience time.Duration, what string, met func() bool) error {
	deadline := time.Now().Add(patience)
	for !met() {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not come about within %v", what, patience)
		}
		if err := wait.For(ctx, every); err != nil {
			return err
		}
	}
	return nil
}
