package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
)

// judgement is what /status.json and `watermark list -o json` say of a resource.
type judgement struct {
	Resource, State, Why, Remedy string
}

// fault is one thing that goes wrong, and the judgement that every reader has to give.
type fault struct {
	name, resource string
	begin, end     func()
	state          string
	says           []string // words of the reason
	lasts          string   // words of the text of `check` beside the reason
}

// door is an HTTP server on a port that stays the same while it is closed.
type door struct {
	s       *stack
	addr    string
	handler http.Handler
	server  *http.Server
	served  chan struct{} // closed when server has ended
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
	d.addr, d.server, d.served = listener.Addr().String(), &http.Server{Handler: d.handler}, make(chan struct{})
	go func() {
		defer close(d.served)
		_ = d.server.Serve(listener)
	}()
}

func (d *door) close() {
	_ = d.server.Close()
	<-d.served
}

// Whatever fails, the page, `watermark list`, the metrics and `check` give one verdict: the same state for
// the same reason, with the same remedy. The faults of a round are of different resources, and go wrong
// together.
func TestEveryReaderIsToldTheSameOfEveryFault(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick, fake: smallShop(24), embedded: true,
		pooler: servers.PgBouncerConfig{Settings: map[string]string{"query_wait_timeout": "2"}}})
	service := s.door(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.fake.ServeHTTP(w, r) }))
	registry := s.door(s.schemas.Fake.Handler())
	text, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	s.config = s.write("doors.yaml", strings.NewReplacer(s.registry, "http://"+registry.addr,
		strings.TrimSuffix(s.fake.BaseURL(), "/v1"), "http://"+service.addr).Replace(string(text)))
	admin, err := pgx.Connect(t.Context(), s.postgres.AdminDSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	sql := func(statement string) func() {
		return func() { _, err := admin.Exec(context.Background(), statement); must(err) }
	}
	lack := func(fields ...string) func() {
		return func() { must(s.fake.SetReadings(func(r *storefake.Readings) { r.Without = fields })) }
	}
	redirect := func(f storefake.Fault) func() {
		return func() {
			must(s.fake.SetFaults(func(faults *storefake.Faults) {
				faults.RedirectTo = "http://127.0.0.1:1/"
				faults.Choose = func(r *http.Request) storefake.Fault {
					if strings.HasSuffix(r.URL.Path, "/store-products") {
						return f
					}
					return storefake.NoFault
				}
			}))
		}
	}
	const nothing, role = "nothing is published", storefake.ReaderRole
	var open *storefake.Tx
	p := s.spawn("run")
	p.isReady()
	for _, round := range [][]fault{{
		{"a column is renamed", storefake.Orders, sql("ALTER TABLE orders RENAME COLUMN status TO state"),
			sql("ALTER TABLE orders RENAME COLUMN state TO status"), "blocked", []string{"has no column status"},
			nothing},
		{"the table is gone", storefake.OrderItems, sql("ALTER TABLE order_items RENAME TO gone"),
			sql("ALTER TABLE gone RENAME TO order_items"), "blocked", []string{"has no table"}, nothing},
		{"the rows have lost a field", storefake.Users, lack("users.city"), lack(), "blocked",
			[]string{"rows have lost city"}, nothing},
	}, {
		{"a right is missing", storefake.Orders, sql("REVOKE SELECT ON orders FROM " + role),
			sql("GRANT SELECT ON orders TO " + role), "blocked", []string{"may not read", "GRANT"}, nothing},
		{"a transaction is open", storefake.OrderItems, func() { open = s.forgets() },
			func() { must(open.Commit(context.Background())) }, "settling_delayed", []string{"is open since"},
			"settling is delayed for "},
		{"the service redirects", storefake.Products, redirect(storefake.Redirect), redirect(storefake.NoFault),
			"blocked", []string{"it redirects to"}, nothing},
	}, {
		{"the database is stopped", storefake.Orders, func() { must(s.postgres.Shutdown()) },
			func() { must(s.postgres.Start(context.Background())) }, "failing", []string{"127.0.0.1"}, "failing for "},
		{"the service is stopped", storefake.Products, service.close, service.open, "failing",
			[]string{service.addr, "refused"}, "failing for "},
	}, {
		{"the registry is stopped", storefake.Users, func() { p.stop(); registry.close(); p = s.spawn("run") },
			registry.open, "failing", []string{registry.addr, "refused"}, ""},
	}} {
		for _, f := range round {
			f.begin()
		}
		for _, f := range round {
			s.allSay(p, f)
		}
		for _, f := range round {
			f.end()
		}
		p.stop() // a takeover tries again at once
		p = s.spawn("run")
		p.isReady()
	}

	must(s.broker.Stop())
	broker := s.brokers[0]
	eventually(t, "the page and its metrics say that the broker is down", func() (bool, string) {
		_, body := p.get("/status.json")
		all := p.resources()
		polled := slices.ContainsFunc(all, func(r shown) bool {
			return p.metric("storestream_owned", r.Name) == 1 || r.State == "following"
		})
		return len(all) > 0 && !polled && strings.Contains(body, broker), body
	})
	s.expect(1, []string{broker}, "watermark", "list")
	s.expect(1, []string{"FAIL  kafka", broker}, "check")
	p.kill()
}

// allSay waits until every reader gives the verdict of f.
func (s *stack) allSay(p *process, f fault) {
	s.t.Helper()
	says := func(v judgement) bool {
		lacks := func(word string) bool { return !strings.Contains(v.Why, word) }
		return v.State == f.state && !slices.ContainsFunc(f.says, lacks)
	}
	of := func(all []judgement) judgement {
		i := slices.IndexFunc(all, func(v judgement) bool { return v.Resource == f.resource })
		if i < 0 {
			return judgement{}
		}
		return all[i]
	}
	shown := func() judgement {
		_, body := p.get("/status.json")
		var status struct{ Resources []judgement }
		_ = json.Unmarshal([]byte(body), &status)
		return of(status.Resources)
	}
	eventually(s.t, f.name+": the page says so", func() (bool, string) {
		page := shown()
		return says(page), fmt.Sprintf("%+v", page)
	})
	same := func(why, remedy string) (bool, string) {
		page := shown()
		// A rehearsal has the words of its own steps.
		reason := strings.Contains(why, page.Why) || f.lasts == ""
		return reason && remedy == page.Remedy && says(judgement{State: page.State, Why: why}),
			fmt.Sprintf("%q -> %q\npage: %+v", why, remedy, page)
	}
	eventually(s.t, f.name+": `watermark list` says the same", func() (bool, string) {
		out, _, _ := s.do("watermark", "list", "-o", "json")
		var all []judgement
		_ = json.Unmarshal([]byte(out), &all)
		listed := of(all)
		ok, text := same(listed.Why, listed.Remedy)
		return ok && listed.State == f.state, listed.State + ": " + text
	})
	eventually(s.t, f.name+": `check` says the same", func() (bool, string) {
		out, _, _ := s.do("check", "-o", "json")
		var all []struct{ Part, About, Found, Do string }
		_ = json.Unmarshal([]byte(out), &all)
		for _, found := range all {
			if found.Part == "resources" && found.About == f.resource {
				ok, text := same(found.Found, found.Do)
				return ok && strings.Contains(found.Found, f.lasts), text
			}
		}
		return false, out
	})
	for _, gauge := range []string{"blocked", "incomplete", "settling_delayed", "stalled"} {
		if got := p.metric("storestream_"+gauge, f.resource) == 1; got != (gauge == f.state) {
			s.t.Errorf("%s: storestream_%s is 1: %v, in the state %s", f.name, gauge, got, f.state)
		}
	}
}
