package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/schemas"
)

// knowing is a new source that begins with what another one has found out.
func (s *service) knowing(found map[string]watermark.Proof) *Source {
	src := s.source(s.client(client.Config{Now: s.now}))
	src.cfg.Dialect.Load(found)
	return src
}

// proven is the dialect in which these values were proven before.
func proven(values map[*dialect.Property]string) map[string]watermark.Proof {
	found := map[string]watermark.Proof{}
	for p, value := range values {
		found[p.Name] = watermark.Proof{Value: value, Since: schemas.InstantOf(at("2026-11-01T00:00:00Z"))}
	}
	return found
}

func full() poller.Request { return poller.Request{Kind: poller.Full, From: schemas.MinInstant} }

// The next process has to find out nothing that the first one has found out.
func TestASourceThatKnowsTheDialectAsksLess(t *testing.T) {
	zone := time.FixedZone("", -5*3600)
	for name, test := range map[string]struct {
		request poller.Request
		plays   func(*service)
	}{
		"another zone, pass": {pass(schemas.MinInstant), func(s *service) { s.zone = zone }},
		"midnights, pass":    {pass(schemas.MinInstant), func(s *service) { s.upTo = []string{"updated"} }},
		"both, pass": {pass(schemas.MinInstant), func(s *service) {
			s.zone, s.upTo = zone, []string{"updated"}
		}},
		"midnights, full": {full(), func(s *service) { s.upTo = []string{"created"} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			s.now = clockAt("2026-11-20T12:00:00Z")
			s.products = hourly(300, 37*time.Minute)
			test.plays(s)
			requests := func(src *Source) int {
				before := s.requests
				got, err := readAll(t.Context(), src, test.request)
				if err != nil || !got.done.Complete {
					t.Fatal(err)
				}
				got.has(t, s.products)
				return s.requests - before
			}
			first := s.fresh()
			found, n := first.cfg.Dialect.Found(), requests(first)
			if found != nil {
				t.Errorf("a new dialect knows %+v", found)
			}
			found = first.cfg.Dialect.Found()
			if again := requests(s.knowing(found)); again >= n {
				t.Errorf("%d requests by a source that knows %+v, %d by one that does not", again, found, n)
			} else {
				t.Logf("%d requests instead of %d", again, n)
			}
		})
	}
}

// A proven value may be true no longer, or be another service's. Then all rows are met all the same, and a
// value that the answers contradict is unknown again.
func TestADialectThatIsWrongLosesNoRow(t *testing.T) {
	for _, days := range []string{dialect.UTC, dialect.Other} {
		for _, updated := range []string{"", dialect.Whole, dialect.Midnight} {
			for _, created := range []string{"", dialect.Whole, dialect.Midnight} {
				wrong := proven(map[*dialect.Property]string{dialect.Days: days, dialect.UpdatedTo: updated,
					dialect.CreatedTo: created})
				t.Run(fmt.Sprintf("%v, %v, %v", days, updated, created), func(t *testing.T) {
					t.Parallel()
					for hours, upTo := range map[int][]string{0: nil, -5: nil, 9: {"updated", "created"},
						-11: {"updated"}, 1: {"created"}} {
						for _, page := range []int{500, 40} {
							s := newService(t)
							s.now = clockAt("2026-11-20T12:30:00Z")
							s.zone, s.upTo, s.maxPage = time.FixedZone("", hours*3600), upTo, page
							s.products = hourly(300, 37*time.Minute)
							s.losesNothing(wrong)
						}
					}
				})
			}
		}
	}
}

// losesNothing reads with sources that begin with a wrong dialect.
func (s *service) losesNothing(wrong map[string]watermark.Proof) {
	s.t.Helper()
	for _, request := range []poller.Request{pass(schemas.MinInstant), full()} {
		src := s.knowing(wrong)
		got, err := readAll(s.t.Context(), src, request)
		if err != nil || !got.done.Complete {
			s.t.Fatalf("%s, midnights %v: %v", s.zone, s.upTo, err)
		}
		got.has(s.t, s.products)
		to := dialect.UpdatedTo
		if request.Kind == poller.Full {
			to = dialect.CreatedTo
		}
		if s.upTo == nil && src.cfg.Dialect.Value(to) == dialect.Midnight {
			s.t.Errorf("%s is still taken for a midnight", to.Name)
		}
	}
	s.twoLivesOf("", 1, func() *Source { return s.knowing(wrong) })
	p := s.products[s.rng.IntN(len(s.products))]
	got, err := readAll(s.t.Context(), s.knowing(wrong), poller.Request{Kind: poller.Lookup, Everywhere: true,
		Suspects: []poller.Suspect{{ID: p.id, UpdatedAt: schemas.InstantOf(p.updated),
			CreatedAt: schemas.InstantOf(p.created)}, {ID: 1 << 40, UpdatedAt: schemas.MinInstant,
			CreatedAt: schemas.MinInstant}}})
	if err != nil || got.done.Empty || got.rows[p.id].ID != p.id {
		s.t.Errorf("%s, midnights %v: a lookup of row %d: %v", s.zone, s.upTo, p.id, err)
	}
}

// The worst of services reads to_ dates otherwise than it is known to.
func TestAServiceThatAlwaysContradictsEndsTheReadWithAnError(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:30:00Z")
	s.products = hourly(300, 37*time.Minute)
	src := s.fresh()
	s.before = func(http.ResponseWriter, url.Values) bool {
		if s.upTo = []string{"updated"}; src.cfg.Dialect.Value(dialect.UpdatedTo) == dialect.Midnight {
			s.upTo = nil
		}
		return false
	}
	_, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err == nil || !strings.Contains(err.Error(), "contradict each other") {
		t.Errorf("%d requests, %v", s.requests, err)
	}
}

// takesBack is a counter whose increments stand for what another source does at that moment.
type takesBack struct {
	prometheus.Counter
	do func()
}

func (c takesBack) Add(n float64) { c.Counter.Add(n); c.do() }

// A day is held, and days behind it are closed. Then a row shows another zone, and the last batch is dropped.
// Another source takes back what the row has shown before the next plan is made, so that plan is the same.
func TestAPlanThatIsMadeAgainUnchangedReadsTheDaysOfTheDroppedBatchAgain(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = append(oneDay(1, 10, "2026-11-15"), oneDay(100, 2500, "2026-11-16")...)
	s.products = append(s.products, oneDay(10_000, 10, "2026-11-18")...)
	src := s.fresh()
	shown := false
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		from, to := q.Get("updated_from"), q.Get("updated_to")
		switch {
		case to == "" && from != "" && q.Get("page_size") == "1000" && !shown:
			shown = true
			fmt.Fprintf(w, `{"data":[%s],"meta":{"page":%s,"count":1,"has_more":false}}`,
				product{id: 1 << 20, updated: at(from + "T00:00:00Z").Add(-time.Hour)}.json(), q.Get("page"))
			return true
		case to < "2026-11-16" || from > "2026-11-16" || from == "":
			return false
		}
		fmt.Fprintf(w, `{"data":[%s],"meta":{"page":%s,"page_size":1000,"count":2500,"has_more":true}}`,
			s.products[10].json(), q.Get("page"))
		return true
	}
	taken := 0
	src.cfg.Metrics.PagePasses = takesBack{src.cfg.Metrics.PagePasses, func() {
		if src.cfg.Dialect.Value(dialect.Days) == dialect.Other {
			src.cfg.Dialect.Prove(dialect.Days, "", "another source")
			taken++
		}
	}}
	got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err != nil || taken != 1 {
		t.Fatalf("taken back %d times, %v", taken, err)
	}
	for _, p := range s.products[2510:] {
		if _, ok := got.rows[p.id]; !ok {
			t.Fatalf("row %d was dropped with its batch, and not read again", p.id)
		}
	}
}
