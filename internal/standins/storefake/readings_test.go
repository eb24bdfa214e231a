package storefake_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

func itoa(n int) string { return strconv.Itoa(n) }

// set changes the readings in force.
func set(t *testing.T, f *storefake.Fake, change func(*storefake.Readings)) {
	t.Helper()
	if err := f.SetReadings(func(r *storefake.Readings) { *r = storefake.Readings{}; change(r) }); err != nil {
		t.Fatal(err)
	}
}

// pages reads a listing to the end that has_more tells.
func pages(t *testing.T, f *storefake.Fake, path string) (ids []int64, read []answer) {
	t.Helper()
	for n := 0; ; n++ {
		a := get(t, f, path+"&page="+itoa(n))
		if a.err != nil || a.status != 200 {
			t.Fatalf("page %d: %d %v", n, a.status, a.err)
		}
		ids, read = append(ids, a.ids()...), append(read, a)
		if !a.Meta.HasMore {
			return ids, read
		}
	}
}

func TestEachReadingOfPaging(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	path := "/store-users?" + everything + "&page_size=30"
	past := path + "&page=7" // 200 users

	set(t, f, func(r *storefake.Readings) { r.Count = storefake.CountPage })
	if a := get(t, f, path+"&page=6"); a.Meta.Count != 20 {
		t.Errorf("count of the page: %d, expected 20", a.Meta.Count)
	}
	set(t, f, func(*storefake.Readings) {})
	if a := get(t, f, past); a.status != 200 || len(a.Data) != 0 || a.Meta.HasMore {
		t.Errorf("past the end: %d %+v, expected an empty page", a.status, a.Meta)
	}
	set(t, f, func(r *storefake.Readings) { r.PastEnd = storefake.PastEndBadRequest })
	if a := get(t, f, past); a.status != 400 || a.Error != "invalid_param" {
		t.Errorf("past the end: %d, expected 400", a.status)
	}
	set(t, f, func(r *storefake.Readings) { r.PastEnd = storefake.PastEndNotFound })
	if a := get(t, f, past); a.status != 404 {
		t.Errorf("past the end: %d, expected 404", a.status)
	}
	if a := get(t, f, "/store-users?updated_to=1970-01-01"); a.status != 200 {
		t.Errorf("page 0 of an empty listing: %d, expected 200: it is no page past the end", a.status)
	}
	set(t, f, func(r *storefake.Readings) { r.Oversize = storefake.OversizeRefused })
	if a := get(t, f, "/store-users?"+everything+"&page_size=1001"); a.status != 400 {
		t.Errorf("page_size 1001: %d, expected 400", a.status)
	}
	set(t, f, func(r *storefake.Readings) { r.MaxPage = 37 })
	if a := get(t, f, "/store-users?"+everything); a.Meta.PageSize != 37 || len(a.Data) != 37 ||
		!a.Meta.HasMore {
		t.Errorf("37 rows granted: meta %+v with %d rows", a.Meta, len(a.Data))
	}
}

func TestPagesGetShorterAndLongerWhateverTheServiceSaysOfThem(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	path := "/store-users?" + everything + "&page_size=100"
	for _, word := range []storefake.PageWord{storefake.PageGranted, storefake.PageAsked, storefake.PageAbsent} {
		set(t, f, func(r *storefake.Readings) { r.MaxPage, r.PageTurns, r.PageWord = 60, 2, word })
		lengths := map[int]int{}
		for range 60 {
			a := get(t, f, path)
			lengths[len(a.Data)]++
			want := map[storefake.PageWord]int{storefake.PageGranted: len(a.Data), storefake.PageAsked: 100}[word]
			if a.Meta.PageSize != want {
				t.Fatalf("%q: a page of %d rows says %d, expected %d", word, len(a.Data), a.Meta.PageSize, want)
			}
		}
		if len(lengths) != 3 || lengths[60] == 0 || lengths[30] == 0 || lengths[20] == 0 {
			t.Errorf("%q: so many pages of each length: %v, expected 60, 30 and 20 rows", word, lengths)
		}
	}
}

// The count says more than the pages show.
func TestAListingEndsAtThePageThatIsTheLastOneAllowed(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	path := "/store-users?" + everything + "&page_size=30"
	for _, end := range []storefake.PastEnd{storefake.PastEndEmpty, storefake.PastEndNotFound,
		storefake.PastEndLast} {
		set(t, f, func(r *storefake.Readings) { r.MaxPages, r.PastEnd = 3, end })
		ids, read := pages(t, f, path)
		if last := read[len(read)-1].Meta; len(ids) != 90 || len(read) != 3 || last.Count != small.Users {
			t.Errorf("%q: %d rows on %d pages, and a count of %d, expected 90 on 3, and %d", end, len(ids), len(read),
				last.Count, small.Users)
		}
		past := get(t, f, path+"&page=3")
		if want := map[storefake.PastEnd]int{storefake.PastEndLast: 30}[end]; len(past.Data) != want {
			t.Errorf("%q: %d rows on the page after the last, expected %d", end, len(past.Data), want)
		}
		if want := end == storefake.PastEndNotFound; (past.status == 404) != want {
			t.Errorf("%q: the page after the last answers %d", end, past.status)
		}
	}
}

func TestThePageAfterTheLastIsTheLastOnceMore(t *testing.T) {
	f := start(t, storefake.Config{Size: small, Readings: storefake.Readings{PastEnd: storefake.PastEndLast,
		EmptyPages: .2, ShortPages: .2}})
	path := "/store-users?" + everything + "&page_size=30"
	_, read := pages(t, f, path)
	last := read[len(read)-1]
	for _, n := range []int{len(read), len(read) + 20} {
		if a := get(t, f, path+"&page="+itoa(n)); string(a.body) != string(last.body) {
			t.Errorf("page %d: %+v, expected the last page, %+v", n, a.Meta, last.Meta)
		}
	}
	if a := get(t, f, "/store-users?updated_to=1970-01-01&page=3"); a.status != 200 || len(a.Data) != 0 ||
		a.Meta.Page != 0 {
		t.Errorf("page 3 of an empty listing: %d %+v, expected its page 0", a.status, a.Meta)
	}
}

func TestHasMoreIsTrueInEachReading(t *testing.T) {
	f := start(t, storefake.Config{Size: small}) // 200 users
	for more, want := range map[storefake.HasMore]string{storefake.MoreFollows: "true,false,false",
		storefake.MoreFull: "true,true,false", storefake.MoreAlways: "true,true,true"} {
		set(t, f, func(r *storefake.Readings) { r.HasMore = more })
		path := "/store-users?" + everything + "&page_size=100&page="
		var said []string
		for n := range 3 {
			said = append(said, fmt.Sprint(get(t, f, path+itoa(n)).Meta.HasMore))
		}
		if got := strings.Join(said, ","); got != want {
			t.Errorf("%q: has_more of two full pages and an empty one is %s, expected %s", more, got, want)
		}
	}
}

func TestAnEstimateIsNearTheCountAndSeldomRight(t *testing.T) {
	f := start(t, storefake.Config{Size: small, Readings: storefake.Readings{Count: storefake.CountEstimate}})
	right := 0
	for order := range 40 {
		date := time.Now().UTC().AddDate(0, 0, -order).Format(time.DateOnly)
		a := get(t, f, "/store-orders?created_from="+date)
		if n := float64(len(a.Data)); a.Meta.Count < 1 || float64(a.Meta.Count) < .79*n-1 ||
			float64(a.Meta.Count) > 1.21*n+1 {
			t.Errorf("an estimate of %d for %d rows", a.Meta.Count, len(a.Data))
		}
		if a.Meta.Count == len(a.Data) {
			right++
		}
	}
	if right > 20 {
		t.Errorf("%d of 40 estimates are right", right)
	}
}

// A field vanishes and comes back, and nobody has written the rows.
func TestAFieldVanishesFromEveryRowAndComesBack(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	has := func(path, field string) (n int) {
		for _, row := range get(t, f, path+"?"+everything).Data {
			if _, ok := row[field]; ok {
				n++
			}
		}
		return n
	}
	for _, without := range [][]string{nil, {"users.city", "orders.updated_at"}, nil} {
		set(t, f, func(r *storefake.Readings) { r.Without = without })
		users, orders := small.Users, small.Orders
		if without != nil {
			users, orders = 0, 0
		}
		if n, m := has("/store-users", "city"), has("/store-orders", "updated_at"); n != users || m != orders {
			t.Errorf("without %v: %d users have a city and %d orders an updated_at", without, n, m)
		}
		if n := has("/store-users", "country"); n != small.Users {
			t.Errorf("without %v: %d users have a country", without, n)
		}
	}
}

// Pages fall short in the middle, and no row is lost by it.
func TestShortAndEmptyPagesLoseNothing(t *testing.T) {
	f := start(t, storefake.Config{Size: small, Readings: storefake.Readings{EmptyPages: .3, ShortPages: .3}})
	ids, read := pages(t, f, "/store-users?"+everything+"&page_size=10")
	slices.Sort(ids)
	if len(slices.Compact(ids)) != small.Users {
		t.Errorf("%d rows, expected %d", len(ids), small.Users)
	}
	empty, short := 0, 0
	for _, a := range read {
		if len(a.Data) == 0 && a.Meta.HasMore {
			empty++
		}
		if len(a.Data) == 5 && a.Meta.HasMore {
			short++
		}
	}
	if empty == 0 || short == 0 {
		t.Errorf("%d empty and %d short pages in the middle, expected some of both", empty, short)
	}
}

func TestEachOrderListsEveryRowOnce(t *testing.T) {
	f := start(t, storefake.Config{Size: small, WholeSeconds: true})
	for _, id := range []int64{5, 6, 7, 8, 9} { // ties
		if err := f.SetUpdatedAt(t.Context(), storefake.Users, id,
			time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
			t.Fatal(err)
		}
	}
	list := func() []int64 { ids, _ := pages(t, f, "/store-users?"+everything); return ids }
	updated := func(id int64) time.Time { row, _ := f.Row(storefake.Users, id); return row.Time("updated_at") }
	ascending := func(ids []int64) bool {
		return slices.IsSortedFunc(ids, func(a, b int64) int { return updated(a).Compare(updated(b)) })
	}
	for name, c := range map[string]struct {
		order  storefake.Order
		ties   bool
		stable bool
		sorted func([]int64) bool
	}{
		"id":      {storefake.ByID, false, true, slices.IsSorted[[]int64]},
		"updated": {storefake.ByUpdated, false, true, ascending},
		"updated-desc": {storefake.ByUpdatedDesc, false, true,
			func(ids []int64) bool { slices.Reverse(ids); return ascending(ids) }},
		"pinned": {storefake.ByPinned, false, true, func(ids []int64) bool {
			first := 0
			for first < len(ids) && ids[first]%50 == 1 {
				first++
			}
			rest := ids[first:]
			return first > 1 && !ascending(ids) && ascending(rest) &&
				!slices.ContainsFunc(rest, func(id int64) bool { return id%50 == 1 })
		}},
		"hash": {storefake.ByHash, false, true, func(ids []int64) bool {
			return !slices.IsSorted(ids) &&
				!ascending(ids)
		}},
		"shuffle": {storefake.ByShuffle, false, false, func(ids []int64) bool {
			return !slices.IsSorted(ids) &&
				!ascending(ids)
		}},
		"ties": {storefake.ByUpdated, true, false, ascending},
	} {
		set(t, f, func(r *storefake.Readings) { r.Order, r.PermuteTies = c.order, c.ties })
		first := list()
		stable := true
		for range 5 {
			stable = stable && slices.Equal(first, list())
		}
		if stable != c.stable {
			t.Errorf("%s: the same on every request: %v, expected %v", name, stable, c.stable)
		}
		if !c.sorted(slices.Clone(first)) {
			t.Errorf("%s: not in that order", name)
		}
		slices.Sort(first)
		if len(slices.Compact(first)) != small.Users {
			t.Errorf("%s: %d rows, expected %d", name, len(first), small.Users)
		}
	}
}

func TestMoneyMeansTheSameInEveryForm(t *testing.T) {
	f := start(t, storefake.Config{})
	for _, c := range []struct{ stored, asIs, padded, exponent string }{
		{"49", "49", "49.00", "49e0"}, {"49.5", "49.5", "49.50", "495e-1"},
		{"59.990001678466797", "59.990001678466797", "59.990001678466797", "59990001678466797e-15"},
		{"0.05", "0.05", "0.05", "5e-2"}, {"-3.70", "-3.70", "-3.70", "-370e-2"}, {"0", "0", "0.00", "0e0"},
		{"123456789012345678901.5", "123456789012345678901.5", "123456789012345678901.50",
			"1234567890123456789015e-1"},
	} {
		id, err := f.Insert(t.Context(), storefake.Orders, storefake.Row{"total_amount": storefake.Money(c.stored)})
		if err != nil {
			t.Fatal(err)
		}
		for form, want := range map[storefake.MoneyForm]string{storefake.MoneyAsIs: c.asIs,
			storefake.MoneyPadded: c.padded,
			storefake.MoneyString: `"` + c.padded + `"`, storefake.MoneyExponent: c.exponent} {
			set(t, f, func(r *storefake.Readings) { r.MoneyForm = form })
			var row struct {
				Total json.RawMessage `json:"total_amount"`
			}
			if err := json.Unmarshal(f.Snapshot(storefake.Orders)[id], &row); err != nil || string(row.Total) != want {
				t.Errorf("%s as %q: %s %v, expected %s", c.stored, form, row.Total, err, want)
			}
			value, ok := new(big.Rat).SetString(strings.Trim(want, `"`))
			if stored, _ := new(big.Rat).SetString(c.stored); !ok || value.Cmp(stored) != 0 {
				t.Errorf("%s is not %s", want, c.stored)
			}
		}
	}
	if _, err := f.Insert(t.Context(), storefake.Orders,
		storefake.Row{"total_amount": storefake.Money("1e5")}); err == nil {
		t.Error("money with an exponent was taken")
	}
}

func TestNullsNewStatusesAndExtraFieldsAppearWhereTheyMay(t *testing.T) {
	f := start(t, storefake.Config{Size: small, Readings: storefake.Readings{Nulls: .2, NewStatuses: .2,
		ExtraFields: true}})
	nulls, fresh := 0, 0
	for _, resource := range storefake.Names() {
		for id, row := range f.Rows(resource) {
			for field, value := range row {
				if value == nil {
					nulls++
				}
				if value == nil && (field == "id" || field == "created_at" || field == "updated_at") {
					t.Fatalf("%s %d: %s is null", resource, id, field)
				}
			}
			if status, _ := row["status"].(string); slices.Contains([]string{"Backordered", "On Hold",
				"Partially Shipped"}, status) {
				fresh++
			}
		}
	}
	if nulls == 0 || fresh == 0 {
		t.Errorf("%d nulls and %d new states, expected some of both", nulls, fresh)
	}
	if row := get(t, f, "/store-users?"+everything).Data[0]; row["_etag"] == nil || row["labels"] == nil {
		t.Errorf("no extra fields in %v", row)
	}
}

// The limit answers in every form.
func TestTheRateLimitAnswersInEachForm(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	for name, c := range map[string]struct {
		limit  storefake.Limit
		status int
		check  func(answer) bool
	}{
		"seconds": {storefake.Limit{}, 429, func(a answer) bool {
			n,
				err := strconv.Atoi(a.header.Get("Retry-After"))
			return err == nil && n >= 1
		}},
		"date": {storefake.Limit{RetryAfter: storefake.RetryAfterDate}, 429, func(a answer) bool {
			at, err := http.ParseTime(a.header.Get("Retry-After"))
			now, _ := http.ParseTime(a.header.Get("Date"))
			return err == nil && at.After(now)
		}},
		"zero": {storefake.Limit{RetryAfter: storefake.RetryAfterZero}, 429,
			func(a answer) bool { return a.header.Get("Retry-After") == "0" }},
		"absent": {storefake.Limit{RetryAfter: storefake.RetryAfterAbsent}, 429,
			func(a answer) bool { return len(a.header["Retry-After"]) == 0 }},
		"503": {storefake.Limit{Status: 503}, 503, func(a answer) bool { return a.Error == "unavailable" }},
		"403": {storefake.Limit{Status: 403}, 403, func(a answer) bool { return a.Error == "rate_limited" }},
		"html": {storefake.Limit{HTML: true}, 429, func(a answer) bool {
			return strings.HasPrefix(string(a.body),
				"<html>")
		}},
	} {
		c.limit.PerSecond, c.limit.Burst = .001, 3
		set(t, f, func(r *storefake.Readings) { r.Limit = c.limit })
		for n := range 4 {
			a := get(t, f, "/store-users?"+everything)
			if want := n == 3; (a.status == c.status) != want {
				t.Errorf("%s: request %d answered %d", name, n, a.status)
			} else if want && !c.check(a) {
				t.Errorf("%s: headers %v, body %s", name, a.header, a.body)
			}
		}
		if a := ask(t, f, http.MethodGet, "/store-api-keys", ""); a.status != c.status {
			t.Errorf("%s: the key endpoint answered %d beyond the limit", name, a.status)
		}
	}
}

func TestKeysAreUsedUpByRequestsTimeAndRevocation(t *testing.T) {
	f := start(t, storefake.Config{Size: small, Readings: storefake.Readings{Keys: storefake.Keys{Requests: 2}}})
	use := func(key string) int {
		return ask(t, f, http.MethodGet, "/store-users?"+everything, "Bearer "+key).status
	}
	key := f.Key()
	if got := fmt.Sprint(use(key), use(key), use(key)); got != "200 200 401" {
		t.Errorf("a key for two requests: %s", got)
	}
	if f.Key() == key {
		t.Error("a used up key was given out again")
	}
	set(t, f, func(r *storefake.Readings) { r.Keys.Lifetime = time.Nanosecond })
	f.RevokeKey()
	if got := use(f.Key()); got != 401 {
		t.Errorf("an expired key: %d, expected 401", got)
	}
	set(t, f, func(*storefake.Readings) {})
	f.RevokeKey()
	key = f.Key()
	if got := use(key); got != 200 {
		t.Errorf("a new key: %d", got)
	}
	f.RevokeKey()
	if got := use(key); got != 401 {
		t.Errorf("a revoked key: %d, expected 401", got)
	}
}

// Whose midnight is it, and when can a row be queried.
func TestTheServicesDayClockAndDelay(t *testing.T) {
	begin := time.Date(2026, 5, 1, 23, 0, 0, 0, time.UTC)
	f := start(t, storefake.Config{Start: begin, Speed: 1e-9}) // as good as standing still
	id, err := f.Insert(t.Context(), storefake.Users, storefake.Row{"first_name": "A"})
	if err != nil {
		t.Fatal(err)
	}
	within := func(what, from, to string) int {
		return len(get(t, f, fmt.Sprintf("/store-users?%s_from=%s&%[1]s_to=%[3]s", what, from, to)).Data)
	}
	on := func(day string) int { return within("updated", day, day) }
	if on("2026-05-01") != 1 || on("2026-05-02") != 0 {
		t.Error("the row is not on its UTC day")
	}
	if got := get(t, f, "/store-users?"+everything).header.Get("Date"); got != "Fri, 01 May 2026 23:00:00 GMT" {
		t.Errorf("Date: %s", got)
	}
	for midnights, midnight := range map[string]func(*storefake.Readings, bool){
		"updated": func(r *storefake.Readings, on bool) { r.UpdatedToMidnight = on },
		"created": func(r *storefake.Readings, on bool) { r.CreatedToMidnight = on },
	} {
		set(t, f, func(r *storefake.Readings) { midnight(r, true) })
		for _, what := range []string{"updated", "created"} {
			alone, want := within(what, "2026-05-01", "2026-05-01"), 1
			if what == midnights {
				want = 0
			}
			if n := within(what, "2026-05-01", "2026-05-02"); n != 1 || alone != want {
				t.Errorf("%s_to ends at midnight: the day alone has %d rows by %s_to, with the next one %d", midnights,
					alone, what, n)
			}
		}
		set(t, f, func(r *storefake.Readings) { midnight(r, false) })
	}
	set(t, f, func(r *storefake.Readings) { r.DayOffset, r.NoDate = 2*time.Hour, true })
	if on("2026-05-01") != 0 || on("2026-05-02") != 1 {
		t.Error("with days cut two hours early the row is not on the day after")
	}
	for _, zone := range []struct {
		what string
		set  func(*storefake.Readings)
	}{
		{"updated", func(r *storefake.Readings) { r.DayOffset, r.CreatedOffset = 2*time.Hour, -2*time.Hour }},
		{"created", func(r *storefake.Readings) { r.CreatedOffset = 2 * time.Hour }},
	} {
		set(t, f, zone.set)
		for _, what := range []string{"created", "updated"} {
			want := 1
			if what == zone.what {
				want = 0
			}
			if n := within(what, "2026-05-01", "2026-05-01"); n != want {
				t.Errorf("days of %s cut two hours early: %d rows on the day by %s, expected %d", zone.what, n, what,
					want)
			}
		}
	}
	set(t, f, func(r *storefake.Readings) { r.NoDate = true })
	if got := get(t, f, "/store-users?"+everything).header["Date"]; got != nil {
		t.Errorf("Date: %s, expected none", got)
	}
	set(t, f, func(r *storefake.Readings) { r.Delay = time.Minute })
	if n := len(f.Snapshot(storefake.Users)) + on("2026-05-01"); n != 0 {
		t.Error("the row can be queried at once")
	}
	f.Clock().Advance(time.Minute)
	if n := len(f.Snapshot(storefake.Users)) + on("2026-05-01"); n != 2 {
		t.Error("the row cannot be queried after its delay")
	}
	if err := f.Touch(t.Context(), storefake.Users, id); err != nil {
		t.Fatal(err)
	}
	if on("2026-05-01") != 0 {
		t.Error("the row changed and can be queried at once")
	}
}

func TestReadingsThatCannotBeAreNamedAtOnce(t *testing.T) {
	err := (&storefake.Config{Speed: -1, Size: storefake.Size{Orders: 1},
		Readings: storefake.Readings{Order: "sideways", Count: "some", Nulls: 2, MaxPage: 1001, HasMore: "maybe",
			ReplicaLag: time.Second, Without: []string{"users.id"}, UsedIDs: -1, MaxPages: -1,
			Limit: storefake.Limit{Status: 418}},
		Faults:   storefake.Faults{Shares: map[storefake.Fault]float64{"hiccup": .1}},
		Database: storefake.Database{DSN: "postgres://[", Columns: storefake.Columns{Money: "money"}}}).Check()
	if err == nil {
		t.Fatal("everything was taken")
	}
	for _, want := range []string{"sideways", "some", "nulls", "max-page", "418", "hiccup", "DSN",
		"money column", "user", "speed", "maybe", "replicas 0", `without "users.id"`,
		"used-ids", "a number of pages"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in: %v", want, err)
		}
	}
}
