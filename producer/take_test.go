package producer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// An owner that was paused wakes up and would write an old row last.
func TestTakingOverFencesThePredecessor(t *testing.T) {
	s := plainStage(t)
	paused := s.take(s.cluster("a", nil))
	s.commit(paused, next(paused, s.order(1, "2026-11-20T09:00:00Z", "Processing")))

	successor := s.take(s.cluster("b", nil)) // has written nothing yet
	err := paused.Commit(s.ctx(), next(paused, s.order(1, "2026-11-20T09:30:00Z", "Processing")))
	if !errors.Is(err, producer.ErrLost) {
		t.Errorf("the paused owner's commit: %v, expected ErrLost", err)
	}
	if got := paused.Watermark().Settled; got != instant(t, "2026-11-20T09:00:00Z") {
		t.Errorf("the paused owner believes that it settled %s", got)
	}
	s.commit(successor, next(successor, s.order(1, "2026-11-20T10:00:00Z", "Shipped")))
	s.wantIDs(1, 1)
	at := s.committed("store.orders")[1].Timestamp.UnixMilli()
	if at != instant(t, "2026-11-20T10:00:00Z").Millis() {
		t.Errorf("the newest record of order 1 has the time %d", at)
	}
}

// All that a successor needs is in Kafka.
func TestASuccessorKnowsWhatItsPredecessorCommitted(t *testing.T) {
	s := plainStage(t)
	first := s.take(s.cluster("a", nil))
	tx := next(first, s.order(1, "2026-11-20T09:00:00.123456Z", "Shipped"),
		s.order(2, "2026-11-20T09:00:01Z", "Shipped"))
	tx.DeadLetters = []watermark.DeadLetter{{Key: "orders/3", Row: []byte(`{"id":3}`)},
		{Key: "orders/4", Row: []byte(`{"id":4}`)}, {Key: "order_items/1", Row: []byte(`{}`)}}
	tx.Watermark.Cursor = &watermark.Cursor{UpdatedAt: instant(t, "2026-11-20T09:00:01Z"), ID: 2, Xmin: 77}
	s.commit(first, tx)
	tx = next(first, s.order(2, "2026-11-20T09:00:02Z", "Complete"))
	tx.DeadLetters = []watermark.DeadLetter{{Key: "orders/4"}}
	tx.Deletes = []int64{1}
	s.commit(first, tx)
	first.Close()

	second := s.take(s.cluster("b", nil))
	if got, want := second.Watermark(), first.Watermark(); got.Settled != want.Settled || got.Cursor == nil ||
		got.Cursor.Xmin != 77 || got.Rows != 3 {
		t.Errorf("watermark %+v, expected %+v", got, want)
	}
	if got := second.DeadLetters(); len(got) != 1 ||
		got["orders/3"] != watermark.DeadLetterHash([]byte(`{"id":3}`)) {
		t.Errorf("dead letters %v, expected orders/3", got)
	}
	seen := s.rebuilt(second)
	want := schemas.Hash(s.order(2, "2026-11-20T09:00:02Z", "Complete").Value)
	if len(seen) != 2 || !seen[1].Tombstone || seen[2].Hash != want ||
		seen[2].UpdatedAt != instant(t, "2026-11-20T09:00:02Z") {
		t.Errorf("rebuilt %+v", seen)
	}
}

// Taking over ends what the predecessor had written when it died, and not committed. Nobody ever sees it.
func TestTakingOverEndsThePredecessorsOpenTransaction(t *testing.T) {
	s := plainStage(t)
	first := s.take(s.cluster("a", nil))
	s.commit(first, next(first, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	first.Abandon()
	dead := s.transactional("storestream-store.orders")
	half := watermark.New("orders")
	half.Settled = instant(t, "2026-11-21T00:00:00Z")
	value, _ := watermark.Encode(half)
	s.write(dead, &kgo.Record{Topic: "store.watermarks", Key: []byte("orders"), Value: value})

	second := s.take(s.cluster("b", nil))
	if got := second.Watermark().Settled; got != instant(t, "2026-11-20T09:00:00Z") {
		t.Errorf("settled is %s: an uncommitted watermark was believed, or a committed one not found", got)
	}
	s.wantIDs(1)
}

// A neighbour's open transaction hides whatever was committed behind it in the same partition. A successor
// that did not wait for it to end would go on from an older watermark.
func TestTakingOverWaitsForANeighboursOpenTransaction(t *testing.T) {
	s := newStage(t)
	first := s.take(s.cluster("a", nil))
	s.commit(first, next(first, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	neighbour := s.transactional("storestream-store.users")
	const partition = 0
	s.write(neighbour, &kgo.Record{Topic: "store.watermarks", Partition: partition, Key: []byte("users"),
		Value: []byte("{}")})
	s.commit(first, next(first, s.order(2, "2026-11-20T10:00:00Z", "Shipped")))
	first.Close()

	c := s.cluster("b", nil)
	// The neighbour ends when the successor has asked for what stands behind the stable offset, and was given
	// nothing.
	stuck := s.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "store.watermarks",
		Partitions: []int32{partition}, Observe: true, Count: -1, When: func(req kmsg.Request) bool {
			return req.(*kmsg.FetchRequest).Topics[0].Partitions[0].FetchOffset >= 2
		}})
	ended := make(chan error, 1)
	go func() {
		err := stuck.Wait(s.ctx(), 2)
		ended <- errors.Join(err, neighbour.EndTransaction(context.Background(), kgo.TryAbort))
	}()
	second := s.take(c)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := second.Watermark().Settled; got != instant(t, "2026-11-20T10:00:00Z") {
		t.Errorf("settled is %s: the watermark behind the neighbour's transaction was not read", got)
	}
}

// The end of a partition may be offsets at which no record is left. A reader that waits for a record there
// waits for ever.
func TestALogWhoseLastOffsetsWereCompactedAwayIsReadToItsEnd(t *testing.T) {
	s := newStage(t)
	first := s.take(s.cluster("a", nil))
	s.commit(first, next(first, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	first.Close()
	// The watermark stands at 0, its marker at 1, and what stood at 2 is gone.
	const partition = 0
	s.broker.ControlKey(int16(kmsg.ListOffsets), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.KeepControl()
		return listOffsets(kreq.(*kmsg.ListOffsetsRequest), "store.watermarks", partition, 3)
	})
	s.broker.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.KeepControl()
		req := kreq.(*kmsg.FetchRequest)
		if req.Topics[0].Partitions[0].FetchOffset != 2 {
			return nil, nil, false
		}
		answer := req.ResponseKind().(*kmsg.FetchResponse)
		t := kmsg.NewFetchResponseTopic()
		t.Topic, t.TopicID = req.Topics[0].Topic, req.Topics[0].TopicID
		p := kmsg.NewFetchResponseTopicPartition()
		p.Partition, p.HighWatermark, p.LastStableOffset = partition, 3, 3
		t.Partitions = append(t.Partitions, p)
		answer.Topics = append(answer.Topics, t)
		return answer, nil, true
	})
	second := s.take(s.cluster("b", nil))
	if got := second.Watermark().Rows; got != 1 {
		t.Errorf("the watermark counts %d rows, expected 1", got)
	}
}

// listOffsets answers for topic that partition ends at end and all others at 0; it leaves requests for other
// topics alone.
//
//nolint:revive // the shape of kfake's ControlKey
func listOffsets(req *kmsg.ListOffsetsRequest, topic string, partition int32, end int64) (
	kmsg.Response, error, bool) {
	if len(req.Topics) != 1 || req.Topics[0].Topic != topic {
		return nil, nil, false
	}
	t := kmsg.NewListOffsetsResponseTopic()
	t.Topic = topic
	for _, asked := range req.Topics[0].Partitions {
		p := kmsg.NewListOffsetsResponseTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch = asked.Partition, 0, asked.CurrentLeaderEpoch
		if asked.Timestamp == -1 && asked.Partition == partition {
			p.Offset = end
		}
		t.Partitions = append(t.Partitions, p)
	}
	answer := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	answer.Topics = append(answer.Topics, t)
	return answer, nil, true
}

// A person adds partitions to the topics of state. If a key's partition depended on their number, a takeover
// would look for the watermark in another one.
func TestStateIsFoundHoweverManyPartitionsAreAdded(t *testing.T) {
	s := plainStage(t)
	first := s.take(s.cluster("a", nil))
	tx := next(first, s.order(1, "2026-11-20T09:00:00Z", "Shipped"))
	tx.DeadLetters = []watermark.DeadLetter{letter("orders/7", "id", "wrong"), letter("orders/8", "id", "wrong")}
	s.commit(first, tx)
	first.Close()
	if _, err := s.admin.CreatePartitions(s.ctx(), 5, "store.watermarks", "store.dead_letters"); err != nil {
		t.Fatal(err)
	}
	session := s.take(s.cluster("b", nil))
	if rows, letters := session.Watermark().Rows, len(session.DeadLetters()); rows != 1 || letters != 2 {
		t.Errorf("the successor finds %d rows and %d letters, expected 1 and 2", rows, letters)
	}
}

// Another program writes state to another partition than owners do, with a later time. The owner's counts,
// and goes on to.
func TestForgedStateInAnotherPartitionIsNotBelieved(t *testing.T) {
	s := newStage(t)
	first := s.take(s.cluster("a", nil))
	tx := next(first, s.order(1, "2026-11-20T09:00:00Z", "Shipped"))
	tx.DeadLetters = []watermark.DeadLetter{{Key: "orders/7", Row: []byte(`{"id":7}`)}}
	s.commit(first, tx)
	first.Close()
	if _, err := s.admin.UpdatePartitions(s.ctx(), 3, "store.dead_letters"); err != nil {
		t.Fatal(err)
	}
	forged := first.Watermark()
	later := time.Now().Add(time.Hour)
	forged.Rows, forged.Written = 1000, schemas.InstantOf(later)
	value, err := watermark.Encode(forged)
	if err != nil {
		t.Fatal(err)
	}
	cl := s.transactional("somebody")
	for p := range int32(3) {
		if p == 0 { // the owners'
			continue
		}
		for _, record := range []*kgo.Record{
			{Topic: "store.watermarks", Key: []byte("orders"), Value: value},
			{Topic: "store.watermarks", Key: []byte("users"), Value: []byte("garbage")},
			{Topic: "store.dead_letters", Key: []byte("orders/7"), Value: []byte(`{"id":"forged"}`)},
			{Topic: "store.dead_letters", Key: []byte("orders/7")},
			{Topic: "store.dead_letters", Key: []byte("orders/8"), Value: []byte(`{"id":"forged"}`)},
		} {
			record.Partition, record.Timestamp = p, later
			s.write(cl, record)
		}
	}
	if err := cl.EndTransaction(s.ctx(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	owner := s.take(s.cluster("b", nil))
	letters := owner.DeadLetters()
	if got := owner.Watermark().Rows; got != 1 || len(letters) != 1 ||
		letters["orders/7"] != watermark.DeadLetterHash([]byte(`{"id":7}`)) {
		t.Errorf("the owner finds %d rows and letters %v, expected its own", got, letters)
	}
	s.commit(owner, next(owner, s.order(2, "2026-11-20T10:00:00Z", "Shipped")))
	owner.Close()
	if got := s.take(s.cluster("c", nil)).Watermark().Rows; got != 2 {
		t.Errorf("the watermark counts %d rows, expected the owner's 2", got)
	}
	reader := s.cluster("reader", nil)
	marks, unreadable, err := producer.ReadWatermarks(s.ctx(), reader)
	if err != nil || len(unreadable) != 0 || marks["orders"].Rows != 2 {
		t.Errorf("everybody sees %+v, %v, %v", marks, unreadable, err)
	}
	watch := producer.NewWatch(reader)
	if err := watch.Look(s.ctx()); err != nil || watch.Watermarks()["orders"].Rows != 2 ||
		len(watch.DeadLetters()["orders"]) != 1 {
		t.Errorf("the page shows %+v and %v, %v", watch.Watermarks(), watch.DeadLetters(), err)
	}
	letter, err := producer.ReadDeadLetter(s.ctx(), reader, "orders", 7)
	if err != nil || letter == nil || string(letter.Row) != `{"id":7}` {
		t.Errorf("row shows %v (%v), expected the owner's", letter, err)
	}
}

// A transaction that somebody has open is not hanging: the owners of all resources write to the topics that
// they share, at any moment. It is waited for.
func TestTakingOverLeavesALiveTransactionAlone(t *testing.T) {
	s := newStage(t)
	first := s.take(s.cluster("a", nil))
	s.commit(first, next(first, s.order(1, "2026-11-20T10:00:00Z", "Shipped")))
	first.Close()
	cl := s.transactional("storestream-store.users")
	s.write(cl, &kgo.Record{Topic: "store.watermarks", Key: []byte("users"), Value: []byte("{}")})
	var looks atomic.Int32
	reads := make(chan struct{}, 1)
	s.broker.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.KeepControl()
		switch kmsg.Key(req.Key()) {
		case kmsg.ListTransactions:
			looks.Add(1)
		case kmsg.Fetch: // after it has looked it reads, and waits for what is open
			if looks.Load() > 0 {
				select {
				case reads <- struct{}{}:
				default:
				}
			}
		}
		return nil, nil, false
	})
	taken := make(chan error, 1)
	go func() {
		_, err := producer.Take(s.ctx(), s.cluster("b", nil), s.orders())
		taken <- err
	}()
	<-reads
	if err := cl.EndTransaction(s.ctx(), kgo.TryCommit); err != nil {
		t.Errorf("another owner's commit: %v", err)
	}
	if err := <-taken; err != nil {
		t.Error(err)
	}
	users := 0
	for _, r := range s.committed("store.watermarks") {
		if string(r.Key) == "users" {
			users++
		}
	}
	if users != 1 {
		t.Errorf("%d watermarks of the other owner were committed, expected 1", users)
	}
}

// A broker stands still, which is how a transaction comes to hang. The takeover ends it by the answer of the
// id's coordinator, and does not wait for the other broker's.
func TestTakingOverEndsATransactionThoughAnotherBrokerDoesNotAnswer(t *testing.T) {
	s := newStage(t, kfake.NumBrokers(2))
	first := s.take(s.cluster("a", nil))
	s.commit(first, next(first, s.order(1, "2026-11-20T10:00:00Z", "Shipped")))
	first.Close()
	const id = "storestream-store.orders"
	described, err := s.admin.DescribeTransactions(s.ctx(), id)
	if err != nil {
		t.Fatal(err)
	}
	known := described[id]
	var ended atomic.Bool
	s.broker.Control(func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.KeepControl()
		switch req := kreq.(type) {
		case *kmsg.ListTransactionsRequest:
			if s.broker.CurrentNode() != known.Coordinator {
				answer := req.ResponseKind().(*kmsg.ListTransactionsResponse)
				answer.ErrorCode = kerr.UnknownServerError.Code
				return answer, nil, true
			}
		case *kmsg.DescribeProducersRequest:
			if !ended.Load() {
				return openUnder(known.ProducerID, req), nil, true
			}
		case *kmsg.AddPartitionsToTxnRequest:
			ended.Store(true)
		}
		return nil, nil, false
	})
	s.take(s.cluster("b", nil))
	if !ended.Load() {
		t.Error("it took over, and the transaction is open")
	}
}

// openUnder answers that a transaction of the producer id is open in each partition of orders.
func openUnder(producerID int64, req *kmsg.DescribeProducersRequest) kmsg.Response {
	answer := req.ResponseKind().(*kmsg.DescribeProducersResponse)
	for _, asked := range req.Topics {
		t := kmsg.NewDescribeProducersResponseTopic()
		t.Topic = asked.Topic
		for _, p := range asked.Partitions {
			part := kmsg.NewDescribeProducersResponseTopicPartition()
			part.Partition = p
			if asked.Topic == "store.orders" {
				producer := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
				producer.ProducerID, producer.CurrentTxnStartOffset = producerID, 0
				part.ActiveProducers = append(part.ActiveProducers, producer)
			}
			t.Partitions = append(t.Partitions, part)
		}
		answer.Topics = append(answer.Topics, t)
	}
	return answer
}

// Two deployments that write the same topics: the second says so and fences nobody, until the first has been
// quiet.
func TestADeploymentOfAnotherGroupIsLeftInPeace(t *testing.T) {
	s := plainStage(t)
	first := s.take(s.cluster("a", nil))
	s.commit(first, next(first, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	s.committed("store.watermarks") // a broker says that it has committed before consumers can see it

	now := time.Now()
	c := s.cluster("b", func(c *producer.Config) { c.Group, c.Now = "another", func() time.Time { return now } })
	_, err := producer.Take(s.ctx(), c, s.orders())
	if !producer.Refused(err) {
		t.Fatalf("taking over: %v, expected a RefusedError", err)
	}
	wantText(t, err, `its publisher is group "storestream" (instance "a"`)
	s.commit(first, next(first, s.order(2, "2026-11-20T09:00:00Z", "Shipped")))

	now = now.Add(time.Minute)
	if got := s.take(c).Watermark().Rows; got != 2 {
		t.Errorf("the watermark counts %d rows, expected 2", got)
	}
}

// Values of an earlier schema hash as today's would, so a schema that only gained a doc republishes nothing;
// what is not ours at all is forgotten.
func TestRebuildingReadsEveryWritersValues(t *testing.T) {
	s := plainStage(t)
	first := s.take(s.cluster("a", nil))
	s.commit(first, next(first, s.order(1, "2026-11-20T09:00:00Z", "Shipped"),
		s.order(2, "2026-11-20T09:00:00Z", "Shipped")))
	first.Close()
	older := s.registerSchema("elsewhere-value",
		`{"type":"record","name":"Order","namespace":"storestream","fields":[`+
			`{"name":"created_at","type":{"type":"long","logicalType":"timestamp-millis"}},`+
			`{"name":"updated_at","type":{"type":"long","logicalType":"timestamp-millis"}},`+
			`{"name":"id","type":"long"}]}`)
	records := s.committed("store.orders")
	value := []byte{0, 0, 0, 0, 0, 0, 2, 6} // created_at 0, updated_at 1, id 3
	schemas.SetSchemaID(value, older)
	keyID, _, _ := schemas.ReadKey(records[0].Key)
	at := records[0].Timestamp
	s.produce(&kgo.Record{Topic: "store.orders", Key: s.key(keyID, 3), Value: value, Timestamp: at},
		&kgo.Record{Topic: "store.orders", Key: s.key(keyID, 2), Value: []byte("not ours"), Timestamp: at})

	seen := s.rebuilt(s.take(s.cluster("b", nil)))
	want := `{"id":3,"created_at":"1970-01-01T00:00:00Z","updated_at":"1970-01-01T00:00:00.001Z"}`
	row, _ := schemas.NewRowParser(s.orders()).Parse([]byte(want))
	if seen[3].Hash != schemas.Hash(row.Value) || seen[3].UpdatedAt != 1000 {
		t.Errorf("order 3 was rebuilt as %+v", seen[3])
	}
	if !seen[2].Tombstone {
		t.Errorf("order 2 was rebuilt as %+v, expected to be forgotten", seen[2])
	}
	if seen[1].Tombstone || seen[1].Hash == 0 {
		t.Errorf("order 1 was rebuilt as %+v", seen[1])
	}
}

// Only what a running replay has published itself suppresses equal rows.
func TestRebuildingTellsWhatAReplayHasPublished(t *testing.T) {
	s := plainStage(t)
	session := s.take(s.cluster("a", nil))
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped"),
		s.order(2, "2026-11-20T09:00:00Z", "Shipped")))
	ends, err := session.EndOffsets(s.ctx())
	if err != nil {
		t.Fatal(err)
	}
	tx := next(session, s.order(2, "2026-11-20T09:00:00Z", "Shipped"))
	tx.Watermark.Replay = &watermark.Replay{Ends: ends, From: schemas.MinInstant}
	s.commit(session, tx)
	session.Close()

	seen := s.rebuilt(s.take(s.cluster("b", nil)))
	if !seen[1].Old || seen[2].Old {
		t.Errorf("rebuilt %+v: expected order 1 to be old and order 2 not", seen)
	}
}

// registerSchema registers text under subject and returns its id.
func (s *stage) registerSchema(subject, text string) int {
	s.t.Helper()
	cl, err := sr.NewClient(sr.URLs(s.registry.URL))
	if err != nil {
		s.t.Fatal(err)
	}
	made, err := cl.CreateSchema(s.ctx(), subject, sr.Schema{Schema: text})
	if err != nil {
		s.t.Fatal(err)
	}
	return made.ID
}

func (s *stage) key(schemaID int, id int64) []byte {
	key := schemas.AppendKey(nil, id)
	schemas.SetSchemaID(key, schemaID)
	return key
}

// produce writes records outside of any transaction.
func (s *stage) produce(records ...*kgo.Record) {
	s.t.Helper()
	if err := s.cl.ProduceSync(s.ctx(), records...).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// transactional is a client of somebody else, in an open transaction.
func (s *stage) transactional(id string) *kgo.Client {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.TransactionalID(id),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(cl.Close)
	if err := cl.BeginTransaction(); err != nil {
		s.t.Fatal(err)
	}
	return cl
}

func (s *stage) write(cl *kgo.Client, r *kgo.Record) {
	s.t.Helper()
	if err := cl.ProduceSync(s.ctx(), r).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// An owner keeps the key of each letter. With more of them than that is meant for it takes nothing over, and
// says so.
func TestMoreDeadLettersThanAnOwnerKeepsAreRefused(t *testing.T) {
	s := plainStage(t)
	first := s.take(s.cluster("a", nil))
	tx := next(first)
	for id := range watermark.MaxDeadLetters + 1 {
		tx.DeadLetters = append(tx.DeadLetters, watermark.DeadLetter{Key: fmt.Sprintf("orders/%d", id),
			Row: []byte("{}"), Source: "rest", Err: "missing"})
	}
	s.commit(first, tx)
	first.Close()
	_, err := producer.Take(s.ctx(), s.cluster("b", nil), s.orders())
	var refused *producer.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "number of letters of orders is 100001") {
		t.Errorf("%v", err)
	}
}

// An owner that reads more letters than it has room for does not go on without some of them, even if later
// records of the topic take most of them out.
func TestALetterForWhichThereWasNoRoomIsNotMissed(t *testing.T) {
	s := plainStage(t)
	one := func(c *producer.Config) { c.Partitions = 1 }
	s.take(s.cluster("a", one)).Close()
	lag := kadm.AlterConfig{Name: "min.compaction.lag.ms", Value: kadm.StringPtr("3600000")}
	// Otherwise Apache Kafka may have compacted the topic before it is read, and then there is room.
	if _, err := s.admin.AlterTopicConfigs(s.ctx(), []kadm.AlterConfig{lag}, "store.dead_letters"); err != nil {
		t.Fatal(err)
	}
	const letters, takenOut = 2*watermark.MaxDeadLetters + 1, watermark.MaxDeadLetters * 3 / 2
	var records []*kgo.Record
	for i := range letters + takenOut {
		r := &kgo.Record{Topic: "store.dead_letters", Key: fmt.Appendf(nil, "orders/%d", i%letters)}
		if i < letters {
			r.Value = []byte("{}")
		}
		records = append(records, r)
	}
	s.produce(records...)
	_, err := producer.Take(s.ctx(), s.cluster("b", one), s.orders())
	var refused *producer.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "number of letters of orders is") {
		t.Errorf("%v", err)
	}
}

// What is taken out of the dead letters counts as nothing, however much of it the topic still has.
func TestLettersThatAreTakenOutTakeNoRoom(t *testing.T) {
	s := plainStage(t)
	session := s.take(s.cluster("a", nil))
	for n := range 3 {
		tx := next(session)
		for id := range watermark.MaxDeadLetters / 2 {
			letter := watermark.DeadLetter{Key: fmt.Sprintf("orders/%d", n*watermark.MaxDeadLetters+id)}
			if id == 0 {
				letter.Row = []byte("{}")
			}
			tx.DeadLetters = append(tx.DeadLetters, letter)
		}
		s.commit(session, tx)
	}
	session.Close()
	if n := len(s.take(s.cluster("b", nil)).DeadLetters()); n != 3 {
		t.Errorf("%d letters, expected 3", n)
	}
}
