package producer_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func sweepOf(resource string) watermark.Request {
	return watermark.Request{Resource: resource, Kind: watermark.Sweeps}
}

func TestRequestsAreReadInOrderByEveryInstance(t *testing.T) {
	s := plainStage(t)
	spread := map[string]*string{"cleanup.policy": kadm.StringPtr("delete")} // another program made it
	if _, err := s.admin.CreateTopic(s.ctx(), 3, 1, spread, "store.requests"); err != nil {
		t.Fatal(err)
	}
	cli, running := s.cluster("cli", nil), s.cluster("a", nil)
	to := instant(t, "2026-01-01T00:00:00Z")
	reset := watermark.Request{Resource: "orders", Kind: watermark.Reset, To: &to, By: "me@here"}
	asked, err := cli.Requests().Ask(s.ctx(), reset)
	if err != nil || asked.ID != 0 || asked.UID == "" {
		t.Fatal(asked, err)
	}
	requests := running.Requests()
	if err := requests.CatchUp(s.ctx()); err != nil {
		t.Fatal(err)
	}
	got := requests.After("orders", -1, "")
	if len(got) != 1 || got[0].ID != 0 || got[0].UID != asked.UID || got[0].Kind != watermark.Reset ||
		got[0].Topic != "store.requests" ||
		*got[0].To != to || got[0].By != "me@here" {
		t.Fatalf("requests %+v", got)
	}
	changed := requests.Changed()
	if _, err := cli.Requests().Ask(s.ctx(), sweepOf("users")); err != nil {
		t.Fatal(err)
	}
	<-changed
	if got := requests.After("users", -1, ""); len(got) != 1 || got[0].ID != 1 {
		t.Errorf("requests for users: %+v", got)
	}
	if got := requests.After("orders", 0, asked.UID); got != nil {
		t.Errorf("requests for orders after 0: %+v", got)
	}
}

func TestARecordThatIsNoRequestIsSkipped(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	if err := producer.EnsureTopics(s.ctx(), c); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"", "{", "[]", `{"uid":"u","resource":"users","kind":"sweep"}`,
		`{"resource":"orders","kind":"sweep"}`,
		`{"uid":"u","resource":"orders","kind":"explode"}`, `{"uid":"u","resource":"orders","kind":"reset"}`,
		`{"uid":"u","resource":"orders","kind":"reset","to":"yesterday"}`,
		`{"uid":"u","resource":"orders","kind":"sweep","by":"` + strings.Repeat("x", 4<<10) + `"}`} {
		s.produce(&kgo.Record{Topic: "store.requests", Key: []byte("orders"), Value: []byte(value)})
	}
	s.produce(&kgo.Record{Topic: "store.requests", Value: nil})
	asked, err := c.Requests().Ask(s.ctx(), sweepOf("orders"))
	if err != nil {
		t.Fatal(err)
	}
	requests := c.Requests()
	if err := requests.CatchUp(s.ctx()); err != nil {
		t.Fatal(err)
	}
	if got := requests.After("orders", -1, ""); len(got) != 1 || got[0].ID != asked.ID {
		t.Errorf("requests %+v, expected the one with id %d", got, asked.ID)
	}
	timeless := watermark.Request{Resource: "orders", Kind: watermark.Reset}
	if _, err := c.Requests().Ask(s.ctx(), timeless); err == nil {
		t.Error("a reset without a time was asked for")
	}
}

// A confirmation counts for an hour after it was given. A time that is ahead would make it count for longer.
func TestARequestFromTheFutureCountsAsADayOld(t *testing.T) {
	s := newStage(t, withoutIDs()) // so each look reads the last request once more
	now := time.Now()
	core, logs := observer.New(zap.WarnLevel)
	c := s.cluster("a", func(c *producer.Config) {
		c.Now, c.Log = func() time.Time { return now }, zap.New(core)
	})
	last := watermark.Request{ID: -1}
	for _, ahead := range []time.Duration{0, 30 * time.Second, 55 * time.Minute, 100 * 365 * 24 * time.Hour} {
		request := sweepOf("orders")
		request.At, request.ConfirmedDeletes = schemas.InstantOf(now.Add(ahead)), 5
		asked, err := c.Requests().Ask(s.ctx(), request)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Requests().CatchUp(s.ctx()); err != nil {
			t.Fatal(err)
		}
		found := c.Requests().After("orders", last.ID, last.UID)
		if len(found) != 1 {
			t.Fatalf("%d requests, expected 1", len(found))
		}
		last = asked
		old := schemas.InstantOf(now).Sub(found[0].At) > time.Hour
		if old != (ahead > time.Minute) {
			t.Errorf("a request of %s ahead counts as asked at %s", ahead, found[0].At)
		}
	}
	if err := c.Requests().CatchUp(s.ctx()); err != nil {
		t.Fatal(err)
	}
	if said := logs.FilterMessageSnippet("asked for in the future").Len(); said != 2 {
		t.Errorf("%d reports of 2 requests from the future", said)
	}
}

// An owner accepts requests while more are being read. Whatever it accepted last, it is given later ones
// alone, and what an instance keeps of a flood is bounded.
func TestARequestThatWasAcceptedIsNotGivenAgainWhileOthersFloodTheTopic(t *testing.T) {
	s := plainStage(t)
	requests := s.cluster("a", nil).Requests()
	accepted := s.ask(requests, sweepOf("orders"))
	if err := requests.CatchUp(s.ctx()); err != nil {
		t.Fatal(err)
	}
	const flood = 20_000
	records := make([]*kgo.Record, flood)
	for i := range records {
		records[i] = &kgo.Record{Topic: "store.requests", Key: []byte("orders"),
			Value: fmt.Appendf(nil, `{"uid":"%d","resource":"orders","kind":"sweep"}`, i+1)}
	}
	s.produce(records...)
	for ctx := s.ctx(); accepted.ID < flood; {
		after := requests.After("orders", accepted.ID, accepted.UID)
		if len(after) == 0 {
			if ctx.Err() != nil {
				t.Fatalf("waited 30s for what follows request %d", accepted.ID)
			}
			continue
		}
		if after[0].ID <= accepted.ID {
			t.Fatalf("after request %d comes %d", accepted.ID, after[0].ID)
		}
		accepted = after[len(after)-1]
	}
	if n := len(requests.After("orders", -1, "")); n != 5000 {
		t.Errorf("%d requests are kept, expected 5000", n)
	}
	if later := requests.After("orders", 3, "3"); len(later) != 5000 || later[0].ID <= 3 {
		t.Errorf("after a request that is no longer kept: %d requests", len(later))
	}
}

// A transaction that another program leaves open in the topic keeps no takeover waiting, and no request that
// is before it.
func TestATransactionThatIsLeftOpenKeepsNoRequestBack(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	asked := s.ask(c.Requests(), sweepOf("orders"))
	cl := s.transactional("somebody")
	s.write(cl, &kgo.Record{Topic: "store.requests", Key: []byte("orders"), Value: []byte("{}")})
	if err := c.Requests().CatchUp(s.ctx()); err != nil {
		t.Fatal(err)
	}
	if got := c.Requests().After("orders", -1, ""); len(got) != 1 || got[0].UID != asked.UID {
		t.Errorf("requests %+v, expected the one before the transaction", got)
	}
}

// An instance looks twice a second. It reports requests that it forgets when it forgets them, and not at each
// look from then on. As many as it keeps are not too many.
func TestForgottenRequestsAreReportedOnceAndNotAtEachLook(t *testing.T) {
	s := plainStage(t)
	core, logs := observer.New(zap.WarnLevel)
	c := s.cluster("a", func(c *producer.Config) { c.Log = zap.New(core) })
	if err := producer.EnsureTopics(s.ctx(), c); err != nil {
		t.Fatal(err)
	}
	for written := 0; written < 5001; written += 5000 {
		records := make([]*kgo.Record, min(5000, 5001-written))
		for i := range records {
			records[i] = &kgo.Record{Topic: "store.requests", Key: []byte("orders"),
				Value: fmt.Appendf(nil, `{"uid":"%d","resource":"orders","kind":"sweep"}`, written+i)}
		}
		s.produce(records...)
		for range 3 {
			if err := c.Requests().CatchUp(s.ctx()); err != nil {
				t.Fatal(err)
			}
		}
		said := logs.FilterMessageSnippet("too many requests").Len()
		if expected := max(0, written+len(records)-5000); said != expected {
			t.Errorf("%d requests: %d reports that there are too many, expected %d", written+len(records), said,
				expected)
		}
	}
}

// Offsets begin again in a topic that was made anew. A watermark that names the fifth request of the old one
// must not hide the first five of the new, nor one that happens to have the same offset.
func TestRequestsOfATopicThatWasMadeAnewAreNotTakenForDone(t *testing.T) {
	for _, broker := range []struct {
		name  string
		stage func() *stage
	}{
		{"with topic ids", func() *stage { return plainStage(t) }},
		{"without", func() *stage { return newStage(t, withoutIDs()) }},
	} {
		s := broker.stage()
		old := s.cluster("a", nil).Requests()
		var last watermark.Request
		for range 5 {
			last = s.ask(old, sweepOf("orders"))
		}
		if err := old.CatchUp(s.ctx()); err != nil {
			t.Fatal(err)
		}
		if got := old.After("orders", last.ID, last.UID); len(got) != 0 {
			t.Errorf("%s: a request that was done comes again: %+v", broker.name, got)
		}
		if _, err := s.admin.DeleteTopics(s.ctx(), "store.requests"); err != nil {
			t.Fatal(err)
		}
		fresh := s.cluster("b", nil).Requests()
		var asked []watermark.Request
		for _, resource := range []string{"orders", "users", "orders", "orders", "users", "orders", "users"} {
			asked = append(asked, s.ask(fresh, sweepOf(resource)))
		}
		if err := fresh.CatchUp(s.ctx()); err != nil {
			t.Fatal(err)
		}
		instances := map[string]*producer.Requests{"a new instance": fresh}
		if broker.name == "with topic ids" { // without, it would have to look while the topic is shorter
			instances["an old one"] = old
		}
		for name, instance := range instances {
			for id := range int64(9) { // those of other resources, and behind the end
				all := func() bool { return len(instance.After("orders", id, "of the old topic")) == 4 }
				s.awaitRequests(instance, all,
					fmt.Sprintf("%s, %s: 4 requests after %d of the old topic", broker.name, name, id))
			}
			if got := instance.After("orders", 3, asked[3].UID); len(got) != 1 || got[0].ID != 5 {
				t.Errorf("%s, %s: after request 3 of the new topic: %+v", broker.name, name, got)
			}
		}
	}
}

// An instance that notices late that the topic was made anew must not take what the old one held for new.
func TestASuccessorIsGivenNothingOfATopicOfRequestsThatWasDeleted(t *testing.T) {
	s := newStage(t)
	c := s.cluster("a", nil)
	s.ask(c.Requests(), sweepOf("orders"))
	if err := c.Requests().CatchUp(s.ctx()); err != nil {
		t.Fatal(err)
	}
	s.showNothingNewUntilAskedForEnds("store.requests")
	if _, err := s.admin.DeleteTopics(s.ctx(), "store.requests"); err != nil {
		t.Fatal(err)
	}
	accepted := s.ask(s.cluster("cli", nil).Requests(), sweepOf("orders"))
	if err := c.Requests().CatchUp(s.ctx()); err != nil { // a takeover, whose watermark has accepted the new one
		t.Fatal(err)
	}
	if got := c.Requests().After("orders", accepted.ID, accepted.UID); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// showNothingNewUntilAskedForEnds answers those who fetch from topic that nothing was written to it, until
// some fetches after somebody asks where it ends.
func (s *stage) showNothingNewUntilAskedForEnds(topic string) {
	info, err := s.admin.ListTopics(s.ctx(), topic)
	if err != nil {
		s.t.Fatal(err)
	}
	more := math.MaxInt
	s.broker.ControlKey(int16(kmsg.ListOffsets), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.KeepControl()
		if topics := kreq.(*kmsg.ListOffsetsRequest).Topics; len(topics) == 1 && topics[0].Topic == topic {
			more = min(more, 20)
		}
		return nil, nil, false
	})
	s.broker.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.KeepControl()
		req := kreq.(*kmsg.FetchRequest)
		if more == 0 || req.Topics[0].TopicID != info[topic].ID {
			return nil, nil, false
		}
		more--
		answer := req.ResponseKind().(*kmsg.FetchResponse)
		t := kmsg.NewFetchResponseTopic()
		t.Topic, t.TopicID = req.Topics[0].Topic, req.Topics[0].TopicID
		p := kmsg.NewFetchResponseTopicPartition()
		p.HighWatermark, p.LastStableOffset = 1, 1
		t.Partitions = append(t.Partitions, p)
		answer.Topics = append(answer.Topics, t)
		return answer, nil, true
	})
}

func (s *stage) ask(q *producer.Requests, request watermark.Request) watermark.Request {
	s.t.Helper()
	asked, err := q.Ask(s.ctx(), request)
	if err != nil {
		s.t.Fatal(err)
	}
	return asked
}

// awaitRequests waits until is holds.
func (s *stage) awaitRequests(q *producer.Requests, is func() bool, what string) {
	s.t.Helper()
	for ctx := s.ctx(); ; {
		changed := q.Changed()
		if is() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			s.t.Fatalf("waited 30s for %s", what)
		}
	}
}

func TestAResetNamesItsTimeInTheContractsForm(t *testing.T) {
	s := plainStage(t)
	to := schemas.MinInstant
	reset := watermark.Request{Resource: "orders", Kind: watermark.Reset, To: &to, By: "me@here",
		At: instant(t, "2026-11-20T09:00:00Z")}
	asked := s.ask(s.cluster("a", nil).Requests(), reset)
	want := `{"uid":"` + asked.UID + `","resource":"orders","kind":"reset","to":"0001-01-01T00:00:00.000000Z",` +
		`"by":"me@here","at":"2026-11-20T09:00:00.000000Z"}`
	got := s.committed("store.requests")
	if len(got) != 1 || string(got[0].Value) != want || string(got[0].Key) != "orders" {
		t.Errorf("%s", got[0].Value)
	}
}
