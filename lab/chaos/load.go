package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/storestream/storestream/internal/storefake"
)

// load changes rows in ways that the shop's own traffic does not: transactions that stay open, rows that break the contract, times that are not
// now. What it picks is left to chance that no seed decides: when it gets to pick does not, either.
type load struct {
	s *stage
	// first is how many rows each resource had at the start: ids 1 to that. Rows from the future are new ones, so that none of
	// the others is ever changed back to an earlier updated_at.
	first map[string]int

	mu    sync.Mutex
	hurry chan struct{} // closed: open transactions commit now
	// back are the instants to which updated_at was set back, by row: the only steps back that a topic may make.
	back    map[rowAt]bool
	backIDs map[rowAt]bool // the same without the instants
	late    int            // transactions that were held open
	skipped error
	running sync.WaitGroup
	stop    context.CancelFunc
}

type rowAt struct {
	resource string
	id       int64
	millis   int64
}

// The transactions that load holds open at once.
const (
	longHolders  = 2
	shortHolders = 2
	// patience bounds the wait for rows that others hold.
	lockPatience = 5 * time.Second
)

func newLoad(s *stage) *load {
	l := &load{s: s, first: map[string]int{}, hurry: make(chan struct{}), back: map[rowAt]bool{}, backIDs: map[rowAt]bool{}, stop: func() {}}
	for _, name := range storefake.Names() {
		l.first[name] = s.fake.Count(name)
	}
	return l
}

// start begins the shop's traffic and the late commits.
func (l *load) start() {
	l.s.fake.StartTraffic(l.s.plan.traffic)
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	p := l.s.plan.polling
	tables, listed := []string{storefake.Orders, storefake.OrderItems}, []string{storefake.Products, storefake.Users, storefake.Shipments}
	if l.s.postgres == nil {
		listed = storefake.Names()
		tables = listed
	}
	for range longHolders {
		l.running.Go(func() { l.holdAgain(ctx, tables, p.hold) })
	}
	for range shortHolders {
		l.running.Go(func() { l.holdAgain(ctx, listed, p.restHold) })
	}
}

// finish stops traffic and commits what is open.
func (l *load) finish() {
	l.stop()
	l.running.Wait()
	l.s.fake.StartTraffic(0)
	l.s.fake.Quiesce()
}

func (l *load) holdAgain(ctx context.Context, resources []string, most time.Duration) {
	for ctx.Err() == nil {
		if err := l.hold(ctx, resources, time.Duration(rand.Float64()*rand.Float64()*float64(most))); err != nil && ctx.Err() == nil {
			l.note(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(rand.Int64N(int64(2 * time.Second)))):
		}
	}
}

// note keeps the last of the changes that did not come about: a database that is away refuses them.
func (l *load) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skipped = err
}

// hold makes a transaction that writes at once, stays open, and commits rows with an updated_at long past (K1). Where its first write does
// not come at once it is dropped: storestream promises nothing of a transaction that writes later than overlap after its stamp.
func (l *load) hold(ctx context.Context, resources []string, length time.Duration) error {
	work, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	tx := l.s.fake.Begin()
	defer tx.Rollback(context.Background())
	began := time.Now()
	resource := resources[rand.IntN(len(resources))]
	for range 1 + rand.IntN(4) {
		if err := l.change(work, tx, resource); err != nil {
			return err
		}
	}
	if time.Since(began) > time.Second {
		return errors.New("late commit: the rows were held by others for too long")
	}
	l.mu.Lock()
	hurry := l.hurry
	l.late++
	l.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-hurry:
	case <-time.After(length):
	}
	return tx.Commit(context.Background())
}

// change updates any row, or inserts one.
func (l *load) change(ctx context.Context, tx *storefake.Tx, resource string) error {
	if rand.IntN(3) == 0 {
		_, err := tx.Insert(ctx, resource, l.newRow(resource))
		return err
	}
	id := l.anyID(resource)
	row, there, err := tx.Get(ctx, resource, id)
	if err != nil || !there || row.Time("updated_at").After(tx.At) {
		return err // gone, or changed since this transaction began
	}
	return tx.Update(ctx, resource, id, func(storefake.Row) {})
}

func (l *load) anyID(resource string) int64 { return 1 + rand.Int64N(int64(l.first[resource])) }

// newRow is a row like one that there is, without id and times.
func (l *load) newRow(resource string) storefake.Row {
	row, there := l.s.fake.Row(resource, l.anyID(resource))
	if !there {
		return storefake.Row{}
	}
	for _, field := range []string{"id", "created_at", "updated_at"} {
		delete(row, field)
	}
	return row
}

// commitAll has open transactions commit now.
func (l *load) commitAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.hurry)
	l.hurry = make(chan struct{})
}

// bulkUpdate gives a share of the first rows the same updated_at.
func (l *load) bulkUpdate(ctx context.Context, resource string, share float64) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	_, n, err := l.s.fake.BulkUpdate(ctx, resource, 1, int64(float64(l.first[resource])*share))
	if err != nil {
		l.s.say("bulk UPDATE: %v", err)
		return
	}
	l.s.say("bulk UPDATE changed %d rows", n)
}

// alter adds a column to a table. A wait for the table's lock would hold up the shop's transactions, past the overlap maybe: so it does not wait.
func (l *load) alter(ctx context.Context, table string, n int) {
	const tries = 20
	var err error
	for range tries {
		l.commitAll()
		err = l.s.fake.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = '300ms'; ALTER TABLE %s ADD COLUMN IF NOT EXISTS chaos_%d integer DEFAULT %d", table, n, n))
		if err == nil || !until(ctx, time.Now().Add(200*time.Millisecond)) {
			return
		}
	}
	l.s.say("ALTER TABLE: %v", err)
}
