package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// setting is how one storestream runs.
type setting struct {
	dsn       string            // of the database; empty: the stage's
	base      string            // of the service; empty: the stage's
	resources map[string]string // name to further settings in YAML's flow style, such as "interval: 100ms"
	once      bool
	broker    *broker
	profile   string
	// Of Kafka; empty or 0: the defaults.
	prefix, group string
	partitions    int
}

// stream is a running storestream.
type stream struct {
	*child
	status string // base URL of the status page
	done_  string // file that says that the profile is written
}

var allResources = []string{"orders", "order_items", "products", "users", "shipments"}

// kafka is what differs from the defaults, in YAML's flow style.
func (set *setting) kafka() string {
	var text strings.Builder
	if set.prefix != "" {
		fmt.Fprintf(&text, ", topic_prefix: %q", set.prefix)
	}
	if set.group != "" {
		fmt.Fprintf(&text, ", group: %q", set.group)
	}
	if set.partitions > 0 {
		fmt.Fprintf(&text, ", partitions: %d", set.partitions)
	}
	return text.String()
}

// topic is the topic of a name such as "orders".
func (set *setting) topic(name string) string {
	if set.prefix == "" {
		return "store." + name
	}
	return set.prefix + name
}

// configure writes the configuration, and says where it is and on which port the status page will be.
func (s *stage) configure(set setting) (path string, port int, err error) {
	s.n++
	if port, err = freePort(); err != nil {
		return "", 0, err
	}
	base, dsn := set.base, set.dsn
	switch {
	case base != "":
	case s.service != nil:
		base = s.service.base
	default:
		base = "http://127.0.0.1:9/v1" // nobody asks it
	}
	if s.postgres != nil && dsn == "" {
		dsn = s.readerDSN()
	}
	var text strings.Builder
	fmt.Fprintf(&text, "store: {base_url: %q, max_requests_per_second: 10000}\npostgres: {dsn: %q}\nkafka: {brokers: [%q]%s}\nregistry: {url: %q}\n",
		base, dsn, set.broker.addr, set.kafka(), set.broker.registry)
	fmt.Fprintf(&text, "http: {listen: \"127.0.0.1:%d\"}\nresources:\n", port)
	for _, name := range allResources {
		more, enabled := set.resources[name]
		if more != "" {
			more = ", " + more
		}
		fmt.Fprintf(&text, "  %s: {enabled: %v%s}\n", name, enabled, more)
	}
	path = filepath.Join(s.dir, fmt.Sprintf("storestream-%d.yaml", s.n))
	return path, port, os.WriteFile(path, []byte(text.String()), 0o600)
}

// environment is this process's without what would configure storestream.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "STORESTREAM_") })
}

// start starts storestream.
func (s *stage) start(set setting) (*stream, error) {
	config, port, err := s.configure(set)
	if err != nil {
		return nil, err
	}
	args := []string{"run", "--config", config}
	if set.once {
		args = append(args, "--once")
	}
	program, environ := s.program, environment()
	if set.profile != "" {
		if program, err = s.build(context.Background(), true); err != nil {
			return nil, err
		}
		environ = append(environ, "BENCH_PROFILE="+set.profile)
	}
	c, err := spawn(s.dir, fmt.Sprintf("storestream-%d", s.n), program, environ, args...)
	if err != nil {
		return nil, err
	}
	return &stream{child: c, status: fmt.Sprintf("http://127.0.0.1:%d", port), done_: set.profile + ".done"}, nil
}

// profiled has the profile written and waits for it.
func (st *stream) profiled(ctx context.Context) error {
	if err := st.Signal(syscall.SIGUSR1); err != nil {
		return err
	}
	return until(ctx, 10*time.Second, "the profile", func() bool { _, err := os.Stat(st.done_); return err == nil })
}

// until waits for a condition.
func until(ctx context.Context, patience time.Duration, what string, met func() bool) error {
	return untilEvery(ctx, 20*time.Millisecond, patience, what, met)
}

// untilEvery looks so often: a look at the metrics costs the program that is measured a millisecond.
func untilEvery(ctx context.Context, every, patience time.Duration, what string, met func() bool) error {
	deadline := time.Now().Add(patience)
	for !met() {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not come about within %v", what, patience)
		}
		if err := rest(ctx, every); err != nil {
			return err
		}
	}
	return nil
}

// rest waits.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// metric is the sum of all samples of a metric.
func (st *stream) metric(ctx context.Context, name string) (float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, st.status+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	sum, lines := 0.0, bufio.NewScanner(response.Body)
	for lines.Scan() {
		line, value, _ := strings.Cut(lines.Text(), "} ")
		if !strings.HasPrefix(line, name+"{") {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, lines.Err()
}

// isReady says whether every resource has completed a pass.
func (st *stream) isReady(ctx context.Context) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, st.status+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// awaitReady waits until every resource has completed a pass.
func (st *stream) awaitReady(ctx context.Context, patience time.Duration) error {
	err := until(ctx, patience, "readiness of storestream", func() bool {
		select {
		case <-st.Exited():
			return true
		default:
			return st.isReady(ctx)
		}
	})
	select {
	case <-st.Exited():
		return errors.Join(err, st.Ended())
	default:
		return err
	}
}

// awaitPublished waits until so many rows have been published since the start.
func (st *stream) awaitPublished(ctx context.Context, n int) error {
	return untilEvery(ctx, 100*time.Millisecond, 2*time.Minute, fmt.Sprintf("the publishing of %d rows", n), func() bool {
		rows, err := st.metric(ctx, "storestream_rows_published_total")
		return err == nil && int(rows) >= n
	})
}
