package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"
)

// verdict is what `verify -o json` says.
type verdict struct {
	Verdict   string
	Resources []struct {
		Resource, Source, Topic, Verdict, Error string
		Notes                                   []string

		SourceRows  int `json:"source_rows"`
		TopicRows   int `json:"topic_rows"`
		DeadLetters int `json:"dead_letters"`
		Missing     int
		Stale       int
		Extra       int
		MissingIDs  []int64 `json:"missing_ids"`
		StaleIDs    []int64 `json:"stale_ids"`
		ExtraIDs    []int64 `json:"extra_ids"`
	}
}

// verify runs the command and returns what it says.
func (s *stack) verify(code int, resources ...string) verdict {
	s.t.Helper()
	out, errs, got := s.do(append([]string{"verify", "-o", "json"}, resources...)...)
	var v verdict
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		s.t.Fatalf("verify: exit status %d, %v:\n%s\n%s", got, err, out, errs)
	}
	if got != code {
		s.t.Errorf("verify: exit status %d, want %d:\n%s\n%s", got, code, out, errs)
	}
	return v
}

// differing is the ids that differ, by resource and kind.
func (v verdict) differing() map[string][]int64 {
	found := map[string][]int64{}
	for _, r := range v.Resources {
		for kind, ids := range map[string][]int64{"missing": r.MissingIDs, "stale": r.StaleIDs,
			"extra": r.ExtraIDs} {
			if len(ids) > 0 {
				found[r.Resource+" "+kind] = ids
			}
		}
	}
	return found
}

// newest is the newest record of each row, not decoded: what others wrote may not be Avro at all.
func (s *stack) newest(resource string) map[int64]*kgo.Record {
	s.t.Helper()
	r := &reader{t: s.t, registry: s.registry, schemas: map[uint32]*avro.Schema{}}
	newest := map[int64]*kgo.Record{}
	for _, raw := range s.read(s.prefix + resource) {
		key, err := r.decode(raw.Key)
		if err != nil {
			s.t.Fatal(err)
		}
		newest[key["id"].(int64)] = raw
	}
	return newest
}

// forge writes a record as somebody else would: a plain producer, without a transaction, with the key of the
// row. nil: a tombstone.
func (s *stack) forge(resource string, id int64, value []byte) {
	s.t.Helper()
	raw := s.newest(resource)[id]
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(context.Background(), &kgo.Record{Topic: raw.Topic, Partition: raw.Partition,
		Key: raw.Key, Value: value}).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// repaired waits until the newest records of a resource are the service's rows.
func (s *stack) repaired(resource string) {
	s.t.Helper()
	r := &reader{t: s.t, registry: s.registry, schemas: map[uint32]*avro.Schema{}}
	eventually(s.t, "the newest records of "+resource+" equal the service", func() (bool, string) {
		var records []record
		for id, raw := range s.newest(resource) {
			rec := record{id: id, tombstone: raw.Value == nil}
			if !rec.tombstone {
				var err error
				if rec.value, err = r.decode(raw.Value); err != nil {
					return false, err.Error()
				}
			}
			records = append(records, rec)
		}
		found := s.differences(resource, records)
		return len(found) == 0, summary(found)
	})
}

// ids are the rows of a resource, in order.
func (s *stack) ids(resource string) []int64 {
	return slices.Sorted(maps.Keys(s.fake.Rows(resource)))
}

// unstamped changes a row and leaves its updated_at as it was: less than a microsecond is not kept.
func (s *stack) unstamped(resource string, id int64, change func(storefake.Row)) {
	s.t.Helper()
	err := s.fake.Update(context.Background(), resource, id, func(row storefake.Row) {
		row["updated_at"] = row.Time("updated_at").Add(time.Nanosecond)
		change(row)
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// Both sides change while verify reads, and yet it reports only what truly differs.
func TestVerifySaysIdenticalWhileTrafficGoesOn(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick, fake: smallShop(31)})
	p := s.spawn("run")
	p.isReady()
	s.fake.StartTraffic(80)
	s.changes(100)
	for range 3 {
		v := s.verify(0)
		if v.Verdict != "identical" || len(v.Resources) != len(storefake.Names()) {
			t.Fatalf("%+v", v)
		}
		s.changes(50)
	}
	s.fake.StartTraffic(0)
	s.fake.Quiesce()
	if out, _, code := s.do("verify", "orders", "users"); code != 0 || !strings.Contains(out, "Identical:") ||
		!strings.Contains(out, "2 resources") {
		t.Errorf("exit status %d:\n%s", code, out)
	}
}

// Over REST a second content of one second is deferred for an overlap. It is under way, and no difference.
func TestVerifyWaitsForWhatIsDeferred(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: "\nresources: {users: {interval: 200ms, overlap: 20s}}", fake: smallShop(34)})
	p := s.spawn("run")
	p.isReady()
	user := s.ids(storefake.Users)[3]
	rename := func(city string) func(storefake.Row) { return func(row storefake.Row) { row["city"] = city } }
	if err := s.fake.Update(context.Background(), storefake.Users, user, rename("Erstens")); err != nil {
		t.Fatal(err)
	}
	s.converge()
	s.unstamped(storefake.Users, user, rename("Zweitens"))
	if v := s.verify(0, storefake.Users); v.Verdict != "identical" {
		t.Errorf("%+v", v)
	}
}

// verify finds, row by row, what no poll can see. One command repairs it while traffic goes on, and then both
// sides are identical.
func TestVerifyFindsWhatDiffersAndASweepRepairsIt(t *testing.T) {
	t.Parallel()
	s := start(t, setup{yaml: quick + "sweep: {deletes: tombstone}", fake: smallShop(32)})
	p := s.spawn("run")
	p.isReady()
	s.converge()
	products, users, shipments, orders := s.ids(storefake.Products), s.ids(storefake.Users),
		s.ids(storefake.Shipments), s.ids(storefake.Orders)
	s.forge(storefake.Products, products[3], s.newest(storefake.Products)[products[4]].Value) // another row's
	s.forge(storefake.Products, products[5], []byte("not Avro at all"))
	s.forge(storefake.Shipments, shipments[7], nil)
	s.unstamped(storefake.Orders, orders[2],
		func(row storefake.Row) { row["total_amount"] = storefake.Money("4711.11") })
	s.unstamped(storefake.Users, users[8], func(row storefake.Row) { row["city"] = "Nirgends" })
	if err := s.fake.Delete(context.Background(), storefake.Users, users[9]); err != nil {
		t.Fatal(err)
	}
	want := map[string][]int64{"products stale": {products[3], products[5]}, "shipments missing": {shipments[7]},
		"orders stale": {orders[2]},
		"users stale":  {users[8]}, "users extra": {users[9]}}
	if got := s.verify(3).differing(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("verify finds %v, want %v", got, want)
	}
	if out, _, code := s.do("verify", "users"); code != 3 ||
		!strings.Contains(out, fmt.Sprintf("stale %d; extra %d", users[8], users[9])) ||
		!strings.Contains(out, "storestream sweep users") {
		t.Errorf("verify users: exit status %d:\n%s", code, out)
	}

	s.fake.StartTraffic(40)
	before := s.mark(storefake.Users)
	out, errs, code := s.do("sweep", "--all", "--yes", "--wait")
	if code != 0 || !strings.Contains(out, "users: swept ") ||
		!strings.Contains(out, "0 missing, 1 stale, 1 extra; 1 published, 1 tombstone") {
		t.Errorf("sweep: exit status %d:\n%s\n%s", code, out, errs)
	}
	s.fake.StartTraffic(0)
	s.fake.Quiesce()
	for _, resource := range storefake.Names() {
		s.repaired(resource)
	}
	if v := s.verify(0); v.Verdict != "identical" {
		t.Errorf("after the sweep: %+v", v)
	}
	if s.newest(storefake.Users)[users[9]].Value != nil {
		t.Error("the row that was deleted has no tombstone")
	}
	s.done(storefake.Users, before)
	p.stop()
}

// Whoever has to delete a customer need not wait for a sweep, nor believe that it is done.
func TestACustomerIsErasedWhoTheServiceHasDeletedAndNobodyElse(t *testing.T) {
	furtherScenario(t)
	t.Parallel()
	s := start(t, setup{yaml: quick, fake: smallShop(34)})
	p := s.spawn("run")
	p.isReady()
	s.converge()
	for _, resource := range []string{storefake.Users, storefake.Orders} { // over REST, and from PostgreSQL
		ids := s.ids(resource)
		if err := s.fake.Delete(context.Background(), resource, ids[3]); err != nil {
			t.Fatal(err)
		}
		out, errs, code := s.do("erase", resource, fmt.Sprint(ids[3]), fmt.Sprint(ids[4]), "--yes", "--wait")
		if code != 1 || !strings.Contains(out, fmt.Sprintf("%s %d: erased", resource, ids[3])) ||
			!strings.Contains(out, fmt.Sprintf("%s %d: stays: the service has it", resource, ids[4])) {
			t.Errorf("erase: exit status %d:\n%s\n%s", code, out, errs)
		}
		if newest := s.newest(resource); newest[ids[3]].Value != nil || newest[ids[4]].Value == nil {
			t.Errorf("%s %d has %d bytes, %d has %d: expected the first to be gone", resource, ids[3],
				len(newest[ids[3]].Value), ids[4], len(newest[ids[4]].Value))
		}
	}
	s.asksByHand(storefake.Users, s.ids(storefake.Users)[5])
	s.verify(0)
	p.stop()
}

// asksByHand writes a request to erase a row that the service has, as another program might that may write to
// the topic. Then it waits until that is dealt with.
func (s *stack) asksByHand(resource string, id int64) {
	s.t.Helper()
	cl, err := kgo.NewClient(s.client()...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	value := fmt.Appendf(nil, `{"uid":"by hand","resource":%q,"kind":"erase","rows":[%d]}`, resource, id)
	request := &kgo.Record{Topic: s.prefix + "requests", Key: []byte(resource), Value: value}
	if err := cl.ProduceSync(s.t.Context(), request).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "the request is dealt with", func() (bool, string) {
		erased := s.mark(resource).Erased
		return slices.Contains(erased, struct{ ID int64 }{id}), fmt.Sprint(erased)
	})
}

func TestDeletedRowsAreReportedAndStayWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick + "sweep: {deletes: report}\n", noPostgres: true, fake: smallShop(33)})
	p := s.spawn("run")
	p.isReady()
	s.converge()
	gone := s.ids(storefake.Orders)[4]
	if err := s.fake.Delete(context.Background(), storefake.Orders, gone); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		out, errs, code := s.do("sweep", "orders", "--yes", "--wait")
		if code != 3 || !strings.Contains(out, "1 extra; 0 published, 0 tombstones") ||
			!strings.Contains(out, "sweep.deletes: report") {
			t.Errorf("sweep: exit status %d:\n%s\n%s", code, out, errs)
		}
		if v := s.verify(3, "orders"); fmt.Sprint(v.differing()) != fmt.Sprintf("map[orders extra:[%d]]", gone) {
			t.Errorf("verify: %+v", v)
		}
	}
}

// A service that suddenly shows nothing, or much less, has not deleted everything. The sweep says what it
// left.
func TestAnEmptyServiceNeverMakesTombstones(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick + "sweep: {deletes: tombstone}", fake: smallShop(34)})
	p := s.spawn("run")
	p.isReady()
	s.converge()
	for _, id := range s.ids(storefake.Products) {
		if err := s.fake.Delete(context.Background(), storefake.Products, id); err != nil {
			t.Fatal(err)
		}
	}
	orders := s.ids(storefake.Orders)
	for _, id := range orders[:110] {
		if err := s.fake.Delete(context.Background(), storefake.Orders, id); err != nil {
			t.Fatal(err)
		}
	}
	out, errs, code := s.do("sweep", "products", "orders", "--yes", "--wait")
	if code != 3 || !strings.Contains(out, "an empty answer is not taken for deletion") ||
		!strings.Contains(out, "does not have 110 of the topic's") {
		t.Errorf("sweep: exit status %d:\n%s\n%s", code, out, errs)
	}
	for _, resource := range []string{storefake.Products, storefake.Orders} {
		if slices.ContainsFunc(s.topic(resource), func(r record) bool { return r.tombstone }) {
			t.Errorf("%s has a tombstone", resource)
		}
	}
	v := s.verify(3, "products", "orders")
	if v.Resources[0].Extra != 150 || v.Resources[1].Extra != 110 || len(v.Resources[1].ExtraIDs) != 100 {
		t.Errorf("verify: %+v", v)
	}
}

func TestVerifySaysWhyItCouldNotTell(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick, fake: smallShop(35)})
	if v := s.verify(1, "orders"); v.Verdict != "unknown" ||
		!strings.Contains(v.Resources[0].Error, "topic store.orders does not exist") {
		t.Errorf("before the first run: %+v", v)
	}
	if out, errs, code := s.do("run", "--once"); code != 0 {
		t.Fatalf("run --once: %d\n%s\n%s", code, out, errs)
	}
	if v := s.verify(0); v.Verdict != "identical" {
		t.Errorf("after run --once, and without a running instance: %+v", v)
	}
	failing := map[storefake.Fault]float64{storefake.ServerError: 1}
	if err := s.fake.SetFaults(func(f *storefake.Faults) { f.Shares = failing }); err != nil {
		t.Fatal(err)
	}
	if v := s.verify(1, "users", "orders"); v.Verdict != "unknown" ||
		!strings.Contains(v.Resources[0].Error, "500") || v.Resources[1].Verdict != "identical" {
		t.Errorf("while the service fails: %+v", v)
	}
	s.forge(storefake.Orders, s.ids(storefake.Orders)[0], nil)
	if v := s.verify(3, "users", "orders"); v.Verdict != "different" || v.Resources[0].Verdict != "unknown" ||
		v.Resources[1].Missing != 1 || len(v.Resources[1].Notes) == 0 {
		t.Errorf("while the service fails and another resource differs: %+v", v)
	}
}

// A sweep that gets no answer holds up neither polls nor the end, and the next owner goes on with it.
func TestASweepThatHangsHoldsNothingUpAndIsDoneByTheNextOwner(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick, fake: smallShop(36)})
	first := s.spawn("run")
	first.isReady()
	s.converge()
	var hangs atomic.Bool
	hangs.Store(true)
	var asked atomic.Int64
	err := s.fake.SetFaults(func(f *storefake.Faults) {
		f.Choose = func(r *http.Request) storefake.Fault {
			q := r.URL.Query()
			// so asks nobody but a full reading
			if hangs.Load() && (q.Has("created_from") || q.Has("created_to")) && !q.Has("updated_from") &&
				!q.Has("updated_to") {
				asked.Add(1)
				return storefake.Hang
			}
			return storefake.NoFault
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	s.unstamped(storefake.Products, 7, func(row storefake.Row) { row["brand"] = "Nobody" })
	before := s.mark(storefake.Products)
	if out, errs, code := s.do("sweep", "products", "--yes"); code != 0 {
		t.Fatalf("sweep: exit status %d\n%s\n%s", code, out, errs)
	}
	eventually(t, "the sweep waits for an answer", func() (bool, string) { return asked.Load() > 0, "" })
	if err := s.fake.Touch(context.Background(), storefake.Products, 8); err != nil {
		t.Fatal(err)
	}
	want := s.fake.Rows(storefake.Products)[8].Time("updated_at")
	eventually(t, "polls go on", func() (bool, string) {
		return slices.ContainsFunc(s.topic(storefake.Products), func(r record) bool {
			return r.id == 8 && r.updatedAt.Equal(s.floor(storefake.Products, want))
		}), ""
	})
	first.stop()
	hangs.Store(false)
	s.spawn("run")
	s.done(storefake.Products, before)
	s.converge()
}
