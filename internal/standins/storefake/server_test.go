package storefake_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

const everything = "updated_from=1970-01-01"

func TestEveryRuleOnParameters(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	missing, invalid := "missing_required_param", "invalid_param"
	for _, c := range []struct {
		path   string
		status int
		code   string
	}{
		{"/store-orders", 400, missing},
		{"/store-orders?page=0&status=Complete", 400, missing},
		{"/store-orders?created_from=2026-01-01", 200, ""},
		{"/store-users?created_to=2026-01-01", 200, ""},
		{"/store-products?updated_from=2026-01-01", 200, ""},
		{"/store-shipments?updated_to=2026-01-01", 200, ""},
		{"/store-orders?updated_from=2026-1-1", 400, invalid},
		{"/store-orders?updated_from=2026-02-30", 400, invalid},
		{"/store-orders?updated_from=2026-01-01T00:00:00Z", 400, invalid},
		{"/store-orders?updated_from=", 400, invalid},
		{"/store-orders?updated_from=2026-01-01&created_to=x", 400, invalid},
		{"/store-orders?" + everything + "&page=-1", 400, invalid},
		{"/store-orders?" + everything + "&page=x", 400, invalid},
		{"/store-orders?" + everything + "&page=", 400, invalid},
		{"/store-orders?" + everything + "&page_size=0", 400, invalid},
		{"/store-orders?" + everything + "&page_size=ten", 400, invalid},
		{"/store-orders?" + everything + "&page_size=1001", 200, ""},
		{"/store-orders?" + everything + "&status=complete", 400, invalid},
		{"/store-orders?" + everything + "&status=Complete", 200, ""},
		{"/store-orders?" + everything + "&order_id=x", 200, ""}, // not a parameter of orders
		{"/store-users?" + everything + "&status=x", 200, ""},
		{"/store-order-items?" + everything + "&order_id=0", 400, invalid},
		{"/store-order-items?" + everything + "&order_id=1.5", 400, invalid},
		{"/store-shipments?" + everything + "&order_id=-3", 400, invalid},
		{"/store-shipments?" + everything + "&order_id=3", 200, ""},
		{"/store-baskets?" + everything, 404, "not_found"},
		{"/store-orders/?" + everything, 404, "not_found"},
	} {
		a := get(t, f, c.path)
		if a.err != nil || a.status != c.status || a.Error != c.code {
			t.Errorf("%s: %d %q %v, expected %d %q", c.path, a.status, a.Error, a.err, c.status, c.code)
		}
		if c.code != "" && a.Message == "" {
			t.Errorf("%s: an error without a message", c.path)
		}
	}
}

func TestTheKeyEndpointNeedsNoKeyAndTheOthersDo(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	if a := ask(t, f, http.MethodGet, "/store-api-keys", ""); a.status != 200 || a.APIKey != f.Key() ||
		a.APIKey == "" {
		t.Errorf("key endpoint: %d %q, expected the key", a.status, a.body)
	}
	for _, path := range []string{"/store-orders", "/store-users", "/store-products", "/store-order-items",
		"/store-shipments"} {
		for _, authorization := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Basic " + f.Key(),
			f.Key()} {
			if a := ask(t, f, http.MethodGet, path+"?"+everything, authorization); a.status != 401 ||
				a.Error != "unauthorized" {
				t.Errorf("%s with %q: %d %q, expected 401 unauthorized", path, authorization, a.status, a.Error)
			}
		}
		if a := ask(t, f, http.MethodPost, path+"?"+everything, "Bearer "+f.Key()); a.status != 405 ||
			a.header.Get("Allow") != "GET" {
			t.Errorf("POST %s: %d, expected 405", path, a.status)
		}
	}
}

// The field names are written out once more here, from the document.
func TestRowsHaveTheFieldsOfTheDocument(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	for path, fields := range map[string]string{
		"/store-orders":      "id user_id status total_amount created_at updated_at",
		"/store-order-items": "id order_id product_id sale_price quantity amount created_at updated_at",
		"/store-products":    "id cost category name brand retail_price department sku created_at updated_at",
		"/store-users": "id first_name last_name email age gender state street_address postal_code city country " +
			"latitude longitude traffic_source " +
			"created_at updated_at",
		"/store-shipments": "id order_id shipped_at delivered_at returned_at created_at updated_at",
	} {
		for _, row := range get(t, f, path+"?"+everything).Data {
			for _, field := range strings.Fields(fields) {
				value, ok := row[field]
				if !ok {
					t.Fatalf("%s: a row without %s", path, field)
				}
				if text, _ := value.(string); strings.HasSuffix(field, "_at") && value != nil {
					if _, err := time.Parse("2006-01-02T15:04:05Z", text); err != nil {
						t.Fatalf("%s: %s %q is not of the form YYYY-MM-DDThh:mm:ssZ", path, field, text)
					}
				}
			}
			if len(row) != len(strings.Fields(fields)) {
				t.Fatalf("%s: %d fields, expected %d", path, len(row), len(strings.Fields(fields)))
			}
		}
	}
}

func TestPagesHoldEveryRowOnceAndTheLastSaysSo(t *testing.T) {
	f := start(t, storefake.Config{Size: storefake.Size{Users: 2500}})
	for _, c := range []struct {
		query            string
		size, last, rows int
	}{{"", 1000, 2, 500}, {"&page_size=1000", 1000, 2, 500}, {"&page_size=5000", 1000, 2, 500},
		{"&page_size=500", 500, 4, 500}, {"&page_size=7", 7, 357, 1}} {
		seen := map[int64]bool{}
		for n := range c.last + 1 {
			a := get(t, f, "/store-users?"+everything+c.query+"&page="+itoa(n))
			if a.Meta.Page != n || a.Meta.PageSize != c.size || a.Meta.Count != 2500 ||
				a.Meta.HasMore != (n < c.last) {
				t.Fatalf("%s page %d: meta %+v", c.query, n, a.Meta)
			}
			for _, id := range a.ids() {
				seen[id] = true
			}
			if n == c.last && len(a.Data) != c.rows {
				t.Errorf("%s: %d rows on the last page, expected %d", c.query, len(a.Data), c.rows)
			}
			if testing.Short() && n > 3 {
				break
			}
		}
		if len(seen) != 2500 && !testing.Short() {
			t.Errorf("%s: %d rows in all, expected 2500", c.query, len(seen))
		}
	}
}

func TestDatesAreUTCDaysInclusiveAndCombineWithAnd(t *testing.T) {
	f := start(t, storefake.Config{})
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for id, row := range []struct{ created, updated string }{
		{"2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"2026-03-01T23:59:59.999999Z", "2026-03-02T00:00:00Z"},
		{"2026-03-02T00:00:00Z", "2026-03-02T23:59:59.999999Z"},
		{"2026-03-02T12:00:00Z", "2026-03-03T00:00:00Z"},
		{"2026-03-04T12:00:00Z", "2026-03-03T12:00:00Z"}, // created after it was updated
	} {
		_, err := f.Insert(t.Context(), storefake.Orders, storefake.Row{"id": int64(id + 1),
			"status":     storefake.Shipped,
			"created_at": at(row.created), "updated_at": at(row.updated)})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.SetUpdatedAt(t.Context(), storefake.Orders, 1, time.Time{}); err != nil { // null: on no day
		t.Fatal(err)
	}
	for query, want := range map[string][]int64{
		"created_from=2026-03-02":                         {3, 4, 5},
		"created_to=2026-03-01":                           {1, 2},
		"created_from=2026-03-02&created_to=2026-03-02":   {3, 4},
		"updated_from=2026-03-03":                         {4, 5},
		"updated_to=2026-03-02":                           {2, 3},
		"updated_from=2026-03-02&updated_to=2026-03-02":   {2, 3},
		"updated_from=2026-03-02&created_to=2026-03-01":   {2},
		"created_from=2026-03-04&updated_to=2026-03-03":   {5},
		"updated_from=2026-03-03&updated_to=2026-03-02":   nil,
		"created_from=2026-03-01&status=Shipped":          {1, 2, 3, 4, 5},
		"created_from=2026-03-01&status=Complete":         nil,
		"updated_from=0001-01-01&updated_to=9999-12-31":   {2, 3, 4, 5},
		"updated_from=2026-03-02&updated_from=2030-01-01": {2, 3, 4, 5}, // the first counts
	} {
		if got := get(t, f, "/store-orders?"+query).ids(); !slices.Equal(got, want) {
			t.Errorf("%s: ids %v, expected %v", query, got, want)
		}
	}
}

func TestRowsOfAnOrderAreFound(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	want := map[int64]int{}
	for _, row := range f.Rows(storefake.OrderItems) {
		want[row["order_id"].(int64)]++
	}
	for order, n := range want {
		a := get(t, f, "/store-order-items?"+everything+"&order_id="+itoa(int(order)))
		if len(a.Data) != n {
			t.Fatalf("order %d: %d items, expected %d", order, len(a.Data), n)
		}
		if order > 50 {
			break
		}
	}
	if err := f.Update(t.Context(), storefake.Shipments, 3,
		func(r storefake.Row) { r["order_id"] = int64(4) }); err != nil {
		t.Fatal(err)
	}
	if got := get(t, f, "/store-shipments?"+everything+"&order_id=4").ids(); !slices.Equal(got, []int64{3, 4}) {
		t.Errorf("shipments of order 4 after one was given to it: %v, expected 3 and 4", got)
	}
	if got := get(t, f, "/store-shipments?"+everything+"&order_id=3").ids(); got != nil {
		t.Errorf("shipments of order 3 after its one was taken away: %v, expected none", got)
	}
}

func TestSnapshotIsWhatTheServiceWrites(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	snapshot := f.Snapshot(storefake.Users)
	body := string(get(t, f, "/store-users?"+everything).body)
	if len(snapshot) != small.Users {
		t.Errorf("%d rows in the snapshot, expected %d", len(snapshot), small.Users)
	}
	for id, row := range snapshot {
		if !strings.Contains(body, string(row)) {
			t.Fatalf("user %d is in the snapshot as %s, and so nowhere in the listing", id, row)
		}
	}
}

func TestTheHookRunsBetweenPagesAndTheJournalTellsThem(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	f.OnRequest(func(r *http.Request) {
		if r.URL.Query().Get("page") == "1" {
			if err := f.Delete(r.Context(), storefake.Products, 1); err != nil {
				t.Error(err)
			}
		}
	})
	first := get(t, f, "/store-products?"+everything+"&page_size=10")
	second := get(t, f, "/store-products?"+everything+"&page_size=10&page=1")
	if first.ids()[0] != 1 || second.ids()[0] != 12 {
		t.Errorf("pages begin with ids %d and %d, expected 1, and 12 because a row left in between", first.ids()[0],
			second.ids()[0])
	}
	requests := f.Requests()
	if len(requests) != 2 || requests[1].Resource != storefake.Products || requests[1].Rows != 10 ||
		requests[1].Status != 200 {
		t.Errorf("journal: %+v", requests)
	}
}
