package metrics

import (
	"slices"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/storestream/storestream/schemas"
)

// A counter that appears with its first event has no value before it, and no rate shows that event: the first
// dead letter would raise no alert.
func TestWhatCanBeCountedBeginsWithZero(t *testing.T) {
	reg := prometheus.NewRegistry()
	New(reg).Resource("orders")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, f := range families {
		found[f.GetName()] = len(f.GetMetric())
	}
	for name, series := range map[string]int{
		"storestream_dead_letters_total":         1,
		"storestream_http_requests_total":        1,
		"storestream_late_rows_total":            1,
		"storestream_page_passes_total":          1,
		"storestream_poll_duration_seconds":      1,
		"storestream_polls_total":                3,
		"storestream_rate_limited_seconds_total": 1,
		"storestream_rows_published_total":       1,
		"storestream_rows_read_total":            1,
		"storestream_rows_suppressed_total":      3,
		"storestream_sql_timeouts_total":         1,
		"storestream_sweep_differences_total":    3,
		"storestream_sweep_interval_seconds":     1,
	} {
		if found[name] != series {
			t.Errorf("%s has %d series before anything happened, expected %d", name, found[name], series)
		}
	}
}

func TestWhatWasCountedIsReadBackForPeople(t *testing.T) {
	set := New(prometheus.NewRegistry())
	users, orders := set.Resource("users"), set.Resource("orders")
	users.HTTPRequests("200").Add(7)
	users.HTTPRequests("429").Inc()
	if got := users.Requests(); got["200"] != 7 || got["429"] != 1 || orders.Requests()["200"] != 0 {
		t.Errorf("%v", got)
	}
	users.RowsPublished.Add(12)
	if users.Published() != 12 || orders.Published() != 0 {
		t.Errorf("%d and %d rows", users.Published(), orders.Published())
	}
	n, again := users.UnknownFields([]string{"gift", "discount"}), users.UnknownFields([]string{"gift"})
	if n != 2 || again != 0 {
		t.Errorf("%d names are new, and then %d: a name is new once", n, again)
	}
	if got := users.Fields(); !slices.Equal(got, []string{"discount", "gift"}) || len(orders.Fields()) != 0 {
		t.Errorf("%v", got)
	}
	for i := range 1000 {
		users.UnknownFields([]string{strconv.Itoa(i)})
	}
	if n := len(users.Fields()); n != schemas.MaxUnknown {
		t.Errorf("%d names are remembered", n)
	}
}
