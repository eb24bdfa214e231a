package status

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, board *Board) string {
	t.Helper()
	return "http://" + listen(t, Config{}, board).Addr()
}

func get(t *testing.T, url string) (int, string, http.Header) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func TestReadyMeansThatEveryOwnedResourceHasCompletedAPass(t *testing.T) {
	failing := func(why string) *watermark.Trouble { return &watermark.Trouble{Why: why, Failing: true} }
	for _, test := range []struct {
		name  string
		s     Snapshot
		ready bool
		why   string
	}{
		{"waiting for the broker", Snapshot{Waiting: "broker 127.0.0.1:9092"}, false, "broker 127.0.0.1:9092"},
		{"a standby that owns nothing", Snapshot{Resources: []health.Resource{{Name: "orders"}}}, true, ""},
		{"one of two has passed", Snapshot{Resources: []health.Resource{
			{Name: "orders", Owned: true, Passes: 3}, {Name: "users", Owned: true, Doing: "polling"},
		}}, false, "users: no complete pass yet: the first load is not finished (polling)"},
		{"one fails from the start", Snapshot{Resources: []health.Resource{
			{Name: "users", Owned: true, Trouble: failing("401")},
		}}, false, "users: no complete pass yet: failing for"},
		{"all have passed, one fails now", Snapshot{Resources: []health.Resource{
			{Name: "users", Owned: true, Passes: 1, Trouble: failing("500")},
		}}, true, ""},
	} {
		board := New("a-1", "v0")
		board.Provide(func() Snapshot { return test.s })
		ok, why := board.Snapshot().Ready()
		if ok != test.ready || !strings.Contains(strings.Join(why, "\n"), test.why) {
			t.Errorf("%s: ready %v because %q, expected %v because %q", test.name, ok, why, test.ready, test.why)
		}
	}
}

func TestAStandbyIsReadyAndNamesWhatNobodyPolls(t *testing.T) {
	board := New("a-1", "v0")
	board.Provide(func() Snapshot {
		stalled := health.New(watermark.New("orders"), 0)
		stalled.Owner, stalled.Silent = "b-2", time.Hour
		written := schemas.InstantOf(time.Now())
		wrote := health.New(watermark.New("products"), 0)
		wrote.Owner, wrote.Silent, wrote.Written = "b-2", time.Hour, &written
		return Snapshot{Resources: []health.Resource{stalled, wrote, {Name: "users", Owner: "b-2"},
			{Name: "shipments", Abandoned: true}}}
	})
	code, body, _ := get(t, serve(t, board)+"/readyz")
	const want = "ready\n" +
		"orders: b-2 has it, according to the consumer group, and has written no watermark: perhaps it is dead, " +
		"hangs or fails\nproducts: b-2 has it, according to the consumer group, and has not written its " +
		"watermark for " +
		"1h0m: perhaps it is dead, hangs or fails\n" +
		"shipments: nothing is published yet, and no instance polls it\n"
	if code != http.StatusOK || body != want {
		t.Errorf("/readyz %d\n%s\nexpected\n%s", code, body, want)
	}
}

// The page has each reason's state, text and remedy. /readyz has the text if the resource publishes nothing.
func TestEveryReasonIsOnThePage(t *testing.T) {
	board := New("a-1", "v0")
	url := serve(t, board)
	for _, reason := range health.Reasons {
		why := "7 " + strings.ReplaceAll(reason.Texts()[0], "...", "5")
		board.Provide(func() Snapshot {
			r := health.New(watermark.New("orders"), schemas.InstantOf(time.Now()))
			r.Owned, r.Polling, r.AsOf, r.Good = true, true, &r.Now, &r.Now
			r.Trouble = &watermark.Trouble{Why: why, Since: r.Now, Publishes: reason.State != health.Blocked}
			return Snapshot{Resources: []health.Resource{r}}
		})
		_, body, _ := get(t, url+"/status.json")
		var s Snapshot
		if err := json.Unmarshal([]byte(body), &s); err != nil {
			t.Fatal(err)
		}
		r := s.Resources[0]
		remedy := strings.ReplaceAll(reason.Remedy, "RESOURCE", "orders")
		if r.Why != why || !strings.HasPrefix(r.Remedy, remedy) ||
			(r.State == health.Blocked) != (reason.State == health.Blocked) {
			t.Errorf("%s: %+v", reason.Code, r)
		}
		_, body, _ = get(t, url+"/readyz")
		if strings.Contains(body, why) != (reason.State == health.Blocked) {
			t.Errorf("%s: /readyz says %s", reason.Code, body)
		}
	}
}

func TestTheProbesAnswerFromTheFirstMoment(t *testing.T) {
	board := New("a-1", "v0")
	url := serve(t, board)
	if code, _, _ := get(t, url+"/healthz"); code != http.StatusOK {
		t.Errorf("/healthz %d", code)
	}
	code, body, _ := get(t, url+"/readyz")
	if code != http.StatusServiceUnavailable || !strings.Contains(body, "starting") {
		t.Errorf("/readyz before there is a provider: %d %q", code, body)
	}
	board.Provide(func() Snapshot {
		return Snapshot{Resources: []health.Resource{{Name: "orders", Owned: true, Passes: 1}}}
	})
	if code, body, _ := get(t, url+"/readyz"); code != http.StatusOK {
		t.Errorf("/readyz %d %q", code, body)
	}
	if code, body, _ := get(t, url+"/metrics"); code != http.StatusOK {
		t.Errorf("/metrics %d %q", code, body)
	}
	if code, _, _ := get(t, url+"/nothing"); code != http.StatusNotFound {
		t.Errorf("/nothing %d", code)
	}
}

func TestThePageIsSelfContainedAndFedByEvents(t *testing.T) {
	board := New("a-1", "v0")
	const bold = "<b>bold</b>"
	board.Provide(func() Snapshot {
		return Snapshot{Resources: []health.Resource{{Name: "orders", Owned: true,
			Trouble: &watermark.Trouble{Why: bold, Failing: true}}}}
	})
	url := serve(t, board)
	for _, path := range []string{"/", "/page.js", "/page.css"} {
		code, body, header := get(t, url+path)
		if code != http.StatusOK || strings.Contains(body, "http://") || strings.Contains(body, "https://") {
			t.Errorf("%s: %d, or something from elsewhere in it", path, code)
		}
		if !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s has no content security policy", path)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for events := 0; events < 2 && lines.Scan(); {
		if lines.Text() != "event: status" || !lines.Scan() {
			continue
		}
		events++
		text, _ := strings.CutPrefix(lines.Text(), "data: ")
		var s Snapshot
		err := json.Unmarshal([]byte(text), &s)
		if err != nil || len(s.Resources) != 1 || s.Resources[0].Why != bold {
			t.Fatalf("event %s: %v", text, err)
		}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
}

func TestClosingEndsOpenEventStreamsCleanly(t *testing.T) {
	board := New("a-1", "v0")
	s, err := Listen(Config{Addr: "127.0.0.1:0"}, board, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get("http://" + s.Addr() + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Errorf("the stream was cut instead of ended: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestAPortInUseIsNamed(t *testing.T) {
	url := serve(t, New("a-1", "v0"))
	addr := strings.TrimPrefix(url, "http://")
	_, err := Listen(Config{Addr: addr}, New("b-1", "v0"), prometheus.NewRegistry())
	for _, says := range []string{"http.listen " + addr, "address already in use",
		"STORESTREAM_HTTP__LISTEN"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, expected it to say %q", err, says)
		}
	}
}
