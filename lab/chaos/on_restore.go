package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// The service is restored from a backup: its rows go back, later changes are gone, and ids are given out
// again. That breaks the condition of storestream's promise, that a change of a row sets its updated_at to
// now. So its operator asks for a sweep, and then the topics must equal the service again, except for rows
// that it no longer has. The judge forgives the restore's own effect: a step back to the backup's version,
// and a state that occurs again. A sweep believes a row that went back when an overlap has passed, by our
// clock. If the service's clock runs fast, that is longer than the run.
var restoreKinds = []*kind{
	{name: "restored from a backup", weight: 2, hits: theTables, least: 3 * time.Second, most: 20 * time.Second,
		needs: overDatabase,
		do: func(ctx context.Context, s *stage, _ event) (func() error, error) {
			b, err := backup(ctx, s)
			if err != nil {
				return nil, notPlayed(fmt.Sprintf("backup: %v", err))
			}
			return func() error { return restore(ctx, s, b) }, nil
		}},
}

// backup waits until no transaction of load's is open.
func backup(ctx context.Context, s *stage) (b *storefake.Backup, err error) {
	err = s.load.whileClosed(ctx, func(ctx context.Context) error {
		b, err = s.around.fake.Backup(ctx)
		return err
	})
	return b, err
}

func restore(ctx context.Context, s *stage, b *storefake.Backup) error {
	overREST := func(name string) bool { return !s.around.readsTable(name) }
	s.tail.rewritten(slices.DeleteFunc(storefake.Names(), overREST))
	var did *storefake.Restored
	err := s.load.whileClosed(ctx, func(ctx context.Context) (err error) {
		did, err = s.around.fake.Restore(ctx, b)
		return err
	})
	if err != nil { // such as a forgotten transaction that holds rows
		return notPlayed(fmt.Sprintf("restore: %v", err))
	}
	back, gone := s.excuses.restored(did, s.around.shown)
	s.journal.say("%d rows went back to %s, %d are gone", back, b.At.Format(time.RFC3339), gone)
	s.sweepAll(ctx)
	return nil
}
