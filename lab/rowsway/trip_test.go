package rowsway

import (
	"bytes"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// patience is how long the test waits for the program. It judges nothing.
const patience = 2 * time.Minute

// committing is the call that waits at the commit.
const committing = "github.com/twmb/franz-go/pkg/kmsg.(*EndTxnRequest)."

// traveler watches rows from the answer to the commit.
type traveler struct {
	fs      functions
	program *program
	library string // the calls that wait for an answer begin with it

	mu      sync.Mutex
	trip    *trip        // in hand, nil between two
	written int          // rows of it, in the transaction that is open
	answers []*goroutine // those that waited for an answer, on trips and between them
	ended   bool         // the program may be gone
}

// trip is the way of rows that came with one answer.
type trip struct {
	batch
	waiting   *goroutine   // for the answer; nil until it is there
	handing   []*goroutine // that goroutine and those that started it, at the commit
	committer *goroutine
	counters  string // the folder with the counters of this trip
	ran       coverage
	arrived   chan struct{}
}

// travel follows a batch, which begin sends on its way, to its commit.
func (tr *traveler) travel(t *testing.T, b batch, begin func()) *trip {
	t.Helper()
	now := &trip{batch: b, arrived: make(chan struct{})}
	tr.mu.Lock()
	tr.trip, tr.written = now, 0
	tr.mu.Unlock()
	begin()
	select {
	case <-now.arrived:
	case <-time.After(patience):
		t.Fatalf("%s: the rows did not arrive", b.marker)
	}
	if now.waiting == nil || now.committer == nil {
		t.Fatalf("%s: found no goroutine that waits for the answer, or none that commits", b.marker)
	}
	return now
}

// answer takes the stack that waits for this answer. The counters begin at the answer with the rows.
func (tr *traveler) answer(data []byte) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.ended {
		return
	}
	waiting := deepest(tr.resting(), tr.library)
	if waiting == nil {
		return
	}
	tr.answers = append(tr.answers, waiting)
	if tr.trip != nil && tr.trip.waiting == nil && bytes.Contains(data, []byte(tr.trip.marker)) {
		tr.trip.waiting = waiting
		tr.program.clear()
	}
}

// request takes the stacks and counters at the commit of the rows.
func (tr *traveler) request(r kmsg.Request) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.trip == nil || tr.trip.waiting == nil {
		return
	}
	if produce, ok := r.(*kmsg.ProduceRequest); ok {
		for _, topic := range produce.Topics {
			for _, partition := range topic.Partitions {
				tr.written += bytes.Count(partition.Records, []byte(tr.trip.marker))
			}
		}
	}
	if _, ok := r.(*kmsg.EndTxnRequest); !ok || tr.written == 0 {
		return
	}
	if tr.written != tr.trip.rows {
		tr.program.t.Errorf("%s: a transaction of %d rows, expected all %d", tr.trip.marker, tr.written,
			tr.trip.rows)
	}
	now := tr.resting()
	tr.trip.counters = tr.program.counters()
	tr.trip.committer = deepest(now, committing)
	for _, id := range tr.trip.waiting.ids {
		if i := slices.IndexFunc(now, func(g *goroutine) bool { return g.ids[0] == id }); i >= 0 {
			tr.trip.handing = append(tr.trip.handing, now[i])
		}
	}
	close(tr.trip.arrived)
	tr.trip = nil
}

// end ends all watching.
func (tr *traveler) end() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.ended = true
}

// resting returns the goroutines with functions of ours when all that poll wait for something. The one answer
// or request that they could go on with is held back, so they come to rest.
func (tr *traveler) resting() []*goroutine {
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		now := readStacks(tr.program.stacks(), tr.fs)
		if !slices.ContainsFunc(now, func(g *goroutine) bool { return g.polls() && !g.rests() }) {
			return now
		}
		if time.Now().After(deadline) {
			tr.program.t.Error("the program does not come to rest")
			return now
		}
	}
}

// deepest returns the goroutine with the most functions of ours of those within a call of library. It returns
// nil if there is none.
func deepest(all []*goroutine, library string) (found *goroutine) {
	for _, g := range all {
		if g.speaks(library) && (found == nil || len(g.ours) > len(found.ours)) {
			found = g
		}
	}
	return found
}
