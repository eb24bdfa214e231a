package poller

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// deciding drives a state without a poller: it decides about batches and takes each transaction for
// committed.
type deciding struct {
	*state
	t       *testing.T
	shop    *shop
	at      time.Time
	maxRows int
	read    int // rows
	written []watermark.Transaction
}

func newDeciding(t *testing.T, catchesUp bool, maxRows int) *deciding {
	t.Helper()
	d := &deciding{t: t, shop: newShop(t, noon), at: noon, maxRows: maxRows}
	d.shop.config.CatchesUp = catchesUp
	d.restart()
	return d
}

// restart builds a new state from the transactions so far, as a takeover does.
func (d *deciding) restart() {
	if d.state != nil {
		d.dedup.rows.Close()
	}
	for _, tx := range d.written {
		d.shop.mark = tx.Watermark
	}
	d.state = newState(&d.shop.config, d.moment())
	for _, r := range d.published() {
		if p := d.shop.published(r).Published; p.Time >= d.mark.DedupFrom {
			d.dedup.restore(p, &d.mark)
		}
	}
}

func (d *deciding) moment() Moment { return Moment{d.at, schemas.InstantOf(d.at)} }

// decides feeds the state with a batch of these rows.
func (d *deciding) decides(b Batch, rows ...row) {
	d.t.Helper()
	for _, r := range rows {
		r.put(&b)
	}
	d.read += len(rows)
	for at, more := d.moment(), true; more; {
		var tx watermark.Transaction
		var err error
		if tx, more, err = d.decide(&b, at, d.maxRows); err != nil || len(tx.Rows) > d.maxRows {
			d.t.Fatalf("%d rows in a transaction, %v", len(tx.Rows), err)
		}
		tx.Rows = slices.Clone(tx.Rows)
		d.seal(&tx, at.Wall)
		d.dedup.committed(d.mark.Settled, at.Now)
		d.written = append(d.written, tx)
	}
}

// pass feeds the state with a pass of batches, which settles up to settled.
func (d *deciding) pass(settled schemas.Instant, batches [][]row) {
	d.t.Helper()
	d.nextPass(d.moment())
	for _, rows := range batches {
		d.decides(Batch{Settled: schemas.MinInstant}, rows...)
	}
	d.decides(Batch{Settled: settled, Done: &Done{Started: schemas.InstantOf(d.at), Complete: true}})
}

// published are the rows that were published so far.
func (d *deciding) published() (rows []row) {
	for _, tx := range d.written {
		for _, r := range tx.Rows {
			rows = append(rows, rowOf(r))
		}
	}
	return rows
}

// newest are the rows as they were published last.
func (d *deciding) newest() map[int64]row {
	newest := map[int64]row{}
	for _, r := range d.published() {
		newest[r.id] = r
	}
	return newest
}

// wantsPromises fails unless no version was published twice, no older one after a newer one, and settled has
// not passed a deferred row.
func (d *deciding) wantsPromises(when string) {
	d.t.Helper()
	sent, newest := map[row]bool{}, map[int64]row{}
	for _, r := range d.published() {
		if before := newest[r.id]; sent[r] || before.updatedAt > r.updatedAt {
			d.t.Fatalf("%s: %v comes after %v; sent before: %v", when, r, before, sent[r])
		}
		sent[r], newest[r.id] = true, r
	}
	if d.mark.Settled > d.deferred.earliest() {
		d.t.Fatalf("%s: settled is %s, a row of %s is deferred", when, d.mark.Settled, d.deferred.earliest())
	}
}

// All orders of batches with versions of two rows, with a takeover after any batch and without: no version
// is published twice, none over a newer one, every row that was read has an outcome, and in the end the
// topic has the state that the source goes on showing, also if that is an older one.
func TestInWhateverOrderVersionsComeNoneIsPublishedTwiceOrOverANewerOne(t *testing.T) {
	s := newShop(t, noon)
	early, late, settled := -20*time.Second, -10*time.Second, schemas.InstantOf(noon.Add(-shopOverlap))
	newest := map[int64]row{1: s.row(1, late, 3), 2: s.row(2, late, 2)}
	older := map[int64]row{1: s.row(1, early, 1), 2: s.row(2, early, 1)}
	for _, catchesUp := range []bool{false, true} {
		other := s.row(1, early, 2) // it differs from the older state, at the same time
		if catchesUp {
			other = newest[1] // such a source never goes back to the content before
		}
		orders := 0
		for order := range permutations([][]row{
			{older[1]},
			{other, older[2]},
			{newest[1]},
			{newest[2], older[2]}, // two versions in one batch
			{newest[1], newest[2]},
		}) {
			orders++
			when := fmt.Sprintf("catches up: %v, order %v", catchesUp, order)
			whole, again := newDeciding(t, catchesUp, 1+orders%2), newDeciding(t, catchesUp, 1+orders%2)
			whole.pass(settled, order)
			again.pass(settled, order)
			whole.wantsPromises(when)
			if n := whole.repeats + whole.deferrals + whole.beforeStart + len(whole.published()); n != whole.read {
				t.Fatalf("%s: %d rows were read, %d of them have an outcome", when, whole.read, n)
			}
			if !reflect.DeepEqual(again.written, whole.written) {
				t.Fatalf("%s: the second time it decides otherwise", when)
			}
			whole.goesOnShowing(newest, when)
			again.goesOnShowing(older, when)
			whole.dedup.rows.Close()
			again.dedup.rows.Close()
			for cut := range order { // the owner dies after so many batches, and its successor reads all again
				d := newDeciding(t, catchesUp, 1+orders%2)
				d.nextPass(d.moment())
				for _, rows := range order[:cut] {
					d.decides(Batch{Settled: schemas.MinInstant}, rows...)
				}
				d.restart()
				d.pass(settled, order)
				d.wantsPromises(fmt.Sprintf("%s, cut at %d", when, cut))
				d.goesOnShowing(newest, when)
				d.dedup.rows.Close()
			}
		}
		if orders != 120 {
			t.Errorf("%d orders", orders)
		}
	}
}

// goesOnShowing lets passes and second looks show these rows for two overlaps. Then the topic has them, and
// all is settled.
func (d *deciding) goesOnShowing(rows map[int64]row, when string) {
	d.t.Helper()
	shown := slices.Collect(maps.Values(rows))
	for range 3 {
		d.at = d.at.Add(shopOverlap)
		if due := d.deferred.due(d.at); len(due) > 0 {
			d.secondLook(due, d.moment())
			d.decides(Batch{Settled: schemas.MinInstant, Done: &Done{}}, shown...)
			d.deferred.giveUp(due, d.at)
		}
		d.pass(schemas.InstantOf(d.at.Add(-shopOverlap)), [][]row{shown})
	}
	if got := d.newest(); !maps.Equal(got, rows) || !d.deferred.empty() {
		d.t.Fatalf("%s: the topic has %v, the source shows %v", when, got, rows)
	}
	if d.mark.Settled != schemas.InstantOf(d.at.Add(-shopOverlap)) {
		d.t.Fatalf("%s: settled stands at %s", when, d.mark.Settled)
	}
}

// A source that reads by day shows the neighbors of a deferred row as well. They may lie below settled, and
// dedup does not know those any more.
func TestASecondLookDecidesAboutItsRowsAlone(t *testing.T) {
	d := newDeciding(t, false, 10)
	t.Cleanup(func() { d.dedup.rows.Close() })
	s, settled := d.shop, schemas.InstantOf(noon.Add(-shopOverlap))
	neighbor, newer, older := s.row(2, -time.Hour, 1), s.row(0, -10*time.Second, 2), s.row(0, -20*time.Second, 1)
	for _, rows := range [][]row{{neighbor, newer}, {older}} {
		d.pass(settled, [][]row{rows})
		d.at = d.at.Add(shopOverlap)
	}
	due := d.deferred.due(d.at)
	if _, known := d.dedup.rows.Get(neighbor.id); known || len(due) != 1 {
		t.Fatalf("dedup knows the neighbor: %v, and %d rows are due", known, len(due))
	}
	d.secondLook(due, d.moment())
	bad, nameless := neighbor, row{updatedAt: older.updatedAt, bad: true, nameless: true}
	bad.bad, bad.id = true, 3
	d.decides(Batch{Settled: schemas.MinInstant, Done: &Done{}}, neighbor, bad, nameless, older)
	if got, want := d.published(), []row{neighbor, newer, older}; !slices.Equal(got, want) {
		t.Errorf("published are %v, expected %v", got, want)
	}
	for _, tx := range d.written {
		if len(tx.DeadLetters) > 0 {
			t.Errorf("a second look writes dead letters of other rows: %+v", tx.DeadLetters)
		}
	}
}

// A row without a usable updated_at is not one from before the pass: no pass comes closer to it.
func TestARowWithoutAUsableTimeGetsItsDeadLetter(t *testing.T) {
	d := newDeciding(t, false, 10)
	t.Cleanup(func() { d.dedup.rows.Close() })
	timeless, before := d.shop.row(1, 0, 1), d.shop.row(2, -time.Hour, 1)
	timeless.updatedAt, timeless.bad, before.bad = schemas.MinInstant, true, true
	d.pass(schemas.InstantOf(noon.Add(-shopOverlap)), nil)
	d.pass(schemas.InstantOf(noon.Add(-shopOverlap)), [][]row{{timeless, before}})
	var letters []string
	for _, tx := range d.written {
		for _, letter := range tx.DeadLetters {
			letters = append(letters, letter.Key)
		}
	}
	if !slices.Equal(letters, []string{"orders/1"}) {
		t.Errorf("dead letters: %v", letters)
	}
}

// permutations yields all orders of some batches.
func permutations(batches [][]row) func(yield func([][]row) bool) {
	return func(yield func([][]row) bool) {
		var from func(i int) bool
		from = func(i int) bool {
			if i == len(batches) {
				return yield(slices.Clone(batches))
			}
			for j := i; j < len(batches); j++ {
				batches[i], batches[j] = batches[j], batches[i]
				more := from(i + 1)
				if batches[i], batches[j] = batches[j], batches[i]; !more {
					return false
				}
			}
			return true
		}
		from(0)
	}
}
