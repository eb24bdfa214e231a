package storefake_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// shown is the body of a listing of shipments under habits: of one shipment that was delivered on the minute,
// and was not returned.
func shown(t *testing.T, f *storefake.Fake, change func(*storefake.Habits)) string {
	t.Helper()
	set(t, f, func(r *storefake.Readings) { change(&r.Habits) })
	a := get(t, f, "/store-shipments?"+everything+"&order_id=1")
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return string(a.body)
}

func TestEachHabitIsAnotherFormOfTheSameContent(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	if err := f.Update(t.Context(), storefake.Shipments, 1, func(r storefake.Row) {
		r["shipped_at"] = time.Date(2026, 11, 24, 9, 30, 5, 123456000, time.UTC)
		r["delivered_at"] = time.Date(2026, 11, 25, 10, 15, 0, 0, time.UTC)
		r["returned_at"] = nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want   string
		change func(*storefake.Habits)
	}{
		{`"shipped_at":"2026-11-24T09:30:05Z","delivered_at":"2026-11-25T10:15:00Z","returned_at":null`,
			func(*storefake.Habits) {}},
		{`"shipped_at":"2026-11-24T09:30:05.123456Z","delivered_at":"2026-11-25T10:15:00Z"`,
			func(h *storefake.Habits) { h.Fractions = true }},
		{`"shipped_at":"2026-11-24T09:30:05+00:00","delivered_at":"2026-11-25T10:15:00+00:00"`,
			func(h *storefake.Habits) { h.Times = storefake.TimesPython }},
		{`"2026-11-24T09:30:05.123456+00:00","delivered_at":"2026-11-25T10:15:00+00:00"`,
			func(h *storefake.Habits) { h.Times, h.Fractions = storefake.TimesPython, true }},
		{`"2026-11-24T09:30:05.123Z","delivered_at":"2026-11-25T10:15:00.000Z"`,
			func(h *storefake.Habits) { h.Times, h.Fractions = storefake.TimesJS, true }},
		{`"2026-11-24T09:30:05.123456Z","delivered_at":"2026-11-25T10:15Z"`,
			func(h *storefake.Habits) { h.Times, h.Fractions = storefake.TimesJava, true }},
		{`"2026-11-24T09:30:05Z","delivered_at":"2026-11-25T10:15Z"`,
			func(h *storefake.Habits) { h.Times = storefake.TimesJava }},
		{`"2026-11-24T09:30:05.1234560Z","delivered_at":"2026-11-25T10:15:00.0000000Z"`,
			func(h *storefake.Habits) { h.Times, h.Fractions = storefake.TimesDotnet, true }},
		{`"2026-11-24T09:30:05.000000Z"`, func(h *storefake.Habits) { h.Times = storefake.TimesLaravel }},
		{`"2026-11-24 09:30:05+00"`, func(h *storefake.Habits) { h.Times = storefake.TimesPostgres }},
		{`"2026-11-24 09:30:05 UTC"`, func(h *storefake.Habits) { h.Times = storefake.TimesBigQuery }},
		{`{"id":"1","order_id":"1"`, func(h *storefake.Habits) { h.Integers = storefake.IntegerString }},
		{`"returned_at":null,`, func(h *storefake.Habits) { h.Nulls = storefake.NullNaN }},
		{`10:15:00Z","created_at"`, func(h *storefake.Habits) { h.Nulls = storefake.NullAbsent }},
		{`"returned_at":"",`, func(h *storefake.Habits) { h.Nulls = storefake.NullEmpty }},
		{`"returned_at":"0000-00-00 00:00:00",`, func(h *storefake.Habits) { h.Nulls = storefake.NullZero }},
		{`"meta":{"page":"0","page_size":"1000","count":"1","has_more":false}}`,
			func(h *storefake.Habits) { h.Meta = storefake.MetaString }},
		{`"page_size":1000.0,"count":1.0,`, func(h *storefake.Habits) { h.Meta = storefake.MetaFloat }},
		{`"page_size":1000e0,"count":1e0,`, func(h *storefake.Habits) { h.Meta = storefake.MetaExponent }},
		{`"has_more":0}`, func(h *storefake.Habits) { h.More = storefake.MoreNumber }},
		{`"count":1}}`, func(h *storefake.Habits) { h.More = storefake.MoreAbsent }},
		{`"meta":null}`, func(h *storefake.Habits) { h.More = storefake.MoreNoMeta }},
		{`"has_more":"false"}`, func(h *storefake.Habits) { h.More = storefake.MoreString }},
		{`"meta":{"page":0,"pageSize":1000,"count":1,"hasMore":false}}`,
			func(h *storefake.Habits) { h.Case = storefake.CaseCamel }},
		{`{"Data":[{"id":1,`, func(h *storefake.Habits) { h.Case = storefake.CasePascal }},
		{`"PageSize":1000,"Count":1,"HasMore":false}`,
			func(h *storefake.Habits) { h.Case = storefake.CasePascal }},
		{`{"meta":{"page":0,`, func(h *storefake.Habits) { h.Surplus = true }},
		{"\ufeff{", func(h *storefake.Habits) { h.Mark = true }},
	} {
		if got := shown(t, f, c.change); !strings.Contains(got, c.want) {
			t.Errorf("%s: expected %s in it", got, c.want)
		}
	}
	set(t, f, func(r *storefake.Readings) { r.Habits.Surplus = true })
	if a := get(t, f, "/store-users?"+everything); a.err != nil || len(a.Data) != small.Users {
		t.Errorf("with surplus keys: %d rows, %v", len(a.Data), a.err)
	}
	for empty, want := range map[storefake.EmptyForm]string{storefake.EmptyAsIs: `{"data":[],"meta":{`,
		storefake.EmptyNull: `{"data":null,"meta":{`, storefake.EmptyAbsent: `{"meta":{`} {
		set(t, f, func(r *storefake.Readings) { r.Habits.Empty = empty })
		got := string(get(t, f, "/store-users?updated_to=1970-01-01").body)
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: a page without rows is %s, expected %s", empty, got, want)
		}
	}
}

func TestNullsAndIntegersAreWrittenAsPandasWritesThem(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	if err := f.Update(t.Context(), storefake.Users, 1, func(r storefake.Row) {
		r["age"], r["city"], r["latitude"] = int64(34), nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	set(t, f, func(r *storefake.Readings) {
		r.Habits = storefake.Habits{Nulls: storefake.NullNaN, Integers: storefake.IntegerFloat}
	})
	got := string(get(t, f, "/store-users?"+everything+"&page_size=1").body)
	for _, want := range []string{`{"id":1,`, `"age":34.0,`, `"city":NaN,`, `"latitude":NaN,`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s: expected %s in it", got, want)
		}
	}
}

func TestStrippedMoneyIsJavas(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	set(t, f, func(r *storefake.Readings) { r.MoneyForm = storefake.MoneyStripped })
	for money, want := range map[storefake.Money]string{"1000": "1E+3", "1200": "1.2E+3", "49.50": "49.5",
		"49.00": "49", "50.00": "5E+1", "0": "0", "0.00": "0", "-300": "-3E+2", "100.5": "100.5", "7": "7"} {
		if err := f.Update(t.Context(), storefake.Orders, 1,
			func(r storefake.Row) { r["total_amount"] = money }); err != nil {
			t.Fatal(err)
		}
		got := string(get(t, f, "/store-orders?"+everything+"&page_size=1").body)
		if !strings.Contains(got, `"total_amount":`+want+`,`) {
			t.Errorf("%s: %s, expected %s", money, got, want)
		}
	}
}

func TestEachFormOfErrors(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	for form, want := range map[storefake.ErrorForm]string{
		storefake.ErrorAsIs:    `400 {"error":"invalid_param","message":"page must be`,
		storefake.ErrorFastAPI: `422 {"detail":[{"loc":["query","page"],"msg":"page must be`,
		storefake.ErrorNest:    `400 {"error":"Bad Request","message":["page must be`,
		storefake.ErrorSpring:  `400 {"error":"Bad Request","path":"/v1/store-users","status":400,"timestamp":`,
		storefake.ErrorProblem: `400 {"errors":{"page":["page must be`,
		storefake.ErrorLaravel: `422 {"errors":{"page":["page must be`,
		storefake.ErrorWord:    `400 {"code":"rest_invalid_param","data":{"status":400},"message":"page must be`,
	} {
		set(t, f, func(r *storefake.Readings) { r.Habits.Errors = form })
		a := get(t, f, "/store-users?"+everything+"&page=x")
		if got := itoa(a.status) + " " + string(a.body); !strings.HasPrefix(got, want) || !json.Valid(a.body) {
			t.Errorf("%q: %s, expected %s", form, got, want)
		}
		if a := ask(t, f, http.MethodGet, "/store-users?"+everything, "Bearer no"); a.status != 401 {
			t.Errorf("%q: a wrong key answers %d", form, a.status)
		}
	}
	set(t, f, func(r *storefake.Readings) { r.Habits.KeyStatus = 403 })
	if a := ask(t, f, http.MethodGet, "/store-users?"+everything, "Bearer no"); a.status != 403 {
		t.Errorf("a wrong key answers %d, expected 403", a.status)
	}
}

func TestPathsWithoutASlashAreSentOn(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	set(t, f, func(r *storefake.Readings) { r.Habits.Slash = true })
	a := get(t, f, "/store-users?"+everything+"&page_size=5")
	to := a.header.Get("Location")
	if want := "/v1/store-users/?" + everything + "&page_size=5"; a.status != 301 || to != want {
		t.Errorf("%d to %s, expected %s", a.status, to, want)
	}
	if a := get(t, f, strings.TrimPrefix(to, "/v1")); len(a.Data) != 5 {
		t.Errorf("with the slash: %d, %d rows", a.status, len(a.Data))
	}
	if a := ask(t, f, http.MethodGet, "/store-api-keys/", ""); a.APIKey == "" {
		t.Errorf("the key endpoint with a slash: %d %s", a.status, a.body)
	}
}

func TestTheRateIsToldInHeaders(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	set(t, f, func(r *storefake.Readings) {
		r.Limit = storefake.Limit{PerSecond: .001, Burst: 2}
		r.Habits.RateHeaders = true
	})
	for _, left := range []string{"1", "0"} {
		a := get(t, f, "/store-users?"+everything)
		if a.status != 200 || a.header.Get("X-RateLimit-Limit") != "2" ||
			a.header.Get("X-RateLimit-Remaining") != left {
			t.Errorf("%d %v, expected %s of 2 left", a.status, a.header, left)
		}
	}
	a := get(t, f, "/store-users?"+everything)
	if a.status != 429 || a.header.Get("X-RateLimit-Remaining") != "0" ||
		a.header.Get("X-RateLimit-Reset") == "" || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %v, expected 429 with none left", a.status, a.header)
	}
}

func TestRequestsAreRefusedByWhatTheyAskFor(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	f := start(t, storefake.Config{Size: small, Start: now})
	const users, orders = "/store-users?created_from=1970-01-01&page_size=", "/store-orders?created_to="
	const updated = "/store-users?updated_"
	for text, want := range map[string]map[string]int{
		"past:60=422": {users + "30&page=1": 200, users + "30&page=2": 422, users + "100": 422,
			"/store-products?created_from=1970-01-01&page_size=61": 422},
		"users/past:60=403": {users + "30&page=2": 403,
			"/store-products?created_from=1970-01-01&page_size=61": 200},
		// The last page has 20 rows.
		"rows:50=504":         {users + "51": 504, users + "50": 200, users + "60&page=3": 200},
		"users/row:35=500":    {users + "10&page=3": 500, users + "10&page=4": 200, users + "1&page=34": 500},
		"before:1753=406":     {updated + "from=1752-12-31": 406, updated + "from=1753-01-01": 200},
		"after:9998=500":      {updated + "to=9999-01-01": 500, updated + "to=9998-12-31": 200},
		"orders/future:0=400": {orders + "2026-11-27": 400, orders + "2026-11-26": 200},
		"future:2=400":        {orders + "2026-11-28": 200, orders + "2026-11-29": 400},
	} {
		refusal, err := storefake.ParseRefusal(text)
		if err != nil {
			t.Fatal(err)
		}
		set(t, f, func(r *storefake.Readings) { r.Refusals = []storefake.Refusal{refusal} })
		for path, status := range want {
			if a := get(t, f, path); a.status != status {
				t.Errorf("%s: %s answers %d %s, expected %d", text, path, a.status, a.body, status)
			}
		}
	}
	for _, text := range []string{"past", "past:1", "past:x=400", "past:1=x", "past:1=200", "cursor:1=400",
		"people/past:1=400", "past:-1=400"} {
		if _, err := storefake.ParseRefusal(text); err == nil {
			t.Errorf("%s should be refused", text)
		}
	}
}

func TestSilenceIsNoAnswer(t *testing.T) {
	f := start(t, storefake.Config{Size: small, Readings: storefake.Readings{
		Refusals: []storefake.Refusal{{What: storefake.HeavyPages, Limit: 100}}}})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.BaseURL()+"/store-users?"+everything,
		nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+f.Key())
	response, err := (&http.Client{Timeout: 50 * time.Millisecond}).Do(r)
	if err == nil {
		response.Body.Close()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, expected no answer, on a connection that stays open", err)
	}
	if a := get(t, f, "/store-users?"+everything+"&page_size=100"); len(a.Data) != 100 {
		t.Errorf("100 rows: %d %s", a.status, a.body)
	}
}

func TestEachStackKeepsTheReadingsThatAreNotItsOwn(t *testing.T) {
	for _, stack := range storefake.Stacks {
		r := storefake.Readings{MaxPage: 40, Habits: storefake.Habits{Fractions: true}}
		if err := stack.Apply(&r); err != nil {
			t.Error(err)
		}
		if r.MaxPage != 40 || !r.Habits.Fractions || r.Habits.Times == storefake.TimesAsIs ||
			storefake.About[stack] == "" || r.Check() != nil {
			t.Errorf("%s: %+v %v", stack, r, r.Check())
		}
	}
	if err := storefake.Stack("cobol").Apply(&storefake.Readings{}); err == nil {
		t.Error("cobol is no stack")
	}
}
