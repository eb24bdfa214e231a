package producer_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func sweepOf(resource string) watermark.Request {
	return watermark.Request{Resource: resource, Kind: watermark.Sweeps}
}

func TestRequestsAreReadInOrderByEveryInstance(t *testing.T) {
	s := plainStage(t)
	cli, running := s.cluster("cli", nil), s.cluster("a", nil)
	to := instant(t, "2026-01-01T00:00:00Z")
	reset := watermark.Request{Resource: "orders", Kind: watermark.Reset, To: &to, By: "me@here"}
	if id, err := cli.Requests().Ask(s.ctx(), reset); err != nil || id != 0 {
		t.Fatal(id, err)
	}
	requests := running.Requests()
	if err := requests.CatchUp(s.ctx()); err != nil {
		t.Fatal(err)
	}
	got := requests.After("orders", -1)
	if len(got) != 1 || got[0].ID != 0 || got[0].Kind != watermark.Reset || *got[0].To != to ||
		got[0].By != "me@here" {
		t.Fatalf("requests %+v", got)
	}
	changed := requests.Changed()
	if _, err := cli.Requests().Ask(s.ctx(), sweepOf("users")); err != nil {
		t.Fatal(err)
	}
	<-changed
	if got := requests.After("users", 0); len(got) != 1 || got[0].ID != 1 {
		t.Errorf("requests for users after 0: %+v", got)
	}
	if got := requests.After("orders", 0); got != nil {
		t.Errorf("requests for orders after 0: %+v", got)
	}
}

func TestARecordThatIsNoRequestIsSkipped(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	if err := producer.EnsureTopics(s.ctx(), c); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"", "{", "[]", `{"resource":"users","kind":"sweep"}`,
		`{"resource":"orders","kind":"explode"}`, `{"resource":"orders","kind":"reset"}`,
		`{"resource":"orders","kind":"reset","to":"yesterday"}`} {
		s.produce(&kgo.Record{Topic: "store.requests", Key: []byte("orders"), Value: []byte(value)})
	}
	s.produce(&kgo.Record{Topic: "store.requests", Value: nil})
	id, err := c.Requests().Ask(s.ctx(), sweepOf("orders"))
	if err != nil {
		t.Fatal(err)
	}
	requests := c.Requests()
	if err := requests.CatchUp(s.ctx()); err != nil {
		t.Fatal(err)
	}
	if got := requests.After("orders", -1); len(got) != 1 || got[0].ID != id {
		t.Errorf("requests %+v, expected the one with id %d", got, id)
	}
	timeless := watermark.Request{Resource: "orders", Kind: watermark.Reset}
	if _, err := c.Requests().Ask(s.ctx(), timeless); err == nil {
		t.Error("a reset without a time was asked for")
	}
}

// Ids begin again in a topic that was made anew; a watermark that names the fifth request of the old one must
// not hide the first five of the new.
func TestRequestsOfATopicThatWasMadeAnewAreNotTakenForDone(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	if _, err := c.Requests().Ask(s.ctx(), sweepOf("orders")); err != nil {
		t.Fatal(err)
	}
	if err := c.Requests().CatchUp(s.ctx()); err != nil {
		t.Fatal(err)
	}
	if got := c.Requests().After("orders", 0); len(got) != 0 {
		t.Errorf("a request that was done comes again: %+v", got)
	}
	if got := c.Requests().After("orders", 5); len(got) != 1 {
		t.Errorf("requests after 5 in a topic that ends at 1: %+v", got)
	}
}

func TestAResetNamesItsTimeInTheContractsForm(t *testing.T) {
	s := plainStage(t)
	to := schemas.MinInstant
	reset := watermark.Request{Resource: "orders", Kind: watermark.Reset, To: &to, By: "me@here",
		At: instant(t, "2026-11-20T09:00:00Z")}
	if _, err := s.cluster("a", nil).Requests().Ask(s.ctx(), reset); err != nil {
		t.Fatal(err)
	}
	want := `{"resource":"orders","kind":"reset","to":"0001-01-01T00:00:00.000000Z","by":"me@here",` +
		`"at":"2026-11-20T09:00:00.000000Z"}`
	got := s.committed("store.requests")
	if len(got) != 1 || string(got[0].Value) != want || string(got[0].Key) != "orders" {
		t.Errorf("%s", got[0].Value)
	}
}
