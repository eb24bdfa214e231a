package producer_test

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// Another program, such as kcat, may write with the key of a row and without Java's partitioner. Then its
// record lies beside the row's own for ever. It says nothing of what we published, and a tombstone can take
// it out where it lies.
func TestARecordInAPartitionWhereItsKeyDoesNotBelongIsNotTheRowsAndCanBeTakenOut(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	session := s.take(c)
	const at = "2026-11-20T09:30:00Z"
	s.commit(session, next(session, s.order(1, at, "Shipped"), s.order(2, at, "Complete")))
	var own *kgo.Record
	for _, r := range s.committed("store.orders") {
		if _, id, _ := schemas.ReadKey(r.Key); id == 1 {
			own = r
		}
	}
	wrong := (own.Partition + 1) % 3
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	forged := s.order(1, "2026-11-21T00:00:00Z", "Forged")
	value := slices.Clone(own.Value[:schemas.HeaderSize])
	value = append(value, forged.Value[schemas.HeaderSize:]...)
	stray := &kgo.Record{Topic: "store.orders", Partition: wrong, Key: own.Key, Value: value}
	if err := cl.ProduceSync(s.ctx(), stray).FirstErr(); err != nil {
		t.Fatal(err)
	}

	read := func() (rows map[int64]watermark.Published, strays []watermark.Published) {
		rows = map[int64]watermark.Published{}
		if _, err := producer.ReadTopic(s.ctx(), c, s.orders(), nil, nil, func(p watermark.Published) error {
			if p.Stray {
				strays = append(strays, p)
			} else {
				rows[p.ID] = p
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return rows, strays
	}
	rows, strays := read()
	if len(rows) != 2 || rows[1].UpdatedAt != instant(t, at) || rows[1].Hash == 0 {
		t.Errorf("the rows are %+v", rows)
	}
	if len(strays) != 1 || strays[0].ID != 1 || strays[0].Partition != wrong || strays[0].Tombstone {
		t.Fatalf("strays %+v, want row 1 in partition %d", strays, wrong)
	}

	session.Close()
	session = s.take(s.cluster("b", nil))
	if seen := s.rebuilt(session); len(seen) != 2 || seen[1].UpdatedAt != instant(t, at) {
		t.Errorf("a takeover takes %+v for published", seen)
	}

	tx := next(session, s.order(3, at, "Shipped"))
	tx.Strays = []watermark.Stray{{ID: 1, Partition: wrong}}
	s.commit(session, tx)
	rows, strays = read()
	if len(rows) != 3 || len(strays) != 2 || !strays[1].Tombstone || strays[1].Partition != wrong {
		t.Errorf("after it was taken out: rows %+v, strays %+v", rows, strays)
	}
}
