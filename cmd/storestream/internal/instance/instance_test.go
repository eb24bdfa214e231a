package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func configOf(t *testing.T, s *stage.Stage, name string) Config {
	t.Helper()
	return Config{Name: name, Settings: s.Config("store.max_requests_per_second=1000"), Schemas: s.Schemas,
		Cluster: s.Cluster(name), Metrics: metrics.New(prometheus.NewRegistry()),
		Board: status.New(name, "test"), Log: zaptest.NewLogger(t)}
}

// begin runs an instance until the returned function is called, which returns its error.
func begin(t *testing.T, c Config) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- Run(ctx, c) }()
	ended := false
	end = func() error {
		if cancel(); ended {
			return nil
		}
		ended = true
		return <-result
	}
	t.Cleanup(func() { _ = end() })
	return end
}

func TestAnInstanceHandsItsResourcesOnWhenItStops(t *testing.T) {
	s := stage.New(t)
	fake := s.Serve(nil)
	first, second := configOf(t, s, "first"), configOf(t, s, "second")
	endFirst := begin(t, first)
	stage.Eventually(t, "first has completed a pass of every resource", func() bool {
		snapshot := first.Board.Snapshot()
		ready, _ := snapshot.Ready()
		return ready && len(snapshot.Resources) == 5 &&
			!slices.ContainsFunc(snapshot.Resources, func(r health.Resource) bool { return !r.Owned || r.Passes == 0 })
	})
	begin(t, second)
	if err := endFirst(); err != nil {
		t.Fatalf("first ends with %v", err)
	}
	stage.Eventually(t, "second has all that first had", func() bool {
		members, err := producer.Members(t.Context(), second.Cluster)
		return err == nil && len(members) == 1 && len(members[0].Owned) == 5
	})
	marks, _, err := producer.ReadWatermarks(t.Context(), second.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range storefake.Names() {
		if rows := int64(fake.Count(name)); marks[name].Rows != rows {
			t.Errorf("%s: %d rows are published in all, the service has %d", name, marks[name].Rows, rows)
		}
	}
}

// A registry that takes requests and answers none. What its client gives up after, a takeover would fail
// with.
func TestATakeoverIsNotWaitedForWhenTheInstanceStops(t *testing.T) {
	s := stage.New(t)
	s.Serve(nil)
	asked := make(chan struct{}, 100)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that the client is gone
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	s.Settings = append(s.Settings, "registry.url="+silent.URL)
	c := configOf(t, s, "a")
	core, logged := observer.New(zap.ErrorLevel)
	c.Log = zap.New(core)
	end := begin(t, c)
	select {
	case <-asked:
	case <-time.After(30 * time.Second):
		t.Fatal("the registry is asked nothing")
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	for _, entry := range logged.All() {
		t.Errorf("%s: %v", entry.Message, entry.ContextMap()["error"])
	}
}

// After a key was refused a resource waits for half a minute. Five of those would be too long here.
func TestASignalEndsTheWaitAfterAKeyWasRefused(t *testing.T) {
	s := stage.New(t)
	fake := s.Serve(nil)
	mount := servers.MountForTest(t, t.TempDir(), map[string]string{"key": "not-the-key"})
	s.Settings = append(s.Settings, "store.api_key=file:"+mount.Path("key"))
	for _, name := range storefake.Names() {
		if name != "products" {
			s.Settings = append(s.Settings, "resources."+name+".enabled=false")
		}
	}
	c := configOf(t, s, "a")
	signals := make(chan os.Signal)
	files := c.Settings.Rotation()
	files.Log = zaptest.NewLogger(t)
	go files.Follow(t.Context(), signals)
	begin(t, c)
	resource := func() health.Resource { return c.Board.Snapshot().Resources[0] }
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for before := range 5 {
		stage.Eventually(t, "the key is refused once more", func() bool {
			return len(fake.Requests()) > before && resource().Doing == "waiting to try again"
		})
		if ctx.Err() != nil {
			t.Fatal("it waits on after a signal")
		}
		signals <- syscall.SIGHUP
	}
	mount.Swap(map[string]string{"key": fake.Key()})
	signals <- syscall.SIGHUP
	stage.Eventually(t, "it is well again", func() bool { return resource().Passes > 0 })
}

func TestTakeoversThatPassAreTriedAgainSoonerThanThoseThatAPersonMustMend(t *testing.T) {
	passing := errors.New("kafka does not answer")
	refused := fmt.Errorf("take over: %w", &producer.RefusedError{})
	mayPass := fmt.Errorf("take over: %w", &producer.RefusedError{MayPass: true})
	for _, test := range []struct {
		err   error
		n     int
		after time.Duration
	}{
		{passing, 1, 200 * time.Millisecond},
		{passing, 2, 400 * time.Millisecond},
		{passing, 8, 25600 * time.Millisecond},
		{passing, 9, 30 * time.Second},
		{passing, 1000, 30 * time.Second},
		{mayPass, 1, 200 * time.Millisecond},
		{refused, 1, 10 * time.Second},
		{refused, 1000, 10 * time.Second},
	} {
		if got := retakeAfter(test.err, test.n); got != test.after {
			t.Errorf("%v, failure %d: after %s, expected %s", test.err, test.n, got, test.after)
		}
	}
}

// Between two times that a resource is ours others have polled it.
func TestFailuresEndWithTheOwnership(t *testing.T) {
	s := stage.New(t)
	c := configOf(t, s, "a")
	in, err := newInstance(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.sources.Close)
	o := in.owners["orders"]
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the group takes the resource away
	lost := errors.New("the session is lost")
	o.failures.Note(lost)
	o.turn(nil, "waiting to take over again", lost)
	o.run(ctx)
	if l := o.now(); o.failures.N != 0 || !o.failures.Since.IsZero() || l.err != nil || !l.failed.IsZero() {
		t.Errorf("%d failures since %s: %v since %s", o.failures.N, o.failures.Since, l.err, l.failed)
	}
}

// Each loss of a session is a failure of its own where polls were good in between.
func TestAGoodPollAfterATakeoverEndsTheRowOfFailures(t *testing.T) {
	s := stage.New(t)
	fake := s.Serve(nil)
	s.Settings = append(s.Settings, "resources.products.interval=100ms")
	for _, name := range storefake.Names() {
		if name != "products" {
			s.Settings = append(s.Settings, "resources."+name+".enabled=false")
		}
	}
	c := configOf(t, s, "a")
	core, logged := observer.New(zap.InfoLevel)
	c.Log = zap.New(core)
	begin(t, c)
	for losses := range 2 {
		stage.Eventually(t, "products are polled, and each failure before is over", func() bool {
			snapshot := c.Board.Snapshot()
			return len(snapshot.Resources) == 1 && snapshot.Resources[0].Passes > 0 &&
				logged.FilterMessage("working again").Len() == losses
		})
		s.Publish("products", nil, nil, nil) // fences the session
		if err := fake.Touch(t.Context(), "products", 1); err != nil {
			t.Fatal(err)
		}
		stage.Eventually(t, "its session is lost", func() bool {
			return logged.FilterMessage("failing").Len() > losses
		})
	}
	for _, entry := range logged.FilterMessage("failing").All() {
		if n := entry.ContextMap()["failures"]; n != int64(1) {
			t.Errorf("%v failures in a row: %v", n, entry.ContextMap()["error"])
		}
	}
}

// What a process that was killed in a sweep leaves behind is a watermark that says the sweep was begun.
func TestASweepWhoseProcessDiedWaitsAndIsTold(t *testing.T) {
	s := stage.New(t)
	s.Serve(nil)
	began := time.Now()
	tried := schemas.InstantOf(began)
	s.Publish("users", nil, nil, func(w *watermark.Watermark) {
		w.Sweep = &watermark.Sweep{Request: -1, At: tried, Tried: &tried, Attempts: 2}
	})
	c := configOf(t, s, "successor")
	end := begin(t, c)
	stage.Eventually(t, "users are polled and their sweep waits", func() bool {
		for _, r := range c.Board.Snapshot().Resources {
			if r.Name == "users" && r.Passes > 0 && r.Sweeping != nil {
				return strings.Contains(r.Sweeping.Error, "died while it swept (2 times in a row)") &&
					r.Sweeping.Next.After(began.Add(16*time.Minute))
			}
		}
		return false
	})
	if err := end(); err != nil {
		t.Fatal(err)
	}
	marks, _, err := producer.ReadWatermarks(t.Context(), s.Cluster("reader"))
	sweep := marks["users"].Sweep
	if err != nil || sweep == nil || sweep.Tried != nil || sweep.NotBefore == nil || sweep.Attempts != 2 {
		t.Errorf("%v, the watermark says %+v", err, sweep)
	}
}
