package e2e

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// little is a poll.memory with which a first load over REST goes through. It holds fewer rows than manyOrders
// has orders.
const (
	little = "\npoll: {memory: 2MiB}\n"
	many   = 100_000
)

func manyOrders(seed uint64) storefake.Config {
	return storefake.Config{Seed: seed, Size: storefake.Size{Users: 500, Orders: many, Products: 200}}
}

// updateAll updates every order, in one transaction, and returns how many there are.
func (s *stack) updateAll() int {
	s.t.Helper()
	_, changed, err := s.fake.BulkUpdate(context.Background(), storefake.Orders, 1, 1<<40)
	if err != nil {
		s.t.Fatal(err)
	}
	return changed
}

// forgets begins a transaction that nobody ends, and lets it write something. The caller ends it.
func (s *stack) forgets() *storefake.Tx {
	s.t.Helper()
	tx := s.fake.Begin()
	err := tx.Update(context.Background(), storefake.OrderItems, 1,
		func(r storefake.Row) { r["quantity"] = int64(7) })
	if err != nil {
		s.t.Fatal(err)
	}
	return tx
}

// holds waits until orders are blocked because poll.memory is full.
func (p *process) holds() {
	p.t.Helper()
	eventually(p.t, "orders are blocked", func() (bool, string) {
		r := p.resource(storefake.Orders)
		return strings.Contains(r.Why, "orders: poll.memory is full"), r.Why
	})
	if n := p.metric("storestream_dedup_full_total", storefake.Orders); n == 0 {
		p.t.Error("the metric tells of no hold")
	}
}

// each fails unless each version of an order was published `times` times since the offsets in `before`, n in
// all.
func (s *stack) each(before map[int64]int64, times, n int) {
	s.t.Helper()
	type version struct {
		id int64
		at time.Time
	}
	seen, all := map[version]int{}, 0
	for _, r := range s.topic(storefake.Orders) {
		v := version{r.id, r.updatedAt}
		if seen[v]++; seen[v] == times+1 {
			s.t.Errorf("a version of order %d is there %d times, at offset %d", r.id, seen[v], r.offset)
			return
		}
		if r.offset >= before[r.id] {
			all++
		}
	}
	if all != n {
		s.t.Errorf("%d records of %d versions", all, n)
	}
}

// publishes waits until p has published some orders, and fails where these are not fewer than all.
func (p *process) publishes(some, all int) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	published := regexp.MustCompile(`storestream_rows_published_total\{resource="orders"\} (\S+)`)
	for n := 0.; n < float64(some); {
		_, body := p.get("/metrics")
		if found := published.FindStringSubmatch(body); found != nil {
			n, _ = strconv.ParseFloat(found[1], 64)
		}
		if n >= float64(all) || time.Now().After(deadline) {
			p.t.Fatalf("%v of %d rows are published", n, all)
		}
	}
}

// A forgotten transaction lets settled stand still while more rows change than may be remembered. The
// resource holds, says why, and goes on by itself when the transaction is over: each version is published
// once.
func TestWhatAForgottenTransactionLeavesNoRoomForBlocksTheResourceUntilItIsOver(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick + little, fake: manyOrders(51)})
	p := s.spawn("run")
	p.isReady()
	before := lastOffsets(s.topic(storefake.Orders))
	forgotten := s.forgets()
	changed := s.updateAll()
	p.holds()
	s.eventuallySays("orders: poll.memory is full", "check", "--set", "http.listen="+p.addr())
	s.eventuallySays("nothing is published: orders: poll.memory is full", "watermark", "list")
	if err := forgotten.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.quiet()
	s.each(before, 1, changed)
}

// An open day of more rows than may be remembered is blocked too, and goes on with more memory.
func TestARESTDayLargerThanTheMemoryIsBlockedAndGoesOnWithMore(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{noPostgres: true, yaml: quick + little, fake: manyOrders(52)})
	p := s.spawn("run")
	p.isReady()
	before := lastOffsets(s.topic(storefake.Orders))
	changed := s.updateAll()
	p.holds()
	p.stop()
	s.spawn("run", "--set", "poll.memory=16MiB").isReady()
	s.quiet()
	s.each(before, 1, changed)
}

// A replay of a table that is larger than the memory goes through, also where its owner dies.
func TestAReplayOfMoreRowsThanTheMemoryHoldsSendsEachOnceMore(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick + little, fake: manyOrders(53)})
	p := s.spawn("run")
	p.isReady()
	p.stop()
	before, mark := lastOffsets(s.topic(storefake.Orders)), s.mark(storefake.Orders)
	s.reset("1999-12-31", storefake.Orders)
	p = s.spawn("run")
	p.publishes(many/10, many)
	p.kill()
	s.spawn("run")
	s.done(storefake.Orders, mark)
	s.converge()
	s.each(before, 2, many)
}

// A first load of more rows than the memory holds, beside a transaction that stays open. Its owner dies, and
// the next one goes on where it was.
func TestAFirstLoadBesideAForgottenTransactionIsPublishedOnceByTwoOwners(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick + little, fake: manyOrders(54)})
	forgotten := s.forgets()
	p := s.spawn("run")
	p.publishes(many/10, many)
	p.kill()
	s.spawn("run").isReady()
	s.each(nil, 1, many)
	if err := forgotten.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.quiet()
	s.each(nil, 1, many)
}
