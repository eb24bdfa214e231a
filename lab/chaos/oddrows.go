package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/storestream/storestream/internal/storefake"
)

// garble breaks n rows over REST. heal shows them as they are again and changes each, as whoever repairs a row does: one that was repaired without a
// trace in updated_at is for a sweep to find.
func (l *load) garble(resource string, n int) (heal func(context.Context) error) {
	ways := []storefake.Garbling{storefake.NoID, storefake.TextID, storefake.BadTimestamp, storefake.NoTimestamp, storefake.HugeMoney, storefake.WordMoney,
		storefake.NotAnObject}
	var ids []int64
	for range n {
		id := l.anyID(resource)
		ids = append(ids, id)
		l.s.fake.Garble(resource, id, ways[rand.IntN(len(ways))])
		if err := l.touch(context.Background(), resource, id); err != nil {
			l.note(err)
		}
	}
	return func(ctx context.Context) error {
		for _, id := range ids {
			l.s.fake.Garble(resource, id, storefake.NotGarbled)
		}
		for _, id := range ids {
			if err := l.touch(ctx, resource, id); err != nil {
				return err
			}
		}
		return nil
	}
}

// touch changes updated_at alone. A row that is gone is left alone.
func (l *load) touch(ctx context.Context, resource string, id int64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return l.s.fake.Do(ctx, func(tx *storefake.Tx) error {
		_, there, err := tx.Get(ctx, resource, id)
		if err != nil || !there {
			return err
		}
		return tx.Update(ctx, resource, id, func(storefake.Row) {})
	})
}

// foresee inserts n rows whose updated_at has yet to come.
func (l *load) foresee(ctx context.Context, resource string, n int) {
	for range n {
		ctx, cancel := context.WithTimeout(ctx, lockPatience)
		row := l.newRow(resource)
		row["updated_at"] = l.s.fake.Clock().Now().Add(time.Duration(rand.Int64N(int64(2 * time.Hour))))
		if _, err := l.s.fake.Insert(ctx, resource, row); err != nil {
			l.note(err)
		}
		cancel()
	}
}

// renew inserts n rows. back sets their updated_at back by less than the overlap: further is more than storestream promises to see without a sweep.
func (l *load) renew(ctx context.Context, resource string, n int) (back func(context.Context)) {
	type newborn struct {
		id int64
		at time.Time
	}
	var rows []newborn
	for range n {
		if id, err := l.s.fake.Insert(ctx, resource, l.newRow(resource)); err != nil {
			l.note(err)
		} else if row, there := l.s.fake.Row(resource, id); there {
			rows = append(rows, newborn{id, row.Time("updated_at")})
		}
	}
	return func(ctx context.Context) {
		for _, row := range rows {
			to := row.at.Add(-time.Second)
			l.mu.Lock()
			l.back[rowAt{resource, row.id, to.UnixMilli()}] = true
			l.backIDs[rowAt{resource: resource, id: row.id}] = true
			l.mu.Unlock()
			if err := l.s.fake.SetUpdatedAt(ctx, resource, row.id, to); err != nil {
				l.note(err)
			}
		}
	}
}

// onlySetBack says whether the updated_at of all these rows was set back: storestream looks at such a row twice, overlap apart, before it believes it.
func (l *load) onlySetBack(resource string, ids []int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if !l.backIDs[rowAt{resource: resource, id: id}] {
			return false
		}
	}
	return true
}

// setBack says whether the row's updated_at was ever set back to that instant.
func (l *load) setBack(resource string, id, millis int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.back[rowAt{resource, id, millis}]
}
