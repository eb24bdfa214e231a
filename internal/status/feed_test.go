package status

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/schemas"
)

func user(t *testing.T, r *schemas.Resource, id int) schemas.Record {
	t.Helper()
	record, reject := schemas.NewRowParser(r).Parse(fmt.Appendf(nil, `{"id":%d,"first_name":"Ana",
		"last_name":"Ng","email":"ana@example.com","age":40,"city":"Łódź","latitude":51.7,
		"street_address":"1 High Street","created_at":"2020-01-01T00:00:00Z",
		"updated_at":"2026-11-20T09:30:00Z"}`, id))
	if reject != nil {
		t.Fatal(reject.Err)
	}
	return record
}

func TestTheFeedIsASampleWithoutPersonalDataAndKeepsNothingOfTheRows(t *testing.T) {
	set, err := schemas.Load("")
	if err != nil {
		t.Fatal(err)
	}
	users := set.Get("users")
	now := time.Date(2026, 11, 20, 9, 30, 1, 0, time.UTC)
	b := New("a-1", "v0")
	b.now = func() time.Time { return now }
	b.ShowValues()
	var rows []schemas.Record
	for id := range 1000 {
		rows = append(rows, user(t, users, id))
	}
	b.Published(users, rows, []int64{5})
	b.Published(users, rows, nil) // within the same second: not looked at
	for _, r := range rows {
		clear(r.Value) // the poller uses its memory again
	}
	shown, _ := b.feed.latest()
	var ids []int64
	for _, u := range shown {
		ids = append(ids, u.ID)
	}
	if !slices.Equal(ids, []int64{999, 998, 5}) || !shown[2].Gone || shown[0].Gone {
		t.Fatalf("shown %v, expected the newest two rows and the tombstone", ids)
	}
	want := [][2]string{
		{"first_name", "***"}, {"last_name", "***"}, {"email", "***"}, {"age", "***"}, {"street_address", "***"},
		{"city", "***"}, {"latitude", "***"},
		{"created_at", "2020-01-01T00:00:00Z"}, {"updated_at", "2026-11-20T09:30:00Z"},
	}
	if !slices.Equal(shown[0].Fields, want) {
		t.Errorf("%v, expected %v", shown[0].Fields, want)
	}
	text, err := json.Marshal(b.Document())
	if err != nil || strings.Contains(string(text), "ana@") || strings.Contains(string(text), "High Street") {
		t.Errorf("%v: personal data in %s", err, text)
	}

	for range 100 {
		now = now.Add(time.Second)
		b.Published(users, []schemas.Record{user(t, users, 7)}, nil)
	}
	if shown, _ := b.feed.latest(); len(shown) != feedKept || !shown[0].At.Equal(now) {
		t.Errorf("%d rows are kept, the newest of %s", len(shown), shown[0].At)
	}
}

// Whoever reaches the page sees what is published and when, and no value unless somebody asked for it.
func TestTheFeedShowsNoValuesUnlessThatIsAskedFor(t *testing.T) {
	set, err := schemas.Load("")
	if err != nil {
		t.Fatal(err)
	}
	users := set.Get("users")
	b := New("a-1", "v0")
	b.Published(users, []schemas.Record{user(t, users, 7)}, nil)
	shown, _ := b.feed.latest()
	if len(shown) != 1 || shown[0].ID != 7 || shown[0].Fields != nil {
		t.Errorf("shown %+v, expected the id and the time alone", shown)
	}
}

// A first load of a hundred thousand rows a second pays for the page with a look at the clock for each
// transaction, whether somebody looks or not.
func BenchmarkPublishedWithinTheSameSecond(b *testing.B) {
	set, err := schemas.Load("")
	if err != nil {
		b.Fatal(err)
	}
	board, rows := New("a-1", "v0"), make([]schemas.Record, 100_000)
	board.Published(set.Get("orders"), rows, nil)
	for b.Loop() {
		board.Published(set.Get("orders"), rows, nil)
	}
}
