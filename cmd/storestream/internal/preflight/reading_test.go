package preflight

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller/rest/client"
)

// before puts a server before the fake. answer returns the status by which it refuses a request of users, or
// 0. ids are of the rows that the fake would give.
func before(s *stage.Stage, t *testing.T, fake *storefake.Fake, answer func(q url.Values, ids []int64) int) {
	t.Helper()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := httptest.NewRecorder()
		fake.ServeHTTP(got, r)
		var page struct{ Data []struct{ ID int64 } }
		if strings.HasSuffix(r.URL.Path, "store-users") && got.Code == http.StatusOK {
			if err := json.Unmarshal(got.Body.Bytes(), &page); err != nil {
				t.Error(err)
			}
			ids := []int64{}
			for _, row := range page.Data {
				ids = append(ids, row.ID)
			}
			if status := answer(r.URL.Query(), ids); status != 0 {
				w.WriteHeader(status)
				return
			}
		}
		for name, value := range got.Header() {
			w.Header()[name] = value
		}
		w.WriteHeader(got.Code)
		_, _ = w.Write(got.Body.Bytes())
	}))
	t.Cleanup(front.Close)
	s.Settings = append(s.Settings, "store.base_url="+front.URL+"/v1")
}

// complaints are the warnings and failures about a resource, as one text.
func complaints(found []Finding, part, about string) string {
	var all []string
	for _, f := range found {
		if (f.Level == Warning || f.Level == Failure) && f.Part == part && f.About == about {
			all = append(all, f.Found+" -> "+f.Do)
		}
	}
	return strings.Join(all, "\n")
}

func number(q url.Values, name string) int {
	n, _ := strconv.Atoi(q.Get(name))
	return n
}

// days returns how many days a window has from one date to another, or 0 if it has no such bounds.
func days(q url.Values, dimension string) int {
	from, err := time.Parse(time.DateOnly, q.Get(dimension+"_from"))
	to, err2 := time.Parse(time.DateOnly, q.Get(dimension+"_to"))
	if err != nil || err2 != nil {
		return 0
	}
	return int(to.Sub(from)/(24*time.Hour)) + 1
}

// `run` asks more than for the first page of a window: for all its pages, for today, for the later windows of
// a sweep, and for the days around a row.
func TestWhatRunAsksAfterTheFirstPageIsAskedToo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		size    storefake.Size
		refuses func(q url.Values, ids []int64) int
		says    string
	}{
		"the last page": {storefake.Size{Users: 2500, Days: 1}, func(_ url.Values, ids []int64) int {
			if slices.Contains(ids, 2500) {
				return http.StatusInternalServerError
			}
			return 0
		}, "500"},
		"pages after 2,000 rows": {storefake.Size{Users: 8000, Days: 1}, func(q url.Values, _ []int64) int {
			if (number(q, "page")+1)*number(q, "page_size") > 2000 { // of a day, which cannot be cut
				return http.StatusUnprocessableEntity
			}
			return 0
		}, "422"},
		"today": {storefake.Size{Users: 20}, func(q url.Values, _ []int64) int {
			if q.Has("updated_from") && !q.Has("updated_to") && number(q, "page_size") > 1 {
				return http.StatusInternalServerError
			}
			return 0
		}, "500"},
		"today, of a service with many rows": {storefake.Size{Users: 30_000}, func(q url.Values, _ []int64) int {
			if q.Has("updated_from") && !q.Has("updated_to") && number(q, "page_size") > 1 {
				return http.StatusInternalServerError
			}
			return 0
		}, "500"},
		"later windows of a sweep": {storefake.Size{Users: 20}, func(q url.Values, _ []int64) int {
			if q.Has("created_from") {
				return http.StatusInternalServerError
			}
			return 0
		}, "500"},
		"the days around a row": {storefake.Size{Users: 1}, func(q url.Values, ids []int64) int {
			if days(q, "updated") == 4 && len(ids) > 0 { // no other window of several days has the only row
				return http.StatusInternalServerError
			}
			return 0
		}, "500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.New(t)
			before(s, t, s.Serve(func(c *storefake.Config) { c.Size = test.size }), test.refuses)
			found := try(t, s, "resources.shipments.enabled=false")
			if text := complaints(found, "service", "users"); !strings.Contains(text, test.says) {
				t.Errorf("a complaint about users: %q, expected one with %q", text, test.says)
			}
			says(t, found, Note, "service", "products", "it has no rows") // the rest is tried all the same
		})
	}
}

// A pass that ends with an error publishes nothing behind it, although it has stepped over days before.
func TestAPassThatFailsFailsTheCheckAlsoAfterADelay(t *testing.T) {
	t.Parallel()
	s := stage.New(t)
	var cut, over atomic.Bool
	before(s, t, s.Serve(func(c *storefake.Config) {
		c.Size, c.Readings.MaxPage = storefake.Size{Users: 300, Days: 3}, 20
	}), func(q url.Values, ids []int64) int {
		if q.Has("created_to") && q.Has("updated_to") { // a past day is read in parts: it does not fit
			cut.Store(true)
		} else if cut.Load() && !q.Has("created_to") { // the open window: nothing is answered from here on
			over.Store(true)
		}
		if over.Load() || number(q, "page")*20 >= 80 {
			return http.StatusBadRequest
		}
		return 0
	})
	says(t, failing(t, s), Failure, "service", "users", "answered 400")
}

// Many services refuse the pages after 10,000 rows.
func TestPagesAfter10000RowsAreAskedFor(t *testing.T) {
	t.Parallel()
	s := stage.New(t)
	fake := s.Serve(func(c *storefake.Config) { c.Size = storefake.Size{Users: 30_000, Days: 1} })
	passing(t, s)
	for _, r := range fake.Requests() {
		q, _ := url.ParseQuery(r.Query)
		if strings.HasSuffix(r.Path, "store-users") && number(q, "page")*number(q, "page_size") >= 10_000 {
			return
		}
	}
	t.Error("no page after 10,000 rows was asked for")
}

// Rows are not lost, and yet people want to know of them before the start.
func TestRowsThatAreNotPublishedAreCountedAndADelayIsNamed(t *testing.T) {
	t.Parallel()
	s := stage.New(t)
	fake := s.Serve(func(c *storefake.Config) { c.Size.Days = 1 })
	garble := func(ids ...int64) {
		for _, id := range ids {
			fake.Garble(storefake.Products, id, storefake.WordMoney)
		}
	}
	garble(3, 4)
	says(t, passing(t, s), Warning, "service", "products", "2 rows cannot be published; the first: row ",
		`breaks the contract in "cost"`, "dead letters")

	err := fake.SetReadings(func(r *storefake.Readings) { r.MaxPage, r.MaxPages = 5, 1 })
	if err != nil {
		t.Fatal(err)
	}
	found := passing(t, s)
	says(t, found, Warning, "service", "users", "settling is delayed: ")
	says(t, found, Warning, "service", "users", "rows updated the first day to now and created ",
		"could not be read completely")
	if err := fake.SetReadings(func(r *storefake.Readings) { r.MaxPage, r.MaxPages = 0, 0 }); err != nil {
		t.Fatal(err)
	}
	garble(1, 2, 5, 6, 7, 8, 9, 10)
	found = failing(t, s)
	says(t, found, Failure, "service", "products", "10 rows cannot be published; the first: row ", `"cost"`)
	says(t, found, OK, "service", "users", "can be read")
}

// Time is up when a context ends, whichever.
func TestAReadingWithoutAnAnswerSaysWhatWasAskedAndHowFarItGot(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		hangs func(url.Values) bool
		level Level
		words []string
	}{
		"no row was read": {func(q url.Values) bool { return q.Get("page_size") == "1000" }, Failure,
			[]string{"not answered within", "closing ", "(0 rows read before)"}},
		"a pass was read": {func(q url.Values) bool { return q.Has("created_to") }, Warning,
			[]string{"not answered within", "looking for the earliest row", " rows read before)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := withService(t, answering(func(r *http.Request) storefake.Fault {
				if strings.HasSuffix(r.URL.Path, "store-users") && test.hangs(r.URL.Query()) {
					cancel()
					return storefake.Hang
				}
				return storefake.NoFault
			}))
			cfg := s.Config("resources.products.enabled=false", "resources.shipments.enabled=false")
			c := opened(t, cfg, s.Schemas)
			c.marks = func() map[string]watermark.Watermark { return nil }
			f := &findings{part: "service"}
			tryService(ctx, c, f)
			says(t, f.all, test.level, "service", "users", test.words...)
		})
	}
}

// A page may take as long as `run` waits for it, and a service that takes most of that is named.
func TestASlowServiceIsAWarning(t *testing.T) {
	t.Parallel()
	how := client.Config{RequestTimeout: time.Hour}
	if new(Requests).Watch(&how); how.RequestTimeout != time.Hour {
		t.Errorf("check waits %s for an answer", how.RequestTimeout)
	}
	s := withService(t, nil)
	c := opened(t, s.Config("store.request_timeout=1h"), s.Schemas)
	c.slow = time.Nanosecond
	says(t, slices.Collect(Try(t.Context(), c)), Warning, "service", "slow", "/store-", "?", " took ",
		"store.request_timeout is 1h")
}
