package producer_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// remake deletes a topic and creates it again, as a person does by hand.
func (s *stage) remake(c *producer.Cluster, topic string) {
	s.t.Helper()
	if _, err := s.admin.DeleteTopics(s.ctx(), topic); err != nil {
		s.t.Fatal(err)
	}
	s.knows(topic, false)
	if err := producer.EnsureTopics(s.ctx(), c, "orders"); err != nil {
		s.t.Fatal(err)
	}
	s.knows(topic, true)
}

// knows waits until the broker has a topic, or has it no more. Apache Kafka hears of it a moment later.
func (s *stage) knows(topic string, exists bool) {
	s.t.Helper()
	for ctx := s.ctx(); ; {
		topics, err := s.admin.ListTopics(ctx, topic)
		if err != nil {
			s.t.Fatal(err)
		}
		if (topics[topic].Err == nil) == exists {
			return
		}
	}
}

// commitsLost commits, and wants that to find out that the session is lost.
func (s *stage) commitsLost(session *producer.Session, rows ...schemas.Record) {
	s.t.Helper()
	if err := session.Commit(s.ctx(), next(session, rows...)); !errors.Is(err, producer.ErrLost) {
		s.t.Errorf("a commit to the new topic in the old session: %v, expected ErrLost", err)
	}
}

// wantAfresh wants a watermark by which everything is published from the start.
func wantAfresh(t *testing.T, what string, got watermark.Watermark) {
	t.Helper()
	if got.Settled != schemas.MinInstant || got.Rows != 0 || got.Request != 5 || got.RequestUID != "five" {
		t.Errorf("%s: watermark %+v: expected a first load that remembers request 5", what, got)
	}
}

// at5 is next, with request 5 accepted.
func at5(session *producer.Session, rows ...schemas.Record) watermark.Transaction {
	tx := next(session, rows...)
	tx.Watermark.Request, tx.Watermark.RequestUID = 5, "five"
	return tx
}

// A data topic may be deleted while somebody owns it, while nobody does, and again; rows may come before
// anybody notices, or none. Whatever happens, who takes it over next begins with the first row if rows of the
// watermark are not in the topic, and with the next one otherwise. Brokers with topic ids and without.
func TestWhateverHappensToTheDataTopicRowsThatItLacksArePublishedAgain(t *testing.T) {
	pause := *producer.ShortLogPause
	t.Cleanup(func() { *producer.ShortLogPause = pause }) // when the parts, which run at once, have ended
	*producer.ShortLogPause = time.Millisecond
	steps := []string{"a row", "an idle watermark", "a takeover", "made anew", "aborted rows"}
	for name, options := range map[string][]kfake.Opt{"with topic ids": nil, "without": {withoutIDs()}} {
		for _, first := range steps {
			t.Run(name+", "+first, func(t *testing.T) {
				t.Parallel()
				s := newStage(t, options...)
				for _, second := range steps {
					for _, third := range steps {
						s.playOnTheDataTopic([]string{first, second, third})
					}
				}
			})
		}
	}
}

func (s *stage) playOnTheDataTopic(sequence []string) {
	s.t.Helper()
	prefix := strings.ReplaceAll(strings.Join(sequence, "."), " ", "-") + "."
	c := s.cluster("a", func(c *producer.Config) { c.TopicPrefix = prefix })
	defer c.Close()
	topic := prefix + "orders"
	session, err := producer.Take(s.ctx(), c, s.orders())
	if err != nil {
		s.t.Fatal(err)
	}
	published := map[int64]bool{} // by id: the topic holds it
	// anew: the topic was made anew since the last takeover. atFirst: that one begins with the first row, and
	// none was committed since.
	anew, atFirst := false, true
	id := int64(0)
	write := func() {
		id++
		row := s.order(id, "2026-11-20T09:00:00Z", "Shipped")
		switch err := session.Commit(s.ctx(), next(session, row)); {
		case err == nil:
			published[id], atFirst = true, false
		case !errors.Is(err, producer.ErrLost):
			s.t.Fatalf("%v: %v", sequence, err)
		}
	}
	take := func() {
		session.Close()
		if session, err = producer.Take(s.ctx(), c, s.orders()); err != nil {
			s.t.Fatalf("%v: %v", sequence, err)
		}
		inTopic := s.ids(topic)
		for id := range published {
			if there := slices.Contains(inTopic, id); !there && session.Watermark().Settled != schemas.MinInstant {
				s.t.Errorf("%v: the topic lacks order %d, and the next owner goes on behind it", sequence, id)
			}
		}
		afresh := session.Watermark().Settled == schemas.MinInstant
		if afresh && !anew && !atFirst {
			s.t.Errorf("%v: the topic holds %v, and the next owner begins with the first row", sequence, inTopic)
		}
		if anew, atFirst = false, afresh; afresh {
			clear(published) // what the source holds is published from the start
		} else if len(published) > 0 && len(inTopic) < len(published) {
			s.t.Errorf("%v: the topic holds %v, expected %v", sequence, inTopic, published)
		}
	}
	write()
	for _, step := range sequence {
		switch step {
		case "a row":
			write()
		case "an idle watermark":
			_ = session.Commit(s.ctx(), next(session))
		case "a takeover":
			take()
		case "made anew":
			anew = true
			if _, err := s.admin.DeleteTopics(s.ctx(), topic); err != nil {
				s.t.Fatal(err)
			}
			if err := producer.EnsureTopics(s.ctx(), c, "orders"); err != nil {
				s.t.Fatal(err)
			}
		case "aborted rows":
			s.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: prefix + "dead_letters",
				Err: kerr.InvalidRecord})
			tx := next(session, s.order(99, "2026-11-20T09:00:00Z", "Shipped"))
			tx.DeadLetters = []watermark.DeadLetter{{Key: "orders/98", Row: []byte(`{}`)}}
			_ = session.Commit(s.ctx(), tx)
		}
	}
	take()
	session.Close()
}

// The same in the words of the issue: on a broker without topic ids nothing but the end of its log tells a
// new topic from the old one.
func TestADataTopicThatWasMadeAnewIsAFirstLoadAlsoWithoutTopicIDs(t *testing.T) {
	s := newStage(t, withoutIDs())
	c := s.cluster("a", nil)
	session := s.take(c)
	s.commit(session, at5(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	session.Close()
	session = s.take(c)
	if got := session.Watermark(); got.Rows != 1 || got.TopicID != "" {
		t.Errorf("watermark %+v: expected to go on", got)
	}
	session.Close()
	s.remake(c, "store.orders")
	again := s.take(c)
	wantAfresh(t, "made anew while nobody owned it", again.Watermark())

	s.commit(again, at5(again, s.order(1, "2026-11-20T09:00:00Z", "Shipped"),
		s.order(2, "2026-11-20T09:00:00Z", "Shipped")))
	s.remake(c, "store.orders")
	// The rows get offsets that the log has passed before, and then make it longer than it was.
	var rows []schemas.Record
	for id := range int64(100) {
		rows = append(rows, s.order(id, "2026-11-20T09:00:00Z", "Shipped"))
	}
	s.commitsLost(again, rows...)
	again.Close()
	s.wantIDs()
	wantAfresh(t, "made anew under an owner", s.take(c).Watermark())

	smaller := s.cluster("b", func(c *producer.Config) { c.Partitions = 1 })
	s.remake(smaller, "store.orders")
	wantAfresh(t, "made anew once more, with fewer partitions", s.take(smaller).Watermark())
}

// The new topic has wrong settings as well, and the minute between two looks ends while the owner writes. Its
// aborted rows have made the log longer, so only its last watermark tells the successor.
func TestAnOwnerThatWroteToANewTopicSaysSoBeforeItLooksAgain(t *testing.T) {
	s, now := newStage(t, withoutIDs()), time.Now()
	var later atomic.Int64
	c := s.cluster("a", func(c *producer.Config) {
		c.Now = func() time.Time { return now.Add(time.Duration(later.Load())) }
	})
	session := s.take(c)
	s.commit(session, at5(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	if _, err := s.admin.DeleteTopics(s.ctx(), "store.orders"); err != nil {
		t.Fatal(err)
	}
	s.knows("store.orders", false)
	if _, err := s.admin.CreateTopics(s.ctx(), 3, 1, nil, "store.orders"); err != nil { // no cleanup.policy
		t.Fatal(err)
	}
	s.knows("store.orders", true)
	s.broker.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		later.Store(int64(time.Minute))
		return nil, nil, false
	})
	var rows []schemas.Record
	for id := range int64(100) {
		rows = append(rows, s.order(id, "2026-11-20T09:00:00Z", "Shipped"))
	}
	s.commitsLost(session, rows...)
	session.Close()
	compact := "compact"
	_, err := s.admin.AlterTopicConfigs(s.ctx(), []kadm.AlterConfig{{Name: "cleanup.policy", Value: &compact}},
		"store.orders")
	if err != nil {
		t.Fatal(err)
	}
	wantAfresh(t, "the successor", s.take(c).Watermark())
}

// An owner with nothing to write notices within a minute.
func TestAnIdleOwnerNoticesThatTheDataTopicWasMadeAnew(t *testing.T) {
	s := newStage(t, withoutIDs())
	now := time.Now()
	c := s.cluster("a", func(c *producer.Config) { c.Now = func() time.Time { return now } })
	session := s.take(c)
	s.commit(session, at5(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	s.remake(c, "store.orders")
	now = now.Add(time.Minute)
	if err := session.Commit(s.ctx(), next(session)); !errors.Is(err, producer.ErrLost) {
		t.Errorf("an idle commit a minute later: %v, expected ErrLost", err)
	}
	session.Close()
	wantAfresh(t, "the successor", s.take(c).Watermark())
}

// Whoever makes a data topic anew may fill it, too. Then its log ends behind where the old one did, and
// nothing but the topic's id tells an owner, who would go on behind rows that are not there.
func TestADataTopicThatWasMadeAnewAndFilledByAnotherProgramIsAFirstLoad(t *testing.T) {
	for what, ids := range map[string][]int64{"nothing to write": nil, "a row to write": {2}} {
		t.Run(what, func(t *testing.T) {
			s, now := plainStage(t), time.Now()
			c := s.cluster("a", func(c *producer.Config) { c.Now = func() time.Time { return now } })
			session := s.take(c)
			s.commit(session, at5(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
			before, err := session.EndOffsets(s.ctx())
			if err != nil {
				t.Fatal(err)
			}
			s.remake(c, "store.orders")
			s.fillBehind("store.orders", before)
			var rows []schemas.Record
			for _, id := range ids {
				rows = append(rows, s.order(id, "2026-11-20T10:00:00Z", "Shipped"))
			}
			now = now.Add(time.Minute)
			if err := session.Commit(s.ctx(), next(session, rows...)); !errors.Is(err, producer.ErrLost) {
				t.Errorf("a commit in the old session a minute later, with %s: %v, expected ErrLost", what, err)
			}
			session.Close()
			wantAfresh(t, what, s.take(c).Watermark())
		})
	}
}

// fillBehind writes, as another program might, one record more to each partition of topic than ends says.
func (s *stage) fillBehind(topic string, ends []int64) {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	for p, end := range ends {
		for range end + 1 {
			s.write(cl, &kgo.Record{Topic: topic, Partition: int32(p), Key: []byte("no row's")})
		}
	}
}

// An unclean leader election, or a disk that was put back: the topic is the same one, and lacks what was
// published last.
func TestALogThatLostItsEndIsFilledFromTheStart(t *testing.T) {
	s := newStage(t)
	session := s.take(s.cluster("a", nil))
	s.commit(session, at5(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	s.commit(session, at5(session, s.order(1, "2026-11-20T10:00:00Z", "Shipped")))
	session.Close()
	p := producer.PartitionOf(string(s.committed("store.orders")[0].Key), 3)
	lost := int64(0) // records
	s.broker.ControlKey(int16(kmsg.ListOffsets), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.KeepControl()
		return listOffsets(kreq.(*kmsg.ListOffsetsRequest), "store.orders", p, 4-lost)
	})
	if got := s.take(s.cluster("b", nil)).Watermark(); got.Rows != 2 {
		t.Errorf("watermark %+v: expected to go on in a log that is whole", got)
	}
	lost = 1 // the marker that ended the last transaction
	wantAfresh(t, "without its last record", s.take(s.cluster("c", nil)).Watermark())
}

// A person deletes all records of the data topic. Behind the last watermark's ends it had a transaction that
// was aborted, so the log begins after those ends now.
func TestALogWhoseRecordsWereDeletedBehindTheWatermarksEndsIsTakenOver(t *testing.T) {
	s := newStage(t)
	c := s.cluster("a", nil)
	session := s.take(c)
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	s.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "store.dead_letters",
		Err: kerr.InvalidRecord})
	tx := next(session, s.order(1, "2026-11-20T10:00:00Z", "Shipped"))
	tx.DeadLetters = []watermark.DeadLetter{{Key: "orders/2", Row: []byte(`{}`)}}
	if err := session.Commit(s.ctx(), tx); !errors.Is(err, producer.ErrLost) {
		t.Fatalf("commit: %v, expected ErrLost", err)
	}
	session.Close()
	ends, err := s.admin.ListEndOffsets(s.ctx(), "store.orders")
	if err == nil {
		_, err = s.admin.DeleteRecords(s.ctx(), ends.Offsets())
	}
	if err != nil {
		t.Fatal(err)
	}
	again := s.take(c)
	if got := s.rebuilt(again); len(got) != 0 {
		t.Errorf("rebuilt %v of a log without records", got)
	}
	s.commit(again, next(again, s.order(1, "2026-11-20T10:00:00Z", "Shipped")))
	s.wantIDs(1)
}

// A log may seem shorter than it is, when a broker has just become the leader of a partition.
func TestALogThatSeemsShorterForAMomentIsLookedAtAgain(t *testing.T) {
	s := newStage(t)
	session := s.take(s.cluster("a", nil))
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	session.Close()
	c := s.cluster("b", nil)
	ends, err := producer.ReadTopic(s.ctx(), c, s.orders(), nil, nil, ignore)
	if err != nil {
		t.Fatal(err)
	}
	short := 0
	s.broker.ControlKey(int16(kmsg.ListOffsets), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.KeepControl()
		req := kreq.(*kmsg.ListOffsetsRequest)
		if req.IsolationLevel != 0 || req.Topics[0].Partitions[0].Timestamp != -1 || short >= 2 {
			return nil, nil, false
		}
		answer, err, handled := listOffsets(req, "store.orders", 0, 0)
		if handled {
			short++
		}
		return answer, err, handled
	})
	if _, err := producer.ReadTopic(s.ctx(), c, s.orders(), ends, nil, ignore); err != nil || short != 2 {
		t.Errorf("a reader that goes on, after %d answers that were short: %v", short, err)
	}
	short = 0
	if got := s.take(c).Watermark(); got.Rows != 1 || short != 2 {
		t.Errorf("watermark %+v after %d answers that were short: expected to go on", got, short)
	}
}

// Brokers are upgraded, and from then on topics have ids. Nothing is published again; and the ids count from
// then on.
func TestAClusterThatGainsTopicIDsRepublishesNothing(t *testing.T) {
	data := kfake.DataDir(t.TempDir())
	start := func(versions *kversion.Versions) (*stage, *servers.Broker) {
		broker, err := servers.StartBroker(servers.BrokerConfig{Options: []kfake.Opt{data,
			kfake.MaxVersions(versions)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = broker.Stop() })
		return setUp(t, broker, broker.Brokers()), broker
	}
	s, broker := start(kversion.V2_7_0())
	registry := s.registry
	session := s.take(s.cluster("a", nil))
	s.commit(session, at5(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	if id := session.Watermark().TopicID; id != "" {
		t.Errorf("a topic without an id has the id %s", id)
	}
	session.Close()
	_ = broker.Stop()
	s, _ = start(kversion.Stable())
	s.registry = registry
	c := s.cluster("b", nil)
	session = s.take(c)
	if got := session.Watermark(); got.Rows != 1 {
		t.Errorf("watermark %+v: expected to go on", got)
	}
	s.commit(session, at5(session))
	if session.Watermark().TopicID == "" {
		t.Error("the watermark does not note the id")
	}
	session.Close()
	s.remake(c, "store.orders")
	wantAfresh(t, "made anew, with ids", s.take(c).Watermark())
}

// A topic whose watermark was lost, or whose log lost its end, still holds rows, and none may be forgotten
// that another policy let through. One that was made anew holds none.
func TestRowsOfAnotherPolicyAreNotForgottenWithTheWatermark(t *testing.T) {
	masked := map[string]schemas.Policy{"orders.status": schemas.PolicyMask}
	for name, c := range map[string]struct {
		lose   func(*stage, *producer.Cluster, watermark.Watermark)
		before string // "": no row of another policy is there
	}{
		"the watermark was lost": {func(s *stage, c *producer.Cluster, _ watermark.Watermark) {
			s.remake(c, "store.watermarks")
		}, "unknown"},
		"the log lost its end": {func(s *stage, _ *producer.Cluster, mark watermark.Watermark) {
			mark.Ends, mark.Written = []int64{7, 7, 7}, mark.Written.Add(time.Second)
			s.putWatermark(mark)
		}, "clear"},
		"the topic was made anew": {func(s *stage, c *producer.Cluster, _ watermark.Watermark) {
			s.remake(c, "store.orders")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			cluster := s.cluster("a", nil)
			session := s.take(cluster)
			s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
			session.Close()
			c.lose(s, cluster, session.Watermark())
			s.set.Protect(schemas.Privacy{Fields: masked})
			want := watermark.Policies(nil)
			if c.before != "" {
				want = watermark.Policies{c.before, s.orders().PolicyFingerprint()}
			}
			got := s.take(s.cluster("b", nil)).Watermark()
			if got.Rows != 0 || !slices.Equal(got.Policies, want) {
				t.Errorf("%d rows, policies %q; expected a first load, and %q", got.Rows, got.Policies, want)
			}
		})
	}
}

// A person pauses a resource to make its topic anew, such as with more partitions.
func TestAPauseGoesOnInATopicThatWasMadeAnew(t *testing.T) {
	s := newStage(t)
	cluster := s.cluster("a", nil)
	session := s.take(cluster)
	tx := next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped"))
	tx.Watermark.Pause = &watermark.Pause{By: "bob@shop"}
	s.commit(session, tx)
	session.Close()
	s.remake(cluster, "store.orders")
	got := s.take(s.cluster("b", nil)).Watermark()
	if got.Rows != 0 || got.Pause == nil || got.Pause.By != "bob@shop" {
		t.Errorf("%d rows, pause %+v; expected a first load that rests", got.Rows, got.Pause)
	}
}

// putWatermark writes a watermark as another program might.
func (s *stage) putWatermark(mark watermark.Watermark) {
	s.t.Helper()
	value, err := watermark.Encode(mark)
	if err != nil {
		s.t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), // s.cl may know another topic of that name
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	s.write(cl, &kgo.Record{Topic: "store.watermarks", Key: []byte(mark.Resource), Value: value,
		Timestamp: mark.Written.Time()})
}

// The watermark topic lost its end: the one that is found is older than what was published last. That is not
// published again.
func TestWhatAWatermarkThatWasLostToldOfIsReadBack(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	session := s.take(c)
	tx := next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped"))
	tx.Watermark.DedupFrom = schemas.MaxInstant // nothing has to be remembered
	s.commit(session, tx)
	older := session.Watermark()
	s.commit(session, next(session, s.order(2, "2026-11-20T10:00:00Z", "Shipped"),
		s.order(3, "2026-11-20T10:00:00Z", "Shipped")))
	session.Close()
	s.remake(c, "store.watermarks")
	s.putWatermark(older)
	again := s.take(c)
	seen := s.rebuilt(again)
	if again.Watermark().Rows != 1 || len(seen) != 2 || !seen[2].Beyond || !seen[3].Beyond {
		t.Errorf("rebuilt %+v after watermark %+v: expected orders 2 and 3", seen, again.Watermark())
	}
	s.commit(again, next(again, s.order(4, "2026-11-20T11:00:00Z", "Shipped")))
	again.Close()
	for id, p := range s.rebuilt(s.take(c)) {
		if p.Beyond {
			t.Errorf("order %d stands behind the ends of a watermark that was not lost", id)
		}
	}
}

// Otherwise an owner would believe for ever that the letters are there that it wrote.
func TestATopicOfDeadLettersThatWasMadeAnewIsNoticed(t *testing.T) {
	for name, options := range map[string][]kfake.Opt{"with topic ids": nil, "without": {withoutIDs()}} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, options...)
			now := time.Now()
			c := s.cluster("a", func(c *producer.Config) { c.Now = func() time.Time { return now } })
			session := s.take(c)
			tx := next(session)
			tx.DeadLetters = []watermark.DeadLetter{{Key: "orders/1", Row: []byte("{}"), Err: "missing"}}
			s.commit(session, tx)
			now = now.Add(time.Minute)
			s.commit(session, next(session)) // nothing has changed
			s.remake(c, "store.dead_letters")
			now = now.Add(time.Minute)
			err := session.Commit(s.ctx(), next(session))
			if !errors.Is(err, producer.ErrLost) || !strings.Contains(err.Error(), "store.dead_letters") {
				t.Errorf("a commit a minute later: %v, expected ErrLost", err)
			}
			session.Close()
			again := s.take(c)
			if letters := again.DeadLetters(); len(letters) != 0 {
				t.Errorf("the successor believes in %v", letters)
			}
			s.commit(again, tx)
			s.remake(c, "store.dead_letters")
			// These letters would make the new log as long as the old one was: their offsets tell, or the topic's id.
			others := next(again)
			for id := range 50 {
				others.DeadLetters = append(others.DeadLetters, watermark.DeadLetter{
					Key: fmt.Sprintf("orders/%d", 100+id), Row: []byte("{}"), Err: "missing"})
			}
			err = again.Commit(s.ctx(), others)
			if err == nil || !strings.Contains(err.Error(), "store.dead_letters") {
				t.Errorf("letters at once: %v, expected an error that names the topic", err)
			}
			again.Close()
			if letters := s.take(c).DeadLetters(); len(letters) != 0 {
				t.Errorf("its successor believes in %v", letters)
			}
		})
	}
}

func ignore(watermark.Published) error { return nil }

// Otherwise a comparison would look again at a topic that has nothing to do with what it has read.
func TestAReaderThatGoesOnInATopicThatWasMadeAnewIsToldSo(t *testing.T) {
	s := newStage(t)
	c := s.cluster("a", nil)
	session := s.take(c)
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	ends, err := producer.ReadTopic(s.ctx(), c, s.orders(), nil, nil, ignore)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := producer.ReadTopic(s.ctx(), c, s.orders(), ends, nil, ignore); err != nil {
		t.Errorf("the topic is as it was: %v", err)
	}
	s.remake(c, "store.orders")
	_, err = producer.ReadTopic(s.ctx(), c, s.orders(), ends, nil, ignore)
	wantText(t, err, "topic store.orders was created anew or lost records")
}
