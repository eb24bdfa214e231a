package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// load changes rows in ways that the shop's own traffic does not: transactions that stay open, rows that
// break the contract, times that are not now. Its choices do not follow a seed, because the times at which it
// makes them depend on the machine anyway.
type load struct {
	around  *surroundings
	journal *journal
	// first is the number of rows that each resource had at the start, with ids from 1. Rows from the future
	// are always new ones, so no old row ever changes back to an earlier updated_at.
	first map[string]int

	excuses *excuses

	mu      sync.Mutex
	hurry   chan struct{} // once closed, open transactions commit at once
	late    int           // transactions that were held open
	skipped error

	running sync.WaitGroup
	stop    context.CancelFunc
}

// The transactions that load holds open at once.
const (
	longHolders  = 2
	shortHolders = 2
	// patience bounds the wait for rows that others hold.
	lockPatience = 5 * time.Second
)

func newLoad(around *surroundings, j *journal, x *excuses) *load {
	l := &load{around: around, journal: j, excuses: x, first: map[string]int{}, hurry: make(chan struct{}),
		stop: func() {}}
	for _, name := range storefake.Names() {
		l.first[name] = around.fake.Count(name)
	}
	return l
}

// start begins the shop's traffic and the late commits.
func (l *load) start() {
	l.around.fake.StartTraffic(l.around.plan.traffic)
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	p := l.around.plan.polling
	var tables, listed []string
	for _, name := range storefake.Names() {
		if l.around.readsTable(name) {
			tables = append(tables, name)
		} else {
			listed = append(listed, name)
		}
	}
	if len(tables) == 0 {
		tables = listed
	}
	for range longHolders {
		l.running.Go(func() { l.holdAgain(ctx, tables, p.hold) })
	}
	for range shortHolders {
		l.running.Go(func() { l.holdAgain(ctx, listed, p.restHold) })
	}
}

// finish stops traffic and commits the open transactions.
func (l *load) finish() {
	l.stop()
	l.running.Wait()
	l.around.fake.StartTraffic(0)
	l.around.fake.Quiesce()
}

func (l *load) holdAgain(ctx context.Context, resources []string, most time.Duration) {
	for ctx.Err() == nil {
		if err := l.hold(ctx, resources, time.Duration(rand.Float64()*rand.Float64()*float64(most))); err != nil &&
			ctx.Err() == nil {
			l.note(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(rand.Int64N(int64(2 * time.Second)))):
		}
	}
}

// note keeps the last error of a change that failed: a database that is away refuses changes.
func (l *load) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skipped = err
}

// hold makes a transaction that writes at once, stays open, and commits rows with an updated_at long past. It
// gives up if its first write has to wait: storestream promises nothing for a transaction that writes later
// than overlap after its stamp.
func (l *load) hold(ctx context.Context, resources []string, length time.Duration) error {
	work, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	tx := l.around.fake.Begin()
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
	row, there := l.around.fake.Row(resource, l.anyID(resource))
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

// whileClosed calls do when no transaction is open. It makes open transactions commit soon.
func (l *load) whileClosed(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	done := make(chan struct{})
	var hurrying sync.WaitGroup
	hurrying.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			l.commitAll()
			select {
			case <-tick.C:
			case <-done:
				tick.Stop()
				return
			}
		}
	})
	defer hurrying.Wait()
	defer close(done)
	return do(ctx)
}

// bulkUpdate gives a share of the first rows the same updated_at.
func (l *load) bulkUpdate(ctx context.Context, resource string, share float64) error {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	_, n, err := l.around.fake.BulkUpdate(ctx, resource, 1, int64(float64(l.first[resource])*share))
	if err != nil {
		return notPlayed(fmt.Sprintf("bulk UPDATE: %v", err))
	}
	l.journal.say("bulk UPDATE changed %d rows", n)
	return nil
}

// changeSilently changes n rows and leaves their updated_at as it is.
func (l *load) changeSilently(ctx context.Context, resource string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	field, value := changing(resource)
	changed := 0
	for range n {
		id := l.anyID(resource)
		err := l.around.fake.Do(ctx, func(tx *storefake.Tx) error {
			return tx.Alter(ctx, resource, id, func(r storefake.Row) { r[field] = value() })
		})
		if err != nil {
			l.note(err)
			continue
		}
		changed++
	}
	if changed == 0 {
		return notPlayed("no row could be changed")
	}
	l.excuses.changedSilently(changed)
	return nil
}

// remove deletes n rows for good, and returns their ids.
func (l *load) remove(ctx context.Context, resource string, n int) (ids []int64) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	for range n {
		id := l.anyID(resource)
		if err := l.around.fake.Delete(ctx, resource, id); err != nil {
			l.note(err)
			continue
		}
		ids = append(ids, id)
	}
	l.excuses.removed(len(ids))
	return ids
}

// alter adds a column to a table.
func (l *load) alter(ctx context.Context, table string, n int) error {
	err := l.whenUnlocked(ctx, fmt.Sprintf("ALTER TABLE %s ADD COLUMN IF NOT EXISTS chaos_%d integer DEFAULT %d",
		table, n, n))
	if err != nil {
		return notPlayed(fmt.Sprintf("ALTER TABLE: %v", err))
	}
	return nil
}

// rename renames a column; false: it could not.
func (l *load) rename(ctx context.Context, table, from, to string) bool {
	err := l.whenUnlocked(ctx, fmt.Sprintf("ALTER TABLE %s RENAME COLUMN %s TO %s", table, from, to))
	if err != nil {
		l.journal.say("renaming a column: %v", err)
	}
	return err == nil
}

// swap puts next, a table with some rows of its own, in the place of table, with all its rows. Where it
// cannot, next goes.
func (l *load) swap(ctx context.Context, table, next string) error {
	err := l.whenUnlocked(ctx, fmt.Sprintf("LOCK TABLE %[1]s; INSERT INTO %[2]s SELECT * FROM %[1]s; "+
		"DROP TABLE %[1]s; ALTER TABLE %[2]s RENAME TO %[1]s", table, next))
	if err != nil {
		if err := l.around.fake.Exec(ctx, "DROP TABLE IF EXISTS "+next); err != nil {
			l.note(err)
		}
		return notPlayed(fmt.Sprintf("swapping %s: %v", table, err))
	}
	return nil
}

// whenUnlocked runs SQL that needs a table for itself, in one transaction. It does not wait for the table's
// lock: a waiting lock would hold up the shop's transactions, maybe past the overlap.
func (l *load) whenUnlocked(ctx context.Context, sql string) error {
	return l.tryUnlocked(ctx, func() error {
		return l.around.fake.Exec(ctx, "SET LOCAL lock_timeout = '300ms'; "+sql)
	})
}

// tryUnlocked calls do, which needs a table for itself, until it succeeds, but not without end.
func (l *load) tryUnlocked(ctx context.Context, do func() error) (err error) {
	const tries = 20
	for range tries {
		l.commitAll()
		err = do()
		if err == nil || !until(ctx, time.Now().Add(200*time.Millisecond)) {
			return err
		}
	}
	return err
}

// garble breaks n rows over REST. heal shows them as they are again and touches each, as a repair at the
// service would. (Only a sweep finds a row that was repaired without a trace in updated_at.)
func (l *load) garble(resource string, n int) (heal func(context.Context) error) {
	ways := []storefake.Garbling{storefake.NoID, storefake.TextID, storefake.BadTimestamp, storefake.NoTimestamp,
		storefake.HugeMoney, storefake.WordMoney,
		storefake.NotAnObject}
	var ids []int64
	for range n {
		id := l.anyID(resource)
		ids = append(ids, id)
		l.around.fake.Garble(resource, id, ways[rand.IntN(len(ways))])
		if err := l.touch(context.Background(), resource, id); err != nil {
			l.note(err)
		}
	}
	return func(ctx context.Context) error {
		for _, id := range ids {
			l.around.fake.Garble(resource, id, storefake.NotGarbled)
		}
		for _, id := range ids {
			if err := l.touch(ctx, resource, id); err != nil {
				return err
			}
		}
		return nil
	}
}

// widen inserts n rows with a text of size bytes. shorten makes it a short one, of the rows that are still
// there.
func (l *load) widen(ctx context.Context, resource string, n, size int) (ids []int64,
	shorten func(context.Context) error) {
	field := map[string]string{storefake.Orders: "status", storefake.Products: "name",
		storefake.Users: "email"}[resource]
	for range n {
		row := l.newRow(resource)
		row[field] = strings.Repeat("w", size)
		id, err := l.around.fake.Insert(ctx, resource, row)
		if err != nil {
			l.note(err)
			continue
		}
		ids = append(ids, id)
	}
	return ids, func(ctx context.Context) error {
		for _, id := range ids {
			if err := l.alterRow(ctx, resource, id, func(r storefake.Row) { r[field] = "short" }); err != nil {
				return err
			}
		}
		return nil
	}
}

// touch changes updated_at alone. A row that is gone is left alone.
func (l *load) touch(ctx context.Context, resource string, id int64) error {
	return l.alterRow(ctx, resource, id, func(storefake.Row) {})
}

// alterRow changes a row unless it is gone. Its updated_at never goes back, even if the clock does.
func (l *load) alterRow(ctx context.Context, resource string, id int64, change func(storefake.Row)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return l.around.fake.Do(ctx, func(tx *storefake.Tx) error {
		row, there, err := tx.Get(ctx, resource, id)
		if err != nil || !there {
			return err
		}
		return tx.Update(ctx, resource, id, func(r storefake.Row) {
			change(r)
			if at := row.Time("updated_at"); at.After(tx.At) && r.Time("updated_at").Equal(at) {
				r["updated_at"] = at.Add(time.Second)
			}
		})
	})
}

// foresee inserts n rows whose updated_at has yet to come.
func (l *load) foresee(ctx context.Context, resource string, n int) {
	for range n {
		ctx, cancel := context.WithTimeout(ctx, lockPatience)
		row := l.newRow(resource)
		row["updated_at"] = l.around.fake.Clock().Now().Add(time.Duration(rand.Int64N(int64(2 * time.Hour))))
		if _, err := l.around.fake.Insert(ctx, resource, row); err != nil {
			l.note(err)
		}
		cancel()
	}
}

// renew inserts n rows. back sets their updated_at back by less than the overlap: without a sweep storestream
// does not promise to notice a larger step.
func (l *load) renew(ctx context.Context, resource string, n int) (back func(context.Context)) {
	type newborn struct {
		id int64
		at time.Time
	}
	var rows []newborn
	for range n {
		if id, err := l.around.fake.Insert(ctx, resource, l.newRow(resource)); err != nil {
			l.note(err)
		} else if row, there := l.around.fake.Row(resource, id); there {
			rows = append(rows, newborn{id, row.Time("updated_at")})
		}
	}
	return func(ctx context.Context) {
		for _, row := range rows {
			to := row.at.Add(-time.Second)
			l.excuses.wentBack(resource, row.id, l.around.shown(resource, to))
			if err := l.around.fake.SetUpdatedAt(ctx, resource, row.id, to); err != nil {
				l.note(err)
			}
		}
	}
}
