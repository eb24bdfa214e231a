package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// What happens to PostgreSQL and PgBouncer. PostgreSQL is never away for long. While it is, transactions of
// the shop wait that also write shipments. Those are read over REST, and REST promises nothing for rows that
// appear later than the overlap.
var databaseKinds = []*kind{
	{name: "PgBouncer killed", weight: 2, hits: thePooler, least: 0, most: 8 * time.Second, needs: overDatabase,
		do: func(ctx context.Context, s *stage, _ event) (func() error, error) {
			return func() error { return s.around.pooler.bouncer.Start(ctx) }, s.around.pooler.bouncer.Kill()
		}},
	{name: "PgBouncer cut off", weight: 1, hits: thePooler, least: time.Second, most: 10 * time.Second,
		needs: overDatabase, do: cut(toPooler)},
	{name: "PgBouncer silent", weight: 2, hits: thePooler, least: 3 * time.Second, most: 20 * time.Second,
		needs: overDatabase,
		do:    poison(toPooler, toxic{"timeout", downstream, 0})},
	{name: "PgBouncer far away", weight: 1, hits: thePooler, least: 5 * time.Second, most: 15 * time.Second,
		needs:   overDatabase,
		details: func(d draw, _ *plan, e *event) { e.number = 20 + d.IntN(500) },
		do:      poison(toPooler, toxic{"latency", downstream, 0})},
	{name: "PostgreSQL restarted", weight: 2, hits: thePostgres, least: 0, most: 2 * time.Second,
		needs: overDatabase,
		do: func(ctx context.Context, s *stage, _ event) (func() error, error) {
			return func() error { return s.around.postgres.Start(ctx) }, s.around.postgres.Shutdown()
		}},
	{name: "PostgreSQL crashed", weight: 2, hits: thePostgres, least: 0, most: 2 * time.Second,
		needs: overDatabase,
		do: func(ctx context.Context, s *stage, _ event) (func() error, error) {
			return func() error { return s.around.postgres.Start(ctx) }, s.around.postgres.Kill()
		}},
	{name: "ALTER TABLE", weight: 2, hits: theTables, needs: overDatabase,
		details: anyTable,
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			return nil, s.load.alter(ctx, e.resources[0], e.number)
		}},
	// The rows lie in other blocks of another file then.
	{name: "table rewritten by", weight: 2, hits: theTables, needs: overDatabase,
		details: func(d draw, p *plan, e *event) {
			anyTable(d, p, e)
			e.how = oneOf(d, byCluster, byVacuum)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			return nil, rewriteTable(ctx, s, e.how, e.resources[0])
		}},
	// It is written on under its other name, and has everything when it comes back.
	{name: "column renamed:", weight: 3, hits: theTables, least: 2 * time.Second, most: 12 * time.Second,
		needs: overDatabase,
		details: func(d draw, _ *plan, e *event) {
			table := oneOf(d, storefake.Orders, storefake.OrderItems)
			e.how = table + "." + oneOf(d, fields[table]...)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			table, column, _ := strings.Cut(e.how, ".")
			return renamed(ctx, s, table, column)
		}},
	// Rows written into the copy before it takes the table's place become visible without a write.
	{name: "table swapped by renaming:", weight: 2, hits: theTables, least: time.Second, most: 8 * time.Second,
		needs: overDatabase, details: anyTable,
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			table := e.resources[0]
			next := fmt.Sprintf("%s_%d", table, e.number)
			if err := s.job.copyTable(ctx, table, next); err != nil {
				return nil, notPlayed(fmt.Sprintf("copying %s: %v", table, err))
			}
			return func() error { return s.load.swap(ctx, table, next) }, nil
		}},
	{name: "transaction forgotten", weight: 5, hits: nothing, beside: true, least: 30 * time.Second,
		most: 3 * time.Minute, needs: overDatabase,
		details: func(d draw, p *plan, e *event) {
			e.how = oneOf(d, idAlone, otherTable, hasWritten, bySavepoints, isPrepared)
			anyTable(d, p, e)
			e.number = d.IntN(3) // 0 rolls back
			e.length = min(e.length, p.length/2)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			f := s.job.forget(ctx, e.how, e.resources[0])
			if f == nil {
				return nil, noTransaction
			}
			return func() error { f.end(e.number > 0); return nil }, nil
		}},
	// A transaction that stays open holds settled back, and storestream remembers all later changes.
	{name: "more rows than poll.memory holds:", weight: 2, hits: theMemory, least: 5 * time.Second,
		most: 20 * time.Second, needs: overDatabase, details: anyTable,
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			return outgrow(ctx, s, e.resources[0])
		}},
}

const noTransaction = notPlayed("no transaction could be left open")

// renamed renames a column. The resource must be blocked, and say so, and go on by itself when the column has
// its name back.
func renamed(ctx context.Context, s *stage, table, column string) (func() error, error) {
	since := s.fleet.logged()
	if !s.load.rename(ctx, table, column, column+storefake.RenamedColumn) {
		return nil, notPlayed("the column could not be renamed")
	}
	return func() error {
		told := func() (string, bool) { return s.fleet.blocked(ctx, table, column, since) }
		if text, err := watch(ctx, told, func(context.Context) bool { return true }); err != nil {
			s.journal.fail(fmt.Errorf("%s has lost its column %s: %w", table, column, err))
		} else {
			s.journal.say("%s", text)
		}
		for !s.load.rename(ctx, table, column+storefake.RenamedColumn, column) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		return nil
	}, nil
}

func rewriteTable(ctx context.Context, s *stage, how, table string) error {
	err := s.load.tryUnlocked(ctx, func() error { return s.job.rewrite(ctx, how, table) })
	if err != nil {
		return notPlayed(fmt.Sprintf("%s: %v", how, err))
	}
	return nil
}

func anyTable(d draw, _ *plan, e *event) {
	e.resources = []string{oneOf(d, storefake.Orders, storefake.OrderItems)}
}

// outgrow changes more rows than poll.memory holds while a transaction stays open. The resource must hold,
// and say so; it is to go on by itself when the transaction has ended.
func outgrow(ctx context.Context, s *stage, table string) (func() error, error) {
	f := s.job.forget(ctx, otherTable, table)
	if f == nil {
		return nil, noTransaction
	}
	since := s.fleet.logged()
	s.job.fill(ctx, table, s.fleet.memory.tooManyRows())
	return func() error {
		defer f.end(true)
		told := func() (string, bool) { return s.fleet.blocked(ctx, table, "poll.memory", since) }
		if text, err := watch(ctx, told, f.isOpen); err != nil {
			s.journal.fail(fmt.Errorf("%s has more rows to remember than poll.memory holds: %w", table, err))
		} else {
			s.journal.say("%s", text)
		}
		return nil
	}, nil
}
