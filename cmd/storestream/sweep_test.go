package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func TestSweepWritesOneRequestForEachResourceAndSaysHowToFollowIt(t *testing.T) {
	s := newScene(t)
	s.do("sweep", "orders", "users", "--yes").expect(t, exitDone, "orders: asked for a sweep",
		"users: asked for a sweep", "`storestream watermark list`")
	s.do("watermark", "list").expect(t, exitLate, "waits: sweep by "+whoAmI())
	c := s.do("sweep", "--all", "-y").expect(t, exitDone)
	if n := strings.Count(c.stdout.String(), ": asked for a sweep"); n != len(storefake.Names()) {
		t.Errorf("%d requests for --all:\n%s", n, c.stdout)
	}
}

func TestARequestThatNobodyTakesNowSaysWhy(t *testing.T) {
	s := newScene(t)
	s.do("sweep", "orders", "--yes").expect(t, exitDone, "orders: the request waits until this is over: "+
		"nothing is published yet, and no instance polls it -> start an instance")
	s.do("sweep", "orders", "--yes", "--set", "resources.orders.enabled=false").expect(t, exitDone,
		"orders: the request waits until this is over: no instance has ever polled it, and it is not enabled here")
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, nil)
	c := s.do("erase", "orders", "1", "--yes").expect(t, exitDone,
		"orders: the request waits until this is over: no instance polls it")
	if strings.Contains(c.stdout.String(), "takes it from here") {
		t.Errorf("nobody does:\n%s", c.stdout)
	}
	now := schemas.InstantOf(time.Now())
	trouble := func(t watermark.Trouble) *watermark.Trouble {
		t.Since, t.Why = now.Add(-time.Minute), "so it is"
		return &t
	}
	const over = "the request waits until this is over: "
	for _, test := range []struct {
		r    health.Resource
		says string
	}{
		{health.Resource{Owner: "a", Enabled: true}, "a takes it from here"},
		{health.Resource{Owner: "a"}, "a takes it from here"},
		{health.Resource{Between: true, Enabled: true}, ""},
		{health.Resource{Owner: "a", Trouble: trouble(watermark.Trouble{Failing: true})},
			over + "failing for 1m0s: so it is"},
		{health.Resource{Owner: "a", Trouble: trouble(watermark.Trouble{})},
			over + "blocked for 1m0s, nothing is published: so it is"},
		{health.Resource{Owner: "a", Trouble: trouble(watermark.Trouble{Publishes: true, LeavesOut: true})},
			over + "blocked for 1m0s, other rows go on: so it is"},
		{health.Resource{Owner: "a", AsOf: &now, Good: &now,
			Trouble: trouble(watermark.Trouble{Publishes: true})}, "a takes it from here"},
		{health.Resource{Owner: "a", Silent: 5 * time.Minute}, over + "a has it, according to the consumer " +
			"group, and has written no watermark: perhaps it is dead, hangs or fails -> `storestream check` tries " +
			"kafka, registry and service; its log says the rest"},
		{health.Resource{Owner: "a", Unreadable: errors.New("somebody else wrote it")},
			over + "somebody else wrote it"},
		{health.Resource{Enabled: true, Abandoned: true}, over + "nothing is published yet, and no instance " +
			"polls it -> start an instance (`storestream run`), or enable the resource in all of them. An instance " +
			"that runs and does not answer at /healthz is frozen: restart it"},
	} {
		test.r.Now = now
		test.r.Judge()
		if _, got := (&following{}).step(test.r); got != test.says {
			t.Errorf("%+v: %q, expected %q", test.r, got, test.says)
		}
	}
}

// Whoever waits hears what for, when it begins and when it is over, each once.
func TestAWaitSaysWhatItWaitsForAsThatChanges(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, nil)
	out, _, ended := s.run("sweep", "orders", "--yes", "--wait")
	says := func(text string) {
		t.Helper()
		stage.Eventually(t, "it says "+text, func() bool { return strings.Contains(out.stdout.String(), text) })
	}
	says("orders: the request waits until this is over: no instance polls it")
	s.Join("b", "orders")
	says("orders: b takes it from here")

	asked := s.requestFor("orders")
	since := schemas.InstantOf(time.Now())
	block := func(why string) func(*watermark.Watermark) {
		return func(w *watermark.Watermark) { w.Trouble = &watermark.Trouble{Why: why, Since: since} }
	}
	s.Publish("orders", nil, nil, block("poll.memory is full"))
	says("orders: the request waits until this is over: blocked for ")
	says("nothing is published: poll.memory is full -> ")
	s.Publish("orders", nil, nil, block("poll.memory is full, by one row more"))
	garbage := s.Garbage("orders")
	says("orders: the request waits until this is over: topic store.watermarks, partition ")
	s.takeOut(garbage)
	s.Publish("orders", nil, nil, block("poll.memory is full, by two rows more"))
	says("by two rows more")
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) { w.Trouble = nil })
	stage.Eventually(t, "it says that the block is over", func() bool {
		return strings.Count(out.stdout.String(), "orders: b takes it from here") == 2
	})
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.RequestUID = asked.ID, asked.UID
		w.Swept = &watermark.Swept{Request: asked.ID, RequestUID: asked.UID, SourceRows: 1}
	})
	c := ended().expect(t, exitDone, "orders: swept 1 row")
	if text := c.stdout.String(); strings.Contains(text, "one row more") ||
		strings.Count(text, "no instance polls it") != 1 {
		t.Errorf("the same is said twice:\n%s", text)
	}
}

// Between "asked for" and the result lie minutes.
func TestAWaitSaysWhatTheOwnerIsAtEachStepOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, nil)
	s.Join("b", "orders", "users")
	says := func(out *call, text string) {
		t.Helper()
		stage.Eventually(t, "it says "+text, func() bool { return strings.Contains(out.stdout.String(), text) })
	}
	out, interrupt, ended := s.run("sweep", "orders", "users", "--yes", "--wait")
	says(out, "users: asked for a sweep")
	erased, interruptErase, eraseEnded := s.run("erase", "orders", "1", "--yes", "--wait")
	says(erased, "orders: asked for an erase of 1 row")
	replayed, interruptReset, resetEnded := s.run("watermark", "reset", "users", "--to", "2026-01-01", "--yes",
		"--wait")
	says(replayed, "users: asked for a replay")
	at := schemas.InstantOf(time.Now())
	takes := func(resource string, tried *schemas.Instant, change func(*watermark.Watermark)) {
		asked := s.requestsFor(resource)
		s.Publish(resource, nil, nil, func(w *watermark.Watermark) {
			last := asked[len(asked)-1]
			w.Request, w.RequestUID = last.ID, last.UID
			w.Sweep = &watermark.Sweep{Request: asked[0].ID, RequestUID: asked[0].UID, Tried: tried}
			change(w)
		})
	}
	nothing := func(*watermark.Watermark) {}
	takes("users", nil, func(w *watermark.Watermark) { w.Replay = &watermark.Replay{} })
	for _, call := range []*call{out, replayed} {
		says(call, "; a sweep is due\n")
	}
	takes("users", &at, func(w *watermark.Watermark) { w.Replay = nil })
	says(out, "users: sweeping\n")
	takes("orders", nil, func(w *watermark.Watermark) { w.AcceptErase(s.requestsFor("orders")[1], at) })
	for _, call := range []*call{out, erased} {
		says(call, "orders: a sweep is due; erasing 1 row\n")
	}
	takes("users", nil, func(w *watermark.Watermark) { w.Sweep.From = new(int64) }) // a part is over
	takes("orders", &at, nothing)
	says(out, "orders: sweeping")
	takes("users", &at, nothing)
	takes("orders", nil, func(w *watermark.Watermark) { w.Trouble = &watermark.Trouble{Why: "full", Since: at} })
	says(out, "orders: the request waits until this is over: blocked")
	for _, end := range []func(){interrupt, interruptErase, interruptReset} {
		end()
	}
	eraseEnded()
	resetEnded()
	if text := ended().stdout.String(); strings.Count(text, "users: sweeping\n") != 1 {
		t.Errorf("a step is said twice:\n%s", text)
	}
}

// takeOut writes a tombstone over a record, as docs/security.md says.
func (s *scene) takeOut(r *kgo.Record) {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Broker.Brokers()...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	over := &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key}
	if err := cl.ProduceSync(s.t.Context(), over).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// requestFor is the last request for a resource.
func (s *scene) requestFor(resource string) watermark.Request {
	s.t.Helper()
	asked := s.requestsFor(resource)
	return asked[len(asked)-1]
}

// requestsFor are all requests for a resource, of which there is one or more.
func (s *scene) requestsFor(resource string) []watermark.Request {
	s.t.Helper()
	requests := s.Cluster("owner").Requests()
	if err := requests.CatchUp(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	asked := requests.After(resource, -1, "")
	if len(asked) == 0 {
		s.t.Fatal("nothing is asked of " + resource)
	}
	return asked
}

func TestSweepAsksUnlessToldNotTo(t *testing.T) {
	s := newScene(t)
	for answer, code := range map[string]int{"": exitFailed, "no\n": exitFailed, "y\n": exitDone} {
		c := s.answer(answer, "sweep", "orders", "--set", "sweep.deletes=tombstone").expect(t, code,
			"(sweep.deletes)? [y/N]")
		if asked := strings.Contains(c.stdout.String(), ": asked for a sweep"); asked != (code == exitDone) {
			t.Errorf("answer %q: asked %v:\n%s", answer, asked, c.stdout)
		}
	}
	s.answer("", "sweep", "orders", "-y").expect(t, exitDone, ": asked for a sweep")
}

func TestSweepWaitsUntilItsOwnRequestIsCarriedOut(t *testing.T) {
	s := newScene(t)
	out, _, ended := s.run("sweep", "orders", "users", "--yes", "--wait")
	stage.Eventually(t, "the requests are written", func() bool {
		return strings.Contains(out.stdout.String(),
			"users: asked for a sweep")
	})
	asked := []watermark.Request{s.requestFor("orders"), s.requestFor("users")}
	earlier := &watermark.Swept{Request: -1}
	s.Publish("users", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.RequestUID = asked[1].ID, asked[1].UID
		w.Swept = &watermark.Swept{Request: w.Request, RequestUID: w.RequestUID, SourceRows: 1234}
		w.LastSweep = schemas.InstantOf(time.Now())
	})
	stage.Eventually(t, "the first is done", func() bool {
		return strings.Contains(out.stdout.String(), "users: swept 1,234 rows: 0 missing, 0 stale, 0 extra; ")
	})
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) { // accepted, and one from before is done
		w.Request, w.RequestUID, w.Swept = asked[0].ID, asked[0].UID, earlier
		w.Sweep = &watermark.Sweep{Request: w.Request, RequestUID: w.RequestUID}
	})
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.RequestUID, w.Sweep = asked[0].ID, asked[0].UID, nil
		w.Swept = &watermark.Swept{Request: w.Request, RequestUID: w.RequestUID, SourceRows: 10, Missing: 1,
			Stale: 2, Extra: 3, Published: 3, DeadLetters: 4, Left: "three rows stay"}
	})
	stage.Eventually(t, "the second is done", func() bool {
		return strings.Contains(out.stdout.String(), "orders: swept 10 rows: 1 missing, 2 stale, 3 extra; "+
			"3 published, 0 tombstones, 4 dead letters. Left: three rows stay")
	})
	ended().expect(t, exitDifferent, "storestream: orders: different from the service still")
	if strings.Count(out.stdout.String(), "orders: swept") != 1 {
		t.Errorf("orders:\n%s", out.stdout)
	}
}

// A sweep that is carried out makes nothing complete of which the service's rows cannot be published.
func TestAWaitForASweepEndsWithTheRowsThatCannotBePublished(t *testing.T) {
	s := newScene(t)
	letter := watermark.DeadLetter{Key: "orders/7", Source: "rest", Row: []byte("{}"), Err: "expected a decimal"}
	for _, name := range []string{"orders", "users"} {
		letter.Key = name + "/7"
		s.Commit(name, watermark.Transaction{DeadLetters: []watermark.DeadLetter{letter}}, nil)
	}
	out, _, ended := s.run("sweep", "orders", "--yes", "--wait")
	stage.Eventually(t, "the request is written", func() bool {
		return strings.Contains(out.stdout.String(), "orders: asked for a sweep")
	})
	asked := s.requestFor("orders")
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.RequestUID = asked.ID, asked.UID
		w.Swept = &watermark.Swept{Request: w.Request, RequestUID: w.RequestUID, SourceRows: 10, DeadLetters: 1}
	})
	c := ended().expect(t, exitLate, "storestream: not up to date: orders: the topic lacks 1 row because")
	if strings.Contains(c.stderr.String(), "users: the topic lacks") {
		t.Errorf("nobody asked for users:\n%s", c.stderr)
	}
}

// Offsets begin again in a topic that was made anew: a sweep that was done long ago has a higher id than a
// new request. And a request may be deleted before an instance takes it.
func TestAWaitForASweepSurvivesATopicOfRequestsThatIsMadeAnew(t *testing.T) {
	s := newScene(t)
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.RequestUID = 5, "long-ago"
		w.Swept = &watermark.Swept{Request: 5, RequestUID: "long-ago", SourceRows: 1}
	})
	s.Garbage("products") // is no reason to wait for users
	out, _, ended := s.run("sweep", "orders", "users", "--yes", "--wait")
	stage.Eventually(t, "the requests are written", func() bool {
		return strings.Contains(out.stdout.String(), "users: asked for a sweep")
	})
	requests := s.Cluster("owner").Requests()
	if err := requests.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := requests.After("orders", 5, "long-ago")
	if len(asked) != 1 {
		t.Fatalf("new requests: %+v", asked)
	}
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.RequestUID = asked[0].ID, asked[0].UID
		w.Sweep = &watermark.Sweep{Request: asked[0].ID, RequestUID: asked[0].UID}
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Broker.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).DeleteTopics(t.Context(), "store.requests"); err != nil {
		t.Fatal(err)
	}
	s.do("sweep", "products", "--yes").expect(t, exitDone, "asked for a sweep") // makes the topic anew
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Sweep = nil
		w.Swept = &watermark.Swept{Request: asked[0].ID, RequestUID: asked[0].UID, SourceRows: 7}
	})
	ended().expect(t, exitFailed, "orders: swept 7 rows",
		"users: the request was deleted with its topic before an instance took it: ask again")
}

func TestARequestIsDoneWhenItOrALaterOneWasCarriedOut(t *testing.T) {
	at := func(id int64, uid string) watermark.Watermark {
		return watermark.Watermark{Request: id, RequestUID: uid}
	}
	with := func(w watermark.Watermark, id int64, uid string) watermark.Watermark {
		w.Swept = &watermark.Swept{Request: id, RequestUID: uid}
		return w
	}
	for _, test := range []struct {
		name       string
		mark       watermark.Watermark
		held       []watermark.Request
		done, gone bool
	}{
		{"not accepted", with(at(6, "six"), -1, ""), held("seven"), false, false},
		{"in hand", with(at(7, "seven"), 6, "six"), held("seven"), false, false},
		{"done", with(at(7, "seven"), 7, "seven"), held("seven"), true, false},
		{"done, and another was asked for since", with(at(8, "eight"), 7, "seven"), held("seven", "eight"), true,
			false},
		{"replaced by a later one before it began", with(at(8, "eight"), 5, "five"), held("seven", "eight"), false,
			false},
		{"that one is done", with(at(8, "eight"), 8, "eight"), held("seven", "eight"), true, false},
		{"never swept", at(7, "seven"), held("seven"), false, false},
		{"one of another topic, with a higher id", with(at(9, "nine"), 9, "nine"), held("seven"), false, false},
		{"deleted with its topic", with(at(9, "nine"), 9, "nine"), nil, false, true},
		{"deleted when an instance had taken it", with(at(7, "seven"), 9, "nine"), nil, false, false},
	} {
		r := &following{Request: watermark.Request{ID: 7, UID: "seven", Kind: watermark.Sweeps},
			env: &environment{stdout: io.Discard}}
		r.look(test.held)
		done, err := r.result(test.mark)
		if gone := err != nil; done != (test.done || test.gone) || gone != test.gone {
			t.Errorf("%s: done %v, gone %v; want %v, %v", test.name, done, gone, test.done, test.gone)
		}
	}
}

// held are requests with these UIDs, in order.
func held(uids ...string) (all []watermark.Request) {
	for i, uid := range uids {
		all = append(all, watermark.Request{ID: int64(7 + i), UID: uid})
	}
	return all
}

// The service shows no row by created_*, or refuses to, and all rows by updated_*. Rows go on, so all is up
// to date. No sweep says that topic and service are equal, and watermark list says why.
func TestWatermarkListSaysWhyNoSweepComparesAllRows(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	fake := s.Serve(nil)
	var status atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code := int(status.Load())
		if q := r.URL.Query(); code == 0 || q.Get("created_from")+q.Get("created_to") == "" {
			fake.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if code == http.StatusOK {
			_, _ = io.WriteString(w, `{"data":[],"meta":{"page":0,"page_size":1,"count":0,"has_more":false}}`)
		} else {
			_, _ = io.WriteString(w, `{"error":{"code":"invalid_param","message":"unknown parameter created_from"}}`)
		}
	}))
	t.Cleanup(service.Close)
	s.Settings = append(s.Settings, "store.base_url="+service.URL+"/v1", "resources.users.interval=1s",
		"resources.users.overlap=1s")
	for _, other := range []string{"orders", "order_items", "products", "shipments"} {
		s.Settings = append(s.Settings, "resources."+other+".enabled=false")
	}
	s.start("run")
	status.Store(http.StatusOK)
	s.do("sweep", "users", "--yes", "--wait").expect(t, exitDifferent, "users: swept 0 rows: 0 missing",
		"Left: 20 rows of the topic did not come when all rows were read (over REST by created_*), and came")
	s.do("watermark", "list").expect(t, exitDone, "0 rows, see below", "Everything is up to date",
		"users: the last sweep left some of it: 20 rows of the topic did not come")
	s.do("verify", "users").expect(t, exitFailed, "in one reading and not in another")

	status.Store(http.StatusBadRequest)
	s.do("sweep", "users", "--yes").expect(t, exitDone)
	stage.Eventually(t, "watermark list says why the sweep fails", func() bool {
		said := s.do("watermark", "list").expect(t, exitDone, "Everything is up to date").stdout.String()
		return strings.Contains(said, "users: the sweep has not ended: it failed 1 time in a row and is tried ") &&
			strings.Contains(said, "answered 400 invalid_param")
	})
	status.Store(0)
	s.do("sweep", "users", "--yes", "--wait").expect(t, exitDone, "users: swept ")
	if said := s.do("watermark", "list").stdout.String(); strings.Contains(said, "has not ended") {
		t.Errorf("a sweep has ended:\n%s", said)
	}
}
