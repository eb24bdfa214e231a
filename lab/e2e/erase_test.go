package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/schemas"
)

// A customer may stand in more places than one: in a partition where another program put a record with the
// row's key, and in the dead letters.
func TestAnEraseLeavesNoCopyOfACustomer(t *testing.T) {
	t.Parallel()
	s := start(t, setup{yaml: quick, fake: smallShop(77)})
	const only = 7 // a dead letter from the beginning
	s.fake.Garble(storefake.Users, only, storefake.BadTimestamp)
	p := s.spawn("run")
	p.isReady()
	const astray, spoiled = 5, 6
	var raw *kgo.Record
	eventually(t, "the users are published", func() (bool, string) {
		newest := s.newest(storefake.Users)
		raw = newest[astray]
		return raw != nil && newest[spoiled] != nil, fmt.Sprint(len(newest))
	})
	cl, err := kgo.NewClient(append(s.client(), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	stray := &kgo.Record{Topic: raw.Topic, Partition: (raw.Partition + 1) % 6, Key: raw.Key, Value: raw.Value}
	if err := cl.ProduceSync(t.Context(), stray).FirstErr(); err != nil {
		t.Fatal(err)
	}
	s.fake.Garble(storefake.Users, spoiled, storefake.BadTimestamp)
	if err := s.fake.Update(t.Context(), storefake.Users, spoiled, func(storefake.Row) {}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both have dead letters", func() (bool, string) {
		letters, _ := s.letters()
		return len(letters) == 2, fmt.Sprint(len(letters))
	})
	ids := []int64{astray, spoiled, only}
	for _, id := range ids {
		if err := s.fake.Delete(t.Context(), storefake.Users, id); err != nil {
			t.Fatal(err)
		}
	}
	out, errs, code := s.do("erase", "users", "5", "6", "7", "--yes", "--wait")
	if code != 0 {
		t.Errorf("erase: exit status %d:\n%s\n%s", code, out, errs)
	}
	type place struct {
		id        int64
		partition int32
	}
	newest := map[place]*kgo.Record{}
	for _, r := range s.read(s.prefix + storefake.Users) {
		_, id, err := schemas.ReadKey(r.Key)
		if err != nil {
			t.Fatal(err)
		}
		newest[place{id, r.Partition}] = r
	}
	for at, r := range newest {
		if slices.Contains(ids, at.id) && r.Value != nil {
			t.Errorf("partition %d still holds user %d after\n%s", at.partition, at.id, out)
		}
	}
	if letters, _ := s.letters(); len(letters) > 0 {
		t.Errorf("%d dead letters are left after\n%s", len(letters), out)
	}
	p.stop()
}
