package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// The tests here are of what surrounds the instance; what the instance does is tested end to end.

// idle is an engine that only waits to be stopped: as if another instance of the group owned everything.
func idle(ctx context.Context, _ *config.Config, _ *schemas.Set, _ *producer.Cluster, _ *metrics.Set, board *status.Board, _ *zap.Logger, _ bool) error {
	board.Provide(func() status.Snapshot { return status.Snapshot{} })
	<-ctx.Done()
	return nil
}

// start runs the program until the test ends or the returned function interrupts it.
func (s *stage) start(e engine, args ...string) (out *call, interrupt func() *call) {
	ctx, cancel := context.WithCancel(s.t.Context())
	c := &call{args: append(args, s.flags...), app: app{engine: e}}
	ended := make(chan struct{})
	out = &call{stdout: &buffer{}, stderr: &buffer{}}
	go func() { defer close(ended); c.runInto(ctx, out.stdout, out.stderr) }()
	wait := func() *call {
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			s.t.Fatalf("%q does not end:\n%s", args, out.stderr)
		}
		return c
	}
	s.t.Cleanup(func() { cancel(); wait() })
	return out, func() *call { cancel(); return wait() }
}

// eventually waits until f says true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline, look := time.After(30*time.Second), time.NewTicker(10*time.Millisecond)
	defer look.Stop()
	for !f() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatal("not within 30 s: " + what)
		}
	}
}

var listens = regexp.MustCompile(`"addr":"([^"]+)"`)

func TestRunServesItsStatusAndExitsWithZeroOnASignal(t *testing.T) {
	s := newStage(t)
	out, interrupt := s.start(idle, "run")
	eventually(t, "the status server listens", func() bool { return listens.MatchString(out.stderr.String()) })
	url := "http://" + listens.FindStringSubmatch(out.stderr.String())[1]
	eventually(t, "ready", func() bool {
		resp, err := http.Get(url + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(body), "go_goroutines") || !strings.Contains(string(body), "process_") {
		t.Errorf("/metrics: %v\n%s", err, body)
	}
	http.DefaultClient.CloseIdleConnections()
	if c := interrupt(); c.code != exitDone {
		t.Errorf("exit status %d:\n%s", c.code, out.stderr)
	}
	if log := out.stderr.String(); !strings.Contains(log, `"msg":"starting"`) || !strings.Contains(log, `"msg":"stopped"`) {
		t.Errorf("the log does not say when it started and stopped:\n%s", log)
	}
}

func TestRunExitsWithOneForWhatWaitingCannotMend(t *testing.T) {
	s := newStage(t)
	failing := func(context.Context, *config.Config, *schemas.Set, *producer.Cluster, *metrics.Set, *status.Board, *zap.Logger, bool) error {
		return errors.New("topic store.watermarks: cleanup.policy is delete, expected compact")
	}
	(&call{args: append([]string{"run"}, s.flags...), app: app{engine: failing}}).run(t.Context()).expect(t, exitFailed, "cleanup.policy is delete")
	(&call{args: append([]string{"run", "--once"}, s.flags...), app: app{engine: failing}}).run(t.Context()).expect(t, exitFailed, "cleanup.policy is delete")
}

func TestNeitherSecretsNorTheDSNAreLogged(t *testing.T) {
	s := newStage(t)
	out, interrupt := s.start(idle, "run", "--set", "log.level=debug", "--set", "store.api_key=geheim1", "--set", "registry.username=u",
		"--set", "registry.password=geheim2", "--set", "postgres.dsn=postgres://student_ro:geheim3@127.0.0.1:1/x")
	eventually(t, "the status server listens", func() bool { return listens.MatchString(out.stderr.String()) })
	interrupt()
	if strings.Contains(out.stderr.String(), "geheim") {
		t.Errorf("a secret is logged:\n%s", out.stderr)
	}
}

func TestOnceEndsWhenEveryEnabledResourceIsPublishedWhoeverDoesIt(t *testing.T) {
	s := newStage(t)
	out, _ := s.start(idle, "run", "--once", "--set", "resources.products.enabled=false", "--set", "resources.users.enabled=false",
		"--set", "resources.shipments.enabled=false")
	eventually(t, "it has started", func() bool { return listens.MatchString(out.stderr.String()) })
	s.publish("orders", []schemas.Record{s.order(1, "Shipped")}, nil, asOfNow)
	if out.stdout.String() != "" {
		t.Fatalf("it ended although order_items are not published:\n%s", out.stdout)
	}
	s.publish("order_items", nil, nil, asOfNow)
	eventually(t, "the summary", func() bool { return strings.Contains(out.stdout.String(), "order_items") })
	for _, text := range []string{"RESOURCE", "orders", "order_items", " 1 "} {
		if !strings.Contains(out.stdout.String(), text) {
			t.Errorf("the summary does not say %q:\n%s", text, out.stdout)
		}
	}
}

func asOfNow(w *watermark.Watermark) {
	w.AsOf = schemas.InstantOf(time.Now())
	w.Settled = w.AsOf.Add(-2 * time.Minute)
}

func TestOnceWaitsForAPassThatBeganAfterItsStart(t *testing.T) {
	s := newStage(t)
	for _, name := range schemas.Names() {
		s.publish(name, nil, nil, asOfNow) // everything is up to date, but as of a moment ago
	}
	c := (&call{args: append([]string{"run", "--once", "--patience", "1500ms"}, s.flags...), app: app{engine: idle}}).run(t.Context())
	c.expect(t, exitFailed, "no progress for 1.5s", ": it stands at ") // of those whose time is up first: each has its own
}

func TestOnceNamesTheResourceThatMakesNoProgressAndWhatItFailsWith(t *testing.T) {
	s := newStage(t)
	failing := func(ctx context.Context, _ *config.Config, _ *schemas.Set, _ *producer.Cluster, _ *metrics.Set, board *status.Board, _ *zap.Logger, _ bool) error {
		board.Provide(func() status.Snapshot {
			return status.Snapshot{Resources: []status.Resource{{Name: "users", Owned: true, Error: "GET /store-users: 500 internal_error"}}}
		})
		<-ctx.Done()
		return nil
	}
	c := &call{args: append([]string{"run", "--once", "--patience", "3s"}, s.flags...), app: app{engine: failing}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, name := range []string{"orders", "order_items", "products", "shipments"} {
			s.publish(name, nil, nil, func(w *watermark.Watermark) { w.AsOf = schemas.InstantOf(time.Now().Add(time.Hour)) })
		}
	}()
	c.run(t.Context()).expect(t, exitFailed, "no progress for 3s", "users: GET /store-users: 500 internal_error")
	<-ended
}

func TestABrokerThatIsNotThereIsNamed(t *testing.T) {
	address := noBroker(t)
	flags := []string{"--set", "kafka.brokers=" + address, "--set", "http.listen=127.0.0.1:0"}
	(&call{args: append([]string{"run", "--once", "--patience", "500ms"}, flags...), app: app{engine: idle}}).run(t.Context()).
		expect(t, exitFailed, "no progress for 500ms", address)
}

func TestThePortOfTheStatusServerMayBeTakenOnlyWithOnce(t *testing.T) {
	s := newStage(t)
	out, _ := s.start(idle, "run")
	eventually(t, "the status server listens", func() bool { return listens.MatchString(out.stderr.String()) })
	taken := "http.listen=" + listens.FindStringSubmatch(out.stderr.String())[1]
	(&call{args: append([]string{"run"}, append(s.flags, "--set", taken)...), app: app{engine: idle}}).run(t.Context()).expect(t, exitFailed, taken[len("http.listen="):])
	(&call{args: append([]string{"run", "--once", "--patience", "1s"}, append(s.flags, "--set", taken)...), app: app{engine: idle}}).run(t.Context()).
		expect(t, exitFailed, "no status page", "no progress")
}
