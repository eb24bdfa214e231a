package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// judgement is what /status.json and `watermark list -o json` say of a resource.
type judgement struct {
	Resource, State, Why, Remedy string
}

// fault is one thing that goes wrong, and the judgement that every reader has to give.
type fault struct {
	name     string
	resource string
	begin    func()
	end      func()
	// restarts is set if only a takeover meets the fault.
	restarts bool
	state    string
	says     []string // words of the reason
	lasts    string   // words of the text of `check` beside the reason
}

// door is an HTTP server on a port that stays the same while it is closed.
type door struct {
	s       *stack
	addr    string
	handler http.Handler
	server  *http.Server
}

func (s *stack) door(handler http.Handler) *door {
	s.t.Helper()
	d := &door{s: s, addr: "127.0.0.1:0", handler: handler}
	d.open()
	s.t.Cleanup(d.close)
	return d
}

func (d *door) open() {
	d.s.t.Helper()
	listener, err := net.Listen("tcp", d.addr)
	if err != nil {
		d.s.t.Fatal(err)
	}
	d.addr, d.server = listener.Addr().String(), &http.Server{Handler: d.handler}
	go func() { _ = d.server.Serve(listener) }()
}

func (d *door) close() { _ = d.server.Close() }

// Whatever fails, the page, `watermark list`, the metrics and `check` give one verdict: the same state for the
// same reason, with the same remedy.
func TestEveryReaderIsToldTheSameOfEveryFault(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick, fake: smallShop(24), embedded: true})
	service := s.door(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.fake.ServeHTTP(w, r) }))
	registry := s.door(s.schemas.Fake.Handler())
	base := s.fake.BaseURL()
	at := []string{"--set", "store.base_url=http://" + service.addr + base[strings.LastIndex(base, "/"):],
		"--set", "registry.url=http://" + registry.addr}
	p := s.spawn(append([]string{"run"}, at...)...)
	p.isReady()
	s.converge()

	sql := func(statement string) func() {
		return func() {
			if err := s.fake.Exec(context.Background(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	without := func(fields ...string) func() {
		return func() {
			if err := s.fake.SetReadings(func(r *storefake.Readings) { r.Without = fields }); err != nil {
				t.Fatal(err)
			}
		}
	}
	redirects := func(share float64) func() {
		return func() {
			err := s.fake.SetFaults(func(f *storefake.Faults) {
				f.Shares = map[storefake.Fault]float64{storefake.Redirect: share}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	const role = storefake.ReaderRole
	var open *storefake.Tx
	for _, f := range []fault{
		{name: "the database is stopped", resource: storefake.Orders, state: "failing",
			begin: func() { must(s.postgres.Shutdown()) }, end: func() { must(s.postgres.Start(context.Background())) },
			says: []string{"127.0.0.1"}, lasts: "failing for "},
		{name: "the service is stopped", resource: storefake.Products, state: "failing",
			begin: service.close, end: service.open, says: []string{service.addr, "refused"}, lasts: "failing for "},
		{name: "the registry is stopped", resource: storefake.Users, state: "failing", restarts: true,
			begin: registry.close, end: registry.open, says: []string{registry.addr, "refused"}},
		{name: "a column is renamed", resource: storefake.Orders, state: "blocked",
			begin: sql("ALTER TABLE orders RENAME COLUMN status TO state"),
			end:   sql("ALTER TABLE orders RENAME COLUMN state TO status"),
			says:  []string{"has no column status"}, lasts: "nothing is published"},
		{name: "a right is missing", resource: storefake.Orders, state: "blocked",
			begin: sql("REVOKE SELECT ON orders FROM " + role), end: sql("GRANT SELECT ON orders TO " + role),
			says: []string{"may not read", "GRANT"}, lasts: "nothing is published"},
		{name: "the table is gone", resource: storefake.OrderItems, state: "blocked",
			begin: sql("ALTER TABLE order_items RENAME TO gone"), end: sql("ALTER TABLE gone RENAME TO order_items"),
			says: []string{"has no table"}, lasts: "nothing is published"},
		{name: "the rows have lost a field", resource: storefake.Users, state: "blocked",
			begin: without("users.city"), end: without(), says: []string{"rows have lost city"},
			lasts: "nothing is published"},
		{name: "the service redirects", resource: storefake.Products, state: "blocked", begin: redirects(1),
			end: redirects(0), says: []string{"it redirects to"}, lasts: "nothing is published"},
		{name: "a transaction is open", resource: storefake.OrderItems, state: "settling_delayed",
			begin: func() { open = s.forgets() }, end: func() { must(open.Commit(context.Background())) },
			says: []string{"is open since"}, lasts: "settling is delayed for "},
	} {
		t.Run(f.name, func(t *testing.T) {
			if f.restarts {
				p.stop()
			}
			f.begin()
			if f.restarts {
				p = s.spawn(append([]string{"run"}, at...)...)
			}
			s.allSay(p, f, at)
			f.end()
			p.stop() // a takeover tries again at once
			p = s.spawn(append([]string{"run"}, at...)...)
			p.isReady()
		})
	}
}

// allSay waits until every reader gives the judgement of f.
func (s *stack) allSay(p *process, f fault, at []string) {
	s.t.Helper()
	var page judgement
	says := func(v judgement) bool {
		lacks := func(word string) bool { return !strings.Contains(v.Why, word) }
		return v.State == f.state && !slices.ContainsFunc(f.says, lacks)
	}
	began := time.Now()
	eventually(s.t, "/status.json says that it is "+f.state, func() (bool, string) {
		_, body := p.get("/status.json")
		var status struct{ Resources []judgement }
		_ = json.Unmarshal([]byte(body), &status)
		page = find(status.Resources, f.resource)
		return says(page), fmt.Sprintf("%+v", page)
	})
	eventually(s.t, "`watermark list` says the same", func() (bool, string) {
		out, _, _ := s.do(append([]string{"watermark", "list", "-o", "json"}, at...)...)
		var all []judgement
		_ = json.Unmarshal([]byte(out), &all)
		listed := find(all, f.resource)
		return says(listed) && listed.Remedy == page.Remedy, fmt.Sprintf("%+v\npage: %+v", listed, page)
	})
	eventually(s.t, "`check` says the same", func() (bool, string) {
		out, _, _ := s.do(append([]string{"check", "-o", "json"}, at...)...)
		var all []struct{ Part, About, Found, Do string }
		_ = json.Unmarshal([]byte(out), &all)
		for _, found := range all {
			if found.Part == "resources" && found.About == f.resource {
				same := strings.Contains(found.Found, f.lasts) && found.Do == page.Remedy &&
					says(judgement{State: f.state, Why: found.Found})
				return same, fmt.Sprintf("%+v\npage: %+v", found, page)
			}
		}
		return false, out
	})
	for _, gauge := range []string{"blocked", "settling_delayed", "stalled"} {
		if got := p.metric("storestream_"+gauge, f.resource) == 1; got != (gauge == f.state) {
			s.t.Errorf("storestream_%s is 1: %v, in the state %s", gauge, got, f.state)
		}
	}
	s.t.Logf("%s: all say so after %s: %+v", f.name, time.Since(began).Round(time.Second), page)
}

func find(all []judgement, resource string) judgement {
	for _, v := range all {
		if v.Resource == resource {
			return v
		}
	}
	return judgement{}
}
