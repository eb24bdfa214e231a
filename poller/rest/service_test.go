package rest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/schemas"
)

// product is a row of the service that tests speak to. created may be zero: it is null.
type product struct {
	id               int64
	created, updated time.Time
	cost             string
}

func (p product) json() []byte {
	b := strconv.AppendInt([]byte(`{"id":`), p.id, 10)
	b = append(append(b, `,"cost":`...), cmp.Or(p.cost, "1.5")...)
	b = append(b, `,"category":"Jeans","brand":"b","retail_price":49,"department":"Men","sku":"s","name":"n`...)
	b = strconv.AppendInt(b, p.id, 10)
	if b = append(b, `","created_at":`...); p.created.IsZero() {
		b = append(b, `null`...)
	} else {
		b = append(p.created.UTC().Round(time.Second).AppendFormat(append(b, '"'), time.RFC3339), '"')
	}
	b = p.updated.UTC().Round(time.Second).AppendFormat(append(b, `,"updated_at":"`...), time.RFC3339)
	return append(b, `"}`...)
}

// counting is what meta.count is.
type counting int

const (
	countTotal counting = iota
	countPage
	countNone // it is absent
	countMore // some more than there are
)

// service answers as the document says, with what a test changes.
type service struct {
	t           *testing.T
	mu          sync.Mutex
	products    []product
	now         func() time.Time // of the Date header; nil: none
	maxPage     int
	order       func(a, b product) int // nil: another at every request
	zone        *time.Location
	createdZone *time.Location // of created_*; nil: zone
	upTo        []string       // the to_ dates that it reads as midnights: updated, created
	count       counting
	pages       int  // it shows no more of a listing, and says that nothing follows; 0: all
	forEver     bool // it says that more follow every page
	blank       bool // page 0 is empty, and more follow
	// omits is what an answer after which nothing follows leaves out: has_more or meta; null: has_more is null;
	// never: no answer has it.
	omits string
	// shows is how many rows of any window it shows, and counts. Then it says that nothing follows; 0: all.
	shows int
	rng   *rand.Rand
	// hidden is what the answer leaves out of a row, such as `,"brand":"b"`; nil: nothing.
	hidden func(product) string
	// bad makes each page with such a row a 500; nil: no row does.
	bad func(product) bool
	// before is called before a data request is answered, with mu held; true: it has answered.
	before   func(w http.ResponseWriter, q url.Values) bool
	requests int
	keys     int
	key      string
	server   *httptest.Server
	closed   chan struct{} // when the test ends
}

func byID(a, b product) int { return cmp.Compare(a.id, b.id) }
func byUpdated(a, b product) int {
	return cmp.Or(a.updated.Compare(b.updated), cmp.Compare(a.id, b.id))
}
func newestFirst(a, b product) int { return byUpdated(b, a) }

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{t: t, maxPage: 1000, order: byID, zone: time.UTC, key: "key-0",
		rng: rand.New(rand.NewPCG(1, 2)), closed: make(chan struct{})}
	s.server = httptest.NewServer(s)
	t.Cleanup(func() { close(s.closed); s.server.Close() })
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header()["Date"] = nil
	if s.now != nil {
		w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	}
	if r.URL.Path == "/v1/store-api-keys" {
		s.keys++
		fmt.Fprintf(w, `{"api_key":%q}`, s.key)
		return
	}
	if r.URL.Path != "/v1/store-products" {
		http.NotFound(w, r)
		return
	}
	s.requests++
	if r.Header.Get("Authorization") != "Bearer "+s.key {
		refuse(w, 401, "unauthorized")
		return
	}
	q := r.URL.Query()
	if s.before != nil && s.before(w, q) {
		return
	}
	s.list(w, q)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":%q,"message":"m"}`, code)
}

func (s *service) list(w http.ResponseWriter, q url.Values) {
	if q.Get("created_from")+q.Get("created_to")+q.Get("updated_from")+q.Get("updated_to") == "" {
		refuse(w, 400, "missing_required_param")
		return
	}
	created, updated := s.bounds(q, "created"), s.bounds(q, "updated")
	var match []product
	for _, p := range s.products {
		if created(p.created) && updated(p.updated) {
			match = append(match, p)
		}
	}
	if s.order != nil {
		slices.SortStableFunc(match, s.order)
	} else {
		s.rng.Shuffle(len(match), func(i, j int) { match[i], match[j] = match[j], match[i] })
	}
	if s.shows > 0 {
		match = match[:min(len(match), s.shows)]
	}
	page, _ := strconv.Atoi(q.Get("page"))
	size, _ := strconv.Atoi(q.Get("page_size"))
	size = min(size, s.maxPage)
	total, offset := len(match), page*size
	if s.blank {
		offset -= size
	}
	more := total > offset+size
	match = match[min(total, max(0, offset)):max(0, min(total, offset+size))]
	if s.pages > 0 && page >= s.pages-1 {
		more = false
		if page >= s.pages {
			match = nil
		}
	}
	more = more || s.forEver || s.blank && page == 0
	if s.bad != nil && slices.ContainsFunc(match, s.bad) {
		refuse(w, 500, "internal_error")
		return
	}
	body := []byte(`{"data":[`)
	for i, p := range match {
		if i > 0 {
			body = append(body, ',')
		}
		row := p.json()
		if s.hidden != nil {
			row = bytes.Replace(row, []byte(s.hidden(p)), nil, 1)
		}
		body = append(body, row...)
	}
	count := map[counting]string{
		countTotal: fmt.Sprintf(`"count":%d,`, total), countPage: fmt.Sprintf(`"count":%d,`, len(match)),
		countMore: fmt.Sprintf(`"count":%d,`, total+total/50+1),
	}[s.count]
	meta := fmt.Sprintf(`,"meta":{"page":%d,"page_size":%d,%s"has_more":%v}`, page, size, count, more)
	switch says := fmt.Sprintf(`"has_more":%v`, more); {
	case s.omits == "never", !more && s.omits == "has_more":
		meta = strings.NewReplacer(","+says, "", says, `"pages":null`).Replace(meta)
	case !more && s.omits == "meta":
		meta = ""
	case !more && s.omits == "null":
		meta = strings.Replace(meta, says, `"has_more":null`, 1)
	}
	body = append(append(append(body, ']'), meta...), '}')
	_, _ = w.Write(body)
}

// bounds reads a filter by day: it takes what lies on the days of the service's zone.
func (s *service) bounds(q url.Values, name string) (in func(time.Time) bool) {
	zone := s.zone
	if name == "created" && s.createdZone != nil {
		zone = s.createdZone
	}
	day := func(bound string, unbounded time.Time) time.Time {
		if d, err := time.ParseInLocation(time.DateOnly, q.Get(name+bound), zone); err == nil {
			return d
		}
		return unbounded
	}
	from, to := day("_from", time.Time{}), day("_to", time.Unix(1<<40, 0)).AddDate(0, 0, 1)
	if slices.Contains(s.upTo, name) {
		to = day("_to", time.Unix(1<<40, 0)).Add(time.Microsecond)
	}
	bounded := q.Has(name+"_from") || q.Has(name+"_to")
	return func(at time.Time) bool { return !at.Before(from) && at.Before(to) && !(bounded && at.IsZero()) }
}

func (s *service) client(cfg client.Config) *client.Client {
	s.t.Helper()
	cfg.BaseURL = s.server.URL + "/v1"
	cfg.MaxRequestsPerSecond = cmp.Or(cfg.MaxRequestsPerSecond, 1e6)
	c, err := client.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

var loadSchemas = sync.OnceValues(func() (*schemas.Set, error) { return schemas.Load("") })

func products(t *testing.T) *schemas.Resource {
	t.Helper()
	set, err := loadSchemas()
	if err != nil {
		t.Fatal(err)
	}
	return set.Get("products")
}

// fresh is a new source with a client of its own, by the service's clock.
func (s *service) fresh() *Source {
	s.t.Helper()
	return s.source(s.client(client.Config{Now: s.now}))
}

func (s *service) source(c *client.Client) *Source {
	return NewSource(SourceConfig{Resource: products(s.t), Client: c, Dialect: unknown(),
		Overlap: 5 * time.Minute, Start: schemas.MinInstant,
		Metrics: metrics.New(prometheus.NewRegistry()).Resource("products")})
}

// unknown is a dialect without any value.
func unknown() *dialect.Dialect { return counted(dialect.Auto) }

// counted is a dialect with store.dialect.count alone.
func counted(count string) *dialect.Dialect {
	return dialect.New(map[string]string{dialect.Count.Name: count}, nil)
}

// taken is what a read handed on.
type taken struct {
	rows    map[int64]schemas.Record
	rejects []schemas.Reject
	settled schemas.Instant
	done    *poller.Done
	batches int
	age     time.Duration // of the oldest batch
}

func readAll(ctx context.Context, s poller.Source, r poller.Request) (*taken, error) {
	got := &taken{rows: map[int64]schemas.Record{}, settled: schemas.MinInstant}
	err := each(s.Read(ctx, r), func(b poller.Batch) error {
		got.batches++
		got.age = max(got.age, b.Age)
		for _, row := range b.Rows {
			got.rows[row.ID] = row
		}
		got.rejects = append(got.rejects, b.Rejects...)
		got.settled = max(got.settled, b.Settled)
		if b.Done != nil {
			got.done = b.Done
		}
		return nil
	})
	return got, err
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func clockAt(text string) func() time.Time { t := at(text); return func() time.Time { return t } }

func pass(from schemas.Instant) poller.Request {
	return poller.Request{Kind: poller.Pass, Complete: true, From: from, Started: schemas.InstantOf(time.Now())}
}

// has fails the test unless exactly the service's products were read.
func (got *taken) has(t *testing.T, want []product) {
	t.Helper()
	for _, p := range want {
		if r, ok := got.rows[p.id]; !ok || r.UpdatedAt != schemas.InstantOf(p.updated) {
			t.Errorf("product %d: read %v %s, want %s", p.id, ok, r.UpdatedAt, p.updated)
			return
		}
	}
	if len(got.rows) < len(want) {
		t.Errorf("read %d products, want %d", len(got.rows), len(want))
	}
}
